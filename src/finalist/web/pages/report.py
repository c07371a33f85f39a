"""A study as one self-contained file: to keep, to send, to print."""

import base64
from datetime import UTC, datetime

from finalist import __version__
from finalist.errors import ChartError
from finalist.planning import Forecast
from finalist.study import Study
from finalist.study.handles import row_of
from finalist.web.pages import format as words
from finalist.web.pages.pictures import SvgCache, available
from finalist.web.pages.snapshot import Snapshot, ranked, snapshot_of, span_of
from finalist.web.render import HERE, environment

#: Arms in the table of a report; the exported files have all.
MAX_ARMS = 1000


def report(
    snapshot: Snapshot, forecast: Forecast | None, place: str, svg_cache: SvgCache | None = None
) -> str:
    """Return a report as self-contained HTML, charts included.

    Parameters
    ----------
    snapshot : Snapshot
    forecast : Forecast or None
    place : str
        Where it is kept, for display.
    svg_cache : SvgCache, optional
        With charts that were already drawn.
    """
    svg_cache = svg_cache or SvgCache()
    arms = ranked(snapshot)
    return environment.get_template("report.html").render(
        snapshot=snapshot,
        status_=snapshot.status,
        state=words.state(snapshot.status, snapshot.stopped),
        arms=arms[:MAX_ARMS],
        more=max(len(arms) - MAX_ARMS, 0),
        charts=_charts(snapshot, forecast, svg_cache),
        forecast=forecast,
        span=span_of(snapshot),
        place=place,
        say=words,
        style=(HERE / "static" / "style.css").read_text(encoding="utf-8"),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
    )


def _charts(
    snapshot: Snapshot, forecast: Forecast | None, svg_cache: SvgCache
) -> list[tuple[str, str, str]]:
    """Return charts: their names, images and descriptions."""
    found = available(snapshot)
    if forecast is None:
        found.pop("forecast", None)
    return [
        (chart, _image(snapshot, chart, forecast, svg_cache), alt) for chart, alt in found.items()
    ]


def _image(snapshot: Snapshot, chart: str, forecast: Forecast | None, svg_cache: SvgCache) -> str:
    """Return a chart as a data URL; scripts in an image do not run."""
    try:
        svg = svg_cache.svg(snapshot, chart, "light", lambda: forecast)
    except ChartError:
        return ""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def report_of(study: Study, place: str) -> str:
    """Return the report of an open study.

    Examples
    --------
    >>> import tempfile
    >>> import finalist as fl
    >>> folder = tempfile.TemporaryDirectory()
    >>> arms = fl.Arms.unstructured(["a", "b"])
    >>> with fl.Study.create(folder.name + "/lab.db", "<colours>", arms, sigma=1.0) as study:
    ...     text = report_of(study, "lab.db")
    >>> "<colours>" in text, "&lt;colours&gt;" in text
    (False, True)
    >>> folder.cleanup()
    """
    snapshot = snapshot_of(study, row_of(study).id)
    return report(snapshot, study.status().forecast, place)
