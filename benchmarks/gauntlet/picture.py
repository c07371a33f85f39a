"""Draw how many measurements are needed, against what no rule can do without.

    python -m benchmarks.gauntlet.picture [--runs 50] [--field-runs 5] [--jobs -1] [--store FILE]
        [--trial FILE]

The held-out families of `benchmarks.gauntlet` at delta = 0.05: geometric means over families of
pulls over the lower bound, for the gauntlet, the gauntlet of 0.1.0, and other strategies. Runs are
read from the store of `make bench-gauntlet`, and those that are missing are made. Writes
docs/images/measurements.png and benchmarks/results/measurements.md.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.gauntlet.cells import (
    CAP,
    FIRST_RULES,
    Cell,
    Choice,
    CodeStore,
    geometric_mean,
    measure,
)
from benchmarks.gauntlet.families import BOUNDS, DELTAS, RUNS, SEEDS, families
from benchmarks.harness import Table, about_this_run, console
from finalist.charts.curves import Curve, curves_chart
from finalist.charts.theme import AnyChart, save
from finalist.lab.store import Store
from finalist.problem.rules import NEWEST, Rules
from finalist.simulation.instances import Instance
from finalist.strategies import RAGE, Gauntlet, LazyTS, LinGapE, XYAdaptive
from finalist.strategies.per_pull.ridge import RIDGES

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "measurements.png"
RESULTS = ROOT / "benchmarks" / "results" / "measurements.md"
DELTA = DELTAS[0]
RUNS_FIELD = 5


class Entry(NamedTuple):
    """A strategy of the picture."""

    label: str
    strategy: Choice
    rules: Rules = FIRST_RULES


def rage(instance: Instance) -> RAGE:
    """Return RAGE as its authors programmed it, told the largest gap in place of their 2."""
    means = instance.arms.means(instance.theta)
    return RAGE(first_gap=max(1.0, float(np.ptp(means)) / 2.0))


def lingape(instance: Instance) -> LinGapE:
    """Return LinGapE, told the length of theta, with the ridge that makes its bias sigma.

    The bias is sqrt(lambda) |theta|. With the usual ridge, lambda = 1, it is far above sigma on
    instances that few measurements decide, and most of the pulls would be spent on it.
    """
    found = LinGapE.knowing(instance.arms, instance.theta)
    largest = float((instance.arms.coordinates**2).sum(axis=1).max())
    return replace(found, ridge=max(RIDGES[0], 1.0 / (largest * found.theta_norm**2)))


#: At most as many as a chart can tell apart.
ENTRIES = (
    Entry("gauntlet", lambda _: Gauntlet(), NEWEST),
    Entry("gauntlet of 0.1.0", lambda _: Gauntlet()),
    Entry("XY-Adaptive", lambda _: XYAdaptive()),
    Entry("lazy track-and-stop", lambda _: LazyTS()),
    Entry("RAGE", rage),
    Entry("LinGapE", lingape),
)


def collected(
    store: Store, runs: int, runs_field: int, jobs: int
) -> dict[str, dict[int, list[Cell]]]:
    """Return the cells of all families for each strategy and bound."""
    found: dict[str, dict[int, list[Cell]]] = {}
    for label, strategy, rules in ENTRIES:
        each = runs if label.startswith("gauntlet") else runs_field
        for size in BOUNDS:
            cells = [
                measure(spec, rules, runs=each, jobs=jobs, store=store, strategy=strategy)
                for spec in families(["held-out"], [size], [DELTA])
            ]
            found.setdefault(label, {})[size] = cells
            mean, error = geometric_mean(cells)
            line = f"{label}, bound {size:,}: {mean:.2f} +- {error:.2f}"
            console.print(line, highlight=False, soft_wrap=True)
    return found


def table(found: Mapping[str, Mapping[int, list[Cell]]]) -> Table:
    """Return the numbers of the picture."""
    rows = []
    for label, by_size in found.items():
        means = [geometric_mean(cells) for cells in by_size.values()]
        every = [cell for cells in by_size.values() for cell in cells]
        runs, stopped = every[0].runs // len(every[0].results), sum(c.undecided for c in every)
        numbers = [f"{mean:.2f} +- {error:.2f}" for mean, error in means]
        wrong = f"{sum(cell.wrong for cell in every)} of {sum(cell.runs for cell in every):,}"
        rows.append((label, *numbers, str(runs), wrong, str(stopped)))
    sizes = [f"bound {size:,}" for size in BOUNDS]
    columns = ("strategy", *sizes, "runs of an instance", "wrong", "stopped")
    note = (
        "Geometric means over five families of pulls over the lower bound, with standard errors; "
        f"held-out instances, {SEEDS} of each family, delta = {DELTA:g}. A run is stopped at "
        f"{CAP} times the bound and counts with that, so that the mean is then too small. RAGE is "
        "told the largest gap, and LinGapE the length of theta; the others are told nothing."
    )
    return Table("Measurements needed, over the lower bound", columns, rows, note)


def chart(found: Mapping[str, Mapping[int, list[Cell]]]) -> AnyChart:
    """Return the picture."""
    sizes = tuple(map(float, BOUNDS))
    curves = []
    for label, by_size in found.items():
        means = [geometric_mean(cells) for cells in by_size.values()]
        low, high = (tuple(m + side * 2.0 * e for m, e in means) for side in (-1, 1))
        curves.append(Curve(label, sizes, tuple(mean for mean, _ in means), low, high))
    floor = Curve("no rule needs fewer", sizes, (1.0,) * len(sizes), reference=True)
    return curves_chart(
        [*curves, floor],
        "Lower bound: mean measurements that no rule can do without",
        "Measurements needed, over the lower bound",
        "Measurements needed, against what no rule can do without",
        [
            "Geometric means over five families of problems, 10 held-out problems of each,"
            f" delta = {DELTA:g}.",
            "Every strategy keeps its proven error probability. Lines: ± two standard errors.",
        ],
        log_x=True,
    )


def main() -> int:
    """Make the runs that are missing, and draw."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--runs", type=int, default=RUNS, help="of the gauntlet on an instance")
    parser.add_argument("--field-runs", type=int, default=RUNS_FIELD, help="of other strategies")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--store", type=Path, default=Path("gauntlet.sqlite"))
    parser.add_argument("--trial", type=Path, help="draw here instead, and write no table")
    words = parser.parse_args()
    with CodeStore(words.store) as store:
        found = collected(store, words.runs, words.field_runs, words.jobs)
    numbers = table(found)
    numbers.show()
    console.print(f"Written: {save(chart(found), words.trial or PICTURE)}")
    if words.trial is None:
        parts = ["# Measurements needed", "", about_this_run(), numbers.markdown()]
        RESULTS.write_text("\n".join(parts).rstrip() + "\n")
        console.print(f"Written: {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
