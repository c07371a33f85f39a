"""What every gauntlet has in common: the pilot, all rewards to choose by, the sizes of batches."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.design import Rounded
from finalist.design.rounding import MAX_PULLS
from finalist.errors import ProblemError, RewardError
from finalist.inference.information import Information
from finalist.inference.intervals import pooled_widths, start_of
from finalist.inference.least_squares import Estimate, estimate, weights_of
from finalist.inference.pooling import ShiftedEstimate, batch_arms
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.problem.noise import Gaussian
from finalist.strategies.gauntlet.bets import Bets, expected_drifts
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.planner import Aim, pilot_weights, within
from finalist.strategies.gauntlet.scores import Pairs, scores_of
from finalist.strategies.protocol import Batch, Verdict, check_size, refuse_decided
from finalist.text import counted


class Choosing:
    """The part of a gauntlet that chooses: none of it touches a test.

    Parameters
    ----------
    problem : Problem
    growth : float
        A batch is this part of all pulls so far, unless a size is asked for.
    seed : int
    """

    def __init__(self, problem: Problem, growth: float, seed: int) -> None:
        K = len(problem.arms)
        self._problem, self._growth, self._seed = problem, growth, seed
        self._arms = batch_arms(problem)
        self._Z = self._arms.coordinates
        self._all = Past(problem)
        self._other_arms = False  # whether arms were added or withdrawn
        self._lost: Int[np.ndarray, " K"] = np.zeros(K, dtype=np.int64)  # made, without reward
        self._planned: tuple[Int[np.ndarray, " K"], Information] | None = None
        self._recorded = self._batches = 0
        self._last: Int[np.ndarray, " K"] = np.zeros(K, dtype=np.int64)

    @property
    def verdict(self) -> Verdict:
        """What is certain now."""
        raise NotImplementedError

    def _test(self, size: int) -> Batch:
        """Return a batch that is tested."""
        raise NotImplementedError

    def _say_piloting(self) -> str:
        pulls = counted(self.verdict.pulls, "pull of the pilot is", "pulls of the pilot are")
        return f"Nothing is tested yet: {pulls} made."

    @property
    def _gaussian(self) -> bool:
        return isinstance(self._problem.noise, Gaussian)

    @property
    def _unknown(self) -> bool:
        return self._problem.noise.sigma is None

    def interval(
        self, directions: Float[np.ndarray, "M r"], confidence: float = 0.95
    ) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Estimate y'theta for directions in the span, with half-widths.

        The intervals hold for all directions and at all times at once, with a confidence of
        their own that has nothing to do with delta (`bounds.pooled_radius`). When sigma is
        unknown it is taken from the residuals, at the upper end of what is likely at one time.
        """
        fit = self._all.pooled.estimate()
        # With other arms nothing was fixed in advance, and directions at large have no bound on
        # what a model leaves out that may be wrong.
        none = self._other_arms or self._problem.misspecification > 0.0
        start = None if none else start_of(self._problem)
        sigma = self._problem.scale
        return fit.gaps(directions), pooled_widths(fit, directions, start, confidence, sigma)

    def next(self, size: int | None = None) -> Batch:
        """Return the next batch, of exactly `size` pulls if that is given and arms have room."""
        check_size(size)
        refuse_decided(self.verdict)
        if not self._room().any():
            raise ProblemError(
                f"every arm has had its {self._problem.most_pulls} pulls and there is no winner; "
                "stop with the survivors."
            )
        wanted = self.own_size if size is None else size
        return self._pilot(wanted) if self._piloting else self._test(wanted)

    @property
    def least_size(self) -> int:
        """The smallest batch that can test every survivor; 1 while the pilot lasts."""
        return 1 if self._piloting else self._Z.shape[1] + (1 if self._unknown else 0)

    @property
    def _piloting(self) -> bool:
        """Whether too little is known to choose rivals; missing rewards make a pilot longer."""
        if self._all.pooled.pulls < self._problem.rules.pilot * self._arms.rank:
            return True
        past = self._past()
        return past.information.rank < past.dimension

    def _room(self) -> Int[np.ndarray, " K"]:
        """Return how often each arm can still be pulled."""
        most, measurable = self._problem.most_pulls, self._problem.arms.measurable
        if most is None:
            return np.where(measurable, MAX_PULLS, 0)
        left = np.maximum(most - self._all.pooled.statistics.count - self._lost, 0)
        return np.where(measurable, left, 0)

    @property
    def own_size(self) -> int:
        """The size of the next batch unless another is asked for."""
        r, done = self._arms.rank, self._all.pooled.pulls
        if self._piloting:
            return max(self._problem.rules.pilot * r - done, r)
        if self._batches == 0:
            return self._problem.rules.first * r
        return max(self._problem.rules.fewest * r, math.ceil(self._growth * done))

    def _pilot(self, size: int) -> Batch:
        """Return pulls of the G-optimal design; they are not tested."""
        done = self._all.pooled.pulls
        weights = pilot_weights(self._arms, self._problem, self._problem.rules.pilot)
        picks = Rounded(weights).extend(done + size)[done:]
        counts = within(np.bincount(picks, minlength=len(self._Z)), self._room())
        pilot = self._problem.rules.pilot * self._arms.rank
        words = f"Pilot: the first {pilot} pulls say where to measure and are not tested."
        note: dict[str, Any] = {"kind": "pilot", "leader": -1, "rivals": [], "words": words}
        note["batch"] = self._recorded
        return Batch(counts, note)

    def _past(self) -> Estimate:
        """Return the estimate from what was measured so far."""
        return self._all.estimate()

    def _means(self, fit: Estimate) -> Float[np.ndarray, " K"]:
        """Return what is expected of the arms, large ones good."""
        linear, off = self._problem.sign * (self._Z @ fit.phi), self._off(fit)
        return np.asarray(linear if off is None else linear + off)

    def _off(self, fit: Estimate) -> Float[np.ndarray, " K"] | None:
        """Return how far the means seem to be from a linear model that may be wrong.

        An arm's own rewards against the model, as deviations of the size that is allowed for and
        the noise of these rewards would have it. Where batches are shifted, own rewards count
        beside those of other arms in the same batch.
        """
        problem = self._problem
        if problem.misspecification == 0.0 or not problem.rules.forgiving:
            return None
        if isinstance(fit, ShiftedEstimate):
            w, apart = fit.effects.weight, fit.effects.beside(self._Z @ fit.phi)
        else:
            w = weights_of(fit.statistics.count, problem.precisions)
            apart = np.where(w > 0.0, fit.statistics.mean - self._Z @ fit.phi, 0.0)
        believed = w / (w + (self._scale(fit) / problem.misspecification) ** 2)
        return np.asarray(problem.sign * believed * apart)

    def _aim_at(
        self,
        fit: Estimate,
        first: Int[np.ndarray, " n"],
        second: Int[np.ndarray, " n"],
        missing: Float[np.ndarray, " n"],
        leader: int,
        age: Float[np.ndarray, " K"],
    ) -> Aim:
        """Return what to plan a batch from, for pairs of arms to tell apart."""
        sigma, problem = self._scale(fit), self._problem
        root = fit.information.inverse_root
        rng = np.random.default_rng([self._seed, self._batches])
        draws = fit.phi + sigma * (rng.standard_normal((2, len(root))) @ root)
        return Aim(
            Z=self._Z,
            root=root,
            sigma=sigma,
            thetas=problem.sign * np.vstack([fit.phi, draws]),
            leader=leader,
            first=first,
            second=second,
            missing=missing,
            epsilon=problem.epsilon,
            last=self._last,
            age=age,
            room=self._room(),
            precisions=problem.precisions,
            costs=None if problem.cost == 1.0 else problem.costs,
            bias=problem.misspecification,
            off=self._off(fit),
        )

    def _scale(self, fit: Estimate) -> float:
        """Return sigma, or what earlier batches say of it: the test itself does not use it."""
        known = self._problem.scale
        if known is not None:
            return known
        if fit.degrees_of_freedom == 0:
            return 1.0
        return math.sqrt(fit.residual_variance) or 1.0

    def inform(self, history: Statistics) -> None:
        """Take rewards measured before the start: they steer designs and bets, never a test."""
        if self._recorded > 0:
            raise ProblemError(
                f"{counted(self._recorded, 'batch is', 'batches are')} recorded; earlier "
                "measurements are brought in before the first."
            )
        if len(history.count) != len(self._Z):
            raise ProblemError(f"the history is of {len(history.count)} arms, not {len(self._Z)}.")
        self._all.inform(history)

    def lose(self, counts: Int[np.ndarray, " K"]) -> None:
        """Count pulls that were made and gave no reward: they use up what can be pulled."""
        self._lost += counts

    def _check_due(self, batch: Batch, rewards: Statistics, *words: str) -> None:
        """Refuse batches that were not issued for this moment: each is tested once, in order.

        `words` are what the note has to have beside its number and kind.
        """
        number = batch.note.get("batch")
        if number is None or not {"kind", *words} <= batch.note.keys():
            raise ProblemError("this batch has no note; record batches as `next` returns them.")
        if number != self._recorded:
            raise ProblemError(
                f"this is batch {number} and batch {self._recorded} is due; each batch is recorded "
                "once, in the order of issue."
            )
        if self._unknown and np.isnan(rewards.m2[batch.counts > 0]).any():
            raise RewardError(
                "sigma is unknown and these rewards are sums without their scatter; give each "
                "reward, or add_batch(count, total, squares)."
            )

    def _fit(self, batch: Batch, rewards: Statistics) -> Estimate:
        """Return the estimate from a batch alone."""
        # A batch that was just planned has been factorised; a replay does it here.
        counts, info = self._planned or (None, None)
        known = info if counts is batch.counts else None
        return estimate(self._arms, rewards, known=known, precisions=self._problem.precisions)

    def _absorb(self, batch: Batch, rewards: Statistics) -> None:
        """Take over the rewards of a batch that has been tested, to choose by."""
        if batch.note["kind"] == "test":
            self._batches += 1
            self._last = batch.counts
        self._recorded += 1
        self._all.add(rewards, tested=batch.note["kind"] == "test")

    def _bets_against(self, claims: int, level: float) -> Bets:
        """Return bets against a number of claims, by the rules of the problem."""
        return Bets.against(claims, level, self._gaussian, self._problem.rules.untilted)

    def _bet(
        self,
        bets: Bets,
        at: Int[np.ndarray, " n"],
        pairs: Pairs,
        fit: Estimate,
        past: Estimate,
        epsilon: float,
    ) -> None:
        """Bet on what a batch says of pairs, with drifts that all earlier pulls suggest.

        The bets of the pairs are those with the numbers `at`.
        """
        scores = scores_of(self._problem, fit, pairs, epsilon)
        some, n = np.flatnonzero(scores.tested), len(bets.log_m)
        here = at[some]
        Y = self._Z[pairs.rivals[some]] - self._Z[pairs.arms[some]]
        gaps, variances, speed = np.zeros(n), np.ones(n), np.ones(n)
        difference, variance = Y @ past.phi, past.information.variances(Y)
        if self._problem.rules.forgiving and pairs.direct is not None:
            self._take_own_means(past, pairs, some, difference, variance)
        expected = self._problem.sign * difference + epsilon - scores.bias[some]
        gaps[here] = expected / self._scale(past)
        variances[here] = variance
        speed[here] = scores.speed[some]
        expert = expected_drifts(gaps * speed, np.sqrt(variances) * speed)
        z, tested = np.zeros(n), np.zeros(n, dtype=bool)
        z[here], tested[here] = scores.z[some], True
        bets.place(z, speed, tested, (gaps / variances, 1.0 / variances), expert)

    def _take_own_means(
        self,
        past: Estimate,
        pairs: Pairs,
        some: Int[np.ndarray, " n"],
        difference: Float[np.ndarray, " n"],
        variance: Float[np.ndarray, " n"],
    ) -> None:
        """Take what is expected of pairs that are compared directly from their own rewards."""
        assert pairs.direct is not None
        a, x = pairs.rivals[some], pairs.arms[some]
        if isinstance(past, ShiftedEstimate):
            apart, spread = past.effects.differences(a, x)
            linked = pairs.direct[some] & np.isfinite(spread)
            difference[linked], variance[linked] = apart[linked], spread[linked]
            return
        w, mean = weights_of(past.statistics.count, self._problem.precisions), past.statistics.mean
        own = pairs.direct[some] & (w[a] > 0.0) & (w[x] > 0.0)
        difference[own] = (mean[a] - mean[x])[own]
        variance[own] = 1.0 / w[a[own]] + 1.0 / w[x[own]]
