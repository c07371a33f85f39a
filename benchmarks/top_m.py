"""How many measurements do the m best take? A portfolio for sets beside tests of all pairs.

    python -m benchmarks.top_m [--runs 200] [--jobs 1]

Problems with more sets than can be listed, so that rules 3 test all pairs and rules 4 have a
portfolio; one that is small, so that its sets are listed too. The constants of the portfolio were
chosen on the first set; the second was not looked at before. Writes benchmarks/results/top-m.md.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import finalist as fl
from benchmarks.harness import ONE_THREAD, Report, Table, single_thread
from finalist.problem.rules import rules_of
from finalist.simulation import Simulation
from finalist.strategies.gauntlet import top

RESULTS = Path(__file__).parent / "results" / "top-m.md"


class Case(NamedTuple):
    """The m best of K arms on a sphere in d dimensions, or of K without features (d = K)."""

    K: int
    d: int
    m: int
    seed: int
    sigma: float

    def truth(self) -> tuple[fl.Arms, np.ndarray]:
        """Return the arms and theta; without features the m best lead by .2 or more."""
        rng = np.random.default_rng(self.seed)
        if self.d == self.K:
            theta = np.sort(rng.standard_normal(self.K))[::-1].copy()
            theta[self.m :] -= 0.2
            return fl.Arms(np.eye(self.K)), theta
        X = rng.standard_normal((self.K, self.d))
        arms = fl.Arms(X / np.linalg.norm(X, axis=1, keepdims=True))
        return arms, np.array([1.0, 0.5, -0.3]) if self.seed == 2313 else rng.standard_normal(
            self.d
        )

    @property
    def title(self) -> str:
        """One line for people."""
        what = "no features" if self.d == self.K else f"{self.d} features"
        return f"the {self.m} best of {self.K}, {what}"


TUNED = (
    Case(12, 3, 2, 2313, 1.0),
    Case(12, 3, 3, 2313, 1.0),
    Case(50, 5, 5, 1, 0.3),
    Case(20, 20, 4, 3, 0.3),
    Case(40, 4, 10, 4, 0.3),
)
HELD_OUT = (
    Case(40, 6, 3, 11, 0.3),
    Case(60, 4, 4, 12, 0.2),
    Case(100, 8, 5, 13, 0.1),
    Case(30, 30, 5, 14, 0.3),
)


def measured(case: Case, rules: int, most: int, runs: int, jobs: int) -> Simulation:
    """Simulate a case with so many sets listed at most."""
    arms, theta = case.truth()
    before, top.MAX_SETS = top.MAX_SETS, most
    try:
        problem = fl.Problem(
            arms, noise=fl.Gaussian(case.sigma), goal=fl.TopM(case.m), rules=rules_of(rules)
        )
        return fl.simulate(problem, theta, runs=runs, seed=1, n_jobs=jobs)
    finally:
        top.MAX_SETS = before


def main() -> int:
    """Measure, print and write."""
    single_thread()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    words = parser.parse_args()
    report = Report("The m best", (ONE_THREAD, "Mean measurements with standard errors."))
    for name, cases in (("tuned", TUNED), ("held out", HELD_OUT)):
        rows, ratios, wrong = [], [], 0
        for case in cases:
            listed = measured(case, 4, 5000, words.runs, words.jobs) if case.K == 12 else None
            pairs, ours = (measured(case, n, 0, words.runs, words.jobs) for n in (3, 4))
            parts = [ours, pairs] if listed is None else [ours, pairs, listed]
            wrong += ours.errors
            said = [
                f"{r.samples.mean():,.0f} +- {r.samples.std() / len(r.samples) ** 0.5:,.0f}"
                for r in parts
            ]
            ratio = ours.samples.mean() / pairs.samples.mean()
            ratios.append(ratio)
            rows.append((case.title, *said, *([""] if listed is None else []), f"{ratio:.2f}"))
        mean = float(np.exp(np.mean(np.log(ratios))))
        report.below(f"measurements of those with pairs, {name}: geometric mean", mean, 0.8, "")
        note = f"{words.runs} runs each at delta = 0.05; {wrong} of the portfolio's were wrong."
        columns = ("problem", "portfolio", "all pairs", "sets listed", "of those with pairs")
        report.add(Table(f"Measurements, {name}", columns, rows, note))
    return report.finish(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
