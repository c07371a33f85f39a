"""G-, D- and V-optimal designs: one smooth criterion, one interior-point method.

In homogeneous form (nu >= 0 instead of a probability vector, N = sum_i nu_i z_i z_i')

    D:  minimise 1'nu - logdet N           V:  minimise 1'nu + tr(N^-1 M),  M = mean of z z'.

Both have first derivatives 1 - c_i with c_i = ||R z_i||^2 and Hessian k G o C, where
G = Z N^-1 Z', C = Z R'R Z' and o is the elementwise product; for D, R'R = N^-1 and k = 1,
for V, R'R = N^-1 M N^-1 and k = 2. The D-optimal design is also G-optimal, with value r
(Kiefer and Wolfowitz 1960; Soare 2014, Prop. 3).

Only an active set of arms is kept in the Newton step. After each restricted solve a scan
over all arms finds those with c_i > 1, which join it.

Certificate, with t = sum_i nu_i c_i: any design has a value of at least r (D), or at least
t^2 / max_i c_i (V; Cauchy-Schwarz on tr(N^-1 M)), and max_i c_i 1'nu / t - 1 is the gap.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from finalist.design.linalg import (
    PositiveSystem,
    design_matrix,
    inverse_root,
    largest,
    spanning_arms,
    step_length,
)
from finalist.design.result import OUT_OF_TIME, SOLVED, STALLED, Solution, heavy, relative_gap
from finalist.inference.information import row_norms
from finalist.shapes import Float, Int

#: Restricted problems are solved to this part of the gap that the last scan left.
INNER_PRECISION = 0.01
MAX_ROUNDS = 200
#: After so many rounds nothing is dropped any more, so that no exchange can go in circles.
DROP_ROUNDS = 12
MAX_STEPS = 100


@dataclass(frozen=True)
class Smooth:
    """A smooth criterion: D when `moment` is None, V for M = moment' moment otherwise."""

    moment: Float[np.ndarray, "r r"] | None

    def roots(self, N: Float[np.ndarray, "r r"]) -> tuple[np.ndarray, np.ndarray, float]:
        """Return a root of N^-1, the matrix R and the factor k of the Hessian."""
        root = inverse_root(N)
        if self.moment is None:
            return root, root, 1.0
        return root, self.moment @ root.T @ root, 2.0

    def rescale(
        self, Z: Float[np.ndarray, "p r"], nu: Float[np.ndarray, " p"]
    ) -> Float[np.ndarray, " p"]:
        """Return the best multiple of nu: the one with 1'nu = sum_i nu_i c_i."""
        _, R, k = self.roots(design_matrix(Z, nu))
        return np.asarray(nu * (float(nu @ row_norms(Z, R)) / nu.sum()) ** (1.0 / k))


@dataclass
class Iterate:
    """Primal weights and dual slacks on the active arms, with what the last step saw."""

    nu: Float[np.ndarray, " p"]
    slack: Float[np.ndarray, " p"]
    R: Float[np.ndarray, "r r"]
    total: float
    gap: float


def solve_smooth(
    Z: Float[np.ndarray, "K r"], criterion: Smooth, tol: float, deadline: float
) -> Solution:
    """Minimise a smooth criterion over all designs to relative accuracy `tol`."""
    solution = column_generation(Z, criterion, tol, deadline)
    sparser = without_light_arms(Z, solution, criterion, tol, deadline)
    return replace(solution, sparser=sparser)


def column_generation(
    Z: Float[np.ndarray, "K r"], criterion: Smooth, tol: float, deadline: float
) -> Solution:
    """Solve on active arms, add those that a scan finds violated, until none is."""
    r = Z.shape[1]
    active = starting_arms(Z)
    nu = criterion.rescale(Z[active], np.full(len(active), r / len(active)))
    slack = np.full(len(active), 0.3)
    lower, iterations, gap, status = 0.0, 0, np.inf, STALLED
    best = (np.inf, active, nu)
    for turn in range(MAX_ROUNDS):
        inner = max(0.3 * tol, min(1e-2, INNER_PRECISION * gap))
        now, steps = restricted_solve(Z[active], nu, slack, criterion, inner, deadline)
        nu, slack = now.nu, now.slack
        iterations += steps
        c = row_norms(Z, now.R)
        gap = relative_gap(float(c.max() * nu.sum() / now.total), 1.0)
        bound = float(now.total**2 / c.max())
        lower = max(lower, bound) if bound < np.inf else lower
        if gap < best[0]:
            best = (gap, active, nu)
        if gap <= tol:
            status = SOLVED
            break
        if gap == np.inf:  # not a number: no step leads out of that
            break
        if time.monotonic() > deadline:
            status = OUT_OF_TIME
            break
        new = np.flatnonzero(c > (1.0 + 0.1 * tol) * c[active].max())
        if inner <= 0.3 * tol and len(new) == 0:
            break
        new = new[largest(c[new], 3 * r)]
        keep = (nu > 1e-3 * slack) | (slack < 1e-2) | (turn >= DROP_ROUNDS)
        active, nu, slack = extend(active[keep], nu[keep], slack[keep], new, min(gap, 1.0))
    bound = float(r) if criterion.moment is None else lower
    _, active, nu = best
    return Solution(active, nu / nu.sum(), bound, status, iterations)


def starting_arms(Z: Float[np.ndarray, "K r"]) -> Int[np.ndarray, " p"]:
    """Return the arms of highest leverage, with others added if these do not span."""
    K, r = Z.shape
    top = largest(np.einsum("ij,ij->i", Z, Z), min(K, 10 * r))
    values = np.linalg.eigvalsh(Z[top].T @ Z[top])
    return top if values[0] > 1e-6 * values[-1] else np.union1d(spanning_arms(Z), top)


def without_light_arms(
    Z: Float[np.ndarray, "K r"],
    solution: Solution,
    criterion: Smooth,
    tol: float,
    deadline: float,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Optimise again over the heavy arms alone; None unless that is as good."""
    active, weights = solution.arms, solution.weights
    keep = heavy(weights, len(Z))
    if keep is None:
        return None
    try:
        nu = criterion.rescale(Z[active[keep]], weights[keep])
        rest, nu, slack = extend(active[keep], nu, 0.0 * nu, active[:0], 1e-2)
        now, _ = restricted_solve(Z[rest], nu, slack, criterion, 0.1 * tol, deadline)
    except np.linalg.LinAlgError:
        return None
    gap = float(row_norms(Z[active], now.R).max() * now.nu.sum() / now.total) - 1.0
    return (rest, now.nu / now.nu.sum()) if gap <= tol else None


def extend(
    active: Int[np.ndarray, " p"],
    nu: Float[np.ndarray, " p"],
    slack: Float[np.ndarray, " p"],
    new: Int[np.ndarray, " m"],
    gap: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add `new` arms to those kept, and step off the boundary."""
    active = np.concatenate([active, new])
    share = 0.3 * gap * nu.sum() / max(1, len(new))
    nu = np.concatenate([nu, np.full(len(new), share)])
    slack = np.concatenate([slack, np.full(len(new), 1e-2)])
    nu = np.maximum(nu, 1e-3 * gap * nu.sum() / len(nu))
    return active, nu, np.maximum(slack, 1e-3 * gap)


def restricted_solve(
    Z: Float[np.ndarray, "p r"],
    nu: Float[np.ndarray, " p"],
    slack: Float[np.ndarray, " p"],
    criterion: Smooth,
    tol: float,
    deadline: float,
) -> tuple[Iterate, int]:
    """Solve on the active arms by a primal-dual predictor-corrector method (Mehrotra 1992).

    Newton's equations for 1 - c(nu) - slack = 0, nu * slack = target, with the slacks
    eliminated: (H + diag(slack / nu)) dnu = c - 1 + target / nu.
    """
    best = None
    for step in range(MAX_STEPS):
        try:
            root, R, k = criterion.roots(design_matrix(Z, nu))
        except np.linalg.LinAlgError:
            break
        image = Z @ R.T
        c = np.einsum("ij,ij->i", image, image)
        total = float(nu @ c)
        gap = relative_gap(float(c.max() * nu.sum() / total), 1.0)
        if best is None or gap < best[0].gap:
            best = Iterate(nu, slack, R, total, gap), step
        if gap <= tol or time.monotonic() > deadline or step - best[1] > 15:
            break
        white = image if R is root else Z @ root.T
        H = k * (white @ white.T) * (image @ image.T)
        H.flat[:: len(nu) + 1] += slack / nu
        try:
            newton = PositiveSystem(H)
        except np.linalg.LinAlgError:
            break
        nu, slack = predictor_corrector(newton, c - 1.0, nu, slack)
    if best is None:
        raise np.linalg.LinAlgError("the arms that start the solver do not span")
    return best[0], step


def predictor_corrector(
    newton: PositiveSystem,
    residual: Float[np.ndarray, " p"],
    nu: Float[np.ndarray, " p"],
    slack: Float[np.ndarray, " p"],
) -> tuple[np.ndarray, np.ndarray]:
    """Take one Mehrotra step."""
    mu = float(nu @ slack) / len(nu)
    dnu = newton.solve(residual)
    dslack = -slack - slack / nu * dnu
    primal, dual = step_length(1.0, dnu / nu), step_length(1.0, dslack / slack)
    aim = float((nu + primal * dnu) @ (slack + dual * dslack)) / len(nu)
    target = (aim / mu) ** 3 * mu - dnu * dslack
    dnu = newton.solve(residual + target / nu)
    dslack = (target - nu * slack - slack * dnu) / nu
    return (
        nu + step_length(0.99, dnu / nu) * dnu,
        slack + step_length(0.99, dslack / slack) * dslack,
    )
