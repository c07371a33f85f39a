"""Opening a database: its tables are made, upgraded, checked, copied and restored here.

An upgrade is one transaction, so that a process that is killed leaves the old tables or the new
ones.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection

from finalist import __version__
from finalist.errors import SchemaError, StorageError
from finalist.study.storage import check as damage
from finalist.study.storage import copies, schema
from finalist.study.storage.connections import Connections
from finalist.study.storage.errors import damaged, errors
from finalist.study.storage.place import Place, locate
from finalist.study.storage.postgres import PostgreSQL
from finalist.study.storage.protocol import Dialect
from finalist.study.storage.schema import VERSION_TABLE
from finalist.study.storage.sqlite import SQLite

#: The version that is needed, and the scripts that lead there.
SCHEMA = schema.SCHEMA
MIGRATIONS = Path(__file__).with_name("migrations")
#: In the folder of the scripts: the tables of a new SQLite file.
NEW = "new.sql"
#: Alembic works for one thread at a time: what it is at is in variables of its modules.
_alembic = threading.Lock()


def current(where: str | PathLike[str]) -> str | None:
    """Return the version of the tables of a database, None if it has none of ours."""
    with _connected(locate(where)) as connections, connections.read() as connection:
        return _version(connection, connections.dialect)


def upgrade(where: str | PathLike[str]) -> str:
    """Bring the tables of a database up to date, and say what was done."""
    place = locate(where)
    with _connected(place) as connections:
        return _bring_up(connections, create=False)


def backup(where: str | PathLike[str], to: str | PathLike[str]) -> Path:
    """Copy a SQLite file, also while it is in use; a file that is there is not replaced."""
    place, target = locate(where), Path(to).expanduser()
    place.file()
    if not target.parent.is_dir():
        raise StorageError(f"there is no folder {target.parent} for the backup. Create it first.")
    with _connected(place) as connections:
        return copies.copy_to(connections, target)


def restore(where: str | PathLike[str], backup: str | PathLike[str]) -> str:
    """Put a copy of a backup in the place of a SQLite file, and say what was done.

    Also while others have the file open: they are told to open it again.
    """
    place, source = locate(where), locate(backup)
    place.file(), source.file()
    problems = check(backup)
    if problems and current(backup) == SCHEMA:
        raise StorageError(
            f"{source.shown} is damaged and is not restored: {problems[0]} Take an older backup."
        )
    with _connected(source) as connections:
        aside = copies.restore(place, connections, lambda old: Connections(_dialect(old)))
    was = "There was no such file." if aside is None else f"The file that was there is in {aside}."
    return f"{place.shown} is a copy of {source.shown}. {was}"


def check(where: str | PathLike[str]) -> list[str]:
    """Look through a whole database; return what is wrong, or nothing."""
    place = locate(where)
    with _connected(place) as connections:
        try:
            with connections.read() as connection:
                found = _version(connection, connections.dialect)
                if found is None:
                    raise StorageError(_nothing_yet(place))
                if found != SCHEMA:
                    return [f"{place.shown} has schema {int(found)}; upgrade it first."]
                return damage.problems(connection, connections.dialect)
        except SchemaError as error:
            return [str(error)]


def prepare(where: str | PathLike[str], create: bool) -> Connections:
    """Open a database whose tables are up to date; make or upgrade them if need be."""
    place = locate(where)
    _dialect(place).create(_make_tables, wanted=create)
    connections = _connect(place)
    dialect = connections.dialect
    try:
        with connections.read() as connection:
            found = _version(connection, dialect)
            dialect.inspect(connection, current=found == SCHEMA)
        if found != SCHEMA:
            _bring_up(connections, create)
        dialect.settle(connections)
    except BaseException:
        connections.close()
        raise
    return connections


def _dialect(place: Place) -> Dialect:
    return PostgreSQL(place) if place.path is None else SQLite(place)


@contextmanager
def _connected(place: Place) -> Iterator[Connections]:
    connections = _connect(place)
    try:
        yield connections
    finally:
        connections.close()


def _connect(place: Place) -> Connections:
    dialect = _dialect(place)
    dialect.require()
    return Connections(dialect)


def _version(connection: Connection, dialect: Dialect) -> str | None:
    """Return the version of the tables; refuse those that are newer, not ours or incomplete."""
    shown = dialect.place.shown
    with errors(dialect):
        tables = set(sa.inspect(connection).get_table_names())
        ours = tables & set(schema.metadata.tables)
        if VERSION_TABLE not in tables:
            if not dialect.shared:
                raise damaged(shown, "it has no version")
            if ours:
                raise SchemaError(
                    f"{shown} has tables of another program ({', '.join(sorted(ours))}). They are "
                    "left as they are; create a database for finalist alone."
                )
            return None
        rows = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").all()
    found = str(rows[0][0]) if len(rows) == 1 else ""
    if not (found.isascii() and found.isdigit()):
        raise damaged(shown, f"its version is {found!r}")
    if int(found) > int(SCHEMA):
        raise SchemaError(
            f"{shown} has schema {int(found)}, made by a newer finalist; this one ({__version__}) "
            f"knows schema {int(SCHEMA)}. It is left as it is. Upgrade finalist: "
            "pip install --upgrade finalist"
        )
    if found == SCHEMA and len(ours) < len(schema.metadata.tables):
        raise damaged(shown, "a table is missing")
    return found


def _nothing_yet(place: Place) -> str:
    return f"{place.shown} holds no studies yet. Create a study to make its tables."


def _bring_up(connections: Connections, create: bool) -> str:
    """Make or upgrade tables in one transaction, after a copy of a file."""
    dialect, shown = connections.dialect, connections.shown
    if dialect.read_only:
        raise SchemaError(
            f"{shown} has an older schema than {int(SCHEMA)} and can only be read. Give "
            "yourself the right to write to it, and open it again to upgrade it."
        )
    with connections.write(foreign_keys=False) as connection, errors(dialect):
        dialect.lock_tables(connection)
        found = _version(connection, dialect)  # another process may have been faster
        if found == SCHEMA:
            return f"{shown} has schema {int(SCHEMA)}; nothing to do."
        if found is None and not create:
            raise StorageError(_nothing_yet(dialect.place))
        note = dialect.copy_before_upgrade(connections, found)
        _migrate(connection)
        dialect.check_upgraded(connection)
    return f"{shown} went from schema {int(found or 0)} to {int(SCHEMA)}. {note}"


def _make_tables(connection: Connection) -> None:
    """Make at once what all scripts lead to in a SQLite file; a test compares the two."""
    for statement in (MIGRATIONS / NEW).read_text("utf-8").split("\n\n"):
        connection.exec_driver_sql(statement)


def _migrate(connection: Connection) -> None:
    """Run the scripts that a database still lacks."""
    from alembic import command  # slow to import, and rarely needed
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with _alembic:
        command.upgrade(config, SCHEMA)
