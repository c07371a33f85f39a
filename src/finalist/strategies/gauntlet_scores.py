"""What one batch says about differences of arms: scores that are normal given the past."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.information import row_norms
from finalist.least_squares import Estimate
from finalist.problem import Problem

#: Residuals below this part of the rewards are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Scores:
    """What a batch says about differences y = rival - arm.

    Attributes
    ----------
    tested : (K,) array of bool
        Whether the arm has a rival and the batch can estimate their difference.
    z, speed : (K,) arrays
        The score, and the drift of it for a gap of one sigma; 0 where not tested.
    """

    tested: Bool[np.ndarray, " K"]
    z: Float[np.ndarray, " K"]
    speed: Float[np.ndarray, " K"]


def scores_of(
    problem: Problem, fit: Estimate, rivals: Int[np.ndarray, " K"], epsilon: float, sigma: float
) -> Scores:
    """Return the scores of (rival - arm)'theta + epsilon.

    Parameters
    ----------
    problem : Problem
    fit : Estimate
        From the rewards of the batch alone.
    rivals : (K,) array of int
        For each arm its rival; -1 for none.
    epsilon : float
    sigma : float
        The size of the noise; if that is unknown, what the residuals of this batch say.
    """
    Z, K = problem.arms.coordinates, len(problem.arms)
    some = np.flatnonzero(rivals >= 0)
    Y = Z[rivals[some]] - Z[some]
    tested, z, speed = np.zeros(K, dtype=bool), np.zeros(K), np.zeros(K)
    possible = fit.information.spans(Y) & np.any(Y != 0.0, axis=1)
    unknown, freedom = problem.noise.sigma is None, fit.degrees_of_freedom
    if unknown and (freedom < 1 or _is_rounding(fit)):
        possible[:] = False  # nothing to measure the noise by
    some, Y = some[possible], Y[possible]
    width = np.sqrt(row_norms(Y, fit.information.inverse_root))
    score = (problem.sign * (Y @ fit.phi) + epsilon) / (sigma * width)
    tested[some], speed[some] = True, 1.0 / width
    z[some] = normal_scores(score, freedom) if unknown else score
    return Scores(tested, z, speed)


def _is_rounding(fit: Estimate) -> bool:
    """Return whether residuals are only what rounding makes of equal rewards."""
    size = float(np.abs(fit.statistics.mean).max())
    return fit.residual_variance <= (ROUNDING * size) ** 2


def normal_scores(t: Float[np.ndarray, " m"], freedom: int) -> Float[np.ndarray, " m"]:
    """Return Phi^-1(F_t(t)), the normal score of a Student statistic: exactly N(0, 1).

    Examples
    --------
    >>> normal_scores(np.array([-12.7062, 12.7062]), 1).round(3)
    array([-1.96,  1.96])
    """
    from scipy.special import ndtri, stdtr

    # The lower tail of -|t|: the upper one would be 1 - tiny.
    return np.asarray(-np.sign(t) * ndtri(np.maximum(stdtr(freedom, -np.abs(t)), 1e-300)))
