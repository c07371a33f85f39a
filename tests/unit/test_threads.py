"""Small matrices have one BLAS thread, and users keep the number that they set."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import finalist as fl
from finalist.compiled import threads
from finalist.compiled.threads import on_one_thread, one_thread


class Pools:
    """Counts instead of setting: the machine of a test may have one core."""

    def __init__(self) -> None:
        self.number = 8

    def limit(self, *, limits: int, user_api: str) -> "Pools":
        assert user_api == "blas"
        self.before, self.number = self.number, limits
        return self

    def restore_original_limits(self) -> None:
        self.number = self.before


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> Pools:
    made = Pools()
    monkeypatch.setattr(threads, "_pools", lambda: made)
    monkeypatch.setattr(threads, "_is_single", lambda: False)
    return made


def test_there_is_one_thread_inside_and_what_there_was_outside(pools: Pools) -> None:
    with one_thread():
        assert pools.number == 1
        with one_thread():
            assert pools.number == 1
        assert pools.number == 1
    assert pools.number == 8


def test_an_error_gives_the_threads_back(pools: Pools) -> None:
    with pytest.raises(ValueError, match="wrong"), one_thread():
        raise ValueError("wrong")
    assert pools.number == 8


def test_large_matrices_keep_their_threads(pools: Pools) -> None:
    @on_one_thread(lambda A: A.size)
    def number(A: np.ndarray) -> int:
        assert A.ndim == 2
        return pools.number

    assert number(np.empty((threads.LARGEST // 10, 10))) == 1
    assert number(np.empty((threads.LARGEST // 10 + 1, 10))) == 8


def test_the_last_of_several_that_overlap_gives_back(pools: Pools) -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert inside.wait(20)
    assert pools.number == 1  # the other is still at work
    leave.set()
    thread.join(20)
    assert pools.number == 8


def test_everything_that_computes_is_on_one_thread(pools: Pools, monkeypatch, tmp_path) -> None:
    """By what is asked of LAPACK and BLAS, in a study and without."""
    seen: list[int] = []
    for module, name in ((np.linalg, "cholesky"), (np.linalg, "inv"), (np.linalg, "qr")):
        plain = getattr(module, name)

        def spied(*words, plain=plain, **more):
            seen.append(pools.number)
            return plain(*words, **more)

        monkeypatch.setattr(module, name, spied)
    arms = fl.Arms(np.random.default_rng(0).standard_normal((30, 4)))
    for criterion in ("g", "xy", "d"):
        fl.optimal_design(arms, criterion)
    fl.simulate(arms, np.ones(4), sigma=3.0, runs=2)
    with fl.Study.create(tmp_path / "lab.db", "lab", arms, sigma=3.0, seed=1) as study:
        for _ in range(3):
            study.tell({pull.pull_id: 0.5 for pull in study.ask(24)})
        assert study.status().forecast is not None
    assert set(seen) == {1}
    assert pools.number == 8


def test_the_real_number_comes_back() -> None:
    code = """
import json, numpy, scipy.linalg, finalist as fl
from threadpoolctl import threadpool_info, threadpool_limits
def now(): return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
from finalist.compiled.threads import one_thread
with threadpool_limits(2, user_api="blas"):
    before = now()
    with one_thread():
        inside = now()
    fl.optimal_design(fl.Arms.unstructured(3), "g")
    print(json.dumps([before, inside, now()]))
"""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    before, inside, after = json.loads(done.stdout)
    assert before == after
    assert os.cpu_count() == 1 or set(inside) == {1}


def test_who_has_one_thread_anyway_does_not_load_threadpoolctl() -> None:
    code = (
        "import sys, finalist as fl; fl.optimal_design(fl.Arms.unstructured(3), 'g');"
        "print('threadpoolctl' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
