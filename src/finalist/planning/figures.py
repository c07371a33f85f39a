"""Quantiles that know of undecided draws, and numbers as people say them."""

import math

import numpy as np
from jaxtyping import Float


def quantile(values: Float[np.ndarray, " n"], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed.

    It is one of the values, so that infinite ones do no harm (`np.quantile` would subtract them).

    Examples
    --------
    >>> quantile(np.array([3.0, 1.0, 2.0, np.inf]), 0.5)
    2.0
    """
    rank = math.ceil(share * len(values) - 1e-9)
    return float(np.sort(values)[max(rank, 1) - 1])


class Quantiles:
    """Of draws: `pulls` has one number for each, infinite where it is undecided."""

    pulls: Float[np.ndarray, " draws"]

    def __post_init__(self) -> None:
        self.pulls.flags.writeable = False

    @property
    def median(self) -> float:
        """Half of the draws need at most so many; infinite if half are undecided."""
        return quantile(self.pulls, 0.5)

    @property
    def low(self) -> float:
        """The 5 % quantile."""
        return quantile(self.pulls, 0.05)

    @property
    def undecided(self) -> int:
        """Draws that were cut."""
        return int(np.isinf(self.pulls).sum())


def about(value: float, *, up: bool = False) -> str:
    """Return a number with two digits that count, rounded up where it is a promise.

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
    """Say how large a number of pulls is, of which only those up to the cap are known.

    Examples
    --------
    >>> expected(240.0, 1000), expected(math.inf, 1000)
    ('about 240', 'more than 1,000')
    """
    return f"about {about(value)}" if math.isfinite(value) else f"more than {cap:,}"
