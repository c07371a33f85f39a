"""Pictures of a problem with two features: cones, theta, and confidence ellipses or sets.

A set over the cones is Figure 1 of Soare 2014; the plane has the ellipse of an allocation instead:
the best arm is identified when it lies inside a single cone (Sect. 3). The geometry is in
`finalist.charts.geometry`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.charts.bars import weights_panel
from finalist.charts.geometry import ConvexSet, ellipse
from finalist.charts.layers import (
    LABEL_OFFSET,
    MAX_ARROWS,
    check_plane,
    cross_layer,
    outline_layer,
    over_cones,
)
from finalist.charts.theme import AnyChart, finish
from finalist.design import Design, round_design
from finalist.errors import ChartError
from finalist.files import printable
from finalist.inference.bounds import Bound, static_radius
from finalist.inference.information import information
from finalist.shapes import Float, Int

_SIDE = 460


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
    ellipse_words = "The ellipse shows how far the estimate may be from θ"
    return finish(panel, title, _remarks(arms, ellipse_words, delta, sigma))


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

    The parameter is unknown, so the ellipse is drawn around the origin: whatever theta is, the
    estimate is at most that far from it. A long ellipse across the border of two cones means that
    the design separates those two arms badly. For the parameters see `plane_chart`.

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
    ellipse_words = "The ellipse: how far the estimate may be from the true parameter"
    subtitle += _remarks(arms, ellipse_words, delta, sigma)
    both = alt.hconcat(bars, plane, spacing=50).resolve_scale(color="independent")
    return finish(both, title, subtitle)


def fits_plane(arms: Arms, weights: Float[np.ndarray, " K"]) -> bool:
    """Return whether the arms have two features and those of the design span the plane."""
    return arms.features.shape[1] == 2 and information(arms.coordinates, weights).rank == 2


def _remarks(arms: Arms, ellipse_words: str, delta: float, sigma: float) -> list[str]:
    dots = "" if len(arms) <= MAX_ARROWS else " Dots: arms that are never best."
    return [
        "Each coloured cone holds the parameters under which that arm is best.",
        f"{ellipse_words} (error {delta:g}, noise {sigma:g}).",
        f"Arrows are the arms, at a scale of their own.{dots}",
    ]


def _panel(
    arms: Arms, outline: Float[np.ndarray, "n 2"], theta: Float[np.ndarray, " 2"] | None
) -> Any:
    """Draw cones, ellipse and arms; theta and its name if it is known."""
    known = outline if theta is None else np.vstack([outline, theta])
    side = 1.18 * float(np.abs(known).max())
    middle = outline_layer(outline)
    if theta is not None:
        middle += cross_layer(theta, 100, {"text": "θ", "dx": 14, "fontSize": 16})
    layers = over_cones(arms, side, [middle], _arrow_length(outline, side))
    return layers.properties(width=_SIDE, height=_SIDE)


def _settled(
    arms: Arms, counts: Int[np.ndarray, " K"], means: Float[np.ndarray, " K"], radius: float
) -> bool:
    """Return whether the ellipse lies in the cone of the best arm (Soare 2014, Sect. 3)."""
    best = int(means.argmax())
    info = information(arms.coordinates, counts.astype(float))
    widths = radius * np.sqrt(info.variances(arms.coordinates[best] - arms.coordinates))
    return bool(np.delete(means[best] - means > widths, best).all())


def _arrow_length(outline: Float[np.ndarray, "n 2"], side: float) -> float:
    """Return the length of the longest arrow: it ends before the ellipse if there is room."""
    nearest = float(np.linalg.norm(outline, axis=1).min())
    return side * min(0.42, max(0.3, nearest / side - 2 * LABEL_OFFSET))


@dataclass(frozen=True, eq=False)
class Panel:
    """One confidence set."""

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
    middle = [
        _polygon(region, side, fillOpacity=0.3, strokeDash=[5, 4]),
        _polygon(both, side),
        cross_layer(theta, 110, {"text": "θ*", "dx": 16, "fontSize": 15}),
    ]
    layers = over_cones(arms, side, middle, 0.28 * side)
    return finish(layers.properties(width=_SIDE, height=_SIDE), title, subtitle)


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

    middle = [_polygon(panel.region, side), cross_layer(theta, 60)]
    layers = over_cones(arms, side, middle, None, titles=False)
    heading = alt.TitleParams(text=panel.title, fontSize=12.5, fontWeight=600, offset=6)
    return layers.properties(width=200, height=200, title=heading)


def _polygon(region: ConvexSet, side: float, **style: Any) -> Any:
    corners = region.polygon(2 * side)
    style = {"strokeDash": [1, 0], "clip": True, **style}
    return outline_layer(np.vstack([corners, corners[:1]]), 1.6, **style)
