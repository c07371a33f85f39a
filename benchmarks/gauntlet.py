"""How many pulls the gauntlet needs, over what no method can do without.

    python -m benchmarks.gauntlet [--runs 200] [--jobs -1] [--only sphere] [--store FILE]

Two sets of instances: those that settings were tuned on, and others held out. Mean pulls over
T* kl(delta, 1 - delta), with standard errors, at delta = 0.05 and 0.001. Results are kept in a
store, so a stopped run goes on where it was; writes benchmarks/results/gauntlet.md. The exit code
is 1 when a target is missed.
"""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests import instances

import finalist as fl
from benchmarks.harness import Report, Table, Target
from finalist.simulation import Simulation
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.store import Store

RESULTS = Path(__file__).parent / "results" / "gauntlet.md"
DELTAS = (0.05, 0.001)
#: Geometric means to stay below, and the most that a single run may need.
PROMISED = {0.05: 2.3, 0.001: 1.7}
WORST = 15.0


class Instance(NamedTuple):
    """Arms with the parameter that makes their rewards; sigma is 1."""

    features: np.ndarray
    theta: np.ndarray


def between(X: np.ndarray, share: float = 0.2) -> Instance:
    """Let the parameter lie between the two closest arms, nearer to one of them."""
    distance = np.linalg.norm(X[:, None] - X, axis=2) + 1e9 * np.eye(len(X))
    i, j = np.unravel_index(int(distance.argmin()), distance.shape)
    return Instance(X, X[i] + share * (X[j] - X[i]))


def fan(K: int, seed: int) -> Instance:
    """Many arms in the plane around a diagonal, and one good arm far from them (Fiez 2019)."""
    angles = np.pi / 4 + np.random.default_rng(seed).normal(0.0, 0.3, K - 2)
    angles = np.concatenate([[0.0, 3 * np.pi / 4], angles])
    return Instance(np.column_stack([np.cos(angles), np.sin(angles)]), np.array([1.0, 0.0]))


def random_theta(X: np.ndarray, seed: int) -> Instance:
    """Draw the direction of a parameter of length 1."""
    v = np.asarray(np.random.default_rng(seed).standard_normal(X.shape[1]))
    return Instance(X, np.asarray(v / np.linalg.norm(v)))


TUNED: dict[str, Callable[[], Instance]] = {
    "paper, omega = 0.1": lambda: Instance(*instances.paper(5, 0.1)),
    "paper, omega = 0.01": lambda: Instance(*instances.paper(5, 0.01)),
    "sphere, 20 x 5": lambda: between(instances.unit_sphere(20, 5, 1)),
    "sphere, 50 x 5": lambda: between(instances.unit_sphere(50, 5, 2)),
    "sphere, 50 x 10": lambda: between(instances.unit_sphere(50, 10, 3)),
    "unstructured, 1 close": lambda: Instance(np.eye(10), np.array([1.0, 0.8, *[0.0] * 8])),
    "unstructured, 5 close": lambda: Instance(
        np.eye(10), np.array([1.0, 0.8, 0.79, 0.78, 0.77, 0.76, *[0.0] * 4])
    ),
    "Gaussian, 100 x 8": lambda: random_theta(instances.gaussian(100, 8, 4), 5),
    "cube, 2^6": lambda: Instance(
        instances.hypercube(6), np.array([0.25, 0.2, 0.15, 0.15, 0.1, 0.1])
    ),
    "plane, 60 arms": lambda: fan(60, 11),
}
HELD_OUT: dict[str, Callable[[], Instance]] = {
    "paper, d = 8, omega = 0.03": lambda: Instance(*instances.paper(8, 0.03)),
    "sphere, 30 x 6": lambda: between(instances.unit_sphere(30, 6, 21)),
    "sphere, 80 x 4": lambda: random_theta(instances.unit_sphere(80, 4, 22), 23),
    "unstructured, geometric gaps": lambda: Instance(
        np.eye(8), 1.0 - 0.1 * 1.6 ** np.arange(8) * (np.arange(8) > 0)
    ),
    "Gaussian, 40 x 12": lambda: random_theta(instances.gaussian(40, 12, 24), 25),
    "factorial, 3 x 3 x 4": lambda: Instance(
        instances.one_hot_factorial((3, 3, 4)),
        np.array([0.0, 0.5, 0.2, 0.0, 0.4, 0.3, 0.0, 0.6, 0.3, 0.1, 0.0]),
    ),
    "quadratic, 2 factors": lambda: Instance(
        instances.quadratic_grid(2, 5), np.array([0.0, 0.3, 0.2, -0.5, -0.4, 0.1])
    ),
    "plane, 40 arms": lambda: fan(40, 26),
}


class Cell(NamedTuple):
    """What came out on one instance."""

    name: str
    bound: float
    result: Simulation

    @property
    def ratios(self) -> np.ndarray:
        """Pulls of each run over the lower bound."""
        return np.asarray(self.result.samples / self.bound)

    def row(self) -> tuple[str, ...]:
        """Return the line of the table."""
        q, result = self.ratios, self.result
        wrong = int((result.decided & ~result.correct).sum())
        error = q.std(ddof=1) / math.sqrt(len(q))
        return (
            self.name,
            f"{self.bound:,.0f}",
            f"{q.mean():.2f} +- {error:.2f}",
            f"{np.median(q):.2f}",
            f"{q.max():.1f}",
            f"{wrong} of {len(q)}",
            f"{result.batches.mean():.0f}",
            f"{1e3 * result.seconds.mean():.0f} ms",
        )


def measure(
    store: Store, name: str, instance: Instance, delta: float, runs: int, jobs: int
) -> Cell:
    """Simulate, or read what was simulated before."""
    arms = fl.Arms(instance.features)
    bound = fl.complexity(arms, instance.theta, delta=delta).lower_bound
    cap = int(200 * bound)
    result = store.simulate(
        arms, instance.theta, "gauntlet", delta=delta, runs=runs, n_jobs=jobs, max_pulls=cap
    )
    return Cell(name, bound, result)


def report_set(report: Report, title: str, cells: list[Cell], delta: float, promised: bool) -> None:
    """Add the table of a set of instances, and hold it to what is promised."""
    columns = ("instance", "lower bound", "pulls / bound", "median", "most", "wrong", "batches")
    mean = math.exp(float(np.mean([math.log(cell.ratios.mean()) for cell in cells])))
    note = f"Geometric mean of the means: {mean:.3f}."
    rows = [cell.row() for cell in cells]
    report.add(Table(f"{title}, delta = {delta}", (*columns, "CPU of a run"), rows, note))
    kept = all(
        exact_lower_bound(int((c.result.decided & ~c.result.correct).sum()), len(c.ratios), 0.999)
        <= delta
        for c in cells
    )
    report.targets.append(Target(f"{title}, {delta}: errors", "delta kept", str(kept), kept))
    if promised:
        text = f"at most {PROMISED[delta]}", f"{mean:.3f}"
        met = mean <= PROMISED[delta]
        report.targets.append(Target(f"{title}, {delta}: geometric mean", *text, met))
    worst = max(float(cell.ratios.max()) for cell in cells)
    text = f"at most {WORST:g} times the bound", f"{worst:.1f}"
    report.targets.append(Target(f"{title}, {delta}: worst run", *text, worst <= WORST))


def main() -> int:
    """Measure both sets at both deltas."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=200)
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
    path = RESULTS if words.only is None else RESULTS.with_name("gauntlet-partial.md")
    return report.finish(path)


if __name__ == "__main__":
    sys.exit(main())
