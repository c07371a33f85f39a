"""Layers of pictures in the plane of two features: cones, an ellipse, the arms as arrows.

`plane` and `studies` put them together; the geometry is in `finalist.charts.geometry`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.charts.geometry import Cone, cones, sector
from finalist.charts.theme import ACCENT, INK, MUTED, PALETTE, candidate_colour, data, labels
from finalist.errors import ChartError
from finalist.files import printable

#: With more arms than this, those without a cone are points, not labelled arrows.
MAX_ARROWS = 8
#: Distance of a label from the tip of its arrow, as a fraction of half the side of the picture.
LABEL_OFFSET = 0.075
#: Smallest distance between two labels, in the same unit.
_LINE = 0.075


def check_plane(arms: Arms) -> None:
    """Refuse arms that do not have two features or do not span the plane."""
    if arms.features.shape[1] != 2 or arms.rank != 2:
        raise ChartError(
            f"the plane needs arms with 2 features that span it; these have "
            f"{arms.features.shape[1]} features and rank {arms.rank}."
        )


def cone_labels(arms: Arms, cones_: list[Cone]) -> dict[int, str]:
    """Return a label for each arm that has a cone."""
    hull = [cone.arm for cone in cones_]
    return dict(zip(hull, labels([arms.names[i] for i in hull], 16), strict=True))


def _axes(side: float, titles: bool) -> dict[str, Any]:
    import altair as alt

    scale = alt.Scale(domain=[-side, side], nice=False, zero=False)

    def axis(which: str) -> Any:
        title = f"{which} component of the parameter" if titles else None
        return alt.Axis(title=title, tickCount=5, grid=False)

    return {
        "x": alt.X("x:Q", scale=scale, axis=axis("First")),
        "y": alt.Y("y:Q", scale=scale, axis=axis("Second")),
    }


def cone_layer(
    cones_: list[Cone],
    arm_labels: dict[int, str],
    side: float,
    titles: bool = True,
    own: bool = False,
) -> Any:
    """Draw the cones as coloured sectors, optionally with axis titles, in the arms' own colours."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"arm": arm_labels[cone.arm], "x": float(x), "y": float(y), "step": step}
        for cone in cones_
        for step, (x, y) in enumerate(sector(cone, side))
    ]
    domain = [arm_labels[cone.arm] for cone in cones_]
    shown = [arm_labels[arm] for arm in sorted(arm_labels)]
    legend = alt.Legend(
        title="Best candidate" if own else "Best arm",
        values=shown,
        symbolType="square",
        symbolStrokeWidth=0,
        symbolOpacity=0.45,
    )
    colours = [candidate_colour(cone.arm) for cone in cones_] if own else _colours(len(domain))
    return (
        alt.Chart(data(rows))
        .mark_line(filled=True, opacity=0.3, strokeWidth=0, clip=True)
        .encode(
            **_axes(side, titles),
            order="step:Q",
            color=alt.Color(
                "arm:N",
                sort=None,
                scale=alt.Scale(domain=domain, range=colours),
                legend=legend if len(domain) <= len(PALETTE) else None,
            ),
        )
    )


def _colours(cones_: int) -> list[str]:
    """Return a colour for each cone, different for neighbours, including the last and first."""
    colours = [PALETTE[j % len(PALETTE)] for j in range(cones_)]
    if cones_ > 1 and colours[-1] == colours[0]:
        colours[-1] = PALETTE[2]
    return colours


def over_cones(
    arms: Arms,
    side: float,
    middle: Sequence[Any],
    arrows: float | None,
    sign: int = 1,
    titles: bool = True,
    own: bool = False,
) -> Any:
    """Draw layers over the cones of the arms, and the arms as arrows of a length, if any.

    The sign is -1 if small means are good: under -theta the smallest mean is the largest. With
    `own`, arms have the colours that they have in all charts of a study.
    """
    found = cones(sign * arms.features)
    names = cone_labels(arms, found)
    layers = sum(middle, cone_layer(found, names, side, titles, own))
    return layers if arrows is None else layers + arm_layer(arms, names, side, arrows)


def outline_layer(points: Float[np.ndarray, "n 2"], width: float = 1.8, **style: Any) -> Any:
    """Draw a line through points, around a light area."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"x": float(x), "y": float(y), "step": i} for i, (x, y) in enumerate(points)
    ]
    area: dict[str, Any] = {"filled": True, "fill": "white", "fillOpacity": 0.6, **style}
    line = alt.Chart(data(rows)).mark_line(stroke=INK, strokeWidth=width, **area)
    return line.encode(x="x:Q", y="y:Q", order="step:Q")


def cross_layer(
    theta: Float[np.ndarray, " 2"], size: int, text: dict[str, Any] | None = None, **style: Any
) -> Any:
    """Draw a parameter as a cross, with a text beside it."""
    import altair as alt

    place = data([{"x": float(theta[0]), "y": float(theta[1])}])
    base = alt.Chart(place).encode(x="x:Q", y="y:Q")
    shape: dict[str, Any] = {"shape": "cross", "filled": True, **style}
    cross = base.mark_point(size=size, color=ACCENT, opacity=1, **shape)
    return cross + base.mark_text(fontWeight=600, color=ACCENT, **text) if text else cross


def tips_of(arms: Arms, length: float) -> Float[np.ndarray, "K 2"]:
    """Return where the arrows of the arms end; the longest has the length."""
    tips = arms.features / np.abs(arms.features).max()
    return np.asarray(tips * (length / np.linalg.norm(tips, axis=1).max()))


def arm_layer(arms: Arms, arm_labels: dict[int, str], side: float, length: float) -> Any:
    """Draw arrows for the arms with a cone, or for all if they are few; points for the rest."""
    import altair as alt

    few = len(arms) <= MAX_ARROWS
    rows: list[dict[str, Any]] = [
        {
            "x": float(x),
            "y": float(y),
            "turn": 90.0 - math.degrees(math.atan2(y, x)),
            "name": printable(arms.names[i], 16),
            "arrow": few or i in arm_labels,
        }
        for i, (x, y) in enumerate(tips_of(arms, length))
    ]
    arrows = [row for row in rows if row["arrow"]]
    base = alt.Chart(data(arrows))
    shafts = base.mark_rule(color=INK, strokeWidth=1.5).encode(
        x="x:Q", y="y:Q", x2=alt.datum(0), y2=alt.datum(0)
    )
    heads = base.mark_point(shape="wedge", filled=True, color=INK, size=220, opacity=1).encode(
        x="x:Q", y="y:Q", angle=alt.Angle("turn:Q", scale=None)
    )
    others = alt.Chart(data([row for row in rows if not row["arrow"]]))
    points = others.mark_circle(color=MUTED, size=22, opacity=0.9).encode(x="x:Q", y="y:Q")
    return points + shafts + heads + _label_layer(arrows, side)


def _label_layer(arrows: list[dict[str, Any]], side: float) -> Any:
    """Write each name beyond the tip of its arrow, on a light halo, apart from the others."""
    import altair as alt

    font: dict[str, Any] = {"fontSize": 13, "fontWeight": 600, "baseline": "middle"}
    layers: list[Any] = []
    for align, rows in place_labels(arrows, side).items():
        base = alt.Chart(data(rows)).encode(x="label_x:Q", y="label_y:Q", text="name:N")
        layers.append(
            base.mark_text(
                align=align, stroke="white", strokeWidth=4, strokeJoin="round", opacity=0.8, **font
            )
        )
        layers.append(base.mark_text(align=align, color=INK, **font))
    return alt.layer(*layers)


def place_labels(arrows: list[dict[str, Any]], side: float) -> dict[Any, list[dict[str, Any]]]:
    """Return the labels by alignment: left for arrows to the right, and so on.

    Labels of one alignment are moved up until they are a line apart.
    """
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in sorted(arrows, key=lambda row: float(row["y"])):
        turn = math.atan2(row["y"], row["x"])
        steep = abs(math.cos(turn)) < 0.35
        align = "center" if steep else ("left" if row["x"] > 0 else "right")
        group = groups.setdefault(align, [])
        offset = LABEL_OFFSET if steep else 0.5 * LABEL_OFFSET
        x = row["x"] + offset * side * math.cos(turn)
        y = row["y"] + offset * side * math.sin(turn)
        if group and align != "center":
            y = max(y, group[-1]["label_y"] + _LINE * side)
        group.append({"name": row["name"], "label_x": float(x), "label_y": float(y)})
    return groups
