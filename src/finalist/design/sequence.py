"""A rounded design as a sequence: the pulls, one by one, whose first n are `round_design(n)`."""

import numpy as np
from jaxtyping import Float, Int

from finalist.design.result import Design
from finalist.design.rounding import check_weights
from finalist.errors import DesignError


class Rounded:
    """A design spelled out pull by pull (Adams' apportionment is monotone in n).

    Parameters
    ----------
    design : Design or (K,) array
        A design, or weights that sum to 1.

    Examples
    --------
    >>> Rounded(np.array([0.5, 0.25, 0.25])).extend(7)
    array([0, 1, 2, 0, 0, 1, 2])
    """

    def __init__(self, design: Design | Float[np.ndarray, " K"]) -> None:
        weights = check_weights(design.weights if isinstance(design, Design) else design)
        self._support = np.flatnonzero(weights > 0)
        self._lam = weights[self._support] / weights[self._support].sum()
        self._counts = np.zeros(len(self._lam), dtype=np.int64)
        self._priority = np.zeros(len(self._lam))
        self._order = np.arange(len(self._lam))

    def extend(self, pulls: int) -> Int[np.ndarray, " n"]:
        """Return the next `pulls` arms (0 or more) in order."""
        from finalist.design.kernels import sequence as kernels

        if pulls < 0:
            raise DesignError(f"pulls is {pulls}; it must be at least 0.")
        picks = np.empty(pulls, dtype=np.int64)
        kernels.run(self._lam, self._counts, self._priority, self._order, picks)
        return np.asarray(self._support[picks])
