"""Limits on concurrent work: work that takes seconds must not take all threads of the server."""

import threading
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from finalist.errors import BusyError
from finalist.web.lifetime import life_now

#: What to do if the request ends while it waits.
_REMEDY = "Nothing was changed; try again in a moment."


class WorkLimit:
    """Lets a few threads work at a time and a few wait, first come, first served.

    Parameters
    ----------
    message : str
        Of the `BusyError` for all others.
    at_once, waiting : int
        How many may work, and wait.
    seconds : float
        The longest wait.

    Examples
    --------
    >>> limit = WorkLimit("too many plans are being made. Try again in a moment.", 1, 0, 1.0)
    >>> with limit.take(), limit.take():
    ...     pass
    Traceback (most recent call last):
    finalist.errors.BusyError: too many plans are being made. Try again in a moment.
    """

    def __init__(self, message: str, at_once: int, waiting: int, seconds: float) -> None:
        self._message, self._max, self._seconds = message, at_once + waiting, seconds
        self._lock, self._free = threading.Lock(), at_once
        self._queue: deque[threading.Event] = deque()  # of threads that wait
        #: Threads that work or wait.
        self.inside = 0

    @contextmanager
    def take(self, remedy: str = _REMEDY) -> Iterator[None]:
        """Wait for a turn and work; the wait ends with the request, whose error has the remedy."""
        turn = threading.Event()
        with self._lock:
            if self.inside >= self._max:
                raise BusyError(self._message)
            self.inside += 1
            self._queue.append(turn)
            self._call_next()
        try:
            self._wait(turn, remedy)
            yield
        finally:
            with self._lock:
                self.inside -= 1
                if turn in self._queue:
                    self._queue.remove(turn)
                else:
                    self._free += 1
                    self._call_next()

    def _call_next(self) -> None:
        while self._free > 0 and self._queue:
            self._free -= 1
            self._queue.popleft().set()

    def _wait(self, turn: threading.Event, remedy: str) -> None:
        if turn.is_set():
            return
        life = life_now()
        with life.ending(turn.set):  # so that it need not poll
            turn.wait(self._seconds)
        with self._lock:
            called = turn not in self._queue
        if not called:
            life.check(remedy)
            raise BusyError(self._message)


class KeyedWorkLimit:
    """Lets one thread at a time work on each key; the others wait.

    Parameters
    ----------
    message : str
        Of the `BusyError` if too many wait, or for too long.
    waiting : int
        How many may wait for one key.
    seconds : float
        The longest wait.

    Examples
    --------
    >>> limit = KeyedWorkLimit("others ask too. Try again in a moment.", 0, 1.0)
    >>> with limit.take(1), limit.take(2):
    ...     len(limit)
    2
    >>> len(limit)
    0
    """

    def __init__(self, message: str, waiting: int, seconds: float) -> None:
        self._message, self._waiting, self._seconds = message, waiting, seconds
        self._lock = threading.Lock()
        self._limits: dict[Hashable, tuple[WorkLimit, int]] = {}

    def __len__(self) -> int:
        return len(self._limits)

    @contextmanager
    def take(self, key: Hashable, remedy: str = _REMEDY) -> Iterator[None]:
        """Wait until nobody else works on a key, and work on it."""
        with self._lock:
            limit, users = self._limits.get(key) or (
                WorkLimit(self._message, 1, self._waiting, self._seconds),
                0,
            )
            self._limits[key] = limit, users + 1
        try:
            with limit.take(remedy):
                yield
        finally:
            with self._lock:
                limit, users = self._limits[key]
                if users > 1:
                    self._limits[key] = limit, users - 1
                else:
                    del self._limits[key]
