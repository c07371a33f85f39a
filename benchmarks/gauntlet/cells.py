"""Measure a cell, or read what was measured before.

    from benchmarks.gauntlet.cells import measure
    from benchmarks.gauntlet.families import family

    measure(family("sphere, 20 x 5", "tuning", 20, 0.05), runs=10).mean

Instances are taken as given: standard errors are those of the runs, and say nothing about other
draws of the instances.
"""

import ast
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import finalist as fl
from benchmarks.gauntlet.families import Spec, lower_bound
from finalist.lab.store import Store
from finalist.problem.rules import NEWEST, RULES, Rules, rules_of
from finalist.simulation import Simulation
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.instances import Instance
from finalist.strategies import Gauntlet, Strategy

#: How the strategy for an instance is chosen.
Choice = Callable[[Instance], Strategy]
#: The rules of version 0.1.0.
FIRST_RULES = rules_of(1)
#: A run with more pulls than this many times the bound is stopped, and counted as undecided.
CAP = 200
#: Runs stored together.
BLOCK = 10
#: What the runs of the newest rules depend on, in the folder of the package.
CODE = ("strategies/gauntlet", "design", "inference", "simulation", "problem")


class CodeStore(Store):
    """A store that knows the code of the newest rules: other code computes its runs again.

    Settings are tuned by changing code, so the number of the rules does not say what was run. The
    runs of earlier rules, which stay as they are, are kept whatever the code.
    """

    def get(self, settings: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
        """Return the arrays of a cell that this code computed."""
        return super().get(_with_code(settings))

    def put(self, settings: Mapping[str, Any], arrays: Mapping[str, ArrayLike]) -> None:
        """Store the arrays of a cell under this code."""
        super().put(_with_code(settings), arrays)


def _with_code(settings: Mapping[str, Any]) -> dict[str, Any]:
    moving = settings["rules"] == NEWEST.number and settings["strategy"].startswith("Gauntlet(")
    return {**settings, "code": code_digest()} if moving else dict(settings)


@cache
def code_digest() -> str:
    """Return a digest of the code in `CODE`, without its comments and docstrings."""
    folder, digest = Path(fl.__file__).parent, hashlib.sha256()
    for path in sorted(path for part in CODE for path in (folder / part).rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and _is_text(body[0]):
                del body[0]
        digest.update(f"{path.relative_to(folder).as_posix()}\n{ast.dump(tree)}\n".encode())
    return digest.hexdigest()


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@dataclass(frozen=True, eq=False)
class Cell:
    """What came out on the instances of a cell; one simulation for each."""

    spec: Spec
    rules: Rules
    bound: float
    cap: float
    results: tuple[Simulation, ...]

    @property
    def rank(self) -> int:
        """The rank of the arms."""
        return self.spec.numbered[0].instance.arms.rank

    @cached_property
    def ratios(self) -> tuple[np.ndarray, ...]:
        """Pulls over the bound, the runs of each instance; the cap where a run was stopped at it.

        A run is stopped before the batch that would exceed the cap, so it needs more than that.
        """
        return tuple(
            np.where(result.decided, result.samples / self.bound, self.cap)
            for result in self.results
        )

    @property
    def means(self) -> np.ndarray:
        """Mean pulls over the bound on each instance."""
        return np.array([part.mean() for part in self.ratios])

    @property
    def squared_errors(self) -> np.ndarray:
        """The squared standard errors of the means."""
        return np.array([part.var(ddof=1) / len(part) for part in self.ratios])

    @property
    def mean(self) -> float:
        """Mean pulls over the bound."""
        return float(self.means.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return math.sqrt(float(self.squared_errors.sum())) / len(self.ratios)

    @property
    def runs(self) -> int:
        """The number of runs on all instances."""
        return sum(len(result) for result in self.results)

    @property
    def wrong(self) -> int:
        """The number of runs with a wrong winner."""
        return sum(result.errors for result in self.results)

    @property
    def undecided(self) -> int:
        """The number of runs stopped at the cap."""
        return sum(int((~result.decided).sum()) for result in self.results)

    @property
    def keeps_delta(self) -> bool:
        """Whether delta is not below the exact 99.9 % lower bound of the error probability."""
        return exact_lower_bound(self.wrong, self.runs, 0.999) <= self.spec.delta

    def every(self, what: str) -> np.ndarray:
        """Return an array of `Simulation` over the runs on all instances."""
        return np.concatenate([getattr(result, what) for result in self.results])

    @property
    def pulls_over_rank(self) -> float:
        """Mean pulls over the rank of the arms."""
        return self.mean * self.bound / self.rank

    @property
    def mean_batches(self) -> float:
        """Mean number of batches."""
        return float(self.every("batches").mean())

    @property
    def milliseconds(self) -> float:
        """CPU of a run, the median."""
        return 1e3 * float(np.median(self.every("seconds")))

    @property
    def outcome(self) -> str:
        """How many runs had a wrong winner, or none."""
        stopped = f", {self.undecided} undecided" if self.undecided else ""
        return f"{self.wrong} of {self.runs}{stopped}"

    def line(self) -> str:
        """Return one line for people."""
        text = f"{self.spec.title}, rules {self.rules.number}: {self.mean:.3f} +- {self.error:.3f}"
        return f"{text}, {self.pulls_over_rank:.1f} times the rank, wrong: {self.outcome}"


def measure(
    spec: Spec,
    rules: Rules = NEWEST,
    *,
    runs: int,
    jobs: int = 1,
    store: Store | None = None,
    strategy: Choice = lambda _: Gauntlet(),
    cap: float = CAP,
) -> Cell:
    """Simulate `runs` runs on each instance of a cell.

    Parameters
    ----------
    spec : Spec
    rules : Rules
        The newest, those of an earlier version, or, without a store, any that are tried.
    runs : int
    jobs : int
        Processes; -1 means one per core.
    store : Store, optional
        Where runs are kept, and read if they are there.
    strategy : function
        The strategy for an instance, which may be told of it what it asks for.
    cap : float
        The most pulls of a run, times the bound.
    """
    if store is not None and RULES.get(rules.number) != rules:
        raise ValueError(f"rules {rules} are not those of number {rules.number}; use no store")
    bound = lower_bound(spec.numbered[0].instance, spec.delta)
    results = []
    for instance, seed in spec.numbered:
        words: dict[str, Any] = {
            "runs": runs,
            "seed": seed,
            "delta": spec.delta,
            "sigma": 1.0,
            "rules": rules,
            "n_jobs": jobs,
            "max_pulls": math.ceil(cap * bound),
            "progress": False,
        }
        chosen = instance.arms, instance.theta, strategy(instance)
        if store is None:
            result = fl.simulate(*chosen, **words)
        else:
            result = store.simulate(*chosen, block=BLOCK, **words)
        if len(result) < runs:  # Ctrl-C ended the simulation, and should end everything
            raise KeyboardInterrupt
        results.append(result)
    return Cell(spec, rules, bound, cap, tuple(results))


def geometric_mean(cells: Sequence[Cell]) -> tuple[float, float]:
    """Return the geometric mean of the cells' means, and its standard error (delta method)."""
    means = np.array([cell.mean for cell in cells])
    relative = np.array([cell.error for cell in cells]) / means
    mean = float(np.exp(np.log(means).mean()))
    return mean, mean * math.sqrt(float((relative**2).sum())) / len(cells)
