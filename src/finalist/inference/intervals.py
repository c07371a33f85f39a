"""What all pulls together say: intervals, the arm that leads, and how sure that is.

Half-widths and certainty hold for all directions and at all times at once; where sigma is unknown,
its own bound in the half-widths holds at each time alone. The error estimate is an estimate and no
more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from finalist.errors import EstimateError
from finalist.inference.bounds import likely_sigma, pooled_level, pooled_radius
from finalist.inference.information import row_norms
from finalist.inference.least_squares import Estimate
from finalist.inference.pooling import batch_arms
from finalist.problem import Problem

#: Draws of the parameter at once, how often at most, and the most of all draws times arms.
DRAWS, MAX_ROUNDS, MAX_WORK = 500, 8, 40_000_000
#: Pulls for each dimension that the start of intervals counts for.
STARTING = 4
#: Rivals that are so many standard errors behind are never drawn to be better.
FAR = 9.0


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
    confidence : float
    sigma : float or None
        If None, its upper 99 % bound from the residuals (`bounds.likely_sigma`).

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.inference.least_squares import estimate
    >>> from finalist.inference.statistics import Statistics
    >>> s = Statistics.empty(1)
    >>> s.add_many([0] * 100, [1.0] * 100)
    >>> fit = estimate(fl.Arms([[1.0]]), s)
    >>> pooled_widths(fit, np.array([[1.0]]), np.array([[4.0]]), 0.95, sigma=1.0).round(2)
    array([0.31])
    """
    if sigma is None:
        if fit.degrees_of_freedom < 1 or fit.residual_variance == 0.0:
            return np.full(len(directions), np.inf)
        sigma = likely_sigma(fit.residual_variance, fit.degrees_of_freedom)
    found = Ellipsoid.of(fit, start)
    if found is None or not sigma < math.inf:
        return np.full(len(directions), np.inf)
    return pooled_radius(found.log_det_ratio, 1.0 - confidence, sigma) * found.units(directions)


def leader(fit: Estimate, sign: int, among: Sequence[int]) -> int:
    """Return the best of some arms by the estimate; of arms not known at all, the first.

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.inference.least_squares import estimate
    >>> from finalist.inference.statistics import Statistics
    >>> s = Statistics.empty(3)
    >>> s.add_many([0, 1, 2], [1.0, 3.0, 2.0])
    >>> leader(estimate(fl.Arms.unstructured(3), s), 1, [0, 2])
    2
    """
    return leaders(fit, sign, among, 1)[0]


def leaders(fit: Estimate, sign: int, among: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the best of some arms by the estimate, the very best first (see `leader`)."""
    means = sign * fit.means()[list(among)]
    order = np.argsort(-np.where(np.isnan(means), -np.inf, means), kind="stable")
    return tuple(int(among[i]) for i in order[:count])


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

    Y, gaps, widths = _rivals(fit, winner, sign, epsilon)
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


def certainty(
    fit: Estimate,
    winner: int,
    *,
    sign: int,
    sigma: float | None,
    start: Float[np.ndarray, "r r"] | None,
    epsilon: float = 0.0,
    bias: Float[np.ndarray, " K"] | None = None,
) -> float | None:
    """Return the largest confidence with which no arm is better than the winner, by epsilon.

    At this confidence the intervals of `pooled_widths` just exclude it, for all rivals; it holds
    however the pulls and the winner were chosen and whenever one looks (`bounds.pooled_level`).

    Parameters
    ----------
    fit, winner, sign, sigma, epsilon
        As in `error_estimate`.
    start : (r, r) array or None
        As in `pooled_widths`.
    bias : (K,) array, optional
        How far the difference of the winner and each arm may be from the linear model.

    Returns
    -------
    float or None
        0 if the rewards give none; None when there are no such intervals, or sigma is unknown.

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.inference.least_squares import estimate
    >>> from finalist.inference.statistics import Statistics
    >>> s = Statistics.empty(2)
    >>> s.add_many([0] * 50 + [1] * 50, [1.0] * 50 + [0.0] * 50)
    >>> arms = fl.Arms.unstructured(2)
    >>> start = start_of(Problem(arms, noise=fl.Gaussian(1.0)))
    >>> round(certainty(estimate(arms, s), 0, sign=1, sigma=1.0, start=start), 4)
    0.9999
    """
    found = None if sigma is None else Ellipsoid.of(fit, start)
    if sigma is None or found is None:
        return None
    Y, gaps, _ = _rivals(fit, winner, sign, epsilon)
    if len(gaps) == 0:
        return 1.0
    if bias is not None:
        gaps = gaps - bias[_others(fit, winner)]
    z = float(_standard_errors(gaps, sigma, found.units(Y)).min())
    return min(1.0 - pooled_level(found.log_det_ratio, z), math.nextafter(1.0, 0.0))


def _standard_errors(
    gaps: Float[np.ndarray, " m"], sigma: float, widths: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    """Return how many standard errors gaps are; infinitely many are as good as very many."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.asarray(gaps / (sigma * widths))


def _rivals(
    fit: Estimate, winner: int, sign: int, epsilon: float
) -> tuple[Float[np.ndarray, "M r"], Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
    """Return the winner minus each other arm, how far that is above -epsilon, and its width."""
    Z = fit.arms.coordinates
    Y = sign * (Z[winner] - Z[_others(fit, winner)])
    return Y, fit.gaps(Y) + epsilon, fit.widths(Y)


def _others(fit: Estimate, winner: int) -> Bool[np.ndarray, " K"]:
    """Return who could win instead."""
    others = fit.arms.candidate.copy()
    others[winner] = False
    return others


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
