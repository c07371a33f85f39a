"""A fixed allocation: how it is found, and how it is pulled in one batch or in several."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from finalist.errors import DesignError
from finalist.inference.statistics import Statistics
from finalist.strategies.protocol import Batch

Counts = Int[np.ndarray, " K"]

#: Longer sequences are not spelled out: they do not fit into memory.
LONGEST = 2**27


@runtime_checkable
class Pulls(Protocol):
    """Pulls fixed in advance."""

    def extend(self, pulls: int) -> Int[np.ndarray, " n"]:
        """Return the next arms to pull."""
        ...


class Phase:
    """An allocation and the rewards of the part that has been pulled.

    The allocation is computed when a batch is asked for. A batch that is only a part of it
    carries it along, so that a replay knows the rest without computing it again.
    """

    def __init__(self, arms: int) -> None:
        self.rewards = Statistics.empty(arms)
        self._allocation: Counts | None = None

    def batch(
        self, allocation: Callable[[], Counts], size: int | None, note: dict[str, Any]
    ) -> Batch:
        """Return what is left to pull, at most `size` of it."""
        if self._allocation is None:
            self._allocation = allocation()
        left = self._allocation - self.rewards.count
        if size is None or size >= left.sum():
            return Batch(left, note | {"ends": True})
        more = {"ends": False, "allocation": self._allocation.tolist()}
        return Batch(share(left, size), note | more)

    def record(self, batch: Batch, rewards: Statistics) -> bool:
        """Take over the rewards of a batch; return whether the allocation is complete."""
        self.rewards.merge(rewards)
        if batch.note["ends"]:
            return True
        self._allocation = np.array(batch.note["allocation"], dtype=np.int64)
        return False

    def lose(self, counts: Counts) -> None:
        """Leave out pulls of the part recorded last that were made and gave no reward."""
        assert self._allocation is not None
        self._allocation = self._allocation - counts


def shortest_prefix(
    sequence: Pulls, enough: Callable[[Counts], bool], at_least: int, arms: int
) -> Counts:
    """Return the counts of a prefix of a sequence that is enough while one pull less is not.

    Parameters
    ----------
    sequence : Pulls
        At its start.
    enough : callable
        Tells of counts whether they are; hardly ever false again for more pulls.
    at_least : int
        The prefix is longer than this.
    arms : int
        Their number K.
    """
    before = np.bincount(sequence.extend(at_least), minlength=arms)
    chunk = sequence.extend(1)

    def counts(n: int) -> Counts:
        return before + np.bincount(chunk[:n], minlength=arms)

    while not enough(counts(len(chunk))):
        before = counts(len(chunk))
        if before.sum() > LONGEST:
            raise DesignError(f"{before.sum()} pulls are not accurate enough, more are too many.")
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
