"""Small allocations: whole pulls chosen one by one instead of a design that is rounded.

A design has up to r (r + 1) / 2 arms, and a batch of a few times r pulls has no whole number of
pulls for each of them. The criterion here is tr(M A^-1) = sum_j m_j y_j'A^-1 y_j for directions
y_j with weights m_j, which a pull of z lowers by z'A^-1 M A^-1 z / (1 + z'A^-1 z). Pulls are
exchanged while that helps (Fedorov 1972; Mitchell 1974), or put in an order such that all
first parts of the sequence are good.
"""

import numpy as np
from jaxtyping import Float, Int

from finalist.compiled.arrays import read_only

#: The ridge that keeps A regular in these searches, as a part of its mean eigenvalue.
RIDGE = 1e-5
#: An exchange that lowers the criterion by less than this part is not worth the time.
SMALLEST = 1e-6


def exchange(
    Z: Float[np.ndarray, "K r"],
    counts: Int[np.ndarray, " K"],
    M: Float[np.ndarray, "r r"],
    start: Float[np.ndarray, "r r"] | None = None,
    room: Int[np.ndarray, " K"] | None = None,
) -> Int[np.ndarray, " K"]:
    """Return counts of the same sum with a smaller tr(M (start + A)^-1).

    Parameters
    ----------
    Z : (K, r) array
        Arms.
    counts : (K,) array of int
        Where to begin.
    M : (r, r) array
        Positive semidefinite.
    start : (r, r) array, optional
        What is known beside these pulls.
    room : (K,) array of int, optional
        The most pulls of each arm.

    Examples
    --------
    >>> exchange(np.eye(2), np.array([3, 1]), np.eye(2))
    array([2, 2])
    """
    import finalist.design.kernels.exchange as kernels

    found = counts.copy()
    free = np.full(len(Z), int(counts.sum())) if room is None else room - counts
    P = _inverse(Z, counts, start)
    kernels.improve(
        read_only(Z), found, free.astype(np.int64), P, read_only(M), int(counts.sum()), SMALLEST
    )
    return found


def ordered(
    Z: Float[np.ndarray, "K r"],
    counts: Int[np.ndarray, " K"],
    M: Float[np.ndarray, "r r"],
    start: Float[np.ndarray, "r r"] | None = None,
) -> Int[np.ndarray, " n"]:
    """Return the pulls of an allocation in an order whose first parts have a small tr(M A^-1).

    Examples
    --------
    >>> ordered(np.eye(2), np.array([2, 2]), np.eye(2))
    array([0, 1, 0, 1])
    """
    arms = counts.nonzero()[0]
    own = _gram(Z, counts, None)
    least = _ridged(own if start is None else own + start) - own  # the ridge, and what was before
    P = np.diag(1.0 / least.diagonal()) if start is None else np.linalg.inv(least)
    found = _descended(Z[arms], counts[arms], P, M, int(counts.sum()))
    return np.asarray(arms[found])


def greedy_pulls(
    Z: Float[np.ndarray, "K r"],
    pulls: int,
    M: Float[np.ndarray, "r r"],
    start: Float[np.ndarray, "r r"],
    room: Int[np.ndarray, " K"],
) -> Int[np.ndarray, " n"]:
    """Return pulls that lower tr(M A^-1) most, one after the other; fewer if there is no room.

    Examples
    --------
    >>> greedy_pulls(np.eye(2), 2, np.diag([9.0, 1.0]), np.eye(2), np.array([5, 5]))
    array([0, 0])
    """
    return _descended(Z, room, np.linalg.inv(_ridged(start)), M, pulls)


def _descended(
    Z: Float[np.ndarray, "K r"],
    left: Int[np.ndarray, " K"],
    P: Float[np.ndarray, "r r"],
    M: Float[np.ndarray, "r r"],
    pulls: int,
) -> Int[np.ndarray, " n"]:
    import finalist.design.kernels.exchange as kernels

    order = np.empty(pulls, dtype=np.int64)
    found = kernels.descend(read_only(Z), left.astype(np.int64), P, read_only(M), order)
    return order[:found]


def _gram(
    Z: Float[np.ndarray, "K r"],
    counts: Int[np.ndarray, " K"],
    start: Float[np.ndarray, "r r"] | None,
) -> Float[np.ndarray, "r r"]:
    A = (Z * counts[:, None]).T @ Z
    return np.asarray(A if start is None else A + start)


def _ridged(A: Float[np.ndarray, "r r"]) -> Float[np.ndarray, "r r"]:
    size = float(A.trace()) / len(A) or 1.0  # where nothing is known, of nothing
    ridged = A.copy()
    ridged.flat[:: len(A) + 1] += RIDGE * size
    return ridged


def _inverse(
    Z: Float[np.ndarray, "K r"],
    counts: Int[np.ndarray, " K"],
    start: Float[np.ndarray, "r r"] | None,
) -> Float[np.ndarray, "r r"]:
    return np.asarray(np.linalg.inv(_ridged(_gram(Z, counts, start))))
