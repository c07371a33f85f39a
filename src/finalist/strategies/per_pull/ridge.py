"""The ridge estimate of strategies that look after every pull, computed anew from all rewards.

They work in span coordinates (`Arms.coordinates`, Z'Z / K = I over the arms that can be pulled).
There the norm of the parameter, which a ridge has to be told, is the root mean square of the
expected rewards of these arms; weights of unequal noise (`units`) do not change the parameter.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.inference.information import information, row_norms
from finalist.inference.least_squares import weights_of
from finalist.inference.statistics import LARGEST_REWARD, Statistics
from finalist.strategies.protocol import is_number
from finalist.strategies.units import Units

#: A pull that makes a variance smaller by more than this leaves less than four digits of it.
STEEPEST = 1e12
#: A smaller ridge costs digits, a larger one buries the data.
RIDGES = (1e-6, 1e6)


class RidgeFit(NamedTuple):
    """What rewards say under a ridge eta; A = eta I + sum of w z z' over the pulls.

    Attributes
    ----------
    R : (r, r) array
        R'R = A^-1.
    white : (K, r) array
        Z R': the inner product of two rows is z_i'A^-1 z_j.
    means : (K,) array
        z_i'phi_hat.
    log_det : float
        log(det A / det(eta I)).
    """

    R: Float[np.ndarray, "r r"]
    white: Float[np.ndarray, "K r"]
    means: Float[np.ndarray, " K"]
    log_det: float


def ridge_fit(
    Z: Float[np.ndarray, "K r"],
    rewards: Statistics,
    ridge: float,
    weights: Float[np.ndarray, " K"] | None = None,
) -> RidgeFit:
    """Estimate from all rewards; a pull of an arm counts its weight, 1 unless given.

    Examples
    --------
    >>> rewards = Statistics.empty(2)
    >>> rewards.add_many([0, 0, 0, 1], [2.0, 4.0, 6.0, 1.0])
    >>> ridge_fit(np.eye(2), rewards, 1.0).means
    array([3. , 0.5])
    """
    r, n = Z.shape[1], weights_of(rewards.count, weights)
    info = information(np.vstack([Z, np.eye(r)]), np.append(n, np.full(r, ridge)))
    R = info.inverse_root
    white = Z @ R.T
    means = white @ (R @ (Z.T @ (n * rewards.mean)))
    return RidgeFit(R, white, means, max(info.log_det - r * math.log(ridge), 0.0))


def longest_squared(Z: Float[np.ndarray, "K r"]) -> float:
    """Return the largest squared norm of an arm, L^2; 1 for a single arm that is zero."""
    return float(row_norms(Z, np.eye(Z.shape[1])).max()) or 1.0


def check_ridge(theta_norm: float, ridge: float) -> None:
    """Refuse a bound on the parameter, or a ridge, that is none."""
    if not (is_number(theta_norm) and 0 < theta_norm <= LARGEST_REWARD):
        raise ProblemError(
            f"theta_norm is {theta_norm!r}; it bounds the root mean square of the expected "
            f"rewards of the arms that can be pulled, positive and at most {LARGEST_REWARD:g}."
        )
    check_between("ridge", ridge, RIDGES)


def check_even(name: str, units: Units, ridge: float) -> None:
    """Refuse noise so unequal that an update by one pull would lose the digits of a variance.

    The first pull of an arm divides variances by 1 + w z'z / eta, at most 1 + weight / ridge, and
    leaves them with that many units of rounding.
    """
    if not units.weights.max() <= STEEPEST * ridge:
        raise ProblemError(
            f"the noise of the arms is too different for {name!r}, which updates its estimate "
            f"pull by pull: the largest sigma is {math.sqrt(units.weights.max()):.3g} times the "
            f"smallest, at most {math.sqrt(STEEPEST * ridge):.3g} is possible with this ridge. "
            "Use 'xy-adaptive' or 'rage', which compute estimates anew."
        )


def check_between(name: str, value: object, ends: tuple[float, float]) -> None:
    """Refuse a setting that is not a number between two ends."""
    if not (is_number(value) and ends[0] <= value <= ends[1]):
        raise ProblemError(f"{name} is {value!r}; it lies between {ends[0]:g} and {ends[1]:g}.")


def norm_in_span(arms: Arms, theta: Float[np.ndarray, " d"]) -> float:
    """Return the norm of a parameter in span coordinates.

    It is the root mean square of the expected rewards of the arms that can be pulled.

    Examples
    --------
    >>> norm_in_span(Arms([[3.0], [4.0], [9.0]], measurable=[True, True, False]), np.array([2.0]))
    7.0710678118654755
    """
    means = arms.means(theta)[arms.measurable]
    peak = float(np.abs(means).max())
    if peak == 0.0:
        return float(np.finfo(float).tiny)
    return peak * math.sqrt(float(np.mean((means / peak) ** 2)))
