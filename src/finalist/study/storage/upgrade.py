"""The version of the tables: making them, upgrading them, and copies of a file.

An upgrade is one transaction, so that a process that is killed leaves the old tables or the new
ones. A SQLite file is copied before. PostgreSQL is not: its copies are the work of its server.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection, NullPool

from finalist import __version__
from finalist.errors import SchemaError, StorageError
from finalist.sqlite_files import uri
from finalist.study.storage import check as database_check
from finalist.study.storage import copies, forks, schema
from finalist.study.storage import lineage as database_lineage
from finalist.study.storage.connections import Connections, open_file
from finalist.study.storage.errors import damaged, errors
from finalist.study.storage.files import (
    Place,
    identity,
    in_full,
    is_missing,
    locate,
    refuse_remains,
    remove_stale,
)
from finalist.study.storage.lineage import first_count, set_count
from finalist.study.storage.schema import APPLICATION, VERSION_TABLE

#: The version that is needed, and the scripts that lead there.
SCHEMA = schema.SCHEMA
MIGRATIONS = Path(__file__).with_name("migrations")
#: Alembic works for one thread at a time: what it is at is in variables of its modules.
_alembic = threading.Lock()


def needed() -> str:
    """Return the version of the tables that this finalist works with."""
    return SCHEMA


def current(where: str | PathLike[str]) -> str | None:
    """Return the version of the tables of a database, None if it has none of ours."""
    with _connected(locate(where)) as connections, connections.read() as connection:
        return _version(connection, connections.place)


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
        aside = copies.restore(where, connections)
    was = "There was no such file." if aside is None else f"The file that was there is in {aside}."
    return f"{place.shown} is a copy of {source.shown}. {was}"


def check(where: str | PathLike[str]) -> list[str]:
    """Look through a whole database; return what is wrong, nothing if all is well."""
    place = locate(where)
    with _connected(place) as connections:
        try:
            with connections.read() as connection:
                found = _version(connection, place)
                if found is None:
                    raise StorageError(_nothing_yet(place))
                if found != SCHEMA:
                    return [f"{place.shown} has schema {int(found)}; upgrade it first."]
                return database_check.problems(connection, place.shown)
        except SchemaError as error:
            return [str(error)]


def prepare(where: str | PathLike[str], create: bool) -> Connections:
    """Open a database whose tables are up to date; make or upgrade them if need be."""
    place = locate(where)
    if place.path is not None and is_missing(place):
        refuse_remains(place)
        if not create:
            raise StorageError(
                f"there is no file {place.shown}. Check the name, or create a study to make it."
            )
        _make(place)
    connections = _connect(place)
    try:
        with connections.read() as connection:
            found = _version(connection, place)
            if found == SCHEMA:
                database_check.check_index(connection, place.shown)
            counted = not connections.is_sqlite or database_lineage.is_counted(connection)
        if found != SCHEMA:
            _bring_up(connections, create)
        connections.use_wal()
        if place.path is not None and not connections.read_only:
            remove_stale(place.path.parent)
            if not counted:
                connections.count_first()
    except BaseException:
        connections.close()
        raise
    return connections


@contextmanager
def _connected(place: Place) -> Iterator[Connections]:
    connections = _connect(place)
    try:
        yield connections
    finally:
        connections.close()


def _connect(place: Place) -> Connections:
    if place.path is not None:
        if is_missing(place):
            refuse_remains(place)
            raise StorageError(f"there is no file {place.shown}. Check the name.")
        forks.check_file(place.shown, identity(place.path))
        database_lineage.check(place)
    return Connections(place)


def _version(connection: Connection, place: Place) -> str | None:
    """Return the version of the tables; refuse those that are newer, not ours or not whole."""
    shown = place.shown
    with errors(shown):
        tables = set(sa.inspect(connection).get_table_names())
        ours = tables & set(schema.metadata.tables)
        if VERSION_TABLE not in tables:
            if place.path is not None:
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
    place = connections.place
    if connections.read_only:
        raise SchemaError(
            f"{place.shown} has an older schema than {int(SCHEMA)} and can only be read. Give "
            "yourself the right to write to it, and open it again to upgrade it."
        )
    with connections.write(foreign_keys=False) as connection, errors(place.shown):
        if place.path is None:  # only one process at a time
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({APPLICATION})")
        found = _version(connection, place)  # another process may have been faster
        if found == SCHEMA:
            return f"{place.shown} has schema {int(SCHEMA)}; nothing to do."
        if found is None and not create:
            raise StorageError(_nothing_yet(place))
        note = "PostgreSQL is not copied before; that is the work of its server."
        if place.path is not None:
            copy = copies.copy_to(connections, copies.stamped(place.path, f"backup-{found}"))
            note = f"The old file is in {copy}."
        _migrate(connection)
        if place.path is not None and connection.exec_driver_sql("PRAGMA foreign_key_check").all():
            raise damaged(place.shown, "rows do not belong together after the upgrade")
    return f"{place.shown} went from schema {int(found or 0)} to {int(SCHEMA)}. {note}"


def _migrate(connection: Connection) -> None:
    from alembic import command  # slow to import, and hardly ever needed
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with _alembic:
        command.upgrade(config, SCHEMA)


def _make(place: Place) -> None:
    """Make a new file; another process that is faster is as good."""
    path = place.file()
    try:
        with in_full(place, path) as temporary, errors(place.shown), forks.using():
            engine = sa.create_engine(
                "sqlite://",
                creator=lambda: open_file(uri(temporary, mode="rwc")),
                poolclass=NullPool,
            )
            with engine.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
                set_count(connection, first_count())
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                _migrate(connection)
                connection.commit()
    except FileExistsError:
        pass
