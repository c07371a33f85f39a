"""What a model that is not quite linear can feign, and how the gauntlet allows for it.

The mean of arm i is z_i'theta + b_i with |b_i| <= c. In a batch with weights w_i on the pulled
arms, least squares estimates the difference of a and x as sum_i H_i mean_i, H_i = w_i y'A^+ z_i
with y = z_a - z_x. Its expectation differs from the true difference by
sum_i (H_i - 1{i = a} + 1{i = x}) b_i, so by at most c sum_i |H_i - 1{i = a} + 1{i = x}|. That is
taken off before the test, which is then valid whatever the b_i are. It does not become smaller
with more pulls.

The difference of the two arms' own means in the batch has no such error, but a larger variance.
For each pair the better of the two is taken, by what earlier batches say: a choice from the past.
"""

from dataclasses import dataclass

import numpy as np

from finalist.inference.information import Information, row_norms
from finalist.inference.least_squares import weights_of
from finalist.shapes import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class Bias:
    """The error that the linear model can make in one batch.

    Attributes
    ----------
    size : float
        c, how far a mean may be from the linear model.
    W : (K, s) array
        The arms in coordinates in which the inner product is that of A^+.
    weights : (K,) array
        What the pulls of each arm count.
    """

    size: float
    W: Float[np.ndarray, "K s"]
    weights: Float[np.ndarray, " K"]

    @classmethod
    def of(
        cls,
        size: float,
        precisions: Float[np.ndarray, " K"] | None,
        Z: Float[np.ndarray, "K r"],
        counts: Int[np.ndarray, " K"],
        info: Information,
    ) -> "Bias | None":
        """Return the error that is possible in a batch; None if the model is linear."""
        if size == 0.0:
            return None
        return cls(size, Z @ info.inverse_root.T, weights_of(counts, precisions))

    def _influence(self, arms: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n m"]:
        """Return for each arm w_i z'A^+ z_i - 1{i is the arm}, over the pulled arms i."""
        pulled = self.weights.nonzero()[0]
        H = (self.W[arms] @ self.W[pulled].T) * self.weights[pulled]
        return np.asarray(H - (arms[:, None] == pulled))

    def between(
        self, rivals: Int[np.ndarray, " a"], arms: Int[np.ndarray, " n"]
    ) -> Float[np.ndarray, "a n"]:
        """Return how far the estimated differences may be off, each rival minus each arm."""
        from scipy.spatial.distance import cdist

        apart = cdist(self._influence(rivals), self._influence(arms), "cityblock")
        never = self.weights == 0.0  # the means of such arms are not among those of the batch
        return np.asarray(self.size * (apart + never[rivals][:, None] + never[arms]))

    def of_pairs(
        self, rivals: Int[np.ndarray, " n"], arms: Int[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """Return the same for pairs."""
        apart = np.abs(self._influence(rivals) - self._influence(arms)).sum(axis=1)
        never = self.weights == 0.0
        return np.asarray(self.size * (apart + never[rivals] + never[arms]))

    def of_arms(self, arms: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return how far the estimated mean of each arm may be off."""
        never = self.weights == 0.0
        return np.asarray(self.size * (np.abs(self._influence(arms)).sum(axis=1) + never[arms]))

    def direct_errors(self, rivals: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return the standard errors of differences of means in the batch, for a sigma of 1.

        The indices are broadcast; infinite for an arm that is not pulled.
        """
        with np.errstate(divide="ignore"):
            variance = 1.0 / self.weights
        return np.asarray(np.sqrt(variance[rivals] + variance[arms]))

    def direct_scores(
        self,
        means: Float[np.ndarray, " K"],
        rivals: Int[np.ndarray, " a"],
        arms: Int[np.ndarray, " n"],
    ) -> Float[np.ndarray, "a n"]:
        """Return what scores to expect of them; minus infinity where there is none."""
        widths = self.direct_errors(rivals[:, None], arms)
        possible = np.isfinite(widths) & (rivals[:, None] != arms)
        gaps = means[rivals][:, None] - means[arms]
        return np.where(possible, gaps / widths, -np.inf)

    def directly(
        self,
        Z: Float[np.ndarray, "K r"],
        means: Float[np.ndarray, " K"],
        rivals: Int[np.ndarray, " K"],
        info: Information,
    ) -> Bool[np.ndarray, " K"]:
        """Return for which arms the difference of means is expected to say more than the model."""
        direct = np.zeros(len(rivals), dtype=bool)
        some = np.flatnonzero(rivals >= 0)
        against = rivals[some]
        Y = Z[against] - Z[some]
        gaps, width = means[against] - means[some], np.sqrt(row_norms(Y, info.inverse_root))
        linear = np.full(len(some), -np.inf)
        known = info.spans(Y) & (width > 0.0)
        linear[known] = (gaps - self.of_pairs(against, some))[known] / width[known]
        own = self.direct_errors(against, some)
        direct[some] = np.isfinite(own) & (gaps / own > linear)
        return direct
