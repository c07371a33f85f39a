"""What `ask` returns: pulls to measure, as rows for a loop, a data frame or a spreadsheet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from finalist.arms import Arms
from finalist.extras import need
from finalist.problem import Problem
from finalist.problem.shown import Shown
from finalist.shapes import Float, Int
from finalist.study.pulls import Fate, Saved
from finalist.study.results import OwnColumns, write_pulls

if TYPE_CHECKING:
    import pandas as pd

#: Whether there are pulls to measure; if not, why.
AskState = Literal["open", "waiting", "decided", "stopped", "budget", "exhausted"]

_REASONS: dict[AskState, str] = {
    "open": "There are measurements to make.",
    "waiting": "Every measurement of the batch is with another worker; ask again when "
    "theirs are told.",
    "decided": "The strategy is done; nothing is left to measure.",
    "stopped": "The study was stopped; `resume` goes on.",
    "budget": "The budget is used up.",
    "exhausted": "Every candidate has been measured as often as it can be.",
}


@dataclass(frozen=True)
class Pull:
    """One measurement to make.

    Attributes
    ----------
    pull_id : int
        Its number in the study; `tell` gives the reward by it.
    arm : str
        The arm to measure.
    worker : str or None
        Who measures it, if that was said.
    """

    pull_id: int
    arm: str
    worker: str | None = None


@dataclass(frozen=True)
class Batch(Shown, Sequence[Pull]):
    """Pulls to measure, in this order; empty when there is nothing to do.

    A strategy's `finalist.strategies.Batch` is another thing: how often to pull each arm.

    Attributes
    ----------
    pulls : tuple of Pull
    state : str
        "open" when there are pulls; otherwise "waiting" (others have them), "decided",
        "stopped", "budget" or "exhausted".
    batch : int
        The number of the batch they belong to, from 1; 0 if none is open.
    left : int
        Pulls of this batch that are still without a reward, all workers together.
    words : str
        What the strategy says about the batch.
    unit : str or None
        See `Shown`.
    arms : Arms or None
        The study's arms, whose own columns sheets show.
    """

    pulls: tuple[Pull, ...]
    state: AskState
    batch: int = 0
    left: int = 0
    words: str = ""
    arms: Arms | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.pulls)

    def __getitem__(self, index: Any) -> Any:
        return self.pulls[index]

    def __iter__(self) -> Iterator[Pull]:
        return iter(self.pulls)

    @property
    def reason(self) -> str:
        """Why there are pulls, or why not, in a sentence."""
        return _REASONS[self.state]

    def to_frame(self) -> "pd.DataFrame":
        """Return a data frame with the columns pull_id, arm, worker and an empty reward."""
        need("Data frames", "pandas")
        import pandas as pd

        rows = [(p.pull_id, p.arm, p.worker, float("nan")) for p in self.pulls]
        return pd.DataFrame(rows, columns=["pull_id", "arm", "worker", "reward"])

    def to_csv(self, path: str | PathLike[str], *, decimal: str = ".") -> None:
        """Write a sheet with an empty column `result`, to fill in and give to `tell`.

        It has the candidates' own columns. A name that ends with .xlsx makes it a workbook.
        """
        write_pulls(path, self.rows(), self.own_columns(), decimal=decimal)

    def own_columns(self) -> OwnColumns:
        """Return the candidates' own columns."""
        return OwnColumns(self.arms)

    def rows(self) -> list[dict[str, Any]]:
        """Return the pulls as rows of a sheet to fill in."""
        return [vars(pull) | self.beside() for pull in self.pulls]


def open_batch(
    problem: Problem, pulls: tuple[Pull, ...], number: int, left: int, words: str
) -> Batch:
    """Return pulls of an open batch with what sheets show beside them."""
    return Batch(pulls, "open", number, left, words, problem.arms, **problem.beside())


def named_pulls(
    names: Sequence[str], workers: Sequence[str], *columns: Int[np.ndarray, " n"]
) -> tuple[Pull, ...]:
    """Return pulls as people see them, from their numbers, arms and workers."""
    known = [*workers, None]  # the worker -1 is none
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(Pull(number, names[arm], known[worker]) for number, arm, worker in rows)


@dataclass(frozen=True)
class SettledPull:
    """A pull of the open batch that has a reward or is lost."""

    pull_id: int
    arm: str
    fate: str
    reward: float | None


class OpenPulls(NamedTuple):
    """The pulls of the open batch, as columns: there may be many, and few look at them."""

    number: int
    words: str
    workers: tuple[str, ...]
    pull: Int[np.ndarray, " n"]
    arm: Int[np.ndarray, " n"]
    worker: Int[np.ndarray, " n"]
    fate: Int[np.ndarray, " n"]
    reward: Float[np.ndarray, " n"]
    #: What last brought or changed results; None if there are none.
    saved: Saved | None

    def batch(self, problem: Problem) -> Batch:
        """Return those that are still to be measured."""
        left = self.fate == Fate.OPEN
        columns = (column[left] for column in (self.pull, self.arm, self.worker))
        rows = named_pulls(problem.arms.names, self.workers, *columns)
        return open_batch(problem, rows, self.number, len(rows), self.words)

    def settled(self, names: Sequence[str]) -> tuple[SettledPull, ...]:
        """Return those that have a reward or are lost."""
        fates, done = [fate.name.lower() for fate in Fate], self.fate != Fate.OPEN
        columns = (c[done].tolist() for c in (self.pull, self.arm, self.fate, self.reward))
        return tuple(
            SettledPull(n, names[arm], fates[fate], reward if fate == Fate.TOLD else None)
            for n, arm, fate, reward in zip(*columns, strict=True)
        )
