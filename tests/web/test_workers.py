"""Processes that work for a server, and what ends them."""

import os
import re
import threading
import time

import psutil  # type: ignore[import-untyped]
import pytest

from finalist.errors import BusyError, DeadlineError, ProblemError, StorageError
from finalist.web.lifetime import GoneError, Life, living
from finalist.web.workers import pool as module
from finalist.web.workers.pool import ASK, FORECAST, PLAN, Workers
from tests.web.servers import Process, api

LONG = 30.0


@pytest.fixture
def workers():
    made = Workers()
    yield made
    made.close()
    assert len(made) == 0


def running(workers: Workers) -> set[int]:
    return {worker.pid for worker in workers._all}


def wait_until(what, seconds=LONG):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


def fail(words):
    raise ProblemError(words)


class OddError(Exception):
    """An exception that cannot be made again from its words alone."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail_oddly():
    raise OddError(1, 2)


def count(most, progress):
    for i in range(most):
        progress(i + 1, most)
        time.sleep(0.15)
    return os.getpid()


def test_a_worker_is_a_process_of_its_own_that_is_kept(workers, capfd):
    first = workers.run(PLAN, os.getpid)
    assert first != os.getpid()
    assert workers.run(ASK, os.getpid) == first
    assert workers.run(FORECAST, print, "not an answer") is None
    assert "not an answer" in capfd.readouterr().err
    assert running(workers) == {first}
    with pytest.raises(ProblemError, match="gap is 0"):
        workers.run(PLAN, fail, "gap is 0; it is positive.")
    with pytest.raises(RuntimeError, match="OddError"):
        workers.run(PLAN, fail_oddly)
    assert running(workers) == {first}


def test_a_worker_that_has_died_is_replaced(workers):
    first = workers.run(PLAN, os.getpid)
    psutil.Process(first).kill()
    psutil.Process(first).wait(LONG)
    assert workers.run(PLAN, os.getpid) != first
    with pytest.raises(StorageError, match=r"has died.*finalist plan"):
        workers.run(PLAN, os._exit, 3)
    assert workers.run(PLAN, os.getpid) not in (first, None)


@pytest.mark.parametrize(("why", "error"), [("late", DeadlineError), ("gone", GoneError)])
def test_a_worker_ends_with_its_request(workers, why, error):
    first = workers.run(PLAN, os.getpid)
    life, caught = Life(7.0), []

    def work():
        with living(life), pytest.raises(error) as found:
            workers.run(PLAN, time.sleep, LONG)
        caught.append(str(found.value))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    begin = time.monotonic()
    life.end(why)
    thread.join(LONG)
    assert time.monotonic() - begin < 5
    assert not psutil.pid_exists(first)
    assert running(workers) == set()
    if why == "late":
        assert "7 seconds" in caught[0]
        assert "fewer candidates" in caught[0]
    with living(life), pytest.raises(error):  # nothing is begun for a request that has ended
        workers.run(PLAN, os.getpid)
    assert running(workers) == set()


def test_who_waits_for_a_turn_stops_with_its_request(workers):
    slow = [
        threading.Thread(target=lambda: workers.run(PLAN, time.sleep, 3))
        for _ in range(PLAN.at_once)
    ]
    for thread in slow:
        thread.start()
    wait_until(lambda: workers.limits[PLAN].inside == PLAN.at_once)
    life = Life(1.0)
    threading.Timer(0.3, life.end, ["late"]).start()
    begin = time.monotonic()
    with living(life), pytest.raises(DeadlineError):
        workers.run(PLAN, os.getpid)
    assert time.monotonic() - begin < 2
    assert workers.run(ASK, os.getpid) is not None  # asks do not wait for plans
    for thread in slow:
        thread.join(LONG)


def test_progress_is_known_to_the_request(workers):
    life, seen = Life(), set()

    def look():
        wait_until(lambda: life.progress is not None)
        while (found := life.progress or (0, 0))[0] < 6:
            seen.add(found)
            time.sleep(0.02)

    thread = threading.Thread(target=look)
    thread.start()
    with living(life):
        workers.run(PLAN, count, 8, tells=True)
    thread.join(LONG)
    assert len(seen) > 2
    assert {total for _, total in seen} == {8}


def test_no_more_workers_than_there_is_work_for(workers, monkeypatch):
    threads = [
        threading.Thread(target=lambda kind=kind: workers.run(kind, time.sleep, 1.0))
        for kind in (PLAN, FORECAST, ASK)
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, len(workers))
        time.sleep(0.02)
    assert 2 < most <= PLAN.at_once + FORECAST.at_once + ASK.at_once
    assert len(workers) == module.KEPT


def test_the_end_of_a_server_ends_its_workers():
    workers = Workers()
    first, caught = workers.run(PLAN, os.getpid), []

    def work():
        with pytest.raises(BusyError, match="shutting down") as found:
            workers.run(PLAN, time.sleep, LONG)
        caught.append(found)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    workers.close()
    thread.join(LONG)
    assert len(caught) == 1
    assert not psutil.pid_exists(first)
    with pytest.raises(BusyError, match="shutting down"):
        workers.run(PLAN, os.getpid)


#: A plan that takes minutes.
ENDLESS = {
    "arms": {"features": [[1.0, i / 500, (i % 7) / 7] for i in range(500)]},
    "sigma": 1.0,
    "gap": 0.0001,
    "draws": 100,
}


@pytest.mark.parametrize("how", ["kill", "end"])
def test_no_worker_outlives_its_server(tmp_path, how):
    with Process(tmp_path / "lab.db") as server, api(server.url) as client:
        thread = threading.Thread(target=lambda: _ignore(client.post, "/plan", json=ENDLESS))
        thread.start()
        process = psutil.Process(server.process.pid)
        wait_until(lambda: process.children())
        time.sleep(1.5)  # it is at work
        children = process.children()
        assert len(children) == 1
        begin = time.monotonic()
        getattr(server, how)()
        psutil.wait_procs(children, timeout=LONG)
        assert not any(child.is_running() for child in children)
        assert time.monotonic() - begin < 10
        thread.join(LONG)


def _ignore(call, *words, **further):
    try:
        call(*words, **further)
    except Exception:
        return


def test_a_watchdog_ends_a_job_that_nobody_ends(workers, monkeypatch):
    """As if the server were gone, and compiled code would not let the interpreter notice."""
    monkeypatch.setattr(module, "LATE", 1.0)
    with living(Life(0.5)), pytest.raises(StorageError, match="has died"):
        workers.run(PLAN, re.match, "(a+)+$", "a" * 60 + "b")
