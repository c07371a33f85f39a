"""Studies in PostgreSQL.

Readers and writers have connections of their own, so that readers never wait for writers who wait
for each other's locks. Copies are left to the server.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine, create_engine

from finalist.extras import need
from finalist.study.results import Results
from finalist.study.storage import connections as common
from finalist.study.storage.errors import LOCKED, cause_of
from finalist.study.storage.place import Place
from finalist.study.storage.protocol import REWARD_COLUMNS, Dialect
from finalist.study.storage.schema import APPLICATION

#: Connections that one process has at most: to read, and to write.
MAX_READERS, MAX_WRITERS = 20, 10
#: Of either kind, those that are kept when they are idle.
_KEPT = 5
#: What error codes mean, by their first two letters or as a whole.
_EXPLAINED = {
    "55P03": LOCKED,  # lock_not_available
    "53100": "cannot grow: the disk of the server is full. Nothing was written; make space.",
    "25006": "can only be read ({detail}). Nothing was changed.",
    "42501": "cannot be used: {detail}. Ask its administrator for the right to.",
    "3D000": "does not exist ({detail}). Create it first, for instance with createdb.",
    "28": "refuses the user or the password ({detail}).",
}


class PostgreSQL(Dialect):
    """Its server takes care of files, copies and most checks."""

    driver = "psycopg"
    shared = True
    begin_reading: Sequence[str] = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",)

    def __init__(self, place: Place) -> None:
        self.place = place

    def begin_writing(self, *, foreign_keys: bool) -> Sequence[str]:  # noqa: ARG002
        """Wait for locks no longer than for a file; a table rebuilt keeps its rows here anyway."""
        return (f"SET LOCAL lock_timeout = {int(1000 * common.BUSY)}",)

    def engines(self) -> tuple[Engine, Engine]:
        """Return an engine for readers and one for writers."""
        return self._engine(MAX_READERS), self._engine(MAX_WRITERS)

    def _engine(self, most: int) -> Engine:
        """Return an engine with so many connections at most."""
        assert self.place.url is not None
        need("Studies in PostgreSQL", "psycopg")
        return create_engine(
            self.place.url,
            connect_args={"client_encoding": "utf8"},
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,  # the server may have been restarted
            pool_size=_KEPT,
            max_overflow=most - _KEPT,
            pool_timeout=common.BUSY,
        )

    def explain(self, error: BaseException) -> str | None:
        """Return what an error of psycopg means."""
        cause = cause_of(error)
        state = getattr(cause, "sqlstate", None) or ""
        if not state and cause is not error:
            return "cannot be reached: {detail}. Check the address and that the server runs."
        return _EXPLAINED.get(state, _EXPLAINED.get(state[:2]))

    def read_rewards(self, connection: Connection, study: int, after: int) -> np.ndarray:
        """Return rewards, each column packed by the server."""
        query = (
            "SELECT int8send(event) AS event, int8send(pull) AS pull, float8send(reward) AS reward "
            f"FROM rewards WHERE study = {int(study)} AND event > {int(after)} "
            "ORDER BY rewards.event, rewards.pull"
        )
        packed = ", ".join(f"string_agg({name}, '')" for name in REWARD_COLUMNS.names or ())
        driver: Any = connection.connection.driver_connection
        with driver.cursor(binary=True) as cursor:
            columns = cursor.execute(f"SELECT {packed} FROM ({query}) AS ordered").fetchone()
        event = np.frombuffer(columns[0] or b"", ">i8")
        rows = np.empty(event.size, REWARD_COLUMNS)
        rows["event"] = event
        rows["pull"] = np.frombuffer(columns[1] or b"", ">i8")
        rows["reward"] = np.frombuffer(columns[2] or b"", ">f8")
        return rows

    def add_rewards(self, connection: Connection, study: int, event: int, told: Results) -> None:
        """Add rewards as rows of the binary format, which psycopg packs in compiled code."""
        rows = zip(told.pull.tolist(), told.value.tolist(), told.note, strict=True)
        query = "COPY rewards (study, event, pull, reward, note) FROM STDIN (FORMAT BINARY)"
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy(query) as copy:
            copy.set_types(["int4", "int4", "int8", "float8", "text"])
            for row in rows:
                copy.write_row((study, event, *row))

    def lock_tables(self, connection: Connection) -> None:
        """Let only one process at a time make or upgrade tables."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({APPLICATION})")

    def copy_before_upgrade(self, *_: object) -> str:
        """Say why there is no copy."""
        return "PostgreSQL is not copied first; backups are up to its server."
