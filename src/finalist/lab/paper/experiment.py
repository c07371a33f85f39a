"""The experiment of Soare 2014, Sect. 6, and the numbers that its appendix prints.

The arms are the canonical basis of R^d and a last arm at the angle omega = 0.01 from the first;
theta = (2, 0, ..., 0). The first arm is best, the last one hardly worse, and what tells them apart
is the second coordinate of theta, which e_2 measures.

A case is one strategy with one set of constants in one dimension. The parts of the reproduction
share cases, so each is simulated once, through a store of results: a reproduction that was stopped
continues.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.inference.bounds import Bound
from finalist.lab.store import Store
from finalist.shapes import Float, Int
from finalist.simulation import instances
from finalist.simulation.summary import mean_interval
from finalist.strategies import Strategy, configured

OMEGA = 0.01
SIGMA = 1.0
DELTA = 0.05
#: The paper's setting of XY-Adaptive, and finalist's default.
PAPER_ALPHA, OUR_ALPHA = 0.1, 0.4
#: The dimensions of the paper's figure, and of its table.
DIMENSIONS = tuple(range(2, 11))
TABLE_DIMENSION = 5

#: Pulls of x1, ..., x6 at d = 5 as printed (Soare 2014, appendix, "Additional Empirical Results").
PRINTED: dict[str, tuple[int, ...]] = {
    "xy-oracle": (207, 41440, 2, 2, 1, 0),
    "xy-adaptive": (263, 52713, 3, 5, 2, 2),
    "xy": (29523, 29524, 29524, 29524, 29524, 1),
    "g": (28014, 28015, 28015, 28015, 28015, 1),
    "fully-adaptive": (740, 149220, 1, 1, 1, 1),
}


class KnownProblem(NamedTuple):
    """Arms and their true parameter."""

    arms: Arms
    theta: Float[np.ndarray, " d"]


def instance(d: int = TABLE_DIMENSION, omega: float = OMEGA) -> KnownProblem:
    """Return the arms and theta of the experiment.

    Parameters
    ----------
    d : int
        Number of features, 2 or more.
    omega : float
        Angle between the best arm and the runner-up.

    Examples
    --------
    >>> arms, theta = instance(d=3)
    >>> arms
    Arms(K=4, d=3, rank=3)
    >>> (arms.features @ theta).round(4).tolist()
    [2.0, 0.0, 0.0, 1.9999]
    """
    made = instances.paper(d, omega)
    return KnownProblem(made.arms, made.theta)


_LABELS = {
    "xy-oracle": "XY-Oracle",
    "xy-adaptive": "XY-Adaptive",
    "xy": "XY",
    "g": "G",
    "fully-adaptive": "Fully adaptive",
}
#: The two sets of constants, in words.
CONSTANTS: dict[Bound, str] = {
    "soare": "the constants the paper states",
    "sharp": "the tightest constants we can prove",
}


@dataclass(frozen=True)
class Method:
    """A strategy of the paper by name; XY-Adaptive has an alpha."""

    name: str
    alpha: float | None = None

    @property
    def label(self) -> str:
        """The label in tables; the number after XY-Adaptive is alpha."""
        alpha = "" if self.alpha is None else f" ({self.alpha:g})"
        return _LABELS[self.name] + alpha


#: The strategies of the table and the figure, in the paper's order.
METHODS = ORACLE, PAPERS, OURS, XY, G, FULLY = (
    Method("xy-oracle"),
    Method("xy-adaptive", PAPER_ALPHA),
    Method("xy-adaptive", OUR_ALPHA),
    Method("xy"),
    Method("g"),
    Method("fully-adaptive"),
)
#: Strategies that test after every pull and never change their allocation; those that do.
STATIC, ADAPTIVE = (XY, G), (PAPERS, OURS)


@dataclass(frozen=True)
class Case:
    """One strategy with one set of constants in one dimension."""

    method: Method
    bound: Bound
    d: int

    @property
    def label(self) -> str:
        """The text of the progress line."""
        return f"{self.method.label}, {self.bound} constants, d = {self.d}"

    def seconds(self, runs: int) -> float:
        """Estimate how long the runs take on one core, for the progress bar."""
        if self.method.name == "xy-oracle":
            return 0.1
        if self.method.name == "xy-adaptive":
            return 1.0 + 0.05 * runs
        return runs * self.d * (0.11 if self.bound == "soare" else 0.035)

    def strategy(self, instance: KnownProblem) -> Strategy:
        """Return the configured strategy."""
        settings: dict[str, Any] = {"bound": self.bound}
        if self.method.alpha is not None:
            settings["alpha"] = self.method.alpha
        return configured(self.method.name, settings, *instance)


@dataclass(frozen=True)
class Extent:
    """How much is simulated.

    Attributes
    ----------
    dimensions, alpha_dimensions : tuple of int
        Of the figure of budgets, and of the comparison of values of alpha.
    bounds : tuple of "soare" or "sharp"
    alphas : tuple of float
    runs, static_runs : int
        Runs of a case, and of a static strategy with the printed constants, which needs most pulls.
    """

    dimensions: tuple[int, ...] = DIMENSIONS
    alpha_dimensions: tuple[int, ...] = (2, 5, 10)
    bounds: tuple[Bound, ...] = ("soare", "sharp")
    alphas: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    runs: int = 100
    static_runs: int = 20

    @classmethod
    def quick(cls) -> "Extent":
        """Return an extent that takes about a minute."""
        alphas = (PAPER_ALPHA, OUR_ALPHA, 0.7)
        return cls((2, 5, 10), bounds=("sharp",), alphas=alphas, runs=10, static_runs=10)

    def with_runs(self, runs: int | None) -> "Extent":
        """Return the same extent with another number of runs everywhere."""
        if runs is None:
            return self
        if runs < 2:
            raise ProblemError(f"runs is {runs}; an interval for a mean needs 2 or more.")
        return replace(self, runs=runs, static_runs=runs)

    def runs_of(self, case: Case) -> int:
        """Return how often a case is simulated."""
        long = case.bound == "soare" and case.method in STATIC
        return self.static_runs if long else self.runs


def budget_cases(extent: Extent, dimensions: Iterable[int]) -> list[Case]:
    """Return every strategy under every set of constants in these dimensions."""
    return [
        Case(method, bound, d) for bound in extent.bounds for d in dimensions for method in METHODS
    ]


def alpha_cases(extent: Extent) -> list[Case]:
    """Return XY-Adaptive for every alpha, under every set of constants."""
    return [
        Case(Method("xy-adaptive", alpha), bound, d)
        for bound in extent.bounds
        for d in extent.alpha_dimensions
        for alpha in extent.alphas
    ]


#: Called before each case with its number, how many there are, and the case.
Announce = Callable[[int, int, Case], None]
STORE = "results.sqlite"
#: Runs stored together: a full reproduction reuses the blocks of a quick one.
_BLOCK = 10


@dataclass(frozen=True, eq=False)
class Tally:
    """The results of the runs of a case.

    Attributes
    ----------
    samples : (runs,) array of int
        Pulls of each run.
    pulls : (K,) array
        Mean pulls of each arm.
    wrong : int
        Runs that did not return the best arm.
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
    def figures(self) -> tuple[float, ...]:
        """What tables say of a case: see `FIGURES`."""
        return self.mean, *self.interval, self.runs, self.wrong

    @property
    def shares(self) -> Float[np.ndarray, " K"]:
        """The share of all pulls that each arm gets."""
        return np.asarray(self.pulls / self.pulls.sum())


#: The columns of `Tally.figures`.
FIGURES = ("mean", "low", "high", "runs", "wrong")
#: What was measured of each case.
Tallies = Mapping[Case, Tally]


def distinct(cases: Iterable[Case]) -> list[Case]:
    """Return every case once, the quickest first, so that errors show early."""
    return sorted(dict.fromkeys(cases), key=lambda case: case.seconds(1))


def measure(
    cases: Iterable[Case],
    extent: Extent,
    folder: Path,
    *,
    seed: int = 0,
    jobs: int = 1,
    announce: Announce | None = None,
) -> dict[Case, Tally]:
    """Simulate every case once; runs in the folder's store are not simulated again.

    Parameters
    ----------
    extent : Extent
        How many runs each case gets.
    folder : Path
        Where `results.sqlite` is, or will be.
    seed, jobs : int
        Of the simulations; results do not depend on the number of jobs.
    announce : function, optional
        Called before each case.

    Raises
    ------
    KeyboardInterrupt
        If the simulation of a case is interrupted; finished blocks are in the store.
    """
    tallies: dict[Case, Tally] = {}
    wanted = distinct(cases)
    with Store(folder / STORE) as store:
        for number, case in enumerate(wanted, 1):
            if announce is not None:
                announce(number, len(wanted), case)
            problem, runs = instance(case.d), extent.runs_of(case)
            found = store.simulate(
                problem.arms,
                problem.theta,
                case.strategy(problem),
                sigma=SIGMA,
                delta=DELTA,
                runs=runs,
                block=_BLOCK,
                seed=seed,
                n_jobs=jobs,
                progress=False,
            )
            if len(found.samples) < runs:
                raise KeyboardInterrupt
            pulls, wrong = found.pulls_per_arm.mean(axis=0), int((~found.correct).sum())
            tallies[case] = Tally(found.samples, pulls, wrong)
    return tallies
