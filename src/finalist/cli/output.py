"""What the commands write: tables for people, JSON and CSV for programs, complete files."""

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from finalist.extras import need
from finalist.files import check_folder, finite, printable, write_file
from finalist.text import shortened

if TYPE_CHECKING:
    from rich.table import Table

    from finalist.charts.theme import AnyChart

#: Most rows of a printed table, unless --all is given.
MAX_ROWS = 40
#: Longest name in a printed table, in characters.
NAME_WIDTH = 60
#: Narrowest column of names, in which longer ones wrap.
_NARROWEST = 16
#: Width of a table that is not printed to a terminal.
_PLAIN_WIDTH = 100


@contextmanager
def working(message: str) -> Iterator[None]:
    """Show a spinner on stderr, if that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(message):
        yield


def check_files(output: Path | None, chart: Path | None) -> None:
    """Refuse files that cannot be written, before any work is done."""
    if output is not None:
        check_folder(output)
        if output.suffix.lower() == ".xlsx":
            need("Spreadsheets", "xlsxwriter")
    if chart is not None:
        from finalist.charts.theme import check_target

        check_target(chart)


def deliver(text: str, output: Path | None) -> None:
    """Print a result, or write it to a file and say so on stderr."""
    if output is None:
        typer.echo(text, nl=False)
        return
    write_file(output, text.encode())
    typer.echo(f"Wrote {output}", err=True)


def list_files(files: Iterable[Path]) -> None:
    """List the files that a command wrote."""
    typer.echo("Written:")
    for path in files:
        typer.echo(f"  {path}")


def deliver_report(
    record: dict[str, Any] | None, parts: "Iterable[Table | str]", files: Sequence[Path]
) -> None:
    """Print a report and its files: for people, or as JSON if there is a record."""
    if record is not None:
        typer.echo(to_json({**record, "files": [str(path) for path in files]}), nl=False)
        return
    typer.echo(to_text(*parts), nl=False)
    list_files(files)


def deliver_csv(write: "Callable[[Path | io.StringIO], object]", output: Path | None) -> None:
    """Let `write` print CSV, or write it to a file and say so on stderr."""
    if output is not None:
        write(output)
        typer.echo(f"Wrote {printable(str(output))}", err=True)
        return
    buffer = io.StringIO(newline="")
    write(buffer)
    typer.echo(buffer.getvalue(), nl=False)


def draw(chart: "AnyChart", path: Path) -> None:
    """Save a chart and say so on stderr."""
    from finalist.charts import save

    save(chart, path)
    typer.echo(f"Wrote {path}", err=True)


def to_json(content: dict[str, Any]) -> str:
    """Return valid JSON with floats in full precision; infinite or undefined values become null."""
    return json.dumps(finite(content), indent=2, allow_nan=False) + "\n"


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV whose text no spreadsheet takes for a formula."""
    from finalist.tables.escaping import escape

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    for row in (header, *rows):
        writer.writerow(escape(cell) if isinstance(cell, str) else cell for cell in row)
    return buffer.getvalue()


def to_text(*parts: "Table | str") -> str:
    """Lay out tables and lines for the terminal, or as plain text without one."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=Console().width if terminal else _PLAIN_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))


def arms_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    everything: bool,
    total: int | None = None,
) -> "Iterator[Table | str]":
    """Yield a table whose first column is a name, and a line that counts omitted rows.

    `total` is the number of rows, if only the first ones are given.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    shown = rows if everything else rows[:MAX_ROWS]
    names = [header[0], *(name for name, *_ in shown)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    # Names wrap where there is no room: cut, two of them may look the same.
    table.add_column(header[0], min_width=min(_NARROWEST, max(map(len, names))), overflow="fold")
    for column in header[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    for name, *cells in shown:
        table.add_row(Text(shortened(printable(name), NAME_WIDTH)), *map(Text, cells))
    yield table
    left = (len(rows) if total is None else total) - len(shown)
    if left > 0:
        yield f"... and {left:,} more (--all shows them, --format csv has them)\n"


def facts_table(rows: Iterable[tuple[str, str, str]]) -> "Table":
    """Return a table of quantities: name, value, and a plain explanation."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True)
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def number(value: float) -> str:
    """Format a number for people: six digits, and commas between thousands."""
    if not math.isfinite(value):
        return "infinite"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e4 <= abs(value) < 1e15:
        return f"{value:,.1f}" if abs(value) < 1e6 else f"{value:,.0f}"
    return f"{value:.6g}"


def merged(aliases: Sequence[Sequence[str]]) -> str:
    """Say which names were merged into one arm because their features are identical."""
    groups = [names for names in aliases if len(names) > 1]
    if not groups:
        return "no two have the same features"
    shown = "; ".join(" = ".join(printable(n, 20) for n in names[:4]) for names in groups[:3])
    surplus = sum(len(names) - 1 for names in groups)
    more = "" if len(groups) <= 3 else f" and {len(groups) - 3} more groups"
    return f"{surplus} merged, the same features: {shown}{more}"
