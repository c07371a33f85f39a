"""How often the arm named after a fixed budget is wrong: the gauntlet and its rivals in one run.

    python -m benchmarks.budgets [--runs 10000] [--jobs -1] [--store FILE] [--only WORD ...]

Errors with exact 95 % bounds and simple regret on the paper's instance, spheres, factorials, arms
without features and yes/no rewards, at budgets at which uniform errs in .4 and .15 of the runs, and
at 2 and 4 pulls for each dimension. Settings may be tuned on one set of instances, the other is
held out. Arms are permuted in every run. Uniform, G, XY and the static oracle, which knows theta,
are fixed allocations with least squares at the end, simulated in closed form; the pair limit is
`fl.pair_limit`. What is slow has a part of the runs, what is not at least 10,000, as the tables
say. Results are kept in a store; a stopped run goes on where it was, and `--stored` reports what is
there without simulating more. Writes benchmarks/results/budgets.md, or budgets-partial.md with
`--only` or `--columns`. The exit code is 1 when a target is missed.
"""

import argparse
import sys
import time
from pathlib import Path

from benchmarks.budgets.cells import Cell, cells
from benchmarks.budgets.cpu import K, of_planning
from benchmarks.budgets.report import Limits, Results, add_tables, add_targets, share
from benchmarks.budgets.rivals import COLUMNS, applies, limit, measure, runs_of, runs_stored
from benchmarks.gauntlet.cells import CodeStore
from benchmarks.harness import Report, Target, console

RESULTS = Path(__file__).parents[1] / "results" / "budgets.md"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("budgets.sqlite"))
    parser.add_argument("--only", nargs="+", help="cells whose label has one of these words in it")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--stored", action="store_true", help="report only what the store has")
    parser.add_argument("--list", action="store_true", help="print the labels of the cells")
    return parser.parse_args()


def chosen(only: list[str] | None) -> list[Cell]:
    """Return the cells asked for."""
    found = cells()
    if only is None:
        return found
    return [cell for cell in found if any(word in cell.label for word in only)]


def measured(words: argparse.Namespace) -> tuple[Results, Limits]:
    """Measure cell by cell, and say what came out."""
    asked, results, limits = chosen(words.only), {}, {}
    with CodeStore(words.store) as store:
        for number, cell in enumerate(asked, start=1):
            found, begin = {}, time.perf_counter()
            for column in words.columns:
                if applies(column, cell):
                    runs = runs_of(column, cell, words.runs)
                    if words.stored:
                        runs = runs_stored(cell, column, runs, store)
                    if runs > 0:
                        found[column] = measure(cell, column, runs, words.jobs, store)
            results[cell], limits[cell] = found, limit(cell)
            shown = ", ".join(f"{name} {share(one.rate)}" for name, one in found.items())
            took = f"{time.perf_counter() - begin:.0f} s"
            console.print(
                f"{number} of {len(asked)}, {cell.label}: {shown}, limit {share(limits[cell])}"
                f" ({took})",
                highlight=False,
            )
    return results, limits


def add_cpu(report: Report) -> None:
    """Add what planning costs with many arms."""
    budgeted, ordinary = of_planning()
    report.targets.append(
        Target(
            f"CPU of choosing a batch, K = {K:,}",
            "at most that without a budget",
            f"{1e3 * budgeted:.0f} ms, without {1e3 * ordinary:.0f} ms",
            budgeted <= ordinary,
        )
    )


def main() -> int:
    """Measure, print and write."""
    words, report = arguments(), Report("The best after a budget")
    if words.list:
        for cell in chosen(words.only):
            console.print(f"{cell.label} ({cell.kind})", highlight=False)
        return 0
    results, limits = measured(words)
    add_tables(report, results, limits, words.runs)
    add_targets(report, results)
    whole = words.only is None and set(words.columns) == set(COLUMNS)
    if whole:
        add_cpu(report)
    return report.finish(RESULTS if whole else RESULTS.with_stem("budgets-partial"))


if __name__ == "__main__":
    sys.exit(main())
