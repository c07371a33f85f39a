"""The charts of a study as SVG, and what is drawn before there is one."""

import base64
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from finalist.errors import ChartError
from finalist.inference.information import information
from finalist.inference.intervals import pooled_widths, start_of
from finalist.planning import Forecast, MarginPrices, Plan
from finalist.problem import Feature, as_problem
from finalist.study import Snapshot
from finalist.study.estimates import CONFIDENCE
from finalist.text import counted
from finalist.web.cache import Cache
from finalist.web.pages import format as words
from finalist.web.pages import model_pictures
from finalist.web.pages.slices import slices
from finalist.web.pool import Moment

if TYPE_CHECKING:
    from finalist.charts.theme import AnyChart, Theme

#: Arms and batches drawn in the chart of evidence.
MAX_LINES, MAX_BATCHES = 60, 120
#: What the plane does not show: it needs one sigma, one cost, and the best of all arms.
_BEYOND: frozenset[Feature] = frozenset(
    {"sigma per arm", "other candidates", "top-m", "cost", "batch intercept", "misspecification"}
)
_THEMES: tuple["Theme", ...] = ("light", "dark")
_drawing = threading.Lock()  # drawing takes a whole core


def available(snapshot: Snapshot) -> dict[str, str]:
    """Return the charts that can be drawn now, each with a description for screen readers."""
    found: dict[str, str] = {}
    if snapshot.bent.curves:
        found["bends"] = (
            "Measured means beside the line of the model and that of a model that bends: "
            f"{', '.join(dict.fromkeys(one.column for one in snapshot.bent.curves))}."
        )
    arms, plain = snapshot.arms, _is_plain(snapshot)
    if (np.diff(snapshot.trail[0], prepend=0) > 0).any():
        found["evidence"] = (
            "Evidence against each candidate over the measurements; a candidate is ruled out when "
            "its line reaches 1. The table of candidates has the last values."
        )
    for k, one in enumerate(slices(snapshot, model_pictures.front(snapshot))):
        found[f"curve-{k}"] = (
            f"Measured means along {words.name(one.column)} with the curve of the model; the chart "
            "of means has the numbers."
        )
    if snapshot.can_forecast:
        found["forecast"] = (
            "How many simulated futures are decided after how many further measurements."
        )
    if any(one.change is not None for one in snapshot.effects):
        found["effects"] = "What each column does to the results; the table of effects has it all."
    if len(snapshot.leftover.pull):
        found["residuals"] = (
            "Results less their estimates, against the estimates and in the order measured."
        )
    flat = arms.features.shape[1] == arms.rank == 2
    if plain and flat and _radius(snapshot) is not None:
        found["plane"] = (
            "The plane of parameters: for each candidate the cone in which it is best, the "
            "estimate, and the ellipse in which the parameter is with 95 %."
        )
    return found


def draw(
    snapshot: Snapshot,
    chart: str,
    forecast: Callable[[], Forecast | None],
    *,
    narrow: bool = False,
) -> "AnyChart":
    """Draw a chart.

    Parameters
    ----------
    chart : str
        One of `available`.
    forecast : callable
        Makes the forecast, called only if that is drawn.
    narrow : bool
        For phones: as wide as one is, not as wide as a page.
    """
    if chart not in available(snapshot):
        raise ChartError(
            f"there is no chart {words.name(chart)!r} of this study now; its page shows those that "
            "there are."
        )
    if chart == "forecast":
        return _forecast(forecast(), narrow)
    if chart.startswith("curve-"):
        return model_pictures.curve(snapshot, int(chart.removeprefix("curve-")), narrow)
    return _DRAW[chart](snapshot, narrow)


def svg(
    snapshot: Snapshot,
    chart: str,
    theme: "Theme",
    forecast: Callable[[], Forecast | None],
    cache: Cache,
    moment: Moment,
    *,
    narrow: bool = False,
) -> str:
    """Return a chart as SVG, drawn once per event, theme and width: `narrow` is for phones."""
    what = f"{chart}.{theme}.{narrow}"
    kept: str | None = cache.get(snapshot.number, what, moment)
    if kept is not None:
        return kept
    picture = draw(snapshot, chart, forecast, narrow=narrow)
    from finalist.charts.theme import to_svg

    with _drawing:
        kept = cache.get(snapshot.number, what, moment)  # drawn for another page in the meantime
        if kept is None:
            kept = to_svg(picture, theme)
            cache.keep(snapshot.number, what, moment, kept, len(kept))
    return kept


def as_url(text: str) -> str:
    """Return SVG as a data URL: scripts in it do not run."""
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def of_margins(prices: MarginPrices) -> dict[str, str]:
    """Return what margins save as data URLs by theme; empty if there is nothing to draw."""
    from finalist.charts.curves import margins_chart

    return _urls(lambda: margins_chart(prices))


def of_leads(plan: Plan) -> dict[str, str]:
    """Return the measurements of a plan against the lead, as data URLs by theme; or nothing."""
    from finalist.charts.plans import leads_chart

    return _urls(lambda: leads_chart(plan))


def of_ends(plan: Plan) -> dict[str, str]:
    """Return how good what a plan names after a budget is, as data URLs by theme; or nothing."""
    from finalist.charts.simulations import ends_chart

    return _urls(lambda: ends_chart(plan))


def _urls(draw: Callable[[], "AnyChart"]) -> dict[str, str]:
    """Draw in each theme; empty if there is nothing to draw."""
    from finalist.charts.theme import to_svg

    with _drawing:
        try:
            picture = draw()
        except ChartError:
            return {}
        return {theme: as_url(to_svg(picture, theme)) for theme in _THEMES}


# ---- the charts --------------------------------------------------------------------------


def _is_plain(snapshot: Snapshot) -> bool:
    return not snapshot.problem.needs & _BEYOND


def _evidence(snapshot: Snapshot, narrow: bool) -> "AnyChart":
    from finalist.charts.evidence import evidence_chart
    from finalist.charts.theme import candidate_colour

    pulls, evidence = snapshot.trail
    grown = np.diff(pulls, prepend=0) > 0  # a batch that is missing entirely adds nothing
    tested = np.flatnonzero(snapshot.arms.candidate)
    pulls, evidence = pulls[grown], evidence[np.ix_(grown, tested)]
    batches = np.unique(np.linspace(0, len(pulls) - 1, MAX_BATCHES).astype(int))
    out = evidence >= 1.0
    first = np.where(out.any(axis=0), out.argmax(axis=0), len(pulls))
    arms = np.sort(np.argsort(-first, kind="stable")[:MAX_LINES])
    remarks = ["Ruled out where a line reaches 1."]
    if len(arms) < len(tested):
        rest = counted(len(tested) - len(arms), "that was", "that were")
        remarks.append(f"Not drawn: {rest} ruled out early")
    chosen = evidence[:, arms]
    if len(batches) < len(pulls):  # a line must still end where its arm is out
        chosen = np.maximum.accumulate(np.where(chosen >= 1.0, chosen, -np.inf), axis=0)
        chosen = np.where(np.isfinite(chosen), chosen, evidence[:, arms])
    drawn = tested[arms].tolist()
    return evidence_chart(
        pulls[batches],
        np.asarray(chosen[batches], dtype=float),
        [snapshot.arms.names[i] for i in drawn],
        winner=[at for at, i in enumerate(drawn) if i in snapshot.winners],
        title="Evidence so far" if narrow else "Evidence against each candidate",
        subtitle=remarks,
        colours=[candidate_colour(i) for i in drawn],
        narrow=narrow,
    )


def _forecast(found: Forecast | None, narrow: bool) -> "AnyChart":
    from finalist.charts.studies import forecast_chart

    if found is None:
        raise ChartError(
            "there is no forecast: too little is measured yet, or there are too many candidates."
        )
    return forecast_chart(
        found.pulls,
        found.cap,
        title="How many more?" if narrow else "How many more measurements?",
        subtitle=[] if narrow else model_pictures.lines([found.words()], narrow),
        narrow=narrow,
    )


def _start(snapshot: Snapshot) -> np.ndarray:
    """Return A_0 of the intervals for features X = Z B; `start_of` has it for coordinates Z."""
    arms = snapshot.arms
    B = np.linalg.lstsq(arms.coordinates, arms.features, rcond=None)[0]
    return np.asarray(B.T @ start_of(as_problem(arms, sigma=1.0)) @ B)  # the same for every sigma


def _radius(snapshot: Snapshot) -> float | None:
    """Return the radius of the ellipse: half an interval over the size of its direction.

    The interval is that which holds for all directions, not that of the mean of an arm.
    """
    X, problem = snapshot.arms.features, snapshot.problem
    info = information(X, snapshot.fit.statistics.count.astype(float))
    known = np.flatnonzero(np.isfinite(snapshot.means + snapshot.widths))
    if len(known) == 0 or info.rank < snapshot.arms.rank:
        return None
    image = info.inverse_root @ X[known[0]]
    back = info.inverse_root.T @ image
    size = float(np.sqrt(image @ image + back @ _start(snapshot) @ back))
    y, start = snapshot.arms.coordinates[known[:1]], start_of(problem)
    width = float(pooled_widths(snapshot.fit, y, start, CONFIDENCE, problem.scale)[0])
    return width / size if size > 0 else None


def _plane(snapshot: Snapshot, narrow: bool) -> "AnyChart":
    from finalist.charts.studies import NARROW, WIDE, position_chart

    theta = np.linalg.lstsq(snapshot.arms.features, snapshot.means, rcond=None)[0]
    subtitle = [
        "Each coloured cone holds the parameters under which that candidate is best.",
        "The cross is the estimate; the ellipse holds the truth with 95 %, at all times.",
    ]
    return position_chart(
        snapshot.arms,
        theta,
        snapshot.fit.statistics.count,
        _radius(snapshot),
        start=_start(snapshot),
        sign=snapshot.problem.sign,
        title="The plane" if narrow else "Where the parameter may be",
        subtitle=model_pictures.lines(subtitle, narrow),
        side=NARROW if narrow else WIDE,
    )


_DRAW: dict[str, Callable[[Snapshot, bool], "AnyChart"]] = {
    "evidence": _evidence,
    "plane": _plane,
    "bends": model_pictures.bends,
    "effects": model_pictures.effects,
    "residuals": model_pictures.residuals,
}
