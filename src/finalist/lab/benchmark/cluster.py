"""Blocks of runs on a Dask cluster; this process alone writes the results.

A block is a pure function of its task and its numbers. When a worker dies, Dask runs its blocks
again elsewhere, with the same outcomes.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from finalist import __version__
from finalist.errors import (
    DesignError,
    MissingExtraError,
    NotYetSupportedError,
    ProblemError,
    SimulationError,
)
from finalist.lab.store import Store, settings_of
from finalist.simulation.engine import gather
from finalist.simulation.result import Simulation
from finalist.simulation.task import Outcome, Task

if TYPE_CHECKING:
    from distributed import Client, Future

#: Errors by which a strategy says that it cannot do a problem.
REFUSALS = (ProblemError, NotYetSupportedError, DesignError)
#: What a cell gave: its runs, or why there are none.
Found = Simulation | str
#: What Dask can connect to; its client leaves threads behind when it fails at anything else.
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
) -> dict[int, Found]:
    """Simulate tasks on the workers of a scheduler, all blocks at once.

    Parameters
    ----------
    tasks : mapping of int to Task
        By the number of the cell.
    store : Store
        What it has is not simulated again; blocks are kept in it as they end.
    runs, block : int
        Runs of each task, and how many are sent together.
    address : str
        Of the scheduler.
    told : function
        Called with the number of a cell that is done and how many are.
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
    """Simulate runs of a task, on a worker; also return the version that did it."""
    return __version__, [task.run(index) for index in range(first, end)]


def _blocks(
    client: "Client", tasks: Mapping[int, Task], missing: Mapping[int, list[range]]
) -> Iterator[tuple[Block, list[Outcome] | str]]:
    """Send all blocks to the workers and yield them as they end."""
    from distributed import as_completed

    units: dict[str, list[Block]] = {}  # two cells may be the same task
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
    """Return the outcomes of a block, or why the strategy refuses."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        version, outcomes = future.result()
    except REFUSALS as error:
        return str(error)
    except KilledWorker as error:
        raise SimulationError(
            "several workers died one after the other with the same runs; see their logs, often "
            "memory is short. Finished cells are kept: the same command goes on."
        ) from error
    except (CancelledError, OSError) as error:
        raise SimulationError(
            "the connection to the cluster was lost. Finished cells are kept: the same command "
            "goes on."
        ) from error
    except ImportError as error:
        raise SimulationError(
            f"a worker cannot load finalist ({error}); install finalist {__version__} where the "
            "workers run."
        ) from error
    if version != __version__:
        raise SimulationError(
            f"a worker has finalist {version} and this is {__version__}; install the same version."
        )
    return list(outcomes)


@contextmanager
def _connected(address: str) -> "Iterator[Client]":
    """Connect to a scheduler that has a worker, or say within a minute why not."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            "a cluster needs Dask; install it with: pip install 'finalist[cluster]'"
        ) from error
    if not ADDRESS.fullmatch(address):
        raise _no_scheduler(address, "it is no address")
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
