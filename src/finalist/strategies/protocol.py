"""What a strategy is: an object that says what to pull next and what is certain so far.

A strategy is a frozen value with its settings (`XYAdaptive(alpha=0.4)`). `start` gives a `Run` for
one problem. A run is a deterministic function of the problem, the settings, the seed and the
batches recorded so far; it draws no rewards itself, so the same object serves a simulation and a
real study:

    run = strategy.start(problem, seed=1)
    while not run.verdict.decided:
        batch = run.next()
        run.record(batch, rewards_of(batch))

`next` decides and changes nothing; `record` changes the run by the batch and its rewards alone.
A study can therefore be replayed from its log with `record` only, without solving a design again.

Strategies that look after every pull have one more method, `play`, which simulates many pulls at
once in a compiled loop, with the same result as `next` and `record` pull by pull.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import Feature, Problem

#: What the strategies of the paper support beyond its setting.
SUPPORTED: frozenset[Feature] = frozenset({"minimise", "epsilon-best", "sub-gaussian", "bernoulli"})
#: What a winner is: wrong with probability at most delta; the recommendation after a fixed budget,
#: without a guarantee; or the best with probability at least 1 - delta if it leads every other arm
#: by epsilon or more, and nothing is proven of smaller leads (an indifference zone).
Promise = Literal["confidence", "budget", "zone"]
#: How a static allocation is made: the optimal design, rounded, or the paper's greedy rule.
Allocation = Literal["relaxed", "greedy"]


@dataclass(frozen=True, eq=False)
class Batch:
    """An allocation that is pulled in full before its rewards are looked at.

    Attributes
    ----------
    counts : (K,) array of int
        How often each arm is pulled, read-only.
    note : mapping
        Whatever else was decided for it, as JSON values.
    order : (n,) array of int, optional
        The arms in the order in which to pull them, where that matters.
    """

    counts: Int[np.ndarray, " K"]
    note: Mapping[str, Any] = field(default_factory=dict)
    order: Int[np.ndarray, " n"] | None = None

    def __post_init__(self) -> None:
        self.counts.flags.writeable = False

    @cached_property
    def size(self) -> int:
        """Number of pulls."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Verdict:
    """What is certain at one moment.

    Attributes
    ----------
    winner : int or None
        The arm that is returned; None while the strategy goes on.
    survivors : tuple of int
        Arms that may still be the best; the best one is among them with probability 1 - delta,
        if the strategy promises that (`guaranteed`).
    pulls : int
        Pulls so far.
    winners : tuple of int
        All arms that are returned, the best by the estimate first; more than one where the m best
        are asked for.
    """

    winner: int | None
    survivors: tuple[int, ...]
    pulls: int
    winners: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.winner is not None and not self.winners:
            object.__setattr__(self, "winners", (self.winner,))

    @property
    def decided(self) -> bool:
        """Whether there is a winner."""
        return self.winner is not None


def first_named(winner: int | None, problem: Problem, pulls: int) -> Verdict:
    """Return the verdict of a rule that names a winner and rules out no arm before that.

    Where good enough suffices, a winner need not be the best arm: then no arm is ruled out at all.

    Examples
    --------
    >>> import finalist as fl
    >>> first_named(2, fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)), 10).survivors
    (2,)
    """
    if winner is not None and problem.epsilon == 0:
        return Verdict(winner, (winner,), pulls)
    return Verdict(winner, _candidates(problem.arms), pulls)


@lru_cache(maxsize=32)
def _candidates(arms: Arms) -> tuple[int, ...]:
    return tuple(np.flatnonzero(arms.candidate).tolist())


@runtime_checkable
class Run(Protocol):
    """A strategy at work on one problem."""

    @property
    def verdict(self) -> Verdict:
        """What is certain now."""
        ...

    def next(self, size: int | None = None) -> Batch:
        """Return the next batch; the same one until it is recorded.

        Parameters
        ----------
        size : int, optional
            The most pulls that can be made before the rewards are looked at, as for a plate of 96.
            Without it the strategy chooses the size.
        """
        ...

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over all rewards of a batch; single ones are in `BatchResults.value` if known."""
        ...


@runtime_checkable
class RewardSource(Protocol):
    """Where a simulated run takes rewards from, pull by pull; `DrawnRewards` is one.

    A reward is `means[arm] + spread[arm] * noise`, or `noise < means[arm]` where it is binary.
    """

    @property
    def means(self) -> Float[np.ndarray, " K"]:
        """The expected reward of each arm."""
        ...

    @property
    def spread(self) -> Float[np.ndarray, " K"]:
        """What the noise of a pull of each arm is multiplied by."""
        ...

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 and 1."""
        ...

    def noise(self, n: int) -> Float[np.ndarray, " n"]:
        """Draw the noise of n pulls of any arms."""
        ...

    def pulls(self, arms: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the rewards of pulls, in their order."""
        ...


@runtime_checkable
class Playable(Run, Protocol):
    """A run that simulates itself pull by pull, without a batch for each."""

    def play(self, rewards: RewardSource, limit: int) -> Int[np.ndarray, " K"]:
        """Pull until there is a winner or the whole run has `limit` pulls.

        Return how often this call has pulled each arm.
        """
        ...

    def pooled(self) -> Statistics:
        """Return all rewards so far, summed up."""
        ...


@runtime_checkable
class Strategy(Protocol):
    """A strategy with its settings."""

    name: ClassVar[str]

    def start(self, problem: Problem, seed: int = 0) -> Run:
        """Begin with a problem."""
        ...


@runtime_checkable
class Declared(Strategy, Protocol):
    """A strategy that says what it is for, as ours do; `about` has defaults for others."""

    promise: ClassVar[Promise] = "confidence"

    @property
    def supports(self) -> frozenset[Feature]:
        """What a problem may need beyond the paper's setting."""
        ...

    @property
    def proven(self) -> bool:
        """Whether the probability of error is proven to be at most delta."""
        return True


def check_next(verdict: Verdict, size: int | None) -> None:
    """Reject a request for pulls that `next` cannot answer, before anything is computed."""
    check_size(size)
    refuse_decided(verdict)


def check_size(size: int | None) -> None:
    """Reject a batch size that is not a positive integer."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise ProblemError(f"size is {size!r}; it must be a number of pulls, 1 or more.")


def refuse_decided(verdict: Verdict) -> None:
    """Reject a request for pulls once there is a winner."""
    if verdict.decided:
        raise ProblemError("the strategy has decided; there is nothing left to pull.")


def check_record(verdict: Verdict, arms: int, batch: Batch, rewards: Statistics) -> None:
    """Reject rewards that are not exactly those of the batch, before anything changes."""
    if verdict.decided:
        raise ProblemError("the strategy has decided; it takes no more rewards.")
    if len(batch.counts) != arms:
        raise ProblemError(f"the batch has {len(batch.counts)} arms and the problem {arms}.")
    if not np.array_equal(rewards.count, batch.counts):
        raise ProblemError("these are not the rewards of the open batch; record all of them.")
