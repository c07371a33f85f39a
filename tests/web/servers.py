"""Servers for tests: in a thread of this process, or in a process of its own that can be killed."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import httpx

from finalist.web import create_app
from finalist.web.addresses import address_of, listen
from finalist.web.security.connections import Limits
from finalist.web.server import Server, close_long, make_server
from finalist.web.workers.pool import Workers

HOST = "127.0.0.1"
#: The applications that are served from threads and their servers, by their addresses.
APPS: dict[str, Any] = {}
SERVERS: dict[str, Server] = {}


class SharedWorkers(Workers):
    """Workers that the next server takes over: a new one imports for seconds.

    A server in a thread has these (see `conftest`); `test_workers` has its own.
    """

    kept: ClassVar[list[Any]] = []

    def _take(self) -> Any:
        with self._lock:
            if self.kept and not self._idle and not self._closed:
                self._idle.append(self.kept.pop())
                self._all.update(self._idle)
        return super()._take()

    def close(self) -> None:
        """Leave idle workers to others and kill the rest."""
        with self._lock:
            self.kept.extend(self._idle)
            self._all.difference_update(self._idle)
            self._idle.clear()
        super().close()


@contextmanager
def in_thread(
    place: Path | str, *, port: int = 0, limits: Limits | None = None, **settings: Any
) -> Iterator[str]:
    """Serve a database from a thread; give the address, without a slash at the end."""
    bound = listen(HOST, port)
    app = create_app(place, **settings)
    server: Server = make_server(app, limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started and thread.is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    assert server.started
    url = address_of(HOST, bound).rstrip("/")
    APPS[url], SERVERS[url] = app, server
    try:
        yield url
    finally:
        del APPS[url], SERVERS[url]
        close_long(app)
        server.should_exit = True
        thread.join(90)  # tests share two cores with each other and with compilers
        bound.close()
        assert not thread.is_alive(), "the server does not end"


class Process:
    """`finalist serve` in a process of its own."""

    def __init__(self, place: Path | str, *words: str, port: int = 0, **environment: str) -> None:
        command = [sys.executable, "-m", "finalist", "serve", "--db", str(place), "--no-open"]
        self.process = subprocess.Popen(
            [*command, "--port", str(port), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        )
        assert self.process.stdout is not None
        self.said: list[str] = []
        for line in self.process.stdout:
            self.said.append(line)
            found = re.search(r"on (http://\S+:(\d+))/", line)
            if found:
                self.url, self.port = found[1], int(found[2])
                break
        else:
            raise AssertionError(self.process.stderr.read() if self.process.stderr else "")

    def kill(self) -> None:
        """End it with kill -9."""
        self.process.kill()
        self._done()

    def end(self, timeout: float = 30.0) -> tuple[int, str]:
        """End it as a person does; return its exit code, and what it said on stderr."""
        self.process.terminate()
        try:
            _, errors = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return self.process.returncode, errors

    def _done(self) -> None:
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        else:
            self._done()


def api(url: str, **settings: Any) -> httpx.Client:
    """Return a client of the API that does nothing by itself."""
    return httpx.Client(base_url=f"{url}/api/v1", timeout=180, trust_env=False, **settings)


def browser_of(url: str, **settings: Any) -> httpx.Client:
    """Return a client that says where its requests come from, as browsers do."""
    return httpx.Client(base_url=url, headers={"Origin": url}, trust_env=False, **settings)


def new_study(client: httpx.Client, name: str = "colours", **words: Any) -> int:
    """Begin a study of three arms and return its number."""
    body: dict[str, Any] = {"name": name, "arms": {"names": ["a", "b", "c"]}, "sigma": 1.0}
    answer = client.post("/studies", json={**body, "seed": 1, **words})
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["number"]
    return number
