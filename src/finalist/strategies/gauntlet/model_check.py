"""The model under test: probes in every epoch, evidence of bends, and when a winner is certain.

Beside its own test (an arm is out when the evidence against it reaches 1/delta) the gauntlet then

1. measures a tenth of its pulls where a bend could change the winner (`probes`);
2. multiplies e-values of bends, a block of rewards after the other (`bending`): a block is an
   epoch, whose rows were fixed before its first reward. The reserve of the pilot belongs to the
   first epoch: given what was revealed it is as good as rewards of the epoch. A pilot that is not
   split is a block a batch;
3. calls a winner certain when the chance that a bend hides a better one (`hidden`) is small enough.
   Else it goes on with batches of probes, and stops without certainty when that is hopeless or
   costs too much.

The open epoch is completed first: if blocks were given up because of their rewards, their product
would be no martingale.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from finalist.inference.bending import BendEvidence
from finalist.inference.bends import Bends
from finalist.inference.hidden import Hidden, hidden
from finalist.inference.pooling import BatchSums
from finalist.inference.residuals import Cells
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Int
from finalist.strategies.abilities import ModelFindings, Outcome
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.probes import probes
from finalist.strategies.protocol import Verdict

#: Probes are this part of all pulls.
PROBES = 0.1
#: A batch of probes alone: so many more than the rank, or this part of all pulls.
MORE, PART = 4, 0.15
#: After so many times the pulls of the straight decision it ends without certainty; and at once
#: where a hidden bend is so likely.
MOST, HOPELESS = 2.0, 0.95


@dataclass(eq=False)
class ModelCheck:
    """What is known of bends.

    Attributes
    ----------
    probed : int
        Probes so far.
    straight : int or None
        The pulls at which the gauntlet had its winners.
    winners : tuple of int
        These.
    found : Hidden or None
        What bends may hide, when it was last computed.
    """

    evidence: BendEvidence
    seed: int
    probed: int = 0
    straight: int | None = None
    winners: tuple[int, ...] = ()
    found: Hidden | None = None
    outcome: Outcome = "open"

    @classmethod
    def of(
        cls, problem: Problem, seed: int, before: "ModelCheck | None" = None
    ) -> "ModelCheck | None":
        """Begin, or go on with other arms; None if there is nothing to check."""
        if problem.misspecification > 0.0:  # the tests of arms allow for it
            return None
        evidence = BendEvidence.of(problem, None if before is None else before.evidence)
        if evidence is None or not problem.rules.epochs or len(problem.candidates) < 2:
            return None
        return cls(evidence, seed, 0 if before is None else before.probed)

    def copy(self) -> "ModelCheck":
        """Return one that changes independently."""
        return replace(self, evidence=self.evidence.copy())

    @property
    def problem(self) -> Problem:
        """What is asked."""
        return self.evidence.problem

    @property
    def bends(self) -> Bends:
        """What is looked for."""
        return self.evidence.bends

    # ---- before a batch ------------------------------------------------------------------

    def due(self, pulls: int) -> int:
        """Return how many probes belong to an epoch after which there are so many pulls."""
        return max(math.floor(PROBES * pulls) - self.probed, 0)

    def choose(
        self, past: Past, planned: Int[np.ndarray, " K"], leader: int, count: int
    ) -> Int[np.ndarray, " K"]:
        """Return how often arms are probed beside what is planned."""
        cells, h, scale = self._known(past)
        unit = replace(cells, mean=cells.mean / scale)
        return probes(self.problem, self.bends, unit, planned, leader, count, h, past.room())

    def size(self, past: Past, size: int | None) -> int:
        """Return the size of a batch of probes alone."""
        n = max(past.arms.rank + MORE, math.ceil(PART * past.pooled.pulls))
        return n if size is None else min(n, size)

    # ---- after it ------------------------------------------------------------------------

    def block(self, past: Past, results: Statistics) -> None:
        """Take the evidence of a block, with the reserve of the pilot if there is one.

        `past` is what was known before it.
        """
        before, _, _ = self._known(past)
        if past.kept is not None:
            self.evidence.add(_with_reserve(self.problem, past, results), before)
        else:
            self.evidence.add(self._cells([BatchSums.of(results)]), before)

    def judge(self, past: Past, sums: list[BatchSums], winners: tuple[int, ...]) -> None:
        """Decide whether winners are certain, by all results."""
        pulls = past.pulls
        self.winners = winners
        if self.straight is None:
            self.straight = pulls
        cells = self._cells(sums)
        h, _ = self.evidence.size(cells)
        seed = [self.seed, past.recorded, 26]
        self.found = hidden(self.problem, self.bends, cells, winners, h, seed)
        chance = self.found.chance
        if self.evidence.alarm:
            self.outcome = "bent"
        elif chance <= self.problem.check:
            self.outcome = "certain"
        elif chance >= HOPELESS or pulls >= MOST * self.straight or not past.room().any():
            self.outcome = "hidden"

    def follow(self, decision: Verdict, straight: Verdict) -> None:
        """Take over a decision that was taken before."""
        self.outcome = "certain" if decision.decided else "open"
        self.winners = straight.winners

    def verdict(self, straight: Verdict) -> Verdict:
        """Return what is said where the gauntlet has its winners."""
        if self.outcome == "certain":
            return straight
        if self.outcome == "open" or self.found is None:
            return Verdict(None, straight.survivors, straight.pulls)
        best = self.recommended(len(straight.winners))
        return Verdict(best[0], tuple(sorted({*straight.survivors, *best})), straight.pulls, best)

    def recommended(self, count: int) -> tuple[int, ...]:
        """Return the best arms if there are bends, the best first."""
        assert self.found is not None
        candidates = np.flatnonzero(self.problem.arms.candidate)
        means = self.problem.sign * self.found.means[candidates]
        return tuple(candidates[np.argsort(-means, kind="stable")[:count]].tolist())

    # ---- what is known -------------------------------------------------------------------

    def _cells(self, batches: list[BatchSums]) -> Cells:
        problem = self.problem
        return Cells.of(batches, problem.precisions, shifted=problem.batch_intercept)

    def _known(self, past: Past) -> tuple[Cells, float, float]:
        """Return what choosing may know, how large bends may be, and sigma."""
        if past.kept is not None:
            cells = _shown(self.problem, past)
        else:
            cells = self._cells(past.known_sums())
        return cells, *self.evidence.size(cells)

    def findings(self) -> ModelFindings:
        """Return what is known, for people."""
        found, winners = self.found, self.winners
        return ModelFindings(
            sought=self.bends.words(),
            evidence=self.evidence.log_total,
            alarm=self.evidence.alarm,
            strongest=self.evidence.strongest,
            chance=None if found is None else found.chance,
            limit=self.problem.check,
            outcome=self.outcome,
            winners=winners,
            bent=() if found is None else self.recommended(len(winners)),
        )


def _shown(problem: Problem, past: Past) -> Cells:
    """Return what a pilot that is split has revealed."""
    reserve, p = past.reserve, problem.precisions
    assert reserve is not None
    some = np.flatnonzero(reserve.shown > 0.0)
    worth = reserve.shown[some] if p is None else reserve.shown[some] * p[some]
    return Cells(some, worth, reserve.shown_total[some] / reserve.shown[some])


def _with_reserve(problem: Problem, past: Past, results: Statistics) -> Cells:
    """Return an epoch with what was kept back of the pilot."""
    reserve, p = past.reserve, problem.precisions
    assert reserve is not None
    worth, total = results.count + reserve.worth, results.total + reserve.total
    some = np.flatnonzero(worth > 0.0)
    weight = worth[some] if p is None else worth[some] * p[some]
    return Cells(some, weight, total[some] / worth[some])
