"""What a budget is counted in: pulls, or their cost where pulls do not cost 1.

Studies that were begun by rules 1 to 3 count pulls whatever they cost.

Examples
--------
>>> from finalist.arms import Arms
>>> from finalist.problem import Gaussian, Problem
>>> plain = Problem(Arms.unstructured(2), noise=Gaussian(1.0))
>>> dear = plain.with_(cost=2.5)
>>> pulls_for(plain, 60), pulls_for(dear, 60)
(60, 24)
>>> of_budget(plain, 60), of_budget(dear, 60), of_budget(plain, 1)
('60 measurements', 'a cost of 60', '1 measurement')
"""

from typing import TYPE_CHECKING

import numpy as np

from finalist.shapes import Float
from finalist.text import counted

if TYPE_CHECKING:
    from finalist.problem.problem import Problem

#: What is left may be less than a price by this part of it: sums of costs are rounded.
ROUNDING = 1e-9


def in_cost(problem: "Problem") -> bool:
    """Return whether the budget is a sum of costs."""
    return problem.cost != 1.0 and problem.rules.endgame


def prices_of(problem: "Problem") -> Float[np.ndarray, " K"]:
    """Return what a pull of each arm takes of the budget."""
    return problem.costs if in_cost(problem) else np.ones(len(problem.arms))


def cheapest(problem: "Problem") -> float:
    """Return the least that any pull takes of the budget, less what is rounding."""
    return float(prices_of(problem)[problem.arms.measurable].min()) * (1.0 - ROUNDING)


def pulls_for(problem: "Problem", amount: float) -> int:
    """Return how many pulls an amount of the budget is enough for at most."""
    return int(amount / cheapest(problem))


def of_budget(problem: "Problem", amount: float) -> str:
    """Say how much of a budget something is."""
    return f"a cost of {amount:,.6g}" if in_cost(problem) else counted(int(amount), "measurement")
