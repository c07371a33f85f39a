"""Compile every loop once, so that nobody waits for it later: when an image is built, for instance.

Small problems are run through everything that has a compiled loop: what is compiled depends on the
kinds of arguments, and not on their sizes. A test counts what is left to compile after it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.compiled.cache import COMPILED
from finalist.design.greedy import greedy_allocation
from finalist.problem import Problem, as_problem
from finalist.problem.rules import RULES
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import finish
from finalist.strategies import STRATEGIES, Gauntlet, Strategy, named, promise_of

#: What strategies with each promise need of a problem.
_WORDS: dict[str, dict[str, Any]] = {
    "confidence": {},
    "budget": {"budget": 24},
    "zone": {"epsilon": 0.3},
}
#: Settings with which the gauntlet takes other ways.
_WAYS: tuple[dict[str, Any], ...] = (
    {"sigma": None},
    {"noise": "sub-gaussian", "sigma": 0.6},
    {"sigma": 0.6, "top": 2},
    {"sigma": 0.6, "epsilon": 0.3},
    {"sigma": 0.6, "misspecification": 0.01},
    {"sigma": 0.6, "budget": 40},
    *({"sigma": 0.6, "rules": rules} for rules in RULES.values()),
)
_THETA = (1.0, 0.4, 0.2)
#: Pulls of a run at most, with and without a size of its batches.
_PULLS, _SIZES = 60, (None, 7, 1)


def warm_up(say: Callable[[str], None] = lambda _: None) -> list[str]:
    """Compile everything that is not compiled yet on this machine.

    Parameters
    ----------
    say : callable
        Told what is compiled now.

    Returns
    -------
    list of str
        The functions that were compiled, not those that were kept before.
    """
    before = len(COMPILED)
    for name, compile_ in _parts():
        say(name)
        compile_()
    return COMPILED[before:]


def _parts() -> Iterator[tuple[str, Callable[[], object]]]:
    arms = Arms.unstructured(3)
    for criterion in ("xy", "v"):
        yield f"greedy {criterion}", lambda c=criterion: greedy_allocation(arms, c, 9)
    for name, cls in STRATEGIES.items():
        problem = as_problem(arms, sigma=0.6, **_WORDS[promise_of(cls)])
        strategy = named(name, arms, np.array(_THETA))
        yield name, lambda s=strategy, p=problem: _run(s, p)
    for words in _WAYS:
        problem = as_problem(arms, **words)
        yield Gauntlet.name, lambda p=problem: _run(Gauntlet(), p)


def _run(strategy: Strategy, problem: Problem) -> None:
    means = problem.arms.means(_THETA)
    for size in _SIZES:
        rewards = DrawnRewards(means, 0.6, problem.noise.rewards, np.random.default_rng(1))
        finish(strategy.start(problem, seed=1), rewards, len(means), _PULLS, size)
