"""Whether a statistic is so usual that no test can reject by it.

Most looks at a study find nothing, and a p-value far above its level need not be known: SciPy's
functions take a part of a short process to load. The cube roots of Wilson and Hilferty (1931), for
ratios as Paulson has them (1942), are nearly normal; what is within `DEVIATIONS` of their mean has
tails of more than `LEAST` (`tests/unit/test_tails.py`).
"""

import math

#: Standard deviations within which a statistic is usual.
DEVIATIONS = 2.2
#: Both tails of what is usual have more than this.
LEAST = 2e-3
#: Ratios whose denominators have fewer degrees of freedom are not judged.
LEAST_FREEDOM = 10


def is_usual(freedom: float, score: float) -> bool:
    """Return whether a chi-square variable is usual; no number never is.

    Examples
    --------
    >>> is_usual(10, 12.0), is_usual(10, 40.0)
    (True, False)
    """
    spread = 2.0 / (9.0 * freedom)
    root = math.cbrt(score / freedom)
    return abs(root - (1.0 - spread)) < DEVIATIONS * math.sqrt(spread)


def is_usual_ratio(above: float, below: float, ratio: float) -> bool:
    """Return whether an F variable is not unusually large; no number never is.

    Parameters
    ----------
    above, below : float
        Degrees of freedom of both mean squares.

    Examples
    --------
    >>> is_usual_ratio(3, 20, 1.5), is_usual_ratio(3, 20, 9.0)
    (True, False)
    """
    if below < LEAST_FREEDOM:
        return False
    first, second, root = 2.0 / (9.0 * above), 2.0 / (9.0 * below), math.cbrt(ratio)
    spread = math.sqrt(first + second * root * root)
    return (1.0 - second) * root - (1.0 - first) < DEVIATIONS * spread


def is_rare(freedom: float, score: float, level: float) -> bool:
    """Return whether a chi-square variable is larger with a probability below a small level.

    Examples
    --------
    >>> is_rare(10, 12.0, 1e-3), is_rare(10, 40.0, 1e-3)
    (False, True)
    """
    if is_usual(freedom, score) and level <= LEAST:
        return False
    from scipy.special import chdtrc

    return bool(chdtrc(freedom, score) < level)


def is_rare_ratio(above: float, below: float, ratio: float, level: float) -> bool:
    """Return whether an F variable is larger with a probability below a small level.

    Examples
    --------
    >>> is_rare_ratio(3, 20, 1.5, 1e-3), is_rare_ratio(3, 20, 19.0, 1e-3)
    (False, True)
    """
    if is_usual_ratio(above, below, ratio) and level <= LEAST:
        return False
    from scipy.special import fdtrc

    return bool(fdtrc(above, below, ratio) < level)
