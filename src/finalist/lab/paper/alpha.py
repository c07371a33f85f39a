"""XY-Adaptive for several values of alpha, which the paper sets to 0.1 without saying why."""

from finalist.charts.curves import curves_chart
from finalist.inference.bounds import Bound
from finalist.lab.page import Finding, Part, Picture
from finalist.lab.paper.budget import DODGED, measured_curve
from finalist.lab.paper.experiment import OUR_ALPHA, PAPER_ALPHA, Case, Extent, Method, alpha_cases
from finalist.lab.paper.measure import Tallies, Tally
from finalist.lab.tables import Table, compact, listed


def alpha_part(extent: Extent, tallies: Tallies) -> Part:
    """Assemble the comparison of values of alpha."""
    text = (
        "A phase of XY-Adaptive ends when the largest variance is alpha times that of the phase "
        "before, so phases grow by a factor of about 1/alpha. With the paper's "
        f"alpha = {PAPER_ALPHA:g} a run that just misses the decision goes on ten times as long: "
        "the budget jumps between powers of ten, and depends on where they happen to fall. A "
        "larger alpha has more phases and smaller jumps, and each phase starts afresh.",
    )
    tables = (*(_means(extent, bound, tallies) for bound in extent.bounds), _long(extent, tallies))
    pictures = tuple(_picture(extent, bound, tallies) for bound in extent.bounds)
    findings = tuple(_finding(extent, bound, tallies) for bound in extent.bounds)
    return Part("alpha", "The setting alpha of XY-Adaptive", text, findings, tables, pictures)


def _tally(tallies: Tallies, alpha: float, bound: Bound, d: int) -> Tally:
    return tallies[Case(Method("xy-adaptive", alpha), bound, d)]


def _means(extent: Extent, bound: Bound, tallies: Tallies) -> Table:
    rows = [
        (a, *(_tally(tallies, a, bound, d).mean / 1e6 for d in extent.alpha_dimensions))
        for a in extent.alphas
    ]
    columns = ("alpha", *(f"d = {d}" for d in extent.alpha_dimensions))
    title = f"XY-Adaptive: mean budget in million pulls, {bound} constants"
    return Table(f"alpha-{bound}", title, columns, tuple(rows))


def _long(extent: Extent, tallies: Tallies) -> Table:
    rows = []
    for case in alpha_cases(extent):
        tally = tallies[case]
        numbers = (tally.mean, *tally.interval, tally.runs, tally.wrong)
        rows.append((case.method.alpha, case.bound, case.d, *numbers))
    columns = ("alpha", "constants", "d", "mean", "low", "high", "runs", "wrong")
    return Table("alpha", "XY-Adaptive by alpha", columns, tuple(rows), where="file")


def _finding(extent: Extent, bound: Bound, tallies: Tallies) -> Finding:
    """Say which alpha is best for each d, and how far the paper's and ours are from it."""
    best, excess = [], {PAPER_ALPHA: 0.0, OUR_ALPHA: 0.0}
    for d in extent.alpha_dimensions:
        means = {a: _tally(tallies, a, bound, d).mean for a in extent.alphas}
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


def _picture(extent: Extent, bound: Bound, tallies: Tallies) -> Picture:
    curves = []
    for d in extent.alpha_dimensions:
        cases = (_tally(tallies, a, bound, d) for a in extent.alphas)
        curves.append(measured_curve(f"d = {d}", extent.alphas, cases))
    subtitle = [f"Mean pulls with 95 % intervals, {bound} constants, logarithmic scale", DODGED]
    chart = curves_chart(
        curves,
        "alpha",
        "Pulls until x1 is identified",
        "XY-Adaptive by its setting alpha",
        subtitle,
    )
    return Picture(f"alpha-{bound}", chart, f"XY-Adaptive for several alpha ({bound} constants).")
