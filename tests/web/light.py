"""Light requests while plans are made: how much longer do they take?

    python -m tests.web.light [--turns 5] [--seconds 6] [--plans 3] [--clients 4]

Starts a server of its own on loopback. Clients look at the page of a study and tell rewards one by
one, by turns without plans and with so many running, in one run, so that whatever else the
machine does is in both. Prints the waiting times, and the ratio of those with plans to those
without.
"""

import argparse
import json
import socket
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import psutil  # type: ignore[import-untyped]

import finalist as fl
from tests.records import Record
from tests.study.lab import ARMS
from tests.web.labs import plane_study
from tests.web.load import MOST, SIGMA
from tests.web.servers import HOST, Process

#: Seconds between two requests of a client.
PAUSE = 0.02
#: Waiting times by what was asked for and whether plans were made.
Times = dict[tuple[str, bool], list[float]]


def big_plan(K: int = 20_000, d: int = 10) -> dict[str, object]:
    """Return what asks for a plan that takes minutes."""
    rows = np.random.default_rng(0).standard_normal((K, d)).round(3).tolist()
    return {"arms": {"features": rows}, "sigma": 1.0, "gap": 0.01, "draws": 100}


class Plans:
    """Plans that are being made until those who want them leave."""

    def __init__(self, server: Process, count: int, body: dict[str, object]) -> None:
        self._server, self._count = server, count
        content = json.dumps(body).encode()
        head = f"POST /api/v1/plan HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(content)}\r\n"
        self._request = head.encode() + b"Content-Type: application/json\r\n\r\n" + content
        self._near: list[socket.socket] = []

    def __enter__(self) -> None:
        for _ in range(self._count):
            self._near.append(socket.create_connection((HOST, self._server.port), timeout=60))
            self._near[-1].sendall(self._request)
        wait_for(lambda: self._at_work() == self._count)
        time.sleep(2.0)  # they have read what they were sent

    def _at_work(self) -> int:
        return len(psutil.Process(self._server.process.pid).children())

    def __exit__(self, *_: object) -> None:
        try:
            assert self._at_work() == self._count, "a plan has ended by itself: take a larger one"
        finally:
            for near in self._near:
                near.close()
        wait_for(lambda: self._at_work() == 0)


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it does not come to that"
        time.sleep(0.05)


def look_and_tell(url: str, pulls: list[int], times: Times, plans: bool, until: float) -> None:
    """Look at the page of a study and tell another a reward, by turns."""
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        while time.monotonic() < until:
            result = {"pull_id": pulls.pop(), "reward": 0.5}
            for name, method, path, body in (
                ("page", "GET", "/studies/1", None),
                ("tell", "POST", "/api/v1/studies/2/tell", {"results": [result]}),
            ):
                begin = time.perf_counter()
                client.request(method, path, json=body).raise_for_status()
                times[name, plans].append(time.perf_counter() - begin)
                time.sleep(PAUSE)


def run(
    place: Path, turns: int, seconds: float, plans: int, clients: int, body: dict[str, object]
) -> Times:
    """Measure by turns, and return the waiting times."""
    plane_study(place)
    with fl.Study.create(place, "told", ARMS, sigma=SIGMA, seed=1) as study:
        pulls = [pull.pull_id for pull in study.ask(MOST)]
    times: Times = defaultdict(list)
    with Process(place, "--deadline", "600") as server:
        look_and_tell(server.url, pulls, defaultdict(list), False, time.monotonic() + 2.0)
        for _ in range(turns):
            _turn(server.url, pulls, times, False, seconds, clients)
            with Plans(server, plans, body):
                _turn(server.url, pulls, times, True, seconds, clients)
        server.end()
    return times


def _turn(
    url: str, pulls: list[int], times: Times, plans: bool, seconds: float, clients: int
) -> None:
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=look_and_tell, args=(url, pulls, times, plans, until))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 120)


def words_of(times: Times, plans: int) -> list[str]:
    """Say it: a line for what was asked for."""
    lines = []
    for name in ("page", "tell"):
        without, beside = times[name, False], times[name, True]
        parts = []
        for label, q in (("median", 0.5), ("p99", 0.99)):
            one, two = (1000 * float(np.quantile(found, q)) for found in (without, beside))
            parts.append(f"{label} {one:.1f} ms without, {two:.1f} ms with, ratio {two / one:.2f}")
        count = f"{len(without):,} without and {len(beside):,} with {plans} plans running"
        lines.append(f"{name}: {'; '.join(parts)} ({count})")
    return lines


def main() -> None:
    """Run it, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--plans", type=int, default=3)
    parser.add_argument("--clients", type=int, default=4)
    given = parser.parse_args()
    record = Record("light-server", "Light requests while plans are made")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "lab.db"
        times = run(place, given.turns, given.seconds, given.plans, given.clients, big_plan())
    record.say(
        f"{psutil.cpu_count()} cores; {given.clients} clients; plans of 20,000 arms with 10 "
        "features; by turns in one run"
    )
    for line in words_of(times, given.plans):
        record.say(line)


if __name__ == "__main__":
    main()
