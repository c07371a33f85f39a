"""Tiny strategies whose behaviour is known in full."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import Batch, Verdict


@dataclass(frozen=True)
class Rounds:
    """Pulls every arm once a round, and returns the best mean after some rounds."""

    name: ClassVar[str] = "rounds"
    rounds: int = 3

    def start(self, problem: Problem, seed: int = 0) -> "RoundsRun":
        return RoundsRun(self.rounds, problem, seed)


class RoundsRun:
    def __init__(self, rounds: int, problem: Problem, seed: int) -> None:
        self._rounds, self._problem, self.seed = rounds, problem, seed
        self._rewards = Statistics.empty(len(problem.arms))

    @property
    def verdict(self) -> Verdict:
        K, done = len(self._rewards.count), self._rewards.count.min() >= self._rounds
        winner = int((self._problem.sign * self._rewards.mean).argmax()) if done else None
        return Verdict(winner, tuple(range(K)), self._rewards.pulls)

    def next(self, size: int | None = None) -> Batch:  # noqa: ARG002
        return Batch(np.ones(len(self._rewards.count), dtype=np.int64))

    def record(self, batch: Batch, rewards: Statistics) -> None:  # noqa: ARG002
        self._rewards.merge(rewards)


@dataclass(frozen=True)
class Fast(Rounds):
    """The same pull by pull, able to play by itself."""

    name: ClassVar[str] = "fast"

    def start(self, problem: Problem, seed: int = 0) -> "FastRun":
        return FastRun(self.rounds, problem, seed)


class FastRun(RoundsRun):
    def next(self, size: int | None = None) -> Batch:  # noqa: ARG002
        K = len(self._rewards.count)
        return Batch(np.bincount([self._rewards.pulls % K], minlength=K))

    def play(self, rewards: DrawnRewards, limit: int) -> np.ndarray:
        assert isinstance(rewards, DrawnRewards)
        before = self._rewards.count.copy()
        while not self.verdict.decided and self._rewards.pulls < limit:
            self.record(batch := self.next(), rewards.batch(batch.counts))
        return np.asarray(self._rewards.count - before)

    def pooled(self) -> Statistics:
        return self._rewards.copy()


@dataclass(frozen=True)
class Coin:
    """Returns an arm by its seed after one pull of each."""

    name: ClassVar[str] = "coin"

    def start(self, problem: Problem, seed: int = 0) -> "CoinRun":
        return CoinRun(1, problem, seed)


class CoinRun(RoundsRun):
    @property
    def verdict(self) -> Verdict:
        K, pulls = len(self._rewards.count), self._rewards.pulls
        return Verdict(self.seed % K if pulls else None, tuple(range(K)), pulls)


@dataclass(frozen=True)
class Always:
    """Returns the same arm at once."""

    name: ClassVar[str] = "always"
    arm: int = 0

    def start(self, problem: Problem, seed: int = 0) -> "AlwaysRun":  # noqa: ARG002
        return AlwaysRun(self.arm, problem)


class AlwaysRun(RoundsRun):
    def __init__(self, arm: int, problem: Problem) -> None:
        super().__init__(1, problem, 0)
        self._arm = arm

    @property
    def verdict(self) -> Verdict:
        return Verdict(self._arm, (self._arm,), 0)
