"""How hard a problem is when its parameter is known."""

from finalist.complexity.gaps import least_cost
from finalist.complexity.hardness import Complexity, Guarantees, complexity
from finalist.complexity.pairs import PairLimit, pair_limit

__all__ = ["Complexity", "Guarantees", "PairLimit", "complexity", "least_cost", "pair_limit"]
