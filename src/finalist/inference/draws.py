"""How likely it is that another arm is better, by draws of the parameter: an estimate, no more."""

import math

import numpy as np
from jaxtyping import Bool, Float

from finalist.errors import EstimateError
from finalist.inference.least_squares import Estimate

#: Draws of the parameter at once, how often at most, and the most of all draws times arms.
DRAWS, MAX_ROUNDS, MAX_WORK = 500, 8, 40_000_000
#: Rivals that are so many standard errors behind are never drawn to be better.
FAR = 9.0


def error_estimate(
    fit: Estimate, winner: int, *, sign: int, sigma: float | None, epsilon: float = 0.0
) -> float | None:
    """Estimate the probability that another arm is better, by more than epsilon.

    It is the share of draws of the parameter from N(estimate, sigma^2 A^-1), what a flat prior
    makes of the rewards, in which some arm is better. No guarantee: the prior is a convention,
    and rewards that chose the pulls also chose the winner. If sigma is unknown the draws have
    the t distribution that the residuals give. The draws are always the same.

    Parameters
    ----------
    fit : Estimate
        From all pulls.
    winner : int
    sign : 1 or -1
        Whether large rewards are good.
    sigma : float or None
    epsilon : float

    Returns
    -------
    float or None
        None when some difference, or the noise, cannot be estimated. It lies between the
        probabilities for the strongest rival alone and for the sum of all, which are exact.

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.inference.least_squares import estimate
    >>> from finalist.inference.statistics import Statistics
    >>> s = Statistics.empty(2)
    >>> s.add_many([0, 1], [1.0, 0.0])
    >>> fit = estimate(fl.Arms.unstructured(2), s)
    >>> round(error_estimate(fit, 0, sign=1, sigma=1.0), 4)  # Phi(-1 / sqrt(2))
    0.2398
    """
    from scipy.special import ndtr, stdtr

    Y, gaps, widths = rivals(fit, winner, sign, epsilon)
    if len(Y) == 0:
        return 0.0
    freedom = 0
    if sigma is None:
        try:
            freedom, sigma = fit.degrees_of_freedom, math.sqrt(fit.residual_variance)
        except EstimateError:
            return None
    if sigma == 0.0 or not np.isfinite(widths).all():
        return None
    z = _standard_errors(gaps, sigma, widths)
    if np.isnan(z).any():  # 0 / 0: rounding leaves nothing to tell these arms apart by
        return None
    tails = ndtr(-z) if freedom == 0 else stdtr(freedom, -z)
    near = z < FAR if freedom == 0 else np.ones(len(z), dtype=bool)
    W = Y[near] @ fit.information.inverse_root.T / widths[near, None]
    share = _share_below(W, z[near], freedom)
    return float(np.clip(share, tails.max(), min(float(tails.sum()), 1.0)))


def rivals(
    fit: Estimate, winner: int, sign: int, epsilon: float
) -> tuple[Float[np.ndarray, "M r"], Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
    """Return the winner minus each other arm, how far that is above -epsilon, and its width."""
    Z = fit.arms.coordinates
    Y = sign * (Z[winner] - Z[others_of(fit, winner)])
    return Y, fit.gaps(Y) + epsilon, fit.widths(Y)


def others_of(fit: Estimate, winner: int) -> Bool[np.ndarray, " K"]:
    """Return who could win instead."""
    others = fit.arms.candidate.copy()
    others[winner] = False
    return others


def _standard_errors(
    gaps: Float[np.ndarray, " m"], sigma: float, widths: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    """Return how many standard errors gaps are; infinitely many are as good as very many."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.asarray(gaps / (sigma * widths))


def _share_below(W: Float[np.ndarray, "m s"], z: Float[np.ndarray, " m"], freedom: int) -> float:
    """Return how often some z_i + w_i'g is negative, for standard normal g or t with freedom."""
    if len(W) == 0:
        return 0.0
    rounds = min(max(MAX_WORK // (len(W) * DRAWS), 1), MAX_ROUNDS)
    rng, below = np.random.default_rng(0), 0
    for _ in range(rounds):
        G = rng.standard_normal((DRAWS, W.shape[1]))
        if freedom > 0:
            G *= np.sqrt(freedom / rng.chisquare(freedom, DRAWS))[:, None]
        below += int((G @ W.T + z < 0.0).any(axis=1).sum())
    return below / (rounds * DRAWS)
