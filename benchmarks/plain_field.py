"""The strategies since the paper in plain NumPy, as their papers tell them.

The other side of `benchmarks.field`; see `benchmarks.plain`. Nothing here imports finalist.
Whatever several answers are equally good for (designs, shares of a pair, spanning arms) is given,
so that both sides pull alike. Rewards are maximised and the arms span their space.
"""

import math
from collections.abc import Callable

import numpy as np

from benchmarks.plain import TIE, LeastSquares, Radius, basis, pairs

#: What eigenvalues are compared with they often equal exactly.
SLACK = 1e-9
#: Nature answers to the learner's weights plus this much of every arm.
FLOOR = 1e-8

#: The design for the pairs of some arms, and its largest variance.
PhaseDesign = Callable[[np.ndarray], tuple[np.ndarray, float]]
#: Draws the sums of the rewards of an allocation.
Draw = Callable[[np.ndarray], np.ndarray]


# ---- RAGE --------------------------------------------------------------------------------


class RAGE:
    """Fiez et al. 2019, Alg. 1, a phase at a time: its rewards are vectors."""

    def __init__(self, X: np.ndarray, design: PhaseDesign, delta: float, sigma: float) -> None:
        self.X, self.design, self.delta, self.sigma = X, design, delta, sigma
        self.alive, self.phase = np.arange(len(X)), 1
        self.winner: int | None = None

    def allocate(self) -> np.ndarray:
        """Return the pulls of the phase: N_t of them by the design of the survivors."""
        weights, value = self.design(self.alive)
        e, support = 0.1, np.count_nonzero(weights)
        length = 8 * (2 ** (self.phase + 1)) ** 2 * value * (1 + e) * self.log()
        return rounded(weights, math.ceil(max(length, support * (1 + e) / e)))

    def log(self) -> float:
        """log(K^2 / delta_t)."""
        return math.log(len(self.X) ** 2 * self.phase**2 / self.delta)

    def learn(self, counts: np.ndarray, sums: np.ndarray) -> None:
        """Take over the rewards of the phase and drop the arms that a survivor dominates."""
        B = basis(self.X[counts > 0])
        Z = self.X @ B
        P = np.linalg.inv(Z.T @ (counts[:, None] * Z))
        first, second = pairs(self.alive)
        Y = Z[first] - Z[second]
        radius = self.sigma * math.sqrt(2 * self.log())
        gaps = Y @ (P @ (Z.T @ sums))
        widths = radius * np.sqrt(np.einsum("md,md->m", Y @ P, Y))
        out = np.append(second[gaps > widths], first[-gaps > widths])
        self.alive, self.phase = np.setdiff1d(self.alive, out), self.phase + 1
        if len(self.alive) == 1:
            self.winner = int(self.alive[0])


def play_phases(strategy: RAGE, draw: Draw, most: int) -> int:
    """Go on until there is a winner; return the number of pulls.

    All rewards of a phase are in memory, so a run of more than `most` pulls is an error.
    """
    pulls = 0
    while strategy.winner is None:
        counts = strategy.allocate()
        pulls += int(counts.sum())
        if pulls > most:
            raise RuntimeError(f"no winner after {most:,} pulls; {pulls:,} are asked for")
        strategy.learn(counts, draw(counts))
    return pulls


def rounded(weights: np.ndarray, n: int) -> np.ndarray:
    """Efficient rounding (Pukelsheim, ch. 12)."""
    support = np.flatnonzero(weights)
    lam = weights[support] / weights[support].sum()
    counts = np.maximum(np.ceil((n - len(lam) / 2) * lam), 1)
    while counts.sum() < n:
        counts[np.argmin(counts / lam)] += 1
    while counts.sum() > n:
        counts[len(lam) - 1 - np.argmax(((counts - 1) / lam)[::-1])] -= 1
    allocation = np.zeros(len(weights), dtype=np.int64)
    allocation[support] = counts
    return allocation


def frank_wolfe(X: np.ndarray, alive: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
    """Find a design for the pairs of some arms by steps of 2 / (k + 2), and its variance.

    The first step is k = 1, so that no arm loses all its weight.
    """
    first, second = pairs(alive)
    Y = X[first] - X[second]
    weights = np.full(len(X), 1 / len(X))
    for k in range(1, steps + 1):
        P = np.linalg.inv(X.T @ (weights[:, None] * X))
        worst = Y[np.argmax(np.einsum("md,md->m", Y @ P, Y))]
        step = 2 / (k + 2)
        weights *= 1 - step
        weights[np.argmax((X @ P @ worst) ** 2)] += step
    weights[weights < 1e-5] = 0
    weights /= weights.sum()
    P = np.linalg.pinv(X.T @ (weights[:, None] * X))
    return weights, float(np.einsum("md,md->m", Y @ P, Y).max())


# ---- LinGapE -----------------------------------------------------------------------------


class LinGapE:
    """Xu et al. 2018, Alg. 1 and 2; greedy, or by the given shares of a pair."""

    def __init__(
        self,
        X: np.ndarray,
        ridge: float,
        norm: float,
        delta: float,
        sigma: float,
        shares: Callable[[int, int], np.ndarray] | None = None,
    ) -> None:
        self.X, self.shares, self.delta, self.sigma = X, shares, delta, sigma
        self.bias, self.fit = math.sqrt(ridge) * norm, LeastSquares(X, ridge)
        self.pulled = np.zeros(len(X))
        self.leader = self.rival = 0
        self.winner: int | None = None

    def pull(self) -> int:
        """Return the arm that tells the leader from the rival, first every arm once."""
        if self.fit.n < len(self.X):
            return self.fit.n
        if self.shares is not None:
            share = self.shares(*sorted((self.leader, self.rival)))
            behind = np.full(len(share), np.inf)
            behind[share > 0] = self.pulled[share > 0] / share[share > 0]
            return int(np.argmax(behind <= behind.min() * (1 + TIE)))
        y = self.X[self.leader] - self.X[self.rival]
        drop = (self.X @ (self.fit.P @ y)) ** 2 / (1 + self.fit.variances(self.X))
        return int(np.argmax(drop >= drop.max() * (1 - TIE)))

    def learn(self, arm: int, reward: float) -> None:
        """Take over a reward; find the leader, and the rival that may be better by the most."""
        self.fit.learn(arm, reward)
        self.pulled[arm] += 1
        if self.fit.n < len(self.X):
            return
        C = self.sigma * math.sqrt(self.fit.log_det - 2 * math.log(self.delta)) + self.bias
        means = self.X @ self.fit.theta
        self.leader = int(means.argmax())
        widths = C * np.sqrt(self.fit.variances(self.X[self.leader] - self.X))
        better = means - means[self.leader] + widths
        better[self.leader] = -np.inf
        self.rival = int(better.argmax())
        if better[self.rival] <= 0:
            self.winner = self.leader


# ---- Lazy track-and-stop -----------------------------------------------------------------


class LazyTS:
    """Jedra and Proutiere 2020, Alg. 1, with new designs after r, 2r, 4r, ... pulls.

    `design` gives the optimal weights for some gaps, `spanning` the arms that are forced.
    """

    def __init__(
        self,
        X: np.ndarray,
        spanning: np.ndarray,
        design: Callable[[np.ndarray], np.ndarray],
        u: float,
        delta: float,
        sigma: float,
    ) -> None:
        self.X, self.spanning, self.design, self.u = X, spanning, design, u
        self.delta, self.sigma = delta, sigma
        K, r = X.shape
        self.c = float(np.einsum("kd,kd->k", X, X).max())
        gram = X[spanning].T @ X[spanning]
        self.force = np.linalg.eigvalsh(gram)[0] / math.sqrt(r)
        self.A, self.b, self.pulled = np.zeros((r, r)), np.zeros(r), np.zeros(K)
        self.weights, self.total = np.zeros(K), np.zeros(K)
        self.weights[spanning] = 1 / r
        self.n = self.forced = self.update_at = 0
        self.ready = False
        self.winner: int | None = None

    def pull(self) -> int:
        """Return the arm that is forced, or else the one most behind the sum of the designs."""
        if self.ready and self.n >= self.update_at:
            means = self.X @ np.linalg.solve(self.A, self.b)
            self.weights, self.update_at = self.design(means.max() - means), 2 * self.n
        if self.n > 0:
            self.total += self.weights
        least = np.linalg.eigvalsh(self.A)[0]
        r = len(self.spanning)
        if self.n < r or least < self.force * math.sqrt(self.n) * (1 - SLACK):
            self.forced += 1
            return int(self.spanning[(self.forced - 1) % r])
        return int(np.argmin(np.where(self.total > 0, self.pulled - self.total, np.inf)))

    def learn(self, arm: int, reward: float) -> None:
        """Take over a reward; stop when the arm that looks best beats every other one."""
        x = self.X[arm]
        self.A += np.outer(x, x)
        self.b += reward * x
        self.pulled[arm] += 1
        self.n += 1
        self.ready = self.ready or bool(np.linalg.matrix_rank(self.A) == len(x))
        if not self.ready:
            return
        P = np.linalg.inv(self.A)
        means = self.X @ (P @ self.b)
        best = int(means.argmax())
        Y = self.X[best] - self.X
        doubt = 2 * self.threshold() * np.einsum("kd,kd->k", Y @ P, Y)
        sure = (means[best] - means) ** 2 > doubt
        sure[best] = True
        if sure.all() and np.linalg.eigvalsh(self.A)[0] >= self.c * (1 - SLACK):
            self.winner = best

    def threshold(self) -> float:
        """beta(t) = (1 + u) sigma^2 log(det(A / (u c) + I)^(1/2) / delta)."""
        matrix = self.A / (self.u * self.c) + np.eye(len(self.A))
        log = 0.5 * np.linalg.slogdet(matrix)[1] - math.log(self.delta)
        return float((1 + self.u) * self.sigma**2 * log)


# ---- LinGame -----------------------------------------------------------------------------


class LinGame:
    """Degenne et al. 2020, LinGame-C: AdaHedge over answers and arms against nature."""

    def __init__(
        self, X: np.ndarray, ridge: float, norm: float, delta: float, sigma: float
    ) -> None:
        K, d = X.shape
        self.X, self.fit, self.sigma, self.delta = X, LeastSquares(X, ridge), sigma, delta
        self.bias = math.sqrt(ridge) * norm
        self.growth = float(np.einsum("kd,kd->k", X, X).max()) / (ridge * d)  # L^2 / (eta d)
        self.losses, self.gaps = np.zeros((K, K)), 0.0
        self.pulled, self.tracked = np.zeros(K), np.zeros(K)
        self.winner: int | None = None

    def pull(self) -> int:
        """Play one round of the game; pull the arm most behind the sum of the weights."""
        K = len(self.X)
        if self.fit.n < K:
            self.tracked[self.fit.n] += 1
            return self.fit.n
        means = self.X @ self.fit.theta
        leader = self.leader(means)
        rate = math.log(K * K) / self.gaps if self.gaps > 0 else math.inf
        weights, before = hedge(self.losses, rate)
        own = hedge(self.losses[leader], rate)[0]
        gains = self.gains(means, leader, own)
        self.losses -= gains
        after = hedge(self.losses, rate)[1]
        gap = before - after - float((weights * gains).sum())
        if self.gaps > 0 or gap > TIE:
            self.gaps += max(gap, 0.0)
        self.tracked += weights.sum(axis=0)
        behind = self.pulled - self.tracked
        return int(np.argmax(behind <= behind.min() + TIE))

    def leader(self, means: np.ndarray) -> int:
        """Return the first arm that looks best."""
        return int(np.argmax(means >= means.max() - TIE * np.abs(means).max()))

    def gains(self, means: np.ndarray, leader: int, own: np.ndarray) -> np.ndarray:
        """Return the optimistic gain of every answer and arm, at most log t.

        For the leader nature chooses the nearest alternative in the norm of its weights; for
        other answers it leaves the estimate where it is.
        """
        P = np.linalg.inv(self.X.T @ ((own + FLOOR)[:, None] * self.X))
        Y = self.X[leader] - self.X
        variances = np.einsum("kd,kd->k", Y @ P, Y)
        gaps, others = means[leader] - means, np.arange(len(means)) != leader
        distance = np.full(len(means), np.inf)
        distance[others] = gaps[others] ** 2 / variances[others]
        rival = int(distance.argmin())
        moved = np.zeros((len(means), len(means)))
        moved[leader] = gaps[rival] * (self.X @ (P @ Y[rival])) / variances[rival]
        log = math.log(self.fit.n)
        bonus = self.sigma * np.sqrt(2 * log * self.fit.variances(self.X))
        return np.minimum(0.5 * ((np.abs(moved) + bonus) / self.sigma) ** 2, log)

    def learn(self, arm: int, reward: float) -> None:
        """Take over a reward; stop when every alternative is farther than the threshold."""
        self.fit.learn(arm, reward)
        self.pulled[arm] += 1
        if self.fit.n < len(self.X):
            return
        d = self.X.shape[1]
        log = d * math.log1p(self.fit.n * self.growth) - 2 * math.log(self.delta)
        radius = self.sigma * math.sqrt(log) + self.bias
        means = self.X @ self.fit.theta
        leader = self.leader(means)
        sure = means[leader] - means > radius * np.sqrt(self.fit.variances(self.X[leader] - self.X))
        sure[leader] = True
        if sure.all():
            self.winner = leader


def hedge(losses: np.ndarray, rate: float) -> tuple[np.ndarray, float]:
    """Return the weights of AdaHedge at some rate and the loss that all make together."""
    low = losses.min()
    if math.isinf(rate):
        weights = (losses - low <= TIE).astype(float)
        return weights / weights.sum(), float(low)
    weights = np.exp(-rate * (losses - low))
    return weights / weights.sum(), float(low - math.log(weights.mean()) / rate)


# ---- track-and-stop ----------------------------------------------------------------------


class TrackAndStop:
    """Garivier and Kaufmann 2016 with D-tracking; `threshold` is beta(t)."""

    def __init__(self, K: int, threshold: Radius, sigma: float) -> None:
        self.threshold, self.sigma = threshold, sigma
        self.pulled, self.sums, self.n = np.zeros(K), np.zeros(K), 0
        self.winner: int | None = None

    def pull(self) -> int:
        """Return the rarest arm if it is too rare, or else the one most behind w*."""
        K, rare = len(self.pulled), int(self.pulled.argmin())
        if self.pulled[rare] == 0 or self.pulled[rare] < math.sqrt(self.n) - K / 2:
            return rare
        return int(np.argmax(self.n * proportions(self.sums / self.pulled) - self.pulled))

    def learn(self, arm: int, reward: float) -> None:
        """Take over a reward; stop when the likelihood ratio against every other arm is large."""
        self.pulled[arm] += 1
        self.sums[arm] += reward
        self.n += 1
        if not self.pulled.all():
            return
        means = self.sums / self.pulled
        best = int(means.argmax())
        variances = self.sigma**2 * (1 / self.pulled[best] + 1 / self.pulled)
        ratio = (means[best] - means) ** 2 / (2 * variances)
        ratio[best] = np.inf
        if ratio.min() > self.threshold(self.n):
            self.winner = best


def proportions(means: np.ndarray) -> np.ndarray:
    """w* of Thm. 5: x_a = z / (c_a - z), where c_a = (gap_a / least gap)^2 and sum x_a^2 = 1."""
    from scipy.optimize import brentq

    best = int(means.argmax())
    gaps = np.delete(means[best] - means, best)
    c = (gaps / gaps.min()) ** 2
    z = brentq(lambda z: ((z / (c - z)) ** 2).sum() - 1, 0.0, 0.5 + 1e-9, xtol=1e-14, rtol=1e-14)
    x = np.insert(z / (c - z), best, 1.0)
    return np.asarray(x / x.sum())
