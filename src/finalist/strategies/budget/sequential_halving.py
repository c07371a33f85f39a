"""Sequential Halving: rounds that pull all arms equally often and keep the better half.

Karnin, Koren and Somekh 2013, "Almost optimal exploration in multi-armed bandits", Algorithm 1.
There are ceil(log2 K) rounds with the same number of pulls. A round pulls every arm that is left
floor(T / (m ceil(log2 K))) times, m being how many are left, and keeps the ceil(m / 2) of them with
the largest mean. It is for arms that say nothing about each other: features have no influence.

As in the paper the mean is that of the round alone. `pooled=True` takes all pulls of an arm so
far, which the proof does not cover; all arms that are left have the same number of them.

Two things differ. What a round cannot share equally is left to later rounds, so that the whole
budget is used: the last round, of two arms, may pull one of them once more. And arms that are tied,
as yes/no rewards often are, are ranked at random, with the seed of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from finalist.errors import ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.budget.eliminations import (
    BudgetStrategy,
    EliminationRun,
    Stage,
    check_budget,
)
from finalist.strategies.budget.gse import kept


@dataclass(frozen=True)
class SequentialHalving(BudgetStrategy):
    """The strategy with its settings. The problem must have a budget.

    A winner is a recommendation, without a guarantee.

    Parameters
    ----------
    pooled : bool
        Whether means are of all pulls of an arm, rather than of those of the round.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(4), budget=40, noise=fl.Gaussian(1.0))
    >>> run = SequentialHalving().start(problem)
    >>> run.next().counts
    array([5, 5, 5, 5])
    """

    name: ClassVar[str] = "sequential-halving"
    pooled: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.pooled, bool):
            raise ProblemError(f"pooled is {self.pooled!r}; it is True or False.")

    def start(self, problem: Problem, seed: int = 0) -> "HalvingRun":
        """Begin with a problem; the seed breaks ties."""
        problem.refuse_unsupported(self.name, self.supports)
        return HalvingRun(problem, self.rules(problem), self.pooled, seed)

    def rules(self, problem: Problem) -> "Halves":
        """Return the rounds."""
        K = len(problem.arms)
        rounds = len(kept(K, 2))
        check_budget(problem, self.name, max(K * rounds, 1))
        return Halves(K, max(rounds, 1))


@dataclass(frozen=True)
class Halves:
    """Rounds that pull all arms equally often and keep the better half.

    Attributes
    ----------
    phases : int
        The rounds.
    """

    arms: int
    phases: int

    def kept(self, ranked: Sequence[int], phases: int) -> Sequence[int]:  # noqa: ARG002
        """Return the better half, rounded up."""
        return ranked[: -(-len(ranked) // 2)]

    def stage(self, ranked: Sequence[int], left: int, phases: int) -> Stage:
        """Return the next round, as long as can be shared equally, but for the last."""
        alive = ranked if phases == self.phases else self.kept(ranked, phases)
        even = left // phases // len(alive) * len(alive)
        return Stage(tuple(sorted(alive)), left if phases == 1 else even, phases)

    def allocate(self, stage: Stage) -> Int[np.ndarray, " K"]:
        """Return equal shares; what is left over goes to the first arms of the last round."""
        counts, alive = np.zeros(self.arms, dtype=np.int64), list(stage.survivors)
        counts[alive] = stage.pulls // len(alive)
        counts[alive[: stage.pulls % len(alive)]] += 1
        return counts


class HalvingRun(EliminationRun):
    """Sequential Halving at work."""

    def __init__(self, problem: Problem, rules: Halves, pooled: bool, seed: int) -> None:
        super().__init__(problem, rules)
        self._pooled, self._all = pooled, Statistics.empty(len(problem.arms))
        # Drawn now: a run is a function of what is recorded, whenever that is.
        self._order = np.random.default_rng(seed).permutation(len(problem.arms))

    def _rank(self, survivors: Sequence[int]) -> tuple[int, ...]:
        """Return arms by their means, the best one first; one without rewards comes last."""
        self._all.merge(self._rewards)
        rewards = self._all if self._pooled else self._rewards
        alive = np.array(survivors)
        means: Float[np.ndarray, " m"] = self._problem.sign * rewards.mean[alive]
        means = np.where(rewards.count[alive] > 0, means, -np.inf)
        order = np.lexsort((self._order[alive], -means))
        return tuple(map(int, alive[order]))
