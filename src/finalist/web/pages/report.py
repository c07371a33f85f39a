"""A study as one self-contained file: to keep, to send, to print."""

from datetime import UTC, datetime

from finalist import __version__
from finalist.errors import ChartError
from finalist.planning import Forecast
from finalist.study import Snapshot, Status, Study
from finalist.study.status import status
from finalist.web.cache import Cache
from finalist.web.pages.pictures import as_url, available, svg
from finalist.web.pages.shown import context
from finalist.web.pool import Moment
from finalist.web.render import HERE, environment

#: Style sheets, in order.
STYLES = ("style", "rows")
#: Candidates in the table of a report; the exported files have all.
MAX_ARMS = 1000


def report(snapshot: Snapshot, simulated: Status, place: str, cache: Cache, moment: Moment) -> str:
    """Return a report as self-contained HTML, charts included.

    Parameters
    ----------
    simulated : Status
        With the forecasts, of this moment or one soon after.
    place : str
        Where it is kept, for display.
    cache : Cache
        Keeps the charts, at the moment of the snapshot.
    """
    shown = context(snapshot, status(snapshot))
    arms = shown["found"].rows
    return environment.get_template("report.html").render(
        **shown,
        arms=arms[:MAX_ARMS],
        more=max(len(arms) - MAX_ARMS, 0),
        charts=_charts(snapshot, simulated.forecast, cache, moment),
        forecast=simulated.forecast,
        saving=simulated.saving,
        MAX_EFFECTS=MAX_ARMS,
        place=place,
        style="\n".join(
            (HERE / "static" / f"{name}.css").read_text(encoding="utf-8") for name in STYLES
        ),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
    )


def _charts(
    snapshot: Snapshot, forecast: Forecast | None, cache: Cache, moment: Moment
) -> list[tuple[str, str, str]]:
    """Return charts: their names, images as data URLs (scripts in them do not run), and texts."""
    charts = []
    for chart, alt in available(snapshot).items():
        if chart == "forecast" and forecast is None:
            continue
        try:
            url = as_url(svg(snapshot, chart, "light", lambda: forecast, cache, moment))
        except ChartError:
            url = ""
        charts.append((chart, url, alt))
    return charts


def report_of(study: Study, place: str) -> str:
    """Return the report of an open study.

    Examples
    --------
    >>> from finalist.testing.studies import small_study
    >>> with small_study("<colours>") as study:
    ...     text = report_of(study, "lab.db")
    >>> "<colours>" in text, "&lt;colours&gt;" in text
    (False, True)
    """
    snapshot = study.snapshot()
    return report(snapshot, study.status(), place, Cache(), ("", snapshot.event))
