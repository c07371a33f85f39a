"""Many clients that tell at once: is anything lost, and how long does one wait?

    python -m tests.web.load [--clients 50] [--seconds 30] [--studies 1]

Starts a server of its own on loopback. Each client asks for pulls of its own and tells every
reward in a call of its own, while a page looks at the study. Prints the waiting times, and beside
them those of a plain durable commit of SQLite in the same folder, in turns with tells in the
library and of a single client, and then while all the clients are at work. Milliseconds are of
the machine; their ratios say more.
"""

import argparse
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import finalist as fl
from finalist.client import RemoteStudy
from tests.study.lab import ARMS, Lab
from tests.web.commits import Beside, Plain
from tests.web.servers import Process

#: Two arms are tied, and the noise is large: the study does not end.
SIGMA = 5.0
#: Pulls of the batch; more than can be told.
MOST = 50_000
#: The most seconds for each of the measurements before the clients begin.
QUIET = 4.0


def tied() -> Lab:
    """Return a laboratory in which nobody ever wins."""
    return Lab(theta=np.array([1.0, 1.0 / 3.0, 0.0]), sigma=SIGMA)


#: The seconds of tells, and of plain commits beside them.
Pair = tuple[list[float], list[float]]


@dataclass
class Load:
    """What clients did, and how long it took."""

    told: dict[tuple[str, int], float] = field(default_factory=dict)
    tells: list[float] = field(default_factory=list)
    asks: list[float] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    library: Pair = ([], [])
    alone: Pair = ([], [])

    def ratios(self, clients: int) -> str:
        """Say how long tells take as multiples of plain commits of the same run."""
        pairs: dict[str, Pair] = {
            "Study.tell in the library": self.library,
            "tell over HTTP, one client": self.alone,
            f"tell over HTTP, {clients} clients": (self.tells, self.plain),
        }
        return "\n".join(
            f"{name}: {_shown(tells)}, {_ratio(tells, plain)} times a plain commit of SQLite "
            f"beside it ({_shown(plain)})"
            for name, (tells, plain) in pairs.items()
        )

    def words(self, clients: int, seconds: float) -> str:
        """Say it."""
        lines = [f"{clients} clients, {seconds:.0f} s: {len(self.told):,} rewards told, none lost"]
        for name, times in (("tell", self.tells), ("ask", self.asks), ("look", self.looks)):
            if times:
                p50, p99 = np.quantile(times, [0.5, 0.99]) * 1000
                lines.append(
                    f"{name}: {len(times) / seconds:,.0f} per second, median {p50:.0f} ms, "
                    f"p99 {p99:.0f} ms, longest {max(times) * 1000:.0f} ms"
                )
        return "\n".join([*lines, self.ratios(clients)])


def _quantiles(times: list[float]) -> tuple[float, float]:
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return float(p50), float(p99)


def _shown(times: list[float]) -> str:
    p50, p99 = _quantiles(times)
    return f"p50 {p50 * 1000:.2f} ms, p99 {p99 * 1000:.2f} ms"


def _ratio(times: list[float], plain: list[float]) -> str:
    low, high = (a / b for a, b in zip(_quantiles(times), _quantiles(plain), strict=True))
    return f"{low:.1f} and {high:.1f}"


def _timed(times: list[float], start: float) -> None:
    times.append(time.perf_counter() - start)


def client(load: Load, url: str, name: str, worker: str, until: float) -> None:
    """Ask and tell until the time is over."""
    lab = tied()
    try:
        study = fl.connect(url).open(name)
        while time.monotonic() < until:
            start = time.perf_counter()
            batch = study.ask(8, worker)
            _timed(load.asks, start)
            for pull in batch:
                reward, start = lab.measure(pull), time.perf_counter()
                assert study.tell({pull.pull_id: reward}) == 1
                _timed(load.tells, start)
                load.told[name, pull.pull_id] = reward
                if time.monotonic() >= until:
                    return
            if not batch:
                time.sleep(0.01)
    except BaseException as error:
        load.failures.append(error)


def page(load: Load, url: str, name: str, until: float) -> None:
    """Look at a study twice a second."""
    try:
        study = fl.connect(url).open(name)
        while time.monotonic() < until:
            start = time.perf_counter()
            study.status(forecast=False)
            _timed(load.looks, start)
            time.sleep(0.5)
    except BaseException as error:
        load.failures.append(error)


def tell_alone(study: fl.Study | RemoteStudy, seconds: float, plain: Plain) -> Pair:
    """Tell with nobody else at work; return how long each tell took, and each plain commit.

    They take turns, so that both meet the same disk. The first tell is not counted: what is read
    once is read for it.
    """
    lab, tells, commits = tied(), list[float](), list[float]()
    first, *others = study.ask(MOST, "alone")
    study.tell({first.pull_id: lab.measure(first)})
    until = time.monotonic() + seconds
    for pull in others:
        commits.append(plain.commit(pull.pull_id))
        reward, start = lab.measure(pull), time.perf_counter()
        study.tell({pull.pull_id: reward})
        _timed(tells, start)
        if time.monotonic() >= until and len(tells) > 1:  # one alone tells nothing
            break
    return tells, commits


def quiet(load: Load, place: Path, seconds: float) -> None:
    """Measure the library and a single client beside plain commits, in the same folder."""
    alone = place.with_name("alone.db")
    with closing(Plain(place.with_name("plain.db"))) as plain:
        with fl.Study.create(alone, "alone", ARMS, sigma=SIGMA, seed=1) as study:
            load.library = tell_alone(study, seconds, plain)
        with Process(alone) as server:
            load.alone = tell_alone(fl.connect(server.url).open("alone"), seconds, plain)
            server.end()


def run(place: Path, clients: int, seconds: float, studies: int = 1) -> Load:
    """Let clients work on a server; fail if anything they were told is on record is not."""
    names = [f"study {i}" for i in range(studies)]
    for name in names:
        with fl.Study.create(place, name, ARMS, sigma=SIGMA, seed=1) as new:
            new.ask(MOST)  # one batch for all: nobody waits for the pulls of another
    load = Load()
    quiet(load, place, min(QUIET, seconds / 4))
    with Process(place) as server:
        for name in names:  # is read before the clock runs
            study = fl.connect(server.url).open(name)
            study.ask(1, "first")
            study.status(forecast=False)
        until = time.monotonic() + seconds
        threads = [
            threading.Thread(
                target=client, args=(load, server.url, names[i % studies], f"client {i}", until)
            )
            for i in range(clients)
        ]
        threads += [threading.Thread(target=page, args=(load, server.url, names[0], until))]
        with Beside(place.with_name("plain.db"), seconds) as beside:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(seconds + 120)
            load.plain = beside.times(seconds + 120)
        assert not any(thread.is_alive() for thread in threads)
        assert not load.failures, load.failures[0]
        server.end()
    on_record: dict[tuple[str, int], float] = {}
    for name in names:
        with fl.Study.open(place, name) as kept:
            frame = kept.to_frame()
            told = frame[frame["state"] == "told"]
            pairs = zip(told["pull_id"].tolist(), told["reward"].tolist(), strict=True)
            on_record |= {(name, pull): reward for pull, reward in pairs}
            counted = sum(e["count"] for e in kept.history() if e["kind"] == "told")
            assert counted == len(told), "a reward was counted twice"
    assert on_record == load.told, "what is on record is not what was told"
    return load


def main() -> None:
    """Run it, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--studies", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load = run(Path(folder) / "lab.db", given.clients, given.seconds, given.studies)
    sys.stdout.write(load.words(given.clients, given.seconds) + "\n")


if __name__ == "__main__":
    main()
