"""The first seconds and the size of an installation, beside 0.1.0 in one run.

    python -m benchmarks.cold_start [--fresh 3] [--cached 5]

Both are built as wheels from their commits and installed into clean environments, 0.1.0 with what
it needs today; sizes are without bytecode, times with it. Each time is the CPU of a whole process,
user and system, the two in turns: a first study on a machine on which nothing is compiled, a new
process on a study of a thousand pulls, the command. 0.1.0 forecasts whenever it is asked for a
status; now that is done when somebody looks at the forecast.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ONE_THREAD, THREAD_VARIABLES, Report, Table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cold-start.md"
#: The commit that released 0.1.0.
FIRST = "8046a03"
#: What is promised beside 0.1.0, and megabytes.
PARTS = {"fresh": 0.4, "cached": 1 / 3, "status --no-forecast": 0.5}
MEGABYTES, DEMO = 420.0, 560.0

#: A study of 50 arms with 4 features that does not end soon.
STUDY = """
import sys
import numpy as np
import finalist as fl
do, path, batches, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(0)
X = rng.standard_normal((50, 4))
means = dict(zip((f"a{i}" for i in range(50)), X @ [0.1, 0.05, -0.03, 0.02]))
if do == "create":
    arms = fl.Arms(X, list(means))
    study = fl.Study.create(path, "cold", arms, sigma=8.0, seed=3)
else:
    study = fl.Study.open(path, "cold")
for number in range(batches):
    noise = np.random.default_rng(number).normal(0.0, 8.0, 10 * size)
    told = enumerate(study.ask(size=size))
    study.tell({pull.pull_id: means[pull.arm] + noise[i] for i, pull in told})
status = study.status()
assert status.verdict == "continue"
if "read" in sys.argv:
    assert status.forecast is not None
"""


@dataclass(frozen=True)
class Installation:
    """An environment with a finalist, and a study of a thousand pulls made by it."""

    name: str
    place: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.place / "bin" / "python")

    @property
    def study(self) -> Path:
        """The database with its study."""
        return self.place / "thousand.db"

    def megabytes(self) -> float:
        """Return what it takes on the disk, without bytecode."""
        files = (Path(f, name) for f, _, names in os.walk(self.place) for name in names)
        some = (f for f in files if f.suffix != ".pyc" and not f.is_symlink())
        return sum(file.stat().st_size for file in some) / 2**20

    def distributions(self) -> int:
        """Return how many there are, with finalist and pip."""
        return len(list(self.place.glob("lib/python*/site-packages/*.dist-info")))


def source(commit: str, folder: Path) -> Path:
    """Return a folder with a commit."""
    target = folder / commit
    target.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
    return target


def installed(name: str, what: str, folder: Path) -> Installation:
    """Install something into a clean environment, as wheels and without bytecode."""
    found = Installation(name, folder / name)
    subprocess.run([sys.executable, "-m", "venv", str(found.place)], check=True)
    pip = [found.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, "--no-compile", *constraints, what], check=True)
    return found


def cpu(command: Sequence[str], *, compiled: Path, codes: tuple[int, ...] = (0,)) -> float:
    """Return the CPU seconds of a process, whose compiled code is in a folder."""
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    environment |= {"NUMBA_CACHE_DIR": str(compiled), "PYTHONDONTWRITEBYTECODE": ""}
    environment.pop("PYTHONPATH", None)  # what is installed is measured, nothing else
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, cwd=compiled.parent, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def fresh(one: Installation, batches: int, *more: str) -> float:
    """Create a study, measure some batches and look, where nothing is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "fresh.db"))
        command = [one.python, "-c", STUDY, "create", path, str(batches), "24", *more]
        return cpu(command, compiled=Path(folder, "compiled"))


def cached(one: Installation, *more: str) -> float:
    """Open a copy of a study of a thousand pulls, measure a batch and look."""
    copy = one.place / "copy.db"
    shutil.copy(one.study, copy)
    command = [one.python, "-c", STUDY, "open", str(copy), "1", "24", *more]
    return cpu(command, compiled=one.place / "compiled")


def status(one: Installation, *more: str) -> float:
    """Look at that study with the command."""
    program = str(one.place / "bin" / "finalist")
    command = [program, "status", "cold", "--db", str(one.study), *more]
    return cpu(command, compiled=one.place / "compiled", codes=(10,))


def prepare(one: Installation) -> None:
    """Write bytecode, make the study, and compile what is measured later."""
    command = [one.python, "-c", STUDY, "create", str(one.study), "10", "100"]
    cpu(command, compiled=one.place / "compiled")
    cached(one, "read")
    status(one)


def medians(
    first: Installation, now: Installation, runs: int, call: Callable[[Installation], float]
) -> tuple[float, float]:
    """Return the median of each, measured in turns."""
    found = [[call(one) for one in (first, now)] for _ in range(runs)]
    before, after = zip(*found, strict=True)
    return statistics.median(before), statistics.median(after)


def times(
    report: Report, first: Installation, now: Installation, *, compiling: int, other: int
) -> None:
    """Measure the first seconds, with so many runs of what compiles and of the rest."""
    what: dict[str, tuple[str, int, Callable[[Installation], float]]] = {
        "fresh, pilot only": ("create, ask, tell, status", compiling, lambda one: fresh(one, 1)),
        "fresh": ("the same over three batches", compiling, lambda one: fresh(one, 3)),
        "fresh, forecast read": ("and its forecast", compiling, lambda one: fresh(one, 3, "read")),
        "cached": ("open, ask, tell, status; 1,000 pulls", other, cached),
        "cached, forecast read": ("and its forecast", other, lambda one: cached(one, "read")),
        "status": ("`finalist status`", other, status),
        "status --no-forecast": (
            "`finalist status --no-forecast`",
            other,
            lambda one: status(one, "--no-forecast"),
        ),
    }
    rows = []
    for name, (words, runs, call) in what.items():
        before, after = medians(first, now, runs, call)
        rows.append((name, words, f"{before:.2f} s", f"{after:.2f} s", f"{after / before:.2f}"))
        if name in PARTS:
            report.below(f"{name}, part of 0.1.0", after / before, PARTS[name], "")
    note = (
        f"CPU seconds, user and system, of whole processes, medians in turns ({compiling} runs of "
        f"what is fresh, {other} of the rest); 50 arms with 4 "
        "features, the gauntlet. 'Fresh' has bytecode and no compiled loops."
    )
    columns = ("", "what", "0.1.0", "now", "ratio")
    report.add(Table("The first seconds", columns, rows, note))


def sizes(report: Report, found: Sequence[Installation]) -> None:
    """Measure what is installed."""
    rows = [(one.name, f"{one.megabytes():.0f} MB", str(one.distributions())) for one in found]
    note = "Whole environments without bytecode; finalist and pip count as distributions."
    report.add(Table("Size", ("installation", "size", "distributions"), rows, note))
    by_name = {one.name: one.megabytes() for one in found}
    report.below("the core", by_name["core"], MEGABYTES, "MB")
    report.below("what `make demo` installs", by_name["charts,tables"], DEMO, "MB")


def main() -> int:
    """Build, install, measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--now", default="HEAD", help="the commit to measure")
    parser.add_argument("--fresh", type=int, default=3, help="runs of what compiles")
    parser.add_argument("--cached", type=int, default=5, help="runs of the rest")
    asked = parser.parse_args()
    report = Report("The first seconds and the size", (ONE_THREAD, "Both versions in turns."))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old, new = source(FIRST, folder), source(asked.now, folder)
        found = [installed("0.1.0", str(old), folder)]
        for extra in ("core", "charts,tables", "all"):
            what = str(new) if extra == "core" else f"{new}[{extra}]"
            found.append(installed(extra, what, folder))
        sizes(report, found)
        for one in found[:2]:
            prepare(one)
        times(report, *found[:2], compiling=asked.fresh, other=asked.cached)
    return report.finish(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
