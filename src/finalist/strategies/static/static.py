"""What the static strategies share: a sequence of pulls fixed in advance, and when to stop.

The rule is Soare 2014, eq:emp.stop.condition.2: stop at the first n at which some arm x has
radius(n) ||x - x'||_{A_n^-1} <= gap_n(x, x') + epsilon for every rival x'. Since the sequence is
fixed in advance, Prop. 1 holds for all n at once, and any subset of the pulls may be looked at:
in a simulation every n is, in a study the end of each batch. Lemma 3 gives the guarantee; with
epsilon > 0 the returned arm is less than epsilon away from the best with the same probability.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.design import Design, Greedy, Rounded, optimal_design
from finalist.design.linalg import spanning_arms
from finalist.design.tasks import check_spanned
from finalist.inference.bounds import Bound, static_constants
from finalist.inference.information import information
from finalist.inference.statistics import Statistics
from finalist.problem import Feature, Problem
from finalist.problem.noise import PerArm
from finalist.strategies.phased.phase import Pulls
from finalist.strategies.protocol import (
    SUPPORTED,
    Allocation,
    Batch,
    RewardSource,
    Verdict,
    check_choice,
    check_record,
    check_size,
    first_named,
    refuse_decided,
)

#: How close to optimal the design is.
DESIGN_TOLERANCE = 1e-6
#: Pulls that are made at once in a simulation, few at first so that short runs waste none;
#: memory does not grow with their number.
SMALLEST_CHUNK, CHUNK = 512, 65_536
#: The part of the pulls for directions in which the candidates do not differ.
SPANNING = 0.01
#: What a static allocation keeps small.
StaticCriterion = Literal["g", "xy", "v"]


#: What they carry out; the greedy rule only what the paper has.
STATIC_SUPPORTED: frozenset[Feature] = SUPPORTED | {"sigma per arm", "other candidates", "cost"}


@dataclass(frozen=True)
class StaticAllocation:
    """Settings of a static allocation; what it keeps small makes it a strategy."""

    criterion: ClassVar[StaticCriterion]
    name: ClassVar[str]
    bound: Bound = "sharp"
    allocation: Allocation = "relaxed"

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, Bound)
        check_choice("allocation", self.allocation, Allocation)

    def start(self, problem: Problem, seed: int = 0) -> "StaticRun":  # noqa: ARG002
        """Begin with a problem; the seed has no influence, nothing is random."""
        greedy = self.allocation == "greedy"
        who = f"{self.name} with allocation='greedy'" if greedy else self.name
        problem.refuse_unsupported(who, SUPPORTED if greedy else STATIC_SUPPORTED)
        if self.criterion == "v" and not greedy:
            check_spanned(problem.arms)
        return StaticRun(
            problem, self.bound, lambda: static_sequence(problem, self.criterion, self.allocation)
        )


def static_sequence(problem: Problem, criterion: StaticCriterion, allocation: Allocation) -> Pulls:
    """Return a static allocation (Sect. 4): the optimal design, rounded, or the greedy one."""
    if allocation == "greedy":
        return Greedy(problem.arms, criterion)
    sigma = problem.noise.sigma if isinstance(problem.noise.sigma, tuple) else 1.0
    design = static_design(problem.arms, criterion, sigma, problem.cost)  # type: ignore[arg-type]
    return Rounded(_spanning(problem.arms, design.weights))


def _spanning(arms: Arms, weights: Float[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
    """Return a design that can estimate all that can be measured, as the rule asks for.

    Where candidates differ in some directions only, a design need not measure the others; a small
    share of the pulls then does.
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


class StaticRun:
    """A sequence of pulls fixed in advance, and the stopping rule, at work.

    Parameters
    ----------
    problem : Problem
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
        self._constants = static_constants(len(self._who), problem.delta, scale, bound)
        self._Z = np.array(problem.arms.coordinates)
        self._C = self._Z[self._who]
        # In units of the noise, where it differs: rewards are divided by this.
        self._unit = np.ones(K) if problem.precisions is None else problem.sigmas
        if problem.precisions is not None:
            self._Z /= self._unit[:, None]
        # Sums of rewards are n_i first_i + excess_i: no digits are lost to large rewards.
        self._counts: Int[np.ndarray, " K"] = np.zeros(K, dtype=np.int64)
        self._first, self._excess = np.zeros(K), np.zeros(K)
        # Since the rule was evaluated: residuals, the estimates then, limits (see kernels).
        self._later, self._means, self._limit = np.zeros(K), np.zeros(K), np.zeros(K)
        self._most: Int[np.ndarray, " K"] = np.zeros(K, dtype=np.int64)

    @property
    def verdict(self) -> Verdict:
        """What is certain now; this rule names a winner, it does not rule out arms before."""
        return first_named(self._winner, self._problem, int(self._counts.sum()))

    def next(self, size: int | None = None) -> Batch:
        """Return the next pull, or the next `size` pulls of the sequence."""
        check_size(size)
        refuse_decided(self.verdict)
        picks = self._upcoming(1 if size is None else size)
        return Batch(np.bincount(picks, minlength=len(self._counts)))

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over rewards and look whether the rule holds."""
        check_record(self.verdict, len(self._Z), batch, rewards)
        new = batch.counts > 0
        mean = self._problem.sign * rewards.mean[new] / self._unit[new]
        self._first[new] = np.where(self._counts[new] == 0, mean, self._first[new])
        self._excess[new] += batch.counts[new] * (mean - self._first[new])
        self._counts += batch.counts
        self._most[:] = 0  # nothing is known about the pulls to come
        self._ahead = self._ahead[batch.size :]
        self._evaluate()

    def play(self, rewards: RewardSource, limit: int) -> Int[np.ndarray, " K"]:
        """Pull one by one until the rule first holds, or up to `limit` pulls; return them."""
        from finalist.strategies.static import kernels

        before, n = self._counts.copy(), int(self._counts.sum())
        while self._winner is None and n < limit:
            picks = self._upcoming(min(CHUNK, limit - n, max(n, SMALLEST_CHUNK)))
            values = self._problem.sign * rewards.pulls(picks) / self._unit[picks]
            state = (self._Z, self._C, self._counts, self._first, self._excess)
            watch = (self._later, self._means, self._limit, self._most)
            rule = (self._problem.arms.rank, *self._constants, self._problem.epsilon)
            used, winner = kernels.run(*state, *watch, *rule, picks, values)
            self._ahead = self._ahead[used:]
            self._winner = None if winner < 0 else int(self._who[winner])
            n += used
        return np.asarray(self._counts - before)

    def pooled(self) -> Statistics:
        """Return all rewards so far, summed up."""
        mean = self._unit * (self._first + self._excess / np.maximum(self._counts, 1))
        return Statistics.of_batch(self._counts, self._problem.sign * mean * self._counts)

    def _evaluate(self) -> None:
        """Look whether the rule holds for the rewards recorded so far."""
        from finalist.strategies.static import kernels

        state = (self._Z, self._C, self._counts, self._first, self._excess)
        watch = (self._later, self._means, self._limit, self._most)
        winner = kernels.look(*state, *watch, *self._constants, self._problem.epsilon)
        self._winner = None if winner < 0 else int(self._who[winner])

    def _upcoming(self, size: int) -> Int[np.ndarray, " n"]:
        """Return the next `size` pulls of the sequence, which goes on from what was recorded."""
        if self._sequence is None:
            self._sequence = self._make()
            _skip(self._sequence, int(self._counts.sum()))
        if len(self._ahead) < size:
            more = self._sequence.extend(size - len(self._ahead))
            self._ahead = np.concatenate([self._ahead, more])
        return self._ahead[:size]


def _skip(sequence: Pulls, pulls: int) -> None:
    while pulls > 0:
        sequence.extend(min(pulls, CHUNK))
        pulls -= CHUNK
