"""SQLite files that may be somebody else's, or in use.

A database that may be in use is opened only through SQLite. POSIX drops all locks of a
process on a file when the process closes any descriptor of it, and only SQLite knows which
descriptors have to stay open (https://www.sqlite.org/howtocorrupt.html, 2.2). To look at one
without touching it, SQLite is told that it is immutable: it then takes no locks, leaves changes
beside the file alone and makes no files.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote


def uri(path: Path, **options: str | int) -> str:
    """Return the address under which SQLite opens a file.

    Examples
    --------
    >>> uri(Path("100%.db"), mode="ro")
    'file:100%25.db?mode=ro'
    """
    words = "&".join(f"{name}={value}" for name, value in options.items())
    return f"file:{quote(path.as_posix())}?{words}"


class Header(NamedTuple):
    """What the first page of a SQLite file says of it."""

    application: int
    #: The version for users, which SQLite itself does not use.
    user_version: int
    #: Goes up with every change of the tables, and when the file is written anew (VACUUM).
    schema_cookie: int


def header(path: Path) -> Header:
    """Return what the first page of a SQLite file says, as the file alone has it.

    Also if it is shorter than it says, as it is while changes are being moved into it. Raises
    `sqlite3.DatabaseError` if it is not a database.
    """
    with closing(sqlite3.connect(uri(path, mode="ro", immutable=1), uri=True)) as connection:
        connection.execute("PRAGMA writable_schema = ON")  # do not compare with the size
        application, version, cookie = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] % 2**32
            for name in ("application_id", "user_version", "schema_version")
        )
    return Header(application, version, cookie)
