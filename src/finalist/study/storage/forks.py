"""Transactions and forks: no transaction is under way in a process while it forks.

A process that is forked has a copy of everything SQLite knows and none of its locks: to the copy
a transaction of another thread goes on for ever, and whoever opens the file waits for its end. So
a fork waits for the transactions of other threads, which are short, and new ones wait for the
fork. A transaction that is still under way, because it takes long or is the forking thread's own,
is left alone in the new process, and its file is refused there at once.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from sqlalchemy import Connection, Engine

from finalist.errors import StorageError

#: Seconds that a fork waits for transactions.
PATIENCE = 2.0
#: Which file it is: its device and its number there.
FileId = tuple[int, int]
_ANY: FileId = (-1, -1)

#: Held by whoever begins or ends a transaction, and by whoever forks.
_gate = threading.Condition(threading.RLock())
#: Transactions under way: of which file, and in which thread.
_under_way: dict[Connection, tuple[FileId | None, int]] = {}
#: Those that are about to be, likewise.
_beginning: list[tuple[FileId | None, int]] = []
_forking: int | None = None  # the thread that forks
_engines: "weakref.WeakSet[Engine]" = weakref.WeakSet()
#: In a forked process: files that a transaction of the old one has, and its connections. To close
#: these would harm the old process.
_lost_files: set[FileId] = set()
_left: list[Connection] = []


def watch(engine: Engine) -> None:
    """Close an engine's idle connections whenever the process forks."""
    _engines.add(engine)


def check_file(shown: str, file: FileId) -> None:
    """Refuse a file that a transaction had when this process was forked."""
    if file in _lost_files:
        raise _forked(shown)


def check_transaction(shown: str, connection: Connection) -> None:
    """Refuse to go on with a transaction of the process that this one was forked from."""
    if not is_ours(connection):
        raise _forked(shown)


def is_ours(connection: Connection) -> bool:
    """Return whether a transaction is one of this process."""
    return connection in _under_way


def _forked(shown: str) -> StorageError:
    return StorageError(
        f"{shown} was being read or written when this process was forked, so this process cannot "
        "use it. Fork at another time, or start processes with 'spawn': "
        "multiprocessing.get_context('spawn')."
    )


def begin(connect: Callable[[], Connection], file: FileId | None) -> Connection:
    """Return a connection for a transaction; a fork waits until a file is open.

    Others may begin while this one connects: connecting to a server may take long.
    """
    me = threading.get_ident()
    _enter(file, me)
    connection = None
    try:
        connection = connect()
    finally:
        with _gate:
            _beginning.remove((file, me))
            if connection is not None:
                _under_way[connection] = file, me
            _gate.notify_all()
    return connection


def _enter(file: FileId | None, me: int) -> None:
    """Wait for a fork of another thread; not in a transaction, whose end the fork waits for."""
    with _gate:
        if not any(thread == me for _, thread in [*_under_way.values(), *_beginning]):
            _gate.wait_for(lambda: _forking in (None, me))
        _beginning.append((file, me))


@contextmanager
def using() -> Iterator[None]:
    """Use SQLite briefly without a transaction; a fork waits, or it would copy held mutexes."""
    me = threading.get_ident()
    _enter(_ANY, me)
    try:
        yield
    finally:
        with _gate:
            _beginning.remove((_ANY, me))
            _gate.notify_all()


def end(connection: Connection) -> None:
    """Mark a transaction of this process as over."""
    with _gate:
        _under_way.pop(connection, None)
        _gate.notify_all()


def _others() -> bool:
    """Return whether another thread has a file in use."""
    me, all_of_them = threading.get_ident(), [*_under_way.values(), *_beginning]
    return any(file is not None and thread != me for file, thread in all_of_them)


def _before() -> None:
    global _forking
    _gate.acquire()
    _gate.wait_for(lambda: _forking is None)
    _forking = threading.get_ident()
    until = monotonic() + PATIENCE
    while _others() and (left := until - monotonic()) > 0:
        _gate.wait(left)
    for engine in list(_engines):
        engine.dispose()


def _in_parent() -> None:
    global _forking
    _forking = None
    _gate.notify_all()
    _gate.release()


def _in_child() -> None:
    global _forking, _gate
    held = [*_under_way.values(), *_beginning]
    _lost_files.update(file for file, _ in held if file is not None)
    _left.extend(_under_way)
    _under_way.clear()
    _beginning.clear()
    _forking, _gate = None, threading.Condition(threading.RLock())  # nobody waits here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
