"""A region of points and a basis of functions on it: the mean of a point is linear in the basis.

A box has a low and a high end for each coordinate; a ball is the unit ball. Coded coordinates
are those in which either fits into [-1, 1]^d; Lipschitz constants are in terms of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from finalist.errors import ArmsError
from finalist.shapes import Float, Int

#: (n, d) points -> (n, p) values of the basis functions.
BasisFunction = Callable[[Float[np.ndarray, "n d"]], Float[np.ndarray, "n p"]]
Basis = Literal["linear", "quadratic"] | BasisFunction

#: Points of a box are rounded to this many digits of its width: 0.15, not 0.15000000000000002.
DIGITS = 12
#: Largest number of points of a net.
MAX_POINTS = 200_000
#: Coordinates in names are rounded by at most this fraction of the width of the region.
EXACT = 1e-3
#: Coded coordinates that differ by less count as equal.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Space:
    """A region with a basis.

    Attributes
    ----------
    shape : "box" or "ball"
    low, high : (d,) arrays
    basis : "linear", "quadratic" or function
    names : tuple of str
        Of the d coordinates.
    lipschitz : (p,) array or None
        Of each basis function, in coded coordinates and the Euclidean norm; None if unknown. Not
        used for the polynomials.
    """

    shape: Literal["box", "ball"]
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    basis: Basis
    names: tuple[str, ...]
    lipschitz: Float[np.ndarray, " p"] | None = field(default=None, repr=False)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    @property
    def middle(self) -> Float[np.ndarray, " d"]:
        """The centre."""
        return np.asarray(0.5 * (self.low + self.high))

    @property
    def half(self) -> Float[np.ndarray, " d"]:
        """Half the width of each coordinate."""
        return np.asarray(0.5 * (self.high - self.low))

    @property
    def polynomial(self) -> bool:
        """Whether the basis is linear or quadratic."""
        return isinstance(self.basis, str)

    def decoded(self, coded: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Return the points with these coded coordinates, projected into the region.

        Projecting onto a convex set never increases the distance of two points.
        """
        if self.shape == "ball":
            norms = np.linalg.norm(coded, axis=1, keepdims=True)
            return np.asarray(coded / np.maximum(norms, 1.0)) + 0.0
        points = self.middle + self.half * coded
        for i, width in enumerate((self.high - self.low).tolist()):
            points[:, i] = np.round(points[:, i], DIGITS - math.ceil(math.log10(width)))
        points = np.where(coded <= -1.0, self.low, np.where(coded >= 1.0, self.high, points))
        return np.clip(points, self.low, self.high) + 0.0

    def features(self, points: ArrayLike) -> Float[np.ndarray, "n p"]:
        """Return the basis functions at points, a row for each."""
        X = self._checked(points)
        if not isinstance(self.basis, str):
            values = np.array(self.basis(X), dtype=float)
            if values.ndim != 2 or len(values) != len(X):
                raise ArmsError(
                    f"the basis gives an array of shape {values.shape} for {len(X)} points; it "
                    "takes (n, d) points and returns (n, p) values."
                )
            return values
        columns = [np.ones(len(X)), *(X[:, i] for i in range(self.d))]
        if self.basis == "quadratic":
            columns += [X[:, i] * X[:, j] for i, j in self.pairs]
        return np.column_stack(columns)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs i <= j of the quadratic terms, in their order."""
        return list(combinations_with_replacement(range(self.d), 2))

    def feature_names(self, p: int) -> tuple[str, ...]:
        """Name the basis functions."""
        if not self.polynomial:
            return tuple(f"f{j}" for j in range(1, p + 1))
        names = self.names
        squares = [f"{names[i]}^2" if i == j else f"{names[i]}*{names[j]}" for i, j in self.pairs]
        return ("constant", *names, *squares)[:p]

    def slopes(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d p"]:
        """Return the partial derivatives of the polynomials."""
        n, d = points.shape
        out = np.zeros((n, d, len(self.features(points[:1])[0])))
        out[:, range(d), range(1, d + 1)] = 1.0
        if self.basis == "quadratic":
            for k, (i, j) in enumerate(self.pairs, start=d + 1):
                out[:, i, k] += points[:, j]
                out[:, j, k] += points[:, i]
        return out

    def curvature(self) -> Float[np.ndarray, "d d p"]:
        """Return the second derivatives of the polynomials, which are constant."""
        p = len(self.features(self.middle[None])[0])
        out = np.zeros((self.d, self.d, p))
        if self.basis == "quadratic":
            for k, (i, j) in enumerate(self.pairs, start=self.d + 1):
                out[i, j, k] += 1.0
                out[j, i, k] += 1.0
        return out

    def _checked(self, points: ArrayLike) -> Float[np.ndarray, "n d"]:
        X = np.asarray(points, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.d:
            raise ArmsError(
                f"points has shape {X.shape}; it must be (n, {self.d}), one point per row."
            )
        return X


def box_space(
    low: ArrayLike, high: ArrayLike, basis: Basis, names: Sequence[str] | None, lipschitz: Any
) -> Space:
    """Return a box after checking its ends, names and basis."""
    ends = [_numbers("low", low), _numbers("high", high)]
    if len(ends[0]) != len(ends[1]):
        raise ArmsError(
            f"low has {len(ends[0])} numbers and high {len(ends[1])}; give one per coordinate."
        )
    for i, (a, b) in enumerate(zip(*ends, strict=True)):
        if not a < b:
            raise ArmsError(f"coordinate {i + 1} goes from {a:g} to {b:g}; low must be below high.")
    return _with_basis("box", ends[0], ends[1], basis, names, lipschitz)


def ball_space(d: int, basis: Basis, names: Sequence[str] | None, lipschitz: Any) -> Space:
    """Return the unit ball after checking d, names and basis."""
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 2:
        raise ArmsError(
            f"d is {d!r}; a ball has 2 or more coordinates. With one, use Region.box([-1], [1])."
        )
    return _with_basis("ball", -np.ones(d), np.ones(d), basis, names, lipschitz)


def _with_basis(
    shape: Literal["box", "ball"],
    low: Float[np.ndarray, " d"],
    high: Float[np.ndarray, " d"],
    basis: Basis,
    names: Sequence[str] | None,
    lipschitz: Any,
) -> Space:
    if not (basis in ("linear", "quadratic") or callable(basis)):
        raise ArmsError(f"basis is {basis!r}; it must be 'linear', 'quadratic' or a function.")
    d = len(low)
    given = tuple(f"x{i}" for i in range(1, d + 1)) if names is None else tuple(names)
    if len(given) != d or len(set(given)) != d or not all(map(_good_name, given)):
        raise ArmsError(
            f"names is {given!r}; give each of the {d} coordinates a different name, without "
            "commas and equals signs."
        )
    for end in (low, high):
        end.flags.writeable = False
    space = Space(shape, low, high, basis, given)
    p = len(space.features(space.middle[None])[0])
    if lipschitz is None:
        return space
    if space.polynomial:
        raise ArmsError("lipschitz is for a basis of your own; omit it for a polynomial.")
    L = np.array(np.broadcast_to(_numbers("lipschitz", lipschitz), p)) if _fits(lipschitz, p) else 0
    if isinstance(L, int) or (L < 0.0).any():
        raise ArmsError(
            f"lipschitz is {lipschitz!r}; give one number, 0 or more, for each of the {p} basis "
            "functions, or one for all."
        )
    return Space(shape, low, high, basis, given, L)


def _fits(values: Any, p: int) -> bool:
    return np.shape(values) in ((), (p,))


def _good_name(name: object) -> bool:
    return isinstance(name, str) and bool(name.strip()) and not set(name) & set(",=")


def _numbers(name: str, values: ArrayLike) -> Float[np.ndarray, " n"]:
    try:
        array = np.atleast_1d(np.array(values, dtype=float))
    except (TypeError, ValueError):
        array = np.array([math.nan])
    if array.ndim != 1 or len(array) == 0 or not np.isfinite(array).all():
        raise ArmsError(f"{name} is {values!r}; give a finite number for each coordinate.")
    return array


def whole_grid(space: Space, per_axis: tuple[int, ...]) -> Int[np.ndarray, "M d"]:
    """Return the cells of a full grid that the region needs."""
    check_size(math.prod(per_axis))
    axes = np.meshgrid(*(np.arange(m) for m in per_axis), indexing="ij")
    return needed(space, np.stack([axis.ravel() for axis in axes], axis=1), per_axis)


def needed(
    space: Space, cells: Int[np.ndarray, "M d"], per_axis: tuple[int, ...]
) -> Int[np.ndarray, "n d"]:
    """Return the cells of the grid that may hold a best point of the region.

    For a ball these are the cells on the faces, to which the points of the sphere belong. Unless
    the basis is linear, where some best point is on the sphere, add those that meet the ball.
    """
    last = np.array(per_axis) - 1
    cells = cells[((cells >= 0) & (cells <= last)).all(axis=1)]
    if space.shape == "box":
        return np.asarray(cells)
    face = ((cells == 0) | (cells == last)).any(axis=1)
    if space.basis == "linear":
        return np.asarray(cells[face])
    nearest = np.maximum(np.abs(2 * cells - last) / last - 1.0 / last, 0.0)
    return np.asarray(cells[face | (np.linalg.norm(nearest, axis=1) <= 1.0 + SAME)])


def check_size(points: int) -> None:
    """Refuse a net that is too large."""
    if points > MAX_POINTS:
        raise ArmsError(
            f"the net would have {points:,} points; at most {MAX_POINTS:,} are allowed. Use a "
            "smaller per_axis or parts."
        )


def joined(
    space: Space, points: Float[np.ndarray, "N d"], measured: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, "M d"], Int[np.ndarray, " n"]]:
    """Return the points of the net and those to measure together, and the rows of the latter."""
    rows: list[int] = []
    more: list[np.ndarray] = []
    for point in measured:
        far = np.abs((points - point) / space.half).max(axis=1)
        nearest = int(far.argmin())
        if far[nearest] > SAME:
            nearest = len(points) + len(more)
            more.append(point)
        rows.append(nearest)
    return np.vstack([points, *more]), np.array(rows)


def named(space: Space, points: Float[np.ndarray, "N d"]) -> tuple[str, ...]:
    """Name points by their coordinates, with four digits or as many as are needed."""
    texts: list[list[str]] = []
    for values, width in zip(points.T.tolist(), (2.0 * space.half).tolist(), strict=True):
        digits = 4
        while max(abs(float(f"{v:.{digits}g}") - v) for v in values) > EXACT * width:
            digits += 1
        texts.append([f"{v:.{digits}g}" for v in values])
    if len(set(zip(*texts, strict=True))) < len(points):
        texts = [[repr(v) for v in values] for values in points.T.tolist()]
    parts = [
        [f"{name}={text}" for text in column]
        for name, column in zip(space.names, texts, strict=True)
    ]
    return tuple(map(", ".join, zip(*parts, strict=True)))
