"""Confidence sets in the plane of parameters, over the cones of the arms (Soare 2014, Fig. 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from finalist.arms import Arms
from finalist.charts.geometry import ConvexSet, cones
from finalist.charts.layers import arm_layer, check_plane, cone_labels, cone_layer
from finalist.charts.theme import ACCENT, INK, AnyChart, data, finish
from finalist.errors import ChartError


@dataclass(frozen=True, eq=False)
class Panel:
    """One confidence set.

    Attributes
    ----------
    region : ConvexSet
    """

    title: str
    region: ConvexSet


def region_chart(
    arms: Arms,
    theta: Float[np.ndarray, " 2"],
    region: ConvexSet,
    side: float,
    title: str,
    subtitle: Sequence[str],
) -> AnyChart:
    """Show one set over the cones of arms with two features, with the arms as arrows.

    The set is dashed, and brighter where the same bounds hold on both sides of theta. The picture
    shows |t_1|, |t_2| <= side.
    """
    check_plane(arms)
    middle = region.normals @ theta
    both = ConvexSet(
        np.vstack([region.normals, -region.normals]),
        np.concatenate([region.limits, region.limits - 2 * middle]),
    )
    found = cones(arms.features)
    names = cone_labels(arms, found)
    layers = (
        cone_layer(found, names, side)
        + _polygon(region.polygon(2 * side), 0.3, dash=True)
        + _polygon(both.polygon(2 * side), 0.6)
        + _cross(theta, size=110, label=True)
        + arm_layer(arms, names, side, 0.28 * side)
    )
    return finish(layers.properties(width=460, height=460), title, subtitle)


def regions_chart(
    arms: Arms,
    theta: Float[np.ndarray, " 2"],
    rows: Sequence[Sequence[Panel]],
    side: float,
    title: str,
    subtitle: Sequence[str],
) -> AnyChart:
    """Show sets over the cones in a grid of small panels, with theta as a cross in each."""
    import altair as alt

    check_plane(arms)
    if not rows or not all(rows):
        raise ChartError("there is no set to show. Pass at least one panel per row.")
    lines = [
        alt.hconcat(*(_small(arms, theta, panel, side) for panel in row), spacing=24)
        for row in rows
    ]
    return finish(alt.vconcat(*lines, spacing=18), title, subtitle)


def _small(arms: Arms, theta: Float[np.ndarray, " 2"], panel: Panel, side: float) -> Any:
    import altair as alt

    found = cones(arms.features)
    layers = (
        cone_layer(found, cone_labels(arms, found), side, titles=False)
        + _polygon(panel.region.polygon(2 * side), 0.6)
        + _cross(theta, size=60)
    )
    heading = alt.TitleParams(text=panel.title, fontSize=12.5, fontWeight=600, offset=6)
    return layers.properties(width=200, height=200, title=heading)


def _polygon(corners: Float[np.ndarray, "n 2"], opacity: float, dash: bool = False) -> Any:
    import altair as alt

    closed = np.vstack([corners, corners[:1]])
    rows = [{"x": float(x), "y": float(y), "step": i} for i, (x, y) in enumerate(closed)]
    return (
        alt.Chart(data(rows))
        .mark_line(
            filled=True,
            fill="white",
            fillOpacity=opacity,
            stroke=INK,
            strokeWidth=1.6,
            strokeDash=[5, 4] if dash else [1, 0],
            clip=True,
        )
        .encode(x="x:Q", y="y:Q", order="step:Q")
    )


def _cross(theta: Float[np.ndarray, " 2"], size: int, label: bool = False) -> Any:
    import altair as alt

    place = data([{"x": float(theta[0]), "y": float(theta[1])}])
    base = alt.Chart(place).encode(x="x:Q", y="y:Q")
    cross = base.mark_point(shape="cross", filled=True, size=size, color=ACCENT, opacity=1)
    if not label:
        return cross
    return cross + base.mark_text(text="θ*", dx=16, fontSize=15, fontWeight=600, color=ACCENT)
