"""The gauntlet: every arm is compared, batch after batch, with its strongest rival so far.

Before a batch is issued, its allocation and for each surviving arm a rival are chosen from the
past. When it is complete, the batch alone estimates the difference of the two, and `bets` turns
its score into evidence against the arm. An arm is out when its evidence reaches 1/delta; the last
one standing is the winner. An error needs the true best arm to be rejected, and each arm has one
test: there is no union over arms, and no dimension in the threshold.

Theorem. Let x* be a best arm and the noise of each batch N(0, sigma^2) given the past. Then x* is
ever rejected with probability at most delta. So at the end of any batch the survivors contain x*
with probability at least 1 - delta, and a returned winner is wrong with probability at most delta.
With tied best arms this holds for each of them. (The proof is in `bets`: for x* the difference
to any rival is not positive.)

What makes it short is where it measures: the optimal design for the differences of the leader and
the survivors, weighted by their gaps and by the evidence that is still missing. Neither the
guarantee nor the evidence depends on that choice, nor on the choice of rivals, as long as both
are made before the batch is seen. What is tested together is a batch (`batches`, by rules 1 and 2)
or an epoch (`epochs`), which batches of any size make up.

What only chooses (`past`, `planner`, `targets`, `rivals`, `stakes`) is apart from what touches a
test (`scores`, `bets`, `kernels`), and is never given rewards before their test.
"""

from typing import cast

import numpy as np

from finalist.errors import ProblemError
from finalist.inference import mixtures
from finalist.inference.intervals import leader, pooled_widths, start_of
from finalist.inference.leads import Leads, leads
from finalist.inference.least_squares import Estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.problem.budget import prices_of
from finalist.shapes import Float, Int
from finalist.strategies.abilities import (
    Changeable,
    Evidence,
    Evident,
    Explaining,
    Following,
    Informed,
    Looking,
    Lossy,
    ModelFindings,
    Modelled,
    Rationing,
    Sized,
    Speaking,
)
from finalist.strategies.gauntlet.batches import Batches
from finalist.strategies.gauntlet.best import BestArm
from finalist.strategies.gauntlet.checked import CheckedEpochs
from finalist.strategies.gauntlet.claims import Claims
from finalist.strategies.gauntlet.course import Course
from finalist.strategies.gauntlet.endgame import shares_of_rest
from finalist.strategies.gauntlet.epochs import Epochs
from finalist.strategies.gauntlet.model_check import ModelCheck
from finalist.strategies.gauntlet.past import Past, has_portfolio
from finalist.strategies.gauntlet.planner import Planner
from finalist.strategies.gauntlet.portfolio import Portfolio
from finalist.strategies.gauntlet.top import TopArms, listed
from finalist.strategies.gauntlet.top_portfolio import TopPortfolio
from finalist.strategies.protocol import (
    Batch,
    Run,
    Verdict,
    check_next,
    check_record,
)
from finalist.text import counted


class GauntletRun(
    Run, Sized, Evident, Speaking, Explaining, Informed, Lossy, Looking, Modelled, Rationing
):
    """The gauntlet at work.

    Parameters
    ----------
    problem : Problem
    growth : float
        A batch is this part of all pulls so far, unless a size is asked for.
    seed : int
    """

    def __init__(self, problem: Problem, growth: float, seed: int) -> None:
        self._problem = problem
        self._go(Past(problem), Planner(growth, seed), self._claims_of(problem))
        self._other_arms = False  # whether arms were added or withdrawn

    def _go(
        self, past: Past, planner: Planner, claims: Claims, before: ModelCheck | None = None
    ) -> None:
        model = ModelCheck.of(self._problem, planner.seed, before)
        if model is not None:
            self._course: Course = CheckedEpochs(past, planner, claims, model)
        else:
            kind = Epochs if self._problem.rules.epochs else Batches
            self._course = kind(past, planner, claims)

    def _claims_of(self, problem: Problem) -> Claims:
        accounts = problem.rules.top_accounts and not listed(problem)
        return TopPortfolio(problem) if accounts else TopArms(problem)

    @property
    def _past(self) -> Past:
        return self._course.past

    @property
    def _planner(self) -> Planner:
        return self._course.planner

    @property
    def _claims(self) -> Claims:
        return self._course.claims

    # ---- the loop ------------------------------------------------------------------------

    def next(self, size: int | None = None) -> Batch:
        """Return the next batch, of exactly `size` pulls if that is given and arms have room."""
        check_next(self.verdict, size)
        if not self._past.room().any():
            raise ProblemError(
                f"every candidate has had its {self._problem.max_pulls_per_arm} "
                f"measurements and there is no "
                "winner; stop with the survivors."
            )
        return self._course.next(size)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Turn a complete batch into evidence, from its rewards alone; then learn from it."""
        check_record(self.verdict, len(self._past.Z), batch, rewards)
        self._course.check_due(batch, rewards)
        self._course.record(batch, rewards)

    def look(
        self, batch: Batch, rewards: Statistics, seen: Int[np.ndarray, " K"] | None = None
    ) -> bool:
        """Decide by what has arrived of a batch, if that is enough; return whether it is.

        `Looking` has the parameters.
        """
        course = self._course
        if not isinstance(course, Epochs) or not course.may_decide(batch, rewards, seen):
            return False
        check_record(self.verdict, len(course.past.Z), batch, rewards)
        course.check_due(batch, rewards)
        tried = course.copy()
        tried.record(batch, rewards, complete=False)
        if tried.used is None or not tried.verdict.decided:
            return False
        self._course = tried
        return True

    @property
    def until_end(self) -> int:
        """Pulls that must be made before arms may change: the rest of the open epoch."""
        return self._course.until_end if isinstance(self._course, Epochs) else 0

    def until_test(self, batch: Batch | None = None) -> int:
        """Return how many pulls after a batch, or from now, nothing is tested."""
        return self._course.until_test(batch) if isinstance(self._course, Epochs) else 0

    # ---- what people look at -------------------------------------------------------------

    @property
    def _model(self) -> ModelCheck | None:
        return self._course.model if isinstance(self._course, CheckedEpochs) else None

    def model(self) -> ModelFindings | None:
        """Return what is known of bends; None if nothing is checked."""
        return None if self._model is None else self._model.findings()

    @property
    def verdict(self) -> Verdict:
        """What is certain after the batches recorded so far."""
        return self._course.verdict

    @property
    def decided_at(self) -> int | None:
        """The number of results after which it was decided; None before that."""
        # With a check, all results of the batch were looked at.
        return None if self._model is not None else self._course.used

    def evidence(self) -> Evidence:
        """Return the evidence against every arm, as people look at it."""
        return self._claims.evidence()

    def words(self) -> str:
        """Say in one sentence what is certain now."""
        if not self.verdict.decided and self._past.piloting:
            return "Nothing has been tested yet."  # of an open batch some results may be in
        words, course = self._claims.words(self._past, self.interval), self._course
        return words if not isinstance(course, CheckedEpochs) else course.words(words)

    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for that is not recorded yet."""
        return self._course.purpose(batch)

    def interval(
        self, directions: Float[np.ndarray, "M r"], confidence: float = 0.95
    ) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Estimate y'theta for directions in the span, with half-widths.

        The intervals hold for all directions and at all times at once, with a confidence of
        their own that has nothing to do with delta (`bounds.pooled_radius`). When sigma is
        unknown it is taken from the residuals, at the upper end of what is likely at one time.
        """
        fit, sigma = self._past.pooled.estimate(), self._problem.scale
        return fit.gaps(directions), pooled_widths(fit, directions, self._start, confidence, sigma)

    def leads(self, confidence: float = 0.95) -> Leads:
        """Return how far the winner is ahead of each other candidate, with intervals.

        They hold for all candidates and at all times at once, with a confidence of their own
        beside that of the winner (`mixtures`). Before there is a winner they are wider, and those
        of the best estimate.
        """
        problem, verdict, fit = self._problem, self.verdict, self._past.pooled.estimate()
        arm = verdict.winner
        if arm is None:
            arm = leader(fit, problem.sign, verdict.survivors)
        won = verdict.decided and problem.epsilon == 0.0 and problem.top == 1
        bets = (
            None if problem.misspecification > 0.0 else mixtures.Batches(problem, self._past.sums)
        )
        words = fit, arm, self._start, confidence, problem.scale, bets
        return leads(*words, sign=problem.sign, won=won)

    @property
    def _start(self) -> Float[np.ndarray, "r r"] | None:
        """What intervals start from; None where they have no proof."""
        # With other arms nothing was fixed in advance, and directions at large have no bound on
        # what a model leaves out that may be wrong.
        none = self._other_arms or self._problem.misspecification > 0.0
        return None if none else start_of(self._problem)

    @property
    def least_size(self) -> int:
        """The smallest batch that is ever tested."""
        return self._course.least_size

    @property
    def own_size(self) -> int:
        """The size of the next batch unless another is asked for."""
        return self._course.own_size

    # ---- what a study may add ------------------------------------------------------------

    def inform(self, history: Statistics) -> None:
        """Take rewards measured before the start: they steer designs and bets, never a test."""
        self._past.inform(history)

    def lose(self, counts: Int[np.ndarray, " K"]) -> None:
        """Count pulls that were made and gave no reward: they use up what can be pulled."""
        self._past.lost += counts

    def rebudget(self, budget: int | None) -> None:
        """Go on with another budget (`Rationing`): whatever was chosen by the past stays valid."""
        self._problem = self._problem.with_(budget=budget)
        self._course.ask_anew(self._problem)

    def waits(self, batch: Batch | None) -> bool:
        """Return whether a reserve of the pilot is kept back for an epoch to be planned."""
        planned = self._past.begun or (batch is not None and "epoch" in batch.note)
        return self._past.reserve is not None and not planned

    def rest(self, fit: Estimate, left: float) -> Float[np.ndarray, " K"]:
        """Return how often arms would be pulled with what is left of a budget (`Rationing`)."""
        if not self._problem.rules.endgame:
            made = fit.statistics.count
            return np.asarray(left * made / max(made @ prices_of(self._problem), 1e-300))
        return shares_of_rest(self._past, fit, self.verdict.survivors, left)


class ChangeableRun(GauntletRun, Changeable, Following):
    """The gauntlet for one winner, whose arms may change and which can follow a log."""

    def _claims_of(self, problem: Problem) -> BestArm:
        return Portfolio(problem) if has_portfolio(problem) else BestArm(problem)

    def changed(
        self, problem: Problem, kept: Int[np.ndarray, " n"], level: float, *, afresh: bool
    ) -> "ChangeableRun":
        """Go on with other arms, and with all rewards of those that are left, to choose by.

        Intervals end here: their proof needs a start that was fixed in advance, and arms may be
        chosen by rewards. `Changeable` has the parameters.
        """
        course = self._course
        if self.until_end > 0:
            raise ProblemError(
                f"{counted(self.until_end, 'more measurement')} of what is tested together "
                f"must be made "
                "before candidates change; ask for them, and add or withdraw candidates then."
            )
        claims = cast(BestArm, course.claims).changed(problem, kept, level, afresh=afresh)
        new = ChangeableRun(problem, course.planner.growth, course.planner.seed)
        new._go(course.past.taken(kept, problem), course.planner, claims, self._model)
        new._other_arms = True
        return new

    def follow(self, decision: Verdict) -> None:
        """Take over a decision that was taken before and is not what the evidence says now.

        The evidence gives way: it is at the limit for an arm that is out, and below it for one
        that is not.
        """
        cast(BestArm, self._claims).follow(decision, self._past.pooled.pulls)
        if self._model is not None:
            self._model.follow(decision, self._claims.verdict(0))
