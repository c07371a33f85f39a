"""Connections to a database, one for each transaction that is under way.

Idle connections are kept for the next transaction, of any thread. They are closed before a
process forks: SQLite's locks do not survive a fork, and two processes cannot share a socket.
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from finalist.errors import StorageError
from finalist.study.storage import forks
from finalist.study.storage.errors import errors, explain
from finalist.study.storage.protocol import Dialect

#: Seconds to wait for another writer.
BUSY = 30.0


class Connections:
    """The connections of one database, which must exist and be ours."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.shown = dialect.place.shown
        self._closed = False
        self._reading, self._writing = dialect.engines()
        for engine in {self._reading, self._writing}:
            forks.watch(engine)
        self._finalizer = weakref.finalize(self, _dispose, self._reading, self._writing)

    def close(self) -> None:
        """Close all idle connections, and hand out no more."""
        self._closed = True
        self._finalizer()

    @contextmanager
    def write(self, *, foreign_keys: bool = True) -> Iterator[Connection]:
        """Give a connection that holds the right to write; commit at the end."""
        if self.dialect.read_only:
            raise StorageError(
                f"{self.shown} can only be read. Give yourself the right to write to the file and "
                "to its folder, and open it again."
            )
        begin = self.dialect.begin_writing(foreign_keys=foreign_keys)
        with self._transaction(self._writing, begin) as connection:
            self.dialect.check_place()  # while this one waited, another may have replaced it
            with errors(self.dialect):
                self.dialect.started(connection)
            yield connection
            forks.check_transaction(self.shown, connection)
            self._commit(connection)

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except SQLAlchemyError as error:
            if connection.invalidated:
                raise StorageError(
                    f"the connection to {self.shown} broke at the last moment: it is not known "
                    "whether this was written. Read again before you repeat it."
                ) from error
            raise explain(error, self.dialect) from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the database, and that no writer waits for."""
        begin = self.dialect.begin_reading
        with self.dialect.steady(), self._transaction(self._reading, begin) as connection:
            self.dialect.check_place()  # another may have taken its place while it was opened
            yield connection

    def begun(self, *statements: str) -> AbstractContextManager[Connection]:
        """Give a connection to write with, after some statements; nothing is committed."""
        return self._transaction(self._writing, statements)

    @contextmanager
    def _transaction(self, engine: Engine, begin: Sequence[str]) -> Iterator[Connection]:
        """Take a connection and begin; roll back what is not committed, and give it back."""
        if self._closed:
            raise StorageError(f"{self.shown} is closed. Open it again.")
        self.dialect.check_place()
        with errors(self.dialect):
            connection = forks.begin(engine.connect, self.dialect.file)
        try:
            with errors(self.dialect):
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


def _dispose(*engines: Engine) -> None:
    with forks.using():
        for engine in engines:
            engine.dispose()
