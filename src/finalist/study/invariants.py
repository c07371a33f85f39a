"""What no writer could have written: the invariants of a log.

Every event is checked against the state before it, when it is written and whenever it is read
again. Writers refuse an impossible event with a helpful error before it gets here; whatever still
arrives is damage or a bug in finalist, and is rejected.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int

from finalist.strategies.abilities import Looking
from finalist.study.pulls import Fate
from finalist.study.storage.rows import EventRow

if TYPE_CHECKING:
    from finalist.study.state import State

#: What is wrong with an event, None if nothing is.
Check = Callable[["State", EventRow, Any], str | None]


def impossible(state: "State", event: EventRow, rewards: Any) -> str | None:
    """Say why an event cannot come now; None if it can.

    Parameters
    ----------
    state : State
        Before the event.
    rewards : (pulls, rewards) or None
        What the event brought.
    """
    if (event.kind == "created") != (event.number == 1):
        return "a study is created once, by its first event"
    if state.complete() and not _decides(event):
        return "the open batch is complete, and it is not decided on"
    if (rewards is not None and len(rewards[0]) > 0) and event.kind not in ("told", "amended"):
        return "it has results"
    check = _CHECKS.get(event.kind)
    return None if check is None else check(state, event, rewards)


def _decides(event: EventRow) -> bool:
    return event.kind == "decided" and "stopped" not in event.body


def _history(state: "State", event: EventRow, _: Any) -> str | None:
    if state.issued or state.history_pulls:
        return "earlier measurements come once, before the first batch"
    arms = np.asarray(event.body["arms"])
    if len(arms) != len(event.body["rewards"]) or not _within(arms, 0, len(state.arms)):
        return "its candidates are not those of the study"
    return None


def _issued(state: "State", event: EventRow, _: Any) -> str | None:
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


def _assigned(state: "State", event: EventRow, _: Any) -> str | None:
    pulls = np.asarray(event.body["pulls"], dtype=np.int64)
    if not _are(state, pulls, Fate.OPEN).all() or (state.pulls.worker[pulls - 1] != -1).any():
        return "it gives out measurements that are not there to give out"
    return None


def _told(state: "State", event: EventRow, rewards: Any) -> str | None:
    pulls = np.empty(0, dtype=np.int64) if rewards is None else np.asarray(rewards[0])
    wrong = pulls[~(_are(state, pulls, Fate.OPEN) | _are(state, pulls, Fate.UNNEEDED))]
    if len(wrong):
        return f"measurement {wrong[0]} has a result, or takes none"
    if event.body.get("count", len(pulls)) != len(pulls):
        return f"it has {len(pulls)} of {event.body['count']} results"
    return None


def _amended(state: "State", event: EventRow, rewards: Any) -> str | None:
    if "taken_back" in event.body:
        if rewards is not None and len(rewards[0]) > 0:
            return "it takes results back, and has some"
        each = (_of_open_batch(state, pull, Fate.TOLD) for pull in event.body["taken_back"])
        return next(filter(None, each), None)
    pull = event.body["pull"]
    if rewards is None or list(rewards[0]) != [pull]:
        return f"it is of measurement {pull}, and its result is of another or not there"
    return _of_open_batch(state, pull, Fate.TOLD)


def _voided(state: "State", event: EventRow, _: Any) -> str | None:
    return _of_open_batch(state, event.body["pull"], Fate.OPEN)


def _decided(state: "State", event: EventRow, _: Any) -> str | None:
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


def _changed(state: "State", event: EventRow, _: Any) -> str | None:
    if state.open is not None or state.verdict.decided:
        return "the candidates change while a batch is open, or after the decision"
    if until_end(state) > 0:
        return "the candidates change before the test under way is over"
    if event.body["stage"] != state.stage + 1:
        return f"it is stage {event.body['stage']} and stage {state.stage + 1} is due"
    if not _within(np.asarray(event.body["kept"]), -1, len(state.arms)):
        return "its candidates are not those of the study"
    return None


def _note(state: "State", event: EventRow, _: Any) -> str | None:
    budget = event.body.get("budget")
    if budget is not None and not (isinstance(budget, int) and budget >= max(state.pulls.spent, 1)):
        return f"the budget becomes {budget!r}, and {state.pulls.spent} of it is spent"
    if "budget" in event.body and state.verdict.decided:
        return "the budget changes after the decision"
    return None


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


_CHECKS: dict[str, Check] = {
    "history": _history,
    "issued": _issued,
    "assigned": _assigned,
    "told": _told,
    "amended": _amended,
    "voided": _voided,
    "missing": _voided,
    "decided": _decided,
    "changed": _changed,
    "note": _note,
}
