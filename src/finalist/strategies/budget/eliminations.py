"""What the strategies for a fixed budget share: phases that rank the arms and drop the worse ones.

The pulls of a phase are fixed when it begins. At its end the arms that are left are ranked by
least squares on the rewards of this phase alone. With the last pull of the budget the arm that is
ranked first becomes the winner: a recommendation, without a guarantee. Phases are as long as the
budget allows, so neither sigma nor delta has any influence.

The note of a batch says which arms are in its phase. A replay therefore solves no design and does
not depend on the last digit of an estimate.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.linalg import qr

from finalist.arms import Arms
from finalist.design import Design, optimal_design, round_design
from finalist.errors import ProblemError
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.abilities import Explaining, Lossy
from finalist.strategies.phased.phase import Counts, PhasedRun
from finalist.strategies.protocol import SUPPORTED, Batch, Declared, Promise, Verdict
from finalist.text import counted

#: How close to optimal the design of a phase is.
DESIGN_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Stage:
    """One phase, before it begins.

    Attributes
    ----------
    survivors : tuple of int
        The arms that it compares, in increasing order.
    phases : int
        Phases that may still come, this one included; 1 for the last.
    """

    survivors: tuple[int, ...]
    pulls: int
    phases: int


@runtime_checkable
class EliminationRules(Protocol):
    """What distinguishes one strategy of eliminations from another."""

    @property
    def phases(self) -> int:
        """The most phases there can be."""
        ...

    def kept(self, ranked: Sequence[int], phases: int) -> Sequence[int] | None:
        """Return who is left of ranked arms when `phases` may still come.

        None if that takes a design; then it is decided when the next phase begins.
        """
        ...

    def stage(self, ranked: Sequence[int], left: int, phases: int) -> Stage:
        """Return the next phase, of `left` pulls at most."""
        ...

    def allocate(self, stage: Stage) -> Int[np.ndarray, " K"]:
        """Return the pulls of a phase."""
        ...


@dataclass(frozen=True, eq=False)
class Schedule:
    """Phases whose pulls and survivors are numbers known in advance, with G-optimal designs.

    Attributes
    ----------
    pulls : tuple of int
        Of each phase.
    keeps : tuple of int
        How many arms are left after each phase; 1 after the last.
    """

    arms: Arms
    pulls: tuple[int, ...]
    keeps: tuple[int, ...]

    @property
    def phases(self) -> int:
        """The number of phases."""
        return len(self.pulls)

    def kept(self, ranked: Sequence[int], phases: int) -> Sequence[int]:
        """Return the best of ranked arms, as many as the schedule says."""
        return ranked[: self.keeps[self.phases - phases - 1]]

    def stage(self, ranked: Sequence[int], left: int, phases: int) -> Stage:  # noqa: ARG002
        """Return the next phase."""
        alive = ranked if phases == self.phases else self.kept(ranked, phases)
        return Stage(tuple(sorted(alive)), self.pulls[self.phases - phases], phases)

    def allocate(self, stage: Stage) -> Int[np.ndarray, " K"]:
        """Return the G-optimal design of the survivors on their own span, rounded."""
        return rounded(self.arms, survivor_design(self.arms, stage.survivors), stage.pulls)


@dataclass(frozen=True)
class BudgetStrategy(Declared):
    """What strategies of eliminations are, but for their rules; the problem must have a budget."""

    promise: ClassVar[Promise] = "budget"
    supports = SUPPORTED | {"unknown sigma"}  # sigma has no influence

    def start(self, problem: Problem, seed: int = 0) -> "EliminationRun":  # noqa: ARG002
        """Begin with a problem; nothing is random, so the seed has no influence."""
        problem.refuse_unsupported(self.name, self.supports)
        return EliminationRun(problem, self.rules(problem))

    @abstractmethod
    def rules(self, problem: Problem) -> EliminationRules:
        """Return the rules for a problem, or refuse its budget."""


class EliminationRun(PhasedRun, Lossy, Explaining):
    """A strategy of eliminations at work."""

    def __init__(self, problem: Problem, rules: EliminationRules) -> None:
        super().__init__(problem)
        self._rules = rules
        self._survivors = self._ranked = tuple(range(len(problem.arms)))
        self._winner = 0 if len(problem.arms) == 1 else None
        self._phases, self._spent = rules.phases, 0
        self._stage: Stage | None = None

    @property
    def verdict(self) -> Verdict:
        """Who is left after the phases recorded so far; a winner when the budget is spent."""
        return Verdict(self._winner, self._survivors, self._pulls)

    def _planned(self) -> Stage:
        """Return the stage of the phase, planned when pulls are first asked for."""
        if self._stage is None:
            assert self._problem.budget is not None  # `check_budget`
            left = self._problem.budget - self._spent
            self._stage = self._rules.stage(self._ranked, left, self._phases)
        return self._stage

    def _allocate(self) -> Counts:
        return self._rules.allocate(self._planned())

    def _note(self) -> dict[str, Any]:
        stage = self._planned()
        note: dict[str, Any] = {
            "phase": self._number,
            "phases": stage.phases,
            "pulls": stage.pulls,
        }
        if self._number > 1:
            note["survivors"] = list(stage.survivors)
        return note

    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for that is not recorded yet."""
        note = batch.note
        among = note.get("survivors", range(len(self._problem.arms)))
        end = (
            "the best of them is recommended at its end"
            if note["phases"] == 1
            else "the worse ones are left out at its end"
        )
        pulls = counted(note["pulls"], "measurement compares", "measurements compare")
        return f"Phase {note['phase']}: {pulls} {counted(len(among), 'candidate')}; {end}."

    def lose(self, counts: Counts) -> None:
        """Count pulls of the last batch that were made without a reward; they are not repeated."""
        if self._allocation is not None:  # else the phase has ended
            self._allocation = self._allocation - counts

    def _check(self, batch: Batch) -> None:
        """Read the phase from the note; reject a batch that was not issued for this moment."""
        note = batch.note
        if not {"phase", "phases", "pulls", "ends"} <= note.keys():
            raise ProblemError("this batch has no note; record batches as `next` returns them.")
        if note["phase"] != self._number:
            raise ProblemError(
                f"this is a batch of phase {note['phase']} and phase {self._number} is due; record "
                "each batch once, in the order of issue."
            )
        survivors = note.get("survivors", range(len(self._problem.arms)))
        self._stage = Stage(tuple(survivors), note["pulls"], note["phases"])
        self._survivors = self._stage.survivors

    def _conclude(self) -> None:
        """Rank the arms of the phase by it alone."""
        stage = self._planned()
        self._ranked = self._rank(stage.survivors)
        self._spent += stage.pulls
        self._phases, self._stage = stage.phases - 1, None
        if self._phases == 0:
            self._winner = self._ranked[0]
            self._survivors = (self._winner,)
            return
        kept = self._rules.kept(self._ranked, self._phases)
        if kept is not None:
            self._survivors = tuple(sorted(kept))

    def _rank(self, survivors: Sequence[int]) -> tuple[int, ...]:
        """Return the arms of a complete phase, the best one first."""
        return ranking(self._problem, self._rewards, survivors)


def ranking(problem: Problem, rewards: Statistics, survivors: Sequence[int]) -> tuple[int, ...]:
    """Return arms by the estimate from some rewards, the best one first, ties by number.

    Differences are compared, which a design may be able to estimate where it cannot estimate the
    means. An arm about which the rewards say nothing, because they were lost, comes last.
    """
    alive = np.array(survivors)
    Z = problem.arms.coordinates[alive]
    reference = Z[int(rewards.count[alive].argmax())]
    gaps = problem.sign * estimate(problem.arms, rewards).gaps(Z - reference)
    order = np.argsort(-np.where(np.isnan(gaps), -np.inf, gaps), kind="stable")
    return tuple(map(int, alive[order]))


def check_budget(problem: Problem, name: str, least: int) -> int:
    """Return the budget; reject a problem without one, or with one that is too small."""
    K, rank = len(problem.arms), problem.arms.rank
    if problem.budget is None:
        raise ProblemError(
            f"strategy {name!r} plans for a fixed budget and there is none; give budget=, at "
            f"least {least} for these {K} candidates (--budget on the command line)."
        )
    if problem.budget < least:
        other = f", or use 'g-budget', which needs {rank}" if max(rank, 1) < least else ""
        raise ProblemError(
            f"budget is {problem.budget}; strategy {name!r} needs at least {least} for these {K} "
            f"candidates of {rank} dimensions. Give more{other}."
        )
    return problem.budget


def split(total: int, parts: int) -> tuple[int, ...]:
    """Return whole numbers that differ by 1 at most and sum to the total.

    Examples
    --------
    >>> split(11, 3)
    (3, 4, 4)
    """
    ends = [total * i // parts for i in range(parts + 1)]
    return tuple(end - start for start, end in pairwise(ends))


@lru_cache(maxsize=256)
def survivor_design(arms: Arms, survivors: tuple[int, ...]) -> Design:
    """Return the G-optimal design of some arms on their own span, as weights of all arms.

    The runs of a simulation often meet the same survivors: their designs are kept.
    """
    if len(survivors) == len(arms):
        return optimal_design(arms, "g", DESIGN_TOLERANCE)
    alive = list(survivors)
    found = optimal_design(Arms(arms.features[alive]), "g", DESIGN_TOLERANCE)
    weights = np.zeros(len(arms))
    weights[alive] = found.weights
    return Design(weights, found.value, found.lower_bound, "g", found.status, found.iterations)


def rounded(arms: Arms, design: Design, pulls: int) -> Int[np.ndarray, " K"]:
    """Round a design, also to fewer pulls than it has arms, as long as those can span.

    Then as many of its arms are pulled as there are pulls: first such that span what all of them
    span, heavy ones before light ones, then the heaviest others.
    """
    support = np.flatnonzero(design.weights)
    if pulls < len(support):
        support = _spanning_part(arms.coordinates[support], design.weights[support], pulls, support)
    weights = np.zeros(len(arms))
    weights[support] = design.weights[support] / design.weights[support].sum()
    return round_design(weights, pulls)


def _spanning_part(
    Z: Float[np.ndarray, "p r"],
    weights: Float[np.ndarray, " p"],
    pulls: int,
    support: Int[np.ndarray, " p"],
) -> Int[np.ndarray, " n"]:
    """Return the arms of a support to pull when there are not enough pulls for all."""
    rank = int(np.linalg.matrix_rank(Z))
    assert pulls >= rank  # `check_budget`
    pivots = qr((np.sqrt(weights)[:, None] * Z).T, mode="r", pivoting=True)[1][:rank]
    heavy_first = np.argsort(-weights, kind="stable")
    others = heavy_first[~np.isin(heavy_first, pivots)]
    return np.asarray(support[np.sort(np.append(pivots, others[: pulls - rank]))])
