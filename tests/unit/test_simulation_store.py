"""The store: what it keeps, what it computes again, what it refuses, and what survives a kill."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import OutputError, SimulationError, StoreError
from finalist.lab import Store, store
from finalist.problem.rules import Rules
from finalist.simulation.task import Task
from tests.fakes import Rounds
from tests.unit.test_simulation import ARMS, THETA, check_same, constant

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


def counted(monkeypatch) -> list[int]:
    """Note the number of every run that is simulated."""
    ran: list[int] = []
    run = Task.run

    def noted(task, index):
        ran.append(index)
        return run(task, index)

    monkeypatch.setattr(Task, "run", noted)
    return ran


def test_it_returns_what_simulate_returns(path):
    expected = fl.simulate(ARMS, THETA, Rounds(), runs=25, sigma=3.0)
    with Store(path) as results:
        check_same(expected, results.simulate(ARMS, THETA, Rounds(), runs=25, block=10, sigma=3.0))
        check_same(expected, results.simulate(ARMS, THETA, Rounds(), runs=25, block=10, sigma=3.0))


def test_runs_that_are_there_are_not_simulated_again(path, monkeypatch):
    ran = counted(monkeypatch)
    with Store(path) as results:
        first = results.simulate(ARMS, THETA, Rounds(), runs=20, block=10, sigma=1.0)
        again = results.simulate(ARMS, THETA, Rounds(), runs=20, block=10, sigma=1.0)
        assert ran == list(range(20))
        np.testing.assert_array_equal(first.seconds, again.seconds)
        results.simulate(ARMS, THETA, Rounds(), runs=35, block=10, sigma=1.0)
    assert ran == list(range(35))
    with Store(path) as results:
        assert len(results) == 4
        results.simulate(ARMS, THETA, Rounds(), runs=35, block=10, sigma=1.0)
    assert len(ran) == 35


def test_processes_fill_blocks_too(path):
    expected = fl.simulate(ARMS, THETA, Rounds(), runs=23, sigma=3.0)
    with Store(path) as results:
        found = results.simulate(ARMS, THETA, Rounds(), runs=23, block=5, sigma=3.0, n_jobs=2)
        assert len(results) == 5
    check_same(expected, found)


@dataclass(frozen=True)
class Wide(Rounds):
    """With an array that NumPy does not print in full."""

    weights: Any = None


@pytest.mark.parametrize(
    "change",
    [
        {"theta": [1.0, 0.5, 0.1]},
        {"arms": fl.Arms(2 * np.eye(3))},
        {"strategy": Rounds(4)},
        {"sigma": 2.0},
        {"delta": 0.1},
        {"seed": 1},
        {"objective": "min"},
        {"epsilon": 0.1},
        {"noise": "sub-gaussian"},
        {"rewards": "bounded"},
        {"max_pulls": 100},
        {"block": 4},
        {"rules": Rules(99)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_setting_makes_another_cell(path, change, monkeypatch):
    words: dict[str, Any] = {"arms": ARMS, "theta": THETA, "strategy": Rounds(), "runs": 5}
    words["sigma"] = 1.0
    with Store(path) as results:
        results.simulate(**words)
        ran = counted(monkeypatch)
        results.simulate(**{**words, **change})
        assert len(ran) == 5
        results.simulate(**words)
        assert len(ran) == 5


def test_a_new_version_computes_afresh(path, monkeypatch):
    with Store(path) as results:
        results.simulate(ARMS, THETA, Rounds(), runs=5, sigma=1.0)
        ran = counted(monkeypatch)
        monkeypatch.setattr(store, "__version__", "99")
        results.simulate(ARMS, THETA, Rounds(), runs=5, sigma=1.0)
    assert len(ran) == 5


def test_arrays_of_a_strategy_count_in_full(path, monkeypatch):
    wide = np.zeros(5000)
    other = wide.copy()
    other[2500] = 1e-12
    with Store(path) as results:
        results.simulate(ARMS, THETA, Wide(weights=wide), runs=2, sigma=1.0)
        ran = counted(monkeypatch)
        results.simulate(ARMS, THETA, Wide(weights=wide.copy()), runs=2, sigma=1.0)
        assert ran == []
        results.simulate(ARMS, THETA, Wide(weights=other), runs=2, sigma=1.0)
        assert len(ran) == 2


def test_names_of_arms_are_only_names(path):
    with Store(path) as results:
        results.simulate(ARMS, THETA, Rounds(), runs=2, sigma=1.0)
        renamed = fl.Arms(ARMS.features, names=["u", "v", "w"])
        assert results.simulate(renamed, THETA, Rounds(), runs=2, sigma=1.0).arms == ("u", "v", "w")
        assert len(results) == 1


def test_what_has_no_name_is_refused(path):
    class Anonymous(Rounds):
        __repr__ = object.__repr__

    with Store(path) as results:
        with pytest.raises(StoreError, match="rewards is a function"):
            results.simulate(ARMS, THETA, Rounds(), runs=2, rewards=constant, sigma=1.0)
        with pytest.raises(StoreError, match="without its settings"):
            results.simulate(ARMS, THETA, Anonymous(), runs=2, sigma=1.0)
        with pytest.raises(SimulationError, match="block is 0"):
            results.simulate(ARMS, THETA, Rounds(), runs=2, block=0, sigma=1.0)
        assert len(results) == 0


# --- cells ------------------------------------------------------------------------------------


def test_cells_of_any_kind(path):
    arrays = {"x": np.arange(6.0).reshape(2, 3), "words": np.array(["a", "bc"]), "n": np.array(5)}
    with Store(path) as results:
        assert results.get({"a": 1}) is None
        results.put({"a": 1, "b": [1, 2]}, arrays)
    with Store(path) as results:
        found = results.get({"b": [1, 2], "a": 1})
        assert found is not None
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
        assert results.get({"b": [2, 1], "a": 1}) is None
        results.put({"a": 1, "b": [1, 2]}, {"x": 7})
        assert (results.get({"b": [1, 2], "a": 1}) or {})["x"] == 7
        assert len(results) == 1


def test_cells_that_cannot_be_kept_are_refused(path):
    with Store(path) as results:
        with pytest.raises(StoreError, match="JSON"):
            results.put({"a": object()}, {})
        with pytest.raises(StoreError, match="JSON"):
            results.get({"a": float("nan")})
        with pytest.raises(StoreError, match="'x' holds objects"):
            results.put({"a": 1}, {"x": np.array([None])})
        assert len(results) == 0
    with pytest.raises(StoreError, match="closed"):
        results.get({"a": 1})


def test_a_damaged_cell_is_reported(path):
    with Store(path) as results:
        results.put({"a": 1}, {"x": np.arange(100)})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE cells SET arrays = substr(arrays, 1, 50)")
    connection.close()
    with Store(path) as results, pytest.raises(StoreError, match="damaged"):
        results.get({"a": 1})


# --- files ------------------------------------------------------------------------------------


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()


def newer(path: Path) -> None:
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()


def text(path: Path) -> None:
    path.write_text("name,a,b\n" * 1000)


@pytest.mark.parametrize(
    ("make", "message"),
    [(text, "not a database"), (foreign, "another program's"), (newer, "format 2, .* upgrade")],
)
def test_files_that_are_no_store_are_refused_and_left_alone(path, make, message):
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message):
        Store(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_changes_beside_another_programs_database_are_left_alone(tmp_path, path):
    """A database in use, as by a browser that was killed: nothing is played into it."""
    source = tmp_path / "source.db"
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE theirs (x)")
        for end in ("", "-wal"):
            shutil.copy(f"{source}{end}", f"{path}{end}")
    before = {file.name: file.read_bytes() for file in tmp_path.glob(f"{path.name}*")}
    assert len(before) == 2
    with pytest.raises(StoreError, match="another program's"):
        Store(path)
    assert {file.name: file.read_bytes() for file in tmp_path.glob(f"{path.name}*")} == before


def test_a_folder_must_be_there(tmp_path):
    with pytest.raises(OutputError, match="no folder"):
        Store(tmp_path / "no" / "results.db")
    with pytest.raises(OutputError, match="it is a folder"):
        Store(tmp_path)


def test_a_new_file_is_locked_while_it_is_made(path, monkeypatch):
    is_new, seen = Store._is_new, []

    def contested(results):
        new = is_new(results)
        other = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            seen.append("free")
        except sqlite3.OperationalError:
            seen.append("locked")
        finally:
            other.close()
        return new

    monkeypatch.setattr(Store, "_is_new", contested)
    Store(path).close()
    assert seen == ["free", "locked"]


# --- other processes --------------------------------------------------------------------------

SLOW = """
import sys, time
import numpy as np
import finalist as fl
from finalist.lab import Store
from finalist.simulation.task import Task
from tests.fakes import Rounds

run = Task.run
def slow(task, index):
    time.sleep(float(sys.argv[2]))
    return run(task, index)
Task.run = slow
print("ready", flush=True)
with Store(sys.argv[1]) as results:
    arms = fl.Arms.unstructured(["a", "b", "c"])
    results.simulate(arms, [1.0, 0.5, 0.0], Rounds(), runs=30, block=3, sigma=3.0)
"""


def start(path: Path, seconds: float) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SLOW, str(path), str(seconds)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_killed_process_loses_one_block_and_the_next_goes_on(path, monkeypatch):
    process = start(path, 0.05)
    assert process.stdout is not None
    process.stdout.readline()
    with Store(path) as results:
        until = time.monotonic() + 60
        while len(results) < 3:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with Store(path) as results:
        kept = len(results)
        assert 3 <= kept < 10
        ran = counted(monkeypatch)
        found = results.simulate(ARMS, THETA, Rounds(), runs=30, block=3, sigma=3.0)
    assert ran == list(range(3 * kept, 30))
    check_same(fl.simulate(ARMS, THETA, Rounds(), runs=30, sigma=3.0), found)


def test_two_processes_share_a_new_file(path):
    processes = [start(path, 0.0), start(path, 0.0)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    with Store(path) as results:
        assert len(results) == 10


def test_a_limit_on_pulls_makes_another_cell(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    arms, theta = fl.Arms.unstructured(3), np.array([1.0, 0.0, 0.0])
    free = store.simulate(arms, theta, "gauntlet", runs=2, sigma=1.0)
    short = store.simulate(
        arms, theta, "gauntlet", runs=2, budget=30, max_pulls_per_arm=12, sigma=1.0
    )
    assert free.pulls_per_arm.max() > 12
    assert short.pulls_per_arm.max() <= 12


def test_an_interrupt_anywhere_in_a_write_is_an_interrupt(path):
    def put(at: int) -> bool:
        """Interrupt at the `at`-th call inside `put`; return whether there were as many."""
        calls = 0

        def count(_frame: Any, event: str, _arg: Any) -> None:
            nonlocal calls
            calls += event == "call"
            if event == "call" and calls == at:
                signal.raise_signal(signal.SIGINT)

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            kept.put({"cell": at}, {"x": np.arange(3)})
        finally:
            sys.setprofile(before)
        return calls >= at

    with Store(path) as kept:
        put(0)  # NumPy imports what writes archives
        interrupted = 0
        for at in range(1, 10_000):
            try:
                if not put(at):
                    break
            except KeyboardInterrupt:
                interrupted += 1
        else:
            pytest.fail("put makes more calls than were tried")
        assert interrupted > 50
        whole = kept.get({"cell": at})
        assert whole is not None
        assert whole["x"].tolist() == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
