"""Bechhofer's single-stage procedure: as many pulls of every arm as the worst case needs.

Bechhofer 1954, "A single-sample multiple decision procedure for ranking means of normal populations
with known variances". Each of K arms is pulled n = ceil((h sigma / epsilon)^2) times, and the
largest mean wins. Among all means with a lead of epsilon or more, the best arm wins least often if
all others are exactly epsilon behind (slippage). There it wins if its error t / sqrt(n) and those
of the others leave it ahead:

    P = integral of Phi(t + h)^(K-1) phi(t) dt,  and h makes it 1 - delta.

The bound is attained. Nothing is looked at on the way, so easy problems cost as much as hard ones.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from finalist.problem import Problem
from finalist.strategies.ranking.zone import ZoneRun, ZoneStrategy, sizes, smallest

#: The trapezoidal rule on these t is exact to the last digits: the integrand is smooth and ends.
GRID, STEP = np.linspace(-40.0, 40.0, 1601, retstep=True)


@dataclass(frozen=True)
class Bechhofer(ZoneStrategy):
    """The strategy; it has no settings and needs one known sigma (`ZoneStrategy`).

    Examples
    --------
    A quarter of the lead takes sixteen times as many pulls.

    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0))
    >>> for lead in (1.0, 0.25):
    ...     zone = problem.with_(goal=fl.EpsilonBest(lead))
    ...     print(Bechhofer().start(zone).next().counts)
    [8 8 8]
    [118 118 118]
    """

    name: ClassVar[str] = "bechhofer"

    def run(self, problem: Problem) -> "BechhoferRun":
        """Return a run for a problem that is supported."""
        return BechhoferRun(problem)


class BechhoferRun(ZoneRun):
    """The procedure at work: one stage."""

    def __init__(self, problem: Problem) -> None:
        h = bechhofer_constant(len(problem.arms), problem.delta)
        n = sizes(h, problem.sigmas, problem.epsilon)[0]
        super().__init__(problem, max(int(n), 1))

    def _conclude(self) -> None:
        self._keep(self._alive[[self._behind().argmin()]])


@lru_cache(maxsize=256)
def bechhofer_constant(K: int, delta: float) -> float:
    """Return h, with which the best of K arms wins with probability 1 - delta at slippage.

    Examples
    --------
    >>> round(bechhofer_constant(2, 0.05), 4), round(bechhofer_constant(10, 0.05), 4)
    (2.3262, 3.4182)
    """
    from scipy.special import log_ndtr

    density = STEP * np.exp(-0.5 * GRID**2) / np.sqrt(2.0 * np.pi)

    def error(h: float) -> float:  # 1 - P, without the loss of digits
        return float(-np.expm1((K - 1) * log_ndtr(GRID + h)) @ density)

    return smallest(error, delta)
