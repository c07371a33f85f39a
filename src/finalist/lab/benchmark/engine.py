"""Simulate cells through a store of results, here or on a Dask cluster.

Blocks of runs are stored as they finish and are not simulated again. A run gives the same result
wherever it is made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from finalist.lab.benchmark.cluster import REFUSALS, RunsOrReason, on_cluster
from finalist.lab.benchmark.plan import Cell, Plan
from finalist.lab.store import Store
from finalist.shapes import Float
from finalist.simulation import Simulation
from finalist.simulation.summary import FEWEST, mean_interval

#: Runs stored together, as in the reproduction of the paper.
BLOCK = 10
#: Called with the number of finished cells, the number of cells, and what is being simulated.
Announce = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class CellResult:
    """The runs of a cell, or why there are none.

    Attributes
    ----------
    reason : str
        Why there is no result, otherwise empty.
    """

    cell: Cell
    result: Simulation | None
    reason: str = ""

    @property
    def measured(self) -> Simulation:
        """The runs; only for cells that have some."""
        assert self.result is not None, self.cell.label
        return self.result

    @cached_property
    def ratios(self) -> Float[np.ndarray, " runs"]:
        """Pulls of each run over the lower bound; an undecided run counts up to the cap."""
        found = self.measured
        pulls = np.where(found.decided, found.samples, self.cell.cap)
        return np.asarray(pulls / self.cell.bound)

    @property
    def ratio(self) -> float:
        """Mean pulls over the lower bound; a lower limit if runs were undecided."""
        return float(self.ratios.mean())

    @cached_property
    def interval(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the ratio (bootstrap); None for an end that is unknown.

        With few runs both are. An undecided run might have needed any number of pulls, so there is
        no upper end; the lower one holds, because no run counts for more than it needs.
        """
        if len(self.ratios) < FEWEST:
            return None, None
        low, high = mean_interval(self.ratios)
        return low, None if self.undecided else high

    @property
    def pulls_interval(self) -> tuple[float | None, float | None]:
        """The interval of the mean pulls."""
        low, high = (None if end is None else end * self.cell.bound for end in self.interval)
        return low, high

    @property
    def batches(self) -> float:
        """Mean batches of a run; a lower limit if runs were undecided.

        An undecided run would have had at least one more batch, which is counted.
        """
        return float((self.measured.batches + ~self.measured.decided).mean())

    @property
    def undecided(self) -> int:
        """Runs stopped at the cap."""
        return int((~self.measured.decided).sum())

    @property
    def seconds(self) -> float:
        """Median CPU time of a run. The first run of a process also loads compiled code."""
        return float(np.median(self.measured.seconds))

    def record(self) -> dict[str, Any]:
        """Return the cell for CSV and JSON; missing values are None."""
        cell = self.cell
        about = {
            "instance": cell.instance.name,
            "arms": len(cell.instance.arms),
            "rank": cell.instance.arms.rank,
            "delta": cell.delta,
            "strategy": cell.spec.label,
            "marks": ", ".join(cell.marks),
            "lower_bound": cell.bound,
            "max_pulls": cell.cap,
            "reason": self.reason,
        }
        return about | (_NOTHING if self.result is None else self._figures())

    def _figures(self) -> dict[str, Any]:
        found, bound = self.measured, self.cell.bound
        (low, high), (few, many) = self.interval, self.pulls_interval
        least, most = found.error_bounds()
        return {
            "runs": len(found),
            "undecided": self.undecided,
            "mean_pulls": self.ratio * bound,
            "mean_pulls_low": few,
            "mean_pulls_high": many,
            "ratio": self.ratio,
            "ratio_low": low,
            "ratio_high": high,
            "errors": found.errors,
            "error_low": least,
            "error_high": most,
            "mean_batches": self.batches,
            "median_cpu_seconds": self.seconds,
        }


_FIGURES = (
    "runs undecided mean_pulls mean_pulls_low mean_pulls_high ratio ratio_low ratio_high errors "
    "error_low error_high mean_batches median_cpu_seconds"
)
_NOTHING: dict[str, Any] = dict.fromkeys(_FIGURES.split())


def run(
    plan: Plan,
    store: Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    announce: Announce | None = None,
) -> list[CellResult]:
    """Measure every cell of a plan.

    Parameters
    ----------
    plan : Plan
    store : Path
        The file of results; created if missing.
    jobs : int
        Processes on this machine; -1 is one for every core.
    scheduler : str, optional
        Address of a Dask scheduler, tcp://HOST:PORT. Cells then run on its workers, and only
        this process writes to the store.
    announce : function, optional
        Called as cells finish.

    Returns
    -------
    list of CellResult
        In the order of the plan.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; finished blocks are in the store.
    SimulationError
        If the cluster cannot be reached or the connection is lost.
    """
    cells = plan.cells()
    if announce is not None:
        announce(0, len(cells), "starting")
    with Store(store) as results:
        if scheduler is None:
            found = _here(cells, results, plan.runs, jobs, announce)
        else:
            tasks = {i: cell.task for i, cell in enumerate(cells) if cell.task is not None}
            told = _counting(cells, announce)
            found = on_cluster(tasks, results, plan.runs, BLOCK, scheduler, told)
    return [_result(cell, found.get(index)) for index, cell in enumerate(cells)]


def _here(
    cells: Sequence[Cell], store: Store, runs: int, jobs: int, announce: Announce | None
) -> dict[int, RunsOrReason]:
    """Simulate one cell after another, each with its runs spread over processes."""
    found: dict[int, RunsOrReason] = {}
    for index, cell in enumerate(cells):
        if announce is not None:
            announce(index, len(cells), cell.label)
        if cell.task is None:
            continue
        try:
            result = store.run(cell.task, runs=runs, block=BLOCK, n_jobs=jobs, progress=False)
        except REFUSALS as error:
            found[index] = str(error)
            continue
        if len(result) < runs:
            raise KeyboardInterrupt
        found[index] = result
    return found


def _counting(cells: Sequence[Cell], announce: Announce | None) -> Callable[[int, int], None]:
    """Return a callback for the number of a cell and how many are finished."""
    refused = sum(cell.task is None for cell in cells)

    def told(index: int, done: int) -> None:
        if announce is not None:
            announce(refused + done, len(cells), cells[index].label)

    return told


def _result(cell: Cell, found: RunsOrReason | None) -> CellResult:
    if isinstance(found, Simulation):
        return CellResult(cell, found)
    return CellResult(cell, None, cell.reason if found is None else found)
