"""Named families of arms, hard and easy, for tests and benchmarks.

Every function returns a feature matrix (K, d); random ones take the seed of their generator.
"""

from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Matrix = Float[np.ndarray, "K d"]


class Truth(NamedTuple):
    """Arms with the parameter that makes their rewards."""

    features: Matrix
    theta: Float[np.ndarray, " d"]


def gaussian(K: int, d: int, seed: int) -> Matrix:
    """Independent standard normal entries."""
    return np.random.default_rng(seed).standard_normal((K, d))


def unit_sphere(K: int, d: int, seed: int) -> Matrix:
    """Uniform on the sphere: optima are degenerate, the support grows toward K."""
    X = gaussian(K, d, seed)
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def hypercube(d: int) -> Matrix:
    """All 2^d corners with entries +1 and -1: every arm has the same leverage."""
    return np.array(list(product((-1.0, 1.0), repeat=d)))


def one_hot_factorial(levels: tuple[int, ...]) -> Matrix:
    """Intercept and one column per level of each factor: rank 1 + sum(levels - 1)."""
    rows = product(*(np.eye(n) for n in levels))
    return np.array([np.concatenate([[1.0], *row]) for row in rows])


def quadratic_grid(d: int, levels: int) -> Matrix:
    """Full quadratic model on a grid over [-1, 1]^d: 1, x, x^2, products of two."""
    grid = np.array(list(product(np.linspace(-1.0, 1.0, levels), repeat=d)))
    products = [grid[:, [i]] * grid[:, [j]] for i, j in combinations(range(d), 2)]
    return np.hstack([np.ones((len(grid), 1)), grid, grid**2, *products])


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
    """Soare 2014, Sect. 6: the canonical basis and (cos omega, sin omega, 0...), theta = 2 e_1."""
    close = np.zeros((1, d))
    close[0, :2] = np.cos(omega), np.sin(omega)
    theta = np.zeros(d)
    theta[0] = 2.0
    return Truth(np.vstack([np.eye(d), close]), theta)


def plane(K: int, arcs: int = 3) -> Matrix:
    """Arms in d = 2 on arcs of the unit circle, each a tenth of a turn long."""
    starts = 2.0 * np.pi * np.arange(arcs) / arcs
    arm = np.arange(K)
    angle = starts[arm % arcs] + 0.2 * np.pi * (arm // arcs) / max(1, -(-K // arcs))
    return np.column_stack([np.cos(angle), np.sin(angle)])
