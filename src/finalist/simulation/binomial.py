"""Exact confidence bounds for the probability of an error (Clopper and Pearson 1934).

They hold for every number of runs and every true probability; nothing is approximated.
"""

from scipy.special import betaincinv

from finalist.errors import SimulationError


def exact_lower_bound(errors: int, runs: int, confidence: float) -> float:
    """Return a number below the error probability with at least this confidence, one-sided.

    Examples
    --------
    >>> round(exact_lower_bound(3, 100, 0.95), 4)
    0.0082
    """
    _check(errors, runs, confidence)
    return 0.0 if errors == 0 else float(betaincinv(errors, runs - errors + 1, 1.0 - confidence))


def exact_upper_bound(errors: int, runs: int, confidence: float) -> float:
    """Return a number above the error probability with at least this confidence, one-sided.

    Examples
    --------
    >>> round(exact_upper_bound(0, 100, 0.95), 4)
    0.0295
    """
    _check(errors, runs, confidence)
    return 1.0 if errors == runs else float(betaincinv(errors + 1, runs - errors, confidence))


def exact_interval(errors: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval that holds the error probability with at least this confidence.

    Parameters
    ----------
    errors : int
        Wrong runs.
    runs : int
        All runs.
    confidence : float
        Between 0 and 1; the rest is split between the two sides.

    Returns
    -------
    (low, high) : tuple of float

    Examples
    --------
    >>> low, high = exact_interval(0, 100)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    side = 0.5 + confidence / 2.0
    return exact_lower_bound(errors, runs, side), exact_upper_bound(errors, runs, side)


def _check(errors: int, runs: int, confidence: float) -> None:
    if not (runs >= 1 and 0 <= errors <= runs):
        raise SimulationError(
            f"{errors} errors in {runs} runs; count 0 or more errors in 1 run or more."
        )
    if not 0.0 < confidence < 1.0:
        raise SimulationError(
            f"confidence is {confidence}; it must be between 0 and 1, such as 0.95."
        )
