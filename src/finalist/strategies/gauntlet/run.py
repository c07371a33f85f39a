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
are made before the batch is seen. The first pulls, a pilot, are for choosing only.

What only chooses (`past`, `planner`, `targets`, `rivals`, `stakes`) is apart from what touches a
test (`scores`, `bets`, `kernels`), and is never given a batch's rewards before its test.
"""

import numpy as np
from jaxtyping import Float, Int

from finalist.errors import ProblemError, RewardError
from finalist.inference.information import Information
from finalist.inference.intervals import pooled_widths, start_of
from finalist.inference.least_squares import Estimate, estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.abilities import (
    Changeable,
    Evidence,
    Evident,
    Explaining,
    Following,
    Informed,
    Lossy,
    Sized,
    Speaking,
)
from finalist.strategies.gauntlet.best import BestArm
from finalist.strategies.gauntlet.claims import Claims, Wager
from finalist.strategies.gauntlet.contrasts import contrasts_of
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.planner import Planner
from finalist.strategies.gauntlet.scores import scores_of
from finalist.strategies.gauntlet.stakes import stakes_of
from finalist.strategies.gauntlet.top import TopArms
from finalist.strategies.protocol import (
    Batch,
    Run,
    Verdict,
    check_record,
    check_size,
    refuse_decided,
)
from finalist.text import counted


class GauntletRun(Run, Sized, Evident, Speaking, Explaining, Informed, Lossy):
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
        self._past, self._planner = Past(problem), Planner(growth, seed)
        self._claims: Claims = self._claims_of(problem)
        self._other_arms = False  # whether arms were added or withdrawn
        self._planned: tuple[Int[np.ndarray, " K"], Information] | None = None

    def _claims_of(self, problem: Problem) -> Claims:
        return TopArms(problem)

    # ---- the loop ------------------------------------------------------------------------

    def next(self, size: int | None = None) -> Batch:
        """Return the next batch, of exactly `size` pulls if that is given and arms have room."""
        check_size(size)
        refuse_decided(self.verdict)
        past = self._past
        if not past.room().any():
            raise ProblemError(
                f"every arm has had its {self._problem.max_pulls_per_arm} pulls and there is no "
                "winner; stop with the survivors."
            )
        wanted = self.own_size if size is None else size
        if past.piloting:
            return self._pilot(wanted)
        self._planned = counts, info = self._planner.plan(past, self._claims.wanted(past), wanted)
        note = {"kind": "test", **self._claims.attack(past, counts, info), "batch": past.recorded}
        return Batch(counts, note)

    def _pilot(self, size: int) -> Batch:
        note = {"kind": "pilot", "leader": -1, "rivals": [], "batch": self._past.recorded}
        return Batch(self._planner.pilot(self._past, size), note)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Turn a complete batch into evidence, from its rewards alone; then learn from it."""
        check_record(self.verdict, len(self._past.Z), batch, rewards)
        self._check_due(batch, rewards)
        if batch.note["kind"] == "test":
            fit = self._fit(batch, rewards)
            for wager in self._claims.wagers(batch.note):
                self._bet(wager, fit)
            self._claims.settle(batch.note, self._past, rewards.pulls)
        self._past.add(batch, rewards)  # the chooser's only door to rewards

    def _bet(self, wager: Wager, fit: Estimate) -> None:
        """Bet on a batch; `fit` is the estimate from it alone."""
        problem, past, epsilon = self._problem, self._past, wager.epsilon
        counts, info = fit.statistics.count, fit.information
        contrasts = contrasts_of(problem, past.Z, counts, info, wager.pairs)
        stakes = stakes_of(past, contrasts, epsilon)  # by counts and past, not by these rewards
        scores = scores_of(problem, fit, contrasts, epsilon)
        if scores is not None:
            wager.place(scores, contrasts.tested, stakes)

    def _check_due(self, batch: Batch, rewards: Statistics) -> None:
        """Refuse batches that were not issued for this moment: each is tested once, in order."""
        number, recorded = batch.note.get("batch"), self._past.recorded
        if number is None or "kind" not in batch.note:
            raise ProblemError("this batch has no note; record batches as `next` returns them.")
        if number != recorded:
            raise ProblemError(
                f"this is batch {number} and batch {recorded} is due; each batch is recorded "
                "once, in the order of issue."
            )
        unknown = self._problem.noise.sigma is None
        if unknown and np.isnan(rewards.m2[batch.counts > 0]).any():
            raise RewardError(
                "sigma is unknown and these rewards are sums without their scatter; give each "
                "reward, or add_batch(count, total, squares)."
            )
        self._claims.check(batch.note)

    def _fit(self, batch: Batch, rewards: Statistics) -> Estimate:
        """Return the estimate from a batch alone."""
        # A batch that was just planned has been factorised; a replay does it here.
        counts, info = self._planned or (None, None)
        known = info if counts is batch.counts else None
        precisions = self._problem.precisions
        return estimate(self._past.arms, rewards, known=known, precisions=precisions)

    # ---- what people look at -------------------------------------------------------------

    @property
    def verdict(self) -> Verdict:
        """What is certain after the batches recorded so far."""
        return self._claims.verdict(self._past.pulls)

    def evidence(self) -> Evidence:
        """Return the evidence against every arm, as people look at it."""
        return self._claims.evidence()

    def words(self) -> str:
        """Say in one sentence what is certain now."""
        if not self.verdict.decided and self._past.piloting:
            pulls = counted(self._past.pulls, "pull of the pilot is", "pulls of the pilot are")
            return f"Nothing is tested yet: {pulls} made."
        return self._claims.words(self._past, self.interval)

    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for that is not recorded yet."""
        if batch.note["kind"] == "pilot":
            pilot = self._problem.rules.pilot * self._past.arms.rank
            return f"Pilot: the first {pilot} pulls say where to measure and are not tested."
        return self._claims.purpose(batch, self._past)

    def interval(
        self, directions: Float[np.ndarray, "M r"], confidence: float = 0.95
    ) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Estimate y'theta for directions in the span, with half-widths.

        The intervals hold for all directions and at all times at once, with a confidence of
        their own that has nothing to do with delta (`bounds.pooled_radius`). When sigma is
        unknown it is taken from the residuals, at the upper end of what is likely at one time.
        """
        fit = self._past.pooled.estimate()
        # With other arms nothing was fixed in advance, and directions at large have no bound on
        # what a model leaves out that may be wrong.
        none = self._other_arms or self._problem.misspecification > 0.0
        start = None if none else start_of(self._problem)
        sigma = self._problem.scale
        return fit.gaps(directions), pooled_widths(fit, directions, start, confidence, sigma)

    @property
    def least_size(self) -> int:
        """The smallest batch that can test every survivor; 1 while the pilot lasts."""
        return 1 if self._past.piloting else self._past.least_size

    @property
    def own_size(self) -> int:
        """The size of the next batch unless another is asked for."""
        return self._planner.size(self._past)

    # ---- what a study may add ------------------------------------------------------------

    def inform(self, history: Statistics) -> None:
        """Take rewards measured before the start: they steer designs and bets, never a test."""
        self._past.inform(history)

    def lose(self, counts: Int[np.ndarray, " K"]) -> None:
        """Count pulls that were made and gave no reward: they use up what can be pulled."""
        self._past.lost += counts


class ChangeableRun(GauntletRun, Changeable, Following):
    """The gauntlet for one winner, whose arms may change and which can follow a log."""

    _claims: BestArm

    def _claims_of(self, problem: Problem) -> BestArm:
        return BestArm(problem)

    def changed(
        self, problem: Problem, kept: Int[np.ndarray, " n"], level: float, *, afresh: bool
    ) -> "ChangeableRun":
        """Go on with other arms, and with all rewards of those that are left, to choose by.

        Intervals end here: their proof needs a start that was fixed in advance, and arms may be
        chosen by rewards. `Changeable` has the parameters.
        """
        new = ChangeableRun(problem, self._planner.growth, self._planner.seed)
        new._claims = self._claims.changed(problem, kept, level, afresh=afresh)
        new._past = self._past.taken(kept, problem)
        new._other_arms = True
        return new

    def follow(self, decision: Verdict) -> None:
        """Take over a decision that was taken before and is not what the evidence says now.

        The evidence gives way: it is at the limit for an arm that is out, and below it for one
        that is not.
        """
        self._claims.follow(decision, self._past.pooled.pulls)
