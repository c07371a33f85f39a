"""Taking turns: work that takes seconds must not take all threads of the server."""

import threading
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from finalist.errors import BusyError
from finalist.web.lifetime import life_now

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
        self._lock, self._free = threading.Lock(), at_once
        self._queue: deque[threading.Event] = deque()  # of those who wait, the first one first
        #: Threads that work or wait.
        self.inside = 0

    @contextmanager
    def take(self, remedy: str = _REMEDY) -> Iterator[None]:
        """Work when it is one's turn; the wait ends with the request, then with a remedy."""
        turn = threading.Event()
        with self._lock:
            if self.inside >= self._most:
                raise BusyError(self._words)
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
        with life.ending(turn.set):  # it need not look now and then, and keeps its place
            turn.wait(self._seconds)
        with self._lock:
            called = turn not in self._queue
        if not called:
            life.check(remedy)
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
