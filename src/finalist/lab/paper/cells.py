"""What is measured: strategies, constants and dimensions, and how often.

A cell is one strategy with one set of constants in one dimension; an outcome is what its runs gave.
The parts of the reproduction share cells, so each is simulated once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from finalist.errors import ProblemError
from finalist.inference.bounds import Bound
from finalist.lab.paper.experiment import DIMENSIONS, OUR_ALPHA, PAPER_ALPHA, Instance
from finalist.simulation.bootstrap import mean_interval

if TYPE_CHECKING:
    from finalist.strategies import Strategy

_LABELS = {
    "xy-oracle": "XY-Oracle",
    "xy-adaptive": "XY-Adaptive",
    "xy": "XY",
    "g": "G",
    "fully-adaptive": "Fully adaptive",
}
#: The two sets of constants in words.
CONSTANTS: dict[Bound, str] = {
    "soare": "the constants the paper states",
    "sharp": "the tightest constants we can prove",
}
#: Strategies that test after every pull and never change their allocation.
STATIC = ("xy", "g")


@dataclass(frozen=True)
class Method:
    """A strategy of the paper by its name; alpha for XY-Adaptive."""

    name: str
    alpha: float | None = None

    @property
    def label(self) -> str:
        """What people read; the number behind XY-Adaptive is alpha."""
        alpha = "" if self.alpha is None else f" ({self.alpha:g})"
        return _LABELS[self.name] + alpha


#: The strategies of the table and the figure, in the paper's order.
METHODS = (
    Method("xy-oracle"),
    Method("xy-adaptive", PAPER_ALPHA),
    Method("xy-adaptive", OUR_ALPHA),
    Method("xy"),
    Method("g"),
    Method("fully-adaptive"),
)


@dataclass(frozen=True)
class Cell:
    """One strategy with one set of constants in one dimension."""

    method: Method
    bound: Bound
    d: int

    @property
    def label(self) -> str:
        """What the progress line says."""
        return f"{self.method.label}, {self.bound} constants, d = {self.d}"

    def seconds(self, runs: int) -> float:
        """Return roughly how long the runs take on one core, for the time left."""
        if self.method.name == "xy-oracle":
            return 0.1
        if self.method.name == "xy-adaptive":
            return 1.0 + 0.05 * runs
        return runs * self.d * (0.11 if self.bound == "soare" else 0.035)

    def strategy(self, instance: Instance) -> "Strategy":
        """Return the configured strategy."""
        from finalist.strategies import named

        settings: dict[str, Any] = {"bound": self.bound}
        if self.method.alpha is not None:
            settings["alpha"] = self.method.alpha
        plain: Any = named(self.method.name, *instance)
        configured: Strategy = replace(plain, **settings)
        return configured


@dataclass(frozen=True)
class Plan:
    """How much is simulated.

    Attributes
    ----------
    dimensions, alpha_dimensions : tuple of int
        Of the figure of budgets, and of the comparison of values of alpha.
    bounds : tuple of "soare" or "sharp"
    alphas : tuple of float
    runs, static_runs : int
        Runs of a cell, and of a static strategy with printed constants, which pulls most.
    """

    dimensions: tuple[int, ...] = DIMENSIONS
    alpha_dimensions: tuple[int, ...] = (2, 5, 10)
    bounds: tuple[Bound, ...] = ("soare", "sharp")
    alphas: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    runs: int = 100
    static_runs: int = 20

    @classmethod
    def quick(cls) -> "Plan":
        """Return a plan that takes about a minute."""
        alphas = (PAPER_ALPHA, OUR_ALPHA, 0.7)
        return cls((2, 5, 10), bounds=("sharp",), alphas=alphas, runs=10, static_runs=10)

    def with_runs(self, runs: int | None) -> "Plan":
        """Return the same plan with another number of runs everywhere."""
        if runs is None:
            return self
        if runs < 2:
            raise ProblemError(f"runs is {runs}; an interval for a mean needs 2 or more.")
        return replace(self, runs=runs, static_runs=runs)

    def runs_of(self, cell: Cell) -> int:
        """Return how often a cell is simulated."""
        long = cell.bound == "soare" and cell.method.name in STATIC
        return self.static_runs if long else self.runs


def budget_cells(plan: Plan, dimensions: Iterable[int]) -> list[Cell]:
    """Return every strategy under every set of constants in these dimensions."""
    return [
        Cell(method, bound, d) for bound in plan.bounds for d in dimensions for method in METHODS
    ]


def alpha_cells(plan: Plan) -> list[Cell]:
    """Return XY-Adaptive for every alpha, under every set of constants."""
    return [
        Cell(Method("xy-adaptive", alpha), bound, d)
        for bound in plan.bounds
        for d in plan.alpha_dimensions
        for alpha in plan.alphas
    ]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the runs of a cell gave.

    Attributes
    ----------
    samples : (runs,) array of int
        Pulls of each run.
    pulls : (K,) array
        Mean pulls of each arm.
    wrong : int
        Runs that returned another arm than the best one.
    """

    samples: Int[np.ndarray, " runs"]
    pulls: Float[np.ndarray, " K"]
    wrong: int

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.samples)

    @property
    def mean(self) -> float:
        """Mean pulls of a run."""
        return float(self.samples.mean())

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % bootstrap interval of the mean."""
        return mean_interval(self.samples)

    @property
    def shares(self) -> Float[np.ndarray, " K"]:
        """The part of all pulls that each arm gets."""
        return np.asarray(self.pulls / self.pulls.sum())
