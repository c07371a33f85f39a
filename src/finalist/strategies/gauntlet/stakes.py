"""How the next bets are placed: drifts and weights from the past and the counts of the batch.

Any choice from the past keeps the guarantee (`bets`), so nothing here is given a batch's rewards.
"""

from dataclasses import dataclass

import numpy as np

from finalist.inference.least_squares import Estimate, weights_of
from finalist.inference.pooling import ShiftedEstimate
from finalist.shapes import Float, Int
from finalist.strategies.gauntlet.contrasts import Contrasts
from finalist.strategies.gauntlet.past import Past

#: Quantiles by which the expert is represented.
EXPERT: Float[np.ndarray, " q"] = (np.arange(9) + 0.5) / 9.0


@dataclass(frozen=True, eq=False)
class Stakes:
    """What is expected of the scores of n pairs.

    Attributes
    ----------
    speed : (n,) array
        The drift of the score for a gap of one sigma.
    gap, variance : (n,) arrays
        What earlier pulls say of the gap, in units of sigma, and how uncertainly.
    """

    speed: Float[np.ndarray, " n"]
    gap: Float[np.ndarray, " n"]
    variance: Float[np.ndarray, " n"]

    def among(
        self, claims: int, at: Int[np.ndarray, " n"]
    ) -> tuple[
        Float[np.ndarray, " K"],
        tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]],
        Float[np.ndarray, "K q"],
    ]:
        """Return what `Bets.place` takes beside scores, if these claims of all are bet against.

        Speeds, what the past says (S and V), and the drifts that the expert expects.
        """
        gaps, variances, speed = np.zeros(claims), np.ones(claims), np.ones(claims)
        gaps[at], variances[at], speed[at] = self.gap, self.variance, self.speed
        expert = expected_drifts(gaps * speed, np.sqrt(variances) * speed)
        return speed, (gaps / variances, 1.0 / variances), expert

    def before(
        self, claims: int, at: Int[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]]:
        """Return what the past says, S and V, for all claims of which these are bet against."""
        S, V = np.zeros((2, claims))
        S[at], V[at] = self.gap / self.variance, 1.0 / self.variance
        return S, V


def stakes_of(past: Past, contrasts: Contrasts, epsilon: float) -> Stakes:
    """Return what all earlier pulls suggest for the pairs that a batch tests, in their order."""
    fit, some = past.estimate(), contrasts.tested
    Y = contrasts.Y[some]
    difference, variance = Y @ fit.phi, fit.information.variances(Y)
    if past.problem.rules.forgiving and contrasts.pairs.direct is not None:
        _take_own_means(past, fit, contrasts, some, difference, variance)
    expected = past.problem.sign * difference + epsilon - contrasts.bias[some]
    return Stakes(1.0 / contrasts.width[some], expected / past.scale(fit), variance)


def _take_own_means(
    past: Past,
    fit: Estimate,
    contrasts: Contrasts,
    some: Int[np.ndarray, " n"],
    difference: Float[np.ndarray, " n"],
    variance: Float[np.ndarray, " n"],
) -> None:
    """Take what is expected of pairs that are compared directly from their own rewards."""
    pairs = contrasts.pairs
    assert pairs.direct is not None
    a, x = pairs.rivals[some], pairs.arms[some]
    if isinstance(fit, ShiftedEstimate):
        apart, spread = fit.effects.differences(a, x)
        linked = pairs.direct[some] & np.isfinite(spread)
        difference[linked], variance[linked] = apart[linked], spread[linked]
        return
    w, mean = weights_of(fit.statistics.count, past.problem.precisions), fit.statistics.mean
    own = pairs.direct[some] & (w[a] > 0.0) & (w[x] > 0.0)
    difference[own] = (mean[a] - mean[x])[own]
    variance[own] = 1.0 / w[a[own]] + 1.0 / w[x[own]]


def expected_drifts(
    mean: Float[np.ndarray, " K"], spread: Float[np.ndarray, " K"]
) -> Float[np.ndarray, "K q"]:
    """Return quantiles of N(mean, spread^2) truncated to positive values, nine for each arm.

    Parameters
    ----------
    mean, spread : (K,) arrays
        What earlier batches say of the drift of the next score, and how uncertainly.

    Examples
    --------
    >>> expected_drifts(np.array([0.0]), np.array([1.0]))[0, [0, 4, 8]].round(4)
    array([0.0697, 0.6745, 1.9145])
    """
    from scipy.special import log_ndtr, ndtri_exp

    # P(X > x | X > 0) = 1 - q, by tails: exact also where almost nothing is positive.
    tail = log_ndtr(mean / spread)[:, None] + np.log1p(-EXPERT)
    return np.asarray(np.maximum(mean[:, None] - spread[:, None] * ndtri_exp(tail), 0.0))
