"""A study as one self-contained file: to keep, to send, to print."""

import base64
from datetime import UTC, datetime

from finalist import __version__
from finalist.errors import ChartError
from finalist.planning import Forecast
from finalist.study import Study
from finalist.web import format as words
from finalist.web.pictures import Drawings, available
from finalist.web.render import HERE, environment
from finalist.web.snapshot import Look, look_at, ranked, span_of

#: Arms in the table of a report; the rest is in the files of the study.
MAX_ARMS = 1000


def report(
    look: Look, forecast: Forecast | None, place: str, drawings: Drawings | None = None
) -> str:
    """Return a report in HTML with everything in it, drawings too.

    Parameters
    ----------
    look : Look
        The study.
    forecast : Forecast or None
    place : str
        Where it is kept, as people write it.
    drawings : Drawings, optional
        With what was drawn already.
    """
    drawn = drawings or Drawings()
    arms = ranked(look)
    return environment.get_template("report.html").render(
        look=look,
        status_=look.status,
        state=words.state(look.status, look.stopped),
        arms=arms[:MAX_ARMS],
        more=max(len(arms) - MAX_ARMS, 0),
        charts=_charts(look, forecast, drawn),
        forecast=forecast,
        span=span_of(look),
        place=place,
        say=words,
        style=(HERE / "static" / "style.css").read_text(encoding="utf-8"),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
    )


def _charts(
    look: Look, forecast: Forecast | None, drawings: Drawings
) -> list[tuple[str, str, str]]:
    """Return charts: their names, images, and what they show."""
    found = available(look)
    if forecast is None:
        found.pop("forecast", None)
    return [(chart, _image(look, chart, forecast, drawings), alt) for chart, alt in found.items()]


def _image(look: Look, chart: str, forecast: Forecast | None, drawings: Drawings) -> str:
    """Return a drawing as an address that holds it; nothing in an image can run."""
    try:
        svg = drawings.svg(look, chart, "light", lambda: forecast)
    except ChartError:
        return ""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def report_of(study: Study, place: str) -> str:
    """Return the report of a study that is open.

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
    look = look_at(study, study._log.row.id)
    return report(look, study.status().forecast, place)
