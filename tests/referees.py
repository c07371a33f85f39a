"""Slow, independent answers to what the design solvers are asked.

Nothing here imports finalist. Optima come from cvxpy with Clarabel in a semidefinite form, and
no status is trusted: the returned weights are evaluated with plain NumPy, and a lower bound is
computed from the dual variables with a formula that holds whatever the dual variables are.

Throughout, Lambda = sum_i lam_i x_i x_i', and a criterion is "g", "d", "xy", "v" or an array
of directions (M, d).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog

cp: Any = import_module("cvxpy")  # its annotations hide most of its functions from mypy

Matrix = Float[np.ndarray, "K d"]
Directions = Float[np.ndarray, "M d"]
Vector = Float[np.ndarray, " K"]

#: A direction lies in a row space when its residual is below this part of its norm.
SPAN_TOLERANCE = 1e-6
#: Values this close, relatively, are a tie of the greedy rule.
TIE = 1e-9


@dataclass(frozen=True)
class Optimum:
    """A design with its value, evaluated anew, and a bound below every design's value."""

    weights: Vector
    value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """How far above the optimum the design can be, relatively."""
        return 0.0 if self.value == 0.0 else self.value / self.lower_bound - 1.0


# ---- values ------------------------------------------------------------------------------


def whiten(features: Matrix, weights: Vector, directions: Directions) -> Float[np.ndarray, "M s"]:
    """Map directions so that y' Lambda^+ y is a squared norm.

    A direction outside the row space of the weighted arms becomes a row of infinities.
    """
    scale = np.abs(features).max(axis=0)
    scale[scale == 0.0] = 1.0
    used = weights > 0.0
    root = np.sqrt(weights[used])[:, None] * (features[used] / scale)
    _, s, Vt = np.linalg.svd(np.linalg.qr(root, mode="r"))
    rank = int(np.sum(s > s[0] * max(root.shape) * np.finfo(float).eps))
    Y = directions / scale
    inside = Y @ Vt[:rank].T
    left = np.linalg.norm(Y - inside @ Vt[:rank], axis=1)
    white = inside / s[:rank]
    white[left > SPAN_TOLERANCE * np.linalg.norm(Y, axis=1)] = np.inf
    return np.asarray(white)


def variances(features: Matrix, weights: Vector, directions: Directions) -> Vector:
    """Return y' Lambda^+ y for each direction, infinity where it cannot be estimated."""
    return np.asarray(np.sum(whiten(features, weights, directions) ** 2, axis=1))


def value(features: Matrix, weights: Vector, directions: Directions) -> float:
    """Return the largest y' Lambda^+ y over the directions."""
    return float(variances(features, weights, directions).max(initial=0.0))


def criterion_value(features: Matrix, weights: Vector, criterion: str | Directions) -> float:
    """Return the value of a design under any criterion, forming all pairs for "xy"."""
    if isinstance(criterion, str) and criterion == "v":
        return float(variances(features, weights, features).mean())
    return value(features, weights, directions_of(features, criterion))


def directions_of(features: Matrix, criterion: str | Directions) -> Directions:
    """List the directions over which a criterion takes the maximum."""
    if not isinstance(criterion, str):
        return criterion
    return all_pairs(features) if criterion == "xy" else features


def all_pairs(features: Matrix) -> Directions:
    """All differences x_i - x_j with i < j."""
    if len(features) > 300:
        raise ValueError(f"{len(features)} arms have too many pairs; use xy_value")
    i, j = np.triu_indices(len(features), 1)
    return np.asarray(features[i] - features[j])


def farthest_pair(features: Matrix, weights: Vector) -> tuple[int, int, float]:
    """The first pair (i, j), i < j, with the largest variance, by looking at every pair."""
    i, j = np.triu_indices(len(features), 1)
    V = variances(features, weights, all_pairs(features))
    best = int(np.argmax(V))
    return int(i[best]), int(j[best]), float(V[best])


def xy_value(features: Matrix, weights: Vector, block: int = 2048) -> float:
    """Return the XY value by looking at every pair, in blocks: for 10^4 arms and more."""
    P = whiten(features, weights, features)
    P = P - P.mean(axis=0)
    half = 0.5 * np.sum(P**2, axis=1)
    best, pair = -np.inf, (0, 0)
    for a in range(0, len(P), block):
        for b in range(a, len(P), block):
            near = P[a : a + block] @ P[b : b + block].T
            near -= half[a : a + block, None]
            near -= half[None, b : b + block]
            at = int(near.argmin())
            if -near.flat[at] > best:
                best = float(-near.flat[at])
                pair = a + at // near.shape[1], b + at % near.shape[1]
    i, j = pair
    return value(features, weights, features[[i]] - features[[j]])


# ---- optima ------------------------------------------------------------------------------


def optimum(features: Matrix, criterion: str | Directions) -> Optimum:
    """Return the optimum of a criterion ("xy" for up to 300 arms)."""
    if isinstance(criterion, str) and criterion in ("g", "d"):
        return g_optimum(features)
    if isinstance(criterion, str) and criterion == "v":
        return v_optimum(features)
    return directions_optimum(features, directions_of(features, criterion))


def uniform_coordinates(features: Matrix, directions: Directions) -> tuple[Matrix, Directions]:
    """Coordinates in which the uniform design has Lambda = I; drops zero directions."""
    uniform = np.full(len(features), 1.0 / len(features))
    Y = whiten(features, uniform, directions)
    if not np.isfinite(Y).all():
        raise ValueError("a direction lies outside the span of the arms")
    return whiten(features, uniform, features), Y[np.linalg.norm(Y, axis=1) > 0.0]


def g_problem(Z: Matrix) -> tuple[Any, Callable[[], Vector]]:
    """Smallest ellipsoid {z : z'Wz <= 1} that holds all arms: the dual of G and D.

    It returns better designs than the primal log_det form.
    """
    r = Z.shape[1]
    a, b = np.triu_indices(r)
    lifted = np.where(a == b, 1.0, 2.0) * Z[:, a] * Z[:, b] / r
    W = cp.Variable((r, r), symmetric=True)
    inside = lifted @ W[a, b] <= 1.0
    problem = cp.Problem(cp.Maximize(cp.log_det(W)), [inside])
    return problem, lambda: normalised(inside.dual_value)


def g_optimum(features: Matrix, by_ellipsoid: bool = False) -> Optimum:
    """G-optimum (and D-optimum); the bound is the rank (Kiefer and Wolfowitz).

    log_det is flat at its maximum, so that weights from it are good to 1e-5 only. Up to 300
    arms the matrix inequalities with the arms as directions give the design instead.
    """
    Z, Y = uniform_coordinates(features, features)
    if by_ellipsoid or len(Z) > 300:
        problem, weights = g_problem(Z)
        solve(problem)
        lam = weights()
    else:
        stated = directions_problem(Z, Y)
        solve(stated.problem)
        lam = stated.weights()
    return Optimum(lam, value(features, lam, features), float(Z.shape[1]))


@dataclass(frozen=True)
class DirectionsProblem:
    """Minimise 1'nu subject to N = sum nu_i z_i z_i' >= y y' for every direction y.

    N is a variable of its own and all matrix inequalities are one batched constraint: with
    N written out in each of them, cvxpy compiles ten times longer.
    """

    problem: Any
    nu: Any
    inequalities: Any
    Z: Matrix
    Y: Directions

    def weights(self) -> Vector:
        """The design of the solution."""
        return normalised(self.nu.value)

    def lower_bound(self) -> float:
        """Bound below the optimum that holds for any dual variables V_y >= 0.

        N >= yy' gives y'V_y y <= tr(V_y N), and summed, sum_y y'V_y y <= 1'nu max_i z_i'Vz_i.
        """
        e, U = np.linalg.eigh(self.inequalities.dual_value)
        V = (U * np.maximum(e, 0.0)[:, None, :]) @ U.swapaxes(1, 2)
        reached = np.einsum("mi,mij,mj->", self.Y, V, self.Y)
        price = np.einsum("ki,ij,kj->k", self.Z, V.sum(axis=0), self.Z).max()
        return float(reached / price)


def directions_problem(Z: Matrix, Y: Directions) -> DirectionsProblem:
    """State the homogeneous semidefinite form for arms Z and directions Y that they span."""
    r = Z.shape[1]
    a, b = np.triu_indices(r)
    unit = Y / np.linalg.norm(Y, axis=1).max()
    nu = cp.Variable(len(Z), nonneg=True)
    N = cp.Variable((r, r), symmetric=True)
    above = cp.broadcast_to(N, (len(Y), r, r)) - unit[:, :, None] * unit[:, None, :] >> 0
    problem = cp.Problem(cp.Minimize(cp.sum(nu)), [N[a, b] == (Z[:, a] * Z[:, b]).T @ nu, above])
    return DirectionsProblem(problem, nu, above, Z, Y)


def directions_optimum(features: Matrix, directions: Directions) -> Optimum:
    """Optimum of the largest variance over given directions."""
    Z, Y = uniform_coordinates(features, directions)
    if len(Y) == 0:
        return Optimum(np.full(len(Z), 1.0 / len(Z)), 0.0, 0.0)
    stated = directions_problem(Z, Y)
    solve(stated.problem)
    weights = stated.weights()
    return Optimum(weights, value(features, weights, directions), stated.lower_bound())


def v_optimum(features: Matrix) -> Optimum:
    """Optimum of the mean variance over the arms.

    In coordinates where the uniform design is I the mean is tr(Lambda^-1). For any U,
    (tr U)^2 <= tr(Lambda^-1) tr(U'Lambda U), and the last trace is at most max_i |U'z_i|^2.
    The best U is Lambda^-1 of the optimum; the dual variable has it more accurately.
    """
    Z, _ = uniform_coordinates(features, features)
    r = Z.shape[1]
    a, b = np.triu_indices(r)
    lam, T = cp.Variable(len(Z), nonneg=True), cp.Variable((r, r), symmetric=True)
    Lambda = cp.Variable((r, r), symmetric=True)
    block = cp.bmat([[Lambda, np.eye(r)], [np.eye(r), T]]) >> 0
    tied = Lambda[a, b] == (Z[:, a] * Z[:, b]).T @ lam
    solve(cp.Problem(cp.Minimize(cp.trace(T)), [block, tied, cp.sum(lam) == 1.0]))
    weights = normalised(lam.value)
    U = block.dual_value[:r, r:]
    bound = np.trace(U) ** 2 / np.sum((Z @ U) ** 2, axis=1).max()
    return Optimum(weights, criterion_value(features, weights, "v"), float(bound))


def solve(problem: Any) -> None:
    """Solve tightly, or as well as Clarabel can; the caller evaluates what comes back."""
    for tolerance in (1e-9, 1e-8, 1e-6):
        options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                problem.solve(cp.CLARABEL, canon_backend=cp.SCIPY_CANON_BACKEND, **options)
            except cp.SolverError:
                continue
        return
    raise ArithmeticError("Clarabel failed at every tolerance")


def normalised(nu: Any) -> Vector:
    """Clip to nonnegative weights that sum to one."""
    clipped = np.maximum(np.ravel(nu), 0.0)
    return np.asarray(clipped / clipped.sum())


def lower_bound(
    features: Matrix, weights: Vector, directions: Directions, keep: int = 400
) -> float:
    """Bound below the optimum, proved from a design alone.

    For any m >= 0 and u_y with u_y'y = 1:  sum_y m_y / max_i sum_y m_y (x_i'u_y)^2. Here u_y
    comes from the design, and a linear program finds the best m over the `keep` worst directions.
    """
    Y = whiten(features, weights, directions)
    X = whiten(features, weights, features)
    V = np.sum(Y**2, axis=1)
    worst = np.argsort(-V)[: min(keep, int(np.sum(V > 0.0)))]
    C = (X @ Y[worst].T / V[worst]) ** 2 * V.max()
    found = linprog(-np.ones(len(worst)), A_ub=C, b_ub=np.ones(len(X)), method="highs")
    m = np.maximum(np.asarray(found.x, dtype=float), 0.0)
    return float(m.sum() / (C @ m).max() * V.max())


# ---- greedy ------------------------------------------------------------------------------


def greedy_step(features: Matrix, counts: Vector, directions: Directions) -> int:
    """Choose argmin_x max_y y'(A + xx')^-1 y, solving anew for every arm.

    Ties (relative tolerance 1e-9) go to the largest total reduction over the directions that
    have the largest variance now, then to the lowest index.
    """
    now = variances(features, counts, directions)
    worst = now >= now.max() * (1.0 - TIE)
    after = []
    for arm in range(len(features)):
        pulled = counts.astype(float)
        pulled[arm] += 1.0
        after.append(variances(features, pulled, directions))
    least = min(float(V.max()) for V in after)
    tied = [k for k, V in enumerate(after) if V.max() <= least * (1.0 + TIE)]
    total = {k: float(np.sum(now[worst] - after[k][worst])) for k in tied}
    most = max(total.values())
    return min(k for k in tied if total[k] >= most - TIE * abs(most))


def greedy_mean_step(features: Matrix, counts: Vector) -> int:
    """Choose argmin_x mean_y y'(A + xx')^-1 y over the arms y; ties go to the lowest index."""
    now, saved = variances(features, counts, features).mean(), []
    for arm in range(len(features)):
        pulled = counts.astype(float)
        pulled[arm] += 1.0
        saved.append(float(now - variances(features, pulled, features).mean()))
    return min(k for k, s in enumerate(saved) if s >= max(saved) * (1.0 - TIE))


# ---- closed forms ------------------------------------------------------------------------


@dataclass(frozen=True)
class ClosedForm:
    """Arms whose optimal values are known exactly."""

    name: str
    features: Matrix
    values: dict[str, float]


def closed_forms() -> list[ClosedForm]:
    """Soare 2014, appendix on G against XY, and the canonical basis."""
    known = []
    for eps in (0.5, 1e-2, 1e-4):
        spread = np.array([[1.0, eps / 2], [1.0, -eps / 2]])
        collinear = np.array([[1.0, 0.0], [1.0 - eps, 0.0]])
        known.append(ClosedForm(f"spread {eps}", spread, {"g": 2.0, "d": 2.0, "xy": 4.0}))
        known.append(ClosedForm(f"collinear {eps}", collinear, {"g": 1.0, "d": 1.0, "xy": eps**2}))
    for d in (1, 2, 5):
        basis = {"g": 1.0 * d, "d": 1.0 * d, "v": 1.0 * d, "xy": 2.0 * d if d > 1 else 0.0}
        known.append(ClosedForm(f"basis {d}", np.eye(d), basis))
    return known
