"""The course of the gauntlet by rules 1 and 2: a pilot, then batches, each tested on its own.

The first pulls, a pilot, are for choosing only. A batch that is too small to estimate a difference
does not test it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from finalist.inference.information import Information
from finalist.inference.least_squares import Estimate, estimate
from finalist.inference.statistics import Statistics
from finalist.shapes import Int
from finalist.strategies.gauntlet.claims import Claims, Wager
from finalist.strategies.gauntlet.contrasts import contrasts_of
from finalist.strategies.gauntlet.course import Course
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.planner import Planner
from finalist.strategies.gauntlet.scores import scores_of
from finalist.strategies.gauntlet.stakes import stakes_of
from finalist.strategies.protocol import Batch


class Batches(Course):
    """Pilot and batches at work."""

    def __init__(self, past: Past, planner: Planner, claims: Claims) -> None:
        super().__init__(past, planner, claims)
        self._planned: tuple[Int[np.ndarray, " K"], Information] | None = None

    def next(self, size: int | None) -> Batch:
        """Return the next batch, of exactly `size` pulls if that is given and arms have room."""
        past, wanted = self.past, self.own_size if size is None else size
        if past.piloting:
            note = {"kind": "pilot", "leader": -1, "rivals": [], "batch": past.recorded}
            return Batch(self.planner.pilot(past, wanted), note)
        self._planned = counts, info = self.planner.plan(past, self.claims.wanted(past), wanted)
        note = {"kind": "test", **self.claims.attack(past, counts, info), "batch": past.recorded}
        return Batch(counts, note)

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Turn a complete batch into evidence, from its rewards alone; then learn from it."""
        if batch.note["kind"] == "test":
            fit = self._fit(batch, rewards)
            for wager in self.claims.wagers(batch.note):
                self._bet(wager, fit)
            self.claims.settle(batch.note, self.past, rewards.pulls)
        self.past.add(batch, rewards)  # the chooser's only door to rewards

    def _bet(self, wager: Wager, fit: Estimate) -> None:
        """Bet on a batch; `fit` is the estimate from it alone."""
        past, epsilon = self.past, wager.epsilon
        counts, info = fit.statistics.count, fit.information
        contrasts = contrasts_of(past.problem, past.Z, counts, info, wager.pairs)
        stakes = stakes_of(past, contrasts, epsilon)  # by counts and past, not by these rewards
        scores = scores_of(past.problem, fit, contrasts, epsilon)
        if scores is not None:
            wager.place(scores, contrasts.tested, stakes)

    def _fit(self, batch: Batch, rewards: Statistics) -> Estimate:
        """Return the estimate from a batch alone."""
        # A batch that was just planned has been factorised; a replay does it here.
        counts, info = self._planned or (None, None)
        known = info if counts is batch.counts else None
        precisions = self.past.problem.precisions
        return estimate(self.past.arms, rewards, known=known, precisions=precisions)

    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for that is not recorded yet."""
        if batch.note["kind"] == "pilot":
            pilot = self.past.problem.rules.pilot * self.past.arms.rank
            return f"The first {pilot} measurements show where to measure, and are not tested."
        return self.claims.purpose(batch, self.past)

    def check(self, note: Mapping[str, Any]) -> None:
        """Refuse a note that is not as `next` returns it."""
        self.claims.check(note)

    @property
    def own_size(self) -> int:
        """The size of the next batch unless another is asked for."""
        return self.planner.size(self.past)

    @property
    def least_size(self) -> int:
        """The smallest batch that can test every survivor; 1 while the pilot lasts."""
        return 1 if self.past.piloting else self.past.least_size
