"""Sigma from repeated measurements: how far results of the same candidate are apart.

The squared deviations from each candidate's own mean, over their degrees of freedom, estimate
sigma^2 whatever the means are: no model is involved. For normal noise of one size their sum is
sigma^2 times a chi-square variable, which gives an exact interval.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from finalist.errors import EstimateError
from finalist.inference.statistics import BatchResults, Statistics
from finalist.shapes import Float
from finalist.text import counted, show

#: The confidence of the interval for sigma.
LEVEL = 0.95
#: A candidate that scatters more than the others is named below this p-value.
UNEVEN = 1e-3
#: Deviations below this part of the results are rounding of the numbers themselves.
ROUNDING = 4 * np.finfo(float).eps


@dataclass(frozen=True)
class SigmaEstimate:
    """Sigma as repeated measurements show it; an estimate, not knowledge.

    Attributes
    ----------
    sigma : float
        The pooled standard deviation. Where the noise differs between candidates and is given, it
        is how many times as large as given.
    degrees_of_freedom : int
        Repeated measurements minus the candidates they are of.
    measurements, candidates : int
        Results of candidates that were measured more than once, and how many candidates these are.
    low, high : float
        Sigma is between them with confidence `level`, if the noise is normal and of one size.
    level : float
    resolved : bool
        Whether the results scatter at all, beyond the last digit of a number.
    remark : str
        Which candidate scatters more than the others do, if one does.

    Examples
    --------
    >>> found = sigma_of(["a", "a", "a", "b", "b", "c"], [1.0, 1.2, 1.4, 3.1, 2.9, 7.0])
    >>> print(found)
    about 0.18, from 5 repeated measurements of 2 candidates (3 degrees of freedom); with 95 %
    confidence between 0.1 and 0.68
    """

    sigma: float
    degrees_of_freedom: int
    measurements: int
    candidates: int
    low: float
    high: float
    level: float = LEVEL
    resolved: bool = True
    remark: str = ""

    def __str__(self) -> str:
        """Say it in words."""
        candidates = counted(self.candidates, "candidate")
        of = f"{self.measurements:,} repeated measurements of {candidates}"
        if not self.resolved:
            return (
                f"below the resolution of the numbers: the {of} are equal. Measurements scatter; "
                "look for results that were rounded, or rows that were copied"
            )
        sigma, low, high, freedom = self._words()
        return (
            f"about {sigma}, from {of} ({freedom}); with {self.level * 100:g} % confidence between "
            f"{low} and {high}"
        )

    def brief(self) -> str:
        """Say the same where it is known what it is from."""
        sigma, low, high, freedom = self._words()
        if not self.resolved:
            return "below the resolution of the numbers: repeated measurements are equal"
        return f"about {sigma} ({freedom}; {low} to {high} with {self.level * 100:g} % confidence)"

    def _words(self) -> tuple[str, str, str, str]:
        freedom = counted(self.degrees_of_freedom, "degree of freedom", "degrees of freedom")
        return self.shown(self.sigma), self.shown(self.low), self.shown(self.high), freedom

    def shown(self, value: float) -> str:
        """Return a number with as many digits as such an estimate is good for."""
        return f"{float(f'{value:.{2 if self.degrees_of_freedom < 100 else 3}g}'):g}"

    def chances(self, sigma: float) -> tuple[float, float]:
        """Return how probable so little scatter and so much is, if this is sigma."""
        from scipy.special import chdtr, chdtrc

        ratio = self.sigma / sigma
        score = self.degrees_of_freedom * (ratio * ratio)
        freedom = self.degrees_of_freedom
        return float(chdtr(freedom, score)), float(chdtrc(freedom, score))


def sigma_of(candidates: Sequence[Hashable], values: ArrayLike) -> SigmaEstimate:
    """Estimate sigma from results, each of the candidate named beside it.

    Parameters
    ----------
    candidates : sequence of n names
        In any order; results of the same name are repeated measurements.

    Raises
    ------
    EstimateError
        Nothing was measured twice, or all results are 0 or 1.

    Examples
    --------
    >>> sigma_of("aabb", [1e9, 1e9 + 2, 5.0, 7.0]).sigma
    1.4142135623730951
    >>> sigma_of("abc", [1.0, 2.0, 3.0])
    Traceback (most recent call last):
    finalist.errors.EstimateError: 3 results of 3 candidates: none was measured twice, ...
    """
    value = np.asarray(values, dtype=float)
    if value.shape != (len(candidates),) or not np.isfinite(value).all():
        raise EstimateError(
            f"{counted(len(candidates), 'name')} and results of shape {value.shape}; give one "
            "finite result for each name."
        )
    numbers: dict[Hashable, int] = {}
    index = [numbers.setdefault(name, len(numbers)) for name in candidates]
    if len(value) > 1 and np.isin(value, (0.0, 1.0)).all():
        raise EstimateError(
            f"all {len(value):,} results are 0 or 1. Such results, no or yes, have no sigma to "
            "estimate: begin the study with the noise 'bernoulli' (--noise bernoulli)."
        )
    results = BatchResults.of(len(numbers), np.array(index, dtype=np.int64), value)
    found = pooled_sigma(results, [show(name) for name in numbers])
    if found is None:
        raise EstimateError(
            f"{counted(len(value), 'result')} of {counted(len(numbers), 'candidate')}: none was "
            "measured twice, so nothing tells noise from differences. Measure some candidates "
            "again, five to ten times in all."
        )
    return found


def pooled_sigma(
    results: Statistics,
    names: Sequence[str],
    precisions: Float[np.ndarray, " K"] | None = None,
) -> SigmaEstimate | None:
    """Estimate sigma from the sums of K candidates; None if none was measured twice.

    With `precisions`, 1 / sigma^2 of each candidate, the estimate is how many times as large the
    noise is as these say.

    Examples
    --------
    >>> pooled_sigma(Statistics.of_batch([2, 1], [4.0, 9.0], [2.0, 0.0]), ["a", "b"]).sigma
    1.4142135623730951
    """
    from scipy.special import chdtri

    again = np.flatnonzero(results.count > 1)
    count, m2 = results.count[again], results.m2[again]
    if len(again) == 0 or np.isnan(m2).any():
        return None
    weight = np.ones(len(again)) if precisions is None else precisions[again]
    freedom = int(count.sum()) - len(again)
    squares = m2 * weight
    rounding = float(np.sum(count * weight * (ROUNDING * results.mean[again]) ** 2))
    sigma = float(np.sqrt(squares.sum() / freedom))
    low, high = (
        sigma * float(np.sqrt(freedom / chdtri(freedom, tail)))
        for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    )
    resolved = bool(squares.sum() > rounding)
    named = [names[i] for i in again.tolist()]
    remark = _uneven(named, count - 1, squares, rounding) if resolved else ""
    return SigmaEstimate(
        sigma, freedom, int(count.sum()), len(again), low, high, LEVEL, resolved, remark
    )


def _uneven(
    names: Sequence[str],
    freedom: np.ndarray,
    squares: Float[np.ndarray, " g"],
    rounding: float,
) -> str:
    """Name the candidate whose results scatter too much for noise of one size, if there is one.

    Each variance against those of all others by an F test, the smallest p-value times their number:
    Cochran's test for groups of any size (R. U. E. 't Lam, Anal. Chim. Acta 659, 2010, 68-84).
    """
    from scipy.special import fdtrc

    if len(names) < 2:
        return ""
    others = squares.sum() - squares
    rest = freedom.sum() - freedom
    ratio = (squares / freedom) / np.maximum(others / rest, max(rounding, np.finfo(float).tiny))
    p = len(names) * fdtrc(freedom, rest, ratio)
    i = int(np.argmin(p))
    if not p[i] < UNEVEN:
        return ""
    own, all_others = np.sqrt(squares[i] / freedom[i]), np.sqrt(others[i] / rest[i])
    return (
        f"The results of {names[i]} scatter by {own:.2g}, those of the other candidates by "
        f"{all_others:.2g}: more than chance (p = {p[i]:.1g}). Look for a result that is wrong, or "
        "give each candidate a sigma of its own."
    )
