"""The fully adaptive version of XY: survivors after every pull, with Prop. 2 (Soare 2014, Sect. 6).

Each pull is the one that leaves the smallest worst variance among the differences of the
survivors, and after it every arm that a survivor dominates is dropped (Lemma 4). The pulls depend
on all rewards so far, so the estimate is a ridge estimate and the radius that of Prop. 2, which
holds for all numbers of pulls and all directions at once: what is dropped stays out.

The radius needs a bound on the parameter. Everything happens in span coordinates
(`Arms.coordinates`, Z'Z / K = I): there the norm of the parameter is the root mean square of the
expected rewards of the arms that can be pulled, whatever the units of the features, and the
dimension is their rank.

Arms that are measured and candidates may differ: survivors are candidates, pulls are of arms that
can be pulled. Where the noise differs, rows x sigma / sigma_x take the place of the pulled arms,
and L^2 in Prop. 2 is the largest squared norm of such a row (`units`). Their noise has the size
sigma and the parameter is the same: Prop. 2 holds as it stands, for any rows and any ridge.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.inference.bounds import Bound
from finalist.inference.information import row_norms
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.per_pull.base import play_in_chunks, refresh_due, take_latest, with_latest
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
    refuse_decided,
)
from finalist.strategies.units import BEYOND, Units

if TYPE_CHECKING:
    from finalist.strategies.per_pull.kernels.fully_adaptive import Rule, State

#: Every pair is looked at after every pull; beyond this many it is the wrong tool.
MAX_PAIRS = 2_000_000


@dataclass(frozen=True)
class FullyAdaptive:
    """The strategy with its settings.

    Parameters
    ----------
    theta_norm : float
        A bound on the root mean square of the expected rewards of the arms that can be pulled.
        The guarantee rests on it: it is the ||theta*|| of Prop. 2, in coordinates in which it
        means just that.
    ridge : float
        The ridge eta of Prop. 2, in units of the largest squared norm of an arm that can be
        pulled: of L^2 where all are equally noisy, so that 1 + n L^2 / eta is 1 + n / ridge.
    bound : "sharp" or "soare"
        The radius from the determinant of the design matrix (Abbasi-Yadkori et al. 2011,
        Thm. 2), or Prop. 2 as printed, which bounds it.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0))
    >>> run = FullyAdaptive(theta_norm=1.0).start(problem)
    >>> run.next().counts, run.next(size=7).counts
    (array([1, 0, 0]), array([3, 2, 2]))
    """

    name: ClassVar[str] = "fully-adaptive"
    theta_norm: float
    ridge: float = 1.0
    bound: Bound = "sharp"

    def __post_init__(self) -> None:
        check_ridge(self.theta_norm, self.ridge)
        check_choice("bound", self.bound, Bound)

    @classmethod
    def knowing(cls, arms: Arms, theta: Float[np.ndarray, " d"]) -> "FullyAdaptive":
        """Return the strategy that knows the norm of the true parameter, as in the paper.

        Examples
        --------
        >>> import finalist as fl
        >>> FullyAdaptive.knowing(fl.Arms.unstructured(2), np.array([2.0, -2.0])).theta_norm
        2.0
        """
        return cls(theta_norm=norm_in_span(arms, theta))

    def start(self, problem: Problem, seed: int = 0) -> "FullyAdaptiveRun":  # noqa: ARG002
        """Begin with a problem; the seed has no influence, nothing is random."""
        problem.refuse_unsupported(self.name, BEYOND)
        check_even(self.name, Units.of(problem), self.ridge)
        K = len(problem.arms)
        if K * (K - 1) // 2 > MAX_PAIRS:
            raise ProblemError(
                f"{K} arms have {K * (K - 1) // 2} pairs, too many to look at after every pull; "
                "use XYAdaptive, which looks at them once a phase."
            )
        return FullyAdaptiveRun(self, problem)


class FullyAdaptiveRun:
    """The strategy at work: the rewards, and everything that follows from them."""

    def __init__(self, settings: FullyAdaptive, problem: Problem) -> None:
        Z = problem.arms.coordinates
        units = self._units = Units.of(problem)
        longest = longest_squared(Z[units.measurable])
        self._Z, self._ridge = Z, settings.ridge * longest
        self._rewards = Statistics.empty(len(Z))  # but those after the last exact computation
        self._state = _state(_rule(settings, problem, units, longest), units)
        self._refresh()

    @property
    def verdict(self) -> Verdict:
        """What is certain after the pulls recorded so far."""
        pulls, left, winner = self._state.progress.tolist()
        survivors = tuple(self._state.alive[:left].tolist())
        return Verdict(None if winner < 0 else winner, survivors, pulls)

    @property
    def counts(self) -> Int[np.ndarray, " K"]:
        """The pulls of each arm so far."""
        return np.asarray(self._rewards.count + self._state.counts)

    def pooled(self) -> Statistics:
        """Return all rewards so far, summed up."""
        return with_latest(self._rewards, self._state.counts, self._state.sums)

    def next(self, size: int | None = None) -> Batch:
        """Return the next pull, or the next `size` pulls as they are without rewards between."""
        from finalist.strategies.per_pull.kernels import fully_adaptive as kernels

        check_size(size)
        refuse_decided(self.verdict)
        state, picks = self._state, np.empty(size or 1, dtype=np.int64)
        if len(picks) > 1:
            changed = ("cross", "leverage", "spread")
            state = state._replace(**{name: getattr(state, name).copy() for name in changed})
        kernels.plan(state, picks)
        return Batch(np.bincount(picks, minlength=len(self._Z)))

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over the rewards of any pulls, then drop the arms that a survivor dominates."""
        from finalist.strategies.per_pull.kernels import fully_adaptive as kernels

        check_record(self.verdict, len(self._Z), batch, rewards)
        if batch.size != 1:
            self._rewards.merge(rewards)
            self._state.progress[kernels.PULLS] += batch.size
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
        from finalist.strategies.per_pull.kernels import fully_adaptive as kernels

        size = rewards.spread

        def step(truth: Float[np.ndarray, " K"], noise: Float[np.ndarray, " n"]) -> int:
            return int(kernels.run(self._state, truth, size, rewards.binary, noise))

        return play_in_chunks(self, rewards, limit, step, self._refresh)

    def _refresh(self) -> None:
        """Compute the state anew from the rewards, so that rounding errors do not add up."""
        state, Z = self._state, self._Z
        take_latest(self._rewards, state.counts, state.sums)
        w = self._units.weights
        R, white, state.means[:], state.log_det[0] = ridge_fit(Z, self._rewards, self._ridge, w)
        state.cross[:] = white @ white.T
        state.leverage[:] = np.diag(state.cross)
        survivors = np.array(self.verdict.survivors)
        for p, i in enumerate(survivors[:-1], start=1):
            state.spread[i, survivors[p:]] = row_norms(Z[survivors[p:]] - Z[i], R)


def _rule(settings: FullyAdaptive, problem: Problem, units: Units, longest: float) -> "Rule":
    """Collect the constants of the radius (`bounds.adaptive_radius`, `determinant_radius`)."""
    from finalist.strategies.per_pull.kernels.fully_adaptive import Rule

    printed = settings.bound == "soare"
    # The proof of Prop. 2 needs 2 log(1/delta) <= d log(1/delta).
    d = max(problem.arms.rank, 2)
    L2 = longest_squared(units.rows(problem.arms.coordinates))
    return Rule(
        sign=float(problem.sign),
        epsilon=problem.epsilon,
        printed=printed,
        d=float(d),
        growth=L2 / longest / settings.ridge,
        confidence=-(d if printed else 2) * math.log(problem.delta),
        sigma=units.sigma,
        bias=math.sqrt(settings.ridge * longest) * settings.theta_norm,
    )


def _state(rule: "Rule", units: Units) -> "State":
    """Return the state before the first pull, but for what `_refresh` computes."""
    from finalist.strategies.per_pull.kernels.fully_adaptive import State

    K, who = len(units.weights), units.candidates
    alive = np.zeros(K, dtype=np.int64)
    alive[: len(who)] = who
    return State(
        rule=rule,
        weight=units.weights,
        cross=np.zeros((K, K)),
        leverage=np.zeros(K),
        spread=np.zeros((K, K)),
        means=np.zeros(K),
        log_det=np.zeros(1),
        counts=np.zeros(K, dtype=np.int64),
        sums=np.zeros(K),
        alive=alive,
        progress=np.array([0, len(who), who[0] if len(who) == 1 else -1]),
        row=np.zeros(K),
        after=np.zeros(K),
        total=np.zeros(K),
        out=np.zeros(K, dtype=np.bool_),
    )
