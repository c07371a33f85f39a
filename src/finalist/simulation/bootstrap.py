"""Bootstrap interval of a mean, for samples that are far from normal."""

import numpy as np
from jaxtyping import Float, Int

#: Samples of the bootstrap.
_RESAMPLES = 4000
#: With fewer values the interval is too short to be shown as one of 95 %.
FEWEST = 30


def mean_interval(
    values: Float[np.ndarray, " n"] | Int[np.ndarray, " n"],
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean; the same one for the same values.

    Runs of strategies with phases end after few different numbers of pulls, a factor apart;
    the interval of Student would go below zero. With few values this one is too
    short: of 10 values of a skewed law (log-normal, 0.5) it covers the mean in 87 % of all cases,
    of 30 in 91 %, of 100 in 94 %.

    Parameters
    ----------
    values : (n,) array

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> mean_interval(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    rng = np.random.default_rng(0)
    means = rng.choice(values, (_RESAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
