"""What each column of the candidates does to the results, and what the model leaves unexplained.

A coefficient is a linear function y'phi of what is estimated, and which ones are asked for is fixed
by the table of candidates. So the intervals of `inference.mixtures` hold for all of them and all
times at once, as those for means do. A coefficient that the table cannot tell (a column that is the
sum of others) is left out.
"""

from dataclasses import dataclass

import numpy as np

from finalist.arms import Arms
from finalist.arms.span import SPAN_TOLERANCE
from finalist.inference.least_squares import Estimate
from finalist.shapes import Float, Int
from finalist.study.estimates import widths_along
from finalist.study.pulls import Fate
from finalist.study.state import State

#: Of more columns than this no effects are computed: nobody reads them.
MAX_EFFECTS = 200


@dataclass(frozen=True)
class Effect:
    """What one column or level does to the mean of a result.

    Attributes
    ----------
    name : str
        The feature.
    step : str
        The change that `change` is for: "from 20 to 60", or "instead of calm" for a level.
    slope, slope_low, slope_high : float or None
        What one unit of the column changes, in the unit of results, with an interval that holds
        with 95 % for all effects and at all times together. None where nothing is known, while an
        assumption fails, and where means may be off the model.
    change, change_low, change_high : float or None
        The same for the whole range of the column among the candidates.
    """

    name: str
    step: str
    slope: float | None
    slope_low: float | None
    slope_high: float | None
    change: float | None
    change_low: float | None
    change_high: float | None


@dataclass(frozen=True, eq=False)
class Leftover:
    """Each result beside what the model expects of it.

    Attributes
    ----------
    pull : (n,) array of int
        The number of the measurement, in the order in which they were asked for.
    arm : (n,) array of int
    fitted, residual : (n,) arrays
        The estimated mean, with the shift of its batch where batches are shifted, and the result
        less that.
    """

    pull: Int[np.ndarray, " n"]
    arm: Int[np.ndarray, " n"]
    fitted: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # such numbers are left out
def effects_of(state: State, fit: Estimate) -> tuple[Effect, ...]:
    """Return the effects of the columns; none if each candidate stands on its own.

    Examples
    --------
    >>> from finalist.testing.studies import small_study
    >>> with small_study() as study:
    ...     study.snapshot().effects
    ()
    """
    arms = fit.arms  # with the constant of a batch, where batches are shifted
    features, names = arms.features, arms.feature_names
    moves = np.flatnonzero(np.ptp(features, axis=0) > 0.0)
    alone = state.arms.recipe.name == "separate" or state.arms.rank == len(arms)
    if alone or len(moves) > MAX_EFFECTS:
        return ()
    known, directions = _directions(arms, moves)
    if len(known) == 0:
        return ()
    if fit.statistics.pulls == 0:
        slope = width = np.full(len(known), np.nan)
    else:
        told = fit.information.spans(directions)
        slope = np.where(told, directions @ fit.phi, np.nan)
        width = widths_along(state, fit, directions)
    span = np.ptp(features[:, known], axis=0)
    ends = (slope, slope - width, slope + width)
    numbers = [_numbers(end * by) for by in (1.0, span) for end in ends]
    steps = [_step(state.arms, j) for j in known]
    return tuple(map(Effect, [names[j] for j in known], steps, *numbers))


def _directions(
    arms: Arms, moves: Int[np.ndarray, " m"]
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, "n r"]]:
    """Return the features whose coefficients the table tells, and y with y'phi the coefficient.

    With X = Z B, B of full row rank, e_j'theta is told if e_j is in the row space of B; then y
    solves B'y = e_j.
    """
    size = np.abs(arms.features).max(axis=0)
    size = np.where(size > 0.0, size, 1.0)
    B = np.linalg.lstsq(arms.coordinates, arms.features / size, rcond=None)[0]
    Y = np.linalg.pinv(B)
    rest = np.linalg.norm(Y @ B - np.eye(len(Y)), axis=1)
    known = moves[rest[moves] <= SPAN_TOLERANCE]
    directions = Y[known] / size[known, None]
    sound = np.isfinite(directions).all(axis=1) & directions.any(axis=1)
    return known[sound], np.asarray(directions[sound])


def _step(arms: Arms, j: int) -> str:
    name, column = arms.feature_names[j], arms.features[:, j]
    for of, levels in arms.recipe.levels.items():
        if name.startswith(f"{of}: ") or name == of:
            return f"instead of {levels[0]}"
    return f"from {column.min():.4g} to {column.max():.4g}"


def _numbers(values: Float[np.ndarray, " n"]) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in values]


@np.errstate(over="ignore", invalid="ignore")
def leftover_of(state: State, means: Float[np.ndarray, " K"]) -> Leftover:
    """Return what given means leave of all results in complete batches.

    Results from before the arms last changed are left out, and those of arms without a mean.
    """
    pulls, opened = state.pulls, 0 if state.open is None else state.open.number
    complete = [b.number for b in state.issued if b.stage == state.stage and b.number != opened]
    some = np.flatnonzero((pulls.fate == Fate.TOLD) & np.isin(pulls.batch, complete))
    some = some[np.isfinite(means[pulls.arm[some]])]
    arm, fitted = pulls.arm[some], means[pulls.arm[some]]
    residual = pulls.reward[some] - fitted
    if state.problem.batch_intercept and len(some):
        _, of = np.unique(pulls.batch[some], return_inverse=True)
        p = state.problem.precisions
        weight = np.ones(len(some)) if p is None else p[arm]
        shift = (np.bincount(of, weight * residual) / np.bincount(of, weight))[of]
        fitted, residual = fitted + shift, residual - shift
    sound = np.isfinite(residual)
    return Leftover(some[sound] + 1, arm[sound], fitted[sound], residual[sound])
