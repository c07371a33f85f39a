"""`finalist export`: all pulls as a table, or everything as JSON."""

import io
import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from finalist.cli import output
from finalist.cli.options import OutputOption
from finalist.cli.study_common import DbOption, DecimalOption, StudyName, opened
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
  names of one arm, and features), events (number, at, kind and what each
  kind has), pulls (list of the columns above)

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
    with opened(db, name) as study:
        if form is Exported.json:
            output.deliver(output.to_json(_everything(study)), out)
        else:
            _write_csv(study, out, decimal)


def _pulls(study: "Study") -> list[dict[str, Any]]:
    """Return every pull as plain values; a reward that is not there is None."""
    frame = study.to_frame()
    rows = (dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False))
    return [row | {"reward": None if math.isnan(row["reward"]) else row["reward"]} for row in rows]


def _everything(study: "Study") -> dict[str, Any]:
    arms = study.arms
    each = zip(arms.aliases, arms.features.tolist(), strict=True)
    return {
        "name": study.name,
        "created": study.created,
        "settings": study.settings,
        "arms": {
            "feature_names": list(arms.feature_names),
            "arms": [{"names": list(names), "features": row} for names, row in each],
        },
        "events": study.history(),
        "pulls": _pulls(study),
    }


def _write_csv(study: "Study", out: Path | None, decimal: str) -> None:
    from finalist.study.results import write_table

    header = list(study.to_frame().columns)
    rows = [[row[column] for column in header] for row in _pulls(study)]
    if out is not None:
        write_table(out, header, rows, decimal=decimal)
        typer.echo(f"Wrote {printable(str(out))}", err=True)
        return
    buffer = io.StringIO(newline="")
    write_table(buffer, header, rows, decimal=decimal)
    typer.echo(buffer.getvalue(), nl=False)
