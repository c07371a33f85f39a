"""Evidence against each candidate while results come in."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from finalist.charts.curves import spread
from finalist.charts.theme import (
    ACCENT,
    INK,
    LABEL_WIDTH,
    PALETTE,
    AnyChart,
    data,
    finish,
    labels,
    named_in_full,
    own_colours,
)
from finalist.charts.values import spoken, values_layer
from finalist.errors import ChartError
from finalist.shapes import Float, Int

#: Most arms with a name; the others are grey and counted in the subtitle.
MAX_NAMES = 12
_WIDTH, _PHONE = 560, 200
#: Height of the picture below the rejection line, in pixels.
_FLOOR = 270
#: Space per letter of a slanted label, and around it, in pixels.
_LETTER, _MARGIN = 4.8, 30
_GREY = "#B8C0C8"
#: Batches of which a line says its value.
_SAID = 24
#: Pixels from one slanted name to the next.
_APART = 19


def evidence_chart(
    pulls: Int[np.ndarray, " B"],
    evidence: Float[np.ndarray, "B K"],
    names: Sequence[str],
    winner: int | Sequence[int] | None = None,
    title: str = "Evidence against each candidate",
    subtitle: Sequence[str] = ("Ruled out where a line reaches 1.",),
    *,
    colours: Sequence[str] | None = None,
    narrow: bool = False,
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
    colours : sequence of str, optional
        Of each arm, where it has one everywhere; by default winners are orange, others blue.
    narrow : bool
        For phones: less wide, with fewer and shorter names.

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
    width, letters = (_PHONE, 18) if narrow else (_WIDTH, LABEL_WIDTH)
    named = _named(ends, out, winners)[: MAX_NAMES // 2 if narrow else MAX_NAMES]
    short = labels([names[i] for i in named], letters)
    own = [_colour(i, winners, colours) for i in range(len(names))]
    longest = max((len(text) for text, i in zip(short, named, strict=True) if out[i]), default=0)
    height = _FLOOR + (_MARGIN + _LETTER * longest if longest else 14)
    top = height / _FLOOR
    x_domain = [float(pulls[0]), float(pulls[-1]) if len(pulls) > 1 else 2.0 * float(pulls[0])]
    axes = _axes(x_domain, top)
    parts = [
        _values(pulls, evidence, ends, {i: named_in_full(names[i]) for i in named}, axes),
        _limit(axes),
        *_lines(pulls, evidence, ends, named, winners, axes, own),
        *_tops(
            pulls[ends],
            [i for i in named if out[i]],
            dict(zip(named, short, strict=True)),
            x_domain,
            width,
            own,
        ),
        _sides(
            np.maximum(evidence[-1], 0.0),
            [i for i in named if not out[i]],
            dict(zip(named, short, strict=True)),
            own,
            top,
            width,
        ),
    ]
    words = list(subtitle)
    if len(named) < len(names):
        words.append(f"In grey, without a name: {len(names) - len(named)} more")
    chart = alt.layer(*[part for part in parts if part is not None])
    return finish(chart.properties(width=width, height=height), title, words, width)


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


def _colour(i: int, winners: set[int], colours: Sequence[str] | None) -> str:
    return (ACCENT if i in winners else PALETTE[0]) if colours is None else colours[i]


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
            axis=alt.Axis(
                title="Measurements so far (logarithmic)",
                tickCount=6,
                format="~s",
                labelSeparation=8,
                grid=False,
            ),
        ),
        "y": alt.Y(
            "evidence:Q",
            scale=alt.Scale(domain=[0.0, top], nice=False),
            axis=alt.Axis(
                title="Evidence, as part of what rules out",
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


def _values(
    pulls: Int[np.ndarray, " B"],
    evidence: Float[np.ndarray, "B K"],
    ends: Int[np.ndarray, " K"],
    names: dict[int, str],
    axes: dict[str, Any],
) -> Any:
    """Say the values of named arms along their lines, and where they are out."""
    rows: list[dict[str, Any]] = []
    for i, name in names.items():
        end = int(ends[i])
        for b in np.unique(np.linspace(0, end, _SAID).astype(int)):
            value = float(max(evidence[b, i], 0.0))
            words = f"{value:.2f}" if value < 1.0 else "ruled out"
            place = {"pulls": int(pulls[b]), "evidence": min(value, 1.0)}
            says = f"{name}: {words} after {spoken(float(pulls[b]))} measurements"
            rows.append({**place, "says": says})
    return values_layer(rows, **axes)


def _lines(
    pulls: Int[np.ndarray, " B"],
    evidence: Float[np.ndarray, "B K"],
    ends: Int[np.ndarray, " K"],
    named: list[int],
    winners: set[int],
    axes: dict[str, Any],
    own: Sequence[str],
) -> list[Any]:
    """Draw unnamed arms in grey, named ones in their colours, the winners above all of them."""
    import altair as alt

    def layer(arms: list[int], width: float, opacity: float, colours: Sequence[str]) -> Any:
        rows: list[dict[str, Any]] = [
            {
                "id": i,
                "pulls": int(pulls[b]),
                "evidence": float(min(max(evidence[b, i], 0.0), 1.0)),
                "colour": colours[i],
            }
            for i in arms
            for b in range(int(ends[i]) + 1)
        ]
        lines = alt.Chart(data(rows)).mark_line(strokeWidth=width, opacity=opacity)
        found = own_colours()
        return lines.encode(**axes, detail="id:N", color=found)

    rest = [i for i in range(len(ends)) if i not in named]
    others, first = [i for i in named if i not in winners], sorted(winners)
    layers = [
        (rest, 1.0, 0.7, [_GREY] * len(ends)),
        (others, 1.7, 0.85, own),
        (first, 3.2, 1.0, own),
    ]
    return [layer(*args) for args in layers if args[0]]


def _tops(
    pulls: Int[np.ndarray, " K"],
    arms: list[int],
    names: dict[int, str],
    x_domain: list[float],
    width: int,
    own: Sequence[str],
) -> list[Any]:
    """Name rejected arms above the rejection line, slanted, with a stroke to their end.

    Names are at least a line apart, along the whole axis.
    """
    import altair as alt

    if not arms:
        return []
    ends = np.log([float(pulls[i]) for i in arms])
    low, high = np.log(x_domain)
    line = _APART * (high - low) / width
    order, places = np.argsort(ends, kind="stable"), np.zeros(len(arms))
    # Never closer than a line, never off the axis: from the right, then from the left.
    for rank, k in reversed(list(enumerate(order))):
        places[k] = min(ends[k], high - line * (len(order) - 1 - rank))
    least = low
    for k in order:
        places[k] = max(places[k], least)
        least = places[k] + line
    rows: list[dict[str, Any]] = [
        {
            "arm": names[i],
            "pulls": int(pulls[i]),
            "place": float(np.exp(place)),
            "evidence": 1.0,
            "foot": 1.05,
            "colour": own[i],
        }
        for i, place in zip(arms, places, strict=True)
    ]
    base = alt.Chart(data(rows))
    dots = base.mark_circle(size=38, opacity=1).encode(
        x="pulls:Q", y="evidence:Q", color=own_colours()
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
    own: Sequence[str],
    top: float,
    width: int,
) -> Any:
    """Name the remaining arms at the right end of their lines."""
    import altair as alt

    if not arms:
        return None
    heights = spread([float(last[i]) for i in arms], [0.0, top], log=False)
    rows: list[dict[str, Any]] = [
        {"arm": names[i], "evidence": height, "colour": own[i]}
        for i, height in zip(arms, heights, strict=True)
    ]
    text = alt.Chart(data(rows)).mark_text(align="left", baseline="middle", fontSize=12.5)
    return text.encode(
        x=alt.value(width + 8),
        y="evidence:Q",
        text="arm:N",
        color=own_colours(),
    )
