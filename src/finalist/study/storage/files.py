"""SQLite files: looked at before SQLite opens them, and made in full.

SQLite writes to what it opens, so a file is looked at first: what is not ours stays as it is, byte
for byte. A new file appears under its name only when it is complete.
"""

import glob
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from finalist.errors import ForeignFileError, SchemaError, StorageError
from finalist.sqlite_files import Header, header
from finalist.study.storage import connections, forks
from finalist.study.storage.place import Place
from finalist.study.storage.schema import APPLICATION

#: What SQLite keeps beside a file.
BESIDE = ("-journal", "-wal", "-shm")
#: In the name of a file that another took the place of.
REPLACED = "replaced"
#: A connection to read with cannot write until it is told so.
WRITABLE = ("PRAGMA query_only = 0",)
#: Files being made. Those that a killed process left behind are removed after so many seconds.
_TEMPORARY = re.compile(r"\.finalist-[0-9a-f]{32}(-journal|-wal|-shm)?")
STALE = 3600.0


def open_file(address: str) -> sqlite3.Connection:
    """Open a SQLite file; what is committed is on the disk."""
    connection = sqlite3.connect(
        address, uri=True, timeout=connections.BUSY, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def is_missing(place: Place) -> bool:
    """Return whether there is no such file; refuse a name in a folder that is not there."""
    path = place.file()
    try:
        os.stat(path)
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise StorageError(
                f"there is no folder {path.parent} for {place.shown}. Create it first."
            ) from None
        return True
    except OSError as error:
        raise StorageError(f"{place.shown} cannot be opened: {error.strerror}.") from error
    return False


def refuse_remains(place: Place) -> None:
    """Refuse a name whose file is gone while its changes are there: a restore was killed."""
    path = place.file()
    old = sorted(path.parent.glob(f"{glob.escape(path.name)}.{REPLACED}-*"))
    found = [file for file in (wal_of(path), *old[-1:]) if file.exists()]
    if found:
        names = " and ".join(file.name for file in found)
        raise StorageError(
            f"there is no file {place.shown}, but {names} beside it: was it deleted, or a program "
            "killed that restored it? Go back to a backup with 'finalist db restore BACKUP'"
            + (f", or to {old[-1].name} likewise" if old else "")
            + ". To start over, move what is left to another folder."
        )


def inspect(place: Place) -> Header:
    """Refuse a file that is not ours, without touching it; return what its first page says.

    That is what the file alone says, without the changes beside it.
    """
    path, shown = place.file(), place.shown
    try:
        found = os.stat(path)
    except OSError as error:
        raise _unreadable(shown, error.strerror) from error
    if stat.S_ISDIR(found.st_mode):
        raise StorageError(f"{shown} is a folder. Give the name of a file in it.")
    if not stat.S_ISREG(found.st_mode):
        raise StorageError(f"{shown} is a device or a pipe. Give the name of a file.")
    if not os.access(path, os.R_OK):
        raise _unreadable(shown, "Permission denied")
    if found.st_size == 0:
        raise SchemaError(
            f"{shown} is an empty file, not a database of studies. Delete it to make a new one "
            "there."
        )
    try:
        with forks.using():
            page = header(path)
    except sqlite3.OperationalError as error:
        raise _unreadable(shown, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise SchemaError(
            f"{shown} is not a database, or its start is damaged. It is left as it is; give "
            "another name, or restore it from a backup if it held studies."
        ) from error
    if page.application != APPLICATION:
        raise ForeignFileError(
            f"{shown} is another program's database (application {page.application:#x}), or its "
            "start is damaged. It is left as it is; give the name of another file."
        )
    return page


def _unreadable(shown: str, reason: str | None) -> StorageError:
    return StorageError(
        f"{shown} cannot be read: {reason}. Ask its owner for the right to read it."
    )


def is_writable(path: Path) -> bool:
    """Return whether SQLite can write: it needs the file, and its folder for -wal and -shm."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def wal_of(path: Path) -> Path:
    """Return where SQLite keeps changes that are not in a file yet."""
    return path.with_name(path.name + "-wal")


def has_wal(path: Path) -> bool:
    """Return whether there are changes beside the file, not yet in it."""
    try:
        return wal_of(path).stat().st_size > 0
    except FileNotFoundError:
        return False


@contextmanager
def in_full(place: Place, target: Path) -> Iterator[Path]:
    """Give an empty file; it gets its own name at the end, if no other has it.

    Only its owner may read it, and so what SQLite makes beside it. Raises `FileExistsError` if
    another has the name.
    """
    temporary = target.with_name(f".finalist-{uuid4().hex}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        _sync(temporary)
        _publish(temporary, target)
        _sync_folder(target.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise StorageError(
            f"{target} cannot be made from {place.shown}: {error.strerror}. Nothing was changed."
        ) from error
    finally:
        for end in ("", *BESIDE):
            Path(f"{temporary}{end}").unlink(missing_ok=True)


def remove_stale(folder: Path) -> None:
    """Remove files that a killed process had begun to make and nobody writes to any more."""
    before = time.time() - STALE
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with suppress(OSError):  # another process may be as tidy
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.path)


def _publish(temporary: Path, target: Path) -> None:
    """Give a file its name unless the name is taken."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError(target) from None
        os.rename(temporary, target)


def _sync(temporary: Path) -> None:
    """Make a file survive a loss of power; nobody else may have it open yet."""
    _flush(temporary, os.O_RDWR)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a loss of power."""
    if os.name != "nt":
        _flush(folder, os.O_RDONLY)


def _flush(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
