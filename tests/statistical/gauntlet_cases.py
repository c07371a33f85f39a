"""The instances on which `gauntlet_validity` watches a best arm, and what breaks a rule there."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import finalist as fl
from finalist.problem import Problem, as_problem
from finalist.simulation.rewards import Kind
from finalist.strategies import Gauntlet
from tests import instances
from tests.statistical.gauntlet_twins import Ending, Peeking, Seeing, Shifted, Sure, Twin, Unsplit

#: Batches of any size, by turns.
MIXED = (1, 7, 3, None, 2, 16, 1, 5)


@dataclass(frozen=True)
class Case:
    """Arms with a parameter, what is known of the noise, and how long a run is watched.

    Attributes
    ----------
    sizes : tuple of int or None
        Of batches, by turns; None for those that the gauntlet chooses.
    pulls : int
        A run is watched so long; 0 for to its end.
    true : float or tuple of float
        The size of the noise, whatever the strategy is told.
    lost : float
        The part of results that get lost, whatever they are.
    part : float
        Of the runs: all 10,000 where a run is cheap.
    history, pilot : tuples of float, optional
        The means of 1,000 earlier rewards of each arm, and what is added to the rewards of the
        pilot: both may be wrong.
    budgets : (int, int), optional
        What somebody changes the budget to after each batch: the first where the evidence against
        the best arm is above a half, otherwise the second.
    """

    name: str
    features: np.ndarray
    theta: tuple[float, ...]
    delta: float = 0.2
    sigma: float | tuple[float, ...] | None = 1.0
    noise: str | None = None
    rewards: Kind = "gaussian"
    sizes: tuple[int | None, ...] = (None,)
    pulls: int = 100
    true: float | tuple[float, ...] = 1.0
    lost: float = 0.0
    part: float = 0.2
    history: tuple[float, ...] | None = None
    pilot: tuple[float, ...] | None = None
    budgets: tuple[int, int] | None = None
    words: Mapping[str, Any] = field(default_factory=dict)

    def problem(self) -> Problem:
        """What the strategy is told."""
        words = {"delta": self.delta, **self.words}
        if self.noise != "bernoulli":
            words["sigma"] = self.sigma
        return as_problem(fl.Arms(self.features), noise=self.noise, **words)

    @property
    def means(self) -> np.ndarray:
        """The expected rewards."""
        return np.asarray(self.features @ np.array(self.theta))

    @property
    def best(self) -> int:
        """The best arm that is watched: the first of them."""
        return int(np.flatnonzero(self.means > self.means.max() - 1e-12)[0])


def planes(count: int, each: int) -> np.ndarray:
    """Arms in planes at right angles: a pilot that follows the order of arms misses some."""
    angles = 2 * np.pi * np.arange(each) / each
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.kron(np.eye(count), circle)


def sized(name: str, *some: Any, sizes: Mapping[str, tuple[int | None, ...]], **more: Any) -> Any:
    """Return a case for each kind of batches."""
    return tuple(Case(f"{name}, {word}", *some, sizes=s, **more) for word, s in sizes.items())


BENT = instances.paper(5, 0.5)
TIE = (math.cos(0.25), math.sin(0.25), 0.0, 0.0, 0.0)
EYE, ZERO, SPHERE = np.eye(4), (0.0,) * 4, instances.unit_sphere(12, 4, 0)
MANY = instances.unit_sphere(100, 5, 0)
CLEAR = instances.unit_sphere(40, 8, 0)
#: The rank of most arms here is 4.
SIZES: dict[str, tuple[int | None, ...]] = {
    "one by one": (1,),
    "batches of 3": (3,),
    "batches of 4": (4,),
    "mixed batches": MIXED,
}

TIED = (
    Case("four-way tie", EYE, ZERO, part=1.0),
    Case("four-way tie", EYE, ZERO, delta=0.05, part=1.0),
    *sized("four-way tie", EYE, ZERO, sizes=SIZES),
    Case("four-way tie, mixed batches", EYE, ZERO, delta=0.05, sizes=MIXED),
    Case("four-way tie, plates of 96", EYE, ZERO, sizes=(96,), pulls=300),
    Case("sphere, theta = 0", SPHERE, ZERO, part=1.0),
    Case("sphere, theta = 0", SPHERE, ZERO, delta=0.05),
    *sized("sphere, theta = 0", SPHERE, ZERO, sizes=SIZES),
    Case("a hundred arms, theta = 0", MANY, (0.0,) * 5, pulls=60),
    Case("a hundred arms, theta = 0", MANY, (0.0,) * 5, delta=0.05, pulls=60),
    Case("paper's arms, tied", BENT.features, TIE),
    Case("paper's arms, tied", BENT.features, TIE, delta=0.05),
    Case("nearly tied", np.eye(3), (0.1, 0.05, 0.0)),
    Case("nearly tied, mixed batches", np.eye(3), (0.1, 0.05, 0.0), sizes=MIXED),
    Case("seven planes, the best in the last", planes(7, 12), (*[0.0] * 12, 1.0, 0.0), 0.05),
)

FINISHED = (
    Case("easy, to the end", np.eye(3), (2.0, 0.4, 0.0), pulls=0, part=1.0),
    Case("easy, to the end", np.eye(3), (2.0, 0.4, 0.0), 0.05, pulls=0, part=1.0),
    *sized(
        "easy, to the end", np.eye(3), (2.0, 0.4, 0.0), pulls=0, part=1.0,
        sizes={"one by one": (1,), "batches of 2": (2,), "mixed batches": MIXED},
    ),
    Case("forty arms, to the end", CLEAR, tuple(6.0 * CLEAR[3]), pulls=0),
    Case("forty arms, to the end, batches of 7", CLEAR, tuple(6.0 * CLEAR[3]), sizes=(7,), pulls=0),
    Case(
        "good enough, to the end", EYE, (0.9, 0.0, -0.05, -0.1), pulls=0, words={"epsilon": 0.8}
    ),
    Case(
        "good enough, to the end, mixed batches", EYE, (0.9, 0.0, -0.05, -0.1), sizes=MIXED,
        pulls=0, words={"epsilon": 0.8},
    ),
)  # fmt: skip

UNKNOWN: dict[str, Any] = {"sigma": None}
BOUNDED: dict[str, Any] = {"noise": "sub-gaussian", "rewards": "bounded"}
BINARY: dict[str, Any] = {"noise": "bernoulli", "rewards": "bernoulli"}
NOISE = (
    Case("unknown sigma, tied", EYE, ZERO, **UNKNOWN),
    Case("unknown sigma, tied", EYE, ZERO, delta=0.05, **UNKNOWN),
    *sized("unknown sigma, tied", EYE, ZERO, sizes=SIZES, **UNKNOWN),
    Case("unknown sigma, plates of 8", EYE, ZERO, sizes=(8,), **UNKNOWN),
    Case("+-1, tied", np.eye(3), ZERO[:3], **BOUNDED),
    Case("+-1, tied", np.eye(3), ZERO[:3], delta=0.05, **BOUNDED),
    *sized("+-1, tied", np.eye(3), ZERO[:3], sizes=SIZES, **BOUNDED),
    Case("Bernoulli, tied", np.eye(3), (0.3, 0.3, 0.3), **BINARY),
    Case("Bernoulli, tied, mixed batches", np.eye(3), (0.3, 0.3, 0.3), sizes=MIXED, **BINARY),
    Case("sigma 1.5 times too large", EYE, ZERO, sigma=1.5),
    Case("sigma 1.5 times too large, sphere", SPHERE, ZERO, sigma=1.5),
    Case("sigma of each arm", EYE, ZERO, sigma=(0.3, 1.0, 2.0, 3.0), true=(0.3, 1.0, 2.0, 3.0)),
    Case(
        "sigma of each arm, mixed batches", EYE, ZERO, sigma=(0.3, 1.0, 2.0, 3.0),
        true=(0.3, 1.0, 2.0, 3.0), sizes=MIXED,
    ),
    Case("three tenths lost", EYE, ZERO, lost=0.3),
    Case("three tenths lost, sphere, mixed batches", SPHERE, ZERO, lost=0.3, sizes=MIXED),
    Case("three tenths lost, unknown sigma", EYE, ZERO, lost=0.3, **UNKNOWN),
)  # fmt: skip

WRONG: dict[str, Any] = {"pilot": (-60.0, 60.0, 0.0, 0.0)}
MISLED = (
    Case("wrong history, tied", EYE, ZERO, history=(-2.0, 2.0, 1.0, 0.0)),
    Case("a little wrong history, tied", EYE, ZERO, history=(-0.3, 0.3, 0.0, 0.0)),
    # A pilot that is split is tested: it has to be right. Others only choose.
    Case("wrong pilot, unknown sigma, tied", EYE, ZERO, **WRONG, **UNKNOWN),
)

#: A hair beyond the margin of .5, where a winner is wrong.
BEYOND = -0.5 - 1e-9
HALF: dict[str, Any] = {"pulls": 0, "part": 1.0, "words": {"epsilon": 0.5}}
BEHIND = (0.0, BEYOND, BEYOND, BEYOND)
#: Each arm is good enough beside the one before it, and no other is.
CHAIN = tuple(-0.4 * np.arange(6))
EDGE = tuple(0.5 * BEYOND * np.arange(6))
#: The second best arm of the sphere is a hair beyond the margin.
TILTED = 0.5 * SPHERE[0] / (1.0 - float(np.sort(SPHERE @ SPHERE[0])[-2])) * (1.0 + 1e-9)
MARGIN = (
    Case("a margin, two arms", np.eye(2), (0.0, BEYOND), **HALF),
    Case("a margin, two arms", np.eye(2), (0.0, BEYOND), delta=0.05, **HALF),
    Case("a margin, four arms", EYE, BEHIND, **HALF),
    Case("a margin, four arms", EYE, BEHIND, delta=0.05, **HALF),
    *sized("a margin, four arms", EYE, BEHIND, sizes=SIZES, **HALF),
    Case("a margin, a chain", np.eye(6), CHAIN, **HALF),
    Case("a margin, a chain, mixed batches", np.eye(6), CHAIN, sizes=MIXED, **HALF),
    Case("a margin, a chain with its third at the edge", np.eye(6), EDGE, **HALF),
    Case("a margin, two best", EYE, (0.0, 0.0, BEYOND, BEYOND), **HALF),
    Case("a margin, two best, mixed batches", EYE, (0.0, 0.0, BEYOND, BEYOND), sizes=MIXED, **HALF),
    Case("a margin, thirty arms", np.eye(30), (0.0, *[BEYOND] * 29), **HALF),
    Case("a margin, sphere", SPHERE, tuple(TILTED), **HALF),
    Case("a margin, sphere, mixed batches", SPHERE, tuple(TILTED), sizes=MIXED, **HALF),
    Case("a margin, unknown sigma", EYE, BEHIND, **HALF, **UNKNOWN),
    Case("a margin, unknown sigma, batches of 3", EYE, BEHIND, sizes=(3,), **HALF, **UNKNOWN),
    Case("a margin, +-1", np.eye(3), BEHIND[:3], **HALF, **BOUNDED),
    Case("a margin, three tenths lost", EYE, BEHIND, lost=0.3, **HALF),
    Case(
        "a margin, sigma of each arm", EYE, BEHIND, sigma=(0.3, 1.0, 2.0, 3.0),
        true=(0.3, 1.0, 2.0, 3.0), **HALF,
    ),
)  # fmt: skip

HUNDRED: dict[str, Any] = {"words": {"budget": 100}}
BUDGET = (
    Case("a budget, four-way tie", EYE, ZERO, **HUNDRED),
    Case("a budget, four-way tie", EYE, ZERO, delta=0.05, **HUNDRED),
    *sized("a budget, four-way tie", EYE, ZERO, sizes=SIZES, **HUNDRED),
    Case("a budget, sphere, theta = 0", SPHERE, ZERO, **HUNDRED),
    Case("a budget, paper's arms, tied", BENT.features, TIE, **HUNDRED),
    Case("a budget, nearly tied", np.eye(3), (0.1, 0.05, 0.0), **HUNDRED),
    Case("a budget, unknown sigma, tied", EYE, ZERO, **HUNDRED, **UNKNOWN),
    Case("a budget, Bernoulli, tied", np.eye(3), (0.3, 0.3, 0.3), **HUNDRED, **BINARY),
    Case("a budget in cost, tied", EYE, ZERO, words={"budget": 200, "cost": (1.0, 1.0, 3.0, 4.0)}),
    Case("a budget raised near a verdict, tied", EYE, ZERO, budgets=(200, 60), **HUNDRED),
    Case("a budget cut near a verdict, tied", EYE, ZERO, budgets=(60, 200), **HUNDRED),
)

CASES = (*TIED, *FINISHED, *NOISE, *MISLED, *MARGIN, *BUDGET)
#: Good arms that rule each other out by the margin before noisy ones a little beyond it are out.
SMALL_AND_LARGE = (0.1, 0.1, 0.1, 3.0, 3.0, 3.0)
NOISY = Case(
    "a margin, noisy arms beyond it", np.eye(6), (0.0, 0.0, 0.0, -0.51, -0.51, -0.51), 0.05,
    sigma=SMALL_AND_LARGE, true=SMALL_AND_LARGE, **{**HALF, "part": 0.02},
)  # fmt: skip

WIDE = instances.unit_sphere(100, 12, 0)
CHOSEN = Case("a hundred arms of rank 12, first look", WIDE, (0.0,) * 12, pulls=25, part=0.05)
#: Each twin, and whether delta is kept: for each rule that is broken also the same with it kept.
TWINS: tuple[tuple[Case, Twin | Gauntlet, bool], ...] = (
    (Case("four-way tie", EYE, ZERO, part=0.1), Twin(Peeking), False),
    (Case("a budget, four-way tie", EYE, ZERO, part=0.1, **HUNDRED), Twin(Peeking), False),
    (Case("four-way tie", EYE, ZERO, part=0.1), Twin(Seeing), False),
    (Case("four-way tie", EYE, ZERO, part=0.1), Twin(Sure), True),
    (CHOSEN, Twin(Unsplit), False),
    (CHOSEN, Twin(Sure), True),
    (
        Case("sphere, theta = 0, one by one", SPHERE, ZERO, sizes=(1,), pulls=300, part=0.04),
        Twin(Ending),
        False,
    ),
    (NOISY, Twin(Shifted), False),
    (NOISY, Gauntlet(), True),
)
