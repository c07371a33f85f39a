"""The benchmark on a real Dask cluster of several processes, one of which is killed."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from finalist.errors import MissingExtraError, ProblemError, SimulationError
from finalist.lab.benchmark import cluster as module
from finalist.lab.benchmark.engine import run
from tests.benchmark.common import blocks, check_same, small_plan

#: Strategies without compiled code, which each worker would have to load.
PLAIN = ("xy-adaptive", "xy-adaptive:alpha=0.1", "xy-oracle")
PLAN = small_plan(strategies=PLAIN, runs=60)


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    """Three workers, processes of their own."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as workers:
        yield workers


def test_a_killed_worker_changes_nothing(local: Any, tmp_path: Path) -> None:
    here = run(PLAN, tmp_path / "here.sqlite")
    total = blocks(tmp_path / "here.sqlite")
    killed: list[int] = []

    def kill_one(done: int, cells: int, label: str) -> None:
        if done and not killed:
            victim = next(nanny for nanny in local.workers.values() if _busy(local, nanny))
            killed.extend((victim.pid, blocks(tmp_path / "there.sqlite")))
            os.kill(victim.pid, signal.SIGKILL)

    there = run(
        PLAN, tmp_path / "there.sqlite", scheduler=local.scheduler_address, announce=kill_one
    )
    pid, done = killed
    assert 0 < done < total  # it was in the middle
    assert pid not in {nanny.pid for nanny in local.workers.values()}
    check_same(here, there)
    assert blocks(tmp_path / "there.sqlite") == total


def _busy(local: Any, nanny: Any) -> bool:
    """Return whether the scheduler has given a worker something to do."""
    worker = local.scheduler.workers.get(nanny.worker_address)
    return worker is not None and bool(worker.processing)


def test_what_is_there_is_not_sent_again(
    local: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, address = tmp_path / "results.sqlite", local.scheduler_address
    plan = small_plan(strategies=PLAIN[:2])
    first = run(plan, path)
    sent: list[int] = []
    blocks_of = module._blocks

    def counted(client: Any, tasks: Any, missing: dict[int, list[range]]) -> Any:
        sent.append(sum(map(len, missing.values())))
        return blocks_of(client, tasks, missing)

    monkeypatch.setattr(module, "_blocks", counted)
    check_same(first, run(plan, path, scheduler=address))
    more = run(small_plan(strategies=PLAIN[:2], runs=22), path, scheduler=address)
    assert sent == [0, 16]  # the block of runs 10 and 11 is another one than that of 10 to 19
    for one, other in zip(first, more, strict=True):
        assert one.measured.samples.tolist() == other.measured.samples[:12].tolist()


def test_another_version_on_a_worker_is_refused(
    local: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "__version__", "99.0")
    with pytest.raises(SimulationError, match=r"this is 99\.0; install the same version"):
        run(
            small_plan(strategies=PLAIN),
            tmp_path / "results.sqlite",
            scheduler=local.scheduler_address,
        )


def test_without_a_scheduler_there_is_an_answer_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECT", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        begin = time.monotonic()
        with pytest.raises(SimulationError, match="no Dask scheduler at 'tcp://127"):
            run(PLAN, tmp_path / "results.sqlite", scheduler=address)
        assert time.monotonic() - begin < 15
    with pytest.raises(SimulationError, match="no Dask scheduler at 'nonsense://x'"):
        run(PLAN, tmp_path / "results.sqlite", scheduler="nonsense://x")


def test_addresses_are_told_from_other_words() -> None:
    for address in (
        "tcp://10.0.0.1:8786",
        "tls://node-1.example:8786",
        "tcp://[::1]:8786",
        "10.0.0.1:8786",
        "inproc://10.0.0.1/4711/1",
    ):
        assert module.ADDRESS.fullmatch(address), address
    for word in ("", "nix", "tcp://10.0.0.1", "nonsense://x:1", "tcp://:", "tcp://a b:1", "x:y"):
        assert not module.ADDRESS.fullmatch(word), word


def test_without_a_worker_there_is_an_answer_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr(module, "FIRST_WORKER", 1)
    with (
        LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
        ) as none,
        pytest.raises(SimulationError, match="no worker for 1 seconds; start one with: dask"),
    ):
        run(
            small_plan(strategies=PLAIN),
            tmp_path / "results.sqlite",
            scheduler=none.scheduler_address,
        )


def test_without_dask_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'finalist\[cluster\]'"):
        run(
            small_plan(strategies=PLAIN), tmp_path / "results.sqlite", scheduler="tcp://127.0.0.1:1"
        )


class Failed:
    """A future that ended with an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self) -> None:
        raise self.error


def test_what_a_cluster_does_to_a_block_is_explained() -> None:
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    killed = KilledWorker("task", None, 3)
    for error, words in (
        (killed, "several workers in a row died .* run the same command again"),
        (CancelledError(), "connection to the cluster was lost"),
        (OSError("closed"), "connection to the cluster was lost"),
        (ModuleNotFoundError("No module named 'finalist'"), "install finalist .* where the"),
    ):
        with pytest.raises(SimulationError, match=words):
            module._result(Failed(error))
    assert module._result(Failed(ProblemError("not for me"))) == "not for me"
    with pytest.raises(ZeroDivisionError):
        module._result(Failed(ZeroDivisionError()))
