"""The kinds of events: when one can come, and what it does to a state.

Every event is checked against the state before it, when it is written and whenever it is read
again. Writers refuse an impossible event with a helpful error before it gets here; whatever still
arrives is damage or a bug in finalist, and is rejected.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.errors import StudyError
from finalist.inference.statistics import BatchResults
from finalist.problem.budget import prices_of
from finalist.shapes import Bool, Int
from finalist.strategies.abilities import Looking
from finalist.study.bends import first_evidence
from finalist.study.history import examine
from finalist.study.pulls import Fate, Fork, Issued
from finalist.study.settings import changed_problem
from finalist.study.storage.errors import damaged
from finalist.study.storage.rows import EventRow

if TYPE_CHECKING:
    from finalist.study.state import State


@dataclass(frozen=True)
class Kind:
    """A kind of event.

    Attributes
    ----------
    apply : callable
        Changes a state by an event and by the pulls and rewards that it brought, if any.
    wrong : callable
        Says why an event cannot come now, of the same arguments; None if it can.
    """

    apply: Callable[["State", EventRow, Any], None]
    wrong: Callable[["State", EventRow, Any], str | None] = lambda *_: None


def apply(state: "State", event: EventRow, rewards: Any) -> None:
    """Apply an event with the pulls and rewards that it brought, or refuse it."""
    if event.kind not in KINDS:
        raise StudyError(
            f"event {event.number} is of the kind {event.kind!r}, which this version does not "
            "know; upgrade finalist."
        )
    wrong = _impossible(state, event, rewards) or KINDS[event.kind].wrong(state, event, rewards)
    if wrong is not None:
        raise damaged("the log of this study", f"event {event.number} ({event.kind}): {wrong}")
    KINDS[event.kind].apply(state, event, rewards)


def _impossible(state: "State", event: EventRow, rewards: Any) -> str | None:
    """Say why an event cannot come now, whatever its kind; None if it can."""
    if (event.kind == "created") != (event.number == 1):
        return "a study is created once, by its first event"
    if state.complete() and not _decides(event):
        return "the open batch is complete, and it is not decided on"
    if (rewards is not None and len(rewards[0]) > 0) and event.kind not in ("told", "amended"):
        return "it has results"
    return None


def _create(state: "State", event: EventRow, _: Any) -> None:
    if "fork_of" in event.body:
        words = ("model", "risk", "epsilon")  # those of older versions have fewer
        known = {word: event.body[word] for word in words if word in event.body}
        state.fork = Fork(event.body["fork_of"], event.body["until"], **known)


def _no_history(state: "State", event: EventRow, _: Any) -> str | None:
    if state.issued or state.history_pulls:
        return "earlier measurements come once, before the first batch"
    arms = np.asarray(event.body["arms"])
    if len(arms) != len(event.body["rewards"]) or not _within(arms, 0, len(state.arms)):
        return "its candidates are not those of the study"
    return None


def _inform(state: "State", event: EventRow, _: Any) -> None:
    arms, rewards = (np.array(event.body[word]) for word in ("arms", "rewards"))
    before = BatchResults.of(len(state.arms), arms, rewards.astype(float))
    state.replay.inform(before)
    state.history_pulls, state.history = before.pulls, examine(state.problem, before)


def _not_issued(state: "State", event: EventRow, _: Any) -> str | None:
    number = event.body["batch"]
    if state.open is not None:
        return f"batch {number} is issued while batch {state.open.number} is open"
    if number != len(state.issued) + 1:
        return f"batch {number} is issued and batch {len(state.issued) + 1} is due"
    if state.end is not None:
        return f"batch {number} is issued after the end of the study ({state.end})"
    if not _within(np.asarray(event.body["arms"]), 0, len(state.arms)):
        return "its candidates are not those of the study"
    return None


def _issue(state: "State", event: EventRow, _: Any) -> None:
    body = event.body
    order = np.array(body["arms"], dtype=np.int64)
    state.issued.append(Issued(body["batch"], state.stage, body["note"]))
    state.seen = None
    state.pulls.add(order, body["batch"], event.number, prices_of(state.problem)[order])


def _not_assigned(state: "State", event: EventRow, _: Any) -> str | None:
    pulls = np.asarray(event.body["pulls"], dtype=np.int64)
    if not _are(state, pulls, Fate.OPEN).all() or (state.pulls.worker[pulls - 1] != -1).any():
        return "it gives out measurements that are not there to give out"
    return None


def _assign(state: "State", event: EventRow, _: Any) -> None:
    worker = event.body["worker"]
    if worker not in state.workers:
        state.workers.append(worker)
    pulls = np.array(event.body["pulls"], dtype=np.int64)
    state.pulls.assign(pulls, state.workers.index(worker))


def _not_told(state: "State", event: EventRow, rewards: Any) -> str | None:
    pulls = np.empty(0, dtype=np.int64) if rewards is None else np.asarray(rewards[0])
    wrong = pulls[~(_are(state, pulls, Fate.OPEN) | _are(state, pulls, Fate.UNNEEDED))]
    if len(wrong):
        return f"measurement {wrong[0]} has a result, or takes none"
    if event.body.get("count", len(pulls)) != len(pulls):
        return f"it has {len(pulls)} of {event.body['count']} results"
    return None


def _tell(state: "State", event: EventRow, rewards: Any) -> None:
    if rewards is not None:
        pulls, values = rewards
        late = state.pulls.fate[pulls - 1] == Fate.UNNEEDED
        if late.any():  # it is decided without them; what is known of the arms gets better
            arms = state.pulls.arm[pulls[late] - 1].astype(np.int64)
            state.learn(BatchResults.of(len(state.arms), arms, values[late]))
        state.pulls.tell(pulls, values, event.number, correction=event.kind == "amended")
        for batch in np.unique(state.pulls.batch[pulls - 1]).tolist():
            state.first_told.setdefault(batch, event.number)


def _not_amended(state: "State", event: EventRow, rewards: Any) -> str | None:
    if "taken_back" in event.body:
        if rewards is not None and len(rewards[0]) > 0:
            return "it takes results back, and has some"
        each = (_of_open_batch(state, pull, Fate.TOLD) for pull in event.body["taken_back"])
        return next(filter(None, each), None)
    pull = event.body["pull"]
    if rewards is None or list(rewards[0]) != [pull]:
        return f"it is of measurement {pull}, and its result is of another or not there"
    return _of_open_batch(state, pull, Fate.TOLD)


def _amend(state: "State", event: EventRow, rewards: Any) -> None:
    _tell(state, event, rewards)
    state.pulls.reopen(np.array(event.body.get("taken_back", ()), dtype=np.int64))
    state.seen = None  # looks at the open batch are computed anew


def _not_lost(state: "State", event: EventRow, _: Any) -> str | None:
    return _of_open_batch(state, event.body["pull"], Fate.OPEN)


def _void(state: "State", event: EventRow, _: Any) -> None:
    row = event.body["pull"] - 1
    state.pulls.close(row + 1, Fate.VOID, event.number)
    arm, price = state.pulls.arm[[row]], state.pulls.price[[row]]
    state.pulls.add(arm, int(state.pulls.batch[row]), event.number, price)
    state.pulls.assign(np.array([len(state.pulls)]), int(state.pulls.worker[row]))


def _miss(state: "State", event: EventRow, _: Any) -> None:
    state.pulls.close(event.body["pull"], Fate.MISSING, event.number)


def _not_decided(state: "State", event: EventRow, _: Any) -> str | None:
    if "stopped" in event.body:
        if state.verdict.decided:
            return "the study is decided, so it cannot be stopped or resumed"
        return None
    number, batch = event.body["batch"], state.open
    if batch is None or batch.number != number:
        return f"batch {number} is not open"
    left = len(state.pulls.open(number))
    if left != event.body.get("unneeded", 0) or (left and event.body["winner"] is None):
        return f"batch {number} is not complete"
    return None


def _decide(state: "State", event: EventRow, _: Any) -> None:
    body = event.body
    if "stopped" in body:
        state.stopped = body["stopped"]
        if state.measured:
            state.test_assumptions()  # what a status said then stays said
        return
    state.decide(state.replay.logged(body, several=state.problem.top > 1))


def _not_changed(state: "State", event: EventRow, _: Any) -> str | None:
    if state.open is not None or state.verdict.decided:
        return "the candidates change while a batch is open, or after the decision"
    if until_end(state) > 0:
        return "the candidates change before the test under way is over"
    if event.body["stage"] != state.stage + 1:
        return f"it is stage {event.body['stage']} and stage {state.stage + 1} is due"
    if not _within(np.asarray(event.body["kept"]), -1, len(state.arms)):
        return "its candidates are not those of the study"
    return None


def _change(state: "State", event: EventRow, _: Any) -> None:
    body = event.body
    kept = np.array(body["kept"], dtype=np.int64)
    problem = changed_problem(state.problem, state.read_arms(body["stage"]), body)
    state.replay.change(problem, kept, body["level"], afresh=body["afresh"])
    state.problem, state.stage = problem, body["stage"]
    state.pooled, state.since = state.pooled.taken(kept, problem), len(state.measured)
    state.lost = np.where(kept >= 0, state.lost[kept], 0)
    state.levels.append(body["level"])
    state.bends = first_evidence(state.run, problem, state.bends)


def _not_noted(state: "State", event: EventRow, _: Any) -> str | None:
    budget = event.body.get("budget")
    if budget is not None and not (isinstance(budget, int) and budget >= max(state.pulls.spent, 1)):
        return f"the budget becomes {budget!r}, and {state.pulls.spent} of it is spent"
    if "budget" in event.body and state.verdict.decided:
        return "the budget changes after the decision"
    return None


def _note(state: "State", event: EventRow, _: Any) -> None:
    """Leave the state as it is, for people alone, unless the budget is another one."""
    if "budget" in event.body:
        state.problem = state.problem.with_(budget=event.body["budget"])
        state.replay.rebudget(state.problem.budget)


def _decides(event: EventRow) -> bool:
    return event.kind == "decided" and "stopped" not in event.body


def until_end(state: "State") -> int:
    """Return how many more pulls the test under way needs, if the strategy has one."""
    run = state.run
    return run.until_end if state.replay.follows and isinstance(run, Looking) else 0


def _of_open_batch(state: "State", pull: int, fate: Fate) -> str | None:
    if not _are(state, np.array([pull]), fate)[0]:
        return f"measurement {pull} is not {fate.name.lower()}"
    if state.open is None or state.pulls.batch[pull - 1] != state.open.number:
        return f"the batch of measurement {pull} is decided on"
    return None


def _are(state: "State", pulls: Int[np.ndarray, " n"], fate: Fate) -> Bool[np.ndarray, " n"]:
    """Return which numbers belong to pulls in this state."""
    known = state.pulls.known(pulls)
    fates = state.pulls.fate[np.where(known, pulls, 1) - 1] if len(state.pulls) else known
    return np.asarray(known & (fates == fate))


def _within(numbers: np.ndarray, low: int, end: int) -> bool:
    return bool(np.all((numbers >= low) & (numbers < end)))


#: All kinds, by the words of `storage.schema.KINDS`.
KINDS: dict[str, Kind] = {
    "created": Kind(_create),
    "history": Kind(_inform, _no_history),
    "issued": Kind(_issue, _not_issued),
    "assigned": Kind(_assign, _not_assigned),
    "told": Kind(_tell, _not_told),
    "amended": Kind(_amend, _not_amended),
    "voided": Kind(_void, _not_lost),
    "missing": Kind(_miss, _not_lost),
    "decided": Kind(_decide, _not_decided),
    "changed": Kind(_change, _not_changed),
    "note": Kind(_note, _not_noted),
}
