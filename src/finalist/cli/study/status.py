"""`finalist status`: what is certain, the evidence against each arm, what is still needed."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import codes, output
from finalist.cli.options import AllOption, ChartOption, Format, FormatOption, OutputOption
from finalist.cli.study.common import DbOption, StudyName, opened, warnings
from finalist.errors import ChartError
from finalist.files import printable
from finalist.text import counted, named, shortened

if TYPE_CHECKING:
    from rich.table import Table

    from finalist.charts.theme import AnyChart
    from finalist.study import ArmStatus, Status, Study

HELP = """Say what is certain now, and what is still needed.

\b
Example:
  finalist status seeds --chart evidence.png

For each candidate: the evidence against it (it is ruled out at 1), the estimate of its mean, and
its measurements. The estimates of candidates that are still possible have an interval, which holds
with 95 % for all candidates and times together. When the study has ended, the table shows how far
each candidate is behind the one to take, with such an interval. --chart draws the evidence over the
measurements. --format csv has one row per candidate; --format json has everything under the keys

\b
  name, verdict (continue, winner, uncertain, undecided), certain,
  winner, winners, top, epsilon, leader, survivors, risk,
  recommendation, error_estimate, certainty, advice, within,
  within_reach, good_enough, outlook (right, right_at_end, difference,
  near, near_at_end, to_come, words), margins (list of epsilon, median, low,
  high, cap), saving, sentence, pulls, open_pulls, unneeded, batches,
  until_test, budget_left, budget_in (pulls, cost), assumptions, warnings, doubts,
  old_results, forecast (median, low, high, cap, words, remedy), unit,
  arms (list of name, pulls, estimate, low, high, evidence, p_value,
  rival, survives, measurable, candidate, behind, behind_low,
  behind_high, bent), effects (list of name, step, slope, slope_low, slope_high,
  change, change_low, change_high)

'recommendation' is the candidate to take when a study has ended. Without a guarantee (the budget is
spent, or the strategy is for a fixed budget or has no proof; then 'risk' is null) it is null if no
candidate left has an estimate. It comes with two figures, unless an assumption fails:
'error_estimate', the probability that another candidate is better, which is an estimate, and
'certainty', the confidence with which none is, from a bound that holds at all times.

'within' is how far, at most, the candidate in front is behind the best, with probability 1 - delta
at all times. 'within_reach' lists, in a study with a margin (epsilon), the others that are not
shown to be worse by more; 'good_enough' says both in words. 'margins' is what new studies with a
margin would need ('finalist fork --epsilon'), where the study has none and a long way to go;
'saving' says it in words.

'effects' are what each column does to the mean of a result: per unit of it ('slope') and over its
range among the candidates, or for a level instead of the first one ('change'), with intervals that
hold with 95 % for all columns and times together.

'outlook' is for studies with a budget: the chance that the choice is right now and at the end of
it, and the chance to be within a difference of the best, --within or a round number. These are
estimates from the results so far, not the promise of delta.
"""
_BAR = 16
#: Longest name beside which bars have room.
_ROOM = 24
RULED_OUT = "ruled out"
#: Columns in the table of effects.
MAX_EFFECTS = 12
_ARM_COLUMNS = (
    "name",
    "pulls",
    "estimate",
    "low",
    "high",
    "evidence",
    "p_value",
    "rival",
    "survives",
)


def status(
    name: StudyName,
    no_forecast: Annotated[
        bool,
        typer.Option("--no-forecast", help="Do not simulate how many measurements are needed."),
    ] = False,
    within: Annotated[
        float | None,
        typer.Option(
            help="With a budget: a distance from the best; the chance to be that close is shown.",
            min=0.0,
        ),
    ] = None,
    everything: AllOption = False,
    db: DbOption = None,
    form: FormatOption = Format.table,
    out: OutputOption = None,
    chart: ChartOption = None,
) -> None:
    """Look, print, draw."""
    output.check_files(out, chart)
    with opened(db, name) as study:
        found = study.status(forecast=not no_forecast, within=within)
        if form is not Format.csv:
            with output.working("Simulating what is still needed..."):
                found.saving  # noqa: B018
        picture = None if chart is None else evidence_picture(study)
    if form is Format.json:
        text = output.to_json(found.to_dict())
    elif form is Format.csv:
        rows = [[getattr(arm, column) for column in _ARM_COLUMNS] for arm in found.arms]
        text = output.to_csv(_ARM_COLUMNS, rows)
    else:
        text = output.to_text(*report(found, everything, db))
    output.deliver(text, out)
    if chart is not None and picture is not None:
        with output.working("Drawing..."):
            output.draw(picture, Path(chart))
    raise typer.Exit(codes.of_verdict(found.verdict))


def evidence_picture(
    study: "Study", title: str | None = None, remarks: tuple[str, ...] = ()
) -> "AnyChart":
    """Draw the evidence against each arm after each batch, since the arms last changed."""
    import numpy as np

    from finalist.charts.evidence import evidence_chart

    snapshot = study.snapshot(events=0)
    pulls, evidence = snapshot.trail
    grown = np.diff(pulls, prepend=0) > 0  # a batch whose pulls are all missing adds nothing
    if not grown.any():
        raise ChartError(
            f"there is no evidence to draw in study {printable(study.name, 60)!r}: no batch is "
            "complete, or its strategy computes none, or there are too many candidates."
        )
    tested = np.flatnonzero(snapshot.arms.candidate)
    return evidence_chart(
        pulls[grown],
        evidence[np.ix_(grown, tested)],
        [snapshot.arms.names[i] for i in tested],
        winner=np.flatnonzero(np.isin(tested, snapshot.winners)).tolist(),
        title=title or f"Evidence against each candidate: {printable(study.name, 60)}",
        subtitle=("A candidate is out when its line reaches 1.", *remarks),
    )


def report(
    found: "Status", everything: bool = False, db: str | None = None
) -> "Iterator[Table | str]":
    """Yield the parts of a status for people."""
    yield printable(found.sentence)
    yield from certain(found)
    outlook = None if found.outlook is None else found.outlook.words
    for words in filter(None, (found.advice, outlook, found.good_enough, found.old_results)):
        yield printable(words)
    yield _pulls(found)
    if found.forecast is not None:
        words = found.forecast.words()
        yield f"Forecast: {words[0].lower()}{words[1:]}"
    if found.saving is not None:
        yield printable(found.saving)
    yield from arms_table(found, everything)
    if found.effects and found.pulls:
        yield from effects_table(found, everything)
    yield from warnings(found, db)
    what = "This rests on" if not found.doubts else "The estimates would rest on"
    yield f"{what}: " + "; ".join(map(printable, found.assumptions)) + "."


def certain(found: "Status") -> Iterator[str]:
    """Yield what is certain while a study continues; later, its sentence says so."""
    if found.verdict != "continue" or found.risk is None:
        return
    left, all_ = len(found.survivors), sum(arm.candidate for arm in found.arms)
    if left <= found.top:  # the model is still checked, as the sentence says
        return
    said = (f"({left:,} of {all_:,})", "candidate is ruled out: ")
    if any(words in found.sentence for words in said):
        return
    best = "the best" if found.top == 1 else f"among the {found.top} best"
    if left == all_:
        who = "either" if all_ == 2 else f"any of the {all_:,}"
        yield f"No candidate is ruled out yet: {who} may be {best}."
        return
    names = named([shortened(printable(name), 80) for name in found.survivors])
    yield (
        f"Certain now: the {'best candidate is' if found.top == 1 else f'{found.top} best are'} "
        f"among {names} ({left:,} of {all_:,}); this is wrong with probability at most "
        f"{found.risk:.3g}."
    )


def _pulls(found: "Status") -> str:
    whole = "" if found.unneeded else "complete "
    batches = counted(found.batches, f"{whole}batch", f"{whole}batches")
    words = f"{counted(found.pulls, 'result')} in {batches}"
    if found.open_pulls:
        words += (
            f"; {counted(found.open_pulls, 'measurement is', 'measurements are')} without a result"
        )
    if found.unneeded:
        words += f"; {counted(found.unneeded, 'measurement was', 'measurements were')} not needed"
    if found.budget_left is not None and found.budget_left <= 0:
        words += "; nothing is left of the budget"
    elif found.budget_left is not None and found.budget_in == "pulls":
        verb = "is" if found.budget_left == 1 else "are"
        words += f"; {counted(int(found.budget_left), 'measurement')} of the budget {verb} left"
    elif found.budget_left is not None:
        words += f"; {found.budget_left:,.6g} of the budget is left"
    return words + "."


def arms_table(found: "Status", everything: bool = False) -> "Iterator[Table | str]":
    """Yield the table of arms, the remaining ones first, then by estimate."""
    least = found.leader is not None and _is_minimum(found)
    arms = sorted(found.arms, key=lambda arm: (not arm.survives, _key(arm, least)))
    # Evidence is against the very best: within a margin, one that it rules out may be good enough.
    margin = found.verdict == "winner" and found.within_reach is not None
    with_evidence = not margin and any(arm.evidence is not None for arm in arms)
    bends = any(arm.bent is not None for arm in arms)
    # How far one is behind is by the model: it would contradict what one that bends recommends.
    ended = any(arm.behind is not None for arm in arms) and not bends
    drawn = not (ended or bends) and max(len(arm.name) for arm in arms) <= _ROOM  # as bars
    sure = ended or any(_interval(arm, found) != "-" for arm in arms)
    rows = [
        [
            arm.name,
            *([_evidence(arm, drawn)] if with_evidence else []),
            "-" if arm.estimate is None else f"{arm.estimate:.4g}",
            *(["-" if arm.bent is None else f"{arm.bent:.4g}"] if bends else []),
            *(_behind(arm, found) if ended else [_interval(arm, found)] if sure else []),
            f"{arm.pulls:,}",
            _state(arm, found),
        ]
        for arm in (arms if everything else arms[: output.MAX_ROWS])
    ]
    evidence = ["Evidence" if not drawn else "Evidence against it"] if with_evidence else []
    further = [*(["With bends"] if bends else []), *(["Behind"] if ended else [])]
    further += ["95 %"] if sure else []
    header = ["Candidate", *evidence, found.in_unit("Estimate"), *further, "Measurements", "State"]
    yield from output.arms_table(header, rows, everything, len(arms))
    if bends:
        yield (
            "Estimate: by the model of the study. With bends: by one that bends, for the check of "
            "the model finds that the means do."
        )


def _interval(arm: "ArmStatus", found: "Status") -> str:
    """Return the interval of a mean; none of what is out, as means say less than the tests."""
    if arm.high is None or arm.low is None or _state(arm, found) == RULED_OUT:
        return "-"
    return f"+- {(arm.high - arm.low) / 2:.3g}"


def _behind(arm: "ArmStatus", found: "Status") -> list[str]:
    """Return how far an arm is behind the one that is taken, with the interval.

    Without a winner nothing says of whom an arm that is out is behind.
    """
    low, high, told = arm.behind_low, arm.behind_high, found.verdict == "winner"
    shown = "-" if arm.behind is None else f"{arm.behind:.3g}"
    if low is None or high is None or not (told or _state(arm, found) != RULED_OUT):
        return [shown, "-"]
    return [shown, f"{low:.3g} to {high:.3g}"]


def effects_table(found: "Status", everything: bool = False) -> "Iterator[Table | str]":
    """Yield what each column does to the results."""
    rows = [
        [
            one.name,
            printable(one.step, output.NAME_WIDTH),
            "-" if one.change is None else f"{one.change:+.4g}",
            "-"
            if one.change_low is None or one.change_high is None
            else f"{one.change_low:.3g} to {one.change_high:.3g}",
            "-" if one.slope is None else f"{one.slope:+.4g}",
        ]
        for one in found.effects
    ]
    header = ["Column", "Step", found.in_unit("Change"), "95 %", "For one unit"]
    yield from output.arms_table(header, rows if everything else rows[:MAX_EFFECTS], True)
    if len(rows) > MAX_EFFECTS and not everything:
        yield f"... and {len(rows) - MAX_EFFECTS:,} more columns (--all shows them)\n"


def _evidence(arm: "ArmStatus", drawn: bool) -> str:
    if arm.evidence is None:
        return ""
    return bar(arm.evidence) if drawn else _share(arm.evidence)


def _state(arm: "ArmStatus", found: "Status") -> str:
    if arm.name == found.recommendation or arm.name in found.winners:
        return "winner" if found.winner is not None and found.risk is not None else "recommended"
    if not arm.candidate:
        return "measured only"
    left = arm.survives
    if found.within_reach is not None and found.verdict == "winner":
        left = arm.name in found.within_reach  # within the margin
    return "possible" if left else "out, not certain" if found.risk is None else RULED_OUT


def _is_minimum(found: "Status") -> bool:
    """Return whether the leader has the smallest estimate: then small ones come first.

    Arms that are only measured cannot lead.
    """
    estimates = [a.estimate for a in found.arms if a.candidate and a.estimate is not None]
    leader = next(arm.estimate for arm in found.arms if arm.name == found.leader)
    return leader == min(estimates)


def _key(arm: "ArmStatus", least: bool) -> float:
    if arm.estimate is None:
        return float("inf")
    return arm.estimate if least else -arm.estimate


def bar(share: float) -> str:
    """Return evidence as a bar and a number; the bar is full when an arm is out."""
    full, empty = ("█", "░") if _shows("█░") else ("#", ".")
    filled = min(max(int(share * _BAR), 0), _BAR)
    return full * filled + empty * (_BAR - filled) + f" {_share(share):>5}"


def _share(share: float) -> str:
    """Round down: 1.00 is out, 0.999 is not."""
    return f"{math.floor(100.0 * max(share, 0.0) + 1e-9) / 100.0:.2f}"


def _shows(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
