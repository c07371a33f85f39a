"""A process that works for a server: it takes one job after the other, until the server ends it.

Jobs come as pickles on the standard input, what becomes of them goes to the standard output:
("progress", (done, total)), then ("done", result) or ("failed", exception). A thread reads the
input, so that the process ends at once when the server has ended, be it killed: then nobody holds
the other end. Compiled code that is at work may hold that up; so a watchdog, which needs no turn of
the interpreter, ends a job that takes much longer than its request had.
"""

import contextlib
import faulthandler
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

#: What a worker is given: a function, its words, whether it tells its progress, and the seconds
#: after which the watchdog bites.
Job = tuple[Callable[..., Any], tuple[Any, ...], bool, float | None]
#: Seconds between two reports of progress.
EVERY = 0.1


def serve() -> None:
    """Work until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # who looks and tells comes first
    answers = os.fdopen(os.dup(1), "wb")
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # what anybody prints is no answer
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, jobs), daemon=True).start()
    with open(os.devnull, "w") as nowhere:
        while True:
            function, words, tells, seconds = jobs.get()
            if seconds is not None:
                faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
            answer = _answer(function, words, answers if tells else None)
            faulthandler.cancel_dump_traceback_later()
            _send(answers, *answer)


def _read(stream: BinaryIO, jobs: "queue.SimpleQueue[Job]") -> None:
    try:
        while True:
            jobs.put(pickle.load(stream))
    except EOFError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _answer(
    function: Callable[..., Any], words: tuple[Any, ...], told: BinaryIO | None
) -> tuple[str, Any]:
    further = {} if told is None else {"progress": _Progress(told)}
    try:
        return "done", function(*words, **further)
    except Exception as error:
        error.add_note(traceback.format_exc())
        return "failed", error


def _send(stream: BinaryIO, word: str, content: Any) -> None:
    try:
        text = pickle.dumps((word, content))
        if word == "failed":
            pickle.loads(text)
    except Exception as error:  # there are exceptions that do not travel
        text = pickle.dumps(("failed", RuntimeError(f"{content!r} cannot be sent: {error!r}")))
    stream.write(text)
    stream.flush()


class _Progress:
    """Tells how much is done, a few times a second."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._next = stream, 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY
            _send(self._stream, "progress", (done, total))
