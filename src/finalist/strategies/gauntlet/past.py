"""All rewards that the gauntlet chooses by, apart by where they come from.

Earlier measurements and the pilot are never tested. If they are wrong (another laboratory, a first
plate that was mixed up) the tests are as right as ever, but they are aimed at the wrong arms. So
what the rewards after them contradict is left out. That too is a choice from the past.
"""

import numpy as np
from jaxtyping import Int

from finalist.inference.least_squares import Estimate
from finalist.inference.pooling import Pooled
from finalist.inference.statistics import Statistics
from finalist.problem import Problem

#: Below this p-value rewards contradict others.
CONTRADICTION = 1e-3


class Past:
    """What was measured so far.

    Attributes
    ----------
    pooled : Pooled
        All rewards of the run: the pilot and what was tested.
    history : Statistics or None
        What was measured before the run.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.pooled = Pooled(problem)
        self.history: Statistics | None = None
        self._tested, self._pilot = Pooled(problem), Pooled(problem)
        self._estimate: Estimate | None = None
        self._of_pilot: Estimate | None = None
        self._of_history: Estimate | None = None

    def inform(self, history: Statistics) -> None:
        """Take what was measured before the run."""
        self.history = history.copy()
        self._estimate = self._of_history = None

    def add(self, rewards: Statistics, *, tested: bool) -> None:
        """Add the rewards of a batch."""
        self.pooled.add(rewards)
        (self._tested if tested else self._pilot).add(rewards)
        self._estimate = None
        if not tested:
            self._of_pilot = None

    def taken(self, kept: Int[np.ndarray, " n"], problem: Problem) -> "Past":
        """Return what concerns other arms: old ones by number, -1 for new ones."""
        new = Past(problem)
        new.history = None if self.history is None else self.history.taken(kept)
        new.pooled = self.pooled.taken(kept, problem)
        new._tested = self._tested.taken(kept, problem)
        new._pilot = self._pilot.taken(kept, problem)
        return new

    def estimate(self) -> Estimate:
        """Return the estimate from all that is not contradicted by what came after it."""
        if self._estimate is None:
            self._estimate = self._estimated()
        return self._estimate

    def _estimated(self) -> Estimate:
        if not self._problem.rules.forgiving:
            return self.pooled.with_earlier(self.history).estimate()
        own, sigma = self.pooled, self._problem.scale
        if self._of_pilot is None:
            self._of_pilot = self._pilot.estimate()
        if self._tested.pulls > 0 and contradict(self._tested.estimate(), self._of_pilot, sigma):
            own = self._tested
        if self.history is None:
            return own.estimate()
        if self._of_history is None:
            self._of_history = Pooled(self._problem).with_earlier(self.history).estimate()
        alone = own.estimate()
        if contradict(alone, self._of_history, sigma):
            return alone
        return own.with_earlier(self.history).estimate()


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
    from scipy.special import chdtrc, fdtrc

    rank = before.information.rank
    if rank == 0 or now.information.rank < now.dimension:
        return False
    directions = before.information.basis.T
    if not now.information.spans(directions).all():
        return False
    later = directions @ now.information.inverse_root.T
    earlier = directions @ before.information.inverse_root.T
    variance = later @ later.T + earlier @ earlier.T
    difference = directions @ (now.phi - before.phi)
    if not (np.isfinite(variance).all() and np.isfinite(difference).all()):
        return False
    square = float(difference @ np.linalg.lstsq(variance, difference, rcond=None)[0])
    if sigma is not None:
        return bool(chdtrc(rank, square / sigma**2) < CONTRADICTION)
    freedom = now.degrees_of_freedom
    if freedom < 1 or now.residual_variance == 0.0:
        return False
    return bool(fdtrc(rank, freedom, square / now.residual_variance / rank) < CONTRADICTION)
