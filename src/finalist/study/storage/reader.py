"""What can be asked of a database, within one transaction."""

import difflib
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, Executable, select

from finalist.errors import StudyError, UnknownStudyError
from finalist.files import printable
from finalist.shapes import Float
from finalist.study.storage.errors import damaged, errors
from finalist.study.storage.protocol import Dialect
from finalist.study.storage.rows import (
    EventRow,
    RewardRows,
    StudyRow,
    checksum,
    notes_checksum,
    plain,
    rewards_are_whole,
)
from finalist.study.storage.schema import arms, events, rewards, studies

_T = TypeVar("_T")


class Reader:
    """One state of a database.

    What is read is checked against its checksums: `StorageError` if it is not what was written.
    """

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self._connection, self._dialect = connection, dialect
        self._where = dialect.place.shown

    def studies(self) -> list[StudyRow]:
        """Return all studies, by name."""
        rows = self._all(select(studies))
        return sorted(map(self._study, rows), key=lambda row: row.name)

    def lasts(self) -> dict[int, int]:
        """Return the number of the last event of every study, by the study's id."""
        rows = self._all(select(studies.c.id, studies.c.last))
        return {row.id: row.last for row in rows}

    def study(self, name: str) -> StudyRow:
        """Return a study by its name."""
        rows = self._all(select(studies).where(studies.c.name == plain(name, "the name")))
        if not rows:
            raise UnknownStudyError(self._unknown(name))
        return self._study(rows[0])

    def _unknown(self, name: str) -> str:
        names = [row.name for row in self._all(select(studies.c.name).order_by(studies.c.name))]
        close = difflib.get_close_matches(name[:100], names, n=3) or names[:3]
        shown = ", ".join(repr(printable(other, 40)) for other in close)
        hint = f"Did you mean {shown}?" if shown else "It holds no studies yet."
        return f"there is no study {printable(name, 60)!r} in {self._where}. {hint}"

    def _study(self, row: Any) -> StudyRow:
        self._expect(row.checksum, row.id, row.name, row.created, row.version, row.settings)
        return StudyRow(
            row.id, row.name, row.created, row.version, self._decoded(row.settings, dict)
        )

    def arms(
        self, study_id: int, stage: int
    ) -> tuple[list[str], Float[np.ndarray, "K d"], list[str]]:
        """Return the names, the features and the names of the columns of the arms of a stage."""
        rows = self._all(select(arms).where(arms.c.study == study_id, arms.c.stage == stage))
        if not rows:
            raise StudyError(f"the study has no arms of stage {stage} in {self._where}.")
        row = rows[0]
        features = bytes(row.features)
        parts = (row.names, features, row.rows, row.columns, row.columns_names)
        self._expect(row.checksum, study_id, stage, *parts)
        table = np.frombuffer(features, "<f8").reshape(row.rows, row.columns)
        names = self._decoded(row.names, list)
        return names, table.astype(np.float64), self._decoded(row.columns_names, list)

    def arrival(self, study_id: int, stage: int) -> dict[str, Any]:
        """Return the body of the event with which the arms of a stage came, {} before it came."""
        came = events.c.kind.in_(("created", "changed"))
        query = select(events).where(events.c.study == study_id, came).order_by(events.c.number)
        rows = self._all(query.offset(stage).limit(1))
        return self._event(rows[0]).body if rows else {}

    def last(self, study_id: int) -> int:
        """Return the number of the last event, 0 if there is none."""
        newest = (
            select(events.c.number)
            .where(events.c.study == study_id)
            .order_by(events.c.number.desc())
            .limit(1)
        )
        rows = self._all(
            select(studies.c.last, newest.scalar_subquery().label("newest")).where(
                studies.c.id == study_id
            )
        )
        if not rows:
            raise UnknownStudyError(f"the study is no longer in {self._where}; it was deleted.")
        if rows[0].last != (rows[0].newest or 0):
            raise damaged(self._where, "its last events are missing")
        number: int = rows[0].last
        return number

    def events(self, study_id: int, after: int = 0) -> list[EventRow]:
        """Return all events with a number above `after`, in order."""
        last = self.last(study_id)
        rows = self._all(
            select(events)
            .where(events.c.study == study_id, events.c.number > after)
            .order_by(events.c.number)
        )
        if [row.number for row in rows] != list(range(max(after, 0) + 1, last + 1)):
            raise damaged(self._where, "the numbers of its events have gaps")
        return [self._event(row) for row in rows]

    def client(self, study_id: int, client: str) -> EventRow | None:
        """Return the event that a client's id belongs to, None if there is none."""
        rows = self._all(
            select(events).where(
                events.c.study == study_id, events.c.client == plain(client, "the client's id")
            )
        )
        return self._event(rows[0]) if rows else None

    def _event(self, row: Any) -> EventRow:
        parts = (row.study, row.number, row.kind, row.at, row.client, row.body)
        self._expect(row.checksum, *parts)
        return EventRow(row.number, row.kind, row.at, row.client, self._decoded(row.body, dict))

    def rewards(self, study_id: int, after: int = 0) -> RewardRows:
        """Return all rewards of events above `after`, by event, then by pull."""
        bare = self._guard(lambda: self._dialect.read_rewards(self._connection, study_id, after))
        rows = RewardRows(
            *(np.ascontiguousarray(bare[name]) for name in ("event", "pull", "reward"))
        )
        expected = self._sums(events.c.rewards_checksum, study_id, after)
        if not rewards_are_whole(rows, expected):
            raise damaged(self._where, "rewards are not as they were told")
        return rows

    def notes(self, study_id: int) -> dict[int, str]:
        """Return the latest note of each pull that has one."""
        rows = self._all(
            select(rewards.c.event, rewards.c.pull, rewards.c.note)
            .where(rewards.c.study == study_id, rewards.c.note.is_not(None))
            .order_by(rewards.c.event, rewards.c.pull)
        )
        found: dict[int, dict[int, str]] = {}
        for row in rows:
            found.setdefault(row.event, {})[row.pull] = row.note
        sums = {event: notes_checksum(notes) for event, notes in found.items()}
        if sums != self._sums(events.c.notes_checksum, study_id, 0):
            raise damaged(self._where, "notes are not as they were told")
        return {pull: note for notes in found.values() for pull, note in notes.items()}

    def _sums(self, column: Any, study_id: int, after: int) -> dict[int, int]:
        """Return the checksums of a kind, by the numbers of the events, in order."""
        rows = self._all(
            select(events.c.number, column.label("value"))
            .where(events.c.study == study_id, events.c.number > after, column.is_not(None))
            .order_by(events.c.number)
        )
        return {row.number: row.value for row in rows}

    def _all(self, query: Executable) -> Sequence[Any]:
        return self._guard(lambda: self._connection.execute(query).all())

    def _guard(self, step: Callable[[], _T]) -> _T:
        """Do one step; errors of the driver come out as ours."""
        with errors(self._dialect):
            return step()

    def _expect(self, expected: int, *parts: str | bytes | int | None) -> None:
        if checksum(*parts) != expected:
            raise damaged(self._where, "a row is not as it was written")

    def _decoded(self, text: str, kind: type[_T]) -> _T:
        try:
            value = json.loads(text)
        except ValueError as error:
            raise damaged(self._where, "a row is not valid JSON") from error
        if not isinstance(value, kind):
            raise damaged(self._where, f"a row is not a JSON {kind.__name__}")
        return value
