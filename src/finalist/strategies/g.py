"""G-allocation: estimate every arm equally well (Soare 2014, Sect. 4, eq:g.optimal.design).

The pulls are fixed in advance so that max x'A^-1 x over the arms is as small as possible;
`static` has the stopping rule.
"""

from dataclasses import dataclass
from typing import ClassVar

from finalist.bounds import Bound
from finalist.problem import Problem
from finalist.strategies.protocol import Allocation, check_choice
from finalist.strategies.static import StaticRun, static_run


@dataclass(frozen=True)
class GAllocation:
    """The strategy with its settings.

    Parameters
    ----------
    bound : "sharp" or "soare"
        Constants of the confidence radius: the tightest valid ones, or as printed.
    allocation : "relaxed" or "greedy"
        The optimal design, rounded, or the paper's greedy rule.

    Examples
    --------
    >>> import finalist as fl
    >>> run = GAllocation().start(fl.Problem(fl.Arms.unstructured(3)))
    >>> run.next(size=6).counts
    array([2, 2, 2])
    """

    name: ClassVar[str] = "g"
    bound: Bound = "sharp"
    allocation: Allocation = "relaxed"

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, Bound)
        check_choice("allocation", self.allocation, Allocation)

    def start(self, problem: Problem, seed: int = 0) -> StaticRun:  # noqa: ARG002
        """Begin with a problem; the seed has no influence, nothing is random."""
        return static_run(self.name, problem, self.bound, "g", self.allocation)
