"""Run studies of bent and straight truths, with the model checked and without."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import finalist as fl
from benchmarks.models.families import Family, Truth, drawn
from finalist.inference.statistics import BatchResults
from finalist.problem import Best, EpsilonBest
from finalist.strategies import Batch
from finalist.strategies.gauntlet.checked import CheckedEpochs
from finalist.strategies.gauntlet.model_check import HOPELESS, MOST
from finalist.strategies.gauntlet.run import GauntletRun

#: The smallest chance of a hidden bend that is run: larger ones stop earlier on the same path.
LEAST = 0.005
#: Truths are left out on which straight studies take more in the mean: there bends have time to be
#: seen. It is measured by some studies of their own.
DOZENS, TRIALS = 100, 3
#: A study is cut here.
LONGEST = 600


@dataclass(frozen=True)
class Look:
    """What a study with a straight winner knew after a batch."""

    pulls: int
    chance: float
    bent: bool
    winner: int
    recommended: int


@dataclass(frozen=True)
class Study:
    """One truth, measured twice.

    Attributes
    ----------
    plain, winner : int
        The measurements and the winner of a study without a check.
    looks : tuple of Look
        The study with a check, from its straight decision on; empty if it never came to one.
    loss : dict
        How much worse than the best the arms above are.
    """

    plain: int
    winner: int
    looks: tuple[Look, ...]
    truth: Truth

    def outcome(self, rho: float) -> tuple[str, int, int]:
        """Return "certain", "hidden" or "bent", the measurements and the arm, for a limit rho."""
        if not self.looks:
            return "undecided", LONGEST, self.winner
        first = self.looks[0].pulls
        for look in self.looks:
            if look.bent:
                return "bent", look.pulls, look.recommended
            if look.chance <= rho:
                return "certain", look.pulls, look.winner
            if look.chance >= HOPELESS or look.pulls >= MOST * first:
                return "hidden", look.pulls, look.recommended
        return "hidden", look.pulls, look.recommended


def study(family: Family, number: int) -> Study | None:
    """Run one study; None if straight ones take too long."""
    truth = drawn(family, number)
    pulls = [_run(truth, 10**6 + TRIALS * number + i)[0] for i in range(TRIALS)]
    if np.mean(pulls) > DOZENS:
        return None
    plain, winner = _run(truth, number)
    return Study(plain, winner, _looks(truth, number), truth)


def _measured(truth: Truth, batch: Batch, rng: np.random.Generator) -> BatchResults:
    order = batch.order
    if order is None:
        order = rng.permutation(np.repeat(np.arange(len(batch.counts)), batch.counts))
    values = truth.means[order] + rng.standard_normal(len(order))
    return BatchResults.of(len(truth.means), order, values)


def _start(truth: Truth, number: int, check: float) -> GauntletRun:
    noise = fl.Gaussian(1.0 if truth.known else None)
    goal = EpsilonBest(truth.epsilon) if truth.epsilon > 0.0 else Best()
    asked = fl.Problem(truth.arms, noise=noise, goal=goal, check=check)
    return fl.Gauntlet().start(asked, seed=number)


def _run(truth: Truth, number: int) -> tuple[int, int]:
    """Return the measurements of a study without a check, in whole batches, and its winner."""
    run, rng = _start(truth, number, 0.0), np.random.default_rng([number, 7])
    while not run.verdict.decided and run.verdict.pulls <= LONGEST:
        batch = run.next(truth.size)
        run.record(batch, _measured(truth, batch, rng))
    verdict = run.verdict
    winner = verdict.winner if verdict.winner is not None else verdict.survivors[0]
    return verdict.pulls, winner


def _looks(truth: Truth, number: int) -> tuple[Look, ...]:
    run, rng = _start(truth, number, LEAST), np.random.default_rng([number, 7])
    looks: list[Look] = []
    course = run._course
    assert isinstance(course, CheckedEpochs)
    while not run.verdict.decided and run.verdict.pulls <= 3 * LONGEST:
        batch = run.next(truth.size)
        run.record(batch, _measured(truth, batch, rng))
        model = course.model
        if model.found is not None:
            best = model.recommended(1)[0]
            bent = model.evidence.alarm
            now = run.verdict.pulls
            looks.append(Look(now, model.found.chance, bent, model.winners[0], best))
    return tuple(looks)


def studies(family: Family, numbers: Sequence[int]) -> list[Study]:
    """Run studies by their numbers, without those that take too long."""
    found = (study(family, number) for number in numbers)
    return [one for one in found if one is not None]
