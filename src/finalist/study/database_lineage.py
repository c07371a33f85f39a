"""Whether the changes beside a SQLite file (its -wal) are changes of that file.

SQLite does not know. If a backup is copied over a file whose last writer was killed, the changes
it left behind are played into the backup, page by page, and what comes out is neither. So every
transaction counts itself in the header of the file (`PRAGMA user_version`), where the count begins
at random with each file that is made: a new one, a backup, one that is restored. The header is in
page 1, which each transaction therefore writes, and which is the first frame of its changes.

Let c be the count in the file and w that of the first changes beside it. The changes began when
the file had the count w - 1, and the file has gone on with them since, if at all: c is one of
w - 1, w, ..., w + n with n the number of frames. Any other c belongs to another file. The format
of the changes is at https://www.sqlite.org/fileformat2.html#the_write_ahead_log. SQLite takes no
locks on this file, so that it can be read as it is.
"""

import os
import secrets
import time
from pathlib import Path
from struct import unpack

from sqlalchemy import Connection

from finalist.errors import SchemaError
from finalist.study.database_files import Place, inspect, wal_of

#: Counts are of 31 bits, and go round; 0 is a file from before there were counts.
_COUNTS = 2**31
#: A count begins with a multiple of this. Such a number after 0 is a beginning too.
_BEGINNING = 2**16
_WAL_HEADER, _FRAME_HEADER = 32, 24
#: Where the count is in page 1.
_AT = 60
#: Looks at a file that others may be writing to, and seconds between them.
_TRIES, _PAUSE = 20, 0.01


def first_count() -> int:
    """Return the count of a file that is made now."""
    return _BEGINNING * (1 + secrets.randbelow(_COUNTS // _BEGINNING - 1))


def count_transaction(connection: Connection) -> None:
    """Count the transaction that is open, in the header of its file."""
    before = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    set_count(connection, (before + 1) % _COUNTS or 1 if before > 0 else first_count())


def set_count(connection: Connection, count: int) -> None:
    """Write a count; the header is written also if it stays the same."""
    connection.exec_driver_sql(f"PRAGMA user_version = {count:d}")


def check(place: Place) -> None:
    """Refuse a file that is not ours, and one with changes beside it that are not its own.

    Both are left as they are. A file in use may change between two looks, so that only what two
    looks find is believed.
    """
    before = None
    for _ in range(_TRIES):
        changes = _first_changes(wal_of(place.file()))
        count = inspect(place)
        if changes is None or _follows(count, *changes):
            return
        if before == (count, changes):
            break
        before = count, changes
        time.sleep(_PAUSE)
    name = wal_of(place.file()).name
    raise SchemaError(
        f"{place.shown} does not belong to {name} beside it, which holds changes of another "
        "file: was a backup copied here while that one was left? Both are left as they are. "
        f"To go on with the file as it is, move {name} to another folder. To go back to a backup, "
        "use 'finalist db restore BACKUP', which takes care of this."
    )


def _follows(count: int, first: int, frames: int) -> bool:
    """Return whether changes that begin with a count can be those of a file with this one."""
    if count == 0:
        return first % _BEGINNING == 0
    return first > 0 and (count - first + 1) % _COUNTS <= frames + 1


def _first_changes(wal: Path) -> tuple[int, int] | None:
    """Return the count in the first copy of page 1 in a -wal file, and how many frames it has.

    None if there is no such copy: nothing was changed, or by a program that does not count.
    """
    try:
        with wal.open("rb") as file:
            header = file.read(_WAL_HEADER)
            if len(header) < _WAL_HEADER:
                return None
            page = int.from_bytes(header[8:12], "big")
            step = _FRAME_HEADER + (65536 if page == 1 else page)
            frames = (os.fstat(file.fileno()).st_size - _WAL_HEADER) // step
            for index in range(frames):
                file.seek(_WAL_HEADER + index * step)
                frame = file.read(_FRAME_HEADER + _AT + 4)
                if len(frame) < _FRAME_HEADER + _AT + 4 or frame[8:16] != header[16:24]:
                    return None  # from here on it is of an earlier round
                if frame[:4] == b"\0\0\0\1":
                    return unpack(">i", frame[-4:])[0], frames
    except (FileNotFoundError, PermissionError):  # without the right SQLite says so
        return None
    return None
