"""G-allocation: estimate every arm equally well (Soare 2014, Sect. 4, eq:g.optimal.design).

The pulls are fixed in advance so that max x'A^-1 x over the arms is as small as possible;
`static` has the stopping rule.
"""

from dataclasses import dataclass
from typing import ClassVar

from finalist.strategies.static.static import StaticAllocation, StaticCriterion


@dataclass(frozen=True)
class GAllocation(StaticAllocation):
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
    >>> run = GAllocation().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next(size=6).counts
    array([2, 2, 2])
    """

    name: ClassVar[str] = "g"
    criterion: ClassVar[StaticCriterion] = "g"
