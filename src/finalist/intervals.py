"""Half-widths of intervals from all pulls together, for all directions and at all times at once."""

import numpy as np
from jaxtyping import Float

from finalist.bounds import likely_sigma, pooled_radius
from finalist.least_squares import Estimate


def pooled_widths(
    fit: Estimate,
    directions: Float[np.ndarray, "M r"],
    start: float | None,
    confidence: float,
    sigma: float | None,
) -> Float[np.ndarray, " M"]:
    """Return half-widths for y'theta (`bounds.pooled_radius`); infinite where nothing is known.

    Parameters
    ----------
    fit : Estimate
        From all pulls.
    directions : (M, r) array
        In span coordinates.
    start : float or None
        Log-determinant of the first pulls, which span and were fixed in advance; None if there
        are none.
    confidence : float
    sigma : float or None
        If None, its upper 99 % bound from the residuals (`bounds.likely_sigma`).

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.least_squares import estimate
    >>> from finalist.statistics import Statistics
    >>> s = Statistics.empty(1)
    >>> s.add_many([0] * 100, [1.0] * 100)
    >>> fit = estimate(fl.Arms([[1.0]]), s)
    >>> pooled_widths(fit, np.array([[1.0]]), fit.information.log_det, 0.95, sigma=1.0).round(2)
    array([0.62])
    """
    none = np.full(len(directions), np.inf)
    if start is None or fit.information.rank < fit.arms.rank:
        return none
    if sigma is None:
        if fit.degrees_of_freedom < 1 or fit.residual_variance == 0.0:
            return none
        sigma = likely_sigma(fit.residual_variance, fit.degrees_of_freedom)
    grown = max(fit.information.log_det - start, 0.0)
    return pooled_radius(grown, fit.arms.rank, 1.0 - confidence, sigma) * fit.widths(directions)
