"""Tables and targets of what was measured."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.budgets.cells import Cell
from benchmarks.budgets.rivals import COLUMNS, Found
from benchmarks.harness import Report, Table, Target
from finalist.simulation.binomial import exact_interval, exact_lower_bound
from finalist.text import counted

#: What was found, by cell and column; the limit of each cell.
Results = Mapping[Cell, Mapping[str, Found]]
Limits = Mapping[Cell, float]
OURS, BASE = "gauntlet", "uniform"
#: The gauntlet with its check of the model, when it may stop before the end, and by the rules of
#: version 0.1.0.
CHECKED, STOPPING, OLD = "checked", "stopping", "0.1.0"
#: Columns that know theta or are ours are no rivals.
NO_RIVALS = (OURS, CHECKED, STOPPING, OLD, "oracle")
RIVALS = tuple(column for column in COLUMNS if column not in NO_RIVALS)
#: The probability of error that certainty promises.
DELTA = 0.05
MEAN, PAPER = 0.45, {1010: 0.004, 2010: 0.0005}
TITLES = {
    "paper": "The paper's instance, d = 10, omega = 0.1",
    "promised": "Beyond 4 pulls for each dimension",
    "two levels": "Factorials of two levels",
    "few pulls": "2 and 4 pulls for each dimension",
}


def share(value: float) -> str:
    """Format a probability with as many digits as are read."""
    if value == 0.0:
        return "0"
    return f"{value:.3f}" if value >= 0.02 else f"{value:.2g}"


def shown(found: Found | None) -> str:
    """Format an error with its exact bounds."""
    if found is None:
        return ""
    low, high = found.bounds
    return f"{share(found.rate)} ({share(low)} to {share(high)})"


def add_tables(report: Report, results: Results, limits: Limits, runs: int) -> None:
    """Add errors, regrets, and how the gauntlet ends, for each kind of cell."""
    for kind, title in TITLES.items():
        some = {cell: found for cell, found in results.items() if cell.kind == kind}
        if not some:
            continue
        columns = [c for c in COLUMNS if any(c in found for found in some.values())]
        about = [(cell, _about(cell)) for cell in some]
        rows = [
            (*words, *(shown(some[cell].get(c)) for c in columns), share(limits[cell]))
            for cell, words in about
        ]
        heads = ("instance", "set", "T")
        note = f"Share of wrong runs with exact 95 % bounds, {_runs(some, columns, runs)}."
        report.add(Table(f"{title}: errors", (*heads, *columns, "pair limit"), rows, note))
        rows = [
            (*words, *(f"{some[cell][c].regret:.3g}" if c in some[cell] else "" for c in columns))
            for cell, words in about
        ]
        note = "Mean gap of the named arm to the best one."
        report.add(Table(f"{title}: simple regret", (*heads, *columns), rows, note))
    add_endings(report, results)


def add_endings(report: Report, results: Results) -> None:
    """Add ratios and CPU, and how often the gauntlet is certain before T if it may stop then."""
    rows = [
        (
            *_about(cell),
            _ratio(found, BASE),
            _ratio(found, best_other(found)),
            _checked(found),
            *(_ending(found.get(column)) for column in (STOPPING, OLD)),
            f"{1e3 * found[OURS].seconds:.1f}",
        )
        for cell, found in results.items()
        if OURS in found and BASE in found
    ]
    if rows:
        ratios = ("/ uniform", "/ best other", "checked / not")
        heads = ("instance", "set", "T", *ratios, STOPPING, OLD, "ms a run")
        note = (
            "Errors over those of uniform, and of the best other strategy; those with the model "
            "check of studies over those without. No error counts half. "
            "How often the gauntlet stops before T because it is certain, and after "
            "how many pulls on average; by the rules of 0.1.0 beside it."
        )
        report.add(Table("The gauntlet", heads, rows, note))


def _checked(found: Mapping[str, Found]) -> str:
    return f"{rate(found[CHECKED]) / rate(found[OURS]):.2f}" if CHECKED in found else ""


def _ending(found: Found | None) -> str:
    return "" if found is None else f"{found.certain:.1%}, {found.pulls:,.0f}"


def _about(cell: Cell) -> tuple[str, str, str]:
    return cell.family, "tuned" if cell.tuned else "held out", f"{cell.budget:,}"


def _runs(some: Results, columns: Sequence[str], runs: int) -> str:
    """Say how many runs, and where they are others."""
    others: dict[int, set[str]] = {}
    for found in some.values():
        for column in columns:
            if column in found and found[column].runs != runs:
                others.setdefault(found[column].runs, set()).add(column)
    words = [f"{n:,} of {', '.join(sorted(who))}" for n, who in sorted(others.items())]
    return f"{runs:,} runs" + (f", in some cells {'; '.join(words)}" if words else "")


def rate(found: Found) -> float:
    """Return the share of wrong runs; half an error where there is none, to have a ratio."""
    return max(found.wrong, 0.5) / found.runs


def best_other(found: Mapping[str, Found]) -> str | None:
    """Return the rival with the fewest errors."""
    there = [column for column in RIVALS if column in found]
    return min(there, key=lambda column: found[column].rate, default=None)


def _ratio(found: Mapping[str, Found], other: str | None) -> str:
    if other is None:
        return ""
    text = f"{rate(found[OURS]) / rate(found[other]):.2f}"
    return text if other == BASE else f"{text} {other}"


def geometric_mean(some: Sequence[Mapping[str, Found]]) -> float:
    """Return the mean of errors over uniform's."""
    logs = [math.log(rate(found[OURS]) / rate(found[BASE])) for found in some]
    return math.exp(sum(logs) / len(logs))


def is_worse(ours: Found, other: Found) -> bool:
    """Return whether ours errs more often by more than the intervals: they do not overlap."""
    return ours.bounds[0] > other.bounds[1]


def add_certainty(report: Report, some: Sequence[Mapping[str, Found]]) -> None:
    """Add that what is certain is right, and comes no more seldom than by the rules of 0.1.0."""
    if some:
        least = [
            exact_lower_bound(
                found[STOPPING].certain_wrong, found[STOPPING].runs, 1 - 0.001 / len(some)
            )
            for found in some
        ]
        target = Target(
            "certain and wrong, the worst cell",
            f"at most delta = {DELTA:g}",
            f"at least {max(least):.4f} (99.9 %, all cells together)",
            max(least) <= DELTA,
        )
        report.targets.append(target)
    both = [found for found in some if OLD in found]
    seldom = [f for f in both if _certain(f[STOPPING])[1] < _certain(f[OLD])[0]]
    if both:
        means = [float(np.mean([f[column].certain for f in both])) for column in (STOPPING, OLD)]
        target = Target(
            "certain before T, beside 0.1.0",
            "nowhere more seldom by more than the interval",
            f"in {len(seldom) or 'none'} of {counted(len(both), 'cell')}; "
            f"{means[0]:.1%} and {means[1]:.1%} on average",
            not seldom,
        )
        report.targets.append(target)


def _certain(found: Found) -> tuple[float, float]:
    return exact_interval(round(found.certain * found.runs), found.runs)


def add_targets(report: Report, results: Results) -> None:
    """Add what is promised, for tuned and held-out cells apart."""
    full = {cell: found for cell, found in results.items() if OURS in found}
    for cell, found in full.items():
        if cell.kind == "paper" and cell.budget in PAPER:
            most, value = PAPER[cell.budget], found[OURS].rate
            name = f"paper, T = {cell.budget:,}: error"
            target = Target(name, f"at most {most:g}", shown(found[OURS]), value <= most)
            report.targets.append(target)
    add_certainty(report, [found for found in results.values() if STOPPING in found])
    for word, tuned in (("tuned", True), ("held out", False)):
        some = {c: found for c, found in full.items() if c.tuned == tuned and BASE in found}
        promised = [found for cell, found in some.items() if cell.kind == "promised"]
        if promised:
            value = geometric_mean(promised)
            name = f"beyond 4 pulls for each dimension, {word}: geometric mean over uniform"
            report.targets.append(Target(name, f"at most {MEAN}", f"{value:.3f}", value <= MEAN))
        flat = {c: found for c, found in some.items() if c.kind in ("two levels", "few pulls")}
        if flat:
            _never_worse(
                report, flat, f"two levels and few pulls, {word}: worse than uniform", BASE
            )
        if some:
            _never_worse(report, some, f"everywhere, {word}: worse than the best other", None)


def _never_worse(report: Report, some: Results, name: str, other: str | None) -> None:
    worse = []
    for cell, found in some.items():
        rival = other or best_other(found)
        if rival is not None and is_worse(found[OURS], found[rival]):
            worse.append(f"{cell.label} ({rival})")
    words = "; ".join(worse) or f"in none of {len(some)} cells"
    report.targets.append(Target(name, "nowhere by more than the interval", words, not worse))
