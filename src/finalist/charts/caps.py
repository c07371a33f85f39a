"""What a capped bet pays, beside the likelihood ratio it comes from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from finalist.charts.theme import ACCENT, MUTED, AnyChart, data, finish, round_numbers
from finalist.errors import ChartError
from finalist.shapes import Float


def cap_chart(
    z: Float[np.ndarray, " n"],
    uncapped: Float[np.ndarray, " n"],
    capped: Float[np.ndarray, " n"],
    cap: float,
    title: str,
    subtitle: Sequence[str],
) -> AnyChart:
    """Show the factor of a capped bet beside the likelihood ratio it comes from.

    Parameters
    ----------
    z : (n,) array
        Scores, increasing.
    uncapped, capped : (n,) arrays
        The two factors, positive; the axis is logarithmic.
    cap : float
        The score beyond which the capped factor is constant.

    Examples
    --------
    >>> z = np.array([0.0, 1.0, 2.0])
    >>> chart = cap_chart(z, np.exp(z), np.array([1.2, 3.3, 3.3]), 1.0, "A bet", [])
    >>> chart.to_dict()["title"]["text"]
    'A bet'
    """
    import altair as alt

    if not (len(z) == len(uncapped) == len(capped) > 1):
        raise ChartError("scores and both factors must have the same length, two or more.")
    if min(uncapped.min(), capped.min()) <= 0:
        raise ChartError("factors must be positive: the axis is logarithmic.")
    domain = [float(capped.min()) / 2, 1.6 * float(max(capped.max(), uncapped.max()))]
    ticks = round_numbers(*domain)
    x = alt.X(
        "z:Q",
        scale=alt.Scale(domain=[float(z[0]), float(z[-1])], nice=False),
        axis=alt.Axis(title="Score of the batch", tickCount=9, grid=False, format="~g"),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False, clamp=True),
        axis=alt.Axis(
            title="Evidence is multiplied by", values=ticks, format="~g", labelOverlap=True
        ),
    )
    pair = (("likelihood ratio", uncapped, MUTED), ("capped", capped, ACCENT))
    rows: list[dict[str, Any]] = [
        {"curve": label, "z": float(a), "y": float(b)}
        for label, values, _ in pair
        for a, b in zip(z, values, strict=True)
    ]
    scale = alt.Scale(domain=[p[0] for p in pair], range=[p[2] for p in pair])
    colour = alt.Color("curve:N", scale=scale, legend=None)
    lines = alt.Chart(data(rows)).mark_line(strokeWidth=2.4).encode(x=x, y=y, color=colour)
    last = alt.Chart(data([rows[len(z) - 1], rows[-1]]))
    text = last.mark_text(align="left", dx=10, fontSize=12.5).encode(
        x="z:Q", y="y:Q", text="curve:N", color=colour
    )
    where = alt.Chart(data([{"z": float(cap), "note": f"out from {cap:.2f} on"}]))
    rule = where.mark_rule(strokeDash=[4, 4], color=MUTED).encode(x="z:Q")
    note = where.mark_text(align="right", dx=-8, fontSize=12, color=MUTED).encode(
        x="z:Q", y=alt.value(12), text="note:N"
    )
    chart = alt.layer(rule, note, lines, text).properties(width=500, height=320)
    return finish(chart, title, subtitle)
