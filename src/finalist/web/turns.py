"""Taking turns: work that takes seconds must not take all threads of the server."""

import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from finalist.errors import BusyError
from finalist.web.lives import life_now

#: Seconds between two looks whether the request is still alive.
_LOOK = 0.1
#: What to do if the wait ends with the request.
_REMEDY = "Nothing was changed; try again in a moment."


class Turns:
    """Lets few work at a time, and few wait; the others are told to come back.

    Parameters
    ----------
    words : str
        What the others are told.
    at_once, waiting : int
    seconds : float
        For which one waits at most.

    Examples
    --------
    >>> turns = Turns("others are having plans made. Try again in a moment.", 1, 0, 1.0)
    >>> with turns.take(), turns.take():
    ...     pass
    Traceback (most recent call last):
    finalist.errors.BusyError: others are having plans made. Try again in a moment.
    """

    def __init__(self, words: str, at_once: int, waiting: int, seconds: float) -> None:
        self._words, self._most, self._seconds = words, at_once + waiting, seconds
        self._lock, self._work = threading.Lock(), threading.Semaphore(at_once)
        #: Threads that work or wait.
        self.inside = 0

    @contextmanager
    def take(self, remedy: str = _REMEDY) -> Iterator[None]:
        """Work when it is one's turn; the wait ends with the request, then with a remedy."""
        with self._lock:
            if self.inside >= self._most:
                raise BusyError(self._words)
            self.inside += 1
        try:
            self._wait(remedy)
            try:
                yield
            finally:
                self._work.release()
        finally:
            with self._lock:
                self.inside -= 1

    def _wait(self, remedy: str) -> None:
        life, until = life_now(), time.monotonic() + self._seconds
        while not self._work.acquire(timeout=max(min(_LOOK, until - time.monotonic()), 0.0)):
            life.check(remedy)
            if time.monotonic() >= until:
                raise BusyError(self._words)


class Single:
    """Lets one at a time work on each of many things; the others wait.

    Parameters
    ----------
    words : str
        What they are told who wait in vain.
    waiting : int
        How many may wait for one thing.
    seconds : float
        For which one waits at most.

    Examples
    --------
    >>> single = Single("others ask too. Try again in a moment.", 0, 1.0)
    >>> with single.take(1), single.take(2):
    ...     len(single)
    2
    >>> len(single)
    0
    """

    def __init__(self, words: str, waiting: int, seconds: float) -> None:
        self._words, self._waiting, self._seconds = words, waiting, seconds
        self._lock = threading.Lock()
        self._turns: dict[Hashable, tuple[Turns, int]] = {}

    def __len__(self) -> int:
        return len(self._turns)

    @contextmanager
    def take(self, thing: Hashable, remedy: str = _REMEDY) -> Iterator[None]:
        """Work when it is one's turn with a thing."""
        with self._lock:
            turns, users = self._turns.get(thing) or (
                Turns(self._words, 1, self._waiting, self._seconds),
                0,
            )
            self._turns[thing] = turns, users + 1
        try:
            with turns.take(remedy):
                yield
        finally:
            with self._lock:
                turns, users = self._turns[thing]
                if users > 1:
                    self._turns[thing] = turns, users - 1
                else:
                    del self._turns[thing]
