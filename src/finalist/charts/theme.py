"""What all charts share: colours, typography, labels, and saving to a file.

Nothing is downloaded: vl-convert draws with the fonts it finds on the machine. Colours are
those of Okabe and Ito, which colour-blind readers can tell apart. Altair is imported when
a chart is made, not before.
"""

import textwrap
from collections.abc import Mapping, Sequence, Sized
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from finalist.errors import ChartError
from finalist.files import check_folder, printable, write_file
from finalist.shapes import Int
from finalist.text import shortened, telling

if TYPE_CHECKING:
    import altair as alt

    AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart
else:
    AnyChart = Any

#: Okabe and Ito: blue, orange, green, purple, vermilion, sky blue; the yellow is too faint.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
#: Candidates by their place in the table; both themes have them in web/static/rows.css as well.
CANDIDATES = (
    "#0072B2",
    "#C25400",
    "#00805D",
    "#A5508A",
    "#80690A",
    "#5B4FB0",
    "#8A4B2A",
    "#3D7482",
)
ACCENT = "#D55E00"
GREYS = ("#B8C0C8", "#8A96A3")
INK = "#1F2933"
MUTED = "#616E7C"
RULE = "#E4E7EB"
Theme = Literal["light", "dark"]
#: Colours of a light page and their counterparts on a dark one.
DARK = {
    "white": "#1A2129",
    INK: "#E7ECF1",
    MUTED: "#A3B1BF",
    RULE: "#2E3944",
    "#B8C0C8": "#56636F",
    "#8A96A3": "#8593A1",
    "#0072B2": "#5BB2EC",
    "#E69F00": "#F0B640",
    "#009E73": "#35C79B",
    "#CC79A7": "#DE97BE",
    "#D55E00": "#FF8B47",
    "#56B4E9": "#7CC6F2",
    "#C25400": "#FF8B47",
    "#00805D": "#35C79B",
    "#A5508A": "#DE97BE",
    "#80690A": "#D8BF4A",
    "#5B4FB0": "#A79CF0",
    "#8A4B2A": "#D69B78",
    "#3D7482": "#86C1CF",
}
FONT = "Inter, Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"

#: Most arms in a chart; the subtitle counts the rest.
MAX_ARMS = 40
#: Longest label, in characters.
LABEL_WIDTH = 24
#: File types that `save` writes.
SUFFIXES = (".png", ".svg", ".pdf")


def candidate_colour(place: int) -> str:
    """Return the colour of a candidate by its place in the table: the same in every chart.

    Examples
    --------
    >>> candidate_colour(0), candidate_colour(8) == candidate_colour(0)
    ('#0072B2', True)
    """
    return CANDIDATES[place % len(CANDIDATES)]


def own_colours() -> Any:
    """Return the encoding of rows that hold a colour of their own, in a field of that name.

    As a scale and not as it is: the dark theme exchanges colours, but not in data. The same one for
    all layers of a chart, which share a scale: candidates' colours, the accent and two greys.
    """
    import altair as alt

    found = [*CANDIDATES, ACCENT, *GREYS]
    return alt.Color("colour:N", scale=alt.Scale(domain=found, range=found), legend=None)


def named_in_full(name: str) -> str:
    """Return a name where there is room for it, as in what a mark says."""
    return shortened(printable(name), 80)


def labels(names: Sequence[str], width: int = LABEL_WIDTH) -> list[str]:
    """Return a unique label for each name, even if the shortened names are equal.

    Examples
    --------
    >>> labels(["a", "steel, annealed", "steel, rolled"], width=8)
    ['a', 'steel…ed', 'steel…ed (2)']
    """
    taken: set[str] = set()
    unique = []
    for name in telling([printable(name) for name in names], width):
        short = shortened(name, width)
        label, copy = short, 1
        while label in taken:
            copy += 1
            label = f"{short} ({copy})"
        taken.add(label)
        unique.append(label)
    return unique


def first_of(names: Sequence[str], order: Int[np.ndarray, " n"]) -> dict[str, int]:
    """Return the first of some arms, by label: all that a chart has room for.

    Examples
    --------
    >>> first_of(["a", "b", "c"], np.array([2, 0]))
    {'c': 2, 'a': 0}
    """
    some = [int(i) for i in order[:MAX_ARMS]]
    return dict(zip(labels([names[i] for i in some]), some, strict=True))


def not_shown(order: Int[np.ndarray, " n"], shown: Sized, words: str) -> list[str]:
    """Say how many of an order there is no room for, if any."""
    left = len(order) - len(shown)
    return [f"Not shown: {left} {words}"] if left else []


def round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 and so on within two limits, for a logarithmic axis."""
    numbers = (m * 10.0**e for e in range(-300, 300) for m in (1, 2, 5))
    return [number for number in numbers if low <= number <= high]


def data(rows: list[dict[str, Any]]) -> Any:
    """Return rows as the data of a chart.

    As a tuple: Altair copies lists and all they hold at every step of building a chart.
    """
    import altair as alt

    return alt.Data(values=tuple(rows))  # type: ignore[no-untyped-call]


#: Words at axes and in legends.
_SMALL: Mapping[str, Any] = {
    "labelColor": INK,
    "labelFontSize": 12,
    "labelLimit": 260,
    "titleColor": MUTED,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
}


#: Pixels of a letter of a title.
_LETTER = 10.0


def finish(chart: Any, title: str, subtitle: Sequence[str], width: float | None = None) -> AnyChart:
    """Add the title and the common style, at once: Altair copies a chart for every change.

    A title that is longer than `width`, of the frame in pixels, goes on in a second line.
    """
    import altair as alt

    style = alt.Config(
        font=FONT,
        view=alt.ViewConfig(stroke=None),
        title=alt.TitleConfig(
            anchor="start",
            frame="group",
            color=INK,
            fontSize=17,
            fontWeight=600,
            subtitleColor=MUTED,
            subtitleFontSize=12.5,
            subtitleLineHeight=17,
            subtitlePadding=6,
            offset=16,
        ),
        axis=alt.AxisConfig(
            **_SMALL,
            labelPadding=6,
            titlePadding=10,
            domainColor=MUTED,
            tickColor=MUTED,
            gridColor=RULE,
        ),
        header=alt.HeaderConfig(labelColor=INK, labelFontSize=13, labelFontWeight=600, title=None),
        legend=alt.LegendConfig(
            **_SMALL,
            symbolSize=140,
        ),
    )
    lines = [title] if width is None else textwrap.wrap(title, int(width / _LETTER)) or [title]
    heading = alt.TitleParams(text=title if len(lines) == 1 else lines, subtitle=list(subtitle))
    themed: AnyChart = chart.properties(title=heading, background="white", padding=18, config=style)
    return themed


def save(chart: AnyChart, path: str | PathLike[str]) -> Path:
    """Write a chart as .png (twice the screen resolution), .svg or .pdf, by its suffix.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    chart : altair chart
        Any Altair chart.
    path : path-like
        The folder must exist.

    Returns
    -------
    Path

    Raises
    ------
    ChartError
        For another suffix.
    OutputError
        For a folder that does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from finalist import charts
    >>> chart = charts.weights_chart(["a", "b"], np.array([0.7, 0.3]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     charts.save(chart, folder + "/weights.svg").read_bytes()[:4]
    b'<svg'
    """
    target = check_target(path)
    import vl_convert as vlc

    spec = chart.to_dict()
    suffix = target.suffix.lower()
    if suffix == ".png":
        content = vlc.vegalite_to_png(spec, scale=2.0)
    elif suffix == ".pdf":
        content = vlc.vegalite_to_pdf(spec)
    else:
        content = vlc.vegalite_to_svg(spec).encode()
    return write_file(target, content)


def to_svg(chart: AnyChart, theme: Theme = "light") -> str:
    """Return a chart as SVG, for a light or a dark page.

    Names are escaped; nothing in it runs or is loaded.

    Examples
    --------
    >>> import numpy as np
    >>> from finalist import charts
    >>> svg = to_svg(charts.weights_chart(["<b>"], np.array([1.0])), "dark")
    >>> "<b>" in svg, "&lt;b&gt;" in svg, INK in svg
    (False, True, False)
    """
    import vl_convert as vlc

    spec = chart.to_dict()
    svg: str = vlc.vegalite_to_svg(spec if theme == "light" else _recoloured(spec, DARK))
    return svg


#: Parts of a chart that hold text and data, not colours.
_WRITTEN = ("data", "datasets", "text", "subtitle", "domain", "values", "sort")


def _recoloured(value: Any, colours: Mapping[str, str]) -> Any:
    """Replace the colours of a chart, but not in its data: an arm may be called "white"."""
    if isinstance(value, dict):
        return {
            key: item if _is_written(key, item) else _recoloured(item, colours)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_recoloured(item, colours) for item in value]
    return colours.get(value, value) if isinstance(value, str) else value


def _is_written(key: str, item: Any) -> bool:
    encoding = key == "text" and isinstance(item, dict)  # the encoding of text marks, not text
    return key in _WRITTEN and not encoding


def check_target(path: str | PathLike[str]) -> Path:
    """Return the path of a chart, or raise before anything is computed if it cannot be written."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ChartError(
            f"cannot save a chart as {target.name!r}: the name must end in {', '.join(SUFFIXES)}."
        )
    return check_folder(target)
