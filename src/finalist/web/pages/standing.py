"""Where each candidate of a study stands: how far behind, what put it out, where it is measured.

Everything that the verdict card, the panel "Why this winner" and the charts of rows show.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from finalist.errors import EstimateError
from finalist.shapes import Float
from finalist.study import Snapshot, Status
from finalist.text import counted
from finalist.web.pages import format as words

#: How many colours there are for candidates; the style sheet has them by number.
COLOURS = 8
#: Rows that are drawn at once; further ones are a click away, and not more than so many.
FIRST, MAX_DRAWN = 12, 40


@dataclass(frozen=True)
class Row:
    """A candidate, or something that is only measured.

    Attributes
    ----------
    name : str
    colour : int
        The same everywhere, by its place in the table.
    state : "winner", "ahead", "possible", "out" or "other"
        "ahead" is in front of a study that goes on; "other" can only be measured. With a winner
        within a margin, "out" is what is shown not to be within it of the winner.
    behind, low, high : float or None
        How far it is behind the candidate in front, with the interval that always holds.
    ruled : bool
        Whether it was ruled out as the best.
    rival, batch : str or None, int or None
        What last spoke against it, and the batch after which it was ruled out.
    measured, mean : int, float or None
        Results so far and their mean.
    estimate, error : float or None
        The mean by the model, with its ordinary standard error.
    bent : float or None
        The mean by a model that bends, where the check finds that the model does not fit.
    waiting : int
        Measurements in the open batch.
    """

    name: str
    colour: int
    state: str
    behind: float | None
    low: float | None
    high: float | None
    ruled: bool
    rival: str | None
    batch: int | None
    measured: int
    mean: float | None
    estimate: float | None
    error: float | None
    bent: float | None
    waiting: int


@dataclass(frozen=True)
class VerdictCard:
    """All candidates, the one in front first, and what is said of it.

    Attributes
    ----------
    rows : tuple of Row
        In the order of the table of candidates.
    front : Row or None
        The winner, what is recommended, or what has the best estimate.
    second : Row or None
        The runner-up: what is closest behind it by the estimate.
    certain : bool
        Whether the one in front is the winner and that is certain.
    bent : bool
        Whether differences are by the model that bends: it is by that one that it is in front.
    """

    rows: tuple[Row, ...]
    front: Row | None
    second: Row | None
    certain: bool
    bent: bool = False

    @property
    def differences(self) -> tuple[Row, ...]:
        """What the chart of differences shows: those not ruled out, or all if there is a winner.

        While a study goes on, a candidate that is out is not the best, and nothing says of whom it
        is behind: an interval of its distance to the one in front would seem to contradict that.
        """
        others = (row for row in self.rows if row is not self.front and row.behind is not None)
        return tuple(row for row in others if self.certain or row.state != "out")


def standing(snapshot: Snapshot, status: Status) -> VerdictCard:
    """Return where all candidates stand."""
    arms, names = snapshot.arms, snapshot.arms.names
    leads, chosen = snapshot.leads, snapshot.recommendation
    if snapshot.leading is not None:
        chosen, leads = snapshot.leading
    none = np.full(len(arms), np.nan)
    behind, low, high = (none,) * 3 if leads is None else (leads.estimate, leads.low, leads.high)
    bent, bends = snapshot.bent.means, False
    if bent is not None and chosen is not None and snapshot.doubts:
        far = snapshot.problem.sign * (bent[chosen] - bent)
        bends = bool((far[list(snapshot.verdict.survivors)] >= 0).all())
        behind, low, high = (far, none, none) if bends else (behind, low, high)
    errors, statistics = standard_errors(snapshot), snapshot.fit.statistics
    out_after = {i: one.batch for one in snapshot.decisions[::-1] for i in one.rejected}
    rivals = none if snapshot.evidence is None else snapshot.evidence.rival
    waiting = np.zeros(len(arms), dtype=int)
    if snapshot.batch is not None:
        found = {name: i for i, name in enumerate(names)}
        np.add.at(waiting, [found[pull.arm] for pull in snapshot.batch], 1)
    winners, alive = set(snapshot.winners), set(snapshot.verdict.survivors)
    ended = snapshot.end is not None
    near = set(status.within_reach or ()) if words.is_near(status) else None

    def row(i: int) -> Row:
        if not arms.candidate[i]:
            state = "other"
        elif i in winners or (ended and i == chosen):
            state = "winner"
        elif i == chosen:
            state = "ahead"
        elif near is not None:
            state = "possible" if names[i] in near else "out"
        else:
            state = "possible" if i in alive else "out"
        ruled = bool(arms.candidate[i]) and i not in alive and i not in winners
        return Row(
            name=names[i],
            colour=i % COLOURS,
            state=state,
            behind=_number(behind[i]),
            low=_number(low[i]),
            high=_number(high[i]),
            ruled=ruled,
            rival=names[int(rivals[i])] if ruled and rivals[i] >= 0 else None,
            batch=out_after.get(i) if ruled else None,
            measured=int(statistics.count[i]),
            mean=float(statistics.mean[i]) if statistics.count[i] else None,
            estimate=_number(snapshot.means[i]),
            error=_number(errors[i]),
            bent=None if bent is None else _number(bent[i]),
            waiting=int(waiting[i]),
        )

    place = {name: i for i, name in enumerate(names)}
    order = [place[arm.name] for arm in words.ordered(status, snapshot.problem.sign)]
    rows = tuple(map(row, order))
    front = None if chosen is None else rows[order.index(chosen)]
    certain = status.verdict == "winner" and status.certain and status.top == 1
    alone = VerdictCard(rows, front, None, certain, bends)
    second = min(alone.differences, key=lambda one: one.behind or 0.0, default=None)
    return replace(alone, second=second)


def standard_errors(snapshot: Snapshot) -> Float[np.ndarray, " K"]:
    """Return the ordinary standard errors of the estimated means; NaN where there are none.

    sigma sqrt(z'A^-1 z), with sigma as it was given or else from the residuals: right for one look
    that was fixed in advance, as in any table of means. Where batches are shifted, means of
    single candidates have no level and so no error.
    """
    fit, problem = snapshot.fit, snapshot.problem
    none = np.full(len(snapshot.arms), np.nan)
    if problem.batch_intercept or fit.statistics.pulls == 0:
        return none
    sigma = problem.scale
    if sigma is None:
        try:
            sigma = math.sqrt(fit.residual_variance)
        except EstimateError:
            return none
    widths = sigma * fit.widths(fit.arms.coordinates)
    return np.where(np.isfinite(widths) & np.isfinite(snapshot.means), widths, np.nan)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


# ---- words ---------------------------------------------------------------------------------


def lead(snapshot: Snapshot, found: VerdictCard) -> str | None:
    """Say how far the one in front is ahead of the runner-up, with the interval."""
    front, second = found.front, found.second
    if front is None or second is None or second.behind is None or snapshot.problem.top > 1:
        return None
    one, other = words.quoted(front.name), words.quoted(second.name)
    distance = snapshot.problem.with_unit(words.number(abs(second.behind), 3))
    if second.behind < 0:
        far = f"{other} has the better estimate, by {distance}"
    else:
        far = f"{one} leads {other}, the runner-up, by {distance}"
    if found.bent:
        return f"{far}. This is an estimate, by a model that bends; it has no interval."
    if second.low is None or second.high is None:
        return _by_bends(snapshot, front, far)
    low, high = words.number(second.low, 3), words.number(second.high, 3)
    return f"{far} (95 % interval: {low} to {high})."


def _by_bends(snapshot: Snapshot, front: Row, far: str) -> str:
    """Say a lead that has no interval; where the check says that means bend, say who leads then."""
    bent, can_win = snapshot.bent.means, snapshot.arms.candidate
    if bent is None:
        return f"{far}. This is an estimate; it has no interval."
    far = f"By the model of the study, which does not fit, {far}; this has no interval."
    best = int(np.argmax(np.where(can_win, snapshot.problem.sign * bent, -np.inf)))
    name = snapshot.arms.names[best]
    if name == front.name:
        return f"{far} By a model that bends it has the best mean, too."
    mean = words.number(float(bent[best]))
    return f"{far} By a model that bends, {words.quoted(name)} has the best mean: {mean}."


def rests_on(snapshot: Snapshot) -> str:
    """Say how many results the verdict rests on."""
    done = snapshot.fit.statistics.pulls
    batches = counted(snapshot.complete, "batch", "batches")
    measured = int((snapshot.fit.statistics.count > 0).sum())
    return f"{counted(done, 'result')} of {counted(measured, 'candidate')}, in {batches}"


def checked(snapshot: Snapshot) -> list[str]:
    """Return what was tested of the assumptions.

    Examples
    --------
    >>> from finalist.testing.studies import small_study
    >>> with small_study() as study:
    ...     checked(study.snapshot())
    []
    """
    problem, fit = snapshot.problem, snapshot.fit
    if fit.statistics.pulls == 0:
        return []
    found, freedom = [], fit.degrees_of_freedom >= 1
    if problem.scale is not None and freedom:
        found.append("whether results scatter as much as was given")
    try:
        if fit.lack_of_fit() is not None:
            found.append("whether the model fits the means of the candidates")
    except EstimateError:
        pass
    if not problem.batch_intercept and snapshot.complete > 1:
        found.append("whether batches are shifted against each other")
    if problem.check > 0 and snapshot.arms.rank < len(snapshot.arms):
        found.append("whether means bend where the model is straight")
    return found


def not_checked(snapshot: Snapshot) -> list[str]:
    """Return what was not tested, and is assumed."""
    problem, found = snapshot.problem, []
    if problem.check == 0 and snapshot.arms.rank < len(snapshot.arms):
        found.append("bends: the check was switched off")
    if problem.batch_intercept:
        found.append("shifts between batches: they are allowed for")
    return [*found, "whether a measurement depends on the one before it"]


def what_failed(snapshot: Snapshot) -> list[str]:
    """Return what the tests have found against the assumptions."""
    return [check.seen for check in snapshot.checks]


def span(values: Sequence[float | None]) -> tuple[float, float]:
    """Return the ends of an axis that has 0 and all values on it.

    Examples
    --------
    >>> span([1.0, None, 3.0]), span([])
    ((0.0, 3.0), (0.0, 1.0))
    """
    known = [0.0, *(value for value in values if value is not None)]
    low, high = min(known), max(known)
    return (low, high) if high > low else (low, low + 1.0)
