"""A fixed number of measurements with one test at the end: what most people would do otherwise.

All arms that can be measured get equal shares of n measurements. At the end the arm b with the best
estimate is named if it is significantly better than every other candidate by one-sided tests:

    d_bj + epsilon >= c sd_bj   for all j != b,

with d_bj the estimated lead, sd_bj its standard error, and c the quantile of level delta / (K - 1)
of the normal distribution, or of Student's if sigma is unknown.

Proof of its delta (Bonferroni). Let * be the best candidate. If b is wrong, its true lead over *
plus epsilon is negative, and still its test against * was significant: probability at most
delta / (K - 1) for each b, delta for all K - 1 of them. A wrong set of the m best has an arm that
is not among them and lacks one that is: m (K - m) pairs, and as many parts of delta.

Such an experiment needs a lead to be planned for. If the lead is smaller it ends without an answer,
most of the time; the gauntlet goes on, and may stop early, because it pays for looks.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from finalist.problem import Problem
from finalist.shapes import Bool, Float

#: Noise drawn for each parameter, the most numbers that are kept at a time, and the most arms.
NOISES, MOST, MANY = 40, 5_000_000, 2000
#: How often the test has to name a winner.
POWER = 0.9


class FixedSize:
    """The experiment: how often it names a winner, by its number of measurements.

    Parameters
    ----------
    problem : Problem
    thetas : sequence of (d,) arrays
        The parameters that are possible.
    guess : float or None
        The size of the noise, if the problem does not know it.
    size : int or None
        Measurements of a batch: each costs a degree of freedom if it has a constant of its own.
    seed : int
        Of the noise.
    """

    def __init__(
        self,
        problem: Problem,
        thetas: Sequence[Float[np.ndarray, " d"]],
        guess: float | None,
        size: int | None,
        seed: int,
    ) -> None:
        arms = problem.arms
        Z = arms.coordinates
        W = Z[arms.measurable]
        if problem.batch_intercept:  # what the constants leave
            W = W - W.mean(axis=0)
        p = problem.precisions
        weights = np.ones(len(W)) if p is None else p[arms.measurable]
        A = (W * weights[:, None]).T @ W / len(W)
        C = Z[arms.candidate]
        values, vectors = np.linalg.eigh(np.linalg.pinv(A, hermitian=True))
        root = C @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        cover = root @ root.T
        spread = np.diag(cover)
        self._variances = np.maximum(spread[:, None] + spread[None] - 2.0 * cover, 0.0)
        rng = np.random.default_rng([seed, 4])
        times = max(1, min(NOISES, MOST // (len(thetas) * len(C))))
        self._noise = rng.standard_normal((times * len(thetas), root.shape[1])) @ root.T
        means = np.array([problem.sign * problem.means(t)[arms.candidate] for t in thetas])
        self._means = np.tile(means, (times, 1))
        self._uniform = rng.random(len(self._noise))
        self._problem, self._guess = problem, guess
        self._rank, self._size = int(np.linalg.matrix_rank(A, hermitian=True)), size
        self._least = self._rank + int(guess is not None)

    def named(self, n: int) -> float:
        """Return how often n measurements name a winner."""
        problem = self._problem
        K, m = len(self._variances), problem.top
        level = problem.delta / (m * (K - m))
        scale = problem.scale if self._guess is None else self._guess
        assert scale is not None
        means = self._means + scale * self._noise / math.sqrt(n)
        if self._guess is None:
            limit, deviations = -float(ndtri(level)), np.full(len(means), scale)
        else:
            batches = 0 if self._size is None or not problem.batch_intercept else n // self._size
            freedom = n - self._rank - batches
            if freedom < 1:
                return 0.0
            limit = -float(stdtrit(freedom, level))
            deviations = scale * np.sqrt(2.0 * gammaincinv(0.5 * freedom, self._uniform) / freedom)
        return float(self._clear(means, limit * deviations / math.sqrt(n)).mean())

    def _clear(
        self, means: Float[np.ndarray, "n C"], limits: Float[np.ndarray, " n"]
    ) -> Bool[np.ndarray, " n"]:
        """Return where each of the best is significantly better than each of the others."""
        m, epsilon = self._problem.top, self._problem.epsilon
        best = np.argpartition(-means, m - 1, axis=1)[:, :m]
        rows = np.arange(len(means))
        clear = np.ones(len(means), dtype=bool)
        others = np.ones(means.shape, dtype=bool)
        others[rows[:, None], best] = False
        for b in best.T:
            lead = means[rows, b][:, None] - means + epsilon
            passed = lead >= limits[:, None] * np.sqrt(self._variances[b])
            clear &= (passed | ~others).all(axis=1)
        return np.asarray(clear)

    def needed(self, most: int) -> float:
        """Return the fewest measurements that name a winner with `POWER`; infinite above `most`."""
        low = high = self._least
        while self.named(high) < POWER:
            if high >= most:
                return math.inf
            low, high = high, min(2 * high, most)
        while high - low > max(1, high // 200):
            middle = (low + high) // 2
            low, high = (low, middle) if self.named(middle) >= POWER else (middle, high)
        return float(high)


def fixed_size(
    problem: Problem,
    thetas: Sequence[Float[np.ndarray, " d"]],
    *,
    guess: float | None,
    size: int | None,
    seed: int,
    most: int,
) -> float | None:
    """Return how many measurements such an experiment takes, or their cost.

    Returns
    -------
    float or None
        Infinite if more than `most`. None where there is nothing to choose, where the model may be
        wrong by a given amount, where measurements of an arm are limited, and for very many arms.
    """
    arms = problem.arms
    C = int(arms.candidate.sum())
    unknown = problem.misspecification > 0.0 or problem.capacity is not None
    if unknown or not problem.top < C <= MANY:
        return None
    n = FixedSize(problem, thetas, guess, size, seed).needed(most)
    return n * float(problem.costs[arms.measurable].mean())
