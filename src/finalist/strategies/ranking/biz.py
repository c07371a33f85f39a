"""BIZ, the Bayes-inspired procedure of Frazier: rounds, and a posterior over who is best.

Frazier 2014, "A fully sequential elimination procedure for indifference-zone ranking and selection
with tight bounds on probability of correct selection", Operations Research 62(4), for a common
known sigma. Let Y_x be the sum of the rewards of arm x after as many rounds as there were, A the
arms that are left, and

    q_x(A) = exp(epsilon Y_x / sigma^2) / sum over A of the same.

If all other arms are exactly epsilon behind the best one (slippage) and each is equally likely to
be the best, this is the probability that x is the best, given that the best is in A. The target P
begins at 1 - delta. After each round:

- if some q_x(A) >= P, this arm wins;
- otherwise, if some q_x(A) <= c = 1 - (1 - delta)^(1 / (K - 1)), the arm with the smallest is out,
  P becomes P / (1 - q_x(A)), and the arms that are left are looked at again.

Why it holds: let the best be in A. If a run that goes on after an elimination is right with
probability P / (1 - q), then one that is about to eliminate x is right with probability
(1 - q) P / (1 - q) = P; and one that stops, with q >= P. P stays at most 1, since at most K - 1
arms are out. Arms that fall out after the same round go one by one, with q made anew, as this
argument needs. Frazier shows that slippage is the worst case of a lead of epsilon or more. The
bound is tight but for what is beyond the limits when a round crosses them.

For an unknown sigma the paper has a heuristic without a proof: it is refused here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from finalist.problem import Feature, Problem
from finalist.strategies.ranking.zone import REASONS, ZoneRun, ZoneStrategy


@dataclass(frozen=True)
class BIZ(ZoneStrategy):
    """The strategy; it has no settings and needs one known sigma (`ZoneStrategy`).

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms.unstructured(3)
    >>> problem = fl.Problem(arms, noise=fl.Gaussian(1.0), goal=fl.EpsilonBest(0.5))
    >>> BIZ().start(problem).next().counts
    array([1, 1, 1])
    """

    name: ClassVar[str] = "biz"
    reasons: ClassVar[Mapping[Feature, str]] = {
        **REASONS,
        "unknown sigma": "With an estimated sigma it has no proof (Frazier 2014 has a heuristic); "
        "'rinott' and 'kn' have one.",
    }

    def run(self, problem: Problem) -> "BIZRun":
        """Return a run for a problem that is supported."""
        return BIZRun(problem)


class BIZRun(ZoneRun):
    """The procedure at work: rounds, and the target."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, 1)
        self._n, self._target = 0, 1.0 - problem.delta
        self._limit = biz_limit(len(problem.arms), problem.delta)
        self._rate = problem.epsilon / problem.sigma**2

    def _conclude(self) -> None:
        self._n += 1
        weights = np.exp(-self._rate * self._n * self._behind())
        left, total = self._alive, float(weights.sum())
        while True:
            if weights.max() >= self._target * total:
                self._keep(left[[weights.argmax()]])
                return
            last = int(weights.argmin())
            share = float(weights[last]) / total
            if share > self._limit:
                break
            self._target /= 1.0 - share
            left, weights = np.delete(left, last), np.delete(weights, last)
            total = float(weights.sum())
        if len(left) < len(self._alive):
            self._keep(left)
        if self._winner is None:
            self._round()


def biz_limit(K: int, delta: float) -> float:
    """Return c = 1 - (1 - delta)^(1 / (K - 1)): an arm with a smaller share is out.

    Examples
    --------
    >>> round(biz_limit(3, 0.19), 12)
    0.1
    """
    return -math.expm1(math.log1p(-delta) / max(K - 1, 1))
