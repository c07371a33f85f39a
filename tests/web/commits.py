"""How long a plain durable commit takes: SQLite alone, one small row, flushed like a study's.

    python -m tests.web.commits FILE SECONDS PAUSE

Prints the seconds of each commit as JSON. In a process of its own it waits for the disk and the
processor, and for no thread of the clients that are measured beside it.
"""

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path


class Plain:
    """A database with one table, for nothing but commits."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        assert self._connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE IF NOT EXISTS rewards (pull INTEGER, reward REAL)")

    def commit(self, number: int) -> float:
        """Commit a row; return the seconds it took."""
        start = time.perf_counter()
        self._connection.execute("INSERT INTO rewards VALUES (?, 0.5)", (number,))
        return time.perf_counter() - start

    def close(self) -> None:
        """Close it."""
        self._connection.close()


def commits(path: Path, seconds: float, pause: float) -> list[float]:
    """Commit one row after another, with a pause between them; return how long each took."""
    times: list[float] = []
    with closing(Plain(path)) as plain:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            times.append(plain.commit(len(times)))
            time.sleep(pause)
    return times


class Beside:
    """Commits in another process while something else goes on."""

    def __init__(self, path: Path, seconds: float, pause: float = 0.02) -> None:
        words = ["tests.web.commits", str(path), str(seconds), str(pause)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", *words], stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> "Beside":
        return self

    def times(self, timeout: float) -> list[float]:
        """Wait for its end; return how long each commit took."""
        said, _ = self._process.communicate(timeout=timeout)
        found: list[float] = json.loads(said)
        return found

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    file, *numbers = sys.argv[1:]
    sys.stdout.write(json.dumps(commits(Path(file), *map(float, numbers))))
