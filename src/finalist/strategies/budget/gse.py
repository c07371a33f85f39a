"""GSE, generalised successive elimination: stages that keep one arm in eta.

Azizi, Kveton and Ghavamzadeh 2022 (preprint 2021), "Fixed-budget best-arm identification in
structured bandits", Algorithm 1 with the linear model and G-optimal exploration. There are
ceil(log_eta K) stages with the same number of pulls. A stage explores the G-optimal design of the
survivors on the space that they span, and keeps the ceil(m / eta) of m arms with the largest
estimates from that stage.

The designs here are optimal up to 0.1 % and certified, whichever solver finds them; the paper runs
Frank-Wolfe. Pulls that do not divide evenly go to later stages, so that the whole budget is used.
eta is a whole number: otherwise ceil(m / eta) may stay at 2.
"""

from dataclasses import dataclass
from typing import ClassVar

from finalist.errors import ProblemError
from finalist.problem import Problem
from finalist.strategies.budget.eliminations import BudgetStrategy, Schedule, check_budget, split


@dataclass(frozen=True)
class GSE(BudgetStrategy):
    """The strategy with its settings. The problem must have a budget.

    A winner is a recommendation, without a guarantee.

    Parameters
    ----------
    eta : int
        A stage keeps one arm in eta, rounded up; 2 or more.

    Examples
    --------
    >>> import finalist as fl
    >>> run = GSE().start(fl.Problem(fl.Arms.unstructured(4), budget=40, noise=fl.Gaussian(1.0)))
    >>> run.next().counts
    array([5, 5, 5, 5])
    """

    name: ClassVar[str] = "gse"
    eta: int = 2

    def __post_init__(self) -> None:
        if isinstance(self.eta, bool) or not isinstance(self.eta, int) or self.eta < 2:
            raise ProblemError(f"eta is {self.eta!r}; it must be an integer, 2 or more.")

    def rules(self, problem: Problem) -> Schedule:
        """Return the stages."""
        keeps = kept(len(problem.arms), self.eta)
        budget = check_budget(problem, self.name, max(len(keeps) * problem.arms.rank, 1))
        return Schedule(problem.arms, split(budget, max(len(keeps), 1)), keeps)


def kept(K: int, eta: int) -> tuple[int, ...]:
    """Return how many arms are left after each stage.

    Examples
    --------
    >>> kept(11, 2), kept(100, 10), kept(1, 2)
    ((6, 3, 2, 1), (10, 1), ())
    """
    found: tuple[int, ...] = ()
    while K > 1:
        K = -(-K // eta)
        found = (*found, K)
    return found
