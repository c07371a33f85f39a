"""Every pull of a study as rows of arrays, and its batches.

A million pulls take some tens of megabytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from finalist.inference.statistics import BatchResults
from finalist.shapes import Bool, Float, Int


class Fate(IntEnum):
    """What became of a pull."""

    OPEN = 0
    TOLD = 1
    VOID = 2
    MISSING = 3
    #: Still open when the study was decided.
    UNNEEDED = 4


_COLUMNS = {
    "arm": np.int32,  # its number in the arms of its stage
    "batch": np.int32,
    "fate": np.int8,
    "reward": np.float64,
    "worker": np.int32,  # number of the worker, -1 for none
    "issued": np.int64,  # event
    "told": np.int64,  # event, 0 for none
    "price": np.float64,  # of the budget
    "arrived": np.int64,  # the first such event: amending a reward does not move it
    "corrected": np.bool_,  # by that event `told`
}


class Saved(NamedTuple):
    """The event that last brought results, or corrected one, and their pulls."""

    event: int
    pulls: tuple[int, ...]
    correction: bool


class Pulls:
    """Pulls 1, 2, ... of a study; arrays grow by doubling."""

    def __init__(self) -> None:
        self._count = 0
        self._rows: dict[str, np.ndarray] = {
            name: np.zeros(64, dtype=kind) for name, kind in _COLUMNS.items()
        }

    def __len__(self) -> int:
        return self._count

    def add(
        self, arms: Int[np.ndarray, " n"], batch: int, event: int, price: Float[np.ndarray, " n"]
    ) -> None:
        """Issue pulls of arms, with the next numbers; each takes its price of a budget."""
        first, self._count = self._count, self._count + len(arms)
        if self._count > len(self._rows["arm"]):
            size = max(self._count, 2 * len(self._rows["arm"]))
            for name, rows in self._rows.items():
                grown = np.zeros(size, dtype=rows.dtype)
                grown[:first] = rows[:first]
                self._rows[name] = grown
        new = slice(first, self._count)
        self._rows["arm"][new] = arms
        self._rows["batch"][new] = batch
        self._rows["issued"][new] = event
        self._rows["worker"][new] = -1
        self._rows["price"][new] = price
        self._rows["reward"][new] = np.nan

    def tell(
        self,
        pulls: Int[np.ndarray, " n"],
        rewards: Float[np.ndarray, " n"],
        event: int,
        *,
        correction: bool = False,
    ) -> None:
        """Enter rewards, or correct some that are there."""
        rows = pulls - 1
        self._rows["reward"][rows] = rewards
        self._rows["fate"][rows] = Fate.TOLD
        self._rows["told"][rows] = event
        self._rows["corrected"][rows] = correction
        self._rows["arrived"][rows[self._rows["arrived"][rows] == 0]] = event

    def reopen(self, pulls: Int[np.ndarray, " n"]) -> None:
        """Take results back; when they come again, they count where they came first."""
        self._rows["reward"][pulls - 1] = np.nan
        self._rows["fate"][pulls - 1] = Fate.OPEN
        self._rows["told"][pulls - 1] = 0

    def close(self, pulls: int | Int[np.ndarray, " n"], fate: Fate, event: int) -> None:
        """Enter that a pull, or several, have no reward."""
        self._rows["fate"][pulls - 1] = fate
        self._rows["told"][pulls - 1] = event

    @property
    def spent(self) -> float:
        """What counts for the budget: all but void pulls and those that are not needed."""
        free = (self.fate == Fate.VOID) | (self.fate == Fate.UNNEEDED)
        total = round(float(self.price[~free].sum()), 9)
        return int(total) if total == int(total) else total

    def assign(self, pulls: Int[np.ndarray, " n"], worker: int) -> None:
        """Give pulls to a worker."""
        self._rows["worker"][pulls - 1] = worker

    def __getattr__(self, name: str) -> np.ndarray:
        """Return a column: `pulls.arm`, `pulls.reward`, ..."""
        if name not in _COLUMNS:
            raise AttributeError(name)
        return self._rows[name][: self._count]

    def of(self, batch: int) -> Int[np.ndarray, " n"]:
        """Return the numbers of the pulls of a batch."""
        return np.flatnonzero(self.batch == batch) + 1

    def open(self, batch: int) -> Int[np.ndarray, " n"]:
        """Return the numbers of the pulls of a batch that are still to be measured."""
        return np.flatnonzero((self.batch == batch) & (self.fate == Fate.OPEN)) + 1

    def counts(self, batch: int, K: int, fate: Fate | None = None) -> Int[np.ndarray, " K"]:
        """Return how often a batch pulls each of K arms: all but void pulls, or those of a fate."""
        which = self.fate != Fate.VOID if fate is None else self.fate == fate
        return np.bincount(self.arm[which & (self.batch == batch)], minlength=K)

    def results(self, batch: int, K: int) -> BatchResults:
        """Return the results of a batch of K arms, in order of arrival.

        Those of one call count in the order in which they were issued: the order in which they were
        given may depend on their values, as in a table that is sorted by them.
        """
        rows = np.flatnonzero((self.batch == batch) & (self.fate == Fate.TOLD))
        order = np.argsort(self.arrived[rows], kind="stable")
        arms = self.arm[rows].astype(np.int64)
        return BatchResults.of(K, arms, self.reward[rows], order=order)

    def last_saved(self, batch: int) -> Saved | None:
        """Return what last brought or changed results of a batch, None without results."""
        mine = (self.batch == batch) & (self.fate == Fate.TOLD)
        if not mine.any():
            return None
        event = int(self.told[mine].max())
        rows = np.flatnonzero(mine & (self.told == event))
        return Saved(event, tuple((rows + 1).tolist()), bool(self.corrected[rows].any()))

    def known(self, pulls: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Return which numbers belong to pulls."""
        return (pulls >= 1) & (pulls <= self._count)


@dataclass(frozen=True, eq=False)
class Issued:
    """A batch as it was issued."""

    number: int
    stage: int
    note: Mapping[str, Any]

    @property
    def words(self) -> str:
        """What the strategy said about it."""
        return str(self.note.get("words", ""))


@dataclass(frozen=True, eq=False)
class Decision:
    """What was certain after a batch, as it was written down then."""

    batch: int
    pulls: int
    winner: int | None
    rejected: tuple[int, ...]
    evidence: Float[np.ndarray, " K"] | None = field(repr=False)


class Fork(NamedTuple):
    """Where a study comes from.

    Attributes
    ----------
    source : str
        Another study.
    until : int or None
        Its results before this batch are those of this one.
    model : str or None
        Or all its results are history, and the features of this one are made by this model.
    risk : float
        The probability of error of the other study, and of those before it; 0 if not stored.
    epsilon : float or None
        Or they are history, and this one has another margin, 0 for none.
    """

    source: str
    until: int | None
    model: str | None = None
    risk: float = 0.0
    epsilon: float | None = None


def asked_anew(model: str | None, epsilon: float | None) -> str:
    """Say what a fork asks for that its source did not; empty if it asks the same.

    Examples
    --------
    >>> asked_anew("bending", None), asked_anew(None, 0.5), asked_anew("surface", 0.0)
    ('the model bending', 'a margin of 0.5', 'the model surface and no margin')
    """
    parts = [] if model is None else [f"the model {model}"]
    if epsilon is not None:
        parts.append(f"a margin of {epsilon:g}" if epsilon > 0.0 else "no margin")
    return " and ".join(parts)
