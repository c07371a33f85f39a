"""What bends, as a picture: measured means beside the model and beside a model that bends.

Means depend on several columns, so a column is drawn with the others held at their average over the
candidates: each measured mean is moved by what the bending model says of the difference (a
component-plus-residual plot, Ezekiel 1924). With one column nothing is moved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from finalist.inference.bending import BendEvidence
from finalist.inference.bends import Bends
from finalist.inference.hidden import hidden
from finalist.inference.intervals import leader
from finalist.inference.least_squares import Estimate
from finalist.inference.pooling import BatchSums
from finalist.inference.residuals import Cells
from finalist.study.effects import leftover_of
from finalist.study.state import State

#: Bends that are drawn, the likeliest first.
MAX_CURVES = 2
#: Points of a curve.
POINTS = 41


@dataclass(frozen=True, eq=False)
class Curve:
    """One column: the model's line, the line of a model that bends, and what was measured.

    Attributes
    ----------
    column : str
    other : str
        The column that it bends with, and its value here, as "dose = 3"; empty if there is none.
    x, straight, bent : (n,) arrays
        The lines.
    at, mean : (m,) arrays
        Measured means of candidates.
    pulls : (m,) array of int
        Measurements of each.
    """

    column: str
    other: str
    x: Float[np.ndarray, " n"]
    straight: Float[np.ndarray, " n"]
    bent: Float[np.ndarray, " n"]
    at: Float[np.ndarray, " m"]
    mean: Float[np.ndarray, " m"]
    pulls: Int[np.ndarray, " m"]


class Bent(NamedTuple):
    """What a model that bends says, where the check of the model has something to say."""

    curves: tuple[Curve, ...] = ()
    #: Its mean of each candidate: the average over all bends by how well they fit.
    means: Float[np.ndarray, " K"] | None = None


def bent_of(state: State, fit: Estimate, *, failed: bool) -> Bent:
    """Return the bends that fit best if the check of the model has `failed`; else none."""
    problem, arms = state.problem, state.arms
    bends, evidence = Bends.of(arms), BendEvidence.of(problem)
    positions = {name: j for j, name in enumerate(arms.feature_names)}
    named = all(name in positions for name in bends.base_names)
    if not failed or evidence is None or not named or fit.statistics.pulls == 0:
        return Bent()
    shifted = problem.batch_intercept
    sums = state.measured if shifted else [BatchSums.of(state.pooled.statistics)]
    cells = Cells.of(sums, problem.precisions, shifted=shifted)
    straight = fit.means()
    if not np.isfinite(straight).all():
        return Bent()
    winners = state.verdict.winners or (leader(fit, problem.sign, state.verdict.survivors),)
    found = hidden(problem, bends, cells, winners, evidence.size(cells)[0], [0])
    arm, rest, pulls = _rest(state, found.means)
    terms = _terms(bends.base)
    lines = [np.linalg.lstsq(terms, means, rcond=None)[0] for means in (straight, found.means)]
    drawn: list[Curve] = []
    for k in np.argsort(-found.share[:-1], kind="stable"):
        pair = _columns(bends.names[k], bends)
        if pair is None or any(one.column == bends.base_names[pair[0]] for one in drawn):
            continue
        features = arms.features[:, [positions[name] for name in bends.base_names]]
        drawn += _drawn(bends, features, pair, lines, arm, rest, pulls)
        if len({one.column for one in drawn}) == MAX_CURVES:
            break
    return Bent(tuple(drawn), found.means)


def _drawn(
    bends: Bends,
    features: Float[np.ndarray, "K p"],
    pair: tuple[int, int | None],
    lines: Sequence[Float[np.ndarray, " t"]],
    arm: Int[np.ndarray, " m"],
    rest: Float[np.ndarray, " m"],
    pulls: Int[np.ndarray, " m"],
) -> list[Curve]:
    """Draw a column; where it bends with another one, at the two ends of that."""
    i, j = pair
    U, low, high = bends.base, features.min(axis=0), features.max(axis=0)
    made = []
    for end in (0.0,) if j is None else (-1.0, 1.0):
        grid = np.linspace(-1.0, 1.0, POINTS)
        some = np.ones(len(arm), dtype=bool)
        words = ""
        if j is not None:
            some = U[arm, j] * end >= 0.0
            words = f"{bends.base_names[j]} = {(low if end < 0.0 else high)[j]:.4g}"

        def rows(u: Float[np.ndarray, " n"], end: float = end) -> Float[np.ndarray, "n t"]:
            V = np.tile(U.mean(axis=0), (len(u), 1))
            V[:, i] = u
            if j is not None:
                V[:, j] = end
            return _terms(V)

        middle, half = (high[i] + low[i]) / 2.0, (high[i] - low[i]) / 2.0
        made.append(
            Curve(
                column=bends.base_names[i],
                other=words,
                x=middle + half * grid,
                straight=rows(grid) @ lines[0],
                bent=rows(grid) @ lines[1],
                at=features[arm[some], i],
                mean=rows(U[arm[some], i]) @ lines[1] + rest[some],
                pulls=pulls[some],
            )
        )
    return made


def _rest(
    state: State, means: Float[np.ndarray, " K"]
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """Return the candidates that were measured, their measured means less others, and pulls."""
    left = leftover_of(state, means)
    count = np.bincount(left.arm, minlength=len(means))
    seen = np.flatnonzero(count)
    total = np.bincount(left.arm, left.residual, minlength=len(means))
    return seen, total[seen] / count[seen], count[seen]


def _terms(U: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "n t"]:
    """Return everything that a model and its bends are made of."""
    p = range(U.shape[1])
    products = [U[:, i] * U[:, j] for i, j in combinations(p, 2)]
    mixed = [U[:, i] ** 2 * U[:, j] for i in p for j in p if i != j]
    return np.column_stack([np.ones(len(U)), U, U**2, *products, U**3, *mixed])


def _columns(bend: str, bends: Bends) -> tuple[int, int | None] | None:
    """Return the columns of a bend: that to draw, and the other one of a product."""
    names = bends.base_names
    for i, name in enumerate(names):
        if bend in (f"{name}^2", f"{name}^3"):
            return i, None
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            if i != j and bend in (f"{one} * {other}", f"{one}^2 * {other}"):
                levels = [len(np.unique(bends.base[:, k])) for k in (i, j)]
                return (i, j) if levels[0] >= levels[1] else (j, i)
    return None
