"""`finalist reproduce`: the table, the figures and the appendix of the paper."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from finalist.cli import output
from finalist.cli.options import FolderOption, JobsOption, Printed, PrintedOption, SeedOption

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from finalist.lab.page import Finding
    from finalist.lab.paper import Reproduction
    from finalist.lab.paper.experiment import Announce, Case, Extent
    from finalist.lab.tables import Table

HELP = """Reproduce the experiments of Soare et al. (NIPS 2014).

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

Pictures (.png, .svg) and tables (.csv) go to the folder, as do the results of every simulated
run (results.sqlite): a reproduction that was stopped continues where it was. It takes about a
minute with --quick, otherwise a quarter of an hour on two free cores.

--format json prints settings, and for each part its findings (claim, constants, holds,
evidence; holds is null where nothing can be compared) and its tables as lists of rows.
"""


PartName = Literal["table", "budget", "cones", "appendix", "alpha", "all"]


def reproduce(
    part: Annotated[PartName, typer.Argument(metavar="PART", help="What to reproduce.")],
    out: FolderOption,
    quick: Annotated[
        bool, typer.Option("--quick", help="10 runs, three dimensions, sharp constants only.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(metavar="N", help="Runs of every strategy instead of 100.")
    ] = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    form: PrintedOption = Printed.table,
) -> None:
    """Measure, print, write."""
    from finalist.lab import paper

    extent = (paper.Extent.quick() if quick else paper.Extent()).with_runs(runs)
    names: list[str] = list(paper.PARTS) if part == "all" else [part]
    out.mkdir(parents=True, exist_ok=True)
    with progress(names, extent) as announce:
        result = paper.reproduce(names, out, extent, seed=seed, jobs=jobs, announce=announce)
    with output.working("Drawing..."):
        files = paper.write(result, out, with_page=part == "all")
    record = result.record() if form is Printed.json else None
    output.deliver_report(record, [*report(result), ""], files)


@contextmanager
def progress(names: list[str], extent: "Extent") -> "Iterator[Announce | None]":
    """Show which case is being simulated and the time left, if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from finalist.lab.paper.experiment import distinct
    from finalist.lab.paper.report import cases_of

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    cases = distinct(case for name in names for case in cases_of(name, extent))
    work = [case.seconds(extent.runs_of(case)) for case in cases]
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        row = bar.add_task("Starting", total=sum(work) or 1.0)

        def announce(number: int, total: int, case: "Case") -> None:
            text = f"{number} of {total}: {case.label}"
            bar.update(row, description=text, completed=sum(work[: number - 1]))

        yield announce


def report(result: "Reproduction") -> "Iterator[RichTable | str]":
    """Yield the parts for people: tables, then findings."""
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
