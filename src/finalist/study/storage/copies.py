"""Copies of a SQLite file: made while it is in use, and put back in its place."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from finalist.errors import ForeignFileError, SchemaError, StorageError
from finalist.sqlite_files import uri
from finalist.study.storage import forks, lineage
from finalist.study.storage.connections import Connections
from finalist.study.storage.errors import errors
from finalist.study.storage.files import (
    BESIDE,
    REPLACED,
    WRITABLE,
    in_full,
    is_missing,
    open_file,
    wal_of,
)
from finalist.study.storage.place import Place

#: Opens a file that is there.
Connect = Callable[[Place], Connections]


def copy_to(connections: Connections, target: Path) -> Path:
    """Copy a file as it is now, without what others are writing at the moment."""
    try:
        with in_full(connections.dialect.place, target) as temporary:
            _copy(connections, temporary)
    except FileExistsError:
        raise StorageError(
            f"{target} is there already and is not replaced. Give another name."
        ) from None
    return target


def _copy(connections: Connections, temporary: Path) -> None:
    """Copy into an empty file that nobody else has; it is a new file with a count of its own."""
    with connections.begun(*WRITABLE) as connection, errors(connections.dialect):
        connection.exec_driver_sql("VACUUM INTO ?", (str(temporary),))
        with forks.using(), closing(open_file(uri(temporary, mode="rw"))) as copy:
            copy.execute(f"PRAGMA user_version = {lineage.first_count():d}")


def stamped(path: Path, word: str) -> Path:
    """Return a free name beside a file: its own, a word, and the time."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return path.with_name(f"{path.name}.{word}-{stamp}")


def restore(place: Place, backup: Connections, connect: Connect) -> Path | None:
    """Put a copy of a backup in the place of a file; return where the old file is now.

    Whoever has the old file open is told to open it again. What it held until then is kept: as a
    copy, or as it was if it cannot be read, with the changes beside it.
    """
    path, missing = place.file(), is_missing(place)
    if not missing and path.samefile(backup.dialect.place.file()):
        raise StorageError(f"{place.shown} is the backup itself. Give the file to restore: --db.")
    aside = None
    try:
        with in_full(backup.dialect.place, path) as temporary:
            _copy(backup, temporary)
            if not missing:
                _take_rights(path, temporary)
            aside = _set_aside(place, connect)
    except FileExistsError:
        raise StorageError(
            f"another program made {place.shown} at the same moment, so it is not restored. "
            + ("Try again." if aside is None else f"The old file is in {aside}; try again.")
        ) from None
    return aside


def _take_rights(path: Path, temporary: Path) -> None:
    """Give a file the owner and the permissions of another one."""
    old = path.stat()
    with suppress(OSError):  # only root gives files away
        os.chown(temporary, old.st_uid, old.st_gid)
    os.chmod(temporary, old.st_mode & 0o777)


def _set_aside(place: Place, connect: Connect) -> Path | None:
    """Take a file and what is beside it out of the way; return where it is now."""
    path = place.file()
    aside = stamped(path, REPLACED)
    if is_missing(place):
        # Changes without their file may still be somebody's.
        return wal_of(aside) if _rename(path, aside) else None
    try:
        lineage.check(place)
        _copy_and_remove(place, aside, connect)
    except ForeignFileError:
        raise
    except SchemaError:  # it cannot be read, so it is kept as it is
        _rename(path, aside)
    return aside


def _copy_and_remove(place: Place, aside: Path, connect: Connect) -> None:
    """Keep a copy of a file, and take it away from those who have it open."""
    path, connections = place.file(), connect(place)
    gone = path.with_name(f".finalist-{uuid4().hex}")
    try:
        with connections.begun(*WRITABLE, "BEGIN IMMEDIATE"):  # nobody writes to it any more
            copy_to(connections, aside)
            _rename(path, gone)
    finally:
        connections.close()
    for end in ("", *BESIDE):
        Path(f"{gone}{end}").unlink(missing_ok=True)


def _rename(path: Path, to: Path) -> bool:
    """Rename a file with what is beside it, itself first: without it nobody opens the others."""
    found = False
    for end in ("", *BESIDE):
        with suppress(FileNotFoundError):
            os.rename(f"{path}{end}", f"{to}{end}")
            found = True
    return found
