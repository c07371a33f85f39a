"""What the rewards say of all arms together: a posterior that knows how maxima mislead.

The arm with the largest estimate is partly the luckiest one, and under a flat prior it is believed
too much where arms are many and pulls are few. The prior here is that of Stein (1981, "Estimation
of the mean of a multivariate normal distribution"): differences of arms are normal with a common
scale tau in coordinates in which arms vary by 1 in every direction, and tau^2 is uniform. The level
of all arms has a flat prior. With one or two such coordinates it is the flat prior itself. The
posterior is a mixture over a grid of tau: where estimates stand out of their errors it is the flat
one, and where they do not they are moved towards each other. It is an estimate and promises
nothing; `make bench-certainty` measures how well it is calibrated.
"""

import math
from dataclasses import dataclass

import numpy as np

from finalist.errors import EstimateError
from finalist.inference.least_squares import Estimate
from finalist.shapes import Float, Int

#: Scales of the grid: from this part of the smallest standard error to so many times the largest
#: estimate, and how many.
LEAST, MOST, SCALES = 0.05, 20.0, 41
#: Scales of less weight than this count for nothing.
LIGHT = 1e-9
#: Directions in which arms differ by less than this part of the most have no meaning.
FLAT = 1e-13
#: Prior: tau^2 is uniform, which is this power of tau on a grid with equal steps of log tau.
POWER = 2.0


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior of the differences of all arms, in units of sigma.

    Attributes
    ----------
    axes : (K, q) array
        The arms minus their mean, in coordinates in which the information is diagonal.
    to_axes : (r, q) array
        Takes a change of the design matrix of arms to these coordinates, level left out.
    level : (r, l) array
        The direction in which all arms have the same mean: l is 1 or 0.
    design : (r, r) array
        The design matrix of all pulls.
    worth : (q,) array
        The precision of each coordinate; 0 where nothing is known.
    score : (q,) array
        `worth` times the estimates.
    scales, weights : (g,) arrays
        tau, infinite for the flat prior, and the probability of each.
    sigma : float
        What the unit is worth.
    freedom : int
        Degrees of freedom of sigma if it comes from residuals; otherwise 0.
    """

    axes: Float[np.ndarray, "K q"]
    to_axes: Float[np.ndarray, "r q"]
    level: Float[np.ndarray, "r l"]
    design: Float[np.ndarray, "r r"]
    worth: Float[np.ndarray, " q"]
    score: Float[np.ndarray, " q"]
    scales: Float[np.ndarray, " g"]
    weights: Float[np.ndarray, " g"]
    sigma: float
    freedom: int

    @classmethod
    def of(cls, fit: Estimate, sigma: float | None) -> "Belief | None":
        """Return what the rewards of an estimate say; None where sigma or all arms are unknown.

        Examples
        --------
        >>> import finalist as fl
        >>> from finalist.inference.least_squares import estimate
        >>> from finalist.inference.statistics import Statistics
        >>> s = Statistics.empty(4)
        >>> s.add_many([0, 1, 2, 3], [0.6, 0.2, 0.0, -0.1])
        >>> belief = Belief.of(estimate(fl.Arms.unstructured(4), s), 1.0)
        >>> gap, width = belief.gaps(0, [1])  # by tau: of the estimate 0.4 little is left
        >>> round(float(belief.weights @ gap[:, 0]), 2)
        0.27
        """
        freedom, unit = 0, sigma
        if unit is None:
            try:
                freedom, unit = fit.degrees_of_freedom, math.sqrt(fit.residual_variance)
            except EstimateError:
                return None
        if unit == 0.0 or fit.statistics.pulls == 0:
            return None
        Z, info = fit.arms.coordinates, fit.information
        root = info.root @ info.basis.T
        A = root.T @ root
        centred = Z - Z.mean(axis=0)
        size, axes = np.linalg.eigh(centred.T @ centred / len(Z))
        apart = size > FLAT * size[-1] if len(size) else size > 0.0
        U, level = axes[:, apart] / np.sqrt(size[apart]), axes[:, ~apart]
        with np.errstate(over="ignore", invalid="ignore"):
            total = A @ (fit.phi / unit)
        if U.shape[1] == 0 or not np.isfinite(total).all():
            return None
        worth, turned = np.linalg.eigh(_without_level(A, U, level))
        worth = np.where(worth > FLAT * worth[-1], worth, 0.0)
        U = U @ turned
        score = U.T @ total - _through_level(A, U, level) @ (level.T @ total)
        scales, weights = _scales(worth, score)
        return cls(centred @ U, U, level, A, worth, score, scales, weights, unit, freedom)

    def posterior(self) -> tuple[Float[np.ndarray, "g q"], Float[np.ndarray, "g q"]]:
        """Return means and standard deviations of the coordinates, for each scale."""
        precision = self.worth + 1.0 / self.scales[:, None] ** 2
        return self.score / precision, 1.0 / np.sqrt(precision)

    def gaps(
        self, arm: int, others: "list[int] | Int[np.ndarray, ' n']"
    ) -> tuple[Float[np.ndarray, "g n"], Float[np.ndarray, "g n"]]:
        """Return by how much an arm is above others, and how uncertain that is, by scale."""
        mean, spread = self.posterior()
        Y = self.axes[arm] - self.axes[others]
        return mean @ Y.T, np.sqrt(spread**2 @ (Y**2).T)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return n draws of the coordinates, (n, q), and of what sigma is multiplied by, (n, 1)."""
        mean, spread = self.posterior()
        at = (np.arange(n) + rng.random()) / n
        which = np.minimum(np.searchsorted(self.weights.cumsum(), at), len(self.weights) - 1)
        noise, factor = rng.standard_normal((n, len(self.worth))), np.ones((n, 1))
        if self.freedom > 0:
            factor = np.sqrt(self.freedom / rng.chisquare(self.freedom, n))[:, None]
        return mean[which] + spread[which] * noise * factor, factor

    def estimates_at_end(
        self,
        drawn: Float[np.ndarray, "n q"],
        factor: Float[np.ndarray, "n 1"],
        more: Float[np.ndarray, "r r"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "n q"]:
        """Return estimates from all pulls, when more of them are made under drawn parameters.

        With P the information now, V^-1 that at the end and D their difference, the estimate given
        the parameter b is normal with mean V (score + D b) and covariance V D V.

        Parameters
        ----------
        drawn, factor
            From `draw`.
        more : (r, r) array
            What the pulls to come add to the design matrix.
        """
        after = _without_level(self.design + more, self.to_axes, self.level)
        D = after - np.diag(self.worth)
        V = np.linalg.pinv(after, hermitian=True)
        size, axes = np.linalg.eigh(D)
        root = V @ (axes * np.sqrt(np.maximum(size, 0.0)))
        noise = factor * rng.standard_normal(drawn.shape)
        return np.asarray((self.score + drawn @ D) @ V + noise @ root.T)


def _through_level(
    A: Float[np.ndarray, "r r"], U: Float[np.ndarray, "r q"], level: Float[np.ndarray, "r l"]
) -> Float[np.ndarray, "q l"]:
    """Return U'A N (N'A N)^+, N being the level."""
    return np.asarray(U.T @ A @ level @ np.linalg.pinv(level.T @ A @ level, hermitian=True))


def _without_level(
    A: Float[np.ndarray, "r r"], U: Float[np.ndarray, "r q"], level: Float[np.ndarray, "r l"]
) -> Float[np.ndarray, "q q"]:
    """Return the information on differences when the level of all arms is unknown."""
    return np.asarray(U.T @ A @ U - _through_level(A, U, level) @ (level.T @ A @ U))


def _scales(
    worth: Float[np.ndarray, " q"], score: Float[np.ndarray, " q"]
) -> tuple[Float[np.ndarray, " g"], Float[np.ndarray, " g"]]:
    """Return scales of the prior with their posterior weights."""
    known = worth > 0.0
    if known.sum() <= 2:
        return np.array([np.inf]), np.ones(1)
    errors = 1.0 / worth[known]
    estimates = score[known] * errors
    low = LEAST * math.sqrt(errors.min())
    high = MOST * max(float(np.abs(estimates).max()), math.sqrt(errors.max()))
    scales = np.geomspace(low, high, SCALES)
    total = errors + scales[:, None] ** 2
    log = POWER * np.log(scales) - 0.5 * (np.log(total) + estimates**2 / total).sum(axis=1)
    weights = np.exp(log - log.max())
    kept = weights > LIGHT * weights.sum()
    return scales[kept], weights[kept] / weights[kept].sum()
