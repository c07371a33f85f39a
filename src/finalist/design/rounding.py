"""Efficient rounding: from a design to an allocation of n pulls.

Pukelsheim, "Optimal Design of Experiments", ch. 12; Soare 2014, appendix, whose text of the
procedure has misprints: the count that is raised is the one with the smallest n_i / lam_i,
the one that is lowered has the largest (n_i - 1) / lam_i, and the first sum may fall short
of n as well as exceed it.
"""

import heapq
import math
import operator
from typing import SupportsIndex

import numpy as np
from jaxtyping import Float, Int

from finalist.design.result import Design
from finalist.errors import DesignError
from finalist.text import counted

#: Floats count exactly up to here.
MAX_PULLS = 2**53


def round_design(
    design: Design | Float[np.ndarray, " K"], pulls: SupportsIndex
) -> Int[np.ndarray, " K"]:
    """Turn a design into whole numbers of pulls.

    The allocation sums to `pulls`, gives every arm of the support at least one pull, and
    grows by exactly one pull when `pulls` grows by one. With p support points its value is
    at most 1 / (1 - p/n) times that of the design.

    Parameters
    ----------
    design : Design or (K,) array
        A design, or weights that sum to 1.
    pulls : int
        The number of pulls n, at least the number of support points.

    Returns
    -------
    (K,) array of int
        How often to pull each arm.

    Raises
    ------
    DesignError
        If the weights are not a design, or `pulls` is smaller than the support.

    Examples
    --------
    >>> import numpy as np
    >>> round_design(np.array([0.5, 0.3, 0.2]), 7)
    array([3, 2, 2])
    """
    weights = check_weights(design.weights if isinstance(design, Design) else design)
    try:
        n = operator.index(pulls)
    except TypeError:
        raise DesignError(f"pulls is {pulls!r}; it must be a whole number.") from None
    if n > MAX_PULLS:
        raise DesignError(f"{n} pulls are too many to count exactly; the most is {MAX_PULLS}.")
    support = np.flatnonzero(weights > 0)
    if n < len(support):
        raise DesignError(
            f"{counted(n, 'pull')} cannot be spread over the {len(support)} arms of this design; "
            f"the smallest number of pulls is {len(support)}."
        )
    return rounded(weights, n)


def rounded(weights: Float[np.ndarray, " K"], pulls: int) -> Int[np.ndarray, " K"]:
    """Return what `round_design` does, for weights that are a design and enough pulls."""
    support = (weights > 0).nonzero()[0]
    counts = np.zeros(len(weights), dtype=np.int64)
    counts[support] = _apportion(weights[support] / weights[support].sum(), pulls)
    return counts


def _apportion(lam: Float[np.ndarray, " p"], n: int) -> Int[np.ndarray, " p"]:
    """Adams' apportionment, started close to the answer."""
    start = np.ceil(max(n - len(lam) / 2, 0.0) * lam)
    counts: list[int] = np.maximum(start, 1.0).astype(np.int64).tolist()
    shares, missing = lam.tolist(), n - sum(counts)
    if missing >= 0:
        # Raise the smallest n_i / lam_i; among equals the arm that comes first.
        heap = [
            (count / share, i) for i, (count, share) in enumerate(zip(counts, shares, strict=True))
        ]
        heapq.heapify(heap)
        for _ in range(missing):
            i = heap[0][1]
            counts[i] += 1
            heapq.heapreplace(heap, (counts[i] / shares[i], i))
        return np.array(counts, dtype=np.int64)
    # Lower the largest (n_i - 1) / lam_i; among equals the arm that comes last.
    heap = [(-(counts[i] - 1) / shares[i], -i) for i in range(len(shares))]
    heapq.heapify(heap)
    for _ in range(-missing):
        i = -heap[0][1]
        counts[i] -= 1
        heapq.heapreplace(heap, (-(counts[i] - 1) / shares[i], -i))
    return np.array(counts, dtype=np.int64)


def check_weights(
    weights: Float[np.ndarray, " K"], arms: int | None = None
) -> Float[np.ndarray, " K"]:
    """Return weights as floats after checking that they are a design (over `arms` arms)."""
    try:
        lam = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise DesignError(f"weights are {weights!r}; a design is an array of numbers.") from None
    if lam.ndim != 1 or (arms is not None and len(lam) != arms):
        wanted = f"({arms},)" if arms is not None else "(K,)"
        raise DesignError(f"weights have shape {lam.shape}; a design has one per arm: {wanted}.")
    bad = np.flatnonzero(~np.isfinite(lam) | (lam < 0))
    if len(bad):
        raise DesignError(
            f"the weight of arm {bad[0] + 1} is {lam[bad[0]]}; weights are finite and at least 0."
        )
    if not math.isclose(float(lam.sum()), 1.0, rel_tol=1e-6):
        raise DesignError(
            f"the weights sum to {lam.sum():.9g}; a design sums to 1. Divide by the sum first."
        )
    return lam


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
