"""A cache of statuses and list lines: a study is read again only after new events.

This cache and those of snapshots and charts are ordered dicts: an entry per study must be compared
with its moment and charts are limited by their total size, so that cachetools would save about
fifteen lines in all, which does not pay for a dependency.
"""

import contextlib
import threading
from collections import OrderedDict
from typing import Any

from finalist.errors import FinalistError
from finalist.study import Batch, Status
from finalist.study.assess import MAX_WORK, assess
from finalist.study.handles import state_of
from finalist.study.rules import batch_of, nothing
from finalist.study.state import State
from finalist.web.limits import KeyedWorkLimit
from finalist.web.pool import Moment, Studies
from finalist.web.workers import jobs
from finalist.web.workers.pool import FORECAST, Workers

#: Statuses kept.
_MAX_KEPT = 200
#: Requests that wait for the forecast of one study, and the seconds they wait.
_WAITING, _WAIT = 20, 60.0
_MANY = "too many forecasts are being simulated right now. Try again in a moment."
#: Keys of a list line that are known only after the log was read.
_READ = (
    "arms",
    "candidates",
    "survivors",
    "pulls",
    "open_pulls",
    "verdict",
    "certain",
    "winner",
    "winners",
    "risk",
    "sentence",
    "error",
)


def is_unread(line: dict[str, Any]) -> bool:
    """Return whether the study of a list line has not been read yet."""
    return line["verdict"] is None and line["error"] is None


def _is_since(kept: Moment, asked: Moment) -> bool:
    return kept[0] == asked[0] and kept[1] >= asked[1]


def _may_be_forecast(state: State) -> bool:
    """Return whether `assess` may make a forecast; it can still decide against it."""
    return (
        state.end is None
        and state.pooled.pulls > 0
        and len(state.arms) * state.arms.rank**2 <= MAX_WORK
    )


class StatusCache:
    """Statuses and list lines of a server's studies; `workers` simulate forecasts."""

    def __init__(self, studies: Studies, workers: Workers) -> None:
        self._studies, self._workers = studies, workers
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, bool], tuple[Moment, Status]] = OrderedDict()
        self._summaries: dict[int, tuple[Moment, dict[str, Any]]] = {}
        self._reader: threading.Thread | None = None
        self._forecasting = KeyedWorkLimit(_MANY, _WAITING, _WAIT)

    def status(self, number: int, *, forecast: bool = False) -> tuple[int, Status]:
        """Return the number of the last event of a study, and its status after that event."""
        moment = self._studies.moment(number)
        kept = self._kept.get((number, forecast))
        if kept is not None and kept[0] == moment:
            return moment[1], kept[1]
        if not forecast:
            last, found = self._status(number)
        else:
            with self._forecasting.take(number, FORECAST.remedy):
                kept = self._kept.get((number, True))
                if kept is not None and _is_since(kept[0], moment):  # another page wanted the same
                    return kept[0][1], kept[1]
                last, found = self._with_forecast(number)
        with self._lock:
            self._kept[number, forecast] = (moment[0], last), found
            self._kept.move_to_end((number, forecast))
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return last, found

    def _status(self, number: int) -> tuple[int, Status]:
        with self._studies.reading(number) as study:
            state = state_of(study)
            return state.last, assess(study.name, state, forecast=False)

    def _with_forecast(self, number: int) -> tuple[int, Status]:
        """Let a worker simulate, if there is anything to simulate."""
        with self._studies.reading(number) as study:
            state = state_of(study)
            if not _may_be_forecast(state):
                return state.last, assess(study.name, state, forecast=False)
        place = self._studies.place_of(number)
        found: tuple[int, Status] = self._workers.run(FORECAST, jobs.status, place)
        return found

    def open_batch(self, number: int) -> Batch:
        """Return the pulls without rewards; unlike `ask`, this issues none."""
        with self._studies.reading(number) as study:
            state = state_of(study)
            if state.end is not None:
                return nothing(state.end)
            if state.open is None:
                return Batch((), "open")
            return batch_of(state, state.pulls.open(state.open.number))

    def summaries(self, patience: float | None = None) -> list[dict[str, Any]]:
        """Return a line for each study, by name; unreadable ones have an error.

        Each has the keys number, name, created, strategy, last, arms, candidates, survivors,
        pulls, open_pulls, verdict, certain, winner, winners, risk, sentence, error; if it is not
        certain, the winner is a recommendation. With `patience`, studies with new events are read
        in the background; those not read after so many seconds have None where reading is needed.
        """
        if patience is None:
            return self._lines(read=True)
        lines = self._lines(read=False)
        if any(is_unread(line) or line["error"] for line in lines):  # an error may be temporary
            self._read_on().join(patience)
            lines = self._lines(read=False)
        return lines

    def _lines(self, *, read: bool) -> list[dict[str, Any]]:
        lasts = self._studies.lasts()
        generation = self._studies.generation
        rows = [row for row in self._studies.rows() if row.id in lasts]
        for gone in set(self._summaries) - lasts.keys():
            self._summaries.pop(gone, None)
        return [self._summary(row.id, (generation, lasts[row.id]), read=read) for row in rows]

    def _read_on(self) -> threading.Thread:
        with self._lock:
            if self._reader is None or not self._reader.is_alive():
                self._reader = threading.Thread(target=self.read_all, daemon=True)
                self._reader.start()
            return self._reader

    def read_all(self) -> None:
        """Read all studies with new events."""
        with contextlib.suppress(FinalistError):  # reported by the next request
            self._lines(read=True)

    def summary(self, number: int) -> dict[str, Any]:
        """Return the line of one study."""
        return self._summary(number, self._studies.moment(number), read=True)

    def _summary(self, number: int, moment: Moment, *, read: bool) -> dict[str, Any]:
        kept = self._summaries.get(number)
        if kept is not None and kept[0] == moment and not (read and kept[1]["error"]):
            return dict(kept[1])
        row = self._studies.row(number)
        line: dict[str, Any] = {
            "number": number,
            "name": row.name,
            "created": row.created,
            "strategy": row.settings["strategy"]["name"],
            "last": moment[1],
        }
        unread = line | dict.fromkeys(_READ)
        if not read:
            return unread
        try:
            line["last"], found = self._status(number)
        except FinalistError as error:
            line = unread | {"error": str(error)}
            self._summaries[number] = (moment, line)
            return dict(line)
        line |= {
            "arms": len(found.arms),
            "candidates": sum(arm.candidate for arm in found.arms),
            "survivors": len(found.survivors),
            "pulls": found.pulls,
            "open_pulls": found.open_pulls,
            "verdict": found.verdict,
            "certain": found.certain,
            "winner": found.winner,
            "winners": list(found.winners),
            "risk": found.risk,
            "sentence": found.sentence,
            "error": None,
        }
        self._summaries[number] = ((moment[0], line["last"]), line)
        return dict(line)
