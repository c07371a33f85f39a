"""Blocks of runs as cells of a store: what identifies a block, and its outcomes as arrays."""

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from finalist.errors import StoreError
from finalist.problem import Identity
from finalist.simulation.task import Outcome, Task


class Keeper:
    """Collects outcomes in any order and stores each block once it is complete."""

    def __init__(
        self, blocks: Sequence[range], keep: Callable[[range, list[Outcome]], None]
    ) -> None:
        self._keep = keep
        self._block_of = {index: block for block in blocks for index in block}
        self._waiting: dict[range, list[Outcome]] = {block: [] for block in blocks}

    def add(self, outcome: Outcome) -> None:
        """Add an outcome; store its block if this was the last one missing."""
        block = self._block_of[outcome.run]
        self._waiting[block].append(outcome)
        if len(self._waiting[block]) == len(block):
            self._keep(block, self._waiting.pop(block))


def arrays_of(ended: Sequence[Outcome]) -> dict[str, np.ndarray]:
    """Return one array for each field of outcomes."""
    return {name: np.array([getattr(o, name) for o in ended]) for name in Outcome._fields}


def outcomes(arrays: dict[str, np.ndarray]) -> Iterator[Outcome]:
    """Return the outcomes of a stored block."""
    # Blocks stored before there were budgets lack this field: every winner had its guarantee.
    arrays = {"certain": arrays["winner"] >= 0, **arrays}
    columns = [
        column if column.ndim > 1 else column.tolist()
        for column in (arrays[name] for name in Outcome._fields)
    ]
    return map(Outcome._make, zip(*columns, strict=True))


def identity(task: Task) -> dict[str, Any]:
    """Return everything that the outcome of a run depends on, in values that JSON can hold."""
    if callable(task.rewards):
        raise StoreError(
            "rewards is a function, so stored results could not be found again; "
            "name a kind of rewards, or use finalist.simulate without a store."
        )
    # Print in full: by default NumPy drops digits, and the middle of long arrays.
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        strategy = repr(task.strategy)
    if " at 0x" in strategy:
        raise StoreError(
            f"the repr of the strategy is {strategy}, without its settings; make it a dataclass."
        )
    problem = task.problem
    # Only what differs from the default: adding all settings would change the keys of stored runs.
    unusual = {
        "budget": problem.budget,
        "most_pulls": problem.max_pulls_per_arm,
        "cost": None if problem.cost == 1.0 else problem.costs.tolist(),
        "batch_intercept": problem.batch_intercept or None,
        "measurable": _some(problem.arms.measurable),
        "candidate": _some(problem.arms.candidate),
        "misspecification": problem.misspecification or None,
        # Which bends are looked for depends on how the features were made.
        "check": [problem.check, problem.arms.recipe.name] if problem.check else None,
        "noise_drawn": task.noise,
        "mean": None if problem.mean == Identity() else repr(problem.mean),
        "shift": task.shift or None,
        "size": task.size,
        "deviations": _deviations(task),
    }
    return {
        "kind": "simulation",
        "features": _digest(problem.arms.features),
        "theta": task.theta.tolist(),
        "strategy": strategy,
        "noise": repr(problem.noise),
        "goal": repr(problem.goal),
        "delta": problem.delta,
        "objective": problem.objective,
        "rewards": task.rewards,
        "seed": task.seed,
        "max_pulls": task.max_pulls,
        **{name: value for name, value in unusual.items() if value is not None},
    }


def _some(mask: np.ndarray) -> list[int] | None:
    return None if mask.all() else np.flatnonzero(mask).tolist()


def _deviations(task: Task) -> list[float] | None:
    """Return how far the means are from the model; None if they follow it."""
    beyond = task.means - task.problem.means(task.theta)
    return beyond.tolist() if beyond.any() else None


def _digest(array: np.ndarray) -> str:
    content = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return hashlib.sha256(str(array.shape).encode() + content).hexdigest()
