"""A study: a real experiment that is kept on disk, with ask and tell.

Everything that happens is an event in a log that only grows. A call that returns has its events on
the disk. Any number of processes may work on one study: each reads what the others wrote before it
acts, and writes under a lock.
"""

import copy
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Int

from finalist import __version__
from finalist.arms import Arms
from finalist.errors import ConflictError, StudyError
from finalist.problem.noise import UNSET, Noise, PerArm, Unset
from finalist.strategies import Strategy
from finalist.study import change as changes
from finalist.study import measure as measuring
from finalist.study.batch import Batch, Pull
from finalist.study.creation import check_same, settings_of
from finalist.study.log import Log
from finalist.study.results import as_results
from finalist.study.rules import (
    batch_of,
    check_name,
    check_size,
    check_text,
    nothing,
    of_worker,
    share_of,
    waiting,
)
from finalist.study.sentences import decided
from finalist.study.status import Status, status_of
from finalist.study.storage.database import Database
from finalist.study.tables import arms_table, history_table, pulls_table

if TYPE_CHECKING:
    import pandas as pd


class Study:
    """An experiment on disk; make one with `create`, come back with `open`.

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

    def __init__(self, log: Log) -> None:
        self._log = log

    # ---- beginning and end ---------------------------------------------------------------

    @classmethod
    def create(
        cls,
        where: str | PathLike[str],
        name: str,
        arms: Arms,
        strategy: Strategy | str = "gauntlet",
        *,
        sigma: PerArm | Unset | None = UNSET,
        noise: Noise | str | None = None,
        delta: float = 0.05,
        objective: Literal["max", "min"] = "max",
        epsilon: float = 0.0,
        top: int = 1,
        budget: int | None = None,
        max_pulls_per_arm: int | None = None,
        candidates: Arms | None = None,
        cost: PerArm = 1.0,
        batch_intercept: bool = False,
        misspecification: float = 0.0,
        seed: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> "Study":
        """Begin a study.

        Parameters
        ----------
        where : path-like or str
            A file (SQLite, created if missing), or ``postgresql://user@host/name``.
        name : str
            By which it is opened again.
        arms : Arms
        strategy : str or Strategy
        sigma : float, (K,) sequence or None
            Size of the noise, of all arms or of each: the standard deviation of one measurement.
            None if it is unknown; the gauntlet then estimates it. Has to be given unless `noise`
            has its own.
        noise : Noise or "gaussian", "sub-gaussian", "bernoulli", optional
            The model of the noise behind the guarantee.
        delta : float
            Probability with which the winner may be wrong.
        objective : "max" or "min"
        epsilon : float
            Positive: an arm within `epsilon` of the best is good enough.
        top : int
            How many of the best arms are asked for.
        budget : int, optional
            The most pulls in all. When they are used up, the best of the arms that are left is
            recommended. Strategies for a fixed budget ("od-linbai", "gse", "peace", "g-budget")
            need it; their winner is such a recommendation, without a guarantee.
        max_pulls_per_arm : int, optional
            The most pulls of each arm.
        candidates : Arms, optional
            What the winner is chosen from, if not the arms themselves: measure here, decide there.
        cost : float or (K,) sequence
            Cost of a pull, of all arms or of each; cheap pulls are made more of.
        batch_intercept : bool
            Whether all rewards of a batch share a constant of their own: plates, days.
        misspecification : float
            How far, at most, means may be from a linear function of the features.
        seed : int, optional
            Drawn if not given, and kept.
        metadata : mapping, optional
            Anything that JSON can hold.
        """
        check_name(name)
        if not isinstance(arms, Arms):
            raise StudyError(f"arms is of type {type(arms).__name__}; use Arms(features).")
        settings = settings_of(
            arms,
            strategy,
            sigma=sigma,
            noise=noise,
            delta=delta,
            objective=objective,
            epsilon=epsilon,
            top=top,
            budget=budget,
            max_pulls_per_arm=max_pulls_per_arm,
            candidates=candidates,
            cost=cost,
            batch_intercept=batch_intercept,
            misspecification=misspecification,
            seed=seed,
            metadata=metadata,
        )
        database = Database.open(where, create=True)
        try:
            with database.write() as writer:
                number = writer.create(name, settings.to_json(), __version__)
                writer.add_arms(number, 0, *arms_table(settings.problem.arms))
                writer.append(number, 1, "created", {"version": __version__})
                row = writer.study(name)
        except BaseException:
            database.close()
            raise
        return cls(Log(database, row, where))

    @classmethod
    def open(
        cls, where: str | PathLike[str], name: str, *, arms: Arms | None = None, **settings: Any
    ) -> "Study":
        """Come back to a study.

        Parameters
        ----------
        where, name
            As in `create`.
        arms, **settings
            Words of `create`, if you want to be sure: opening with others is refused.
        """
        database = Database.open(where)
        try:
            with database.read() as reader:
                log = Log(database, reader.study(name), where)
                check_same(log, reader, arms, settings)
        except BaseException:
            database.close()
            raise
        return cls(log)

    def close(self) -> None:
        """Close the database; nothing is lost by not doing so."""
        self._log.database.close()

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def delete(self) -> None:
        """Delete the study with all its events, for good."""
        with self._log.database.write() as writer:
            writer.lock(self._log.row.id)
            writer.delete(self._log.row.id)
        self.close()

    def __repr__(self) -> str:
        return f"Study({self._log.database.where!r}, {self.name!r})"

    @property
    def name(self) -> str:
        """Its name in the database."""
        return self._log.row.name

    @property
    def created(self) -> str:
        """When it was created, UTC."""
        return self._log.row.created

    @property
    def metadata(self) -> dict[str, Any]:
        """What the user gave to keep with the study."""
        return copy.deepcopy(dict(self._log.row.settings["metadata"]))

    @property
    def settings(self) -> dict[str, Any]:
        """Everything it was created with but the arms, as plain values."""
        return copy.deepcopy(self._log.row.settings)

    @property
    def arms(self) -> Arms:
        """The arms, as they are now."""
        return self._log.now().arms

    # ---- measuring -----------------------------------------------------------------------

    def ask(self, size: int | None = None, worker: str | None = None) -> Batch:
        """Return what to measure next.

        A batch stays open until all its pulls have rewards, and comes back until then: also to
        others who ask, and after a crash. Rows are in random order.

        Parameters
        ----------
        size : int, optional
            How many pulls can be measured now: a plate of 96, or 1. A batch has that size if the
            strategy can test with it; otherwise it is larger, given out in parts of that size, and
            tested when all of it is told.
        worker : str, optional
            Who asks. Each worker has pulls of its own, and never those of another: `size` of them,
            or without a size a part of what is left.

        Returns
        -------
        Batch
            Empty when there is nothing to do; its `state` says why.
        """
        check_size(size)
        size = None if size is None else int(size)
        if worker is not None:
            check_text("worker", worker)
        while True:
            state = self._log.now()
            if state.end is not None:
                return nothing(state.end)
            if state.open is None:
                measuring.issue(self._log, state, size, worker)
                continue
            if worker is None:
                return batch_of(state, state.pulls.open(state.open.number)[:size])
            mine = of_worker(state, worker)
            if len(mine) > 0:
                return batch_of(state, mine[:size])
            if len(share_of(state, size, worker)) == 0:
                return waiting(state)
            measuring.assign(self._log, size, worker)

    def tell(
        self,
        results: Any,
        client_id: str | None = None,
        *,
        decimal: str = ".",
    ) -> int:
        """Enter rewards: all of them, or none on an error.

        Parameters
        ----------
        results : mapping, pairs, data frame, or path of a CSV file
            Rewards by pull id, in any order, of some pulls or all. Telling the same again changes
            nothing; another reward for a pull that has one is refused (see `amend`).
        client_id : str, optional
            A name for this call. A second call of this name, because no answer came to the first,
            changes nothing; with other rewards or notes it is refused.
        decimal : str
            What separates the decimals in a CSV file.

        Returns
        -------
        int
            How many rewards were new. They are on the disk.
        """
        return self._tell(results, client_id, decimal=decimal).new

    def _tell(self, results: Any, client_id: str | None, *, decimal: str = ".") -> measuring.Told:
        """Enter rewards; say also whether this repeats an earlier call."""
        told = as_results(results, decimal=decimal)
        if client_id is not None:
            check_text("client_id", client_id)
        return measuring.tell(self._log, told, client_id)

    def void(self, pull_id: int, reason: str) -> Pull:
        """Give up a measurement that failed and return the one that replaces it.

        The same arm is measured again in the same batch. The reason must have nothing to do with
        the value: leaving out rewards because of what they are breaks the guarantee.
        """
        check_text("reason", reason)
        return measuring.void(self._log, pull_id, reason)

    def missing(self, pull_id: int, reason: str) -> None:
        """Go on without a measurement, of an arm that cannot be measured again.

        As with `void`, the loss must have nothing to do with the value.
        """
        check_text("reason", reason)
        measuring.missing(self._log, pull_id, reason)

    def amend(self, pull_id: int, reward: float, reason: str) -> None:
        """Replace a reward that was told wrongly, as long as no decision has used it.

        The old value stays in the log.
        """
        check_text("reason", reason)
        measuring.amend(self._log, pull_id, reward, reason)

    # ---- the rest of a study's life --------------------------------------------------------

    def import_history(self, table: Any) -> int:
        """Bring in measurements made before the study, to choose by; they are never tested.

        Parameters
        ----------
        table : data frame, or pairs
            Columns `arm` (a name) and `reward`; or pairs of the two.

        Returns
        -------
        int
            How many.
        """
        names, rewards = history_table(table)
        measuring.import_history(self._log, names, rewards)
        return len(rewards)

    def withdraw(self, *names: str) -> str:
        """Take arms out of the question and begin all tests again with a share of delta.

        The evidence against the arms that are left is void, because it may have come from the arm
        that is withdrawn. All rewards still help to choose. Returns what this means, in words.
        """
        return changes.withdraw(self._log, names)

    def add(self, arms: Arms, *, sigma: PerArm | None = None, cost: PerArm | None = None) -> str:
        """Add arms to the question; they are tested with a share of delta of their own.

        Parameters
        ----------
        arms : Arms
        sigma, cost : float or sequence, optional
            Of the new arms, in a study in which these differ between arms.

        Returns
        -------
        str
            What this means, in words.
        """
        return changes.add(self._log, arms, sigma=sigma, cost=cost)

    def fork(self, name: str, until: int) -> "Study":
        """Start a new study from the log before the decision on a batch.

        It has all that was told before batch `until`, and that batch open, without its rewards:
        tell them again, as they should be. If a reward was wrong for a reason of its own, delta
        holds as it is. If you fork because of how the results look, the probabilities of error of
        all studies you look at add up.
        """
        check_name(name)
        changes.copy_until(self._log, name, until)
        return Study.open(self._log.address, name)

    def stop(self, reason: str) -> Status:
        """Stop without a winner, for whatever reason, and say what is certain.

        This may be done at any time: with probability at least 1 - risk the best arm is among the
        survivors, unless the strategy is one for a fixed budget or without a proof. `resume` goes
        on.
        """
        check_text("reason", reason)
        self._mark(reason)
        return self.status(forecast=False)

    def resume(self) -> None:
        """Go on after `stop`."""
        self._mark(None)

    def _mark(self, stopped: str | None) -> None:
        with self._log.writing() as (writer, now):
            if now.verdict.decided:
                raise ConflictError(
                    f"the study has {decided(now)}; it cannot be stopped or resumed."
                )
            if stopped is None and now.stopped is None:
                raise ConflictError("the study was not stopped, so there is nothing to resume.")
            self._log.append(writer, now, "decided", {"stopped": stopped})

    def note(self, text: str) -> None:
        """Write a remark into the log."""
        check_text("note", text)
        with self._log.writing() as (writer, now):
            self._log.append(writer, now, "note", {"text": text})

    # ---- looking -------------------------------------------------------------------------

    def status(self, *, forecast: bool = True) -> Status:
        """Say what is certain, for every arm what speaks against it, and what is still needed.

        Parameters
        ----------
        forecast : bool
            Whether to simulate how many pulls are still needed: a second or so.
        """
        return status_of(self.name, self._log.now(), forecast=forecast)

    def evidence(self) -> tuple[Int[np.ndarray, " B"], Float[np.ndarray, "B K"]]:
        """Return the evidence against each arm over time, since the arms last changed.

        Returns
        -------
        pulls : (B,) array
            All pulls so far, after each batch.
        evidence : (B, K) array
            From 0 to 1; an arm is rejected at 1. No rows if the strategy has none, or if there are
            more than a thousand arms.
        """
        state = self._log.now()
        rows = [
            (decision.pulls, decision.evidence)
            for decision in state.decisions
            if state.issued[decision.batch - 1].stage == state.stage
            and decision.evidence is not None
        ]
        evidence = np.array([shares for _, shares in rows], dtype=float)
        pulls = np.array([pulls for pulls, _ in rows], dtype=np.int64)
        return pulls, evidence.reshape(-1, len(state.arms))

    def history(self) -> list[dict[str, Any]]:
        """Return the events, oldest first, as plain values."""
        with self._log.database.read() as reader:
            events = reader.events(self._log.row.id)
        return [{"number": e.number, "at": e.at, "kind": e.kind, **e.body} for e in events]

    def to_frame(self) -> "pd.DataFrame":
        """Return every pull: pull_id, batch, arm, state, reward, worker, issued, told, note."""
        state = self._log.now()
        with self._log.database.read() as reader:
            return pulls_table(state, reader, self._log.row.id)
