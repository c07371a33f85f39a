"""Designs and gaps as bars and dots."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from finalist.charts.theme import (
    ACCENT,
    INK,
    MAX_ARMS,
    MUTED,
    PALETTE,
    AnyChart,
    data,
    finish,
    first_of,
    labels,
    not_shown,
)
from finalist.errors import ChartError
from finalist.files import printable
from finalist.shapes import Float, Int
from finalist.text import counted

#: Gaps that differ by more than this factor need a logarithmic axis.
_LOGARITHMIC = 50.0


def weights_chart(
    names: Sequence[str],
    weights: Float[np.ndarray, " K"],
    pulls: Int[np.ndarray, " K"] | None = None,
    title: str = "Where to measure",
) -> AnyChart:
    """Show a design as bars, the heaviest arm first; at most 40 arms.

    Parameters
    ----------
    names : sequence of str
        A name for each arm.
    weights : (K,) array
        The design.
    pulls : (K,) array of int, optional
        The allocation, written beside the bars.

    Examples
    --------
    >>> chart = weights_chart(["a", "b", "c"], np.array([0.2, 0.8, 0.0]))
    >>> [row["arm"] for row in chart.to_dict()["data"]["values"]]
    ['b', 'a']
    """
    panel, subtitle = weights_panel(names, weights, pulls)
    return finish(panel, title, subtitle)


def weights_panel(
    names: Sequence[str],
    weights: Float[np.ndarray, " K"],
    pulls: Int[np.ndarray, " K"] | None,
    width: int = 420,
) -> tuple[Any, list[str]]:
    """Return the bars of `weights_chart` without title, and its subtitle."""
    import altair as alt

    _check(names, weights)
    support = np.flatnonzero(weights > 0)
    order = support[np.argsort(-weights[support], kind="stable")]
    arms = first_of(names, order)
    shown = list(arms.values())
    notes = [_share(weights[i]) for i in shown]
    if pulls is not None:
        notes = [
            f"{counted(int(pulls[i]), 'pull')}  ({note})"
            for i, note in zip(shown, notes, strict=True)
        ]
    rows: list[dict[str, Any]] = [
        {"arm": label, "weight": float(weights[i]), "note": note}
        for label, i, note in zip(arms, shown, notes, strict=True)
    ]
    base = alt.Chart(data(rows)).encode(y=arm_axis())
    bars = base.mark_bar(color=PALETTE[0], height={"band": 0.68}, cornerRadiusEnd=2).encode(
        x=_share_axis(float(weights.max()))
    )
    text = base.mark_text(align="left", dx=6, color=MUTED, fontSize=12).encode(
        x="weight:Q", text="note:N"
    )
    total = "" if pulls is None else f", {counted(int(pulls.sum()), 'pull')} in all"
    subtitle = [f"{counted(len(support), 'arm')} of {len(names)} to pull{total}"]
    rest = max(float(weights[support].sum() - weights[shown].sum()), 0.0)
    subtitle += not_shown(order, shown, f"more with {_share(rest)} of the pulls")
    return (bars + text).properties(width=width, height=_height(len(shown))), subtitle


def designs_chart(
    designs: Mapping[str, Float[np.ndarray, " K"]],
    names: Sequence[str],
    title: str = "Where the designs measure",
) -> AnyChart:
    """Show several designs for the same arms side by side, one panel each.

    Parameters
    ----------
    designs : mapping of str to (K,) array
        Weights by the label of the design.
    names : sequence of str
        A name for each arm.

    Returns
    -------
    altair chart
        With the arms that some design pulls, in order; the 40 heaviest if there are more.

    Examples
    --------
    >>> chart = designs_chart({"G": np.array([0.5, 0.5]), "XY": np.array([0.9, 0.1])}, ["a", "b"])
    >>> len(chart.to_dict()["data"]["values"])
    4
    """
    import altair as alt

    if not designs:
        raise ChartError("there is no design to show. Pass at least one.")
    for weights in designs.values():
        _check(names, weights)
    heaviest = np.max(list(designs.values()), axis=0)
    support = np.flatnonzero(heaviest > 0)
    heavy = support[np.argsort(-heaviest[support], kind="stable")][:MAX_ARMS]
    shown, titles = first_of(names, np.sort(heavy)), labels(list(designs), width=40)
    rows: list[dict[str, Any]] = [
        {
            "design": heading,
            "arm": label,
            "weight": float(weights[i]),
            "note": _share(weights[i]),
        }
        for heading, weights in zip(titles, designs.values(), strict=True)
        for label, i in shown.items()
    ]
    colours = [PALETTE[j % len(PALETTE)] for j in range(len(titles))]
    base = alt.Chart().encode(y=arm_axis())
    bars = base.mark_bar(height={"band": 0.68}, cornerRadiusEnd=2).encode(
        x=_share_axis(float(heaviest.max()), ticks=3),
        color=alt.Color(
            "design:N", sort=titles, scale=alt.Scale(domain=titles, range=colours), legend=None
        ),
    )
    text = base.mark_text(align="left", dx=5, color=MUTED, fontSize=11.5).encode(
        x="weight:Q", text="note:N"
    )
    panels = (bars + text).properties(width=200, height=_height(len(shown)))
    header = alt.Header(labelAnchor="start", labelPadding=8)
    chart = panels.facet(
        facet=alt.Facet("design:N", sort=titles, header=header, title=None),
        columns=len(titles),
        data=data(rows),
        spacing=28,
    )
    subtitle = [f"{counted(len(support), 'arm')} of {len(names)} pulled by at least one design"]
    subtitle += not_shown(support, shown, "more with smaller weights")
    return finish(chart, title, subtitle)


def gaps_chart(
    names: Sequence[str], gaps: Float[np.ndarray, " K"], title: str | None = None
) -> AnyChart:
    """Show how far each arm is behind the best one, the closest first; at most 40 arms.

    Parameters
    ----------
    names : sequence of str
        A name for each arm.
    gaps : (K,) array
        Expected reward of the best arm minus that of each arm (`Complexity.gaps`); the best
        arm has gap 0.
    title : str, optional
        By default it names the best arm.

    Returns
    -------
    altair chart
        With a logarithmic axis when the gaps differ by more than a factor of 50.

    Examples
    --------
    >>> chart = gaps_chart(["a", "b", "c"], np.array([0.5, 0.0, 0.1]))
    >>> [row["arm"] for row in chart.to_dict()["data"]["values"]]
    ['c', 'a']
    """
    import altair as alt

    _check(names, gaps)
    order = np.argsort(gaps, kind="stable")
    best, behind = int(order[0]), order[1:]
    shown = first_of(names, behind)
    rows: list[dict[str, Any]] = [
        {"arm": label, "gap": float(gaps[i]), "note": f"{gaps[i]:.3g}", "hardest": rank == 0}
        for rank, (label, i) in enumerate(shown.items())
    ]
    positive = [row["gap"] for row in rows if row["gap"] > 0]
    wide = len(positive) == len(rows) > 1 and max(positive) > _LOGARITHMIC * min(positive)
    base = alt.Chart(data(rows)).encode(y=arm_axis(grid=wide))
    text = base.mark_text(align="left", dx=10 if wide else 6, color=INK, fontSize=12).encode(
        x="gap:Q", text="note:N"
    )
    marks = _gap_marks(base, positive, wide)
    if title is None:
        title = f"How far each arm is behind {printable(names[best], 40)}, the best"
    subtitle = ["The closer an arm, the more pulls it takes to rule it out."]
    subtitle += not_shown(behind, shown, "more that are further behind")
    return finish((marks + text).properties(width=420, height=_height(len(shown))), title, subtitle)


def _gap_marks(base: Any, gaps: Sequence[float], wide: bool) -> Any:
    """Draw bars; points on a logarithmic axis, where the length of a bar means nothing."""
    import altair as alt

    title, largest = "Gap to the best, in units of the reward", max(gaps, default=1.0)
    scale: dict[str, Any] = {"domain": [0.0, 1.15 * largest]}
    if wide:
        title += " (logarithmic)"
        scale = {"domain": [min(gaps) / 2, 4 * largest], "type": "log"}
        marks = base.mark_circle(size=130, opacity=1)
    else:
        marks = base.mark_bar(height={"band": 0.68}, cornerRadiusEnd=2)
    return marks.encode(
        x=alt.X(
            "gap:Q",
            scale=alt.Scale(nice=False, **scale),
            axis=alt.Axis(title=title, format="~g", tickCount=5),
        ),
        color=alt.condition("datum.hardest", alt.value(ACCENT), alt.value(PALETTE[0])),
    )


def arm_axis(grid: bool = False) -> Any:
    """Return the vertical axis with the names of the arms."""
    import altair as alt

    axis = alt.Axis(title=None, domain=False, ticks=False, grid=grid)
    return alt.Y("arm:N", sort=None, axis=axis)


def _share_axis(largest: float, ticks: int = 5) -> Any:
    import altair as alt

    # Leave room on the right for the number beside the longest bar.
    return alt.X(
        "weight:Q",
        scale=alt.Scale(domain=[0.0, 1.3 * (largest or 1.0)], nice=False),
        axis=alt.Axis(title="Share of all pulls", format="~%", tickCount=ticks),
    )


def _height(rows: int) -> Any:
    """Return the height per row; many rows are drawn closer together."""
    return {"step": 24 if rows <= 20 else 19}


def _share(weight: float) -> str:
    if weight == 0:
        return "0%"
    return "<0.1%" if weight < 0.0005 else f"{weight:.1%}"


def _check(names: Sequence[str], values: Float[np.ndarray, " K"]) -> None:
    if len(names) != len(values):
        raise ChartError(
            f"there are {len(names)} names for {len(values)} numbers. Pass one name per number."
        )
    if len(values) == 0 or not np.isfinite(values).all() or (values < 0).any():
        raise ChartError("a chart needs one number or more, all finite and at least 0.")
