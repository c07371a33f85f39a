"""A pool of worker processes for long work, which can be killed.

A thread cannot be killed, and it shares the interpreter with all others; so plans, forecasts and
the choice of a batch among many arms are left to workers. A worker is started on demand, kept for
the next job, and killed if its request ends first. That is harmless: it holds no state of the
server, and it writes to a study in one transaction.

A worker is a new interpreter, not a fork: a fork would inherit open databases, and locks held by
other threads. `multiprocessing` would import the main program again, with its side effects.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from finalist.errors import BusyError, StorageError
from finalist.web.lifetime import life_now
from finalist.web.limits import WorkLimit
from finalist.web.workers.process import Job

#: Idle workers kept.
KEPT = 2
#: Seconds after a request's deadline until a worker ends itself if nobody killed it.
LATE = 10.0
_COMMAND = "from finalist.web.workers.process import serve; serve()"
#: Each works on one core: the server and other workers need some too.
_ONE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_Found = TypeVar("_Found")
_ENDING = "the server is shutting down. Try again in a moment."


@dataclass(frozen=True)
class Kind:
    """A kind of work.

    Parameters
    ----------
    what : str
        For messages, as in "too many plans are being made".
    at_once, waiting : int
        How many run and how many wait at a time; further ones are rejected.
    seconds : float
        The longest wait.
    remedy : str
        What to do if it takes too long.
    """

    what: str
    at_once: int
    waiting: int
    seconds: float
    remedy: str


PLAN = Kind(
    "too many plans are being made",
    3,
    4,
    20.0,
    "Plan with fewer candidates, fewer draws, a smaller max_pulls or a larger gap; or use "
    "'finalist plan' on a machine of your own, or a server with a longer --deadline.",
)
FORECAST = Kind(
    "too many forecasts are being simulated",
    2,
    20,
    60.0,
    "Look at the study without a forecast, or use 'finalist status' on the machine that holds it.",
)
ASK = Kind(
    "too many batches are being chosen",
    2,
    20,
    60.0,
    "A batch that was chosen just in time is returned when you ask again. Otherwise use 'finalist "
    "ask' on the machine that holds the study, or a server with a longer --deadline; arms "
    "described by features, not by names alone, take less time.",
)
KINDS = (PLAN, FORECAST, ASK)


class Workers:
    """The workers of a server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False
        self.limits: Mapping[Kind, WorkLimit] = {
            kind: WorkLimit(
                f"{kind.what} right now. Try again in a moment.",
                kind.at_once,
                kind.waiting,
                kind.seconds,
            )
            for kind in KINDS
        }

    def __len__(self) -> int:
        return len(self._all)

    def run(
        self, kind: Kind, function: Callable[..., _Found], *words: Any, tells: bool = False
    ) -> _Found:
        """Call a function in a worker; return what it returns, raise what it raises.

        Parameters
        ----------
        function : function
            At the top level of a module, so that it can be pickled.
        *words : object
            Its arguments, which are pickled too.
        tells : bool
            Whether it takes the keyword `progress`, a function of how much is done and of how
            much; the life of the request is updated by it.
        """
        life = life_now()
        with self.limits[kind].take(kind.remedy):
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
                    "the process that worked on this has died, perhaps out of memory; the "
                    f"server's log may say why. {kind.remedy}"
                ) from None
            finally:
                self._let_go(worker)
        word, content = answer
        if word == "failed":
            raise content
        found: _Found = content
        return found

    def _take(self) -> "_Worker":
        """Return an idle worker, or a new one."""
        with self._lock:
            while not self._closed and self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    worker.whole = False
                    return worker
                self._all.discard(worker)  # it died while idle
                worker.end()
            if self._closed:
                raise BusyError(_ENDING)
            worker = _Worker()
            self._all.add(worker)
            return worker

    def _let_go(self, worker: "_Worker") -> None:
        """Keep a worker that has answered and was not killed."""
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
        """Kill all workers for good; callable from any thread and from signal handlers."""
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
        environment.pop("FINALIST_TOKEN", None)  # it has no use for it
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        #: Whether it has answered its last job and was not killed since.
        self.whole = False

    @property
    def pid(self) -> int:
        """Its process id."""
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
        """Wait for its next message."""
        found: tuple[str, Any] = pickle.load(self._from)
        self.whole = found[0] != "progress"
        return found

    def kill(self) -> None:
        """Kill it at once."""
        self._process.kill()
        self.whole = False

    def end(self) -> None:
        """Kill it, wait for its end and close its pipes."""
        self._process.kill()
        self._process.wait()
        for stream in (self._to, self._from):
            with suppress(OSError):  # data not yet sent no longer matters
                stream.close()
