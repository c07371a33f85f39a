"""Rinott's two-stage procedure: a first stage tells the variances, a second one the means.

Rinott 1978, "On two-stage selection procedures and related probability-inequalities". Every arm is
pulled n0 times; S_i^2 is the variance of those rewards. Then arm i is pulled up to

    N_i = max(n0, ceil((h S_i / epsilon)^2))

times in all, and the largest mean of all its rewards wins. With nu = n0 - 1 and the density f of
chi-squared variables with nu degrees of freedom, h makes

    integral of (integral of Phi(h / sqrt(nu (1/x + 1/y))) f(x) dx)^(K-1) f(y) dy

equal to 1 - delta: given x and y, the error of a difference of two means is normal, with a standard
deviation of at most epsilon / h sqrt(nu (1/x + 1/y)); the power K - 1 is a lower bound for the
rivals together, which share y. Variances may differ between arms and need not be known; a sigma
that is given has no influence.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from finalist.errors import RewardError
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.protocol import Batch
from finalist.strategies.ranking.zone import (
    ZONE_SUPPORTED,
    ZoneRun,
    ZoneStrategy,
    check_first,
    sizes,
    smallest,
)

#: Points of the trapezoidal rule in log x, and the part of delta that is beyond its ends.
POINTS, BEYOND_ENDS = 240, 1e-9


@dataclass(frozen=True)
class Rinott(ZoneStrategy):
    """The strategy with its settings. The problem must have epsilon.

    `ZoneStrategy` says what is promised.

    Parameters
    ----------
    n0 : int
        Pulls of each arm in the first stage, 2 or more. With few of them h is large.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms.unstructured(3)
    >>> problem = fl.Problem(arms, noise=fl.Gaussian(None), goal=fl.EpsilonBest(0.5))
    >>> Rinott().start(problem).next().counts
    array([10, 10, 10])
    """

    name: ClassVar[str] = "rinott"
    supports = ZONE_SUPPORTED | {"unknown sigma", "sigma per arm"}
    n0: int = 10

    def __post_init__(self) -> None:
        check_first(self.n0)

    def run(self, problem: Problem) -> "RinottRun":
        """Return a run for a problem that is supported."""
        return RinottRun(problem, self.n0)


class RinottRun(ZoneRun):
    """The procedure at work: two stages."""

    def __init__(self, problem: Problem, n0: int) -> None:
        super().__init__(problem, n0)
        self._n0, self._first = n0, True

    def _take(self, batch: Batch, rewards: Statistics) -> None:  # noqa: ARG002
        if self._first and np.isnan(rewards.m2).any():
            raise RewardError(
                "the first stage tells the variances, and these rewards come without their "
                "scatter; give squares= too, or single rewards."
            )

    def _conclude(self) -> None:
        if self._first:
            self._first = False
            deviations = np.sqrt(self._rewards.m2 / (self._n0 - 1))
            h = rinott_constant(len(deviations), self._n0, self._problem.delta)
            needed = sizes(h, deviations, self._problem.epsilon)
            self._open[:] = np.maximum(needed - self._n0, 0)
        if not self._open.any():
            self._keep(self._alive[[self._behind().argmin()]])


@lru_cache(maxsize=256)
def rinott_constant(K: int, n0: int, delta: float) -> float:
    """Return h for K arms and a first stage of n0 pulls each.

    Examples
    --------
    >>> round(rinott_constant(10, 51, 0.025), 3)
    4.045
    """
    from scipy.special import ndtr
    from scipy.stats import chi2

    nu, end = n0 - 1, max(delta * BEYOND_ENDS / K, 1e-100)
    low, high = max(chi2.ppf(end, nu), 1e-250), chi2.isf(end, nu)
    logs, step = np.linspace(np.log(low), np.log(high), POINTS, retstep=True)
    x = np.exp(logs)
    density = step * x * chi2.pdf(x, nu)
    widths = np.sqrt(nu * (1.0 / x[:, None] + 1.0 / x))

    def error(h: float) -> float:  # 1 - the integral, without the loss of digits
        one = np.minimum(ndtr(-h / widths) @ density, 1.0)
        with np.errstate(divide="ignore"):
            return float(-np.expm1((K - 1) * np.log1p(-one)) @ density)

    return smallest(error, delta)
