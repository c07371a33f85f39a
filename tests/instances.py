"""Named families of arms, hard and easy: those of the package, and some for tests alone.

Every function returns a feature matrix (K, d); random ones take the seed of their generator.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from finalist.simulation import instances
from finalist.simulation.instances import (
    Matrix,
    gaussian,
    hypercube,
    one_hot_factorial,
    quadratic_grid,
    unit_sphere,
)

__all__ = [
    "Truth",
    "clusters",
    "gaussian",
    "hypercube",
    "one_hot_factorial",
    "paper",
    "plane",
    "quadratic_grid",
    "scaled_columns",
    "unit_sphere",
    "with_duplicates",
]


class Truth(NamedTuple):
    """Arms with the parameter that makes their rewards."""

    features: Matrix
    theta: Float[np.ndarray, " d"]


def clusters(spread: float, centres: int, size: int, d: int, seed: int) -> Matrix:
    """Near-duplicates: `size` arms around each centre, `spread` apart (1e-2 to 1e-6)."""
    rng = np.random.default_rng(seed)
    middle = np.repeat(rng.standard_normal((centres, d)), size, axis=0)
    return middle + spread * rng.standard_normal(middle.shape)


def with_duplicates(X: Matrix, copies: int, seed: int) -> Matrix:
    """The arms of X with `copies` of them repeated exactly, shuffled."""
    rng = np.random.default_rng(seed)
    again = rng.integers(len(X), size=copies)
    return rng.permutation(np.vstack([X, X[again]]), axis=0)


def scaled_columns(X: Matrix, low: float = 1e-8, high: float = 1e8) -> Matrix:
    """The arms of X in absurd units: columns scaled geometrically from `low` to `high`."""
    return X * np.geomspace(low, high, X.shape[1])


def paper(d: int, omega: float) -> Truth:
    """Soare 2014, Sect. 6, as arrays."""
    instance = instances.paper(d, omega)
    return Truth(instance.features, instance.theta)


def plane(K: int, arcs: int = 3) -> Matrix:
    """Arms in d = 2 on arcs of the unit circle, each a tenth of a turn long."""
    starts = 2.0 * np.pi * np.arange(arcs) / arcs
    arm = np.arange(K)
    angle = starts[arm % arcs] + 0.2 * np.pi * (arm // arcs) / max(1, -(-K // arcs))
    return np.column_stack([np.cos(angle), np.sin(angle)])
