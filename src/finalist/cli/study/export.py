"""`finalist export`: all pulls as a table, or everything as JSON."""

import io
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import output
from finalist.cli.options import OutputOption
from finalist.cli.study.common import DbOption, DecimalOption, StudyName, opened
from finalist.files import printable

if TYPE_CHECKING:
    from finalist.study import Study

HELP = """Write every pull as CSV, or everything as JSON.

\b
Example:
  finalist export seeds -o seeds.json

CSV has one row per pull: pull_id, batch, arm, state, reward, worker, issued, told, note. JSON has
everything under the keys

\b
  name, created, settings, arms (feature_names, and a list of names, all
  names of one arm, features, measurable, candidate), events (number, at,
  kind and what each kind has), pulls (list of the columns above)

The default is JSON if FILE ends in .json, otherwise CSV.
"""


class Exported(StrEnum):
    """What is written."""

    csv = "csv"
    json = "json"


def export(
    name: StudyName,
    decimal: DecimalOption = ".",
    db: DbOption = None,
    form: Annotated[
        Exported | None,
        typer.Option("--format", help="What to write.", show_default="by the name of FILE"),
    ] = None,
    out: OutputOption = None,
) -> None:
    """Read everything, write it."""
    output.check_files(out, None)
    if form is None:
        is_json = out is not None and out.suffix.lower() == ".json"
        form = Exported.json if is_json else Exported.csv
    from finalist.study.exports import everything

    with opened(db, name) as study:
        if form is Exported.json:
            output.deliver(output.to_json(everything(study)), out)
        else:
            _write_csv(study, out, decimal)


def _write_csv(study: "Study", out: Path | None, decimal: str) -> None:
    from finalist.study.exports import write_csv

    if out is not None:
        write_csv(study, out, decimal=decimal)
        typer.echo(f"Wrote {printable(str(out))}", err=True)
        return
    buffer = io.StringIO(newline="")
    write_csv(study, buffer, decimal=decimal)
    typer.echo(buffer.getvalue(), nl=False)
