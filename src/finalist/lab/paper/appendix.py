"""Statements of the appendix of Soare 2014, computed: examples, Lemma 2, rounding, theorems.

Where the paper misprints a statement, the corrected one is beside it: the lower end of Lemma 2 has
L^2 and Delta(y)^2, and an allocation is worse than its design by at most n / (n - p), not 1 + p/n.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.charts.curves import Curve, Range, curves_chart, ranges_chart
from finalist.complexity import Complexity, complexity
from finalist.design import design_value, optimal_design, round_design
from finalist.inference.bounds import Bound
from finalist.lab.page import Finding, Part, Picture
from finalist.lab.paper.experiment import (
    DELTA,
    ORACLE,
    OUR_ALPHA,
    OURS,
    PAPERS,
    SIGMA,
    TABLE_DIMENSION,
    XY,
    Case,
    Extent,
    G,
    KnownProblem,
    Method,
    Tallies,
    instance,
)
from finalist.lab.tables import Table
from finalist.text import listed

_CANONICAL = "canonical basis"
EPSILONS = (0.5, 0.1, 0.01, 0.001)


def examples_table() -> Table:
    """Return G against XY on the two examples of the appendix, with their closed forms."""
    rows = []
    for epsilon in EPSILONS:
        apart = Arms([[1.0, epsilon / 2], [1.0, -epsilon / 2]])
        aligned = Arms([[1.0, 0.0], [1.0 - epsilon, 0.0]])
        for label, arms, g, xy in (
            ("two directions", apart, 2.0, 4.0),
            ("one axis", aligned, 1.0, epsilon**2),
        ):
            value_g, value_xy = (optimal_design(arms, rule).value for rule in ("g", "xy"))
            rows.append((label, epsilon, value_g, g, value_xy, xy))
    rows.sort(key=lambda row: row[0], reverse=True)
    columns = ("example", "epsilon", "G value", "G closed form", "XY value", "XY closed form")
    return Table("appendix-examples", "G against XY on two arms", columns, tuple(rows))


@dataclass(frozen=True)
class Lemma2:
    """H_LB of one problem between its limits, and the lower limit as printed."""

    label: str
    complexity: Complexity

    @property
    def printed(self) -> float:
        """Max ||y||^2 / (L Delta_min^2), the lower limit that the paper prints."""
        X, c = self.complexity.problem.arms.features, self.complexity
        largest = float(np.max(np.sum((X[c.best] - X[c.others]) ** 2, axis=1)))
        return largest / (float(np.linalg.norm(X, axis=1).max()) * c.delta_min**2)


def lemma2_problems() -> list[Lemma2]:
    """Return Lemma 2 on problems of different kinds."""
    rng = np.random.default_rng(2014)
    gaussian = Arms(rng.standard_normal((20, 4)))
    circle = 2 * math.pi * np.arange(12) / 12
    problems = {
        **{f"the experiment, d = {d}": instance(d) for d in (2, 5, 10)},
        f"{_CANONICAL}, equal gaps": KnownProblem(Arms(np.eye(5)), np.array([1.0, 0, 0, 0, 0])),
        f"{_CANONICAL}, gaps 0.1 to 1": KnownProblem(
            Arms(np.eye(5)), 1.0 - np.array([0.0, 0.1, 0.4, 0.7, 1.0])
        ),
        "20 random arms, d = 4": KnownProblem(gaussian, rng.standard_normal(4)),
        "12 arms on a circle": KnownProblem(
            Arms(np.column_stack([np.cos(circle), np.sin(circle)])), np.array([1.0, 0.1])
        ),
    }
    return [Lemma2(name, complexity(*p, SIGMA, DELTA)) for name, p in problems.items()]


def lemma2_table() -> Table:
    """Return H_LB with the corrected limits and the printed one."""
    rows = []
    for item in lemma2_problems():
        c = item.complexity
        low, high = c.bounds.lemma2_lower, c.bounds.lemma2_upper
        inside = low <= c.h_lb * (1 + 1e-6) and c.h_lb <= high * (1 + 1e-6)
        h_mab = c.h_mab if item.label.startswith(_CANONICAL) else None
        printed = (item.printed, item.printed <= c.h_lb)
        rows.append((item.label, low, c.h_lb, high, inside, *printed, h_mab))
    columns = ("problem", "lower", "H_LB", "upper", "inside", "printed", "print holds", "H_MAB")
    return Table("appendix-lemma2", "Lemma 2: the range of H_LB", columns, tuple(rows))


def rounding_table() -> Table:
    """Return the cost of rounding: the value of n pulls over the optimum, and both guarantees."""
    rng = np.random.default_rng(2014)
    sets = {_BASIS: Arms(np.eye(3)), "20 random arms, d = 4": Arms(rng.normal(size=(20, 4)))}
    rows = [
        row
        for label, arms in sets.items()
        for row in _rounding_rows(label, arms, (4, 5, 7, 8, 10, 14, 20, 50, 100))
    ]
    columns = ("arms", "p", "n", "value / optimum", "n/(n-p)", "1+p/n as printed", "print holds")
    title = "What rounding a G design costs"
    return Table("appendix-rounding", title, columns, tuple(rows), where="page")


_BASIS = "e1, e2, e3"


def _rounding_rows(label: str, arms: Arms, pulls: Iterable[int]) -> list[tuple[Any, ...]]:
    design = optimal_design(arms, "g")
    p = len(design.support)
    rows = []
    for n in pulls:
        if n > p:
            ratio = design_value(arms, round_design(design, n) / n, "g") / design.value
            printed = 1 + p / n
            rows.append((label, p, n, ratio, n / (n - p), printed, ratio <= printed + 1e-9))
    return rows


def theorem_cases(extent: Extent) -> list[Case]:
    """Return the cases whose budgets the theorems bound."""
    return [Case(method, bound, TABLE_DIMENSION) for bound in extent.bounds for method in _THEOREMS]


_THEOREMS = {
    ORACLE: "N* of Sect. 3",
    G: "Theorem 1",
    XY: "Theorem 2",
    PAPERS: "Theorem 3, a scale",
    OURS: "Theorem 3, a scale",
}


def theorems_table(extent: Extent, tallies: Tallies) -> Table:
    """Return the budgets that the paper proves beside those measured."""
    rows = []
    for case in theorem_cases(extent):
        proven, mean = proven_budget(case.method, case.bound, case.d), tallies[case].mean
        label = f"{case.method.label}, {case.bound}"
        rows.append((label, _THEOREMS[case.method], proven, mean, proven / mean))
    columns = ("strategy and constants", "statement", "proven", "measured mean", "ratio")
    title = f"Proven and measured budgets, d = {TABLE_DIMENSION}"
    return Table("appendix-theorems", title, columns, tuple(rows))


def proven_budget(method: Method, bound: Bound, d: int) -> int:
    """Return the budget that the paper proves for a strategy, with misprints corrected."""
    alpha = OUR_ALPHA if method.alpha is None else method.alpha
    c = complexity(*instance(d), SIGMA, DELTA, bound, alpha=alpha)
    budgets = {"g": "theorem1", "xy": "theorem2", "xy-adaptive": "theorem3"}
    if method.name == "xy-oracle":
        return c.oracle_budget
    return int(getattr(c.bounds, budgets[method.name]))


def appendix_part(extent: Extent, tallies: Tallies) -> Part:
    """Assemble the statements of the appendix."""
    examples, lemma, rounding = examples_table(), lemma2_table(), rounding_table()
    theorems = theorems_table(extent, tallies)
    text = (
        "G and XY on the two examples of the appendix, Lemma 2 on problems of different kinds, "
        "what rounding a design costs, and the budgets that the theorems prove. Two statements "
        "are misprinted; the tables show the print and what is true.",
    )
    findings = (
        _examples_finding(examples),
        *_lemma_findings(lemma),
        *_rounding_findings(rounding),
        _theorems_finding(theorems),
    )
    tables = (examples, lemma, rounding, theorems)
    title = "The statements of the appendix"
    return Part("appendix", title, text, findings, tables, (_ranges(), _costs()))


def _examples_finding(table: Table) -> Finding:
    pairs = [(row[2], row[3]) for row in table.rows] + [(row[4], row[5]) for row in table.rows]
    worst = max(abs(value / exact - 1) for value, exact in pairs)
    return Finding(
        "G and XY have values 2 and 4 on one example, and 1 and ε² on the other",
        worst < 1e-4,
        f"for every ε the solved designs agree to {worst:.0e}",
    )


def _lemma_findings(table: Table) -> list[Finding]:
    rows = table.records()
    inside = [row["problem"] for row in rows if row["inside"]]
    fails = [row["problem"] for row in rows if not row["print holds"]]
    basis = [row for row in rows if row["H_MAB"] is not None]
    return [
        Finding(
            "Lemma 2, with L² and Δ(y)² in the lower end",
            len(inside) == len(rows),
            f"H_LB is inside on {len(inside)} of {len(rows)} problems",
        ),
        Finding(
            "Lemma 2 as printed: H_LB is at least max ‖y‖² / (L Δ_min²)",
            not fails,
            f"above H_LB on {len(fails)} of {len(rows)} problems: {'; '.join(fails)}",
        ),
        Finding(
            "On the canonical basis H_MAB ≤ H_LB ≤ 2 H_MAB",
            all(r["H_MAB"] <= r["H_LB"] <= 2 * r["H_MAB"] for r in basis),
            "; ".join(f"{r['H_MAB']:.4g} ≤ {r['H_LB']:.4g} ≤ {2 * r['H_MAB']:.4g}" for r in basis),
        ),
    ]


def _rounding_findings(table: Table) -> list[Finding]:
    rows = table.records()
    fails = [f"{row['arms']}, n = {row['n']}" for row in rows if not row["print holds"]]
    ours = all(row["value / optimum"] <= row["n/(n-p)"] + 1e-9 for row in rows)
    return [
        Finding("Rounding costs at most a factor n/(n-p)", ours, f"{len(rows)} cases"),
        Finding(
            "Rounding costs at most a factor 1 + p/n, as printed",
            not fails,
            f"broken by {listed(fails)}" if fails else "in the cases tried",
        ),
    ]


def _theorems_finding(table: Table) -> Finding:
    rows = [row for row in table.records() if row["statement"].startswith("Theorem")]
    return Finding(
        "Budgets stay below those of Theorems 1 to 3",
        all(row["ratio"] >= 1 for row in rows),
        f"proven over measured: {min(row['ratio'] for row in rows):,.0f} to "
        f"{max(row['ratio'] for row in rows):,.0f}; the theorems take the smallest gap for all "
        "directions, which this problem punishes",
    )


def _ranges() -> Picture:
    ranges = [
        Range(
            item.label,
            item.complexity.bounds.lemma2_lower,
            item.complexity.h_lb,
            item.complexity.bounds.lemma2_upper,
            item.printed,
        )
        for item in lemma2_problems()
    ]
    subtitle = [
        "Line: the range of Lemma 2, corrected. Dot: H_LB. Cross: the lower end as printed,",
        "which is false wherever it lies to the right of the dot.",
    ]
    chart = ranges_chart(ranges, "H_LB (logarithmic)", "Lemma 2 on seven problems", subtitle)
    return Picture("lemma2", chart, "H_LB and the range of Lemma 2, corrected and as printed.")


def _costs() -> Picture:
    rows = _rounding_rows(_BASIS, Arms(np.eye(3)), range(4, 25))
    ns, ratios, proven, printed = (tuple(float(row[i]) for row in rows) for i in (2, 3, 4, 5))
    broken = listed([row[2] for row in rows if not row[-1]])
    curves = [
        Curve("Value / optimum", ns, ratios),
        Curve("n/(n-p), proven", ns, proven, reference=True),
        Curve("1 + p/n, printed", ns, printed),
    ]
    subtitle = [f"Arms {_BASIS}, p = {rows[0][1]}: the print is broken at n = {broken}."]
    title = "What rounding a G design costs"
    chart = curves_chart(curves, "Pulls n", "Factor", title, subtitle, log=False)
    return Picture("rounding", chart, "Rounding against its guarantee, proven and printed.")
