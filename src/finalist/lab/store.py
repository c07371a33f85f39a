"""Results on disk: one SQLite file, one row for each finished cell.

A cell is keyed by the SHA-256 of its settings as canonical JSON, so it is computed once and read
afterwards. Each row is committed when it is done: a process that is killed loses only the cell it
was working on. Several processes may share one file. Settings include the version of finalist and
the rules number, so a new version or new rules compute everything again.
"""

import hashlib
import io
import json
import signal
import sqlite3
import threading
import weakref
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from finalist import __version__
from finalist.arms import Arms
from finalist.errors import StoreError
from finalist.files import check_folder
from finalist.lab.blocks import Keeper, arrays_of, identity, outcomes
from finalist.problem import UNSET
from finalist.simulation.engine import collect, gather
from finalist.simulation.result import Simulation
from finalist.simulation.task import Outcome, Task, make_task, whole
from finalist.sqlite_files import header
from finalist.strategies import Strategy

#: The application id of the file ("FNLS"), and the version of its tables.
_APPLICATION, _FORMAT = 0x464E4C53, 1
_CREATE = """
CREATE TABLE cells (
    key TEXT PRIMARY KEY,    -- SHA-256 of the settings
    settings TEXT NOT NULL,  -- canonical JSON
    made TEXT NOT NULL,      -- when, UTC
    arrays BLOB NOT NULL     -- .npz
)"""
#: Seconds to wait for another process to finish writing.
_TIMEOUT = 60.0


class Store:
    """Results in a SQLite file, which is created if missing.

    Parameters
    ----------
    path : path-like
        A file of another program, or of a newer finalist, is refused and left untouched.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(folder.name + "/results.db")
    >>> store.put({"what": "squares"}, {"x": np.arange(3) ** 2})
    >>> store.get({"what": "squares"})["x"]
    array([0, 1, 4])
    >>> store.close(); folder.cleanup()
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = check_folder(Path(path))
        with self._errors():
            if self._path.exists() and self._path.stat().st_size > 0:
                self._check_mark(header(self._path).application)  # before SQLite touches it
            self._connection = sqlite3.connect(
                self._path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False
            )
            self._closed = weakref.finalize(self, self._connection.close)
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the file; garbage collection closes it too."""
        self._closed()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        """Check the file before writing anything; create the table if the file is new."""
        with self._transaction("DEFERRED"):
            new = self._is_new()
        if new:
            with self._transaction("IMMEDIATE"):
                if self._is_new():  # another process may have been first
                    self._connection.execute(_CREATE)
                    self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    self._connection.execute(f"PRAGMA user_version = {_FORMAT}")
        with suppress(sqlite3.OperationalError):
            # This does not wait for other processes; if it fails, the next one to open tries again.
            self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def _is_new(self) -> bool:
        """Return whether the file is empty; refuse one that is not a store of a known format."""
        mark, version, tables = (
            self._connection.execute(query).fetchone()[0]
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if (mark, version, tables) == (0, 0, 0):
            return True
        self._check_mark(mark)
        if version > _FORMAT:
            raise StoreError(
                f"{self._path} has format {version}, and this finalist ({__version__}) knows "
                f"formats up to {_FORMAT}; upgrade finalist, or give the name of a new file."
            )
        return False

    def _check_mark(self, mark: int) -> None:
        if mark != _APPLICATION:
            raise StoreError(
                f"{self._path} is another program's database, not a store of results; "
                "give the name of a new file."
            )

    # --- cells --------------------------------------------------------------------------------

    def get(self, settings: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
        """Return the arrays of a cell, or None if it has not been computed."""
        key, _ = _key(settings)
        with self._errors():
            row = self._connection.execute(
                "SELECT arrays FROM cells WHERE key = ?", (key,)
            ).fetchone()
        if row is None:
            return None
        try:
            with np.load(io.BytesIO(row[0]), allow_pickle=False) as arrays:
                return dict(arrays)
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise StoreError(
                f"{self._path}: the cell {key} is damaged ({error}); delete this row of the table "
                "'cells', or the file, to compute it again."
            ) from error

    def put(self, settings: Mapping[str, Any], arrays: Mapping[str, ArrayLike]) -> None:
        """Store the arrays of a cell; on return they are on disk. Ctrl-C waits until then.

        Parameters
        ----------
        settings : mapping
            What identifies the cell, as values that JSON can hold.
        arrays : mapping of str to array
        """
        key, text = _key(settings)
        with _uninterrupted(), self._errors():
            buffer = io.BytesIO()
            np.savez_compressed(buffer, allow_pickle=False, **_plain(arrays))
            row = (key, text, datetime.now(UTC).isoformat(timespec="seconds"), buffer.getvalue())
            with self._transaction("IMMEDIATE"):
                self._connection.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?)", row)

    def __len__(self) -> int:
        with self._errors():
            count: int = self._connection.execute("SELECT count(*) FROM cells").fetchone()[0]
        return count

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        """Work on one consistent state of the file; IMMEDIATE takes the write lock at once."""
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise StoreError(f"the store {self._path} is closed; open it again.") from None
        except sqlite3.Error as error:
            raise StoreError(
                f"{self._path} cannot be used as a store of results: {error}. It was not changed; "
                "if it is something else, give the name of another file."
            ) from error

    # --- simulations --------------------------------------------------------------------------

    def simulate(
        self,
        arms: Arms,
        theta: ArrayLike,
        strategy: Strategy | str = "gauntlet",
        *,
        runs: int = 100,
        block: int = 100,
        n_jobs: int = 1,
        progress: bool | None = None,
        **settings: Any,
    ) -> Simulation:
        """Do what `finalist.simulate` does, but read stored runs instead of simulating them.

        Parameters
        ----------
        arms, theta, strategy, runs, n_jobs, progress
            As in `finalist.simulate`.
        block : int
            Runs stored together, as one cell: the most that a killed process loses.
        **settings
            All other arguments of `finalist.simulate`. `rewards` must be a name: the results of a
            function could not be found again.
        """
        words = {"rewards": None, "seed": 0, "max_pulls": 10**9, "sigma": UNSET, "delta": 0.05}
        task = make_task(arms, theta, strategy, **{**words, **settings})
        return self.run(task, runs=runs, block=block, n_jobs=n_jobs, progress=progress)

    def run(
        self, task: Task, *, runs: int, block: int, n_jobs: int = 1, progress: bool | None = None
    ) -> Simulation:
        """Do what `simulate` does, for a task made before."""
        total = whole("runs", runs, 1)
        done, missing = self.found(task, total, block)
        keeper = Keeper(missing, lambda part, ended: self.keep(task, part, ended))
        indices = [index for part in missing for index in part]
        done.extend(collect(task, indices, n_jobs, progress, keeper.add))
        if not done:
            raise KeyboardInterrupt
        return gather(task, done, total)

    def found(self, task: Task, runs: int, block: int) -> tuple[list[Outcome], list[range]]:
        """Return the stored outcomes of a task, and the blocks of runs that are missing."""
        settings, size = settings_of(task), whole("block", block, 1)
        done: list[Outcome] = []
        missing: list[range] = []
        for first in range(0, runs, size):
            part = range(first, min(first + size, runs))
            arrays = self.get(_cell(settings, part))
            if arrays is None:
                missing.append(part)
            else:
                done.extend(outcomes(arrays))
        return done, missing

    def keep(self, task: Task, part: range, ended: Sequence[Outcome]) -> None:
        """Store the outcomes of a complete block of runs."""
        self.put(_cell(settings_of(task), part), arrays_of(ended))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back while the body runs, and raise it afterwards.

    Inside NumPy's writer of archives an interrupt comes out as a ValueError about an open handle.
    Only the main thread gets interrupts; a handler that was not set from Python stays.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    held: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held:
        signal.raise_signal(signal.SIGINT)


def settings_of(task: Task) -> dict[str, Any]:
    """Return the settings that results of a task are keyed by; a new version has new keys."""
    return {"finalist": __version__, "rules": task.problem.rules.number, **identity(task)}


def _cell(settings: Mapping[str, Any], runs: range) -> dict[str, Any]:
    return {**settings, "first": runs.start, "runs": len(runs)}


def _key(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of settings and their canonical JSON."""
    try:
        text = json.dumps(dict(settings), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"the settings of a cell cannot be written as JSON: {error}. "
            "Use strings, finite numbers, lists and dicts."
        ) from error
    return hashlib.sha256(text.encode()).hexdigest(), text


def _plain(arrays: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Return plain arrays; refuse objects, which would have to be pickled."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.hasobject:
            raise StoreError(f"array {name!r} holds objects; use numbers, bools or text.")
    return plain
