"""Several programs on one file, in random order, with kills: is anything acknowledged lost?

Somebody *holds* a study: a process with several handles, with threads, a server, or one that just
stays open. It measures all the time and says what was acknowledged. Meanwhile others *visit* the
same file: commands, a second server, a backup, a check, Python's sqlite3 module, some of them
killed on the way. After each visit a process that knows nothing reads the study, while the holder
lives: it must see all that was acknowledged before. Then the holder is killed, and it must still.
"""

import io
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from finalist.errors import SchemaError
from finalist.study import Pull, Study
from finalist.study.storage import upgrade
from tests.study import faults
from tests.study.lab import ARMS, NOISY, nearly_tied

NAME = "shared"
Send = Callable[[Any], None]


def tell_one(study: Study, worker: str) -> int | None:
    """Measure one pull under a name of one's own; return it, None if others have all of them."""
    batch = study.ask(4, worker=worker)
    if not batch:
        time.sleep(0.002)
        return None
    study.tell({batch[0].pull_id: nearly_tied().measure(batch[0])})
    return int(batch[0].pull_id)


# ---- who holds the file --------------------------------------------------------------------


def several_handles(send: Send, where: str) -> None:
    """Tell through one of three handles, and open and close another now and then."""
    draw = random.Random(1)
    handles = [Study.open(where, NAME) for _ in range(3)]
    while True:
        send(tell_one(draw.choice(handles), "handles"))
        if draw.random() < 0.3:
            Study.open(where, NAME).close()


def several_threads(send: Send, where: str) -> None:
    """Tell from threads, each with a handle of its own that it sometimes opens anew."""
    sending = threading.Lock()

    def work(name: str) -> None:
        study, draw = Study.open(where, NAME), random.Random(name)
        while True:
            pull = tell_one(study, name)
            with sending:
                send(pull)
            if draw.random() < 0.2:
                study.close()
                study = Study.open(where, NAME)

    threads = [threading.Thread(target=work, args=(f"t{i}",), daemon=True) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def stays_open(send: Send, where: str) -> None:
    """Tell now and then, with one handle."""
    draw, study = random.Random(2), Study.open(where, NAME)
    while True:
        send(tell_one(study, "slow"))
        time.sleep(draw.uniform(0, 0.03))


def server(send: Send, where: str) -> None:
    """Serve, tell over HTTP, and make and delete another study now and then."""
    from tests.web.servers import api, in_thread, new_study

    draw = random.Random(3)
    with in_thread(where) as url, api(url) as client:
        while True:
            send(_tell_over_http(url, "browser"))
            if draw.random() < 0.3:
                short = f"/studies/{new_study(client, 'short')}"
                client.delete(short, params={"name": "short"}).raise_for_status()


def _tell_over_http(url: str, worker: str) -> int | None:
    from tests.web.servers import api

    with api(url) as client:
        number = client.get("/studies", params={"name": NAME}).json()["studies"][0]["number"]
        asked = client.post(f"/studies/{number}/ask", json={"size": 4, "worker": worker}).json()
        if not asked["pulls"]:
            time.sleep(0.002)
            return None
        pull = asked["pulls"][0]
        reward = nearly_tied().measure(Pull(pull["pull_id"], pull["arm"]))
        told = {"results": [{"pull_id": pull["pull_id"], "reward": reward}]}
        assert client.post(f"/studies/{number}/tell", json=told).status_code == 200
        return int(pull["pull_id"])


HOLDERS: dict[str, Callable[[Send, str], None]] = {
    function.__name__: function
    for function in (several_handles, several_threads, stays_open, server)
}

# ---- who visits it -------------------------------------------------------------------------


def commands(send: Send, where: str) -> None:
    """Look, ask and tell on the command line."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "batch.csv"
        _finalist("status", NAME, "--no-forecast", "--db", where)
        _finalist("ask", NAME, "--size", "2", "--worker", "cli", "-o", str(table), "--db", where)
        if table.exists():
            lab, rows = nearly_tied(), table.read_text().splitlines()
            pulls = [Pull(int(row.split(",")[0]), row.split(",")[1]) for row in rows[1:]]
            told = "".join(f"{pull.pull_id},{lab.measure(pull)!r}\n" for pull in pulls)
            table.write_text("pull_id,reward\n" + told)
            _finalist("tell", NAME, str(table), "--db", where)
            for pull in pulls:
                send(pull.pull_id)
        _finalist("note", NAME, "a visit", "--db", where)


def _finalist(*words: str) -> None:
    from finalist.cli.app import app

    said, code = io.StringIO(), None
    try:
        with redirect_stdout(said), redirect_stderr(said):
            app(list(words), standalone_mode=False)
    except SystemExit as error:
        code = error.code
    assert not code, said.getvalue()


def second_server(send: Send, where: str) -> None:
    """Serve the same file once more, for one request."""
    from tests.web.servers import in_thread

    with in_thread(where) as url:
        send(_tell_over_http(url, "second"))


def backup(send: Send, where: str) -> None:
    """Copy the file; the copy has all that it can have."""
    before = told(where)
    with tempfile.TemporaryDirectory() as folder:
        copy = upgrade.backup(where, Path(folder) / "copy.db")
        assert before.keys() <= told(str(copy)).keys()
        assert upgrade.check(copy) == []


def check(send: Send, where: str) -> None:
    """Look for damage."""
    found = upgrade.check(where)
    assert found == [], found


def sqlite_module(send: Send, where: str) -> None:
    """Look with Python's own module, as a notebook does."""
    for mode in ("rw", "ro"):
        with closing(sqlite3.connect(f"file:{where}?mode={mode}", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM rewards").fetchone()


VISITORS: dict[str, Callable[[Send, str], None]] = {
    function.__name__: function
    for function in (commands, second_server, backup, check, sqlite_module)
}

# ---- the matrix ----------------------------------------------------------------------------


def told(where: str) -> dict[int, float]:
    """Return the reward of every pull that has one."""
    with Study.open(where, NAME) as study:
        frame = study.to_frame()
    known = frame[frame.state == "told"]
    assert known.pull_id.is_unique
    return dict(zip(known.pull_id.tolist(), known.reward.tolist(), strict=True))


def read(send: Send, where: str) -> None:
    """Read the study as somebody who knows nothing."""
    with Study.open(where, NAME) as study:
        frame = study.to_frame()
    lab, known = nearly_tied(), frame[frame.state == "told"]
    for pull, arm, reward in known[["pull_id", "arm", "reward"]].values.tolist():
        assert reward == lab.measure(Pull(pull, arm)), pull
    send(known.pull_id.tolist())


class Shared:
    """A file with a holder, and all that anybody acknowledged."""

    def __init__(self, where: str, holder: str, seed: int) -> None:
        self.where, self.acknowledged = where, set[int]()
        Study.create(where, NAME, ARMS, sigma=NOISY, seed=seed).close()
        self.process, self._receiver = faults.start(HOLDERS[holder], where)
        assert self._receiver.poll(60)
        self.listen()

    def listen(self) -> None:
        """Take in what the holder has acknowledged so far."""
        while self._receiver.poll(0):
            try:
                self.add([self._receiver.recv()])
            except EOFError:
                return

    def add(self, said: list[Any]) -> None:
        """Take in what a process said; the words of an error are one."""
        for value in said:
            assert not isinstance(value, str), value
        self.acknowledged |= {value for value in said if value is not None}

    def visit(self, visitor: str, kill_after: float | None = None) -> None:
        """Let a process visit the file; kill it after some seconds, if it is to be killed."""
        process, receiver = faults.start(VISITORS[visitor], self.where)
        if kill_after is not None:
            time.sleep(kill_after)
            process.kill()
            process.join()
        self.add(faults.received(receiver))
        process.join()

    def check(self) -> None:
        """Let a process that knows nothing read: it sees all that was acknowledged before."""
        self.listen()
        before = set(self.acknowledged)
        [[seen]] = faults.finish(faults.start(read, self.where))
        lost = before - set(seen)
        assert not lost, f"{len(lost)} of {len(before)} acknowledged rewards are lost"

    def kill(self) -> None:
        """End the holder with kill -9, and take in the last that it said."""
        self.process.kill()
        self.process.join()
        self.add(faults.received(self._receiver))


def interleave(holder: str, rounds: int, seed: int, visits: int = 4) -> dict[str, int]:
    """Do some rounds: visits in random order, then a kill; return what was done."""
    draw = random.Random(f"{holder} {seed}")
    found = {"rounds": rounds, "visits": 0, "kills": 0, "acknowledged": 0}
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            shared = Shared(str(Path(folder) / "lab.db"), holder, seed + number)
            try:
                for visitor in draw.choices(list(VISITORS), k=visits):
                    killed = draw.random() < 0.3
                    shared.visit(visitor, draw.uniform(0, 0.3) if killed else None)
                    found["visits"] += 1
                    found["kills"] += killed
                    shared.check()
            finally:
                shared.kill()
            found["kills"] += 1
            shared.check()
            assert upgrade.check(shared.where) == []
            found["acknowledged"] += len(shared.acknowledged)
    return found


def kills(count: int, seed: int) -> dict[str, int]:
    """Kill processes that share a file with a living server and commands."""
    draw = random.Random(seed)
    found = {"kills": 0, "commands": 0, "acknowledged": 0}
    while found["kills"] < count:
        with tempfile.TemporaryDirectory() as folder:
            shared = Shared(str(Path(folder) / "lab.db"), "server", seed + found["kills"])
            try:
                for _ in range(min(25, count - found["kills"])):
                    process, receiver = faults.start(HOLDERS[draw.choice(_MORTAL)], shared.where)
                    if draw.random() < 0.8:
                        receiver.poll(30)  # it has begun
                    if draw.random() < 0.2:
                        shared.visit("commands")
                        found["commands"] += 1
                    time.sleep(draw.uniform(0, 0.08))
                    process.kill()
                    process.join()
                    shared.add(faults.received(receiver))
                    found["kills"] += 1
                    shared.check()
            finally:
                shared.kill()
            shared.check()
            assert upgrade.check(shared.where) == []
            found["acknowledged"] += len(shared.acknowledged)
    return found


_MORTAL = ("several_handles", "several_threads", "stays_open")


# ---- backups put back ----------------------------------------------------------------------


def restores(count: int, seed: int) -> dict[str, int]:
    """Copy backups over files that a killed process left, by hand; then restore them properly.

    By hand it must be refused, or be the very file that the changes beside it belong to: then it
    has all that was acknowledged.
    """
    draw = random.Random(seed)
    found = {"copied by hand": count, "refused": 0, "whole": 0, "restored": 0}
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            path, copy = Path(folder) / "lab.db", Path(folder) / "copy.db"
            Study.create(path, NAME, ARMS, sigma=NOISY, seed=seed + number).close()
            if draw.random() < 0.7:
                _work(path, draw.randrange(1, 40))
            if draw.random() < 0.7:
                upgrade.backup(path, copy)
            else:
                shutil.copy(path, copy)
            then = told(str(copy))
            acknowledged = _work(path, draw.randrange(1, 40)) | then.keys()
            shutil.copy(copy, path)
            if refused(path):
                found["refused"] += 1
            else:
                assert acknowledged <= told(str(path)).keys()
                assert upgrade.check(path) == []
                found["whole"] += 1
            upgrade.restore(path, copy)
            assert told(str(path)) == then
            assert upgrade.check(path) == []
            found["restored"] += 1
    return found


def refused(path: Path) -> bool:
    """Return whether the changes beside a file are found to be those of another."""
    try:
        told(str(path))
    except SchemaError as error:
        if "does not belong" in str(error):
            return True
        raise
    return False


def _work(path: Path, tells: int) -> set[int]:
    """Let a process tell, and kill it; return what it acknowledged. Its changes stay beside."""
    process, receiver = faults.start(stays_open, str(path))
    done: set[int] = set()
    while len(done) < tells:
        done |= {receiver.recv()} - {None}
    process.kill()
    process.join()
    return done | (set(faults.received(receiver)) - {None})
