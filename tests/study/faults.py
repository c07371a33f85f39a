"""Processes that write, and that are killed while they do."""

import multiprocessing
import os
import random
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from finalist.errors import ConflictError
from finalist.study import Study
from finalist.study.results import Results
from finalist.study.storage import upgrade
from finalist.study.storage.database import Database

# A clean process that has imported all this, and that others are forked from in no time.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "tests.study.faults",
        "tests.study.warm",
        "tests.study.matrix",
        "tests.web.servers",
        "finalist.cli.app",
        "sqlalchemy.dialects.sqlite.pysqlite",
        "sqlalchemy.dialects.postgresql.psycopg",
        "psycopg",
        "pandas",
        "anyio._backends._asyncio",
        "httpcore",
        "uvicorn.protocols.http.h11_impl",
    ]
)
NOBODY = 65534


def start(target: Callable[..., Any], *args: Any) -> tuple[Any, Connection]:
    """Start a function in a process; its first argument sends to the connection returned."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_report, args=(target, sender, args), daemon=True)
    process.start()
    sender.close()
    return process, receiver


def _report(target: Callable[..., Any], sender: Connection, args: tuple[Any, ...]) -> None:
    try:
        target(sender.send, *args)
    except BaseException:
        sender.send(traceback.format_exc())
        raise


def finish(*started: tuple[Any, Connection]) -> list[list[Any]]:
    """Wait for processes; return what each sent, or fail with the error it had."""
    results = []
    for process, receiver in started:
        results.append(received(receiver))
        process.join(60)
        assert process.exitcode == 0, results[-1][-1]
    return results


def received(receiver: Connection) -> list[Any]:
    """Return all that a process sent before it ended."""
    values = []
    with suppress(EOFError):
        while True:
            values.append(receiver.recv())
    return values


def add(database: Database, study: int, client: str, size: int = 1) -> int:
    """Append an event with rewards; read again and retry if someone else was faster."""
    while True:
        with database.read() as reader:
            number = reader.last(study) + 1
        try:
            with database.write() as writer:
                rewards = Results(range(size), [0.5] * size)
                writer.append(study, number, "told", {"by": client}, client=client, rewards=rewards)
        except ConflictError:
            continue
        return number


def add_many(send: Callable[[Any], None], where: str, study: int, name: str, count: int) -> None:
    """Append events one after the other, and send the number of each."""
    with Database.open(where) as database:
        for index in range(count):
            send(add(database, study, f"{name}-{index}"))


def add_for_ever(send: Callable[[Any], None], where: str, study: int, name: str) -> None:
    """Append events of all sizes, and send each client's id once it is on record."""
    with Database.open(where) as database:
        for index in range(10**6):
            client = f"{name}-{index}"
            add(database, study, client, size=1 + 97 * index % 300)
            send(client)


def kill_loop(where: str, kills: int, seed: int) -> int:
    """Kill a process that writes, many times; return how many events were acknowledged.

    After each kill every acknowledged event is there once, and at most one that was not.
    """
    draw = random.Random(seed)
    with Database.open(where, create=True) as database:
        with database.write() as writer:
            study = writer.create(f"kills {seed}", {}, "0")
        done = acknowledged = 0
        for round_ in range(kills):
            process, receiver = start(add_for_ever, where, study, str(round_))
            if draw.random() < 0.8:
                receiver.poll(30)  # it has begun to write
            time.sleep(draw.uniform(0, 0.06))
            process.kill()
            process.join()
            sent = received(receiver)
            with database.write() as writer:
                writer.lock(study)  # PostgreSQL may still be at what it was sent
                clients = [event.client for event in writer.events(study, after=done)]
                writer.rewards(study, after=done)  # whole, by their checksums
            assert clients[: len(sent)] == sent, (round_, sent, clients)
            assert len(clients) <= len(sent) + 1, (round_, sent, clients)
            done += len(clients)
            acknowledged += len(sent)
    assert upgrade.check(where) == []
    return acknowledged


def open_with(send: Callable[[Any], None], where: str, migrations: str, version: str) -> None:
    """Open a database as a finalist with other scripts would."""
    upgrade.MIGRATIONS, upgrade.SCHEMA = Path(migrations), version
    with Database.open(where, create=True) as database, database.read() as reader:
        send([row.name for row in reader.studies()])


def as_nobody(send: Callable[[Any], None], step: Callable[[str], Any], where: str) -> None:
    """Do something without the rights of root; what is imported late is imported before."""
    with Database.open(where) as database, database.read() as reader:
        reader.studies()
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    send(step(where))


def count(send: Callable[[Any], None], where: str, name: str) -> None:
    """Send how many rewards a study has, and close it."""
    with Study.open(where, name) as study:
        send(study.status(forecast=False).pulls)


def add_and_wait(send: Callable[[Any], None], where: str, count: int) -> None:
    """Append events to the second study, say so, and keep the file open until killed."""
    with Database.open(where) as database:
        for index in range(count):
            add(database, 2, f"{os.getpid()}-{index}", size=20)
        send(count)
        time.sleep(600)
