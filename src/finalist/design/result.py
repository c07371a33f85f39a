"""What a design solver returns."""

import math
from dataclasses import dataclass, field

import numpy as np

from finalist.shapes import Bool, Float, Int

SOLVED = "solved"
OUT_OF_TIME = (
    "stopped after max_seconds with the gap above tol; raise max_seconds or accept the gap"
)
STALLED = (
    "stopped where rounding errors allow no further progress with the gap above tol; "
    "raise tol, or check for arms that are almost collinear"
)


@dataclass(frozen=True)
class Design:
    """A probability vector over arms with a certificate of how good it is.

    Attributes
    ----------
    weights : (K,) array
        The design, read-only; sums to 1.
    value : float
        The criterion at `weights`, evaluated over all arms, pairs or directions.
    lower_bound : float
        No design has a smaller value than this.
    criterion : str
        `"g"`, `"d"`, `"xy"`, `"v"` or `"directions"`.
    status : str
        `"solved"`, or why the solver stopped early and what to do about it.
    iterations : int
        Newton steps taken.
    """

    weights: Float[np.ndarray, " K"] = field(repr=False)
    value: float
    lower_bound: float
    criterion: str
    status: str
    iterations: int

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False

    @property
    def gap(self) -> float:
        """The certificate: value <= (1 + gap) * optimum."""
        return relative_gap(self.value, self.lower_bound)

    @property
    def solved(self) -> bool:
        """Whether the gap reached the tolerance asked for."""
        return self.status == SOLVED

    @property
    def support(self) -> Int[np.ndarray, " p"]:
        """The arms with positive weight."""
        return np.flatnonzero(self.weights > 0)


def relative_gap(value: float, lower_bound: float) -> float:
    """Return value / lower_bound - 1, never negative; 0 when both are 0.

    Infinity unless both are finite: a certificate that is not a number certifies nothing.
    """
    if not (value < math.inf and lower_bound < math.inf):
        return math.inf
    if value <= lower_bound:
        return 0.0
    return value / lower_bound - 1.0 if lower_bound > 0.0 else math.inf


@dataclass(frozen=True)
class Solution:
    """What a solver hands to `optimal_design`, before the support is tidied up.

    `weights` belong to `arms` (indices); `lower_bound` holds for any design. `sparser` are arms
    and weights without the light arms, optimised again: a simpler design that may be as good.
    """

    arms: Int[np.ndarray, " p"]
    weights: Float[np.ndarray, " p"]
    lower_bound: float
    status: str
    iterations: int
    sparser: tuple[Int[np.ndarray, " q"], Float[np.ndarray, " q"]] | None = None


#: Up to so many arms people read a design; then a simpler one is worth solving again.
READABLE = 100


def heavy(weights: Float[np.ndarray, " p"], arms: int) -> Bool[np.ndarray, " p"] | None:
    """Tell which arms of a design are not light: at least a twentieth of the heaviest.

    None when no arm is light, when the light ones together carry more than 2 % and so matter, or
    when there are too many arms for anyone to care.
    """
    if arms > READABLE:
        return None
    keep = np.asarray(weights >= 0.05 * weights.max())
    light = float(weights[~keep].sum())
    return keep if 0.0 < light <= 0.02 * float(weights.sum()) else None
