"""`finalist ask`, `tell`, `void`, `missing` and `amend`: what to measure, and what came out."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from finalist.cli import codes, output
from finalist.cli.groups import ReadingOptions, with_options
from finalist.cli.options import (
    AllOption,
    Format,
    Printed,
    PrintedOption,
)
from finalist.cli.study.common import (
    DbOption,
    DecimalOption,
    PullNumber,
    ReasonOption,
    StudyName,
    command,
    opened,
    say,
    warnings,
)
from finalist.cli.study.status import certain
from finalist.files import printable
from finalist.text import counted

if TYPE_CHECKING:
    from finalist.study import Batch, Status, Study
    from finalist.study.measure import Told

ASK_HELP = """Say what to measure next.

\b
Example:
  finalist ask seeds --size 96 -o batch.xlsx

With -o it writes a sheet to fill in (.xlsx, .csv or .tsv): the candidates with their own columns
and an empty column 'result'. Measure in the order of the rows. Write the measured values there, or
'failed' where a measurement failed, and pass the file to 'finalist tell'. You get the same batch
until all its results are in. If there is nothing to measure, no file is written.
--format csv prints what a CSV file would contain; --format json has the keys

\b
  state (open, waiting, decided, stopped, budget, exhausted), reason, batch,
  left, words, pulls (list of pull_id, arm, worker, and with --features
  features)
"""
TELL_HELP = """Enter results from a file: all of them, or none.

\b
Example:
  finalist tell seeds batch.xlsx

The file is a sheet from 'finalist ask', filled in: .xlsx, .ods, CSV or text with tabs. The columns
'pull_id' (the number of the measurement) and 'result' are required, in any order; rows may be
sorted, and some may be missing. An empty result is a measurement not made yet; 'failed' is one that
failed, and it is made again. A column 'reward' is read as 'result'. The column 'candidate' (or
'arm') is checked, the candidates' own columns are ignored, and other columns are kept as notes. A
wrong cell is reported by line and column, and then nothing is stored. Entering the same results
twice changes nothing. Encoding, delimiter and decimal sign are detected and shown.
--format json has the keys new (how many results), again (how many failed and
are measured again), file, read_as, status (as in 'finalist status', without a forecast).
"""
VOID_HELP = """Give up a failed measurement; it is made again.

\b
Example:
  finalist void seeds 17 --reason "the plate was dropped"

The reason must have nothing to do with the value: leaving out results because of their values
breaks the guarantee. --format json has the keys name, void, replacement (pull_id, arm, worker).
"""
MISSING_HELP = """Continue without a measurement that cannot be made again.

\b
Example:
  finalist missing seeds 17 --reason "no seeds are left"

As with 'finalist void', the loss must have nothing to do with the value. --format json has the keys
name, missing, status (as in 'finalist status', without a forecast).
"""
AMEND_HELP = """Correct a result, as long as no decision has used it.

\b
Example:
  finalist amend seeds 17 0.53 --reason "a typing error"

The old value stays in the log. After the decision, use 'finalist fork' to restart from before it.
--format json has the keys name, amended, reward.
"""
UNDO_HELP = """Take back the results that were saved last.

\b
Example:
  finalist undo seeds

For slips of the pen, as long as no decision has used the results: their measurements are open
again, the old values are printed, and the log keeps them. A single result is corrected with
'finalist amend'; a correction is corrected again, not taken back. After a decision, use 'finalist
fork' to restart from before it. Never undo results because you do not like them: that breaks the
guarantee. --format json has the keys name, taken_back (list of pull_id, arm, reward).
"""


def ask(
    name: StudyName,
    size: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many can be measured now.", show_default="any"),
    ] = None,
    worker: Annotated[
        str | None,
        typer.Option(metavar="WHO", help="Who asks; every worker gets measurements of their own."),
    ] = None,
    columns: Annotated[
        bool | None,
        typer.Option(
            "--columns/--no-columns",
            "--features/--no-features",
            help="With the candidates' own columns.",
            show_default="in files",
        ),
    ] = None,
    decimal: DecimalOption = ".",
    everything: AllOption = False,
    db: DbOption = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="How to print.", show_default="table; csv with -o"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="A sheet to fill in: .xlsx, .csv."),
    ] = None,
) -> None:
    """Ask, print."""
    output.check_files(out, None)
    form = form or (Format.table if out is None else Format.csv)
    with opened(db, name) as study:
        batch = study.ask(size, worker)
        rows = batch.rows()
        if columns and form is Format.json:
            rows = _with_features(study, rows)
        if not batch and form is not Format.json:
            typer.echo(_nothing(study, batch), err=form is Format.csv)
            raise typer.Exit(_code(batch))
    if form is Format.csv:
        _write_sheet(batch, columns is not False, out, decimal)
        if out is not None:
            mark = () if decimal == "." else ("--decimal", decimal)
            typer.echo(f"{_head(batch)}\nFill in the column 'result', then:", err=True)
            typer.echo(f"  {command(db, 'tell', name, str(out), *mark)}", err=True)
    elif form is Format.json:
        output.deliver(output.to_json(_content(batch, rows)), out)
    else:
        output.deliver(_table(batch, bool(columns), everything), out)
    raise typer.Exit(_code(batch))


def _code(batch: "Batch") -> int:
    return codes.CONTINUE if batch.state == "waiting" else codes.DONE


def _with_features(study: "Study", rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return pulls with the features of their arms."""
    arms = study.arms
    numbers = {name: arms.features[arms.index(name)].tolist() for name in {r["arm"] for r in rows}}
    named = {k: dict(zip(arms.feature_names, v, strict=True)) for k, v in numbers.items()}
    return [row | {"features": named[row["arm"]]} for row in rows]


def _nothing(study: "Study", batch: "Batch") -> str:
    if batch.state == "waiting":
        return batch.reason
    found = study.status(forecast=False)
    words = [batch.reason, found.sentence, *([] if found.advice is None else [found.advice])]
    return "\n".join(map(printable, words))


def _head(batch: "Batch") -> str:
    left = "" if batch.left == len(batch) else f" of {batch.left:,} that are left"
    words = f" {printable(batch.words)}" if batch.words else ""
    return f"Batch {batch.batch}: {counted(len(batch), 'measurement')} to make{left}.{words}"


def _write_sheet(batch: "Batch", columns: bool, out: Path | None, decimal: str) -> None:
    from finalist.study.results import write_pulls

    own = batch.own_columns() if columns else None
    output.deliver_csv(lambda target: write_pulls(target, batch.rows(), own, decimal=decimal), out)


def _content(batch: "Batch", rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "state": batch.state,
        "reason": batch.reason,
        "batch": batch.batch,
        "left": batch.left,
        "words": batch.words,
        "pulls": rows,
    }


def _table(batch: "Batch", columns: bool, everything: bool) -> str:
    from finalist.study.results import OwnColumns

    own = batch.own_columns() if columns else OwnColumns()
    with_worker = any(pull.worker is not None for pull in batch)
    header = ["Candidate", "Number", *(["Worker"] if with_worker else [])]
    header += [printable(name, output.NAME_WIDTH) for name in own.headers]
    cells = [
        [
            pull.arm,
            str(pull.pull_id),
            *([printable(pull.worker or "", output.NAME_WIDTH)] if with_worker else []),
            *(_cell(cell) for cell in own.cells(pull.arm)),
        ]
        for pull in batch
    ]
    return output.to_text(_head(batch), *output.arms_table(header, cells, everything))


def _cell(cell: object) -> str:
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return output.number(cell)
    return "" if cell is None else printable(str(cell), output.NAME_WIDTH)


@with_options
def tell(
    name: StudyName,
    results: Annotated[
        Path,
        typer.Argument(metavar="RESULTS", exists=True, dir_okay=False, help="A filled-in sheet."),
    ],
    *,
    reading: ReadingOptions,
    client_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="A name for this call: repeating it changes nothing."),
    ] = None,
    db: DbOption = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Read, store, say."""
    from finalist.study import handles
    from finalist.study.results import OwnColumns, read_results

    with opened(db, name) as study:
        given = read_results(results, reading.dialect(), own=OwnColumns(study.arms).headers)
        told = handles.tell(study, given, client_id)
        found = study.status(forecast=False)
    content = {"new": told.new, "again": told.again, "file": str(results)}
    content |= {"read_as": given.read_as, "status": found.to_dict()}
    read_as = [f"Read as: {given.read_as}."] if given.read_as else []
    say(form, "\n".join([*read_as, *_told(told, found, db)]), **content)
    raise typer.Exit(codes.of_verdict(found.verdict))


def _told(told: "Told", found: "Status", db: str | None) -> list[str]:
    ask_again = command(db, "ask", found.name)
    again = counted(told.again, "failed measurement is", "failed measurements are")
    failed = f" {again} made again: {ask_again}" if told.again else ""
    lines = [f"Stored {counted(told.new, 'new result')}.{failed}", printable(found.sentence)]
    lines += certain(found)
    if found.advice is not None:
        lines.append(printable(found.advice))
    lines += warnings(found, db)
    if found.unneeded:
        pulls = counted(found.unneeded, "measurement was", "measurements were")
        lines.append(f"{pulls} not needed any more.")
    if found.open_pulls:
        verb = "is" if found.open_pulls == 1 else "are"
        pulls = counted(found.open_pulls, "measurement")
        lines.append(f"{pulls} of this batch {verb} without a result.")
    elif found.verdict == "continue":
        doubtful = bool(found.doubts and found.warnings)
        first = "Next: do what the warning says, or go on as it is" if doubtful else "Next"
        lines.append(f"{first}: {ask_again}")
    return lines


@dataclass(frozen=True)
class PullOptions:
    """A pull that is not as it should be, and why, as arguments and options."""

    pull: PullNumber
    reason: ReasonOption
    db: DbOption = None
    form: PrintedOption = Printed.table


@with_options
def void(name: StudyName, about: PullOptions) -> None:
    """Give up a pull."""
    with opened(about.db, name) as study:
        new = study.void(about.pull, about.reason)
    words = (
        f"Measurement {about.pull} is void. Measurement {new.pull_id} replaces it: "
        f"{printable(new.arm)}."
    )
    say(about.form, words, name=name, void=about.pull, replacement=vars(new))


@with_options
def missing(name: StudyName, about: PullOptions) -> None:
    """Go on without a pull."""
    pull = about.pull
    with opened(about.db, name) as study:
        study.missing(pull, about.reason)
        found = study.status(forecast=False)
    words = (
        f"Measurement {pull} is missing; the study goes on without it.\n{printable(found.sentence)}"
    )
    say(about.form, words, name=name, missing=pull, status=found.to_dict())


@with_options
def amend(
    name: StudyName,
    about: PullOptions,
    reward: Annotated[float, typer.Argument(metavar="RESULT", help="What it should have been.")],
) -> None:
    """Correct a reward."""
    with opened(about.db, name) as study:
        study.amend(about.pull, reward, about.reason)
    words = f"The result of measurement {about.pull} is {reward!r} now."
    say(about.form, words, name=name, amended=about.pull, reward=reward)


def undo(name: StudyName, db: DbOption = None, form: PrintedOption = Printed.table) -> None:
    """Take back the last results."""
    from finalist.study import handles

    with opened(db, name) as study:
        taken = handles.named(study, study.undo())
    verb = "measurement is" if len(taken) == 1 else "measurements are"
    head = f"{counted(len(taken), 'result')} taken back; the {verb} open again."
    rows = [[row["arm"], str(row["pull_id"]), output.number(row["reward"])] for row in taken]
    table = output.arms_table(["Candidate", "Number", "Was"], rows, everything=True)
    say(form, output.to_text(head, *table), name=name, taken_back=taken)
