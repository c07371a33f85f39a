"""A study in memory: the replay of its events, and nothing else.

`State.apply` takes one event after another. Decisions are replayed with what was chosen when the
batch was issued; no design is solved. Whatever changes a state goes through here, whether it has
just been written or is read again years later.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.compiled.threads import on_one_thread
from finalist.errors import StudyError
from finalist.inference.pooling import BatchSums, Pooled
from finalist.inference.statistics import BatchResults
from finalist.problem import Problem
from finalist.problem.budget import cheapest, prices_of
from finalist.shapes import Float, Int
from finalist.strategies import Batch, Run, Verdict
from finalist.strategies.abilities import Explaining, Looking
from finalist.study.bends import first_evidence, look_for_bends
from finalist.study.check import Check
from finalist.study.checks import found, is_look, work_of
from finalist.study.history import History, examine
from finalist.study.invariants import impossible
from finalist.study.pulls import Decision, Fate, Fork, Issued, Pulls
from finalist.study.replay import Replay
from finalist.study.settings import Settings, changed_problem
from finalist.study.storage.errors import damaged
from finalist.study.storage.rows import EventRow

#: Reads the arms of a stage.
ReadArms = Callable[[int], Arms]


class State:
    """Everything that the events of a study say."""

    def __init__(self, settings: Settings, read_arms: ReadArms) -> None:
        self.settings = settings
        self.problem: Problem = settings.problem
        self.replay = Replay(settings.strategy.start(settings.problem, seed=settings.seed))
        self.pulls = Pulls()
        self.pooled = Pooled(self.problem)
        self.lost = np.zeros(len(self.problem.arms), dtype=np.int64)  # pulls without reward
        self.last = 0  # number of the last event
        self.times: list[str] = []
        self.stage, self.levels = 0, [settings.problem.delta]
        self.issued: list[Issued] = []
        self.measured: list[BatchSums] = []  # complete batches
        self.since = 0  # how many of them were before the arms last changed
        self.cells = 0  # means of arms in all complete batches
        self.decisions: list[Decision] = []
        self.seen: Int[np.ndarray, " K"] | None = None  # counts of the last look at the open batch
        self.cut: int | None = None  # the batches before one that was decided on inside
        self.first_told: dict[int, int] = {}  # batch: event of its first reward
        self.workers: list[str] = []
        self.stopped: str | None = None
        self.history_pulls = 0
        self.history: History | None = None  # what old results say of the assumptions
        self.fork: Fork | None = None
        self.failed: dict[str, Check] = {}  # assumptions that a test has shown to be wrong
        self.bends = first_evidence(self.run, self.problem)
        self.checked: tuple[Any, list[Check]] | None = None  # `checks.checks_of` keeps it here
        self._read_arms = read_arms
        self._apply: dict[str, Callable[[EventRow, Any], None]] = {
            "created": self._created,
            "note": self._note,
            "history": self._history,
            "issued": self._issue,
            "assigned": self._assign,
            "told": self._tell,
            "voided": self._void,
            "missing": self._missing,
            "amended": self._amend,
            "decided": self._decided,
            "changed": self._change,
        }

    # ---- questions -----------------------------------------------------------------------

    @property
    def arms(self) -> Arms:
        """The arms of the present stage."""
        return self.problem.arms

    @property
    def run(self) -> Run:
        """The strategy, while it follows the log."""
        return self.replay.run

    @property
    def verdict(self) -> Verdict:
        """What was found so far."""
        return self.replay.verdict

    @property
    def doubts(self) -> list[str]:
        """Why nothing is certain, whatever was decided; empty if all is well."""
        differs = self.replay.differs
        if not differs:
            return []
        return [f"this version of finalist decides otherwise after batch {differs[0]}"]

    @property
    def open(self) -> Issued | None:
        """The batch that is being measured."""
        return self.issued[-1] if len(self.decisions) < len(self.issued) else None

    @property
    def left(self) -> float | None:
        """Pulls, or cost, left of the budget; None without one."""
        budget = self.problem.budget
        return None if budget is None else max(budget - self.pulls.spent, 0)

    @property
    def exhausted(self) -> bool:
        """Whether no arm can be pulled again."""
        most = self.problem.max_pulls_per_arm
        made = self.pooled.statistics.count + self.lost
        return most is not None and bool(np.all(made[self.arms.measurable] >= most))

    @property
    def end(self) -> str | None:
        """Why there is nothing left to ask: "decided", "stopped", "budget", "exhausted"."""
        if self.verdict.decided:
            return "decided"
        if self.stopped is not None:
            return "stopped"
        if self.open is not None:
            return None
        if self.left is not None and self.left < cheapest(self.problem):
            return "budget"
        return "exhausted" if self.exhausted else None

    def purpose(self) -> str:
        """Say what the open batch is for, by its note or by the strategy; empty if none says so.

        Strategies of others write it into their notes, and so did ours before.
        """
        batch = self.open
        assert batch is not None
        run = self.run
        if batch.words or not isinstance(run, Explaining) or not self.replay.follows:
            return batch.words
        return run.purpose(Batch(self.pulls.counts(batch.number, len(self.arms)), batch.note))

    @property
    def until_test(self) -> int:
        """Measurements until the next test, where that is beyond the open batch; otherwise 0."""
        run, batch = self.run, self.open
        if self.end is not None or not self.replay.follows or not isinstance(run, Looking):
            return 0
        if batch is None:
            return run.until_test()
        counts = self.pulls.counts(batch.number, len(self.arms))
        after = run.until_test(Batch(counts, batch.note))
        return after + len(self.pulls.open(batch.number)) if after > 0 else 0

    def complete(self) -> bool:
        """Whether the open batch has nothing left to measure."""
        return self.open is not None and len(self.pulls.open(self.open.number)) == 0

    # ---- events --------------------------------------------------------------------------

    @on_one_thread(lambda self, *_, **__: self.arms.features.size)
    def apply(
        self,
        event: EventRow,
        rewards: tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]] | None = None,
    ) -> None:
        """Apply the next event, with the pulls and rewards that it brought."""
        if event.number != self.last + 1:
            raise StudyError(
                f"event {event.number} follows event {self.last}; the log of this study is not "
                "complete. Check the database: finalist db check."
            )
        if event.kind not in self._apply:
            raise StudyError(
                f"event {event.number} is of the kind {event.kind!r}, which this version does not "
                "know; upgrade finalist."
            )
        wrong = impossible(self, event, rewards)
        if wrong is not None:
            raise damaged("the log of this study", f"event {event.number} ({event.kind}): {wrong}")
        self._apply[event.kind](event, rewards)
        self.count(event)

    def count(self, event: EventRow) -> None:
        """Mark an event as applied without replaying it."""
        self.last = event.number
        self.times.append(event.at)

    def _note(self, event: EventRow, _: Any) -> None:
        """Leave the state as it is, for people alone, unless the budget is another one."""
        if "budget" in event.body:
            self.problem = self.problem.with_(budget=event.body["budget"])
            self.replay.rebudget(self.problem.budget)

    def _created(self, event: EventRow, _: Any) -> None:
        if "fork_of" in event.body:
            words = ("model", "risk", "epsilon")  # those of older versions have fewer
            known = {word: event.body[word] for word in words if word in event.body}
            self.fork = Fork(event.body["fork_of"], event.body["until"], **known)

    def _history(self, event: EventRow, _: Any) -> None:
        arms, rewards = (np.array(event.body[word]) for word in ("arms", "rewards"))
        before = BatchResults.of(len(self.arms), arms, rewards.astype(float))
        self.replay.inform(before)
        self.history_pulls, self.history = before.pulls, examine(self.problem, before)

    def _issue(self, event: EventRow, _: Any) -> None:
        body = event.body
        order = np.array(body["arms"], dtype=np.int64)
        self.issued.append(Issued(body["batch"], self.stage, body["note"]))
        self.seen = None
        self.pulls.add(order, body["batch"], event.number, prices_of(self.problem)[order])

    def _assign(self, event: EventRow, _: Any) -> None:
        worker = event.body["worker"]
        if worker not in self.workers:
            self.workers.append(worker)
        pulls = np.array(event.body["pulls"], dtype=np.int64)
        self.pulls.assign(pulls, self.workers.index(worker))

    def _tell(self, event: EventRow, rewards: Any) -> None:
        if rewards is not None:
            pulls, values = rewards
            late = self.pulls.fate[pulls - 1] == Fate.UNNEEDED
            if late.any():  # it is decided without them; what is known of the arms gets better
                arms = self.pulls.arm[pulls[late] - 1].astype(np.int64)
                self._learn(BatchResults.of(len(self.arms), arms, values[late]))
            self.pulls.tell(pulls, values, event.number, correction=event.kind == "amended")
            for batch in np.unique(self.pulls.batch[pulls - 1]).tolist():
                self.first_told.setdefault(batch, event.number)

    def _amend(self, event: EventRow, rewards: Any) -> None:
        self._tell(event, rewards)
        self.pulls.reopen(np.array(event.body.get("taken_back", ()), dtype=np.int64))
        self.seen = None  # looks at the open batch are computed anew

    def _void(self, event: EventRow, _: Any) -> None:
        row = event.body["pull"] - 1
        self.pulls.close(row + 1, Fate.VOID, event.number)
        arm, price = self.pulls.arm[[row]], self.pulls.price[[row]]
        self.pulls.add(arm, int(self.pulls.batch[row]), event.number, price)
        self.pulls.assign(np.array([len(self.pulls)]), int(self.pulls.worker[row]))

    def _missing(self, event: EventRow, _: Any) -> None:
        self.pulls.close(event.body["pull"], Fate.MISSING, event.number)

    def _decided(self, event: EventRow, _: Any) -> None:
        body = event.body
        if "stopped" in body:
            self.stopped = body["stopped"]
            if self.measured:
                self._look()  # what a status said then stays said
            return
        self.decide(self.replay.logged(body, several=self.problem.top > 1))

    def decision(self) -> dict[str, Any] | None:
        """Decide if the open batch is complete, or what has arrived of it is enough.

        Return the body of the event that says so; None if it is not time yet.
        """
        if self.complete():
            return self.decide()
        if self.open is None:
            return None
        before = set(self.verdict.survivors)
        rewards = self.pulls.results(self.open.number, len(self.arms))
        part = Batch(rewards.count.copy(), self.open.note)
        found, self.seen = self.replay.look(part, rewards, self.seen), rewards.count
        return self._conclude(rewards, before) if found else None

    def decide(self, logged: Verdict | None = None) -> dict[str, Any]:
        """Give the open batch to the strategy; return the body of the event that says so.

        `logged` is what was decided, where that is known already: maybe before it was complete.
        """
        batch = self.open
        assert batch is not None
        if logged is None:
            self.replay.require_run()
        before = set(self.verdict.survivors)
        rewards = self.pulls.results(batch.number, len(self.arms))
        part = Batch(rewards.count.copy(), batch.note)
        if self.complete() or not self.replay.look(part, rewards):
            self.replay.record(part, rewards)
        return self._conclude(rewards, before, logged)

    def _conclude(
        self, rewards: BatchResults, before: set[int], logged: Verdict | None = None
    ) -> dict[str, Any]:
        """Close the open batch, whose results the strategy has."""
        batch = self.open
        assert batch is not None
        lost = self.pulls.counts(batch.number, len(self.arms), Fate.MISSING)
        self.lost += lost
        self.replay.lose(lost)
        unneeded = self.pulls.open(batch.number)
        self.pulls.close(unneeded, Fate.UNNEEDED, self.last + 1)
        if len(unneeded) > 0:
            self.cut = len(self.measured)
        if logged is not None:
            self.replay.follow(logged, batch.number)
        self._learn(rewards)
        # The choice behind it is no longer needed; rivals of many arms would fill the memory.
        self.issued[-1] = replace(batch, note={})
        verdict = self.verdict
        out = sorted(before - set(verdict.survivors))
        shares = self.replay.shares(len(self.arms))
        self.decisions.append(
            Decision(batch.number, verdict.pulls, verdict.winner, tuple(out), shares)
        )
        body = {
            "batch": batch.number,
            "pulls": verdict.pulls,
            "winner": verdict.winner,
            "rejected": out,
        }
        return body | {"unneeded": len(unneeded)} if len(unneeded) else body

    def _learn(self, rewards: BatchResults) -> None:
        """Add rewards to what is known of the arms, and test the assumptions."""
        look_for_bends(self, rewards)
        self.pooled.add(rewards)
        self.measured.append(BatchSums.of(rewards))
        self.cells += len(self.measured[-1].arms)
        if is_look(len(self.measured), work_of(self)):
            self._look()

    def _look(self) -> None:
        """Test the assumptions; one that fails has failed for good."""
        checks = found(self.problem, self.pooled.estimate(), self.measured, self.since)
        self.failed |= {check.kind: check for check in checks if check.fails}

    def _change(self, event: EventRow, _: Any) -> None:
        body = event.body
        kept = np.array(body["kept"], dtype=np.int64)
        problem = changed_problem(self.problem, self._read_arms(body["stage"]), body)
        self.replay.change(problem, kept, body["level"], afresh=body["afresh"])
        self.problem, self.stage = problem, body["stage"]
        self.pooled, self.since = self.pooled.taken(kept, problem), len(self.measured)
        self.lost = np.where(kept >= 0, self.lost[kept], 0)
        self.levels.append(body["level"])
        self.bends = first_evidence(self.run, problem, self.bends)
