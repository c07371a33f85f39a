"""Measure pieces of code side by side: one process, one thread, medians, wall and CPU time.

Also the report they end in: tables on the terminal and in Markdown, and targets met or missed.
"""

import argparse
import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
ONE_THREAD = "of which one is used (one thread)"
CPU = "Times are medians; ratios are of CPU time, both sides measured in the same run."
console = Console()


# ---- one thread --------------------------------------------------------------------------


def single_thread() -> None:
    """Start this program again with one thread everywhere, then check that it is so.

    The libraries read the variables when they are loaded, hence the new start.
    """
    if any(os.environ.get(name) != "1" for name in THREAD_VARIABLES):
        env = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env)
    import numpy as np

    A = np.ones((1500, 1500))
    used = timed(lambda: A @ A)
    if used.cpu > 1.3 * used.wall:
        raise RuntimeError(
            f"a matrix product took {used.cpu:.3f} CPU seconds in {used.wall:.3f} s: more than one "
            f"thread is at work although {', '.join(THREAD_VARIABLES)} are 1"
        )


# ---- time --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """Median seconds of some runs, and what the last run returned."""

    wall: float
    cpu: float
    runs: int
    result: Any


def timed(call: Callable[[], Any]) -> Timing:
    """Run once, without the garbage collector, as `timeit` does.

    Otherwise one side's garbage would be collected on the other side's time.
    """
    gc.disable()
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        result = call()
        return Timing(time.perf_counter() - wall, time.process_time() - cpu, 1, result)
    finally:
        gc.enable()


def median(runs: Sequence[Timing]) -> Timing:
    """Medians of wall and CPU time, with the last result."""
    wall = statistics.median(run.wall for run in runs)
    cpu = statistics.median(run.cpu for run in runs)
    return Timing(wall, cpu, len(runs), runs[-1].result)


def repeated(call: Callable[[], Any], runs: int) -> Timing:
    """Run once to warm up (compilation, caches), then measure."""
    call()
    return median([timed(call) for _ in range(runs)])


def side_by_side(
    fast: Callable[[], Any], slow: Callable[[], Any], rounds: int, fast_runs: int = 5
) -> tuple[Timing, Timing]:
    """Alternate `fast_runs` runs of one with one run of the other.

    The first warms up before each turn, because the other leaves it cold caches and garbage.
    Both results are medians over all their runs.
    """
    first, second = [], []
    for _ in range(rounds):
        gc.collect()
        fast()
        first += [timed(fast) for _ in range(fast_runs)]
        second.append(timed(slow))
    return median(first), median(second)


# ---- memory ------------------------------------------------------------------------------


def peak_megabytes() -> float:
    """Peak resident memory of this process.

    Linux hands ru_maxrss of the parent down to a child, so VmHWM is read where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def restart_peak() -> float:
    """Forget the peak so far (where Linux allows it); return the memory used now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_megabytes()


def in_child(module: str, *arguments: str) -> dict[str, Any]:
    """Run `python -m module arguments` in a fresh process; return the JSON of its last line."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


# ---- the program -------------------------------------------------------------------------


def asked_for(parser: argparse.ArgumentParser, only: str, sections: Sequence[str]) -> list[str]:
    """Return the sections that `--only` names, in its order; refuse others."""
    asked = only.split(",")
    if unknown := sorted(set(asked) - set(sections)):
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(sections)}")
    return asked


def go_through(report: "Report", sections: Mapping[str, Callable[[], None]]) -> None:
    """Measure section after section; one that fails is a target missed, the others still count."""
    for name, measure in sections.items():
        try:
            measure()
        except Exception as error:
            console.print_exception()
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            report.targets.append(Target(f"section {name}", "runs", reason, False))


# ---- the report --------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Rows of text under a title, with a note below."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""

    def show(self) -> None:
        """Print it."""
        table = RichTable(*self.columns, title=self.title, box=box.SIMPLE, title_justify="left")
        for row in self.rows:
            table.add_row(*map(escape, row))
        console.print(table)

    def markdown(self) -> str:
        """Write it as Markdown."""
        lines = [f"## {self.title}", "", _row(self.columns), _row(["---"] * len(self.columns))]
        lines += [_row(row) for row in self.rows]
        return "\n".join([*lines, "", *([self.note, ""] if self.note else [])])


@dataclass(frozen=True)
class Target:
    """Something promised and what was measured."""

    name: str
    promised: str
    measured: str
    met: bool


@dataclass
class Report:
    """Tables and targets of one run."""

    title: str
    how: tuple[str, str] = (ONE_THREAD, CPU)
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def add(self, table: Table) -> None:
        """Keep a table and print it."""
        self.tables.append(table)
        table.show()

    def at_least(self, name: str, ratio: float, promised: float) -> None:
        """Promise a ratio in favour of finalist."""
        text = f"{promised:g} times faster", f"{ratio:.3g} times"
        self.targets.append(Target(name, *text, ratio >= promised))

    def below(self, name: str, measured: float, promised: float, unit: str) -> None:
        """Promise less than a number of some unit."""
        text = f"below {promised:g} {unit}", f"{measured:.3g} {unit}"
        self.targets.append(Target(name, *text, measured < promised))

    def finish(self, path: Path, closing: str = "") -> int:
        """Print the targets, write the Markdown file, return the exit code."""
        rows = [
            (t.name, t.promised, t.measured, "yes" if t.met else "**no**") for t in self.targets
        ]
        summary = Table("Targets", ("target", "promised", "measured", "met"), rows)
        self.add(summary)
        parts = [f"# {self.title}", "", about_this_run(*self.how), summary.markdown()]
        parts += [table.markdown() for table in self.tables if table is not summary]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*parts, closing]).rstrip() + "\n")
        console.print(f"Written: {path}")
        missed = [t for t in self.targets if not t.met]
        for t in missed:
            console.print(f"[red]missed[/red] {t.name}: {t.promised} promised, {t.measured}")
        return 1 if missed else 0


def about_this_run(threads: str = ONE_THREAD, times: str = CPU) -> str:
    """Versions, machine, command, and what was measured how, in Markdown."""
    names = ("finalist", "numpy", "scipy", "numba", "cvxpy", "clarabel")
    versions = ", ".join(f"{name} {_version(name)}" for name in names)
    return "\n".join(
        [
            f"- Command: `python {' '.join(_command())}`",
            f"- Python {platform.python_version()}, {versions}",
            f"- {platform.machine()}, {os.cpu_count()} cores, {threads}",
            f"- {times}",
            "",
        ]
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except ImportError:  # PackageNotFoundError: run from the source tree
        return "(source tree)"


def _command() -> list[str]:
    return sys.orig_argv[1:]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def seconds(value: float) -> str:
    """Format a time."""
    if value < 1.0:
        return f"{1e3 * value:.3g} ms"
    return f"{value:.3g} s"
