"""Studies in a SQLite file: what other modules here need not know about files, locks and pragmas.

One connection writes at a time; readers work beside it (WAL). `files` looks at files before SQLite
does, `lineage` counts transactions to tell a file's own changes from another's, `copies` makes
copies and puts them back.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from time import monotonic, sleep
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine, NullPool, QueuePool, create_engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from finalist.errors import StorageError
from finalist.sqlite_files import uri
from finalist.study.results import Results
from finalist.study.storage import connections as common
from finalist.study.storage import copies, forks, lineage
from finalist.study.storage.connections import Connections
from finalist.study.storage.errors import DAMAGED, LOCKED, cause_of, damaged, errors, explain
from finalist.study.storage.files import (
    WRITABLE,
    has_wal,
    in_full,
    is_missing,
    is_writable,
    open_file,
    refuse_remains,
    remove_stale,
)
from finalist.study.storage.place import Place
from finalist.study.storage.protocol import REWARD_COLUMNS, Dialect
from finalist.study.storage.schema import APPLICATION

#: By the lower byte of SQLite's error codes: https://www.sqlite.org/rescode.html
_EXPLAINED = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_FULL: (
        "cannot grow: the disk is full. Nothing was written; make space and do it again."
    ),
    sqlite3.SQLITE_READONLY: (
        "cannot be written ({detail}). Nothing was changed; give yourself the right to write to "
        "the file and to its folder."
    ),
    sqlite3.SQLITE_PERM: "may not be opened ({detail}). Ask its owner for the right to.",
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened ({detail}). If it may only be read, copy it to a folder that can be "
        "written, together with the file that ends in -wal if there is one."
    ),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written: the disk or the network reports an error ({detail}). "
        "Nothing was changed; check the disk and do it again."
    ),
}
#: By the whole code: the file under this name is another one now.
_MOVED = "was replaced by another file while it was in use. Nothing was written; open it again."
#: Lines of damage that one check reports.
_MAX_LINES = 20


class SQLite(Dialect):
    """Whoever writes is alone; readers see the file as it was when they began."""

    driver = "sqlite3"
    shared = False
    begin_reading: Sequence[str] = (
        "PRAGMA query_only = 1",
        "BEGIN",
        "PRAGMA schema_version",  # which begins it
    )
    _counted = True

    def __init__(self, place: Place) -> None:
        self.place, self.path = place, place.file()

    def begin_writing(self, *, foreign_keys: bool) -> Sequence[str]:
        """Take the only right to write at once, not at the first change."""
        keys = f"PRAGMA foreign_keys = {int(foreign_keys)}"
        return (*WRITABLE, keys, "BEGIN IMMEDIATE")

    # ---- opening ---------------------------------------------------------------------------

    def create(self, make_tables: Callable[[Connection], None], *, wanted: bool) -> None:
        """Make a file if there is none; it does not matter if another process is faster."""
        if not is_missing(self.place):
            return
        refuse_remains(self.place)
        if not wanted:
            raise StorageError(
                f"there is no file {self.place.shown}. Check the name, or create a study to make "
                "it."
            )
        with (
            suppress(FileExistsError),
            in_full(self.place, self.path) as temporary,
            errors(self),
            forks.using(),
        ):
            engine = create_engine(
                "sqlite://",
                creator=lambda: open_file(uri(temporary, mode="rwc")),
                poolclass=NullPool,
            )
            with engine.connect() as connection:
                # It gets its name, and is brought to the disk, only when it is complete.
                connection.exec_driver_sql("PRAGMA synchronous = OFF")
                connection.exec_driver_sql("PRAGMA journal_mode = MEMORY")
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
                lineage.set_count(connection, lineage.first_count())
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                make_tables(connection)
                connection.commit()

    def require(self) -> None:
        """Refuse a file that is not there, not ours, or has another file's changes beside it."""
        if is_missing(self.place):
            refuse_remains(self.place)
            raise StorageError(f"there is no file {self.place.shown}. Check the name.")
        file = self.place.identity()
        assert file is not None
        forks.check_file(self.place.shown, file)
        lineage.check(self.place)

    def engines(self) -> tuple[Engine, Engine]:
        """Return one engine for both; from here on the file under this name must stay the same."""
        self.file = self.place.identity()
        self.read_only = not is_writable(self.path)
        if self.read_only:
            engine = create_engine("sqlite://", creator=self._open_to_read, poolclass=NullPool)
        else:
            engine = create_engine(
                "sqlite://",
                creator=lambda: open_file(uri(self.path, mode="rw")),
                poolclass=QueuePool,
                max_overflow=-1,
            )
        return engine, engine

    def _open_to_read(self) -> sqlite3.Connection:
        # Without changes beside it, the file is read as it is: SQLite would leave files behind
        # that nobody may write to. With them, SQLite has to find its way through its locks.
        if has_wal(self.path):
            return open_file(uri(self.path, mode="ro"))
        return open_file(uri(self.path, mode="ro", immutable=1))

    def inspect(self, connection: Connection, *, current: bool) -> None:
        """Refuse a file whose index of client ids is not that of its events.

        An id that the index lacks would be taken for a new one, and its rewards entered again.
        """
        self._counted = lineage.is_counted(connection)
        if not current:
            return
        sums = "SELECT count(*), total(rowid), total(length(client)) FROM events"
        with errors(self):
            by_index, by_events = (
                connection.exec_driver_sql(f"{sums} {how} WHERE client IS NOT NULL").one()
                for how in ("INDEXED BY events_client", "NOT INDEXED")
            )
        if tuple(by_index) != tuple(by_events):
            raise damaged(self.place.shown, "its index of client ids is not that of its events")

    def settle(self, connections: Connections) -> None:
        """Let readers and a writer work side by side, tidy up, and count the first transaction."""
        if self.read_only:
            return
        self._use_wal(connections)
        remove_stale(self.path.parent)
        if not self._counted:
            _count_first(connections)

    def _use_wal(self, connections: Connections) -> None:
        """Switch to a write-ahead log; this lasts, as a mark in the file."""
        until = monotonic() + common.BUSY
        with connections.begun(*WRITABLE) as connection:
            while connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
                try:  # SQLite does not wait by itself here
                    connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                    return
                except OperationalError as error:
                    if monotonic() > until:
                        raise explain(error, self) from error
                    sleep(0.02)

    # ---- transactions ----------------------------------------------------------------------

    def check_place(self) -> None:
        """Refuse a file that is not the one that was opened."""
        assert self.file is not None
        forks.check_file(self.place.shown, self.file)
        if self.place.identity() != self.file:
            raise StorageError(
                f"{self.place.shown} was replaced by another file while it was in use. "
                "Open it again."
            )

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Refuse a file that was read without locks and may have been written meanwhile."""
        bare = self.read_only and not has_wal(self.path)
        before = _version_of(self.path.stat()) if bare else None
        yield
        if bare and _version_of(self.path.stat()) != before:
            raise StorageError(f"{self.place.shown} was written while it was read. Read it again.")

    def started(self, connection: Connection) -> None:
        """Count the transaction."""
        lineage.count_transaction(connection)

    def explain(self, error: BaseException) -> str | None:
        """Return what an error of SQLite means."""
        code = getattr(cause_of(error), "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_READONLY_DBMOVED:
            return _MOVED
        return _EXPLAINED.get(code & 0xFF)

    # ---- rewards ---------------------------------------------------------------------------

    def read_rewards(self, connection: Connection, study: int, after: int) -> np.ndarray:
        """Return rewards; rows as objects of Python would take long."""
        query = (
            "SELECT event, pull, reward FROM rewards "
            f"WHERE study = {int(study)} AND event > {int(after)} ORDER BY event, pull"
        )
        driver: Any = connection.connection.driver_connection
        try:
            return np.fromiter(driver.execute(query), dtype=REWARD_COLUMNS)
        except (TypeError, ValueError) as error:
            raise damaged(self.place.shown, "a reward is not a number") from error

    def add_rewards(self, connection: Connection, study: int, event: int, told: Results) -> None:
        """Add rewards as rows."""
        query = "INSERT INTO rewards (study, event, pull, reward, note) VALUES (?, ?, ?, ?, ?)"
        pulls, values = told.pull.tolist(), told.value.tolist()
        size = len(pulls)
        rows = zip(repeat(study, size), repeat(event, size), pulls, values, told.note, strict=True)
        connection.exec_driver_sql(query, list(rows))

    # ---- care ------------------------------------------------------------------------------

    def copy_before_upgrade(self, connections: Connections, version: str | None) -> str:
        """Copy the file under a name of its own."""
        target = copies.stamped(self.path, f"backup-{version}")
        return f"The old file is in {copies.copy_to(connections, target)}."

    def check_upgraded(self, connection: Connection) -> None:
        """Refuse rows without the rows that they belong to: keys are not checked meanwhile."""
        if connection.exec_driver_sql("PRAGMA foreign_key_check").all():
            raise damaged(self.place.shown, "rows do not belong together after the upgrade")

    def problems(self, connection: Connection) -> Iterator[str]:
        """Look through the pages of the file, and for rows whose study or event is missing."""
        with errors(self):
            pages = connection.exec_driver_sql(f"PRAGMA integrity_check({_MAX_LINES})").all()
            yield from (f"{self.place.shown}: {row[0]}" for row in pages if row[0] != "ok")
            keys = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
            for row in keys[:_MAX_LINES]:
                yield f"{self.place.shown}: a row of {row[0]} belongs to none of {row[2]}"


def _count_first(connections: Connections) -> None:
    """Give a file from before there were counts its first one, in the file if possible."""
    with connections.write():
        pass  # which counts itself
    with connections.begun(*WRITABLE) as connection, suppress(SQLAlchemyError):
        # Readers may be in the way.
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()


def _version_of(found: os.stat_result) -> tuple[int, int]:
    return found.st_mtime_ns, found.st_size
