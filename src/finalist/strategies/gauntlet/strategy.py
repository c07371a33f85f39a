"""The gauntlet as a strategy: its settings, and how a run begins."""

from dataclasses import dataclass
from typing import ClassVar

from finalist.errors import ProblemError
from finalist.problem import FEATURES, Problem
from finalist.strategies.about import is_number
from finalist.strategies.gauntlet.run import ChangeableRun, GauntletRun
from finalist.strategies.protocol import Declared


@dataclass(frozen=True)
class Gauntlet(Declared):
    """The strategy with its settings.

    Parameters
    ----------
    growth : float
        A batch is this part of all pulls so far, unless a size is asked for.

    Examples
    --------
    >>> import finalist as fl
    >>> run = Gauntlet().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next().counts
    array([1, 1, 1])
    """

    name: ClassVar[str] = "gauntlet"
    supports = FEATURES - {"link"}
    growth: float = 0.1

    def __post_init__(self) -> None:
        if not (is_number(self.growth) and 0 < self.growth <= 10):
            raise ProblemError(f"growth is {self.growth!r}; it is positive, at most 10: 0.1.")

    def start(self, problem: Problem, seed: int = 0) -> GauntletRun:
        """Begin with a problem; the seed draws plausible parameters to plan for."""
        problem.refuse_unsupported(self.name, self.supports)
        kind = ChangeableRun if problem.top == 1 else GauntletRun
        return kind(problem, self.growth, seed)
