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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from finalist.design import rough_design
from finalist.design.linalg import spanning_arms
from finalist.errors import ProblemError
from finalist.inference.information import information
from finalist.inference.least_squares import weights_of
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.per_pull.base import play_in_chunks, refresh_due, take_latest, with_latest
from finalist.strategies.per_pull.ridge import RIDGES, check_between, longest_squared, ridge_fit
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
    from finalist.strategies.per_pull.kernels.lazy_ts import Rule, State

Threshold = Literal["proven", "heuristic"]

#: How close to optimal an allocation is, where the steps of `rough_design` suffice.
DESIGN_TOLERANCE = 1e-3
#: A gap below this part of the largest one counts as this: arms may look tied.
SMALLEST_GAP = 1e-9
#: A smaller growth computes allocations all the time.
GROWTHS = (1.01, 1e6)


@dataclass(frozen=True)
class LazyTS:
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
    ridge: float = 0.1
    growth: float = 2.0
    threshold: Threshold = "proven"

    def __post_init__(self) -> None:
        check_between("ridge", self.ridge, RIDGES)
        check_between("growth", self.growth, GROWTHS)
        check_choice("threshold", self.threshold, Threshold)

    @property
    def proven(self) -> bool:
        """Whether the probability of error is proven to be at most delta."""
        return self.threshold == "proven"

    def start(self, problem: Problem, seed: int = 0) -> "LazyTSRun":  # noqa: ARG002
        """Begin with a problem; the seed has no influence, nothing is random."""
        problem.refuse_unsupported(self.name, BEYOND)
        return LazyTSRun(self, problem)


class LazyTSRun:
    """The strategy at work: the rewards, and everything that follows from them."""

    def __init__(self, settings: LazyTS, problem: Problem) -> None:
        Z = np.array(problem.arms.coordinates)
        K, r = Z.shape
        units = self._units = Units.of(problem)
        rows = units.rows(Z)
        longest = longest_squared(Z[units.measurable])  # c
        spanning = spanning_arms(rows) if r > 0 else np.empty(0, dtype=np.int64)
        self._settings, self._ridge = settings, settings.ridge * longest
        self._problem = problem
        self._update_at = 0  # pulls at which the allocation is computed again
        self._design: tuple[int, Float[np.ndarray, " K"]] = (-1, np.zeros(K))  # for so many pulls
        self._rewards = Statistics.empty(K)  # but those after the last exact computation
        rule = _rule(settings, problem, units.sigma, rows[spanning], longest)
        self._state = _state(rule, Z, units, units.measurable[spanning])

    @property
    def verdict(self) -> Verdict:
        """What is certain now; this rule names a winner, it does not rule out arms before."""
        from finalist.strategies.per_pull.kernels.lazy_ts import PULLS, WINNER

        winner, pulls = int(self._state.progress[WINNER]), int(self._state.progress[PULLS])
        return first_named(None if winner < 0 else winner, self._problem, pulls)

    @property
    def counts(self) -> Int[np.ndarray, " K"]:
        """The pulls of each arm so far."""
        return np.array(self._state.pulled)

    def pooled(self) -> Statistics:
        """Return all rewards so far, summed up."""
        return with_latest(self._rewards, self._state.counts, self._state.sums)

    def next(self, size: int | None = None) -> Batch:
        """Return the next pull, or the next `size` pulls as they are without rewards between.

        The note has the number of forced pulls among them, and a new allocation if it is time for
        one: a replay needs no design.
        """
        from finalist.strategies.per_pull.kernels import lazy_ts as kernels

        check_size(size)
        refuse_decided(self.verdict)
        changed = ("A", "least", "total", "pulled", "progress")
        copies = {name: getattr(self._state, name).copy() for name in changed}
        state, picks = self._state._replace(**copies), np.empty(size or 1, dtype=np.int64)
        note: dict[str, Any] = {}
        if self._design_is_due():
            state = state._replace(weights=self._new_design())
            note["allocation"] = state.weights.tolist()
        kernels.plan(state, picks)
        forced = state.progress[kernels.FORCED] - self._state.progress[kernels.FORCED]
        note["forced"] = int(forced)
        return Batch(np.bincount(picks, minlength=len(state.Z)), note)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over the rewards of any pulls, then look whether the rule holds."""
        from finalist.strategies.per_pull.kernels import lazy_ts as kernels

        check_record(self.verdict, len(self._state.Z), batch, rewards)
        state, pulls = self._state, self.verdict.pulls
        allocation, forced = _read_note(batch)
        if allocation is not None:
            self._adopt(allocation)
        state.total[:] += max(batch.size - (pulls == 0), 0) * state.weights
        state.progress[kernels.FORCED] += forced
        if batch.size == 1:
            arm = int(batch.counts.argmax())
            self._take(arm, float(rewards.mean[arm]))
            return
        self._rewards.merge(rewards)
        state.pulled[:] += batch.counts
        state.progress[kernels.PULLS] += batch.size
        self._refresh()
        kernels.examine(state)

    def play(self, rewards: RewardSource, limit: int) -> Int[np.ndarray, " K"]:
        """Pull until there is a winner or `limit` pulls are made in all; return the pulls.

        The same pulls as with `next` and `record` one by one; only the generator of the rewards
        is further on after the last one, because noise is drawn ahead.
        """
        from finalist.strategies.per_pull.kernels import lazy_ts as kernels

        size = rewards.spread

        def step(truth: Float[np.ndarray, " K"], noise: Float[np.ndarray, " n"]) -> int:
            if self._state.progress[kernels.SPANS] == 0:
                self._first_pull(truth, size, rewards.binary, float(noise[0]))
                return 1
            if self._design_is_due():
                self._adopt(self._new_design())
            room = self._update_at - self.verdict.pulls
            return int(kernels.run(self._state, truth, size, rewards.binary, noise[:room]))

        return play_in_chunks(self, rewards, limit, step, self._refresh)

    def _first_pull(
        self,
        truth: Float[np.ndarray, " K"],
        size: Float[np.ndarray, " K"],
        binary: bool,
        noise: float,
    ) -> None:
        """Play one pull while the pulled arms do not span."""
        batch, one = self.next(), Statistics.empty(len(truth))
        arm = int(batch.counts.argmax())
        one.add(arm, float(noise < truth[arm]) if binary else truth[arm] + size[arm] * noise)
        self.record(batch, one)

    def _take(self, arm: int, reward: float) -> None:
        from finalist.strategies.per_pull.kernels import lazy_ts as kernels

        kernels.absorb(self._state, arm, reward)
        if self._state.progress[kernels.SPANS] == 0:
            self._refresh()
        kernels.examine(self._state)
        if refresh_due(self.verdict.pulls):
            self._refresh()

    def _design_is_due(self) -> bool:
        from finalist.strategies.per_pull.kernels.lazy_ts import SPANS

        return bool(self._state.progress[SPANS]) and self.verdict.pulls >= self._update_at

    def _new_design(self) -> Float[np.ndarray, " K"]:
        """Return the allocation for the estimate now; asked again, the same."""
        pulls, rule = self.verdict.pulls, self._state.rule
        if self._design[0] != pulls:
            Z, units = self._state.Z, self._units
            gaps = rule.sign * self._state.means[units.candidates]
            gaps = gaps.max() - gaps + rule.epsilon
            weights = np.zeros(len(Z))
            weights[units.measurable] = optimal_weights(Z[units.candidates], gaps, units.rows(Z))
            self._design = (pulls, weights)
        return self._design[1]

    def _adopt(self, weights: Float[np.ndarray, " K"]) -> None:
        """Begin to track an allocation."""
        pulls = self.verdict.pulls
        self._state.weights[:] = weights
        self._update_at = max(pulls + 1, math.ceil(self._settings.growth * pulls))

    def _refresh(self) -> None:
        """Compute the state anew from the rewards, so that rounding errors do not add up."""
        from finalist.strategies.per_pull.kernels.lazy_ts import BEST, SPANS

        state, Z, r = self._state, self._state.Z, self._state.Z.shape[1]
        take_latest(self._rewards, state.counts, state.sums)
        n = weights_of(self._rewards.count, self._units.weights)
        state.A[:] = Z.T @ (n[:, None] * Z)
        info = information(Z, n)
        if info.rank < r:
            return
        R = info.inverse_root
        state.inverse[:] = R.T @ R
        state.means[:] = (Z @ R.T) @ (R @ (Z.T @ (n * self._rewards.mean)))
        damped = ridge_fit(Z, self._rewards, self._ridge, self._units.weights)
        state.damped[:], state.log_det[0] = damped.R.T @ damped.R, damped.log_det
        state.progress[[SPANS, BEST]] = 1, -1


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


def _rule(
    settings: LazyTS,
    problem: Problem,
    sigma: float,
    basis: Float[np.ndarray, "r r"],
    longest: float,
) -> "Rule":
    """Collect the constants of the two rules; `basis` are the rows of A_0."""
    from finalist.strategies.per_pull.kernels.lazy_ts import Rule

    gram = basis.T @ basis
    smallest = float(np.linalg.eigvalsh(gram)[0]) if len(basis) > 0 else 0.0
    return Rule(
        sign=float(problem.sign),
        epsilon=problem.epsilon,
        proven=settings.proven,
        scale=(1.0 + settings.ridge if settings.proven else 1.0) * sigma**2,
        confidence=-math.log(problem.delta),
        force=smallest / math.sqrt(max(len(basis), 1)),
        enough=longest,
    )


def _state(
    rule: "Rule", Z: Float[np.ndarray, "K r"], units: Units, basis: Int[np.ndarray, " r"]
) -> "State":
    """Return the state before the first pull."""
    from finalist.strategies.per_pull.kernels.lazy_ts import State

    (K, r), who = Z.shape, units.candidates
    weights = np.zeros(K)
    weights[basis] = 1.0 / max(r, 1)
    return State(
        rule=rule,
        Z=Z,
        weight=units.weights,
        who=who,
        basis=basis,
        A=np.zeros((r, r)),
        inverse=np.zeros((r, r)),
        damped=np.zeros((r, r)),
        log_det=np.zeros(1),
        least=np.zeros(1),
        means=np.zeros(K),
        spread=np.zeros(K),
        weights=weights,
        total=np.zeros(K),
        pulled=np.zeros(K, dtype=np.int64),
        counts=np.zeros(K, dtype=np.int64),
        sums=np.zeros(K),
        progress=np.array([0, 0, 0, -1, who[0] if len(who) == 1 else -1]),
        product=np.zeros(r),
        row=np.zeros(K),
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
