"""How likely it is that a bend hides a better candidate than the one that a model names.

A posterior with the prior "half as the model says, half bent":

    rho = sum_c w_c B_c p_c / (1 + sum_c w_c B_c),

B_c the Bayes factor of a bend against none, p_c the share of draws of its posterior in which
another candidate is the best. With G, g, |e|^2 and nu of all results (`residuals`), a flat prior of
theta and beta ~ N(0, h^2 sigma^2),

    B_c = det(I + h^2 G)^-1/2 exp(g'(G + I/h^2)^-1 g / (2 sigma^2)),

for unknown sigma with (|e|^2 / (|e|^2 - g'(G + I/h^2)^-1 g))^(nu / 2) for the second factor. A
posterior is right under any design and any stopping, on average over its prior. h is taken from the
results, so that this is an approximation; and it is no bound for each bend.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from finalist.inference.bends import Bends
from finalist.inference.residuals import Cells, Residuals, centred_rows
from finalist.problem import Problem
from finalist.shapes import Float, Int

#: Draws of the posterior of each bend.
DRAWS = 250
#: Of more candidates only those that may be the best are drawn.
MANY = 2000
#: Directions that nothing was measured in are as uncertain as this part of the largest says.
UNKNOWN = 1e-9


@dataclass(frozen=True, eq=False)
class Hidden:
    """What bends may hide.

    Attributes
    ----------
    chance : float
        rho.
    share : (c,) array
        The posterior of each bend alone, and last of all at once.
    none : float
        The posterior of the model as it is.
    means : (K,) array
        Expected means if there are bends: the average over them.
    """

    chance: float
    share: Float[np.ndarray, " c"]
    none: float
    means: Float[np.ndarray, " K"]


def hidden(
    problem: Problem,
    bends: Bends,
    cells: Cells,
    winners: Sequence[int],
    h: float,
    seed: Sequence[int],
) -> Hidden:
    """Return how likely it is that bends hide better candidates than some winners.

    Parameters
    ----------
    cells : Cells
        All results.
    winners : sequence of int
        The arms that the model names.
    h : float
        How large bends may be (`Bends.size`).
    seed : sequence of int
        Draws the posterior.
    """
    Z, sigma = problem.arms.coordinates, problem.scale
    left = Residuals.of(Z, bends, cells)
    parts = [*([i] for i in range(bends.count)), list(range(bends.count))]
    rng = np.random.default_rng(list(seed))
    log_b, p, means = [], [], np.zeros((len(parts), len(Z)))
    for c, part in enumerate(parts):
        B, fitted = _bayes_factor(left, np.array(part, dtype=np.int64), h, sigma)
        scale = sigma if sigma is not None else fitted
        rows = np.column_stack([Z, bends.columns[:, part]])
        found = _posterior(rows, len(part), cells, h)
        means[c] = rows @ found.mean
        p.append(_better(problem, rows, found, scale, list(winners), rng))
        log_b.append(B)
    logs = np.log(bends.weights) + np.array(log_b)
    top = max(float(logs.max()), 0.0)
    weight, none = np.exp(logs - top), float(np.exp(-top))
    share = weight / (weight.sum() + none)
    chance = float(np.clip(share @ np.array(p), 0.0, 1.0))
    average = np.asarray(weight @ means / weight.sum())
    return Hidden(chance, share, none / (float(weight.sum()) + none), average)


def _bayes_factor(
    left: Residuals, part: Int[np.ndarray, " m"], h: float, sigma: float | None
) -> tuple[float, float]:
    """Return the log Bayes factor of some bends, and sigma by the residuals that they leave."""
    G, g = left.G[np.ix_(part, part)], left.g[part]
    gained = float(g @ np.linalg.solve(G + np.eye(len(g)) / h**2, g))
    half = 0.5 * np.linalg.slogdet(np.eye(len(g)) + h**2 * G)[1]
    rest = max(left.squares - gained, 0.0)
    fitted = float(np.sqrt(rest / left.freedom)) if left.freedom > 0 else 0.0
    if sigma is not None:
        return float(0.5 * gained / sigma**2 - half), fitted
    if left.freedom < 1 or not left.squares > 0.0:
        return 0.0, fitted
    with np.errstate(divide="ignore"):
        better = -0.5 * left.freedom * np.log(max(rest / left.squares, 1e-300))
    return float(better - half), fitted


class _Posterior(NamedTuple):
    """Of all coefficients: its mean, and R with R'R its precision where sigma is 1."""

    mean: Float[np.ndarray, " s"]
    R: Float[np.ndarray, "s s"]


def _posterior(rows: Float[np.ndarray, "K s"], extra: int, cells: Cells, h: float) -> _Posterior:
    """Return what the results say of the coefficients."""
    X, y = centred_rows(rows, cells)
    s = rows.shape[1]
    small = np.sqrt(UNKNOWN) * float(np.linalg.norm(X, axis=0).max(initial=1.0))
    prior = np.diag(np.append(np.full(s - extra, small), np.full(extra, 1.0 / h)))
    Q, R = np.linalg.qr(np.vstack([X, prior]))
    return _Posterior(_solve(R, Q[: len(y)].T @ y), np.asarray(R))


def _better(
    problem: Problem,
    rows: Float[np.ndarray, "K s"],
    found: _Posterior,
    sigma: float,
    winners: list[int],
    rng: np.random.Generator,
) -> float:
    """Return the share of draws in which the winners are not the best."""
    mean, R = found
    deviations = _solve(R, rng.standard_normal((len(mean), DRAWS)))
    drawn = problem.sign * (mean[:, None] + sigma * deviations)
    some = np.flatnonzero(problem.arms.candidate)
    if len(some) > MANY:
        spread = np.linalg.norm(_solve(R, rows[some].T, trans="T"), axis=0)
        high = problem.sign * (rows[some] @ mean) + 4.0 * sigma * spread
        some = np.union1d(some[np.argsort(-high, kind="stable")[:MANY]], winners)
    worst = (rows[winners] @ drawn).min(axis=0)
    others = np.setdiff1d(some, winners)
    if len(others) == 0:
        return 0.0
    rival = (rows[others] @ drawn).max(axis=0)
    return float(np.mean(~(rival <= worst + problem.epsilon)))  # what is no number is no comfort


def _solve(
    R: Float[np.ndarray, "s s"], b: Float[np.ndarray, "..."], trans: Literal["N", "T"] = "N"
) -> Float[np.ndarray, "..."]:
    return np.asarray(solve_triangular(R, b, trans=trans, check_finite=False))
