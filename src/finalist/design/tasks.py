"""Criteria made concrete for some arms: how each is solved, and how a design is evaluated.

`optimal` says what the criteria are. Everything is in span coordinates here. What is pulled may
differ from what is compared: rows in units of noise and cost, and candidates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from finalist.arms import Arms
from finalist.design.farthest import AllPairs, DirectionList, Directions, farthest_pairs
from finalist.design.minimax import solve_minimax
from finalist.design.result import Solution
from finalist.design.smooth import Smooth, solve_smooth
from finalist.errors import DesignError, DirectionError
from finalist.inference.information import Information, information
from finalist.shapes import Float, Int

Criterion = Literal["g", "d", "xy", "v"] | Float[np.ndarray, "M d"]

#: Up to so many arms their pairs are looked at one by one where the design is singular.
FEW_ARMS = 300
#: A direction is estimable by a singular design when it is in its row space up to rounding.
#: Anything looser would leave out a part of its variance, and the gap would not be true.
ESTIMABLE = 256 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Task:
    """A criterion made concrete for some arms: how to solve it and how to evaluate a design."""

    name: str
    solve: Callable[[float, float], Solution]
    evaluate: Callable[[Information], float]


def make_task(
    arms: Arms,
    criterion: Criterion,
    among: Int[np.ndarray, " m"] | None = None,
    rows: Float[np.ndarray, "k r"] | None = None,
) -> Task:
    """Translate a criterion into span coordinates; `rows` are what is pulled, if not the arms."""
    pulled = arms.coordinates if rows is None else rows
    Z = arms.coordinates if arms.candidate.all() else arms.coordinates[arms.candidate]
    compared = Z if among is None else _compared(arms.coordinates, criterion, among)
    if isinstance(criterion, str):
        if criterion == "d" or (criterion == "g" and Z is pulled):
            smooth = Smooth(None)  # the two have the same optimum
            return Task(
                criterion, _smooth_solver(pulled, smooth), lambda info: _largest(info, pulled)
            )
        if criterion == "g":
            return replace(directions_task(pulled, Z), name="g")
        if criterion == "v":
            check_spanned(arms)
            smooth = Smooth(_root_of_moments(arms, Z))
            return Task(
                "v", _smooth_solver(pulled, smooth), lambda info: float(info.variances(Z).mean())
            )
        if criterion == "xy":
            solve = _minimax_solver(pulled, AllPairs(compared))
            return Task("xy", solve, lambda info: _largest_pair(info, compared))
        raise DesignError(
            f"criterion is {criterion!r}; choose 'g', 'd', 'xy', 'v' or an array of directions."
        )
    return directions_task(pulled, span_directions(arms, criterion))


def check_spanned(arms: Arms) -> None:
    """Refuse the V criterion for candidates that need only a part of what can be measured.

    Its optimum then is a design that does not span, which the solver for it cannot approach.
    """
    Z = arms.coordinates
    if arms.candidate.all() or information(Z, arms.candidate.astype(float)).rank == arms.rank:
        return
    raise DesignError(
        "the candidates span less than the arms that can be measured, which criterion 'v' cannot "
        "take; use 'g' or 'xy', or leave out arms that have nothing in common with a candidate."
    )


def _root_of_moments(arms: Arms, Z: Float[np.ndarray, "K r"]) -> Float[np.ndarray, "q r"]:
    """Return M with M'M the mean of z z' over the arms that are compared."""
    if Z is arms.coordinates and arms.measurable.all():
        return np.eye(arms.rank)
    return np.asarray(np.linalg.qr(Z, mode="r")) / math.sqrt(len(Z))


def directions_task(Z: Float[np.ndarray, "K r"], Y: Float[np.ndarray, "M r"]) -> Task:
    """Return the task for directions that are in span coordinates already."""
    longest = float(np.abs(Y).max())
    if not 1e-153 <= longest <= 1e153:
        raise DirectionError(
            f"the longest direction is {longest:.0e} times as long as the arms; its square cannot "
            "be represented. Rescale the directions."
        )
    return Task("directions", _list_solver(Z, Y), lambda info: _largest(info, Y))


def _compared(Z: np.ndarray, criterion: Criterion, among: Int[np.ndarray, " m"]) -> np.ndarray:
    """Return the arms whose differences count."""
    index = np.asarray(among)
    if not (isinstance(criterion, str) and criterion == "xy"):
        raise DesignError("among goes with criterion 'xy' only; leave it out.")
    if index.ndim != 1 or index.dtype.kind not in "iu" or len(np.unique(index)) < 2:
        raise DesignError(f"among is {among!r}; give the indices of at least two arms.")
    if index.min() < 0 or index.max() >= len(Z):
        raise DesignError(f"among has arms {index.min()} to {index.max()}; there are {len(Z)}.")
    return np.asarray(Z[np.unique(index)])


def span_directions(arms: Arms, directions: Float[np.ndarray, "M d"]) -> np.ndarray:
    """Check directions, drop zero ones and return the rest in span coordinates."""
    try:
        rows = np.asarray(directions)
    except ValueError:
        raise DirectionError("the directions have different lengths; give an array.") from None
    if rows.ndim == 1 and rows.size:
        rows = rows[None, :]
    if rows.size == 0:
        raise DirectionError("the list of directions is empty; give at least one.")
    Y = arms.to_span(rows)
    Y = Y[np.any(Y != 0.0, axis=1)]
    if len(Y) == 0:
        raise DirectionError("every direction is zero; a zero direction needs no measurement.")
    return Y


def _smooth_solver(Z: np.ndarray, criterion: Smooth) -> Callable[[float, float], Solution]:
    return lambda tol, deadline: solve_smooth(Z, criterion, tol, deadline)


def _minimax_solver(Z: np.ndarray, directions: Directions) -> Callable[[float, float], Solution]:
    return lambda tol, deadline: solve_minimax(Z, directions, tol, deadline)


def _list_solver(Z: np.ndarray, Y: np.ndarray) -> Callable[[float, float], Solution]:
    """Solve for directions scaled to size 1: squares of very small ones would vanish."""
    scale = float(np.abs(Y).max())
    solve = _minimax_solver(Z, DirectionList(Y / scale))

    def scaled(tol: float, deadline: float) -> Solution:
        solution = solve(tol, deadline)
        return replace(solution, lower_bound=solution.lower_bound * scale * scale)

    return scaled


def _largest(info: Information, rows: np.ndarray) -> float:
    return float(info.variances(rows, ESTIMABLE).max())


def _largest_pair(info: Information, Z: np.ndarray) -> float:
    if len(Z) < 2:
        return 0.0
    if info.rank < Z.shape[1]:
        # Each pair must be estimable: very close arms may differ outside the row space.
        if len(Z) > FEW_ARMS:
            return math.inf
        first, second = np.triu_indices(len(Z), 1)
        return _largest(info, Z[first] - Z[second])
    return farthest_pairs(Z @ info.inverse_root.T, 0.0, 1)[1]
