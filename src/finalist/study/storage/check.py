"""Look for damage in a whole database: everything is read and compared with its checksums."""

from collections.abc import Callable

from sqlalchemy import Connection, func, select

from finalist.errors import StorageError, StudyError
from finalist.files import printable
from finalist.study.storage.protocol import Dialect
from finalist.study.storage.reader import Reader
from finalist.study.storage.schema import arms, events, rewards, studies

#: The events that bring rewards.
_TELLING = ("told", "amended")


def problems(connection: Connection, dialect: Dialect) -> list[str]:
    """Return what is wrong, one line each; nothing if all is well."""
    reader = _Checker(connection, dialect)
    reader.check(lambda: reader.found.extend(dialect.problems(connection)))
    reader.check(reader.check_studies)
    return reader.found


class _Checker(Reader):
    """Reads everything, as reading compares with the checksums."""

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        super().__init__(connection, dialect)
        self.found: list[str] = []

    def check(self, step: Callable[[], object]) -> None:
        """Do one step and keep what it finds."""
        try:
            step()
        except (StorageError, StudyError) as error:
            self.found.append(str(error))

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
