"""The whole budget on the G-optimal design, and then the arm with the best estimate.

The simplest strategy for a fixed budget, for comparison: where to measure does not depend on the
rewards. It is the static allocation of Soare 2014, Sect. 4 (eq:g.optimal.design.relax) without a
stopping rule, or `gse` with a single stage.
"""

from dataclasses import dataclass
from typing import ClassVar

from finalist.problem import Problem
from finalist.strategies.budget.eliminations import BudgetStrategy, Schedule, check_budget


@dataclass(frozen=True)
class GBudget(BudgetStrategy):
    """The strategy; it has no settings. The problem must have a budget.

    A winner is a recommendation, without a guarantee.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(4), budget=40, noise=fl.Gaussian(1.0))
    >>> run = GBudget().start(problem)
    >>> run.next().counts
    array([10, 10, 10, 10])
    """

    name: ClassVar[str] = "g-budget"

    def rules(self, problem: Problem) -> Schedule:
        """Return the one phase."""
        budget = check_budget(problem, self.name, max(problem.arms.rank, 1))
        return Schedule(problem.arms, (budget,), (1,))
