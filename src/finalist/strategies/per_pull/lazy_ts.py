"""Lazy track-and-stop: pull by the allocation that is best if the estimate is true.

Jedra and Proutiere 2020, "Optimal best-arm identification in linear bandits", Alg. 1.

**Sampling.** A_0 is a set of r spanning arms and f(t) = lambda_min(sum over A_0 of a a')
sqrt(t/r). While lambda_min(A_t) < f(t) the arms of A_0 have a turn, one after the other. Otherwise
the next pull is the arm with the smallest N_a(t) - sum_{s <= t} w_a(s), among those with some
weight. w(t) is the design that minimises max_b ||a - b||^2_{A(w)^-1} / gap_b^2 for the arm a that
looks best and the estimated gaps. It may be old: what their proof needs is that w(t) comes ever
closer to the optimal designs of some estimate theta_s, s >= l(t), where l(t) grows without bound.
Here it is computed again when the pulls have grown by a factor (t = r, 2r, 4r, ...), to a
certified gap of 0.1 % with hundreds of arms and a few per cent with thousands. Before the pulled
arms span it is uniform on A_0.

**Stopping.** With Z(t) = min_b gap_b^2 / (2 ||a - b||^2_{A^-1}), the first time at which

    Z(t) > beta(t) = (1 + u) sigma^2 log(det(A / (u c) + I)^{1/2} / delta)  and  A >= c I,

c being the largest squared norm of an arm and u any number fixed in advance. Why it is right: by
the method of mixtures with precision u c I (Abbasi-Yadkori, Pal and Szepesvari 2011, Thm. 1) the
noise S = sum of a_s eta_s has, with probability 1 - delta and for all t at once, ||S||^2_{(A + u c
I)^-1} <= 2 sigma^2 log(det(A / (u c) + I)^{1/2} / delta). From A >= c I follows A + u c I <= (1 +
u) A, so ||theta_hat - theta||^2_A = ||S||^2_{A^-1} <= 2 beta(t). If an arm b were better than a by
more than epsilon, then 0 <= gap_b + epsilon < (a - b)'(theta_hat - theta) <= ||a - b||_{A^-1}
sqrt(2 beta), so that (gap_b + epsilon)^2 / (2 ||a - b||^2_{A^-1}) <= beta. The rule with this in
place of Z(t) therefore names an arm within epsilon of the best one; the paper has epsilon = 0. The
allocation uses gap_b + epsilon as well. The threshold needs no bound on the parameter and no
number of arms, and holds for sub-Gaussian noise.

Arms that are measured and candidates may differ: A_0 and w are of the arms that can be pulled, a
and b candidates. Where the noise differs, rows x sigma / sigma_x take the place of the pulled arms,
in A, A_0, f(t) and the design, but not in c, which may be any number (`units`). Their noise has the
size sigma, and nothing above asks which rows were pulled.

Everything happens in span coordinates (`Arms.coordinates`), in which the arms are well scaled: the
rules then do not depend on the units of the features.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from finalist.design import rough_design
from finalist.design.linalg import spanning_arms
from finalist.errors import ProblemError
from finalist.inference.information import information
from finalist.inference.least_squares import weights_of
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.about import check_between, check_choice
from finalist.strategies.per_pull.base import PerPullRun, Thresholded, blank, progress_of
from finalist.strategies.per_pull.ridge import RIDGES, Ridge
from finalist.strategies.protocol import Batch, RewardSource
from finalist.strategies.units import BEYOND

Threshold = Literal["proven", "heuristic"]

#: How close to optimal an allocation is, where the steps of `rough_design` suffice.
DESIGN_TOLERANCE = 1e-3
#: A gap below this part of the largest one counts as this: arms may look tied.
SMALLEST_GAP = 1e-9
#: A smaller growth computes allocations all the time.
GROWTHS = (1.01, 1e6)


@dataclass(frozen=True)
class LazyTS(Thresholded):
    """The strategy with its settings.

    Parameters
    ----------
    ridge : float
        The free number u of the threshold: u c is the ridge of the proof. Small values are good
        for long runs; every value keeps the promise.
    growth : float
        By which factor the pulls grow until the allocation is computed again.
    threshold : "proven" or "heuristic"
        The threshold of the paper, or sigma^2 log((1 + log t) / delta), which many papers use in
        experiments and for which there is no proof.

    Examples
    --------
    >>> import finalist as fl
    >>> run = LazyTS().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next().counts, run.next(size=7).counts
    (array([1, 0, 0]), array([3, 2, 2]))
    """

    name: ClassVar[str] = "lazy-ts"
    supports = BEYOND
    ridge: float = 0.1
    growth: float = 2.0
    threshold: Threshold = "proven"

    def __post_init__(self) -> None:
        check_between("ridge", self.ridge, RIDGES)
        check_between("growth", self.growth, GROWTHS)
        check_choice("threshold", self.threshold, Threshold)

    def start(self, problem: Problem, seed: int = 0) -> "LazyTSRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        problem.refuse_unsupported(self.name, self.supports)
        return LazyTSRun(self, problem)


class LazyTSRun(PerPullRun):
    """The strategy at work: the rewards, and everything that follows from them."""

    kernels = "lazy_ts"
    planned = ("A", "least", "total", "pulled", "progress")

    def __init__(self, settings: LazyTS, problem: Problem) -> None:
        self._settings, self._ridge = settings, Ridge.of(problem, settings.ridge)
        self._update_at = 0  # pulls at which the allocation is computed again
        # The latest allocation, and after how many pulls it was computed.
        self._design: tuple[int, Float[np.ndarray, " K"]] = (-1, np.zeros(len(problem.arms)))
        super().__init__(problem, _state(settings, problem, self._ridge))

    @property
    def _spans(self) -> bool:
        """Whether the arms pulled so far span all arms."""
        return bool(self._state.progress[self._loop.SPANS])

    def _plan(self, state: Any, picks: Int[np.ndarray, " n"]) -> Mapping[str, Any]:
        """Fill `picks`; return the number of forced pulls, and a new allocation if one is due.

        With these in the note of the batch a replay needs no design.
        """
        note: dict[str, Any] = {}
        if self._design_is_due():
            state = state._replace(weights=self._new_design())
            note["allocation"] = state.weights.tolist()
        before = int(state.progress[self._loop.FORCED])
        self._loop.plan(state, picks)
        note["forced"] = int(state.progress[self._loop.FORCED]) - before
        return note

    def _follow(self, batch: Batch) -> None:
        allocation, forced = _read_note(batch)
        if allocation is not None:
            self._adopt(allocation)
        state = self._state
        state.total[:] += max(batch.size - (self._pulls == 0), 0) * state.weights
        state.progress[self._loop.FORCED] += forced

    def _absorb(self, arm: int, reward: float) -> None:
        super()._absorb(arm, reward)
        if not self._spans:
            self._refresh()

    def _pull(
        self, rewards: RewardSource, truth: Float[np.ndarray, " K"], noise: Float[np.ndarray, " n"]
    ) -> int:
        if not self._spans:
            batch, one = self.next(), Statistics.empty(len(truth))
            arm = int(batch.counts.argmax())
            reward = truth[arm] + rewards.spread[arm] * noise[0]
            one.add(arm, float(noise[0] < truth[arm]) if rewards.binary else float(reward))
            self.record(batch, one)
            return 1
        if self._design_is_due():
            self._adopt(self._new_design())
        return super()._pull(rewards, truth, noise[: self._update_at - self._pulls])

    def _design_is_due(self) -> bool:
        return self._spans and self._pulls >= self._update_at

    def _new_design(self) -> Float[np.ndarray, " K"]:
        """Return the allocation for the estimate now; the same one if it is asked for again."""
        rule, units, Z = self._state.rule, self._ridge.units, self._ridge.Z
        if self._design[0] != self._pulls:
            gaps = rule.sign * self._state.means[units.candidates]
            gaps = gaps.max() - gaps + rule.epsilon
            weights = np.zeros(len(Z))
            weights[units.measurable] = optimal_weights(Z[units.candidates], gaps, self._ridge.rows)
            self._design = (self._pulls, weights)
        return self._design[1]

    def _adopt(self, weights: Float[np.ndarray, " K"]) -> None:
        """Begin to track an allocation."""
        self._state.weights[:] = weights
        self._update_at = max(self._pulls + 1, math.ceil(self._settings.growth * self._pulls))

    def _refresh(self) -> None:
        state, Z, rewards = self._state, self._ridge.Z, self._pool()
        state.pulled[:] = rewards.count
        n = weights_of(rewards.count, self._ridge.units.weights)
        state.A[:] = Z.T @ (n[:, None] * Z)
        info = information(Z, n)
        if info.rank < Z.shape[1]:
            return
        R = info.inverse_root
        state.inverse[:] = R.T @ R
        state.means[:] = (Z @ R.T) @ (R @ (Z.T @ (n * rewards.mean)))
        damped = self._ridge.fit(rewards)
        state.damped[:], state.log_det[0] = damped.R.T @ damped.R, damped.log_det
        state.progress[[self._loop.SPANS, self._loop.BEST]] = 1, -1


def optimal_weights(
    Z: Float[np.ndarray, "m r"],
    gaps: Float[np.ndarray, " m"],
    rows: Float[np.ndarray, "k r"] | None = None,
) -> Float[np.ndarray, " k"]:
    """Return the design that minimises max_b ||a - b||^2_{A(w)^-1} / gap_b^2.

    Parameters
    ----------
    Z : (m, r) array
        Candidates in span coordinates.
    gaps : (m,) array
        By how much each of them is worse than the best one, a, the first with the smallest gap.
    rows : (k, r) array, optional
        What is pulled, in units of its noise; the candidates unless given.

    Returns
    -------
    (k,) array
        Weights that sum to 1; an arm that is of no use has 1e-9 or less.

    Examples
    --------
    >>> optimal_weights(np.eye(2), np.array([0.0, 0.5])).round(3)
    array([0.5, 0.5])
    """
    rows, best = Z if rows is None else rows, int(gaps.argmin())
    Y, gap = np.delete(Z[best] - Z, best, axis=0), np.delete(gaps, best)
    differ = np.abs(Y).max(axis=1) > 0.0  # arms may differ by less than rounding
    if not differ.any():
        return np.full(len(rows), 1.0 / len(rows))
    Y, gap = Y[differ], gap[differ]
    largest = gap.max() if gap.max() > 0.0 else 1.0
    Y = Y / np.maximum(gap / largest, SMALLEST_GAP)[:, None]
    return rough_design(rows, Y, DESIGN_TOLERANCE)[0]


def _state(settings: LazyTS, problem: Problem, ridge: Ridge) -> Any:
    """Return the state before the first pull."""
    from finalist.strategies.per_pull.kernels.lazy_ts import Rule, State

    (K, r), units, rows = ridge.Z.shape, ridge.units, ridge.rows
    spanning = spanning_arms(rows) if r > 0 else np.empty(0, dtype=np.int64)
    basis, weights = rows[spanning], np.zeros(K)
    weights[units.measurable[spanning]] = 1.0 / max(r, 1)
    smallest = float(np.linalg.eigvalsh(basis.T @ basis)[0]) if len(basis) > 0 else 0.0
    rule = Rule(
        sign=float(problem.sign),
        epsilon=problem.epsilon,
        proven=settings.proven,
        scale=(1.0 + settings.ridge if settings.proven else 1.0) * ridge.units.sigma**2,
        confidence=-math.log(problem.delta),
        force=smallest / math.sqrt(max(len(basis), 1)),
        enough=ridge.longest,
    )
    who = units.candidates
    return blank(
        State,
        problem,
        rule=rule,
        **ridge.arrays,
        basis=units.measurable[spanning],
        weights=weights,
        progress=progress_of(who, 0, 0, -1),
    )


def _read_note(batch: Batch) -> tuple[Float[np.ndarray, " K"] | None, int]:
    """Return the new allocation in a note, if any, and the number of forced pulls."""
    forced, given = batch.note.get("forced", 0), batch.note.get("allocation")
    if not (isinstance(forced, int) and forced >= 0):  # of pulls asked for: some may be lost
        raise ProblemError(f"the note says {forced!r} forced pulls; it is a number, 0 or more.")
    if given is None:
        return None, forced
    weights = np.asarray(given, dtype=float)
    if weights.shape != batch.counts.shape or not (0.0 <= weights.min() <= weights.max() <= 1.0):
        raise ProblemError("the allocation in the note is not a weight from 0 to 1 for each arm.")
    return weights, forced
