"""Rules for strategies with an indifference zone: epsilon is needed, and the best wins beyond it.

They promise only that the best arm wins with probability 1 - delta if it leads every other by
epsilon or more. The rules that other strategies keep without epsilon hold for them if epsilon is
the true lead, and errors are counted where they are most likely: with all other arms exactly
epsilon behind the best one (slippage). As in `rules_of_errors`, a strategy that keeps its promise
fails with a probability below `ALPHA`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.problem import EpsilonBest, Problem, as_problem
from finalist.strategies import Run, Strategy
from finalist.strategies.protocol import Promise
from finalist.testing.rules_of_errors import ensure_rare
from finalist.testing.runs import Make, ensure, ensure_out_stays_out, play


class Slippage(NamedTuple):
    """How many arms there are, how far the others are behind in units of sigma, and the runs."""

    arms: int
    epsilon: float
    runs: int
    delta: float = 0.05


#: Trials of errors by name.
SLIPPAGE: dict[str, Slippage] = {
    "two arms": Slippage(2, 0.5, 400),
    "five arms": Slippage(5, 0.5, 200),
    "many arms": Slippage(20, 1.0, 100),
}


@dataclass(frozen=True)
class Zoned:
    """A strategy that is given the true lead as epsilon if a problem has none."""

    promise: ClassVar[Promise] = "zone"
    strategy: Strategy
    means: tuple[float, ...]

    @property
    def name(self) -> str:
        """The name of the strategy."""
        return self.strategy.name

    def start(self, problem: Problem, seed: int = 0) -> Run:
        """Begin with a problem, with epsilon if it asks for the best arm."""
        if problem.epsilon > 0 or problem.top > 1:
            return self.strategy.start(problem, seed=seed)
        good = np.sort(problem.sign * np.array(self.means))
        lead = float(good[-1] - good[-2]) if len(good) > 1 else 1.0
        return self.strategy.start(problem.with_(goal=EpsilonBest(lead)), seed=seed)


def with_the_lead_as_epsilon(make: Make, check: Callable[[Make], None]) -> None:
    """Check a rule that has no epsilon of its own."""

    def zoned(arms: Arms, theta: np.ndarray) -> Strategy:
        made = Zoned(make(arms, theta), tuple(arms.means(theta).tolist()))
        return cast(Strategy, made)  # its name is that of the strategy, not of a class

    check(zoned)


def a_zone_is_needed(make: Make) -> None:
    """Without epsilon `start` refuses, and says what to give."""
    arms = Arms.unstructured(3)
    try:
        make(arms, np.arange(3.0)).start(as_problem(arms, sigma=1.0))
    except ProblemError as error:
        ensure("epsilon" in str(error), f"the refusal does not name epsilon: {error}")
    else:
        raise AssertionError("a problem without epsilon is not refused")


def who_is_out_stays_out(make: Make) -> None:
    """Survivors only become fewer, and the winner was always among them."""
    arms, theta = Arms.unstructured(6), np.array([0.5, 0.0, -0.5, -1.0, -2.0, -4.0])
    problem = as_problem(arms, sigma=1.0, epsilon=0.5)
    ensure_out_stays_out(make(arms, theta), problem, theta)


def the_best_wins_beyond_the_zone(make: Make, trial: str) -> None:
    """All others are exactly epsilon behind; the best one, another in each run, wins."""
    given = SLIPPAGE[trial]
    arms, wrong = Arms.unstructured(given.arms), 0
    problem = as_problem(arms, sigma=1.0, epsilon=given.epsilon, delta=given.delta)
    for run in range(given.runs):
        best = run % given.arms
        theta = given.epsilon * np.eye(given.arms)[best]
        verdict = play(make(arms, theta), problem, theta, run, own_seed=run).verdict
        wrong += verdict.winner != best
        ensure_rare(wrong, given.runs, given.delta, "it is wrong", made=run + 1)
