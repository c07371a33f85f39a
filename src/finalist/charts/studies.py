"""Charts of a study: estimates, pulls beside the best design, forecast, and the plane."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.charts.bars import arm_axis
from finalist.charts.geometry import ellipse
from finalist.charts.layers import check_plane, cross_layer, outline_layer, over_cones
from finalist.charts.theme import (
    ACCENT,
    INK,
    MUTED,
    PALETTE,
    AnyChart,
    data,
    finish,
    first_of,
    not_shown,
)
from finalist.errors import ChartError
from finalist.shapes import Bool, Float, Int

#: Width of a chart of rows; sides of the plane on a page and on a phone.
_WIDTH = 360
WIDE, NARROW = 380, 270
_GREY = "#8A96A3"


def intervals_chart(
    names: Sequence[str],
    estimate: Float[np.ndarray, " K"],
    low: Float[np.ndarray, " K"],
    high: Float[np.ndarray, " K"],
    survives: Bool[np.ndarray, " K"],
    winner: int | Sequence[int] | None = None,
    *,
    candidate: Bool[np.ndarray, " K"] | None = None,
    first: str = "winner",
    sign: int = 1,
    label: str = "Mean result",
    title: str = "Estimates",
    subtitle: Sequence[str] = (),
) -> AnyChart:
    """Show the estimated mean of each arm with its interval, the best first; at most 40 arms.

    Parameters
    ----------
    estimate, low, high : (K,) arrays
        NaN if unknown.
    survives : (K,) array of bool
        Arms that are out are grey.
    candidate : (K,) array of bool, optional
        Arms that can win, by default all; the others are only measured.
    first : str
        Label of the winner; without a guarantee it is a recommendation.
    sign : int
        1 if large means are good, -1 if small ones are.
    label : str
        Of the axis.

    Examples
    --------
    >>> ends = np.array([0.0, 1.0])
    >>> chart = intervals_chart(["a", "b"], ends, ends - 1, ends + 1, np.array([False, True]))
    >>> [row["arm"] for row in chart.to_dict()["data"]["values"]]
    ['b', 'a']
    """
    import altair as alt

    known = np.flatnonzero(np.isfinite(estimate))
    if len(known) == 0:
        raise ChartError("no candidate has an estimate yet: enter some results first.")
    can_win = np.ones(len(names), dtype=bool) if candidate is None else candidate
    group = np.where(survives, 0, np.where(can_win, 1, 2))
    winners = set() if winner is None else set(np.atleast_1d(winner).tolist())
    words = [first, "possible", "out", "measured only"]
    order = known[np.lexsort((-sign * estimate[known], group[known]))]
    shown = first_of(names, order)
    rows: list[dict[str, Any]] = [
        {
            "arm": label,
            "estimate": float(estimate[i]),
            "low": _finite(low[i], estimate[i]),
            "high": _finite(high[i], estimate[i]),
            "what": words[0 if i in winners else 1 + group[i]],
        }
        for label, i in shown.items()
    ]
    found = [word for word in words if any(row["what"] == word for row in rows)]
    colours = dict(zip(words, (ACCENT, PALETTE[0], _GREY, PALETTE[2]), strict=True))
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=found, range=[colours[word] for word in found]),
        legend=alt.Legend(title=None, orient="bottom", symbolType="circle"),
    )
    base = alt.Chart().encode(y=arm_axis(), color=colour)
    scale = alt.Scale(zero=False, nice=True)
    axis = alt.Axis(title=label, tickCount=6)
    lines = base.mark_rule(strokeWidth=2.6, opacity=0.55).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"
    )
    dots = base.mark_circle(size=80, opacity=1).encode(x="estimate:Q")
    remarks = [*subtitle, *not_shown(order, shown, "more candidates")]
    layers = alt.layer(lines, dots, data=data(rows))
    return finish(layers.properties(width=_WIDTH, height=_height(len(rows))), title, remarks)


def allocation_chart(
    names: Sequence[str],
    counts: Int[np.ndarray, " K"],
    optimal: Float[np.ndarray, " K"] | None,
    *,
    title: str = "Where the measurements went",
    subtitle: Sequence[str] = (),
) -> AnyChart:
    """Show the pulls of each arm as bars, and those of another design as marks.

    Parameters
    ----------
    optimal : (K,) array, optional
        Shares of the design to compare with.

    Returns
    -------
    altair chart
        With the arms that have pulls or should have, most first; at most 40.

    Examples
    --------
    >>> chart = allocation_chart(["a", "b"], np.array([3, 9]), np.array([0.5, 0.5]))
    >>> [row["best"] for row in chart.to_dict()["data"]["values"]]
    [6.0, 6.0]
    """
    import altair as alt

    total = int(counts.sum())
    if total == 0:
        raise ChartError("no candidate was measured yet: enter some results first.")
    best = np.zeros(len(names)) if optimal is None else total * np.asarray(optimal, dtype=float)
    larger = np.maximum(counts, best)
    some = np.flatnonzero(larger >= 0.5)
    some = some[np.argsort(-larger[some], kind="stable")]
    shown = first_of(names, some)
    rows: list[dict[str, Any]] = [
        {"arm": label, "pulls": int(counts[i]), "best": round(float(best[i]), 3)}
        for label, i in shown.items()
    ]
    base = alt.Chart().encode(y=arm_axis())
    bars = base.mark_bar(color=PALETTE[0], height={"band": 0.62}, cornerRadiusEnd=2).encode(
        x=alt.X(
            "pulls:Q",
            scale=alt.Scale(domain=[0.0, 1.12 * float(larger.max())], nice=False),
            axis=alt.Axis(title="Measurements", tickCount=6, format="~s"),
        )
    )
    text = base.mark_text(align="left", dx=6, color=MUTED, fontSize=12).encode(
        x="pulls:Q", text=alt.Text("pulls:Q", format=",")
    )
    layers = [bars, text]
    if optimal is not None:
        marks = base.mark_tick(color=ACCENT, thickness=3, height={"band": 0.9}, opacity=1)
        layers.insert(1, marks.encode(x="best:Q"))
    words = [*subtitle, *not_shown(some, shown, "more candidates with fewer measurements")]
    chart = alt.layer(*layers, data=data(rows))
    return finish(chart.properties(width=_WIDTH, height=_height(len(rows))), title, words)


def forecast_chart(
    pulls: Float[np.ndarray, " draws"],
    cap: int,
    *,
    title: str = "How many more measurements?",
    subtitle: Sequence[str] = (),
    narrow: bool = False,
) -> AnyChart:
    """Show the share of simulated futures that are decided, by further pulls.

    Parameters
    ----------
    pulls : (draws,) array
        Further pulls of each draw; infinite if it stayed undecided.
    cap : int
        Further pulls after which draws were cut.
    narrow : bool
        For phones.

    Examples
    --------
    >>> chart = forecast_chart(np.array([10.0, 30.0, np.inf]), cap=100)
    >>> [row["share"] for row in chart.to_dict()["layer"][0]["data"]["values"]]
    [0.0, 0.3333, 0.6667, 0.6667]
    """
    import altair as alt

    decided = np.sort(pulls[np.isfinite(pulls)])
    end = 1.1 * float(decided[-1]) if len(decided) == len(pulls) else float(cap)
    steps = [(0.0, 0.0)]
    steps += [(float(n), (i + 1) / len(pulls)) for i, n in enumerate(decided)]
    steps.append((max(end, 1.0), len(decided) / len(pulls)))
    rows: list[dict[str, Any]] = [{"pulls": n, "share": round(share, 4)} for n, share in steps]
    x = alt.X(
        "pulls:Q",
        scale=alt.Scale(domain=[0.0, max(end, 1.0)], nice=False),
        axis=alt.Axis(title="Further measurements", format="~s", tickCount=6, grid=False),
    )
    y = alt.Y(
        "share:Q",
        stack=False,  # draws with the same pulls must not be added up
        scale=alt.Scale(domain=[0.0, 1.0], nice=False),
        axis=alt.Axis(title="Decided by then", format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    steps_ = alt.Chart(data(rows)).mark_area(
        interpolate="step-after", color=PALETTE[5], opacity=0.35, line={"color": PALETTE[0]}
    )
    layers = [steps_.encode(x=x, y=y)]
    median = float(np.quantile(pulls, 0.5, method="inverted_cdf"))
    if math.isfinite(median) and median > 0:
        middle = alt.Chart(data([{"pulls": median, "words": f"half by {median:,.0f}"}]))
        layers.append(middle.mark_rule(color=ACCENT, strokeDash=[5, 4]).encode(x="pulls:Q"))
        layers.append(
            middle.mark_text(align="left", dx=7, color=INK, fontSize=12.5).encode(
                x="pulls:Q", y=alt.value(14), text="words:N"
            )
        )
    return finish(
        alt.layer(*layers).properties(width=NARROW if narrow else _WIDTH + 60, height=230),
        title,
        subtitle,
    )


def position_chart(
    arms: Arms,
    theta: Float[np.ndarray, " 2"],
    counts: Int[np.ndarray, " K"],
    radius: float | None,
    *,
    start: Float[np.ndarray, "2 2"] | None = None,
    sign: int = 1,
    title: str = "Where the parameter may be",
    subtitle: Sequence[str] = (),
    side: int = WIDE,
) -> AnyChart:
    """Show the estimated parameter in the cones of the arms, with its confidence ellipse.

    Parameters
    ----------
    arms : Arms
        With two features that span the plane.
    theta : (2,) array
        The estimate.
    counts : (K,) array of int
        Pulls so far.
    radius : float or None
        Of the ellipse, in the norm of the design matrix; None if there is none yet.
    start : (2, 2) array, optional
        A_0 of the interval that the ellipse stands for (`geometry.ellipse`).
    sign : int
        1 if large means are good, -1 if small ones are.
    side : int
        Of the picture, in pixels.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
    >>> chart = position_chart(arms, np.array([1.0, 0.2]), np.array([5, 5, 5]), 3.0)
    >>> chart.to_dict()["title"]["text"]
    'Where the parameter may be'
    """
    check_plane(arms)
    outline = (
        np.repeat(theta[None, :], 2, axis=0)
        if radius is None
        else ellipse(arms.features, counts, theta, radius, start)
    )
    reach = 1.18 * float(np.abs(outline).max() or 1.0)
    panel = over_cones(arms, reach, [outline_layer(outline)], 0.3 * reach, sign)
    panel += cross_layer(theta, 150, angle=45)
    return finish(panel.properties(width=side, height=side), title, subtitle)


def _finite(value: float, otherwise: float) -> float:
    return float(value) if math.isfinite(value) else float(otherwise)


def _height(rows: int) -> Any:
    return {"step": 26 if rows <= 20 else 20}
