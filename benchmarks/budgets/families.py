"""Instances by name and seed: spheres, factorials, arms without features, yes/no rewards.

Random ones are drawn afresh from their seed; budgets are in `cells`.
"""

from dataclasses import dataclass

import numpy as np

from finalist.arms import Arms
from finalist.simulation import instances


@dataclass(frozen=True, eq=False)
class Truth:
    """Arms with their means, and what is drawn.

    Attributes
    ----------
    arms : Arms
    theta : (d,) array
    binary : bool
        Rewards 0 and 1; otherwise normal noise of size 1.
    """

    arms: Arms
    theta: np.ndarray
    binary: bool = False

    @property
    def means(self) -> np.ndarray:
        """The expected rewards."""
        return np.asarray(self.arms.means(self.theta))

    @property
    def gaps(self) -> np.ndarray:
        """How much worse each arm is than the best."""
        return np.asarray(self.means.max() - self.means)

    @property
    def variances(self) -> np.ndarray:
        """The variance of a reward of each arm."""
        p = self.means
        return np.asarray(p * (1.0 - p) if self.binary else np.ones(len(p)))

    @property
    def sigma(self) -> float:
        """The noise that strategies are told; for rewards 0 and 1 the largest there is."""
        return 0.5 if self.binary else 1.0


def truth(family: str, seed: int) -> Truth:
    """Return the instance of a family with this seed.

    Examples
    --------
    >>> truth("sphere 20 x 3", 1).arms
    Arms(K=20, d=3, rank=3)
    >>> bool(truth("yes/no 12 bare", 1).means.max() < 1.0)
    True
    """
    kind, _, size = family.partition(" ")
    if kind == "paper":
        found = instances.paper(10, 0.1)
        return Truth(found.arms, found.theta)
    rng = np.random.default_rng([seed, *family.encode()])
    if kind == "sphere":
        K, d = map(int, size.split(" x "))
        X, direction = rng.standard_normal((K, d)), rng.standard_normal(d)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return Truth(Arms(X), direction / np.linalg.norm(direction))
    if kind == "factorial":
        return _factorial(tuple(map(int, size.split(" x "))), rng)
    if kind == "bare":
        return _bare(size, rng)
    if family == "yes/no 12 bare":
        means = rng.uniform(0.35, 0.65, 12)
        return Truth(Arms(np.eye(12)), means, binary=True)
    if family == "yes/no prompts 100 x 8":
        return _prompts(rng)
    raise ValueError(f"there is no family {family!r}")


def _factorial(levels: tuple[int, ...], rng: np.random.Generator) -> Truth:
    """Return main effects, a constant and normal steps between the levels of each factor."""
    X = instances.one_hot_factorial(levels)
    theta = np.concatenate([[0.0], *(0.35 * rng.standard_normal(n) for n in levels)])
    return Truth(Arms(X), theta)


def _bare(size: str, rng: np.random.Generator) -> Truth:
    if size == "10 spread":
        means = np.linspace(0.0, -1.35, 10) + 0.02 * rng.standard_normal(10)
    elif size == "20 with two good":
        means = np.array([0.4, 0.2, *[0.0] * 18]) * rng.uniform(0.9, 1.1)
    else:  # "16 random"
        means = 0.4 * rng.standard_normal(16)
    return Truth(Arms(np.eye(len(means))), means)


def _prompts(rng: np.random.Generator) -> Truth:
    """Return 100 prompts with a constant and seven properties; means from 0.25 to 0.75."""
    X = np.column_stack([np.ones(100), rng.standard_normal((100, 7))])
    slope = rng.standard_normal(7)
    raw = X[:, 1:] @ slope
    slope, shift = slope * 0.5 / np.ptp(raw), 0.25 - raw.min() * 0.5 / np.ptp(raw)
    return Truth(Arms(X), np.concatenate([[shift], slope]), binary=True)
