"""How fast a study is: telling, opening, asking, and the memory it takes.

    python -m benchmarks.studies [--only tell]

On a SQLite file in a temporary folder, so with the disk of this machine: durable calls wait for
it. Writes benchmarks/results/studies.md. The exit code is 1 when a target is missed.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tests import instances

import finalist as fl
from benchmarks.harness import Report, Table, Target
from finalist.study import Study

RESULTS = Path(__file__).parent / "results" / "studies.md"
#: Seconds, and megabytes for the memory.
PROMISED = {
    "durable tell of one reward, p99": 0.025,
    "100,000 rewards in one tell": 2.0,
    "opening a study with 100,000 rewards": 1.0,
    "ask at K = 100,000, d = 20": 15.0,
    "memory of an open study with 1,000,000 rewards": 500.0,
}


def small(folder: str, name: str, size: int) -> tuple[Study, np.ndarray]:
    """Return a study with one open batch of that size, and the numbers of its pulls."""
    arms = fl.Arms(instances.unit_sphere(50, 5, 0))
    study = Study.create(f"{folder}/{name}.db", name, arms, sigma=1.0, seed=0)
    return study, np.array([pull.pull_id for pull in study.ask(size)])


def tell_one(folder: str) -> list[float]:
    """Return the seconds of 500 tells of one reward each, acknowledged on the disk."""
    study, pulls = small(folder, "one", 600)
    times = []
    for pull in pulls[:500]:
        begin = time.perf_counter()
        study.tell({int(pull): 0.5})
        times.append(time.perf_counter() - begin)
    return times


def tell_many(folder: str) -> list[float]:
    """Return the seconds of telling 100,000 rewards in one call."""
    times = []
    for k in range(3):
        study, pulls = small(folder, f"many{k}", 100_000)
        rewards = dict(zip(pulls.tolist(), np.sin(pulls).tolist(), strict=True))
        begin = time.perf_counter()
        study.tell(rewards)
        times.append(time.perf_counter() - begin)
        study.close()
    return times


def open_many(folder: str) -> list[float]:
    """Return the seconds of opening a study with 100,000 rewards and reading its verdict."""
    study, pulls = small(folder, "open", 100_000)
    study.tell(dict(zip(pulls.tolist(), np.sin(pulls).tolist(), strict=True)))
    study.close()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        with Study.open(f"{folder}/open.db", "open") as again:
            again.ask(96)
        times.append(time.perf_counter() - begin)
    return times


def ask_large(folder: str) -> list[float]:
    """Return the seconds of asking, with 100,000 arms, for the pilot and two batches."""
    X = instances.unit_sphere(100_000, 20, 7)
    study = Study.create(f"{folder}/large.db", "large", fl.Arms(X), sigma=1.0, seed=0)
    means, times = X @ X[0], []
    rng = np.random.default_rng(0)
    for _ in range(3):
        begin = time.perf_counter()
        batch = study.ask(96)
        times.append(time.perf_counter() - begin)
        arms = [int(pull.arm[1:]) - 1 for pull in batch]
        noise = rng.standard_normal(len(arms))
        study.tell({p.pull_id: means[a] + e for p, a, e in zip(batch, arms, noise, strict=True)})
    return times


MEMORY = """
import sys
from benchmarks.harness import peak_megabytes
from finalist.study import Study
study = Study.open(sys.argv[1], "memory")
study.status(forecast=False)
print(peak_megabytes())
"""


def memory(folder: str) -> list[float]:
    """Return the megabytes of a process, all of it, that opens a study with 10^6 rewards."""
    study, pulls = small(folder, "memory", 1_000_000)
    study.tell(dict(zip(pulls.tolist(), np.sin(pulls).tolist(), strict=True)))
    study.close()
    command = [sys.executable, "-c", MEMORY, f"{folder}/memory.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(done.stdout)]


def main() -> int:
    """Measure everything."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--only", help="part of the name of what is measured")
    words = parser.parse_args()
    report = Report("Studies on disk")
    parts = dict(zip(PROMISED, (tell_one, tell_many, open_many, ask_large, memory), strict=True))
    rows = []
    for what, measure in parts.items():
        if words.only is not None and words.only not in what:
            continue
        with tempfile.TemporaryDirectory() as folder:
            values = measure(folder)
        unit = "MB" if "memory" in what else "s"
        held = float(np.quantile(values, 0.99)) if "p99" in what else max(values)
        middle = float(np.median(values))
        rows.append((what, str(len(values)), f"{middle:.4g} {unit}", f"{held:.4g} {unit}"))
        target = PROMISED[what]
        text = f"at most {target:g} {unit}", f"{held:.4g} {unit}"
        report.targets.append(Target(what, *text, held <= target))
    columns = ("what", "repetitions", "median", "most (p99 of single tells)")
    report.add(Table("SQLite, WAL, synchronous = FULL", columns, rows, ""))
    return report.finish(RESULTS if words.only is None else RESULTS.with_name("studies-partial.md"))


if __name__ == "__main__":
    sys.exit(main())
