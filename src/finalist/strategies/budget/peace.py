"""Peace for a fixed budget, with rho in place of the Gaussian width.

Katz-Samuels, Jain, Karnin and Jamieson 2020, "An empirical process approach to the union bound:
practical algorithms for combinatorial and linear bandits", the algorithm for a fixed budget. Its
phases have the same number of pulls. A phase pulls the design that minimises a complexity of the
arms that are left, ranks them by its rewards, and keeps the longest part of the ranking, from the
best arm on, whose complexity is at most half. All arms may be pulled, not only those left.

The paper's complexity is gamma, the expected square of the largest difference of a Gaussian
process. Here it is

    rho(S) = min over designs of the largest (x - x')' Lambda^-1 (x - x') over x, x' in S,

the quantity that the lower bounds are made of; gamma is between a constant times rho and rho times
the logarithm of the pairs. Unlike gamma it has a certified solver here.

The paper has ceil(log2 gamma) phases, which is enough when no two arms have gamma < 1. In general
a set of two or more arms has rho >= rho_2 = min ||z - z'||^2 / max ||z||^2 (for any design Lambda
is at most max ||z||^2 times the identity, in any coordinates), so that 1 + log2(rho / rho_2)
phases are enough, and one less than there are arms. The pulls that are left are shared by the
phases that may still come. Two arms are left at least while there are pulls left, and the last
phase takes them all.

The survivors of a phase are known when the next one begins, because it takes designs to find them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from finalist.arms import Arms
from finalist.design import Design, optimal_design
from finalist.problem import Problem
from finalist.shapes import Int
from finalist.strategies.budget.eliminations import BudgetStrategy, Stage, check_budget, rounded

#: How close to optimal rho is.
DESIGN_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Peace(BudgetStrategy):
    """The strategy; it has no settings. The problem must have a budget.

    A winner is a recommendation, without a guarantee.

    Examples
    --------
    >>> import finalist as fl
    >>> run = Peace().start(fl.Problem(fl.Arms.unstructured(4), budget=40, noise=fl.Gaussian(1.0)))
    >>> run.next().size, run.next().note["phases"]
    (13, 3)
    """

    name: ClassVar[str] = "peace"

    def rules(self, problem: Problem) -> "Halving":
        """Return the phases."""
        arms = problem.arms
        everyone = tuple(range(len(arms)))
        # rho of all arms is at most 4 max x'Lambda^-1 x, which is 4 r for the G-optimal design.
        phases = most_phases(arms, everyone, 4.0 * arms.rank)
        check_budget(problem, self.name, max(phases * arms.rank, 1))
        return Halving(arms, phases)


@dataclass(frozen=True, eq=False)
class Halving:
    """Phases that halve rho."""

    arms: Arms
    phases: int

    def kept(self, ranked: Sequence[int], phases: int) -> None:
        """Return None: that takes designs, so it is decided when the next phase begins."""

    def stage(self, ranked: Sequence[int], left: int, phases: int) -> Stage:
        """Return the next phase."""
        alive = tuple(ranked) if phases == self.phases else shortened(self.arms, ranked)
        alive, rho = tuple(sorted(alive)), _rho(self.arms, alive)
        phases = min(phases, most_phases(self.arms, alive, rho))
        return Stage(alive, left // phases, phases)

    def allocate(self, stage: Stage) -> Int[np.ndarray, " K"]:
        """Return the design for the differences of the survivors, rounded."""
        return rounded(self.arms, difference_design(self.arms, stage.survivors), stage.pulls)


def shortened(arms: Arms, ranked: Sequence[int]) -> Sequence[int]:
    """Return the longest part of a ranking whose rho is at most half, two arms at least."""
    half = 0.5 * (1.0 + DESIGN_TOLERANCE) * _rho(arms, ranked)  # exactly half is half
    low, high = 2, len(ranked)  # `low` is kept, `high` is too long
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _rho(arms, ranked[:middle]) <= half else (low, middle)
    return ranked[:low]


def _rho(arms: Arms, some: Sequence[int]) -> float:
    return difference_design(arms, tuple(sorted(some))).value


@lru_cache(maxsize=1024)
def difference_design(arms: Arms, survivors: tuple[int, ...]) -> Design:
    """Return the design that minimises the largest variance of differences of survivors."""
    return optimal_design(arms, "xy", DESIGN_TOLERANCE, among=np.array(survivors))


def most_phases(arms: Arms, survivors: tuple[int, ...], rho: float) -> int:
    """Return how many phases are enough to halve `rho` until one arm is left; at least 1."""
    if len(survivors) < 3:
        return 1
    from scipy.spatial import cKDTree

    Z = arms.coordinates
    some = Z[list(survivors)]
    nearest = np.asarray(cKDTree(some).query(some, k=2)[0])[:, 1].min()
    least = float(nearest) ** 2 / float(np.einsum("ij,ij->i", Z, Z).max())
    halvings = math.log2(max(rho / least, 1.0)) if least > 0.0 else math.inf
    return int(min(len(survivors) - 1, 1 + halvings))
