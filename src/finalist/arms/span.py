"""The row space of the arms, in coordinates in which they are well scaled.

Columns are scaled by powers of two, exactly; the rank and an orthonormal basis come from the
singular values of the triangular factor of the rows. Features of size 1e-150 or 1e150,
collinear features and more features than arms then need no special care.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms.rows import blocks
from finalist.compiled.threads import on_one_thread
from finalist.errors import DirectionError, OutsideSpanError, ParameterError
from finalist.shapes import Float, Int
from finalist.text import show

#: A direction is in the span when its residual is below this part of its norm.
SPAN_TOLERANCE = 1e-6
#: Below this ratio of singular values rounding leaves Z'Z / K = I to 13 digits by itself.
WELL_CONDITIONED = 1e2
#: The power of two of a column of zeros: no entry of a direction is small beside it.
_ZERO_COLUMN = -4000


@dataclass(frozen=True)
class Span:
    """The row space of the arms: X = Z B with B = polish diag(scale) basis' 2^exponents.

    Attributes
    ----------
    exponents : (d,) array
        Powers of two that bring each column of X to size 1, exactly.
    basis : (d, r) array
        Orthonormal basis of the row space of the scaled arms.
    scale : (r,) array
        Root mean square of the scaled arms along each vector of the basis.
    polish : (r, r) array
        Upper triangular and close to I: what rounding left of Z'Z / K.
    inverse : (r, r) array
        The inverse of `polish`.
    """

    exponents: Int[np.ndarray, " d"]
    basis: Float[np.ndarray, "d r"]
    scale: Float[np.ndarray, " r"]
    polish: Float[np.ndarray, "r r"]
    inverse: Float[np.ndarray, "r r"]

    @cached_property
    def _polished(self) -> bool:
        return not np.array_equal(self.polish, np.eye(len(self.polish)))

    def embed(self, scaled: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n r"]:
        """Return the coordinates of vectors whose columns are scaled already."""
        if not self._polished:
            return np.asarray(scaled @ (self.basis / self.scale))
        # Two products: one combined map would round what polish repairs.
        return np.asarray(long_product(scaled, self.basis / self.scale) @ self.inverse)

    def coordinates(self, X: Float[np.ndarray, "K d"]) -> Float[np.ndarray, "K r"]:
        """Return Z, the coordinates of the arms."""
        Z = np.empty((len(X), len(self.scale)))
        for rows in blocks(X):
            Z[rows] = self.embed(scale_columns(X[rows], self.exponents))
        return Z

    def parameter(self, theta: Float[np.ndarray, " d"]) -> Float[np.ndarray, " r"]:
        """Return phi = B theta."""
        inside = self.basis.T @ np.ldexp(theta, self.exponents)
        return np.asarray(self.polish @ (self.scale * inside))

    def directions(self, Y: Float[np.ndarray, "M d"]) -> Float[np.ndarray, "M r"]:
        """Return w with Y = w B; refuse rows outside the span."""
        W = np.empty((len(Y), len(self.scale)))
        for rows in blocks(Y):
            unit, power = self._unit(Y[rows])
            outside = ~(self._residuals(unit) <= SPAN_TOLERANCE)
            if outside.any():
                i = rows.start + int(outside.argmax())
                raise OutsideSpanError(
                    f"direction {i + 1}, {shorten(Y[i])}, is outside the span of the arms: no "
                    "measurement of these arms can estimate it. Add an arm that has such a "
                    "component."
                )
            with np.errstate(over="ignore"):
                W[rows] = np.ldexp(self.embed(unit), power[:, None])
        if not np.isfinite(W).all():
            i = int(np.isfinite(W).all(axis=1).argmin())
            raise DirectionError(f"direction {i + 1} is too large beside the arms. Rescale it.")
        return W

    def _unit(
        self, Y: Float[np.ndarray, "n d"]
    ) -> tuple[Float[np.ndarray, "n d"], Int[np.ndarray, " n"]]:
        """Scale columns like the arms, then each row to size 1; return its power of two."""
        mantissa, exponent = np.frexp(Y)
        exponent = exponent - self.exponents
        power = np.where(mantissa == 0.0, 2 * _ZERO_COLUMN, exponent).max(axis=1)
        return np.ldexp(mantissa, exponent - power[:, None]), power

    def _residuals(self, unit: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """Return the part of each row's norm that is outside the span."""
        rest = unit - (unit @ self.basis) @ self.basis.T
        norms = np.linalg.norm(unit, axis=1)
        return np.asarray(np.linalg.norm(rest, axis=1) / np.where(norms == 0.0, 1.0, norms))


def scale_columns(
    X: Float[np.ndarray, "n d"], exponents: Int[np.ndarray, " d"]
) -> Float[np.ndarray, "n d"]:
    """Divide columns by powers of two, exactly; a column of zeros stays one."""
    if np.abs(exponents).max() < 1000:
        return np.asarray(X * np.ldexp(1.0, -exponents))  # much faster than ldexp of all X
    # What only arms have that cannot be pulled is outside the span.
    inside = np.where(exponents == _ZERO_COLUMN, 0.0, X)
    return np.asarray(np.ldexp(inside, -exponents))


def long_product(
    A: Float[np.ndarray, "n d"], B: Float[np.ndarray, "d r"]
) -> Float[np.ndarray, "n r"]:
    """Return A B computed in long doubles, where the machine has them.

    The terms of almost collinear features cancel, and this keeps their digits.
    """
    return np.asarray((A.astype(np.longdouble) @ B.astype(np.longdouble)).astype(float))


@on_one_thread(lambda X: X.size)
def factorise(X: Float[np.ndarray, "K d"]) -> Span:
    """Find the row space of the arms from the triangular factor of the scaled rows."""
    K, d = X.shape
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    exponents = np.where(largest == 0.0, _ZERO_COLUMN, np.frexp(largest)[1]).astype(np.int32)
    R = np.empty((0, d))
    for rows in blocks(X):  # tall-skinny QR: no copy of X
        R = np.asarray(np.linalg.qr(np.vstack([R, scale_columns(X[rows], exponents)]), mode="r"))
    s, Vt = _singular(R)
    # 64: a handful of arms may be collinear up to more than max(K, d) units of rounding.
    r = int(np.count_nonzero(s > max(K, d, 64) * np.finfo(float).eps * s[0]))
    peaks = Vt[np.arange(r), np.abs(Vt[:r]).argmax(axis=1)]
    basis = Vt[:r].T * np.where(peaks < 0.0, -1.0, 1.0)
    rough = Span(exponents, basis, s[:r] / np.sqrt(K), np.eye(r), np.eye(r))
    if r == 0 or s[0] <= WELL_CONDITIONED * s[r - 1]:
        return rough
    gram = np.zeros((r, r))
    for rows in blocks(X):
        Z = long_product(scale_columns(X[rows], exponents), basis / rough.scale)
        gram += Z.T @ Z / K
    polish = np.linalg.cholesky(gram).T
    return Span(exponents, basis, rough.scale, polish, np.linalg.inv(polish))


def _singular(
    R: Float[np.ndarray, "m d"],
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m d"]]:
    """Return singular values and right vectors; those of unstructured arms are known at once."""
    size = np.abs(np.diag(R))
    if R.shape[0] == R.shape[1] and np.count_nonzero(R) == np.count_nonzero(size):
        order = np.argsort(-size, kind="stable")
        return size[order], np.eye(len(R))[order]
    _, s, Vt = np.linalg.svd(R, full_matrices=False)
    return s, Vt


def shorten(vector: Float[np.ndarray, " d"]) -> str:
    """Return a vector as text that fits in a message."""
    return np.array2string(vector, precision=4, threshold=6, edgeitems=3)


def as_parameter(theta: ArrayLike, feature_names: tuple[str, ...]) -> Float[np.ndarray, " d"]:
    """Check a parameter given by the user, one finite number per feature."""
    array = _as_floats(theta, ParameterError, "theta")
    d = len(feature_names)
    if array.shape != (d,):
        raise ParameterError(f"theta has shape {array.shape}; these arms need ({d},).")
    if not np.isfinite(array).all():
        j = int(np.isfinite(array).argmin())
        raise ParameterError(
            f"theta is {array[j]} for feature {feature_names[j]!r} (number {j + 1}); it must be "
            "finite."
        )
    return array


def as_directions(directions: ArrayLike, d: int) -> Float[np.ndarray, "M d"]:
    """Check directions given by the user, one per row."""
    Y = _as_floats(directions, DirectionError, "directions")
    if Y.ndim != 2 or Y.shape[1] != d:
        raise DirectionError(
            f"directions has shape {Y.shape}; it must be (M, {d}), one direction per row."
        )
    finite = np.isfinite(Y).all(axis=1)
    if not finite.all():
        i = int(finite.argmin())
        raise DirectionError(f"direction {i + 1} is not finite: {shorten(Y[i])}.")
    return Y


def finite_rewards(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return expected rewards unless they overflow."""
    if not np.isfinite(values).all():
        raise ParameterError("theta gives rewards above 1e308 on these arms. Rescale the features.")
    return values


def _as_floats(values: ArrayLike, error: type[Exception], what: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise error(f"{what} must be an array of real numbers; got {show(values)}.")
    return array.astype(np.float64)
