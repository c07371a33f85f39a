"""Where a database is: a SQLite file or a PostgreSQL address."""

import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from finalist.errors import StorageError

_SECRETS = ("password", "sslpassword")


@dataclass(frozen=True)
class Place:
    """A file, or else an address; `shown` is for people, without a password."""

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

    def identity(self) -> tuple[int, int] | None:
        """Return what tells a file from another one that takes its name; None for a server."""
        if self.path is None:
            return None
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise StorageError(
                f"{self.shown} is no longer there: it was moved or deleted while it was in use. "
                "Put it back, with the file that ends in -wal if there is one."
            ) from error
        return found.st_dev, found.st_ino


def locate(where: str | PathLike[str]) -> Place:
    """Return the place that a path or an address names."""
    text = os.fspath(where)
    if "\0" in text:
        raise StorageError("a file name cannot contain a null character.")
    if "://" not in text:
        return _file(text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the text may hold a password
        raise StorageError(
            "the address of the database cannot be read. It looks like "
            "postgresql://user:password@host:5432/name, with %40 for an @ in the password."
        ) from None
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite":
        return _file(url.database or "")
    if kind not in ("postgresql", "postgres"):
        raise StorageError(
            f"studies are kept in a SQLite file or in PostgreSQL, not in {kind}. Give the name of "
            "a file, or an address that starts with postgresql://."
        )
    url = url.set(drivername="postgresql")
    shown = url.difference_update_query(_SECRETS).render_as_string(hide_password=True)
    return Place(shown, None, url.set(drivername="postgresql+psycopg"))


def _file(text: str) -> Place:
    if text in ("", ":memory:"):
        raise StorageError("a study is kept in a file: give its name, such as lab.db.")
    return Place(text, Path(text).expanduser().resolve())
