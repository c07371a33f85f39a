"""M* of Soare 2014, Sect. 5: how small the oracle's set must be to leave no suboptimal tie."""

import math

import numpy as np

from finalist.arms import Arms
from finalist.design import optimal_design
from finalist.errors import ProblemError
from finalist.inference.information import information
from finalist.shapes import Float


def closest_tie(
    arms: Arms, phi: Float[np.ndarray, " r"], best: int, gaps: Float[np.ndarray, " K"]
) -> float:
    """Return the largest scale of the oracle's set that keeps all suboptimal ties out.

    The set is S = {t : y'(theta - t) <= scale ||y|| for y in Y*} (eq:oracle.conf.set), with
    norms under the XY design. For a pair (x, x') of suboptimal arms a linear program finds the
    smallest scale at which S meets C(x) and C(x') at once. In C(x), y'(theta - t) >= Delta(x)
    for y = x* - x, so that Delta(x) / ||y|| bounds the scale from below: pairs are taken in that
    order and the search ends when no other pair can be better. `phi` is the parameter in the
    span, with its sign changed when small rewards are good.
    """
    Z = arms.coordinates
    others = np.delete(np.arange(len(gaps)), best)
    Y = Z[best] - Z[others]
    norms = np.sqrt(information(Z, optimal_design(arms, "xy").weights).variances(Y))
    least = gaps[others] / norms
    order = np.argsort(least, kind="stable")
    smallest = math.inf
    for position, j in enumerate(order):
        if least[j] >= smallest:
            break
        for i in order[:position]:
            # In units of the lower bound: the program's tolerance is absolute.
            unit = float(least[j])
            pair = int(others[i]), int(others[j])
            smallest = min(smallest, unit * _tie_scale(Z, phi / unit, Y, norms, *pair))
    return smallest


def _tie_scale(
    Z: np.ndarray, phi: np.ndarray, Y: np.ndarray, norms: np.ndarray, a: int, b: int
) -> float:
    """Solve the linear program of `closest_tie` for the arms a and b.

    Variables: the shift u = phi - t and the scale; minimise the scale subject to
    y'u <= scale ||y||, t in C(a), and a and b equally good at t.
    """
    from scipy.optimize import linprog

    r = Z.shape[1]
    D = Z[a] - np.delete(Z, a, axis=0)
    D = D / np.linalg.norm(D, axis=1, keepdims=True)
    inside = np.column_stack([Y / norms[:, None], -np.ones(len(Y))])
    best = np.column_stack([D, np.zeros(len(D))])
    tie = np.append(Z[a] - Z[b], 0.0)[None, :] / np.linalg.norm(Z[a] - Z[b])
    found = linprog(
        np.append(np.zeros(r), 1.0),
        A_ub=np.vstack([inside, best]),
        b_ub=np.concatenate([np.zeros(len(Y)), D @ phi]),
        A_eq=tie,
        b_eq=tie[:, :r] @ phi,
        bounds=[(None, None)] * r + [(0, None)],
        method="highs",
    )
    if found.fun is None:  # t = 0 is always feasible, so only rounding can be the reason
        raise ProblemError(
            f"M* cannot be computed: {found.message} The arms are too close to tell apart; "
            "leave near-duplicates out."
        )
    return float(found.fun)
