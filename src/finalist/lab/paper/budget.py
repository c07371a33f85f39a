"""The figure of Sect. 6: budgets of the five strategies as the dimension grows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from finalist.charts.curves import Curve, curves_chart
from finalist.complexity import complexity
from finalist.design import optimal_design
from finalist.inference.bounds import Bound
from finalist.lab.page import Finding, Part, Picture
from finalist.lab.paper.experiment import (
    CONSTANTS,
    DELTA,
    METHODS,
    OUR_ALPHA,
    PAPER_ALPHA,
    SIGMA,
    STATIC,
    Case,
    Extent,
    Method,
    budget_cases,
    instance,
)
from finalist.lab.paper.measure import Tallies, Tally
from finalist.lab.paper.table import lower_bound
from finalist.lab.tables import Table, listed

LOWER_BOUND = "Lower bound"
DODGED = "Points stand a little beside each other, so that no interval hides another."
_ORACLE, _FULLY = Method("xy-oracle"), Method("fully-adaptive")
_ADAPTIVE = (Method("xy-adaptive", PAPER_ALPHA), Method("xy-adaptive", OUR_ALPHA))
_STATIC = tuple(Method(name) for name in STATIC)


def figure_cases(extent: Extent) -> list[Case]:
    """Return the cases of the figure."""
    return budget_cases(extent, extent.dimensions)


def budget_part(extent: Extent, tallies: Tallies) -> Part:
    """Assemble the figure, its tables and the findings."""
    text = (
        "The figure of the paper: the pulls until the best arm is identified, averaged over "
        f"runs, for d = {extent.dimensions[0]} to {extent.dimensions[-1]}. Only the second "
        "coordinate of θ matters however many there are, so the oracle and whoever learns from "
        "rewards should not care about d, and whoever treats all directions alike should pay "
        "for every one.",
    )
    findings = [f for bound in extent.bounds for f in _findings(extent, bound, tallies)]
    tables = [_means(extent, bound, tallies) for bound in extent.bounds]
    pictures = [_picture(extent, bound, tallies) for bound in extent.bounds]
    return Part(
        "budget",
        "The budget as the dimension grows",
        text,
        tuple(findings),
        (*tables, _long(extent, tallies)),
        tuple(pictures),
    )


def _long(extent: Extent, tallies: Tallies) -> Table:
    """Return everything that was measured, one row for each case."""
    rows = []
    for case in figure_cases(extent):
        tally, floor = tallies[case], lower_bound(case.d)
        numbers = (tally.mean, *tally.interval, tally.runs, tally.wrong, floor)
        rows.append((case.method.label, case.bound, case.d, *numbers))
    columns = ("strategy", "constants", "d", "mean", "low", "high", "runs", "wrong", "lower_bound")
    return Table("budget", "Budgets with 95 % intervals", columns, tuple(rows), where="file")


def _means(extent: Extent, bound: Bound, tallies: Tallies) -> Table:
    rows = [
        (m.label, *(tallies[Case(m, bound, d)].mean / 1e6 for d in extent.dimensions))
        for m in METHODS
    ]
    rows.append((LOWER_BOUND, *(lower_bound(d) / 1e6 for d in extent.dimensions)))
    columns = ("strategy", *(f"d = {d}" for d in extent.dimensions))
    title = f"Mean budget in million pulls, {bound} constants"
    return Table(f"budget-{bound}", title, columns, tuple(rows))


def _findings(extent: Extent, bound: Bound, tallies: Tallies) -> list[Finding]:
    ds = extent.dimensions
    means = {m: {d: tallies[Case(m, bound, d)].mean for d in ds} for m in METHODS}
    rest = [m for m in METHODS if m != _ORACLE]
    return [
        _below("XY-Oracle needs the fewest pulls", bound, means, _ORACLE, rest),
        *(
            _below(f"{m.label} needs fewer pulls than XY and G", bound, means, m, _STATIC)
            for m in _ADAPTIVE
        ),
        *(
            _flat(f"Dimensions have little impact on {m.label}", bound, means[m])
            for m in (_ORACLE, *_ADAPTIVE)
        ),
        *(_linear(bound, m, means[m]) for m in _STATIC),
        *(_widening(bound, m, means) for m in _ADAPTIVE),
        _no_advantage(bound, means),
    ]


Means = Mapping[Method, Mapping[int, float]]


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
    lead = {d: min(means[m][d] for m in _STATIC) - means[method][d] for d in ds}
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
    wins = [d for d in means[_FULLY] if means[_FULLY][d] < min(means[m][d] for m in _STATIC)]
    first, last = min(means[_FULLY]), max(means[_FULLY])
    ratio = means[_FULLY][last] / means[_FULLY][first]
    where = f"cheaper than both for {_where(wins, means[_FULLY])}" if wins else "never cheaper"
    return Finding(
        "Fully adaptive has no advantage over XY and G, because of √d in its bound",
        not wins,
        f"{where}; times {ratio:.2f} from d = {first} to d = {last}. Its bound (Prop. 2) "
        "has no factor 2√2, so its place depends on the constants of the others",
        bound,
    )


def measured_curve(label: str, x: Iterable[float], tallies: Iterable[Tally]) -> Curve:
    """Return means with their intervals."""
    cases = list(tallies)
    low, high = zip(*(case.interval for case in cases), strict=True)
    return Curve(label, tuple(map(float, x)), tuple(case.mean for case in cases), low, high)


def _picture(extent: Extent, bound: Bound, tallies: Tallies) -> Picture:
    ds = extent.dimensions
    curves = [
        measured_curve(m.label, ds, (tallies[Case(m, bound, d)] for d in ds)) for m in METHODS
    ]
    floor = tuple(lower_bound(d) for d in ds)
    curves.append(Curve(LOWER_BOUND, tuple(map(float, ds)), floor, reference=True))
    subtitle = [f"Mean pulls with 95 % intervals, {CONSTANTS[bound]}, logarithmic scale", DODGED]
    subtitle.append(
        "The lower bound is for the mean of methods that are right for every θ; the oracle knows θ."
    )
    chart = curves_chart(
        curves, "Dimension d", "Pulls until x1 is identified", "Budget by dimension", subtitle
    )
    return Picture(f"budget-{bound}", chart, f"Budgets with {CONSTANTS[bound]} ({bound}).")
