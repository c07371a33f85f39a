"""Work that may take long is done in processes that can be ended.

A thread cannot be ended, and it shares the interpreter with all others; so plans, forecasts and the
choice of a batch among many arms are made by workers. A worker is started when there is work for
it, kept for the next, and killed when its request ends before it does. That does no harm: it has
no part of the server's state, and what it writes to a study it writes in one transaction, as any
other process that may be killed.

A worker is a new interpreter and no fork: a fork would take along open databases, and locks that
other threads hold. It is not `multiprocessing` either, which imports the main program once more,
and with it whatever that does.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from finalist.errors import BusyError, StorageError
from finalist.web.lifetime import life_now
from finalist.web.limits import Turns
from finalist.web.workers.process import Job

#: Workers that are kept when there is nothing to do.
KEPT = 2
#: Seconds after the deadline of a request in which a worker ends itself if nobody else does.
LATE = 10.0
_COMMAND = "from finalist.web.workers.process import serve; serve()"
#: Each works on one core: there are others, and the server.
_ONE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_ENDING = "the server is ending. Try again in a moment."


@dataclass(frozen=True)
class Kind:
    """A kind of work.

    Parameters
    ----------
    what : str
        In words, as in "others are having plans made".
    at_once, waiting : int
        How many are worked on at a time, and how many wait; further ones are told to come back.
    seconds : float
        For which one waits at most.
    remedy : str
        What to do if it takes too long.
    """

    what: str
    at_once: int
    waiting: int
    seconds: float
    remedy: str


PLAN = Kind(
    "others are having plans made",
    3,
    4,
    20.0,
    "Plan with fewer arms, fewer draws, a smaller max_pulls or a larger gap; or use 'finalist "
    "plan' on a machine of your own, or a server with a longer --deadline.",
)
FORECAST = Kind(
    "many forecasts are being simulated",
    2,
    20,
    60.0,
    "Look at the study without a forecast, or use 'finalist status' on the machine that has it.",
)
ASK = Kind(
    "many batches are being chosen",
    2,
    20,
    60.0,
    "A batch that was chosen at the last moment comes when you ask again. Otherwise use 'finalist "
    "ask' on the machine that has the study, or a server with a longer --deadline; arms that are "
    "described by features, not by names alone, take less.",
)
KINDS = (PLAN, FORECAST, ASK)


class Workers:
    """The workers of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False
        self.turns: Mapping[Kind, Turns] = {
            kind: Turns(
                f"{kind.what}. Try again in a moment.", kind.at_once, kind.waiting, kind.seconds
            )
            for kind in KINDS
        }

    def __len__(self) -> int:
        return len(self._all)

    def run(
        self, kind: Kind, function: Callable[..., Any], *words: Any, tells: bool = False
    ) -> Any:
        """Call a function in a worker, and return what it returns or raise what it raises.

        Parameters
        ----------
        kind : Kind
        function : function
            Of a module, so that the worker finds it.
        *words : object
            What it is called with; whatever can be pickled.
        tells : bool
            Whether it takes the word `progress`, a function of what is done and of how much; the
            life of the request has it then.
        """
        life = life_now()
        with self.turns[kind].take(kind.remedy):
            worker = self._take()
            try:
                with life.ending(worker.kill):
                    left = None if life.left is None else life.left + LATE
                    worker.send((function, words, tells, left))
                    while (answer := worker.answer())[0] == "progress":
                        life.progress = answer[1]
            except (EOFError, OSError, pickle.UnpicklingError):
                life.check(kind.remedy)
                if self._closed:
                    raise BusyError(_ENDING) from None
                raise StorageError(
                    "the process that worked on this has died, perhaps for want of memory; the "
                    f"log of the server may say why. {kind.remedy}"
                ) from None
            finally:
                self._let_go(worker)
        word, content = answer
        if word == "failed":
            raise content
        return content

    def _take(self) -> "_Worker":
        """Return a worker that waits, or a new one."""
        with self._lock:
            while not self._closed and self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    worker.whole = False
                    return worker
                self._all.discard(worker)  # it has died while it waited
                worker.end()
            if self._closed:
                raise BusyError(_ENDING)
            worker = _Worker()
            self._all.add(worker)
            return worker

    def _let_go(self, worker: "_Worker") -> None:
        """Keep a worker that has answered, and was not killed."""
        with self._lock:
            if worker.whole and not self._closed and len(self._idle) < KEPT:
                self._idle.append(worker)
                return
        self._end(worker)

    def _end(self, worker: "_Worker") -> None:
        with self._lock:
            self._all.discard(worker)
        worker.end()

    def close(self) -> None:
        """End all workers, for good; from any thread, and from a signal handler."""
        self._closed = True
        for worker in list(self._all):
            worker.kill()
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            self._end(worker)


class _Worker:
    """One process."""

    def __init__(self) -> None:
        environment = {**dict.fromkeys(_ONE, "1"), **os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        environment.pop("FINALIST_TOKEN", None)  # it has nobody to let in
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        #: Whether it has answered its last job, and was not killed since.
        self.whole = False

    @property
    def pid(self) -> int:
        """Its number on this machine."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can take a job."""
        return self._process.poll() is None

    def send(self, job: Job) -> None:
        """Give it a job."""
        pickle.dump(job, self._to)
        self._to.flush()

    def answer(self) -> tuple[str, Any]:
        """Wait for the next that it has to say."""
        found: tuple[str, Any] = pickle.load(self._from)
        self.whole = found[0] != "progress"
        return found

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self._process.kill()
        self.whole = False

    def end(self) -> None:
        """Wait for its end, and let go of all that is its."""
        self._process.kill()
        self._process.wait()
        for stream in (self._to, self._from):
            with suppress(OSError):  # what was not sent is not wanted any more
                stream.close()
