"""Measurements against the smallest lead that matters, beside what else one could do."""

import math
from typing import TYPE_CHECKING

from finalist.charts.curves import Curve, curves_chart
from finalist.charts.theme import AnyChart
from finalist.errors import ChartError

if TYPE_CHECKING:
    from finalist.planning import Plan

#: What curves are called; other strategies have their names.
_CALLED = {"gauntlet": "this study", "equal shares": "equal shares"}
_FIXED = "fixed number"


def leads_chart(plan: "Plan") -> AnyChart:
    """Show the measurements of a plan against the lead, on logarithmic axes.

    What is infinite is not drawn: a median that is beyond the cap, and the upper end of a range
    above it.

    Examples
    --------
    >>> import finalist as fl
    >>> plan = fl.plan(fl.Arms.unstructured(3), sigma=1.0, gap=1.0, leads=[0.5], draws=4)
    >>> leads_chart(plan).to_dict()["title"]["text"]
    'Measurements against the smallest lead that matters'
    """
    if len(plan.by_lead) < 2:
        raise ChartError("this plan has a single lead. Give further ones: leads=True.")
    curves, cut = [], False
    for which, first in enumerate(plan.rows):
        rows = [(one.lead, one.rows[which]) for one in plan.by_lead]
        some = [(lead, row) for lead, row in rows if math.isfinite(row.median)]
        cut = cut or any(row.undecided for _, row in rows)
        if some:
            x, y = tuple(lead for lead, _ in some), tuple(row.median for _, row in some)
            high = tuple(min(row.high, float(plan.max_pulls)) for _, row in some)
            low = tuple(row.low for _, row in some)
            curves.append(Curve(_CALLED.get(first.name, first.name), x, y, low, high))
    sizes = [
        (one.lead, one.fixed)
        for one in plan.by_lead
        if one.fixed is not None and math.isfinite(one.fixed)
    ]
    if sizes:
        leads, needed = zip(*sizes, strict=True)
        curves.append(Curve(_FIXED, leads, needed))
    subtitle = [
        f"Medians of {plan.draws} simulated studies each; lines from 5 % to 90 % of them.",
        "Equal shares: the same test. Fixed number: one test at the end names the best in 90 %.",
    ]
    if cut:
        subtitle.append(f"Studies that need more than {plan.max_pulls:,} were stopped.")
    title = "Measurements against the smallest lead that matters"
    words = "Lead of the best over the second best", plan.unit.capitalize(), title, subtitle
    return curves_chart(curves, *words, log_x=True)
