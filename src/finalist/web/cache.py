"""What was made of a server's studies, kept until their next event.

One cache holds snapshots, statuses with forecasts, charts and the lines of the list. It is an
ordered dict of our own: entries are found by study and moment, a forecast also by those who asked
a moment earlier, and list lines are never evicted. cachetools would replace the eviction alone,
five lines, and is one more dependency.
"""

import contextlib
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from finalist.errors import FinalistError
from finalist.study import Batch, Snapshot, Status
from finalist.study.rules import nothing
from finalist.study.status import status
from finalist.web.limits import KeyedWorkLimit
from finalist.web.pool import Moment, Studies
from finalist.web.workers import jobs
from finalist.web.workers.pool import FORECAST, Workers

#: Bytes kept, about.
MAX_SIZE = 64 * 2**20
#: Requests that wait for the forecast of one study, and the seconds they wait.
_WAITING, _WAIT = 20, 60.0
_MANY = "too many forecasts are being simulated right now. Try again in a moment."
#: Keys of a list line that are known only after the log was read.
_READ = (
    *("arms", "candidates", "survivors", "pulls", "open_pulls", "verdict", "certain", "winner"),
    *("winners", "risk", "sentence", "error"),
)


class Cache:
    """Values by study and what they are, each valid at one moment; any thread may use it.

    Examples
    --------
    >>> cache = Cache()
    >>> cache.keep(1, "line", ("a", 5), "three arms are left")
    >>> cache.get(1, "line", ("a", 5)), cache.get(1, "line", ("a", 6))
    ('three arms are left', None)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, str], tuple[Moment, Any, int]] = OrderedDict()
        self._size = 0

    def get(self, study: int, what: str, moment: Moment, *, or_later: bool = False) -> Any:
        """Return what is kept for a moment, or for a later one; None if nothing is."""
        with self._lock:
            kept, value, _ = self._kept.get((study, what), (None, None, 0))
            later = or_later and kept is not None and kept[0] == moment[0] and kept[1] > moment[1]
            if kept != moment and not later:
                return None
            self._kept.move_to_end((study, what))
            return value

    def keep(self, study: int, what: str, moment: Moment, value: Any, size: int = 0) -> None:
        """Keep a value instead of that of another moment; without a size it is not evicted."""
        with self._lock:
            self._size += size - self._kept.pop((study, what), (None, None, 0))[2]
            self._kept[study, what] = moment, value, size
            for key in list(self._kept)[:-1] if self._size > MAX_SIZE else ():
                if self._size > MAX_SIZE and self._kept[key][2]:
                    self._size -= self._kept.pop(key)[2]

    def forget(self, study: int) -> None:
        """Drop everything of a study that was deleted."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == study]:
                self._size -= self._kept.pop(key)[2]


class Snapshots:
    """Snapshots, statuses and list lines of a server's studies; `workers` simulate forecasts."""

    def __init__(self, studies: Studies, workers: Workers) -> None:
        self._studies, self._workers = studies, workers
        self.cache = Cache()
        self._lock = threading.Lock()
        self._listed: set[int] = set()
        self._reader: threading.Thread | None = None
        self._forecasting = KeyedWorkLimit(_MANY, _WAITING, _WAIT)

    def of(self, number: int) -> Snapshot:
        """Return a study after its last event."""
        return self.at(number)[1]

    def at(self, number: int) -> tuple[Moment, Snapshot]:
        """Return a study after its last event, and that moment."""
        self._studies.row(number)  # raises if there is none
        moment = self._studies.moment(number)
        found: Snapshot | None = self.cache.get(number, "snapshot", moment)
        if found is None:
            with self._studies.reading(number) as study:
                found = study.snapshot()
            moment = moment[0], found.event
            size = 8 * len(found.arms) * (20 + 2 * len(found.arms.feature_names) + found.complete)
            self.cache.keep(number, "snapshot", moment, found, size)
        return moment, found

    def status(
        self, number: int, *, forecast: bool = False, within: float | None = None
    ) -> tuple[int, Status]:
        """Return the number of the last event of a study, and its status after that event."""
        moment, snapshot = self.at(number)
        own = status(snapshot, within=within)
        if not (forecast and (snapshot.can_forecast or snapshot.can_compare)):
            return snapshot.event, own
        found = self.cache.get(number, "forecast", moment)
        if found is None:
            with self._forecasting.take(number, FORECAST.remedy):
                # Another page may have wanted the same.
                found = self.cache.get(number, "forecast", moment, or_later=True)
                if found is None:
                    place = self._studies.place_of(number)
                    found = self._workers.run(FORECAST, jobs.status, place)
                    size = 400 * len(snapshot.arms)
                    self.cache.keep(number, "forecast", (moment[0], found[0]), found, size)
        event, with_forecast = found
        if within is not None and event == snapshot.event:
            with_forecast = replace(with_forecast, outlook=own.outlook)
        return event, with_forecast

    def expected(self, number: int) -> str | None:
        """Return the forecast in words if it was simulated at this moment; None if not."""
        moment, _ = self.at(number)
        found = self.cache.get(number, "forecast", moment)
        soon = None if found is None else found[1].forecast
        return None if soon is None else str(soon.words())

    def open_batch(self, number: int) -> Batch:
        """Return the pulls without rewards; unlike `ask`, this issues none."""
        snapshot = self.of(number)
        if snapshot.end is not None:
            return nothing(snapshot.end)
        return snapshot.batch or Batch((), "open")

    # ---- the list --------------------------------------------------------------------------

    def lines(self, patience: float | None = None) -> list[dict[str, Any]]:
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
        for gone in self._listed - lasts.keys():
            self.cache.forget(gone)
        self._listed = set(lasts)
        return [self._line(row.id, (generation, lasts[row.id]), read=read) for row in rows]

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

    def line(self, number: int) -> dict[str, Any]:
        """Return the line of one study."""
        return self._line(number, self._studies.moment(number), read=True)

    def _line(self, number: int, moment: Moment, *, read: bool) -> dict[str, Any]:
        kept: dict[str, Any] | None = self.cache.get(number, "line", moment)
        if kept is not None and not (read and kept["error"]):
            return dict(kept)
        row = self._studies.row(number)
        line: dict[str, Any] = {
            "number": number,
            "name": row.name,
            "created": row.created,
            "strategy": row.settings["strategy"]["name"],
            "last": moment[1],
            **dict.fromkeys(_READ),
        }
        if not read:
            return line
        try:
            with self._studies.reading(number) as study:
                snapshot = study.snapshot(events=0)
            found = status(snapshot)
            line |= {word: getattr(found, word, None) for word in _READ} | {
                "last": snapshot.event,
                "arms": len(found.arms),
                "candidates": len(snapshot.problem.candidates),
                "survivors": len(found.survivors),
                "winners": list(found.winners),
            }
        except FinalistError as error:
            line["error"] = str(error)
        self.cache.keep(number, "line", (moment[0], line["last"]), line)
        return dict(line)


def is_unread(line: dict[str, Any]) -> bool:
    """Return whether the study of a list line has not been read yet."""
    return line["verdict"] is None and line["error"] is None
