"""What is measured: instances, strategies and error probabilities, and how often.

Instances come in suites. The standard one has the paper's problem, arms on a sphere, Gaussian arms,
arms without structure, a hypercube, many arms in the plane, factorial and quadratic models, and the
bundled tables; the quick one is for a first look. All noise is Gaussian, also on the tables of real
experiments.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finalist.complexity import complexity
from finalist.errors import FinalistError, ProblemError
from finalist.lab.benchmark.specs import Spec, marks, parse_specs
from finalist.simulation import instances
from finalist.simulation.instances import Instance, between, fan, given, paper, table, unstructured
from finalist.simulation.task import Task, make_task, whole
from finalist.strategies import Playable

#: A strategy that checks after every pull takes too long with more arms than this.
MAX_ARMS = 1000
#: Strategies whose work per pull grows with the square of the arms: 1,000 arms take a minute a run.
FEWER_ARMS = {"fully-adaptive": 300, "lingame": 300}


def _standard() -> list[Instance]:
    factors = [0.0, 0.5, 0.2, 0.0, 0.4, 0.3, 0.0, 0.6, 0.3, 0.1, 0.0]
    gaps = 0.1 * 1.6 ** np.arange(8) * (np.arange(8) > 0)
    cube, grid = instances.hypercube(6), instances.quadratic_grid(2, 5)
    return [
        paper(2, 0.1),
        paper(5, 0.01),
        paper(10, 0.1),
        between(instances.unit_sphere(50, 10, 3), name="sphere, 50 x 10"),
        instances.random_theta(instances.gaussian(100, 8, 4), 5, "Gaussian, 100 x 8"),
        unstructured([1.0, 0.8, *[0.0] * 8]).called("unstructured, one close"),
        unstructured(1.0 - gaps).called("unstructured, growing gaps"),
        given("cube, 2^6", cube, [0.25, 0.2, 0.15, 0.15, 0.1, 0.1]),
        fan(60, 11),
        fan(1000, 15),
        given("factorial, 3 x 3 x 4", instances.one_hot_factorial((3, 3, 4)), factors),
        given("quadratic, 5 x 5", grid, [0.0, 0.3, 0.2, -0.5, -0.4, 0.1]),
        *map(table, ("oats", "cake", "weaving", "plums")),
    ]


def _quick() -> list[Instance]:
    return [paper(3, 0.5), unstructured([1.0, 0.5, 0.0]), fan(10, 1), table("plums")]


#: Instances of the standard suite that the settings of the gauntlet were tuned on
#: (`benchmarks/gauntlet/families.py`); the others were held out.
TUNED_ON = frozenset(
    {
        "paper, d = 5, omega = 0.01",
        "sphere, 50 x 10",
        "Gaussian, 100 x 8",
        "unstructured, one close",
        "cube, 2^6",
        "plane, 60 arms",
    }
)
#: The suites by their names.
SUITES: dict[str, Callable[[], list[Instance]]] = {"standard": _standard, "quick": _quick}


def suite(name: str) -> list[Instance]:
    """Return the instances of a suite.

    Examples
    --------
    >>> [instance.name for instance in suite("quick")]
    ['paper, d = 3, omega = 0.5', 'unstructured, 3 arms', 'plane, 10 arms', 'plums']
    """
    if name not in SUITES:
        raise ProblemError(f"suite is {name!r}; it is one of {', '.join(SUITES)}.")
    return SUITES[name]()


@dataclass(frozen=True, eq=False)
class Cell:
    """One strategy on one instance with one error probability.

    Attributes
    ----------
    bound : float
        T* kl(delta, 1 - delta): the mean pulls that any method needs which keeps delta for every
        theta.
    cap : int
        Pulls after which a run is stopped, undecided.
    task : Task or None
        What to simulate; None if the strategy declines.
    reason : str
        Why it is not simulated, or empty.
    marks : tuple of str
        What the strategy is told, or does not prove.
    """

    instance: Instance
    spec: Spec
    delta: float
    bound: float
    cap: int
    task: Task | None = field(repr=False)
    reason: str = ""
    marks: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The text of the progress line."""
        return f"{self.spec.label}, {self.instance.name}, delta = {exact(self.delta)}"


@dataclass(frozen=True)
class Plan:
    """What a benchmark measures.

    Attributes
    ----------
    suite : str
        Name of the set of instances.
    strategies : tuple of str
        Names, with settings if wanted; empty for every strategy that keeps an error probability.
    deltas : tuple of float
    runs : int
        Of each cell.
    max_ratio : float
        A run is stopped, undecided, after this many times the lower bound.
    seed : int
        Run i of every cell depends on the seed and i alone.
    """

    suite: str = "standard"
    strategies: tuple[str, ...] = ()
    deltas: tuple[float, ...] = (0.05, 0.001)
    runs: int = 100
    max_ratio: float = 200.0
    seed: int = 0

    def __post_init__(self) -> None:
        if whole("runs", self.runs, 1) < 2:
            raise ProblemError(f"runs is {self.runs}; a mean needs 2 or more.")
        if not self.deltas:
            raise ProblemError("deltas is empty; give at least one, such as 0.05.")
        for delta in self.deltas:
            if not 0 < delta < 0.5:  # from 1/2 on the lower bound is 0
                raise ProblemError(f"delta is {delta}; it must be between 0 and 1/2.")
        if not (math.isfinite(self.max_ratio) and self.max_ratio >= 1):
            raise ProblemError(
                f"max_ratio is {self.max_ratio}; it must be a finite number, 1 or more."
            )
        parse_specs(self.strategies)

    @property
    def command(self) -> str:
        """The equivalent command."""
        words = [f"finalist benchmark --suite {self.suite}"]
        if self.strategies:
            words.append(f"--strategies {','.join(self.strategies)}")
        words.append(f"--runs {self.runs} --deltas {','.join(map(exact, self.deltas))}")
        if self.max_ratio != Plan.max_ratio:
            words.append(f"--max-ratio {exact(self.max_ratio)}")
        if self.seed != Plan.seed:
            words.append(f"--seed {self.seed}")
        return " ".join(words)

    def cells(self) -> list[Cell]:
        """Return all cells, including those that a strategy declines."""
        specs = parse_specs(self.strategies)
        return [
            cell
            for instance in suite(self.suite)
            for delta in dict.fromkeys(self.deltas)
            for cell in self._cells(instance, delta, specs)
        ]

    def _cells(self, instance: Instance, delta: float, specs: Sequence[Spec]) -> Iterator[Cell]:
        model: dict[str, Any] = {
            "sigma": instance.sigma,
            "delta": delta,
            "objective": instance.objective,
        }
        bound = complexity(instance.arms, instance.theta, **model).lower_bound
        cap = math.ceil(self.max_ratio * bound)
        for spec in specs:
            strategy = spec.strategy(instance)
            words = {"rewards": "gaussian", "seed": self.seed, "max_pulls": cap, **model}
            task = make_task(instance.arms, instance.theta, strategy, **words)
            reason, known = _reason(task), marks(spec, instance)
            wanted = None if reason else task
            yield Cell(instance, spec, delta, bound, cap, wanted, reason, known)


def exact(value: float) -> str:
    """Return the shortest text that reads back as the same number.

    Examples
    --------
    >>> [exact(v) for v in (50.0, 0.05, 0.05000001)]
    ['50', '0.05', '0.05000001']
    """
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _reason(task: Task) -> str:
    """Return why a strategy cannot solve a problem or would take hours; empty if it can."""
    try:
        run = task.strategy.start(task.problem)
    except FinalistError as error:
        return str(error)
    K, most = len(task.means), FEWER_ARMS.get(task.strategy.name, MAX_ARMS)
    if isinstance(run, Playable) and most < K:
        return f"it checks after every pull, and {K:,} arms are more than {most:,}: too slow"
    return ""
