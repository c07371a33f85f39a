"""Simulate cells through a store of results, here or on a Dask cluster.

Runs are kept in blocks as they end; what is in the store is not simulated again. Every run is the
same wherever it is made.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from finalist.lab.benchmark.cluster import REFUSALS, Found, on_cluster
from finalist.lab.benchmark.outcome import Outcome
from finalist.lab.benchmark.plan import Cell, Plan
from finalist.lab.store import Store
from finalist.simulation import Simulation

#: Runs kept together, as in the reproduction of the paper.
BLOCK = 10
#: Called with the number of finished cells, how many there are, and what is at work.
Announce = Callable[[int, int, str], None]


def run(
    plan: Plan,
    store: Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    announce: Announce | None = None,
) -> list[Outcome]:
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
        Called as cells end.

    Returns
    -------
    list of Outcome
        In the order of the plan.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; what was finished is in the store.
    SimulationError
        When the cluster cannot be reached, or is lost.
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
    return [_outcome(cell, found.get(index)) for index, cell in enumerate(cells)]


def _here(
    cells: Sequence[Cell], store: Store, runs: int, jobs: int, announce: Announce | None
) -> dict[int, Found]:
    """Simulate one cell after the other, the runs of each in several processes."""
    found: dict[int, Found] = {}
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
    """Return what to call with the number of a cell and how many are done."""
    refused = sum(cell.task is None for cell in cells)

    def told(index: int, done: int) -> None:
        if announce is not None:
            announce(refused + done, len(cells), cells[index].label)

    return told


def _outcome(cell: Cell, found: Found | None) -> Outcome:
    if isinstance(found, Simulation):
        return Outcome(cell, found)
    return Outcome(cell, None, cell.reason if found is None else found)
