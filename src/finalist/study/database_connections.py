"""Connections to SQLite and PostgreSQL, one for each transaction that is under way.

Idle connections are kept for the next transaction, of any thread. They are closed before a
process forks: SQLite's locks do not survive a fork, and two processes cannot share a socket.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from sqlalchemy import Connection, Engine, NullPool, QueuePool, create_engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from finalist.errors import MissingExtraError, StorageError
from finalist.study.database_errors import errors, explain
from finalist.study.database_files import Place, has_wal, identity, is_writable, uri

#: Seconds to wait for another writer.
BUSY = 30.0
_WRITABLE = ("PRAGMA query_only = 0",)
#: All that are open in this process.
_OPEN: "weakref.WeakSet[Connections]" = weakref.WeakSet()


class Connections:
    """The connections of one database.

    Parameters
    ----------
    place : Place
        A SQLite file must exist and be ours.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_sqlite = place.path is not None
        self.read_only = False
        self._busy: set[Connection] = set()
        self._taking = threading.Lock()
        self._closed = self._forked = False
        if place.path is None:
            self._engine = _server(place)
        else:
            self._file = _identity(place, place.path)
            self.read_only = not is_writable(place.path)
            self._engine = _file(place.path, self.read_only)
        self._finalizer = weakref.finalize(self, self._engine.dispose)
        _OPEN.add(self)

    def close(self) -> None:
        """Close all idle connections, and let no more be taken."""
        self._closed = True
        self._finalizer()

    @contextmanager
    def write(self, *, foreign_keys: bool = True) -> Iterator[Connection]:
        """Give a connection that holds the right to write; commit at the end.

        Tables are made anew without checks of foreign keys, or else their rows would be deleted.
        """
        if self.read_only:
            raise StorageError(
                f"{self.place.shown} can only be read. Give yourself the right to write to the "
                "file and to its folder, and open it again."
            )
        begin = (
            (*_WRITABLE, f"PRAGMA foreign_keys = {int(foreign_keys)}", "BEGIN IMMEDIATE")
            if self.is_sqlite
            else (f"SET LOCAL lock_timeout = {int(1000 * BUSY)}",)
        )
        with self._transaction(begin) as connection:
            yield connection
            self._check_process()
            self._commit(connection)

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except SQLAlchemyError as error:
            if connection.invalidated:
                raise StorageError(
                    f"the connection to {self.place.shown} broke at the last moment: it is not "
                    "known whether this was written. Read again before you repeat it."
                ) from error
            raise explain(error, self.place.shown) from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the database, and that no writer waits for."""
        begin = (
            ("PRAGMA query_only = 1", "BEGIN")
            if self.is_sqlite
            else ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",)
        )
        path = self.place.path
        bare = path if path is not None and self.read_only and not has_wal(path) else None
        before = bare.stat() if bare is not None else None
        with self._transaction(begin) as connection:
            yield connection
        if bare is not None and before is not None and _has_changed(bare, before):
            raise StorageError(f"{self.place.shown} was written while it was read. Read it again.")

    def bare(self) -> AbstractContextManager[Connection]:
        """Give a connection to a file without a transaction."""
        return self._transaction(_WRITABLE)

    def use_wal(self) -> None:
        """Let readers and a writer work side by side; this lasts, as a mark in the file."""
        if not self.is_sqlite or self.read_only:
            return
        until = monotonic() + BUSY
        with self.bare() as connection:
            while connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
                try:  # SQLite does not wait by itself here
                    connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                    return
                except OperationalError as error:
                    if monotonic() > until:
                        raise explain(error, self.place.shown) from error
                    sleep(0.02)

    @contextmanager
    def _transaction(self, begin: tuple[str, ...]) -> Iterator[Connection]:
        """Take a connection and begin; roll back what is not committed, and give it back."""
        connection = self._take()
        try:
            with errors(self.place.shown):
                for statement in begin:
                    connection.exec_driver_sql(statement)
            yield connection
        finally:
            if connection in self._busy:
                self._busy.discard(connection)
                with suppress(Exception):  # the first error is the one that tells
                    connection.rollback()
                with suppress(Exception):
                    connection.close()

    def _take(self) -> Connection:
        self._check_process()
        if self._closed:
            raise StorageError(f"{self.place.shown} is closed. Open it again.")
        if self.place.path is not None and _identity(self.place, self.place.path) != self._file:
            raise StorageError(
                f"{self.place.shown} was replaced by another file while it was in use. "
                "Open it again."
            )
        with errors(self.place.shown), self._taking:
            connection = self._engine.connect()
            self._busy.add(connection)
        return connection

    def _check_process(self) -> None:
        if self._forked:
            raise StorageError(
                f"{self.place.shown} was in use when this process was forked. Open it anew in a "
                "process that is forked before, or start the process with 'spawn'."
            )

    def before_fork(self) -> None:
        """Close idle connections, and let none be taken: the new process must not have any."""
        self._taking.acquire()
        self._engine.dispose()

    def after_fork(self, is_new: bool) -> None:
        """Go on; in the new process, leave alone the transactions of the old one."""
        if is_new and self._busy:
            self._forked = True
            _LEFT.extend(self._busy)
            self._busy.clear()
        self._taking.release()


#: Those held while the process forks.
_HELD: list[Connections] = []
#: Connections of the process this one was forked from: to close them would harm it.
_LEFT: list[Connection] = []


def _before_fork() -> None:
    for connections in list(_OPEN):
        connections.before_fork()
        _HELD.append(connections)


def _after_fork(is_new: bool) -> None:
    while _HELD:
        _HELD.pop().after_fork(is_new)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(False),
        after_in_child=lambda: _after_fork(True),
    )


def _identity(place: Place, path: Path) -> tuple[int, int]:
    try:
        return identity(path)
    except OSError as error:
        raise StorageError(
            f"{place.shown} is no longer there: it was moved or deleted while it was in use. "
            "Put it back, with the file that ends in -wal if there is one."
        ) from error


def _has_changed(path: Path, before: os.stat_result) -> bool:
    """Return whether a file that was read without locks may have been written meanwhile."""
    after = path.stat()
    return (after.st_mtime_ns, after.st_size) != (before.st_mtime_ns, before.st_size)


def _file(path: Path, read_only: bool) -> Engine:
    """Return an engine for a SQLite file."""

    def connect() -> sqlite3.Connection:
        if not read_only:
            return open_file(uri(path, mode="rw"))
        # Without changes beside it, the file is read as it is: SQLite would leave files behind
        # that nobody may write to. With them, SQLite has to find its way through its locks.
        return open_file(
            uri(path, mode="ro") if has_wal(path) else uri(path, mode="ro", immutable=1)
        )

    if read_only:
        return create_engine("sqlite://", creator=connect, poolclass=NullPool)
    return create_engine("sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1)


def open_file(address: str) -> sqlite3.Connection:
    """Open a SQLite file; what is committed is on the disk."""
    connection = sqlite3.connect(
        address, uri=True, timeout=BUSY, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _server(place: Place) -> Engine:
    """Return an engine for PostgreSQL."""
    assert place.url is not None
    try:
        return create_engine(
            place.url,
            connect_args={"client_encoding": "utf8"},
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,  # the server may have been restarted
            pool_timeout=BUSY,
        )
    except ImportError as error:
        raise MissingExtraError(
            "PostgreSQL needs psycopg. Install it with: pip install 'finalist[postgres]'"
        ) from error
