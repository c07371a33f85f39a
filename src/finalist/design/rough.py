"""Designs for a few directions to a percent or so, fast: for decisions taken many times.

Multiplicative updates on both sides of  min over designs, max over weights m of directions, of
sum_j m_j y_j'Lambda^-1 y_j: an arm's weight grows with the square root of its derivative (Silvey,
Titterington and Torsney 1978), a direction's with that of its variance. That is slow to the last
digits and fast to the first two, which is all a batch needs. The result has the certificate of
`minimax`: value <= (1 + gap) optimum.
"""

import numpy as np
from jaxtyping import Float

#: Steps after which the best so far is returned.
MOST_STEPS = 500


def rough_design(
    Z: Float[np.ndarray, "K r"],
    Y: Float[np.ndarray, "M r"],
    tol: float = 1e-2,
    start: Float[np.ndarray, " K"] | None = None,
    steps: int = MOST_STEPS,
) -> tuple[Float[np.ndarray, " K"], float]:
    """Find a design that makes the largest y'Lambda^-1 y small.

    Parameters
    ----------
    Z : (K, r) array
        Arms in the coordinates of their span.
    Y : (M, r) array
        Directions in the same coordinates, none of them zero.
    tol : float
        The relative gap at which to stop.
    start : (K,) array, optional
        A design to start from, all weights positive.
    steps : int
        The most steps.

    Returns
    -------
    weights : (K,) array
    gap : float
        How far, at most, the design is from the best one.

    Examples
    --------
    >>> weights, gap = rough_design(np.eye(2), np.array([[1.0, -2.0]]), tol=1e-3)
    >>> weights.round(2)
    array([0.33, 0.67])
    """
    from finalist.design import rough_kernels

    K, M = len(Z), len(Y)
    weights = np.full(K, 1.0 / K) if start is None else start / start.sum()
    scaled = Y / np.abs(Y).max()
    value, lower = rough_kernels.run(
        np.ascontiguousarray(Z), scaled, weights, np.full(M, 1.0 / M), steps, tol
    )
    return weights, value / lower - 1.0
