"""How many pulls the gauntlet needs, over a lower bound on their mean.

    python -m benchmarks.gauntlet [--runs N] [--jobs -1] [--store FILE] [--set held-out]
        [--only sphere] [--bound 5 20] [--delta 0.05] [--rules 3]

Families of instances, scaled to lower bounds of 5 to 1,000 pulls, and instances that stand alone;
each in a set that settings were tuned on and in one held out. Mean pulls over T* kl(delta, 1 -
delta), with standard errors, at delta = 0.05 and 0.001, beside the rules of version 0.1.0. Results
are kept in a store, so a stopped run goes on where it was; runs by the newest rules are computed
again when the code changes. Then the CPU of runs and of decisions with many arms, both rules in
turns. Writes benchmarks/results/gauntlet.md, or gauntlet-partial.md for a part. The exit code is
1 when a target is missed.
"""

import argparse
import sys
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from benchmarks.gauntlet import cpu, families
from benchmarks.gauntlet.cells import FIRST_RULES, CodeStore, measure
from benchmarks.gauntlet.families import BOUNDS, DELTAS, RUNS, RUNS_ALONE, SETS, Spec
from benchmarks.gauntlet.report import (
    TITLES,
    Pair,
    report_alone,
    report_cpu,
    report_families,
    report_large,
)
from benchmarks.harness import Report, console
from finalist.lab.store import Store
from finalist.problem.rules import NEWEST, rules_of

RESULTS = Path(__file__).parents[1] / "results" / "gauntlet.md"


def measured(
    specs: Iterable[Spec], numbers: list[int], runs: int, jobs: int, store: Store | None
) -> list[Pair]:
    """Measure cells by the rules of some numbers, with a line for each."""
    pairs = []
    for spec in specs:
        found = {}
        for number in numbers:
            begin = time.perf_counter()
            cell = measure(spec, rules_of(number), runs=runs, jobs=jobs, store=store)
            passed = time.perf_counter() - begin
            console.print(f"{cell.line()} ({passed:.1f} s)", highlight=False, soft_wrap=True)
            found[number] = cell
        newest = found[max(found)]
        pairs.append(Pair(newest, found.get(FIRST_RULES.number) if len(found) > 1 else None))
    return pairs


def cpu_groups() -> dict[str, cpu.Seconds]:
    """Measure the CPU of runs on the held-out set, in turns with 0.1.0."""
    groups = {}
    for delta, size in product(DELTAS, BOUNDS):
        specs = families.families(["held-out"], [size], [delta])
        groups[f"families, bound {size:,}, delta {delta:g}"] = cpu.of_runs(specs, turns=1)
    for delta in DELTAS:
        specs = families.those_alone(["held-out"], [delta])
        groups[f"{TITLES['held-out'].lower()}, delta {delta:g}"] = cpu.of_runs(specs, turns=5)
    for size in (20, 200):
        specs = families.families(["held-out"], [size], [0.05])
        groups[f"sigma unknown, bound {size:,}"] = cpu.of_unknown_sigma(specs, turns=1)
    for K in (5, 20):
        groups[f"margin of 0.5, {K} arms"] = cpu.of_margins(K, turns=5)
        groups[f"budget of {20 * K}, {K} arms"] = cpu.of_budgets(K, turns=5)
    return groups


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    alone = f"on each instance: {RUNS} on one of a family, {RUNS_ALONE:,} on one that stands alone"
    parser.add_argument("--runs", type=int, help=alone)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("gauntlet.sqlite"))
    parser.add_argument("--set", choices=SETS, help="by default both")
    parser.add_argument("--only", default="", help="part of the name of a family or an instance")
    parser.add_argument("--bound", type=int, nargs="+", choices=BOUNDS, help="families only")
    parser.add_argument("--delta", type=float, nargs="+", choices=DELTAS)
    both = sorted({FIRST_RULES.number, NEWEST.number})
    parser.add_argument("--rules", type=int, nargs="+", default=both, help="numbers of rules")
    return parser.parse_args()


def main() -> int:
    """Measure what is asked for; CPU and many arms only when everything is."""
    words = arguments()
    whole = not (words.set or words.only or words.bound or words.delta)
    report = Report("The gauntlet: pulls over the lower bound")
    deltas = words.delta or DELTAS
    with CodeStore(words.store) as store:
        for which in [words.set] if words.set else SETS:
            specs = families.families([which], words.bound or BOUNDS, deltas, words.only)
            how = words.rules, words.runs or RUNS, words.jobs, store
            report_families(report, which, measured(specs, *how))
            if words.bound is None:
                specs = families.those_alone([which], deltas, words.only)
                how = words.rules, words.runs or RUNS_ALONE, words.jobs, store
                report_alone(report, which, measured(specs, *how))
    if whole:
        report_cpu(report, cpu_groups())
        report_large(report)
    return report.finish(RESULTS if whole else RESULTS.with_name("gauntlet-partial.md"))


if __name__ == "__main__":
    sys.exit(main())
