"""Measured means along one column, with the curve of the model through them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from finalist.charts.theme import INK, MUTED, AnyChart, data, finish, named_in_full, own_colours
from finalist.charts.values import SAYING, spoken
from finalist.errors import ChartError
from finalist.shapes import Float

_WIDTH, _PHONE, _HEIGHT = 400, 250, 230
#: Points of a curve.
_STEPS = 61


def means_chart(
    x: Float[np.ndarray, " n"],
    measured: Float[np.ndarray, " n"],
    error: Float[np.ndarray, " n"],
    model: Float[np.ndarray, " n"],
    colours: Sequence[str],
    *,
    names: Sequence[str],
    column: str,
    label: str = "Mean result",
    title: str = "Means along a column",
    subtitle: Sequence[str] = (),
    narrow: bool = False,
) -> AnyChart:
    """Show measured means and the model's curve, a polynomial of degree 2 at most.

    Parameters
    ----------
    x : (n,) array
        The column, of candidates that differ in nothing else.
    measured : (n,) array
        Means of what was measured, NaN of what was not.
    error : (n,) array
        Ordinary standard errors of `model`; NaN if unknown.
    model : (n,) array
        Means by the model. Along one column it has squares at most, so that three of them, or two
        of a straight one, say all of the curve.
    colours : sequence of str
        Of the candidates.
    names : sequence of str
        Of the candidates.
    column, label : str
        Of the axes.
    narrow : bool
        For phones.

    Examples
    --------
    >>> x, none = np.array([1.0, 2.0, 3.0]), np.full(3, np.nan)
    >>> blue = ["#0072B2"] * 3
    >>> chart = means_chart(x, x**2, none, x**2, blue, names=["a", "b", "c"], column="dose")
    >>> curve = chart.to_dict()["layer"][0]["data"]["values"]
    >>> [round(row["y"], 2) for row in curve[::30]]
    [1.0, 4.0, 9.0]
    """
    import altair as alt

    known = np.isfinite(model)
    if len(np.unique(x[known])) < 2:
        raise ChartError("a curve needs the means of candidates at two places at least.")
    degree = min(2, len(np.unique(x[known])) - 1)
    middle, size = float(x.mean()), float(np.ptp(x))
    curve = np.polynomial.Polynomial.fit((x[known] - middle) / size, model[known], degree)
    grid = np.linspace(float(x.min()), float(x.max()), _STEPS)
    line: list[dict[str, Any]] = [
        {"x": float(a), "y": float(curve((a - middle) / size))} for a in grid
    ]
    points: list[dict[str, Any]] = [
        {
            "x": float(a),
            "y": float(b if np.isfinite(b) else m),
            "low": float(m - e if np.isfinite(e) else m),
            "high": float(m + e if np.isfinite(e) else m),
            "measured": bool(np.isfinite(b)),
            "colour": colour,
            "says": _says(name, f"{column} {spoken(a)}", b, m, e),
        }
        for name, a, b, e, m, colour in zip(
            map(named_in_full, names), x, measured, error, model, colours, strict=True
        )
        if np.isfinite(m)
    ]
    scale = alt.Scale(zero=False, nice=True)
    horizontal = alt.X("x:Q", scale=scale, axis=alt.Axis(title=column, tickCount=5, grid=False))
    vertical = alt.Y("y:Q", scale=scale, axis=alt.Axis(title=label, tickCount=5))
    drawn = alt.Chart(data(line)).mark_line(color=MUTED, strokeWidth=1.8)
    base, colour_ = alt.Chart(data(points)), own_colours()
    whiskers = base.mark_rule(strokeWidth=3, opacity=0.45, **SAYING)
    seen = [row for row in points if row["measured"]]
    rings = alt.Chart(data(seen)).mark_point(size=90, filled=True, opacity=1, stroke=INK, **SAYING)
    layers = [
        drawn.encode(x=horizontal, y=vertical),
        whiskers.encode(
            x=horizontal,
            y=alt.Y("low:Q", scale=scale),
            y2="high:Q",
            color=colour_,
            description="says:N",
        ),
    ]
    if seen:
        layers.append(
            rings.encode(x=horizontal, y=vertical, color=own_colours(), description="says:N")
        )
    width = _PHONE if narrow else _WIDTH
    return finish(
        alt.layer(*layers).properties(width=width, height=_HEIGHT), title, subtitle, width
    )


def _says(name: str, place: str, measured: float, model: float, error: float) -> str:
    by = f"the model {spoken(model)}"
    if np.isfinite(error):
        by += f" \N{PLUS-MINUS SIGN} {spoken(error)}"
    return (
        f"{name}, {place}: {f'measured {spoken(measured)}, ' if np.isfinite(measured) else ''}{by}"
    )
