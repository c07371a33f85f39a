"""Names of studies for the shell to complete.

A shell waits for this on every Tab: the file is read with SQLite alone, never written, and
whatever goes wrong, there is just nothing to offer. PostgreSQL is not asked.
"""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import typer

#: A name with anything else in it would be taken apart by the shell.
_SAFE = re.compile(r"\w[\w.,:+@%/-]*")


def study_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of studies that begin like this, in the database that is meant."""
    try:
        names = _read(Path(str(ctx.params.get("db") or place())).expanduser())
    except (OSError, ValueError, sqlite3.Error):
        return []
    return [name for name in names if name.startswith(incomplete) and _SAFE.fullmatch(name)]


def place() -> str:
    """Return what `finalist.study.default_place` does, without its imports."""
    return os.environ.get("FINALIST_DB") or "finalist.db"


def _read(path: Path) -> list[str]:
    if not path.is_file():
        return []
    # Without changes beside it the file is read as it is, so that SQLite leaves nothing there.
    beside = path.with_name(path.name + "-wal")
    changed = beside.exists() and beside.stat().st_size > 0
    address = f"file:{quote(str(path.resolve()))}?mode=ro" + ("" if changed else "&immutable=1")
    with closing(sqlite3.connect(address, uri=True, timeout=0.2)) as connection:
        rows = connection.execute("SELECT name FROM studies ORDER BY name").fetchall()
    return [str(row[0]) for row in rows]
