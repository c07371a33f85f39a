"""Instances by name and seed: spheres, factorials, arms without features, yes/no rewards.

Random ones are drawn from their seed until the best arm leads by `LEADS`: nearly tied arms would
only make the budgets of `cells` longer.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from finalist.arms import Arms
from finalist.simulation import instances

#: The least lead of the best arm, by the beginning of a family's name.
LEADS = {
    "sphere 20": 0.08,
    "sphere": 0.06,
    "factorial": 0.1,
    "bare": 0.12,
    "yes/no prompts": 0.05,
    "yes/no": 0.07,
}


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


@lru_cache(maxsize=64)
def truth(family: str, seed: int) -> Truth:
    """Return the instance of a family with this seed.

    Examples
    --------
    >>> truth("sphere 20 x 3", 1).arms
    Arms(K=20, d=3, rank=3)
    >>> bool(truth("yes/no 12 bare", 1).means.max() < 1.0)
    True
    """
    if family == "paper":
        known = instances.paper(10, 0.1)
        return Truth(known.arms, known.theta)
    least = next(lead for start, lead in LEADS.items() if family.startswith(start))
    rng = np.random.default_rng([seed, *family.encode()])
    while True:
        found = _drawn(family, rng)
        if np.sort(found.gaps)[1] >= least:
            return found


def _drawn(family: str, rng: np.random.Generator) -> Truth:
    kind, _, size = family.partition(" ")
    if kind == "sphere":
        K, d = map(int, size.split(" x "))
        X, direction = rng.standard_normal((K, d)), rng.standard_normal(d)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return Truth(Arms(X), direction / np.linalg.norm(direction))
    if kind == "factorial":
        return _factorial(tuple(map(int, size.split(" x "))), rng)
    if kind == "bare":
        return _bare(size, rng)
    if size == "12 bare":
        return Truth(Arms(np.eye(12)), rng.uniform(0.3, 0.7, 12), binary=True)
    return _prompts(rng)


def _factorial(levels: tuple[int, ...], rng: np.random.Generator) -> Truth:
    """Return main effects, a constant and normal steps between the levels of each factor."""
    X = instances.one_hot_factorial(levels)
    theta = np.concatenate([[0.0], *(0.35 * rng.standard_normal(n) for n in levels)])
    return Truth(Arms(X), theta)


def _bare(size: str, rng: np.random.Generator) -> Truth:
    if size == "10 spread":
        means = np.linspace(0.0, -1.35, 10) + 0.02 * rng.standard_normal(10)
    elif size == "20 with two good":
        means = np.array([0.4, 0.2, *[0.0] * 18]) + 0.03 * rng.standard_normal(20)
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
