"""What alternatives would cost: plans of several questions, simulated together.

Run i of each question is draw i of its plan. `models` and `margins` say what the questions are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from finalist.files import finite
from finalist.planning.draws import (
    MAX_PULLS,
    Draws,
    Together,
    checked_gap,
    checked_guess,
    refuse_budget,
    rows_of,
)
from finalist.planning.result import MEASUREMENTS, PlanRow, Unit, unit_of
from finalist.problem import Problem
from finalist.problem.budget import pulls_for
from finalist.simulation.engine import Shown, collect
from finalist.simulation.task import whole
from finalist.strategies import Strategy


@dataclass(frozen=True, eq=False)
class Prices:
    """How many pulls to expect of each of several questions.

    Attributes
    ----------
    rows : tuple of PlanRow
        In the order in which the questions were asked.
    impossible : dict of str to str
        Questions that cannot be asked here, and why.
    gap, delta : float
    draws, max_pulls, seed : int
    unit : str
        "measurements", or "units of cost" if pulls cost different amounts.
    """

    rows: tuple[PlanRow, ...]
    impossible: dict[str, str]
    gap: float
    delta: float
    draws: int
    max_pulls: int
    seed: int
    unit: Unit = MEASUREMENTS

    def words(self) -> str:
        """Summarise the prices."""
        raise NotImplementedError

    def typical(self, row: Any) -> str:
        """Say what a question is expected to need."""
        raise NotImplementedError

    def __str__(self) -> str:
        lines = [
            f"{row.name}: {self.typical(row)}, 90 % within {self.shown(row.high)}, "
            f"undecided {row.undecided} of {self.draws}"
            for row in self.rows
        ]
        return "\n".join([self.words(), *lines])

    def shown(self, pulls: float) -> str:
        """Format pulls, or their cost, for a table; infinite means more than `max_pulls`."""
        return f"{pulls:,.0f}" if math.isfinite(pulls) else f"> {self.max_pulls:,}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; infinite numbers become None."""
        words = ("impossible", "gap", "delta", "draws", "max_pulls", "seed", "unit")
        whole_ = {"words": self.words(), **{word: getattr(self, word) for word in words}}
        found: dict[str, Any] = finite({**whole_, "rows": [row.figures() for row in self.rows]})
        return found


@dataclass(frozen=True, eq=False)
class Terms:
    """What the questions have in common.

    Attributes
    ----------
    problem : Problem
        The question as it was given, without its budget.
    gap : float
    draws, max_pulls, seed : int
    size : int or None
        Measurements of a batch.
    guess : float or None
        The size of the noise that is drawn if the problem does not know it.
    """

    problem: Problem
    gap: float
    draws: int
    max_pulls: int
    seed: int
    size: int | None = None
    guess: float | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        gap: float,
        draws: int,
        max_pulls: int | None,
        seed: int,
        size: int | None,
        guess: float | None,
    ) -> "Terms":
        """Check them."""
        drawn = checked_guess(problem, guess)
        cap = MAX_PULLS if max_pulls is None else whole("max_pulls", max_pulls, 1)
        if problem.budget is not None:
            cap = min(cap, pulls_for(problem, problem.budget))
        number, start, lead = whole("draws", draws, 1), whole("seed", seed, 0), checked_gap(gap)
        batch = None if size is None else whole("size", size, 1)
        return cls(problem.with_(budget=None), lead, number, cap, start, batch, drawn)

    def words(self) -> dict[str, Any]:
        """Return what `Prices` say of them."""
        words = {word: getattr(self, word) for word in ("gap", "draws", "max_pulls", "seed")}
        return words | {"delta": self.problem.delta, "unit": unit_of(self.problem)}

    def plan(self, problem: Problem, strategy: Strategy | str, gap: float) -> Draws:
        """Return the runs of a question; refuse a strategy that spends a budget."""
        words = gap, None, self.seed, self.max_pulls, self.size, self.guess
        runs = Draws(problem, (strategy,), *words)
        refuse_budget(runs.task(0).strategy)
        return runs

    def simulated(
        self, plans: Mapping[str, Draws], n_jobs: int, progress: Shown
    ) -> tuple[PlanRow, ...]:
        """Simulate all runs and return a row for each plan; KeyboardInterrupt on Ctrl-C."""
        together, number = Together(tuple(plans.values())), self.draws * len(plans)
        outcomes = collect(together, range(number), n_jobs, progress)
        if len(outcomes) < number:
            raise KeyboardInterrupt
        return rows_of(list(plans), outcomes, [one.problem.costs for one in plans.values()])
