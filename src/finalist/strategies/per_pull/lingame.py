"""LinGame-C: a learner plays for the pulls, nature for the nearest alternative (Degenne 2020).

Degenne, Menard, Shang and Valko, "Gamification of pure exploration for linear bandits" (ICML 2020).
The lower bound on the pulls is the value of a game: weights of the arms against an alternative
parameter lambda in which the answer is wrong. Before every pull one AdaHedge learner (de Rooij et
al. 2014) has weights for every pair of an answer i and an arm a; nature answers for each i with
the alternative nearest to the estimate in the norm of the arms' weights; the learner gains
(|<theta_hat - lambda_i, a>| + c_t(a))^2 / (2 sigma^2), optimistic by c_t(a). The pulls follow the
sum of all weights (C-tracking), after every arm has been pulled once. No optimal design is
computed. For an answer that does not look best nature leaves the estimate where it is, so one small
matrix is factorised a pull, and answers that never looked best share one row of the learner.

The threshold. Let V = eta I + sum z z' and phi_hat the ridge estimate. With probability 1 - delta,
for all numbers t of pulls at once (Abbasi-Yadkori et al. 2011, Thm. 2; M bounds ||phi||),

    ||phi_hat - phi||_V <= sigma sqrt(2 log(1/delta) + log(det V / det(eta I))) + sqrt(eta) M,

noise first and the bias of the ridge second, by the triangle inequality. The determinants' ratio
is at most (1 + t L^2 / (eta d))^d, by the means of its eigenvalues. Half the square of the right
side over sigma^2 is

    beta(t, delta) = (sqrt(log(1/delta) + d/2 log(1 + t L^2 / (eta d))) + sqrt(eta/2) M / sigma)^2,

the threshold of the paper (there sigma = 1). The run ends with the arm i that looks best when every
alternative is farther: g^2 / (2 sigma^2 ||y||^2_{V^-1}) > beta for every other arm j, where
y = z_i - z_j and g = y'phi_hat + epsilon, because that is the least ||phi_hat - lambda||^2_V /
(2 sigma^2) of all lambda with y'lambda <= -epsilon. Were the true parameter one of them, it would
be farther from the estimate than the bound allows; so the mean of i is within epsilon of the best
with probability 1 - delta, whatever the pulls were. The learner's part decides only how many.

Departures from the paper. Pulls follow the weights of the arms summed over the answers, not each
pair: the estimate does not know for which answer an arm was pulled. Nature's alternatives are half
spaces, not cut with the ball of radius M, as in the authors' own closed form for best arms. For
epsilon-best the game is played for the arm that looks best, which Jourdan and Degenne (2022) show
not to be the fastest choice. A batch of several pulls is what the learner plays without rewards
in between: estimates stay, V grows.

Arms that are measured and candidates may differ: the answers i and j are candidates, the learner's
arms a those that can be pulled. Where the noise differs, rows a sigma / sigma_a take the place of
these arms, in V, L, the gains and the bonus (`units`). Their noise has the size sigma and the
parameter is the same: the threshold holds as it stands, for any rows and any ridge.

Everything happens in span coordinates (`Arms.coordinates`, Z'Z / K = I): there the norm of the
parameter is the root mean square of the expected rewards of the arms that can be pulled, whatever
the units of the features.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from finalist.inference.information import row_norms
from finalist.inference.statistics import LARGEST_REWARD
from finalist.problem import Problem
from finalist.strategies.about import check_choice
from finalist.strategies.per_pull.base import PerPullRun, Thresholded, blank, progress_of
from finalist.strategies.per_pull.ridge import Ridge, RidgeStrategy, check_pairs, longest_squared
from finalist.strategies.protocol import Batch, Verdict

#: When to stop; the order is that of the constants in its kernels.
Threshold = Literal["proven", "determinant", "heuristic"]
#: How large the bonus c_t is.
Optimism = Literal["practical", "paper"]

#: Gains beyond this would overflow when they are summed.
LARGEST_GAIN = 1e100


@dataclass(frozen=True)
class LinGame(Thresholded, RidgeStrategy):
    """The strategy with its settings.

    Parameters
    ----------
    theta_norm : float
        A bound on the root mean square of the expected rewards of the arms that can be pulled.
        The guarantee rests on it: it is the M of the paper, in coordinates in which it means that.
    ridge : float
        The ridge eta, in units of the largest squared norm of an arm that can be pulled.
    threshold : "proven", "determinant" or "heuristic"
        The paper's beta(t, delta); the same with the determinant itself instead of its bound,
        which is never larger and as certain; or with log((1 + log t) / delta) under the root, as
        in the authors' program (which has no bias of the ridge): there is no proof for it.
    optimism : "practical" or "paper"
        The bonus of the gains. "practical" is c_t(a)^2 = 2 sigma^2 log(t) ||a||^2_{V^-1} and no
        gain above log t, as in the authors' program; "paper" has the proven radius at level t^-3
        and no gain above (2 L M)^2 / (2 sigma^2), for the analysis. Both are equally certain.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0))
    >>> run = LinGame(theta_norm=1.0).start(problem)
    >>> run.next().counts, run.next(size=7).counts
    (array([1, 0, 0]), array([2, 2, 3]))
    """

    name: ClassVar[str] = "lingame"
    threshold: Threshold = "proven"
    optimism: Optimism = "practical"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("threshold", self.threshold, Threshold)
        check_choice("optimism", self.optimism, Optimism)

    def start(self, problem: Problem, seed: int = 0) -> "LinGameRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        self._check(problem)
        check_pairs(len(problem.arms), "look at before every pull")
        return LinGameRun(self, problem)


class LinGameRun(PerPullRun):
    """The strategy at work: the rewards, the game, and everything that follows from them."""

    kernels = "lingame"
    planned = (
        *("cross", "leverage", "spread", "pulled", "progress"),  # V
        *("tracked", "losses", "rows", "mixability"),  # the learner
    )

    def __init__(self, settings: LinGame, problem: Problem) -> None:
        self._ridge = Ridge.of(problem, settings.ridge)
        super().__init__(problem, _state(settings, problem, self._ridge))
        self._refresh()

    @property
    def verdict(self) -> Verdict:
        """What is certain after the pulls recorded so far."""
        able = np.ones(len(self._problem.arms), dtype=np.bool_)
        self._loop.possible(self._state, able)
        return Verdict(self._winner, tuple(np.flatnonzero(able).tolist()), self._pulls)

    def _follow(self, batch: Batch) -> None:
        """Move the learner on by as many rounds as there are pulls, as `next` of that size does.

        It follows from the state and the size alone, whichever arms were pulled.
        """
        self._loop.plan(self._state, np.empty(batch.size, dtype=np.int64))

    def _refresh(self) -> None:
        state, Z, rewards = self._state, self._ridge.Z, self._pool()
        state.pulled[:] = rewards.count
        R, white, state.means[:], state.log_det[0] = self._ridge.fit(rewards)
        state.cross[:] = white @ white.T
        state.leverage[:] = np.diag(state.cross)
        for i in range(len(Z)):
            state.spread[i] = row_norms(Z - Z[i], R)


def _state(settings: LinGame, problem: Problem, ridge: Ridge) -> Any:
    """Return the state before the first pull, except for what `_refresh` fills in."""
    from finalist.strategies.per_pull.kernels.lingame import Rule, State

    M, units = settings.theta_norm, ridge.units
    sigma, L2 = units.sigma, longest_squared(ridge.rows)
    rule = Rule(
        sign=float(problem.sign),
        epsilon=problem.epsilon,
        sigma=sigma,
        bias=math.sqrt(ridge.eta) * M,
        d=float(problem.arms.rank),
        growth=L2
        / ridge.longest
        / (settings.ridge * max(problem.arms.rank, 1)),  # one arm may be 0
        confidence=-math.log(problem.delta),
        threshold=get_args(Threshold).index(settings.threshold),
        practical=settings.optimism == "practical",
        cap=min(2.0 * L2 * min(M / sigma, LARGEST_REWARD) ** 2, LARGEST_GAIN),
        experts=float(len(units.candidates) * len(units.measurable)),
    )
    K, who = len(problem.arms), units.candidates
    losses = np.zeros((K + 1, K))
    losses[:, units.weights == 0.0] = np.inf
    return blank(
        State,
        problem,
        rule=rule,
        **ridge.arrays,
        losses=losses,
        rows=np.zeros(len(who), dtype=np.int64),
        progress=progress_of(who, 0, 0),
        weights=np.zeros((K + 1, K)),
    )
