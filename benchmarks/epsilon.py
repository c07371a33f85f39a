"""Measurements until an arm within epsilon of the best is found, beside ranking and selection.

    python -m benchmarks.epsilon [--runs 100] [--jobs -1] [--store FILE] [--only 20]

Arms without features, K = 2 to 50, and a factorial of 3 x 3 x 4 with features; sigma is 1, delta
0.05, epsilon 0.25 and 0.5. The gauntlet, its rules of version 0.1.0 and the procedures of Kim and
Nelson (KN), Frazier (BIZ) and Bechhofer, which know no features and promise less: that the best is
found if it leads by epsilon. Truths: all others epsilon behind, equal steps of epsilon, one rival
half of epsilon behind and others 3 epsilon, random, all others half of epsilon behind, all tied.
Settings were tuned on the cells marked so, others are held out. Results are kept in a store, but
for those with an unknown sigma; a stopped run goes on where it was. Writes
benchmarks/results/epsilon.md. The exit code is 1 when a target is missed.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import finalist as fl
from benchmarks.gauntlet.cells import CodeStore
from benchmarks.harness import Report, Table, Target, console
from finalist.lab.store import Store
from finalist.problem import Problem, as_problem
from finalist.problem.rules import NEWEST, RULES
from finalist.simulation import Simulation, instances
from finalist.simulation.task import make_task

RESULTS = Path(__file__).parent / "results" / "epsilon.md"
DELTA = 0.05
#: Strategies by the name of a column; None for the rules of 0.1.0.
COLUMNS = {
    "gauntlet": "gauntlet",
    "0.1.0": None,
    "KN": "kn",
    "BIZ": "biz",
    "Bechhofer": "bechhofer",
}
TRUTHS = ("all epsilon behind", "steps", "one close rival", "random", "half epsilon behind", "tied")
#: What the settings of the portfolio were tuned on.
TUNED = {(f"{K} arms", truth, 0.5) for K in (5, 20) for truth in TRUTHS if truth != "steps"}


@dataclass(frozen=True)
class Cell:
    """Arms, expected results and an epsilon, with what came out."""

    arms: str
    truth: str
    epsilon: float
    features: np.ndarray
    theta: np.ndarray
    sigma: float | None = 1.0
    found: dict[str, Simulation] = field(default_factory=dict)

    @property
    def is_tuned(self) -> bool:
        """Whether settings were tuned on it."""
        return (self.arms, self.truth, self.epsilon) in TUNED

    def problem(self, column: str) -> Problem:
        """Return what the strategy of a column is told."""
        rules = NEWEST if COLUMNS[column] else RULES[1]
        return as_problem(
            fl.Arms(self.features), sigma=self.sigma, delta=DELTA, epsilon=self.epsilon, rules=rules
        )

    def draw(self, arm: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw rewards with a noise that strategies are not told."""
        return np.asarray(self.features[arm] @ self.theta + rng.standard_normal(n))

    def mean(self, column: str) -> float:
        """Mean measurements."""
        return float(self.found[column].samples.mean())

    def ratio(self, column: str, other: str) -> float:
        """Mean measurements over those of another."""
        return self.mean(column) / self.mean(other)

    def shown(self, column: str) -> str:
        """Mean measurements, with a standard error."""
        if column not in self.found:
            return ""
        samples = self.found[column].samples
        return f"{samples.mean():,.0f} +- {samples.std(ddof=1) / math.sqrt(len(samples)):,.0f}"


def means(truth: str, K: int, epsilon: float) -> np.ndarray:
    """Return the expected results of arms without features."""
    if truth == "random":
        drawn = -np.sort(np.random.default_rng(K).exponential(2 * epsilon, K))
        return np.asarray(drawn - drawn.max())
    behind = {"all epsilon behind": 1.0, "half epsilon behind": 0.5, "tied": 0.0}
    if truth == "steps":
        return -epsilon * np.arange(K)
    found = np.full(K, -epsilon * behind.get(truth, 3.0))
    found[0] = 0.0
    if truth == "one close rival":
        found[1] = -epsilon / 2
    return found


def bare(epsilons: Sequence[float] = (0.25, 0.5)) -> list[Cell]:
    """Return the cells of arms without features."""
    return [
        Cell(f"{K} arms", truth, epsilon, np.eye(K), means(truth, K, epsilon))
        for epsilon in epsilons
        for K in (2, 5, 10, 20, 50)
        for truth in TRUTHS
    ]


def unknown() -> list[Cell]:
    """Return cells without a known sigma, where KN has a first stage."""
    return [
        Cell(f"{K} arms", truth, 0.5, np.eye(K), means(truth, K, 0.5), sigma=None)
        for K in (5, 20)
        for truth in TRUTHS
    ]


def factorial() -> list[Cell]:
    """Return the cells of 3 x 3 x 4 settings with features: a constant and steps of each factor."""
    X = instances.one_hot_factorial((3, 3, 4))
    cells = []
    for epsilon in (0.25, 0.5):
        for truth, steps in (("steps", 1.0), ("flat", 0.5), ("rivals inside", 0.25), ("tied", 0.0)):
            best = X[0]
            theta = epsilon * steps * (2.0 * best - 1.0)
            cells.append(Cell("3 x 3 x 4", truth, epsilon, X, theta))
    return cells


def measure(cell: Cell, columns: Sequence[str], runs: int, jobs: int, store: Store) -> None:
    """Simulate the strategies of some columns."""
    for column in columns:
        problem, name = cell.problem(column), COLUMNS[column] or "gauntlet"
        if cell.sigma is None:  # what a function draws cannot be found again in a store
            cell.found[column] = fl.simulate(
                problem, cell.theta, name, runs=runs, n_jobs=jobs, progress=False, rewards=cell.draw
            )
            continue
        task = make_task(problem, cell.theta, name, rewards=None, seed=0, max_pulls=10**7)
        cell.found[column] = store.run(task, runs=runs, block=10, n_jobs=jobs, progress=False)
    shown = ", ".join(f"{column} {cell.mean(column):,.0f}" for column in columns)
    console.print(f"{cell.arms}, {cell.truth}, epsilon {cell.epsilon:g}: {shown}", highlight=False)


def table(title: str, cells: Sequence[Cell], columns: Sequence[str], note: str) -> Table:
    """Return the table of some cells."""
    others = [column for column in columns if column != "gauntlet"]
    rows = [
        (
            cell.arms,
            cell.truth,
            f"{cell.epsilon:g}",
            "tuned" if cell.is_tuned and cell.sigma else "held out",
            *(cell.shown(column) for column in columns),
            *(f"{cell.ratio('gauntlet', other):.2f}" for other in others),
            f"{(~cell.found['gauntlet'].correct).sum()} of {len(cell.found['gauntlet'])}",
        )
        for cell in cells
    ]
    heads = ("arms", "truth", "epsilon", "set", *columns, *(f"/ {other}" for other in others))
    return Table(title, (*heads, "wrong"), rows, note)


def promise(
    report: Report, title: str, cells: Sequence[Cell], other: str, most: float | None
) -> None:
    """Add a target for the geometric mean of ratios, tuned and held-out cells apart."""
    for name, some in (
        ("tuned", [cell for cell in cells if cell.is_tuned and cell.sigma]),
        ("held out", [cell for cell in cells if not (cell.is_tuned and cell.sigma)]),
    ):
        if some:
            value = math.exp(float(np.mean([math.log(c.ratio("gauntlet", other)) for c in some])))
            said = "none" if most is None else f"at most {most:g}"
            target = Target(
                f"{title}, {name}: geometric mean over {other}",
                said,
                f"{value:.3f}",
                most is None or value <= most,
            )
            report.targets.append(target)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("epsilon.sqlite"))
    parser.add_argument("--only", type=int, nargs="+", help="numbers of arms without features")
    return parser.parse_args()


def main() -> int:
    """Measure, print and write."""
    words, report = arguments(), Report("Within epsilon of the best")
    groups = (
        ("Arms without features", bare(), tuple(COLUMNS)),
        ("Sigma unknown", unknown(), ("gauntlet", "0.1.0", "KN")),
        ("Factorial with features", factorial(), ("gauntlet", "0.1.0", "KN", "BIZ")),
    )
    note = (
        f"Mean measurements with standard errors, {words.runs} runs; then the gauntlet's over each "
        "other's, and its wrong winners. KN, BIZ and Bechhofer promise nothing where others are "
        "less than epsilon behind, and know no features."
    )
    with CodeStore(words.store) as store:
        for title, cells, columns in groups:
            few = words.only
            some = [c for c in cells if few is None or len(c.features) in few]
            for cell in some:
                measure(cell, columns, words.runs, words.jobs, store)
            if some:
                report.add(table(title, some, columns, note))
            if title == "Arms without features" and some:
                promise(report, title, some, "0.1.0", 0.55)
                promise(report, title, some, "KN", 1.15)
                promise(report, title, some, "BIZ", None)
            elif title == "Sigma unknown" and some:
                promise(report, title, some, "0.1.0", None)
                promise(report, title, some, "KN", None)
            elif some:
                promise(report, title, some, "BIZ", 0.5)
                promise(report, title, some, "0.1.0", 0.55)
    return report.finish(RESULTS if words.only is None else RESULTS.with_stem("epsilon-partial"))


if __name__ == "__main__":
    sys.exit(main())
