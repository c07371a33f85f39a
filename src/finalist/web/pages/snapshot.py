"""A snapshot of a study for the pages, read once per event."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.errors import StudyError
from finalist.problem import Feature, PerArm
from finalist.study import ArmStatus, Batch, Status, Study
from finalist.study.assess import assess
from finalist.study.change import require_between
from finalist.study.databases import StudyRow
from finalist.study.handles import events_of, row_of, state_of
from finalist.study.pulls import Fate
from finalist.study.replay import changing
from finalist.study.rules import batch_of
from finalist.study.state import State
from finalist.study.tables import own_features
from finalist.web.pool import Moment, Studies

#: One number for all arms, or one for each.
Values = float | list[float]
#: Largest batch that can be asked for on the page.
MAX_PULLS = 10_000
#: Snapshots kept, one per study.
MAX_SNAPSHOTS = 24
#: Newest events shown on the page of a study.
RECENT = 12
_BEYOND: frozenset[Feature] = frozenset(
    {"sigma per arm", "other candidates", "top-m", "cost", "batch intercept", "misspecification"}
)


@dataclass(frozen=True)
class SettledPull:
    """A pull of the open batch that has a reward or is lost."""

    pull_id: int
    arm: str
    fate: str
    reward: float | None


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A study after its last event.

    Attributes
    ----------
    number, last : int
        Of the study, and of its last event.
    generation : str
        Of the database; see `web.pool`.
    row : StudyRow
    status : Status
        Without a forecast.
    arms : Arms
    batch : Batch or None
        Pulls of the open batch that are still to be measured.
    told : tuple of SettledPull
        The other pulls of the open batch.
    batches : int
        Batches issued so far.
    stopped : str or None
        Why the study was stopped.
    stage : int
        How often the arms have changed.
    fixed : str or None
        Why the arms cannot change now.
    pulls, evidence : arrays
        As `Study.evidence` returns them.
    events : list of dict
        The newest ones, oldest first.
    spent : float or None
        Cost of the rewards so far, if costs were given.
    sigma, cost : float, list or None
        Of all arms, or of each measurable arm; sigma is None if unknown.
    plain : bool
        Whether the question is the best of all arms with one sigma, at one cost, without batch
        intercept and misspecification: some charts need that.
    """

    number: int
    last: int
    row: StudyRow
    status: Status
    arms: Arms
    batch: Batch | None
    told: tuple[SettledPull, ...]
    batches: int
    stopped: str | None
    stage: int
    fixed: str | None
    pulls: Int[np.ndarray, " B"]
    evidence: Float[np.ndarray, "B K"]
    events: list[dict[str, Any]]
    spent: float | None = None
    sigma: Values | None = None
    cost: Values = 1.0
    plain: bool = True
    generation: str = ""

    @property
    def moment(self) -> Moment:
        """The moment at which it was taken."""
        return self.generation, self.last

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.row.name

    @property
    def batch_size(self) -> int | None:
        """The batch size chosen when the study was created, if any."""
        size = self.row.settings["metadata"].get("batch_size")
        return size if isinstance(size, int) and 0 < size <= MAX_PULLS else None

    @property
    def columns(self) -> dict[str, str]:
        """Columns besides features that a table of further arms needs."""
        return {word: word for word in ("sigma", "cost") if isinstance(getattr(self, word), list)}

    @property
    def own_features(self) -> tuple[str, ...]:
        """Columns with features that a table of further arms needs."""
        return own_features(self.arms)

    @property
    def sign(self) -> int:
        """1 to maximise, -1 to minimise."""
        return 1 if self.row.settings["objective"] == "max" else -1


def snapshot_of(study: Study, number: int, generation: str = "") -> Snapshot:
    """Take a snapshot of a study."""
    state = state_of(study)
    pulls, evidence = study.evidence()
    return Snapshot(
        number=number,
        last=state.last,
        row=row_of(study),
        status=assess(study.name, state, forecast=False),
        arms=state.arms,
        batch=_open_batch(state),
        told=_told(state),
        batches=len(state.issued),
        stopped=state.stopped,
        stage=state.stage,
        fixed=_fixed(state),
        pulls=pulls,
        evidence=evidence,
        events=events_of(study, max(state.last - RECENT, 0)),
        spent=_spent(state),
        sigma=_of_measured(state, state.problem.noise.sigma),
        cost=_of_measured(state, state.problem.cost) or 1.0,
        plain=not state.problem.needs & _BEYOND,
        generation=generation,
    )


def _spent(state: State) -> float | None:
    if state.problem.cost == 1.0:
        return None
    return float(state.pooled.statistics.count @ state.problem.costs)


def _of_measured(state: State, value: PerArm | None) -> Values | None:
    if not isinstance(value, tuple):
        return cast(float | None, value)
    return [one for one, can in zip(value, state.arms.measurable, strict=True) if can]


def _open_batch(state: State) -> Batch | None:
    if state.open is None or state.end is not None:
        return None
    return batch_of(state, state.pulls.open(state.open.number))


def _fixed(state: State) -> str | None:
    """Return why the arms cannot change now, None if they can."""
    try:
        require_between(state)
        changing(state.run)
    except StudyError as error:
        return str(error)
    return None


def _told(state: State) -> tuple[SettledPull, ...]:
    if state.open is None:
        return ()
    names, fates = state.arms.names, [fate.name.lower() for fate in Fate]
    numbers = state.pulls.of(state.open.number)
    numbers = numbers[state.pulls.fate[numbers - 1] != Fate.OPEN]
    columns = (getattr(state.pulls, word)[numbers - 1] for word in ("arm", "fate", "reward"))
    return tuple(
        SettledPull(n, names[arm], fates[fate], reward if fate == Fate.TOLD else None)
        for n, arm, fate, reward in zip(
            numbers.tolist(), *(column.tolist() for column in columns), strict=True
        )
    )


class Snapshots:
    """A cache of snapshots."""

    def __init__(self, studies: Studies) -> None:
        self.studies = studies
        self._lock = threading.Lock()
        self._snapshots: OrderedDict[int, Snapshot] = OrderedDict()

    def of(self, number: int) -> Snapshot:
        """Return the current snapshot of a study."""
        self.studies.row(number)  # raises if there is none
        moment = self.studies.moment(number)
        with self._lock:
            known = self._snapshots.get(number)
            if known is not None and known.moment == moment:
                self._snapshots.move_to_end(number)
                return known
        with self.studies.reading(number) as study:
            snapshot = snapshot_of(study, number, moment[0])
        with self._lock:
            self._snapshots[number] = snapshot
            self._snapshots.move_to_end(number)
            while len(self._snapshots) > MAX_SNAPSHOTS:
                self._snapshots.popitem(last=False)
        return snapshot


def ranked(snapshot: Snapshot) -> list[ArmStatus]:
    """Return survivors, then eliminated arms, then those that cannot win, each best first."""

    def key(arm: ArmStatus) -> tuple[int, bool, float]:
        group = 0 if arm.survives else 1 if arm.candidate else 2
        return (group, arm.estimate is None, -snapshot.sign * (arm.estimate or 0.0))

    return sorted(snapshot.status.arms, key=key)


def span_of(snapshot: Snapshot) -> tuple[float, float]:
    """Return the ends of the axis for intervals in the table of arms."""
    ends = [
        end
        for arm in snapshot.status.arms
        for end in (arm.low, arm.high, arm.estimate)
        if end is not None
    ]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
