"""`finalist benchmark`: every strategy on many instances, beside the lower bound."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finalist.cli import codes, output
from finalist.cli.options import FolderOption, JobsOption, Printed, PrintedOption, SeedOption
from finalist.cli.research.reproduce import table_of
from finalist.errors import ParameterError
from finalist.text import counted

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from finalist.lab.benchmark import Report

HELP = """Compare strategies with a lower bound, on many problems.

\b
Example:
  finalist benchmark --suite quick --runs 20 --out benchmark

\b
The suites:
  quick     4 small instances, for a first look (a minute)
  standard  16 instances: the paper's, a sphere, Gaussian and unstructured
            candidates, a cube, many in the plane, factors, real tables
            (100 runs of everything: an hour on two cores)

\b
Strategies are comma-separated, with settings if needed:
  --strategies gauntlet,xy-adaptive:alpha=0.1:bound=soare

A cell is one strategy on one instance with one delta. Each is seeded and stored as it is simulated
(results.sqlite in the folder): a benchmark that was stopped continues where it was. Another version
of finalist or another setting makes a new cell. A cell that a strategy declines stays empty, with
the reason; 'no proof' marks a strategy whose delta is not proven.

\b
On several machines, with pip install 'finalist[cluster]' on each:
  dask scheduler
  dask worker tcp://10.0.0.1:8786 --nworkers -1 --nthreads 1
  finalist benchmark --scheduler tcp://10.0.0.1:8786

Writes benchmark.md, index.html, cells.csv and pictures (.png, .svg). --format json prints settings,
files and cells: instance, arms, rank, delta, strategy, marks, lower_bound, max_pulls, reason, runs,
undecided, mean_pulls, ratio (both with _low and _high), errors, error_low, error_high,
mean_batches, median_cpu_seconds. Where runs were cut (undecided), mean_pulls, ratio and
mean_batches are too small and there is no _high; with fewer than 30 runs there is no _low either.
Ctrl-C exits with code 130.
"""
STORE = "results.sqlite"


def benchmark(
    suite: Annotated[
        str, typer.Option(metavar="NAME", help="The instances: standard or quick.")
    ] = "standard",
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            "--strategies",
            metavar="NAME,...",
            help="Some strategies; by default every one that keeps an error probability.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Runs of every cell.")] = 100,
    deltas: Annotated[
        str, typer.Option(metavar="D1,D2,...", help="Accepted probabilities of a wrong answer.")
    ] = "0.05,0.001",
    max_ratio: Annotated[
        float,
        typer.Option(
            metavar="R", help="Stop a run that needs more than R times the lower bound, undecided."
        ),
    ] = 200.0,
    jobs: JobsOption = -1,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on this Dask cluster, tcp://HOST:PORT."),
    ] = None,
    seed: SeedOption = 0,
    out: FolderOption = Path("benchmark"),
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where runs are kept.", show_default="results.sqlite in DIR"
        ),
    ] = None,
    form: PrintedOption = Printed.table,
) -> None:
    """Measure, print, write."""
    from finalist.lab import benchmark as package
    from finalist.lab.benchmark.specs import split_words

    plan = package.Plan(
        suite=suite,
        strategies=split_words(strategies or ()),
        deltas=_numbers(deltas),
        runs=runs,
        max_ratio=max_ratio,
        seed=seed,
    )
    out.mkdir(parents=True, exist_ok=True)
    kept = out / STORE if store is None else store
    with _progress() as (announce, finished):
        try:
            outcomes = package.run(plan, kept, jobs=jobs, scheduler=scheduler, announce=announce)
        except KeyboardInterrupt:
            done, total = finished()
            typer.echo(
                f"Interrupted. {done} of {total} cells are finished; they and the finished runs of "
                f"others are in {kept}. Run the same command again to continue.",
                err=True,
            )
            raise typer.Exit(codes.INTERRUPTED) from None
    report = package.make_report(plan, outcomes)
    with output.working("Drawing..."):
        files = package.write(report, out)
    record = report.record() if form is Printed.json else None
    output.deliver_report(record, _shown(report), files)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"--deltas {text!r}: write comma-separated numbers, such as 0.05,0.001."
        ) from None


@contextmanager
def _progress() -> Iterator[tuple[Callable[[int, int, str], None], Callable[[], tuple[int, int]]]]:
    """Show how many cells are done, if stderr is a terminal; yield a callback and the count."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console, count = Console(stderr=True), [0, 0]
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        row = bar.add_task("Starting", total=None)

        def announce(done: int, total: int, label: str) -> None:
            count[:] = done, total
            bar.update(row, description=label, completed=done, total=total)

        yield announce, lambda: (count[0], count[1])


def _shown(report: "Report") -> "Iterator[RichTable | str]":
    """Yield the tables over all instances, and what is missing."""
    for table in report.overviews():
        yield f"{table.title}:"
        yield table_of(table)
    reasons: dict[str, list[str]] = {}
    for outcome in report.outcomes:
        if outcome.reason:
            reasons.setdefault(outcome.cell.spec.label, []).append(outcome.reason)
    for label, words in reasons.items():
        first = "" if len(words) == 1 else ", the first one"
        yield f"{label}: {counted(len(words), 'cell')} not simulated{first} because: {words[0]}"
    if reasons:
        yield ""
