"""What went wrong in a database, in words that say what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from finalist.errors import BusyError, DamagedError, StorageError
from finalist.study.storage.protocol import Dialect

LOCKED = (
    "is held by someone else for too long: another program that writes to it, such as a database "
    "browser, a backup or a file synchroniser, or a finalist process that hangs. Close it and try "
    "again."
)
DAMAGED = (
    "is damaged ({detail}). It is left as it is; restore it from a backup, and keep this copy "
    "until you have."
)
_KINDS: dict[str, type[StorageError]] = {LOCKED: BusyError, DAMAGED: DamagedError}


def damaged(where: str, detail: str) -> DamagedError:
    """Return the error of a database whose content cannot be right."""
    return DamagedError(f"{where} {DAMAGED.replace('{detail}', detail)}")


def cause_of(error: BaseException) -> BaseException:
    """Return the driver's own error behind one of SQLAlchemy's."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def explain(error: BaseException, dialect: Dialect) -> StorageError:
    """Return a driver's error as one of ours."""
    words = LOCKED if isinstance(error, PoolTimeoutError) else dialect.explain(error)
    if words is None:
        words = "cannot do this: {detail}. Nothing was changed."
    detail = " ".join(str(cause_of(error)).split())
    kind = _KINDS.get(words, StorageError)
    return kind(f"{dialect.place.shown} {words.replace('{detail}', detail)}")


@contextmanager
def errors(dialect: Dialect) -> Iterator[None]:
    """Turn the errors of drivers into `StorageError`."""
    try:
        yield
    except UnicodeDecodeError as error:  # also from a message that quotes the file
        raise damaged(dialect.place.shown, "a text is not UTF-8") from error
    except Exception as error:
        packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
        if not isinstance(error, SQLAlchemyError) and dialect.driver not in packages:
            raise
        raise explain(error, dialect) from error
