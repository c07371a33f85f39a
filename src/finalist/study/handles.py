"""What a server needs of a study that it has open, beyond the methods for people."""

from collections.abc import Callable
from functools import cache
from typing import Any

from finalist.study import measure
from finalist.study.state import State
from finalist.study.storage.protocol import Storage
from finalist.study.storage.rows import EventRow, StudyRow
from finalist.study.study import Study
from finalist.study.tables import read_arms

#: Arms that an event names.
MAX_NAMED = 5


def row_of(study: Study) -> StudyRow:
    """Return what is on record of a study since it was created, with its number."""
    return study._log.row


def is_in(study: Study, storage: Storage) -> bool:
    """Return whether a study was opened in this storage, not in one that it has replaced."""
    return study._log.storage is storage


def state_of(study: Study) -> State:
    """Return a study after its last event. Look at it, never change it."""
    return study._log.now()


def tell(study: Study, results: Any, client_id: str | None, *, decimal: str = ".") -> measure.Told:
    """Enter rewards as `Study.tell`; return more about what came of it."""
    return measure.tell(study._log, results, client_id, decimal=decimal)


def events_of(study: Study, after: int, most: int | None = None) -> list[dict[str, Any]]:
    """Return events with a number above `after` as plain values, with the arms by their names.

    An event knows arms by their numbers, and those change with the arms. "named" are the arms that
    were ruled out or won, "gone" and "new" those that were withdrawn and added; the first few.
    """
    log, state = study._log, study._log.now()
    with log.storage.read() as reader:
        events = [e for e in reader.events(log.row.id, after=after) if e.number <= state.last]

        @cache
        def names(stage: int) -> tuple[str, ...]:
            same = stage == state.stage
            return state.arms.names if same else read_arms(reader, log.row.id, stage).names

        return [
            {**e.body, **_named(e, state, names), "number": e.number, "at": e.at, "kind": e.kind}
            for e in events[:most]
        ]


def _named(
    event: EventRow, state: State, names: Callable[[int], tuple[str, ...]]
) -> dict[str, list[str]]:
    body = event.body
    if event.kind == "decided" and "batch" in body:
        known = names(state.issued[body["batch"] - 1].stage)
        found = body["rejected"] if body["winner"] is None else [body["winner"]]
        return {"named": [known[i] for i in found[:MAX_NAMED]]}
    if event.kind == "changed":
        before, after, kept = names(body["stage"] - 1), names(body["stage"]), set(body["kept"])
        gone = [name for i, name in enumerate(before) if i not in kept]
        new = [name for name, i in zip(after, body["kept"], strict=True) if i < 0]
        return {"gone": gone, "new": new}
    return {}
