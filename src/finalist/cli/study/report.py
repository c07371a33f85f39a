"""`finalist report`: a study as one file, to keep, to send, to print."""

from pathlib import Path
from typing import Annotated

import typer

from finalist.cli import output
from finalist.cli.study.common import DbOption, StudyName, opened, shown

HELP = """Write everything about a study into one HTML file.

\b
Example:
  finalist report seeds -o report.html

The verdict, what is certain, every arm with evidence, estimate and interval, the charts, the
settings, what the guarantee rests on, and the newest events. The file needs nothing else: it can
be kept, sent by e-mail and printed. Without -o it is called like the study, in this folder.
"""


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
    """Return a name of a file for a study, whatever it is called.

    Examples
    --------
    >>> _file_name("../a b/c")
    'a-b-c.html'
    """
    plain = "".join(letter if letter.isalnum() else "-" for letter in name[:60])
    return ("-".join(filter(None, plain.split("-"))) or "report") + ".html"
