"""Taking turns: work that takes seconds must not take all threads of the server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from finalist.errors import BusyError


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
    def take(self) -> Iterator[None]:
        """Work when it is one's turn."""
        with self._lock:
            if self.inside >= self._most:
                raise BusyError(self._words)
            self.inside += 1
        try:
            if not self._work.acquire(timeout=self._seconds):
                raise BusyError(self._words)
            try:
                yield
            finally:
                self._work.release()
        finally:
            with self._lock:
                self.inside -= 1
