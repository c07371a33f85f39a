"""Pulls of unequal noise in units of one sigma, and arms that cannot be pulled.

Let sigma be the largest sigma_x of an arm that can be pulled. Divided by sigma_x / sigma, arms and
rewards follow a linear model with the same parameter in which all errors have the size sigma:
whatever holds for equal noise holds for the rows x sigma / sigma_x. In the design matrix a pull of
x counts (sigma / sigma_x)^2, its weight. Where all arms are equally noisy every weight is exactly
1, so that nothing changes, to the last bit.
"""

from dataclasses import dataclass

import numpy as np

from finalist.problem import Feature, Problem
from finalist.shapes import Float, Int
from finalist.strategies.protocol import SUPPORTED

#: What a strategy that works in these units supports.
BEYOND: frozenset[Feature] = SUPPORTED | {"sigma per arm", "other candidates"}


@dataclass(frozen=True, eq=False)
class Units:
    """What pulls count, and who can win.

    Attributes
    ----------
    sigma : float
        The largest of an arm that can be pulled.
    weights : (K,) array
        (sigma / sigma_x)^2, or 0 for an arm that cannot be pulled.
    relative : tuple of float, or None
        sigma_x / sigma of each arm; None where all are 1.
    measurable, candidates : arrays of int
        The arms that can be pulled, and those that can win.

    Examples
    --------
    >>> import finalist as fl
    >>> from finalist.problem import as_problem
    >>> arms = fl.Arms([[1.0], [2.0], [3.0]], measurable=[True, True, False])
    >>> units = Units.of(as_problem(arms, sigma=[1.0, 2.0]))
    >>> units.sigma, units.weights, units.candidates
    (2.0, array([4., 1., 0.]), array([0, 1, 2]))
    """

    sigma: float
    weights: Float[np.ndarray, " K"]
    relative: tuple[float, ...] | None
    measurable: Int[np.ndarray, " k"]
    candidates: Int[np.ndarray, " m"]

    @classmethod
    def of(cls, problem: Problem) -> "Units":
        """Return those of a problem whose noise is known."""
        arms = problem.arms
        each = problem.sigmas
        sigma = float(each[arms.measurable].max())
        # The noise of an arm that is never pulled does not matter.
        relative = np.where(arms.measurable, each / sigma, 1.0)
        return cls(
            sigma,
            np.where(arms.measurable, relative**-2.0, 0.0),
            None if (relative == 1.0).all() else tuple(relative.tolist()),
            np.flatnonzero(arms.measurable),
            np.flatnonzero(arms.candidate),
        )

    @property
    def precisions(self) -> Float[np.ndarray, " K"] | None:
        """What the pulls of each arm count in `estimate`; None where all count the same."""
        return None if self.relative is None else self.weights

    def rows(self, Z: Float[np.ndarray, "K r"]) -> Float[np.ndarray, "k r"]:
        """Return the arms that can be pulled, in units of their noise."""
        rows = np.asarray(Z[self.measurable])
        if self.relative is None:
            return rows
        return np.asarray(rows * np.sqrt(self.weights[self.measurable])[:, None])
