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
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.design.measured import Measured
from finalist.errors import DesignError, ProblemError
from finalist.inference.information import row_norms
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.per_pull.base import play_in_chunks, refresh_due, take_latest, with_latest
from finalist.strategies.per_pull.fully_adaptive import MAX_PAIRS
from finalist.strategies.per_pull.ridge import (
    check_even,
    check_ridge,
    longest_squared,
    norm_in_span,
    ridge_fit,
)
from finalist.strategies.protocol import (
    Batch,
    RewardSource,
    Verdict,
    check_choice,
    check_record,
    check_size,
    first_named,
    refuse_decided,
)
from finalist.strategies.units import BEYOND, Units

if TYPE_CHECKING:
    from finalist.strategies.per_pull.kernels.lingape import Rule, State

Selection = Literal["greedy", "ratio"]
Threshold = Literal["proven", "heuristic"]

#: Shares below this part of the largest are rounding.
NEGLIGIBLE = 1e-9
#: Pairs whose shares there is room for at first.
ROOM = 16


@dataclass(frozen=True)
class LinGapE:
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
    theta_norm: float
    ridge: float = 1.0
    selection: Selection = "greedy"
    threshold: Threshold = "proven"

    def __post_init__(self) -> None:
        check_ridge(self.theta_norm, self.ridge)
        check_choice("selection", self.selection, Selection)
        check_choice("threshold", self.threshold, Threshold)

    @property
    def proven(self) -> bool:
        """Whether the probability of error is proven to be at most delta."""
        return self.threshold == "proven"

    @classmethod
    def knowing(cls, arms: Arms, theta: Float[np.ndarray, " d"]) -> "LinGapE":
        """Return the strategy that knows the norm of the true parameter, as in the paper.

        Examples
        --------
        >>> import finalist as fl
        >>> LinGapE.knowing(fl.Arms.unstructured(2), np.array([2.0, -2.0])).theta_norm
        2.0
        """
        return cls(theta_norm=norm_in_span(arms, theta))

    def start(self, problem: Problem, seed: int = 0) -> "LinGapERun":  # noqa: ARG002
        """Begin with a problem; the seed has no influence, nothing is random."""
        problem.refuse_unsupported(self.name, BEYOND)
        check_even(self.name, Units.of(problem), self.ridge)
        K = len(problem.arms)
        if self.selection == "ratio" and K * (K - 1) // 2 > MAX_PAIRS:
            raise ProblemError(
                f"{K} arms have {K * (K - 1) // 2} pairs, too many to keep shares for; "
                'use selection="greedy".'
            )
        return LinGapERun(self, problem)


class LinGapERun:
    """LinGapE at work: the rewards, and everything that follows from them."""

    def __init__(self, settings: LinGapE, problem: Problem) -> None:
        self._problem, self._Z = problem, problem.arms.coordinates
        self._units = Units.of(problem)
        self._ridge = settings.ridge * longest_squared(self._Z[self._units.measurable])
        self._rewards = Statistics.empty(len(self._Z))  # but those after the last exact computation
        self._pairs = 0
        rule = _rule(settings, problem, self._units.sigma, self._ridge)
        self._state = _state(rule, np.array(self._Z), self._units)
        self._refresh()

    @property
    def verdict(self) -> Verdict:
        """What is certain now; this rule names a winner, it does not rule out arms before."""
        pulls, winner = self._state.progress[:2].tolist()
        return first_named(None if winner < 0 else winner, self._problem, pulls)

    @property
    def counts(self) -> Int[np.ndarray, " K"]:
        """The pulls of each arm so far."""
        return self._state.pulled.copy()

    def pooled(self) -> Statistics:
        """Return all rewards so far, summed up."""
        return with_latest(self._rewards, self._state.counts, self._state.sums)

    def next(self, size: int | None = None) -> Batch:
        """Return the next pull, or the next `size` as they are if all rewards are as expected."""
        from finalist.strategies.per_pull.kernels import lingape as kernels

        check_size(size)
        refuse_decided(self.verdict)
        state, picks, done = self._state, np.empty(size or 1, dtype=np.int64), 0
        if len(picks) > 1:
            changed = ("V", "leverage", "log_det", "pulled", "progress")
            state = state._replace(**{name: getattr(state, name).copy() for name in changed})
        while (done := kernels.plan(state, picks, done)) < len(picks):
            state = self._with_shares(state)
        return Batch(np.bincount(picks, minlength=len(self._Z)))

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over the rewards of any pulls, then look whether the leader can be returned."""
        from finalist.strategies.per_pull.kernels import lingape as kernels

        check_record(self.verdict, len(self._Z), batch, rewards)
        if batch.size != 1:
            self._rewards.merge(rewards)
            self._state.pulled[:] += batch.counts
            self._state.progress[kernels.PULLS] += batch.size
            waiting = self._state.pulled[self._units.measurable] == 0
            self._state.progress[kernels.UNSEEN] = int(waiting.sum())
            self._refresh()
            kernels.examine(self._state)
            return
        arm = int(batch.counts.argmax())
        kernels.absorb(self._state, arm, float(rewards.mean[arm]))
        kernels.examine(self._state)
        if refresh_due(self.verdict.pulls):
            self._refresh()

    def play(self, rewards: RewardSource, limit: int) -> Int[np.ndarray, " K"]:
        """Pull until there is a winner or `limit` pulls are made in all; return the pulls.

        The same pulls as with `next` and `record` one by one; only the generator of the rewards
        is further on after the last one, because noise is drawn ahead.
        """
        from finalist.strategies.per_pull.kernels import lingape as kernels

        spread = rewards.spread

        def step(truth: Float[np.ndarray, " K"], noise: Float[np.ndarray, " n"]) -> int:
            used = int(kernels.run(self._state, truth, spread, rewards.binary, noise))
            if used < len(noise) and not self.verdict.decided:
                self._state = self._with_shares(self._state)
            return used

        return play_in_chunks(self, rewards, limit, step, self._refresh)

    def _with_shares(self, state: "State") -> "State":
        """Return the state with the shares of the pair that it is to tell apart."""
        from finalist.strategies.per_pull.kernels import lingape as kernels

        i, j = sorted(state.progress[[kernels.LEADER, kernels.RIVAL]].tolist())
        slot, support, share = self._state.slot, self._state.support, self._state.share
        if self._pairs == len(support):
            support, share = (np.concatenate([old, old]) for old in (support, share))
        arms, p = pair_shares(self._problem.arms, i, j, self._units.relative)
        support[self._pairs], share[self._pairs] = -1, 0.0
        support[self._pairs, : len(arms)], share[self._pairs, : len(arms)] = arms, p
        slot[i, j] = slot[j, i] = self._pairs
        self._pairs += 1
        self._state = self._state._replace(support=support, share=share)
        return state._replace(support=support, share=share)

    def _refresh(self) -> None:
        """Compute the state anew from the rewards, so that rounding errors do not add up."""
        state, Z = self._state, self._Z
        take_latest(self._rewards, state.counts, state.sums)
        w = self._units.weights
        R, white, state.means[:], state.log_det[0] = ridge_fit(Z, self._rewards, self._ridge, w)
        state.V[:] = white @ R
        state.leverage[:] = row_norms(Z, R)


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


def _rule(settings: LinGapE, problem: Problem, sigma: float, ridge: float) -> "Rule":
    """Collect the constants of the rules."""
    from finalist.strategies.per_pull.kernels.lingape import Rule

    return Rule(
        sign=float(problem.sign),
        epsilon=problem.epsilon,
        proven=settings.proven,
        ratio=settings.selection == "ratio",
        confidence=-2.0 * math.log(problem.delta),
        sigma=sigma,
        bias=math.sqrt(ridge) * settings.theta_norm,
    )


def _state(rule: "Rule", Z: Float[np.ndarray, "K r"], units: Units) -> "State":
    """Return the state before the first pull, but for what `_refresh` computes."""
    from finalist.strategies.per_pull.kernels.lingape import State

    (K, r), room, who = Z.shape, ROOM if rule.ratio else 0, units.candidates
    return State(
        rule=rule,
        Z=np.ascontiguousarray(Z),
        weight=units.weights,
        who=who,
        V=np.zeros((K, r)),
        leverage=np.zeros(K),
        means=np.zeros(K),
        log_det=np.zeros(1),
        pulled=np.zeros(K, dtype=np.int64),
        counts=np.zeros(K, dtype=np.int64),
        sums=np.zeros(K),
        progress=np.array([0, who[0] if len(who) == 1 else -1, -1, -1, len(units.measurable)]),
        slot=np.full((K, K) if rule.ratio else (0, 0), -1, dtype=np.int64),
        support=np.full((room, r), -1, dtype=np.int64),
        share=np.zeros((room, r)),
        step=np.zeros(r),
        value=np.zeros(K),
    )
