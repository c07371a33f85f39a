"""A worker process: it runs one job after the other until the server ends it.

Jobs arrive as pickles on standard input; results go to standard output: ("progress", (done,
total)), then ("done", result) or ("failed", exception). A thread reads the input, so that the
process exits as soon as the server does, even if killed: its pipe closes. Running compiled code can
delay that; so a watchdog, which does not need the interpreter lock, ends a job that takes much
longer than its request had.
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

#: A function, its arguments, whether it reports progress, and the seconds until the watchdog acts.
Job = tuple[Callable[..., Any], tuple[Any, ...], bool, float | None]
#: Seconds between two reports of progress.
EVERY = 0.1


def serve() -> None:
    """Run jobs until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # requests handled by the server come first
    answers = os.fdopen(os.dup(1), "wb")
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # prints must not mix with results
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
    except Exception as error:  # some exceptions cannot be pickled
        text = pickle.dumps(("failed", RuntimeError(f"{content!r} cannot be sent: {error!r}")))
    stream.write(text)
    stream.flush()


class _Progress:
    """Reports how much is done, at most ten times a second."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._next = stream, 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + EVERY
            _send(self._stream, "progress", (done, total))
