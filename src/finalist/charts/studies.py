"""Charts of a study: the forecast, and the plane."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.charts.geometry import ellipse
from finalist.charts.layers import check_plane, cross_layer, outline_layer, over_cones, tips_of
from finalist.charts.theme import (
    ACCENT,
    INK,
    MAX_ARMS,
    PALETTE,
    AnyChart,
    data,
    finish,
    named_in_full,
)
from finalist.charts.values import spoken, values_layer
from finalist.shapes import Float, Int
from finalist.text import counted

#: Width of a forecast; sides of the plane on a page and on a phone.
_WIDTH = 420
WIDE, NARROW = 380, 270
#: How much longer than nine in ten draws a forecast reaches at most: a single one may be far off.
_REACH = 1.6


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
    most = float(np.quantile(pulls, 0.9, method="inverted_cdf"))
    end = max(min(end, _REACH * most), 1.0)  # whole if a tenth is never decided
    steps = [(0.0, 0.0)]
    steps += [(float(n), (i + 1) / len(pulls)) for i, n in enumerate(decided) if n <= end]
    steps.append((end, steps[-1][1]))
    rows: list[dict[str, Any]] = [{"pulls": n, "share": round(share, 4)} for n, share in steps]
    said = [
        {
            **row,
            "says": f"{row['share']:.0%} decided after {spoken(row['pulls'])} more measurements",
        }
        for row in rows[1:]
    ]
    x = alt.X(
        "pulls:Q",
        scale=alt.Scale(domain=[0.0, end], nice=False),
        axis=alt.Axis(
            title="Further measurements", format=",.0f", tickCount=5, labelOverlap=True, grid=False
        ),
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
    layers.append(values_layer(said, x=x, y=y))
    return finish(
        alt.layer(*layers).properties(width=NARROW if narrow else _WIDTH, height=230),
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
    panel = over_cones(arms, reach, [outline_layer(outline)], 0.3 * reach, sign, own=True)
    panel += cross_layer(theta, 150, angle=45)
    x, y = map(float, theta)
    said = [{"x": x, "y": y, "says": f"the estimate: {spoken(x)} and {spoken(y)}"}]
    for i, (tip, mean) in enumerate(
        zip(tips_of(arms, 0.3 * reach), arms.means(theta), strict=True)
    ):
        words = f"mean {spoken(mean)}, {counted(int(counts[i]), 'result')}"
        place = {"x": float(tip[0]), "y": float(tip[1])}
        said.append({**place, "says": f"{named_in_full(arms.names[i])}: {words}"})
    panel += values_layer(said[: MAX_ARMS + 1], x="x:Q", y="y:Q")
    return finish(panel.properties(width=side, height=side), title, subtitle, side)
