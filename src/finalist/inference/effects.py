"""What rewards say of arms without a model, where every batch has a constant of its own.

The mean of arm i in batch b is e_i + s_b (the two-way layout without interaction). Least squares
for the effects e, with the constants s eliminated, has the matrix of a graph: arms i and j are
linked by the sum over batches of w_bi w_bj / W_b, for weights w_bi of the pulls and W_b of all in
the batch. Effects are known up to a constant for each part of the graph that is connected.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finalist.shapes import Float, Int

#: What is smaller than this part is rounding.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of K arms.

    Attributes
    ----------
    part : (K,) array of int
        Which arms batches have linked, directly or by way of others; -1 for an arm that was never
        pulled beside another one.
    weight : (K,) array
        One over the variance of an effect if those of all other arms were known, for a sigma of 1;
        0 for an arm that was never pulled beside another one.
    effect : (K,) array
        With the weighted mean 0 in every part; 0 for arms of no part.
    row : (K,) array of int
        The row of an arm in `factor`, -1 for none.
    factor : (n, n) array
        F, such that the difference of two arms of one part has the variance ||F_a - F_x||^2.

    Examples
    --------
    >>> both, one = (np.array([0, 1]), np.ones(2)), (np.array([2]), np.ones(1))
    >>> shifted = [(*both, np.array([1.0, 3.0])), (*both, np.array([101.0, 103.0]))]
    >>> found = Effects.of(3, [*shifted, (*one, np.array([7.0]))])
    >>> found.effect.round(9), found.part
    (array([-1.,  1.,  0.]), array([ 0,  0, -1]))
    >>> found.differences(np.array([1, 2]), np.array([0, 0]))
    (array([2., 0.]), array([ 1., inf]))
    """

    part: Int[np.ndarray, " K"]
    weight: Float[np.ndarray, " K"]
    effect: Float[np.ndarray, " K"]
    row: Int[np.ndarray, " K"]
    factor: Float[np.ndarray, "n n"]

    @classmethod
    def of(
        cls,
        K: int,
        batches: Sequence[
            tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]
        ],
    ) -> "Effects":
        """Return the effects that batches show: of each the arms, their weights and their means."""
        batches = [batch for batch in batches if len(batch[0]) > 1]  # one arm: only the constant
        row = np.full(K, -1)
        for arms, _, _ in batches:
            row[arms] = 0
        seen = np.flatnonzero(row == 0)
        n = len(seen)
        row[seen] = np.arange(n)
        roots, right, part = np.zeros((len(batches), n)), np.zeros(n), np.arange(n)
        for root, (arms, w, mean) in zip(roots, batches, strict=True):
            at = row[arms]
            root[at] = w / np.sqrt(w.sum())
            for _ in range(2):  # as in `BatchSums.centred`
                mean = mean - (w @ mean) / w.sum()
            right[at] += w * mean
            part[np.isin(part, part[at])] = part[at[0]]
        links = roots.T @ roots
        np.fill_diagonal(links, 0.0)
        weight, part = links.sum(axis=0), np.unique(part, return_inverse=True)[1]
        # Each part has a direction without information, which is filled up: the weighted mean.
        size = np.sqrt(weight)
        share = size / np.sqrt(np.bincount(part, weight))[part]
        scaled = np.eye(n) - links / size / size[:, None]
        scaled += np.where(part[:, None] == part, share * share[:, None], 0.0)
        values, vectors = np.linalg.eigh(scaled)
        factor = vectors / np.sqrt(np.maximum(values, ROUNDING)) / size[:, None]
        parts, (weights, effects) = np.full(K, -1), np.zeros((2, K))
        parts[seen], weights[seen], effects[seen] = part, weight, factor @ (factor.T @ right)
        return cls(parts, weights, effects, row, factor)

    def beside(self, means: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
        """Return by how much effects exceed given means, on average by 0 in every part."""
        some = np.flatnonzero(self.row >= 0)
        part, weight, mean = self.part[some], self.weight[some], means[some]
        level = np.bincount(part, weight * mean) / np.bincount(part, weight)
        beside = np.zeros(len(means))
        beside[some] = self.effect[some] - (mean - level[part])
        return beside

    def differences(
        self, first: Int[np.ndarray, " n"], second: Int[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return differences of effects with their variances, infinite where nothing is known."""
        known = (self.part[first] >= 0) & (self.part[first] == self.part[second])
        a, x = first[known], second[known]
        difference, variance = np.zeros(len(first)), np.full(len(first), np.inf)
        difference[known] = self.effect[a] - self.effect[x]
        apart = self.factor[self.row[a]] - self.factor[self.row[x]]
        variance[known] = np.einsum("ij,ij->i", apart, apart)
        return difference, variance
