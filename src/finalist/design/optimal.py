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
from collections.abc import Iterator
from numbers import Real

import numpy as np

from finalist.arms import Arms
from finalist.compiled.threads import on_one_thread, size_of_arms
from finalist.design.measured import Measured
from finalist.design.result import SOLVED, STALLED, Design, Solution, relative_gap
from finalist.design.rounding import check_weights
from finalist.design.support import reduce_support
from finalist.design.tasks import Criterion, Task, make_task
from finalist.errors import DesignError
from finalist.inference.information import information
from finalist.problem import PerArm
from finalist.shapes import Float, Int

#: Part of the tolerance that the solver may use up; tidying the support takes the rest.
SOLVER_SHARE = 0.5


@on_one_thread(size_of_arms)
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
        Those marked `arms.measurable` are pulled, those marked `arms.candidate` compared; by
        default all.
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


@on_one_thread(size_of_arms)
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
