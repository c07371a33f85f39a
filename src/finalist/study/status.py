"""The status of a study: what is certain, the evidence against each arm, what is still needed."""

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from finalist.extras import need
from finalist.planning import Forecast
from finalist.problem.budget import in_cost
from finalist.problem.shown import Shown
from finalist.shapes import Float
from finalist.study import good_enough, sentences
from finalist.study.assumptions import assumptions
from finalist.study.effects import Effect
from finalist.study.forecasts import Ahead, MarginForecast, foreseen
from finalist.study.outlook import Chances, Outlook, chances
from finalist.study.snapshot import Snapshot
from finalist.text import counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ArmStatus:
    """One arm.

    Attributes
    ----------
    name : str
    pulls : int
    estimate, low, high : float or None
        The estimated mean with its interval; None where the rewards say nothing yet.
    evidence : float or None
        Against "this arm is best", from 0 to 1; rejected at 1. None if the strategy has none.
    p_value : float or None
        The same as an always-valid p-value. None where an assumption fails, and when the arms were
        changed: evidence may have begun anew.
    rival : str or None
        The arm that last spoke against it.
    survives : bool
        Whether it may still be the best.
    measurable, candidate : bool
        Whether it can be pulled, and whether it can win.
    behind, behind_low, behind_high : float or None
        At the end: how far it is behind the recommended arm, which has None, with an interval for
        all candidates and times, with 95 % beside the risk of the winner.
    bent : float or None
        The mean by a model that bends, where the check finds that the model does not fit.
    """

    name: str
    pulls: int
    estimate: float | None
    low: float | None
    high: float | None
    evidence: float | None
    p_value: float | None
    rival: str | None
    survives: bool
    measurable: bool = True
    candidate: bool = True
    behind: float | None = None
    behind_low: float | None = None
    behind_high: float | None = None
    bent: float | None = None


@dataclass(frozen=True)
class Status(Shown):
    """A study at one moment.

    Attributes
    ----------
    verdict : "continue", "winner", "uncertain" or "undecided"
        "uncertain" when it has ended with a winner and there are doubts: an assumption fails, or
        this version decides otherwise. "undecided" when it has ended without a winner: stopped, no
        budget, no arm left to pull, no reward of the arms that are left.
    certain : bool
        Whether what is decided is wrong with probability at most `risk`. If not, a winner is the
        best estimate and no more.
    winners : tuple of str
        All of them, the best by the estimate first, where several of the best are asked for.
    top : int
        How many of the best are asked for.
    epsilon : float
        The margin: a winner is within it of the best. 0 without one.
    leader : str or None
        The arm with the best estimate.
    survivors : tuple of str
        The best arm is among them with probability at least 1 - risk, if the strategy
        promises that.
    risk : float or None
        The probability with which this is wrong, at most: delta, unless the arms were changed.
        None without a guarantee: when an assumption fails (see `warnings`), for strategies that
        keep a budget and promise nothing else, and for those whose threshold has no proof.
    recommendation : str or None
        When the study has ended: the winner, or the best of the survivors by the estimate.
        None if the rewards do not tell the mean of any of them.
    error_estimate : float or None
        For a recommendation without a guarantee: the probability that another arm is better, by
        more than epsilon (`intervals.error_estimate`). An estimate. None where an assumption fails
        or the model may be wrong by a given amount.
    certainty : float or None
        For the same: the confidence with which no arm is better (`intervals.certainty`), 0 if
        the rewards give none; what a model that may be wrong can feign is taken off. None where
        there are no intervals, sigma is unknown, or an assumption fails.
    advice : str or None
        These three in words, and which arm all rewards together speak for, if they speak against
        a recommendation without a guarantee.
    within : float or None
        The arm in front (the winner, the recommendation or the leader) is at most so far behind the
        best, with probability at least 1 - delta at all times: an interval of its own.
    within_reach : tuple of str, or None
        With a margin: the other candidates that are not shown to be worse than that arm by more,
        with 95 % for all of them and times together. None without a margin or where nothing is
        known.
    good_enough : str or None
        These two in words, where they say something.
    outlook : Chances or None
        With a budget: the chances that the choice is right, now and at its end. Estimates.
    sentence : str
        What is certain, in one sentence.
    pulls, open_pulls, unneeded, batches : int
        Rewards so far, pulls without a reward in the open batch, pulls that the study was decided
        without, batches that are decided on.
    until_test : int
        Measurements until the next test, where that is beyond the open batch; otherwise 0.
    budget_left : float or None
    budget_in : "pulls" or "cost", or None
        What the budget is counted in, where there is one.
    assumptions, warnings : tuple of str
    doubts : tuple of str
        Why nothing is certain, whatever the strategy promises: assumptions that fail, decisions
        that this version would not take. Intervals, p-values and the figures of a recommendation
        are left out then.
    old_results : str or None
        What was measured before the study says of sigma and of the model; None without any.
    unit : str or None
        See `Shown`.
    arms : tuple of ArmStatus
    effects : tuple of Effect
    ahead : Ahead
        Simulates forecast and margins when somebody looks at them, for seconds.
    """

    name: str
    verdict: Literal["continue", "winner", "uncertain", "undecided"]
    certain: bool
    winner: str | None
    winners: tuple[str, ...]
    top: int
    epsilon: float
    leader: str | None
    survivors: tuple[str, ...]
    risk: float | None
    recommendation: str | None
    error_estimate: float | None
    certainty: float | None
    advice: str | None
    within: float | None
    within_reach: tuple[str, ...] | None
    good_enough: str | None
    outlook: Chances | None
    sentence: str
    pulls: int
    open_pulls: int
    unneeded: int
    batches: int
    until_test: int
    budget_left: float | None
    budget_in: Literal["pulls", "cost"] | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    doubts: tuple[str, ...]
    old_results: str | None
    arms: tuple[ArmStatus, ...] = field(repr=False)
    effects: tuple[Effect, ...] = field(repr=False)
    ahead: Ahead = field(repr=False, compare=False)

    @property
    def forecast(self) -> Forecast | None:
        """Of the pulls still needed; None where there is none."""
        return self.ahead.soon

    @property
    def margins(self) -> tuple[MarginForecast, ...]:
        """Of a study without a margin or a winner: what forks with margins would need.

        Empty where the study itself is more than half way.
        """
        return self.ahead.margins

    @property
    def saving(self) -> str | None:
        """The same in words, if a margin would save much."""
        return good_enough.saving(self.margins, self.forecast)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold; the forecast is simulated for it."""
        plain = {k: v for k, v in vars(self).items() if k not in ("arms", "ahead")}
        plain |= {"saving": self.saving}
        lists = ("winners", "survivors", "assumptions", "warnings", "doubts")
        plain |= {k: list(plain[k]) for k in lists}
        plain["within_reach"] = None if self.within_reach is None else list(self.within_reach)
        plain["outlook"] = None if self.outlook is None else vars(self.outlook)
        plain["margins"] = [vars(one) for one in self.margins]
        plain["forecast"] = None if self.forecast is None else _forecast(self.forecast)
        plain["arms"] = [vars(arm) for arm in self.arms]
        plain["effects"] = [vars(one) for one in self.effects]
        return plain

    def to_frame(self) -> "pd.DataFrame":
        """Return the arms as a data frame."""
        need("Data frames", "pandas")
        import pandas as pd

        return pd.DataFrame([vars(arm) for arm in self.arms])

    def effects_frame(self) -> "pd.DataFrame":
        """Return what each column does to the results as a data frame."""
        need("Data frames", "pandas")
        import pandas as pd

        rows = [vars(one) for one in self.effects]
        return pd.DataFrame(rows, columns=[one.name for one in fields(Effect)])

    def __str__(self) -> str:
        outlook = None if self.outlook is None else self.outlook.words
        lines = [self.sentence, *filter(None, [self.advice, outlook, self.good_enough])]
        if self.unneeded:
            lines.append(
                f"{counted(self.unneeded, 'measurement was', 'measurements were')} not needed."
            )
        if self.forecast is not None:
            lines.append(self.forecast.words())
        lines += filter(None, [self.saving])
        return "\n".join([*lines, *(f"Warning: {words}" for words in self.warnings)])


def _forecast(forecast: Forecast) -> dict[str, Any]:
    values = {"median": forecast.median, "low": forecast.low, "high": forecast.high}
    return {k: v if math.isfinite(v) else None for k, v in values.items()} | {
        "cap": forecast.cap,
        "words": forecast.words(),
        "remedy": forecast.remedy,
    }


def status(
    snapshot: Snapshot, ahead: Ahead | None = None, *, within: float | None = None
) -> Status:
    """Put a snapshot of a study in words; forecasts are those of `ahead`.

    `within` is the difference of which the outlook speaks; by default a round one.

    Examples
    --------
    >>> from finalist.testing.studies import small_study
    >>> with small_study() as study:
    ...     print(status(study.snapshot()))
    Nothing has been tested yet.
    """
    names, verdict, chosen = snapshot.arms.names, snapshot.verdict, snapshot.recommendation
    known = ~np.isnan(snapshot.means) & snapshot.arms.candidate
    good = np.where(known, snapshot.problem.sign * snapshot.means, -np.inf)
    front = snapshot.standing
    reach = None if front is None else front.reach
    outlook = snapshot.outlook
    return Status(
        name=snapshot.name,
        verdict=_verdict(snapshot),
        certain=snapshot.certain,
        winner=names[chosen] if chosen is not None and snapshot.winners else None,
        winners=tuple(names[i] for i in snapshot.winners),
        top=snapshot.problem.top,
        epsilon=snapshot.problem.epsilon,
        leader=names[int(good.argmax())] if np.isfinite(good).any() else None,
        survivors=tuple(names[i] for i in verdict.survivors),
        risk=snapshot.risk,
        recommendation=None if chosen is None else names[chosen],
        error_estimate=snapshot.error_estimate,
        certainty=snapshot.certainty,
        advice=sentences.advice(snapshot),
        within=None if front is None else front.within,
        within_reach=None if reach is None else tuple(names[i] for i in reach),
        good_enough=good_enough.standing(snapshot),
        outlook=None if outlook is None else _chances(snapshot, outlook, within),
        sentence=sentences.sentence(snapshot),
        pulls=snapshot.told,
        open_pulls=snapshot.open_pulls,
        unneeded=snapshot.unneeded,
        batches=snapshot.complete,
        until_test=snapshot.until_test,
        budget_left=snapshot.budget_left,
        budget_in=None if snapshot.budget_left is None else _budget_in(snapshot),
        assumptions=tuple(assumptions(snapshot)),
        warnings=tuple(sentences.warnings(snapshot)),
        doubts=snapshot.doubts,
        old_results=None if snapshot.history is None else str(snapshot.history),
        arms=_arms(snapshot),
        effects=snapshot.effects,
        ahead=foreseen(None) if ahead is None else ahead,
        **snapshot.problem.beside(),
    )


def _budget_in(snapshot: Snapshot) -> Literal["pulls", "cost"]:
    return "cost" if in_cost(snapshot.problem) else "pulls"


def _chances(snapshot: Snapshot, outlook: Outlook, within: float | None) -> Chances:
    ended, error = snapshot.end is not None, snapshot.error_estimate
    return chances(outlook, snapshot.arms.names, within, ended=ended, error=error)


def _verdict(snapshot: Snapshot) -> Literal["continue", "winner", "uncertain", "undecided"]:
    if not snapshot.winners:
        return "continue" if snapshot.end is None else "undecided"
    return "uncertain" if snapshot.doubts else "winner"


def _arms(snapshot: Snapshot) -> tuple[ArmStatus, ...]:
    arms, found, leads = snapshot.arms, snapshot.evidence, snapshot.leads
    names, candidate, none = arms.names, arms.candidate, np.full(len(arms), np.nan)
    valid = found is not None and snapshot.stage == 0 and not snapshot.doubts
    alive = np.zeros(len(arms), dtype=bool)
    alive[list(snapshot.verdict.survivors)] = True
    rivals = [-1] * len(arms) if found is None else found.rival.tolist()
    columns = (
        names,
        snapshot.fit.statistics.count.tolist(),
        *map(_numbers, snapshot.intervals),
        _numbers(none if found is None else np.where(candidate, found.share, np.nan)),
        _numbers(np.where(candidate, found.p_value, np.nan) if valid else none),
        [names[i] if i >= 0 else None for i in rivals],
        alive.tolist(),
        arms.measurable.tolist(),
        candidate.tolist(),
        *map(_numbers, (none,) * 3 if leads is None else (leads.estimate, leads.low, leads.high)),
        _numbers(none if snapshot.bent.means is None else snapshot.bent.means),
    )
    return tuple(map(ArmStatus, *columns))


def _numbers(values: Float[np.ndarray, " K"]) -> list[float | None]:
    """Return what is finite as numbers, None for the rest."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
