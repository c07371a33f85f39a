"""`finalist export` and `finalist report`: a study as a file, to compute with or to read."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from finalist.cli import output
from finalist.cli.options import OutputOption
from finalist.cli.study.common import DbOption, DecimalOption, StudyName, opened, shown

EXPORT_HELP = """Write every measurement as CSV, or everything as JSON.

\b
Example:
  finalist export seeds -o seeds.json

CSV has one row per measurement: pull_id, batch, arm, state, reward, worker, issued, told, note.
JSON has everything under the keys

\b
  name, created, settings, arms (feature_names, and a list of names, all
  names of one candidate, features, measurable, candidate), events (number, at,
  kind and what each kind has), pulls (list of the columns above)

The default is JSON if FILE ends in .json, otherwise CSV.
"""


REPORT_HELP = """Write everything about a study into one HTML file.

\b
Example:
  finalist report seeds -o report.html

It has the verdict, what is certain, every candidate with evidence, estimate and interval, the
charts, the settings, what the guarantee rests on, and the latest events. The file is
self-contained: it can be kept, e-mailed and printed. Without -o it is named after the study, in
this folder.
"""


def export(
    name: StudyName,
    decimal: DecimalOption = ".",
    db: DbOption = None,
    form: Annotated[
        Literal["csv", "json"] | None,
        typer.Option("--format", help="What to write.", show_default="by the name of FILE"),
    ] = None,
    out: OutputOption = None,
) -> None:
    """Read everything, write it."""
    output.check_files(out, None)
    if form is None:
        form = "json" if out is not None and out.suffix.lower() == ".json" else "csv"
    from finalist.study.exports import everything, write_csv

    with opened(db, name) as study:
        if form == "json":
            output.deliver(output.to_json(everything(study)), out)
        else:
            output.deliver_csv(lambda target: write_csv(study, target, decimal=decimal), out)


def report(
    name: StudyName,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file.", show_default="NAME.html"),
    ] = None,
    db: DbOption = None,
) -> None:
    """Read, draw, write."""
    target = out or Path(_file_name(name))
    output.check_files(target, None)
    from finalist.web.pages.report import report_of

    with opened(db, name) as study, output.working("Drawing..."):
        text = report_of(study, shown(db))
    output.deliver(text, target)


def _file_name(name: str) -> str:
    """Return a safe file name for a study, whatever its name.

    Examples
    --------
    >>> _file_name("../a b/c")
    'a-b-c.html'
    """
    plain = "".join(letter if letter.isalnum() else "-" for letter in name[:60])
    return ("-".join(filter(None, plain.split("-"))) or "report") + ".html"
