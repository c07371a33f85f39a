"""Strategies side by side: ratios to a bound, survival curves, and their shares of the pulls."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finalist.charts.theme import INK, MUTED, PALETTE, AnyChart, data, finish, round_numbers
from finalist.charts.theme import labels as unique_labels
from finalist.errors import ChartError
from finalist.shapes import Float

#: Ratios from 1 to this are shaded; larger ones have the darkest shade.
_MOST = 100.0
_SHADES = ("#F2F7FB", "#CFE3F1", "#8DBBDD", "#3B87BD", "#0B4F85", "#052F52")
#: Ratios above this get white letters.
_DARK = 12.0
#: Heights at which a survival curve is drawn.
_STEPS = 50
#: Width of the bars that show shares, in pixels.
_BARS = 400


@dataclass(frozen=True)
class Ratio:
    """The value of one row and one column; None if there is none.

    Attributes
    ----------
    least : bool
        Whether the value is only a lower limit.
    """

    column: str
    row: str
    value: float | None
    least: bool = False


def ratios_chart(ratios: Sequence[Ratio], title: str, subtitle: Sequence[str]) -> AnyChart:
    """Show ratios as a shaded table, in the order of first appearance.

    Examples
    --------
    >>> chart = ratios_chart([Ratio("g", "paper", 3.2), Ratio("g", "cube", 200.0, True)], "R", [])
    >>> [row["text"] for row in chart.to_dict()["data"]["values"]]
    ['3.20', '≥ 200']
    """
    import altair as alt

    if not any(ratio.value is not None for ratio in ratios):
        raise ChartError("there is no ratio to show. Pass at least one with a value.")
    rows: list[dict[str, Any]] = [
        {"column": r.column, "row": r.row, "value": r.value, "text": ratio_text(r.value, r.least)}
        for r in ratios
    ]
    columns = list(dict.fromkeys(r.column for r in ratios))
    names = list(dict.fromkeys(r.row for r in ratios))
    plain: dict[str, Any] = {"title": None, "domain": False, "ticks": False}
    base = alt.Chart(data(rows)).encode(
        x=alt.X("column:N", sort=columns, axis=alt.Axis(orient="top", labelAngle=-35, **plain)),
        y=alt.Y("row:N", sort=names, axis=alt.Axis(**plain)),
    )
    domain = np.geomspace(1.0, _MOST, len(_SHADES)).tolist()
    shade = alt.Color(
        "value:Q",
        scale=alt.Scale(type="log", domain=domain, range=list(_SHADES), clamp=True),
        legend=None,
    )
    there = "datum.value !== null"
    boxes = (
        base.transform_filter(there).mark_rect(stroke="white", strokeWidth=2).encode(color=shade)
    )
    ink = alt.condition(f"{there} && datum.value > {_DARK}", alt.value("white"), alt.value(INK))
    text = base.mark_text(fontSize=12).encode(text="text:N", color=ink)
    return finish(
        (boxes + text).properties(width={"step": 62}, height={"step": 26}), title, subtitle
    )


def ratio_text(value: float | None, least: bool = False) -> str:
    """Return a ratio for people.

    Examples
    --------
    >>> [ratio_text(1.234), ratio_text(12.34), ratio_text(200.0, least=True), ratio_text(None)]
    ['1.23', '12.3', '≥ 200', '-']
    """
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    short = f"{value:.{digits}f}"
    return f"{'≥ ' if least else ''}{short.rstrip('0').rstrip('.') if least and digits else short}"


@dataclass(frozen=True, eq=False)
class Survival:
    """When the runs of one strategy ended, in one panel.

    Attributes
    ----------
    ends : (runs,) array
        Positive; infinite for runs that did not end.
    """

    panel: str
    label: str
    ends: Float[np.ndarray, " runs"]


def survival_chart(
    survivals: Sequence[Survival],
    x_title: str,
    title: str,
    subtitle: Sequence[str],
    columns: int = 3,
    domain: tuple[float, float] | None = None,
) -> AnyChart:
    """Show the share of undecided runs, with a panel per problem and a curve per strategy.

    Parameters
    ----------
    survivals : sequence of Survival
        At most six different labels.
    columns : int
        Panels per row.
    domain : (float, float), optional
        A common axis, for charts to be compared (`survival_domain`).

    Examples
    --------
    >>> chart = survival_chart([Survival("paper", "g", np.array([1.0, 2.0]))], "Pulls", "S", [])
    >>> [(row["x"], row["share"]) for row in chart.to_dict()["data"]["values"]]
    [(1.0, 1.0), (1.0, 0.5), (2.0, 0.0)]
    """
    import altair as alt

    labels = list(dict.fromkeys(s.label for s in survivals))
    if not survivals or len(labels) > len(PALETTE):
        raise ChartError(f"{len(labels)} curves in a panel; draw 1 to {len(PALETTE)}.")
    domain = domain or survival_domain(survivals)
    rows = [row for s in survivals for row in _steps(s)]
    lines = (
        alt.Chart()
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=alt.X("x:Q", title=x_title)
            .scale(type="log", domain=list(domain), nice=False)
            .axis(values=_ticks(domain), format="~g", grid=False),
            y=alt.Y("share:Q", title=None)
            .scale(domain=[0, 1])
            .axis(format="%", values=[0, 0.5, 1]),
            color=alt.Color("label:N", sort=labels, title=None)
            .scale(domain=labels, range=list(PALETTE[: len(labels)]))
            .legend(orient="top", symbolType="stroke", symbolStrokeWidth=3, columns=3),
        )
    )
    even = alt.Chart().mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x=alt.datum(1.0))
    layers = [lines, even] if domain[0] < 1.0 < domain[1] else [lines]
    panels = list(dict.fromkeys(s.panel for s in survivals))
    chart = (
        alt.layer(*layers, data=data(rows))
        .properties(width=230, height=110)
        .facet(facet=alt.Facet("panel:N", sort=panels, title=None), columns=columns)
    )
    return finish(chart, title, subtitle)


def survival_domain(survivals: Sequence[Survival]) -> tuple[float, float]:
    """Return a common axis for all curves.

    Examples
    --------
    >>> survival_domain([Survival("paper", "g", np.array([1.1, 2.0, np.inf]))])
    (1.0, 2.2)
    """
    ends = np.concatenate([s.ends[np.isfinite(s.ends)] for s in survivals])
    if not (len(ends) and (ends > 0).all()):
        raise ChartError("no run ended at a positive number; there is no curve to draw.")
    return float(ends.min()) / 1.1, float(ends.max()) * 1.1


def _steps(survival: Survival) -> list[dict[str, Any]]:
    """Return the corners of a curve; a long one at `_STEPS` heights."""
    ends = np.sort(survival.ends)
    total = len(ends)
    last = np.unique(np.linspace(0, total - 1, min(total, _STEPS)).round().astype(int))
    about = {"panel": survival.panel, "label": survival.label}
    points = [
        {**about, "x": float(ends[i]), "share": float(1.0 - (i + 1) / total)}
        for i in last
        if math.isfinite(ends[i])
    ]
    return [{**points[0], "share": 1.0}, *points] if points else []


def _ticks(domain: Sequence[float]) -> list[float]:
    """Return round numbers within the domain, a factor of 2 or so apart."""
    inside = round_numbers(*domain)
    return inside if len(inside) <= 7 else [v for v in inside if f"{v:e}".startswith("1")]


def shares_chart(
    groups: Mapping[str, Mapping[str, Float[np.ndarray, " K"]]],
    names: Sequence[str],
    title: str,
    subtitle: Sequence[str],
) -> AnyChart:
    """Show each arm's share of the pulls as stacked bars, a panel for each group.

    Strategies are in the order of the largest group.

    Parameters
    ----------
    groups : mapping of str to mapping of str to (K,) array
        Shares by strategy, by the title of the panel.
    names : sequence of str
        The arms, at most six.

    Examples
    --------
    >>> groups = {"Here": {"G": np.array([0.5, 0.5]), "Oracle": np.array([0.1, 0.9])}}
    >>> rows = shares_chart(groups, ["a", "b"], "Shares", []).to_dict()["data"]["values"]
    >>> rows[-1]["note"], rows[0]["note"]
    ('b 90.0%', '2 arms, 50.0% each')
    """
    import altair as alt

    if not groups or not all(groups.values()):
        raise ChartError("there are no shares to show. Pass at least one strategy.")
    if len(names) > len(PALETTE):
        raise ChartError(
            f"stacked bars have {len(PALETTE)} colours, not enough for {len(names)} arms."
        )
    arms = unique_labels(names)
    largest = max(groups, key=lambda heading: len(groups[heading]))
    rows: list[dict[str, Any]] = [
        {
            "group": heading,
            "strategy": label,
            "arm": arm,
            "rank": i,
            "share": float(shares[i]),
            "note": _note(arms, shares),
        }
        for heading, group in groups.items()
        for label, shares in group.items()
        for i, arm in enumerate(arms)
    ]
    y = alt.Y(
        "strategy:N",
        sort=list(groups[largest]),
        axis=alt.Axis(title=None, domain=False, ticks=False),
    )
    base = alt.Chart().encode(y=y)
    colours = alt.Scale(domain=arms, range=list(PALETTE[: len(arms)]))
    legend = alt.Legend(title="Arm", orient="bottom", direction="horizontal", symbolType="square")
    bars = base.mark_bar(height={"band": 0.7}).encode(
        x=alt.X(
            "sum(share):Q",
            scale=alt.Scale(domain=[0.0, 1.0], nice=False),
            axis=alt.Axis(title="Share of all pulls", format="~%", tickCount=5),
        ),
        color=alt.Color("arm:N", sort=arms, scale=colours, legend=legend),
        order="rank:O",
    )
    text = base.mark_text(align="left", color=MUTED, fontSize=11.5).encode(
        x=alt.value(_BARS + 6), text="note:N"
    )
    panels = (bars + text.transform_filter("datum.rank == 0")).properties(
        width=_BARS, height={"step": 24}
    )
    chart = panels.facet(
        facet=alt.Facet(
            "group:N",
            sort=list(groups),
            title=None,
            header=alt.Header(labelAnchor="start", labelPadding=8),
        ),
        columns=1,
        data=data(rows),
        spacing=26,
    ).resolve_scale(y="independent", x="shared")
    return finish(chart, title, subtitle)


def _note(arms: Sequence[str], shares: Float[np.ndarray, " K"]) -> str:
    """Say which arm gets most of the pulls, or how many arms get about the same."""
    top = int(shares.argmax())
    if shares[top] > 0.5:
        return f"{arms[top]} {shares[top]:.1%}"
    some = shares[shares > 0.01]
    if some.max() - some.min() < 0.002:
        return f"{len(some)} arms, {some.mean():.1%} each"
    return f"{len(some)} arms, {some.min():.1%} to {some.max():.1%}"
