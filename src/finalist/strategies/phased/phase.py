"""Runs of phases: allocations fixed in advance, each pulled in one batch or several."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from finalist.errors import DesignError
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.protocol import (
    Batch,
    Run,
    Verdict,
    check_next,
    check_record,
)

Counts = Int[np.ndarray, " K"]

#: Longer sequences are not spelled out: they do not fit into memory.
LONGEST = 2**27


@runtime_checkable
class Pulls(Protocol):
    """Pulls fixed in advance."""

    def extend(self, pulls: int) -> Int[np.ndarray, " n"]:
        """Return the next arms to pull."""
        ...


class PhasedRun(Run):
    """A run of phases, each of which is looked at once, at its end, by its own rewards.

    The allocation of a phase is computed when a batch is asked for. A batch that is only a part of
    it carries it along, so that a replay knows the rest without computing it again.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._winner: int | None = None
        self._number, self._pulls = 1, 0
        self._begin()

    def _begin(self) -> None:
        self._rewards = Statistics.empty(len(self._problem.arms))  # of this phase
        self._allocation: Counts | None = None

    def next(self, size: int | None = None) -> Batch:
        """Return the allocation of the next phase, or a part of it."""
        check_next(self.verdict, size)
        note = self._note()
        if self._allocation is None:
            self._allocation = self._allocate()
        left = self._allocation - self._rewards.count
        if size is None or size >= left.sum():
            return Batch(left, note | {"ends": True})
        more = {"ends": False, "allocation": self._allocation.tolist()}
        return Batch(share(left, size), note | more)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over rewards, and conclude when the phase is complete."""
        check_record(self.verdict, len(self._problem.arms), batch, rewards)
        self._check(batch)
        self._pulls += batch.size
        self._rewards.merge(rewards)
        if not batch.note["ends"]:
            self._allocation = np.array(batch.note["allocation"], dtype=np.int64)
            return
        self._conclude()
        self._number += 1
        self._begin()

    def _note(self) -> dict[str, Any]:
        """Return what the note of a batch says of the phase."""
        return {"phase": self._number}

    def _check(self, batch: Batch) -> None:
        """Refuse a batch that is not of this phase."""

    @abstractmethod
    def _allocate(self) -> Counts:
        """Return the pulls of the phase."""

    @abstractmethod
    def _conclude(self) -> None:
        """Draw conclusions from `_rewards`, those of a complete phase."""


class DiscardingRun(PhasedRun):
    """A run of phases that drop the arms which a survivor dominates."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._survivors: Int[np.ndarray, " m"] = np.flatnonzero(problem.arms.candidate)
        self._winner = int(self._survivors[0]) if len(self._survivors) == 1 else None

    @property
    def verdict(self) -> Verdict:
        """What is certain after the phases recorded so far."""
        return Verdict(self._winner, tuple(map(int, self._survivors)), self._pulls)

    def _conclude(self) -> None:
        """Drop the dominated arms (Soare 2014, Lemma 4, eq:discard.arm)."""
        surely_better, possibly_better = self._compare()
        kept = ~(surely_better > 0.0)  # NaN stays
        self._survivors = self._survivors[kept]
        best = int(np.argmin(possibly_better[kept]))
        if len(self._survivors) == 1 or 0.0 < self._problem.epsilon >= possibly_better[kept][best]:
            self._winner = int(self._survivors[best])

    @abstractmethod
    def _compare(self) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Return by how much some survivor is at least, and at most, better than each of them."""


def shortest_prefix(
    sequence: Pulls, enough: Callable[[Counts], bool], at_least: int, arms: int
) -> Counts:
    """Return the counts of a prefix of a sequence that is enough while one pull less is not.

    Parameters
    ----------
    sequence : Pulls
        At its start.
    enough : callable
        Tells whether counts are enough; almost never false again for more pulls.
    at_least : int
        The prefix is longer than this.
    arms : int
        The number of arms.
    """
    before = np.bincount(sequence.extend(at_least), minlength=arms)
    chunk = sequence.extend(1)

    def counts(n: int) -> Counts:
        return before + np.bincount(chunk[:n], minlength=arms)

    while not enough(counts(len(chunk))):
        before = counts(len(chunk))
        if before.sum() > LONGEST:
            raise DesignError(
                f"{before.sum()} pulls are not accurate enough; more do not fit in memory."
            )
        chunk = sequence.extend(int(before.sum()))
    low, high = 0, len(chunk)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(counts(middle)) else (middle, high)
    found = counts(high)
    found.flags.writeable = False
    return found


def share(counts: Counts, size: int) -> Counts:
    """Return `size` of the pulls of an allocation, in its proportions (largest remainders).

    Examples
    --------
    >>> share(np.array([10, 5, 1]), 8)
    array([5, 3, 0])
    """
    exact = counts * (size / int(counts.sum()))
    part = np.floor(exact).astype(np.int64)
    missing = size - int(part.sum())
    order = np.argsort(part - exact, kind="stable")
    part[order[:missing]] += 1
    return part
