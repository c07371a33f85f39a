"""Who attacks a claim: the rival that the past suggests most, fixed before the batch is seen."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.arms.span import SPAN_TOLERANCE
from finalist.inference.information import Information
from finalist.inference.misspecification import Bias

#: Rivals are the leader and so many of the best arms.
RIVALS = 64
#: Survivors whose rivals are looked for at once.
BLOCK = 512


def choose_rivals(
    Z: Float[np.ndarray, "K r"],
    means: Float[np.ndarray, " K"],
    survivors: Int[np.ndarray, " m"],
    info: Information,
    bias: Bias | None = None,
) -> Int[np.ndarray, " m"]:
    """Return for each survivor the arm that the batch is expected to show best above it.

    The largest (a - x)'theta_hat / ||a - x||_{A_k^+} over the leader and the best other arms
    whose difference the batch can estimate; -1 where there is none. What a model that is not
    quite linear can feign is taken off the difference.
    """
    import finalist.strategies.gauntlet.choice_kernels as kernels

    rivals = np.arange(len(means))
    if len(means) > RIVALS + 1:  # the leader is the first of them
        rivals = np.sort(np.argsort(-means, kind="stable")[: RIVALS + 1])
    W = Z @ info.inverse_root.T  # ||w_a - w_x|| = ||a - x||_{A_k^+}
    chosen = np.empty(len(survivors), dtype=np.int64)
    partial = info.rank < Z.shape[1]
    if bias is None and not partial:
        kernels.strongest(W, means, rivals, survivors, chosen)
        return chosen
    outside = Z - (Z @ info.basis) @ info.basis.T if partial else Z
    for start in range(0, len(survivors), BLOCK):
        some = survivors[start : start + BLOCK]
        width = _distances(W[rivals], W[some])
        usable = width > 0.0
        if partial:
            length = _distances(Z[rivals], Z[some])
            usable &= _distances(outside[rivals], outside[some]) <= SPAN_TOLERANCE * length
        gaps = means[rivals][:, None] - means[some]
        if bias is not None:
            gaps -= bias.between(rivals, some)
        score = np.where(usable, gaps / np.where(usable, width, 1.0), -np.inf)
        if bias is not None:
            score = np.maximum(score, bias.direct_scores(means, rivals, some))
        best = score.argmax(axis=0)
        found = score[best, np.arange(len(some))] > -np.inf
        chosen[start : start + BLOCK] = np.where(found, rivals[best], -1)
    return chosen


def _distances(
    first: Float[np.ndarray, "a r"], second: Float[np.ndarray, "b r"]
) -> Float[np.ndarray, "a b"]:
    difference = first[:, None] - second
    return np.asarray(np.sqrt(np.einsum("abr,abr->ab", difference, difference)))


def expected_scores(
    Z: Float[np.ndarray, "C r"],
    W: Float[np.ndarray, "C s"],
    means: Float[np.ndarray, " C"],
    spans: Callable[[Float[np.ndarray, "n r"]], Bool[np.ndarray, " n"]],
) -> Float[np.ndarray, "C C"]:
    """Return (mean_a - mean_x) / ||a - x||_{A^+} by (a, x); minus infinity if not estimable."""
    width = np.sqrt(squares_between(W))
    first, second = np.triu_indices(len(Z), 1)
    known = np.zeros((len(Z), len(Z)), dtype=bool)
    known[first, second] = spans(Z[first] - Z[second])
    known |= known.T
    known &= width > 0.0
    gaps = means[:, None] - means
    return np.where(known, gaps / np.where(known, width, 1.0), -np.inf)


def squares_between(W: Float[np.ndarray, "C s"]) -> Float[np.ndarray, "C C"]:
    """Return the squares of the distances between rows."""
    difference = W[:, None] - W
    return np.asarray(np.einsum("abr,abr->ab", difference, difference))
