"""The table of the appendix: pulls per arm and budget of the five strategies at d = 5."""

from functools import cache
from typing import Any

import numpy as np

from finalist.charts.ratios import shares_chart
from finalist.complexity import complexity
from finalist.inference.bounds import Bound
from finalist.lab.page import Finding, Part, Picture
from finalist.lab.paper.experiment import (
    ADAPTIVE,
    CONSTANTS,
    DELTA,
    FULLY,
    METHODS,
    ORACLE,
    OUR_ALPHA,
    PAPER_ALPHA,
    PRINTED,
    SIGMA,
    STATIC,
    TABLE_DIMENSION,
    Case,
    Extent,
    Method,
    Tallies,
    budget_cases,
    instance,
)
from finalist.lab.tables import Table
from finalist.shapes import Float
from finalist.simulation import exact_interval
from finalist.text import listed

#: Estimates drawn to measure how often the printed pulls err, to within 0.05 %.
DRAWN = 200_000


def table_cases(extent: Extent) -> list[Case]:
    """Return the cases of the table."""
    return budget_cases(extent, (TABLE_DIMENSION,))


@cache
def lower_bound(d: int) -> float:
    """Return T* kl(delta, 1 - delta): mean pulls of a method that keeps delta for every theta."""
    return complexity(*instance(d), SIGMA, DELTA).lower_bound


def table_part(extent: Extent, tallies: Tallies) -> Part:
    """Assemble the table, its chart and the findings."""
    floor = lower_bound(TABLE_DIMENSION)
    constants = [f"{CONSTANTS[bound]} ({bound})" for bound in extent.bounds]
    text = (
        f"The appendix of the paper prints, for d = {TABLE_DIMENSION}, how often each strategy "
        f"pulled each arm. Ours stand below each line of it, with {listed(constants)}. The number "
        "behind XY-Adaptive "
        f"is its alpha: {PAPER_ALPHA:g} in the paper, {OUR_ALPHA:g} by default in finalist.",
        "The absolute counts of the print cannot be compared with ours. A method that is right "
        f"with probability {1 - DELTA:.0%} whatever θ is needs {floor:,.0f} pulls on average on "
        "this problem (T* kl(δ, 1-δ)). The oracle knows θ, and the bound does not bind it; with "
        f"the constants that the paper states it needs {_stated():,} pulls all the same. What can "
        "be compared is where the pulls go and which strategy needs more.",
    )
    findings = (
        _possible(floor),
        *(finding for bound in extent.bounds for finding in _share_findings(bound, tallies)),
        _errors(extent, tallies),
    )
    tables = (_shares(extent, tallies, floor), _counts(extent, tallies))
    title = f"Pulls per arm, d = {TABLE_DIMENSION}"
    return Part("table", title, text, findings, tables, (_picture(extent, tallies),))


def _printed(method: Method) -> tuple[int, ...] | None:
    """Return the printed pulls of a strategy; the paper's XY-Adaptive has alpha = 0.1."""
    return PRINTED[method.name] if method.alpha in (None, PAPER_ALPHA) else None


def _counts(extent: Extent, tallies: Tallies) -> Table:
    """Return the paper's table, with our counts below each of its rows."""
    rows: list[tuple[Any, ...]] = []
    for method in METHODS:
        printed = _printed(method)
        if printed is not None:
            rows.append((method.label, "printed", *printed, sum(printed)))
        for bound in extent.bounds:
            tally = tallies[Case(method, bound, TABLE_DIMENSION)]
            rows.append((method.label, bound, *tally.pulls.tolist(), tally.mean))
    columns = ("strategy", "from", *instance().arms.names, "budget")
    return Table("table", "Mean pulls per arm", columns, tuple(rows), where="page")


def _shares(extent: Extent, tallies: Tallies, floor: float) -> Table:
    """Return shares of the pulls in per cent, with budgets, intervals and errors."""
    rows: list[tuple[Any, ...]] = []
    for method in METHODS:
        printed = _printed(method)
        if printed is not None:
            shares = _per_cent(np.array(printed) / sum(printed))
            rows.append((method.label, "printed", *shares, sum(printed), None, None, None))
        for bound in extent.bounds:
            tally = tallies[Case(method, bound, TABLE_DIMENSION)]
            numbers = (*_per_cent(tally.shares), tally.mean, *tally.interval)
            rows.append((method.label, bound, *numbers, f"{tally.wrong}/{tally.runs}"))
    title = (
        "Shares of the pulls and budgets; the mean of a method that is right for every θ is at "
        f"least {floor:,.0f} pulls, which does not bind the oracle"
    )
    columns = ("strategy", "from", "x1 %", "x2 %", "x3-x5 %", "x6 %", "budget", "low", "high")
    return Table("table-shares", title, (*columns, "wrong"), tuple(rows))


def _per_cent(shares: Float[np.ndarray, " K"]) -> tuple[float, ...]:
    """Return the shares of x1, x2, of x3 to x5 together, and of x6, in per cent."""
    parts = (shares[0], shares[1], shares[2:5].sum(), shares[5])
    return tuple(round(100 * float(part), 2) for part in parts)


def _possible(floor: float) -> Finding:
    oracle, adaptive = PRINTED["xy-oracle"], PRINTED["xy-adaptive"]
    return Finding(
        "The printed budgets",
        None,
        f"the mean of a method that is right for every θ is at least {floor:,.0f} pulls. The "
        f"oracle with {sum(oracle):,} knows θ, so this does not bind it; its printed pulls give a "
        f"wrong winner with probability {printed_error(oracle):.1%}. XY-Adaptive with "
        f"{sum(adaptive):,} is bound by it and {1 - sum(adaptive) / floor:.0%} below, which a mean "
        "over runs can be by chance",
    )


def printed_error(pulls: tuple[int, ...]) -> float:
    """Return how often the arm with the best estimate is not the best, after these pulls.

    Estimates are drawn: they are normal around theta with covariance sigma^2 A^-1.
    """
    arms, theta = instance(TABLE_DIMENSION)
    X = arms.features
    A = X.T @ (np.array(pulls)[:, None] * X)
    root = SIGMA * np.linalg.cholesky(np.linalg.inv(A))
    rng = np.random.default_rng(0)
    drawn = theta + rng.standard_normal((DRAWN, TABLE_DIMENSION)) @ root.T
    return float(((drawn @ X.T).argmax(axis=1) != int((X @ theta).argmax())).mean())


@cache
def _stated() -> int:
    """Return the oracle's pulls with the printed constants."""
    return complexity(*instance(TABLE_DIMENSION), SIGMA, DELTA, "soare").oracle_budget


def _share_findings(bound: Bound, tallies: Tallies) -> list[Finding]:
    """Return where the pulls go, per strategy, under one set of constants."""
    shares = {m: tallies[Case(m, bound, TABLE_DIMENSION)].shares for m in METHODS}
    focused = (ORACLE, *ADAPTIVE)
    oracle, fully = shares[ORACLE], shares[FULLY]
    printed = PRINTED["xy-oracle"]
    spread = max(float(np.abs(shares[m][:-1] - 0.2).max()) for m in STATIC)
    last = max(float(shares[m][-1]) for m in STATIC)
    ours = listed([f"{m.label} {shares[m][1]:.2%}" for m in focused])
    return [
        Finding(
            "XY-Oracle and XY-Adaptive use most of the samples for x2",
            all(shares[m][1] > 0.99 for m in focused),
            f"{ours}; x1 : x2 is 1 : {oracle[1] / oracle[0]:.0f} for the oracle, "
            f"1 : {printed[1] / printed[0]:.0f} in print",
            bound,
        ),
        Finding(
            "XY and G allocate uniformly over the canonical arms",
            spread < 0.01 and last < 0.01,
            f"each within {spread:.2%} of 20%, x6 at most {last:.3%}",
            bound,
        ),
        Finding(
            "Fully adaptive focuses on x2 as well",
            bool(fully[1] > 0.5),
            f"{fully[1]:.1%} on x2, {_focus(PRINTED['fully-adaptive']):.1%} in print",
            bound,
        ),
    ]


def _focus(pulls: tuple[int, ...]) -> float:
    return pulls[1] / sum(pulls)


def _errors(extent: Extent, tallies: Tallies) -> Finding:
    cases = [tallies[case] for case in table_cases(extent)]
    wrong, runs = sum(o.wrong for o in cases), sum(o.runs for o in cases)
    worst = max(exact_interval(o.wrong, o.runs)[0] for o in cases)
    return Finding(
        f"The best arm is returned with probability {1 - DELTA:.0%} or more",
        worst <= DELTA,
        f"{wrong} wrong winners in {runs} runs of all strategies",
    )


def _picture(extent: Extent, tallies: Tallies) -> Picture:
    printed = {
        m.label: np.array(pulls) / sum(pulls) for m in METHODS if (pulls := _printed(m)) is not None
    }
    groups = {"As printed": printed}
    for bound in extent.bounds:
        groups[f"Here, {bound} constants"] = {
            m.label: tallies[Case(m, bound, TABLE_DIMENSION)].shares for m in METHODS
        }
    subtitle = ["x2 measures what tells x1 and x6 apart: good strategies pull little else."]
    chart = shares_chart(groups, instance().arms.names, "Where the pulls go, d = 5", subtitle)
    return Picture("shares", chart, "Share of the pulls of each arm, in print and here.")
