"""Goals: what a winner is."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from finalist.errors import ProblemError
from finalist.problem.features import Feature
from finalist.problem.values import checked_number


@dataclass(frozen=True)
class Best:
    """Find the best arm."""

    epsilon: ClassVar[float] = 0.0
    top: ClassVar[int] = 1
    needs: ClassVar[frozenset[Feature]] = frozenset()


@dataclass(frozen=True)
class EpsilonBest:
    """Find an arm whose mean is less than `epsilon` away from the best one's."""

    epsilon: float
    top: ClassVar[int] = 1
    needs: ClassVar[frozenset[Feature]] = frozenset({"epsilon-best"})

    def __post_init__(self) -> None:
        epsilon = checked_number(self.epsilon, "epsilon")
        if not (np.isfinite(epsilon) and epsilon > 0):
            raise ProblemError(f"epsilon is {epsilon}; it is positive and finite. 0 means Best().")
        object.__setattr__(self, "epsilon", epsilon)


@dataclass(frozen=True)
class TopM:
    """Find the `m` best arms."""

    m: int
    epsilon: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.m, bool) or not isinstance(self.m, (int, np.integer)) or self.m < 1:
            raise ProblemError(f"m is {self.m!r}; it is the number of arms to find, 1 or more.")
        object.__setattr__(self, "m", int(self.m))

    @property
    def top(self) -> int:
        """How many arms are asked for."""
        return self.m

    @property
    def needs(self) -> frozenset[Feature]:
        """What a strategy has to support; one best arm is what all of them find."""
        return frozenset({"top-m"}) if self.m > 1 else frozenset()


Goal = Best | EpsilonBest | TopM


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
