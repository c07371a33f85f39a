"""Quantiles of simulated studies, and how their numbers are put into words."""

import math

import numpy as np

from finalist.shapes import Float


def quantile(values: Float[np.ndarray, " n"], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed.

    It is always one of the values, so infinite ones are harmless (`np.quantile` subtracts them).

    Examples
    --------
    >>> quantile(np.array([3.0, 1.0, 2.0, np.inf]), 0.5)
    2.0
    """
    rank = math.ceil(share * len(values) - 1e-9)
    return float(np.sort(values)[max(rank, 1) - 1])


def enough(values: Float[np.ndarray, " n"], share: float) -> float:
    """Return a number that is enough for this share of further studies.

    It is the k-th of the n values with k = ceil(share (n + 1)): the rank of a further value from
    the same distribution is uniform among n + 1, so it is at most the k-th with probability
    k / (n + 1). It is the largest value where n is too small for that.

    Examples
    --------
    >>> enough(np.arange(1.0, 21.0), 0.9), quantile(np.arange(1.0, 21.0), 0.9)
    (19.0, 18.0)
    """
    rank = math.ceil(share * (len(values) + 1) - 1e-9)
    return float(np.sort(values)[min(max(rank, 1), len(values)) - 1])


class Quantiles:
    """Quantiles of draws: `pulls` has one number per draw, infinite if it is undecided."""

    pulls: Float[np.ndarray, " draws"]

    def __post_init__(self) -> None:
        self.pulls.flags.writeable = False

    @property
    def median(self) -> float:
        """Half of the draws need at most this many; infinite if half are undecided."""
        return quantile(self.pulls, 0.5)

    @property
    def low(self) -> float:
        """The 5 % quantile."""
        return quantile(self.pulls, 0.05)

    @property
    def undecided(self) -> int:
        """Number of undecided draws."""
        return int(np.isinf(self.pulls).sum())


def about(value: float, *, up: bool = False) -> str:
    """Format a number with two significant digits, rounded up if it is a promise.

    Examples
    --------
    >>> about(1234.0), about(1234.0, up=True), about(87.0), about(math.inf)
    ('1,200', '1,300', '87', 'infinite')
    """
    if not math.isfinite(value):
        return "infinite"
    step = 10 ** max(math.floor(math.log10(max(value, 1.0))) - 1, 0)
    rounded = math.ceil(value / step) if up else round(value / step)
    return f"{rounded * step:,}"


def expected(value: float, cap: int) -> str:
    """Put a number of pulls into words; beyond the cap it is unknown.

    Examples
    --------
    >>> expected(240.0, 1000), expected(math.inf, 1000)
    ('about 240', 'more than 1,000')
    """
    return f"about {about(value)}" if math.isfinite(value) else f"more than {cap:,}"
