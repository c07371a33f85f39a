"""CPU of runs and of decisions with many arms, newest rules and those of 0.1.0 in turns."""

import math
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

import finalist as fl
from benchmarks.epsilon import TRUTHS, means
from benchmarks.gauntlet.cells import CAP, FIRST_RULES
from benchmarks.gauntlet.families import Spec, lower_bound
from finalist.arms import Arms
from finalist.problem import as_problem
from finalist.problem.rules import NEWEST, Rules
from finalist.simulation import instances
from finalist.simulation.instances import random_theta
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import Task, finish, make_task

#: Both rules, in the order in which they take turns.
BOTH = (NEWEST, FIRST_RULES)
#: Pulls over the rank after which no rules are in their pilot, where decisions are cheap.
PILOT = 8


class Seconds(NamedTuple):
    """CPU seconds of the newest rules, and of the rules of 0.1.0 in the same turns."""

    newest: list[float]
    first: list[float]

    @property
    def medians(self) -> tuple[float, float]:
        """The median of each."""
        return float(np.median(self.newest)), float(np.median(self.first))


def of_runs(specs: Iterable[Spec], turns: int) -> Seconds:
    """Return the CPU of runs on all instances of some cells, after one that warms up."""
    seconds = Seconds([], [])
    for spec in specs:
        cap = math.ceil(CAP * lower_bound(spec.numbered[0].instance, spec.delta))
        words: dict[str, Any] = {"max_pulls": cap, "delta": spec.delta, "sigma": 1.0}
        for place, (instance, seed) in enumerate(spec.numbered):
            made = instance.arms, instance.theta, seed
            _in_turns(seconds, *made, turns, place, **words)
    return seconds


def of_margins(K: int, turns: int) -> Seconds:
    """Return the CPU of runs with an epsilon of 0.5."""
    return _of_bare_arms(K, turns, delta=0.05, epsilon=0.5)


def of_budgets(K: int, turns: int) -> Seconds:
    """Return the CPU of runs with a budget of 20 pulls an arm, which hardly ever end before."""
    return _of_bare_arms(K, turns, delta=1e-6, budget=20 * K)


def _of_bare_arms(K: int, turns: int, **words: Any) -> Seconds:
    """Return the CPU of runs without features, on all truths of `benchmarks.epsilon`."""
    seconds = Seconds([], [])
    for place, truth in enumerate(TRUTHS):
        made = Arms.unstructured(K), means(truth, K, 0.5), place
        _in_turns(seconds, *made, turns, place, max_pulls=10**6, sigma=1.0, **words)
    return seconds


def of_unknown_sigma(specs: Iterable[Spec], turns: int) -> Seconds:
    """Return the CPU of runs whose sigma is not known."""
    seconds = Seconds([], [])
    for spec in specs:
        cap = math.ceil(CAP * lower_bound(spec.numbered[0].instance, spec.delta))
        for place, (instance, seed) in enumerate(spec.numbered):
            expected = instance.arms.means(instance.theta)

            def draw(arm: int, n: int, rng: Any, expected: Any = expected) -> Any:
                return expected[arm] + rng.standard_normal(n)

            made = instance.arms, instance.theta, seed
            words: dict[str, Any] = {"max_pulls": cap, "delta": spec.delta, "rewards": draw}
            _in_turns(seconds, *made, turns, place, sigma=None, **words)
    return seconds


def _in_turns(
    seconds: Seconds,
    arms: Arms,
    theta: np.ndarray,
    seed: int,
    turns: int,
    place: int,
    **words: Any,
) -> None:
    """Add the CPU of runs on one instance, whose rules take turns; the first instance warms up."""
    tasks: list[Task] = [
        make_task(arms, theta, "gauntlet", seed=seed, rules=rules, **{"rewards": None, **words})
        for rules in BOTH
    ]
    if place == 0:
        for task in tasks:
            task.run(0)
    for turn in range(1, turns + 1):
        pairs = list(zip(tasks, seconds, strict=True))
        for task, kept in pairs if (place + turn) % 2 else reversed(pairs):
            kept.append(task.run(turn).seconds)


def of_decisions(K: int, d: int, seeds: int, batches: int) -> Seconds:
    """Return the CPU of each decision and test: `batches` after the pilot, for each seed."""
    seconds = Seconds([], [])
    for seed in range(seeds):
        for rules, kept in zip(BOTH, seconds, strict=True):
            kept.extend(_each_batch(K, d, seed, rules, PILOT, batches))
    return seconds


def of_large_runs(K: int, d: int, seeds: int) -> Seconds:
    """Return the CPU of whole runs."""
    seconds = Seconds([], [])
    for seed in range(seeds):
        for rules, kept in zip(BOTH, seconds, strict=True):
            kept.append(sum(_each_batch(K, d, seed, rules)))
    return seconds


class _Enough(Exception):  # noqa: N818
    """As many batches as asked for."""


def _each_batch(
    K: int, d: int, seed: int, rules: Rules, after: int = 0, most: float = math.inf
) -> list[float]:
    """Return the CPU seconds of batches of a run, of choosing one and of testing with it.

    From `after` times the rank in pulls on, and at most `most` batches. The arms are on a sphere,
    and the parameter is random, of length 1. Drawing rewards is not timed.
    """
    instance = random_theta(instances.unit_sphere(K, d, 7), seed)
    run = fl.Gauntlet().start(as_problem(instance.arms, sigma=1.0, rules=rules), seed=seed)
    choose, record, skipped = run.next, run.record, 0
    seconds: list[float] = []

    def timed_choose(*words: Any) -> Any:
        nonlocal skipped
        if run.verdict.pulls < after * instance.arms.rank:
            skipped = len(seconds) + 1
        if len(seconds) == skipped + most:
            raise _Enough
        begin = time.process_time()
        batch = choose(*words)
        seconds.append(time.process_time() - begin)
        return batch

    def timed_record(*words: Any) -> None:
        begin = time.process_time()
        record(*words)
        seconds[-1] += time.process_time() - begin

    run.next, run.record = timed_choose, timed_record  # type: ignore[assignment, method-assign]
    expected, rng = instance.arms.means(instance.theta), np.random.default_rng(seed)
    with suppress(_Enough):
        finish(run, DrawnRewards(expected, 1.0, "gaussian", rng), K, 10**9)
    return seconds[skipped:]
