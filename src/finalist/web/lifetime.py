"""The life of a request: it ends at a deadline, or when whoever sent it has gone.

Work that takes long asks here whether anybody still waits for it, and says how it can be ended.
What runs in a thread knows its request by a context variable, which the threads of a request
inherit; outside of requests there is neither deadline nor anybody who could go.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from finalist.errors import DeadlineError
from finalist.web.refusals import RefusedError

#: Seconds that a request has unless the server was started with others. They are less than the 60
#: after which clients and proxies usually give up, so that the answer says why.
DEADLINE = 50.0


class GoneError(RefusedError):
    """Nobody waits for the answer any more."""

    def __init__(self) -> None:
        super().__init__(503, "gone", "whoever asked has gone; the work was ended.")


class Life:
    """The life of a request.

    Parameters
    ----------
    seconds : float, optional
        That it has; for words alone, `end` is called by whoever has the clock.

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
        #: What is done already of the work, and of how much.
        self.progress: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._ended: Literal["late", "gone"] | None = None
        self._enders: list[Callable[[], None]] = []

    @property
    def left(self) -> float | None:
        """Seconds that are left to it; None if it has no deadline."""
        if self.seconds is None:
            return None
        return max(self.begun + self.seconds - time.monotonic(), 0.0)

    def end(self, why: Literal["late", "gone"]) -> None:
        """End all that works for it."""
        with self._lock:
            if self._ended is None:
                self._ended = why
                for ender in self._enders:
                    ender()

    @contextmanager
    def ending(self, ender: Callable[[], None]) -> Iterator[None]:
        """Do something that this ends; it is not called before, after, or twice."""
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
        """Raise if it has ended, with what to do about it."""
        if self._ended == "late":
            raise DeadlineError(
                f"this took longer than {self.seconds:g} seconds, which is what a request has on "
                f"this server, and was ended. {remedy}".rstrip()
            )
        if self._ended == "gone":
            raise GoneError


_life: ContextVar[Life] = ContextVar("life")


def life_now() -> Life:
    """Return the life of the request that this thread works for."""
    return _life.get(None) or Life()


@contextmanager
def living(life: Life) -> Iterator[None]:
    """Let what is begun here belong to a request."""
    token = _life.set(life)
    try:
        yield
    finally:
        _life.reset(token)
