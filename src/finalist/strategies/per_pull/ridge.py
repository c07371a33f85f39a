"""The ridge estimate of strategies that look after every pull, and what it has to be told.

They work in span coordinates (`Arms.coordinates`, Z'Z / K = I over the arms that can be pulled).
There the norm of the parameter, on which the radius of a ridge estimate depends, is the root mean
square of the expected rewards of these arms; weights of unequal noise (`units`) do not change it.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.inference.information import information, row_norms
from finalist.inference.least_squares import weights_of
from finalist.inference.statistics import LARGEST_REWARD, Statistics
from finalist.problem import Problem
from finalist.shapes import Float
from finalist.strategies.about import check_between, is_number
from finalist.strategies.protocol import Declared
from finalist.strategies.units import BEYOND, Units

#: A pull that makes a variance smaller by more than this leaves less than four digits of it.
STEEPEST = 1e12
#: A smaller ridge costs digits, a larger one buries the data.
RIDGES = (1e-6, 1e6)
#: Strategies that look at every pair around every pull are the wrong tool for more of them.
MAX_PAIRS = 2_000_000
ONCE_A_PHASE = "use XYAdaptive, which looks at them once a phase"
_Strategy = TypeVar("_Strategy", bound="RidgeStrategy")


@dataclass(frozen=True)
class RidgeStrategy(Declared):
    """Settings of a strategy with a ridge estimate, whose radius needs a bound on the parameter."""

    name: ClassVar[str]
    supports = BEYOND
    theta_norm: float
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.theta_norm) and 0 < self.theta_norm <= LARGEST_REWARD):
            raise ProblemError(
                f"theta_norm is {self.theta_norm!r}; it bounds the root mean square of the "
                "expected rewards of the arms that can be pulled, positive and at most "
                f"{LARGEST_REWARD:g}."
            )
        check_between("ridge", self.ridge, RIDGES)

    @classmethod
    def knowing(cls: type[_Strategy], arms: Arms, theta: Float[np.ndarray, " d"]) -> _Strategy:
        """Return the strategy that knows the norm of the true parameter, as in its paper.

        Examples
        --------
        >>> import finalist as fl
        >>> fl.LinGapE.knowing(fl.Arms.unstructured(2), np.array([2.0, -2.0])).theta_norm
        2.0
        """
        return cls(theta_norm=norm_in_span(arms, theta))

    def _check(self, problem: Problem) -> None:
        """Refuse a problem that the strategy cannot carry out."""
        problem.refuse_unsupported(self.name, self.supports)
        check_even(self.name, Units.of(problem), self.ridge)


def check_pairs(arms: int, purpose: str, instead: str = ONCE_A_PHASE) -> None:
    """Reject arms with more pairs than can be looked at pull by pull."""
    pairs = arms * (arms - 1) // 2
    if pairs > MAX_PAIRS:
        raise ProblemError(f"{arms} arms have {pairs} pairs, too many to {purpose}; {instead}.")


@dataclass(frozen=True, eq=False)
class Ridge:
    """A ridge eta for one problem; A = eta I + sum of w z z' over the pulls.

    Attributes
    ----------
    Z : (K, r) array
        The arms in span coordinates.
    units : Units
        What a pull counts, w, among others.
    longest : float
        The largest squared norm of an arm that can be pulled.
    """

    Z: Float[np.ndarray, "K r"]
    units: Units
    longest: float
    eta: float

    @classmethod
    def of(cls, problem: Problem, ridge: float) -> "Ridge":
        """Return that of a problem; `ridge` is in units of the largest squared norm."""
        Z, units = problem.arms.coordinates, Units.of(problem)
        longest = longest_squared(Z[units.measurable])
        return cls(Z, units, longest, ridge * longest)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What the state of a loop has of the problem: Z, weight and who, as `common` says."""
        return {
            "Z": np.array(self.Z),
            "weight": self.units.weights,
            "who": self.units.candidates,
        }

    @property
    def rows(self) -> Float[np.ndarray, "k r"]:
        """What is pulled, in units of its noise."""
        return self.units.rows(self.Z)

    def fit(self, rewards: Statistics) -> "RidgeFit":
        """Estimate from all rewards."""
        return ridge_fit(self.Z, rewards, self.eta, self.units.weights)


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


def check_even(name: str, units: Units, ridge: float) -> None:
    """Reject noise so unequal that an update by one pull would lose the digits of a variance.

    The first pull of an arm divides variances by 1 + w z'z / eta, at most 1 + weight / ridge, and
    leaves them with that many units of rounding.
    """
    if not units.weights.max() <= STEEPEST * ridge:
        raise ProblemError(
            f"the noise of the arms is too unequal for {name!r}, which updates its estimate "
            f"pull by pull: the largest sigma is {math.sqrt(units.weights.max()):.3g} times the "
            f"smallest, at most {math.sqrt(STEEPEST * ridge):.3g} is possible with this ridge. "
            "Use 'xy-adaptive' or 'rage', which compute estimates from scratch."
        )


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
