"""Look for damage in a whole database."""

from collections.abc import Callable

from sqlalchemy import Connection, func, select

from finalist.errors import StorageError, StudyError
from finalist.files import printable
from finalist.study.storage.errors import damaged, errors
from finalist.study.storage.reader import Reader
from finalist.study.storage.schema import arms, events, rewards, studies

#: The events that bring rewards.
_TELLING = ("told", "amended")
_MOST = 20


def problems(connection: Connection, where: str) -> list[str]:
    """Return what is wrong, one line each; nothing if all is well."""
    reader = _Checker(connection, where)
    if connection.dialect.name == "sqlite":
        reader.check(reader.check_file)
        reader.check(reader.check_keys)
    reader.check(reader.check_studies)
    return reader.found


def check_index(connection: Connection, where: str) -> None:
    """Refuse a file whose index of client ids is not that of its events, as they are now.

    An id that the index does not have would be taken for a new one, and its rewards again.
    """
    if connection.dialect.name != "sqlite":
        return
    sums = "SELECT count(*), total(rowid), total(length(client)) FROM events"
    with errors(where):
        by_index, by_events = (
            connection.exec_driver_sql(f"{sums} {how} WHERE client IS NOT NULL").one()
            for how in ("INDEXED BY events_client", "NOT INDEXED")
        )
    if tuple(by_index) != tuple(by_events):
        raise damaged(where, "its index of client ids is not that of its events")


class _Checker(Reader):
    """Reads everything, as reading compares with the checksums."""

    def __init__(self, connection: Connection, where: str) -> None:
        super().__init__(connection, where)
        self.found: list[str] = []

    def check(self, step: Callable[[], object]) -> None:
        """Do one step and keep what it finds."""
        try:
            step()
        except (StorageError, StudyError) as error:
            self.found.append(str(error))

    def check_file(self) -> None:
        """Let SQLite look through the pages of its file."""
        rows = self._driver(f"PRAGMA integrity_check({_MOST})")
        self.found.extend(f"{self._where}: {row[0]}" for row in rows if row[0] != "ok")

    def check_keys(self) -> None:
        """Look for rows whose study or event is not there."""
        rows = self._driver("PRAGMA foreign_key_check")
        self.found.extend(
            f"{self._where}: a row of {row[0]} belongs to none of {row[2]}" for row in rows[:_MOST]
        )

    def _driver(self, query: str) -> list[tuple[str, ...]]:
        rows = self._guard(lambda: self._connection.exec_driver_sql(query).all())
        return [tuple(row) for row in rows]

    def check_studies(self) -> None:
        """Read all studies, one after the other."""
        for row in self._all(select(studies.c.id, studies.c.name).order_by(studies.c.id)):
            before = len(self.found)
            self.check(lambda row=row: self.study(row.name))
            self._check_study(row.id)
            name = printable(str(row.name), 60)
            self.found[before:] = [f"study {name!r}: {text}" for text in self.found[before:]]

    def _check_study(self, study_id: int) -> None:
        stages: list[int] = []
        query = select(arms.c.stage).where(arms.c.study == study_id)
        self.check(lambda: stages.extend(row.stage for row in self._all(query)))
        for stage in stages:
            self.check(lambda stage=stage: self.arms(study_id, stage))
        self.check(lambda: self.events(study_id))
        self.check(lambda: self.rewards(study_id))
        self.check(lambda: self.notes(study_id))
        self.check(lambda: self._check_kinds(study_id))

    def _check_kinds(self, study_id: int) -> None:
        joined = rewards.join(
            events, (events.c.study == rewards.c.study) & (events.c.number == rewards.c.event)
        )
        query = (
            select(events.c.number, events.c.kind, func.count().label("rows"))
            .select_from(joined)
            .where(events.c.study == study_id, events.c.kind.not_in(_TELLING))
            .group_by(events.c.number, events.c.kind)
        )
        self.found.extend(
            f"{self._where}: event {row.number} ({row.kind}) has {row.rows} rewards"
            for row in self._all(query)
        )
