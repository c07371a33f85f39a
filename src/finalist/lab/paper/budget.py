"""Budgets: the figure of Sect. 6, and XY-Adaptive for several values of alpha.

The paper sets alpha to 0.1 without saying why.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from finalist.charts.curves import Curve, curves_chart
from finalist.charts.theme import AnyChart
from finalist.complexity import complexity
from finalist.design import optimal_design
from finalist.inference.bounds import Bound
from finalist.lab.page import Finding, Part, Picture
from finalist.lab.paper.experiment import (
    ADAPTIVE,
    CONSTANTS,
    DELTA,
    FIGURES,
    FULLY,
    METHODS,
    ORACLE,
    OUR_ALPHA,
    PAPER_ALPHA,
    SIGMA,
    STATIC,
    Case,
    Extent,
    Method,
    Tallies,
    Tally,
    alpha_cases,
    budget_cases,
    instance,
)
from finalist.lab.paper.table import lower_bound
from finalist.lab.tables import Table, compact
from finalist.text import listed

LOWER_BOUND = "Lower bound"


def figure_cases(extent: Extent) -> list[Case]:
    """Return the cases of the figure."""
    return budget_cases(extent, extent.dimensions)


def budget_part(extent: Extent, tallies: Tallies) -> Part:
    """Assemble the figure, its tables and the findings."""
    ds = extent.dimensions
    text = (
        "The figure of the paper: the pulls until the best arm is identified, averaged over "
        f"runs, for d = {ds[0]} to {ds[-1]}. Only the second "
        "coordinate of θ matters however many there are, so the oracle and whoever learns from "
        "rewards should not care about d, and whoever treats all directions alike should pay "
        "for every one.",
    )
    rows = [
        (case.method.label, case.bound, case.d, *tallies[case].figures, lower_bound(case.d))
        for case in figure_cases(extent)
    ]
    columns = ("strategy", "constants", "d", *FIGURES, "lower_bound")
    long = Table("budget", "Budgets with 95 % intervals", columns, tuple(rows), where="file")
    findings, tables, pictures = [], [], []
    for bound in extent.bounds:
        found = {m: {d: tallies[Case(m, bound, d)] for d in ds} for m in METHODS}
        means = {m: {d: tally.mean for d, tally in of.items()} for m, of in found.items()}
        findings += _findings(bound, means)
        floor = {d: lower_bound(d) for d in ds}
        shown = {m.label: of for m, of in means.items()} | {LOWER_BOUND: floor}
        title = f"Mean budget in million pulls, {bound} constants"
        tables.append(_millions(f"budget-{bound}", title, "strategy", shown))
        curves = [measured_curve(m.label, of) for m, of in found.items()]
        curves.append(
            Curve(LOWER_BOUND, tuple(map(float, ds)), tuple(floor.values()), reference=True)
        )
        caption = f"Budgets with {CONSTANTS[bound]} ({bound})."
        note = (
            "The lower bound is for the mean of methods that are right for every θ; "
            "the oracle knows θ."
        )
        chart = _chart(curves, "Dimension d", "Budget by dimension", CONSTANTS[bound], note)
        pictures.append(Picture(f"budget-{bound}", chart, caption))
    title = "The budget as the dimension grows"
    return Part("budget", title, text, tuple(findings), (*tables, long), tuple(pictures))


def alpha_part(extent: Extent, tallies: Tallies) -> Part:
    """Assemble the comparison of values of alpha."""
    text = (
        "A phase of XY-Adaptive ends when the largest variance is alpha times that of the phase "
        "before, so phases grow by a factor of about 1/alpha. With the paper's "
        f"alpha = {PAPER_ALPHA:g} a run that just misses the decision goes on ten times as long: "
        "the budget jumps between powers of ten, and depends on where they happen to fall. A "
        "larger alpha has more phases and smaller jumps, and each phase starts afresh.",
    )
    rows = [
        (case.method.alpha, case.bound, case.d, *tallies[case].figures)
        for case in alpha_cases(extent)
    ]
    columns = ("alpha", "constants", "d", *FIGURES)
    long = Table("alpha", "XY-Adaptive by alpha", columns, tuple(rows), where="file")
    findings, tables, pictures = [], [], []
    for bound in extent.bounds:
        found = {
            d: {a: tallies[Case(Method("xy-adaptive", a), bound, d)] for a in extent.alphas}
            for d in extent.alpha_dimensions
        }
        findings.append(_best_alpha(bound, found))
        shown = {a: {d: of[a].mean for d, of in found.items()} for a in extent.alphas}
        title = f"XY-Adaptive: mean budget in million pulls, {bound} constants"
        tables.append(_millions(f"alpha-{bound}", title, "alpha", shown))
        curves = [measured_curve(f"d = {d}", of) for d, of in found.items()]
        title, constants = "XY-Adaptive by its setting alpha", f"{bound} constants"
        caption = f"XY-Adaptive for several alpha ({constants})."
        chart = _chart(curves, "alpha", title, constants)
        pictures.append(Picture(f"alpha-{bound}", chart, caption))
    title = "The setting alpha of XY-Adaptive"
    return Part("alpha", title, text, tuple(findings), (*tables, long), tuple(pictures))


def _millions(name: str, title: str, first: str, means: Mapping[Any, Mapping[int, float]]) -> Table:
    """Return mean budgets in million pulls, with a column for each dimension."""
    rows = tuple((label, *(mean / 1e6 for mean in of.values())) for label, of in means.items())
    columns = (first, *(f"d = {d}" for d in next(iter(means.values()))))
    return Table(name, title, columns, rows)


def measured_curve(label: str, tallies: Mapping[Any, Tally]) -> Curve:
    """Return means with their intervals."""
    low, high = zip(*(tally.interval for tally in tallies.values()), strict=True)
    means = tuple(tally.mean for tally in tallies.values())
    return Curve(label, tuple(map(float, tallies)), means, low, high)


def _chart(curves: Sequence[Curve], x: str, title: str, constants: str, *notes: str) -> AnyChart:
    subtitle = [
        f"Mean pulls with 95 % intervals, {constants}, logarithmic scale",
        "Points stand a little beside each other, so that no interval hides another.",
        *notes,
    ]
    return curves_chart(curves, x, "Pulls until x1 is identified", title, subtitle)


def _best_alpha(bound: Bound, found: Mapping[int, Mapping[float, Tally]]) -> Finding:
    """Say which alpha is best for each d, and how far the paper's and ours are from it."""
    best, excess = [], {PAPER_ALPHA: 0.0, OUR_ALPHA: 0.0}
    for d, of in found.items():
        means = {a: tally.mean for a, tally in of.items()}
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


Means = Mapping[Method, Mapping[int, float]]


def _findings(bound: Bound, means: Means) -> list[Finding]:
    rest = [m for m in METHODS if m != ORACLE]
    return [
        _below("XY-Oracle needs the fewest pulls", bound, means, ORACLE, rest),
        *(
            _below(f"{m.label} needs fewer pulls than XY and G", bound, means, m, STATIC)
            for m in ADAPTIVE
        ),
        *(
            _flat(f"Dimensions have little impact on {m.label}", bound, means[m])
            for m in (ORACLE, *ADAPTIVE)
        ),
        *(_linear(bound, m, means[m]) for m in STATIC),
        *(_widening(bound, m, means) for m in ADAPTIVE),
        _no_advantage(bound, means),
    ]


def _below(claim: str, bound: Bound, means: Means, low: Method, high: Sequence[Method]) -> Finding:
    """Say whether a strategy is below the others in every dimension, and where it is not."""
    fails = [
        f"{m.label} for {_where(ds, means[low])}"
        for m in high
        if (ds := [d for d in means[low] if means[low][d] >= means[m][d]])
    ]
    where = f"fails against {'; '.join(fails)}" if fails else "for every d"
    return Finding(claim, not fails, where, bound)


def _where(ds: Sequence[int], among: Collection[int]) -> str:
    return "every d" if len(ds) == len(among) else f"d = {listed(ds)}"


def _flat(claim: str, bound: Bound, means: Mapping[int, float]) -> Finding:
    """Say whether the largest mean is within a factor 2 of the smallest."""
    ratio = max(means.values()) / min(means.values())
    evidence = f"largest over smallest mean {ratio:.2f}"
    return Finding(claim, ratio < 2, evidence, bound)


def growth(bound: Bound, name: Literal["g", "xy"], d: int) -> float:
    """Return the pulls of a static design under the deterministic rule: linear in d, times a log.

    Uniform over d arms, ||x1 - x_{d+1}||^2 in A^-1 is d omega^2 / n, and the rule needs
    radius(n)^2 times that below Delta_min^2: n = d omega^2 radius(n)^2 / Delta_min^2.
    """
    arms, theta = instance(d)
    c = complexity(arms, theta, SIGMA, DELTA, bound)
    return float(c.budget(optimal_design(arms, name)))


def _linear(bound: Bound, method: Method, means: Mapping[int, float]) -> Finding:
    """Compare the growth from the smallest to the largest d with what the rule predicts."""
    first, last = min(means), max(means)
    ratio = means[last] / means[first]
    rule: Literal["g", "xy"] = "g" if method.name == "g" else "xy"
    expected = growth(bound, rule, last) / growth(bound, rule, first)
    return Finding(
        f"The budget of {method.label} grows linearly with d",
        abs(ratio / expected - 1) < 0.3,
        f"times {ratio:.2f} from d = {first} to d = {last}, where d times the growth of "
        f"the logarithm gives {expected:.2f}",
        bound,
    )


def _widening(bound: Bound, method: Method, means: Means) -> Finding:
    """Compare how far a strategy is below the cheaper static one at the ends of the range."""
    ds = sorted(means[method])
    lead = {d: min(means[m][d] for m in STATIC) - means[method][d] for d in ds}
    smaller = [b for a, b in pairwise(ds) if lead[b] <= lead[a]]
    where = f"; not from one d to the next at d = {listed(smaller)}" if smaller else ""
    return Finding(
        f"The lead of {method.label} over XY and G grows with d",
        lead[ds[-1]] > lead[ds[0]],
        f"from {lead[ds[0]] / 1e6:.2f} million pulls at d = {ds[0]} to {lead[ds[-1]] / 1e6:.2f} "
        f"at d = {ds[-1]}{where}",
        bound,
    )


def _no_advantage(bound: Bound, means: Means) -> Finding:
    """Compare the fully adaptive rule with the static ones."""
    wins = [d for d in means[FULLY] if means[FULLY][d] < min(means[m][d] for m in STATIC)]
    first, last = min(means[FULLY]), max(means[FULLY])
    ratio = means[FULLY][last] / means[FULLY][first]
    where = f"cheaper than both for {_where(wins, means[FULLY])}" if wins else "never cheaper"
    return Finding(
        "Fully adaptive has no advantage over XY and G, because of √d in its bound",
        not wins,
        f"{where}; times {ratio:.2f} from d = {first} to d = {last}. Its bound (Prop. 2) "
        "has no factor 2√2, so its place depends on the constants of the others",
        bound,
    )
