"""LinGapE: pulls that tell the leader from its strongest rival (Xu, Honda and Sugiyama 2018).

After every pull the leader i has the largest estimated mean, and the rival j is the arm that may be
better than it by the most: gap plus width. When even that is at most epsilon, the leader is
returned (Alg. 1 and 2). Otherwise the next pull makes the difference y of the two better known:
`greedy` minimises y'(A + xx')^-1 y; `ratio` keeps the pulls in the proportions
p_a = |w_a| / ||w||_1 of the w with the smallest ||w||_1 among those with y = sum of w_a x_a, by
pulling the arm with the smallest T_a / p_a. Every arm is pulled once to begin with.

The width is C ||y||_{A^-1} with the ridge estimate, A = lambda I + sum of xx' and
C = sigma sqrt(2 log(det(A)^(1/2) det(lambda I)^(-1/2) / delta)) + sqrt(lambda) S (Prop. 1, which is
Abbasi-Yadkori et al. 2011, Thm. 2). With probability 1 - delta it holds for all directions and all
times at once, so no union over pairs is needed (the authors' program has a K^2 in the logarithm).
On that event the returned arm is at most epsilon worse than the best, and the best one itself if
epsilon is 0, where the paper's rule is read as one for rivals j different from i.

As in `fully_adaptive` everything happens in span coordinates (`Arms.coordinates`, Z'Z / K = I): the
norm of the parameter, bounded by S, is there the root mean square of the expected rewards of the
arms that can be pulled.

Arms that are measured and candidates may differ: x, and what is pulled to begin with, are the arms
that can be pulled, i and j candidates. Where the noise differs, rows x sigma / sigma_x take the
place of x everywhere above, in A, the greedy choice and the proportions (`units`): their noise has
the size sigma and the parameter is the same, so Prop. 1 holds as it stands, for any rows.

`threshold="heuristic"` takes C = sigma sqrt(2 log((1 + log t) / delta)) + sqrt(lambda) S after t
pulls, whose first part is that of published comparisons of linear strategies. (They leave out the
second, the bias of the ridge; where rewards have an offset of many sigma, that is wrong in most
runs.) It stops sooner and has no proof: `proven` is False.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from finalist.arms import Arms
from finalist.design.measured import Measured
from finalist.errors import DesignError
from finalist.inference.information import row_norms
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.about import check_choice
from finalist.strategies.per_pull.base import PerPullRun, Thresholded, blank, progress_of
from finalist.strategies.per_pull.ridge import Ridge, RidgeStrategy, check_pairs
from finalist.strategies.protocol import RewardSource

Selection = Literal["greedy", "ratio"]
Threshold = Literal["proven", "heuristic"]

#: Shares below this part of the largest are rounding.
NEGLIGIBLE = 1e-9
#: Pairs whose shares there is room for at first.
ROOM = 16


@dataclass(frozen=True)
class LinGapE(Thresholded, RidgeStrategy):
    """The strategy with its settings.

    Parameters
    ----------
    theta_norm : float
        A bound on the root mean square of the expected rewards of the arms that can be pulled.
        The guarantee rests on it: it is the S of Prop. 1, in coordinates in which it means that.
    ridge : float
        The ridge lambda, in units of the largest squared norm of an arm that can be pulled.
    selection : "greedy" or "ratio"
        How the arm to pull follows from the pair to tell apart.
    threshold : "proven" or "heuristic"
        The radius with a proof, or a smaller one without.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0))
    >>> run = LinGapE(theta_norm=1.0).start(problem)
    >>> run.next().counts, run.next(size=3).counts
    (array([1, 0, 0]), array([1, 1, 1]))
    """

    name: ClassVar[str] = "lingape"
    selection: Selection = "greedy"
    threshold: Threshold = "proven"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("selection", self.selection, Selection)
        check_choice("threshold", self.threshold, Threshold)

    def start(self, problem: Problem, seed: int = 0) -> "LinGapERun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        self._check(problem)
        if self.selection == "ratio":
            check_pairs(len(problem.arms), "keep shares for", 'use selection="greedy"')
        return LinGapERun(self, problem)


class LinGapERun(PerPullRun):
    """LinGapE at work: the rewards, and everything that follows from them."""

    kernels = "lingape"
    planned = ("V", "leverage", "log_det", "pulled", "progress")

    def __init__(self, settings: LinGapE, problem: Problem) -> None:
        self._ridge = Ridge.of(problem, settings.ridge)
        self._pairs = 0
        super().__init__(problem, _state(settings, problem, self._ridge))
        self._refresh()

    def _plan(self, state: Any, picks: Int[np.ndarray, " n"]) -> Mapping[str, Any]:
        done = 0
        while (done := self._loop.plan(state, picks, done)) < len(picks):
            state = self._with_shares(state)
        return {}

    def _pull(
        self, rewards: RewardSource, truth: Float[np.ndarray, " K"], noise: Float[np.ndarray, " n"]
    ) -> int:
        used = super()._pull(rewards, truth, noise)
        if used < len(noise) and self._winner is None:
            self._state = self._with_shares(self._state)
        return used

    def _with_shares(self, state: Any) -> Any:
        """Return the state with the shares of the pair that it is to tell apart."""
        i, j = sorted(state.progress[[self._loop.LEADER, self._loop.RIVAL]].tolist())
        slot, support, share = self._state.slot, self._state.support, self._state.share
        if self._pairs == len(support):
            support, share = (np.concatenate([old, old]) for old in (support, share))
        arms, p = pair_shares(self._problem.arms, i, j, self._ridge.units.relative)
        support[self._pairs], share[self._pairs] = -1, 0.0
        support[self._pairs, : len(arms)], share[self._pairs, : len(arms)] = arms, p
        slot[i, j] = slot[j, i] = self._pairs
        self._pairs += 1
        self._state = self._state._replace(support=support, share=share)
        return state._replace(support=support, share=share)

    def _refresh(self) -> None:
        state, Z, rewards = self._state, self._ridge.Z, self._pool()
        R, white, state.means[:], state.log_det[0] = self._ridge.fit(rewards)
        state.V[:] = white @ R
        state.leverage[:] = row_norms(Z, R)
        state.pulled[:] = rewards.count
        unseen = state.pulled[self._ridge.units.measurable] == 0
        state.progress[self._loop.UNSEEN] = np.count_nonzero(unseen)


@lru_cache(maxsize=4096)
def pair_shares(
    arms: Arms, first: int, second: int, relative: tuple[float, ...] | None = None
) -> tuple[Int[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    """Return the arms, and their shares of the pulls, that estimate a difference best.

    The w of smallest ||w||_1 with z_first - z_second = Z'w, as a linear program in the positive and
    the negative part of w. A basic solution of it has at most r arms with a share. Z are the arms
    that can be pulled, each divided by its `relative` noise.

    Examples
    --------
    >>> import finalist as fl
    >>> pair_shares(fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.75, 0.25]]), 0, 2)
    (array([0, 1]), array([0.5, 0.5]))
    """
    from scipy.optimize import linprog

    measured = Measured.of(arms, 1.0 if relative is None else relative)
    Z, y = measured.rows, arms.coordinates[first] - arms.coordinates[second]
    able = np.flatnonzero(arms.measurable)
    size = float(np.abs(y).max())
    if size == 0.0:  # the features differ, but by less than rounding
        both = able[np.isin(able, [first, second])]
        some = both if len(both) > 0 else able[:1]
        return some, np.full(len(some), 1.0 / len(some))
    y = y / size  # the solver's tolerances are absolute
    answer = linprog(np.ones(2 * len(Z)), A_eq=np.hstack([Z.T, -Z.T]), b_eq=y, method="highs-ds")
    if answer.status != 0 or answer.x is None:
        raise DesignError(
            f"the shares of arms {first} and {second} cannot be computed: {answer.message} "
            'Use selection="greedy".'
        )
    w = np.abs(answer.x[: len(Z)] - answer.x[len(Z) :])
    heavy = np.flatnonzero(w > NEGLIGIBLE * w.max())
    if len(heavy) == 0 or not np.isfinite(w).all():
        raise DesignError(
            f"the shares of arms {first} and {second} cannot be computed: their noise is too "
            'different. Use selection="greedy".'
        )
    pulled, shares = able[heavy], w[heavy] / w[heavy].sum()
    for array in (pulled, shares):
        array.flags.writeable = False
    return pulled, shares


def _state(settings: LinGapE, problem: Problem, ridge: Ridge) -> Any:
    """Return the state before the first pull, except for what `_refresh` fills in."""
    from finalist.strategies.per_pull.kernels.lingape import Rule, State

    rule = Rule(
        sign=float(problem.sign),
        epsilon=problem.epsilon,
        proven=settings.proven,
        ratio=settings.selection == "ratio",
        confidence=-2.0 * math.log(problem.delta),
        sigma=ridge.units.sigma,
        bias=math.sqrt(ridge.eta) * settings.theta_norm,
    )
    (K, r), who = ridge.Z.shape, ridge.units.candidates
    pairs, room = (K, ROOM) if rule.ratio else (0, 0)
    return blank(
        State,
        problem,
        rule=rule,
        **ridge.arrays,
        progress=progress_of(who, -1, -1, 0),
        slot=np.full((pairs, pairs), -1, dtype=np.int64),
        support=np.full((room, r), -1, dtype=np.int64),
        share=np.zeros((room, r)),
    )
