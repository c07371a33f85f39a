"""Where a database is: a SQLite file or a PostgreSQL address.

A file is looked at before SQLite opens it, as SQLite writes to what it opens: what is not ours
stays as it is, byte by byte. A new file appears under its name only when it is complete.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from finalist.errors import SchemaError, StorageError
from finalist.study.schema import APPLICATION

_MAGIC = b"SQLite format 3\0"
_HEADER = 100
_SECRETS = ("password", "sslpassword")


@dataclass(frozen=True)
class Place:
    """Where a database is: a file, or else an address."""

    shown: str
    path: Path | None
    url: URL | None = None

    def file(self) -> Path:
        """Return the file, or say that this is a server."""
        if self.path is None:
            raise StorageError(
                f"{self.shown} is a PostgreSQL database, which finalist does not copy. "
                "Use pg_dump, or the backups of its server."
            )
        return self.path


def locate(where: str | PathLike[str]) -> Place:
    """Return the place that a path or an address names."""
    text = os.fspath(where)
    if "\0" in text:
        raise StorageError("the name of a file has no null character.")
    if "://" not in text:
        return _place(text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the text may hold a password
        raise StorageError(
            "the address of the database cannot be read. It looks like "
            "postgresql://user:password@host:5432/name, with %40 for an @ in the password."
        ) from None
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite":
        return _place(url.database or "")
    if kind not in ("postgresql", "postgres"):
        raise StorageError(
            f"studies are kept in a SQLite file or in PostgreSQL, not in {kind}. Give the name of "
            "a file, or an address that starts with postgresql://."
        )
    url = url.set(drivername="postgresql")
    shown = url.difference_update_query(_SECRETS).render_as_string(hide_password=True)
    return Place(shown, None, url.set(drivername="postgresql+psycopg"))


def _place(text: str) -> Place:
    if text in ("", ":memory:"):
        raise StorageError("a study is kept in a file: give its name, such as lab.db.")
    return Place(text, Path(text).expanduser().resolve())


def uri(path: Path, **options: str | int) -> str:
    """Return the address under which SQLite opens a file."""
    words = "&".join(f"{name}={value}" for name, value in options.items())
    return f"file:{quote(path.as_posix())}?{words}"


def is_missing(place: Place) -> bool:
    """Return whether there is no such file; say so if there can be none."""
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


def inspect(place: Place) -> None:
    """Refuse a file that is not ours, without touching it."""
    path, shown = place.file(), place.shown
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise StorageError(f"{shown} is a folder. Give the name of a file in it.")
        if not stat.S_ISREG(mode):
            raise StorageError(f"{shown} is a device or a pipe. Give the name of a file.")
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError as error:
        raise StorageError(
            f"{shown} cannot be read: {error.strerror}. Ask its owner for the right to read it."
        ) from error
    if not header:
        raise SchemaError(
            f"{shown} is an empty file, no database of studies. Delete it to make a new one there."
        )
    if not header.startswith(_MAGIC) or len(header) < _HEADER:
        raise SchemaError(
            f"{shown} is no database, or its start is damaged. It is left as it is; give another "
            "name, or restore it from a backup if it held studies."
        )
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION:
        raise SchemaError(
            f"{shown} is another program's database (application {application:#x}), or its start "
            "is damaged. It is left as it is; give the name of another file."
        )


def identity(path: Path) -> tuple[int, int]:
    """Return what tells this file from another one that takes its name."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def is_writable(path: Path) -> bool:
    """Return whether SQLite can write: it needs the file, and its folder for -wal and -shm."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def has_wal(path: Path) -> bool:
    """Return whether there are changes beside the file, not yet in it."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


@contextmanager
def in_full(place: Place, target: Path) -> Iterator[Path]:
    """Give a temporary name; the file gets its own name at the end, if no other has it.

    Raises `FileExistsError` if another has.
    """
    temporary = target.with_name(f".finalist-{uuid4().hex}")
    try:
        yield temporary
        _sync(temporary)
        _publish(temporary, target)
        _sync(target.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise StorageError(
            f"{target} cannot be made from {place.shown}: {error.strerror}. Nothing was changed."
        ) from error
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            Path(f"{temporary}{end}").unlink(missing_ok=True)


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


def _sync(path: Path) -> None:
    """See to it that a file or the names in a folder survive a loss of power."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
