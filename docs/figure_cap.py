"""The picture of a capped bet, beside the likelihood ratio it comes from: `docs/gauntlet.md`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from finalist.charts.theme import (
    ACCENT,
    MUTED,
    AnyChart,
    data,
    finish,
    round_numbers,
    save,
)
from finalist.errors import ChartError
from finalist.shapes import Float
from finalist.strategies.gauntlet.cap_kernels import find_cap
from finalist.strategies.gauntlet.kernels import log_likelihood_ratio

#: What is missing to 1/delta in the picture.
FACTOR = 3.0


def cap_picture(folder: Path) -> None:
    drifts, log_weights = np.array([0.5, 1.0, 2.0]), np.log(np.full(3, 1 / 3))
    room = np.log(FACTOR)
    cap = find_cap(room, drifts, log_weights)
    z = np.linspace(-2.0, 3.0, 301)
    ratio = np.array([log_likelihood_ratio(x, drifts, log_weights) for x in z])
    at_cap = log_likelihood_ratio(cap, drifts, log_weights)
    capped = np.minimum(room + ratio - at_cap, room)
    raised = np.exp(room - at_cap)
    chart = cap_chart(
        z,
        np.exp(ratio),
        np.exp(capped),
        cap,
        title="A bet that stops where it has won",
        subtitle=[
            f"Drifts 1/2, 1 and 2, equal weights; evidence has to grow by a factor of {FACTOR:g}.",
            f"Both have mean 1 under N(0, 1). Below the cap it pays {raised:.2f} times as much.",
        ],
    )
    save(chart, folder / "cap.png")


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
    """
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


if __name__ == "__main__":
    cap_picture(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images")
