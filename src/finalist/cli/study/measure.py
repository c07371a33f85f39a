"""`finalist ask`, `tell`, `void`, `missing` and `amend`: what to measure, and what came out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from finalist.cli import codes, output
from finalist.cli.options import AllOption, Format, Printed, PrintedOption
from finalist.cli.study.common import (
    DbOption,
    DecimalOption,
    PullNumber,
    ReasonOption,
    StudyName,
    command,
    opened,
    say,
)
from finalist.cli.study.status import certain
from finalist.files import printable
from finalist.text import counted

if TYPE_CHECKING:
    from finalist.study import Batch, Status, Study

ASK_HELP = """Say what to measure next.

\b
Example:
  finalist ask seeds --size 96 -o batch.csv

With -o it writes a CSV file with an empty column 'reward': fill it in and pass it to 'finalist
tell'. Rows are in random order; measure them in that order. The same batch is returned until all
of it is told. If there is nothing to measure, no file is written. --format csv prints what the
file would contain; --format json has the keys

\b
  state (open, waiting, decided, stopped, budget, exhausted), reason, batch,
  left, words, pulls (list of pull_id, arm, worker, and with --features
  features)
"""
TELL_HELP = """Enter rewards from a CSV file: all of them, or none.

\b
Example:
  finalist tell seeds batch.csv

The columns 'pull_id' and 'reward' are required, in any order. An empty reward is a pull not yet
measured; 'arm' is checked, and other columns are kept as notes. A wrong cell is reported by line
and column, and nothing is stored. Telling the same again changes nothing. --format json has the
keys new (how many rewards), file, status (as in 'finalist status', without a forecast).
"""
VOID_HELP = """Give up a failed measurement; the same arm is measured again.

\b
Example:
  finalist void seeds 17 --reason "the plate was dropped"

The reason must have nothing to do with the value: omitting rewards because of their values breaks
the guarantee. --format json has the keys name, void, replacement (pull_id, arm, worker).
"""
MISSING_HELP = """Continue without a measurement, if the arm cannot be measured again.

\b
Example:
  finalist missing seeds 17 --reason "no seeds are left"

As with 'finalist void', the loss must have nothing to do with the value. --format json has the keys
name, missing, status (as in 'finalist status', without a forecast).
"""
AMEND_HELP = """Correct a reward, as long as no decision has used it.

\b
Example:
  finalist amend seeds 17 0.53 --reason "a typing error"

The old value stays in the log. After the decision, use 'finalist fork' to restart from before it.
--format json has the keys name, amended, reward.
"""


def ask(
    name: StudyName,
    size: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many can be measured now.", show_default="any"),
    ] = None,
    worker: Annotated[
        str | None,
        typer.Option(metavar="WHO", help="Who asks; every worker gets pulls of their own."),
    ] = None,
    features: Annotated[
        bool, typer.Option("--features", help="With the features of the arms.")
    ] = False,
    decimal: DecimalOption = ".",
    everything: AllOption = False,
    db: DbOption = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="How to print.", show_default="table; csv with -o"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="A CSV file to fill in."),
    ] = None,
) -> None:
    """Ask, print."""
    output.check_files(out, None)
    form = form or (Format.table if out is None else Format.csv)
    with opened(db, name) as study:
        batch = study.ask(size, worker)
        rows = _rows(study, batch, features)
        if not batch and form is not Format.json:
            typer.echo(_nothing(study, batch), err=form is Format.csv)
            raise typer.Exit(_code(batch))
    if form is Format.csv:
        _write_csv(rows, out, decimal)
        if out is not None:
            mark = () if decimal == "." else ("--decimal", decimal)
            typer.echo(f"{_head(batch)}\nFill in the column 'reward', then:", err=True)
            typer.echo(f"  {command(db, 'tell', name, str(out), *mark)}", err=True)
    elif form is Format.json:
        output.deliver(output.to_json(_content(batch, rows)), out)
    else:
        output.deliver(_table(batch, rows, everything), out)
    raise typer.Exit(_code(batch))


def _code(batch: "Batch") -> int:
    return codes.CONTINUE if batch.state == "waiting" else codes.DONE


def _rows(study: "Study", batch: "Batch", features: bool) -> list[dict[str, Any]]:
    """Return the pulls as rows, optionally with the features of their arms."""
    rows = batch.rows()
    if features:
        arms = study.arms
        for row in rows:
            values = arms.features[arms.index(row["arm"])].tolist()
            row["features"] = dict(zip(arms.feature_names, values, strict=True))
    return rows


def _nothing(study: "Study", batch: "Batch") -> str:
    if batch.state == "waiting":
        return batch.reason
    found = study.status(forecast=False)
    words = [batch.reason, found.sentence, *([] if found.advice is None else [found.advice])]
    return "\n".join(map(printable, words))


def _head(batch: "Batch") -> str:
    left = "" if batch.left == len(batch) else f" of {batch.left:,} that are left"
    words = f" {printable(batch.words)}" if batch.words else ""
    return f"Batch {batch.batch}: {counted(len(batch), 'pull')} to measure{left}.{words}"


def _write_csv(rows: list[dict[str, Any]], out: Path | None, decimal: str) -> None:
    from finalist.study.results import write_pulls

    flat = [
        {k: v for k, v in row.items() if k != "features"} | row.get("features", {}) for row in rows
    ]
    output.deliver_csv(lambda target: write_pulls(target, flat, decimal=decimal), out)


def _content(batch: "Batch", rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "state": batch.state,
        "reason": batch.reason,
        "batch": batch.batch,
        "left": batch.left,
        "words": batch.words,
        "pulls": rows,
    }


def _table(batch: "Batch", rows: list[dict[str, Any]], everything: bool) -> str:
    names = list(rows[0].get("features", {}))
    with_worker = any(row["worker"] is not None for row in rows)
    header = ["Arm", "Pull", *(["Worker"] if with_worker else [])]
    header += [printable(name, output.NAME_WIDTH) for name in names]
    cells = [
        [
            row["arm"],
            str(row["pull_id"]),
            *([printable(row["worker"] or "", output.NAME_WIDTH)] if with_worker else []),
            *(output.number(row["features"][name]) for name in names),
        ]
        for row in rows
    ]
    return output.to_text(_head(batch), *output.arms_table(header, cells, everything))


def tell(
    name: StudyName,
    results: Annotated[
        Path,
        typer.Argument(metavar="RESULTS", exists=True, dir_okay=False, help="A CSV file."),
    ],
    decimal: DecimalOption = ".",
    client_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="A name for this call: repeating it changes nothing."),
    ] = None,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Read, store, say."""
    with opened(db, name) as study:
        new = study.tell(results, client_id, decimal=decimal)
        found = study.status(forecast=False)
    content = {"new": new, "file": str(results), "status": found.to_dict()}
    say(form, "\n".join(_told(new, found, command(db, "ask", name))), **content)
    raise typer.Exit(codes.of_verdict(found.verdict))


def _told(new: int, found: "Status", ask_again: str) -> list[str]:
    lines = [f"Stored {counted(new, 'new reward')}.", printable(found.sentence), *certain(found)]
    if found.advice is not None:
        lines.append(printable(found.advice))
    lines += [f"Warning: {printable(words)}" for words in found.warnings]
    if found.open_pulls:
        verb = "is" if found.open_pulls == 1 else "are"
        pulls = counted(found.open_pulls, "pull")
        lines.append(f"{pulls} of this batch {verb} without a reward.")
    elif found.verdict == "continue":
        lines.append(f"Next: {ask_again}")
    return lines


def void(
    name: StudyName,
    pull: PullNumber,
    reason: ReasonOption,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Give up a pull."""
    with opened(db, name) as study:
        new = study.void(pull, reason)
    words = f"Pull {pull} is void. Pull {new.pull_id} replaces it: {printable(new.arm)}."
    say(form, words, name=name, void=pull, replacement=vars(new))


def missing(
    name: StudyName,
    pull: PullNumber,
    reason: ReasonOption,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Go on without a pull."""
    with opened(db, name) as study:
        study.missing(pull, reason)
        found = study.status(forecast=False)
    words = f"Pull {pull} is missing; the study goes on without it.\n{printable(found.sentence)}"
    say(form, words, name=name, missing=pull, status=found.to_dict())


def amend(
    name: StudyName,
    pull: PullNumber,
    reward: Annotated[float, typer.Argument(metavar="REWARD", help="What it should have been.")],
    reason: ReasonOption,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Correct a reward."""
    with opened(db, name) as study:
        study.amend(pull, reward, reason)
    say(
        form,
        f"The reward of pull {pull} is {reward!r} now.",
        name=name,
        amended=pull,
        reward=reward,
    )
