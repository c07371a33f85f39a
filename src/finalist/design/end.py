"""The design for a choice at the end: a number of pulls is left, and then one arm is taken.

Let m > 0 be the estimated lead of an arm over a rival, S its variance now and v the variance that
it will have when all pulls are made. With a flat prior the estimate at the end is N(m, S - v), and
given that estimate e the lead is N(e, v). Who has the larger estimate is taken. That the other
one is better by more than epsilon has then the probability Phi(-(|e| + epsilon) / sqrt(v)). Off its
kink at e = 0 this function of e and v solves the heat equation u_v = u_ee / 2, so that its mean
changes with v by the kink alone:

    d E[error] / dv = phi(m / sqrt(S - v)) phi(epsilon / sqrt(v)) / sqrt(v (S - v)).

So no draws are needed to plan: the sum of the errors of all pairs falls, for a small change of the
design, as tr(M A_T^-1) does with M = sum_j c_j y_j y_j', where c_j is this derivative and A_T the
design matrix at the end. The multiplicative updates of Silvey, Titterington and Torsney (1978)
lower it; c_j is computed anew after each of them. The sum is not convex, as it may pay to give an
arm up: a start with some weight on everything, and few steps, keep that for when it is sure.
"""

import math

import numpy as np

from finalist.compiled.arrays import read_only
from finalist.shapes import Float

#: Integrals go so many standard errors out, by the rule of Gauss and Legendre on [0, 1].
FAR = 7.0
NODES, SHARES = (0.5 * part for part in np.polynomial.legendre.leggauss(32))
NODES += 0.5
#: Updates of the design.
STEPS = 8
#: The ridge that keeps matrices regular, as a part of the mean eigenvalue.
RIDGE = 1e-6


def end_design(
    Z: Float[np.ndarray, "K r"],
    A: Float[np.ndarray, "r r"],
    Y: Float[np.ndarray, "n r"],
    leads: Float[np.ndarray, " n"],
    variances: Float[np.ndarray, " n"],
    pulls: float,
    start: Float[np.ndarray, " K"],
    epsilon: float = 0.0,
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "r r"]]:
    """Share the pulls that are left such that the errors at the end are few.

    Parameters
    ----------
    Z : (K, r) array
        Arms, in units in which a pull of z adds z z' to the design matrix.
    A : (r, r) array
        The design matrix of all pulls so far.
    Y : (n, r) array
        The arm that leads minus each rival.
    leads, variances : (n,) arrays
        Estimates of the leads, and how uncertain they are now, in the same units.
    pulls : float
        How many are left.
    start : (K,) array
        A design to start from.
    epsilon : float
        Smaller errors do not matter.

    Returns
    -------
    weights : (K,) array
        A design: the shares of the pulls that are left.
    M : (r, r) array
        What lowers tr(M A_T^-1) lowers the errors.

    Examples
    --------
    >>> Z, A = np.eye(3), 4.0 * np.eye(3)
    >>> Y = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    >>> leads, variances = np.array([0.2, 2.0]), np.full(2, 0.5)
    >>> weights, _ = end_design(Z, A, Y, leads, variances, 90, np.full(3, 1 / 3))
    >>> weights.round(2)
    array([0.5, 0.5, 0. ])
    """
    from finalist.design.kernels import end as kernels

    weights, M = start.copy(), np.zeros_like(A)
    arrays = (read_only(part) for part in (Z, regular(A, Z, pulls), Y, leads, variances))
    kernels.improve(*arrays, float(pulls), float(epsilon), STEPS, weights, M)
    return weights, M


def errors_at_end(
    leads: Float[np.ndarray, " n"],
    now: Float[np.ndarray, " n"],
    left: Float[np.ndarray, " n"],
    epsilon: float = 0.0,
) -> Float[np.ndarray, " n"]:
    """Return E[error] of pairs whose variances go from `now` to `left`.

    Examples
    --------
    >>> one = np.ones(1)
    >>> errors_at_end(0.0 * one, one, 0.5 * one).round(4)  # atan(1) / pi
    array([0.25])
    """
    from scipy.special import ndtr

    from finalist.design.kernels.end import LEAST_FALL

    spread = np.sqrt(np.maximum(now - left, LEAST_FALL * now))
    wrong = np.zeros(len(leads))
    for side in (-1.0, 1.0):  # on both sides of the kink
        # In standard errors, |e| is between what is on this side and not far out.
        low = np.maximum(0.0, side * leads / spread - FAR)
        high = np.maximum(side * leads / spread + FAR, low)
        e = low + NODES[:, None] * (high - low)
        density = np.exp(-0.5 * (e - side * leads / spread) ** 2) / math.sqrt(2.0 * math.pi)
        worse = ndtr(-(e * spread + epsilon) / np.sqrt(left))
        wrong += (high - low) * (SHARES @ (density * worse))
    return wrong


def regular(
    A: Float[np.ndarray, "r r"], Z: Float[np.ndarray, "K r"], pulls: float
) -> Float[np.ndarray, "r r"]:
    """Return A with a ridge that is small beside it, or beside what so many pulls may add."""
    size = A.trace() / len(A) + pulls * float(np.mean(Z * Z))
    ridged = A.copy()
    ridged.flat[:: len(A) + 1] += RIDGE * size
    return ridged
