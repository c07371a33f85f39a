"""Numbers and sentences for the pages, and code to copy."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from finalist.arms import Arms
from finalist.files import printable
from finalist.problem.budget import of_budget as of_budget  # for templates
from finalist.study import ArmStatus, Snapshot, Status
from finalist.study.sentences import counted_arms as counted_arms  # for templates
from finalist.text import counted as count
from finalist.text import first_few, shortened

#: A minus sign as wide as a plus, and the placeholder for a missing number.
MINUS, NONE = "\N{MINUS SIGN}", "\N{EN DASH}"
#: Characters of a name in a sentence or table, and names in a sentence.
NAME, _NAMED = 100, 5
#: Largest batch that can be asked for on the page.
MAX_PULLS = 10_000
_STATES = {
    "undecided": ("Not decided", "ended"),
    "continue": ("Running", "runs"),
}


def name(text: str) -> str:
    """Return a name on one line, cut in its middle to a length.

    Examples
    --------
    >>> len(name("x" * 500))
    100
    """
    return shortened(printable(text), NAME)


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with a few digits.

    Examples
    --------
    >>> number(1234567.0), number(0.012345), number(None), number(-0.5)
    ('1,234,567', '0.01235', '–', '−0.5')
    """
    if value is None or not math.isfinite(value):
        return NONE
    value += 0.0  # no minus before 0
    if abs(value) >= 1e9 or 0 < abs(value) < 1e-5:
        text = f"{value:.{digits - 1}e}"
    elif abs(value) >= 10**digits:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", MINUS, 1) if text.startswith("-") else text


def cell(value: object) -> str:
    """Return a cell of the user's table.

    Examples
    --------
    >>> cell(0.1), cell(1500), cell(True), cell(None), cell("x" * 500)[-2:]
    ('0.1', '1500', 'yes', '', 'x…')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.10g}" if isinstance(value, float) else "" if value is None else str(value)
    return printable(text, NAME)


def measurements(pulls: Sequence[int]) -> str:
    """Return the numbers of measurements, the first few of many.

    Examples
    --------
    >>> measurements([4]), measurements([4, 5, 6, 7, 8, 9])
    ('measurement 4', 'measurements 4, 5, 6, 7, 8 and 1 more')
    """
    return f"measurement{'s' if len(pulls) > 1 else ''} {first_few([*map(str, pulls)])}"


def quoted(text: str) -> str:
    """Return a name in quotation marks if a sentence would run into it.

    Examples
    --------
    >>> quoted("oak"), quoted("long and hot")
    ('oak', '“long and hot”')
    """
    shown = name(text)
    return f"“{shown}”" if re.search(r"[,;.:]|\b(?:and|or|is|are)\b", shown) else shown


def percent(value: float) -> str:
    r"""Return a probability as a percentage.

    Examples
    --------
    >>> percent(0.05), percent(0.001)
    ('5\xa0%', '0.1\xa0%')
    """
    return f"{100 * value:.3g}\N{NO-BREAK SPACE}%"


def when(at: str) -> str:
    """Return a timestamp of the log, to the minute.

    Examples
    --------
    >>> when("2026-11-16T05:44:09.123456+00:00")
    '2026-11-16 05:44 UTC'
    """
    return at[:16].replace("T", " ") + " UTC"


def state(status: Status, stopped: str | None = None) -> tuple[str, str]:
    """Return the state of a study as text and as a CSS class.

    `stopped` is the reason it was stopped for, if it was.
    """
    if status.verdict == "undecided" and stopped is not None:
        return "Stopped", "ended"
    if status.verdict == "continue" and status.pulls == 0 and status.open_pulls == 0:
        return "Not started", "new"
    if status.verdict == "uncertain":
        return "Ended, not certain", "ended"
    if status.verdict == "winner" and status.risk is None:
        return "Ended with a recommendation", "won"
    if status.verdict == "winner":
        return "Winner found" if status.top == 1 else "Winners found", "won"
    return _STATES[status.verdict]


def verdict(status: Status) -> str:
    """Say in one sentence where a study stands."""
    if status.verdict != "continue" or status.risk is None:  # it says if nothing is guaranteed
        return _short(status)
    left, noun = len(status.survivors), contenders(status)
    if status.pulls == 0:
        return f"Not begun: any of the {noun} may be {best(status.top)}."
    ahead = "" if status.leader is None else f" {quoted(status.leader)} is ahead."
    if status.epsilon:
        return f"Not decided yet: none is sure to be {within(status.epsilon)}.{ahead}"
    return f"Not decided yet: {left:,} of {noun} may be {best(status.top)}.{ahead}"


def curly(text: str) -> str:
    """Set the quotation marks around names as a page does.

    Examples
    --------
    >>> curly('"long and hot" leads "6 in" and 6" nail')
    '“long and hot” leads “6 in” and 6" nail'
    """
    return re.sub(r'(?<!\w)"([^"]+)"(?!\w)', r"“\1”", text)


def parted(sentence: str) -> tuple[str, str]:
    """Part the sentence of a winner into its headline, and what that is worth.

    Examples
    --------
    >>> parted("tin is the best, after 9 measurements; this is wrong with probability at most 0.1.")
    ('tin is the best, after 9 measurements.', 'This is wrong with probability at most 0.1.')
    >>> parted("Not decided yet.")
    ('Not decided yet.', '')
    """
    head, found, rest = sentence.partition("; this is wrong")
    return (f"{head}.", f"This is wrong{rest}") if found else (sentence, "")


def _short(status: Status) -> str:
    """Return the sentence of a status without doubts that the warnings below it repeat."""
    said, doubts = " ".join(status.warnings), "; and ".join(status.doubts)
    if not doubts or not all(doubt[1:] in said for doubt in status.doubts):
        return status.sentence
    why = (
        "the warning below says why" if len(status.warnings) == 1 else "the warnings below say why"
    )
    return status.sentence.replace(f"certain, because {doubts}.", f"certain: {why}.", 1)


def certain(status: Status) -> str:
    """Say what is certain while a study goes on."""
    left, every = len(status.survivors), sum(arm.candidate for arm in status.arms)
    noun = contenders(status)
    if status.risk is None:
        return "Nothing: no probability of error is guaranteed."
    if left == every:  # of several winners, some may be certain before any candidate is out
        begin = "Nothing yet" if status.top == 1 else "No candidate is ruled out yet"
        return f"{begin}: any of the {noun} may be {best(status.top)}."
    out = count(every - left, "candidate is", "candidates are")
    sought = "The best is" if status.top == 1 else f"The {status.top} best are"
    return (
        f"{out} ruled out. {sought} among {listed(status.survivors)}. This is wrong with "
        f"probability at most {percent(status.risk)}."
    )


def best(top: int) -> str:
    """Say what a candidate may be: the best, or one of several."""
    return "the best" if top == 1 else f"one of the {top} best"


def within(margin: float) -> str:
    """Say what a margin means."""
    return f"within {number(margin)} of the best"


def is_near(status: Status) -> bool:
    """Return whether the others are told apart by whether they may be within the margin too."""
    return status.verdict == "winner" and status.within_reach is not None


def contenders(status: Status) -> str:
    """Count what can win: not what is only measured."""
    return count(sum(arm.candidate for arm in status.arms), "candidate")


def question(settings: Mapping[str, Any], status: Status) -> str:
    """Say what a study asks."""
    mean = "largest mean" if settings["objective"] == "max" else "smallest mean"
    if status.top > 1:
        return f"Which {status.top} of {contenders(status)} have the {mean}s?"
    margin = settings["epsilon"]
    enough = f" Whatever is {within(margin)} is good enough." if margin else ""
    return f"Which of {contenders(status)} has the {mean}?{enough}"


def roles(status: Status) -> str:
    """Say how many arms can be measured and can win, unless all can do both.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> duel = SimpleNamespace(measurable=True, candidate=False)
    >>> player = SimpleNamespace(measurable=False, candidate=True)
    >>> roles(SimpleNamespace(arms=(duel, duel, player)))
    '2 of 3 can be measured, 1 can win'
    """
    every = len(status.arms)
    measured, can_win = (
        sum(getattr(arm, role) for arm in status.arms) for role in ("measurable", "candidate")
    )
    if measured == can_win == every:
        return ""
    return f"{measured:,} of {every:,} can be measured, {can_win:,} can win"


def each(value: float | Sequence[float] | None, arms: Arms) -> str:
    """Return a number that may be unknown, or the range over the arms that can be measured.

    Examples
    --------
    >>> arms = Arms.unstructured(3)
    >>> each(None, arms), each(0.5, arms), each([0.5, 2.0, 1.0], arms)
    ('unknown', '0.5', 'of each candidate, 0.5 to 2')
    """
    if value is None:
        return "unknown"
    if isinstance(value, Sequence):
        known = [one for one, can in zip(value, arms.measurable, strict=True) if can]
        return f"of each candidate, {number(min(known))} to {number(max(known))}"
    return number(value)


def both(risk: float | None, delta: float) -> str:
    """Say what a fork with a margin costs, if somebody relies on both studies."""
    own = "It has fresh evidence and a delta of its own"
    if risk is None:
        return f"{own}."
    most = percent(risk + delta)
    return f"{own}: if you rely on both, the chance that one is wrong is at most {most}."


def batch_size(snapshot: Snapshot) -> int | None:
    """Return the batch size chosen when the study was created, if any."""
    size = snapshot.row.settings["metadata"].get("batch_size")
    return size if isinstance(size, int) and 0 < size <= MAX_PULLS else None


def ordered(status: Status, sign: int) -> list[ArmStatus]:
    """Return survivors, then eliminated arms, then those that cannot win, each best first.

    With a winner within a margin, it and those that may be within the margin come first.
    """
    near = {status.winner, *(status.within_reach or ())} if is_near(status) else None

    def key(arm: ArmStatus) -> tuple[int, bool, float]:
        first = arm.survives if near is None else arm.name in near
        group = 0 if first else 1 if arm.candidate else 2
        return (group, arm.estimate is None, -sign * (arm.estimate or 0.0))

    return sorted(status.arms, key=key)


def listed(names: Sequence[str], total: int | None = None) -> str:
    """Return names for people, the first few of many; `total` is how many there are.

    Examples
    --------
    >>> listed(["oak", "ash"]), listed(["oak, old", "ash"], 9)
    ('oak, ash', '“oak, old”, ash and 7 more')
    """
    shown = list(names[:_NAMED])
    more = (len(names) if total is None else total) - len(shown)
    return ", ".join(map(quoted, shown)) + (f" and {more:,} more" if more else "")


def cost(risk: float | None, delta: float, stage: int) -> str:
    r"""Say what changing the arms costs: the tests that begin then have a level of their own.

    Examples
    --------
    >>> cost(0.05, 0.05, 0)
    'A winner is then wrong with probability at most 7.5\xa0%, not 5\xa0%.'
    """
    if risk is None:
        return ""
    then = risk + delta / 2 ** (stage + 1)
    return f"A winner is then wrong with probability at most {percent(then)}, not {percent(risk)}."


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
