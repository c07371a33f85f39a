"""How often a recommendation after a fixed budget is wrong, strategy by strategy.

    python -m benchmarks.budgets [--runs 1000] [--jobs 1]

Error rates with exact 95 % bounds on two instances of two kinds, and how often the gauntlet, cut
at the budget, was certain. Writes benchmarks/results/budgets.md.
"""

import argparse
import sys
from pathlib import Path

import finalist as fl
from benchmarks.harness import Report, Table, Target
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.instances import Instance, paper, unstructured

DELTA = 0.05
RESULTS = Path(__file__).parent / "results" / "budgets.md"
STRATEGIES = ("gauntlet", "peace", "g-budget", "od-linbai", "gse")
CASES: tuple[tuple[Instance, tuple[int, ...]], ...] = (
    (paper(5, 0.1), (100, 500, 2000, 8000)),
    (unstructured([0.5, 0.3, *[0.0] * 6]), (64, 256, 1024)),
)


def measure(
    report: Report, instance: Instance, budgets: tuple[int, ...], runs: int, jobs: int
) -> None:
    """Simulate every strategy at every budget; what is certain must be right."""
    rows, most = [], 0.0
    for budget in budgets:
        results = {
            name: fl.simulate(
                instance.arms,
                instance.theta,
                name,
                delta=DELTA,
                budget=budget,
                runs=runs,
                n_jobs=jobs,
                sigma=1.0,
            )
            for name in STRATEGIES
        }
        cells = []
        for result in results.values():
            low, high = result.error_bounds()
            cells.append(f"{1 - result.correct.mean():.3f} ({low:.3f} to {high:.3f})")
        ours = results["gauntlet"]
        wrong = int((ours.certain & ~ours.correct).sum())
        most = max(most, exact_lower_bound(wrong, runs, 0.999))
        certain = f"{ours.certain.mean():.0%}, {ours.samples.mean():,.0f} pulls"
        rows.append((f"{budget:,}", *cells, certain))
    columns = ("budget", *STRATEGIES, "gauntlet certain")
    note = f"Share of {runs:,} runs with a wrong recommendation, exact 95 % bounds; sigma = 1."
    report.add(Table(instance.name, columns, rows, note))
    promised = f"at most delta = {DELTA:g}"
    name = f"{instance.name}: certain and wrong, gauntlet"
    report.targets.append(Target(name, promised, f"at least {most:.4f} (99.9 %)", most <= DELTA))


def main() -> int:
    """Measure, print and write."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    words = parser.parse_args()
    report = Report("Recommendations after a fixed budget")
    for instance, budgets in CASES:
        measure(report, instance, budgets, words.runs, words.jobs)
    return report.finish(RESULTS)


if __name__ == "__main__":
    sys.exit(main())
