"""The tables of the gauntlet's benchmark, and what it is held to."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from benchmarks.gauntlet import cpu
from benchmarks.gauntlet.cells import Cell, geometric_mean
from benchmarks.gauntlet.families import ALONE, BOUNDS, DELTAS, FAMILIES, Set
from benchmarks.harness import Report, Table, Target, seconds

#: Geometric means of pulls over the bound to stay below: of families, held out, by size and delta,
PROMISED: dict[float, dict[float, float]] = {
    0.05: {5: 3.5, 20: 2.4, 60: 2.1, 200: 1.9, 1_000: 1.85},
    0.001: {5: 2.1, 20: 1.65, 60: 1.5, 200: 1.42, 1_000: 1.42},
}
#: and of instances that stand alone.
PROMISED_ALONE: dict[Set, dict[float, float]] = {
    "tuning": {0.05: 2.3, 0.001: 1.7},
    "held-out": {0.05: 2.0, 0.001: 1.44},
}
#: The most pulls of a single run on an instance that stands alone, over the bound.
WORST = 15.0
#: CPU seconds to stay below: a run with K <= 50 and d <= 10, one with K = 1,000 and d = 20, and a
#: decision (the next batch, and its rewards turned into evidence) with d = 20.
SMALL_RUN, LARGE_RUN, DECISIONS = 0.15, 5.0, {10_000: 2.0, 100_000: 10.0}
_NOTE = "In brackets: 0.1.0. CPU is the median."
TITLES: dict[Set, str] = {"tuning": "Tuned on", "held-out": "Held out"}


class Pair(NamedTuple):
    """A cell by the newest rules, and by those of 0.1.0 if they were run."""

    newest: Cell
    first: Cell | None

    @property
    def worse(self) -> np.ndarray:
        """By how many standard errors each instance is worse than with 0.1.0."""
        if self.first is None:
            return np.full(len(self.newest.ratios), -np.inf)
        more = self.newest.means - self.first.means
        return _in_errors(more, self.newest.squared_errors + self.first.squared_errors)

    @property
    def worse_in_mean(self) -> float:
        """By how many standard errors the mean of the cell is worse than with 0.1.0."""
        if self.first is None:
            return -math.inf
        more = np.array([self.newest.mean - self.first.mean])
        return float(_in_errors(more, np.array([self.newest.error**2 + self.first.error**2]))[0])


def _in_errors(more: np.ndarray, squared: np.ndarray) -> np.ndarray:
    """Return differences over their standard errors; where there is no spread, any counts."""
    out = np.where(more > 0, np.inf, 0.0)
    return np.asarray(np.divide(more, np.sqrt(squared), out=out, where=squared > 0))


def report_families(report: Report, which: Set, pairs: Sequence[Pair]) -> None:
    """Add the tables of one set of families, and hold the held-out set to what is promised."""
    rows = []
    for delta, size in product(DELTAS, BOUNDS):
        group = [p for p in pairs if (p.newest.spec.delta, p.newest.spec.size) == (delta, size)]
        if len(group) < len(FAMILIES):
            continue
        mean, error = geometric_mean([pair.newest for pair in group])
        firsts = [pair.first for pair in group if pair.first is not None]
        first = geometric_mean(firsts) if len(firsts) == len(group) else None
        most = PROMISED[delta][size]
        bound = f"{group[0].newest.bound:,.1f}"
        beside = (_plus(*first), f"{mean / first[0]:.2f}") if first else ("-", "-")
        rows.append((f"{delta:g}", f"{size:,}", bound, _plus(mean, error), *beside, f"{most:g}"))
        if which == "held-out":
            name = f"Families, {TITLES[which].lower()}, bound {size:,}, {delta:g}: geometric mean"
            text = f"at most {most:g}", _plus(mean, error)
            report.targets.append(Target(name, *text, mean <= most))
    columns = ("delta", "bound at 0.05", "bound", "pulls / bound", "0.1.0", "of 0.1.0", "at most")
    note = f"Geometric means over {len(FAMILIES)} families, with standard errors."
    if rows:
        report.add(Table(f"Families, {TITLES[which].lower()}", columns, rows, note))
    for delta in DELTAS:
        found = [pair for pair in pairs if pair.newest.spec.delta == delta]
        if found:
            _add_cells(report, f"Families, {TITLES[which].lower()}", found)
    _hold_to_errors(report, f"Families, {TITLES[which].lower()}", pairs)


def report_alone(report: Report, which: Set, pairs: Sequence[Pair]) -> None:
    """Add the tables of the instances that stand alone, and hold them to what is promised."""
    for delta in DELTAS:
        found = [pair for pair in pairs if pair.newest.spec.delta == delta]
        if not found:
            continue
        mean, error = geometric_mean([pair.newest for pair in found])
        note = f"Geometric mean of the means: {_plus(mean, error)}"
        firsts = [pair.first for pair in found if pair.first is not None]
        if firsts:
            note += f"; 0.1.0: {_plus(*geometric_mean(firsts))}"
        _add_cells(report, TITLES[which], found, f"{note}.")
        name, most = f"{TITLES[which]}, {delta:g}", PROMISED_ALONE[which][delta]
        if len(found) == len(ALONE[which]):
            text = f"at most {most:g}", _plus(mean, error)
            report.targets.append(Target(f"{name}: geometric mean", *text, mean <= most))
        worst = max(float(part.max()) for pair in found for part in pair.newest.ratios)
        text = f"at most {WORST:g} times the bound", f"{worst:.1f}"
        report.targets.append(Target(f"{name}: worst run", *text, worst <= WORST))
    _hold_to_errors(report, TITLES[which], pairs)
    _hold_small(report, [pair.newest for pair in pairs if pair.newest.spec.delta == DELTAS[0]])


def _add_cells(report: Report, title: str, pairs: Sequence[Pair], note: str = "") -> None:
    """Add a table with a row for each cell, all of one delta."""
    measured = ("pulls / bound", "0.1.0", "median, most", "pulls / rank", "batches", "wrong")
    columns = ("instances", "lower bound", *measured, "CPU of a run")
    rows = [_row(pair) for pair in pairs]
    delta = pairs[0].newest.spec.delta
    report.add(Table(f"{title}, delta = {delta:g}", columns, rows, f"{note} {_NOTE}".strip()))


def _row(pair: Pair) -> tuple[str, ...]:
    cell, first = pair
    ratios = np.concatenate(cell.ratios)

    def both(pattern: str) -> str:
        return pattern.format(cell) + ("" if first is None else f" ({pattern.format(first)})")

    return (
        cell.spec.name,
        f"{cell.bound:,.0f}",
        f"{cell.mean:.2f} +- {cell.error:.2f}",
        "-" if first is None else f"{first.mean:.2f} +- {first.error:.2f}",
        f"{np.median(ratios):.2f}, {ratios.max():.1f}",
        both("{0.pulls_over_rank:.1f}"),
        both("{0.mean_batches:.1f}"),
        both("{0.outcome}"),
        both("{0.milliseconds:.1f} ms"),
    )


def _hold_to_errors(report: Report, title: str, pairs: Sequence[Pair]) -> None:
    """Hold cells to delta, and every instance to what it was with 0.1.0."""
    if not pairs:
        return
    broken = [pair.newest.spec.title for pair in pairs if not pair.newest.keeps_delta]
    text = "delta kept", "; ".join(broken) or f"in all {len(pairs)} cells"
    report.targets.append(Target(f"{title}: errors", *text, not broken))
    stopped = sum(pair.newest.undecided for pair in pairs)
    text = "all runs decided", f"{stopped} undecided"
    report.targets.append(Target(f"{title}: decided", *text, stopped == 0))
    if any(pair.first is None for pair in pairs):
        return
    cells = np.array([pair.worse_in_mean for pair in pairs])
    _hold_to_first(report, f"{title}: no cell worse than 0.1.0", cells)
    if len(pairs[0].newest.results) > 1:
        every = np.concatenate([pair.worse for pair in pairs])
        _hold_to_first(report, f"{title}: no instance of a cell worse than 0.1.0", every)


def _hold_to_first(report: Report, name: str, worse: np.ndarray) -> None:
    """Promise that nothing is worse than with 0.1.0 by more than its standard error."""
    above, chance = int((worse > 1.0).sum()), float(ndtr(-1.0)) * len(worse)
    measured = f"{above} of {len(worse)} above 1 error, the most {worse.max():.1f}"
    if above:
        measured += f" (equals would have {chance:.0f})"
    report.targets.append(Target(name, "by more than its error", measured, above == 0))


def _hold_small(report: Report, cells: Iterable[Cell]) -> None:
    """Hold runs of small problems to what is promised of their CPU."""
    for cell in cells:
        if len(cell.results[0].arms) <= 50 and cell.rank <= 10:
            mean = float(cell.every("seconds").mean())
            text = f"below {SMALL_RUN:g} s", f"{mean:.3f} s"
            name = f"CPU of a run, {cell.spec.name}"
            report.targets.append(Target(name, *text, mean < SMALL_RUN))


def report_cpu(report: Report, groups: Mapping[str, cpu.Seconds]) -> None:
    """Add the CPU of runs beside 0.1.0, measured in turns."""
    rows = []
    for name, spent in groups.items():
        rows.append(_beside(report, f"CPU of a run, {name}", spent))
    note = "Medians over runs on all instances; newest rules and 0.1.0 in turns, in one process."
    report.add(Table("CPU of a run", ("cells", "newest", "0.1.0", "runs"), rows, note))


def _beside(report: Report, name: str, spent: cpu.Seconds) -> tuple[str, ...]:
    """Hold a median to that of 0.1.0, and return its row."""
    newest, first = spent.medians
    text = f"at most 0.1.0: {seconds(first)}", seconds(newest)
    report.targets.append(Target(f"{name}, median", *text, newest <= first))
    return name.removeprefix("CPU of a "), seconds(newest), seconds(first), str(len(spent.newest))


def report_large(report: Report) -> None:
    """Measure runs and decisions with many arms."""
    spent = cpu.of_large_runs(1_000, 20, 3)
    name = "CPU of a run, K = 1,000, d = 20"
    rows = [_beside(report, name, spent)]
    median = spent.medians[0]
    text = f"below {LARGE_RUN:g} s", f"{median:.2f} s"
    report.targets.append(Target(name, *text, median < LARGE_RUN))
    for K, most in DECISIONS.items():
        name = f"CPU of a decision, K = {K:,}"
        spent = cpu.of_decisions(K, 20, seeds=2, batches=4)
        rows.append(_beside(report, name, spent))
        text = f"below {most:g} s", f"{max(spent.newest):.2f} s at most"
        report.targets.append(Target(name, *text, max(spent.newest) < most))
    note = (
        "Arms on a sphere, d = 20, a random parameter of length 1, delta = 0.05; medians. "
        f"Decisions are those after {cpu.PILOT} times the rank in pulls, where no rules are in "
        "their pilot."
    )
    report.add(Table("Many arms", ("what", "newest", "0.1.0", "measured"), rows, note))


def _plus(mean: float, error: float) -> str:
    return f"{mean:.3f} +- {error:.3f}"
