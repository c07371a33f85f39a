"""The picture of a problem with two features: cones, theta and a confidence ellipse.

It is Figure 1 of Soare 2014 with the ellipse of an allocation added: the best arm is
identified when the ellipse lies inside a single cone (Sect. 3). The geometry is in
`finalist.charts.geometry`.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.charts.bars import weights_panel
from finalist.charts.geometry import Cone, cones, ellipse, sector
from finalist.charts.theme import (
    ACCENT,
    INK,
    MUTED,
    PALETTE,
    AnyChart,
    data,
    finish,
    labels,
)
from finalist.design import Design, round_design
from finalist.errors import ChartError
from finalist.files import printable
from finalist.inference.bounds import Bound, static_radius
from finalist.inference.information import information

_SIDE = 460
#: With more arms than this, those without a cone are points instead of labelled arrows.
_MAX_ARROWS = 8
#: How far a label is from the tip of its arrow, as a part of half the side of the picture.
_LABEL_OFFSET = 0.075
#: Least distance of the lines of two labels, in the same unit.
_LINE = 0.075


def plane_chart(
    arms: Arms,
    theta: ArrayLike,
    design: Design | Float[np.ndarray, " K"],
    pulls: int,
    delta: float = 0.05,
    *,
    sigma: float,
    bound: Bound = "sharp",
) -> AnyChart:
    """Show cones, theta and the confidence ellipse of an allocation, for arms with two features.

    Parameters
    ----------
    arms : Arms
        Arms with d = 2 features that span the plane.
    theta : (2,) array-like
        The parameter.
    design : Design or (K,) array
        How the pulls are shared; rounded to `pulls`.
    pulls : int
        The number of pulls.
    delta, sigma : float
        Probability of error and size of the noise.
    bound : "sharp" or "soare"
        See `finalist.inference.bounds.static_radius`.

    Returns
    -------
    altair chart
        Its title says whether the ellipse lies in a single cone.

    Raises
    ------
    ChartError
        If the arms do not have two features or do not span the plane, or the arms of the
        design do not.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
    >>> design = fl.optimal_design(arms, "xy")
    >>> chart = plane_chart(arms, [2.0, 0.0], design, pulls=500, sigma=1.0)
    >>> chart.to_dict()["title"]["text"]
    '500 pulls settle it: the whole ellipse is in the cone of x1'
    """
    check_plane(arms)
    t = np.asarray(theta, dtype=float)
    means = arms.means(t)
    counts = round_design(design, pulls)
    radius = static_radius(float(pulls), len(arms), delta, sigma, bound)
    panel = _panel(arms, ellipse(arms.features, counts, t, radius), t)
    best = printable(arms.names[int(means.argmax())], 24)
    if _settled(arms, counts, means, radius):
        title = f"{pulls:,} pulls settle it: the whole ellipse is in the cone of {best}"
    else:
        title = f"{pulls:,} pulls are not enough: the ellipse leaves the cone of {best}"
    accuracy = f"(error {delta:g}, noise {sigma:g})"
    subtitle = [
        "Each coloured cone holds the parameters under which that arm is best.",
        f"The ellipse shows how far the estimate may be from θ {accuracy}.",
        _arrows(arms),
    ]
    return finish(panel, title, subtitle)


def design_plane_chart(
    arms: Arms,
    design: Design | Float[np.ndarray, " K"],
    pulls: int,
    delta: float = 0.05,
    *,
    sigma: float,
    title: str = "Where to measure",
) -> AnyChart:
    """Show a design of arms with two features: its weights, and what its pulls can tell.

    The parameter is not known, so the ellipse is drawn around the origin: whatever theta is,
    the estimate is that far from it at most. A long ellipse across a border between cones means
    that the design tells those two arms apart badly.

    Parameters
    ----------
    arms : Arms
        Arms with d = 2 features that span the plane.
    design : Design or (K,) array
        How the pulls are shared; rounded to `pulls`.
    pulls : int
        The number of pulls.
    delta, sigma : float
        Probability of error and size of the noise.
    title : str

    Returns
    -------
    altair chart

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
    >>> chart = design_plane_chart(arms, fl.optimal_design(arms, "xy"), 500, sigma=1.0)
    >>> len(chart.to_dict()["hconcat"])
    2
    """
    import altair as alt

    check_plane(arms)
    counts = round_design(design, pulls)
    weights = design.weights if isinstance(design, Design) else design
    radius = static_radius(float(pulls), len(arms), delta, sigma)
    bars, subtitle = weights_panel(arms.names, weights, counts, width=260)
    plane = _panel(arms, ellipse(arms.features, counts, np.zeros(2), radius), None)
    accuracy = f"(error {delta:g}, noise {sigma:g})"
    subtitle += [
        "Each coloured cone holds the parameters under which that arm is best.",
        f"The ellipse: how far the estimate may be from the true parameter {accuracy}.",
        _arrows(arms),
    ]
    both = alt.hconcat(bars, plane, spacing=50).resolve_scale(color="independent")
    return finish(both, title, subtitle)


def fits_plane(arms: Arms, weights: Float[np.ndarray, " K"]) -> bool:
    """Tell whether the arms have two features and those of a design span the plane."""
    return arms.features.shape[1] == 2 and information(arms.coordinates, weights).rank == 2


def check_plane(arms: Arms) -> None:
    """Refuse arms that do not span a plane of two features."""
    if arms.features.shape[1] != 2 or arms.rank != 2:
        raise ChartError(
            f"the plane needs arms with 2 features that span it; these have "
            f"{arms.features.shape[1]} features and rank {arms.rank}."
        )


def _arrows(arms: Arms) -> str:
    few = len(arms) <= _MAX_ARROWS
    return "Arrows are the arms, at a scale of their own." + (
        "" if few else " Dots: arms that are never best."
    )


def _panel(
    arms: Arms, outline: Float[np.ndarray, "n 2"], theta: Float[np.ndarray, " 2"] | None
) -> Any:
    """Draw cones, ellipse and arms; theta and its name if it is known."""
    known = outline if theta is None else np.vstack([outline, theta])
    side = 1.18 * float(np.abs(known).max())
    cones_ = cones(arms.features)
    arm_labels = cone_labels(arms, cones_)
    layers = (
        cone_layer(cones_, arm_labels, side)
        + ellipse_layer(outline, theta)
        + arm_layer(arms, arm_labels, side, _arrow_length(outline, side))
    )
    return layers.properties(width=_SIDE, height=_SIDE)


def cone_labels(arms: Arms, cones_: list[Cone]) -> dict[int, str]:
    """Return a label for each arm that has a cone."""
    hull = [cone.arm for cone in cones_]
    return dict(zip(hull, labels([arms.names[i] for i in hull], 16), strict=True))


def _settled(
    arms: Arms, counts: Int[np.ndarray, " K"], means: Float[np.ndarray, " K"], radius: float
) -> bool:
    """Tell whether the ellipse lies in the cone of the best arm (Soare 2014, Sect. 3)."""
    best = int(means.argmax())
    info = information(arms.coordinates, counts.astype(float))
    widths = radius * np.sqrt(info.variances(arms.coordinates[best] - arms.coordinates))
    return bool(np.delete(means[best] - means > widths, best).all())


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
    cones_: list[Cone], arm_labels: dict[int, str], side: float, titles: bool = True
) -> Any:
    """Draw the cones as coloured sectors; with titles on the axes if wanted."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"arm": arm_labels[cone.arm], "x": float(x), "y": float(y), "step": step}
        for cone in cones_
        for step, (x, y) in enumerate(sector(cone, side))
    ]
    domain = [arm_labels[cone.arm] for cone in cones_]
    shown = [arm_labels[arm] for arm in sorted(arm_labels)]
    legend = alt.Legend(
        title="Best arm", values=shown, symbolType="square", symbolStrokeWidth=0, symbolOpacity=0.45
    )
    return (
        alt.Chart(data(rows))
        .mark_line(filled=True, opacity=0.3, strokeWidth=0, clip=True)
        .encode(
            **_axes(side, titles),
            order="step:Q",
            color=alt.Color(
                "arm:N",
                sort=None,
                scale=alt.Scale(domain=domain, range=_colours(len(domain))),
                legend=legend if len(domain) <= len(PALETTE) else None,
            ),
        )
    )


def _colours(cones_: int) -> list[str]:
    """Return a colour for each cone, never the same for neighbours, the last and first included."""
    colours = [PALETTE[j % len(PALETTE)] for j in range(cones_)]
    if cones_ > 1 and colours[-1] == colours[0]:
        colours[-1] = PALETTE[2]
    return colours


def ellipse_layer(outline: Float[np.ndarray, "n 2"], theta: Float[np.ndarray, " 2"] | None) -> Any:
    """Draw the outline, and theta in it if it is known."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"x": float(x), "y": float(y), "step": i} for i, (x, y) in enumerate(outline)
    ]
    line = (
        alt.Chart(data(rows))
        .mark_line(filled=True, fill="white", fillOpacity=0.6, stroke=INK, strokeWidth=1.8)
        .encode(x="x:Q", y="y:Q", order="step:Q")
    )
    if theta is None:
        return line
    centre = alt.Chart(data([{"x": float(theta[0]), "y": float(theta[1])}]))
    dot = centre.mark_point(shape="cross", filled=True, size=100, color=ACCENT, opacity=1)
    text = centre.mark_text(text="θ", dx=14, fontSize=16, fontWeight=600, color=ACCENT)
    return line + dot.encode(x="x:Q", y="y:Q") + text.encode(x="x:Q", y="y:Q")


def _arrow_length(outline: Float[np.ndarray, "n 2"], side: float) -> float:
    """Return the length of the longest arrow: short of the ellipse, if that is long enough."""
    nearest = float(np.linalg.norm(outline, axis=1).min())
    return side * min(0.42, max(0.3, nearest / side - 2 * _LABEL_OFFSET))


def arm_layer(arms: Arms, arm_labels: dict[int, str], side: float, length: float) -> Any:
    """Draw arrows for the arms with a cone, or for all if they are few; points for the rest."""
    import altair as alt

    few = len(arms) <= _MAX_ARROWS
    tips = arms.features / np.abs(arms.features).max()
    tips = tips * (length / np.linalg.norm(tips, axis=1).max())
    rows: list[dict[str, Any]] = [
        {
            "x": float(x),
            "y": float(y),
            "turn": 90.0 - math.degrees(math.atan2(y, x)),
            "name": printable(arms.names[i], 16),
            "arrow": few or i in arm_labels,
        }
        for i, (x, y) in enumerate(tips)
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
        offset = _LABEL_OFFSET if steep else 0.5 * _LABEL_OFFSET
        x = row["x"] + offset * side * math.cos(turn)
        y = row["y"] + offset * side * math.sin(turn)
        if group and align != "center":
            y = max(y, group[-1]["label_y"] + _LINE * side)
        group.append({"name": row["name"], "label_x": float(x), "label_y": float(y)})
    return groups
