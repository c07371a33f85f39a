"""What the procedures with an indifference zone share: their promise, what they refuse, stages.

Epsilon, which the problem must have, is the smallest lead that matters. What is promised: if the
best arm leads every other by epsilon or more, the winner is the best with probability at least
1 - delta (Bechhofer 1954). That is weaker than an arm within epsilon of the best whatever the
means are, which other strategies promise: of smaller leads nothing is proven. Every arm stands
alone: arms are compared by their own means, and features have no influence.

A stage is a number of pulls of each arm. It is looked at once, when it is complete: pulls that are
made in parts, or lost, leave the rule as it is.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from finalist.design.rounding import MAX_PULLS
from finalist.errors import NotYetSupportedError, ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import Feature, Problem
from finalist.shapes import Float, Int
from finalist.strategies.phased.phase import share
from finalist.strategies.protocol import (
    Batch,
    Declared,
    Promise,
    Run,
    Verdict,
    check_next,
    check_record,
)

#: What all of them take.
ZONE_SUPPORTED: frozenset[Feature] = frozenset({"minimise", "epsilon-best"})
#: Why a procedure refuses what its proof does not cover.
REASONS: Mapping[Feature, str] = {
    "unknown sigma": "Its proof needs sigma; 'rinott' and 'kn' estimate it.",
    "sigma per arm": "Its proof needs the same sigma for all candidates; 'rinott' and 'kn' do not.",
    "sub-gaussian": "Its proof needs normal noise.",
    "bernoulli": "Its proof needs normal noise.",
    "other candidates": "It compares candidates by their own means, so each must be "
    "measured and can "
    "win.",
    "top-m": "It selects one arm.",
    "cost": "It does not weigh costs.",
    "batch intercept": "Its proof has no constant for each batch.",
    "misspecification": "It uses no features, so no model can be wrong: leave this out.",
    "limited pulls": "Its rule says how often a candidate is measured.",
    "link": "It compares means as they are.",
}


@dataclass(frozen=True)
class ZoneStrategy(Declared):
    """A procedure with an indifference zone, but for its rule.

    If the best arm leads every other by epsilon or more, the winner is the best with probability at
    least 1 - delta.
    """

    promise: ClassVar[Promise] = "zone"
    reasons: ClassVar[Mapping[Feature, str]] = REASONS
    supports = ZONE_SUPPORTED

    def start(self, problem: Problem, seed: int = 0) -> "ZoneRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        try:
            problem.refuse_unsupported(self.name, self.supports)
        except NotYetSupportedError as error:
            missing = sorted(problem.needs - self.supports)
            why = " ".join(dict.fromkeys(self.reasons[word] for word in missing))
            raise NotYetSupportedError(f"{error} {why}") from None
        if not problem.epsilon > 0:
            raise ProblemError(
                f"{self.name} needs an indifference zone: give epsilon= (--epsilon on the command "
                "line), the smallest lead that matters, or use the strategy "
                "'gauntlet', which needs none."
            )
        return self.run(problem)

    @abstractmethod
    def run(self, problem: Problem) -> "ZoneRun":
        """Return a run for a problem that is supported."""


class ZoneRun(Run):
    """A procedure at work: the arms that are left, and what is missing of the open stage.

    Parameters
    ----------
    first : int
        Pulls of each arm in the first stage.
    """

    def __init__(self, problem: Problem, first: int) -> None:
        K = len(problem.arms)
        self._problem, self._rewards, self._pulls = problem, Statistics.empty(K), 0
        self._winner: int | None = None
        self._keep(np.arange(K))
        self._open: Int[np.ndarray, " K"] = np.full(K, first, dtype=np.int64)

    @property
    def verdict(self) -> Verdict:
        """Who is left after the stages that are complete."""
        return Verdict(self._winner, self._survivors, self._pulls)

    def next(self, size: int | None = None) -> Batch:
        """Return what is missing of the stage, or `size` of it."""
        check_next(self.verdict, size)
        if size is None or size >= self._open.sum():
            return Batch(self._open.copy())
        return Batch(share(self._open, size))

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over rewards, and decide when the stage is complete."""
        check_record(self.verdict, len(self._open), batch, rewards)
        if (batch.counts > self._open).any():
            arm = int(np.argmax(batch.counts - self._open))
            raise ProblemError(
                f"candidate {arm} has {batch.counts[arm]} measurements, and "
                f"{self._open[arm]} are missing; "
                "record the measurements that `next` asks for."
            )
        self._take(batch, rewards)
        self._rewards.merge(rewards)
        self._open -= batch.counts
        self._pulls += batch.size
        if not self._open.any():
            self._conclude()

    def _take(self, batch: Batch, rewards: Statistics) -> None:
        """Look at the rewards of a batch; refuse them before anything changes."""

    @abstractmethod
    def _conclude(self) -> None:
        """Decide after a complete stage, or open the next one."""

    def _behind(self) -> Float[np.ndarray, " m"]:
        """Return how far the mean of each arm that is left is behind the largest."""
        sign, mean, carry = self._problem.sign, self._rewards.mean, self._rewards.carry
        mean, carry = sign * mean[self._alive], sign * carry[self._alive]
        top = int(mean.argmax())
        return np.asarray((mean[top] - mean) + (carry[top] - carry))

    def _keep(self, alive: Int[np.ndarray, " m"]) -> None:
        """Go on with these arms; the last one wins."""
        self._alive = alive
        self._survivors: tuple[int, ...] = tuple(alive.tolist())
        if len(alive) == 1:
            self._winner = self._survivors[0]

    def _round(self) -> None:
        """Ask for one pull of each arm that is left."""
        self._open[self._alive] = 1


def smallest(error: Callable[[float], float], delta: float) -> float:
    """Return the smallest h >= 0 with error(h) <= delta; the error falls to 0.

    Examples
    --------
    >>> round(smallest(lambda h: 1.0 / (1.0 + h), 0.1), 9), smallest(lambda h: 0.5 - h, 0.6)
    (9.0, 0.0)
    """
    from scipy.optimize import brentq

    if error(0.0) <= delta:
        return 0.0
    high = 1.0
    while error(high) > delta:
        high *= 2.0
    return float(brentq(lambda h: error(h) - delta, 0.0, high, xtol=1e-12, rtol=1e-12))


def sizes(h: float, sigmas: Float[np.ndarray, " K"], epsilon: float) -> Int[np.ndarray, " K"]:
    """Return ceil((h sigma / epsilon)^2) for each sigma; refuse more pulls than can be counted.

    Examples
    --------
    >>> sizes(3.0552, np.array([1.0, 2.0]), 0.5)
    array([ 38, 150])
    """
    exact = np.ceil((h * (sigmas / epsilon)) ** 2)
    if not (exact < MAX_PULLS / len(sigmas)).all():
        raise ProblemError(
            f"{float(exact.max()):.3g} measurements of one candidate would be needed, too "
            f"many; give a larger "
            "epsilon."
        )
    return exact.astype(np.int64)


def check_first(n0: object) -> None:
    """Reject the pulls of each arm in a first stage unless they tell a variance."""
    if isinstance(n0, bool) or not isinstance(n0, int) or not 2 <= n0 < math.inf:
        raise ProblemError(
            f"n0 is {n0!r}; it must be the measurements of each candidate in the first "
            f"stage, 2 or more."
        )
