"""Faults on a real scale: kill -9 in the middle, many writers at once, long random lives.

    python -m tests.study.torture [--kills 1000] [--writers 8] [--tells 1000] [--lives 300]
                                  [--rounds 25] [--restores 30]

The tests do the same on a small scale. Prints what was done, and fails on the first thing lost,
doubled or changed.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from finalist.study import Study
from tests.records import Record
from tests.study import faults
from tests.study.lab import ARMS, NOISY, Lab, nearly_tied
from tests.study.servers import start_postgresql


def work(send: Callable[[Any], None], where: str, name: str, size: int) -> None:
    """Ask and tell until there is a winner; send what was done after each call that returned."""
    lab = Lab(sigma=NOISY)
    with Study.open(where, name) as study:
        while batch := study.ask(size):
            send(("asked", batch.batch, {pull.pull_id: pull.arm for pull in batch}))
            rewards = lab.rewards(batch)
            first = dict(list(rewards.items())[:2])
            for part in (first, rewards):
                study.tell(part)
                send(("told", list(part)))


def kills(where: str, count: int, seed: int) -> dict[str, int]:
    """Kill processes at random moments; check all that they said they had done.

    After each kill the study must have every acknowledged reward once, with its value, and the
    pulls that were handed out. In the end a study that is never killed has the same batches.
    """
    rng, lab, done, lives = random.Random(seed), Lab(sigma=NOISY), 0, 0
    acknowledged = events = 0
    while done < count:
        name = f"life {lives} of {seed}"
        Study.create(where, name, ARMS, sigma=NOISY, seed=seed + lives).close()
        mine: set[int] = set()
        asked: tuple[int, dict[int, str]] = (0, {})
        while done < count:
            process, receiver = faults.start(work, where, name, rng.choice([1, 3, 12, 40]))
            if rng.random() < 0.8:
                receiver.poll(30)  # it has begun
            time.sleep(rng.uniform(0.0, 0.08))
            process.kill()
            process.join()
            done += 1
            for word, *rest in faults.received(receiver):
                if word == "asked":
                    asked = rest[0], rest[1]
                else:
                    mine |= set(rest[0])
            with Study.open(where, name) as study:
                check(study, lab, mine, asked)
                if study.status(forecast=False).verdict == "winner":
                    break
        with Study.open(where, name) as study:
            frame = study.to_frame()
            events += len(study.history())
        with Study.create(where, f"{name}, twin", ARMS, sigma=NOISY, seed=seed + lives) as twin:
            replay(twin, frame)
        acknowledged += len(mine)
        lives += 1
    return {"kills": done, "rewards": acknowledged, "events": events, "lives": lives}


def check(study: Study, lab: Lab, told: set[int], asked: tuple[int, dict[int, str]]) -> None:
    """Compare a study with what was acknowledged."""
    frame = study.to_frame().set_index("pull_id")
    assert frame.index.is_unique
    have = frame[frame.state == "told"]
    lost = told - set(have.index)
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


def write(send: Callable[[Any], None], where: str, name: str, tells: int) -> None:
    """Ask and tell one pull at a time under a name of one's own; send what was acknowledged."""
    lab, done, longest = nearly_tied(), 0, 0.0
    with Study.open(where, "shared") as study:
        while done < tells:
            batch = study.ask(8, worker=name)
            if batch.state == "decided":
                break
            if not batch:
                time.sleep(0.002)
            for pull in batch:
                begin = time.perf_counter()
                assert study.tell({pull.pull_id: lab.measure(pull)}) == 1
                longest = max(longest, time.perf_counter() - begin)
                send(pull.pull_id)
                done += 1
    send(("longest", longest))


def writers(where: str, count: int, tells: int) -> dict[str, Any]:
    """Let processes work on one study; nothing may be lost, doubled or measured twice."""
    # With such a delta nothing is decided before everybody has told.
    Study.create(where, "shared", ARMS, sigma=NOISY, delta=1e-9, seed=1).close()
    names, begin = [f"w{i}" for i in range(count)], time.perf_counter()
    sent = faults.finish(*(faults.start(write, where, name, tells) for name in names))
    seconds = time.perf_counter() - begin
    longest = max(report[-1][1] for report in sent)
    done = {name: report[:-1] for name, report in zip(names, sent, strict=True)}
    acknowledged = [pull for pulls in done.values() for pull in pulls]
    assert len(acknowledged) == len(set(acknowledged)), "two workers measured the same pull"
    with Study.open(where, "shared") as study:
        frame, events = study.to_frame().set_index("pull_id"), study.history()
    assert (frame.state[acknowledged] == "told").all(), "an acknowledged reward is lost"
    assert int((frame.state == "told").sum()) == len(acknowledged), "a reward came from nowhere"
    for name, pulls in done.items():
        assert (frame.worker[pulls] == name).all()
    numbers = [event["number"] for event in events]
    assert numbers == list(range(1, len(numbers) + 1))
    return {
        "tells": len(acknowledged),
        "seconds": round(seconds, 1),
        "seconds for the longest": round(longest, 2),
    }


# ---- places ------------------------------------------------------------------------------


@contextmanager
def sqlite() -> Iterator[str]:
    """Give a file for one torture."""
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "lab.db")


@contextmanager
def postgresql() -> Iterator[str]:
    """Give a real server for one torture."""
    server = start_postgresql()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def shared(record: Record, rounds: int, count: int, restores: int) -> None:
    """Let several programs share one file, kill some of them, and put backups back."""
    from tests.study import matrix

    for holder in matrix.HOLDERS:
        found = matrix.interleave(holder, rounds, seed=0)
        record.say(f"one file, {holder.replace('_', ' ')} and visits: {_shown(found)}, none lost")
    found = matrix.kills(count, seed=0)
    record.say(f"one file, a living server and commands: {_shown(found)}, none lost")
    record.say(f"backups put back: {_shown(matrix.restores(restores, seed=0))}")


def main() -> int:
    """Do all of it on both databases."""
    from tests.study import test_random_lives

    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--tells", type=int, default=1000)
    parser.add_argument("--lives", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--restores", type=int, default=30)
    parser.add_argument("--only", choices=["kills", "writers", "lives", "shared"])
    words = parser.parse_args()
    if words.only in (None, "shared"):
        record = Record("torture-shared", "Several programs on one file")
        shared(record, words.rounds, words.kills, words.restores)
    if words.only == "shared":
        return 0
    record = Record("torture-studies", "Faults in studies")
    for place in (sqlite, postgresql):
        if words.only in (None, "kills"):
            with place() as where:
                found = kills(where, words.kills, seed=0)
            record.say(f"{place.__name__}: kill -9, nothing lost or doubled: {_shown(found)}")
        if words.only in (None, "writers"):
            with place() as where:
                found = writers(where, words.writers, words.tells)
            record.say(f"{place.__name__}: {words.writers} writers, nothing lost: {_shown(found)}")
        if words.only in (None, "lives"):
            with place() as where:
                test_random_lives.run(where, words.lives, 50)
            record.say(f"{place.__name__}: {words.lives} random lives as the model says")
    return 0


def _shown(found: Mapping[str, float]) -> str:
    return ", ".join(f"{value:,} {name}" for name, value in found.items())


if __name__ == "__main__":
    sys.exit(main())
