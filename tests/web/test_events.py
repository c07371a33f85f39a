"""News for open pages: in time, to everyone, and gone when the page or the server is."""

import http.client
import json
import socket
import threading
import time
from contextlib import suppress

import httpx
import pytest

from finalist.study import Study
from finalist.web import live as events
from tests.web.servers import APPS, Process, api, in_thread, new_study


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("events") / "lab.db"


@pytest.fixture(scope="module")
def url(place):
    with in_thread(place) as url:
        yield url


class Listener:
    """An open page: keeps what it was told, and when."""

    def __init__(self, url, path):
        self.heard, self.ready, self.ended = [], threading.Event(), threading.Event()
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        self._connection.request("GET", path)
        self._socket = self._connection.sock
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        assert self.ready.wait(20)

    def _listen(self):
        try:
            answer = self._connection.getresponse()
            self.status, self.kind = answer.status, answer.headers["content-type"]
            word = None
            while line := answer.readline().decode().rstrip("\r\n") or answer.fp:
                self.ready.set()
                if not isinstance(line, str):
                    continue
                if line.startswith("event: "):
                    word = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    told = json.loads(line.removeprefix("data: "))
                    self.heard.append((time.monotonic(), word, told["study"], told["last"]))
        except (OSError, http.client.HTTPException):
            pass
        finally:
            self._connection.close()
            self.ready.set()
            self.ended.set()

    def wait(self, word, study, least=0, seconds=10.0):
        """Return when it was told; the last event must be as late as `least`."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for at, what, number, last in list(self.heard):
                if (what, number) == (word, study) and (last or 0) >= least:
                    return at
            time.sleep(0.01)
        raise AssertionError(f"not told of {word} {study} {least}: {self.heard}")

    def close(self):
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        assert self.ended.wait(10)


def test_two_pages_hear_within_two_seconds_what_others_do(url, place):
    with api(url) as client:
        number, other = new_study(client, "watched"), new_study(client, "other")
        pages = [Listener(url, f"/api/v1/studies/{number}/events") for _ in range(2)]
        everything = Listener(url, "/api/v1/events")
        assert pages[0].kind.startswith("text/event-stream")
        for page in (*pages, everything):
            page.wait("changed", number, 1)  # where it stands, at once
        with Study.open(place, "watched") as study:  # not through the server
            study.note("hello")
            told = time.monotonic()
        for page in (*pages, everything):
            assert page.wait("changed", number, 2) - told < 2.0
        client.post(f"/studies/{other}/note", json={"text": "hello"}).raise_for_status()
        told = time.monotonic()
        assert everything.wait("changed", other, 2) - told < 2.0
        assert all(what[2] == number for what in pages[0].heard)
        client.delete(f"/studies/{number}", params={"name": "watched"}).raise_for_status()
        everything.wait("deleted", number)
        for page in pages:
            page.wait("deleted", number)
            assert page.ended.wait(5)
        everything.close()


def test_of_a_study_that_is_not_there(url):
    assert httpx.get(f"{url}/api/v1/studies/9999/events", trust_env=False).status_code == 404


def test_pages_that_go_leave_nothing_behind(place):
    with in_thread(place) as url, api(url) as client:
        number = new_study(client, "left")
        host, port = url.removeprefix("http://").split(":")
        for _ in range(5):
            with socket.create_connection((host, int(port))) as page:
                path = f"/api/v1/studies/{number}/events"
                page.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                assert b"200" in page.recv(1000)
        client.post(f"/studies/{number}/note", json={"text": "hello"}).raise_for_status()
        until = time.monotonic() + 10
        watching = APPS[url].state.events
        while len(watching) and time.monotonic() < until:
            time.sleep(0.05)
        assert len(watching) == 0
        assert watching._task is None  # nobody looks when nobody listens


def test_too_many_pages_are_refused(place, monkeypatch):
    monkeypatch.setattr(events, "MAX_PAGES", 2)
    with in_thread(place) as url:
        pages = [Listener(url, "/api/v1/events") for _ in range(2)]
        refused = httpx.get(f"{url}/api/v1/events", trust_env=False)
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        for page in pages:
            page.close()


def test_the_server_ends_while_pages_are_open(tmp_path):
    with Process(tmp_path / "lab.db") as server:
        pages = [Listener(server.url, "/api/v1/events") for _ in range(3)]
        begin = time.monotonic()
        _, errors = server.end()
        assert time.monotonic() - begin < 4.0  # less than what is left to requests under way
        assert "Traceback" not in errors
        assert "ERROR" not in errors
        for page in pages:
            assert page.ended.wait(5)


def test_a_page_hears_the_last_of_many_and_signs_of_life(place, monkeypatch):
    monkeypatch.setattr(events, "ALIVE", 0.2)
    with in_thread(place) as url, api(url) as client:
        number = new_study(client, "busy")
        with httpx.stream("GET", f"{url}/api/v1/studies/{number}/events", trust_env=False) as page:
            lines = page.iter_lines()
            assert any(line == ": alive" for line in lines)
        listener = Listener(url, f"/api/v1/studies/{number}/events")
        for count in range(20):
            client.post(f"/studies/{number}/note", json={"text": str(count)}).raise_for_status()
        listener.wait("changed", number, 21)
        numbers = [last for _, _, _, last in listener.heard]
        assert numbers == sorted(set(numbers))
        listener.close()
