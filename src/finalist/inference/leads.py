"""Intervals for the means of all arms, and for how far an arm is ahead of each other or behind.

They hold at all times at once and are as sharp as single directions allow (`mixtures`). Where sigma
is unknown, its own bound holds at each time alone.

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
>>> mean_widths(fit, start, 0.95, 1.0, bets).round(2)
array([0.52, 0.52, 0.52])
>>> found = leads(fit, 0, start, 0.95, 1.0, bets, sign=1, won=True)
>>> found.low.round(2), found.high.round(2)
(array([ nan, 1.28, 0.28]), array([ nan, 2.72, 1.72]))
>>> words = {"sign": 1, "sigma": 1.0, "start": start, "confidence": 0.95, "bets": bets}
>>> ahead_at_least(fit, 0, **words).round(2)
array([ nan, 1.26, 0.26])
>>> [round(behind_at_most(fit, arm, **words), 2) for arm in range(3)]
[0.0, 2.72, 1.72]
"""

import math
from dataclasses import dataclass
from typing import NotRequired, TypedDict, Unpack

import numpy as np

from finalist.inference.draws import others_of, rivals
from finalist.inference.intervals import mixture
from finalist.inference.least_squares import Estimate
from finalist.inference.mixtures import Batches
from finalist.shapes import Float


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
    named: bool = False,
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
    named : bool
        Whether any arm may be named, as the one in front of a study that goes on: the numbers that
        were fixed in advance are then the differences of all pairs (see `ahead_at_least`).
    """
    others = others_of(fit, arm)
    Y, gaps, _ = rivals(fit, arm, sign, 0.0)
    estimate, low, high = (np.full(len(others), np.nan) for _ in range(3))
    estimate[others] = gaps
    allowed = bets if bets is None or won or named else bets.left_out()
    count = len(Y) * (len(Y) + 1) // 2 if named else len(Y)
    found = mixture(fit, Y, start, sigma, allowed, count)
    if found is not None:
        below, above = found.reach(1.0 - confidence)
        known = np.isfinite(below) & np.isfinite(above)
        low[others] = np.where(known, gaps - below, np.nan)
        high[others] = np.where(known, gaps + above, np.nan)
    return Leads(estimate, low, high)


class Asked(TypedDict):
    """What bounds of one arm's leads are made of, as `intervals.certainty` says."""

    sign: int
    sigma: float | None
    start: Float[np.ndarray, "r r"] | None
    confidence: float
    bias: NotRequired[Float[np.ndarray, " K"] | None]
    bets: NotRequired[Batches | None]


def behind_at_most(fit: Estimate, arm: int, **asked: Unpack[Asked]) -> float | None:
    """Return how far an arm is behind the best at most, at all times and for all arms at once.

    It is the epsilon at which `intervals.certainty` is the confidence, and has the same proof: if
    the best x* is further ahead, the lead of the arm over x* is below its interval in the mixture
    for the directions x* - x. That has probability at most 1 - confidence, whichever arm is named
    and whenever. None when there is no such bound.
    """
    low = _lowest(fit, arm, int(others_of(fit, arm).sum()), **asked)
    most = math.inf if low is None else float((-low).max(initial=0.0))
    return most if math.isfinite(most) else None


def ahead_at_least(fit: Estimate, arm: int, **asked: Unpack[Asked]) -> Float[np.ndarray, " K"]:
    """Return how far an arm is ahead of each other candidate at least; NaN where nothing is known.

    At all times and for all arms at once: the numbers that were fixed in advance are the
    differences of all pairs of candidates (y and -y have the same bet), and those of one arm are
    read. So any arm may be named.
    """
    others = others_of(fit, arm)
    rest = int(others.sum())
    low, least = _lowest(fit, arm, rest * (rest + 1) // 2, **asked), np.full(len(others), np.nan)
    if low is not None:
        least[others] = np.where(np.isfinite(low), low, np.nan)
    return least


def _lowest(
    fit: Estimate, arm: int, count: int, **asked: Unpack[Asked]
) -> Float[np.ndarray, " m"] | None:
    """Return the low ends of the leads over all rivals, of `count` directions fixed in advance."""
    Y, gaps, _ = rivals(fit, arm, asked["sign"], 0.0)
    found = mixture(fit, Y, asked["start"], asked["sigma"], asked.get("bets"), count)
    if found is None:
        return None
    bias = asked.get("bias")
    off = 0.0 if bias is None else bias[others_of(fit, arm)]
    return np.asarray(gaps - found.reach(1.0 - asked["confidence"])[0] - off)
