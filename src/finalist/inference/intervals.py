"""What all pulls together say: intervals, the arm that leads, and how sure that is.

Half-widths and certainty hold for all directions and at all times at once; where sigma is unknown,
its own bound in the half-widths holds at each time alone.

Examples
--------
>>> import finalist as fl
>>> from finalist.inference.least_squares import estimate
>>> arms = fl.Arms.unstructured(3)
>>> fit = estimate(arms, Statistics.of_batch([50] * 3, [150.0, 50.0, 100.0]))
>>> start = start_of(Problem(arms, noise=fl.Gaussian(1.0)))
>>> pooled_widths(fit, arms.coordinates, start, 0.95, sigma=1.0).round(2)
array([0.55, 0.55, 0.55])
>>> leader(fit, 1, [1, 2])  # of arms 1 and 2
2
>>> round(certainty(fit, 0, sign=1, sigma=1.0, start=start), 4)
0.9995
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from finalist.inference.bounds import likely_sigma, pooled_radius
from finalist.inference.draws import error_estimate as error_estimate
from finalist.inference.draws import others_of, rivals
from finalist.inference.information import row_norms
from finalist.inference.least_squares import Estimate
from finalist.inference.mixtures import FIRST, SHARE, Batches, Mixture
from finalist.inference.pooling import batch_arms
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float, Int

#: Means that differ in no more than these decimals of the largest are tied; and the decimals of
#: sums that a lot is drawn from, so that it is the same on all machines.
TIED, LOT = 12, 6
#: Pulls for each dimension that the start of intervals counts for.
STARTING = 4


def start_of(problem: Problem) -> Float[np.ndarray, "r r"]:
    """Return A_0 of `bounds.pooled_radius`, from the question alone.

    It is what `STARTING` pulls for each dimension would tell, spread evenly over the arms that can
    be measured: around as many pulls intervals are narrowest. Shifts between batches leave what
    arms differ by.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms.unstructured(3)  # 12 pulls in all, 4 of each
    >>> Z = arms.coordinates
    >>> np.allclose(start_of(Problem(arms, noise=fl.Gaussian(1.0))), 4 * Z.T @ Z)
    True
    """
    arms = batch_arms(problem)
    usable = arms.measurable
    Z, w = arms.coordinates[usable], np.ones(int(usable.sum()))
    if problem.precisions is not None:
        w = problem.precisions[usable]
    if problem.batch_intercept:
        Z = Z - (w @ Z) / w.sum()
    return np.asarray((Z * w[:, None]).T @ Z * (STARTING * arms.rank / len(Z)))


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """Where the parameter is, at all times at once (`bounds.pooled_radius`).

    Attributes
    ----------
    fit : Estimate
        From all pulls.
    root : (s, r) array
        R with R'R = A^-1 + A^-1 A_0 A^-1.
    log_det_ratio : float
        log(det(A + A_0) / det A_0).
    """

    fit: Estimate
    root: Float[np.ndarray, "s r"]
    log_det_ratio: float

    @classmethod
    def of(cls, fit: Estimate, start: Float[np.ndarray, "r r"] | None) -> "Ellipsoid | None":
        """Return it for A_0, fixed in advance; None if there is none, or A is not regular yet."""
        if start is None or fit.information.rank < fit.dimension:
            return None
        R = fit.information.inverse_root
        if len(R) == 0:
            return None  # nothing can be told, as of one arm whose batches are shifted
        with np.errstate(over="ignore", invalid="ignore"):
            inner = R @ start @ R.T  # A_0 in coordinates in which A is the identity
        if not np.isfinite(inner).all():
            return None
        sizes = np.linalg.eigvalsh(inner)
        if not sizes[0] > 0.0:
            return None
        ratio = float(np.log1p(1.0 / sizes).sum())
        factor = np.linalg.cholesky(np.eye(len(R)) + inner)
        return cls(fit, np.asarray(factor.T @ R), ratio) if ratio < math.inf else None

    def units(self, directions: Float[np.ndarray, "M r"]) -> Float[np.ndarray, " M"]:
        """Return what the radius is multiplied by, infinity where nothing is known."""
        values = np.sqrt(row_norms(directions, self.root))
        known = self.fit.information.spans(directions) & ~np.isnan(values)
        return np.where(known, values, np.inf)


def pooled_widths(
    fit: Estimate,
    directions: Float[np.ndarray, "M r"],
    start: Float[np.ndarray, "r r"] | None,
    confidence: float,
    sigma: float | None,
) -> Float[np.ndarray, " M"]:
    """Return half-widths for y'theta (`bounds.pooled_radius`); infinite where nothing is known.

    Parameters
    ----------
    fit : Estimate
        From all pulls.
    directions : (M, r) array
        In span coordinates.
    start : (r, r) array or None
        A_0, fixed in advance (`start_of`); None if the arms were not.
    sigma : float or None
        If None, its upper 99 % bound from the residuals (`bounds.likely_sigma`).
    """
    likely = _likely(fit, sigma)
    found = None if likely is None else Ellipsoid.of(fit, start)
    if likely is None or found is None:
        return np.full(len(directions), np.inf)
    return pooled_radius(found.log_det_ratio, 1.0 - confidence, likely) * found.units(directions)


def _likely(fit: Estimate, sigma: float | None) -> float | None:
    """Return sigma, or its upper 99 % bound from the residuals; None if there is no such number."""
    if sigma is None:
        if fit.degrees_of_freedom < 1 or fit.residual_variance == 0.0:
            return None
        sigma = likely_sigma(fit.residual_variance, fit.degrees_of_freedom)
    return sigma if sigma < math.inf else None


def mixture(
    fit: Estimate,
    directions: Float[np.ndarray, "M r"],
    start: Float[np.ndarray, "r r"] | None,
    sigma: float | None,
    bets: Batches | None,
    count: int,
) -> Mixture | None:
    """Return F of `mixtures` for some of the directions that were fixed in advance.

    Parameters
    ----------
    fit, directions, start, sigma
        As in `pooled_widths`.
    bets : Batches or None
        None where the question itself allows no bets: the ellipsoid has all of the wealth.
    count : int
        How many directions were fixed in advance.

    Returns
    -------
    Mixture or None
        None where there are no intervals.
    """
    likely = _likely(fit, sigma)
    found = None if likely is None else Ellipsoid.of(fit, start)
    if likely is None or found is None or start is None:
        return None
    units = found.units(directions)
    none, cost = np.zeros(len(units)), np.full(len(units), found.log_det_ratio / 2.0)
    if bets is None:
        return Mixture(none[None], likely * units[None], cost[None])
    cost, made = cost - math.log(SHARE), bets.about(fit, directions)
    if made is None:
        return Mixture(none[None], likely * units[None], cost[None])
    V, offset = made
    R = fit.information.inverse_root
    inner = np.linalg.solve(np.linalg.cholesky(R @ start @ R.T), R)  # of size y'A_0^-1 y
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        v = FIRST / row_norms(directions, inner)
        unit, price = np.where(V > 0.0, np.sqrt(V + v) / V, np.inf), np.log1p(V / v) / 2.0
    # What all pulls cannot tell, as levels where batches are shifted, no batch can.
    sound = np.isfinite(units) & np.isfinite(price) & np.isfinite(offset) & ~np.isnan(unit)
    price = np.where(sound, price, np.inf) + math.log(max(count, 1) / (1.0 - SHARE))
    return Mixture(
        np.stack([none, np.where(sound, offset, 0.0)]),
        likely * np.stack([units, np.where(sound, unit, np.inf)]),
        np.stack([cost, price]),
    )


def leader(fit: Estimate, sign: int, among: Sequence[int]) -> int:
    """Return the best of some arms by the estimate; of arms not known at all, the first."""
    return leaders(fit, sign, among, 1)[0]


def leaders(fit: Estimate, sign: int, among: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the best of some arms by the estimate, the very best first (see `leader`).

    Yes/no results often tie. The first row is not better for that: a lot decides, drawn from the
    results themselves, so that it is the same whenever one looks.
    """
    means = sign * fit.means()[list(among)]
    known = np.isfinite(means)
    size = float(np.abs(means[known]).max(initial=0.0)) or 1.0
    values = np.where(known, np.round(means / size, TIED), -np.inf)
    lot = np.where(known, _lot(fit.statistics)[list(among)], np.arange(len(means)))
    return tuple(int(among[i]) for i in np.lexsort((lot, -values))[:count])


def _lot(results: Statistics) -> Int[np.ndarray, " K"]:
    """Return an order of the arms that results decide, to break ties by."""
    sums = np.round(results.total, LOT) + 0.0  # -0 is 0
    seed = crc32(results.count.tobytes() + sums.tobytes())
    return np.random.default_rng(seed).permutation(len(results.count))


def certainty(
    fit: Estimate,
    winner: int,
    *,
    sign: int,
    sigma: float | None,
    start: Float[np.ndarray, "r r"] | None,
    epsilon: float = 0.0,
    bias: Float[np.ndarray, " K"] | None = None,
    bets: Batches | None = None,
) -> float | None:
    """Return the largest confidence with which no arm is better than the winner, by epsilon.

    At this confidence the intervals of its leads just exclude it, for all rivals. It holds however
    the pulls and the winner were chosen and whenever one looks: if x* is better by more than
    epsilon, the lead t over it is below -epsilon; to be certain at level q needs F(-epsilon) >=
    1/q for this pair, and F falling there; it is convex, so that F(t) >= 1/q. By the proposition
    of `mixtures` for the directions x* - x that has probability at most q.

    Parameters
    ----------
    fit, winner, sign, sigma, epsilon
        As in `error_estimate`.
    start : (r, r) array or None
        As in `pooled_widths`.
    bias : (K,) array, optional
        How far the difference of the winner and each arm may be from the linear model.
    bets : Batches, optional
        As in `mixture`.

    Returns
    -------
    float or None
        0 if the rewards give none; None when there are no such intervals, or sigma is unknown.
    """
    Y, gaps, _ = rivals(fit, winner, sign, epsilon)
    found = None if sigma is None else mixture(fit, Y, start, sigma, bets, len(Y))
    if found is None:
        return None
    if len(gaps) == 0:
        return 1.0
    if bias is not None:
        gaps = gaps - bias[others_of(fit, winner)]
    return min(1.0 - float(found.level(-gaps).max()), math.nextafter(1.0, 0.0))
