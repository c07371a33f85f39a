"""Error against budget on one instance: the gauntlet, equal shares, the field and the limit.

    python -m benchmarks.budgets.curve [--runs 1000] [--jobs 1] [--store FILE]

100 points of the sphere in 8 dimensions, drawn from the seed of the held-out set. The gauntlet
spends the whole budget (delta = 1e-6), as the others do; equal shares are simulated in closed form.
Results are kept in a store, that of `benchmarks.budgets`; a stopped run goes on where it was.
Writes benchmarks/results/budget-curve.md and the pictures docs/images/budget.png and
budget-regret.png.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.budgets.cells import SEEDS, Cell
from benchmarks.budgets.report import share, shown
from benchmarks.budgets.rivals import Found, applies, limit, measure
from benchmarks.gauntlet.cells import CodeStore
from benchmarks.harness import Report, Table, console
from finalist.charts.curves import Curve, curves_chart
from finalist.charts.theme import save

RESULTS = Path(__file__).parents[1] / "results" / "budget-curve.md"
PICTURES = Path(__file__).parents[2] / "docs" / "images"
FAMILY, BUDGETS = "sphere 100 x 8", (60, 120, 300, 700, 1500, 3400)
#: Columns of the table, and what the picture calls those that it shows.
SHOWN = {
    "gauntlet": "gauntlet",
    "uniform": "equal shares",
    "top-two": "top-two",
    "Peace": "Peace",
    "OD-LinBAI": "OD-LinBAI",
    "GSE": "GSE",
}
#: The part of the runs that rivals have: they are slow.
RIVALS = 0.3


def main() -> int:
    """Measure, print, write, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=Path, default=Path("budgets.sqlite"))
    words = parser.parse_args()
    cells = [Cell(FAMILY, SEEDS["held out"], budget, "curve") for budget in BUDGETS]
    found: dict[tuple[str, int], Found] = {}
    with CodeStore(words.store) as store:
        for cell in cells:
            for column in filter(lambda column: applies(column, cell), SHOWN):
                runs = _runs(column, words.runs)
                found[column, cell.budget] = measure(cell, column, runs, words.jobs, store)
            one = found["gauntlet", cell.budget]
            console.print(f"{cell.label}: {share(one.rate)}, {1e3 * one.seconds:.0f} ms a run")
    limits = {cell.budget: limit(cell) for cell in cells}
    report = Report("Error against budget")
    rows = [
        (f"{T:,}", *(shown(found.get((column, T))) for column in SHOWN), share(limits[T]))
        for T in BUDGETS
    ]
    counts = f"{words.runs:,} runs of the gauntlet, {_runs('Peace', words.runs):,} of its rivals"
    note = f"{FAMILY}, held out: share of wrong runs with exact 95 % bounds, {counts}."
    report.add(Table("Errors", ("T", *SHOWN, "pair limit"), rows, note))
    rows = [
        (f"{T:,}", *(f"{found[c, T].regret:.3g}" if (c, T) in found else "" for c in SHOWN))
        for T in BUDGETS
    ]
    report.add(Table("Simple regret", ("T", *SHOWN), rows, "Mean gap of the named arm."))
    draw(found, limits, words.runs)
    return report.finish(RESULTS)


def _runs(column: str, asked: int) -> int:
    if column == "uniform":
        return 20_000
    return asked if column == "gauntlet" else max(round(RIVALS * asked), 1)


def draw(found: dict[tuple[str, int], Found], limits: dict[int, float], runs: int) -> None:
    """Draw errors and regrets; where there were none, nothing."""
    curves = []
    for column, label in SHOWN.items():
        some = [T for T in BUDGETS if (column, T) in found and found[column, T].wrong > 0]
        bounds = [found[column, T].bounds for T in some]
        curves.append(
            Curve(
                label,
                tuple(map(float, some)),
                tuple(found[column, T].rate for T in some),
                tuple(low for low, _ in bounds),
                tuple(high for _, high in bounds),
            )
        )
    budgets = tuple(float(T) for T in BUDGETS)
    bound = tuple(limits[T] for T in BUDGETS)
    curves.append(Curve("pair limit", budgets, bound, reference=True))
    about = f"100 candidates described by 8 numbers; {runs:,} simulated studies at each budget,"
    others = f"{_runs('Peace', runs):,} of rivals"
    x_title, title = "Measurements in all", "How often the wrong one is named after a budget"
    words = x_title, "Share of wrong names", title, [about, f"{others}; lines are 95 % intervals."]
    save(curves_chart(curves, *words, log_x=True, y_format="~%"), PICTURES / "budget.png")
    regrets = []
    for column, label in SHOWN.items():
        some = [T for T in BUDGETS if (column, T) in found and found[column, T].regret > 0.0]
        values = tuple(found[column, T].regret for T in some)
        regrets.append(Curve(label, tuple(map(float, some)), values))
    title = "How much worse what is named is than the best"
    words = x_title, "Mean difference from the best", title, [about, f"{others}."]
    save(curves_chart(regrets, *words, log_x=True, y_format="~g"), PICTURES / "budget-regret.png")


if __name__ == "__main__":
    sys.exit(main())
