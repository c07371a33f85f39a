"""OD-LinBAI: phases that halve the number of arms, starting from the dimension.

Yang and Tan 2022, "Minimax optimal fixed-budget best arm identification in linear bandits",
Algorithm 1. There are ceil(log2 r) phases, r being the rank of the arms. Phase i pulls the
G-optimal design of the survivors, on the space that they span, and keeps the ceil(r / 2^i) arms
with the largest estimates. With

    m = (T - min(K, r (r + 1) / 2) - sum_{i=1}^{R-1} ceil(r / 2^i)) / R,    R = ceil(log2 r),

the paper pulls arm x of a design pi in every phase ceil(m pi(x)) times. What is subtracted is what
rounding up can cost: the arms of the first design, and the survivors later on.

Two things differ. A phase has m pulls and all that is subtracted for it, by efficient rounding:
that gives an arm at least ceil(m pi(x)) pulls whenever the design has no more arms than were
allowed for, and the phases use up the whole budget (m is rounded to whole numbers, down or up).
And r = 1, where the paper has no phase, has one.
"""

from dataclasses import dataclass
from typing import ClassVar

from finalist.problem import Problem
from finalist.strategies.budget.eliminations import BudgetStrategy, Schedule, check_budget, split


@dataclass(frozen=True)
class ODLinBAI(BudgetStrategy):
    """The strategy; it has no settings. The problem must have a budget.

    A winner is a recommendation, without a guarantee.

    Examples
    --------
    >>> import finalist as fl
    >>> problem = fl.Problem(fl.Arms.unstructured(4), budget=40, noise=fl.Gaussian(1.0))
    >>> run = ODLinBAI().start(problem)
    >>> run.next().counts
    array([6, 5, 5, 5])
    """

    name: ClassVar[str] = "od-linbai"

    def rules(self, problem: Problem) -> Schedule:
        """Return the phases."""
        K, r = len(problem.arms), problem.arms.rank
        keeps = kept(r)
        allowed = rounding_allowance(K, r)
        budget = check_budget(problem, self.name, sum(allowed) + len(keeps))
        m = split(budget - sum(allowed), len(keeps))
        pulls = tuple(a + b for a, b in zip(m, allowed, strict=True))
        return Schedule(problem.arms, pulls, keeps)


def kept(r: int) -> tuple[int, ...]:
    """Return how many arms are left after each phase.

    Examples
    --------
    >>> kept(10), kept(2), kept(1)
    ((5, 3, 2, 1), (1,), (1,))
    """
    phases = max((r - 1).bit_length(), 1)  # ceil(log2 r)
    return tuple(-(-r // 2**i) for i in range(1, phases + 1))


def rounding_allowance(K: int, r: int) -> tuple[int, ...]:
    """Return the pulls that rounding may cost in each phase.

    Examples
    --------
    >>> rounding_allowance(K=100, r=10)
    (55, 5, 3, 2)
    """
    return (min(K, r * (r + 1) // 2), *kept(r)[:-1])
