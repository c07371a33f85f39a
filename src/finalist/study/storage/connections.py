"""Connections to SQLite and PostgreSQL, one for each transaction that is under way.

Idle connections are kept for the next transaction, of any thread. They are closed before a
process forks: SQLite's locks do not survive a fork, and two processes cannot share a socket.
PostgreSQL has connections of two kinds, so that readers never wait for those who write and wait
for each other's locks.
"""

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from sqlalchemy import Connection, Engine, NullPool, QueuePool, create_engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from finalist.errors import MissingExtraError, StorageError
from finalist.sqlite_files import uri
from finalist.study.storage import forks
from finalist.study.storage.errors import errors, explain
from finalist.study.storage.files import Place, has_wal, identity, is_writable
from finalist.study.storage.lineage import count_transaction

#: Seconds to wait for another writer.
BUSY = 30.0
#: Connections to PostgreSQL that one process has at most: to read, and to write.
MAX_READERS, MAX_WRITERS = 20, 10
#: Of either kind, those that are kept when they are idle.
_KEPT = 5
_WRITABLE = ("PRAGMA query_only = 0",)


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
        self.read_only = self._closed = False
        self._file: forks.FileId | None = None
        if place.path is None:
            self._reading = _server(place, MAX_READERS)
            self._writing = _server(place, MAX_WRITERS)
        else:
            self._file = _identity(place, place.path)
            self.read_only = not is_writable(place.path)
            self._reading = self._writing = _file(place.path, self.read_only)
        for engine in {self._reading, self._writing}:
            forks.watch(engine)
        self._finalizer = weakref.finalize(self, _dispose, self._reading, self._writing)

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
        with self._transaction(self._writing, begin) as connection:
            if self._file is not None:
                self._check_file()  # while this one waited, another may have replaced it
                with errors(self.place.shown):
                    count_transaction(connection)
            yield connection
            forks.check_transaction(self.place.shown, connection)
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
            ("PRAGMA query_only = 1", "BEGIN", "PRAGMA schema_version")  # which begins it
            if self.is_sqlite
            else ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",)
        )
        path = self.place.path
        bare = path if path is not None and self.read_only and not has_wal(path) else None
        before = bare.stat() if bare is not None else None
        with self._transaction(self._reading, begin) as connection:
            self._check_file()  # another may have taken its place while it was opened
            yield connection
        if bare is not None and before is not None and _has_changed(bare, before):
            raise StorageError(f"{self.place.shown} was written while it was read. Read it again.")

    def hold(self) -> AbstractContextManager[Connection]:
        """Give a connection to a file that holds the right to write and writes nothing."""
        return self._transaction(self._writing, (*_WRITABLE, "BEGIN IMMEDIATE"))

    def bare(self) -> AbstractContextManager[Connection]:
        """Give a connection to a file without a transaction."""
        return self._transaction(self._writing, _WRITABLE)

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

    def count_first(self) -> None:
        """Give a file from before there were counts its first one, in the file if possible."""
        with self.write():
            pass  # which counts itself
        with self.bare() as connection, suppress(SQLAlchemyError):  # readers may be in the way
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()

    @contextmanager
    def _transaction(self, engine: Engine, begin: tuple[str, ...]) -> Iterator[Connection]:
        """Take a connection and begin; roll back what is not committed, and give it back."""
        if self._closed:
            raise StorageError(f"{self.place.shown} is closed. Open it again.")
        self._check_file()
        with errors(self.place.shown):
            connection = forks.begin(engine.connect, self._file)
        try:
            with errors(self.place.shown):
                for statement in begin:
                    connection.exec_driver_sql(statement)
            yield connection
        finally:
            if forks.is_ours(connection):
                with suppress(Exception):  # the first error is the one that tells
                    connection.rollback()
                with suppress(Exception):
                    connection.close()
                forks.end(connection)

    def _check_file(self) -> None:
        """Refuse a file that is not the one that was opened."""
        if self._file is None or self.place.path is None:
            return
        forks.check_file(self.place.shown, self._file)
        if _identity(self.place, self.place.path) != self._file:
            raise StorageError(
                f"{self.place.shown} was replaced by another file while it was in use. "
                "Open it again."
            )


def _dispose(*engines: Engine) -> None:
    with forks.using():
        for engine in engines:
            engine.dispose()


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


def _server(place: Place, most: int) -> Engine:
    """Return an engine for PostgreSQL with so many connections at most."""
    assert place.url is not None
    try:
        return create_engine(
            place.url,
            connect_args={"client_encoding": "utf8"},
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,  # the server may have been restarted
            pool_size=_KEPT,
            max_overflow=most - _KEPT,
            pool_timeout=BUSY,
        )
    except ImportError as error:
        raise MissingExtraError(
            "PostgreSQL needs psycopg. Install it with: pip install 'finalist[postgres]'"
        ) from error
