"""Taking turns: work that takes seconds must not take all threads of the server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from finalist.errors import BusyError


class Turns:
    """Lets few work at a time, and few wait; the others are told to come back.

    Parameters
    ----------
    what : str
        What they do, for the message.
    at_once, waiting : int
    seconds : float
        For which one waits at most.

    Examples
    --------
    >>> turns = Turns("plans", 1, 0, 1.0)
    >>> with turns.take(), turns.take():
    ...     pass
    Traceback (most recent call last):
    finalist.errors.BusyError: others are having plans made. Try again in a moment.
    """

    def __init__(self, what: str, at_once: int, waiting: int, seconds: float) -> None:
        self._what, self._seconds = what, seconds
        self._places = threading.Semaphore(at_once + waiting)
        self._work = threading.Semaphore(at_once)

    @contextmanager
    def take(self) -> Iterator[None]:
        """Work when it is one's turn."""
        if not self._places.acquire(blocking=False):
            raise self._busy()
        try:
            if not self._work.acquire(timeout=self._seconds):
                raise self._busy()
            try:
                yield
            finally:
                self._work.release()
        finally:
            self._places.release()

    def _busy(self) -> BusyError:
        return BusyError(f"others are having {self._what} made. Try again in a moment.")
