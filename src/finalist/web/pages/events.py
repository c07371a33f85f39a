"""What happened in a study, event by event, in sentences."""

from collections.abc import Callable, Mapping
from typing import Any

from finalist.files import printable
from finalist.study import Status
from finalist.study.pulls import asked_anew
from finalist.text import counted as count
from finalist.web.pages.format import listed, measurements, name, number
from finalist.web.render import environment


def event(body: Mapping[str, Any], status: Status) -> str:
    """Say what happened in a study, in a sentence; `Study.events` has the events."""
    say = _EVENTS.get(body["kind"])
    return str(body["kind"]) if say is None else say(body, status)


def _created(body: Mapping[str, Any], _: Status) -> str:
    if changed := asked_anew(body.get("model"), body.get("epsilon")):
        return f"Begun with {changed} from the results of {name(body['fork_of'])}."
    if "fork_of" in body:
        return f"Forked from {name(body['fork_of'])} before batch {body['until']}."
    return f"Created with finalist {body.get('version', '')}."


def _decided(body: Mapping[str, Any], status: Status) -> str:
    if "stopped" in body:
        why = body["stopped"]
        return "Resumed." if why is None else f"Stopped: {printable(why, 300)}"
    left = body.get("unneeded", 0)
    batch = f"{'in' if left else 'after'} batch {body['batch']}"
    found = f"Decision {batch}, {count(body['pulls'], 'result')} in all: "
    if body["winner"] is not None:
        rest = f" {count(left, 'measurement was', 'measurements were')} not needed." if left else ""
        return f"{found}{_won(body, status)}.{rest}"
    out = len(body["rejected"])
    if not out:
        return f"{found}no further candidate is ruled out."
    return f"{found}{listed(body['named'], out)} {'is' if out == 1 else 'are'} ruled out."


def _won(body: Mapping[str, Any], status: Status) -> str:
    """Say who has won, or is recommended."""
    several = len(status.winners) > 1
    chosen = listed(status.winners if several else body["named"])
    if status.risk is not None:
        return f"{chosen} {'win' if several else 'wins'}"
    verb = "are" if several else "is"
    return "the study has ended" if status.winner is None else f"{chosen} {verb} recommended"


def _changed(body: Mapping[str, Any], _: Status) -> str:
    level, gone, new = number(body["level"], 3), body["gone"], body["new"]
    if body["afresh"]:
        verb = "was" if len(gone) == 1 else "were"
        return (
            f"{listed(gone)} {verb} withdrawn. All candidates are tested from here on at the level "
            f"{level}."
        )
    verb = "was added and is" if len(new) == 1 else "were added and are"
    return f"{listed(new)} {verb} tested at the level {level}."


def _lost(body: Mapping[str, Any], _: Status) -> str:
    word = "failed and is made again" if body["kind"] == "voided" else "is missing"
    return f"Measurement {body['pull']} {word}: {printable(body['reason'], 300)}"


def _amended(body: Mapping[str, Any], _: Status) -> str:
    if taken := body.get("taken_back"):
        verb = "is" if len(taken) == 1 else "are"
        return f"{count(len(taken), 'result')} taken back: {measurements(taken)} {verb} open again."
    return (
        f"The result of measurement {body['pull']} was corrected, it was {number(body['old'])}: "
        f"{printable(body['reason'], 300)}"
    )


_EVENTS: dict[str, Callable[[Mapping[str, Any], Status], str]] = {
    "created": _created,
    "issued": lambda body, _: (
        f"Batch {body['batch']} was chosen: {count(len(body['arms']), 'measurement')}."
    ),
    "decided": _decided,
    "voided": _lost,
    "missing": _lost,
    "note": lambda body, _: str(body["text"]),
    "history": lambda body, _: f"{count(len(body['arms']), 'earlier measurement')} brought in.",
    "assigned": lambda b, _: f"{count(len(b['pulls']), 'measurement')} for {name(b['worker'])}.",
    "told": lambda body, _: f"{count(body['count'], 'result')} stored.",
    "amended": _amended,
    "changed": _changed,
}


environment.globals["say_event"] = event
