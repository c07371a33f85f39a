"""PostgreSQL: whoever reads has connections of their own and waits for nobody who writes."""

import threading
import time
from contextlib import contextmanager

import psycopg
import pytest

from finalist.errors import StorageError
from finalist.study import Study
from finalist.study.storage import connections as database_connections
from tests.study.lab import ARMS
from tests.web.servers import api, in_thread

STUDIES = 18


@contextmanager
def locked_rows(address):
    """Hold the lock of every study but the last, as somebody who writes for long."""
    with psycopg.connect(address) as connection:
        connection.execute(f"SELECT id FROM studies WHERE id <= {STUDIES} FOR UPDATE")
        yield connection.rollback


@contextmanager
def waiting_writers(step):
    """Let a thread for each locked study try to write to it."""
    threads = [
        threading.Thread(target=step, args=(number,), daemon=True)
        for number in range(1, STUDIES + 1)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    yield
    for thread in threads:
        thread.join(60)


@pytest.fixture
def studies(postgresql):
    for number in range(1, STUDIES + 2):
        Study.create(postgresql, f"s{number}", ARMS, seed=1, sigma=1.0).close()
    return postgresql


def test_readers_do_not_wait_for_writers_that_wait_for_locks(studies, monkeypatch):
    monkeypatch.setattr(database_connections, "BUSY", 3.0)
    with Study.open(studies, f"s{STUDIES + 1}") as free:
        database, refused = free._log.storage, []

        def write(number):
            try:
                with database.write() as writer:
                    writer.lock(number)
            except StorageError as error:
                refused.append(error)

        with locked_rows(studies), waiting_writers(write):
            begin = time.monotonic()
            for _ in range(20):
                assert free.status(forecast=False).pulls == 0
            assert time.monotonic() - begin < 2.0
    assert len(refused) == STUDIES


def test_a_page_is_there_while_other_studies_are_locked(studies):
    def write(number):
        with api(url) as client:
            client.post(f"/studies/{number}/ask", json={"size": 4})

    with in_thread(studies) as url, api(url) as client:
        assert client.get(f"/studies/{STUDIES + 1}").status_code == 200
        with locked_rows(studies) as unlock, waiting_writers(write):
            begin = time.monotonic()
            for path in (f"/studies/{STUDIES + 1}/status", "/studies"):
                assert client.get(path).status_code == 200
            assert time.monotonic() - begin < 5.0
            unlock()
        assert client.post(f"/studies/{STUDIES}/ask", json={"size": 4}).status_code == 200
