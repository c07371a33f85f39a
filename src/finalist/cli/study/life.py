"""`finalist note`, `stop`, `resume`, `budget`, `fork`, `delete`, `list`: the life of a study."""

from typing import Annotated, Any

import typer

from finalist.cli import output
from finalist.cli.options import AllOption, Format, FormatOption, Printed, PrintedOption
from finalist.cli.study.common import DbOption, ReasonOption, StudyName, opened, say, shown, where
from finalist.errors import FinalistError, StudyError
from finalist.files import printable

NOTE_HELP = """Write a remark into the log of a study.

\b
Example:
  finalist note seeds "a new lamp from here on"

The log is in 'finalist export --format json'. --format json has the keys name, note.
"""
STOP_HELP = """Stop without a winner, and say what is certain.

\b
Example:
  finalist stop seeds --reason "the season is over"

This is allowed at any time. 'finalist resume' continues. --format json has the keys of 'finalist
status'.
"""
RESUME_HELP = """Continue after 'finalist stop'.

\b
Example:
  finalist resume seeds

--format json has the keys name, verdict.
"""
BUDGET_HELP = """Continue with another budget, or without one.

\b
Example:
  finalist budget seeds 80
  finalist budget seeds --none

The budget is the most measurements in all, including those already made. What is measured next is
planned for it. What is certain stays certain, whenever and for whatever reason a budget changes. A
budget below what is measured or handed out is refused. --format json has the
keys name, budget, left, words.
"""
FORK_HELP = """Start again from before a batch, or with another question.

\b
Example:
  finalist fork seeds seeds-2 --until 3
  finalist fork seeds seeds-bending --model bending
  finalist fork seeds seeds-enough --epsilon 0.5

With --until 3 it has all results before batch 3, and that batch open, without its results: enter
them again, corrected. If you fork because of how the results look, you have two answers, each wrong
with probability delta.

With --model or --epsilon (a margin; 0 for none) it begins with fresh evidence and a delta of its
own; all results of the old study guide where it measures and are never tested. The command says
what the two deltas add up to. 'finalist status' says what a margin would change.

--format json has the keys name, fork_of, until, model, epsilon, history (how many results
guide it).
"""
DELETE_HELP = """Delete a study with all its events, for good.

\b
Example:
  finalist delete seeds --yes

--format json has the keys name, deleted.
"""
LIST_HELP = """List the studies of a database.

\b
Example:
  finalist list --db lab.db

'(no proof)' marks a strategy whose delta is not proven. --format csv has one row per study;
--format json has them under 'studies', each with the keys name, created, strategy, arms, pulls,
verdict, certain, winner, risk (null if nothing is certain: the winner is a recommendation), error
(null unless the study cannot be read).
"""


def note(
    name: StudyName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The remark.")],
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Write a remark."""
    with opened(db, name) as study:
        study.note(text)
    say(form, "Noted.", name=name, note=text)


def stop(
    name: StudyName,
    reason: ReasonOption,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Stop and say what is certain."""
    with opened(db, name) as study:
        found = study.stop(reason)
    say(form, printable(found.sentence), **found.to_dict())


def resume(name: StudyName, db: DbOption = None, form: PrintedOption = Printed.table) -> None:
    """Continue."""
    with opened(db, name) as study:
        study.resume()
        found = study.status(forecast=False)
    words = f"Study {printable(name, 60)!r} goes on.\n{printable(found.sentence)}"
    say(form, words, name=name, verdict=found.verdict)


def budget(
    name: StudyName,
    most: Annotated[
        int | None, typer.Argument(metavar="[N]", help="The most measurements in all.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="No budget from here on.")] = False,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Change the budget."""
    if (most is None) != none:
        raise StudyError("give a number of measurements, or --none for no budget.")
    with opened(db, name) as study:
        words = study.set_budget(most)
        left = study.snapshot(events=0).budget_left
    say(form, words, name=name, budget=most, left=left, words=words)


def fork(
    name: StudyName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="A name for the new study.")],
    until: Annotated[
        int | None, typer.Option("--until", metavar="N", help="The batch to fork at.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Another model: straight, bending, surface or separate."
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", metavar="MARGIN", help="A margin: so near the best is good enough."
        ),
    ] = None,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Restart from before a batch, or with another model or margin."""
    with opened(db, name) as study, study.fork(new, until, model=model, epsilon=epsilon) as started:
        found = started.snapshot()
    words = (
        f"Study {printable(new, 60)!r} has everything of {printable(name, 60)!r} before batch "
        f"{until}. Enter the results of that batch again."
    )
    if found.fork is not None and until is None:
        from finalist.study.assumptions import forked

        words = (
            f"Study {printable(new, 60)!r} begins: "
            f"{printable(forked(found.fork, sum(found.levels)), 500)}."
        )
    more = {"until": until, "model": model, "epsilon": epsilon, "history": found.history_pulls}
    say(form, words, name=new, fork_of=name, **more)


def delete(
    name: StudyName,
    yes: Annotated[bool, typer.Option("--yes", help="Yes, delete it for good.")] = False,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Delete, if --yes is given."""
    with opened(db, name) as study:
        if not yes:
            raise StudyError(
                f"this deletes study {printable(name, 60)!r} and all its results for good. "
                "Repeat it with --yes if you mean it."
            )
        study.delete()
    say(form, f"Study {printable(name, 60)!r} is deleted.", name=name, deleted=True)


def list_studies(
    everything: AllOption = False, db: DbOption = None, form: FormatOption = Format.table
) -> None:
    """Read all studies, print."""
    from finalist.study import studies

    rows = [_row(db, name) for name in studies(where(db))]
    if form is Format.json:
        text = output.to_json({"where": shown(db), "studies": rows})
    elif form is Format.csv:
        text = output.to_csv(list(_COLUMNS), [[row[c] for c in _COLUMNS] for row in rows])
    elif not rows:
        text = f"{shown(db)} holds no studies yet.\n"
    else:
        text = output.to_text(*_table(rows, everything))
    output.deliver(text, None)


_COLUMNS = (
    "name",
    "created",
    "strategy",
    "arms",
    "pulls",
    "verdict",
    "certain",
    "winner",
    "risk",
    "error",
)


#: Verdicts without a winner, for people.
_VERDICTS = {"continue": "in progress", "undecided": "not decided"}


def _row(db: str | None, name: str) -> dict[str, Any]:
    """Return the row of a study; one that cannot be read does not hide the others."""
    row: dict[str, Any] = dict.fromkeys(_COLUMNS) | {"name": name}
    try:
        with opened(db, name) as study:
            found = study.status(forecast=False)
            row |= {"created": study.created, "strategy": _strategy(study.settings["strategy"])}
    except FinalistError as error:
        return row | {"error": str(error)}
    values = {
        "arms": len(found.arms),
        "pulls": found.pulls,
        "verdict": found.verdict,
        "certain": found.certain,
    }
    return row | values | {"winner": found.winner, "risk": found.risk}


def _strategy(kept: dict[str, Any]) -> str:
    from finalist.strategies import all_strategies, shown_name

    return shown_name(all_strategies()[kept["name"]](**kept["settings"]))


def _table(rows: list[dict[str, Any]], everything: bool) -> Any:
    cells = []
    for row in rows:
        verdict = _VERDICTS.get(row["verdict"]) or f"cannot be read: {row['error']}"
        if row["winner"] is not None:
            what = "winner" if row["certain"] else "recommended"
            if row["verdict"] == "uncertain":
                what = "not certain"
            verdict = f"{what}: {row['winner']}"
        plain = [row["strategy"], row["arms"], row["pulls"], (row["created"] or "")[:16]]
        shown_ = ["" if value is None else str(value) for value in plain]
        cells.append([row["name"], *shown_, printable(verdict, output.NAME_WIDTH)])
    header = ["Study", "Strategy", "Candidates", "Measurements", "Created", "Verdict"]
    return output.arms_table(header, cells, everything)
