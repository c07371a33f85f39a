"""What the tests of the benchmark share."""

from pathlib import Path

import numpy as np

from finalist.lab.benchmark.engine import CellResult
from finalist.lab.benchmark.plan import Plan
from finalist.lab.store import Store
from finalist.simulation.instances import Instance, table, unstructured

#: What two simulations of the same runs agree in; not the CPU.
FIELDS = ("run", "winner", "correct", "pulls_per_arm", "batches")


def tiny() -> list[Instance]:
    """Two instances whose runs take milliseconds."""
    return [unstructured([1.0, 0.0, 0.0]), table("plums")]


def check_same(first: list[CellResult], second: list[CellResult]) -> None:
    """Two benchmarks have the same runs, cell by cell, whoever made them."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert one.cell.label == other.cell.label
        assert (one.cell.bound, one.cell.cap) == (other.cell.bound, other.cell.cap)
        assert one.reason == other.reason
        assert (one.result is None) == (other.result is None)
        if one.result is not None and other.result is not None:
            for field in FIELDS:
                np.testing.assert_array_equal(
                    getattr(one.result, field), getattr(other.result, field), err_msg=field
                )


def blocks(path: Path) -> int:
    """Return how many blocks of runs a store has."""
    with Store(path) as store:
        return len(store)


def small_plan(**changes: object) -> Plan:
    words = {"suite": "quick", "strategies": ("gauntlet", "g"), "deltas": (0.05,), "runs": 12}
    return Plan(**{**words, **changes})  # type: ignore[arg-type]
