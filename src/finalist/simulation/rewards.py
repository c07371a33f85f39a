"""Rewards drawn for a simulation from the true means, pull by pull or as the sums of a batch.

Of a batch, least squares needs only each arm's count, sum and scatter, so the rewards of a million
pulls take a few draws. Pull by pull, a reward is made of the arm's mean and one number that does
not depend on the arm: a compiled loop takes those numbers as an array.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from finalist.errors import RewardError
from finalist.inference.statistics import LARGEST_REWARD, BatchResults
from finalist.problem.noise.model import Kind as Kind
from finalist.shapes import Bool, Float, Int
from finalist.text import counted

#: Rewards of one arm as a user's function draws them: (arm, how many, generator) -> (n,) array.
RewardFunction = Callable[[int, int, np.random.Generator], Float[np.ndarray, " n"]]

#: Rewards that a user's function is asked for at once.
_CHUNK = 65_536


@dataclass(frozen=True, eq=False)
class DrawnRewards:
    """Rewards of a known distribution.

    Attributes
    ----------
    means : (K,) array
        The expected reward of each arm.
    sigma : float or (K,) array
        Size of the noise, for all arms or for each; not used for Bernoulli rewards.
    kind : "gaussian", "bounded" or "bernoulli"
        Normal noise; noise of +sigma or -sigma with probability 1/2 each, the widest bounded
        noise; or rewards 0 and 1.
    shift : float
        Standard deviation of a constant shared by all rewards of a batch; 0 for none.

    Examples
    --------
    >>> rewards = DrawnRewards(np.array([0.0, 9.0]), 1.0, "bounded", np.random.default_rng(0))
    >>> rewards.pulls(np.array([1, 1, 0]))
    array([10.,  8., -1.])
    """

    means: Float[np.ndarray, " K"]
    sigma: float | Float[np.ndarray, " K"]
    kind: Kind
    rng: np.random.Generator
    shift: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            kinds = ", ".join(get_args(Kind))
            raise RewardError(f"rewards is {self.kind!r}; it is one of {kinds}, or a function.")
        low, high = float(self.means.min()), float(self.means.max())
        if self.binary and not (low >= 0.0 and high <= 1.0):
            raise RewardError(
                f"the expected rewards of the arms go from {low:.6g} to {high:.6g}; Bernoulli "
                "rewards need them between 0 and 1. Change theta or the features."
            )
        largest = max(-low, high) + 100.0 * (float(np.max(self.sigma)) + self.shift)
        if not largest <= LARGEST_REWARD:
            raise RewardError(
                f"rewards of size {largest:.3g} would be drawn; the largest allowed is "
                f"{LARGEST_REWARD:g}. Give a smaller sigma or theta."
            )
        if self.binary and self.shift > 0.0:
            raise RewardError(
                f"shift is {self.shift:g}; rewards 0 and 1 cannot be shifted. Leave it out."
            )

    @property
    def binary(self) -> bool:
        """Whether a reward is `noise < mean`; otherwise it is `mean + noise`."""
        return self.kind == "bernoulli"

    @property
    def spread(self) -> Float[np.ndarray, " K"]:
        """The factor of `noise` for a pull of each arm: 1 if all arms are equally noisy."""
        K = len(self.means)
        return np.ones(K) if isinstance(self.sigma, float) else np.array(self.sigma, dtype=float)

    def noise(self, n: int) -> Float[np.ndarray, " n"]:
        """Draw the noise of n pulls of any arms, to be multiplied by `spread`."""
        return self._noise(n, self.sigma if isinstance(self.sigma, float) else 1.0)

    def _noise(self, n: int, sigma: float | Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        if self.kind == "gaussian":
            return np.asarray(sigma * self.rng.standard_normal(n))
        uniform = self.rng.random(n)
        return uniform if self.binary else np.where(uniform < 0.5, -sigma, sigma)

    def pulls(self, arms: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the rewards of pulls, in their order."""
        means, noise = self.means[arms], self._noise(len(arms), self._sigma_of(arms))
        return np.asarray(noise < means, dtype=float) if self.binary else means + noise

    def _sigma_of(self, arms: Int[np.ndarray, " n"]) -> float | Float[np.ndarray, " n"]:
        return self.sigma if isinstance(self.sigma, float) else self.sigma[arms]

    def batch(self, counts: Int[np.ndarray, " K"]) -> BatchResults:
        """Return the rewards of a batch, summed up; a single pull is drawn as `pulls` does."""
        pulled = counts.nonzero()[0]
        shift = self.shift * self.rng.standard_normal() if self.shift > 0.0 else 0.0
        if counts.sum() == 1:
            rewards = BatchResults.empty(len(self.means))
            rewards.add(int(pulled[0]), float(self.pulls(pulled)[0]) + shift)
            return rewards
        n, means, sigma = counts[pulled], self.means[pulled] + shift, self._sigma_of(pulled)
        total, squares = np.zeros((2, len(counts)))
        if self.kind == "gaussian":
            noise = sigma * np.sqrt(n) * self.rng.standard_normal(len(n))
            total[pulled] = n * means + noise
            squares[pulled] = sigma**2 * self._chi_square(n - 1)
        else:
            # How often the larger of the two values was drawn.
            k = self.rng.binomial(n, means if self.binary else 0.5)
            low, step = (0.0, 1.0) if self.binary else (means - sigma, 2 * sigma)
            total[pulled] = n * low + step * k
            squares[pulled] = step**2 * k * ((n - k) / n)
        return BatchResults.of_batch(counts, total, squares)

    def sequence(self, arms: Int[np.ndarray, " n"]) -> BatchResults:
        """Return the rewards of a batch one by one, in its order."""
        shift = self.shift * self.rng.standard_normal() if self.shift > 0.0 else 0.0
        return BatchResults.of(len(self.means), arms, self.pulls(arms) + shift)

    def _chi_square(self, freedom: Int[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        some: Bool[np.ndarray, " m"] = freedom > 0
        values = np.zeros(len(freedom))
        values[some] = self.rng.chisquare(freedom[some])
        return values


@dataclass(frozen=True, eq=False)
class FunctionRewards:
    """Rewards that a user's function draws, `draw(arm, n, rng)` for n pulls of an arm.

    Examples
    --------
    >>> rewards = FunctionRewards(lambda arm, n, rng: np.full(n, float(arm)), 3, None)
    >>> rewards.batch(np.array([0, 2, 1])).mean
    array([0., 1., 2.])
    """

    draw: RewardFunction
    arms: int
    rng: np.random.Generator

    def pulls(self, arms: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the rewards of pulls, in their order."""
        return np.array([self._draw(int(arm), 1)[0] for arm in arms], dtype=float)

    def batch(self, counts: Int[np.ndarray, " K"]) -> BatchResults:
        """Return the rewards of a batch, summed up."""
        rewards = BatchResults.empty(self.arms)
        for arm in np.flatnonzero(counts):
            left = int(counts[arm])
            while left > 0:
                n = min(left, _CHUNK)
                rewards.add_many(np.full(n, arm), self._draw(int(arm), n))
                left -= n
        return rewards

    def sequence(self, arms: Int[np.ndarray, " n"]) -> BatchResults:
        """Return the rewards of a batch one by one, in its order."""
        return BatchResults.of(self.arms, arms, self.pulls(arms))

    def _draw(self, arm: int, n: int) -> Float[np.ndarray, " n"]:
        values = np.asarray(self.draw(arm, n, self.rng))
        if values.shape != (n,):
            raise RewardError(
                f"the rewards function returned shape {values.shape} for {counted(n, 'pull')} "
                f"of arm {arm}; it is called as rewards(arm, n, rng) and must return n numbers."
            )
        return values
