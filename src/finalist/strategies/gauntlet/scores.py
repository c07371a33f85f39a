"""What one batch says about differences of arms: scores that are normal given the past."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.inference.information import row_norms
from finalist.inference.least_squares import Estimate, weights_of
from finalist.inference.misspecification import Bias
from finalist.problem import Problem

#: Residuals below this part of the rewards are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of arms to compare.

    Attributes
    ----------
    rivals, arms : (n,) arrays of int
        Of each the rival and the arm.
    direct : (n,) array of bool, optional
        Pairs whose means in the batch are compared, without the model.
    """

    rivals: Int[np.ndarray, " n"]
    arms: Int[np.ndarray, " n"]
    direct: Bool[np.ndarray, " n"] | None = None


@dataclass(frozen=True, eq=False)
class Scores:
    """What a batch says about differences y = rival - arm.

    Attributes
    ----------
    tested : (n,) array of bool
        Whether the batch can estimate the difference.
    z, speed : (n,) arrays
        The score, and the drift of it for a gap of one sigma; 0 where not tested.
    bias : (n,) array
        What was taken off the difference because the model may not be quite linear.
    """

    tested: Bool[np.ndarray, " n"]
    z: Float[np.ndarray, " n"]
    speed: Float[np.ndarray, " n"]
    bias: Float[np.ndarray, " n"]


def scores_of(problem: Problem, fit: Estimate, pairs: Pairs, epsilon: float) -> Scores:
    """Return the scores of (rival - arm)'theta + epsilon.

    Parameters
    ----------
    problem : Problem
    fit : Estimate
        From the rewards of the batch alone.
    pairs : Pairs
    epsilon : float
    """
    Z, n = fit.arms.coordinates, len(pairs.arms)
    tested, (z, speed, bias) = np.zeros(n, dtype=bool), np.zeros((3, n))
    sigma, freedom = _noise_of(problem, fit)
    if sigma is None:
        return Scores(tested, z, speed, bias)  # nothing to measure the noise by
    Y = Z[pairs.rivals] - Z[pairs.arms]
    some = np.flatnonzero(fit.information.spans(Y) & np.any(Y != 0.0, axis=1))
    gaps, width = np.zeros((2, n))
    gaps[some] = Y[some] @ fit.phi
    width[some] = np.sqrt(row_norms(Y[some], fit.information.inverse_root))
    if problem.misspecification > 0.0:
        bias[some] = _error(problem, fit).of_pairs(pairs.rivals[some], pairs.arms[some])
        own = _compare_means(problem, fit, pairs, gaps, width)
        bias[own] = 0.0
        some = np.union1d(some, own)
    score = (problem.sign * gaps[some] + epsilon - bias[some]) / (sigma * width[some])
    tested[some], speed[some] = True, 1.0 / width[some]
    z[some] = normal_scores(score, freedom) if problem.noise.sigma is None else score
    return Scores(tested, z, speed, bias)


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


def _error(problem: Problem, fit: Estimate) -> Bias:
    """Return the error that the linear model can make in the batch."""
    Z, counts = fit.arms.coordinates, fit.statistics.count
    found = Bias.of(problem.misspecification, problem.precisions, Z, counts, fit.information)
    assert found is not None
    return found


def _compare_means(
    problem: Problem,
    fit: Estimate,
    pairs: Pairs,
    gaps: Float[np.ndarray, " n"],
    width: Float[np.ndarray, " n"],
) -> Int[np.ndarray, " m"]:
    """Set gaps and widths of direct pairs to those of means in the batch; return which."""
    if pairs.direct is None:
        return np.empty(0, dtype=np.int64)
    w, mean = weights_of(fit.statistics.count, problem.precisions), fit.statistics.mean
    a, x = pairs.rivals, pairs.arms
    there = np.flatnonzero(pairs.direct & (w[a] > 0.0) & (w[x] > 0.0))
    a, x = a[there], x[there]
    gaps[there] = mean[a] - mean[x]
    width[there] = np.sqrt(1.0 / w[a] + 1.0 / w[x])
    return np.asarray(there)


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
