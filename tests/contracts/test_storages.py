"""What every storage of studies promises, on SQLite and on PostgreSQL.

A promise is a function of two handles on one empty storage. Twins that break one promise each show
that the suite notices.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest

from finalist.arms import Arms
from finalist.errors import (
    ConflictError,
    FinalistError,
    NameTakenError,
    StorageError,
    StudyError,
    UnknownStudyError,
)
from finalist.study import Study
from finalist.study.results import Results
from finalist.study.storage import database as databases
from finalist.study.storage.database import Database
from finalist.study.storage.postgres import PostgreSQL
from finalist.study.storage.protocol import Storage
from finalist.study.storage.rows import EventRow
from finalist.study.storage.sqlite import SQLite
from finalist.study.storage.writer import Writer

Promise = Callable[[Storage, Storage], None]
NAMES = [
    "plain",
    "'; DROP TABLE studies; --",
    'double "quotes" and \\ and %s and :name and ?',
    "🧪🇨🇭 e\u0301 \u202eright to left",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "",
    " ",
    "".join(chr(1000 + i) for i in range(10_000)),
]


def begin(storage: Storage, events: int = 0) -> int:
    """Make a study with some events of two rewards each."""
    with storage.write() as writer:
        study = writer.create("colours", {"delta": 0.05}, "0.1")
        for number in range(1, events + 1):
            rewards = Results([2, 1], [0.5, number])
            writer.append(study, number, "told", {}, client=f"c{number}", rewards=rewards)
    return study


def what_is_written_is_read_by_everybody(one: Storage, other: Storage) -> None:
    study, features = begin(one), np.array([[0.1, -0.0], [1e-300, 3.0]])
    with one.write() as writer:
        writer.add_arms(study, 0, ["a", "b"], features, ["x", "y"])
        event = writer.append(study, 1, "issued", {"batch": 1}, client="me")
        notes = ["third", None, "'second'"]
        told = Results([3, 1, 2], [0.1 + 0.2, -1e150, 5.0], note=notes)
        writer.append(study, 2, "told", {"count": 3}, rewards=told)
    for storage in (one, other):
        with storage.read() as reader:
            row = reader.study("colours")
            assert (row.id, row.settings, row.version) == (study, {"delta": 0.05}, "0.1")
            assert reader.studies() == [row]
            assert (reader.last(study), reader.lasts()) == (2, {study: 2})
            names, found, columns = reader.arms(study, 0)
            assert (names, found.tolist(), columns) == (["a", "b"], features.tolist(), ["x", "y"])
            assert reader.events(study)[0] == event == reader.client(study, "me")
            rows = reader.rewards(study)
            assert (rows.event.tolist(), rows.pull.tolist()) == ([2, 2, 2], [1, 2, 3])
            assert rows.value.tolist() == [-1e150, 5.0, 0.1 + 0.2]
            assert reader.notes(study) == {2: "'second'", 3: "third"}


def events_are_read_from_a_number_on(one: Storage, other: Storage) -> None:
    study = begin(one, events=4)
    with other.read() as reader:
        assert [event.number for event in reader.events(study, after=2)] == [3, 4]
        rows = reader.rewards(study, after=2)
        assert (rows.event.tolist(), rows.pull.tolist()) == ([3, 3, 4, 4], [1, 2, 1, 2])
        assert rows.value.tolist() == [3.0, 0.5, 4.0, 0.5]
        assert reader.events(study, after=4) == []
        assert reader.rewards(study, after=4).value.tolist() == []
        found = reader.client(study, "c3")
        assert found is not None
        assert found.number == 3
        assert reader.client(study, "c9") is None


def negative_zero_is_zero(one: Storage, other: Storage) -> None:
    study = begin(one)
    with one.write() as writer:
        writer.append(study, 1, "told", {}, rewards=Results([1], [-0.0]))
    with other.read() as reader:
        assert str(reader.rewards(study).value[0]) == "0.0"


def a_name_may_be_anything(one: Storage, other: Storage) -> None:
    with one.write() as writer:
        ids = [writer.create(name, {"name": name}, "0") for name in NAMES]
        for study, name in zip(ids, NAMES, strict=True):
            rewards = Results([1], [2], note=[name])
            writer.append(study, 1, "told", {name: name}, client=name[:200], rewards=rewards)
    with other.read() as reader:
        assert sorted(row.name for row in reader.studies()) == sorted(NAMES)
        for study, name in zip(ids, NAMES, strict=True):
            row = reader.study(name)
            assert (row.id, row.name, row.settings) == (study, name, {"name": name})
            assert reader.events(study)[0].body == {name: name}
            assert reader.notes(study) == {1: name}
            assert reader.client(study, name[:200]) is not None


def text_that_cannot_be_stored_is_refused(one: Storage, other: Storage) -> None:
    study = begin(one)
    for text in ("null \0 character", "half a \ud83e character"):
        for step in (
            lambda writer, text=text: writer.create(text, {}, "0"),
            lambda writer, text=text: writer.append(study, 1, "note", {}, client=text),
        ):
            with pytest.raises(StudyError, match="cannot be stored"), one.write() as writer:
                step(writer)
    with one.write() as writer:
        assert writer.last(study) == 0
        writer.append(study, 1, "note", {"text": text})  # JSON can
    with other.read() as reader:
        assert reader.events(study)[0].body == {"text": text}


def notes_may_have_any_character(one: Storage, other: Storage) -> None:
    text = "null \0 character, \x01 and \u2028"
    with Study.create(
        one.address, "notes", Arms.unstructured(["a", "b"]), sigma=1.0, seed=1
    ) as study:
        pulls = [pull.pull_id for pull in study.ask(2)]
        frame = pd.DataFrame({"pull_id": pulls, "result": [1.0, 2.0], "lamp": [text, None]})
        assert study.tell(frame) == 2
        number = study.number
    with other.read() as reader:
        assert {pull: json.loads(note) for pull, note in reader.notes(number).items()} == {
            pulls[0]: {"lamp": text}
        }


def a_name_is_given_once(one: Storage, other: Storage) -> None:
    study = begin(one)
    with pytest.raises(NameTakenError, match=r"'colours'.*another name"), other.write() as writer:
        writer.create("colours", {}, "0")
    with one.read() as reader:
        assert [row.id for row in reader.studies()] == [study]


def an_unknown_study_is_refused(one: Storage, other: Storage) -> None:
    study = begin(one)
    with other.read() as reader:
        with pytest.raises(UnknownStudyError, match=r"'colors'.*Did you mean 'colours'"):
            reader.study("colors")
        with pytest.raises(UnknownStudyError, match="deleted"):
            reader.last(study + 1)
    with pytest.raises(UnknownStudyError), one.write() as writer:
        writer.lock(study + 1)


def a_deleted_study_is_gone_and_its_number_is_not_given_again(one: Storage, other: Storage) -> None:
    study = begin(one, events=2)
    with one.write() as writer:
        writer.delete(study)
    with other.read() as reader:
        assert (reader.studies(), reader.lasts()) == ([], {})
    assert begin(one) != study
    with pytest.raises(UnknownStudyError), other.write() as writer:
        writer.append(study, 3, "note", {})


def an_event_has_the_next_number(one: Storage, other: Storage) -> None:
    study = begin(one, events=1)
    for number in (0, 1, 3):
        with pytest.raises(ConflictError, match="the last one is 1"), other.write() as writer:
            writer.append(study, number, "note", {})
    with one.read() as reader:
        assert reader.last(study) == len(reader.events(study)) == 1


def a_client_id_is_used_once(one: Storage, other: Storage) -> None:
    study = begin(one, events=1)
    with pytest.raises(ConflictError, match="'c1' belongs to event 1"), other.write() as writer:
        writer.append(study, 2, "note", {}, client="c1")
    with pytest.raises(StudyError, match="255"), other.write() as writer:
        writer.append(study, 2, "note", {}, client="x" * 256)


def what_cannot_be_written_leaves_the_transaction_as_it_was(one: Storage, other: Storage) -> None:
    study = begin(one)
    wrong: list[dict[str, Any]] = [
        {"kind": "else"},
        {"body": {"x": float("nan")}},
        {"body": {"x": object()}},
    ]
    with one.write() as writer:
        for words in wrong:
            with pytest.raises(StudyError):
                writer.append(study, 1, **{"kind": "told", "body": {}, **words})
        with pytest.raises(StudyError, match="shape"):
            writer.add_arms(study, 0, ["a", "b"], np.eye(3), ["x", "y", "z"])
        writer.append(study, 1, "note", {})
    with other.read() as reader:
        assert [event.kind for event in reader.events(study)] == ["note"]
        with pytest.raises(StudyError, match="stage 0"):
            reader.arms(study, 0)


def a_transaction_is_kept_in_full_or_not_at_all(one: Storage, other: Storage) -> None:
    study = begin(one)

    def interrupted() -> None:
        with one.write() as writer:
            writer.append(study, 1, "told", {}, rewards=Results([1], [1.0]))
            raise ZeroDivisionError

    def failed_and_caught() -> None:
        with one.write() as writer:
            writer.append(study, 1, "note", {})
            writer.add_arms(study, 0, ["a"], np.eye(1), ["x"])
            with pytest.raises(ConflictError, match="on record"):
                writer.add_arms(study, 0, ["a"], np.eye(1), ["x"])

    with pytest.raises(ZeroDivisionError):
        interrupted()
    with pytest.raises(StorageError, match="nothing was written"):
        failed_and_caught()
    with other.read() as reader:
        assert (reader.last(study), reader.events(study)) == (0, [])
        assert reader.rewards(study).pull.tolist() == []


def who_has_the_lock_writes_alone(one: Storage, other: Storage) -> None:
    study, inside = begin(one), threading.Event()

    def write() -> None:
        with other.write() as writer:
            writer.lock(study)
            inside.set()
            writer.append(study, writer.last(study) + 1, "note", {}, client="second")

    thread = threading.Thread(target=write)
    with one.write() as writer:
        writer.lock(study)
        number = writer.last(study) + 1
        thread.start()
        alone = not inside.wait(0.5)
        writer.append(study, number, "note", {}, client="first")
    thread.join(60)
    assert alone
    with one.read() as reader:
        assert [event.client for event in reader.events(study)] == ["first", "second"]


def a_reader_keeps_its_view_and_no_writer_waits_for_it(one: Storage, other: Storage) -> None:
    study = begin(one, events=1)
    with one.read() as reader:
        before = reader.events(study)
        with other.write() as writer:
            writer.append(study, 2, "told", {}, rewards=Results([3], [0.0]))
        assert reader.events(study) == before
        assert reader.rewards(study).event.tolist() == [1, 1]
    with one.read() as reader:
        assert reader.last(study) == 2


def threads_share_a_storage(one: Storage, other: Storage) -> None:
    study, done = begin(one), []

    def work(name: int) -> None:
        for index in range(5):
            with one.write() as writer:
                writer.lock(study)
                number, client = writer.last(study) + 1, f"{name}-{index}"
                writer.append(study, number, "told", {}, client=client, rewards=Results([1], [1.0]))
                assert len(writer.events(study)) == writer.rewards(study).pull.size == number
                assert writer.notes(study) == {}
            done.append(client)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with other.read() as reader:
        assert [event.client for event in reader.events(study)] == done
    assert len(done) == 20


def what_is_closed_says_so(one: Storage, other: Storage) -> None:
    study = begin(one)
    one.close()
    for use in (one.read, one.write):
        with pytest.raises(StorageError, match="closed"), use():
            pass
    with other.read() as reader:
        assert reader.last(study) == 0


PROMISES: list[Promise] = [
    what_is_written_is_read_by_everybody,
    events_are_read_from_a_number_on,
    negative_zero_is_zero,
    a_name_may_be_anything,
    text_that_cannot_be_stored_is_refused,
    notes_may_have_any_character,
    a_name_is_given_once,
    an_unknown_study_is_refused,
    a_deleted_study_is_gone_and_its_number_is_not_given_again,
    an_event_has_the_next_number,
    a_client_id_is_used_once,
    what_cannot_be_written_leaves_the_transaction_as_it_was,
    a_transaction_is_kept_in_full_or_not_at_all,
    who_has_the_lock_writes_alone,
    a_reader_keeps_its_view_and_no_writer_waits_for_it,
    threads_share_a_storage,
    what_is_closed_says_so,
]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_every_storage_keeps(promise: Promise, where: str):
    with Database.open(where, create=True) as one, Database.open(where) as other:
        promise(one, other)


# --- twins that break one promise each ------------------------------------------------------


class LosesAnEvent(Writer):
    """Acknowledges every second event and does not write it."""

    def append(self, study_id: int, number: int, kind: str, body: Any, **words: Any) -> EventRow:
        if number % 2:
            return super().append(study_id, number, kind, body, **words)
        return EventRow(number, kind, "", words.get("client"), body)


class LosesAReward(Writer):
    """Writes all rewards of an event but the last."""

    def append(self, *words: Any, rewards: Any = None, **others: Any) -> EventRow:
        less = rewards and rewards.taken(np.arange(len(rewards)) < len(rewards) - 1)
        return super().append(*words, rewards=less, **others)


class ForgetsClients(Writer):
    """Does not write down what a client calls an event."""

    def append(self, *words: Any, **others: Any) -> EventRow:
        return super().append(*words, **{**others, "client": None})


class DeletesNothing(Writer):
    """Says that a study is deleted, and leaves it."""

    def delete(self, study_id: int) -> None:
        pass


class KeepsHalves(Database):
    """Commits what was written before an error."""

    @contextmanager
    def write(self) -> Iterator[Writer]:
        with self._connections.write() as connection:
            try:
                yield Writer(connection, self._connections.dialect)
            finally:
                connection.commit()


class NeverCloses(Database):
    """Goes on after its end."""

    def close(self) -> None:
        pass


def without_lock(patch: pytest.MonkeyPatch) -> None:
    """Let everybody write at once: a row is not locked, nor a file before the first change."""
    patch.setattr(Writer, "lock", lambda *_: None)
    patch.setattr(SQLite, "started", lambda *_: None)
    patch.setattr(SQLite, "begin_writing", lambda *_, **__: ("PRAGMA query_only = 0", "BEGIN"))


def without_view(patch: pytest.MonkeyPatch) -> None:
    """Let readers see what others commit meanwhile."""
    patch.setattr(SQLite, "begin_reading", ())
    patch.setattr(PostgreSQL, "begin_reading", ())


def writes_by(writer: type[Writer]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(databases, "Writer", writer)


TWINS: dict[str, tuple[Callable[[pytest.MonkeyPatch], Any], type[Database], Promise]] = {
    "loses an event": (writes_by(LosesAnEvent), Database, what_is_written_is_read_by_everybody),
    "loses a reward": (writes_by(LosesAReward), Database, what_is_written_is_read_by_everybody),
    "forgets clients": (writes_by(ForgetsClients), Database, a_client_id_is_used_once),
    "deletes nothing": (
        writes_by(DeletesNothing),
        Database,
        a_deleted_study_is_gone_and_its_number_is_not_given_again,
    ),
    "keeps halves": (lambda _: None, KeepsHalves, a_transaction_is_kept_in_full_or_not_at_all),
    "never closes": (lambda _: None, NeverCloses, what_is_closed_says_so),
    "no lock": (without_lock, Database, who_has_the_lock_writes_alone),
    "no view": (without_view, Database, a_reader_keeps_its_view_and_no_writer_waits_for_it),
}


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_broken_twin_is_noticed(twin: str, where: str, monkeypatch: pytest.MonkeyPatch):
    breaks, cls, promise = TWINS[twin]
    breaks(monkeypatch)
    one, other = cls.open(where, create=True), cls.open(where)
    try:
        with pytest.raises((AssertionError, FinalistError, pytest.fail.Exception)):
            promise(one, other)
    finally:
        Database.close(one)
        Database.close(other)
