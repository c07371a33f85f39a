"""Static allocations: a sequence of pulls fixed in advance, and when to stop (Soare 2014, Sect. 4).

G-allocation makes max x'A^-1 x over the arms as small as possible (eq:g.optimal.design),
XY-allocation max y'A^-1 y over all differences y of two arms (eq:xy.optimal.design), V-allocation
the mean of x'A^-1 x (named in Sect. 7).

The rule is Soare 2014, eq:emp.stop.condition.2: stop at the first n at which some arm x has
radius(n) ||x - x'||_{A_n^-1} <= gap_n(x, x') + epsilon for every rival x'. Since the sequence is
fixed in advance, Prop. 1 holds for all n at once, and any subset of the pulls may be looked at:
every n in a simulation, the end of each batch in a study. Lemma 3 gives the guarantee; with
epsilon > 0 the returned arm is less than epsilon away from the best with the same probability.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from finalist.arms import Arms
from finalist.design import Design, Greedy, Rounded, optimal_design
from finalist.design.linalg import spanning_arms
from finalist.design.tasks import check_spanned
from finalist.inference.bounds import Bound, static_constants
from finalist.inference.information import information
from finalist.inference.statistics import Statistics
from finalist.problem import Feature, PerArm, Problem
from finalist.shapes import Float, Int
from finalist.strategies.about import check_choice
from finalist.strategies.phased.phase import Pulls
from finalist.strategies.protocol import (
    SUPPORTED,
    Allocation,
    Batch,
    Declared,
    Playable,
    RewardSource,
    Verdict,
    check_next,
    check_record,
    first_named,
)
from finalist.strategies.units import BEYOND

#: How close to optimal the design is.
DESIGN_TOLERANCE = 1e-6
#: Pulls that are made at once in a simulation, few at first so that short runs waste none;
#: memory does not grow with their number.
SMALLEST_CHUNK, CHUNK = 512, 65_536
#: The part of the pulls for directions in which the candidates do not differ.
SPANNING = 0.01
#: What a static allocation keeps small.
StaticCriterion = Literal["g", "xy", "v"]
#: What static allocations support.
STATIC_SUPPORTED: frozenset[Feature] = BEYOND | {"cost"}


@dataclass(frozen=True)
class StaticAllocation(Declared):
    """Settings of a static allocation; its criterion, what it keeps small, makes it a strategy.

    Parameters
    ----------
    bound : "sharp" or "soare"
        Constants of the confidence radius: the tightest valid ones, or as printed.
    allocation : "relaxed" or "greedy"
        The optimal design, rounded, or the paper's greedy rule.
    """

    criterion: ClassVar[StaticCriterion]
    name: ClassVar[str]
    bound: Bound = "sharp"
    allocation: Allocation = "relaxed"

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, Bound)
        check_choice("allocation", self.allocation, Allocation)

    @property
    def supports(self) -> frozenset[Feature]:
        """What a problem may need; the greedy rule supports only what the paper has."""
        return SUPPORTED if self.allocation == "greedy" else STATIC_SUPPORTED

    def start(self, problem: Problem, seed: int = 0) -> "StaticRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        who = f"{self.name} with allocation='greedy'" if self.allocation == "greedy" else self.name
        problem.refuse_unsupported(who, self.supports)
        if self.criterion == "v" and self.allocation == "relaxed":
            check_spanned(problem.arms)
        return StaticRun(
            problem, self.bound, lambda: static_sequence(problem, self.criterion, self.allocation)
        )


@dataclass(frozen=True)
class GAllocation(StaticAllocation):
    """G-allocation: estimate every arm equally well; `StaticAllocation` has the settings.

    Examples
    --------
    >>> import finalist as fl
    >>> run = GAllocation().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next(size=6).counts
    array([2, 2, 2])
    """

    name: ClassVar[str] = "g"
    criterion: ClassVar[StaticCriterion] = "g"


@dataclass(frozen=True)
class XYAllocation(StaticAllocation):
    """XY-allocation: estimate every difference of two arms equally well.

    `StaticAllocation` has the settings.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[1.0, 0.0], [0.9, 0.0], [0.8, 0.0], [0.0, 1.0]])
    >>> XYAllocation().start(fl.Problem(arms, noise=fl.Gaussian(1.0))).next(size=10).counts
    array([5, 0, 0, 5])
    """

    name: ClassVar[str] = "xy"
    criterion: ClassVar[StaticCriterion] = "xy"


@dataclass(frozen=True)
class VAllocation(StaticAllocation):
    """V-allocation: estimate the arms well on average; `StaticAllocation` has the settings.

    The greedy rule takes the mean in place of the largest variance.

    Examples
    --------
    >>> import finalist as fl
    >>> arms = fl.Arms([[1.0, 0.0], [0.9, 0.0], [0.8, 0.0], [0.0, 1.0]])
    >>> VAllocation().start(fl.Problem(arms, noise=fl.Gaussian(1.0))).next(size=10).counts
    array([6, 0, 0, 4])
    """

    name: ClassVar[str] = "v"
    criterion: ClassVar[StaticCriterion] = "v"


def static_sequence(problem: Problem, criterion: StaticCriterion, allocation: Allocation) -> Pulls:
    """Return a static allocation (Sect. 4): the optimal design, rounded, or the greedy one."""
    if allocation == "greedy":
        return Greedy(problem.arms, criterion)
    sigma = problem.noise.sigma if isinstance(problem.noise.sigma, tuple) else 1.0
    design = static_design(problem.arms, criterion, sigma, problem.cost)  # type: ignore[arg-type]
    return Rounded(_spanning(problem.arms, design.weights))


def _spanning(arms: Arms, weights: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
    """Return a design that can estimate everything that can be measured, as the rule requires.

    Where candidates differ in some directions only, a design may leave out the others; then a
    small share of the pulls goes there.
    """
    Z = arms.coordinates
    if arms.measurable.all() or information(Z, weights).rank == arms.rank:
        return weights
    usable = np.flatnonzero(arms.measurable)
    more = np.bincount(usable[spanning_arms(Z[usable])], minlength=len(Z))
    return np.asarray((1.0 - SPANNING) * weights + SPANNING * more / more.sum())


@lru_cache(maxsize=64)
def static_design(
    arms: Arms, criterion: StaticCriterion, sigma: PerArm = 1.0, cost: PerArm = 1.0
) -> Design:
    """Return the optimal design; the runs of a simulation share it."""
    return optimal_design(arms, criterion, DESIGN_TOLERANCE, sigma=sigma, cost=cost)


class StaticRule(NamedTuple):
    """Numbers of the stopping rule; the radius of n pulls is scale sqrt(log + 2 log n)."""

    rank: int
    scale: float
    log: float
    epsilon: float


class StaticState(NamedTuple):
    """What a run knows, changed in place; in units of the noise, where that differs.

    Attributes
    ----------
    Z, C : (K, r) and (m, r) arrays
        The arms that are pulled, and the candidates that are compared.
    counts : (K,) array of int
        The pulls of each arm.
    first, excess : (K,) arrays
        The sum of an arm's rewards is n first + excess: no digits are lost to large rewards.
    later, means : (K,) arrays
        The estimates when the rule was last evaluated, and the sums of residuals since then.
    limit, most : (K,) arrays
        How large |later| and the counts may become before the rule can hold (see `kernels`).
    """

    Z: Float[np.ndarray, "K r"]
    C: Float[np.ndarray, "m r"]
    counts: Int[np.ndarray, " K"]
    first: Float[np.ndarray, " K"]
    excess: Float[np.ndarray, " K"]
    later: Float[np.ndarray, " K"]
    means: Float[np.ndarray, " K"]
    limit: Float[np.ndarray, " K"]
    most: Int[np.ndarray, " K"]


class StaticRun(Playable):
    """A sequence of pulls fixed in advance, and the stopping rule, at work.

    Parameters
    ----------
    bound : "sharp" or "soare"
    sequence : callable
        Makes the sequence; called when pulls are asked for, never to record them.
    """

    def __init__(self, problem: Problem, bound: Bound, sequence: Callable[[], Pulls]) -> None:
        K = len(problem.arms)
        self._problem, self._make = problem, sequence
        self._sequence: Pulls | None = None
        self._ahead = np.empty(0, dtype=np.int64)  # made, not yet recorded
        self._who = np.flatnonzero(problem.arms.candidate)
        self._winner = int(self._who[0]) if len(self._who) == 1 else None
        scale = problem.scale
        assert scale is not None
        constants = static_constants(len(self._who), problem.delta, scale, bound)
        self._rule = StaticRule(problem.arms.rank, *constants, problem.epsilon)
        Z = np.array(problem.arms.coordinates)
        C = Z[self._who]
        # In units of the noise, where it differs: rewards are divided by this.
        self._unit = np.ones(K) if problem.precisions is None else problem.sigmas
        if problem.precisions is not None:
            Z /= self._unit[:, None]
        none, counts, most = np.zeros((5, K)), *np.zeros((2, K), dtype=np.int64)
        first, excess, later, means, limit = none
        self._state = StaticState(Z, C, counts, first, excess, later, means, limit, most)

    @property
    def verdict(self) -> Verdict:
        """What is certain now; no arm is ruled out before there is a winner."""
        return first_named(self._winner, self._problem, int(self._state.counts.sum()))

    def next(self, size: int | None = None) -> Batch:
        """Return the next pull, or the next `size` pulls of the sequence."""
        check_next(self.verdict, size)
        picks = self._upcoming(1 if size is None else size)
        return Batch(np.bincount(picks, minlength=len(self._unit)))

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over rewards and look whether the rule holds."""
        from finalist.strategies.static import kernels

        check_record(self.verdict, len(self._unit), batch, rewards)
        state, new = self._state, batch.counts > 0
        mean = self._problem.sign * rewards.mean[new] / self._unit[new]
        state.first[new] = np.where(state.counts[new] == 0, mean, state.first[new])
        state.excess[new] += batch.counts[new] * (mean - state.first[new])
        state.counts[:] += batch.counts
        state.most[:] = 0  # nothing is known about the pulls to come
        self._ahead = self._ahead[batch.size :]
        winner = kernels.look(state, self._rule)
        self._winner = None if winner < 0 else int(self._who[winner])

    def play(self, rewards: RewardSource, limit: int) -> Int[np.ndarray, " K"]:
        """Pull one by one until the rule first holds, or up to `limit` pulls; return them."""
        from finalist.strategies.static import kernels

        before, n = self._state.counts.copy(), int(self._state.counts.sum())
        while self._winner is None and n < limit:
            picks = self._upcoming(min(CHUNK, limit - n, max(n, SMALLEST_CHUNK)))
            values = self._problem.sign * rewards.pulls(picks) / self._unit[picks]
            used, winner = kernels.run(self._state, self._rule, picks, values)
            self._ahead = self._ahead[used:]
            self._winner = None if winner < 0 else int(self._who[winner])
            n += used
        return np.asarray(self._state.counts - before)

    def pooled(self) -> Statistics:
        """Return the sums of all rewards so far."""
        counts = self._state.counts
        mean = self._unit * (self._state.first + self._state.excess / np.maximum(counts, 1))
        return Statistics.of_batch(counts, self._problem.sign * mean * counts)

    def _upcoming(self, size: int) -> Int[np.ndarray, " n"]:
        """Return the next `size` pulls of the sequence, which goes on from what was recorded."""
        if self._sequence is None:
            self._sequence = self._make()
            _skip(self._sequence, int(self._state.counts.sum()))
        if len(self._ahead) < size:
            more = self._sequence.extend(size - len(self._ahead))
            self._ahead = np.concatenate([self._ahead, more])
        return self._ahead[:size]


def _skip(sequence: Pulls, pulls: int) -> None:
    while pulls > 0:
        sequence.extend(min(pulls, CHUNK))
        pulls -= CHUNK
