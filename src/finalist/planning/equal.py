"""The gauntlet's own test with equal shares: what choosing where to measure saves.

Rivals, bets, looks, checks and the sizes of epochs are those of the gauntlet; only the counts of
epochs are others: every arm that can be measured, in turn. The first measurements, a pilot of about
as many as the rank, are those of the gauntlet, spread over the arms before anything is known.
`uniform` stops by a rule of its own: a comparison with it would say more of rules than of shares.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from finalist.inference.information import Information
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.gauntlet import Gauntlet, GauntletRun
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.planner import Planner, estimable, within
from finalist.strategies.gauntlet.reserve import Reserve
from finalist.strategies.gauntlet.targets import Comparisons


@dataclass(frozen=True)
class _InTurn(Planner):
    """Equal shares: only the counts of epochs are others."""

    def plan_epoch(
        self, past: Past, wanted: Comparisons, size: int, reserve: Reserve | None
    ) -> tuple[Int[np.ndarray, " K"], Information, Float[np.ndarray, "r r"]]:
        """Return counts that bring all arms to the same number of measurements."""
        targets, Z = self.targets(past, wanted), past.Z
        some = np.flatnonzero(past.arms.measurable)
        counts = np.zeros(len(Z), dtype=np.int64)
        counts[some] = _levelled(past.pooled.statistics.count[some], size)
        counts = within(counts, targets.room)
        start = None if reserve is None else reserve.worth
        if start is not None and targets.precisions is not None:
            start = start * targets.precisions
        words = Z, counts, targets.needed, targets.room, targets.precisions, start, True
        return *estimable(*words), np.asarray(Z.T @ Z / len(Z))


def _levelled(done: Int[np.ndarray, " n"], size: int) -> Int[np.ndarray, " n"]:
    """Return how to spread `size` more so that the smallest counts are as equal as they can be.

    Examples
    --------
    >>> _levelled(np.array([3, 0, 1]), 3)
    array([0, 2, 1])
    """
    ordered = np.sort(done)
    # To bring the n smallest to the next larger count takes so many.
    needed = np.arange(1, len(done) + 1) * np.append(ordered[1:], ordered[-1]) - np.cumsum(ordered)
    n = int(np.searchsorted(needed[:-1], size, side="right")) + 1
    level, rest = divmod(size + int(ordered[:n].sum()), n)
    more: Int[np.ndarray, " n"] = np.maximum(level - done, 0)
    lowest = np.flatnonzero(done <= level)
    more[lowest[:rest]] += 1
    return more


@dataclass(frozen=True)
class EqualShares(Gauntlet):
    """The gauntlet's test; every arm is measured equally often.

    Examples
    --------
    >>> import finalist as fl
    >>> run = EqualShares().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next().counts
    array([1, 1, 1])
    """

    name: ClassVar[str] = "equal shares"

    def start(self, problem: Problem, seed: int = 0) -> GauntletRun:
        """Begin with a problem."""
        run = super().start(problem, seed)
        run._course.planner = _InTurn(self.growth, seed)
        return run
