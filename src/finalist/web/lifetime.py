"""The life of a request: it ends at a deadline, or when its client disconnects.

Long work checks here whether anybody still waits for it, and registers how it can be cancelled.
Code in a thread finds its request through a context variable, which the threads of a request
inherit; outside of requests there is neither a deadline nor a client.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from finalist.errors import DeadlineError
from finalist.web.errors import RefusedError

#: Default seconds for a request; less than the 60 after which clients and proxies usually give up,
#: so that they get a response with the reason.
DEADLINE = 50.0


class GoneError(RefusedError):
    """The client has disconnected."""

    def __init__(self) -> None:
        super().__init__(503, "gone", "the client has disconnected; the work was cancelled.")


class Life:
    """The life of a request.

    Parameters
    ----------
    seconds : float, optional
        Its deadline, for messages only: the owner of the clock calls `end`.

    Examples
    --------
    >>> life = Life(2.0)
    >>> with life.ending(lambda: print("ended")):
    ...     life.end("late")
    ended
    >>> life.check("Ask for less.")
    Traceback (most recent call last):
    finalist.errors.DeadlineError: this took longer than 2 seconds, ... Ask for less.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds, self.begun = seconds, time.monotonic()
        #: How much of the work is done, and of how much.
        self.progress: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._ended: Literal["late", "gone"] | None = None
        self._enders: list[Callable[[], None]] = []

    @property
    def left(self) -> float | None:
        """Seconds left; None without a deadline."""
        if self.seconds is None:
            return None
        return max(self.begun + self.seconds - time.monotonic(), 0.0)

    def end(self, why: Literal["late", "gone"]) -> None:
        """Cancel all its work."""
        with self._lock:
            if self._ended is None:
                self._ended = why
                for ender in self._enders:
                    ender()

    @contextmanager
    def ending(self, ender: Callable[[], None]) -> Iterator[None]:
        """Call `ender` if the request ends within this block, and at most once."""
        with self._lock:
            if self._ended is None:
                self._enders.append(ender)
        self.check()
        try:
            yield
        finally:
            with self._lock:
                self._enders.remove(ender)

    def check(self, remedy: str = "") -> None:
        """Raise if it has ended, with a remedy."""
        if self._ended == "late":
            raise DeadlineError(
                f"this took longer than {self.seconds:g} seconds, this server's limit for a "
                f"request, and was cancelled. {remedy}".rstrip()
            )
        if self._ended == "gone":
            raise GoneError


_life: ContextVar[Life] = ContextVar("life")


def life_now() -> Life:
    """Return the life of the request this thread works for."""
    return _life.get(None) or Life()


@contextmanager
def living(life: Life) -> Iterator[None]:
    """Make this the current request for work started in this block."""
    token = _life.set(life)
    try:
        yield
    finally:
        _life.reset(token)
