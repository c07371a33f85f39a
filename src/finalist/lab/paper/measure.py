"""Simulate cells through a store of results, so that a stopped reproduction goes on."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from finalist.lab.paper.cells import Cell, Outcome, Plan
from finalist.lab.paper.experiment import DELTA, SIGMA, instance

if TYPE_CHECKING:
    from finalist.simulation import Simulation

#: Called before each cell with its number, how many there are, and the cell.
Announce = Callable[[int, int, Cell], None]
STORE = "results.sqlite"
#: Runs kept together: a quick reproduction leaves blocks that a full one goes on from.
_BLOCK = 10


def distinct(cells: Iterable[Cell]) -> list[Cell]:
    """Return every cell once, the quickest first, so that errors show early."""
    return sorted(dict.fromkeys(cells), key=lambda cell: cell.seconds(1))


def measure(
    cells: Iterable[Cell],
    plan: Plan,
    folder: Path,
    *,
    seed: int = 0,
    jobs: int = 1,
    announce: Announce | None = None,
) -> dict[Cell, Outcome]:
    """Simulate every cell once; what the store in the folder has is not simulated again.

    Parameters
    ----------
    cells : iterable of Cell
    plan : Plan
        How many runs each cell gets.
    folder : Path
        Where `results.sqlite` is, or will be.
    seed, jobs : int
        Of the simulations; results do not depend on the number of jobs.
    announce : function, optional
        Called before each cell.

    Raises
    ------
    KeyboardInterrupt
        When the simulation of a cell was interrupted; what it finished is in the store.
    """
    from finalist.lab.store import Store

    outcomes: dict[Cell, Outcome] = {}
    wanted = distinct(cells)
    with Store(folder / STORE) as store:
        for number, cell in enumerate(wanted, 1):
            if announce is not None:
                announce(number, len(wanted), cell)
            problem, runs = instance(cell.d), plan.runs_of(cell)
            found = store.simulate(
                problem.arms,
                problem.theta,
                cell.strategy(problem),
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
            outcomes[cell] = _outcome(found)
    return outcomes


def _outcome(found: "Simulation") -> Outcome:
    return Outcome(found.samples, found.pulls_per_arm.mean(axis=0), int((~found.correct).sum()))
