"""What a storage of studies promises, and what a database has to bring along to be one.

`tests/contracts/test_storages.py` holds every storage to these promises.
"""
# ruff: noqa: ARG002  (methods that do nothing unless a database needs them)

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from sqlalchemy import Connection, Engine

from finalist.study.results import Results
from finalist.study.storage.place import Place

if TYPE_CHECKING:
    from finalist.study.storage.connections import Connections
    from finalist.study.storage.reader import Reader
    from finalist.study.storage.writer import Writer

#: Rewards as a database returns them.
REWARD_COLUMNS = np.dtype([("event", np.int64), ("pull", np.int64), ("reward", np.float64)])


@runtime_checkable
class Storage(Protocol):
    """Where studies are kept. Threads may share it, and so may forked processes.

    Attributes
    ----------
    where : str
        For people, without a password.
    address : str or path-like
        To open it once more.
    """

    where: str
    address: str | PathLike[str]

    def read(self) -> AbstractContextManager["Reader"]:
        """Give one state of all studies: it stays the same, and no writer waits for it."""
        ...

    def write(self) -> AbstractContextManager["Writer"]:
        """Give one transaction: all of it is on the disk at the end, or nothing.

        `Writer.lock` waits until nobody else writes to a study, and keeps it so until the end.
        """
        ...

    def close(self) -> None:
        """Refuse to be read or written from now on."""
        ...


@runtime_checkable
class Dialect(Protocol):
    """All that differs between databases: one object for each database that is open.

    Methods with a body are for databases that need nothing done there.

    Attributes
    ----------
    driver : str
        The package whose exceptions `explain` explains.
    file : (device, number) or None
        Which file is open: locks on files do not survive a fork. None for a server.
    shared : bool
        Whether other programs may have tables beside ours; without ours it is then empty.
    begin_reading : sequence of str
        Statements that begin a transaction that sees one state and cannot write.
    """

    place: Place
    driver: str
    file: tuple[int, int] | None = None
    read_only: bool = False
    shared: bool
    begin_reading: Sequence[str]

    def begin_writing(self, *, foreign_keys: bool) -> Sequence[str]:
        """Return statements that begin a transaction that writes.

        Tables are rebuilt without checks of foreign keys, or else their rows would be deleted.
        """
        ...

    # ---- opening ---------------------------------------------------------------------------

    def create(self, make_tables: Callable[[Connection], None], *, wanted: bool) -> None:
        """Make a database that is not there yet if it is `wanted`, else refuse."""
        return

    def require(self) -> None:
        """Refuse a database that is not there or not ours, without touching it."""
        return

    def engines(self) -> tuple[Engine, Engine]:
        """Return the engine to read with and the one to write with; they may be the same."""
        ...

    def inspect(self, connection: Connection, *, current: bool) -> None:
        """Look at a database just opened; `current` tells whether its tables are up to date."""
        return

    def settle(self, connections: "Connections") -> None:
        """Get a database just opened ready for use."""
        return

    # ---- transactions ----------------------------------------------------------------------

    def check_place(self) -> None:
        """Refuse to go on if another database has taken this one's place."""
        return

    def steady(self) -> AbstractContextManager[None]:
        """Refuse what was read if it may have changed meanwhile."""
        return nullcontext()

    def started(self, connection: Connection) -> None:
        """Do what every transaction that writes begins with."""
        return

    def explain(self, error: BaseException) -> str | None:
        """Return what a driver's error means, as the end of a sentence; None if unknown.

        {detail} stands for the driver's own words.
        """
        ...

    # ---- rewards, in the fastest way -------------------------------------------------------

    def read_rewards(self, connection: Connection, study: int, after: int) -> np.ndarray:
        """Return `REWARD_COLUMNS` of events above `after`, by event, then by pull."""
        ...

    def add_rewards(self, connection: Connection, study: int, event: int, told: Results) -> None:
        """Add the rewards of an event."""
        ...

    # ---- care ------------------------------------------------------------------------------

    def lock_tables(self, connection: Connection) -> None:
        """Wait until nobody else makes or upgrades tables."""
        return

    def copy_before_upgrade(self, connections: "Connections", version: str | None) -> str:
        """Keep a copy of the old tables; say where it is, or why there is none."""
        ...

    def check_upgraded(self, connection: Connection) -> None:
        """Refuse tables that an upgrade has left inconsistent."""
        return

    def problems(self, connection: Connection) -> Iterable[str]:
        """Look for damage below the tables; say what was found."""
        return ()
