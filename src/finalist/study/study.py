"""A study: a real experiment that is kept on disk, with ask and tell.

Everything that happens is an event in a log that only grows. When a call returns, its events are on
the disk. Any number of processes may work on one study: each reads what the others wrote before it
acts, and writes under a lock.
"""

import copy
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from finalist.arms import Arms
from finalist.problem import PerArm, Problem
from finalist.settings import ProblemWords, spelled_out_of_study
from finalist.shapes import Float, Int
from finalist.strategies import Strategy
from finalist.study import change as changes
from finalist.study import creation, forking
from finalist.study import measure as measuring
from finalist.study.batch import Batch, Pull
from finalist.study.forecasts import Ahead
from finalist.study.history import with_sigma
from finalist.study.log import Log
from finalist.study.results import OwnColumns, as_history, as_results
from finalist.study.snapshot import Snapshot, take
from finalist.study.status import Status
from finalist.study.status import status as status_of
from finalist.study.storage.protocol import Storage
from finalist.study.storage.rows import StudyRow
from finalist.tables import Dialect

if TYPE_CHECKING:
    import pandas as pd


class Study:
    """An experiment on disk: begin one with `create`, continue it with `open`.

    Examples
    --------
    >>> import tempfile
    >>> import finalist as fl
    >>> folder = tempfile.TemporaryDirectory()
    >>> arms = fl.Arms.unstructured(["a", "b", "c"])
    >>> study = fl.Study.create(folder.name + "/lab.db", "colours", arms, sigma=1.0, seed=1)
    >>> batch = study.ask(size=6)
    >>> [(pull.pull_id, pull.arm) for pull in batch][:2]
    [(1, 'a'), (2, 'c')]
    >>> study.tell({pull.pull_id: 0.5 for pull in batch})
    6
    >>> study.status().pulls
    6
    >>> study.close(); folder.cleanup()
    """

    def __init__(self, storage: Storage, row: StudyRow) -> None:
        self._log = Log(storage, row)
        self._ahead: Ahead | None = None

    @classmethod
    @spelled_out_of_study
    def create(
        cls,
        where: str | PathLike[str],
        name: str,
        arms: Arms | Problem,
        strategy: Strategy | str = "gauntlet",
        *,
        seed: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        history: Any = None,
        **words: Unpack[ProblemWords],
    ) -> "Study":
        """Begin a study.

        Parameters
        ----------
        where : path-like or str
            A file (SQLite, created if missing), or ``postgresql://user@host/name``.
        name : str
        arms : Arms or Problem
            The arms, with the settings in `words`; or the problem.
        strategy : str or Strategy
        seed : int, optional
            Drawn at random if not given; it is stored.
        metadata : mapping, optional
            Anything that JSON can hold.
        history : table or pairs, optional
            As for `import_history`. If `sigma` is left out then, it is treated as unknown.
        **words
            Settings of the problem: those of the signature, explained in `Problem`. `sigma`, the
            standard deviation of one measurement, is required unless `noise` has its own; with
            None it is unknown, and the gauntlet estimates it. When the budget is spent, the best
            of the arms that are left is recommended. Strategies for a fixed budget need a budget,
            and guarantee nothing.
        """
        earlier = None if history is None else as_history(history)
        words = with_sigma(words, arms, earlier)
        settings = creation.settings_of(arms, strategy, seed=seed, metadata=metadata, **words)
        return cls(*creation.create(where, name, settings, earlier))

    @classmethod
    def open(
        cls, where: str | PathLike[str], name: str, *, arms: Arms | None = None, **settings: Any
    ) -> "Study":
        """Open an existing study.

        Parameters
        ----------
        where, name, arms, **settings
            Arguments of `create`. If the study was created with others, this fails.
        """
        return cls(*creation.reopen(where, name, arms, settings))

    def close(self) -> None:
        """Close the database. Nothing is lost if this is not called."""
        self._log.storage.close()

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def delete(self) -> None:
        """Delete the study with all its events, permanently."""
        self._log.delete()

    def __repr__(self) -> str:
        return f"Study({self._log.storage.where!r}, {self.name!r})"

    @property
    def name(self) -> str:
        """Its name in the database."""
        return self._log.row.name

    @property
    def number(self) -> int:
        """Its number in the database."""
        return self._log.row.id

    @property
    def created(self) -> str:
        """When it was created, UTC."""
        return self._log.row.created

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata given at creation."""
        return copy.deepcopy(dict(self._log.row.settings["metadata"]))

    @property
    def settings(self) -> dict[str, Any]:
        """All settings it was created with except the arms, as plain values."""
        return copy.deepcopy(self._log.row.settings)

    @property
    def arms(self) -> Arms:
        """The current arms."""
        return self._log.now().arms

    def ask(self, size: int | None = None, worker: str | None = None) -> Batch:
        """Return what to measure next.

        Until a batch has all its rewards, or enough to decide, the same one is returned, also to
        others and after a crash. Keep its order: the first rows tell most.

        Parameters
        ----------
        size : int, optional
            How many pulls can be made now: a plate of 96, or 1. A batch has that size if the
            strategy can use it; otherwise it is larger, handed out in parts of that size, and
            tested when all of it is told.
        worker : str, optional
            Who asks. Each worker has its own pulls, never those of another: `size` of them, or
            without a size a part of what is left.

        Returns
        -------
        Batch
            Empty when there is nothing to do; its `state` says why.
        """
        return measuring.ask(self._log, size, worker)

    def tell(self, results: Any, client_id: str | None = None, **dialect: str | None) -> int:
        """Enter rewards: all of them, or none on an error.

        Parameters
        ----------
        results : mapping, pairs, data frame, or path of a file (CSV, .xlsx, .ods, ...)
            Rewards by pull id, for some pulls or all. "failed" instead of a reward gives up the
            pull, as `void` does. Telling the same again changes nothing; a different reward for a
            pull that has one is refused (see `amend`).
        client_id : str, optional
            A name for this call: repeating it, because no answer came, changes nothing. With
            other rewards or notes it is refused.
        **dialect
            How to read a file, detected if not given: delimiter, decimal, encoding, sheet.

        Returns
        -------
        int
            How many were new; they are on the disk. Rewards of pulls that were still open when
            the study was decided are kept too: they improve estimates and leave the verdict alone.
        """
        told = as_results(results, Dialect(**dialect), own=lambda: OwnColumns(self.arms).headers)
        return measuring.tell(self._log, told, client_id).new

    def void(self, pull_id: int, reason: str) -> Pull:
        """Give up a failed measurement and return the one that replaces it, of the same arm.

        The reason must have nothing to do with the value: leaving out rewards because of what they
        are breaks the guarantee.
        """
        return measuring.void(self._log, pull_id, reason)

    def missing(self, pull_id: int, reason: str) -> None:
        """Continue without a measurement that cannot be made again; its value must not matter."""
        measuring.missing(self._log, pull_id, reason)

    def amend(self, pull_id: int, reward: float, reason: str) -> None:
        """Correct a wrong reward that no decision has used yet; the log keeps the old one."""
        measuring.amend(self._log, pull_id, reward, reason)

    def undo(self, event: int | None = None) -> dict[int, float]:
        """Take back the rewards that were told last, as long as no decision has used them.

        Returns them by pull id; telling them again undoes the undo. Their pulls are open again,
        and the log keeps the rewards. With `event`, a number of `history`, they are taken back
        only if they are of that event, and not if somebody has told others since.
        """
        return measuring.undo(self._log, event)

    def import_history(self, table: Any) -> int:
        """Import measurements made before the study; return how many.

        They guide what is measured and are never tested. `table` is a file or a data frame with a
        column of names and one of results (`fl.estimate_sigma` says how they are found), or pairs.
        """
        measuring.import_history(self._log, history := as_history(table))
        return len(history)

    def withdraw(self, *names: str) -> str:
        """Withdraw arms, and begin all tests again with a share of delta.

        The evidence against the other arms no longer counts, because it may have come from the arm
        that is withdrawn. All rewards still help to choose. Returns what this means, in words.
        """
        return changes.withdraw(self._log, names)

    def add(self, arms: Arms, *, sigma: PerArm | None = None, cost: PerArm | None = None) -> str:
        """Add arms; they are tested with a share of delta of their own.

        `sigma` and `cost` are those of the new arms, in a study where they differ between arms.
        Returns what this means, in words.
        """
        return changes.add(self._log, arms, sigma=sigma, cost=cost)

    def fork(
        self,
        name: str,
        until: int | None = None,
        *,
        model: str | None = None,
        epsilon: float | None = None,
    ) -> "Study":
        """Start a new study: from before a batch, or with another model or margin.

        With `until` it has all results from before that batch, and the batch is open again. With
        `model` (`Arms.with_model`) or `epsilon` (0: no margin) all results become its history,
        which guides it and is never tested. Its status says what the risks add up to.
        """
        forking.fork(self._log, name, until, model, epsilon)
        return Study.open(self._log.storage.address, name)

    def set_budget(self, budget: int | None) -> str:
        """Continue with another budget, or None for none; return what this means, in words."""
        return changes.set_budget(self._log, budget)

    def stop(self, reason: str) -> Status:
        """Stop without a winner, for any reason, and return what is certain.

        You may stop at any time: with probability at least 1 - risk the best arm is among the
        survivors, if the strategy guarantees that. `resume` continues.
        """
        changes.mark(self._log, reason)
        return self.status(forecast=False)

    def resume(self) -> None:
        """Continue after `stop`."""
        changes.mark(self._log, None)

    def note(self, text: str) -> None:
        """Write a remark into the log."""
        changes.note(self._log, text)

    def status(self, *, forecast: bool = True, within: float | None = None) -> Status:
        """Return what is certain, the evidence against every arm, and what is still needed.

        The forecast is simulated when it is read, which takes seconds, and is kept until the next
        event. With a budget, `within` is the difference for which the outlook gives chances.
        """
        return self._status(forecast, within)[1]

    def _status(self, forecast: bool, within: float | None = None) -> tuple[int, Status]:
        state = self._log.now()  # the number of the last event goes with the status
        found, kept = take(self._log.row, state), self._ahead
        if forecast and (kept is None or kept.event != state.last):
            self._ahead = Ahead(state, found)
        return state.last, status_of(found, self._ahead if forecast else None, within=within)

    def snapshot(self, events: int = 12) -> Snapshot:
        """Return everything that is known after the last event; it does not change later.

        `events` is how many of the newest events it has, at most.
        """
        state = self._log.now()
        newest = self._log.named_events(state, max(state.last - events, 0))
        return take(self._log.row, state, newest)

    def evidence(self) -> tuple[Int[np.ndarray, " B"], Float[np.ndarray, "B K"]]:
        """Return pulls so far and the evidence against each arm, after each batch.

        It begins when the arms last changed; an arm is out at 1. Empty above 1,000 arms.
        """
        return take(self._log.row, self._log.now()).trail

    def history(self) -> list[dict[str, Any]]:
        """Return the events, oldest first, as plain values; the table is in `arms.table`."""
        return self._log.events()

    def events(self, after: int = 0, most: int | None = None) -> list[dict[str, Any]]:
        """Return events as `history` does, with the names of the arms, which never change.

        "named" are the first few of the arms that were ruled out or won; "gone" and "new" are
        those that were withdrawn and added.

        Parameters
        ----------
        after, most : int, optional
            Only events with a number above `after`, and of these at most so many, oldest first.
        """
        return self._log.named_events(self._log.now(), after, most)

    def to_frame(self) -> "pd.DataFrame":
        """Return every pull: pull_id, batch, arm, state, reward, worker, issued, told, note."""
        return self._log.table()
