"""The information that pulls carry about directions.

For weights w_i (counts of an allocation, or a design) on arms with coordinates z_i, the
design matrix is A = sum_i w_i z_i z_i' (Soare 2014, Sect. 2). A direction y can be
estimated when it lies in the row space of the arms with positive weight, and then its
variance is sigma^2 y' A^+ y. The row space is taken from the arms, not from A: an arm
pulled once beside one pulled 10^11 times still counts.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgeqp3, dgeqrf, dorgqr

from finalist.arms.span import SPAN_TOLERANCE
from finalist.errors import EstimateError

#: Rows of length 1 are dependent when they are up to this much.
ROUNDING = 64 * np.finfo(float).eps
#: A triangular factor whose diagonal varies by less than this leaves no doubt about the rank.
CLEARLY_REGULAR = 1e-6
#: Rows a scan treats at once: the block and its product stay in the second-level cache.
SCAN_ROWS = 2048


def row_norms(Z: Float[np.ndarray, "K r"], R: Float[np.ndarray, "q r"]) -> Float[np.ndarray, " K"]:
    """Return ||R z_i||^2 for every row z_i, in blocks."""
    if len(R) > R.shape[1]:
        R = np.asarray(np.linalg.qr(R, mode="r"))
    out = np.empty(len(Z))
    for start in range(0, len(Z), SCAN_ROWS):
        image = Z[start : start + SCAN_ROWS] @ R.T
        np.einsum("ij,ij->i", image, image, out=out[start : start + SCAN_ROWS])
    return out


@dataclass(frozen=True)
class Information:
    """A factorised design matrix A = basis root' root basis'.

    Attributes
    ----------
    basis : (r, s) array
        Orthonormal basis of the row space of the weighted arms, s = their rank.
    root : (s, s) array
        Upper triangular factor of the design matrix in that basis.
    """

    basis: Float[np.ndarray, "r s"]
    root: Float[np.ndarray, "s s"]

    @classmethod
    def regular(
        cls, root: Float[np.ndarray, "r r"], inverse_root: Float[np.ndarray, "r r"]
    ) -> "Information":
        """Return that of weighted arms of full rank whose factor has been inverted already."""
        new = cls(_identity(len(root)), root)
        vars(new)["inverse_root"] = inverse_root
        return new

    @property
    def rank(self) -> int:
        """Dimension of the space in which directions can be estimated."""
        return len(self.root)

    @property
    def log_det(self) -> float:
        """Log of the determinant of A, within its row space."""
        return 2.0 * float(np.log(np.abs(np.diag(self.root))).sum())

    def spans(
        self, directions: Float[np.ndarray, "M r"], tolerance: float = SPAN_TOLERANCE
    ) -> Bool[np.ndarray, " M"]:
        """Tell which directions lie in the row space of the weighted arms."""
        if self.rank == directions.shape[1]:
            return np.ones(len(directions), dtype=bool)
        residual = directions - (directions @ self.basis) @ self.basis.T
        # einsum would square tiny numbers away: scale each direction to size 1 first.
        size = np.abs(directions).max(axis=1, initial=0.0)
        size = np.where(size == 0.0, 1.0, size)[:, None]
        first, second = residual / size, directions / size
        outside, length = (np.einsum("ij,ij->i", a, a) for a in (first, second))
        return np.asarray(np.sqrt(outside) <= tolerance * np.sqrt(length))

    @cached_property
    def inverse_root(self) -> Float[np.ndarray, "s r"]:
        """R with R'R = A^+: y'A^+ z is the inner product of Ry and Rz."""
        if self.rank == 0:
            return np.zeros((0, self.basis.shape[0]))
        # solve_triangular starts threads however small the matrix: milliseconds instead of 2 us.
        return np.asarray(dtrsm(1.0, self.root, self.basis.T, trans_a=1))

    def variances(
        self, directions: Float[np.ndarray, "M r"], tolerance: float = SPAN_TOLERANCE
    ) -> Float[np.ndarray, " M"]:
        """Return y'A^+ y for each direction, infinity where it cannot be estimated."""
        values = row_norms(directions, self.inverse_root)
        if self.rank == directions.shape[1]:
            return np.where(np.isnan(values), np.inf, values)
        return np.where(self.spans(directions, tolerance) & ~np.isnan(values), values, np.inf)

    def solve(self, vector: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
        """Return A^+ b for a vector b in the row space."""
        return np.asarray(self.inverse_root.T @ (self.inverse_root @ vector))


def information(
    coordinates: Float[np.ndarray, "K r"], weights: Float[np.ndarray, " K"]
) -> Information:
    """Factorise the design matrix of some weights.

    The factor comes from a QR decomposition of the weighted rows, never from A itself, so
    weights that differ by 10^12 cost half as many digits.

    Parameters
    ----------
    coordinates : (K, r) array
        Arms in span coordinates (`Arms.coordinates`).
    weights : (K,) array
        Nonnegative counts or design weights.

    Examples
    --------
    >>> import numpy as np
    >>> info = information(np.eye(3), np.array([4.0, 1.0, 0.0]))
    >>> info.rank
    2
    >>> info.variances(np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]))
    array([1.25,  inf])
    """
    support = (weights > 0).nonzero()[0]
    rows = coordinates[support]
    r = coordinates.shape[1]
    if rows.size == 0:
        return Information(np.zeros((r, 0)), np.zeros((0, 0)))
    roots = np.sqrt(weights[support])[:, None]
    if len(rows) >= r:
        root = _triangle(roots * rows)
        diagonal = np.abs(root.diagonal())
        if diagonal.min() > CLEARLY_REGULAR * diagonal.max():
            return Information(_identity(r), root)
    norms = np.sqrt(np.add.reduce(rows * rows, axis=1, keepdims=True))
    norms[norms == 0.0] = 1.0
    unit: np.ndarray = rows / norms
    # The row space from rows of length 1: pivoted QR of their transpose.
    if len(unit) > 4 * r:
        unit = np.asarray(np.linalg.qr(unit, mode="r"))
    packed, _, reflectors, _, _ = dgeqp3(unit.T)
    diagonal = np.abs(packed.diagonal())
    s = int(np.count_nonzero(diagonal > ROUNDING * diagonal[0])) if diagonal[0] > 0 else 0
    basis = _identity(r) if s == r else np.asarray(dorgqr(packed[:, :s], reflectors[:s])[0])
    root = _triangle(roots * (rows @ basis))
    if not np.isfinite(root).all():
        raise EstimateError(
            "the design matrix of these pulls is too large to be computed; give a larger sigma."
        )
    return Information(basis, root)


def _triangle(weighted: Float[np.ndarray, "p s"]) -> Float[np.ndarray, "q s"]:
    """Return R of the QR decomposition of some rows."""
    # Heavy rows first keep Householder QR accurate for rows of very different size.
    order = (-np.abs(weighted).max(axis=1, initial=0.0)).argsort(kind="stable")
    packed = dgeqrf(weighted[order])[0]
    s = weighted.shape[1]
    return np.asarray(packed[:s] * _upper(s)[: len(packed)])


@cache
def _identity(r: int) -> Float[np.ndarray, "r r"]:
    identity = np.eye(r)
    identity.flags.writeable = False
    return identity


@cache
def _upper(s: int) -> Float[np.ndarray, "s s"]:
    """Return ones on and above the diagonal (`np.triu` makes them anew each time)."""
    return np.triu(np.ones((s, s)))
