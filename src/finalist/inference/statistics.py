"""Sufficient statistics of rewards: for each arm the count, the mean and the scatter.

That is all least squares needs (Soare 2014, Sect. 2: theta_hat = A^-1 b). They can be merged, and
sums of squares are always sums of squared deviations, so that rewards around 10^9 with noise 1
lose no digits that matter.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import ArrayLike

from finalist.errors import RewardError
from finalist.text import show

#: Larger rewards could overflow when squared and summed.
LARGEST_REWARD = 1e150
_S = TypeVar("_S", bound="Statistics")
#: Count, mean, m2 and carry of each arm.
_Sums = tuple[
    Int64[np.ndarray, " K"],
    Float[np.ndarray, " K"],
    Float[np.ndarray, " K"],
    Float[np.ndarray, " K"],
]


@dataclass(eq=False)
class Statistics:
    """Count, mean and squared deviations of the rewards of each arm; change only by its methods.

    Attributes
    ----------
    count : (K,) int array
        Pulls of each arm.
    mean : (K,) array
        Mean reward, 0 for an arm without pulls.
    m2 : (K,) array
        Sum of squared deviations from the mean; NaN when a batch came without them.
    carry : (K,) array
        What rounding cut off the mean. With it 10^5 updates of means around 10^9 are as
        accurate as one sum.

    Examples
    --------
    >>> s = Statistics.empty(2)
    >>> s.add(0, 1.5)
    >>> s.add_many([0, 1], [2.5, -1.0])
    >>> s.count, s.mean, s.m2, s.pulls
    (array([2, 1]), array([ 2., -1.]), array([0.5, 0. ]), 3)
    """

    count: Int64[np.ndarray, " K"]
    mean: Float[np.ndarray, " K"]
    m2: Float[np.ndarray, " K"]
    carry: Float[np.ndarray, " K"]

    @classmethod
    def empty(cls: type[_S], K: int) -> _S:
        """Return the statistics of K arms without pulls."""
        return cls(np.zeros(K, dtype=np.int64), np.zeros(K), np.zeros(K), np.zeros(K))

    @property
    def total(self) -> Float[np.ndarray, " K"]:
        """Sum of the rewards of each arm."""
        return np.asarray(self.count * self.mean)

    @property
    def pulls(self) -> int:
        """Number of pulls of all arms together."""
        return int(self.count.sum())

    def copy(self) -> "Statistics":
        """Return statistics that change independently of these."""
        return Statistics(self.count.copy(), self.mean.copy(), self.m2.copy(), self.carry.copy())

    def add(self, arm: SupportsIndex, reward: SupportsFloat) -> None:
        """Add one pull (Welford's update)."""
        i = _checked_arm(arm, len(self.count), pull=0)
        r = _checked_reward(reward, pull=0)
        n = int(self.count[i]) + 1
        old, carry = float(self.mean[i]), float(self.carry[i])
        deviation = (r - old) - carry
        step = carry + deviation / n
        mean = old + step
        carry = step - (mean - old)
        self.m2[i] += deviation * ((r - mean) - carry)
        self.count[i], self.mean[i], self.carry[i] = n, mean, carry

    def add_many(self, arms: ArrayLike, rewards: ArrayLike) -> None:
        """Add pulls of arms (given by index) with their rewards: all of them, or none on error."""
        index, r = _checked_pulls(arms, rewards, len(self.count))
        if len(index) > 0:
            self._absorb(Statistics(*_sums(index, r, len(self.count))))

    @classmethod
    def of_batch(
        cls: type[_S], count: ArrayLike, total: ArrayLike, squares: ArrayLike | None = None
    ) -> _S:
        """Return the statistics of a single batch, given as for `add_batch`."""
        return cls(*_checked_batch(count, total, squares, np.size(count)))

    def add_batch(
        self, count: ArrayLike, total: ArrayLike, squares: ArrayLike | None = None
    ) -> None:
        """Add a batch of which only sums per arm are known, as a simulation draws it.

        Parameters
        ----------
        count : (K,) integers
            Pulls of each arm in the batch.
        total : (K,) array
            Sum of the rewards of each arm.
        squares : (K,) array, optional
            Sum of squared deviations of each arm's rewards from their mean in the batch (not
            of the squared rewards, whose difference to the squared sum loses all digits).
            Without it the residual variance is not available from then on.
        """
        self._absorb(Statistics(*_checked_batch(count, total, squares, len(self.count))))

    def merge(self, other: "Statistics") -> None:
        """Add all pulls of other statistics of the same arms."""
        if len(other.count) != len(self.count):
            raise RewardError(
                f"statistics of {len(other.count)} arms cannot be added to those of "
                f"{len(self.count)}; both must be of the same arms."
            )
        self._absorb(other)

    def taken(self, arms: Int64[np.ndarray, " n"]) -> "Statistics":
        """Return statistics of arms by their numbers here; -1 for one without pulls.

        Examples
        --------
        >>> s = Statistics.empty(2)
        >>> s.add_many([0, 1, 1], [5.0, 2.0, 4.0])
        >>> s.taken(np.array([1, -1])).count
        array([2, 0])
        """
        new, known = Statistics.empty(len(arms)), arms >= 0
        for name in ("count", "mean", "m2", "carry"):
            getattr(new, name)[known] = getattr(self, name)[arms[known]]
        return new

    def _absorb(self, other: "Statistics") -> None:
        """Combine with checked statistics (Chan, Golub and LeVeque 1983)."""
        n = self.count + other.count
        share = other.count / np.maximum(n, 1)
        away = (other.mean - self.mean) + (other.carry - self.carry)
        step = self.carry + away * share
        mean = self.mean + step
        self.m2 += other.m2 + away**2 * (self.count * share)
        self.carry[:] = step - (mean - self.mean)
        self.mean[:] = mean
        self.count += other.count


@dataclass(eq=False)
class BatchResults(Statistics):
    """The results of one batch: the sums of each arm, and the single results where they are known.

    Attributes
    ----------
    arm, value : (n,) arrays or None
        The results in order of arrival; None if only sums were drawn.

    Examples
    --------
    >>> results = BatchResults.of(2, np.array([0, 1, 0]), np.array([1.0, 5.0, 3.0]))
    >>> results.mean, results.first(2).mean
    (array([2., 5.]), array([1., 5.]))
    """

    arm: Int64[np.ndarray, " n"] | None = None
    value: Float[np.ndarray, " n"] | None = None

    @property
    def pulls(self) -> int:
        """Number of results."""
        return int(self.count.sum()) if self.arm is None else len(self.arm)

    @classmethod
    def of(
        cls,
        K: int,
        arm: Int64[np.ndarray, " n"],
        value: Float[np.ndarray, " n"],
        order: Int64[np.ndarray, " n"] | None = None,
    ) -> "BatchResults":
        """Sum up the results of K arms; they are checked already.

        They are summed up as given. `order` lists them by arrival, if that is another order.
        """
        count, mean, m2, _ = _sums(arm, value, K)
        if order is not None:
            arm, value = arm[order], value[order]
        return cls(count, mean, m2, np.zeros(K), arm, value)

    def first(self, n: int) -> "BatchResults":
        """Return the first n results to arrive, with their sums."""
        if n == self.pulls:
            return self
        if self.arm is None or self.value is None:
            raise RewardError("only sums of this batch are known, not which results came first.")
        if not 0 <= n < self.pulls:
            raise RewardError(f"n is {n}; this batch has {self.pulls} results.")
        return BatchResults.of(len(self.count), self.arm[:n], self.value[:n])


def _sums(arm: Int64[np.ndarray, " n"], value: Float[np.ndarray, " n"], K: int) -> _Sums:
    """Sum up the results of each arm."""
    if len(arm) == 0:  # bincount would return whole numbers
        return np.zeros(K, dtype=np.int64), np.zeros(K), np.zeros(K), np.zeros(K)
    n = np.bincount(arm, minlength=K).astype(np.int64)
    size = np.maximum(n, 1)
    rough = np.bincount(arm, value, minlength=K) / size
    # Two passes: summing deviations keeps the digits that a sum of large rewards loses.
    step = np.bincount(arm, value - rough[arm], minlength=K) / size
    mean = rough + step
    carry = step - (mean - rough)
    m2 = np.bincount(arm, ((value - mean[arm]) - carry[arm]) ** 2, minlength=K)
    return n, mean, m2, carry


def reward_problem(reward: object) -> str | None:
    """Say why a value is not a reward, or None."""
    if isinstance(reward, str | bytes):
        return "is text; a reward is a finite number"
    if isinstance(reward, bool | np.bool_) or not isinstance(reward, Real):
        return "is not a number; a reward is a finite number"
    try:
        value = float(reward)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        return "is not a finite number"
    if abs(value) > LARGEST_REWARD:
        return f"is beyond {LARGEST_REWARD:g}, the largest reward; rescale"
    return None


def _checked_reward(value: Any, pull: int) -> float:
    problem = reward_problem(value)
    if problem is not None:
        raise RewardError(f"reward for pull {pull} is {show(value)}, which {problem}.")
    return float(value)


def _checked_arm(value: Any, K: int, pull: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise RewardError(f"arm of pull {pull} is {value!r}; give its index from 0 to {K - 1}.")
    if not 0 <= value < K:
        raise RewardError(f"arm of pull {pull} is {value}; the {K} arms are 0 to {K - 1}.")
    return int(value)


def _checked_pulls(
    arms: ArrayLike, rewards: ArrayLike, K: int
) -> tuple[Int64[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Check pulls one by one only where the whole array does not already pass."""
    index, r = _one_dimensional(arms), _one_dimensional(rewards)
    if len(index) != len(r):
        raise RewardError(f"{len(index)} arms and {len(r)} rewards; give one reward per pull.")
    if not (index.dtype.kind in "iu" and np.all((index >= 0) & (index < K))):
        index = np.array([_checked_arm(v, K, i) for i, v in enumerate(index)], dtype=np.int64)
    if r.dtype.kind in "iuf":
        with np.errstate(over="ignore"):
            r = r.astype(float)
    if not (r.dtype.kind == "f" and np.all(np.abs(r) <= LARGEST_REWARD)):
        r = np.array([_checked_reward(v, i) for i, v in enumerate(r)], dtype=float)
    return index.astype(np.int64), r


def _one_dimensional(values: ArrayLike) -> np.ndarray:
    """Return a one-dimensional array that shows bools and text among numbers as such."""
    if not hasattr(values, "dtype"):
        try:
            values = np.fromiter(values, dtype=object)  # type: ignore[arg-type]
        except TypeError:
            raise RewardError(f"{values!r} is no sequence; use add(arm, reward).") from None
    array = np.asarray(values)
    if array.ndim != 1:
        raise RewardError(f"pulls have shape {array.shape}; give one-dimensional sequences.")
    return array


def _checked_batch(count: ArrayLike, total: ArrayLike, squares: ArrayLike | None, K: int) -> _Sums:
    n, sums = np.asarray(count), np.asarray(total)
    if n.shape != (K,) or n.dtype.kind not in "iu" or (n < 0).any():
        raise RewardError(f"count is {count!r}; give {K} integers, 0 or more.")
    if sums.shape != (K,) or sums.dtype.kind not in "iuf" or not np.isfinite(sums).all():
        raise RewardError(f"total is {total!r}; give {K} finite numbers.")
    if (np.abs(sums) > n * LARGEST_REWARD).any():
        raise RewardError("total is not 0 for an arm without pulls, or too large; check count.")
    if squares is None:
        m2 = np.where(n > 1, np.nan, 0.0)
    else:
        m2 = np.asarray(squares)
        if m2.shape != (K,) or m2.dtype.kind not in "iuf" or not np.isfinite(m2).all():
            raise RewardError(f"squares is {squares!r}; give {K} finite numbers.")
        if (m2 < 0).any() or m2[n <= 1].any():
            raise RewardError("squares is negative, or not 0 for an arm pulled less than twice.")
    return n.astype(np.int64), sums / np.maximum(n, 1), m2.astype(float), np.zeros(K)
