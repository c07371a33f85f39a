"""The tables of a benchmark: over all instances, by instance, and every figure of a cell."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from finalist.charts.ratios import ratio_text
from finalist.lab.benchmark.engine import CellResult
from finalist.lab.benchmark.plan import TUNED_ON, exact
from finalist.lab.tables import Table, shown
from finalist.text import listed

Outcomes = Sequence[CellResult]


def strategies(outcomes: Outcomes) -> list[str]:
    """Return the strategies, ordered by instances solved, then by mean ratio."""

    def rank(label: str) -> tuple[int, float]:
        done = [o for o in _of(outcomes, label) if o.result is not None]
        return -len(done), geometric_mean(done)

    return sorted(dict.fromkeys(o.cell.spec.label for o in outcomes), key=rank)


def instances(outcomes: Outcomes) -> list[str]:
    """Return the names of the instances."""
    return list(dict.fromkeys(o.cell.instance.name for o in outcomes))


def at(outcomes: Outcomes, delta: float) -> list[CellResult]:
    """Return the cells with this error probability."""
    return [o for o in outcomes if o.cell.delta == delta]


def geometric_mean(outcomes: Outcomes) -> float:
    """Return the geometric mean of the ratios; infinite if there are none."""
    logs = [math.log(o.ratio) for o in outcomes]
    return math.exp(sum(logs) / len(logs)) if logs else math.inf


def marked(outcomes: Outcomes) -> str:
    """Return the strategy of some cells with its marks.

    A mark that holds for only some of the cells says for how many.
    """
    count = Counter(mark for o in outcomes for mark in o.cell.marks)
    total, label = len(outcomes), outcomes[0].cell.spec.label
    words = [m if n == total else f"{m} on {n} of {total}" for m, n in count.items()]
    return f"{label} ({', '.join(words)})" if words else label


def headings(outcomes: Outcomes) -> dict[str, str]:
    """Return the strategies in order, each with its marks."""
    return {label: marked(_of(outcomes, label)) for label in strategies(outcomes)}


def overview(outcomes: Outcomes, delta: float) -> Table:
    """Return one line for each strategy, over all its instances."""
    words = "strategy,ratio,least,most,done,wrong,above delta,cut,batches,CPU"
    chosen = at(outcomes, delta)
    rows = tuple(_line(_of(chosen, label)) for label in strategies(chosen))
    title = f"Pulls over the lower bound, delta = {exact(delta)}: geometric mean over instances"
    return Table(f"overview-{exact(delta)}", title, tuple(words.split(",")), rows, figures=True)


def _line(outcomes: Outcomes) -> tuple[str, ...]:
    done = [o for o in outcomes if o.result is not None]
    if not done:
        return (marked(outcomes), *["-"] * 3, f"0/{len(outcomes)}", *["-"] * 5)
    least, most = min(done, key=lambda o: o.ratio), max(done, key=lambda o: o.ratio)
    cut = any(o.undecided for o in done)
    return (
        marked(outcomes),
        ratio_text(geometric_mean(done), cut),
        _ratio(least),
        _ratio(most),
        f"{len(done)}/{len(outcomes)}",
        _count(sum(o.measured.errors for o in done), sum(len(o.measured) for o in done)),
        shown(sum(o.measured.error_bounds()[0] > o.cell.delta for o in done)),
        shown(sum(o.undecided for o in done)),
        _least(float(np.median([o.batches for o in done])), cut),
        _seconds(float(np.median([o.seconds for o in done]))),
    )


def halves(outcomes: Outcomes, delta: float) -> Table:
    """Return geometric means over the instances tuned on and over the others.

    The table is empty unless there are both.
    """
    chosen = at(outcomes, delta)
    tuned = [name for name in instances(chosen) if name in TUNED_ON]
    others = [name for name in instances(chosen) if name not in TUNED_ON]
    rows = tuple(
        (head, *(_mean_over(_of(chosen, label), names) for names in (tuned, others)))
        for label, head in headings(chosen).items()
        if tuned and others
    )
    title = f"Instances that settings were tuned on, and others, delta = {exact(delta)}"
    columns = ("strategy", f"{len(tuned)} tuned on", f"{len(others)} others")
    return Table(f"halves-{exact(delta)}", title, columns, rows, "page", figures=True)


def _mean_over(outcomes: Outcomes, names: Sequence[str]) -> str:
    done = [o for o in outcomes if o.result is not None and o.cell.instance.name in names]
    if not done:
        return ratio_text(None)
    return ratio_text(geometric_mean(done), any(o.undecided for o in done))


def ratio_table(outcomes: Outcomes, delta: float) -> Table:
    """Return mean pulls over the lower bound, instances by strategies."""
    chosen = at(outcomes, delta)
    labels = headings(chosen)
    cells = {(o.cell.instance.name, o.cell.spec.label): o for o in chosen}
    rows = []
    for name in instances(chosen):
        line = [cells[name, label] for label in labels]
        rows.append((name, _about(line[0].cell.bound), *map(_ratio, line)))
    title = f"Mean pulls over the lower bound, delta = {exact(delta)}"
    columns = ("instance", "lower bound", *labels.values())
    return Table(f"ratios-{exact(delta)}", title, columns, tuple(rows), "page", figures=True)


def detail_table(outcomes: Outcomes, name: str) -> Table:
    """Return every figure of the cells of one instance."""
    words = "strategy,delta,mean pulls,95 % interval,ratio,wrong,exact 95 %,cut,batches,CPU"
    chosen = [o for o in outcomes if o.cell.instance.name == name]
    order = {label: place for place, label in enumerate(strategies(outcomes))}
    chosen.sort(key=lambda o: (-o.cell.delta, order[o.cell.spec.label]))
    rows = tuple(_detail(o) for o in chosen if o.result is not None)
    title = _about_instance(chosen)
    return Table("details", title, tuple(words.split(",")), rows, "page", figures=True)


def _detail(outcome: CellResult) -> tuple[str, ...]:
    found, bound = outcome.measured, outcome.cell.bound
    least, most = found.error_bounds()
    cut = bool(outcome.undecided)
    return (
        marked([outcome]),
        exact(outcome.cell.delta),
        _least(outcome.ratio * bound, cut),
        _interval(*outcome.pulls_interval),
        _ratio(outcome),
        _count(found.errors, len(found)),
        f"{100 * least:.2g} to {100 * most:.2g} %",
        shown(outcome.undecided),
        _least(outcome.batches, cut),
        _seconds(outcome.seconds),
    )


def _about_instance(outcomes: Outcomes) -> str:
    instance = outcomes[0].cell.instance
    bounds = {o.cell.delta: o.cell.bound for o in outcomes}
    words = listed([f"{_about(bound)} (delta = {exact(delta)})" for delta, bound in bounds.items()])
    least = "" if instance.objective == "max" else ", the smallest mean is best"
    return (
        f"{len(instance.arms):,} arms, dimension {instance.arms.rank}, "
        f"sigma {instance.sigma:.3g}{least}. Lower bound: {words}"
    )


def missing_table(outcomes: Outcomes) -> Table:
    """Return what was not simulated, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for o in outcomes:
        if o.reason:
            names = reasons.setdefault((marked([o]), o.reason), [])
            if o.cell.instance.name not in names:
                names.append(o.cell.instance.name)
    rows = tuple((label, listed(names), reason) for (label, reason), names in reasons.items())
    return Table("missing", "Not simulated", ("strategy", "instances", "reason"), rows, "page")


def cells_table(outcomes: Outcomes) -> Table:
    """Return every cell with all figures, for programs."""
    records = [outcome.record() for outcome in outcomes]
    rows = tuple(tuple(record.values()) for record in records)
    return Table("cells", "All cells", tuple(records[0]), rows, "file")


def _of(outcomes: Outcomes, label: str) -> list[CellResult]:
    return [o for o in outcomes if o.cell.spec.label == label]


def _ratio(outcome: CellResult) -> str:
    if outcome.result is None:
        return ratio_text(None)
    return ratio_text(outcome.ratio, bool(outcome.undecided))


def _count(part: int, whole: int) -> str:
    return f"{part:,}/{whole:,}"


def _interval(low: float | None, high: float | None) -> str:
    if low is None:
        return "-"
    return f"≥ {_about(low)} to -" if high is None else f"{_about(low)} to {_about(high)}"


def _least(value: float, cut: bool) -> str:
    """Format a mean; ≥ if runs were cut, since it is then too small."""
    return f"{'≥ ' if cut else ''}{_about(value)}"


def _about(value: float) -> str:
    """Format a number with three digits, or with all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _seconds(value: float) -> str:
    """Format a duration with two digits."""
    if value >= 0.995:
        return f"{value:.2g} s" if value < 9.95 else f"{value:,.0f} s"
    return f"{1000 * value:.2g} ms" if value < 0.00995 else f"{1000 * value:.0f} ms"
