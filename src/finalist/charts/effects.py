"""Charts of the model of a study: what columns do, what is left over, and what bends."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from finalist.charts.theme import (
    ACCENT,
    MUTED,
    PALETTE,
    AnyChart,
    data,
    finish,
    first_of,
    named_in_full,
    not_shown,
    own_colours,
)
from finalist.charts.values import SAYING, spoken
from finalist.errors import ChartError
from finalist.shapes import Float, Int
from finalist.text import counted

_WIDTH, _PHONE, _HEIGHT = 360, 230, 190
#: Points of a scatter that are drawn.
MAX_POINTS = 1000
_MODEL, _BENT, _SEEN = "the model", "with bends", "measured"


def effects_chart(
    names: Sequence[str],
    change: Float[np.ndarray, " n"],
    low: Float[np.ndarray, " n"],
    high: Float[np.ndarray, " n"],
    *,
    label: str = "Change of the result",
    title: str = "What each column does",
    subtitle: Sequence[str] = (),
    narrow: bool = False,
) -> AnyChart:
    """Show the effect of each column over its range with its interval; the largest 40.

    Parameters
    ----------
    names : sequence of str
    change, low, high : (n,) arrays
        NaN if unknown.
    label : str
        Of the axis.
    narrow : bool
        For phones.

    Examples
    --------
    >>> two = np.array([0.5, -3.0])
    >>> chart = effects_chart(["dose", "heat"], two, two - 1, two + 1)
    >>> [row["column"] for row in chart.to_dict()["data"]["values"]]
    ['heat', 'dose']
    """
    import altair as alt

    known = np.flatnonzero(np.isfinite(change))
    if len(known) == 0:
        raise ChartError("no column has an effect yet: record some results first.")
    order = known[np.argsort(-np.abs(change[known]), kind="stable")]
    shown = first_of(names, order)
    rows: list[dict[str, Any]] = [
        {
            "column": name,
            "change": float(change[i]),
            "low": float(low[i] if np.isfinite(low[i]) else change[i]),
            "high": float(high[i] if np.isfinite(high[i]) else change[i]),
            "says": f"{name}: {spoken(change[i])}{_between(low[i], high[i])}",
        }
        for name, i in shown.items()
    ]
    axis = alt.Axis(title=None, domain=False, ticks=False, grid=False)
    base = alt.Chart().encode(y=alt.Y("column:N", sort=None, axis=axis))
    x = alt.X(
        "low:Q",
        scale=alt.Scale(zero=True, nice=True),
        axis=alt.Axis(title=label, tickCount=5, labelOverlap=True),
    )
    lines = base.mark_rule(strokeWidth=2.6, opacity=0.55, color=PALETTE[0]).encode(x=x, x2="high:Q")
    dots = base.mark_circle(size=80, opacity=1, color=PALETTE[0], **SAYING).encode(
        x="change:Q", description="says:N"
    )
    zero = alt.Chart().mark_rule(color=MUTED, strokeDash=[4, 4]).encode(x=alt.datum(0.0))
    layers = alt.layer(zero, lines, dots, data=data(rows))
    remarks = [*subtitle, *not_shown(order, shown, "smaller effects")]
    width = _PHONE if narrow else _WIDTH
    return finish(layers.properties(width=width, height={"step": 28}), title, remarks, width)


def _between(low: float, high: float) -> str:
    known = np.isfinite(low) and np.isfinite(high)
    return f" ({spoken(low)} to {spoken(high)})" if known else ""


def residuals_chart(
    number: Int[np.ndarray, " n"],
    fitted: Float[np.ndarray, " n"],
    residual: Float[np.ndarray, " n"],
    *,
    names: Sequence[str],
    colours: Sequence[str],
    label: Callable[[str], str] = str,
    title: str = "What the model does not explain",
    subtitle: Sequence[str] = (),
    narrow: bool = False,
) -> AnyChart:
    """Show results less their estimates: against the estimates, and in the order measured.

    Parameters
    ----------
    number : (n,) array of int
        Of the measurements; of more than a thousand results every so many are drawn.
    fitted, residual : (n,) arrays
    names, colours : sequences of str
        Of the candidate of each result.
    label : callable
        What an axis of results is called; by default what it shows, in a word.
    narrow : bool
        For phones.

    Examples
    --------
    >>> fitted, rest = np.array([1.0, 2, 3]), np.array([0.1, -0.2, 0.1])
    >>> chart = residuals_chart(np.arange(3), fitted, rest, names="abc", colours=["#0072B2"] * 3)
    >>> len(chart.to_dict()["vconcat"])
    2
    """
    import altair as alt

    if len(number) == 0:
        raise ChartError("no result to draw yet: record some results first.")
    some = np.unique(np.linspace(0, len(number) - 1, MAX_POINTS).astype(int))
    rows = [
        {
            "number": int(number[i]),
            "fitted": float(fitted[i]),
            "residual": float(residual[i]),
            "colour": colours[i],
            "says": f"measurement {number[i]}, {named_in_full(names[i])}: "
            f"{spoken(fitted[i] + residual[i])}, expected {spoken(fitted[i])}",
        }
        for i in some.tolist()
    ]
    panels = []
    for field, words in (("fitted", label("Estimate")), ("number", "Measurement, in their order")):
        x = alt.X(
            f"{field}:Q",
            scale=alt.Scale(zero=False),
            axis=alt.Axis(title=words, tickCount=6, labelOverlap=True, grid=False),
        )
        y = alt.Y("residual:Q", axis=alt.Axis(title=label("Result minus estimate")))
        dots = alt.Chart().mark_circle(size=36, opacity=0.7, **SAYING)
        dots = dots.encode(x=x, y=y, color=own_colours(), description="says:N")
        zero = alt.Chart().mark_rule(color=MUTED, strokeDash=[4, 4]).encode(y=alt.datum(0.0))
        layers = alt.layer(zero, dots, data=data(rows))
        panels.append(layers.properties(width=_PHONE if narrow else _WIDTH, height=_HEIGHT))
    remarks = [*subtitle]
    if len(some) < len(number):
        remarks.append(f"Drawn: {len(some):,} of {len(number):,} results")
    width = _PHONE if narrow else _WIDTH
    return finish(alt.vconcat(*panels, spacing=24), title, remarks, width)


def bends_chart(
    panels: Sequence[tuple[str, str, dict[str, np.ndarray]]],
    *,
    label: str = "Mean",
    title: str = "What bends",
    subtitle: Sequence[str] = (),
    narrow: bool = False,
) -> AnyChart:
    """Show measured means against columns, with the model's line and that of one that bends.

    Parameters
    ----------
    panels : sequence of (str, str, dict)
        Of each the column, what is said above it, and the arrays `x`, `straight`, `bent` (the
        lines) and `at`, `mean`, `pulls` (the measured means).
    label : str
        Of the means.
    narrow : bool
        For phones.

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> lines = {"x": x, "straight": x, "bent": x * (2 - x)}
    >>> dots = {"at": x, "mean": np.array([0.1, 0.9, 0.2]), "pulls": np.array([3, 1, 3])}
    >>> chart = bends_chart([("dose", "", lines | dots)])
    >>> chart.to_dict()["title"]["text"]
    'What bends'
    """
    import altair as alt

    if not panels:
        raise ChartError("nothing is known to bend.")
    drawn = []
    for column, words, found in panels:
        lines = [
            {"x": float(x), "y": float(y), "what": what}
            for what, values in ((_MODEL, found["straight"]), (_BENT, found["bent"]))
            for x, y in zip(found["x"], values, strict=True)
        ]
        dots = [
            {
                "x": float(x),
                "y": float(y),
                "what": _SEEN,
                "pulls": int(n),
                "says": f"{column} {spoken(x)}: measured {spoken(y)} "
                f"({counted(int(n), 'result')}), "
                f"{_MODEL} {spoken(np.interp(x, found['x'], found['straight']))}, "
                f"{_BENT} {spoken(np.interp(x, found['x'], found['bent']))}",
            }
            for x, y, n in zip(found["at"], found["mean"], found["pulls"], strict=True)
        ]
        colour = alt.Color(
            "what:N",
            scale=alt.Scale(domain=[_MODEL, _BENT, _SEEN], range=[MUTED, ACCENT, PALETTE[0]]),
            legend=alt.Legend(title=None, orient="bottom", symbolType="circle"),
        )
        x = alt.X("x:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=column, grid=False))
        y = alt.Y("y:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=label))
        curves = alt.Chart(data(lines)).mark_line(strokeWidth=2.4)
        size = alt.Size("pulls:Q", scale=alt.Scale(range=[40, 200]), legend=None)
        points = alt.Chart(data(dots)).mark_circle(opacity=0.75, **SAYING)
        panel = alt.layer(
            curves.encode(x=x, y=y, color=colour),
            points.encode(x=x, y=y, color=colour, size=size, description="says:N"),
        ).properties(width=_PHONE if narrow else _WIDTH, height=_HEIGHT)
        drawn.append(panel.properties(title=words) if words else panel)
    width = _PHONE if narrow else _WIDTH
    return finish(alt.vconcat(*drawn, spacing=24), title, subtitle, width)
