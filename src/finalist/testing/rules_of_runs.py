"""Rules about the behaviour of runs: what changes, what is refused, what can be replayed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.errors import FinalistError, NotYetSupportedError
from finalist.inference.statistics import Statistics
from finalist.problem import TopM, as_problem
from finalist.simulation.instances import gaussian
from finalist.simulation.rewards import Kind
from finalist.strategies import Batch, Playable, Run, Strategy
from finalist.testing.designs import no_design
from finalist.testing.runs import (
    THETA,
    Make,
    NotApplicable,
    ensure,
    ensure_refused,
    rewards_of,
    step,
)

#: Seeds for arms that no run has seen.
_NEW = count(10_000)


def is_a_strategy(make: Make, budget: int | None = None) -> None:
    """Every strategy has a name and `start`; a run has `verdict`, `next` and `record`."""
    arms = Arms.unstructured(3)
    strategy = make(arms, THETA)
    ensure(isinstance(strategy, Strategy), f"{strategy!r} has no name or no method start")
    ensure(strategy.name and isinstance(strategy.name, str), f"its name is {strategy.name!r}")
    run = strategy.start(as_problem(arms, sigma=1.0, budget=budget))
    ensure(isinstance(run, Run), f"start returns {run!r} without verdict, next or record")


def start_solves_no_design(make: Make, budget: int | None = None) -> None:
    """`start` is quick: pages, commands and replays call it, often without any pull."""
    arms = Arms(gaussian(5, 5, next(_NEW)))  # new arms, for which no design is cached
    problem, strategy = as_problem(arms, sigma=1.0, budget=budget), make(arms, np.ones(5))
    with no_design("start"):
        ensure(strategy.start(problem).verdict.winner is None, "an arm wins without a pull")


def next_changes_nothing(make: Make, budget: int | None = None) -> None:
    """`next` gives the same batch when asked again; two runs with the same seed agree."""
    arms = Arms(gaussian(12, 3, 0))
    problem = as_problem(arms, sigma=1.0, budget=budget)
    strategy = make(arms, 1e-3 * THETA)
    first, second = strategy.start(problem, seed=4), strategy.start(problem, seed=4)
    rewards = rewards_of(problem, 1e-3 * THETA, seed=1)
    for size in (None, 5, 1, None, 7):
        if first.verdict.decided:  # an oracle may need only one batch
            break
        verdict, counts = first.verdict, first.next(size).counts
        first.next(3)
        ensure(first.verdict == verdict, "next changes the verdict")
        ensure(_same(first.next(size).counts, counts), "next gives another batch when asked again")
        ensure(_same(second.next(size).counts, counts), "two runs with the same seed differ")
        ensure(counts.shape == (12,), f"counts have shape {counts.shape} for 12 arms")
        ensure(counts.min() >= 0 and counts.sum() >= 1, f"a batch pulls {counts.tolist()}")
        ensure(size is None or counts.sum() <= size, f"{counts.sum()} pulls when asked for {size}")
        batch = first.next(size)
        values = rewards.batch(batch.counts)
        first.record(batch, values)
        second.record(batch, values)
    ensure(first.verdict == second.verdict, "two runs with the same rewards have two verdicts")


def replay_equals_live(make: Make, size: int | None, budget: int | None = None) -> None:
    """`record` alone leads to the same verdict without solving a design, as in a replay."""
    arms = Arms(gaussian(10, 3, 1))
    problem, strategy = as_problem(arms, sigma=0.3, budget=budget), make(arms, THETA)
    run, log = step(strategy, problem, THETA, seed=0, size=size)
    ensure(run.verdict.decided, f"there is no winner after {run.verdict.pulls:,} pulls")
    replay = strategy.start(problem, seed=1)
    with no_design("record"):
        for batch, rewards in log:
            replay.record(batch, rewards)
    ensure(replay.verdict == run.verdict, f"{run.verdict} becomes {replay.verdict} when replayed")


def a_log_kept_as_json_goes_on(make: Make, budget: int | None = None) -> None:
    """Restored from JSON, a run continues with the same pulls, early and late."""
    arms = Arms(gaussian(10, 3, 1))
    problem, strategy = as_problem(arms, sigma=2.0, budget=budget), make(arms, THETA)
    rewards, live = rewards_of(problem, THETA, 2), strategy.start(problem, seed=3)
    log: list[tuple[str, Statistics]] = []
    while not live.verdict.decided and len(log) < 25:
        batch = live.next(4)
        values = rewards.batch(batch.counts)
        log.append((_written(batch), values))
        live.record(batch, values)
        if len(log) not in (3, 12, 25) or live.verdict.decided:
            continue
        again = strategy.start(problem, seed=3)
        for text, known in log:
            counts, note = json.loads(text)
            again.record(Batch(np.array(counts), note), known)
        same = _same(again.next(6).counts, live.next(6).counts)
        ensure(same, "a run made from JSON pulls others")
        ensure(again.verdict == live.verdict, "a run made from JSON has another verdict")


def playing_equals_stepping(make: Make, kind: Kind, budget: int | None = None) -> None:
    """`play` makes the same pulls as `next` and `record`, one at a time."""
    arms, theta = Arms.unstructured(4), np.array([0.9, 0.3, 0.2, 0.1])
    problem, strategy = as_problem(arms, sigma=0.5, budget=budget), make(arms, theta)
    played = _playable(strategy.start(problem, seed=1))
    counts = played.play(rewards_of(problem, theta, 6, kind), 10**6)
    stepped, log = step(strategy, problem, theta, seed=6, kind=kind)
    ensure(played.verdict.decided, "play ends without a winner")
    ensure(played.verdict == stepped.verdict, f"{played.verdict} when played, {stepped.verdict}")
    pulls = np.sum([batch.counts for batch, _ in log], axis=0)
    ensure(_same(counts, pulls), f"play pulls {counts.tolist()} and not {pulls.tolist()}")
    ensure(len(log) == counts.sum() > 10, "next of a run that plays makes one pull at a time")


def the_cap_of_a_simulation_is_kept(make: Make) -> None:
    """`play` stops at its limit."""
    arms, theta = Arms.unstructured(4), np.array([1e-6, 0.0, 0.0, 0.0])
    problem = as_problem(arms, sigma=1.0)
    run = _playable(make(arms, theta).start(problem))
    made = run.play(rewards_of(problem, theta, 0), 70_001).sum()
    ensure(made == run.verdict.pulls == 70_001, f"{made} pulls when 70,001 is the limit")
    ensure(not run.verdict.decided, "a gap of a millionth is found with 70,001 pulls")


def one_arm_needs_no_pull(make: Make, budget: int | None = None) -> None:
    """If there is only one arm, it wins at once."""
    arms = Arms([[1.0, 2.0]])
    problem = as_problem(arms, sigma=1.0, budget=budget)
    verdict = make(arms, np.ones(2)).start(problem).verdict
    ensure(verdict.winner == 0 and verdict.pulls == 0, f"the verdict on one arm is {verdict}")


def wrong_rewards_and_sizes_are_refused(make: Make, budget: int | None = None) -> None:
    """They raise a finalist error and change nothing."""
    arms = Arms.unstructured(3)
    run = make(arms, THETA).start(as_problem(arms, sigma=1.0, budget=budget))
    before, batch = run.verdict, run.next()
    for wrong in (Statistics.empty(3), Statistics.empty(4)):
        _refuse(run.record, batch, wrong, what="rewards that are not those of the batch")
    other = Batch(np.zeros(4, dtype=np.int64))
    _refuse(run.record, other, Statistics.empty(4), what="a batch of 4 arms instead of 3")
    for size in (0, -1, True):
        _refuse(run.next, size, what=f"a batch of size {size}")
    ensure(run.verdict == before, "a call that is refused changes the verdict")
    ensure(_same(run.next().counts, batch.counts), "a call that is refused changes the next batch")


def a_decided_run_takes_nothing_more(make: Make, budget: int | None = None) -> None:
    """Once there is a winner, `next` and `record` are refused; the winner is a survivor."""
    arms = Arms.unstructured(3)
    problem = as_problem(arms, sigma=0.1, budget=budget)
    run, log = step(make(arms, THETA), problem, THETA, seed=0)
    ensure(run.verdict.decided, f"there is no winner after {run.verdict.pulls:,} pulls")
    ensure(run.verdict.winner in run.verdict.survivors, f"no survivor wins: {run.verdict}")
    _refuse(run.next, what="next after the end")
    _refuse(run.record, *log[-1], what="record after the end")


def two_best_arms_or_a_refusal(make: Make, budget: int | None = None) -> None:
    """Asked for the two best arms it finds them, or `start` raises NotYetSupportedError."""
    arms, theta = Arms.unstructured(3), np.array([1.0, 5.0, 9.0])
    with _may_refuse():
        problem = as_problem(arms, goal=TopM(2), sigma=0.1, delta=1e-6, budget=budget)
        verdict = step(make(arms, theta), problem, theta, seed=0)[0].verdict
        ensure(set(verdict.winners) == {1, 2}, f"the two best of 1, 5, 9 are {verdict.winners}")


def other_candidates_or_a_refusal(make: Make, budget: int | None = None) -> None:
    """Only measurable arms are pulled and only candidates win, or `start` refuses."""
    theta = np.array([3.0, 1.0, 0.0])
    rows = Arms(np.vstack([np.eye(3), [[0.1, 0.1, 0.1], [-1.0, -2.0, -3.0]]]))
    arms = rows._marked(np.arange(5) < 3, np.arange(5) > 0)  # to pull and to choose from
    with _may_refuse():
        problem = as_problem(arms, sigma=0.1, delta=1e-6, budget=budget)
        run, log = step(make(arms, theta), problem, theta, seed=0)
        pulls = np.sum([batch.counts for batch, _ in log], axis=0)
        ensure(not pulls[~arms.measurable].any(), "arms are pulled that cannot be")
        able = np.where(arms.candidate, arms.means(theta), -np.inf)
        winner = run.verdict.winner
        ensure(winner == able.argmax(), f"arm {winner} wins and not the best candidate")


def limited_pulls_or_a_refusal(make: Make, budget: int | None = None) -> None:
    """No arm is pulled more often than allowed, or `start` refuses."""
    arms, most = Arms.unstructured(3), 2 if budget is None else budget // 3
    with _may_refuse():
        problem = as_problem(arms, sigma=1.0, max_pulls_per_arm=most, budget=budget)
        run, rewards = make(arms, THETA).start(problem), rewards_of(problem, np.zeros(3), 0)
        pulls = np.zeros(3, dtype=np.int64)
        while not run.verdict.decided:
            try:
                batch = run.next(2)
            except FinalistError:  # nothing is left to pull
                break
            pulls += batch.counts
            ensure(pulls.max() <= most, f"pulls are {pulls.tolist()} when {most} can be made each")
            if batch.size == 0:
                break
            run.record(batch, rewards.batch(batch.counts))


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(one, other)


def _written(batch: Batch) -> str:
    try:
        return json.dumps([batch.counts.tolist(), dict(batch.note)])
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the note of a batch cannot be written as JSON: {error}") from error


def _playable(run: Run) -> Playable:
    if not isinstance(run, Playable):
        raise NotApplicable("it has no compiled loop")
    return run


def _refuse(call: Any, *values: Any, what: str) -> None:
    ensure_refused(lambda: call(*values), what)


@contextmanager
def _may_refuse() -> Iterator[None]:
    try:
        yield
    except NotYetSupportedError:
        return
