"""Evidence against each arm while pulls come in, and what a capped bet pays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.charts.curves import spread
from finalist.charts.theme import (
    ACCENT,
    INK,
    MUTED,
    PALETTE,
    AnyChart,
    data,
    finish,
    labels,
    round_numbers,
)
from finalist.errors import ChartError

#: Most arms with a name; the others are grey and counted in the subtitle.
MAX_NAMES = 12
_WIDTH = 560
#: Height of the picture below the rejection line, in pixels.
_FLOOR = 270
#: Space per letter of a slanted label, and around it, in pixels.
_LETTER, _MARGIN = 4.8, 30
_GREY = "#B8C0C8"


def evidence_chart(
    pulls: Int[np.ndarray, " B"],
    evidence: Float[np.ndarray, "B K"],
    names: Sequence[str],
    winner: int | Sequence[int] | None = None,
    title: str = "Evidence against each arm",
    subtitle: Sequence[str] = ("An arm is out when its line reaches 1.",),
) -> AnyChart:
    """Show the evidence against each arm over the pulls; a line ends when the arm is rejected.

    At most 12 arms are named: those remaining, then those rejected last.

    Parameters
    ----------
    pulls : (B,) array of int
        Pulls so far at the end of each batch, positive and increasing; the axis is logarithmic.
    evidence : (B, K) array
        log M / log(1/delta) of each arm, `Evidence.share`; 1 or more is a rejection, and values
        below 0 are drawn at 0.
    names : sequence of str
        A name for each arm.
    winner : int or sequence of int, optional
        The arm to emphasise, or several.

    Examples
    --------
    >>> evidence = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 1.0], [1.0, 0.1, 1.0]])
    >>> chart = evidence_chart(np.array([10, 20, 40]), evidence, ["a", "b", "c"], winner=1)
    >>> [row["arm"] for row in chart.to_dict()["layer"][-1]["data"]["values"]]
    ['b']
    """
    import altair as alt

    winners = set() if winner is None else set(np.atleast_1d(winner).tolist())
    _check(pulls, evidence, names, winners)
    ends = _ends(evidence)
    out = evidence[ends, np.arange(len(names))] >= 1.0
    named = _named(ends, out, winners)
    short = labels([names[i] for i in named])
    longest = max((len(text) for text, i in zip(short, named, strict=True) if out[i]), default=0)
    height = _FLOOR + (_MARGIN + _LETTER * longest if longest else 14)
    top = height / _FLOOR
    x_domain = [float(pulls[0]), float(pulls[-1]) if len(pulls) > 1 else 2.0 * float(pulls[0])]
    axes = _axes(x_domain, top)
    parts = [
        _limit(axes),
        *_lines(pulls, evidence, ends, named, winners, axes),
        *_tops(pulls[ends], [i for i in named if out[i]], dict(zip(named, short, strict=True))),
        _sides(
            np.maximum(evidence[-1], 0.0),
            [i for i in named if not out[i]],
            dict(zip(named, short, strict=True)),
            winners,
            top,
        ),
    ]
    words = list(subtitle)
    if len(named) < len(names):
        words.append(f"In grey, without a name: {len(names) - len(named)} more arms")
    chart = alt.layer(*[part for part in parts if part is not None])
    return finish(chart.properties(width=_WIDTH, height=height), title, words)


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


def _check(
    pulls: Int[np.ndarray, " B"],
    evidence: Float[np.ndarray, "B K"],
    names: Sequence[str],
    winners: set[int],
) -> None:
    if evidence.shape != (len(pulls), len(names)) or evidence.size == 0:
        raise ChartError(
            f"evidence has shape {evidence.shape} for {len(pulls)} batches and {len(names)} arms. "
            "Pass one row per batch and one column per arm."
        )
    if pulls[0] < 1 or (np.diff(pulls) <= 0).any():
        raise ChartError("pulls must be positive and increase from batch to batch.")
    if not np.isfinite(evidence).all():
        raise ChartError("evidence must be finite numbers.")
    for winner in winners:
        if not 0 <= winner < len(names):
            last = len(names) - 1
            raise ChartError(f"winner is {winner}; the {len(names)} arms are 0 to {last}.")


def _ends(evidence: Float[np.ndarray, "B K"]) -> Int[np.ndarray, " K"]:
    """Return the batch in which each arm's line ends: its first at 1, or the last of all."""
    reached = evidence >= 1.0
    return np.where(reached.any(axis=0), reached.argmax(axis=0), len(evidence) - 1)


def _named(ends: Int[np.ndarray, " K"], out: np.ndarray, winners: set[int]) -> list[int]:
    """Return the arms to name: the winners, those remaining, those rejected last."""
    order = sorted(
        range(len(ends)), key=lambda i: (i not in winners, bool(out[i]), -int(ends[i]), i)
    )
    return order[:MAX_NAMES]


def _axes(x_domain: list[float], top: float) -> dict[str, Any]:
    import altair as alt

    return {
        "x": alt.X(
            "pulls:Q",
            scale=alt.Scale(type="log", domain=x_domain, nice=False),
            axis=alt.Axis(title="Pulls so far (logarithmic)", tickCount=6, format="~s", grid=False),
        ),
        "y": alt.Y(
            "evidence:Q",
            scale=alt.Scale(domain=[0.0, top], nice=False),
            axis=alt.Axis(
                title="Evidence, as part of what rejects an arm",
                titleAnchor="start",
                values=[0.0, 0.25, 0.5, 0.75, 1.0],
                format=".2~f",
                domain=False,
            ),
        ),
    }


def _limit(axes: dict[str, Any]) -> Any:
    import altair as alt

    base = alt.Chart(data([{"evidence": 1.0}]))
    return base.mark_rule(color=INK, strokeWidth=1.4, strokeDash=[6, 4]).encode(y=axes["y"])


def _lines(
    pulls: Int[np.ndarray, " B"],
    evidence: Float[np.ndarray, "B K"],
    ends: Int[np.ndarray, " K"],
    named: list[int],
    winners: set[int],
    axes: dict[str, Any],
) -> list[Any]:
    """Draw unnamed arms in grey, named ones in blue, the winners above all of them."""
    import altair as alt

    def layer(arms: list[int], colour: str, width: float, opacity: float) -> Any:
        rows: list[dict[str, Any]] = [
            {
                "id": i,
                "pulls": int(pulls[b]),
                "evidence": float(min(max(evidence[b, i], 0.0), 1.0)),
            }
            for i in arms
            for b in range(int(ends[i]) + 1)
        ]
        style: dict[str, Any] = {"color": colour, "strokeWidth": width, "opacity": opacity}
        return alt.Chart(data(rows)).mark_line(**style).encode(**axes, detail="id:N")

    rest = [i for i in range(len(ends)) if i not in named]
    blue = [i for i in named if i not in winners]
    first = sorted(winners)
    layers = [(rest, _GREY, 1.0, 0.7), (blue, PALETTE[0], 1.7, 0.75), (first, ACCENT, 3.2, 1.0)]
    return [layer(*args) for args in layers if args[0]]


def _tops(pulls: Int[np.ndarray, " K"], arms: list[int], names: dict[int, str]) -> list[Any]:
    """Name rejected arms above the rejection line, slanted, with a stroke to their end."""
    import altair as alt

    if not arms:
        return []
    low, high = float(pulls.min()), float(pulls.max())
    places = spread([float(pulls[i]) for i in arms], [low, max(high, 2.0 * low)], log=True)
    rows: list[dict[str, Any]] = [
        {"arm": names[i], "pulls": int(pulls[i]), "place": place, "evidence": 1.0, "foot": 1.05}
        for i, place in zip(arms, places, strict=True)
    ]
    base = alt.Chart(data(rows))
    dots = base.mark_circle(size=38, color=PALETTE[0], opacity=1).encode(
        x="pulls:Q", y="evidence:Q"
    )
    strokes = base.mark_rule(color=_GREY, strokeWidth=1).encode(
        x="pulls:Q", x2="place:Q", y="evidence:Q", y2="foot:Q"
    )
    text = base.mark_text(angle=315, align="left", baseline="middle", dx=4, fontSize=12, color=INK)
    return [strokes, dots, text.encode(x="place:Q", y="foot:Q", text="arm:N")]


def _sides(
    last: Float[np.ndarray, " K"],
    arms: list[int],
    names: dict[int, str],
    winners: set[int],
    top: float,
) -> Any:
    """Name the remaining arms at the right end of their lines."""
    import altair as alt

    if not arms:
        return None
    heights = spread([float(last[i]) for i in arms], [0.0, top], log=False)
    rows: list[dict[str, Any]] = [
        {"arm": names[i], "evidence": height, "wins": i in winners}
        for i, height in zip(arms, heights, strict=True)
    ]
    text = alt.Chart(data(rows)).mark_text(align="left", baseline="middle", fontSize=12.5)
    return text.encode(
        x=alt.value(_WIDTH + 8),
        y="evidence:Q",
        text="arm:N",
        color=alt.condition("datum.wins", alt.value(ACCENT), alt.value(INK)),
    )
