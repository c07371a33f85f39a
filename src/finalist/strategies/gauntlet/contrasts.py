"""What a batch can say about pairs of arms: from its counts alone, before its rewards are known."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.compiled.arrays import read_only
from finalist.inference.information import Information
from finalist.inference.misspecification import Bias
from finalist.problem import Problem


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
class Contrasts:
    """The differences y = rival - arm in one batch.

    Attributes
    ----------
    Y : (n, r) array
        The differences, in coordinates of the span.
    linear, own : (m,) arrays of int
        The pairs whose difference least squares estimates, and those whose means are compared.
    width : (n,) array
        The standard error of each for a sigma of 1; 0 where not tested.
    bias : (n,) array
        What is taken off the difference because the model may not be quite linear.
    """

    pairs: Pairs
    Y: Float[np.ndarray, "n r"]
    linear: Int[np.ndarray, " m"]
    own: Int[np.ndarray, " k"]
    width: Float[np.ndarray, " n"]
    bias: Float[np.ndarray, " n"]

    @property
    def tested(self) -> Int[np.ndarray, " t"]:
        """The pairs that the batch can compare."""
        return np.union1d(self.linear, self.own) if len(self.own) else self.linear


def contrasts_of(
    problem: Problem,
    Z: Float[np.ndarray, "K r"],
    counts: Int[np.ndarray, " K"],
    info: Information,
    pairs: Pairs,
) -> Contrasts:
    """Return what a batch of these counts can say about pairs."""
    import finalist.strategies.gauntlet.choice_kernels as kernels

    Y = Z[pairs.rivals] - Z[pairs.arms]
    spanned = info.spans(Y)
    own = np.empty(0, dtype=np.int64)
    width, bias = np.zeros((2, len(pairs.arms)))
    linear = kernels.widths(Y, read_only(info.inverse_root), spanned, width).nonzero()[0]
    feigned = Bias.of(problem.misspecification, problem.precisions, Z, counts, info)
    if feigned is not None:
        bias[linear] = feigned.of_pairs(pairs.rivals[linear], pairs.arms[linear])
        own = _compared_directly(pairs, feigned.weights, width)
        bias[own] = 0.0
    return Contrasts(pairs, Y, linear, own, width, bias)


def _compared_directly(
    pairs: Pairs, w: Float[np.ndarray, " K"], width: Float[np.ndarray, " n"]
) -> Int[np.ndarray, " m"]:
    """Set the widths of direct pairs to those of means in the batch; return which."""
    if pairs.direct is None:
        return np.empty(0, dtype=np.int64)
    a, x = pairs.rivals, pairs.arms
    there = np.flatnonzero(pairs.direct & (w[a] > 0.0) & (w[x] > 0.0))
    a, x = a[there], x[there]
    width[there] = np.sqrt(1.0 / w[a] + 1.0 / w[x])
    return np.asarray(there)
