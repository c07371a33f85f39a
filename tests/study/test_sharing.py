"""One file, several programs and handles: whatever was acknowledged is seen by everybody.

The reproduction of what 0.1.0 lost, and the matrix of `tests.study.matrix` on a small scale.
"""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from finalist.errors import SchemaError, StorageError
from finalist.study import Study
from finalist.study.storage import files as database_files
from finalist.study.storage import forks as database_forks
from finalist.study.storage import lineage, sqlite, upgrade
from finalist.study.storage.database import Database
from finalist.study.storage.place import locate
from tests.study import faults, make_golden, matrix
from tests.study.lab import ARMS


def beside(path: Path) -> set[str]:
    return {file.name[len(path.name) :] for file in path.parent.glob(path.name + "*")}


def seen(path: Path) -> int:
    """Return how many rewards another process sees, which then closes the file."""
    [[pulls]] = faults.finish(faults.start(faults.count, str(path), "s"))
    return int(pulls)


def test_two_handles_in_a_process_keep_the_locks_of_the_first(tmp_path: Path):
    path = tmp_path / "lab.db"
    with Study.create(path, "s", ARMS, seed=1, sigma=1.0) as first:
        batch = first.ask(40)
        for pull in batch[:3]:
            first.tell({pull.pull_id: 0.5})
        with Study.open(path, "s") as second:
            assert seen(path) == 3
            assert {"-wal", "-shm"} <= beside(path)  # the other process was not the last one
            for pull in batch[3:9]:
                first.tell({pull.pull_id: 0.5})
            assert seen(path) == 9
            assert second.status(forecast=False).pulls == 9
        assert seen(path) == 9


@pytest.mark.parametrize(
    "look",
    [
        lambda path: Database.open(path).close(),
        lambda path: upgrade.check(path),
        lambda path: upgrade.current(path),
        lambda path: upgrade.upgrade(path),
        lambda path: upgrade.backup(path, path.with_name("copy.db")),
        lambda path: database_files.inspect(locate(path)),
        lambda path: database_files.remove_stale(path.parent),
        lambda path: Study.open(path, "s").delete,
    ],
    ids=["open", "check", "current", "upgrade", "backup", "inspect", "tidy", "study"],
)
def test_nothing_opens_a_living_database_but_sqlite(tmp_path: Path, look):
    """Whatever looks at the file, another process that closes it does not take the -wal away."""
    path = tmp_path / "lab.db"
    with Study.create(path, "s", ARMS, seed=1, sigma=1.0) as study:
        study.tell({study.ask(40)[0].pull_id: 0.5})
        look(path)
        assert seen(path) == 1
        assert {"-wal", "-shm"} <= beside(path)


AUDITED = """
import os, sys
path = sys.argv[1]
def hook(event, words):
    if event in ("open", "os.open") and str(words[0]) == path:
        print("opened by hand", flush=True)
        os._exit(3)
import finalist as fl
from finalist.cli.app import app
from finalist.study import Study
from finalist.study.storage import lineage, sqlite, upgrade
from tests.study.lab import ARMS
from tests.web.servers import api, in_thread
sys.addaudithook(hook)
def finalist(*words):
    try:
        app([*words, "--db", path], standalone_mode=False)
    except SystemExit:
        pass
with Study.create(path, "s", ARMS, sigma=1.0, seed=1) as study, Study.open(path, "s") as other:
    study.tell({study.ask(12)[0].pull_id: 0.5})
    other.fork("copy", until=1).delete()
    fl.studies(path)
    upgrade.check(path), upgrade.current(path), upgrade.upgrade(path)
    upgrade.backup(path, path + ".copy")
    for words in (["status", "s"], ["list"], ["export", "s"], ["db", "check"], ["note", "s", "x"]):
        finalist(*words)
    with in_thread(path) as url, api(url) as client:
        assert client.get("/studies/1/status").status_code == 200
        assert client.get(url + "/studies/1/report.html").status_code == 200
        assert client.get(url + "/").status_code == 200
upgrade.restore(path, path + ".copy")
print("done")
open(path, "rb")
"""


def test_nobody_opens_the_file_by_hand_in_a_whole_life(tmp_path: Path):
    """Python tells of every file that is opened, but for what SQLite opens by itself."""
    run = [sys.executable, "-c", AUDITED, str(tmp_path / "lab.db")]
    found = subprocess.run(run, capture_output=True, text=True, timeout=300)
    said = found.stdout.splitlines()
    assert said[-2:] == ["done", "opened by hand"], found.stdout + found.stderr
    assert found.returncode == 3  # by the last line, which shows that the hook works


@pytest.mark.parametrize("holder", matrix.HOLDERS)
def test_the_matrix_on_a_small_scale(holder: str):
    found = matrix.interleave(holder, rounds=2, seed=5)
    assert found["acknowledged"] > 10


def test_restores_on_a_small_scale():
    found = matrix.restores(4, seed=2)
    assert found["restored"] == 4


# --- changes that belong to another file ----------------------------------------------------


def killed_writer(path: Path, events: int) -> None:
    """Leave a file as a killed process does: with changes beside it."""
    process, receiver = faults.start(faults.add_and_wait, str(path), events)
    assert receiver.recv() == events
    process.kill()
    process.join()
    assert database_files.has_wal(path)


@pytest.mark.parametrize("made_by", ["finalist", "cp"])
def test_a_backup_copied_over_a_file_beside_old_changes_is_refused(tmp_path: Path, made_by: str):
    path, copy = tmp_path / "lab.db", tmp_path / "copy.db"
    make_golden.make(str(path))
    refused = 0
    for events in range(1, 11):
        if made_by == "finalist":
            upgrade.backup(path, copy)
        else:
            shutil.copy(path, copy)  # nobody has it open, so this is a whole copy
        with Database.open(path) as database, database.write() as writer:  # into the file itself
            writer.append(1, writer.last(1) + 1, "note", {"text": "x" * 100 * events})
        killed_writer(path, events)
        before = path.with_name("lab.db-wal").read_bytes()
        shutil.copy(copy, path)
        with pytest.raises(SchemaError, match=r"does not belong to lab\.db-wal.*db restore"):
            Database.open(path)
        assert path.read_bytes() == copy.read_bytes()
        assert path.with_name("lab.db-wal").read_bytes() == before
        assert upgrade.restore(path, copy)
        assert upgrade.check(path) == []
        refused += 1
        for file in (*tmp_path.glob("lab.db.replaced*"), copy):
            file.unlink()
    assert refused == 10


def test_changes_of_the_file_itself_are_taken_whoever_wrote_them(tmp_path: Path):
    """By 0.1.0, which does not count; by the sqlite3 module; by both and us in turn."""
    path = tmp_path / "lab.db"
    shutil.copy(make_golden.GOLDEN, path)
    killed_writer(path, 3)
    for text in "abc":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS remarks (text)")
            connection.execute("INSERT INTO remarks VALUES (?)", (text * 9000,))
            copies = [shutil.copy(f"{path}{end}", f"{tmp_path}/c{end}") for end in ("", "-wal")]
        assert upgrade.check(copies[0]) == []
        killed_writer(path, 2)
    with Database.open(path) as database, database.read() as reader:
        assert len(reader.events(2)) == 9


def test_a_file_killed_while_changes_are_moved_into_it_is_opened(tmp_path: Path):
    """Its first page says more pages than there are: the others are still beside it."""
    path = tmp_path / "lab.db"
    make_golden.make(str(path))
    killed_writer(path, 40)
    wal = path.with_name("lab.db-wal").read_bytes()
    frame = 24 + 4096
    firsts = [
        wal[at + 24 : at + frame]
        for at in range(32, len(wal) - frame + 1, frame)
        if wal[at : at + 4] == b"\0\0\0\1"
    ]
    pages = int.from_bytes(firsts[-1][28:32], "big")
    assert pages * 4096 > path.stat().st_size
    path.write_bytes(firsts[-1] + path.read_bytes()[4096:])
    with Database.open(path) as database, database.read() as reader:
        assert len(reader.events(2)) == 40
    assert upgrade.check(path) == []


@pytest.mark.parametrize("made_by", ["finalist", "0.1.0"])
def test_a_copy_by_vacuum_has_other_pages_and_is_refused(tmp_path: Path, made_by: str):
    """Its count is that of the original, as that of a backup by 0.1.0 is."""
    path, copy = tmp_path / "lab.db", tmp_path / "copy.db"
    if made_by == "finalist":
        make_golden.make(str(path))
    else:
        shutil.copy(make_golden.GOLDEN, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    killed_writer(path, 3)
    shutil.copy(copy, path)
    with pytest.raises(SchemaError, match="does not belong"):
        Database.open(path)


def test_changes_that_an_earlier_version_began_and_this_one_went_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first of them are not counted, those moved into the file already are."""
    path = tmp_path / "lab.db"
    shutil.copy(make_golden.GOLDEN, path)
    with monkeypatch.context() as patch:
        patch.setattr(lineage, "count_transaction", lambda _: None)
        patch.setattr(sqlite, "_count_first", lambda _: None)
        holding = Database.open(path)
        for index in range(30):  # so that page 1 is among what is written
            faults.add(holding, 2, f"old-{index}", size=300)
        held = holding._connections.read()
        held.__enter__()  # and the changes stay beside the file
        patch.undo()
        patch.setattr(sqlite, "_count_first", lambda _: None)
        faults.add(holding, 2, "new", size=300)
    held.__exit__(None, None, None)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    page = database_files.inspect(locate(path))
    assert page.user_version > 0
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{tmp_path}/killed.db{end}")
    holding.close()
    wal = (tmp_path / "killed.db-wal").read_bytes()
    assert wal[32 + 24 + 60 : 32 + 24 + 64] == bytes(4) or wal[32:36] != bytes([0, 0, 0, 1])
    with Database.open(tmp_path / "killed.db") as database, database.read() as reader:
        assert len(reader.events(2)) == 31


def test_a_round_whose_first_frame_was_cut_is_no_round(tmp_path: Path):
    """SQLite writes the head of a frame before its page: the page may be one of another round."""
    path = tmp_path / "lab.db"
    make_golden.make(str(path))
    with Database.open(path) as database:
        faults.add(database, 2, "first")
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{tmp_path}/torn.db{end}")
    wal = tmp_path / "torn.db-wal"
    content = bytearray(wal.read_bytes())
    assert content[32:36] == b"\0\0\0\1"
    content[56 + 60 : 56 + 64] = b"\0\7\7\7"  # a count that has nothing to do with the file
    wal.write_bytes(content)
    with Database.open(tmp_path / "torn.db") as database, database.read() as reader:
        assert reader.events(2) == []


def test_what_a_killed_restore_leaves_is_named(tmp_path: Path):
    path, copy = tmp_path / "lab.db", tmp_path / "copy.db"
    make_golden.make(str(path))
    upgrade.backup(path, copy)
    upgrade.restore(path, copy)
    path.unlink()
    for step in (lambda: Database.open(path), lambda: Database.open(path, create=True)):
        with pytest.raises(StorageError, match=r"lab\.db\.replaced-.* beside it.*db restore"):
            step()
    upgrade.restore(path, copy)
    assert upgrade.check(path) == []


def test_restoring_keeps_the_old_file_and_tells_those_who_have_it(tmp_path: Path):
    path, copy = tmp_path / "lab.db", tmp_path / "copy.db"
    make_golden.make(str(path))
    path.chmod(0o640)
    upgrade.backup(path, copy)
    with Database.open(path) as old:
        faults.add(old, 2, "newer")
        said = upgrade.restore(path, copy)
        with pytest.raises(StorageError, match="replaced by another file"), old.write():
            pass
        with Database.open(path) as new:
            faults.add(new, 2, "after")
            old.close()  # and SQLite leaves the changes of the new file alone
            assert database_files.has_wal(path)
            with new.read() as reader:
                assert [event.client for event in reader.events(2)] == ["after"]
    aside = Path(said.rpartition(" ")[2].rstrip("."))
    assert aside.parent == tmp_path
    with Database.open(aside) as database, database.read() as reader:
        assert [event.client for event in reader.events(2)] == ["newer"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [file.name for file in tmp_path.glob(".finalist*")] == []


def test_a_writer_that_waited_for_a_restore_does_not_write_to_the_old_file(tmp_path: Path):
    path, copy = tmp_path / "lab.db", tmp_path / "copy.db"
    make_golden.make(str(path))
    upgrade.backup(path, copy)
    said: list[object] = []

    def write() -> None:
        try:
            faults.add(waiting, 2, "late")
        except StorageError as error:
            said.append(error)

    with Database.open(path) as waiting, Database.open(path) as holding:
        thread = threading.Thread(target=write)
        with holding._connections.begun("PRAGMA query_only = 0", "BEGIN IMMEDIATE"):
            thread.start()
            time.sleep(0.3)  # it has looked which file it is, and waits for the lock
            os.rename(path, tmp_path / "old.db")
            shutil.copy(copy, path)
        thread.join(30)
    assert "replaced" in str(said[0])
    with Database.open(tmp_path / "old.db") as database, database.read() as reader:
        assert reader.events(2) == []


@pytest.mark.parametrize("damage", ["start", "cut", "none"])
def test_a_damaged_or_missing_file_is_restored(tmp_path: Path, damage: str):
    path, copy = tmp_path / "lab.db", tmp_path / "copy.db"
    make_golden.make(str(path))
    upgrade.backup(path, copy)
    data = path.read_bytes()
    path.unlink()
    if damage != "none":
        path.write_bytes(b"\0" * 100 + data[100:] if damage == "start" else data[:5000])
    said = upgrade.restore(path, copy)
    assert ("There was no such file" in said) == (damage == "none")
    assert upgrade.check(path) == []
    kept = list(tmp_path.glob("lab.db.replaced*"))
    assert len(kept) == (damage != "none")
    with pytest.raises(StorageError, match="is the backup itself"):
        upgrade.restore(path, path)


def test_a_damaged_backup_and_another_programs_file_are_not_touched(tmp_path: Path):
    path, copy = tmp_path / "lab.db", tmp_path / "copy.db"
    make_golden.make(str(path))
    upgrade.backup(path, copy)
    copy.write_bytes(copy.read_bytes()[:9000])
    before = path.read_bytes()
    with pytest.raises(StorageError, match="damaged"):
        upgrade.restore(path, copy)
    assert path.read_bytes() == before
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = (tmp_path / "theirs.db").read_bytes()
    with pytest.raises(StorageError, match="another program's"):
        upgrade.restore(tmp_path / "theirs.db", path)
    assert (tmp_path / "theirs.db").read_bytes() == before


def test_an_index_that_is_not_that_of_the_events_is_noticed_on_opening(tmp_path: Path):
    path = tmp_path / "lab.db"
    make_golden.make(str(path))
    with Database.open(path) as database:
        faults.add(database, 2, "mine")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'client IS NOT NULL', "
            "'client IS NOT NULL AND 0') WHERE name = 'events_client'"
        )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("REINDEX")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ' AND 0', '') WHERE name = 'events_client'"
        )
    with pytest.raises(SchemaError, match="index of client ids"):
        Database.open(path)


# --- what killed processes leave, and who may read -------------------------------------------


def test_files_of_killed_processes_are_removed_and_fresh_ones_stay(tmp_path: Path):
    old = [tmp_path / f".finalist-{'a' * 32}{end}" for end in ("", "-journal", "-wal", "-shm")]
    fresh, other = tmp_path / f".finalist-{'b' * 32}", tmp_path / ".finalist-notes"
    for file in (*old, fresh, other):
        file.touch()
        if file != fresh:
            os.utime(file, (1, 1))
    with Database.open(tmp_path / "lab.db", create=True):
        assert not any(file.exists() for file in old)
        assert fresh.exists()
        assert other.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_database_and_its_copies_are_for_their_owner_alone(tmp_path: Path, umask: int):
    before = os.umask(umask)
    try:
        with Database.open(tmp_path / "lab.db", create=True) as database:
            with database.write() as writer:
                writer.create("s", {}, "0")
            upgrade.backup(tmp_path / "lab.db", tmp_path / "copy.db")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("lab.db", "lab.db-wal", "lab.db-shm", "copy.db"), 0o600)


# --- forks ----------------------------------------------------------------------------------


def _in_child(step) -> str:
    """Fork, do something in the child, and return what it says; at once, or fail."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = step()
        except StorageError as error:
            said = f"refused: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    try:
        until = time.monotonic() + 10
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "the child hangs"
            time.sleep(0.01)
        return os.read(reading, 4096).decode()
    finally:
        os.close(reading)


def fork_beside_writers(send, where: str, rounds: int) -> None:
    """Fork while threads write; every child opens the file afresh and writes too."""

    def write(name: str) -> None:
        with Database.open(where) as database:
            while not enough.is_set():
                faults.add(database, 2, f"{name}-{next(numbers)}", size=200)

    def open_afresh() -> str:
        with Database.open(where) as database:
            faults.add(database, 2, f"child-{os.getpid()}")
        return "wrote"

    numbers, enough = iter(range(10**6)), threading.Event()
    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    try:
        for _ in range(rounds):
            time.sleep(0.01)
            send(_in_child(open_afresh))
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def fork_beside_a_long_one(send, where: str) -> None:
    """Fork while another thread has a transaction that does not end."""
    database_forks.PATIENCE = 0.2
    begun, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with Database.open(where) as database, database.write() as writer:
            writer.append(2, writer.last(2) + 1, "note", {})
            begun.set()
            enough.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(30)
    send(_in_child(lambda: Database.open(where).where))
    enough.set()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_transactions_and_the_child_can_open_the_file(tmp_path: Path):
    where = str(tmp_path / "lab.db")
    make_golden.make(where)
    [said] = faults.finish(faults.start(fork_beside_writers, where, 25))
    assert said == ["wrote"] * 25
    assert upgrade.check(where) == []


def fork_beside_openers(send, where: str, rounds: int) -> None:
    """Fork while threads open and close the file: SQLite's mutexes are not taken along."""

    def work(step) -> None:
        while not enough.is_set():
            step()

    def look() -> None:
        database_files.inspect(locate(where))

    enough = threading.Event()
    steps = (look, look, lambda: Database.open(where).close())
    threads = [threading.Thread(target=work, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        for _ in range(rounds):
            time.sleep(0.003)
            send(_in_child(lambda: Database.open(where).where))
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def fork_beside_a_nested_one(send, where: str) -> None:
    """Fork while a thread begins a transaction within another, as a copy before an upgrade."""
    begun, forking = threading.Event(), threading.Event()

    def nest() -> None:
        with Database.open(where) as database, database.read():
            begun.set()
            forking.wait(30)
            time.sleep(0.2)
            with database.read():
                pass

    thread = threading.Thread(target=nest)
    thread.start()
    begun.wait(30)
    forking.set()
    begin = time.monotonic()
    send(_in_child(lambda: Database.open(where).where))
    send(time.monotonic() - begin)
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_beside_threads_that_open_the_file(tmp_path: Path):
    where = str(tmp_path / "lab.db")
    make_golden.make(where)
    [said] = faults.finish(faults.start(fork_beside_openers, where, 80))
    assert said == [where] * 80


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_beside_a_nested_transaction_waits_for_its_end_only(tmp_path: Path):
    where = str(tmp_path / "lab.db")
    make_golden.make(where)
    [[said, seconds]] = faults.finish(faults.start(fork_beside_a_nested_one, where))
    assert said == where
    assert seconds < database_forks.PATIENCE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_file_in_a_long_transaction_is_refused_at_once_after_a_fork(tmp_path: Path):
    where = str(tmp_path / "lab.db")
    make_golden.make(where)
    [[said]] = faults.finish(faults.start(fork_beside_a_long_one, where))
    assert said.startswith("refused")
    assert "forked" in said
    assert "spawn" in said
    assert "browser" not in said
    with Database.open(where) as database, database.read() as reader:
        assert len(reader.events(2)) == 1
