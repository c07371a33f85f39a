"""Cones, sectors and ellipses in the plane (Soare 2014, Sect. 3 and Fig. 1).

The cone C(x) = {t : x is best under t} of an arm is the normal cone of the convex hull of the
arms at x, so only corners of the hull have one with an interior; its sides are normals of the
two edges that meet at x. The ellipse {t : (t - theta)' A (t - theta) <= radius^2} is where the
estimate from an allocation with design matrix A falls, in the directions that compare arms.
"""

import math
from dataclasses import dataclass

import numpy as np

from finalist.errors import ChartError
from finalist.inference.information import information
from finalist.shapes import Float, Int

_ELLIPSE_POINTS = 181


@dataclass(frozen=True)
class Cone:
    """The parameters under which an arm is best: angles from `start` to `end`, in radians.

    `start` is in (-pi, pi] and start < end <= start + 2 pi, counterclockwise.
    """

    arm: int
    start: float
    end: float


def hull_corners(X: Float[np.ndarray, "K 2"]) -> Int[np.ndarray, " m"]:
    """Return the corners of the convex hull, counterclockwise (Andrew's monotone chain)."""
    scaled = X / (np.abs(X).max() or 1.0)  # products must not overflow
    order = np.lexsort((scaled[:, 1], scaled[:, 0]))

    def chain(points: Int[np.ndarray, " K"]) -> list[int]:
        corners: list[int] = []
        for i in points:
            while len(corners) > 1 and not _left_turn(*scaled[[*corners[-2:], i]]):
                corners.pop()
            corners.append(int(i))
        return corners

    if len(X) < 3:
        return np.asarray(order, dtype=np.int64)
    return np.array(chain(order)[:-1] + chain(order[::-1])[:-1], dtype=np.int64)


def _left_turn(
    a: Float[np.ndarray, " 2"], b: Float[np.ndarray, " 2"], c: Float[np.ndarray, " 2"]
) -> bool:
    return bool((b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0]))


def cones(X: Float[np.ndarray, "K 2"]) -> list[Cone]:
    """Return the cones with an interior; together they cover the plane once.

    Examples
    --------
    >>> [cone.arm for cone in cones(np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]]))]
    [1, 2, 0]
    """
    corners = hull_corners(X)
    if len(corners) == 1:
        return [Cone(int(corners[0]), -math.pi, math.pi)]
    edges = np.roll(X[corners], -1, axis=0) - X[corners]
    # Counterclockwise, the outward normal of an edge is to its right.
    angles = np.arctan2(-edges[:, 0], edges[:, 1])
    starts = np.roll(angles, 1)
    spans = np.mod(angles - starts, 2 * math.pi)
    return [
        Cone(int(arm), float(start), float(start + span))
        for arm, start, span in zip(corners, starts, spans, strict=True)
    ]


def ellipse(
    X: Float[np.ndarray, "K 2"],
    counts: Int[np.ndarray, " K"],
    centre: Float[np.ndarray, " 2"],
    radius: float,
    start: Float[np.ndarray, "2 2"] | None = None,
) -> Float[np.ndarray, "n 2"]:
    """Return points t on the ellipse (t - centre)' A (t - centre) = radius^2, A of the counts.

    With a start A_0, the inverse of A is replaced by A^-1 + A^-1 A_0 A^-1 (`intervals.Ellipsoid`).
    """
    info = information(X, counts.astype(float))
    if info.rank < 2:
        raise ChartError("the arms of this design do not span the plane: there is no ellipse.")
    turn = np.linspace(0.0, 2 * math.pi, _ELLIPSE_POINTS)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    # A^-1 = R'R, so t - centre = radius R' u has A-norm radius for a unit vector u.
    root = info.inverse_root
    if start is not None:
        root = np.linalg.cholesky(np.eye(2) + root @ start @ root.T).T @ root
    return np.asarray(centre + radius * circle @ root)


def sector(cone: Cone, side: float) -> Float[np.ndarray, "n 2"]:
    """Return the polygon of a cone inside the square |t_1|, |t_2| <= side."""
    quarter = math.pi / 2
    first = math.floor((cone.start - quarter / 2) / quarter) + 1
    last = math.ceil((cone.end - quarter / 2) / quarter)
    inner = [quarter / 2 + quarter * k for k in range(first, last)]
    angles = np.array([cone.start, *inner, cone.end])
    rays = np.column_stack([np.cos(angles), np.sin(angles)])
    rays *= side / np.abs(rays).max(axis=1, keepdims=True)
    return np.vstack([np.zeros((1, 2)), rays])


@dataclass(frozen=True, eq=False)
class ConvexSet:
    """A convex set {t : normals t <= limits} of the plane, possibly unbounded."""

    normals: Float[np.ndarray, "m 2"]
    limits: Float[np.ndarray, " m"]

    def polygon(self, side: float) -> Float[np.ndarray, "n 2"]:
        """Return the corners of the part inside the square |t_1|, |t_2| <= side, in order."""
        corners = side * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
        for normal, limit in zip(self.normals, self.limits, strict=True):
            corners = _clip(corners, normal, float(limit))
        return corners

    def possible(self, X: Float[np.ndarray, "K 2"]) -> list[int]:
        """Return the arms that are best for some parameter inside the set."""
        far = 1e3 * float(np.abs(self.limits).max() or 1.0)
        inside = self.polygon(far)
        return [cone.arm for cone in cones(X) if _area(_intersect(inside, X, cone.arm)) > 0.0]

    def meets_border(self, X: Float[np.ndarray, "K 2"], a: int, b: int) -> bool:
        """Return whether the set meets C(a) and C(b) at once: a and b may both be best."""
        y = X[a] - X[b]
        for ray in (np.array([-y[1], y[0]]), np.array([y[1], -y[0]])):
            if (X[a] @ ray < (X @ ray) - 1e-12).any():
                continue  # a third arm is better on this side
            rates, low, high = self.normals @ ray, 0.0, math.inf
            for rate, limit in zip(rates, self.limits, strict=True):
                low = max(low, limit / rate) if rate < 0 else low
                high = min(high, limit / rate) if rate > 0 else high
            flat = rates == 0
            if low <= high and (self.limits[flat] >= 0).all():
                return True
        return False


def _intersect(
    polygon: Float[np.ndarray, "n 2"], X: Float[np.ndarray, "K 2"], arm: int
) -> Float[np.ndarray, "m 2"]:
    """Return the part of a polygon in the cone of an arm."""
    for other in range(len(X)):
        if other != arm:
            polygon = _clip(polygon, X[other] - X[arm], 0.0)
    return polygon


def _clip(
    polygon: Float[np.ndarray, "n 2"], normal: Float[np.ndarray, " 2"], limit: float
) -> Float[np.ndarray, "m 2"]:
    """Return the part of a convex polygon with normal't <= limit (Sutherland and Hodgman)."""
    excess = polygon @ normal - limit
    kept: list[np.ndarray] = []
    for i in range(len(polygon)):
        before, here = excess[i - 1], excess[i]
        if before * here < 0:
            kept.append(polygon[i - 1] + (polygon[i] - polygon[i - 1]) * before / (before - here))
        if here <= 0:
            kept.append(polygon[i])
    return np.array(kept).reshape(-1, 2)


def _area(polygon: Float[np.ndarray, "n 2"]) -> float:
    x, y = polygon.T
    return abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))) / 2
