"""Databases of studies: what is written is there, once, whatever happens.

What every storage promises is in `tests/contracts/test_storages.py`.
"""

import contextlib
import os
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from finalist.errors import (
    MissingExtraError,
    SchemaError,
    StorageError,
    StudyError,
    UnknownStudyError,
)
from finalist.study.results import Results
from finalist.study.storage import connections as database_connections
from finalist.study.storage import schema, upgrade
from finalist.study.storage.database import Database
from finalist.study.storage.sqlite import SQLite
from tests.study import faults, make_golden


@pytest.fixture
def database(where: str) -> Iterator[Database]:
    with Database.open(where, create=True) as database:
        yield database


@pytest.fixture
def study(database: Database) -> int:
    with database.write() as writer:
        return writer.create("colours", {"delta": 0.05}, "0.1")


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A SQLite file with the golden rows."""
    path = tmp_path / "golden.db"
    make_golden.make(str(path))
    return path


def is_sqlite(database: Database) -> bool:
    return isinstance(database._connections.dialect, SQLite)


def driver(database: Database, query: str, *, write: bool = True) -> Any:
    """Ask the database without the layer between."""
    step = database._connections.write if write else database._connections.read
    with step() as connection:
        result = connection.exec_driver_sql(query)
        return result.all() if result.returns_rows else None


def everything(where: str | Path) -> list[Any]:
    """Return all that can be read, as values that can be compared."""
    with Database.open(where) as database, database.read() as reader:
        found: list[Any] = []
        for row in reader.studies():
            rows = reader.rewards(row.id)
            found += [row, reader.events(row.id), reader.notes(row.id)]
            found += [rows.event.tolist(), rows.pull.tolist(), rows.value.tolist()]
            if row.name == make_golden.NAME:
                names, features, columns = reader.arms(row.id, 0)
                found += [names, features.tolist(), columns]
        return found


def is_golden(where: str | Path) -> None:
    with Database.open(where) as database, database.read() as reader:
        first, second = reader.studies()
        assert reader.study(first.name) == first
        assert (first.name, first.created) == (make_golden.NAME, make_golden.AT)
        assert (first.version, first.settings) == (make_golden.VERSION, make_golden.SETTINGS)
        assert (second.name, second.settings, reader.last(second.id)) == ("second", {}, 0)
        names, features, columns = reader.arms(first.id, 0)
        assert (names, columns) == (make_golden.ARMS, make_golden.COLUMNS)
        assert features.dtype == np.float64
        assert np.array_equal(features, make_golden.FEATURES)
        events = reader.events(first.id)
        assert [(event.number, event.at) for event in events] == [
            (number, make_golden.AT) for number in range(1, 6)
        ]
        assert [(event.kind, event.client, event.body) for event in events] == [
            (kind, client, body) for kind, client, body, _ in make_golden.EVENTS
        ]
        rows = reader.rewards(first.id)
        kinds = [column.dtype.str[1:] for column in (rows.event, rows.pull, rows.value)]
        assert kinds == ["i8", "i8", "f8"]
        found = list(zip(rows.event.tolist(), rows.pull.tolist(), rows.value.tolist(), strict=True))
        assert found == make_golden.REWARDS
        assert reader.notes(first.id) == make_golden.NOTES


# --- what is written is read ----------------------------------------------------------------


def test_rows_come_back_as_they_were_written(where: str):
    make_golden.make(where)
    is_golden(where)
    assert upgrade.check(where) == []


def test_the_golden_file_of_schema_1_gives_its_exact_rows(tmp_path: Path):
    shutil.copy(make_golden.GOLDEN, tmp_path / "lab.db")
    is_golden(tmp_path / "lab.db")
    assert upgrade.check(tmp_path / "lab.db") == []


def test_the_database_itself_refuses_a_name_twice(database: Database, study: int):
    query = "INSERT INTO studies (name, created, version, settings, last, checksum)"
    with pytest.raises(sa.exc.IntegrityError):
        driver(database, f"{query} VALUES ('colours', '', '', '', 0, 0)")


def test_a_deleted_study_leaves_nothing_and_its_id_is_not_given_again(database: Database):
    with database.write() as writer:
        study = writer.create("short", {}, "0")
        writer.add_arms(study, 0, ["a"], np.eye(1), ["x"])
        writer.append(study, 1, "told", {}, rewards=Results([0], [1.0]))
    with database.write() as writer:
        writer.delete(study)
    for table in ("studies", "arms", "events", "rewards"):
        assert driver(database, f"SELECT count(*) FROM {table}", write=False)[0][0] == 0
    with database.write() as writer:
        assert writer.create("short", {}, "0") != study
    with pytest.raises(UnknownStudyError), database.write() as writer:
        writer.append(study, 2, "note", {})


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reward", ["'NaN'", "'Infinity'", "'-Infinity'", "1e151", "-9e999", "NULL"]
)
def test_the_schema_itself_refuses_a_reward_that_is_no_number(
    database: Database, study: int, reward: str
):
    with database.write() as writer:
        writer.append(study, 1, "told", {})
    query = "INSERT INTO rewards (study, event, pull, reward) VALUES"
    with pytest.raises(sa.exc.DBAPIError, match=r"rewards|out of range"):
        driver(database, f"{query} ({study}, 1, 1, {reward})")
    if is_sqlite(database):
        with database._connections.write() as connection, pytest.raises(sa.exc.IntegrityError):
            connection.exec_driver_sql(f"{query} (?, 1, 1, ?)", (study, np.nan))
    driver(database, f"{query} ({study}, 1, 1, -1e150)")  # the query is a right one


def test_the_schema_itself_refuses_rewards_without_event_and_strange_events(
    database: Database, study: int
):
    for query in (
        f"INSERT INTO rewards (study, event, pull, reward) VALUES ({study}, 9, 1, 1)",
        "INSERT INTO events (study, number, kind, at, body, checksum) "
        f"VALUES ({study}, 1, 'else', '', '', 0)",
        "INSERT INTO events (study, number, kind, at, body, checksum) "
        f"VALUES ({study}, 0, 'told', '', '', 0)",
        "INSERT INTO events (study, number, kind, at, body, checksum) "
        f"VALUES ({study + 1}, 1, 'told', '', '', 0)",
    ):
        with pytest.raises(sa.exc.IntegrityError):
            driver(database, query)


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE events SET body = '[]'",
        "UPDATE rewards SET reward = 2",
        "DELETE FROM events",
        "DELETE FROM rewards",
    ],
)
def test_what_is_on_record_cannot_be_changed(database: Database, study: int, query: str):
    faults.add(database, study, "c")
    with pytest.raises(sa.exc.DBAPIError, match="append-only"):
        driver(database, query)
    with database.read() as reader:
        assert reader.rewards(study).value.tolist() == [0.5]


def test_the_database_itself_refuses_a_client_id_twice(database: Database, study: int):
    faults.add(database, study, "mine")
    with pytest.raises(sa.exc.IntegrityError):
        driver(
            database,
            "INSERT INTO events (study, number, kind, at, client, body, checksum) "
            f"VALUES ({study}, 2, 'told', '', 'mine', '', 0)",
        )


def test_a_reader_cannot_write(database: Database, study: int):
    with pytest.raises(sa.exc.DBAPIError, match=r"read-?only"):
        driver(database, "UPDATE studies SET name = 'x'", write=False)


# --- many at once ---------------------------------------------------------------------------


def test_processes_that_write_at_once_lose_nothing(where: str, database: Database, study: int):
    started = [faults.start(faults.add_many, where, study, str(i), 50) for i in range(4)]
    numbers = [number for sent in faults.finish(*started) for number in sent]
    assert sorted(numbers) == list(range(1, 201))
    with database.read() as reader:
        events = reader.events(study)
    assert {event.client for event in events} == {f"{i}-{j}" for i in range(4) for j in range(50)}


def test_a_reader_keeps_its_view_and_no_writer_waits_for_it(database: Database, study: int):
    faults.add(database, study, "before")
    with database.read() as reader:
        before = reader.events(study)
        start = time.monotonic()
        for index in range(100):
            faults.add(database, study, f"{index}")
        assert time.monotonic() - start < 15
        assert reader.events(study) == before
        assert reader.rewards(study).event.tolist() == [1]
    with database.read() as reader:
        assert reader.last(study) == 101


def test_a_writer_that_waits_too_long_is_told_why(where: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database_connections, "BUSY", 0.3)
    with Database.open(where, create=True) as one, Database.open(where) as other:
        with one.write() as writer:
            study = writer.create("colours", {}, "0")
        with one.write() as writer:
            writer.lock(study)
            held = "held by someone else"
            with pytest.raises(StorageError, match=held), other.write() as waiting:
                waiting.lock(study)
            writer.append(study, 1, "note", {})
        faults.add(other, study, "later")
        with other.read() as reader:
            assert reader.last(study) == 2


def test_the_right_to_write_is_taken_at_the_start_on_sqlite(
    lab: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database_connections, "BUSY", 0.1)
    with (
        Database.open(lab) as one,
        Database.open(lab) as other,
        one.write(),
        pytest.raises(StorageError, match="held by someone else"),
        other.write(),
    ):
        pytest.fail("there are two writers")


def test_sqlite_keeps_what_is_committed_through_a_loss_of_power(lab: Path):
    with Database.open(lab) as database:
        for write in (True, False):
            assert driver(database, "PRAGMA synchronous", write=write) == [(2,)]
            assert driver(database, "PRAGMA journal_mode", write=write) == [("wal",)]
            assert driver(database, "PRAGMA foreign_keys", write=write) == [(1,)]


def fork_and_write(send: Callable[[Any], None], where: str, study: int) -> None:
    """Fork with a database that is open, and once more in the middle of a transaction."""
    with Database.open(where) as database:
        faults.add(database, study, "before")
        child = os.fork()
        name = "child" if child == 0 else "parent"
        for index in range(10):
            faults.add(database, study, f"{name}-{index}")
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with database.write() as writer:
            number = writer.last(study) + 1
            writer.append(study, number, "note", {}, client="while forking")
            child = os.fork()
            if child == 0:
                os._exit(0 if _is_refused(database) == is_sqlite(database) else 1)
            assert os.waitpid(child, 0)[1] == 0
    send("done")


def _is_refused(database: Database) -> bool:
    """Return whether a file cannot be read; a server knows nothing of forks."""
    try:
        with database.read():
            return False
    except StorageError as error:
        return "forked" in str(error)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_is_forked_has_connections_of_its_own(
    where: str, database: Database, study: int
):
    assert faults.finish(faults.start(fork_and_write, where, study)) == [["done"]]
    with database.read() as reader:
        clients = [event.client for event in reader.events(study)]
    names = {f"{name}-{index}" for name in ("child", "parent") for index in range(10)}
    assert set(clients) == {"before", "while forking"} | names
    assert clients[-1] == "while forking"
    assert upgrade.check(where) == []


# --- kills, cuts and flips ------------------------------------------------------------------


def test_a_process_that_is_killed_loses_nothing_it_acknowledged(where: str):
    assert faults.kill_loop(where, kills=15, seed=1) > 15


def test_every_cut_of_the_wal_gives_what_was_committed_before(tmp_path: Path):
    source = tmp_path / "lab.db"
    with Database.open(source, create=True) as database:
        with database.write() as writer:
            study = writer.create("colours", {}, "0")
        for index in range(20):
            faults.add(database, study, str(index), size=1 + index * 20)
        shutil.copy(source, tmp_path / "main")
        wal = (tmp_path / "lab.db-wal").read_bytes()
    frame = 24 + 4096
    frames = (len(wal) - 32) // frame
    assert frames > 40
    draw = random.Random(3)
    cuts = {0, 1, 20, 31, 32, len(wal) - 1, len(wal)}
    for index in draw.sample(range(frames), 20):
        start = 32 + index * frame
        cuts |= {
            start,
            start + draw.randrange(1, 24),
            start + 24,
            start + draw.randrange(25, frame),
        }
    counts = []
    for cut in sorted(cuts):
        copy = tmp_path / "copy.db"
        shutil.copy(tmp_path / "main", copy)
        (tmp_path / "copy.db-wal").write_bytes(wal[:cut])
        (tmp_path / "copy.db-shm").unlink(missing_ok=True)
        with Database.open(copy) as database, database.read() as reader:
            found = reader.studies()
            events = reader.events(study) if found else []
            sizes = np.bincount(reader.rewards(study).event)[1:].tolist() if found else []
        assert [event.client for event in events] == [str(i) for i in range(len(events))]
        assert sizes == [1 + i * 20 for i in range(len(events))]
        counts.append(len(events))
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 20)
    assert len(set(counts)) > 5


def test_a_flipped_bit_is_noticed_or_does_not_matter(lab: Path, tmp_path: Path):
    right, data = everything(lab), lab.read_bytes()
    draw = random.Random(5)
    positions = [*range(100), *(draw.randrange(100, len(data)) for _ in range(120))]
    refused = 0
    for position in positions:
        changed = bytearray(data)
        changed[position] ^= 1 << draw.randrange(8)
        path = tmp_path / "flipped.db"
        path.write_bytes(changed)
        try:
            assert everything(path) == right, position
        except (StorageError, StudyError):
            refused += 1
        assert path.stat().st_size >= len(data), position
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
    assert refused > 25


def test_a_number_that_decayed_is_noticed(lab: Path, tmp_path: Path):
    data = lab.read_bytes()
    for raw in (pack(">d", 0.1), pack(">d", -1e150), pack("<d", 1 / 3)):
        assert data.count(raw) == 1
        path = tmp_path / "decayed.db"
        path.write_bytes(data.replace(raw, bytes([raw[0] ^ 1]) + raw[1:]))
        with pytest.raises(SchemaError, match="damaged"):
            everything(path)
        assert upgrade.check(path) != []


def test_events_that_are_cut_off_at_the_end_are_missed(where: str, database: Database, study: int):
    for index in range(3):
        faults.add(database, study, str(index))
    if is_sqlite(database):
        driver(database, "DROP TRIGGER events_delete")
        driver(database, "DROP TRIGGER rewards_delete")
    else:
        driver(database, "ALTER TABLE events DISABLE TRIGGER events_append_only")
        driver(database, "ALTER TABLE rewards DISABLE TRIGGER rewards_append_only")
    driver(database, "DELETE FROM events WHERE number = 3")
    with database.read() as reader, pytest.raises(SchemaError, match="last events"):
        reader.events(study)
    driver(database, "UPDATE studies SET last = 2")
    assert upgrade.check(where) == []
    driver(database, "DELETE FROM events WHERE number = 1")
    assert any("gaps" in problem for problem in upgrade.check(where))


def test_a_check_finds_rewards_of_the_wrong_event_and_missing_keys(lab: Path):
    with Database.open(lab) as database:
        with database.write() as writer:
            study = writer.study("second").id
            writer.append(study, 1, "note", {}, rewards=Results([1], [1.0]))
        assert any("(note) has 1 rewards" in problem for problem in upgrade.check(lab))
        with database._connections.write(foreign_keys=False) as connection:
            connection.exec_driver_sql(
                "INSERT INTO rewards (study, event, pull, reward) VALUES (99, 1, 1, 1)"
            )
        assert any("belongs to none of events" in problem for problem in upgrade.check(lab))


# --- files that cannot be used --------------------------------------------------------------


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE studies (id INTEGER)")
    connection.close()


FILES: dict[str, Callable[[Path], Any]] = {
    "empty": Path.touch,
    "text": lambda path: path.write_text("name,x\nred,1\n" * 20),
    "random": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
    "short": lambda path: path.write_bytes(b"SQLite format 3\0"),
    "another program's": _foreign,
}


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_something_else_is_left_as_it_is(tmp_path: Path, kind: str, create: bool):
    path = tmp_path / "lab.db"
    FILES[kind](path)
    before, listing = path.read_bytes(), sorted(tmp_path.iterdir())
    steps: list[Callable[[], object]] = [
        lambda: Database.open(path, create=create),
        lambda: upgrade.upgrade(path),
        lambda: upgrade.check(path),
        lambda: upgrade.backup(path, tmp_path / "copy.db"),
    ]
    for step in steps:
        with pytest.raises(SchemaError, match=r"lab\.db is an?other program's|lab\.db is (an|no)"):
            step()
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == listing


def test_the_changes_beside_another_programs_file_are_left_alone(tmp_path: Path):
    _foreign(tmp_path / "other.db")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("INSERT INTO studies VALUES (1)")
        connection.commit()
        for end in ("", "-wal"):
            shutil.copy(tmp_path / f"other.db{end}", tmp_path / f"lab.db{end}")
    connection.close()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("lab.db*")}
    with pytest.raises(SchemaError, match="another program's"):
        Database.open(tmp_path / "lab.db", create=True)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("lab.db*")} == before


def test_a_file_cut_short_is_damaged(lab: Path):
    lab.write_bytes(lab.read_bytes()[:9000])
    with pytest.raises(StorageError, match="damaged"):
        everything(lab)
    assert upgrade.check(lab) != []
    assert lab.stat().st_size == 9000


def test_a_missing_file_is_made_only_if_asked_for(tmp_path: Path):
    path = tmp_path / "lab.db"
    with pytest.raises(StorageError, match=r"there is no file .*lab\.db"):
        Database.open(path)
    with pytest.raises(StorageError, match="there is no file"):
        upgrade.check(path)
    with pytest.raises(StorageError, match="no folder"):
        Database.open(tmp_path / "none" / "lab.db", create=True)
    with pytest.raises(StorageError, match="is a folder"):
        Database.open(tmp_path, create=True)
    assert list(tmp_path.iterdir()) == []
    Database.open(path, create=True).close()
    assert [file.name for file in tmp_path.iterdir()] == ["lab.db"]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "lab.db")
    with pytest.raises(StorageError, match="pipe"):
        Database.open(tmp_path / "lab.db")


@pytest.mark.parametrize("name", ["", ":memory:", "sqlite://", "a\0b"])
def test_a_study_is_kept_in_a_file_with_a_name(name: str):
    with pytest.raises(StorageError):
        Database.open(name, create=True)


@pytest.mark.parametrize("name", ["50% of #1?mode=memory&x.db", "a b'c\".db", "🧪.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str):
    make_golden.make(str(tmp_path / name))
    is_golden(tmp_path / name)
    is_golden(f"sqlite:///{tmp_path / name}" if "?" not in name else tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_that_is_moved_or_replaced_while_in_use_is_missed(lab: Path, tmp_path: Path):
    with Database.open(lab) as database:
        lab.rename(tmp_path / "moved.db")
        with pytest.raises(StorageError, match="moved or deleted"), database.write():
            pass
        shutil.copy(make_golden.GOLDEN, lab)
        with pytest.raises(StorageError, match="replaced"), database.read():
            pass


def test_a_full_disk_leaves_nothing_half_written(lab: Path):
    before = everything(lab)
    with Database.open(lab) as database:
        with database.write() as writer:
            study = writer.study("second").id
        pages = driver(database, "PRAGMA page_count")[0][0]
        driver(database, f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StorageError, match="disk is full"), database.write() as writer:
            writer.append(study, 1, "told", {}, rewards=Results(range(5000), [0.5] * 5000))
        with pytest.raises(StorageError, match="disk is full"), database.write() as writer:
            writer.append(study, 1, "note", {"text": "x" * 50_000})
        assert everything(lab) == before
        driver(database, "PRAGMA max_page_count = 100000")
        with database.write() as writer:
            writer.append(study, 1, "told", {}, rewards=Results(range(5000), [0.5] * 5000))
    assert upgrade.check(lab) == []


@pytest.fixture
def shared(lab: Path) -> Iterator[Path]:
    """A golden file in a folder that everyone may read, and no one but the owner write."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lab.db"
        shutil.copy(lab, path)
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        yield path
        Path(folder).chmod(0o755)


def use_without_rights(where: str) -> list[Any]:
    """Read and try to write; return what is read and what is said."""
    found: list[Any] = [everything(where), upgrade.check(where)]
    with Database.open(where) as database:
        try:
            with database.write():
                found.append("it can be written")
        except StorageError as error:
            found.append(str(error))
    try:
        Database.open(where + "2", create=True).close()
        found.append("it can be made")
    except StorageError as error:
        found.append(str(error))
    return [*found, everything(where)]


@pytest.mark.parametrize("folder", [0o555, 0o777])
def test_a_file_that_may_only_be_read_is_read(shared: Path, lab: Path, folder: int):
    shared.parent.chmod(folder)
    [[found]] = faults.finish(faults.start(faults.as_nobody, use_without_rights, str(shared)))
    assert found[0] == found[4] == everything(lab)
    assert found[1] == []
    assert "can only be read" in found[2]
    made = {"lab.db", "lab.db2"} if folder == 0o777 else {"lab.db"}
    assert {path.name for path in shared.parent.iterdir()} == made
    assert folder == 0o777 or re.search(r"lab\.db2 cannot be", found[3])


def test_changes_beside_a_file_that_may_only_be_read_are_seen(shared: Path):
    """While its owner writes, others read what was committed."""
    with Database.open(shared) as database:
        with database.write() as writer:
            writer.append(writer.study("second").id, 1, "note", {"text": "fresh"})
        if os.geteuid() != 0:
            pytest.skip("only root can both write to the file and not")
        [[found]] = faults.finish(faults.start(faults.as_nobody, use_without_rights, str(shared)))
        assert found[0] == everything(shared)
        assert "fresh" in str(found[0])


# --- versions -------------------------------------------------------------------------------


LATER = """
import os, time
import sqlalchemy as sa
from alembic import op
revision, down_revision = "0002", "0001"

def upgrade():
    with op.batch_alter_table("events", recreate={recreate!r}) as batch:
        batch.add_column(sa.Column("extra", sa.Text))
    op.execute("UPDATE studies SET version = version")
    if os.path.exists({pause!r}):
        open({pause!r} + ".reached", "w").close()
        time.sleep(60)
"""


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """Scripts that lead to a schema 2."""
    target = tmp_path / "migrations 100%"
    shutil.copytree(upgrade.MIGRATIONS, target)
    text = LATER.format(pause=str(tmp_path / "pause"), recreate="auto")
    (target / "versions" / "0002_later.py").write_text(text)
    return target


@pytest.fixture
def old(where: str, later: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of schema 1 for a finalist that needs 2."""
    make_golden.make(where)
    monkeypatch.setattr(upgrade, "SCHEMA", "0002")
    monkeypatch.setattr(upgrade, "MIGRATIONS", later)
    return where


def backups(where: str) -> list[Path]:
    path = Path(where)
    return sorted(path.parent.glob(path.name + ".backup-*")) if path.is_file() else []


def test_the_scripts_make_the_tables_that_the_code_expects(database: Database):
    def of_code(thing: object, name: str | None, kind: str, *_: object) -> bool:
        return name not in ("studies_name", schema.VERSION_TABLE)

    options = {"include_object": of_code, "compare_server_default": True}
    with database._connections.read() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, schema.metadata) == []
    assert ScriptDirectory(str(upgrade.MIGRATIONS)).get_heads() == [upgrade.SCHEMA]


def test_a_new_file_has_the_tables_that_the_scripts_make(tmp_path: Path):
    """New files are made from `new.sql`; without a version in both, later scripts would run."""
    made, by_scripts = tmp_path / "made.db", tmp_path / "scripts.db"
    Database.open(made, create=True).close()
    engine = sa.create_engine(f"sqlite:///{by_scripts}")
    with engine.begin() as connection:
        upgrade._migrate(connection)
    engine.dispose()

    def tables(path: Path) -> tuple[list[Any], list[Any]]:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
            rows = connection.execute(query).fetchall()
            found = [(*row[:3], re.sub(r"\s", "", row[3] or "")) for row in rows]
            return found, connection.execute(f"SELECT * FROM {schema.VERSION_TABLE}").fetchall()

    assert tables(made) == tables(by_scripts)
    assert len(tables(made)[0]) > 10


def test_an_older_database_is_upgraded_when_it_is_opened(old: str, monkeypatch: pytest.MonkeyPatch):
    assert upgrade.current(old) == "0001"
    is_golden(old)
    assert upgrade.current(old) == upgrade.SCHEMA == "0002"
    assert upgrade.check(old) == []
    found = backups(old)
    assert len(found) == ("://" not in old)
    assert "nothing to do" in upgrade.upgrade(old)
    monkeypatch.undo()
    for copy in found:
        assert ".backup-0001-" in copy.name
        is_golden(copy)


def test_an_upgrade_says_what_was_done(old: str):
    said = upgrade.upgrade(old)
    assert "from schema 1 to 2" in said
    assert ("not copied" if "://" in old else backups(old)[0].name) in said
    is_golden(old)


def test_a_table_made_anew_keeps_the_rows_that_belong_to_it(
    lab: Path, later: Path, monkeypatch: pytest.MonkeyPatch
):
    script = later / "versions" / "0002_later.py"
    script.write_text(LATER.format(pause="/none", recreate="always"))
    monkeypatch.setattr(upgrade, "SCHEMA", "0002")
    monkeypatch.setattr(upgrade, "MIGRATIONS", later)
    is_golden(lab)


def test_an_upgrade_that_fails_leaves_the_old_tables(
    old: str, later: Path, monkeypatch: pytest.MonkeyPatch
):
    script = later / "versions" / "0002_later.py"
    script.write_text(script.read_text() + "    op.execute('SELECT * FROM nowhere')\n")
    with pytest.raises(StorageError, match="nowhere"):
        Database.open(old)
    assert upgrade.current(old) == "0001"
    monkeypatch.undo()
    is_golden(old)


def test_a_newer_database_is_refused_and_left_alone(where: str):
    make_golden.make(where)
    with Database.open(where) as database:
        driver(database, f"UPDATE {schema.VERSION_TABLE} SET version_num = '0017'")
    before = Path(where).read_bytes() if Path(where).is_file() else b""
    for step in (Database.open, upgrade.upgrade, upgrade.current):
        with pytest.raises(SchemaError, match=r"schema 17.*newer finalist.*knows schema 1"):
            step(where)
    assert "schema 17" in upgrade.check(where)[0]
    assert (Path(where).read_bytes() if Path(where).is_file() else b"") == before


def test_a_version_that_is_none_is_damage(database: Database, where: str):
    driver(database, f"UPDATE {schema.VERSION_TABLE} SET version_num = 'x'")
    with pytest.raises(SchemaError, match="damaged"):
        Database.open(where)


def test_a_process_killed_while_it_upgrades_leaves_the_old_tables(
    old: str, later: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pause").touch()
    process, _ = faults.start(faults.open_with, old, str(later), "0002")
    until = time.monotonic() + 30
    while not (tmp_path / "pause.reached").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert (tmp_path / "pause.reached").exists()
    process.kill()
    process.join()
    (tmp_path / "pause").unlink()
    assert upgrade.current(old) == "0001"
    is_golden(old)
    assert upgrade.current(old) == "0002"


def test_processes_that_open_an_old_database_at_once_all_work(old: str, later: Path):
    started = [faults.start(faults.open_with, old, str(later), "0002") for _ in range(4)]
    for [names] in faults.finish(*started):
        assert names == [make_golden.NAME, "second"]
    assert upgrade.current(old) == "0002"
    assert len(backups(old)) == ("://" not in old)


def test_processes_that_make_a_database_at_once_all_work(where: str):
    migrations = str(upgrade.MIGRATIONS)
    started = [faults.start(faults.open_with, where, migrations, "0001") for _ in range(4)]
    assert faults.finish(*started) == [[[]]] * 4
    assert upgrade.check(where) == []


def test_a_backup_is_a_whole_copy_made_while_others_write(lab: Path, tmp_path: Path):
    right = everything(lab)
    with Database.open(lab) as database, database.write() as writer:
        writer.append(writer.study("second").id, 1, "note", {})
        copy = upgrade.backup(lab, tmp_path / "copy.db")
    assert everything(copy) == right
    assert upgrade.check(copy) == []
    with pytest.raises(StorageError, match="not replaced"):
        upgrade.backup(lab, copy)
    with pytest.raises(StorageError, match="no folder"):
        upgrade.backup(lab, tmp_path / "none" / "copy.db")
    assert everything(copy) == right


# --- PostgreSQL -----------------------------------------------------------------------------


def test_postgresql_is_not_copied_but_told_how(postgresql: str, tmp_path: Path):
    with pytest.raises(StorageError, match="pg_dump"):
        upgrade.backup(postgresql, tmp_path / "copy.db")


def test_tables_in_postgresql_are_made_only_if_asked_for(postgresql: str):
    assert upgrade.current(postgresql) is None
    for step in (Database.open, upgrade.upgrade, upgrade.check):
        with pytest.raises(StorageError, match="no studies yet"):
            step(postgresql)
    assert upgrade.current(postgresql) is None


def test_tables_of_another_program_are_left_alone(postgresql: str):
    engine = sa.create_engine(postgresql.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE events (id integer)")
    engine.dispose()
    with pytest.raises(SchemaError, match="another program"):
        Database.open(postgresql, create=True)


def test_a_password_is_never_shown(postgresql: str):
    secret = postgresql.replace("postgres:@", "postgres:s3cret@") + "&password=s3cret"
    with Database.open(secret, create=True) as database:
        assert "s3cret" not in database.where
    for address in (
        "postgresql://user:s3cret@127.0.0.1:1/x?password=s3cret",
        "postgresql://user:s3cret@[::1:1/x",
        secret.replace("study_", "none_"),
    ):
        with pytest.raises(StorageError) as caught:
            Database.open(address)
        assert "s3cret" not in str(caught.value)


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:1/lab cannot be reached"):
        Database.open("postgresql://user@127.0.0.1:1/lab")
    with pytest.raises(StorageError, match="not in mysql"):
        Database.open("mysql://user@127.0.0.1/lab")


def test_without_psycopg_the_error_has_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'finalist\[postgres\]'"):
        Database.open("postgresql://user@127.0.0.1:1/lab")


def test_a_lost_connection_is_an_error_and_the_next_one_is_new(postgresql: str):
    kick = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    def work() -> None:
        with database.write() as writer:
            writer.append(study, 1, "note", {})
            driver(other, kick)

    with Database.open(postgresql, create=True) as database, Database.open(postgresql) as other:
        with database.write() as writer:
            study = writer.create("colours", {}, "0")
        with pytest.raises(StorageError, match="not known whether"):
            work()
        faults.add(database, study, "after")
        with database.read() as reader:
            assert [event.client for event in reader.events(study)] == ["after"]
