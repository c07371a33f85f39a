"""Whether the changes beside a SQLite file (its -wal) are changes of that file.

SQLite does not know. If a backup is copied over a file whose last writer was killed, the changes
it left behind are played into the backup, page by page, and what comes out is neither. So every
transaction counts itself in the header of the file (`PRAGMA user_version`), where the count begins
at random with each file that is made: a new one, a backup, one that is restored. The header is in
page 1, which each transaction therefore writes, and which is the first frame of its changes.

The changes beside a file are of one round: from the first after a checkpoint on. Its first page is
therefore that from before the round, whose count is one less than the first of the round; or, if
some of them have been moved into the file, it is one of theirs. Programs that do not count, such
as finalist 0.1.0 or a database browser, leave the count as it is. A copy by VACUUM has the count
of the original and other pages, but also a larger schema cookie than it.

The format is at https://www.sqlite.org/fileformat2.html#the_write_ahead_log. SQLite takes no locks
on a -wal file, so that it can be read as it is.
"""

import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import unpack

from sqlalchemy import Connection

from finalist.errors import SchemaError
from finalist.sqlite_files import Header
from finalist.study.storage.files import inspect, wal_of
from finalist.study.storage.place import Place

#: Counts have 31 bits and wrap around; 0 is a file from before there were counts.
_COUNTS = 2**31
#: A count begins with a multiple of this. Such a number after 0 is a beginning too.
_BEGINNING = 2**16
_WAL_HEADER, _FRAME_HEADER = 32, 24
#: Bytes of page 1 that are read.
_NEEDED = 64
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


def is_counted(connection: Connection) -> bool:
    """Return whether a file has a count."""
    return bool(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def check(place: Place) -> None:
    """Refuse a file that is not ours, and one with changes beside it that are not its own.

    Both are left as they are. A file in use may change while it is inspected, so only what two
    inspections find is believed.
    """
    wal, before = wal_of(place.file()), None
    for _ in range(_TRIES):
        changes = _first_changes(wal)
        page = _Page.of(inspect(place))
        if changes is None or _may_follow(page, *changes):
            return
        if before == (page, changes):
            break
        before = page, changes
        time.sleep(_PAUSE)
    if any(_follows(page, _pages(wal, checked)) for checked in (False, True)):
        return
    raise SchemaError(
        f"{place.shown} does not belong to {wal.name} beside it, which holds changes of another "
        "file: was a backup copied here while that one was left? Both are left as they are. To go "
        "back to a backup, use 'finalist db restore BACKUP', which takes care of this. To go on "
        f"with the file as it is, end all programs that use it and move {wal.name} to another "
        "folder."
    )


@dataclass(frozen=True)
class _Page:
    """What the first page of a file says, in the file or in the changes beside it."""

    count: int
    cookie: int

    @classmethod
    def of(cls, header: Header) -> "_Page":
        return cls(header.user_version, header.schema_cookie)


def _may_follow(page: _Page, first: _Page, frames: int) -> bool:
    """Return whether a round that begins so is probably of this file: nearly always it is."""
    if page.cookie > first.cookie:
        return False
    if page.count == 0:
        return first.count % _BEGINNING == 0
    return first.count > 0 and (page.count - first.count + 1) % _COUNTS <= frames + 1


def _follows(page: _Page, round_: list[_Page]) -> bool:
    """Return whether the first pages in a round can have come after this one, or are it."""
    if not round_ or page in round_:
        return True
    first = round_[0]
    before = (
        first.count % _BEGINNING == 0
        if page.count == 0
        else page.count in (first.count, (first.count - 1) % _COUNTS or _COUNTS - 1)
    )
    return before and page.cookie <= first.cookie


def _first_changes(wal: Path) -> tuple[_Page, int] | None:
    """Return the first copy of page 1 in a -wal file, and how many frames the file has.

    None if there is no such copy: nothing was changed, or by a program that does not count.
    """
    for page, frames in _frames(wal):
        if page is not None:
            return page, frames
    return None


def _pages(wal: Path, checked: bool) -> list[_Page]:
    """Return all copies of page 1 in the round of a -wal file.

    If checked, up to the first frame whose checksum is wrong, as after a kill in the middle of it:
    this is what SQLite believes. It takes a second or so.
    """
    return [page for page, _ in _frames(wal, checked) if page is not None]


def _frames(wal: Path, checked: bool = False) -> Iterator[tuple[_Page | None, int]]:
    """Yield for each frame of the round page 1 if it is a copy of that, and how many there are."""
    try:
        with wal.open("rb") as file:
            header = file.read(_WAL_HEADER)
            if len(header) < _WAL_HEADER:
                return
            size = int.from_bytes(header[8:12], "big")
            step = _FRAME_HEADER + (65536 if size == 1 else size)
            frames = (os.fstat(file.fileno()).st_size - _WAL_HEADER) // step
            total = _checksum(header, header[:24], (0, 0))
            for index in range(frames):
                file.seek(_WAL_HEADER + index * step)
                frame = file.read(step if checked else _FRAME_HEADER + _NEEDED)
                if len(frame) < _FRAME_HEADER + _NEEDED or frame[8:16] != header[16:24]:
                    return  # from here on it is of an earlier round
                if checked:
                    total = _checksum(header, frame[:8] + frame[_FRAME_HEADER:], total)
                    if unpack(">2I", frame[16:24]) != total:
                        return
                first = frame[:4] == b"\0\0\0\1"
                yield (_page(frame[_FRAME_HEADER:]) if first else None), frames
    except (FileNotFoundError, PermissionError):  # without the right SQLite says so
        return


def _page(content: bytes) -> _Page:
    """Return what the first page says: its count at byte 60, its cookie at 40."""
    count, cookie = (int.from_bytes(content[at : at + 4], "big") for at in (60, 40))
    return _Page(count, cookie)


def _checksum(header: bytes, content: bytes, before: tuple[int, int]) -> tuple[int, int]:
    """Return the checksum of a -wal file up to here; the header says in which byte order."""
    order = ">" if header[3] & 1 else "<"
    first, second = before
    words = iter(unpack(f"{order}{len(content) // 4}I", content))
    for one, two in zip(words, words, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second
