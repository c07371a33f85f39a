"""XY-Adaptive for several values of alpha, which the paper sets to 0.1 without saying why."""

from collections.abc import Mapping

from finalist.charts.curves import curves_chart
from finalist.inference.bounds import Bound
from finalist.lab.page import Picture
from finalist.lab.paper.budget import DODGED, measured_curve
from finalist.lab.paper.cells import Cell, Method, Outcome, Plan, alpha_cells
from finalist.lab.paper.experiment import OUR_ALPHA, PAPER_ALPHA
from finalist.lab.paper.parts import Finding, Part
from finalist.lab.tables import Table, compact, listed

Outcomes = Mapping[Cell, Outcome]


def alpha_part(plan: Plan, outcomes: Outcomes) -> Part:
    """Put the comparison of values of alpha together."""
    text = (
        "A phase of XY-Adaptive ends when the largest variance is alpha times that of the phase "
        "before, so phases grow by a factor of about 1/alpha. With the paper's "
        f"alpha = {PAPER_ALPHA:g} a run that just misses the decision goes on ten times as long: "
        "the budget jumps between powers of ten, and depends on where they happen to fall. A "
        "larger alpha has more phases and smaller jumps, and each phase starts afresh.",
    )
    tables = (*(_means(plan, bound, outcomes) for bound in plan.bounds), _long(plan, outcomes))
    pictures = tuple(_picture(plan, bound, outcomes) for bound in plan.bounds)
    findings = tuple(_finding(plan, bound, outcomes) for bound in plan.bounds)
    return Part("alpha", "The setting alpha of XY-Adaptive", text, findings, tables, pictures)


def _outcome(outcomes: Outcomes, alpha: float, bound: Bound, d: int) -> Outcome:
    return outcomes[Cell(Method("xy-adaptive", alpha), bound, d)]


def _means(plan: Plan, bound: Bound, outcomes: Outcomes) -> Table:
    rows = [
        (a, *(_outcome(outcomes, a, bound, d).mean / 1e6 for d in plan.alpha_dimensions))
        for a in plan.alphas
    ]
    columns = ("alpha", *(f"d = {d}" for d in plan.alpha_dimensions))
    title = f"XY-Adaptive: mean budget in million pulls, {bound} constants"
    return Table(f"alpha-{bound}", title, columns, tuple(rows))


def _long(plan: Plan, outcomes: Outcomes) -> Table:
    rows = []
    for cell in alpha_cells(plan):
        outcome = outcomes[cell]
        numbers = (outcome.mean, *outcome.interval, outcome.runs, outcome.wrong)
        rows.append((cell.method.alpha, cell.bound, cell.d, *numbers))
    columns = ("alpha", "constants", "d", "mean", "low", "high", "runs", "wrong")
    return Table("alpha", "XY-Adaptive by alpha", columns, tuple(rows), where="file")


def _finding(plan: Plan, bound: Bound, outcomes: Outcomes) -> Finding:
    """Say what the best value is for each d, and how far the paper's and ours are from it."""
    best, excess = [], {PAPER_ALPHA: 0.0, OUR_ALPHA: 0.0}
    for d in plan.alpha_dimensions:
        means = {a: _outcome(outcomes, a, bound, d).mean for a in plan.alphas}
        least = min(means, key=means.__getitem__)
        best.append(f"alpha = {least:g} at d = {d} ({compact(means[least])})")
        excess = {a: max(excess[a], means[a] / means[least]) for a in excess}
    return Finding(
        "alpha is 0.1",
        None,
        f"the fewest pulls have {listed(best)}; at worst alpha = {PAPER_ALPHA:g} needs "
        f"{excess[PAPER_ALPHA]:.1f} times as many and alpha = {OUR_ALPHA:g} "
        f"{excess[OUR_ALPHA]:.1f} times",
        bound,
    )


def _picture(plan: Plan, bound: Bound, outcomes: Outcomes) -> Picture:
    curves = []
    for d in plan.alpha_dimensions:
        cells = (_outcome(outcomes, a, bound, d) for a in plan.alphas)
        curves.append(measured_curve(f"d = {d}", plan.alphas, cells))
    subtitle = [f"Mean pulls with 95 % intervals, {bound} constants, logarithmic scale", DODGED]
    chart = curves_chart(
        curves,
        "alpha",
        "Pulls until x1 is identified",
        "XY-Adaptive by its setting alpha",
        subtitle,
    )
    return Picture(f"alpha-{bound}", chart, f"XY-Adaptive for several alpha ({bound} constants).")
