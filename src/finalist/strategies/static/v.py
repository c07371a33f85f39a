"""V-allocation: estimate the arms well on average (named in Soare 2014, Sect. 7).

The pulls are fixed in advance so that the mean of x'A^-1 x over the arms is as small as possible;
`static` has the stopping rule, which holds for every sequence that is fixed in advance.
"""

from dataclasses import dataclass
from typing import ClassVar

from finalist.strategies.static.static import StaticAllocation, StaticCriterion


@dataclass(frozen=True)
class VAllocation(StaticAllocation):
    """The strategy with its settings.

    Parameters
    ----------
    bound : "sharp" or "soare"
        Constants of the confidence radius: the tightest valid ones, or as printed.
    allocation : "relaxed" or "greedy"
        The optimal design, rounded, or the paper's greedy rule with the mean for the largest.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[1.0, 0.0], [0.9, 0.0], [0.8, 0.0], [0.0, 1.0]])
    >>> VAllocation().start(fl.Problem(arms, noise=fl.Gaussian(1.0))).next(size=10).counts
    array([6, 0, 0, 4])
    """

    name: ClassVar[str] = "v"
    criterion: ClassVar[StaticCriterion] = "v"
