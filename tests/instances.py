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


#: Means within 3 of a linear function (of 0), the first two next to equal. The pooled fit is off
#: by thousands of standard errors; version 0.1.0 rejected the first arm in all of 60 runs.
FEIGNED = np.array(
    [
        [1.0, 0.211, 0.0],
        [1.0, -0.67, 0.197],
        [1.0, 0.726, 0.146],
        [1.0, -0.037, 0.043],
        [1.0, 0.906, 0.771],
        [1.0, -0.871, 0.838],
        [1.0, 0.724, 0.117],
    ]
)
FEIGNED_MEANS = (2.025, 2.0245, -0.1032, -0.8484, -1.2767, -1.2971, -2.2446)
FEIGNED_SIGMA = (0.0002, 0.0014, 0.6193, 0.0319, 0.0047, 0.2959, 0.0002)
