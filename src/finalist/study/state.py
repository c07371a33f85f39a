"""A study in memory: the replay of its events, and nothing else.

`State.apply` takes one event after another. Decisions are replayed with what was chosen when the
batch was issued; no design is solved. Whatever changes a state goes through here, whether it has
just been written or is read again years later.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.errors import StudyError
from finalist.inference.pooling import BatchSums, Pooled
from finalist.inference.statistics import BatchResults
from finalist.problem import Problem
from finalist.strategies import Batch, Run, Verdict
from finalist.strategies.abilities import Explaining
from finalist.study.checks import Check, found, is_look, work_of
from finalist.study.history import History, examine
from finalist.study.invariants import impossible
from finalist.study.pulls import Decision, Fate, Fork, Issued, Pulls
from finalist.study.replay import Replay
from finalist.study.settings import Settings, with_roles
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
        self.first_told: dict[int, int] = {}  # batch: event of its first reward
        self.workers: list[str] = []
        self.stopped: str | None = None
        self.history_pulls = 0
        self.history: History | None = None  # what old results say of the assumptions
        self.fork: Fork | None = None
        self.failed: dict[str, Check] = {}  # assumptions that a test has shown to be wrong
        self.checked: tuple[Any, list[Check]] | None = None  # `checks.checks_of` keeps it here
        self._read_arms = read_arms
        self._apply: dict[str, Callable[[EventRow, Any], None]] = {
            "created": self._created,
            "note": self._nothing,
            "history": self._history,
            "issued": self._issue,
            "assigned": self._assign,
            "told": self._tell,
            "voided": self._void,
            "missing": self._missing,
            "amended": self._tell,
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
        if self.issued and len(self.decisions) < len(self.issued):
            return self.issued[-1]
        return None

    @property
    def used(self) -> int:
        """Pulls that count for the budget: all but void ones."""
        return int(np.count_nonzero(self.pulls.fate != Fate.VOID))

    @property
    def left(self) -> int | None:
        """Pulls left of the budget; None without one."""
        budget = self.problem.budget
        return None if budget is None else max(budget - self.used, 0)

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
        if self.left == 0:
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
        rows = self.pulls.of(batch.number) - 1
        rows = rows[self.pulls.fate[rows] != Fate.VOID]
        counts = np.bincount(self.pulls.arm[rows], minlength=len(self.arms))
        return run.purpose(Batch(counts, batch.note))

    def complete(self) -> bool:
        """Return whether the open batch has nothing left to measure."""
        return self.open is not None and len(self.pulls.open(self.open.number)) == 0

    # ---- events --------------------------------------------------------------------------

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

    def _nothing(self, event: EventRow, _: Any) -> None:
        """Leave the state as it is: the event is for people."""

    def _created(self, event: EventRow, _: Any) -> None:
        if "fork_of" in event.body:
            words = ("fork_of", "until", "model", "risk")
            self.fork = Fork(*(event.body[word] for word in words if word in event.body))

    def _history(self, event: EventRow, _: Any) -> None:
        arms, rewards = (np.array(event.body[word]) for word in ("arms", "rewards"))
        before = BatchResults.of(len(self.arms), arms, rewards.astype(float))
        self.replay.inform(before)
        self.history_pulls, self.history = before.pulls, examine(self.problem, before)

    def _issue(self, event: EventRow, _: Any) -> None:
        body = event.body
        order = np.array(body["arms"], dtype=np.int64)
        self.issued.append(Issued(body["batch"], self.stage, body["note"]))
        self.pulls.add(order, body["batch"], event.number)

    def _assign(self, event: EventRow, _: Any) -> None:
        worker = event.body["worker"]
        if worker not in self.workers:
            self.workers.append(worker)
        self.pulls.assign(np.array(event.body["pulls"]), self.workers.index(worker))

    def _tell(self, event: EventRow, rewards: Any) -> None:
        if rewards is not None:
            pulls, values = rewards
            self.pulls.tell(pulls, values, event.number)
            for batch in np.unique(self.pulls.batch[pulls - 1]).tolist():
                self.first_told.setdefault(batch, event.number)

    def _void(self, event: EventRow, _: Any) -> None:
        pull = event.body["pull"]
        self.pulls.close(pull, Fate.VOID, event.number)
        row = pull - 1
        worker = int(self.pulls.worker[row])
        self.pulls.add(self.pulls.arm[[row]], int(self.pulls.batch[row]), event.number)
        self.pulls.assign(np.array([len(self.pulls)]), worker)

    def _missing(self, event: EventRow, _: Any) -> None:
        self.pulls.close(event.body["pull"], Fate.MISSING, event.number)

    def _decided(self, event: EventRow, _: Any) -> None:
        body = event.body
        if "stopped" in body:
            self.stopped = body["stopped"]
            if self.measured:
                self._look()  # what a status said then stays said
            return
        self.decide(self._logged_verdict(body))

    def _logged_verdict(self, body: Mapping[str, Any]) -> Verdict:
        """Return what a decision in the log says; where several win, they are those left."""
        winner, gone = body["winner"], set(body["rejected"])
        kept = {arm for arm in self.verdict.survivors if arm not in gone}
        if winner is None:
            return Verdict(None, tuple(sorted(kept)), body["pulls"])
        kept.add(winner)  # within epsilon of the best, also an arm that was ruled out may be
        several = (winner, *sorted(kept - {winner})) if self.problem.top > 1 else ()
        return Verdict(winner, tuple(sorted(kept)), body["pulls"], several)

    def decide(self, logged: Verdict | None = None) -> dict[str, Any]:
        """Give the open batch to the strategy; return the body of the event that says so.

        `logged` is what was decided, where that is known already.
        """
        batch = self.open
        assert batch is not None
        if logged is None:
            self.replay.require_run()
        rows = self.pulls.of(batch.number) - 1
        missing = self.pulls.arm[rows[self.pulls.fate[rows] == Fate.MISSING]]
        rows = rows[self.pulls.fate[rows] == Fate.TOLD]
        rewards = BatchResults.of(
            len(self.arms),
            self.pulls.arm[rows].astype(np.int64),
            self.pulls.reward[rows],
            order=np.argsort(self.pulls.told[rows], kind="stable"),
        )
        before = set(self.verdict.survivors)
        self.pooled.add(rewards)
        lost = np.bincount(missing, minlength=len(self.arms))
        self.lost += lost
        self.replay.record(Batch(rewards.count.copy(), batch.note), rewards, lost)
        if logged is not None:
            self.replay.follow(logged, batch.number)
        self.measured.append(BatchSums.of(rewards))
        self.cells += len(self.measured[-1].arms)
        if is_look(len(self.measured), work_of(self)):
            self._look()
        # The choice behind it is no longer needed; rivals of many arms would fill the memory.
        self.issued[-1] = replace(batch, note={})
        verdict = self.verdict
        out = sorted(before - set(verdict.survivors))
        shares = self.replay.shares(len(self.arms))
        self.decisions.append(
            Decision(batch.number, verdict.pulls, verdict.winner, tuple(out), shares)
        )
        return {
            "batch": batch.number,
            "pulls": verdict.pulls,
            "winner": verdict.winner,
            "rejected": out,
        }

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


def changed_problem(problem: Problem, arms: Arms, body: Mapping[str, Any]) -> Problem:
    """Return the question with other arms, as the event that changed them says."""
    changes: dict[str, Any] = {"arms": with_roles(arms, body)}
    if body.get("sigma") is not None:
        changes["noise"] = type(problem.noise)(tuple(body["sigma"]))  # type: ignore[call-arg]
    if body.get("cost") is not None:
        changes["cost"] = tuple(body["cost"])
    return problem.with_(**changes)
