"""Kinds of truths that plans do not draw from: a table, how its means lie, and a study's settings.

A plan draws directions at random, half of the time around one arm that stands out
(`finalist.planning.parameters`). Here means are equally spaced, clustered, heavy-tailed, sparse,
bent, nearly tied. They are scaled to the lead that the plan is told; nothing else is told.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import finalist as fl
from finalist.simulation import instances

Rng = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """A kind of truth.

    Attributes
    ----------
    arms : callable
        Draws the arms.
    means : callable
        Draws their means; they are scaled to the lead. An array of the features' parameter where
        it has their number of columns, else one of means.
    gap : float
        The lead.
    words : mapping
        Further settings of the study; sigma is 1 unless they say otherwise.
    size : int or None
        Measurements of a batch.
    """

    arms: Callable[[Rng], fl.Arms]
    means: Callable[[Rng, fl.Arms], np.ndarray]
    gap: float
    words: Mapping[str, Any] = field(default_factory=dict)
    size: int | None = None

    def theta(self, rng: Rng, arms: fl.Arms) -> np.ndarray:
        """Draw a parameter with the lead."""
        binary = self.words.get("noise") == "bernoulli"
        while True:
            means = self.means(rng, arms)
            first, second = np.sort(means)[-1:-3:-1]
            if first - second < 1e-3 * np.ptp(means):
                continue  # tied: no lead to scale
            means = means * (self.gap / (first - second))
            if binary:
                if np.ptp(means) > 0.85:
                    continue
                means = means - means.min() + 0.1
            return np.asarray(np.linalg.lstsq(arms.features, means, rcond=None)[0])


def separate(K: int) -> Callable[[Rng], fl.Arms]:
    """Return arms without features."""
    return lambda _: fl.Arms.unstructured(K)


def of(X: np.ndarray, model: str = "straight") -> Callable[[Rng], fl.Arms]:
    """Return the rows of a table with a level of their own."""
    arms = fl.Arms(np.asarray(X, dtype=float)).with_intercept()
    arms = arms if model == "straight" else arms.with_model(model)
    return lambda _: arms


def crossed(*levels: int) -> np.ndarray:
    """Return all combinations, with a column for each level but the first."""
    X = instances.one_hot_factorial(levels)
    constant = np.ptp(X, axis=0) == 0
    return np.asarray(X[:, ~constant])


def bare(draw: Callable[[Rng], Any]) -> Callable[[Rng, fl.Arms], np.ndarray]:
    """Return means that have nothing to do with features."""
    return lambda rng, _: np.asarray(draw(rng), dtype=float)


def along(draw: Callable[[Rng, int], np.ndarray]) -> Callable[[Rng, fl.Arms], np.ndarray]:
    """Return means by the columns; the last column is the constant."""

    def means(rng: Rng, arms: fl.Arms) -> np.ndarray:
        d = arms.features.shape[1] - int(arms.has_intercept)
        return np.asarray(arms.features[:, :d] @ draw(rng, d))

    return means


def signs(rng: Rng, d: int) -> np.ndarray:
    """Return effects of equal size, up to a tenth."""
    return rng.choice([-1.0, 1.0], d) * (1.0 + 0.1 * rng.standard_normal(d))


def fading(rng: Rng, d: int) -> np.ndarray:
    """Return effects of which each is about half of the one before."""
    sizes = rng.permutation(0.5 ** np.arange(d)) * rng.uniform(0.7, 1.3)
    return np.asarray(rng.choice([-1.0, 1.0], d) * sizes)


def sparse(count: int) -> Callable[[Rng, int], np.ndarray]:
    """Return effects of a few columns; the others have a fiftieth of that."""

    def draw(rng: Rng, d: int) -> np.ndarray:
        theta = 0.02 * rng.standard_normal(d)
        theta[rng.choice(d, min(count, d), replace=False)] += rng.choice([-1.0, 1.0], min(count, d))
        return theta

    return draw


def heavy(rng: Rng, d: int) -> np.ndarray:
    """Return effects with heavy tails."""
    return rng.standard_t(2, d)


def aligned(rng: Rng, arms: fl.Arms) -> np.ndarray:
    """Return means of which one arm is the parameter."""
    return np.asarray(arms.features @ arms.features[rng.integers(len(arms))])


def peak(rng: Rng, arms: fl.Arms) -> np.ndarray:
    """Return a hill over the columns, with its top inside."""
    columns = arms.features[:, : len(arms.recipe.centres or {})]
    low, high = columns.min(axis=0), columns.max(axis=0)
    top = rng.uniform(low + 0.2 * (high - low), high - 0.2 * (high - low))
    steep = rng.uniform(0.5, 1.5, len(top)) / (high - low) ** 2
    return np.asarray(-((columns - top) ** 2 @ steep))


def clustered(rng: Rng) -> np.ndarray:
    """Return four groups of three that are nearly equal."""
    return np.repeat(rng.standard_normal(4), 3) + 0.05 * rng.standard_normal(12)


def mixed(rng: Rng) -> fl.Arms:
    """Return 40 rows with two numbers, a category of four and a yes/no."""
    numbers = rng.uniform(-1.0, 1.0, (40, 2))
    category = np.eye(4)[rng.integers(4, size=40)][:, 1:]
    return fl.Arms(np.column_stack([numbers, category, rng.integers(2, size=40)])).with_intercept()


UNKNOWN: Mapping[str, Any] = {"sigma": None}
GRID = np.array([[x, y] for x in range(5) for y in range(5)], dtype=float)

KINDS: Mapping[str, Kind] = {
    "8 separate, uniform means": Kind(separate(8), bare(lambda rng: rng.uniform(size=8)), 0.8),
    "12 separate, exponential, batches of 12": Kind(
        separate(12), bare(lambda rng: -rng.exponential(size=12)), 1.0, size=12
    ),
    "15 separate, heavy tails, unknown sigma": Kind(
        separate(15), bare(lambda rng: rng.standard_t(2, 15)), 1.2, UNKNOWN, 15
    ),
    "5 separate, equal steps, batches of 5": Kind(
        separate(5), bare(lambda rng: rng.permutation(5)), 0.7, size=5
    ),
    "12 separate, four clusters, no check": Kind(
        separate(12), bare(clustered), 0.6, {"check": 0.0, "delta": 0.01}
    ),
    "10 separate, one good, batches of 20": Kind(
        separate(10),
        bare(lambda rng: rng.permutation(np.eye(10)[0] + 0.03 * rng.standard_normal(10))),
        1.0,
        size=20,
    ),
    "20 separate, three good": Kind(
        separate(20),
        bare(lambda rng: np.r_[1.0, 0.8, 0.75, 0.1 * rng.standard_normal(17)]),
        0.8,
    ),
    "10 separate, equal steps, margin": Kind(
        separate(10), bare(lambda rng: rng.permutation(10)), 0.5, {"epsilon": 0.75}, 10
    ),
    "6 separate, two pairs, unknown sigma, margin": Kind(
        separate(6),
        bare(lambda rng: [1.0, 0.9, 0.3, 0.2, *(-0.5 * rng.uniform(size=2))]),
        0.5,
        {"epsilon": 0.25, **UNKNOWN},
        12,
    ),
    "2^5, equal effects, batches of 16": Kind(
        of(instances.hypercube(5)), along(signs), 1.0, size=16
    ),
    "3 x 3 x 3, fading effects, unknown sigma": Kind(
        of(crossed(3, 3, 3)), along(fading), 0.8, UNKNOWN, 9
    ),
    "4 x 3 x 2, few effects, batches of 24": Kind(
        of(crossed(4, 3, 2)), along(sparse(3)), 0.6, size=24
    ),
    "3 x 3, plates of 9 with levels of their own": Kind(
        of(crossed(3, 3)), along(signs), 1.0, {"batch_intercept": True}, 9
    ),
    "4 x 3, unequal noise and costs": Kind(
        of(crossed(4, 3)),
        along(heavy),
        0.8,
        {"sigma": [0.6, 1.0, 1.8] * 4, "cost": [1.0, 1.0, 2.0, 4.0] * 3},
    ),
    "mixed table of 40, sparse, unknown sigma": Kind(mixed, along(sparse(2)), 0.8, UNKNOWN, 12),
    "11 doses, bending": Kind(
        of(np.arange(11.0)[:, None], "bending"), peak, 0.3, {"delta": 0.1}, 11
    ),
    "5 x 5 doses, bending, unknown sigma": Kind(of(GRID, "bending"), peak, 0.4, UNKNOWN, 25),
    "60 random, two of nine columns": Kind(
        lambda rng: fl.Arms(rng.standard_normal((60, 9))).with_intercept(),
        along(sparse(2)),
        0.5,
        size=30,
    ),
    "30 shares, heavy tails, margin": Kind(
        lambda rng: fl.Arms(rng.uniform(size=(30, 4))).with_intercept(),
        along(heavy),
        0.5,
        {"epsilon": 0.25},
    ),
    "80 on a sphere, one aligned": Kind(
        lambda rng: fl.Arms(instances.unit_sphere(80, 6, int(rng.integers(2**31)))),
        aligned,
        0.4,
        size=24,
    ),
    "paper, d = 6, one close": Kind(
        lambda _: instances.paper(6, 0.4).arms,
        lambda rng, arms: arms.means(np.eye(6)[0] + 0.05 * rng.standard_normal(6)),
        0.5,
        {"check": 0.0},
    ),
    "40 prompts, yes or no": Kind(
        lambda rng: fl.Arms(rng.standard_normal((40, 4))).with_intercept(),
        along(signs),
        0.12,
        {"noise": "bernoulli"},
        50,
    ),
}
