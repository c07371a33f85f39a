"""What is compared: strategies simulated run by run, fixed allocations in closed form, the limit.

The arms are permuted in every run, so that no strategy gains or loses by the row of the best one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr

import finalist as fl
from benchmarks.budgets.cells import Cell
from benchmarks.budgets.families import Truth
from benchmarks.budgets.fixed import Tally, designed, draw, fixed, oracle, uniform
from finalist.arms import Arms
from finalist.inference.bends import Bends
from finalist.lab.blocks import Keeper, arrays_of, outcomes
from finalist.lab.store import Store, settings_of
from finalist.problem.rules import rules_of
from finalist.settings import of_study
from finalist.simulation.binomial import exact_interval
from finalist.simulation.engine import collect
from finalist.simulation.task import Outcome, Task, make_task
from finalist.strategies import Strategy

#: Strategies by the name of a column, in the order of tables.
STRATEGIES: dict[str, Strategy] = {
    "Peace": fl.Peace(),
    "OD-LinBAI": fl.ODLinBAI(),
    "GSE": fl.GSE(),
    "halving": fl.SequentialHalving(pooled=True),
    "top-two": fl.LinearTopTwo(),
    "gauntlet": fl.Gauntlet(),
    "checked": fl.Gauntlet(),
    "stopping": fl.Gauntlet(),
    "0.1.0": fl.Gauntlet(),
}
#: What is asked beside the budget: with this delta the gauntlet hardly ever stops before the end,
#: like its rivals; "checked" is that with the probes for bends that studies have, which are part of
#: the budget. "stopping" has the usual .05, also by the rules of version 0.1.0.
QUESTIONS: dict[str, dict[str, Any]] = {
    "gauntlet": {"delta": 1e-6},
    "checked": {"delta": 1e-6, **of_study({})},
    "0.1.0": {"rules": rules_of(1)},
}
#: Allocations that rewards do not change.
FIXED = ("uniform", "G", "XY", "oracle")
COLUMNS = ("uniform", "G", "XY", *STRATEGIES, "oracle")
#: The part of the runs that a slow column has, and with many arms everything but fixed allocations.
PARTS = {"Peace": 0.2, "top-two": 0.5, "checked": 0.5, "stopping": 0.5, "0.1.0": 0.5}
MANY, PART_OF_MANY = 300, 0.1
#: Fixed allocations, which take hardly any time, have at least so many runs; the gauntlet where a
#: small error is promised.
LEAST, RARE, LEAST_RARE = 10_000, ("paper",), 2000
#: Runs stored together.
BLOCK = 10


@dataclass(frozen=True, eq=False)
class Permuted:
    """A simulation task whose arms have another order in every run."""

    task: Task

    def run(self, index: int) -> Outcome:
        """Simulate the run with this number; the outcome is in the order of the task."""
        task, K = self.task, len(self.task.means)
        order = np.random.default_rng([task.seed, index, 1]).permutation(K)
        problem = task.problem.with_(arms=Arms(task.problem.arms.features[order]))
        ended = Task(
            problem,
            task.theta,
            task.means[order],
            task.strategy,
            task.rewards,
            task.seed,
            task.max_pulls,
        ).run(index)
        pulls = np.empty(K, dtype=np.int64)
        pulls[order] = ended.pulls
        winner = int(order[ended.winner]) if ended.winner >= 0 else -1
        return ended._replace(winner=winner, pulls=pulls)


@dataclass(frozen=True)
class Found:
    """What a column has for a cell.

    Attributes
    ----------
    wrong, runs : int
    regret : float
        Mean simple regret.
    certain : float
        The share of runs that decided with their guarantee before the budget was used.
    certain_wrong : int
        Runs that decided so and were wrong.
    pulls : float
        Mean pulls.
    seconds : float
        Mean CPU of a run.
    """

    wrong: int
    runs: int
    regret: float
    certain: float = 0.0
    certain_wrong: int = 0
    pulls: float = 0.0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """The share of wrong runs."""
        return self.wrong / self.runs

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Exact 95 % bounds of the error."""
        return exact_interval(self.wrong, self.runs)


def applies(column: str, cell: Cell) -> bool:
    """Return whether a column has a place in a cell.

    Sequential Halving is for arms that say nothing about each other, where the check has nothing
    to look for; the phases of others need more pulls than the smallest budgets have.
    """
    if column == "halving" and "bare" not in cell.family:
        return False
    if column == "checked" and Bends.of(cell.truth.arms).count == 0:
        return False
    if column not in STRATEGIES:
        return True
    try:
        STRATEGIES[column].start(task_of(cell, column).problem)
    except fl.errors.ProblemError:
        return False
    return True


def runs_of(column: str, cell: Cell, asked: int) -> int:
    """Return how many runs a column has in a cell, when so many are asked for."""
    if column in FIXED:
        return max(asked, LEAST)
    if column == "gauntlet" and cell.kind in RARE:
        return max(asked, LEAST_RARE)
    many = PART_OF_MANY if len(cell.truth.arms) > MANY else 1.0
    return max(BLOCK, round(asked * PARTS.get(column, 1.0) * many))


def task_of(cell: Cell, column: str) -> Task:
    """Return the task of a strategy in a cell, with its arms in their own order."""
    truth = cell.truth
    noise: dict[str, Any] = {"noise": "bernoulli"} if truth.binary else {"sigma": 1.0}
    return make_task(
        truth.arms,
        truth.theta,
        STRATEGIES[column],
        rewards=None,
        seed=cell.seed,
        max_pulls=10**9,
        budget=cell.budget,
        **noise,
        **QUESTIONS.get(column, {}),
    )


def measure(cell: Cell, column: str, runs: int, jobs: int, store: Store) -> Found:
    """Simulate a column, or read what was simulated before."""
    if column in FIXED:
        tally = closed_form(cell.truth, column, cell.budget, runs, cell.seed)
        return Found(int(tally.wrong.sum()), runs, float(tally.regret.mean()))
    task = task_of(cell, column)
    ended = simulated(task, runs, jobs, store)
    winners = np.array([one.winner for one in ended])
    tally = Tally.of(cell.truth, winners)
    certain = np.array([one.certain for one in ended])
    pulls = np.array([one.pulls.sum() for one in ended])
    return Found(
        int(tally.wrong.sum()),
        runs,
        float(tally.regret.mean()),
        float(certain.mean()),
        int((certain & tally.wrong).sum()),
        float(pulls.mean()),
        float(np.mean([one.seconds for one in ended])),
    )


def simulated(task: Task, runs: int, jobs: int, store: Store) -> Sequence[Outcome]:
    """Return the outcomes of permuted runs; blocks that the store lacks are simulated."""
    settings = settings_of(task) | {"permuted": True}
    done: list[Outcome] = []
    missing: list[range] = []
    for part in _blocks(runs):
        arrays = store.get(_block(settings, part))
        if arrays is None:
            missing.append(part)
        else:
            done.extend(outcomes(arrays))
    keeper = Keeper(missing, lambda part, some: store.put(_block(settings, part), arrays_of(some)))
    indices = [index for part in missing for index in part]
    done.extend(collect(Permuted(task), indices, jobs, None, keeper.add))
    if len(done) < runs:  # Ctrl-C ended the simulation, and should end everything
        raise KeyboardInterrupt
    return sorted(done, key=lambda one: one.run)


def runs_stored(cell: Cell, column: str, most: int, store: Store) -> int:
    """Return how many runs the store has of a column, at most those asked for, from the first."""
    if column in FIXED:  # takes no time
        return most
    settings, done = settings_of(task_of(cell, column)) | {"permuted": True}, 0
    for part in _blocks(most):
        if store.get(_block(settings, part)) is None:
            break
        done = part.stop
    return done


def _blocks(runs: int) -> list[range]:
    return [range(first, min(first + BLOCK, runs)) for first in range(0, runs, BLOCK)]


def _block(settings: dict[str, Any], part: range) -> dict[str, Any]:
    return {**settings, "first": part.start, "runs": len(part)}


def closed_form(truth: Truth, column: str, budget: int, runs: int, seed: int) -> Tally:
    """Simulate a fixed allocation."""
    if column == "uniform":
        return draw(truth, uniform(truth.arms, budget), runs, seed)
    if column == "oracle":
        return draw(truth, fixed(oracle(truth, budget)), runs, seed)
    return draw(truth, fixed(designed(truth.arms, column.lower(), budget)), runs, seed)


def limit(cell: Cell) -> float:
    """Return the pair limit; for rewards 0 and 1 by the normal approximation with sigma 1/2."""
    truth = cell.truth
    found = fl.pair_limit(truth.arms, truth.theta, sigma=truth.sigma)
    return float(ndtr(-found.gap * np.sqrt(cell.budget) / found.rho))
