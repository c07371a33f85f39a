"""Directions that a design estimates worst: the oracles of the minimax solver.

The solver asks for directions y with a large y'N^-1 y = ||R y||^2. Over a list that is a
scan; over all pairs of arms it is a search for pairs of points R z that are far apart,
done in blocks without ever forming the K(K-1)/2 directions.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from finalist.design.linalg import largest
from finalist.inference.information import row_norms
from finalist.shapes import Float, Int

#: Points a block of the pair search holds; memory is O(K r + PAIR_BLOCK^2).
PAIR_BLOCK = 512
#: Directions less violated than this part of the worst one are not worth adding yet.
WORTH_ADDING = 0.8


@runtime_checkable
class Directions(Protocol):
    """A set of directions, known through the ones that are worst for a given N."""

    def worst(
        self, R: Float[np.ndarray, "q r"], floor: float, count: int
    ) -> tuple[Float[np.ndarray, "m r"], float]:
        """Return up to `count` directions with ||R y||^2 > floor, and the largest such value.

        The value is exact when it exceeds `floor`; otherwise it is `floor`, and no
        direction exceeds it. It is infinite, without directions, if some are not a number.
        """
        ...


@dataclass(frozen=True)
class DirectionList:
    """Directions given one by one, as rows in span coordinates."""

    rows: Float[np.ndarray, "M r"]

    def worst(
        self, R: Float[np.ndarray, "q r"], floor: float, count: int
    ) -> tuple[Float[np.ndarray, "m r"], float]:
        """See `Directions.worst`."""
        values = row_norms(self.rows, R)
        if np.isnan(values).any():
            return self.rows[:0], np.inf
        top = max(floor, float(values.max()))
        candidates = np.flatnonzero(values > max(floor, WORTH_ADDING * top))
        return self.rows[candidates[largest(values[candidates], count)]], top


@dataclass(frozen=True)
class AllPairs:
    """The differences of all pairs of arms."""

    Z: Float[np.ndarray, "K r"]

    def worst(
        self, R: Float[np.ndarray, "q r"], floor: float, count: int
    ) -> tuple[Float[np.ndarray, "m r"], float]:
        """See `Directions.worst`."""
        pairs, top = farthest_pairs(self.Z @ R.T, floor, count)
        return self.Z[pairs[:, 0]] - self.Z[pairs[:, 1]], top


def farthest_pairs(
    points: Float[np.ndarray, "K s"], floor: float, count: int
) -> tuple[Int[np.ndarray, "m 2"], float]:
    """Find pairs of points whose squared distance exceeds `floor`.

    Points are centred and sorted by norm, so that by the triangle inequality a pair of
    blocks whose largest norms add up to no more than the distance looked for is skipped,
    and so is everything after it.

    Parameters
    ----------
    floor : float
        Squared distance below which pairs do not matter.
    count : int
        At most this many pairs, each the farthest partner found for its first point.

    Returns
    -------
    pairs : (m, 2) array of indices
    top : float
        The largest squared distance if it exceeds `floor`, else `floor`; infinity if a point is
        not finite.

    Examples
    --------
    >>> farthest_pairs(np.array([[0.0], [1.0], [5.0], [-2.0]]), 0.0, 1)
    (array([[2, 3]]), 49.0)
    """
    centred = points - points.mean(axis=0)
    order = np.argsort(-np.einsum("ij,ij->i", centred, centred), kind="stable")
    P = centred[order]
    squares = np.einsum("ij,ij->i", P, P)
    if not np.isfinite(squares).all():
        return np.empty((0, 2), dtype=np.int64), np.inf
    norms = np.sqrt(squares)
    K = len(P)
    best = np.full(K, -1.0)
    partner = np.zeros(K, dtype=np.int64)
    top = floor
    for a in range(0, K, PAIR_BLOCK):
        if (2.0 * norms[a]) ** 2 <= max(floor, WORTH_ADDING * top):
            break
        rows = slice(a, min(K, a + PAIR_BLOCK))
        for b in range(a, K, PAIR_BLOCK):
            if (norms[a] + norms[b]) ** 2 <= max(floor, WORTH_ADDING * top):
                break
            columns = slice(b, min(K, b + PAIR_BLOCK))
            # ||p - q||^2 without its row term, which does not change the row's argmax.
            D = P[rows] @ (-2.0 * P[columns]).T
            D += squares[columns]
            j = D.argmax(axis=1)
            value = D[np.arange(len(D)), j] + squares[rows]
            better = value > best[rows]
            best[rows] = np.where(better, value, best[rows])
            partner[rows] = np.where(better, b + j, partner[rows])
            top = max(top, float(value.max()))
    candidates = np.flatnonzero(best > max(floor, WORTH_ADDING * top))
    candidates = candidates[largest(best[candidates], count)]
    pairs = np.stack([order[candidates], order[partner[candidates]]], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0), top
