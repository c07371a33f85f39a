"""`optimal_design`: from arms and a criterion to a certified design.

| criterion  | minimised over all designs                      | Soare 2014                  |
|------------|-------------------------------------------------|-----------------------------|
| g, d       | max over arms of x' Lambda^-1 x                 | eq:g.optimal.design.relax   |
| xy         | max over pairs of (x-x')' Lambda^-1 (x-x')      | eq:xy.optimal.design.relax  |
| v          | mean over arms of x' Lambda^-1 x                | Sect. 7                     |
| directions | max over the rows y of an array, y' Lambda^-1 y | eq:oracle.strategy, Sect. 5 |

Lambda = sum_i lam_i x_i x_i' / (sigma_i^2 c_i), with shares lam_i of the cost: pulls of different
noise and cost are pulls of the arms x_i / (sigma_i sqrt(c_i)), and a share buys lam_i / c_i pulls.
Only arms that can be measured have a share; arms that are compared are the candidates.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.design.farthest import AllPairs, DirectionList, Directions, farthest_pairs
from finalist.design.measured import Measured
from finalist.design.minimax import solve_minimax
from finalist.design.result import SOLVED, STALLED, Design, Solution, relative_gap
from finalist.design.rounding import check_weights
from finalist.design.smooth import Smooth, solve_smooth
from finalist.design.support import reduce_support
from finalist.errors import DesignError, DirectionError
from finalist.information import Information, information
from finalist.noise import PerArm

Criterion = Literal["g", "d", "xy", "v"] | Float[np.ndarray, "M d"]

#: Part of the tolerance that the solver may use up; tidying the support takes the rest.
SOLVER_SHARE = 0.5
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


def optimal_design(
    arms: Arms,
    criterion: Criterion,
    tol: float = 1e-6,
    *,
    among: Int[np.ndarray, " m"] | None = None,
    max_seconds: float | None = None,
    sigma: PerArm = 1.0,
    cost: PerArm = 1.0,
) -> Design:
    """Find the design that minimises a criterion, with a certificate.

    Parameters
    ----------
    arms : Arms
        Pulled are those that `arms.measurable` says, compared those that `arms.candidate` says:
        all, unless said.
    criterion : {"g", "d", "xy", "v"} or (M, d) array
        What to minimise: the largest variance over arms (`"g"`, and `"d"`, which has the
        same optimum), over differences of arms (`"xy"`), or over the rows of an array of
        directions; or the mean variance over arms (`"v"`).
    tol : float
        Stop when the value is certified to be within a factor 1 + tol of the optimum.
    among : (m,) array of int, optional
        For `"xy"`: only differences of these arms count, such as the survivors of a phase
        (Soare 2014, eq:phase.allocation). All arms can still be pulled.
    max_seconds : float, optional
        Stop after about this time with the best design so far; its `status` says so.
    sigma : float or (K,) sequence
        Size of the noise of a pull of each arm; the criterion is the variance.
    cost : float or (K,) sequence
        Cost of a pull of each arm. Then the criterion is variance times cost: what it is after
        one unit of cost.

    Returns
    -------
    Design
        Weights, shares of the pulls, on at most r(r+1)/2 + 1 arms, r being the rank, with value,
        lower bound and gap. The value is evaluated over all arms, pairs or directions.

    Raises
    ------
    DesignError
        For an unknown criterion or a tolerance that is not a positive number.
    DirectionError
        For directions that are not finite, not estimable, all zero, or none.

    Examples
    --------
    >>> import numpy as np, finalist as fl
    >>> arms = fl.Arms(np.array([[1.0, 0.25], [1.0, -0.25]]))
    >>> design = fl.optimal_design(arms, "xy")
    >>> design.weights.round(4), round(design.value, 4)
    (array([0.5, 0.5]), 4.0)
    """
    if not isinstance(arms, Arms):
        raise DesignError(f"arms is of type {type(arms).__name__}; use fl.Arms(features).")
    if not (_is_number(tol) and math.isfinite(tol) and tol > 0):
        raise DesignError(f"tol is {tol!r}; it must be a positive number such as 1e-6.")
    if max_seconds is not None and not (_is_number(max_seconds) and max_seconds >= 0):
        raise DesignError(f"max_seconds is {max_seconds!r}; it must be at least 0, or None.")
    measured = Measured.of(arms, sigma, cost)
    task = make_task(arms, criterion, among, measured.rows)
    return solve_task(measured, task, float(tol), max_seconds)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def solve_task(
    measured: Measured, task: Task, tol: float = 1e-6, max_seconds: float | None = None
) -> Design:
    """Solve, tidy the support and evaluate the result."""
    Z = measured.rows
    if Z.shape[1] == 0 or len(Z) == 1:
        return _trivial(measured, task)
    deadline = math.inf if max_seconds is None else time.monotonic() + max_seconds
    try:
        solution = task.solve(SOLVER_SHARE * tol, deadline)
    except np.linalg.LinAlgError as error:
        raise DesignError(
            f"the design cannot be computed: {error}. The features are collinear up to rounding "
            "errors; leave out columns that others determine."
        ) from error
    weights, value = tidy(Z, solution, task, tol)
    status = SOLVED
    if relative_gap(value, solution.lower_bound) > tol:
        status = STALLED if solution.status == SOLVED else solution.status
    shares, lower = measured.shares(weights), solution.lower_bound
    return Design(shares, value, lower, task.name, status, solution.iterations)


def design_value(
    arms: Arms,
    weights: Float[np.ndarray, " K"],
    criterion: Criterion,
    *,
    among: Int[np.ndarray, " m"] | None = None,
    sigma: PerArm = 1.0,
    cost: PerArm = 1.0,
) -> float:
    """Evaluate a criterion at any design, over all arms, pairs or directions.

    Parameters
    ----------
    arms : Arms
    weights : (K,) array
        A design: nonnegative weights that sum to 1.
    criterion : {"g", "d", "xy", "v"} or (M, d) array
    among, sigma, cost
        See `optimal_design`.

    Returns
    -------
    float
        Infinity when the arms of the design do not estimate everything that is asked.

    Examples
    --------
    >>> import numpy as np, finalist as fl
    >>> arms = fl.Arms.unstructured(["a", "b", "c"])
    >>> design_value(arms, np.array([0.5, 0.25, 0.25]), "g")
    4.0
    """
    lam = check_weights(weights, len(arms))
    measured = Measured.of(arms, sigma, cost)
    if measured.arms is not None:
        if lam[~arms.measurable].any():
            i = int((lam * ~arms.measurable).argmax())
            raise DesignError(
                f"arm {arms.names[i]!r} has weight {lam[i]:.3g} and cannot be pulled."
            )
        lam = lam[measured.arms]
    if measured.cost is not None:
        lam = lam * measured.cost
        lam = lam / lam.sum()
    task = make_task(arms, criterion, among, measured.rows)
    return task.evaluate(information(measured.rows, lam))


def make_task(
    arms: Arms,
    criterion: Criterion,
    among: Int[np.ndarray, " m"] | None = None,
    rows: Float[np.ndarray, "k r"] | None = None,
) -> Task:
    """Translate a criterion into span coordinates; `rows` are what is pulled, if not the arms."""
    pulled = arms.coordinates if rows is None else rows
    Z = arms.coordinates if arms.candidate.all() else arms.coordinates[arms.candidate]
    compared = _compared(arms.coordinates, criterion, among)
    if among is None:
        compared = Z
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
            Z = pulled
            solve = _minimax_solver(Z, AllPairs(compared))
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


def _compared(
    Z: np.ndarray, criterion: Criterion, among: Int[np.ndarray, " m"] | None
) -> np.ndarray:
    """Return the arms whose differences count."""
    if among is None:
        return Z
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


def tidy(
    Z: Float[np.ndarray, "K r"], solution: Solution, task: Task, tol: float
) -> tuple[Float[np.ndarray, " K"], float]:
    """Remove negligible weights and surplus support points; return weights and their value.

    An interior-point method leaves a little weight everywhere. What is taken away changes the
    value, so candidates are tried from the simplest on until one is still certified.
    """
    target = (1.0 + tol) * solution.lower_bound
    best: tuple[np.ndarray, float] | None = None
    for arms, light in candidates(solution, tol):
        weights = np.zeros(len(Z))
        weights[arms] = light
        weights = reduce_support(Z, weights / weights.sum())
        weights /= weights.sum()
        value = task.evaluate(information(Z, weights))
        if best is None or value < best[1]:
            best = weights, value
        if value <= target:
            break
    assert best is not None
    return best


def candidates(solution: Solution, tol: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield arms and weights, from the fewest arms to all that the solver left."""
    if solution.sparser is not None:
        yield solution.sparser
    largest = float(solution.weights.max())
    for cut in (1e-3 * math.sqrt(tol), 1e-2 * tol, 0.0):
        yield solution.arms, np.where(solution.weights > cut * largest, solution.weights, 0.0)


def _trivial(measured: Measured, task: Task) -> Design:
    """Return the design for a single arm, or for arms that are all zero."""
    weights = np.zeros(len(measured.rows))
    weights[0] = 1.0
    value = task.evaluate(information(measured.rows, weights))
    return Design(measured.shares(weights), value, value, task.name, SOLVED, 0)
