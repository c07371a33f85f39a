"""How likely it is that another arm is better, by draws of the parameter: an estimate, no more."""

import numpy as np

from finalist.inference.belief import Belief
from finalist.inference.least_squares import Estimate
from finalist.shapes import Bool, Float, Int

#: Draws of the parameter at once, how often at most, and the most of all draws times arms.
DRAWS, MAX_ROUNDS, MAX_WORK = 500, 8, 40_000_000
#: Rivals that are so many standard errors behind are never drawn to be better.
FAR = 9.0


def error_estimate(
    fit: Estimate, winner: int, *, sign: int, sigma: float | None, epsilon: float = 0.0
) -> float | None:
    """Estimate the probability that another arm is better, by more than epsilon.

    It is the share of draws of the parameter from its posterior in which some arm is better, under
    a prior that takes estimates that do not stand out for partly luck (`belief`). No guarantee:
    the prior is a convention, which is calibrated on average over many kinds of truths and not
    under each. If sigma is unknown the draws have the t distribution that the residuals give. The
    draws are always the same.

    Parameters
    ----------
    fit : Estimate
        From all pulls.
    sign : 1 or -1
        Whether large rewards are good.

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
    >>> fit = estimate(fl.Arms.unstructured(2), Statistics.of_batch([1, 1], [1.0, 0.0]))
    >>> round(error_estimate(fit, 0, sign=1, sigma=1.0), 4)  # Phi(-1 / sqrt(2))
    0.2398
    """
    from scipy.special import ndtr, stdtr

    Y, gaps, widths = rivals(fit, winner, sign, epsilon)
    if len(Y) == 0:
        return 0.0
    if not np.isfinite(widths).all():
        return None
    belief = Belief.of(fit, sigma)
    if belief is None:
        return _beyond_numbers(gaps, sigma, widths)
    others = np.flatnonzero(others_of(fit, winner))
    leads, spreads = belief.gaps(winner, others)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        z = (sign * leads + epsilon / belief.sigma) / spreads
    if np.isnan(z).any():  # 0 / 0: rounding leaves nothing to tell these arms apart by
        return None
    tails = ndtr(-z) if belief.freedom == 0 else stdtr(belief.freedom, -z)
    tails = belief.weights @ tails
    near = z.min(axis=0) < FAR if belief.freedom == 0 else np.ones(len(others), dtype=bool)
    share = _share_better(belief, winner, others[near], sign, epsilon)
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


def _beyond_numbers(
    gaps: Float[np.ndarray, " m"], sigma: float | None, widths: Float[np.ndarray, " m"]
) -> float | None:
    """Return 0 or 1 where estimates in units of sigma are no numbers any more; None elsewhere."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        z = gaps / ((0.0 if sigma is None else sigma) * widths)
    return float((z < 0.0).any()) if sigma is not None and np.isinf(z).all() else None


def _share_better(
    belief: Belief, winner: int, others: Int[np.ndarray, " m"], sign: int, epsilon: float
) -> float:
    """Return how often, in draws, some of the others are better than the winner by epsilon."""
    if len(others) == 0:
        return 0.0
    rounds = min(max(MAX_WORK // (len(others) * DRAWS), 1), MAX_ROUNDS)
    rng, better = np.random.default_rng(0), 0
    Y = sign * (belief.axes[winner] - belief.axes[others])
    for _ in range(rounds):
        drawn, _ = belief.draw(DRAWS, rng)
        better += int((drawn @ Y.T + epsilon / belief.sigma < 0.0).any(axis=1).sum())
    return better / (rounds * DRAWS)
