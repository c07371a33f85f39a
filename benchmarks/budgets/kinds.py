"""Kinds of truths: each a way to draw arms and means, anew in every run.

The prior of `finalist.inference.belief` was chosen on `TUNED`; `MEASURED` are others.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from finalist.simulation import instances

Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


class KindOfTruth(NamedTuple):
    """A way to draw features and a parameter, and two budgets.

    Attributes
    ----------
    draw : callable
    budgets : tuple of int
    binary : bool
        Rewards 0 and 1; otherwise normal noise of size 1.
    """

    draw: Draw
    budgets: tuple[int, int]
    binary: bool = False


def sphere(K: int, d: int, *, aligned: bool = False) -> Draw:
    """Return points of a sphere; the parameter is one of them if aligned."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X, theta = rng.standard_normal((K, d)), rng.standard_normal(d)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X, X[0] if aligned else theta / np.linalg.norm(theta)

    return draw


def paper(d: int, omega: float) -> Draw:
    """Return the instance of the paper."""
    known = instances.paper(d, omega)
    return lambda _: (np.array(known.arms.features), np.array(known.theta))


def factorial(*levels: int, size: float = 0.35, active: int | None = None) -> Draw:
    """Return main effects; all but one factor have next to none if one is active."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        effects = [size * rng.standard_normal(n) for n in levels]
        if active is not None:
            effects = [e if i == active else 0.05 * e for i, e in enumerate(effects)]
        return instances.one_hot_factorial(levels), np.concatenate([[0.0], *effects])

    return draw


def bare(means: Callable[[np.random.Generator], np.ndarray]) -> Draw:
    """Return arms without features."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        theta = np.asarray(means(rng), dtype=float)
        return np.eye(len(theta)), theta

    return draw


def normal(K: int, size: float) -> Draw:
    """Return arms without features and with normal means."""
    return bare(lambda rng: size * rng.standard_normal(K))


def dose(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return eleven doses with an optimum somewhere."""
    x = np.linspace(-1.0, 1.0, 11)
    slope, bend = 0.5 * rng.standard_normal(), -abs(rng.standard_normal())
    return np.column_stack([np.ones(11), x, x**2]), np.array([0.0, slope, bend])


def surface(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a grid of five by five with a quadratic surface."""
    x, y = (v.ravel() for v in np.meshgrid(*[np.linspace(-1.0, 1.0, 5)] * 2))
    X = np.column_stack([np.ones(25), x, y, x * x, y * y, x * y])
    return X, np.concatenate([[0.0], 0.4 * rng.standard_normal(5)])


def prompts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 60 prompts with seven columns; they succeed with 0.25 to 0.75."""
    X = np.column_stack([np.ones(60), rng.standard_normal((60, 6))])
    slope = rng.standard_normal(6)
    slope *= 0.5 / np.ptp(X[:, 1:] @ slope)
    return X, np.concatenate([[0.25 - (X[:, 1:] @ slope).min()], slope])


def sparse(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 60 arms with nine columns, of which two matter."""
    theta = np.zeros(10)
    theta[1 + rng.choice(9, 2, replace=False)] = 0.5 * rng.standard_normal(2)
    return np.column_stack([np.ones(60), rng.standard_normal((60, 9))]), theta


def shares(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 30 recipes with four shares from 0 to 1."""
    X = np.column_stack([np.ones(30), rng.uniform(0.0, 1.0, (30, 4))])
    return X, np.concatenate([[3.0], 0.8 * rng.standard_normal(4)])


def clusters(rng: np.random.Generator) -> np.ndarray:
    """Return four groups of three that are nearly equal."""
    return np.repeat(0.6 * rng.standard_normal(4), 3) + 0.05 * rng.standard_normal(12)


TUNED: dict[str, KindOfTruth] = {
    "sphere 20 x 3": KindOfTruth(sphere(20, 3), (30, 150)),
    "factorial 4 x 3 x 2": KindOfTruth(factorial(4, 3, 2), (40, 160)),
    "bare, 16 normal": KindOfTruth(normal(16, 0.4), (100, 500)),
    "bare, 20 with two good": KindOfTruth(
        bare(lambda rng: np.array([0.4, 0.2] + [0.0] * 18) + 0.03 * rng.standard_normal(20)),
        (300, 1000),
    ),
    "bare, 10 spread": KindOfTruth(bare(lambda _: np.linspace(0.0, -1.35, 10)), (100, 500)),
    "doses": KindOfTruth(dose, (30, 150)),
    "yes/no, 12 bare": KindOfTruth(bare(lambda rng: rng.uniform(0.3, 0.7, 12)), (150, 500), True),
    "paper, d = 10": KindOfTruth(paper(10, 0.1), (100, 500)),
    "two of nine columns": KindOfTruth(sparse, (60, 250)),
    "two arms": KindOfTruth(normal(2, 0.4), (16, 60)),
}
MEASURED: dict[str, KindOfTruth] = {
    "sphere 50 x 6": KindOfTruth(sphere(50, 6), (80, 400)),
    "sphere 100 x 8, aligned": KindOfTruth(sphere(100, 8, aligned=True), (100, 500)),
    "sphere 10 x 2": KindOfTruth(sphere(10, 2), (20, 80)),
    "paper, d = 5": KindOfTruth(paper(5, 0.3), (60, 300)),
    "factorial 2^5": KindOfTruth(factorial(2, 2, 2, 2, 2, size=0.2), (32, 120)),
    "factorial 3 x 3 x 3": KindOfTruth(factorial(3, 3, 3, size=0.25), (50, 200)),
    "one active factor": KindOfTruth(factorial(4, 3, 3, size=0.4, active=0), (50, 200)),
    "surface 5 x 5": KindOfTruth(surface, (60, 250)),
    "shares": KindOfTruth(shares, (40, 160)),
    "bare, 8 uniform": KindOfTruth(bare(lambda rng: rng.uniform(0.0, 1.0, 8)), (60, 250)),
    "bare, 12 heavy tails": KindOfTruth(bare(lambda rng: 0.3 * rng.standard_t(2, 12)), (80, 400)),
    "bare, 15 exponential": KindOfTruth(
        bare(lambda rng: 0.35 * rng.exponential(size=15)), (100, 500)
    ),
    "bare, 12 exponential below": KindOfTruth(
        bare(lambda rng: -0.5 * rng.exponential(size=12)), (100, 400)
    ),
    "bare, 12 with one good": KindOfTruth(bare(lambda _: np.array([0.5] + [0.0] * 11)), (60, 200)),
    "bare, 30 normal": KindOfTruth(normal(30, 0.5), (120, 500)),
    "bare, 6 nearly equal": KindOfTruth(normal(6, 0.1), (60, 300)),
    "bare, four clusters": KindOfTruth(bare(clusters), (100, 400)),
    "bare, 5 equal steps": KindOfTruth(bare(lambda _: 0.25 * np.arange(5.0)), (40, 150)),
    "three arms": KindOfTruth(normal(3, 0.4), (15, 60)),
    "yes/no prompts 60 x 7": KindOfTruth(prompts, (120, 500), True),
    "yes/no, 10 rare": KindOfTruth(bare(lambda rng: rng.beta(2.0, 18.0, 10)), (200, 800), True),
}
