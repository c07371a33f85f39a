"""The gaps of a problem with a known parameter, and the lower bound that they imply."""

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.design.measured import Measured
from finalist.design.optimal import solve_task
from finalist.design.tasks import directions_task
from finalist.errors import ProblemError, TiedArmsError
from finalist.inference.bounds import lower_bound_pulls
from finalist.problem import Gaussian, Problem
from finalist.shapes import Int
from finalist.text import first_few


def best_and_gaps(problem: Problem, theta: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the best arm and all gaps; refuse ties, and gaps whose squares overflow."""
    arms = problem.arms
    best = int(np.argmax(problem.sign * arms.means(theta)))
    X, t = arms.features, np.asarray(theta, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        differences = X[best] - X  # before the product: equal parts of large features cancel
        gaps = problem.sign * (differences @ t)
        rounding = 4 * np.finfo(float).eps * (np.abs(differences) @ np.abs(t))
    _refuse_ties(arms, np.flatnonzero(gaps <= rounding))
    others = np.delete(gaps, best)
    scale = problem.sigma
    if len(others) and not (
        1e-100 <= others.min() / scale <= others.max() / scale <= 1e100 and 1e-100 <= scale <= 1e100
    ):
        raise ProblemError(
            f"gaps from {others.min():.3g} to {others.max():.3g} with sigma {scale:.3g} are too "
            "far apart to square. Rescale theta, sigma and the features."
        )
    return best, np.asarray(gaps)


def _refuse_ties(arms: Arms, tied: Int[np.ndarray, " m"]) -> None:
    """Raise if another arm is as good as the best one up to rounding errors."""
    if len(tied) > 1:
        raise TiedArmsError(
            f"{first_few([repr(arms.names[i]) for i in tied])} are equally good; a complexity "
            "needs a single best arm. Change theta, or leave all but one of them out."
        )


def least_cost(problem: Problem, theta: ArrayLike) -> float:
    """Return the least mean pulls, or cost, of a method that keeps delta for every theta.

    T* kl(delta, 1 - delta), with T* = 2 min over designs, max over candidates x, of
    ||x* - x||^2 / gap^2 in the norm of the inverse of sum_i lam_i x_i x_i' / (sigma_i^2 c_i): the
    bound of Gaussian rewards (Garivier and Kaufmann 2016, Soare 2015) with unequal noise and cost.

    Parameters
    ----------
    problem : Problem
        The best candidate is asked for; the noise is Gaussian and known.
    theta : (d,) array-like

    Raises
    ------
    TiedArmsError
        When two candidates are best.
    ProblemError
        When sigma is unknown.

    Examples
    --------
    >>> problem = Problem(Arms.unstructured(2), noise=Gaussian(1.0), delta=0.05)
    >>> round(least_cost(problem, [1.0, 0.0]), 3)  # 8 kl
    21.2
    """
    arms, candidates = problem.arms, np.flatnonzero(problem.arms.candidate)
    if len(candidates) == 1:
        return 0.0
    among = Problem(problem.candidates, noise=Gaussian(1.0), objective=problem.objective)
    best, gaps = best_and_gaps(among, np.asarray(theta, dtype=float))
    others = np.delete(np.arange(len(candidates)), best)
    smallest, Z = float(gaps[others].min()), arms.coordinates[candidates]
    Y = (Z[best] - Z[others]) * (smallest / gaps[others])[:, None]
    measured = Measured.of(arms, problem.sigmas, problem.cost)
    design = solve_task(measured, directions_task(measured.rows, Y))
    return lower_bound_pulls(2.0 * design.lower_bound / smallest**2, problem.delta)
