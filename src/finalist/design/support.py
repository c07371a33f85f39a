"""Fewer support points: the same design matrix from at most r(r+1)/2 + 1 arms.

The design matrix is a convex combination of the matrices z_i z_i', which live in a space of
dimension r(r+1)/2, so by Caratheodory's theorem that many points plus one suffice
(Soare 2014, Remark 1 of the appendix). Fewer points round better: an allocation of n pulls
loses at most a factor 1 / (1 - p/n).
"""

import numpy as np
from scipy.linalg import qr

from finalist.shapes import Float

#: Null vectors are those of singular values below this part of the largest.
NULL_TOLERANCE = 1e-11


def reduce_support(
    coordinates: Float[np.ndarray, "K r"], weights: Float[np.ndarray, " K"]
) -> Float[np.ndarray, " K"]:
    """Return weights with the same sum and design matrix on at most r(r+1)/2 + 1 arms.

    Parameters
    ----------
    coordinates : (K, r) array
        Arms in span coordinates.
    weights : (K,) array
        Nonnegative weights.

    Returns
    -------
    (K,) array
        Weights whose support is a subset of the old one.

    Examples
    --------
    >>> import numpy as np
    >>> angles = np.arange(12) * np.pi / 6
    >>> clock = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> reduced = reduce_support(clock, np.full(12, 1 / 12))
    >>> int(np.count_nonzero(reduced)) <= 4
    True
    >>> (clock.T @ (reduced[:, None] * clock)).round(12)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    r = coordinates.shape[1]
    most = r * (r + 1) // 2 + 1
    reduced = np.array(weights, dtype=float)
    support = np.flatnonzero(reduced > 0)
    if len(support) <= most:
        return reduced
    kept = support[:0]
    # Chunks keep the null space small: its cost is cubic in the number of arms at hand.
    for start in range(0, len(support), most):
        kept = np.concatenate([kept, support[start : start + most]])
        reduced[kept] = _eliminate(_lift(coordinates[kept]), reduced[kept])
        kept = kept[reduced[kept] > 0]
    return reduced


def _lift(rows: Float[np.ndarray, "p r"]) -> Float[np.ndarray, "p D"]:
    """Return one row (z z', 1) per arm."""
    i, j = np.triu_indices(rows.shape[1])
    lifted = np.column_stack([rows[:, i] * rows[:, j], np.ones(len(rows))])
    return np.asarray(lifted)


def _eliminate(
    lifted: Float[np.ndarray, "p D"], weights: Float[np.ndarray, " p"]
) -> Float[np.ndarray, " p"]:
    """Move along null vectors of the lifted rows until none is left or a weight hits zero."""
    scale = np.linalg.norm(lifted, axis=1)
    rows = lifted / scale[:, None]
    mass = weights * scale
    Q, upper, _ = qr(rows, mode="full", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(upper))
    rank = int(np.count_nonzero(diagonal > NULL_TOLERANCE * diagonal[0]))
    null = Q[:, rank:]
    while null.shape[1] > 0:
        v = null[:, -1]
        v = v if v.max() >= -v.min() else -v
        rising = np.flatnonzero(v > 1e-12 * v.max())
        ratios = mass[rising] / v[rising]
        out = rising[np.argmin(ratios)]
        mass = np.maximum(mass - ratios.min() * v, 0.0)
        mass[out] = 0.0
        # Clear the row that left from the remaining null vectors, and drop the one used up.
        null = null[:, :-1] - np.outer(v, null[out, :-1] / v[out])
        null[out] = 0.0
        norms = np.linalg.norm(null, axis=0)
        null = null[:, norms > 1e-10] / norms[norms > 1e-10]
    return np.asarray(mass / scale)
