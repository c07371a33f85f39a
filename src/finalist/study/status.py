"""The status of a study: what is certain, the evidence against each arm, what is still needed."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from finalist.planning import Forecast

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


@dataclass(frozen=True)
class Status:
    """A study at one moment.

    Attributes
    ----------
    name : str
    verdict : "continue", "winner", "uncertain" or "undecided"
        "uncertain" when it has ended with a winner and there are doubts: an assumption fails, or
        this version decides otherwise. "undecided" when it has ended without a
        winner: stopped, no budget, no arm left to pull, no reward of the arms that are left.
    certain : bool
        Whether what is decided is wrong with probability at most `risk`. If not, a winner is the
        best estimate and no more.
    winner : str or None
    winners : tuple of str
        All of them, the best by the estimate first, where several of the best are asked for.
    top : int
        How many of the best are asked for.
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
        more than epsilon, as a flat prior has it (`intervals.error_estimate`). An estimate. None
        where an assumption fails or the model may be wrong by a given amount.
    certainty : float or None
        For the same: the confidence with which no arm is better (`intervals.certainty`), 0 if
        the rewards give none; what a model that may be wrong can feign is taken off. None where
        there are no intervals, sigma is unknown, or an assumption fails.
    advice : str or None
        These three in words, and which arm all rewards together speak for, if they speak against
        a recommendation without a guarantee.
    sentence : str
        What is certain, in one sentence.
    pulls, open_pulls, batches : int
        Rewards so far, pulls without a reward in the open batch, complete batches.
    budget_left : int or None
    assumptions, warnings : tuple of str
    doubts : tuple of str
        Why nothing is certain, whatever the strategy promises: assumptions that fail, decisions
        that this version would not take. Intervals, p-values and the figures of a recommendation
        are left out then.
    forecast : Forecast or None
        Of the pulls still needed.
    arms : tuple of ArmStatus
    """

    name: str
    verdict: Literal["continue", "winner", "uncertain", "undecided"]
    certain: bool
    winner: str | None
    winners: tuple[str, ...]
    top: int
    leader: str | None
    survivors: tuple[str, ...]
    risk: float | None
    recommendation: str | None
    error_estimate: float | None
    certainty: float | None
    advice: str | None
    sentence: str
    pulls: int
    open_pulls: int
    batches: int
    budget_left: int | None
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    doubts: tuple[str, ...]
    forecast: Forecast | None
    arms: tuple[ArmStatus, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        plain = {k: v for k, v in vars(self).items() if k not in ("arms", "forecast")}
        lists = ("winners", "survivors", "assumptions", "warnings", "doubts")
        plain |= {k: list(plain[k]) for k in lists}
        plain["forecast"] = None if self.forecast is None else _forecast(self.forecast)
        plain["arms"] = [vars(arm) for arm in self.arms]
        return plain

    def to_frame(self) -> "pd.DataFrame":
        """Return the arms as a data frame."""
        import pandas as pd

        return pd.DataFrame([vars(arm) for arm in self.arms])

    def __str__(self) -> str:
        lines = [self.sentence, *([] if self.advice is None else [self.advice])]
        if self.forecast is not None:
            lines.append(self.forecast.words())
        return "\n".join([*lines, *(f"Warning: {words}" for words in self.warnings)])


def _forecast(forecast: Forecast) -> dict[str, Any]:
    values = {"median": forecast.median, "low": forecast.low, "high": forecast.high}
    return {k: v if math.isfinite(v) else None for k, v in values.items()} | {
        "cap": forecast.cap,
        "words": forecast.words(),
    }
