"""What people look at, kept until something happens: a study without news is not read again."""

import threading
from collections import OrderedDict
from typing import Any

from finalist.errors import FinalistError
from finalist.study import Batch, Status
from finalist.study.rules import batch_of, nothing
from finalist.study.status import status_of
from finalist.web.opened import Studies

#: Statuses that are kept.
_MOST_KEPT = 200
#: Forecasts that are simulated at a time.
_AT_A_TIME = 2


class Looking:
    """Looks at the studies of a server.

    Parameters
    ----------
    studies : Studies
    """

    def __init__(self, studies: Studies) -> None:
        self._studies = studies
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, bool], tuple[int, Status]] = OrderedDict()
        self._summaries: dict[int, tuple[int, dict[str, Any]]] = {}
        self._simulating = threading.Semaphore(_AT_A_TIME)

    def status(self, number: int, *, forecast: bool = False) -> tuple[int, Status]:
        """Return the number of the last event of a study, and its status after that event."""
        last = self._studies.last(number)
        kept = self._kept.get((number, forecast))
        if kept is not None and kept[0] == last:
            return kept
        if not forecast:
            found = self._status(number, forecast=False)
        else:
            with self._simulating:
                kept = self._kept.get((number, True))
                if kept is not None and kept[0] >= last:  # another page wanted the same
                    return kept
                found = self._status(number, forecast=True)
        with self._lock:
            self._kept[number, forecast] = found
            self._kept.move_to_end((number, forecast))
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    def _status(self, number: int, *, forecast: bool) -> tuple[int, Status]:
        with self._studies.reading(number) as study:
            state = study._log.now()
            return state.last, status_of(study.name, state, forecast=forecast)

    def open_batch(self, number: int) -> Batch:
        """Return the pulls that wait for rewards; unlike `ask`, this issues none."""
        with self._studies.reading(number) as study:
            state = study._log.now()
            if state.end is not None:
                return nothing(state.end)
            if state.open is None:
                return Batch((), "open")
            return batch_of(state, state.pulls.open(state.open.number))

    def summaries(self) -> list[dict[str, Any]]:
        """Return a line for each study, by name; one that cannot be read hides no other.

        Each has the keys number, name, created, strategy, last, arms, survivors, pulls,
        open_pulls, verdict, winner, sentence, error.
        """
        lasts = self._studies.lasts()
        rows = [row for row in self._studies.rows() if row.id in lasts]
        self._summaries = {n: kept for n, kept in self._summaries.items() if n in lasts}
        return [self._summary(row.id, lasts[row.id]) for row in rows]

    def summary(self, number: int) -> dict[str, Any]:
        """Return the line of one study."""
        return self._summary(number, self._studies.last(number))

    def _summary(self, number: int, last: int) -> dict[str, Any]:
        kept = self._summaries.get(number)
        if kept is not None and kept[0] == last:
            return dict(kept[1])
        row = self._studies.row(number)
        line: dict[str, Any] = {
            "number": number,
            "name": row.name,
            "created": row.created,
            "strategy": row.settings["strategy"]["name"],
            "last": last,
        }
        try:
            line["last"], found = self._status(number, forecast=False)
        except FinalistError as error:
            unknown = ("arms", "survivors", "pulls", "open_pulls", "verdict", "winner", "sentence")
            return line | dict.fromkeys(unknown) | {"error": str(error)}
        line |= {
            "arms": len(found.arms),
            "survivors": len(found.survivors),
            "pulls": found.pulls,
            "open_pulls": found.open_pulls,
            "verdict": found.verdict,
            "winner": found.winner,
            "sentence": found.sentence,
            "error": None,
        }
        self._summaries[number] = (line["last"], line)
        return dict(line)
