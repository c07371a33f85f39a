"""The charts of a study as SVG, drawn once per event and theme."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from finalist.complexity import complexity
from finalist.errors import ChartError, FinalistError
from finalist.inference.information import information
from finalist.inference.intervals import start_of
from finalist.planning import Forecast
from finalist.problem import as_problem
from finalist.study.assess import MAX_WORK as MAX_FORECAST
from finalist.text import counted
from finalist.web.pages import format as words
from finalist.web.pages.snapshot import Snapshot
from finalist.web.pool import Moment

if TYPE_CHECKING:
    from finalist.charts.theme import AnyChart, Theme

#: Characters of SVG kept in all.
MAX_CHARACTERS = 16 * 2**20
#: Arms and batches drawn in the chart of evidence.
MAX_LINES, MAX_BATCHES = 60, 120
#: The best design is computed up to so many arms times squared rank.
MAX_WORK = 200_000
#: The study, its moment, the chart, the theme.
_Key = tuple[int, Moment, str, str]
_INTERVALS = "Lines: 95 % intervals, for all arms and times together."


def available(snapshot: Snapshot) -> dict[str, str]:
    """Return the charts that can be drawn now, each with a description for screen readers."""
    found: dict[str, str] = {}
    status, arms = snapshot.status, snapshot.arms
    if _evident(snapshot).size and (np.diff(snapshot.pulls, prepend=0) > 0).any():
        found["evidence"] = (
            "Evidence against each arm over the pulls; an arm is out when its line reaches 1. "
            "The table of arms has the last values."
        )
    if any(arm.estimate is not None for arm in status.arms):
        found["estimates"] = "Estimated means; the table of arms has the numbers."
    if status.pulls:
        beside = " beside those of the best design" if snapshot.plain else ""
        found["pulls"] = f"Pulls of each arm{beside}."
    if _can_be_forecast(snapshot):
        found["forecast"] = "How many simulated futures are decided after how many further pulls."
    plane = snapshot.plain and arms.features.shape[1] == 2 and arms.rank == 2
    if plane and _radius(snapshot) is not None:
        found["plane"] = (
            "The plane of parameters: for each arm the cone in which it is best, the estimate, "
            "and the ellipse in which the parameter is with 95 %."
        )
    return found


def _can_be_forecast(snapshot: Snapshot) -> bool:
    """Return whether `Study.status` makes a forecast."""
    status, arms = snapshot.status, snapshot.arms
    known = snapshot.row.settings["noise"]["sigma"] is not None
    return (
        status.verdict == "continue"
        and len(arms) * arms.rank**2 <= MAX_FORECAST
        and all(arm.estimate is not None for arm in status.arms)
        and (known or sum(arm.pulls for arm in status.arms) > arms.rank)
    )


def draw(snapshot: Snapshot, chart: str, forecast: Callable[[], Forecast | None]) -> "AnyChart":
    """Draw a chart.

    Parameters
    ----------
    snapshot : Snapshot
    chart : str
        One of `available`.
    forecast : callable
        Makes the forecast, called only if that is drawn.
    """
    if chart not in available(snapshot):
        raise ChartError(
            f"there is no chart {words.name(chart)!r} of this study now; its page shows those that "
            "there are."
        )
    if chart == "forecast":
        return _forecast(forecast())
    return _DRAW[chart](snapshot)


class SvgCache:
    """A cache of SVG by study, event, chart and theme; the least recently used are evicted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, str] = OrderedDict()
        self._characters = 0
        self._drawing = threading.Lock()  # drawing takes a whole core

    def svg(
        self,
        snapshot: Snapshot,
        chart: str,
        theme: "Theme",
        forecast: Callable[[], Forecast | None],
    ) -> str:
        """Return a chart as SVG."""
        key = (snapshot.number, snapshot.moment, chart, theme)
        kept = self._get(key)
        if kept is not None:
            return kept
        picture = draw(snapshot, chart, forecast)
        from finalist.charts.theme import to_svg

        with self._drawing:
            kept = self._get(key)  # drawn for another page in the meantime
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
            self._characters += len(svg)
            while self._characters > MAX_CHARACTERS and len(self._kept) > 1:
                self._characters -= len(self._kept.popitem(last=False)[1])


# ---- the charts --------------------------------------------------------------------------


def _evident(snapshot: Snapshot) -> np.ndarray:
    """Return the arms with evidence: those that can win."""
    candidates = np.array([arm.candidate for arm in snapshot.status.arms])
    return np.flatnonzero(candidates) if snapshot.evidence.size else np.array([], dtype=int)


def _winners(snapshot: Snapshot, names: Sequence[str]) -> list[int]:
    won = set(snapshot.status.winners)
    return [i for i, name in enumerate(names) if name in won]


def _evidence(snapshot: Snapshot) -> "AnyChart":
    from finalist.charts.evidence import evidence_chart

    grown = np.diff(snapshot.pulls, prepend=0) > 0  # a batch that is missing entirely adds nothing
    tested = _evident(snapshot)
    pulls, evidence = snapshot.pulls[grown], snapshot.evidence[np.ix_(grown, tested)]
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
    names = [snapshot.arms.names[i] for i in tested[arms]]
    return evidence_chart(
        pulls[batches],
        np.asarray(chosen[batches], dtype=float),
        names,
        winner=_winners(snapshot, names),
        title="Evidence against each arm",
        subtitle=remarks,
    )


def _column(snapshot: Snapshot, word: str) -> np.ndarray:
    values = [getattr(arm, word) for arm in snapshot.status.arms]
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _counts(snapshot: Snapshot) -> np.ndarray:
    return np.array([arm.pulls for arm in snapshot.status.arms], dtype=np.int64)


def _estimates(snapshot: Snapshot) -> "AnyChart":
    from finalist.charts.studies import intervals_chart

    high = _column(snapshot, "high")
    remark = _INTERVALS if np.isfinite(high).any() else "There are no intervals."
    if snapshot.row.settings.get("batch_intercept"):
        remark = "To compare arms: the level of each batch is unknown."
    return intervals_chart(
        snapshot.arms.names,
        _column(snapshot, "estimate"),
        _column(snapshot, "low"),
        high,
        np.array([arm.survives for arm in snapshot.status.arms]),
        _winners(snapshot, snapshot.arms.names),
        candidate=np.array([arm.candidate for arm in snapshot.status.arms]),
        first="winner" if snapshot.status.risk is not None else "recommended",
        sign=snapshot.sign,
        title="Estimated means",
        subtitle=[remark],
    )


def _pulls(snapshot: Snapshot) -> "AnyChart":
    from finalist.charts.studies import allocation_chart

    best, remarks = best_design(snapshot), []
    if best is not None:
        remarks = ["Orange: shared as would be best if the estimates were the truth."]
    elif snapshot.plain:
        remarks = ["The best design is not known yet."]
    return allocation_chart(
        snapshot.arms.names, _counts(snapshot), best, title="Pulls of each arm", subtitle=remarks
    )


def best_design(snapshot: Snapshot) -> np.ndarray | None:
    """Return the weights of the oracle's design if the estimates were true (Soare 2014, Sect. 3).

    Only for plain questions (`Snapshot.plain`); None for others.
    """
    arms, means = snapshot.arms, _column(snapshot, "estimate")
    if not snapshot.plain or len(arms) * arms.rank**2 > MAX_WORK or not np.isfinite(means).all():
        return None
    theta = np.linalg.lstsq(arms.features, means, rcond=None)[0]
    try:
        # The oracle's design does not depend on sigma.
        found = complexity(arms, theta, sigma=1.0, objective=snapshot.row.settings["objective"])
        return np.asarray(found.oracle_design.weights)
    except (FinalistError, np.linalg.LinAlgError):  # tied arms, or nothing to distinguish
        return None


def _forecast(found: Forecast | None) -> "AnyChart":
    from finalist.charts.studies import forecast_chart

    if found is None:
        raise ChartError(
            "there is no forecast: too little is measured yet, or there are too many arms."
        )
    return forecast_chart(found.pulls, found.cap, subtitle=[found.words()])


def _start(snapshot: Snapshot) -> np.ndarray:
    """Return A_0 of the intervals for features X = Z B; `start_of` has it for coordinates Z."""
    arms = snapshot.arms
    B = np.linalg.lstsq(arms.coordinates, arms.features, rcond=None)[0]
    return np.asarray(B.T @ start_of(as_problem(arms, sigma=1.0)) @ B)  # the same for every sigma


def _radius(snapshot: Snapshot) -> float | None:
    """Return the radius of the ellipse: half an interval over the size of its direction."""
    X = snapshot.arms.features
    info = information(X, _counts(snapshot).astype(float))
    arm = next((i for i, arm in enumerate(snapshot.status.arms) if arm.high is not None), None)
    if arm is None or info.rank < snapshot.arms.rank:
        return None
    one, image = snapshot.status.arms[arm], info.inverse_root @ X[arm]
    assert one.high is not None
    assert one.low is not None
    back = info.inverse_root.T @ image
    size = float(np.sqrt(image @ image + back @ _start(snapshot) @ back))
    return (one.high - one.low) / 2 / size if size > 0 else None


def _plane(snapshot: Snapshot) -> "AnyChart":
    from finalist.charts.studies import position_chart

    means = _column(snapshot, "estimate")
    theta = np.linalg.lstsq(snapshot.arms.features, means, rcond=None)[0]
    subtitle: Sequence[str] = [
        "Each coloured cone holds the parameters under which that arm is best.",
        "The cross is the estimate; the ellipse holds the truth with 95 %, at all times.",
    ]
    return position_chart(
        snapshot.arms,
        theta,
        _counts(snapshot),
        _radius(snapshot),
        start=_start(snapshot),
        sign=snapshot.sign,
        subtitle=subtitle,
    )


_DRAW: dict[str, Callable[[Snapshot], "AnyChart"]] = {
    "evidence": _evidence,
    "estimates": _estimates,
    "pulls": _pulls,
    "plane": _plane,
}
