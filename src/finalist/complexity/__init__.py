"""How hard a problem is when its parameter is known."""

from finalist.complexity.gaps import least_cost
from finalist.complexity.hardness import Complexity, Guarantees, complexity

__all__ = ["Complexity", "Guarantees", "complexity", "least_cost"]
