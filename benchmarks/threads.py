"""One BLAS thread beside BLAS at its default, on an idle and on a busy machine.

    python -m benchmarks.threads

Both ways in turns in one process, with the guard of `finalist.compiled.threads` and without. Wall
time counts here: threads that wait for each other are the cost. A busy machine is this one with
other processes that compute on every core.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from benchmarks.harness import THREAD_VARIABLES, Report, Table, seconds

RESULTS = Path(__file__).parent / "results" / "threads.md"
#: Turns of each way.
TURNS = 7
#: On a busy machine the guard is at least so many times faster.
PROMISED = 3.0
_BURN = "while True: sum(range(10**6))"


def without_variables() -> None:
    """Start this program again with every number of threads at its default."""
    if any(name in os.environ for name in THREAD_VARIABLES):
        env = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env)


@contextmanager
def busy() -> Iterator[None]:
    """Compute on every core in other processes."""
    others = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def cases() -> dict[str, Callable[[], object]]:
    """Return what is measured, by its name."""
    import numpy as np

    import finalist as fl

    rng = np.random.default_rng(0)
    large, small = rng.standard_normal((10_000, 20)), rng.standard_normal((50, 4))
    many = fl.Arms(rng.standard_normal((300, 10)))
    arms = fl.Arms(small)

    def study() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            fl.Study.create(f"{folder}/lab.db", "lab", arms, sigma=8.0, seed=1) as made,
        ):
            for _ in range(5):
                made.tell({pull.pull_id: 0.5 for pull in made.ask(96)})
            made.status(forecast=False)

    return {
        "arms and G design, 10,000 x 20": lambda: fl.optimal_design(fl.Arms(large), "g"),
        "XY design, 300 x 10": lambda: fl.optimal_design(many, "xy"),
        "a study of 480 pulls, 50 x 4": study,
    }


def wall(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measured(call: Callable[[], object], turns: int) -> tuple[list[float], list[float]]:
    """Return the seconds with the guard and without, in turns."""
    from finalist.compiled import threads

    call()
    guarded, free = [], []
    for _ in range(turns):
        guarded.append(wall(call))
        plain, threads.LARGEST = threads.LARGEST, -1
        try:
            free.append(wall(call))
        finally:
            threads.LARGEST = plain
    return guarded, free


def main() -> int:
    """Measure on an idle and on a busy machine."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=TURNS)
    turns = parser.parse_args().turns
    without_variables()
    how = "all used where a line says so", "Times are medians of wall time, both ways in turns."
    report, rows = Report("One BLAS thread or the default", how), []
    for name, call in cases().items():
        for words, machine in (("as it was", nullcontext), ("busy", busy)):
            load = os.getloadavg()[0]
            with machine():
                guarded, free = measured(call, turns)
            one, default = statistics.median(guarded), statistics.median(free)
            spread = f"{seconds(min(free))} to {seconds(max(free))}"
            words += f", load {load:.0f} before" if machine is not busy else ""
            rows.append(
                (name, words, seconds(one), seconds(default), spread, f"{default / one:.1f}")
            )
            if machine is busy and name.startswith("arms and G"):
                report.at_least(f"{name}, busy", default / one, PROMISED)
    columns = ("what", "machine", "one thread", "default", "default, from and to", "ratio")
    cores = os.cpu_count()
    note = (
        f"Wall time, medians of {turns} turns; the default is one thread for each of {cores} cores."
    )
    report.add(Table("One thread around solvers and studies", columns, rows, note))
    return report.finish(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
