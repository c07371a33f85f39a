"""One process compiles a function while others that need it wait for what it keeps."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Seconds after which a process stops waiting and compiles for itself.
PATIENCE = 60.0
_PAUSE = 0.02


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock of a file name; without it, too, if it cannot be had.

    The end of a process, however it ends, gives the lock back. A forked process does not have it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(Path(folder, "name.lock")):
    ...     Path(folder, "name.lock").exists()
    True
    """
    if sys.platform == "win32":  # every process compiles for itself
        yield
        return
    from fcntl import LOCK_EX, LOCK_NB, lockf

    try:
        file = path.open("a")
    except OSError:
        yield
        return
    until = time.monotonic() + PATIENCE
    with file:
        while time.monotonic() < until:
            try:
                lockf(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE)
            except OSError:  # a file system without locks
                break
            else:
                break
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()
