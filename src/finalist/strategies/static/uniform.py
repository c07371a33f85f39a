"""Uniform allocation, for comparison: every arm in turn, whatever its features.

Arms with identical features are one arm and have one turn. The stopping rule is that of `static`,
which holds for all n at once, so it may be checked as rarely as one likes: after every round, and
when there are many rounds each time the pulls have grown by 2 %. This costs 1 % of the pulls, and
a run of millions of pulls takes a few hundred batches, with any number of arms.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from finalist.design import Rounded
from finalist.inference.bounds import Bound
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.about import check_choice
from finalist.strategies.protocol import Batch, Declared, Run, Verdict
from finalist.strategies.static.static import STATIC_SUPPORTED, StaticRun

#: A batch is this part of the pulls so far, and at least a round.
GROWTH = 0.02


@dataclass(frozen=True)
class Uniform(Declared):
    """The strategy with its settings.

    Parameters
    ----------
    bound : "sharp" or "soare"
        Constants of the confidence radius: the tightest valid ones, or as printed.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # features have no influence
    >>> Uniform().start(fl.Problem(arms, noise=fl.Gaussian(1.0))).next(size=6).counts
    array([2, 2, 2])
    """

    name: ClassVar[str] = "uniform"
    supports = STATIC_SUPPORTED
    bound: Bound = "sharp"

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, Bound)

    def start(self, problem: Problem, seed: int = 0) -> "UniformRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        problem.refuse_unsupported(self.name, self.supports)
        return UniformRun(problem, self.bound)


class UniformRun(Run):
    """Uniform allocation at work: rounds, with the rule checked after each."""

    def __init__(self, problem: Problem, bound: Bound) -> None:
        measurable = problem.arms.measurable
        K = self._K = int(measurable.sum())
        # Equal weights, rounded, are a round robin: among equals the first arm is pulled.
        self._static = StaticRun(problem, bound, lambda: Rounded(measurable / K))

    @property
    def verdict(self) -> Verdict:
        """What is certain now; no arm is ruled out before there is a winner."""
        return self._static.verdict

    def next(self, size: int | None = None) -> Batch:
        """Return the pulls up to the end of a round, or the next `size` pulls."""
        return self._static.next(self._own_size() if size is None else size)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over rewards and look whether the rule holds."""
        self._static.record(batch, rewards)

    def _own_size(self) -> int:
        done = self.verdict.pulls
        rounds = math.ceil((done + max(self._K, GROWTH * done)) / self._K)
        return rounds * self._K - done
