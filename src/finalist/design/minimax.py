"""XY-optimal designs and designs for a list of directions.

Homogeneous form: minimise 1'nu subject to h_y(nu) = 1 / (y'N^-1 y) >= 1 for every direction
y, with nu >= 0 and N = sum_i nu_i z_i z_i'. Every h_y is concave, since it is the minimum of
u'Nu over u'y = 1, and homogeneous of degree 1. Its derivatives, with f = y'N^-1 y,
a_i = z_i'N^-1 y and G_ij = z_i'N^-1 z_j:

    dh / dnu_i = (a_i / f)^2,    d2h / dnu_i dnu_j = -(2 / f^2) a_i a_j (G_ij - a_i a_j / f).

An active set of arms and one of directions are kept; the restricted problem is solved by a
primal-dual interior-point method; an oracle (`farthest.py`) adds the directions that are
estimated worst, and a scan the arms whose dual constraint is violated. With few directions
the optimal N is singular, where h_y is not smooth. The method therefore follows the central
path closely: the barrier parameter mu shrinks only when the point is near the path, and a
step changes no weight by more than a factor, on which scale every h_y is smooth.

Certificate, for multipliers m >= 0 and u_y = N^-1 y / f_y, so that u_y'y = 1: every feasible
nu has sum_i nu_i (u_y'z_i)^2 >= 1, hence 1'nu >= sum_y m_y / max_i sum_y m_y (u_y'z_i)^2.
That holds for any N: an inexact solution makes the bound weaker, never wrong.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from finalist.design.farthest import Directions
from finalist.design.linalg import PositiveSystem, design_matrix, inverse_root, largest, step_length
from finalist.design.result import OUT_OF_TIME, SOLVED, STALLED, Solution, heavy, relative_gap
from finalist.design.smooth import Smooth, column_generation
from finalist.inference.information import row_norms
from finalist.shapes import Float, Int

MAX_ROUNDS = 300
MAX_STEPS = 200
#: After so many rounds nothing is dropped any more, so that no exchange can go in circles.
DROP_ROUNDS = 12
#: A point is near the central path when the KKT residuals are below this multiple of mu.
NEAR = 1.0
#: What mu is multiplied by when it shrinks.
SHRINK = 0.1
#: A step multiplies no weight by more than 1 + GROWTH.
GROWTH = 10.0


@dataclass(frozen=True)
class Point:
    """Primal and dual variables of a restricted problem.

    `nu` are the weights of the arms, `s` the slacks of their dual constraints, `m` the
    multipliers of the directions, `w` the slacks of their constraints.
    """

    nu: Float[np.ndarray, " p"]
    s: Float[np.ndarray, " p"]
    m: Float[np.ndarray, " q"]
    w: Float[np.ndarray, " q"]

    @property
    def mu(self) -> float:
        """The barrier parameter that the point corresponds to."""
        return float(self.nu @ self.s + self.m @ self.w) / (len(self.nu) + len(self.m))


class Missed(NamedTuple):
    """By how much a point misses 1 - Jm - s = 0 and h - 1 - w = 0."""

    dual: Float[np.ndarray, " p"]
    primal: Float[np.ndarray, " q"]


@dataclass(frozen=True)
class Active:
    """A restricted problem: some of the arms, some of the directions, and where to start."""

    arms: Int[np.ndarray, " p"]
    Y: Float[np.ndarray, "q r"]
    start: Point


@dataclass(frozen=True)
class Iterate:
    """A point with the bounds it gives for the restricted problem."""

    point: Point
    root: Float[np.ndarray, "r r"]
    f: Float[np.ndarray, " q"]
    gap: float


def solve_minimax(
    Z: Float[np.ndarray, "K r"], directions: Directions, tol: float, deadline: float
) -> Solution:
    """Minimise the largest y'Lambda^-1 y over all designs to relative accuracy `tol`."""
    r = Z.shape[1]
    problem = starting_problem(Z, directions, deadline)
    anchors = problem.arms
    lower, iterations, gap, status = 0.0, 0, 1.0, STALLED
    best = (np.inf, problem, problem.start)
    for turn in range(MAX_ROUNDS):
        inner = max(0.2 * tol, min(1e-2, 1e-2 * gap))
        now, steps = restricted_solve(Z[problem.arms], problem, inner, deadline)
        iterations += steps
        m, nu = now.point.m, now.point.nu
        U = (problem.Y @ now.root.T @ now.root) * (np.sqrt(m) / now.f)[:, None]
        c = row_norms(Z, U)
        new_directions, top = directions.worst(now.root, float(now.f.max()), 5 * r)
        bound = float(m.sum() / c.max())
        lower = max(lower, bound) if bound < np.inf else lower
        value = float(nu.sum()) * top
        if value < best[0]:
            best = (value, problem, now.point)
        gap = relative_gap(best[0], lower)
        if gap <= tol:
            status = SOLVED
            break
        if time.monotonic() > deadline:
            status = OUT_OF_TIME
            break
        new_arms = np.flatnonzero(c > (1.0 + 0.1 * tol) * c[problem.arms].max())
        if inner <= 0.2 * tol and len(new_arms) == 0 and len(new_directions) == 0:
            break
        new_arms = new_arms[largest(c[new_arms], 2 * r)]
        keep = anchors if turn < DROP_ROUNDS else None
        problem = exchange(problem, now, keep, new_arms, new_directions, min(gap, 1.0))
    _, problem, point = best
    sparser = without_light_arms(Z, problem, point, lower, tol, deadline)
    weights = point.nu / point.nu.sum()
    return Solution(problem.arms, weights, lower, status, iterations, sparser)


def without_light_arms(
    Z: Float[np.ndarray, "K r"],
    problem: Active,
    point: Point,
    lower: float,
    tol: float,
    deadline: float,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Optimise again over the heavy arms alone; None unless that is as good."""
    keep = heavy(point.nu, len(Z))
    if keep is None:
        return None
    mu = 1e-3 * float(point.nu.sum()) / (keep.sum() + len(problem.Y))
    nu, m = point.nu[keep], np.maximum(point.m, mu)
    start = Point(nu, np.maximum(point.s[keep], mu / nu), m, np.maximum(point.w, mu / m))
    try:
        smaller = Active(problem.arms[keep], problem.Y, start)
        now, _ = restricted_solve(Z[smaller.arms], smaller, 0.1 * tol, deadline)
    except np.linalg.LinAlgError:
        return None
    weights = now.point.nu / now.point.nu.sum()
    good = now.point.nu.sum() * now.f.max() <= (1.0 + tol) * lower
    return (smaller.arms, weights) if good else None


def starting_problem(
    Z: Float[np.ndarray, "K r"], directions: Directions, deadline: float
) -> Active:
    """Start from a rough G-optimal design and the directions it estimates worst."""
    rough = column_generation(Z, Smooth(None), 0.1, deadline)
    keep = rough.weights > 1e-3 * rough.weights.max()
    arms, nu = rough.arms[keep], rough.weights[keep]
    root = inverse_root(design_matrix(Z[arms], nu))
    Y, top = directions.worst(root, 0.0, 10 * Z.shape[1])
    # Strictly inside the primal and the dual constraints.
    nu = nu * (1.3 * top)
    f = row_norms(Y, root) / (1.3 * top)
    c = np.square((Z[arms] @ root.T) @ (Y @ root.T).T / (1.3 * top * f)).sum(axis=1)
    m = np.full(len(Y), 0.7 / c.max())
    return Active(arms, Y, Point(nu, 1.0 - 0.7 * c / c.max(), m, 1.0 / f - 1.0))


def exchange(
    problem: Active,
    now: Iterate,
    anchors: Int[np.ndarray, " a"] | None,
    new_arms: Int[np.ndarray, " b"],
    new_directions: Float[np.ndarray, "c r"],
    gap: float,
) -> Active:
    """Drop arms and directions that clearly do not matter and add new ones.

    The anchors stay, so that N is regular; without any, everything does. Every product nu * s and
    m * w is raised to the size of the gap that the new members opened: a point near the central
    path.
    """
    old = now.point
    kept = (old.nu > 1e-6 * old.nu.max()) | (old.s < 1e-2)
    rows = (old.m > 1e-6 * old.m.max()) | (old.w < 1e-2)
    kept |= True if anchors is None else np.isin(problem.arms, anchors)
    rows |= anchors is None
    arms = np.concatenate([problem.arms[kept], new_arms])
    Y = np.concatenate([problem.Y[rows], new_directions])
    mu = 0.1 * gap * float(old.nu.sum()) / (len(arms) + len(Y))
    nu = np.concatenate([old.nu[kept], np.full(len(new_arms), 10.0 * mu)])
    m = np.concatenate([old.m[rows], np.full(len(new_directions), 10.0 * mu)])
    s = np.concatenate([old.s[kept], np.full(len(new_arms), 0.1)])
    w = np.concatenate([old.w[rows], np.full(len(new_directions), 0.1)])
    start = Point(nu, np.maximum(s, 0.5 * mu / nu), m, np.maximum(w, 0.5 * mu / m))
    return Active(arms, Y, start)


def restricted_solve(
    Z: Float[np.ndarray, "p r"], problem: Active, tol: float, deadline: float
) -> tuple[Iterate, int]:
    """Solve on the active arms and directions; returns the best iterate and the steps taken."""
    Y, point = problem.Y, problem.start
    mu = point.mu
    best: Iterate | None = None
    best_step = step = 0
    for step in range(MAX_STEPS):
        nu, s, m, w = point.nu, point.s, point.m, point.w
        try:
            root = inverse_root(design_matrix(Z, nu))
        except np.linalg.LinAlgError:
            break
        white, white_y = Z @ root.T, Y @ root.T
        f = np.einsum("ij,ij->i", white_y, white_y)
        A = white @ white_y.T
        h = 1.0 / f
        J = np.square(A * h)
        c = J @ m
        gap = relative_gap(float(nu.sum() * f.max()), float(m.sum() / c.max()))
        if best is None or gap < best.gap:
            best, best_step = Iterate(point, root, f, gap), step
        if gap <= tol or time.monotonic() > deadline or step - best_step > 25:
            break
        missed = Missed(1.0 - c - s, h - 1.0 - w)
        mu = shrink(mu, point, missed)
        # The Hessian of the Lagrangian, plus the constraints' part J diag(m / w) J'.
        H = (white @ white.T) * ((A * (2.0 * m * h**2)) @ A.T)
        H += (J * (m / w - 2.0 * m * f)) @ J.T
        H.flat[:: len(nu) + 1] += s / nu
        try:
            point = newton_step(PositiveSystem(H), J, missed, point, mu)
        except np.linalg.LinAlgError:
            break
    if best is None:
        raise np.linalg.LinAlgError("the arms that start the solver do not span")
    return best, step


def shrink(mu: float, point: Point, missed: Missed) -> float:
    """Lower the barrier parameter as far as the point is near the path for it."""
    residual = max(np.abs(point.nu * missed.dual).max(), np.abs(point.m * missed.primal).max())
    arms, rows = point.nu * point.s, point.m * point.w
    least, most = min(arms.min(), rows.min()), max(arms.max(), rows.max())
    while max(residual, most - mu, mu - least) <= NEAR * mu and mu > 1e-300:
        mu *= SHRINK
    return mu


def newton_step(
    newton: PositiveSystem, J: Float[np.ndarray, "p q"], missed: Missed, point: Point, mu: float
) -> Point:
    """Step toward 1 - Jm - s = 0, h - 1 - w = 0, nu s = mu, m w = mu.

    Everything but dnu is eliminated from Newton's equations.
    """
    dual, primal = missed
    nu, s, m, w = point.nu, point.s, point.m, point.w
    dnu = newton.solve(mu / nu - s - dual + J @ ((mu - m * (w + primal)) / w))
    dw = dnu @ J + primal
    dm = (mu - m * (w + dw)) / w
    ds = (mu - s * (nu + dnu)) / nu
    relative = dnu / nu
    fastest = max(float(relative.max()), -float(relative.min()), 1e-300)
    a = min(step_length(0.95, relative, dw / w), GROWTH / fastest)
    b = step_length(0.95, dm / m, ds / s)
    return Point(nu + a * dnu, s + b * ds, m + b * dm, w + a * dw)
