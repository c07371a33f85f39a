"""The charts of a study as SVG, drawn once for each event and theme."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from finalist.complexity import complexity
from finalist.errors import ChartError, FinalistError
from finalist.inference.information import information
from finalist.inference.intervals import STARTING
from finalist.planning import Forecast
from finalist.study.status import MAX_WORK as MAX_FORECAST
from finalist.text import counted
from finalist.web import format as words
from finalist.web.pool import Moment
from finalist.web.snapshot import Look

if TYPE_CHECKING:
    from finalist.charts.theme import AnyChart, Theme

#: Letters of SVG that are kept, all drawings together.
MAX_LETTERS = 16 * 2**20
#: Of the evidence, at most so many arms and batches are drawn.
MAX_LINES, MAX_BATCHES = 60, 120
#: The best design is computed up to so many arms times the square of their rank.
MAX_WORK = 200_000
#: The study, its moment, the chart, the theme.
_Key = tuple[int, Moment, str, str]
_INTERVALS = "Lines: 95 % intervals, for all arms and times together."


def available(look: Look) -> dict[str, str]:
    """Return the charts that can be drawn now, each with what it shows, for who cannot see it."""
    found: dict[str, str] = {}
    status, arms = look.status, look.arms
    if _evident(look).size and (np.diff(look.pulls, prepend=0) > 0).any():
        found["evidence"] = (
            "Evidence against each arm over the pulls; an arm is out when its line reaches 1. "
            "The table of arms has the last values."
        )
    if any(arm.estimate is not None for arm in status.arms):
        found["estimates"] = "Estimated means; the table of arms has the numbers."
    if status.pulls:
        beside = " beside those of the best design" if look.plain else ""
        found["pulls"] = f"Pulls of each arm{beside}."
    if _can_be_forecast(look):
        found["forecast"] = "How many simulated futures are decided after how many further pulls."
    plane = look.plain and arms.features.shape[1] == 2 and arms.rank == 2
    if plane and _radius(look) is not None:
        found["plane"] = (
            "The plane of parameters: for each arm the cone in which it is best, the estimate, "
            "and the ellipse in which the parameter is with 95 %."
        )
    return found


def _can_be_forecast(look: Look) -> bool:
    """Return whether `Study.status` makes a forecast."""
    status, arms = look.status, look.arms
    known = look.row.settings["noise"]["sigma"] is not None
    return (
        status.verdict == "continue"
        and len(arms) * arms.rank**2 <= MAX_FORECAST
        and all(arm.estimate is not None for arm in status.arms)
        and (known or sum(arm.pulls for arm in status.arms) > arms.rank)
    )


def draw(look: Look, chart: str, forecast: Callable[[], Forecast | None]) -> "AnyChart":
    """Draw a chart.

    Parameters
    ----------
    look : Look
    chart : str
        One of those that `available` names.
    forecast : callable
        Makes the forecast, if that is drawn.
    """
    if chart not in available(look):
        raise ChartError(
            f"there is no chart {words.name(chart)!r} of this study now; the page of the study "
            "has those that there are."
        )
    if chart == "forecast":
        return _forecast(forecast())
    return _DRAW[chart](look)


class Drawings:
    """SVG by study, event, chart and theme; the oldest are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, str] = OrderedDict()
        self._letters = 0
        self._drawing = threading.Lock()  # the machine that draws takes one core

    def svg(
        self, look: Look, chart: str, theme: "Theme", forecast: Callable[[], Forecast | None]
    ) -> str:
        """Return a drawing."""
        key = (look.number, look.moment, chart, theme)
        kept = self._get(key)
        if kept is not None:
            return kept
        picture = draw(look, chart, forecast)
        from finalist.charts.theme import to_svg

        with self._drawing:
            kept = self._get(key)  # another page wanted the same
            if kept is None:
                kept = to_svg(picture, theme)
                self._keep(key, kept)
        return kept

    def _get(self, key: _Key) -> str | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: _Key, svg: str) -> None:
        with self._lock:
            self._kept[key] = svg
            self._letters += len(svg)
            while self._letters > MAX_LETTERS and len(self._kept) > 1:
                self._letters -= len(self._kept.popitem(last=False)[1])


# ---- one chart after the other -----------------------------------------------------------


def _evident(look: Look) -> np.ndarray:
    """Return the arms that are tested: those that can win."""
    candidates = np.array([arm.candidate for arm in look.status.arms])
    return np.flatnonzero(candidates) if look.evidence.size else np.array([], dtype=int)


def _winners(look: Look, names: Sequence[str]) -> list[int]:
    won = set(look.status.winners)
    return [i for i, name in enumerate(names) if name in won]


def _evidence(look: Look) -> "AnyChart":
    from finalist.charts.evidence import evidence_chart

    grown = np.diff(look.pulls, prepend=0) > 0  # a batch of which all is missing adds nothing
    tested = _evident(look)
    pulls, evidence = look.pulls[grown], look.evidence[np.ix_(grown, tested)]
    batches = np.unique(np.linspace(0, len(pulls) - 1, MAX_BATCHES).astype(int))
    out = evidence >= 1.0
    first = np.where(out.any(axis=0), out.argmax(axis=0), len(pulls))
    arms = np.sort(np.argsort(-first, kind="stable")[:MAX_LINES])
    remarks = ["An arm is out when its line reaches 1."]
    if len(arms) < len(tested):
        rest = counted(len(tested) - len(arms), "arm that was", "arms that were")
        remarks.append(f"Not drawn: {rest} out early")
    chosen = evidence[:, arms]
    if len(batches) < len(pulls):  # a line must still end where its arm is out
        chosen = np.maximum.accumulate(np.where(chosen >= 1.0, chosen, -np.inf), axis=0)
        chosen = np.where(np.isfinite(chosen), chosen, evidence[:, arms])
    names = [look.arms.names[i] for i in tested[arms]]
    return evidence_chart(
        pulls[batches],
        np.asarray(chosen[batches], dtype=float),
        names,
        winner=_winners(look, names),
        title="Evidence against each arm",
        subtitle=remarks,
    )


def _column(look: Look, word: str) -> np.ndarray:
    values = [getattr(arm, word) for arm in look.status.arms]
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _counts(look: Look) -> np.ndarray:
    return np.array([arm.pulls for arm in look.status.arms], dtype=np.int64)


def _estimates(look: Look) -> "AnyChart":
    from finalist.charts.studies import intervals_chart

    high = _column(look, "high")
    remark = _INTERVALS if np.isfinite(high).any() else "There are no intervals."
    if look.row.settings.get("batch_intercept"):
        remark = "To compare arms: the level of each batch is unknown."
    return intervals_chart(
        look.arms.names,
        _column(look, "estimate"),
        _column(look, "low"),
        high,
        np.array([arm.survives for arm in look.status.arms]),
        _winners(look, look.arms.names),
        candidate=np.array([arm.candidate for arm in look.status.arms]),
        first="winner" if look.status.risk is not None else "recommended",
        sign=look.sign,
        title="Estimated means",
        subtitle=[remark],
    )


def _pulls(look: Look) -> "AnyChart":
    from finalist.charts.studies import allocation_chart

    best, remarks = best_design(look), []
    if best is not None:
        remarks = ["Orange: shared as would be best if the estimates were the truth."]
    elif look.plain:
        remarks = ["The best design is not known yet."]
    return allocation_chart(
        look.arms.names, _counts(look), best, title="Pulls of each arm", subtitle=remarks
    )


def best_design(look: Look) -> np.ndarray | None:
    """Return the shares of the oracle's design if the estimates were true (Soare 2014, Sect. 3).

    It is for the best of all arms, measured alike; None for other questions.
    """
    arms, means = look.arms, _column(look, "estimate")
    if not look.plain or len(arms) * arms.rank**2 > MAX_WORK or not np.isfinite(means).all():
        return None
    theta = np.linalg.lstsq(arms.features, means, rcond=None)[0]
    try:
        # The oracle's design is the same for every sigma.
        found = complexity(arms, theta, sigma=1.0, objective=look.row.settings["objective"])
        return np.asarray(found.oracle_design.weights)
    except (FinalistError, np.linalg.LinAlgError):  # tied arms, or nothing to tell apart
        return None


def _forecast(found: Forecast | None) -> "AnyChart":
    from finalist.charts.studies import forecast_chart

    if found is None:
        raise ChartError("there is no forecast yet: too little is measured, or there is too much.")
    return forecast_chart(found.pulls, found.cap, subtitle=[found.words()])


def _start(look: Look) -> np.ndarray:
    """Return A_0 of the intervals (`intervals.start_of`) for features."""
    X = look.arms.features[look.arms.measurable]
    return np.asarray(X.T @ X * (STARTING * look.arms.rank / len(X)))


def _radius(look: Look) -> float | None:
    """Return the radius of the ellipse: half an interval over the size of its direction."""
    X = look.arms.features
    info = information(X, _counts(look).astype(float))
    arm = next((i for i, arm in enumerate(look.status.arms) if arm.high is not None), None)
    if arm is None or info.rank < look.arms.rank:
        return None
    one, image = look.status.arms[arm], info.inverse_root @ X[arm]
    assert one.high is not None
    assert one.low is not None
    back = info.inverse_root.T @ image
    size = float(np.sqrt(image @ image + back @ _start(look) @ back))
    return (one.high - one.low) / 2 / size if size > 0 else None


def _plane(look: Look) -> "AnyChart":
    from finalist.charts.studies import position_chart

    means = _column(look, "estimate")
    theta = np.linalg.lstsq(look.arms.features, means, rcond=None)[0]
    subtitle: Sequence[str] = [
        "Each coloured cone holds the parameters under which that arm is best.",
        "The cross is the estimate; the ellipse holds the truth with 95 %, at all times.",
    ]
    return position_chart(
        look.arms,
        theta,
        _counts(look),
        _radius(look),
        start=_start(look),
        sign=look.sign,
        subtitle=subtitle,
    )


_DRAW: dict[str, Callable[[Look], "AnyChart"]] = {
    "evidence": _evidence,
    "estimates": _estimates,
    "pulls": _pulls,
    "plane": _plane,
}
