"""A study after one event: all that is known then, as numbers; `status` puts it in words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.compiled.threads import on_one_thread
from finalist.errors import StudyError
from finalist.inference.leads import Leads
from finalist.inference.least_squares import Estimate
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies import Strategy, Verdict
from finalist.strategies.abilities import Speaking
from finalist.study.batch import Batch, OpenPulls, SettledPull
from finalist.study.change import require_between
from finalist.study.check import Check
from finalist.study.checks import checks_of, doubts_of, promised, risk_of
from finalist.study.curves import Bent, bent_of
from finalist.study.effects import Effect, Leftover, effects_of, leftover_of
from finalist.study.estimates import (
    Leading,
    Standing,
    figures,
    late_of,
    leading_of,
    leads_of,
    recommended,
    standing_of,
    widths,
)
from finalist.study.forecasts import can_forecast, can_have_margin
from finalist.study.history import History
from finalist.study.outlook import Outlook, outlook_of
from finalist.study.pulls import Decision, Fate, Fork
from finalist.study.replay import changeable
from finalist.study.state import State
from finalist.study.storage.rows import StudyRow


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A study after one event; it does not change when the study goes on.

    Arms are numbers here, as in `problem.arms`; `finalist.study.Status` has names and sentences.

    Attributes
    ----------
    row : StudyRow
        What was stored when the study was created: id, name, created, version, settings.
    event : int
        The number of the event.
    strategy : Strategy
    problem : Problem
        With the arms as they are at that event.
    stage : int
        How often the arms have changed.
    levels : tuple of float
        The share of delta of each stage.
    verdict : Verdict
        What the strategy has found.
    end : str or None
        Why there is nothing left to ask: "decided", "stopped", "budget" or "exhausted".
    stopped : str or None
        The reason for which the study was stopped.
    told, open_pulls, void, missing, unneeded, lost : int
        Pulls with a reward; without one yet; given up and replaced; given up; still open when the
        study was decided; and given up in batches that are decided on.
    until_test : int
        Measurements until the next test, where that is beyond the open batch; otherwise 0.
    late : tuple of int, or None
        Pulls given up when rewards of their batch were known, and the first such batch.
    batches, complete : int
        Batches issued, and those of them that are decided on.
    budget_left : float or None
    history_pulls : int
        Measurements made before the study.
    history : History or None
        What those say of the noise and of the model.
    fork : Fork or None
        Where it comes from.
    fit : Estimate
        From all rewards of complete batches.
    means, widths : (K,) arrays
        Estimates of x'theta (NaN if unknown), which a model of the mean makes means of rewards,
        and half-widths of their intervals (infinite if none).
    leads : Leads or None
        How far the recommended arm is ahead of each other candidate, with intervals for all of
        them and all times, beside the confidence that a winner is the best.
    leading : Leading or None
        The same of the arm in front, while the study goes on.
    effects : tuple of Effect
        What each column does to the results.
    leftover : Leftover
        Each result beside what the model expects of it.
    bent : Bent
        What bends, when the check of the model has failed.
    standing : Standing or None
        How good the arm in front is, and with a margin which others are within reach.
    evidence : Evidence or None
        Against each arm, if the strategy has any.
    decisions : tuple of Decision
        Those since the arms last changed.
    checks : tuple of Check
        What tests of the assumptions have found.
    contradictions, doubts : tuple of str
        Decisions that this version would not take; and, with these, why nothing is certain.
    certain : bool
        Whether what is decided is wrong with probability at most `risk`.
    risk : float or None
    recommendation : int or None
    error_estimate, certainty : float or None
        As in `Status`.
    outlook : Outlook or None
        What the rest of a budget will probably bring.
    can_forecast : bool
        Whether `Study.status` can simulate the pulls still needed.
    can_compare : bool
        Whether it can simulate what a margin would change: the study has none and no winner.
    said : str or None
        What the strategy itself says is certain.
    open : OpenPulls or None
        The pulls of the open batch; `batch` and `settled` are what people see of them.
    fixed : str or None
        Why the arms cannot change now.
    events : tuple of dict
        The newest ones, oldest first, as `Study.events` returns them.

    Examples
    --------
    >>> from finalist.testing.studies import small_study
    >>> with small_study() as study:
    ...     before = study.snapshot()
    ...     study.tell({pull.pull_id: 0.5 for pull in study.ask(size=8)})
    ...     after = study.snapshot()
    8
    >>> before.event, before.told, before.can_forecast
    (1, 0, False)
    >>> after.event, after.told, after.can_forecast, after.means
    (4, 8, True, array([0.5, 0.5]))
    """

    row: StudyRow
    event: int
    strategy: Strategy
    problem: Problem
    stage: int
    levels: tuple[float, ...]
    verdict: Verdict
    end: str | None
    stopped: str | None
    told: int
    open_pulls: int
    void: int
    missing: int
    unneeded: int
    lost: int
    until_test: int
    late: tuple[int, int] | None
    batches: int
    complete: int
    budget_left: float | None
    history_pulls: int
    history: History | None
    fork: Fork | None
    fit: Estimate = field(repr=False)
    means: Float[np.ndarray, " K"] = field(repr=False)
    widths: Float[np.ndarray, " K"] = field(repr=False)
    leads: Leads | None = field(repr=False)
    leading: Leading | None = field(repr=False)
    effects: tuple[Effect, ...] = field(repr=False)
    leftover: Leftover = field(repr=False)
    bent: Bent = field(repr=False)
    standing: Standing | None = field(repr=False)
    evidence: Any = field(repr=False)
    decisions: tuple[Decision, ...] = field(repr=False)
    checks: tuple[Check, ...]
    contradictions: tuple[str, ...]
    doubts: tuple[str, ...]
    certain: bool
    risk: float | None
    recommendation: int | None
    error_estimate: float | None
    certainty: float | None
    outlook: Outlook | None
    can_forecast: bool
    can_compare: bool
    said: str | None
    open: OpenPulls | None = field(repr=False)
    fixed: str | None
    events: tuple[dict[str, Any], ...] = field(repr=False)

    @cached_property
    def batch(self) -> Batch | None:
        """The pulls of the open batch that are still to be measured; None if there is no batch."""
        if self.open is None or self.end is not None:
            return None
        return self.open.batch(self.problem)

    @cached_property
    def settled(self) -> tuple[SettledPull, ...]:
        """The other pulls of the open batch."""
        return () if self.open is None else self.open.settled(self.arms.names)

    @property
    def intervals(self) -> tuple[Float[np.ndarray, " K"], ...]:
        """Estimated mean rewards, and the lower and upper ends of their intervals; NaN if none."""
        expected = self.problem.mean.expected
        widths = np.where(np.isfinite(self.widths), self.widths, np.nan)
        ends = (self.means, self.means - widths, self.means + widths)
        return tuple(expected(end) for end in ends)

    @property
    def number(self) -> int:
        """The number of the study in its database."""
        return self.row.id

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.row.name

    @property
    def arms(self) -> Arms:
        """The arms."""
        return self.problem.arms

    @property
    def winners(self) -> tuple[int, ...]:
        """The arms that have won, or are recommended at the end; none if that cannot be told."""
        return () if self.recommendation is None else self.verdict.winners

    @property
    def spent(self) -> float | None:
        """The cost of the rewards in complete batches, if costs were given."""
        if self.problem.cost == 1.0:
            return None
        return float(self.fit.statistics.count @ self.problem.costs)

    @cached_property
    def trail(self) -> tuple[Int[np.ndarray, " B"], Float[np.ndarray, "B K"]]:
        """Pulls so far and the evidence against each arm after each batch; see `Study.evidence`."""
        found = [(one.pulls, one.evidence) for one in self.decisions if one.evidence is not None]
        evidence = np.array([shares for _, shares in found], dtype=float)
        pulls = np.array([pulls for pulls, _ in found], dtype=np.int64)
        return pulls, evidence.reshape(-1, len(self.arms))


@on_one_thread(lambda _, state, *__: state.arms.features.size)
def take(row: StudyRow, state: State, events: Sequence[dict[str, Any]] = ()) -> Snapshot:
    """Take a snapshot of a state, which may change afterwards."""
    problem, verdict, fit = state.problem, state.verdict, state.pooled.estimate()
    ended = state.end is not None
    certain, checks = promised(state), tuple(checks_of(state))
    wrong = any(one.kind == "bend" and one.fails for one in checks)
    bent = bent_of(state, fit, failed=any(one.kind == "bend" for one in checks))
    chosen = recommended(state, fit, bent.means if wrong else None) if ended else None
    open_end, able = ended and not (certain and verdict.decided), can_forecast(state, fit)
    error, sure = figures(state, fit, chosen) if open_end and chosen is not None else (None, None)
    open_pulls, told, void, missing, unneeded = np.bincount(
        state.pulls.fate, minlength=len(Fate)
    ).tolist()
    return Snapshot(
        row=row,
        event=state.last,
        strategy=state.settings.strategy,
        problem=problem,
        stage=state.stage,
        levels=tuple(state.levels),
        verdict=verdict,
        end=state.end,
        stopped=state.stopped,
        told=told,
        open_pulls=open_pulls,
        void=void,
        missing=missing,
        unneeded=unneeded,
        until_test=state.until_test,
        lost=int(state.lost.sum()),
        late=late_of(state),
        batches=len(state.issued),
        complete=len(state.decisions),
        budget_left=state.left,
        history_pulls=state.history_pulls,
        history=state.history,
        fork=state.fork,
        fit=fit,
        means=fit.means(),
        widths=widths(state, fit),
        leads=leads_of(state, fit, chosen),
        leading=leading_of(state, fit),
        effects=effects_of(state, fit),
        leftover=leftover_of(state, fit.means()),
        bent=bent,
        standing=standing_of(state, fit, chosen),
        evidence=state.replay.evidence(),
        decisions=tuple(
            one for one in state.decisions if state.issued[one.batch - 1].stage == state.stage
        ),
        checks=checks,
        contradictions=tuple(state.doubts),
        doubts=tuple(doubts_of(state)),
        certain=certain,
        risk=risk_of(state),
        recommendation=chosen,
        error_estimate=error,
        certainty=sure,
        outlook=outlook_of(state, fit),
        can_forecast=not ended and able,
        can_compare=able and not verdict.decided and can_have_margin(state),
        said=_said(state),
        open=_open_pulls(state),
        fixed=_fixed(state),
        events=tuple(events),
    )


# ---- what can be done --------------------------------------------------------------------


def _fixed(state: State) -> str | None:
    """Return why the arms cannot change now, None if they can."""
    try:
        require_between(state)
        changeable(state.run)
    except StudyError as error:
        return str(error)
    return None


# ---- pulls and words --------------------------------------------------------------------


def _open_pulls(state: State) -> OpenPulls | None:
    if state.open is None:
        return None
    pulls, numbers = state.pulls, state.pulls.of(state.open.number)
    columns = (getattr(pulls, word)[numbers - 1] for word in ("arm", "worker", "fate", "reward"))
    about = (state.open.number, state.purpose(), tuple(state.workers))
    return OpenPulls(*about, numbers.copy(), *columns, saved=pulls.last_saved(about[0]))


def _said(state: State) -> str | None:
    """Return what the strategy says is certain; it knows of no stop and of no other arms."""
    run, asked = state.run, (state.verdict.decided or state.end is None) and state.stage == 0
    return run.words() if asked and state.replay.follows and isinstance(run, Speaking) else None
