"""Track-and-stop, for arms that share nothing: pull by the proportions that are best so far.

Garivier and Kaufmann 2016, "Optimal best arm identification with fixed confidence". Every mean can
be anything: the rank of the arms is their number.

**Sampling.** After one pull of each arm, w*(mu) are the proportions that are best for the means mu
so far, computed after every pull. For noise of one sigma their Thm. 5 has x_a = y / (gap_a^2 / 2 -
y), where sum_a x_a^2 = 1; w* is proportional to x, and to 1 for the best arm. D-tracking pulls
argmax t w*_a - N_a, or the rarest arm if that has fewer than sqrt(t) - K/2 pulls. C-tracking pulls
argmax sum_{s <= t} w_a(s) - N_a, where w(s) is the projection of w* on proportions of at least 1 /
(2 sqrt(K^2 + s)) (Sect. 3.1). With epsilon the gaps are gap_a + epsilon.

**Stopping.** As soon as min_b (gap_b + epsilon)^2 / (2 sigma^2 (1/N_a + 1/N_b)) > beta(t) for the
arm a that looks best. It is the generalised likelihood ratio of "b is better than a by epsilon";
the paper has epsilon = 0 (Sect. 3.2). Their Thm. 10 is a threshold for Bernoulli rewards; that for
other families has a constant that is not explicit. The one used here,

    beta(t) = 4 log(4 + log(t/2)) + 2 C(log((K - 1) / delta) / 2),
    C(x) = min over 1/2 < l < 1 of (g(l) + x) / l,
    g(l) = 2 l - 2 l log(4 l) + log zeta(2 l) - log(1 - l) / 2,

is that of Kaufmann and Koolen 2021 ("Mixture martingales revisited") for Gaussian arms. Why it is
right, also for sub-Gaussian noise: let S be the sum of n errors of an arm, X = S^2 / (2 n
sigma^2). The mixture of exp(v S - v^2 sigma^2 n / 2) over normal v with precision c sigma^2 is a
supermartingale, sqrt(c / (c + n)) exp(S^2 / (2 sigma^2 (n + c))). With c = m^{i-1} (1 - l) / l it
is at least exp(l X) sqrt((1 - l) / m) for all n in [m^{i-1}, m^i). Add these for i = 1, 2, ...
with weights i^{-2 l} / zeta(2 l), and take log m = 4 l, so that i <= (4 l + log n) / (4 l): this
supermartingale begins with 1 and is at least exp(l (X - 2 log(4 + log n)) - g(l)). The product of
those of two arms is one as well, however the arms are chosen. By Ville's inequality, with
probability 1 - e^{-x} and for all t, X_a + X_b < 2 log(4 + log N_a) + 2 log(4 + log N_b) + (2 g(l)
+ x) / l. With the best l this is at most 4 log(4 + log(t/2)) + 2 C(x/2), because N_a + N_b <= t
and the logarithms are concave. With x = log((K - 1) / delta) it holds for the truly best arm b and
every other one a at once. If b were better than a by more than epsilon, the true means would be
among those over which the likelihood is maximised, and the ratio at most X_a + X_b < beta(t).

Bernoulli rewards are sub-Gaussian with sigma = 1/2 and treated as such: the ratio is not that of
their own likelihood, which costs pulls where means are close to 0 or 1.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float
from finalist.strategies.about import check_choice
from finalist.strategies.per_pull.base import PerPullRun, Thresholded, blank
from finalist.strategies.protocol import SUPPORTED, Batch

Tracking = Literal["D", "C"]
Threshold = Literal["proven", "heuristic"]


@dataclass(frozen=True)
class TrackAndStop(Thresholded):
    """The strategy with its settings.

    Parameters
    ----------
    tracking : "D" or "C"
        Follow the best proportions of now, or the sum of those of all times.
    threshold : "proven" or "heuristic"
        The threshold that the module proves, or log((1 + log t) / delta), which the paper uses in
        experiments and for which there is no proof.

    Examples
    --------
    >>> import finalist as fl
    >>> arms, means = fl.Arms.unstructured(3), [0.0, 0.0, 1.0]
    >>> found = fl.simulate(arms, means, TrackAndStop(tracking="C"), sigma=1.0, runs=5)
    >>> found.winner.tolist()
    [2, 2, 2, 2, 2]
    """

    name: ClassVar[str] = "track-and-stop"
    supports = SUPPORTED
    tracking: Tracking = "D"
    threshold: Threshold = "proven"

    def __post_init__(self) -> None:
        check_choice("tracking", self.tracking, Tracking)
        check_choice("threshold", self.threshold, Threshold)

    @staticmethod
    def suits(arms: Arms) -> bool:
        """Tell whether these arms share nothing, so that every mean can be anything.

        Examples
        --------
        >>> TrackAndStop.suits(Arms.unstructured(3)), TrackAndStop.suits(Arms([[1.0], [2.0]]))
        (True, False)
        """
        return len(arms) == 1 or arms.rank == len(arms)

    def start(self, problem: Problem, seed: int = 0) -> "TrackAndStopRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        problem.refuse_unsupported(self.name, self.supports)
        if not self.suits(problem.arms):
            raise ProblemError(
                f"these {len(problem.arms)} arms have rank {problem.arms.rank}; {self.name} is for "
                "arms that share nothing, rank = number of arms. Use LazyTS, which is the same "
                "for linear arms, or Arms.unstructured(names) to ignore the features."
            )
        return TrackAndStopRun(self, problem)


class TrackAndStopRun(PerPullRun):
    """The strategy at work: means and pulls of the arms, which no update makes inexact."""

    kernels = "track_and_stop"
    planned = ("pulled", "total", "progress")

    def __init__(self, settings: TrackAndStop, problem: Problem) -> None:
        super().__init__(problem, _state(settings, problem))

    @property
    def proportions(self) -> Float[np.ndarray, " K"]:
        """The best proportions of pulls for the means so far, w* of the paper."""
        self._loop.optimal(self._state)
        return np.array(self._state.weights)

    def pooled(self) -> Statistics:
        """Return the sums of all rewards so far."""
        return Statistics.of_batch(self._state.seen, self._state.seen * self._state.means)

    def _follow(self, batch: Batch) -> None:
        self._loop.follow(self._state, batch.size)

    def _merge(self, rewards: Statistics) -> None:
        state, new = self._state, rewards.count > 0
        state.seen[:] += rewards.count
        state.pulled[:] += rewards.count
        share = rewards.count[new] / state.seen[new]
        state.means[new] += (rewards.mean[new] - state.means[new]) * share
        state.progress[self._loop.PULLS] += rewards.pulls
        state.progress[self._loop.UNSEEN] = np.count_nonzero(state.seen == 0)

    def _refresh(self) -> None:
        """Do nothing: there is nothing to compute again."""


def gaussian_calibration(x: float) -> float:
    """Return C(x), the smallest (g(l) + x) / l over 1/2 < l < 1 (Kaufmann and Koolen 2021).

    Every l gives a valid threshold, so it does not matter how exact the minimum is.

    Examples
    --------
    >>> round(gaussian_calibration(3.0), 4)
    4.6484
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import zeta

    def value(lam: float) -> float:
        g = 2 * lam - 2 * lam * math.log(4 * lam) + math.log(zeta(2 * lam))
        return (g - 0.5 * math.log1p(-lam) + x) / lam

    return float(minimize_scalar(value, bounds=(0.5, 1.0), method="bounded").fun)


def _state(settings: TrackAndStop, problem: Problem) -> Any:
    """Return the state before the first pull."""
    from finalist.strategies.per_pull.kernels.track_and_stop import Rule, State

    K, confidence = len(problem.arms), -math.log(problem.delta)
    if settings.proven:
        others = max(len(problem.arms) - 1, 1)
        confidence = 2.0 * gaussian_calibration((math.log(others) + confidence) / 2.0)
    rule = Rule(
        sign=float(problem.sign),
        epsilon=problem.epsilon,
        cumulative=settings.tracking == "C",
        proven=settings.proven,
        confidence=confidence,
        variance=problem.sigma**2,
    )
    return blank(State, problem, rule=rule, progress=np.array([0, 0 if K == 1 else -1, K]))
