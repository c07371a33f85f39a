"""What went wrong in a database, in words that say what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from finalist.errors import BusyError, DamagedError, StorageError

_LOCKED = (
    "is held by someone else for too long: another program that writes to it, such as a database "
    "browser, a backup or a file synchroniser, or a finalist process that hangs. Close it and try "
    "again."
)
_DAMAGED = (
    "is damaged ({detail}). It is left as it is; restore it from a backup, and keep this copy "
    "until you have."
)
#: By the lower byte of SQLite's error codes: https://www.sqlite.org/rescode.html
_SQLITE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
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
_SQLITE_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
#: By the classes of PostgreSQL's error codes, or a whole code.
_POSTGRESQL = {
    "55P03": _LOCKED,  # lock_not_available
    "53100": "cannot grow: the disk of the server is full. Nothing was written; make space.",
    "25006": "can only be read ({detail}). Nothing was changed.",
    "42501": "cannot be used: {detail}. Ask its administrator for the right to.",
    "3D000": "does not exist ({detail}). Create it first, for instance with createdb.",
    "28": "refuses the user or the password ({detail}).",
}


def damaged(where: str, detail: str) -> DamagedError:
    """Return the error of a database whose content cannot be right."""
    return DamagedError(f"{where} {_DAMAGED.format(detail=detail)}")


def explain(error: BaseException, where: str) -> StorageError:
    """Return a driver's error as one of ours."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    detail = " ".join(str(cause).split())
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        if code in _SQLITE_DAMAGED:
            return damaged(where, detail)
        moved = getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED
        words = _MOVED if moved else _SQLITE.get(code)
    elif isinstance(error, PoolTimeoutError):
        words = _LOCKED
    else:
        state = getattr(cause, "sqlstate", None) or ""
        words = _POSTGRESQL.get(state, _POSTGRESQL.get(state[:2]))
        if not state and cause is not error:
            words = "cannot be reached: {detail}. Check the address and that the server runs."
    if words is None:
        words = "cannot do this: {detail}. Nothing was changed."
    kind = BusyError if words is _LOCKED else StorageError
    return kind(f"{where} {words.replace('{detail}', detail)}")


@contextmanager
def errors(where: str) -> Iterator[None]:
    """Turn the errors of drivers into `StorageError`."""
    try:
        yield
    except UnicodeDecodeError as error:  # also from a message that quotes the file
        raise damaged(where, "a text is no UTF-8") from error
    except Exception as error:
        if not _is_of_driver(error):
            raise
        raise explain(error, where) from error


def _is_of_driver(error: Exception) -> bool:
    """Return whether a driver raised an error; psycopg may not be installed."""
    names = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return isinstance(error, SQLAlchemyError | sqlite3.Error) or "psycopg" in names
