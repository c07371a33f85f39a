"""What the pages show of a study at one moment, read once for each event."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.study import ArmStatus, Batch, Status, Study
from finalist.study.database import StudyRow
from finalist.study.pulls import Fate
from finalist.study.rules import batch_of
from finalist.study.status import status_of
from finalist.web.opened import Studies

#: Looks that are kept, one for each study.
MOST_LOOKS = 24
#: Events that the page of a study shows, the newest.
RECENT = 12


@dataclass(frozen=True)
class Told:
    """A pull of the open batch that has a reward or is lost."""

    pull_id: int
    arm: str
    fate: str
    reward: float | None


@dataclass(frozen=True, eq=False)
class Look:
    """A study after its last event.

    Attributes
    ----------
    number, last : int
        Of the study, and of its last event.
    row : StudyRow
    status : Status
        Without a forecast.
    arms : Arms
    batch : Batch or None
        The pulls that are still to be measured of the open batch.
    told : tuple of Told
        The others of the open batch.
    batches : int
        Batches issued so far.
    stopped : str or None
        Why the study was stopped.
    pulls, evidence : arrays
        As `Study.evidence` returns them.
    events : list of dict
        The newest, oldest first.
    """

    number: int
    last: int
    row: StudyRow
    status: Status
    arms: Arms
    batch: Batch | None
    told: tuple[Told, ...]
    batches: int
    stopped: str | None
    pulls: Int[np.ndarray, " B"]
    evidence: Float[np.ndarray, "B K"]
    events: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """Of the study."""
        return self.row.name

    @property
    def batch_size(self) -> int | None:
        """How many pulls people want at a time, if they said so when they began."""
        size = self.row.settings["metadata"].get("batch_size")
        return size if isinstance(size, int) and size > 0 else None

    @property
    def sign(self) -> int:
        """1 if large means are good, -1 if small ones are."""
        return 1 if self.row.settings["objective"] == "max" else -1


def look_at(study: Study, number: int) -> Look:
    """Read a study."""
    state = study._log.now()
    pulls, evidence = study.evidence()
    return Look(
        number=number,
        last=state.last,
        row=study._log.row,
        status=status_of(study.name, state, forecast=False),
        arms=state.arms,
        batch=_open_batch(study),
        told=_told(study),
        batches=len(state.issued),
        stopped=state.stopped,
        pulls=pulls,
        evidence=evidence,
        events=events_of(study, max(state.last - RECENT, 0)),
    )


def events_of(study: Study, after: int, most: int | None = None) -> list[dict[str, Any]]:
    """Return events with a number above `after` as plain values."""
    with study._log.database.read() as reader:
        events = reader.events(study._log.row.id, after=after)
    return [{**e.body, "number": e.number, "at": e.at, "kind": e.kind} for e in events[:most]]


def _open_batch(study: Study) -> Batch | None:
    state = study._log.now()
    if state.open is None or state.end is not None:
        return None
    return batch_of(state, state.pulls.open(state.open.number))


def _told(study: Study) -> tuple[Told, ...]:
    state = study._log.now()
    if state.open is None:
        return ()
    pulls, names = state.pulls, state.arms.names
    numbers = pulls.of(state.open.number)
    return tuple(
        Told(
            int(n),
            names[int(pulls.arm[n - 1])],
            Fate(pulls.fate[n - 1]).name.lower(),
            float(pulls.reward[n - 1]) if pulls.fate[n - 1] == Fate.TOLD else None,
        )
        for n in numbers[pulls.fate[numbers - 1] != Fate.OPEN]
    )


class Looks:
    """What was read of studies, until something happens in them."""

    def __init__(self, studies: Studies) -> None:
        self.studies = studies
        self._lock = threading.Lock()
        self._looks: OrderedDict[int, Look] = OrderedDict()

    def of(self, number: int) -> Look:
        """Return a study as it is now."""
        row, last = self.studies.row(number), self.studies.last(number)
        with self._lock:
            known = self._looks.get(number)
            if known is not None and (known.last, known.row) == (last, row):
                self._looks.move_to_end(number)
                return known
        with self.studies.reading(number) as study:
            look = look_at(study, number)
        with self._lock:
            self._looks[number] = look
            self._looks.move_to_end(number)
            while len(self._looks) > MOST_LOOKS:
                self._looks.popitem(last=False)
        return look


def ranked(look: Look) -> list[ArmStatus]:
    """Return the arms: those that are left first, then by their estimates, the best first."""

    def key(arm: ArmStatus) -> tuple[bool, bool, float]:
        return (not arm.survives, arm.estimate is None, -look.sign * (arm.estimate or 0.0))

    return sorted(look.status.arms, key=key)


def span_of(look: Look) -> tuple[float, float]:
    """Return the ends of the axis on which the table draws intervals."""
    ends = [
        end
        for arm in look.status.arms
        for end in (arm.low, arm.high, arm.estimate)
        if end is not None
    ]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
