"""What every strategy is: an object that says what to pull next and what is certain so far.

A strategy is a frozen value with its settings (`XYAdaptive(alpha=0.4)`). `start` gives a `Run` for
one problem. A run is a deterministic function of the problem, the settings, the seed and the
batches recorded so far; it draws no rewards itself, so the same object serves a simulation and a
real study:

    run = strategy.start(problem, seed=1)
    while not run.verdict.decided:
        batch = run.next()
        run.record(batch, rewards_of(batch))

`next` decides and changes nothing; `record` changes the run from the batch and its rewards alone.
A study can therefore be replayed from its log by `record` only, without solving a design again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from finalist.problem import Problem
from finalist.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Batch:
    """An allocation that is pulled completely before its rewards are looked at.

    Attributes
    ----------
    counts : (K,) array of int
        How often each arm is pulled, read-only.
    note : mapping
        Whatever else was decided for it, in values that JSON can hold.
    """

    counts: Int[np.ndarray, " K"]
    note: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts.flags.writeable = False

    @property
    def size(self) -> int:
        """Number of pulls."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Verdict:
    """What is certain at some moment.

    Attributes
    ----------
    winner : int or None
        The arm that is returned; None while the strategy goes on.
    survivors : tuple of int
        Arms that may still be the best; the best one is among them with probability 1 - delta.
    pulls : int
        Pulls so far.
    """

    winner: int | None
    survivors: tuple[int, ...]
    pulls: int

    @property
    def decided(self) -> bool:
        """Whether there is a winner."""
        return self.winner is not None


@runtime_checkable
class Run(Protocol):
    """A strategy at work on one problem."""

    @property
    def verdict(self) -> Verdict:
        """What is certain now."""
        ...

    def next(self) -> Batch:
        """Return the next batch; the same one until it is recorded."""
        ...

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over the rewards of a batch, all of them."""
        ...


@runtime_checkable
class Strategy(Protocol):
    """A strategy with its settings."""

    name: ClassVar[str]

    def start(self, problem: Problem, seed: int = 0) -> Run:
        """Begin with a problem."""
        ...
