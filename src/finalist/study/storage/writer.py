"""What can be written to a database, within one transaction."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import CursorResult, Executable, insert, select, update
from sqlalchemy import delete as remove
from sqlalchemy.exc import IntegrityError

from finalist.errors import (
    ConflictError,
    NameTakenError,
    StorageError,
    StudyError,
    UnknownStudyError,
)
from finalist.files import printable
from finalist.shapes import Float
from finalist.study.results import Results
from finalist.study.storage.reader import Reader
from finalist.study.storage.rows import (
    EventRow,
    RewardRows,
    checksum,
    notes_checksum,
    plain,
    rewards_checksum,
    to_json,
)
from finalist.study.storage.schema import KINDS, arms, events, studies

#: Characters of a client's id: PostgreSQL cannot index long texts.
_MAX_CLIENT = 255
_T = TypeVar("_T")


class Writer(Reader):
    """One transaction that writes: all of it is kept, or nothing.

    After an error nothing is kept, even if the error is caught within the transaction.
    """

    failed = False

    def lock(self, study_id: int) -> None:
        """Wait until no one else writes to this study, and keep it so."""
        query = select(studies.c.id).where(studies.c.id == study_id).with_for_update()
        if not self._all(query):
            raise UnknownStudyError(f"the study is no longer in {self._where}; it was deleted.")

    # On PostgreSQL a writer sees what others commit meanwhile, so whatever takes several steps to
    # read is read under the lock.

    def events(self, study_id: int, after: int = 0) -> list[EventRow]:
        """Return all events with a number above `after`, in order; lock the study."""
        self.lock(study_id)
        return super().events(study_id, after)

    def rewards(self, study_id: int, after: int = 0) -> RewardRows:
        """Return all rewards of events above `after`, by event, then by pull; lock the study."""
        self.lock(study_id)
        return super().rewards(study_id, after)

    def notes(self, study_id: int) -> dict[int, str]:
        """Return the latest note of each pull that has one; lock the study."""
        self.lock(study_id)
        return super().notes(study_id)

    def create(self, name: str, settings: dict[str, Any], version: str) -> int:
        """Make a study without events, and return its id."""
        text, created = to_json(settings, "the settings"), _now()
        if self._all(select(studies.c.id).where(studies.c.name == plain(name, "the name"))):
            raise NameTakenError(
                f"there is a study {printable(name, 60)!r} in {self._where} already. "
                "Choose another name."
            )
        row: dict[str, Any] = {"name": name, "created": created, "settings": text}
        row |= {"version": plain(version, "the version"), "last": 0, "checksum": 0}
        number: int = self._write(insert(studies).returning(studies.c.id), row).scalar_one()
        total = checksum(number, name, created, version, text)
        self._write(update(studies).where(studies.c.id == number).values(checksum=total))
        return number

    def add_arms(
        self,
        study_id: int,
        stage: int,
        names: Sequence[str],
        features: Float[np.ndarray, "K d"],
        columns: Sequence[str],
    ) -> None:
        """Add the arms of a stage."""
        table = np.asarray(features, dtype="<f8")
        if table.shape != (len(names), len(columns)):
            raise StudyError(
                f"features of shape {table.shape} do not fit {len(names)} names of arms and "
                f"{len(columns)} names of columns."
            )
        row: dict[str, Any] = {
            "study": study_id,
            "stage": stage,
            "names": to_json(list(names), "the names"),
            "features": table.tobytes(),
            "rows": table.shape[0],
            "columns": table.shape[1],
            "columns_names": to_json(list(columns), "the names of the columns"),
        }
        row["checksum"] = checksum(*row.values())
        self._write(insert(arms), row)

    def append(
        self,
        study_id: int,
        number: int,
        kind: str,
        body: dict[str, Any],
        *,
        client: str | None = None,
        rewards: Results | None = None,
    ) -> EventRow:
        """Add the next event of a study, with its rewards.

        Parameters
        ----------
        study_id, kind, body
            The event; one of `KINDS`.
        number : int
            One more than the last event. `ConflictError` if someone else was faster.
        client : str, optional
            What the client calls this event, at most 255 characters. `ConflictError` if there is
            such an event.

        Returns
        -------
        EventRow
            As it will be read.
        """
        row = self._event_row(study_id, number, kind, body, client)
        told = rewards if rewards is not None and len(rewards) > 0 else None
        if told is not None:
            pairs = zip(told.pull.tolist(), told.note, strict=True)
            notes = {pull: note for pull, note in pairs if note is not None}
            row["rewards_checksum"] = rewards_checksum(told.pull, told.value)
            row["notes_checksum"] = notes_checksum(notes)
        next_one = (
            update(studies)
            .where(studies.c.id == study_id, studies.c.last == number - 1)
            .values(last=number)
        )
        if self._write(next_one).rowcount != 1:
            raise ConflictError(
                f"event {number} cannot be added: the last one is {self.last(study_id)}. "
                "Someone else wrote meanwhile; read again."
            )
        self._write(insert(events), row)
        if told is not None:
            add = partial(self._dialect.add_rewards, self._connection, study_id, number, told)
            self._try(add)
        return EventRow(number, kind, row["at"], client, body)

    def _event_row(
        self, study_id: int, number: int, kind: str, body: dict[str, Any], client: str | None
    ) -> dict[str, Any]:
        if kind not in KINDS:
            raise StudyError(f"there is no event {kind!r}; use one of {', '.join(KINDS)}.")
        if client is not None:
            if len(client) > _MAX_CLIENT:
                raise StudyError(
                    f"a client's id has {len(client)} characters; use one of at most {_MAX_CLIENT}."
                )
            earlier = self.client(study_id, client)
            if earlier is not None:
                raise ConflictError(
                    f"the client's id {printable(client, 60)!r} belongs to event {earlier.number}."
                )
        at, text = _now(), to_json(body, "the event")
        row: dict[str, Any] = {
            "study": study_id,
            "number": number,
            "kind": kind,
            "at": at,
            "client": client,
            "body": text,
        }
        return {**row, "checksum": checksum(*row.values())}

    def delete(self, study_id: int) -> None:
        """Delete a study with all that belongs to it."""
        self._write(remove(studies).where(studies.c.id == study_id))

    def _write(self, query: Executable, row: dict[str, Any] | None = None) -> CursorResult[Any]:
        return self._try(lambda: self._connection.execute(query, row))

    def _try(self, step: Callable[[], _T]) -> _T:
        """Do one step; after an error nothing of the transaction is kept."""
        failed, self.failed = self.failed, True
        try:
            result = self._guard(step)
        except StorageError as error:
            if isinstance(error.__cause__, IntegrityError):
                detail = " ".join(str(error.__cause__.orig).split())
                raise ConflictError(
                    f"this contradicts what is on record in {self._where} ({detail}). "
                    "Nothing was changed; read again."
                ) from error.__cause__
            raise
        self.failed = failed
        return result


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
