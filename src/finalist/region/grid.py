"""Grids over a region: which cells it needs, their middles as arms, and names for them."""

import math

import numpy as np
from jaxtyping import Float, Int

from finalist.errors import ArmsError
from finalist.region.space import Space

#: The most points of a net.
MAX_POINTS = 200_000
#: In names coordinates are rounded, by at most this part of the width of the region.
EXACT = 1e-3
#: Coded coordinates that differ by less are the same.
SAME = 1e-9


def whole_grid(space: Space, per_axis: tuple[int, ...]) -> Int[np.ndarray, "M d"]:
    """Return the cells of a whole grid that the region needs."""
    check_size(math.prod(per_axis))
    axes = np.meshgrid(*(np.arange(m) for m in per_axis), indexing="ij")
    return needed(space, np.stack([axis.ravel() for axis in axes], axis=1), per_axis)


def needed(
    space: Space, cells: Int[np.ndarray, "M d"], per_axis: tuple[int, ...]
) -> Int[np.ndarray, "n d"]:
    """Return the cells of the grid to which a point of the region may belong that may be best.

    For a ball: those of the faces, to which the points of the sphere belong, and unless the basis
    is linear, so that some best point is on the sphere, also those that the ball reaches into.
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
    """Refuse nets that are too large."""
    if points > MAX_POINTS:
        raise ArmsError(
            f"the net would have {points:,} points, and {MAX_POINTS:,} are the most; use a "
            "smaller per_axis, or parts."
        )


def joined(
    space: Space, points: Float[np.ndarray, "N d"], measured: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, "M d"], Int[np.ndarray, " n"]]:
    """Return the points of the net with those to measure, and the rows of the latter."""
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
    """Name points by their coordinates, with as few digits as are exact enough, but four."""
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
