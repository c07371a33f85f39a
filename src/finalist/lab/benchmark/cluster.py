"""Blocks of runs on a Dask cluster; only this process writes to the store.

A block is a pure function of its task and its run numbers: when a worker dies, Dask runs its
blocks elsewhere and gets the same outcomes.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from finalist import __version__
from finalist.errors import DesignError, NotYetSupportedError, ProblemError, SimulationError
from finalist.extras import need
from finalist.lab.store import Store, settings_of
from finalist.simulation.engine import gather
from finalist.simulation.result import Simulation
from finalist.simulation.task import Outcome, Task

if TYPE_CHECKING:
    from distributed import Client, Future

#: Errors with which a strategy declines a problem.
REFUSALS = (ProblemError, NotYetSupportedError, DesignError)
#: The result of a cell: its runs, or the reason there are none.
RunsOrReason = Simulation | str
#: Addresses Dask can connect to; given anything else, its client fails and leaves threads behind.
ADDRESS = re.compile(r"((tcp|tls|ws|wss|ucx)://)?[^\s/]+:[0-9]{1,5}|inproc://\S+")
#: Seconds to wait for the scheduler, and for its first worker.
CONNECT, FIRST_WORKER = 10, 60


class Block(NamedTuple):
    """Some runs of the task of a cell."""

    cell: int
    part: range


def on_cluster(
    tasks: Mapping[int, Task],
    store: Store,
    runs: int,
    block: int,
    address: str,
    told: Callable[[int, int], None],
) -> dict[int, RunsOrReason]:
    """Simulate tasks on the workers of a scheduler, all blocks at once.

    Parameters
    ----------
    tasks : mapping of int to Task
        By the number of the cell.
    store : Store
        Runs in it are not simulated again; blocks are stored as they finish.
    runs, block : int
        Runs of each task, and how many are sent together.
    address : str
        Of the scheduler.
    told : function
        Called with the number of a finished cell and how many are finished.
    """
    done: dict[int, list[Outcome]] = {}
    missing: dict[int, list[range]] = {}
    for cell, task in tasks.items():
        done[cell], missing[cell] = store.found(task, runs, block)
    reasons: dict[int, str] = {}
    with _connected(address) as client:
        for unit, ended in _blocks(client, tasks, missing):
            if isinstance(ended, str):
                reasons[unit.cell] = ended
            else:
                store.keep(tasks[unit.cell], unit.part, ended)
                done[unit.cell].extend(ended)
            missing[unit.cell].remove(unit.part)
            if not missing[unit.cell]:
                told(unit.cell, sum(not parts for parts in missing.values()))
    return reasons | {
        cell: gather(task, done[cell], runs) for cell, task in tasks.items() if cell not in reasons
    }


def simulate_block(task: Task, first: int, end: int) -> tuple[str, list[Outcome]]:
    """Simulate runs of a task on a worker; also return the worker's version of finalist."""
    return __version__, [task.run(index) for index in range(first, end)]


def _blocks(
    client: "Client", tasks: Mapping[int, Task], missing: Mapping[int, list[range]]
) -> Iterator[tuple[Block, list[Outcome] | str]]:
    """Send all blocks to the workers and yield them as they finish."""
    from distributed import as_completed

    units: dict[str, list[Block]] = {}  # two cells can have the same task
    futures: list[Future] = []
    for cell, parts in missing.items():
        name = hashlib.sha256(json.dumps(settings_of(tasks[cell])).encode()).hexdigest()
        for part in parts:
            key = f"finalist-{name}-{part.start}-{part.stop}"
            if key not in units:
                arguments = (tasks[cell], part.start, part.stop)
                futures.append(client.submit(simulate_block, *arguments, key=key))
            units.setdefault(key, []).append(Block(cell, part))
    try:
        for future in as_completed(futures, loop=client.loop):
            ended = _result(future)
            for unit in units[future.key]:
                yield unit, ended
            future.release()
    finally:
        client.cancel(futures)


def _result(future: "Future") -> list[Outcome] | str:
    """Return the outcomes of a block, or the reason why the strategy declined."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        version, outcomes = future.result()
    except REFUSALS as error:
        return str(error)
    except KilledWorker as error:
        raise SimulationError(
            "several workers in a row died on the same runs; see their logs (often they run out "
            "of memory). Finished cells are kept: run the same command again to continue."
        ) from error
    except (CancelledError, OSError) as error:
        raise SimulationError(
            "the connection to the cluster was lost. Finished cells are kept: run the same command "
            "again to continue."
        ) from error
    except ImportError as error:
        raise SimulationError(
            f"a worker cannot import finalist ({error}); install finalist {__version__} where the "
            "workers run."
        ) from error
    if version != __version__:
        raise SimulationError(
            f"a worker runs finalist {version} and this is {__version__}; install the same version."
        )
    return list(outcomes)


@contextmanager
def _connected(address: str) -> "Iterator[Client]":
    """Connect to a scheduler and wait for its first worker; fail within about a minute."""
    need("Clusters", "distributed")
    from distributed import Client

    if not ADDRESS.fullmatch(address):
        raise _no_scheduler(address, "this is not an address")
    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise _no_scheduler(address, error) from error
    try:
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER)
        except TimeoutError as error:
            raise SimulationError(
                f"the scheduler at {address!r} has had no worker for {FIRST_WORKER} seconds; start "
                f"one with: dask worker {address} --nthreads 1"
            ) from error
        yield client
    finally:
        client.close()


def _no_scheduler(address: str, reason: object) -> SimulationError:
    return SimulationError(
        f"there is no Dask scheduler at {address!r} ({reason}); start one with 'dask scheduler' "
        "and give the address it prints, such as tcp://10.0.0.1:8786."
    )
