"""Curves with intervals and labels at their ends, and ranges with a value in each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from finalist.charts.theme import ACCENT, INK, MUTED, PALETTE, AnyChart, data, finish, labels
from finalist.charts.values import SAYING, spoken
from finalist.errors import ChartError

if TYPE_CHECKING:
    from finalist.planning import MarginPrices

_WIDTH, _HEIGHT = 520, 340
#: Least distance of two labels, in pixels.
_LINE = 17
#: Sideways shift between curves with intervals, as a part of a tick's distance and of the axis.
_DODGE, _MAX_DODGE = 0.07, 0.008
#: A short thick line, the symbol of a reference.
_DASH = "M-1.2,-0.2L1.2,-0.2L1.2,0.2L-1.2,0.2Z"
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")


@dataclass(frozen=True)
class Curve:
    """A line through points.

    Attributes
    ----------
    low, high : tuple of float
        Ends of an interval around each y; empty if there is none.
    reference : bool
        A dashed line without points: a bound, not a measurement.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    reference: bool = False


def curves_chart(
    curves: Sequence[Curve],
    x_title: str,
    y_title: str,
    title: str,
    subtitle: Sequence[str],
    log: bool = True,
    log_x: bool = False,
    y_format: str = "~s",
) -> AnyChart:
    """Show curves with their intervals, each named at its right end.

    Parameters
    ----------
    curves : sequence of Curve
        At most six that are not references.
    log : bool
        Whether the vertical axis is logarithmic.
    log_x : bool
        Whether the horizontal axis is logarithmic.
    y_format : str
        How d3 formats the numbers of the vertical axis.

    Examples
    --------
    >>> curve = Curve("G", (2.0, 5.0), (10.0, 25.0))
    >>> curves_chart([curve], "d", "Pulls", "Budget", []).to_dict()["title"]["text"]
    'Budget'
    """
    import altair as alt

    _check(curves, log, log_x)
    if log_x:  # on a linear axis of logarithms, where curves are moved sideways by equal amounts
        curves = [replace(curve, x=tuple(map(math.log10, curve.x))) for curve in curves]
    domain = _domain([v for c in curves for v in (*c.y, *c.low, *c.high)], log)
    ticks = sorted({float(value) for curve in curves for value in curve.x})
    shifts = _shifts(curves, ticks)
    inner = (ticks[-1] - ticks[0]) * 0.02 + max(shifts)
    axes = {
        "x": alt.X(
            "x:Q",
            scale=alt.Scale(domain=[ticks[0] - inner, ticks[-1] + inner], nice=False, zero=False),
            axis=alt.Axis(
                title=x_title,
                values=ticks,
                labelExpr="format(pow(10, datum.value), ',.4~r')" if log_x else "datum.value",
                labelOverlap=True,
                grid=False,
            ),
        ),
        "y": alt.Y(
            "y:Q",
            scale=alt.Scale(domain=domain, nice=False, type="log" if log else "linear"),
            axis=alt.Axis(title=y_title, format=y_format, tickCount=6),
        ),
    }
    layers = [*_marks(curves, shifts, axes, log_x), *_ends(curves, domain, log)]
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)
    return finish(chart, title, subtitle)


def margins_chart(prices: "MarginPrices") -> AnyChart:
    """Show what margins save: the pulls with each, a curve for each lead.

    What is infinite is not drawn: a median that is beyond the cap, and the upper end of a range
    above it.

    Examples
    --------
    >>> import finalist as fl
    >>> prices = fl.margin_prices(fl.Arms.unstructured(3), sigma=1.0, gap=1.0, draws=2)
    >>> margins_chart(prices).to_dict()["title"]["text"]
    'What a margin saves'
    """
    curves, cut = [], False
    for lead in prices.leads:
        rows = [row for row in prices.rows if row.lead == lead]
        some = [row for row in rows if math.isfinite(row.median)]
        cut = cut or any(row.undecided for row in rows)
        if some:
            x, y = tuple(row.margin for row in some), tuple(row.median for row in some)
            high = tuple(min(row.high, float(prices.max_pulls)) for row in some)
            curves.append(Curve(f"lead {lead:g}", x, y, tuple(row.low for row in some), high))
    subtitle = [
        f"Medians of {prices.draws} simulated studies each; lines from 5 % to 90 % of them.",
        "A margin is a difference that would not matter. With 0 the very best is looked for.",
    ]
    if cut:
        subtitle.append(f"Studies that need more than {prices.max_pulls:,} were stopped.")
    y_title = prices.unit.capitalize()
    return curves_chart(curves, "Margin", y_title, "What a margin saves", subtitle)


@dataclass(frozen=True)
class Range:
    """A value that should lie between two others, and the lower limit that was claimed, if any."""

    label: str
    low: float
    value: float
    high: float
    claimed: float | None = None


def ranges_chart(
    ranges: Sequence[Range], x_title: str, title: str, subtitle: Sequence[str]
) -> AnyChart:
    """Show a range as a line, the value in it as a dot and a claimed lower limit as a cross.

    Parameters
    ----------
    ranges : sequence of Range
        Positive numbers; the axis is logarithmic.
    """
    import altair as alt

    names = labels([r.label for r in ranges], 40)
    rows: list[dict[str, Any]] = [
        {"name": name, "low": r.low, "value": r.value, "high": r.high, "claimed": r.claimed}
        for name, r in zip(names, ranges, strict=True)
    ]
    numbers = [v for row in rows for v in list(row.values())[1:] if v is not None]
    scale = alt.Scale(type="log", domain=_domain(numbers, True), nice=False)
    y = alt.Y("name:N", sort=None, axis=alt.Axis(title=None, domain=False, ticks=False, grid=True))
    base = alt.Chart(data(rows)).encode(y=y)
    axis = alt.Axis(title=x_title, format="~s", tickCount=6)
    span = base.mark_rule(strokeWidth=7, color=PALETTE[5], opacity=0.55, strokeCap="round").encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"
    )
    dots = base.mark_circle(size=90, color=PALETTE[0], opacity=1).encode(x="value:Q")
    crosses = (
        base.transform_filter("datum.claimed !== null")
        .mark_point(shape="cross", angle=45, filled=True, size=110, color=ACCENT, opacity=1)
        .encode(x="claimed:Q")
    )
    chart = (span + dots + crosses).properties(width=_WIDTH, height={"step": 30})
    return finish(chart, title, subtitle)


def _check(curves: Sequence[Curve], log: bool, log_x: bool) -> None:
    if not curves or not all(curve.x for curve in curves):
        raise ChartError("there is no curve to show. Pass at least one, with points.")
    if sum(not curve.reference for curve in curves) > len(PALETTE):
        raise ChartError(f"a chart tells {len(PALETTE)} curves apart. Draw two charts.")
    values = [(v, log) for curve in curves for v in curve.y]
    values += [(v, log_x) for curve in curves for v in curve.x]
    if not all(math.isfinite(v) and (v > 0 or not positive) for v, positive in values):
        raise ChartError("a curve needs finite numbers, above 0 for a logarithmic axis.")


def _styles(curves: Sequence[Curve]) -> dict[str, Any]:
    """Return the colour and shape encodings; references are grey."""
    import altair as alt

    free = iter(zip(PALETTE, _SHAPES, strict=True))
    styles = [(MUTED, _DASH) if curve.reference else next(free) for curve in curves]
    names = [curve.label for curve in curves]
    colours, shapes = [style[0] for style in styles], [style[1] for style in styles]
    return {
        "color": alt.Color("curve:N", scale=alt.Scale(domain=names, range=colours), legend=None),
        "shape": alt.Shape("curve:N", scale=alt.Scale(domain=names, range=shapes), legend=None),
    }


def _shifts(curves: Sequence[Curve], ticks: Sequence[float]) -> list[float]:
    """Return how far each curve is moved sideways, so that intervals do not hide each other."""
    measured = [i for i, curve in enumerate(curves) if curve.low]
    nearest = min((b - a for a, b in pairwise(ticks)), default=0.0)
    step = min(_DODGE * nearest, _MAX_DODGE * (ticks[-1] - ticks[0]))
    place = {i: (rank - (len(measured) - 1) / 2) * step for rank, i in enumerate(measured)}
    return [place.get(i, 0.0) for i in range(len(curves))]


def _says(curve: Curve, i: int, log_x: bool) -> str:
    x = 10.0 ** curve.x[i] if log_x else curve.x[i]
    ends = f" ({spoken(curve.low[i])} to {spoken(curve.high[i])})" if curve.low else ""
    return f"{curve.label}, at {spoken(x)}: {spoken(curve.y[i])}{ends}"


def _marks(
    curves: Sequence[Curve], shifts: Sequence[float], axes: dict[str, Any], log_x: bool
) -> list[Any]:
    """Draw intervals, lines and points; a reference has a dashed line only."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {
            "curve": c.label,
            "x": x + shift,
            "y": float(y),
            "reference": c.reference,
            "says": _says(c, i, log_x),
        }
        | ({"low": float(c.low[i]), "high": float(c.high[i])} if c.low else {})
        for c, shift in zip(curves, shifts, strict=True)
        for i, (x, y) in enumerate(zip(c.x, c.y, strict=True))
    ]
    style = _styles(curves)
    measured = alt.Chart(data([row for row in rows if not row["reference"]]))
    bounds = alt.Chart(data([row for row in rows if row["reference"]]))
    intervals = alt.Chart(data([row for row in rows if "low" in row]))
    return [
        bounds.mark_line(strokeWidth=2, strokeDash=[6, 4]).encode(**axes, color=style["color"]),
        intervals.mark_rule(strokeWidth=1.6).encode(
            x="x:Q", y="low:Q", y2="high:Q", color=style["color"]
        ),
        measured.mark_line(strokeWidth=2).encode(**axes, color=style["color"]),
        measured.mark_point(filled=True, size=55, opacity=1, **SAYING).encode(
            x="x:Q", y="y:Q", description="says:N", **style
        ),
    ]


def _ends(curves: Sequence[Curve], domain: list[float], log: bool) -> list[Any]:
    """Name each curve at the height of its last point, the names a line apart."""
    import altair as alt

    heights = spread([curve.y[-1] for curve in curves], domain, log)
    rows: list[dict[str, Any]] = [
        {"curve": curve.label, "y": height} for curve, height in zip(curves, heights, strict=True)
    ]
    base = alt.Chart(data(rows)).encode(y="y:Q")
    symbols = base.mark_point(filled=True, size=60, opacity=1)
    text = base.mark_text(align="left", baseline="middle", fontSize=12.5, color=INK)
    return [
        symbols.encode(x=alt.value(_WIDTH + 14), **_styles(curves)),
        text.encode(x=alt.value(_WIDTH + 25), text="curve:N"),
    ]


def spread(values: Sequence[float], domain: list[float], log: bool) -> list[float]:
    """Return heights close to the values and at least a line apart.

    Examples
    --------
    >>> heights = spread([1.0, 1.0, 9.0], [0.0, 10.0], log=False)
    >>> heights[1] - heights[0] >= 0.4
    True
    """
    change = math.log10 if log else float
    back = (lambda v: 10.0**v) if log else float
    low, high = change(domain[0]), change(domain[1])
    step = (high - low) * _LINE / _HEIGHT
    order = sorted(range(len(values)), key=lambda i: values[i])
    places = [change(values[i]) for i in order]
    for _ in range(200):  # push neighbours apart until all have room
        moved = False
        for i in range(len(places) - 1):
            lack = step - (places[i + 1] - places[i])
            if lack > 1e-9 * step:
                places[i], places[i + 1] = places[i] - lack / 2, places[i + 1] + lack / 2
                moved = True
        if not moved:
            break
    found = [0.0] * len(values)
    for place, i in zip(places, order, strict=True):
        found[i] = float(back(place))
    return found


def _domain(values: Sequence[float], log: bool) -> list[float]:
    low, high = min(values), max(values)
    if log:
        return [low / 1.35, high * 1.35]
    margin = 0.06 * (high - low) or 1.0
    return [low - margin, high + margin]
