"""All rewards that the gauntlet chooses by, apart by where they come from.

Earlier measurements and the pilot are never tested. If they are wrong (another laboratory, a first
plate that was mixed up) the tests are as right as ever, but they are aimed at the wrong arms. So
what the rewards after them contradict is left out. That too is a choice from the past.
"""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from finalist.compiled.arrays import read_only
from finalist.design.rounding import MAX_PULLS
from finalist.errors import ProblemError
from finalist.inference.information import Information
from finalist.inference.least_squares import Estimate, weights_of
from finalist.inference.pooling import BatchSums, Pooled, ShiftedEstimate, batch_arms
from finalist.inference.statistics import Statistics
from finalist.inference.tails import is_rare, is_rare_ratio
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.gauntlet.reserve import Reserve, weighted_estimate
from finalist.strategies.protocol import Batch
from finalist.text import counted

#: Below this p-value rewards contradict others.
CONTRADICTION = 1e-3


class Past:
    """The complete batches of a run, as its chooser sees them; `add` is the only way in.

    Attributes
    ----------
    arms, Z : Arms, (K, r) array
        What rewards are told of, in coordinates of their span.
    pooled : Pooled
        All rewards of the run: the pilot and what was tested.
    history : Statistics or None
        What was measured before the run.
    lost : (K,) array of int
        Pulls that were made and gave no reward.
    pending : (K,) array of int or None
        Pulls whose rewards are not known yet, if there are any; `lost` has them too.
    gone : int
        Rewards of arms that were withdrawn.
    recorded, batches : int
        Batches so far, and how many of them (or how many epochs) were tested.
    last, last_info : (K,) array of int, Information or None
        The counts of the last one that was tested, and what it told, where that was computed.
    reserve : Reserve or None
        A pilot that is split: only what it reveals is known until the rest is tested.
    begun : bool
        Whether the first epoch has begun.
    sums : list of BatchSums
        Batches, or epochs, one by one: the counts of each were fixed before its rewards were seen.
    """

    def __init__(self, problem: Problem) -> None:
        K = len(problem.arms)
        self.problem, self.arms = problem, batch_arms(problem)
        self.Z = self.arms.coordinates
        self.pooled = Pooled(problem)
        self.history: Statistics | None = None
        self.lost: Int[np.ndarray, " K"] = np.zeros(K, dtype=np.int64)
        self.pending: Int[np.ndarray, " K"] | None = None
        self.gone = self.recorded = self.batches = 0
        self.last: Int[np.ndarray, " K"] = np.zeros(K, dtype=np.int64)
        self.last_info: Information | None = None
        self._tested, self._pilot, self._known = Pooled(problem), Pooled(problem), Pooled(problem)
        self.reserve = Reserve.empty(K) if splits_pilot(problem) else None
        self.begun = self.few = False
        self._room = np.where(self.arms.measurable, MAX_PULLS, 0)  # where nothing limits it
        self.sums: list[BatchSums] = []
        self._estimate: Estimate | None = None
        self._of_pilot: Estimate | None = None
        self._of_history: Estimate | None = None

    def inform(self, history: Statistics) -> None:
        """Take what was measured before the run."""
        if self.recorded > 0:
            raise ProblemError(
                f"{counted(self.recorded, 'batch is', 'batches are')} recorded; earlier "
                "measurements are brought in before the first."
            )
        if len(history.count) != len(self.Z):
            raise ProblemError(f"the history is of {len(history.count)} arms, not {len(self.Z)}.")
        self.history = history.copy()
        self._estimate = self._of_history = None

    def add(self, batch: Batch, rewards: Statistics) -> None:
        """Add a complete batch, after its test."""
        tested = batch.note["kind"] == "test"
        if tested:
            self.batches += 1
            self.last = batch.counts
        self.recorded += 1
        self.pooled.add(rewards)
        self.learn(rewards, tested=tested)

    def learn(self, rewards: Statistics, *, tested: bool) -> None:
        """Take rewards that are tested, or never will be but for a reserve, to choose by."""
        self.sums.append(BatchSums.of(rewards))
        self._known.add(rewards)
        (self._tested if tested else self._pilot).add(rewards)
        self._estimate = None
        if not tested:
            self._of_pilot = None
            if self.reserve is not None:
                self.reserve.add(rewards)

    def known_sums(self) -> list[BatchSums]:
        """Return what complete epochs and the pilot gave, batch by batch if those are shifted."""
        if self.problem.batch_intercept:
            return self.sums
        return [BatchSums.of(self._known.statistics)]

    def reveal(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """Reveal parts of the reserve, as the note of a batch says."""
        for step in steps:
            assert self.reserve is not None
            self.reserve.reveal(self.problem, step["pulls"], np.array(step["noise"]))
            self._estimate = None

    @property
    def kept(self) -> Reserve | None:
        """What is kept back for the first epoch; None if nothing is."""
        reserve = self.reserve
        return reserve if reserve is not None and reserve.kept > 0.0 else None

    def release(self) -> None:
        """End the reserve: it is tested, and all of it is known."""
        self.reserve, self._estimate = None, None

    def with_reserve(self, reserve: Reserve) -> "Past":
        """Return this past with another reserve."""
        new = copy(self)
        new.reserve, new._estimate = reserve, None
        return new

    def before_results(self, pulls: Int[np.ndarray, " n"]) -> "Past":
        """Return this past when some pulls are made whose results are not known yet."""
        if len(pulls) == 0:
            return self
        new = copy(self)
        new.pending = np.bincount(pulls, minlength=len(self.lost))
        new.lost = self.lost + new.pending
        return new

    def copy(self) -> "Past":
        """Return a past that changes independently of this one."""
        new = copy(self)
        new.pooled, new._known = self.pooled.copy(), self._known.copy()
        new._tested, new._pilot = self._tested.copy(), self._pilot.copy()
        new.lost, new.sums = self.lost.copy(), list(self.sums)
        new.reserve = None if self.reserve is None else self.reserve.copy()
        return new

    def taken(self, kept: Int[np.ndarray, " n"], problem: Problem) -> "Past":
        """Return what concerns other arms: old ones by number, -1 for new ones."""
        new, old = Past(problem), kept >= 0
        new.history = None if self.history is None else self.history.taken(kept)
        new.pooled = self.pooled.taken(kept, problem)
        new._tested = self._tested.taken(kept, problem)
        new._pilot = self._pilot.taken(kept, problem)
        new._known = self._known.taken(kept, problem)
        new.lost[old] = self.lost[kept[old]]
        new.gone = self.gone + self.pooled.pulls - new.pooled.pulls
        new.recorded, new.batches, new.few = self.recorded, self.batches, self.few
        new.reserve = None  # whoever changes arms has seen all results
        return new

    @property
    def pulls(self) -> int:
        """All rewards so far."""
        return self.pooled.pulls + self.gone

    @property
    def piloting(self) -> bool:
        """Whether too little is known to choose rivals; missing rewards make a pilot longer."""
        if self.problem.rules.epochs and self.begun:
            return False
        if self.pooled.pulls < self.problem.rules.pilot * self.arms.rank:
            return True
        past = self.estimate()
        return past.information.rank < past.dimension

    @property
    def least_size(self) -> int:
        """The smallest batch that can test every arm that is left."""
        return int(self.Z.shape[1]) + (1 if self.problem.noise.sigma is None else 0)

    def room(self) -> Int[np.ndarray, " K"]:
        """Return how often each arm can still be pulled."""
        most, measurable = self.problem.max_pulls_per_arm, self.problem.arms.measurable
        if most is None:
            return self._room
        left = np.maximum(most - self.pooled.statistics.count - self.lost, 0)
        return np.where(measurable, left, 0)

    def scale(self, fit: Estimate) -> float:
        """Return sigma, or what earlier batches say of it: the test itself does not use it."""
        known = self.problem.scale
        if known is not None:
            return known
        if fit.degrees_of_freedom == 0:
            return 1.0
        return math.sqrt(fit.residual_variance) or 1.0

    def means(self, fit: Estimate) -> Float[np.ndarray, " K"]:
        """Return what is expected of the arms, large ones good."""
        linear, off = self.problem.sign * (self.Z @ fit.phi), self.off(fit)
        return np.asarray(linear if off is None else linear + off)

    def off(self, fit: Estimate) -> Float[np.ndarray, " K"] | None:
        """Return how far the means seem to be from a linear model that may be wrong.

        An arm's own rewards against the model, as deviations of the size that is allowed for and
        the noise of these rewards would have it. Where batches are shifted, own rewards count
        beside those of other arms in the same batch.
        """
        problem = self.problem
        if problem.misspecification == 0.0 or not problem.rules.forgiving:
            return None
        if isinstance(fit, ShiftedEstimate):
            w, apart = fit.effects.weight, fit.effects.beside(self.Z @ fit.phi)
        else:
            w = weights_of(fit.statistics.count, problem.precisions)
            apart = np.where(w > 0.0, fit.statistics.mean - self.Z @ fit.phi, 0.0)
        believed = w / (w + (self.scale(fit) / problem.misspecification) ** 2)
        return np.asarray(problem.sign * believed * apart)

    def estimate(self) -> Estimate:
        """Return the estimate from all that is not contradicted by what came after it."""
        if self._estimate is None:
            self._estimate = self._estimated()
        return self._estimate

    def _estimated(self) -> Estimate:
        if not self.problem.rules.forgiving:
            return self.pooled.with_earlier(self.history).estimate()
        if self.reserve is not None:
            return self._revealed()
        own, sigma = self._known, self.problem.scale
        if self._of_pilot is None:
            self._of_pilot = self._pilot.quick_estimate()
        if self._tested.pulls > 0:
            tested = self._tested.quick_estimate(kept=False)
            own = self._tested if contradict(tested, self._of_pilot, sigma) else own
        if self.history is None:
            return own.quick_estimate()
        if self._of_history is None:
            self._of_history = Pooled(self.problem).with_earlier(self.history).quick_estimate()
        alone = own.quick_estimate()
        if contradict(alone, self._of_history, sigma):
            return alone
        return own.with_earlier(self.history).quick_estimate()

    def _revealed(self) -> Estimate:
        """Return the estimate from what the reserve reveals, and from what was before."""
        assert self.reserve is not None
        worth, total, before = self.reserve.shown, self.reserve.shown_total, self.history
        alone = weighted_estimate(self.problem, worth, total)
        if before is None:
            return alone
        if self._of_history is None:
            self._of_history = Pooled(self.problem).with_earlier(before).quick_estimate()
        if contradict(alone, self._of_history, self.problem.scale):
            return alone
        return weighted_estimate(self.problem, worth + before.count, total + before.total)


def looks_inside(problem: Problem) -> bool:
    """Return whether evidence is looked at inside epochs: with a margin that saves nothing."""
    return splits_pilot(problem) and not has_portfolio(problem)


def has_portfolio(problem: Problem) -> bool:
    """Return whether claims have a margin, and several accounts."""
    return problem.rules.epochs and problem.epsilon > 0.0


def splits_pilot(problem: Problem) -> bool:
    """Return whether the pilot is split.

    Like looks, that needs normal noise of a known size, and a model that is right for each single
    reward.
    """
    known = problem.noise.normal and problem.noise.sigma is not None
    exact = problem.misspecification == 0.0 and not problem.batch_intercept
    return problem.rules.epochs and known and exact


def contradict(now: Estimate, before: Estimate, sigma: float | None) -> bool:
    """Tell whether rewards contradict earlier ones, in what both can estimate.

    The test of Wald for equal parameters, which has the F distribution if sigma comes from the
    residuals of the later rewards.

    Parameters
    ----------
    now, before : Estimate
        Of which the first has to estimate all that can be.
    sigma : float or None
        If None, from the residuals of `now`.
    """
    rank = before.information.rank
    if rank == 0 or now.information.rank < now.dimension:
        return False
    square = math.nan
    if rank == len(now.phi) == now.information.rank:
        import finalist.strategies.gauntlet.choice_kernels as kernels

        roots = (read_only(fit.information.inverse_root) for fit in (now, before))
        square = kernels.difference_of(read_only(now.phi), read_only(before.phi), *roots)
    if math.isnan(square):
        found = _difference_of(now, before)
        if found is None:
            return False
        square = found
    if sigma is not None:
        return is_rare(rank, square / sigma**2, CONTRADICTION)
    freedom = now.degrees_of_freedom
    if freedom < 1 or now.residual_variance == 0.0:
        return False
    return is_rare_ratio(rank, freedom, square / now.residual_variance / rank, CONTRADICTION)


def _difference_of(now: Estimate, before: Estimate) -> float | None:
    """Return d'V^+ d, d the difference of two estimates and V its variance for a sigma of 1.

    None where that is not known.
    """
    directions = before.information.basis.T
    if not now.information.spans(directions).all():
        return None
    later = directions @ now.information.inverse_root.T
    earlier = directions @ before.information.inverse_root.T
    variance = later @ later.T + earlier @ earlier.T
    difference = directions @ (now.phi - before.phi)
    if not (np.isfinite(variance).all() and np.isfinite(difference).all()):
        return None
    return float(difference @ np.linalg.lstsq(variance, difference, rcond=None)[0])
