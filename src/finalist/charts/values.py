"""What marks of a chart say: the page shows it on hover, on tap and by the keyboard.

Marks that say something are called `VALUE` in the SVG, and their words are its `aria-label`: a page
finds them there, and so does a screen reader where the SVG is part of a page.
"""

import math
from typing import Any

from finalist.charts.theme import data

#: What a mark with a value is called in the SVG; static/values.js looks for it.
VALUE = "value"
#: For marks that are drawn: they say the field "says" of their rows.
SAYING: dict[str, Any] = {"ariaRoleDescription": VALUE}
#: The path of a mark that is nowhere to be seen.
_NOTHING = "M0,0"


def spoken(value: float) -> str:
    """Return a number as it is said beside a mark.

    Examples
    --------
    >>> spoken(-0.01234), spoken(12345.6), spoken(float("nan"))
    ('−0.01234', '12,346', 'unknown')
    """
    if not math.isfinite(value):
        return "unknown"
    text = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value + 0.0:.4g}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text


def values_layer(rows: list[dict[str, Any]], **encoding: Any) -> Any:
    """Return invisible marks where a line has no marks of its own.

    Parameters
    ----------
    rows : list of dict
        Each with what it "says".
    **encoding
        Where they are: x and y.

    Examples
    --------
    >>> layer = values_layer([{"x": 1, "y": 2, "says": "2 at 1"}], x="x:Q", y="y:Q")
    >>> layer.to_dict()["mark"]["opacity"]
    0
    """
    import altair as alt

    marks = alt.Chart(data(rows)).mark_point(shape=_NOTHING, opacity=0, **SAYING)
    return marks.encode(**encoding, description="says:N")
