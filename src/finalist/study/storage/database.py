"""A database of studies: a SQLite file or PostgreSQL.

What was written when `write` returns is on the disk, and survives the loss of power. Whatever
fails comes out as `StorageError`, and nothing was changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

from finalist.errors import StorageError
from finalist.study.storage.connections import Connections
from finalist.study.storage.reader import Reader
from finalist.study.storage.rows import EventRow, RewardRows, StudyRow
from finalist.study.storage.upgrade import prepare
from finalist.study.storage.writer import Writer

__all__ = ["Database", "EventRow", "Reader", "RewardRows", "StudyRow", "Writer"]


class Database:
    """An open database: the `Storage` of studies. Threads may share it, and forked processes.

    Examples
    --------
    >>> import tempfile
    >>> from finalist.study.results import Results
    >>> folder = tempfile.TemporaryDirectory()
    >>> database = Database.open(folder.name + "/lab.db", create=True)
    >>> with database.write() as writer:
    ...     study = writer.create("colours", {"delta": 0.05}, "0.1")
    ...     _ = writer.append(study, 1, "told", {}, rewards=Results([3, 1], [0.5, 0.25]))
    >>> with database.read() as reader:
    ...     reader.rewards(study).value
    array([0.25, 0.5 ])
    >>> database.close(); folder.cleanup()
    """

    def __init__(self, connections: Connections, address: str | PathLike[str]) -> None:
        self._connections = connections
        self.where, self.address = connections.shown, address

    @classmethod
    def open(cls, where: str | PathLike[str], *, create: bool = False) -> "Database":
        """Open a database; older tables are upgraded, and a file is copied first.

        Parameters
        ----------
        where : path-like or str
            A file of SQLite, or the address of PostgreSQL: ``postgresql://user@host/name``.
        create : bool
            Make the file, or the tables in PostgreSQL, if they are not there.
        """
        return cls(prepare(where, create), where)

    def close(self) -> None:
        """Close the database; this also happens when it is no longer referenced."""
        self._connections.close()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """Give one transaction: all of it is on the disk at the end, or nothing.

        On SQLite there is one writer at a time. On PostgreSQL there is one for each study, from
        `Writer.lock` or from its first event on.
        """
        with self._connections.write() as connection:
            writer = Writer(connection, self._connections.dialect)
            yield writer
            if writer.failed:
                raise StorageError(
                    f"a step failed, so nothing was written to {self.where}. Do it again."
                )

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """Give one state of the database: it stays the same, and no writer waits for it."""
        with self._connections.read() as connection:
            yield Reader(connection, self._connections.dialect)
