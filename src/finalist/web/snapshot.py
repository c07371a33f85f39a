"""What the pages show of a study at one moment, read once for each event."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.errors import StudyError
from finalist.problem import Feature
from finalist.problem.noise import PerArm
from finalist.study import ArmStatus, Batch, Status, Study
from finalist.study.change import require_between
from finalist.study.pulls import Fate
from finalist.study.rules import batch_of
from finalist.study.state import State, changing
from finalist.study.status import status_of
from finalist.study.storage.database import StudyRow
from finalist.study.storage.rows import EventRow
from finalist.study.tables import own_features, read_arms
from finalist.web.pool import Moment, Studies

#: One number for all arms, or one for each.
Values = float | list[float]
#: Pulls that people ask for at a time.
MAX_PULLS = 10_000
#: Looks that are kept, one for each study.
MAX_LOOKS = 24
#: Events that the page of a study shows, the newest.
RECENT = 12
#: Arms that an event names.
MAX_NAMED = 5
_BEYOND: frozenset[Feature] = frozenset(
    {"sigma per arm", "other candidates", "top-m", "cost", "batch intercept", "misspecification"}
)


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
    generation : str
        Of the database; see `opened`.
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
    stage : int
        How often the arms have changed.
    fixed : str or None
        Why the arms cannot change now.
    pulls, evidence : arrays
        As `Study.evidence` returns them.
    events : list of dict
        The newest, oldest first.
    spent : float or None
        What the rewards so far have cost, if costs were given.
    sigma, cost : float, list or None
        Of all arms, or of each that can be measured; sigma is None if it is unknown.
    plain : bool
        Whether the best of all arms is asked for with one sigma, at one cost, without shifts and
        deviations: some charts are for that.
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
        """Until when this is so."""
        return self.generation, self.last

    @property
    def name(self) -> str:
        """Of the study."""
        return self.row.name

    @property
    def batch_size(self) -> int | None:
        """How many pulls people want at a time, if they said so when they began."""
        size = self.row.settings["metadata"].get("batch_size")
        return size if isinstance(size, int) and 0 < size <= MAX_PULLS else None

    @property
    def columns(self) -> dict[str, str]:
        """Columns that a table of further arms needs besides the features."""
        return {word: word for word in ("sigma", "cost") if isinstance(getattr(self, word), list)}

    @property
    def own_features(self) -> tuple[str, ...]:
        """Columns that a table of further arms needs as features."""
        return own_features(self.arms)

    @property
    def sign(self) -> int:
        """1 if large means are good, -1 if small ones are."""
        return 1 if self.row.settings["objective"] == "max" else -1


def look_at(study: Study, number: int, generation: str = "") -> Look:
    """Read a study."""
    state = study._log.now()
    pulls, evidence = study.evidence()
    return Look(
        number=number,
        last=state.last,
        row=study._log.row,
        status=status_of(study.name, state, forecast=False),
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


def events_of(study: Study, after: int, most: int | None = None) -> list[dict[str, Any]]:
    """Return events with a number above `after` as plain values, with the arms by their names.

    An event knows arms by their numbers, and those change with the arms. "named" are the arms that
    were ruled out or won, "gone" and "new" those that were withdrawn and added; the first few.
    """
    state, number = study._log.now(), study._log.row.id
    with study._log.database.read() as reader:
        events = [e for e in reader.events(number, after=after) if e.number <= state.last][:most]

        @cache
        def names(stage: int) -> tuple[str, ...]:
            same = stage == state.stage
            return state.arms.names if same else read_arms(reader, number, stage).names

        return [
            {**e.body, **_named(e, state, names), "number": e.number, "at": e.at, "kind": e.kind}
            for e in events
        ]


def _named(
    event: EventRow, state: State, names: Callable[[int], tuple[str, ...]]
) -> dict[str, list[str]]:
    body = event.body
    if event.kind == "decided" and "batch" in body:
        known = names(state.issued[body["batch"] - 1].stage)
        found = body["rejected"] if body["winner"] is None else [body["winner"]]
        return {"named": [known[i] for i in found[:MAX_NAMED]]}
    if event.kind == "changed":
        before, after, kept = names(body["stage"] - 1), names(body["stage"]), set(body["kept"])
        gone = [name for i, name in enumerate(before) if i not in kept]
        new = [name for name, i in zip(after, body["kept"], strict=True) if i < 0]
        return {"gone": gone, "new": new}
    return {}


def _open_batch(state: State) -> Batch | None:
    if state.open is None or state.end is not None:
        return None
    return batch_of(state, state.pulls.open(state.open.number))


def _fixed(state: State) -> str | None:
    """Return why the arms cannot change now, if they cannot."""
    try:
        require_between(state)
        changing(state.run)
    except StudyError as error:
        return str(error)
    return None


def _told(state: State) -> tuple[Told, ...]:
    if state.open is None:
        return ()
    names, fates = state.arms.names, [fate.name.lower() for fate in Fate]
    numbers = state.pulls.of(state.open.number)
    numbers = numbers[state.pulls.fate[numbers - 1] != Fate.OPEN]
    columns = (getattr(state.pulls, word)[numbers - 1] for word in ("arm", "fate", "reward"))
    return tuple(
        Told(n, names[arm], fates[fate], reward if fate == Fate.TOLD else None)
        for n, arm, fate, reward in zip(
            numbers.tolist(), *(column.tolist() for column in columns), strict=True
        )
    )


class Looks:
    """What was read of studies, until something happens in them."""

    def __init__(self, studies: Studies) -> None:
        self.studies = studies
        self._lock = threading.Lock()
        self._looks: OrderedDict[int, Look] = OrderedDict()

    def of(self, number: int) -> Look:
        """Return a study as it is now."""
        self.studies.row(number)  # says that there is none
        moment = self.studies.moment(number)
        with self._lock:
            known = self._looks.get(number)
            if known is not None and known.moment == moment:
                self._looks.move_to_end(number)
                return known
        with self.studies.reading(number) as study:
            look = look_at(study, number, moment[0])
        with self._lock:
            self._looks[number] = look
            self._looks.move_to_end(number)
            while len(self._looks) > MAX_LOOKS:
                self._looks.popitem(last=False)
        return look


def ranked(look: Look) -> list[ArmStatus]:
    """Return the arms: those that are left, those that are out, those that cannot win.

    Each by their estimates, the best first.
    """

    def key(arm: ArmStatus) -> tuple[int, bool, float]:
        group = 0 if arm.survives else 1 if arm.candidate else 2
        return (group, arm.estimate is None, -look.sign * (arm.estimate or 0.0))

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
