"""Least squares for decisions that are taken many times: compiled, where that is safe.

The same factor, estimate and signs as those of `information` and `estimate` but for rounding. Arms
that are clearly of full rank are treated by one compiled loop, all others by those. (Designs and
strategies of fixed phases need no compiler, so they do not use this.)
"""

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.compiled.arrays import read_only
from finalist.inference.information import Information, information
from finalist.inference.least_squares import Estimate, estimate, weights_of
from finalist.inference.statistics import Statistics


def quick_information(
    coordinates: Float[np.ndarray, "K r"], weights: Float[np.ndarray, " K"]
) -> Information:
    """Return what `information` does.

    Examples
    --------
    >>> quick_information(np.eye(2), np.array([4.0, 1.0])).variances(np.array([[1.0, -1.0]]))
    array([1.25])
    """
    import finalist.inference.kernels.fit as kernels

    root, inverse = np.empty((2, coordinates.shape[1], coordinates.shape[1]))
    if kernels.factorise(read_only(coordinates), read_only(weights), root, inverse):
        root.flags.writeable = inverse.flags.writeable = False
        return Information.regular(root, inverse)
    return information(coordinates, weights)


def quick_estimate(
    arms: Arms,
    statistics: Statistics,
    known: Information | None = None,
    precisions: Float[np.ndarray, " K"] | None = None,
    kept: bool = True,
) -> Estimate:
    """Return what `estimate` does without a ridge.

    Parameters
    ----------
    kept : bool
        Whether the estimate outlives the next change of the statistics, which it copies then.

    Examples
    --------
    >>> s = Statistics.of_batch([2, 1], [4.0, 5.0])
    >>> quick_estimate(Arms([[1.0, 0.0], [0.0, 1.0]]), s).means()
    array([2., 5.])
    """
    import finalist.inference.kernels.fit as kernels

    Z, weights = arms.coordinates, weights_of(statistics.count, precisions)
    info = known or quick_information(Z, weights)
    if info.rank < Z.shape[1]:
        return estimate(arms, statistics, known=info, precisions=precisions)
    phi = np.empty(Z.shape[1])
    words = read_only(weights), read_only(statistics.mean), read_only(info.inverse_root)
    kernels.solve(read_only(Z), *words, phi)
    phi.flags.writeable = False
    if kept:
        statistics = statistics.copy()
        for array in (statistics.count, statistics.mean, statistics.m2, statistics.carry):
            array.flags.writeable = False
    return Estimate(arms, statistics, 0.0, phi, info, np.zeros((0, Z.shape[1])), precisions)
