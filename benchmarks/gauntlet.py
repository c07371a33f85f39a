"""How many pulls the gauntlet needs, over a lower bound on their mean.

    python -m benchmarks.gauntlet [--runs 1000] [--jobs -1] [--only sphere] [--store FILE]

Two sets of instances: those that settings were tuned on, and others held out. Mean pulls over
T* kl(delta, 1 - delta), with standard errors, at delta = 0.05 and 0.001. Results are kept in a
store, so a stopped run goes on where it was. Then the CPU of runs and decisions with many arms.
Writes benchmarks/results/gauntlet.md. The exit code is 1 when a target is missed.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import finalist as fl
from benchmarks.harness import Report, Table, Target
from finalist.lab.store import Store
from finalist.problem import as_problem
from finalist.simulation import Simulation, instances
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.instances import Instance, between, fan, given, random_theta, unstructured
from finalist.simulation.rewards import DrawnRewards

RESULTS = Path(__file__).parent / "results" / "gauntlet.md"
DELTAS = (0.05, 0.001)
#: Geometric means to stay below, and the most that a single run may need.
PROMISED = {0.05: 2.3, 0.001: 1.7}
WORST = 15.0
#: CPU seconds to stay below: a run with K <= 50 and d <= 10, one with K = 1,000 and d = 20, and a
#: decision (the next batch, and its rewards turned into evidence) with d = 20.
SMALL_RUN, LARGE_RUN, DECISIONS = 0.15, 5.0, {10_000: 2.0, 100_000: 10.0}


TUNED: dict[str, Callable[[], Instance]] = {
    "paper, omega = 0.1": lambda: instances.paper(5, 0.1),
    "paper, omega = 0.01": lambda: instances.paper(5, 0.01),
    "sphere, 20 x 5": lambda: between(instances.unit_sphere(20, 5, 1)),
    "sphere, 50 x 5": lambda: between(instances.unit_sphere(50, 5, 2)),
    "sphere, 50 x 10": lambda: between(instances.unit_sphere(50, 10, 3)),
    "unstructured, 1 close": lambda: unstructured([1.0, 0.8, *[0.0] * 8]),
    "unstructured, 5 close": lambda: unstructured([1.0, 0.8, 0.79, 0.78, 0.77, 0.76, *[0.0] * 4]),
    "Gaussian, 100 x 8": lambda: random_theta(instances.gaussian(100, 8, 4), 5),
    "cube, 2^6": lambda: given("cube", instances.hypercube(6), [0.25, 0.2, 0.15, 0.15, 0.1, 0.1]),
    "plane, 60 arms": lambda: fan(60, 11),
}
HELD_OUT: dict[str, Callable[[], Instance]] = {
    "paper, d = 8, omega = 0.03": lambda: instances.paper(8, 0.03),
    "sphere, 30 x 6": lambda: between(instances.unit_sphere(30, 6, 21)),
    "sphere, 80 x 4": lambda: random_theta(instances.unit_sphere(80, 4, 22), 23),
    "unstructured, geometric gaps": lambda: unstructured(
        1.0 - 0.1 * 1.6 ** np.arange(8) * (np.arange(8) > 0)
    ),
    "Gaussian, 40 x 12": lambda: random_theta(instances.gaussian(40, 12, 24), 25),
    "factorial, 3 x 3 x 4": lambda: given(
        "factorial",
        instances.one_hot_factorial((3, 3, 4)),
        [0.0, 0.5, 0.2, 0.0, 0.4, 0.3, 0.0, 0.6, 0.3, 0.1, 0.0],
    ),
    "quadratic, 2 factors": lambda: given(
        "quadratic", instances.quadratic_grid(2, 5), [0.0, 0.3, 0.2, -0.5, -0.4, 0.1]
    ),
    "plane, 40 arms": lambda: fan(40, 26),
}


class Cell(NamedTuple):
    """What came out on one instance."""

    name: str
    rank: int
    bound: float
    result: Simulation

    @property
    def ratios(self) -> np.ndarray:
        """Pulls of each run over the lower bound."""
        return np.asarray(self.result.samples / self.bound)

    def row(self) -> tuple[str, ...]:
        """Return the line of the table."""
        q, result = self.ratios, self.result
        error = q.std(ddof=1) / math.sqrt(len(q))
        return (
            self.name,
            f"{self.bound:,.0f}",
            f"{q.mean():.2f} +- {error:.2f}",
            f"{np.median(q):.2f}",
            f"{q.max():.1f}",
            f"{result.errors} of {len(q)}",
            f"{result.batches.mean():.0f}",
            f"{1e3 * result.seconds.mean():.0f} ms",
        )


def measure(
    store: Store, name: str, instance: Instance, delta: float, runs: int, jobs: int
) -> Cell:
    """Simulate, or read what was simulated before."""
    arms = instance.arms
    bound = fl.complexity(arms, instance.theta, delta=delta, sigma=1.0).lower_bound
    cap = int(200 * bound)
    result = store.simulate(
        arms,
        instance.theta,
        "gauntlet",
        delta=delta,
        runs=runs,
        n_jobs=jobs,
        max_pulls=cap,
        sigma=1.0,
    )
    return Cell(name, arms.rank, bound, result)


def report_set(report: Report, title: str, cells: list[Cell], delta: float, promised: bool) -> None:
    """Add the table of a set of instances, and hold it to what is promised."""
    columns = ("instance", "lower bound", "pulls / bound", "median", "most", "wrong", "batches")
    mean = math.exp(float(np.mean([math.log(cell.ratios.mean()) for cell in cells])))
    note = f"Geometric mean of the means: {mean:.3f}."
    rows = [cell.row() for cell in cells]
    report.add(Table(f"{title}, delta = {delta}", (*columns, "CPU of a run"), rows, note))
    kept = all(exact_lower_bound(c.result.errors, len(c.ratios), 0.999) <= delta for c in cells)
    report.targets.append(Target(f"{title}, {delta}: errors", "delta kept", str(kept), kept))
    if promised:
        text = f"at most {PROMISED[delta]}", f"{mean:.3f}"
        met = mean <= PROMISED[delta]
        report.targets.append(Target(f"{title}, {delta}: geometric mean", *text, met))
    worst = max(float(cell.ratios.max()) for cell in cells)
    text = f"at most {WORST:g} times the bound", f"{worst:.1f}"
    report.targets.append(Target(f"{title}, {delta}: worst run", *text, worst <= WORST))


def report_small(report: Report, cells: list[Cell]) -> None:
    """Hold runs of small problems to what is promised of their CPU."""
    for cell in cells:
        K, d = cell.result.pulls_per_arm.shape[1], cell.rank
        if K <= 50 and d <= 10:
            cpu = float(cell.result.seconds.mean())
            text = f"below {SMALL_RUN:g} s", f"{cpu:.3f} s"
            report.targets.append(Target(f"CPU of a run, {cell.name}", *text, cpu < SMALL_RUN))


def report_large(report: Report) -> None:
    """Measure runs and decisions with many arms."""
    seconds = [_decide(1_000, 20, seed, math.inf) for seed in range(3)]
    whole = [sum(parts) for parts in seconds]
    rows = [("run, K = 1,000", f"{np.median(whole):.2f} s", f"{max(whole):.2f} s")]
    met = float(np.median(whole)) < LARGE_RUN
    text = f"below {LARGE_RUN:g} s", rows[-1][1]
    report.targets.append(Target("CPU of a run, K = 1,000, d = 20", *text, met))
    for K, most in DECISIONS.items():
        parts = [part for seed in range(2) for part in _decide(K, 20, seed, 4)]
        rows.append((f"decision, K = {K:,}", f"{np.median(parts):.2f} s", f"{max(parts):.2f} s"))
        text = f"below {most:g} s", rows[-1][2]
        report.targets.append(Target(f"CPU of a decision, K = {K:,}", *text, max(parts) < most))
    note = "Arms on a sphere, d = 20, a random parameter of length 1, delta = 0.05."
    report.add(Table("Many arms", ("what", "median", "most"), rows, note))


def _decide(K: int, d: int, seed: int, batches: float) -> list[float]:
    """Return the CPU seconds of each batch, decision and test, after one that warms up."""
    instance = random_theta(instances.unit_sphere(K, d, 7), seed)
    arms = instance.arms
    drawn = DrawnRewards(arms.means(instance.theta), 1.0, "gaussian", np.random.default_rng(seed))
    run = fl.Gauntlet().start(as_problem(arms, sigma=1.0), seed=seed)
    seconds: list[float] = []
    while not run.verdict.decided and len(seconds) <= batches:
        begin = time.process_time()
        batch = run.next()
        chosen = time.process_time()
        rewards = drawn.batch(batch.counts)
        drew = time.process_time()
        run.record(batch, rewards)
        seconds.append(chosen - begin + time.process_time() - drew)
    return seconds if math.isinf(batches) else seconds[1:]


def main() -> int:
    """Measure both sets at both deltas, then problems with many arms."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("gauntlet.sqlite"))
    parser.add_argument("--only", help="part of the name of an instance")
    words = parser.parse_args()
    store, report = Store(words.store), Report("The gauntlet: pulls over the lower bound")
    for delta in DELTAS:
        for title, instances_of in (("Tuned on", TUNED), ("Held out", HELD_OUT)):
            cells = [
                measure(store, name, make(), delta, words.runs, words.jobs)
                for name, make in instances_of.items()
                if words.only is None or words.only in name
            ]
            if cells:
                report_set(report, title, cells, delta, instances_of is TUNED)
                report_small(report, cells if delta == DELTAS[0] else [])
    if words.only is None:
        report_large(report)
    path = RESULTS if words.only is None else RESULTS.with_name("gauntlet-partial.md")
    return report.finish(path)


if __name__ == "__main__":
    sys.exit(main())
