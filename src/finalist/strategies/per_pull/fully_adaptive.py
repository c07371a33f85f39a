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
from typing import Any, ClassVar

import numpy as np

from finalist.inference.bounds import Bound
from finalist.inference.information import row_norms
from finalist.problem import Problem
from finalist.strategies.about import check_choice
from finalist.strategies.per_pull.base import PerPullRun, blank, progress_of
from finalist.strategies.per_pull.ridge import Ridge, RidgeStrategy, check_pairs, longest_squared
from finalist.strategies.protocol import Verdict


@dataclass(frozen=True)
class FullyAdaptive(RidgeStrategy):
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
    bound: Bound = "sharp"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("bound", self.bound, Bound)

    def start(self, problem: Problem, seed: int = 0) -> "FullyAdaptiveRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        self._check(problem)
        check_pairs(len(problem.arms), "look at after every pull")
        return FullyAdaptiveRun(self, problem)


class FullyAdaptiveRun(PerPullRun):
    """The strategy at work: the rewards, and everything that follows from them."""

    kernels = "fully_adaptive"
    planned = ("cross", "leverage", "spread")

    def __init__(self, settings: FullyAdaptive, problem: Problem) -> None:
        self._ridge = Ridge.of(problem, settings.ridge)
        super().__init__(problem, _state(settings, problem, self._ridge))
        self._refresh()

    @property
    def verdict(self) -> Verdict:
        """What is certain after the pulls recorded so far."""
        left = int(self._state.progress[self._loop.LEFT])
        return Verdict(self._winner, tuple(self._state.alive[:left].tolist()), self._pulls)

    def _refresh(self) -> None:
        state, Z, rewards = self._state, self._ridge.Z, self._pool()
        R, white, state.means[:], state.log_det[0] = self._ridge.fit(rewards)
        state.cross[:] = white @ white.T
        state.leverage[:] = np.diag(state.cross)
        survivors = np.array(self.verdict.survivors)
        for p, i in enumerate(survivors[:-1], start=1):
            state.spread[i, survivors[p:]] = row_norms(Z[survivors[p:]] - Z[i], R)


def _state(settings: FullyAdaptive, problem: Problem, ridge: Ridge) -> Any:
    """Return the state before the first pull, except for what `_refresh` fills in.

    The constants are those of the radius (`bounds.adaptive_radius`, `determinant_radius`).
    """
    from finalist.strategies.per_pull.kernels.fully_adaptive import Rule, State

    printed, who = settings.bound == "soare", ridge.units.candidates
    # The proof of Prop. 2 needs 2 log(1/delta) <= d log(1/delta).
    d = max(problem.arms.rank, 2)
    rule = Rule(
        sign=float(problem.sign),
        epsilon=problem.epsilon,
        printed=printed,
        d=float(d),
        growth=longest_squared(ridge.rows) / ridge.longest / settings.ridge,
        confidence=-(d if printed else 2) * math.log(problem.delta),
        sigma=ridge.units.sigma,
        bias=math.sqrt(ridge.eta) * settings.theta_norm,
    )
    alive = np.zeros(len(problem.arms), dtype=np.int64)
    alive[: len(who)] = who
    progress = progress_of(who, len(who))
    return blank(
        State, problem, rule=rule, weight=ridge.units.weights, alive=alive, progress=progress
    )
