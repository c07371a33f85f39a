"""XY-allocation: estimate every difference of two arms equally well (Soare 2014, Sect. 4).

The pulls are fixed in advance so that max y'A^-1 y over all differences y of arms is as small as
possible (eq:xy.optimal.design); `static` has the stopping rule.
"""

from dataclasses import dataclass
from typing import ClassVar

from finalist.strategies.static.static import StaticAllocation, StaticCriterion


@dataclass(frozen=True)
class XYAllocation(StaticAllocation):
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
    >>> run = XYAllocation().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next(size=6).counts
    array([2, 2, 2])
    """

    name: ClassVar[str] = "xy"
    criterion: ClassVar[StaticCriterion] = "xy"
