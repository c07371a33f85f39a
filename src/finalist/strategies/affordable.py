"""The next batch of a run, cut to what is left of a budget."""

import math

import numpy as np

from finalist.problem.budget import ROUNDING
from finalist.shapes import Float
from finalist.strategies.protocol import Batch, Run


def affordable(
    run: Run, size: int | None, left: float, prices: Float[np.ndarray, " K"]
) -> Batch | None:
    """Return the next batch of a size, or the largest smaller one that what is left pays for.

    Parameters
    ----------
    left : float
        Of the budget.
    prices : (K,) array
        What a pull of each arm takes of it.

    Returns
    -------
    Batch or None
        None if it does not even pay for the first pull.

    Examples
    --------
    >>> import finalist as fl
    >>> run = fl.Uniform().start(fl.Problem(fl.Arms.unstructured(2), noise=fl.Gaussian(1.0)))
    >>> prices = np.array([1.0, 4.0])
    >>> [affordable(run, 4, left, prices).counts.tolist() for left in (10, 7)]
    [[2, 2], [2, 1]]
    >>> affordable(run, 4, 0.5, prices) is None
    True
    """
    most = left * (1.0 + ROUNDING)
    batch = run.next(size)
    if batch.counts @ prices <= most:
        return batch
    low, high = 0, batch.size  # what fits, and what does not
    alike = prices.min() == prices.max()
    if alike:
        low, high = (n := math.floor(most / float(prices[0]))), n + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = run.next(middle).counts @ prices <= most
        low, high = (middle, high) if fits else (low, middle)
    return run.next(low) if low > 0 else None
