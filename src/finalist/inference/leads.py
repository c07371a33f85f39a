"""Intervals for the means of all arms, and for how far an arm is ahead of each other.

They hold at all times at once and are as sharp as single directions allow (`mixtures`). Where sigma
is unknown, its own bound holds at each time alone.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from finalist.inference.draws import others_of, rivals
from finalist.inference.intervals import mixture
from finalist.inference.least_squares import Estimate
from finalist.inference.mixtures import Batches


def mean_widths(
    fit: Estimate,
    start: Float[np.ndarray, "r r"] | None,
    confidence: float,
    sigma: float | None,
    bets: Batches | None,
) -> Float[np.ndarray, " K"]:
    """Return half-widths for the means of all arms at all times; infinite where there is none.

    Parameters
    ----------
    fit, start, sigma, bets
        As in `intervals.mixture`.
    confidence : float

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.inference.intervals import start_of
    >>> from finalist.inference.pooling import BatchSums, Pooled
    >>> from finalist.inference.statistics import Statistics
    >>> problem = fl.Problem(fl.Arms.unstructured(9), noise=fl.Gaussian(1.0))
    >>> pooled, batch = Pooled(problem), Statistics.of_batch([20] * 9, [0.0] * 9)
    >>> pooled.add(batch)
    >>> fit, start = pooled.estimate(), start_of(problem)
    >>> bets = Batches(problem, [BatchSums.of(batch)])
    >>> mean_widths(fit, start, 0.95, 1.0, bets)[0].round(2)
    np.float64(0.89)
    >>> mean_widths(fit, start, 0.95, 1.0, None)[0].round(2)  # the ellipsoid alone
    np.float64(1.15)
    """
    Z = fit.arms.coordinates
    found = mixture(fit, Z, start, sigma, bets, len(Z))
    if found is None:
        return np.full(len(Z), np.inf)
    below, above = found.reach(1.0 - confidence)
    return np.asarray(np.maximum(below, above))


@dataclass(frozen=True, eq=False)
class Leads:
    """By how much an arm is better than each other candidate; NaN where that is not known.

    Attributes
    ----------
    estimate, low, high : (K,) arrays
        Estimates and the ends of their intervals.
    """

    estimate: Float[np.ndarray, " K"]
    low: Float[np.ndarray, " K"]
    high: Float[np.ndarray, " K"]


def leads(
    fit: Estimate,
    arm: int,
    start: Float[np.ndarray, "r r"] | None,
    confidence: float,
    sigma: float | None,
    bets: Batches | None,
    *,
    sign: int,
    won: bool,
) -> Leads:
    """Return how far an arm is ahead of each other candidate, at all times at once.

    Parameters
    ----------
    fit, start, sigma, bets
        As in `intervals.mixture`.
    arm : int
        Of the candidates.
    confidence : float
        That of the intervals, beside the confidence that the winner is the best.
    sign : 1 or -1
        Whether large rewards are good.
    won : bool
        Whether the arm is the winner of a strategy that promises the best, with its confidence.

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.inference.intervals import start_of
    >>> from finalist.inference.pooling import BatchSums, Pooled
    >>> from finalist.inference.statistics import Statistics
    >>> problem = fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0))
    >>> pooled, batch = Pooled(problem), Statistics.of_batch([50] * 3, [100.0, 0.0, 50.0])
    >>> pooled.add(batch)
    >>> fit, start = pooled.estimate(), start_of(problem)
    >>> bets = Batches(problem, [BatchSums.of(batch)])
    >>> found = leads(fit, 0, start, 0.95, 1.0, bets, sign=1, won=True)
    >>> found.low.round(2), found.high.round(2)
    (array([ nan, 1.28, 0.28]), array([ nan, 2.72, 1.72]))
    """
    others = others_of(fit, arm)
    Y, gaps, _ = rivals(fit, arm, sign, 0.0)
    estimate, low, high = (np.full(len(others), np.nan) for _ in range(3))
    estimate[others] = gaps
    allowed = bets if bets is None or won else bets.left_out()
    found = mixture(fit, Y, start, sigma, allowed, len(Y))
    if found is not None:
        below, above = found.reach(1.0 - confidence)
        known = np.isfinite(below) & np.isfinite(above)
        low[others] = np.where(known, gaps - below, np.nan)
        high[others] = np.where(known, gaps + above, np.nan)
    return Leads(estimate, low, high)
