"""Find the budgets of the cells: where uniform errs in about .4 and .15 of the runs.

    python -m benchmarks.budgets.search

Prints the table `BUDGETS` of `cells`. A budget is at least five pulls for each dimension.
"""

import sys
from itertools import product

from benchmarks.budgets.cells import PROMISED, SEEDS, TWO_LEVELS
from benchmarks.budgets.families import Truth, truth
from benchmarks.budgets.fixed import draw, uniform

#: Shares of wrong runs that are looked for, and runs to estimate one from.
WANTED, RUNS = (0.4, 0.15), 2000
LARGEST = 20_000


def error(one: Truth, budget: int) -> float:
    """Return the share of wrong runs of uniform."""
    return float(draw(one, uniform(one.arms, budget), RUNS, seed=5).wrong.mean())


def found(one: Truth, wanted: float) -> int:
    """Return the smallest budget found with at most this error, rounded to two digits."""
    low, high = 5 * one.arms.rank, LARGEST
    if error(one, low) <= wanted:
        return low
    while high > 1.03 * low:
        middle = round((low * high) ** 0.5)
        low, high = (low, middle) if error(one, middle) <= wanted else (middle, high)
    digits = len(str(high)) - 2
    return round(high, -digits)


def main() -> int:
    """Search and print."""
    for family, seed in product((*PROMISED, *TWO_LEVELS), SEEDS.values()):
        one = truth(family, seed)
        budgets = tuple(found(one, wanted) for wanted in WANTED)
        errors = ", ".join(f"{error(one, T):.3f}" for T in budgets)
        print(f'    ("{family}", {seed}): {budgets},  # {errors}', flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
