"""The strategies in plain NumPy, as the paper tells them: a pull, a reward, an update, a look.

The other side of `benchmarks.strategies`. Vectorised over arms and directions, one pull at a
time. Nothing here imports finalist; optimal designs are given, so that both sides pull alike.
Rewards are maximised and the arms span their space.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

#: Values this close, relatively, are a tie of the greedy rule.
TIE = 1e-9

Radius = Callable[[int], float]


class Plain(Protocol):
    """A strategy at work."""

    winner: int | None

    def pull(self) -> int:
        """Return the arm to pull now."""
        ...

    def learn(self, arm: int, reward: float) -> None:
        """Take over its reward; there may be a winner then."""
        ...


def play(strategy: Plain, rewards: Callable[[int], float], limit: int) -> list[int]:
    """Pull until there is a winner, at most `limit` times; return the arms in order."""
    pulled: list[int] = []
    while strategy.winner is None and len(pulled) < limit:
        arm = strategy.pull()
        strategy.learn(arm, rewards(arm))
        pulled.append(arm)
    return pulled


# ---- pieces ------------------------------------------------------------------------------


def static_radius(K: int, delta: float, sigma: float, printed: bool) -> Radius:
    """Prop. 1 as printed, or with the constants of its proof."""
    if printed:
        scale, inside = 2 * math.sqrt(2) * sigma, 6 / math.pi**2 * K**2 / delta
    else:
        scale, inside = math.sqrt(2) * sigma, math.pi**2 / 6 * K * (K - 1) / delta
    return lambda n: scale * math.sqrt(math.log(inside * n**2))


class LeastSquares:
    """P = A^-1 (once A is regular) and b = sum of rewards times features, pull by pull."""

    def __init__(self, X: np.ndarray, ridge: float = 0.0) -> None:
        self.X, self.n, self.log_det = X, 0, 0.0
        self.b, self.A = np.zeros(X.shape[1]), ridge * np.eye(X.shape[1])
        self.ready = ridge > 0.0
        self.P: np.ndarray = np.eye(X.shape[1]) / ridge if self.ready else np.zeros_like(self.A)

    def learn(self, arm: int, reward: float) -> None:
        """Add one pull (Sherman and Morrison, once the pulls span)."""
        x = self.X[arm]
        self.n += 1
        self.b += reward * x
        if not self.ready:
            self.A += np.outer(x, x)
            self.ready = bool(np.linalg.matrix_rank(self.A) == len(x))
            self.P = np.linalg.inv(self.A) if self.ready else self.P
            return
        Px = self.P @ x
        grow = 1.0 + x @ Px
        self.P -= np.outer(Px, Px / grow)
        self.log_det += math.log(grow)

    @property
    def theta(self) -> np.ndarray:
        """The estimate."""
        return np.asarray(self.P @ self.b)

    def variances(self, Y: np.ndarray) -> np.ndarray:
        """y'A^-1 y for every direction."""
        return np.asarray(np.einsum("md,md->m", Y @ self.P, Y))


class Rounded:
    """A design pull by pull: next is the arm with the smallest n_i / lambda_i."""

    def __init__(self, weights: np.ndarray) -> None:
        self.support = np.flatnonzero(weights)
        self.lam = weights[self.support] / weights[self.support].sum()
        self.counts = np.zeros(len(self.lam))

    def next(self) -> int:
        """Return the next arm."""
        i = int(np.argmin(self.counts / self.lam))
        self.counts[i] += 1
        return int(self.support[i])


def pairs(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second arm of every pair."""
    first, second = np.triu_indices(len(arms), 1)
    return arms[first], arms[second]


def basis(X: np.ndarray) -> np.ndarray:
    """Return orthonormal columns that span the same space as the rows."""
    _, size, rows = np.linalg.svd(X)
    return np.asarray(rows[: np.sum(size > 1e-9 * size[0])].T)


# ---- static: G, XY, and the oracle -------------------------------------------------------


class Static:
    """A rounded design until eq:emp.stop.condition.2 holds, which is looked at after every pull."""

    def __init__(self, X: np.ndarray, weights: np.ndarray, radius: Radius) -> None:
        self.X, self.radius = X, radius
        self.fit, self.sequence = LeastSquares(X), Rounded(weights)
        self.winner: int | None = None

    def pull(self) -> int:
        """Return the next arm of the sequence."""
        return self.sequence.next()

    def learn(self, arm: int, reward: float) -> None:
        """Take over a reward; only the arm with the largest estimate can fulfil the rule."""
        self.fit.learn(arm, reward)
        if not self.fit.ready:
            return
        means = self.X @ self.fit.theta
        best = int(means.argmax())
        widths = self.radius(self.fit.n) * np.sqrt(self.fit.variances(self.X[best] - self.X))
        if (widths <= means[best] - means).all():
            self.winner = best


class Oracle:
    """The oracle's design until eq:oracle.stop.condition.2 holds, whatever the rewards."""

    def __init__(
        self, X: np.ndarray, theta: np.ndarray, weights: np.ndarray, radius: Radius
    ) -> None:
        means = X @ theta
        gaps = means.max() - means
        wrong = gaps > 0
        self.Y = (X[means.argmax()] - X[wrong]) / gaps[wrong][:, None]
        self.X, self.radius = X, radius
        self.fit, self.sequence = LeastSquares(X), Rounded(weights)
        self.winner: int | None = None

    def pull(self) -> int:
        """Return the next arm of the sequence."""
        return self.sequence.next()

    def learn(self, arm: int, reward: float) -> None:
        """Take over a reward, and look whether the allocation is enough."""
        self.fit.learn(arm, reward)
        if not self.fit.ready:
            return
        if self.radius(self.fit.n) * math.sqrt(self.fit.variances(self.Y).max()) <= 1.0:
            self.winner = int((self.X @ self.fit.theta).argmax())


# ---- XY-Adaptive -------------------------------------------------------------------------


class XYAdaptive:
    """Phases of rounded XY designs of the survivors, with the radius for one look at each end.

    `design` gives the XY-optimal weights over all arms for the pairs of some of them.
    """

    def __init__(
        self,
        X: np.ndarray,
        design: Callable[[tuple[int, ...]], np.ndarray],
        alpha: float,
        delta: float,
        sigma: float,
    ) -> None:
        self.X, self.design, self.alpha = X, design, alpha
        self.delta, self.sigma = delta, sigma
        self.alive, self.variance, self.phase = np.arange(len(X)), 1.0, 0
        self.winner: int | None = None
        self.begin()

    def begin(self) -> None:
        """Start a phase, which uses its own rewards only, in the span of the arms it pulls."""
        self.phase += 1
        weights = self.design(tuple(map(int, self.alive)))
        B = basis(self.X[weights > 0])
        self.fit, self.sequence = LeastSquares(self.X @ B), Rounded(weights)
        self.first, self.second = pairs(self.alive)
        self.Y = (self.X[self.first] - self.X[self.second]) @ B

    def pull(self) -> int:
        """Return the next arm of the phase."""
        return self.sequence.next()

    def learn(self, arm: int, reward: float) -> None:
        """Take over a reward; the phase ends when the variance is small enough."""
        self.fit.learn(arm, reward)
        d = self.X.shape[1]
        if not self.fit.ready or self.fit.n <= d * (d + 1):
            return
        variances = self.fit.variances(self.Y)
        if variances.max() <= self.alpha * self.variance:
            self.end(variances)

    def end(self, variances: np.ndarray) -> None:
        """Drop the arms that a survivor dominates (Lemma 4)."""
        m, level = len(self.alive), 6 * self.delta / (math.pi * self.phase) ** 2
        radius = self.sigma * math.sqrt(2 * math.log(m * (m - 1) / level))
        gaps, widths = self.Y @ self.fit.theta, radius * np.sqrt(variances)
        out = np.append(self.second[gaps > widths], self.first[-gaps > widths])
        self.alive, self.variance = np.setdiff1d(self.alive, out), float(variances.max())
        if len(self.alive) == 1:
            self.winner = int(self.alive[0])
        else:
            self.begin()


# ---- fully adaptive ----------------------------------------------------------------------


class FullyAdaptive:
    """The greedy rule for the survivors, a ridge estimate, and survivors after every pull.

    `norm` bounds the norm of the parameter that belongs to the features X.
    """

    def __init__(
        self, X: np.ndarray, ridge: float, norm: float, delta: float, sigma: float, printed: bool
    ) -> None:
        self.X, self.printed = X, printed
        self.delta, self.sigma, self.bias = delta, sigma, math.sqrt(ridge) * norm
        self.growth = float(np.einsum("kd,kd->k", X, X).max()) / ridge  # L^2 / eta
        self.fit = LeastSquares(X, ridge)
        self.winner: int | None = None
        self.keep(np.arange(len(X)))

    def keep(self, alive: np.ndarray) -> None:
        """Go on with these arms."""
        self.alive = alive
        self.first, self.second = pairs(alive)
        self.Y = self.X[self.first] - self.X[self.second]
        self.variances = self.fit.variances(self.Y)

    def pull(self) -> int:
        """Return the arm that leaves the smallest largest variance.

        This is eq:xy.optimal.design.incremental for the pairs of survivors. Ties go to the
        largest total reduction over the present maximisers, then to the first arm.
        """
        PX = self.fit.P @ self.X.T
        grow = 1.0 + np.einsum("kd,dk->k", self.X, PX)
        drop = (self.Y @ PX) ** 2 / grow
        largest = (self.variances[:, None] - drop).max(axis=0)
        worst = self.variances >= self.variances.max() * (1.0 - TIE)
        tied = largest <= largest.min() * (1.0 + TIE)
        total = np.where(tied, drop[worst].sum(axis=0), -1.0)
        return int(np.argmax(total >= total.max() * (1.0 - TIE)))

    def learn(self, arm: int, reward: float) -> None:
        """Take over a reward and drop the arms that a survivor dominates (Lemma 4)."""
        self.fit.learn(arm, reward)
        self.variances = self.fit.variances(self.Y)
        gaps, widths = self.Y @ self.fit.theta, self.radius() * np.sqrt(self.variances)
        if (np.abs(gaps) <= widths).all():
            return
        out = np.append(self.second[gaps > widths], self.first[-gaps > widths])
        self.keep(np.setdiff1d(self.alive, out))
        if len(self.alive) == 1:
            self.winner = int(self.alive[0])

    def radius(self) -> float:
        """Prop. 2 as printed, or with the determinant that it bounds."""
        d = self.X.shape[1]
        if self.printed:
            log = d * math.log1p(self.fit.n * self.growth) - d * math.log(self.delta)
        else:
            log = self.fit.log_det - 2 * math.log(self.delta)
        return self.sigma * math.sqrt(log) + self.bias
