"""Processes forked from one that has loaded the compiler, which takes seconds each time."""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any


class Forks:
    """A process that has loaded numba and nothing of a cache, and forks others to run code."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        code = "from tests.unit.forked import serve; serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def run(self, code: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run code in a new process that finds modules in a folder too, and wait for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        out, err = self._folder / "out", self._folder / "err"
        job = {"code": code, "path": str(path), "environment": environment}
        print(json.dumps({**job, "out": str(out), "err": str(err)}), file=self._process.stdin)
        self._process.stdin.flush()
        ended = int(self._process.stdout.readline())
        return subprocess.CompletedProcess(code, ended, out.read_text(), err.read_text())

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def serve() -> None:
    """Fork for every line of the standard input; write how each process ended."""
    import numba

    import finalist.compiled.cache  # noqa: F401

    numba.njit(lambda x: x + 1)(0.0)  # loads what the first call would load
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _run(job: dict[str, Any]) -> None:
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.update(job["environment"])
    sys.path.insert(0, job["path"])
    sys.dont_write_bytecode = True  # sources change within a second
    failed = 0
    try:
        exec(job["code"], {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        failed = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(failed)
