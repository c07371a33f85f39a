"""`finalist reproduce`: the table, the figures and the appendix of the paper."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import output
from finalist.cli.options import Printed, PrintedOption

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from finalist.lab.paper import Reproduction
    from finalist.lab.paper.cells import Cell, Plan
    from finalist.lab.paper.parts import Finding
    from finalist.lab.tables import Table

HELP = """Reproduce the experiments of Soare, Lazaric and Munos (NIPS 2014).

\b
Example:
  finalist reproduce all --quick --out paper

\b
The parts, each alone or all together:
  table     pulls per arm and budget of the five strategies at d = 5
  budget    budgets for d = 2 to 10
  alpha     XY-Adaptive for several values of its setting
  cones     the figure of cones and confidence sets in the plane
  appendix  the examples, lemmas and theorems
  all       everything, and one page to read: index.html

Pictures (.png, .svg) and tables (.csv) go to the folder, and so do the results of every
simulated run (results.sqlite): a reproduction that was stopped goes on where it was. With
--quick it takes about a minute, otherwise a quarter of an hour on two free cores.

--format json prints settings, and for each part its findings (claim, constants, holds,
evidence; holds is null where nothing can be compared) and its tables as lists of rows.
"""


class PartName(StrEnum):
    """What to reproduce."""

    table = "table"
    budget = "budget"
    cones = "cones"
    appendix = "appendix"
    alpha = "alpha"
    all = "all"


def reproduce(
    part: Annotated[PartName, typer.Argument(metavar="PART", help="What to reproduce.")],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for all files; created if missing.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="10 runs, three dimensions, sharp constants only.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(metavar="N", help="Runs of every strategy instead of 100.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Processes; -1 is one for every core.")
    ] = -1,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the simulations.")] = 0,
    form: PrintedOption = Printed.table,
) -> None:
    """Measure, print, write."""
    from finalist.lab import paper

    plan = (paper.Plan.quick() if quick else paper.Plan()).with_runs(runs)
    names = list(paper.PARTS) if part is PartName.all else [part.value]
    out.mkdir(parents=True, exist_ok=True)
    with progress(names, plan) as announce:
        result = paper.reproduce(names, out, plan, seed=seed, jobs=jobs, announce=announce)
    with output.working("Drawing..."):
        files = paper.write(result, out, with_page=part is PartName.all)
    if form is Printed.json:
        content = {**result.record(), "files": [str(path) for path in files]}
        typer.echo(output.to_json(content), nl=False)
        return
    typer.echo(output.to_text(*report(result)), nl=False)
    typer.echo("\nWritten:")
    for path in files:
        typer.echo(f"  {path}")


@contextmanager
def progress(names: list[str], plan: "Plan") -> "Iterator[Callable[[int, int, Cell], None] | None]":
    """Show which cell of how many is simulated and the time left, if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from finalist.lab.paper.measure import distinct
    from finalist.lab.paper.report import cells_of

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    cells = distinct(cell for name in names for cell in cells_of(name, plan))
    work = [cell.seconds(plan.runs_of(cell)) for cell in cells]
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        row = bar.add_task("Starting", total=sum(work) or 1.0)

        def announce(number: int, total: int, cell: "Cell") -> None:
            text = f"{number} of {total}: {cell.label}"
            bar.update(row, description=text, completed=sum(work[: number - 1]))

        yield announce


def report(result: "Reproduction") -> "Iterator[RichTable | str]":
    """Yield the parts for people: the tables, then what they show."""
    for part in result.parts:
        yield f"{part.title}\n"
        for table in part.tables:
            if table.where == "everywhere":
                yield f"{table.title}:"
                yield table_of(table)
        yield _findings(part.findings)
        yield ""


def table_of(table: "Table") -> "RichTable":
    """Return a table of results for people."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for column, numeric in zip(table.columns, table.numeric(), strict=True):
        shown.add_column(column, justify="right" if numeric else "left")
    for row in table.shown():
        shown.add_row(*map(Text, row))
    return shown


def _findings(findings: "tuple[Finding, ...]") -> "RichTable":
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True, style="bold")
    shown.add_column(no_wrap=True)
    shown.add_column(ratio=2)
    shown.add_column(ratio=3, style="dim")
    for finding in findings:
        words = (finding.constants or "", finding.claim, finding.evidence)
        shown.add_row(finding.verdict, *map(Text, words))
    return shown
