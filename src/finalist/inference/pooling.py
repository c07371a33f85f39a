"""All rewards of a run together, batch after batch, and the estimate that they give.

Where each batch may be shifted by a constant of its own (`Problem.batch_intercept`: plates, days),
the constants are estimated away: within a batch, arms and rewards are centred at their means,
which leaves of least squares with a constant for every batch what concerns the differences of
arms (Frisch and Waugh 1933). Given the past, the centred rewards of a batch have a mean that is
linear in the centred arms, and so all bounds for linear models hold, in one dimension less.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.errors import EstimateError
from finalist.inference.effects import Effects
from finalist.inference.information import information
from finalist.inference.least_squares import Estimate, LackOfFit, estimate, weights_of
from finalist.inference.quick import quick_estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.text import counted

#: What is smaller than this part is rounding.
ROUNDING = 1e-12


def batch_arms(problem: Problem) -> Arms:
    """Return the arms as one batch sees them: with a constant, if it has one of its own.

    Examples
    --------
    >>> from finalist.problem import Gaussian
    >>> problem = Problem(Arms([[1.0], [2.0]]), noise=Gaussian(1.0), batch_intercept=True)
    >>> batch_arms(problem).features
    array([[1., 1.],
           [2., 1.]])
    """
    return _with_intercept(problem.arms) if problem.batch_intercept else problem.arms


@lru_cache(maxsize=16)
def _with_intercept(arms: Arms) -> Arms:
    return arms.with_intercept()


class Pooled:
    """The rewards of all batches so far.

    Attributes
    ----------
    statistics : Statistics
        Count, mean and scatter of each arm over all batches.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(2), batch_intercept=True, noise=fl.Gaussian(1.0))
    >>> pooled = Pooled(problem)
    >>> for shift in (0.0, 100.0):
    ...     pooled.add(Statistics.of_batch([1, 1], [shift + 1.0, shift]))
    >>> float(pooled.estimate().gaps(np.diff(pooled.arms.coordinates, axis=0))[0].round(9))
    -1.0
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.statistics = Statistics.empty(len(problem.arms))
        self._pulls: int | None = None
        self._batches: list[BatchSums] = []
        self._centred = np.empty((0, self.arms.rank + 1))  # rows and rewards, as far as in use
        self._used = 0  # batches that are in it

    @property
    def arms(self) -> Arms:
        """The arms whose coordinates the estimate speaks of."""
        return batch_arms(self.problem)

    @property
    def pulls(self) -> int:
        """Number of rewards."""
        if self._pulls is None:
            self._pulls = self.statistics.pulls
        return self._pulls

    def add(self, rewards: Statistics) -> None:
        """Add the rewards of one batch."""
        self.statistics.merge(rewards)
        self._pulls = None
        if self.problem.batch_intercept and rewards.pulls > 0:
            self._batches.append(BatchSums.of(rewards))

    def copy(self) -> "Pooled":
        """Return the same rewards, to which others can be added independently."""
        new = Pooled(self.problem)
        new.statistics, new._batches = self.statistics.copy(), list(self._batches)
        new._centred, new._used = self._centred, self._used
        return new

    def with_earlier(self, rewards: Statistics | None) -> "Pooled":
        """Return these with rewards of one more batch; itself if there is none."""
        if rewards is None:
            return self
        both = Pooled(self.problem)
        both.statistics, both._batches = self.statistics.copy(), list(self._batches)
        both.add(rewards)
        return both

    def taken(self, kept: Int[np.ndarray, " n"], problem: Problem) -> "Pooled":
        """Return what concerns other arms: old ones by number, -1 for new ones."""
        new = Pooled(problem)
        new.statistics = self.statistics.taken(kept)
        for cells in self._batches:
            some = cells.statistics(len(self.problem.arms)).taken(kept)
            if some.pulls > 0:
                new._batches.append(BatchSums.of(some))
        return new

    def estimate(self) -> Estimate:
        """Return the estimate from all of them."""
        if not self.problem.batch_intercept:
            p = self.problem.precisions
            return estimate(self.problem.arms, self.statistics, precisions=p)
        return self._shifted()

    def quick_estimate(self, *, kept: bool = True) -> Estimate:
        """Return it by compiled code where that is safe; if not `kept`, for use at once."""
        if self.problem.batch_intercept:
            return self._shifted()
        p = self.problem.precisions
        return quick_estimate(self.problem.arms, self.statistics, precisions=p, kept=kept)

    def _shifted(self) -> "ShiftedEstimate":
        arms, p = self.arms, self.problem.precisions
        for cells in self._batches[self._used :]:
            self._centred = _compressed(np.vstack([self._centred, cells.centred(arms, p)]))
        self._used = len(self._batches)
        C, d = self._centred[:, :-1], self._centred[:, -1]
        info = information(C, np.ones(len(C)))
        phi = info.solve(C.T @ d)
        for _ in range(2):  # as in `estimate`
            phi = phi + info.solve(C.T @ (d - C @ phi))
        squares = float(np.sum((d - C @ phi) ** 2))
        kept = self.statistics.copy()
        phi = phi + _level_of(arms, kept, p, phi)
        for array in (kept.count, kept.mean, kept.m2, kept.carry, phi):
            array.setflags(write=False)
        pure = [float((c.m2 if p is None else c.m2 * p[c.arms]).sum()) for c in self._batches]
        return ShiftedEstimate(
            arms,
            kept,
            0.0,
            phi,
            info,
            np.zeros((0, arms.rank)),
            p,
            batches=len(self._batches),
            cells=sum(len(c.arms) for c in self._batches),
            squares=squares,
            pure=sum(pure),
            seen=tuple(self._batches),
        )


@dataclass(frozen=True, eq=False)
class BatchSums:
    """One batch: count, mean and scatter of the rewards of the arms that were pulled in it."""

    arms: Int[np.ndarray, " m"]
    count: Int[np.ndarray, " m"]
    mean: Float[np.ndarray, " m"]
    m2: Float[np.ndarray, " m"]

    @classmethod
    def of(cls, rewards: Statistics) -> "BatchSums":
        """Return what a batch gave."""
        some = rewards.count.nonzero()[0]
        parts = (rewards.count, rewards.mean, rewards.m2)
        return cls(some, *(part[some].copy() for part in parts))

    def statistics(self, K: int) -> Statistics:
        """Return it for all K arms."""
        whole = Statistics.empty(K)
        whole.count[self.arms], whole.mean[self.arms] = self.count, self.mean
        whole.m2[self.arms] = self.m2
        return whole

    def weights(self, precisions: Float[np.ndarray, " K"] | None) -> Float[np.ndarray, " m"]:
        """Return what the pulls of each of its arms count."""
        return weights_of(self.count, None if precisions is None else precisions[self.arms])

    def centred(
        self, arms: Arms, precisions: Float[np.ndarray, " K"] | None
    ) -> Float[np.ndarray, "m s"]:
        """Return the weighted rows of least squares, centred, with the mean reward beside each."""
        w = self.weights(precisions)
        rows = np.column_stack([arms.coordinates[self.arms], self.mean])
        size = np.abs(rows).max(axis=0)
        # Twice: the first centre of rewards around 10^9 is not exact.
        for _ in range(2):
            rows = rows - (w @ rows) / w.sum()
        rows[np.abs(rows) < ROUNDING * size] = 0.0
        return np.asarray(np.sqrt(w)[:, None] * rows)


def _compressed(rows: Float[np.ndarray, "m s"]) -> Float[np.ndarray, "k s"]:
    """Return fewer rows with the same products, if there are many."""
    if len(rows) <= 4 * rows.shape[1]:
        return rows
    R = np.asarray(np.linalg.qr(rows, mode="r"))
    size = np.abs(R[:, :-1]).max(axis=1)
    # The rest of the rewards, which no arm explains, has to stay beside arms of size 0.
    small = size <= ROUNDING * size.max()
    R[small, :-1] = 0.0
    return R


def _level_of(
    arms: Arms,
    statistics: Statistics,
    precisions: Float[np.ndarray, " K"] | None,
    phi: Float[np.ndarray, " r"],
) -> Float[np.ndarray, " r"]:
    """Return what to add to the parameter so that it fits the mean of all rewards."""
    w, Z = weights_of(statistics.count, precisions), arms.coordinates
    one = Z[arms.measurable].mean(axis=0)  # the parameter under which every arm has mean 1
    if w.sum() == 0.0:
        return np.zeros(len(one))
    return np.asarray(one * (float(w @ (statistics.mean - Z @ phi)) / w.sum()))


@dataclass(frozen=True, eq=False)
class ShiftedEstimate(Estimate):
    """What rewards say whose batches are shifted, each by a constant: differences of arms.

    `phi` is such that the mean of all rewards is fitted, and `means` speak of a batch with the
    average shift; their level has no width.

    Attributes
    ----------
    batches, cells : int
        Batches with rewards; pairs of a batch and an arm with rewards.
    squares, pure : float
        Residual sum of squares of the cells' means, and of rewards within cells.
    seen : tuple of BatchSums
        The batches.
    """

    batches: int = 0
    cells: int = 0
    squares: float = 0.0
    pure: float = 0.0
    seen: tuple[BatchSums, ...] = ()

    @cached_property
    def effects(self) -> Effects:
        """What the same rewards say of the arms without the model."""
        batches = [(c.arms, c.weights(self.precisions), c.mean) for c in self.seen]
        return Effects.of(len(self.arms), batches)

    @property
    def dimension(self) -> int:
        """One less than the rank: a constant cannot be told from a shift."""
        return self.arms.rank - 1

    def means(self) -> Float[np.ndarray, " K"]:
        """Return the estimated rewards in a batch of average shift, NaN where nothing is known."""
        pulled = np.flatnonzero(self.statistics.count)
        Z = self.arms.coordinates
        if len(pulled) == 0:
            return np.full(len(Z), np.nan)
        known = self.information.spans(Z - Z[pulled[0]])
        return np.where(known, Z @ self.phi, np.nan)

    @property
    def degrees_of_freedom(self) -> int:
        """Pulls minus the rank and the number of batches."""
        return self.statistics.pulls - self.batches - self.information.rank

    @property
    def residual_variance(self) -> float:
        """Unbiased estimate of sigma^2 from the residuals."""
        if self.degrees_of_freedom == 0:
            batches = counted(self.batches, "batch", "batches")
            raise EstimateError(
                f"{counted(self.statistics.pulls, 'pull')} in {batches} leave nothing to estimate "
                "the variance from; add pulls."
            )
        return (self._pure_squares() + self.squares) / self.degrees_of_freedom

    def lack_of_fit(self) -> LackOfFit | None:
        """Test whether the means of the arms within batches are linear in their features."""
        df_fit = self.cells - self.batches - self.information.rank
        df_pure = self.statistics.pulls - self.cells
        if df_fit < 1 or df_pure < 1:
            return None
        return self._test_of_fit(self.squares, df_fit, self._pure_squares(), df_pure)

    def _pure_squares(self) -> float:
        # The sums per arm are unknown where those of a cell are; then it is they that say why.
        return super()._pure_squares() if np.isnan(self.pure) else self.pure
