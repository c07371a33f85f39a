"""Problems with a known parameter, on which strategies are compared.

Functions that return a matrix make families of arms; those that return an `Instance` add the
parameter and the noise. Random ones take the seed of their generator and nothing else.
"""

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal

import numpy as np

from finalist.arms import Arms
from finalist.shapes import Float

Matrix = Float[np.ndarray, "K d"]


@dataclass(frozen=True, eq=False)
class Instance:
    """Arms with their true parameter and noise.

    Attributes
    ----------
    theta : (d,) array
        The expected rewards are X theta.
    sigma : float
        Standard deviation of the Gaussian noise.
    objective : "max" or "min"
        Whether the largest or the smallest mean is best.
    """

    name: str
    arms: Arms
    theta: Float[np.ndarray, " d"]
    sigma: float
    objective: Literal["max", "min"] = "max"

    @property
    def features(self) -> Matrix:
        """The features of the arms."""
        return self.arms.features

    def called(self, name: str) -> "Instance":
        """Return the same instance under another name."""
        return replace(self, name=name)


# --- arms -------------------------------------------------------------------------------------


def gaussian(K: int, d: int, seed: int) -> Matrix:
    """Independent standard normal entries."""
    return np.random.default_rng(seed).standard_normal((K, d))


def unit_sphere(K: int, d: int, seed: int) -> Matrix:
    """Uniform on the sphere: optima are degenerate, and the support grows towards K."""
    X = gaussian(K, d, seed)
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def hypercube(d: int) -> Matrix:
    """All 2^d corners with entries +1 and -1: every arm has the same leverage."""
    return np.array(list(product((-1.0, 1.0), repeat=d)))


def one_hot_factorial(levels: tuple[int, ...]) -> Matrix:
    """Intercept and one column per level of each factor: rank 1 + sum(levels - 1).

    Examples
    --------
    >>> one_hot_factorial((2, 2))[0]
    array([1., 1., 0., 1., 0.])
    """
    rows = product(*(np.eye(n) for n in levels))
    return np.array([np.concatenate([[1.0], *row]) for row in rows])


def quadratic_grid(d: int, levels: int) -> Matrix:
    """Full quadratic model on a grid over [-1, 1]^d: 1, x, x^2, products of two."""
    grid = np.array(list(product(np.linspace(-1.0, 1.0, levels), repeat=d)))
    products = [grid[:, [i]] * grid[:, [j]] for i, j in combinations(range(d), 2)]
    return np.hstack([np.ones((len(grid), 1)), grid, grid**2, *products])


# --- arms with a parameter --------------------------------------------------------------------


def given(name: str, X: Matrix, theta: Float[np.ndarray, " d"] | list[float]) -> Instance:
    """Return arms with this parameter, and noise of size 1."""
    return Instance(name, Arms(X), np.asarray(theta, dtype=float), sigma=1.0)


def paper(d: int, omega: float) -> Instance:
    """Soare 2014, Sect. 6: the canonical basis and (cos omega, sin omega, 0...), theta = 2 e_1.

    Examples
    --------
    >>> paper(3, 0.1)
    Instance(name='paper, d = 3, omega = 0.1', arms=Arms(K=4, d=3, rank=3), theta=array([2., 0.,
        0.]), sigma=1.0, objective='max')
    """
    close = np.zeros((1, d))
    close[0, :2] = np.cos(omega), np.sin(omega)
    theta = np.zeros(d)
    theta[0] = 2.0
    return given(f"paper, d = {d}, omega = {omega:g}", np.vstack([np.eye(d), close]), theta)


def unstructured(means: list[float] | Float[np.ndarray, " K"]) -> Instance:
    """Arms that say nothing about each other, with these means.

    Examples
    --------
    >>> unstructured([1.0, 0.5]).features
    array([[1., 0.],
           [0., 1.]])
    """
    return given(f"unstructured, {len(means)} arms", np.eye(len(means)), np.asarray(means))


def between(X: Matrix, share: float = 0.2, name: str = "between two arms") -> Instance:
    """Let the parameter lie between the two closest arms, nearer to one of them."""
    distance = np.linalg.norm(X[:, None] - X, axis=2) + 1e9 * np.eye(len(X))
    i, j = np.unravel_index(int(distance.argmin()), distance.shape)
    return given(name, X, X[i] + share * (X[j] - X[i]))


def random_theta(X: Matrix, seed: int, name: str = "random parameter") -> Instance:
    """Draw the direction of a parameter of length 1."""
    v = np.asarray(np.random.default_rng(seed).standard_normal(X.shape[1]))
    return given(name, X, np.asarray(v / np.linalg.norm(v)))


def fan(K: int, seed: int) -> Instance:
    """Many arms in the plane around a diagonal, and one good arm far from them (Fiez 2019)."""
    angles = np.pi / 4 + np.random.default_rng(seed).normal(0.0, 0.3, K - 2)
    angles = np.concatenate([[0.0, 3 * np.pi / 4], angles])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    return given(f"plane, {K} arms", X, [1.0, 0.0])


def table(name: str) -> Instance:
    """Return a table of `finalist.data` as a Gaussian linear model.

    theta is the least-squares fit to all measurements and sigma the standard deviation of its
    residuals, so means and noise have realistic sizes. Rewards are drawn from this
    model, not from the measurements.

    Parameters
    ----------
    name : "oats", "cake", "weaving" or "plums"

    Examples
    --------
    >>> oats = table("oats")
    >>> oats.arms, round(oats.sigma, 1), oats.objective
    (Arms(K=12, d=5, rank=5), 21.2, 'max')
    """
    from finalist.data import load
    from finalist.inference.least_squares import estimate

    measured = load(name)
    fitted = estimate(measured.arms, measured.statistics()).means()
    theta = np.linalg.lstsq(measured.arms.features, fitted, rcond=None)[0]
    left = np.concatenate([y - m for y, m in zip(measured.rewards, fitted, strict=True)])
    sigma = float(np.sqrt(left @ left / (len(left) - measured.arms.rank)))
    return Instance(name, measured.arms, np.asarray(theta), sigma, measured.objective)
