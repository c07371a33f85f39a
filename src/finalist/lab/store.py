"""Results on disk: one SQLite file, one row for each cell of work that is done.

A cell is found by the SHA-256 of its settings as canonical JSON, so it is computed once and then
read. Rows are committed as they are done: a process that is killed loses the cell it was at.
Several processes may use one file. Settings hold the version of finalist and the number of the
rules, so that a new version or new rules compute afresh.
"""

import hashlib
import io
import json
import sqlite3
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
from finalist.problem.noise import UNSET
from finalist.simulation.engine import collect, gather
from finalist.simulation.result import Simulation
from finalist.simulation.task import Outcome, Task, make_task, whole
from finalist.sqlite_files import header
from finalist.strategies import Strategy

#: Marks the file as ours ("FNLS"), and the version of its tables.
_APPLICATION, _FORMAT = 0x464E4C53, 1
_CREATE = """
CREATE TABLE cells (
    key TEXT PRIMARY KEY,    -- SHA-256 of the settings
    settings TEXT NOT NULL,  -- canonical JSON
    made TEXT NOT NULL,      -- when, UTC
    arrays BLOB NOT NULL     -- .npz
)"""
#: Seconds to wait for another process that writes.
_TIMEOUT = 60.0


class Store:
    """Results in a SQLite file, which is created if it is not there.

    Parameters
    ----------
    path : path-like
        A file that is something else, or that a newer finalist wrote, is refused and left alone.

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
        """Close the file; it is also closed when the store is no longer used."""
        self._closed()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        """Check what the file is before anything is written; make the table if it is new."""
        with self._transaction("DEFERRED"):
            new = self._is_new()
        if new:
            with self._transaction("IMMEDIATE"):
                if self._is_new():  # another process may have been faster
                    self._connection.execute(_CREATE)
                    self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    self._connection.execute(f"PRAGMA user_version = {_FORMAT}")
        with suppress(sqlite3.OperationalError):
            # This does not wait for other processes. It lasts, and the next to come tries again.
            self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def _is_new(self) -> bool:
        """Return whether the file is empty; refuse one that is no store of this format."""
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
                f"{self._path} has format {version} and this finalist ({__version__}) knows "
                f"{_FORMAT}; upgrade finalist, or give the name of a new file."
            )
        return False

    def _check_mark(self, mark: int) -> None:
        if mark != _APPLICATION:
            raise StoreError(
                f"{self._path} is another program's database, no store of results; "
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
        """Keep the arrays of a cell; on return they are in the file.

        Parameters
        ----------
        settings : mapping
            What identifies the cell, in values that JSON can hold.
        arrays : mapping of str to array
        """
        key, text = _key(settings)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **_plain(arrays))
        row = (key, text, datetime.now(UTC).isoformat(timespec="seconds"), buffer.getvalue())
        with self._errors(), self._transaction("IMMEDIATE"):
            self._connection.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?)", row)

    def __len__(self) -> int:
        with self._errors():
            count: int = self._connection.execute("SELECT count(*) FROM cells").fetchone()[0]
        return count

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        """See one state of the file; IMMEDIATE holds the right to write from the start."""
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
                f"{self._path} cannot be used as a store of results: {error}. It is left as it "
                "is; give the name of another file if it is something else."
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
        """Do what `finalist.simulate` does, with runs that are here read instead of simulated.

        Parameters
        ----------
        arms, theta, strategy, runs, n_jobs, progress
            As in `finalist.simulate`.
        block : int
            Runs that are kept together, as one cell: what a kill loses at most for each process.
        **settings
            All other words of `finalist.simulate`. Rewards are named, not a function: a
            function has no settings by which its results could be found again.
        """
        words = {"rewards": None, "seed": 0, "max_pulls": 10**9, "sigma": UNSET, "delta": 0.05}
        task = make_task(arms, theta, strategy, **{**words, **settings})
        return self.run(task, runs=runs, block=block, n_jobs=n_jobs, progress=progress)

    def run(
        self, task: Task, *, runs: int, block: int, n_jobs: int = 1, progress: bool | None = None
    ) -> Simulation:
        """Do what `simulate` does, for a task that is made already."""
        total = whole("runs", runs, 1)
        done, missing = self.found(task, total, block)
        keeper = Keeper(missing, lambda part, ended: self.keep(task, part, ended))
        indices = [index for part in missing for index in part]
        done.extend(collect(task, indices, n_jobs, progress, keeper.add))
        if not done:
            raise KeyboardInterrupt
        return gather(task, done, total)

    def found(self, task: Task, runs: int, block: int) -> tuple[list[Outcome], list[range]]:
        """Return the outcomes of a task that are here, and the blocks of runs that are not."""
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
        """Keep the outcomes of a whole block of runs."""
        self.put(_cell(settings_of(task), part), arrays_of(ended))


def settings_of(task: Task) -> dict[str, Any]:
    """Return what the results of a task are found by; a new version computes afresh."""
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
            "Use text, finite numbers, lists and dicts."
        ) from error
    return hashlib.sha256(text.encode()).hexdigest(), text


def _plain(arrays: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Return arrays of numbers and text; objects would have to be pickled."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if array.dtype.hasobject:
            raise StoreError(f"array {name!r} holds objects; use numbers, bools or text.")
    return plain
