"""KN, the fully sequential procedure of Kim and Nelson: rounds, and arms that fall behind are out.

Kim and Nelson 2001, "A fully sequential procedure for indifference-zone selection in simulation",
with c = 1. A first stage pulls each of K arms n0 times. S_il^2 is the variance of the n0
differences of the rewards of arms i and l, paired by their order. After n pulls of each arm that
is left, arm i stays if mean_i >= mean_l - W_il(n) for every l that is left:

    W_il(n) = max(0, epsilon / (2 n) (h^2 S_il^2 / epsilon^2 - n)),
    h^2 = 2 eta (n0 - 1),  eta = ((2 delta / (K - 1))^(-2 / (n0 - 1)) - 1) / 2.

When all W_il are 0, the largest mean wins. A sum of differences with drift epsilon leaves this
triangle on the wrong side with probability at most delta / (K - 1) (Fabian 1974), and K - 1 rivals
make delta.

Where sigma is known there is no first stage: the differences have the variance
sigma_i^2 + sigma_l^2, and h^2 = 2 log((K - 1) / (2 delta)), the limit for large n0, because the
triangle is then left on the wrong side with probability exp(-h^2 / 2) / 2 at most.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float
from finalist.strategies.protocol import Batch
from finalist.strategies.ranking.zone import ZONE_SUPPORTED, ZoneRun, ZoneStrategy, check_first


@dataclass(frozen=True)
class KN(ZoneStrategy):
    """The strategy with its settings. The problem must have epsilon.

    `ZoneStrategy` says what is promised.

    Parameters
    ----------
    n0 : int
        Pulls of each arm in the first stage, 2 or more, where sigma is unknown; they are made round
        by round, one pull of each arm. A known sigma needs no first stage.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms.unstructured(3)
    >>> problem = fl.Problem(arms, noise=fl.Gaussian(1.0), goal=fl.EpsilonBest(0.5))
    >>> KN().start(problem).next().counts
    array([1, 1, 1])
    """

    name: ClassVar[str] = "kn"
    supports = ZONE_SUPPORTED | {"unknown sigma", "sigma per arm"}
    n0: int = 10

    def __post_init__(self) -> None:
        check_first(self.n0)

    def run(self, problem: Problem) -> "KNRun":
        """Return a run for a problem that is supported."""
        return KNRun(problem, self.n0)


class KNRun(ZoneRun):
    """The procedure at work: rounds, and the pairs that are left."""

    def __init__(self, problem: Problem, n0: int) -> None:
        super().__init__(problem, 1)
        sigma, K = problem.noise.sigma, len(problem.arms)
        self._n, self._n0 = 0, n0 if sigma is None else 1
        self._h2 = kn_constant(K, problem.delta, n0 if sigma is None else None)
        self._first = np.zeros((n0 if sigma is None else 0, K))  # the rewards of the first stage
        #: The variances of differences, all the same or of each pair that is left.
        self._spread: float | Float[np.ndarray, "m m"] = math.nan
        if isinstance(sigma, float):
            self._spread = 2.0 * sigma**2
        elif sigma is not None:
            self._spread = np.add.outer(problem.sigmas**2, problem.sigmas**2)

    def _take(self, batch: Batch, rewards: Statistics) -> None:
        if self._n < len(self._first):
            pulled = batch.counts > 0  # once each: this is a part of a round
            self._first[self._n, pulled] = rewards.mean[pulled]

    def _conclude(self) -> None:
        self._n += 1
        if self._n == len(self._first):
            self._spread = paired_variances(self._first)
        if self._n >= self._n0:
            self._compare()
        if self._winner is None:
            self._round()

    def _compare(self) -> None:
        """Drop the arms that are behind another one by more than W."""
        behind, epsilon = self._behind(), self._problem.epsilon
        W = np.maximum(self._h2 * self._spread / (2.0 * epsilon * self._n) - epsilon / 2.0, 0.0)
        if not W.any():
            self._keep(self._alive[[behind.argmin()]])
            return
        if W.ndim == 0:
            out = behind > W
        else:
            out = (behind[:, None] - behind > W).any(axis=1)
        if out.any():
            if W.ndim:
                self._spread = np.asarray(self._spread)[np.ix_(~out, ~out)]
            self._keep(self._alive[~out])


def kn_constant(K: int, delta: float, n0: int | None = None) -> float:
    """Return h^2 for a first stage of n0 pulls of each arm, or for variances that are known.

    Examples
    --------
    >>> round(kn_constant(10, 0.05, 10), 4), round(kn_constant(10, 0.05), 4)
    (15.4635, 8.9996)
    """
    log = math.log(max(K - 1, 1) / (2.0 * delta))
    if log <= 0.0:  # a guess is right often enough
        return 0.0
    return 2.0 * log if n0 is None else (n0 - 1) * math.expm1(2.0 * log / (n0 - 1))


def paired_variances(rewards: Float[np.ndarray, "n K"]) -> Float[np.ndarray, "K K"]:
    """Return the variance of the differences of each two columns.

    Examples
    --------
    >>> paired_variances(np.array([[1.0, 0.0], [2.0, 4.0], [6.0, 5.0]]))
    array([[0., 3.],
           [3., 0.]])
    """
    centred = rewards - rewards.mean(axis=0)
    gram = centred.T @ centred
    own = np.diag(gram)
    return np.asarray(np.maximum(own[:, None] + own - 2.0 * gram, 0.0) / (len(rewards) - 1))
