"""Gauntlets that break a rule of their proof, each on purpose: validation has to catch them.

Each of them keeps everything else as it is. Whether a broken rule shows depends on instance and
constants; `gauntlet_cases` has those with which each can fail.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from jaxtyping import Int

from finalist.inference.least_squares import estimate
from finalist.inference.statistics import BatchResults, Statistics
from finalist.problem import Problem
from finalist.strategies import Batch, Gauntlet
from finalist.strategies.gauntlet import epochs
from finalist.strategies.gauntlet.best import BestArm
from finalist.strategies.gauntlet.chooser import Chooser
from finalist.strategies.gauntlet.claims import Claims, Wager, bets_against
from finalist.strategies.gauntlet.epoch import Epoch
from finalist.strategies.gauntlet.epochs import Epochs
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.planner import Planner
from finalist.strategies.gauntlet.run import ChangeableRun


class Peeking(Epochs):
    """Chooses rivals by the epoch that they are tested with."""

    def record(self, batch: Batch, rewards: Statistics, *, complete: bool = True) -> None:
        """Look first, choose then."""
        if "epoch" in batch.note:
            plan = batch.note["epoch"]
            attack = plan["attack"]
            means = np.nan_to_num(estimate(self.past.arms, rewards).means(), nan=-np.inf)
            rivals = [int(means.argmax()) if r >= 0 else -1 for r in attack["rivals"]]
            plan = {**plan, "attack": {**attack, "rivals": rivals}}
            batch = Batch(batch.counts.copy(), {**batch.note, "epoch": plan})
        super().record(batch, rewards, complete=complete)


class Seeing(Epochs):
    """Bets on the looks of an epoch by all of its results, and is sure of what they say."""

    def _advance(self, results: BatchResults, before: int) -> None:
        self._seen = results
        super()._advance(results, before)

    def _stake(self, j: int, wager: Wager) -> tuple[Int[np.ndarray, " t"], Any]:
        assert self.epoch is not None
        if j in self.epoch.stakes:
            return super()._stake(j, wager)
        honest, self.past = self.past, Past(self.past.problem)
        self.past.release()
        self.past.learn(self._seen, tested=True)
        super()._stake(j, wager)
        self.past = honest
        be_sure(self.epoch, j)
        return super()._stake(j, wager)


class Sure(Epochs):
    """Bets by the past before an epoch, as it should, and is as sure of it as others here."""

    def _stake(self, j: int, wager: Wager) -> tuple[Int[np.ndarray, " t"], Any]:
        assert self.epoch is not None
        if j not in self.epoch.stakes:
            super()._stake(j, wager)
            be_sure(self.epoch, j)
        return super()._stake(j, wager)


class Ending(Epochs):
    """Ends an epoch when its other results say that the evidence against arm 0 will fall."""

    def record(self, batch: Batch, rewards: Statistics, *, complete: bool = True) -> None:
        """Go on as long as that looks good, and keep the evidence."""
        super().record(batch, rewards, complete=complete)
        epoch = self.epoch
        if epoch is None or self.used is not None or self._promise(epoch) >= 0.0:
            return
        epoch.later = epoch.later[:0]
        self._close(0)

    def _promise(self, epoch: Any) -> float:
        """Return by how much S of arm 0 is expected to grow until the end, if theta is 0."""
        Z, rival = self.past.Z, int(epoch.note["rivals"][0])
        y = Z[rival] - Z[0]
        ends = []
        for counts in (epoch.results.count, epoch.counts):
            A = (Z * epoch.weights(self.past.problem, counts)[:, None]).T @ Z
            if rival < 0 or np.linalg.matrix_rank(A) < len(A):
                return 0.0
            total = epoch.results.total
            if epoch.reserve is not None:
                total = total + epoch.reserve.total
            w = np.linalg.solve(A, y)
            ends.append(float(w @ Z.T @ total) / float(w @ y))
        return ends[1] - ends[0]


class Unsplit(Sure):
    """Chooses rivals and bets by all results of the pilot, and tests all of them as well."""

    def __init__(self, past: Past, planner: Planner, claims: Claims) -> None:
        super().__init__(past, planner, claims)
        assert past.reserve is not None
        past.__class__ = Revealed

    def _next(self, size: int | None) -> Batch:
        with patch.object(epochs, "Chooser", Whole):
            return super()._next(size)


class Whole(Chooser):
    """Makes a pilot of a fixed length, of which nothing is split."""

    def pilot(self, past: Past) -> tuple[int, Past, list[dict[str, Any]]]:
        """Return how many pulls are missing."""
        return max(PILOT * past.arms.rank - past.pooled.pulls, 0), past, []


class Revealed(Past):
    """A past in which nothing is kept back, though it is tested."""

    def _revealed(self) -> Any:
        return self._known.estimate()


class Shifted(Epochs):
    """Eliminates whatever is not better than a rival by epsilon, at the full level."""

    def __init__(self, past: Past, planner: Planner, _: Claims) -> None:
        super().__init__(past, planner, OneTest(past.problem))


class OneTest(BestArm):
    """One test for each arm, shifted by epsilon; a rival may be out itself."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.bets = bets_against(problem, len(problem.arms), problem.delta)

    def wagers(self, note: Mapping[str, Any]) -> Iterator[Wager]:
        """Bet on all arms with a rival."""
        for wager in self._on_best(note):
            yield replace(wager, epsilon=self._problem.epsilon)

    def _good_enough(self, _: Mapping[str, Any]) -> int | None:
        return None


#: The pilot of `Unsplit`, times the rank; how often bettors count what they see.
PILOT, SURE = 2, 20.0


def be_sure(epoch: Epoch, j: int) -> None:
    """Let bets go by what is known before the epoch as if that were much more."""
    tested, (S, V), scale = epoch.stakes[j]
    epoch.stakes[j] = tested, (SURE * S, SURE * V), scale


@dataclass(frozen=True)
class Twin:
    """A strategy like the gauntlet with another course."""

    course: type[Epochs]

    @property
    def name(self) -> str:
        """What it does."""
        return f"gauntlet, {self.course.__name__.lower()}"

    def start(self, problem: Problem, seed: int = 0) -> ChangeableRun:
        """Begin like the gauntlet, then cheat."""
        run = ChangeableRun(problem, Gauntlet().growth, seed)
        run._course = self.course(run._course.past, run._course.planner, run._course.claims)
        return run
