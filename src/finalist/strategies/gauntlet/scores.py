"""What the rewards of one batch say about pairs: scores that are normal given the past."""

import math

import numpy as np

from finalist.inference.least_squares import Estimate
from finalist.problem import Problem
from finalist.shapes import Float
from finalist.strategies.gauntlet.contrasts import Contrasts

#: Residuals below this part of the rewards are rounding.
ROUNDING = 1e-12


def scores_of(
    problem: Problem, fit: Estimate, contrasts: Contrasts, epsilon: float
) -> Float[np.ndarray, " n"] | None:
    """Return the scores of (rival - arm)'theta + epsilon, 0 where not tested.

    Parameters
    ----------
    fit : Estimate
        From the rewards of the batch alone.
    contrasts : Contrasts
        Of the same batch.

    Returns
    -------
    (n,) array or None
        None if there is nothing to measure the noise by.
    """
    sigma, freedom = _noise_of(problem, fit)
    if sigma is None:
        return None
    gaps, z = np.zeros((2, len(contrasts.width)))
    linear, own, some = contrasts.linear, contrasts.own, contrasts.tested
    gaps[linear] = contrasts.Y[linear] @ fit.phi
    mean, pairs = fit.statistics.mean, contrasts.pairs
    gaps[own] = mean[pairs.rivals[own]] - mean[pairs.arms[own]]
    bias, width = contrasts.bias, contrasts.width
    score = (problem.sign * gaps[some] + epsilon - bias[some]) / (sigma * width[some])
    z[some] = normal_scores(score, freedom) if problem.noise.sigma is None else score
    return z


def _noise_of(problem: Problem, fit: Estimate) -> tuple[float | None, int]:
    """Return the size of the noise, and the degrees of freedom if the batch has to tell it.

    Residuals of a model that may be wrong are too large, which no test allows for: then only the
    scatter of repeated pulls counts. None where there is none.
    """
    if problem.noise.sigma is not None:
        return problem.scale, 0
    if problem.misspecification == 0.0:
        freedom = fit.degrees_of_freedom
        if freedom < 1 or _is_rounding(fit, fit.residual_variance):
            return None, 0
        return math.sqrt(fit.residual_variance), freedom
    counts = fit.statistics.count
    freedom = int(counts.sum() - np.count_nonzero(counts))
    variance = float(fit.statistics.m2.sum()) / max(freedom, 1)
    if freedom < 1 or _is_rounding(fit, variance):
        return None, 0
    return math.sqrt(variance), freedom


def _is_rounding(fit: Estimate, variance: float) -> bool:
    """Return whether residuals are only what rounding makes of equal rewards."""
    size = float(np.abs(fit.statistics.mean).max())
    return variance <= (ROUNDING * size) ** 2


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
