"""Goals: what a winner is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from finalist.errors import ProblemError
from finalist.problem.values import checked_number
from finalist.shapes import Bool, Float

#: Means this close, relative to the largest, are tied: they differ by rounding.
TIE_TOLERANCE = 1e-12


class Goal:
    """What a winner is: the best arm, one close to it, or several of the best."""

    if TYPE_CHECKING:

        @property
        def epsilon(self) -> float:
            """How far a winner may be from the best."""

        @property
        def top(self) -> int:
            """How many winners there are."""

    def is_right(
        self,
        good: Float[np.ndarray, " K"],
        winners: Sequence[int],
        candidate: Bool[np.ndarray, " K"],
    ) -> bool:
        """Return whether winners reach the goal when `good` are the means, the largest the best."""
        if len(winners) == 0:
            return False
        tie = TIE_TOLERANCE * float(np.abs(good).max())
        others = candidate.copy()
        others[list(winners)] = False
        best = good[others].max(initial=-np.inf)
        return bool(best - good[list(winners)].min() <= self.epsilon + tie)

    @property
    def phrase(self) -> str:
        """What a winner is, in words."""
        return "the best" if self.epsilon == 0 else f"within {self.epsilon:g} of the best"

    @property
    def better(self) -> str:
        """What another arm must not be, in words."""
        return "better" if self.epsilon == 0 else f"better by more than {self.epsilon:g}"


@dataclass(frozen=True)
class Best(Goal):
    """Find the best arm."""

    epsilon: ClassVar[float] = 0.0
    top: ClassVar[int] = 1


@dataclass(frozen=True)
class EpsilonBest(Goal):
    """Find an arm whose mean is less than `epsilon` away from the best one's."""

    epsilon: float
    top: ClassVar[int] = 1

    def __post_init__(self) -> None:
        epsilon = checked_number(self.epsilon, "epsilon")
        if not (np.isfinite(epsilon) and epsilon > 0):
            raise ProblemError(f"epsilon is {epsilon}; it is positive and finite. 0 means Best().")
        object.__setattr__(self, "epsilon", epsilon)


@dataclass(frozen=True)
class TopM(Goal):
    """Find the `m` best arms."""

    m: int
    epsilon: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.m, bool) or not isinstance(self.m, (int, np.integer)) or self.m < 1:
            raise ProblemError(
                f"m is {self.m!r}; it is the number of candidates to find, 1 or more."
            )
        object.__setattr__(self, "m", int(self.m))

    @property
    def top(self) -> int:
        """How many arms are asked for."""
        return self.m


def as_goal(epsilon: float, top: int, goal: Goal | None) -> Goal:
    """Return the goal that `epsilon=`, `top=` and `goal=` of a public function mean together."""
    if goal is not None and epsilon != 0:
        raise ProblemError(f"epsilon={epsilon!r} and goal={goal!r} are both given; give one.")
    if top != 1 and (goal is not None or epsilon != 0):
        other = f"goal={goal!r}" if goal is not None else f"epsilon={epsilon!r}"
        raise ProblemError(f"top={top!r} and {other} are both given; give one.")
    if goal is not None:
        return goal
    if top != 1:
        return TopM(top)
    return Best() if epsilon == 0 else EpsilonBest(epsilon)
