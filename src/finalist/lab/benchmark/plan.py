"""What is measured: instances, strategies and error probabilities, and how often."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from finalist.complexity import complexity
from finalist.errors import FinalistError, ProblemError
from finalist.lab.benchmark.specs import Spec, marks, parse_specs
from finalist.lab.benchmark.suites import suite
from finalist.simulation.instances import Instance
from finalist.simulation.task import Task, make_task, whole
from finalist.strategies import Playable

#: A strategy that looks after every pull takes too long with more arms than this.
MAX_ARMS = 1000
#: Work for a pull that grows with the square of the arms: a run with 1,000 takes a minute.
FEWER_ARMS = {"fully-adaptive": 300, "lingame": 300}


@dataclass(frozen=True, eq=False)
class Cell:
    """One strategy on one instance with one error probability.

    Attributes
    ----------
    instance : Instance
    spec : Spec
    delta : float
    bound : float
        T* kl(delta, 1 - delta); a method that keeps delta for every theta needs so many pulls on
        average.
    cap : int
        Pulls after which a run is stopped, undecided.
    task : Task or None
        What to simulate; None if the strategy refuses.
    reason : str
        Why it is not simulated, otherwise empty.
    marks : tuple of str
        What the strategy knows, or does not prove.
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
        """What the progress line says."""
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
        A run that needs more than this many times the lower bound is stopped, undecided.
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
            raise ProblemError("there is no delta; give at least one, such as 0.05.")
        for delta in self.deltas:
            if not 0 < delta < 0.5:  # from 1/2 on the lower bound is nothing
                raise ProblemError(f"delta is {delta}; here it lies between 0 and 1/2.")
        if not (math.isfinite(self.max_ratio) and self.max_ratio >= 1):
            raise ProblemError(f"max_ratio is {self.max_ratio}; it is a number, 1 or more.")
        parse_specs(self.strategies)

    @property
    def command(self) -> str:
        """The command that does the same."""
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
        """Return all cells, also those that a strategy refuses."""
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
    """Return why a strategy cannot do a problem, or would take hours; empty if it can."""
    try:
        run = task.strategy.start(task.problem)
    except FinalistError as error:
        return str(error)
    K, most = len(task.means), FEWER_ARMS.get(task.strategy.name, MAX_ARMS)
    if isinstance(run, Playable) and most < K:
        return f"it looks after every pull, and {K:,} arms are more than {most:,}: too slow"
    return ""
