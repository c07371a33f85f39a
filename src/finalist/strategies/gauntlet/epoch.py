"""One epoch: pulls that are tested together, and what has arrived of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.inference.information import Information
from finalist.inference.least_squares import Estimate, weights_of
from finalist.inference.quick import quick_estimate, quick_information
from finalist.inference.statistics import BatchResults, Statistics
from finalist.problem import Problem
from finalist.strategies.gauntlet.reserve import Reserve, weighted_estimate


@dataclass(eq=False)
class Epoch:
    """A fixed sequence of pulls, with a rival for each arm: all chosen before its first reward.

    Attributes
    ----------
    note : mapping
        Who attacks which claim (`Claims.attack`).
    counts : (K,) array of int
        All its pulls.
    later : (n,) array of int
        Those that are not asked for yet, in their order.
    every : int
        A look is taken after so many results, again and again, and at the end; 0 for that only.
    reserve : Reserve or None
        What is tested beside its own pulls.
    results : Statistics
        What has arrived.
    few : bool
        Whether dozens of pulls may decide, for which bets begin with larger drifts.
    looked, ended : bool
        Whether there was a look inside it, and one at its end.
    planned : dict
        What the whole epoch can say about the pairs of each wager, by its number.
    """

    note: Mapping[str, Any]
    counts: Int[np.ndarray, " K"]
    later: Int[np.ndarray, " n"]
    every: int
    few: bool
    reserve: Reserve | None
    results: Statistics
    root: Float[np.ndarray, "s s"] = field(default_factory=lambda: np.zeros((0, 0)))
    side: Float[np.ndarray, " s"] = field(default_factory=lambda: np.zeros(0))
    basis: Float[np.ndarray, "r s"] = field(default_factory=lambda: np.zeros((0, 0)))
    looked: bool = False
    ended: bool = False
    stakes: dict[int, Any] = field(default_factory=dict)
    planned: dict[int, Any] = field(default_factory=dict)
    whole: Information | None = None

    @classmethod
    def of(
        cls, plan: Mapping[str, Any], counts: Int[np.ndarray, " K"], reserve: Reserve | None
    ) -> "Epoch":
        """Return an epoch that begins, by its plan in a note."""
        attack = {
            key: np.array(value) if isinstance(value, list) else value
            for key, value in plan["attack"].items()
        }
        later, empty = np.array(plan["later"], dtype=np.int64), Statistics.empty(len(counts))
        return cls(attack, counts, later, plan["every"], plan["few"], reserve, empty)

    def copy(self) -> "Epoch":
        """Return one that changes independently."""
        new = replace(self, results=self.results.copy(), stakes=dict(self.stakes))
        new.root, new.side = self.root.copy(), self.side.copy()
        return new

    def weights(self, problem: Problem, counts: Int[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
        """Return what pulls, and the reserve, count in least squares."""
        w = weights_of(counts, problem.precisions)
        if self.reserve is None:
            return w
        p = problem.precisions
        return np.asarray(w + (self.reserve.worth if p is None else self.reserve.worth * p))

    @property
    def complete(self) -> bool:
        """Whether all its results have arrived."""
        return np.array_equal(self.results.count, self.counts)

    def completed_by(self, results: Statistics) -> bool:
        """Return whether these are the last that were missing, and nothing is in doubt by then."""
        import finalist.strategies.gauntlet.path_kernels as kernels

        whole = np.array_equal(self.results.count + results.count, self.counts)
        return whole and bool(kernels.is_regular(self.root))

    def information(self, problem: Problem, Z: Float[np.ndarray, "K r"]) -> Information:
        """Return what the whole epoch will tell."""
        if self.whole is None:
            self.whole = quick_information(Z, self.weights(problem, self.counts))
        return self.whole

    def estimate(self, problem: Problem, arms: Any) -> Estimate:
        """Return the estimate from what has arrived, and the reserve."""
        known = self.whole if self.complete else None
        if self.reserve is None:
            return quick_estimate(arms, self.results, known=known, precisions=problem.precisions)
        return weighted_estimate(
            problem,
            self.results.count + self.reserve.worth,
            self.results.total + self.reserve.total,
            known,
        )

    def begin(self, problem: Problem, Z: Float[np.ndarray, "K r"]) -> None:
        """Prepare for looks inside."""
        import finalist.strategies.gauntlet.path_kernels as kernels

        self.basis = self.information(problem, Z).basis
        s = self.basis.shape[1]
        self.root, self.side = np.zeros((s, s)), np.zeros(s)
        if self.reserve is not None:
            i = self.reserve.arms()
            worth = self.reserve.worth[i]
            rows, values = self._rows(problem, Z, i, worth, self.reserve.total[i] / worth)
            none = np.zeros(len(rows) + 1, dtype=bool)
            empty = np.empty((0, 0))
            kernels.walk(self.root, self.side, rows, values, none, np.empty((0, s)), empty, empty)

    def looks(self, results: BatchResults) -> Bool[np.ndarray, " n"]:
        """Return before and after which of some more results a look is due.

        Of sums nobody knows the order: they wait for the end of the epoch. Otherwise whoever
        chooses the sizes of batches would choose the looks.
        """
        n, done = results.pulls, self.results.pulls
        known = results.arm is not None or n == 1
        due = np.zeros((n if known else np.count_nonzero(results.count)) + 1, dtype=bool)
        if self.every == 0:
            return due
        due[0] = not self.looked and self.reserve is not None
        if known:
            at = done + np.arange(1, n + 1)
            due[1:] = (at % self.every == 0) | (at == self.counts.sum())
        return due

    def rows(
        self, problem: Problem, Z: Float[np.ndarray, "K r"], results: BatchResults
    ) -> tuple[Float[np.ndarray, "n s"], Float[np.ndarray, " n"]]:
        """Return results as weighted rows, in order of arrival if that is known."""
        if results.arm is not None and results.value is not None:
            return self._rows(problem, Z, results.arm, np.ones(len(results.arm)), results.value)
        i = np.flatnonzero(results.count)
        return self._rows(problem, Z, i, results.count[i].astype(float), results.mean[i])

    def _rows(
        self,
        problem: Problem,
        Z: Float[np.ndarray, "K r"],
        arms: Int[np.ndarray, " n"],
        worth: Float[np.ndarray, " n"],
        mean: Float[np.ndarray, " n"],
    ) -> tuple[Float[np.ndarray, "n s"], Float[np.ndarray, " n"]]:
        p = problem.precisions
        root = np.sqrt(worth if p is None else worth * p[arms])
        return np.asarray((Z[arms] @ self.basis) * root[:, None]), np.asarray(mean * root)


def passes(done: int, before: int, now: int, every: int) -> bool:
    """Return whether a look is due between two numbers of results after `done` others."""
    return every > 0 and (done + now) // every > (done + before) // every
