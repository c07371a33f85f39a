"""Numbers and sentences for people."""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from finalist.files import printable
from finalist.study import Status

#: A minus sign as wide as a plus, and what stands where there is no number.
MINUS, NONE = "\N{MINUS SIGN}", "\N{EN DASH}"
#: Letters of a name in a sentence or in a table.
NAME = 60
_STATES = {
    "winner": ("Winner found", "won"),
    "undecided": ("Ended without a winner", "ended"),
    "continue": ("Running", "runs"),
}


def name(text: str) -> str:
    """Return a name on one line, cut to a length that fits.

    Examples
    --------
    >>> len(name("x" * 500))
    60
    """
    return printable(text, NAME)


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with few digits.

    Examples
    --------
    >>> number(1234567.0), number(0.012345), number(None), number(-0.5)
    ('1,234,567', '0.01235', '–', '−0.5')
    """
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) >= 1e9 or 0 < abs(value) < 1e-5:
        text = f"{value:.{digits - 1}e}"
    elif abs(value) >= 10**digits:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def count(value: int, word: str, words: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "arm"), count(2000, "batch", "batches")
    ('1 arm', '2,000 batches')
    """
    return f"{value:,} {word if value == 1 else words or word + 's'}"


def percent(value: float) -> str:
    """Return a probability for people.

    Examples
    --------
    >>> percent(0.05), percent(0.001)
    ('5 %', '0.1 %')
    """
    return f"{100 * value:.3g} %"


def when(at: str) -> str:
    """Return a time of the log, to the minute.

    Examples
    --------
    >>> when("2026-11-16T05:44:09.123456+00:00")
    '2026-11-16 05:44'
    """
    return at[:16].replace("T", " ")


def state(status: Status) -> tuple[str, str]:
    """Return the state of a study in words, and as a class for its colour."""
    if status.verdict == "continue" and status.pulls == 0 and status.open_pulls == 0:
        return "Not started", "new"
    if status.verdict == "winner" and status.risk is None:
        return "Ended with a recommendation", "won"
    return _STATES[status.verdict]


def verdict(status: Status) -> str:
    """Say in one sentence where a study stands."""
    if status.verdict != "continue" or status.risk is None:  # without a guarantee it says so
        return status.sentence
    left, every = len(status.survivors), len(status.arms)
    if status.pulls == 0:
        return f"Not begun: any of the {every:,} arms may be the best."
    ahead = "" if status.leader is None else f" {name(status.leader)} is ahead."
    return f"Not decided yet: {left:,} of {every:,} arms may be the best.{ahead}"


def certain(status: Status) -> str:
    """Say what is certain while a study goes on."""
    left, every = len(status.survivors), len(status.arms)
    if status.risk is None:
        return "Nothing: this strategy guarantees no probability of error."
    if left == every:
        return f"Nothing yet: any of the {every:,} arms may be the best."
    shown = [name(text) for text in status.survivors[:5]]
    names = ("; " if any("," in text for text in shown) else ", ").join(shown)
    more = f" and {left - 5:,} more" if left > 5 else ""
    out = count(every - left, "arm is", "arms are")
    return (
        f"{out} out. The best arm is among {names}{more}. This is wrong with probability at most "
        f"{percent(status.risk)}."
    )


def event(body: Mapping[str, Any], names: Sequence[str]) -> str:
    """Say what happened, in a sentence."""
    say = _EVENTS.get(body["kind"])
    return str(body["kind"]) if say is None else say(body, names)


def _created(body: Mapping[str, Any], _: Sequence[str]) -> str:
    if "fork_of" in body:
        return f"Forked from {name(body['fork_of'])} before batch {body['until']}."
    return f"Created with finalist {body.get('version', '')}."


def _issued(body: Mapping[str, Any], _: Sequence[str]) -> str:
    return f"Batch {body['batch']} was issued: {count(len(body['arms']), 'pull')}."


def _decided(body: Mapping[str, Any], names: Sequence[str]) -> str:
    if "stopped" in body:
        why = body["stopped"]
        return "Resumed." if why is None else f"Stopped: {printable(why, 300)}"
    found = f"Decision after batch {body['batch']}, {count(body['pulls'], 'pull')} in all: "
    if body["winner"] is not None:
        return f"{found}{_named(names, body['winner'])} wins."
    out = body["rejected"]
    if not out:
        return f"{found}no further arm is out."
    shown = ", ".join(_named(names, i) for i in out[:5])
    more = f" and {len(out) - 5:,} more" if len(out) > 5 else ""
    return f"{found}{shown}{more} {'is' if len(out) == 1 else 'are'} out."


def _named(names: Sequence[str], arm: int) -> str:
    return name(names[arm]) if 0 <= arm < len(names) else f"arm {arm + 1}"


def _lost(body: Mapping[str, Any], _: Sequence[str]) -> str:
    word = "is void and was replaced" if body["kind"] == "voided" else "is missing"
    return f"Pull {body['pull']} {word}: {printable(body['reason'], 300)}"


_EVENTS: dict[str, Callable[[Mapping[str, Any], Sequence[str]], str]] = {
    "created": _created,
    "issued": _issued,
    "decided": _decided,
    "voided": _lost,
    "missing": _lost,
    "note": lambda body, _: str(body["text"]),
    "history": lambda body, _: f"{count(len(body['arms']), 'earlier measurement')} brought in.",
    "assigned": lambda body, _: (
        f"{count(len(body['pulls']), 'pull')} given to {name(body['worker'])}."
    ),
    "told": lambda body, _: f"{count(body['count'], 'reward')} told.",
    "amended": lambda body, _: (
        f"The reward of pull {body['pull']} was amended, it was {number(body['old'])}: "
        f"{printable(body['reason'], 300)}"
    ),
    "changed": lambda body, _: (
        f"The arms changed; those tested from here on have level {number(body['level'], 3)}."
    ),
}


def commands(study: str, place: str, batch_size: int | None) -> str:
    """Return the commands that do what the page does, to copy to a shell."""
    size = [] if batch_size is None else ["--size", str(batch_size)]
    lines = [
        ["ask", study, *size, "-o", "batch.csv", "--db", place],
        ["tell", study, "batch.csv", "--db", place],
        ["status", study, "--chart", "evidence.png", "--db", place],
        ["note", study, "plate 3 was changed", "--db", place],
        ["export", study, "-o", "everything.json", "--db", place],
        ["report", study, "-o", "report.html", "--db", place],
    ]
    return "\n".join(printable(shlex.join(["finalist", *line])) for line in lines)


def python(study: str, place: str, batch_size: int | None) -> str:
    """Return the lines of Python that do what the page does."""
    size = "" if batch_size is None else f"size={batch_size}"
    return (
        "import finalist as fl\n\n"
        f"study = fl.Study.open({place!r}, {study!r})\n"
        f"batch = study.ask({size})\n"
        "study.tell({pull.pull_id: measure(pull.arm) for pull in batch})\n"
        "print(study.status())"
    )
