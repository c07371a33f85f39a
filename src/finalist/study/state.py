"""A study in memory: the replay of its events, and nothing else.

`State.apply` takes one event after another. Decisions are replayed with what was chosen when the
batch was issued; no design is solved. Whatever changes a state goes through here, whether it has
just been written or is read again years later.

What was decided stays decided. The evidence is computed again, by the rules that the study began
with. Where it says something else than the log, because rules were mended or a strategy of
somebody's own has changed, the log is right: the strategy follows it if it can, and is left out
if not. Then nothing is called certain.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.errors import StudyError
from finalist.inference.pooling import Pooled
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies import Batch, Run, Verdict
from finalist.study.checks import Check, found, is_look, work_of
from finalist.study.invariants import impossible
from finalist.study.pulls import Fate, Pulls
from finalist.study.settings import Settings, with_roles
from finalist.study.storage.errors import damaged
from finalist.study.storage.rows import EventRow

#: The evidence after each batch is kept for charts, up to so many arms.
MAX_ARMS = 1000
#: Reads the arms of a stage.
ReadArms = Callable[[int], Arms]


@dataclass(frozen=True, eq=False)
class Issued:
    """A batch as it was issued."""

    number: int
    stage: int
    counts: Int[np.ndarray, " K"]
    note: Mapping[str, Any]

    @property
    def words(self) -> str:
        """What the strategy said about it."""
        return str(self.note.get("words", ""))


@dataclass(frozen=True, eq=False)
class Measured:
    """What a complete batch gave: each arm's count and mean."""

    stage: int
    arms: Int[np.ndarray, " m"]
    count: Int[np.ndarray, " m"]
    mean: Float[np.ndarray, " m"]

    def statistics(self, K: int) -> Statistics:
        """Return counts and means for all K arms, without the scatter."""
        whole = Statistics.empty(K)
        whole.count[self.arms], whole.mean[self.arms] = self.count, self.mean
        return whole


@dataclass(frozen=True, eq=False)
class Decision:
    """What was certain after a batch, as it was written down then."""

    batch: int
    pulls: int
    winner: int | None
    rejected: tuple[int, ...]
    evidence: Float[np.ndarray, " K"] | None = field(repr=False)


class State:
    """Everything that the events of a study say."""

    def __init__(self, settings: Settings, read_arms: ReadArms) -> None:
        self.settings = settings
        self.problem: Problem = settings.problem
        self.run: Run = settings.strategy.start(settings.problem, seed=settings.seed)
        self.pulls = Pulls()
        self.pooled = Pooled(self.problem)
        self.lost = np.zeros(len(self.problem.arms), dtype=np.int64)  # pulls without reward
        self.last = 0  # number of the last event
        self.times: list[str] = []
        self.stage, self.levels = 0, [settings.problem.delta]
        self.issued: list[Issued] = []
        self.measured: list[Measured] = []
        self.cells = 0  # means of batches and arms in `measured`
        self.decisions: list[Decision] = []
        self.differs: list[int] = []  # batches that this version would have decided otherwise
        self._logged: Verdict | None = None  # by the log, once the strategy cannot follow it
        self.first_told: dict[int, int] = {}  # batch: event of its first reward
        self.workers: list[str] = []
        self.stopped: str | None = None
        self.history_pulls = 0
        self.fork: tuple[str, int] | None = None  # the study it was forked from, before which batch
        self.failed: dict[str, Check] = {}  # assumptions that a look has shown to be wrong
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
    def verdict(self) -> Verdict:
        """What the strategy has found."""
        return self.run.verdict if self._logged is None else self._logged

    @property
    def doubts(self) -> list[str]:
        """Why nothing is certain, whatever was decided; empty if all is well."""
        if not self.differs:
            return []
        return [f"this version of finalist decides otherwise after batch {self.differs[0]}"]

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
        budget = self.settings.budget
        return None if budget is None else max(budget - self.used, 0)

    @property
    def exhausted(self) -> bool:
        """Whether no arm can be pulled again."""
        most = self.problem.most_pulls
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

    def complete(self) -> bool:
        """Tell whether the open batch has nothing left to measure."""
        return self.open is not None and len(self.pulls.open(self.open.number)) == 0

    # ---- events --------------------------------------------------------------------------

    def apply(
        self,
        event: EventRow,
        rewards: tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]] | None = None,
    ) -> None:
        """Take over the next event, with the pulls and rewards that it brought."""
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
        """Take over that an event is written; its effect is there already."""
        self.last = event.number
        self.times.append(event.at)

    def _nothing(self, event: EventRow, _: Any) -> None:
        """Leave the state as it is: the event is for people."""

    def _created(self, event: EventRow, _: Any) -> None:
        if "fork_of" in event.body:
            self.fork = (event.body["fork_of"], event.body["until"])

    def _history(self, event: EventRow, _: Any) -> None:
        before = Statistics.empty(len(self.arms))
        before.add_many(event.body["arms"], event.body["rewards"])
        inform(self.run, before)
        self.history_pulls = before.pulls

    def _issue(self, event: EventRow, _: Any) -> None:
        body = event.body
        order = np.array(body["arms"], dtype=np.int64)
        counts = np.bincount(order, minlength=len(self.arms))
        self.issued.append(Issued(body["batch"], self.stage, counts, body["note"]))
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
                self._look()  # what a status said of it then stays said
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

    @property
    def follows(self) -> bool:
        """Whether the strategy has come to what the log says; if not, nobody may ask it."""
        return self._logged is None

    def require_strategy(self) -> None:
        """Refuse to go on with a strategy that could not follow the log."""
        if self._logged is not None:
            raise StudyError(
                f"the strategy of this study decides otherwise after batch {self.differs[0]} than "
                "its log says, so it cannot go on here. Go on with the version that began it, or "
                "start a new study."
            )

    def decide(self, logged: Verdict | None = None) -> dict[str, Any]:
        """Give the open batch to the strategy; return the body of the event that says so.

        `logged` is what was decided, where that is known already.
        """
        batch = self.open
        assert batch is not None
        if logged is None:
            self.require_strategy()
        rows = self.pulls.of(batch.number) - 1
        missing = self.pulls.arm[rows[self.pulls.fate[rows] == Fate.MISSING]]
        rows = rows[self.pulls.fate[rows] == Fate.TOLD]
        rewards = Statistics.empty(len(self.arms))
        rewards.add_many(self.pulls.arm[rows].astype(np.int64), self.pulls.reward[rows])
        before = set(self.verdict.survivors)
        self.pooled.add(rewards)
        lost = np.bincount(missing, minlength=len(self.arms))
        self.lost += lost
        if self._logged is None:
            self.run.record(Batch(rewards.count.copy(), batch.note), rewards)
            if len(missing) and hasattr(self.run, "lose"):
                self.run.lose(lost)
        if logged is not None:
            self._follow(logged, batch.number)
        some = np.flatnonzero(rewards.count)
        self.cells += len(some)
        self.measured.append(
            Measured(self.stage, some, rewards.count[some], rewards.mean[some].copy())
        )
        if is_look(len(self.measured), work_of(self)):
            self._look()
        # What was chosen for it has served; rivals of many arms would fill the memory.
        self.issued[-1] = replace(batch, note={"words": batch.words})
        verdict = self.verdict
        out = sorted(before - set(verdict.survivors))
        self.decisions.append(
            Decision(batch.number, verdict.pulls, verdict.winner, tuple(out), self._evidence())
        )
        return {
            "batch": batch.number,
            "pulls": verdict.pulls,
            "winner": verdict.winner,
            "rejected": out,
        }

    def _look(self) -> None:
        """Test the assumptions; one that fails has failed for good."""
        checks = found(self.problem, self.pooled.estimate(), self.measured, self.stage)
        self.failed |= {check.kind: check for check in checks if check.fails}

    def _follow(self, logged: Verdict, batch: int) -> None:
        """Take a decision from the log, where the strategy would decide otherwise."""
        if self._logged is None:
            own = self.run.verdict
            if (own.winner, set(own.survivors)) == (logged.winner, set(logged.survivors)):
                return
            self.differs.append(batch)
            follow = getattr(self.run, "follow", None)
            if follow is not None:
                follow(logged)
                return
        self._logged = logged

    def _evidence(self) -> Float[np.ndarray, " K"] | None:
        evidence = getattr(self.run, "evidence", None)
        if evidence is None or self._logged is not None or len(self.arms) > MAX_ARMS:
            return None
        return np.asarray(evidence().share, dtype=np.float32)

    def _change(self, event: EventRow, _: Any) -> None:
        body = event.body
        kept = np.array(body["kept"], dtype=np.int64)
        problem = changed_problem(self.problem, self._read_arms(body["stage"]), body)
        if self._logged is None:
            self.run = change(self.run, problem, kept, body["level"], afresh=body["afresh"])
        else:
            self._logged = _taken(self._logged, kept, body["afresh"])
        self.problem, self.stage = problem, body["stage"]
        self.pooled = self.pooled.taken(kept, problem)
        self.lost = np.where(kept >= 0, self.lost[kept], 0)
        self.levels.append(body["level"])


def _taken(verdict: Verdict, kept: Int[np.ndarray, " n"], afresh: bool) -> Verdict:
    """Return a verdict for other arms; all of them are possible if all begin afresh."""
    alive = [new for new, old in enumerate(kept) if afresh or old < 0 or old in verdict.survivors]
    return Verdict(None, tuple(alive), verdict.pulls)


def changed_problem(problem: Problem, arms: Arms, body: Mapping[str, Any]) -> Problem:
    """Return the question with other arms, as the event that changed them says."""
    changes: dict[str, Any] = {"arms": with_roles(arms, body)}
    if body.get("sigma") is not None:
        changes["noise"] = type(problem.noise)(tuple(body["sigma"]))  # type: ignore[call-arg]
    if body.get("cost") is not None:
        changes["cost"] = tuple(body["cost"])
    return problem.with_(**changes)


def inform(run: Run, before: Statistics) -> None:
    """Give a strategy what was measured before the study, if it can use that."""
    take = getattr(run, "inform", None)
    if take is None:
        raise StudyError(
            "this strategy cannot use earlier measurements; the gauntlet can (strategy='gauntlet')."
        )
    take(before)


def changing(run: Run) -> Callable[..., Run]:
    """Return how a strategy goes on with other arms, or refuse."""
    changed: Callable[..., Run] | None = getattr(run, "changed", None)
    if changed is None:
        raise StudyError(
            "this strategy cannot go on with other arms; the gauntlet can. Or create a new study."
        )
    return changed


def change(
    run: Run, problem: Problem, kept: Int[np.ndarray, " n"], level: float, *, afresh: bool
) -> Run:
    """Let a strategy go on with other arms, if it can."""
    return changing(run)(problem, kept, level, afresh=afresh)
