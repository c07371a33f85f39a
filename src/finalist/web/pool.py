"""A pool of open studies, for all threads of a server.

The database is opened once. A `Study` caches what it has read of the log and belongs to one thread
at a time; so handles are lent out, and the next request resumes where the last one stopped reading.
A reader takes a handle of its own and waits for nobody. A writer waits for the other writers of its
study, for at most half a minute; if many already wait, it fails at once.

Whatever is cached of a study belongs to a moment: the generation of the database and the number of
the last event. A file that replaces another, such as a backup, is a new generation: its events
have the same numbers but different contents.

URLs contain the numbers of studies, never their names, which may hold any character.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

from finalist.errors import UnknownStudyError
from finalist.files import printable
from finalist.study import Study
from finalist.study.databases import Database, StudyRow, locate
from finalist.web.limits import WorkLimit

#: Idle handles kept for the next request: of all studies together, and of one study.
MAX_IDLE, MAX_IDLE_EACH = 48, 2
#: Seconds that a writer waits for other writers of the same study.
WAIT = 30.0
#: Threads that write or wait to: of all studies, and of one; the others are left to readers.
MAX_WRITERS, MAX_WRITERS_EACH = 75, 50
_MANY = "too many are writing to {what} right now. Nothing was changed; try again in a moment."
#: The generation of the database and the number of the last event of a study.
Moment = tuple[str, int]


class Studies:
    """The studies of one database, for all threads of a server.

    Parameters
    ----------
    place : path-like or str
        A file (created if missing) or the address of PostgreSQL.
    """

    def __init__(self, place: str | PathLike[str]) -> None:
        self.place = place
        self._place = locate(place)
        self.shown = self._place.shown
        self._lock = threading.Lock()
        self._changing = WorkLimit(_MANY.format(what="these studies"), MAX_WRITERS, 0, 0.0)
        self._open = Database.open(place, create=True)
        self._file = self._place.identity()
        self._forget()

    def _forget(self) -> None:
        self.generation = secrets.token_hex(4)  # unique across restarts
        self._rows: dict[int, StudyRow] = {}
        self._idle: OrderedDict[int, list[Study]] = OrderedDict()
        self._writers: dict[int, _Writing] = {}

    def close(self) -> None:
        """Close the database."""
        self._open.close()

    # ---- all studies -----------------------------------------------------------------------

    def rows(self) -> list[StudyRow]:
        """Return the rows of all studies, by name."""
        database = self._database()
        with database.read() as reader:
            found = reader.studies()
        with self._lock:
            if database is self._open:
                self._rows = {row.id: row for row in found}
        return found

    def row(self, number: int) -> StudyRow:
        """Return the row of a study, which never changes."""
        self._database()
        row = self._rows.get(number)
        if row is None:
            row = next((row for row in self.rows() if row.id == number), None)
        if row is None:
            raise UnknownStudyError(
                f"there is no study number {number} in {self.shown}; it may have been deleted. "
                "See the list of studies."
            )
        return row

    def place_of(self, number: int) -> tuple[str | PathLike[str], str, StudyRow]:
        """Return what another process needs to open a study."""
        row = self.row(number)  # first: this notices a replaced file
        return self.place, self.generation, row

    def lasts(self) -> dict[int, int]:
        """Return the number of the last event of every study, by the study's number."""
        with self._database().read() as reader:
            return reader.lasts()

    def last(self, number: int) -> int:
        """Return the number of the last event of a study."""
        with self._database().read() as reader:
            return reader.last(number)

    def moment(self, number: int) -> Moment:
        """Return the current moment of a study; what is read now is valid until it changes."""
        last = self.last(number)  # first: this notices a replaced file
        return self.generation, last

    def number(self, name: str) -> int:
        """Return the number of a study, by its name."""
        with self._database().read() as reader:
            return reader.study(name).id

    # ---- one study -------------------------------------------------------------------------

    @contextmanager
    def reading(self, number: int) -> Iterator[Study]:
        """Lend a study for reading; no one waits for it or is waited for."""
        row, database = self.row(number), self._database()
        with self._lock:
            handles = self._idle.get(number)
            study = handles.pop() if handles else Study(database, row)
        try:
            yield study
        except UnknownStudyError:
            self.drop(number)
            raise
        with self._lock:
            if database is self._open and number in self._rows:
                self._keep(number, study)

    def _keep(self, number: int, study: Study) -> None:
        handles = self._idle.setdefault(number, [])
        if len(handles) < MAX_IDLE_EACH:
            handles.append(study)
        self._idle.move_to_end(number)
        while sum(map(len, self._idle.values())) > MAX_IDLE:
            self._idle.popitem(last=False)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Limit the number of writers, so that readers have threads too."""
        with self._changing.take():
            yield

    @contextmanager
    def writing(self, number: int) -> Iterator[Study]:
        """Lend a study for writing, to one thread at a time."""
        row = self.row(number)
        with self._lock:
            writing = self._writers.setdefault(number, _Writing(row.name))
        try:
            with self.changing(), writing.limit.take():
                yield writing.handle(self._database(), row)
        except UnknownStudyError:
            self.drop(number)
            raise
        finally:
            self._trim_writers()

    def _trim_writers(self) -> None:
        """Drop surplus idle writers; should a study get two of them, no harm is done."""
        with self._lock:
            surplus = max(len(self._writers) - MAX_IDLE, 0)
            for number in list(self._writers)[:surplus]:
                if not self._writers[number].limit.inside:
                    del self._writers[number]

    def delete(self, number: int) -> None:
        """Delete a study permanently."""
        row = self.row(number)
        with self.changing(), Study.open(self.place, row.name) as study:
            if (study.number, study.created) != (row.id, row.created):  # another took its name
                self.drop(number)
                self.row(number)  # raises
            study.delete()
        self.drop(number)

    def drop(self, number: int) -> None:
        """Forget a study that was deleted."""
        with self._lock:
            self._rows.pop(number, None)
            self._idle.pop(number, None)
            self._writers.pop(number, None)

    # ---- the database ----------------------------------------------------------------------

    def _database(self) -> Database:
        """Return the database; a file that was replaced is opened again."""
        if self._place.identity() == self._file:  # None for a server
            return self._open
        with self._lock:
            now = self._place.identity()
            if now != self._file:
                fresh = Database.open(self.place)
                self._forget()  # first: the new file must not pass as the old generation
                self._open.close()
                self._open, self._file = fresh, now
        return self._open


class _Writing:
    """The handle that writes to a study, and the limit that guards it."""

    def __init__(self, name: str) -> None:
        message = _MANY.format(what=f"study {printable(name, 100)!r}")
        self.limit = WorkLimit(message, 1, MAX_WRITERS_EACH - 1, WAIT)
        self._study: tuple[Database, Study] | None = None

    def handle(self, database: Database, row: StudyRow) -> Study:
        """Return the handle; a database that was opened again has a new one."""
        if self._study is None or self._study[0] is not database:
            self._study = database, Study(database, row)
        return self._study[1]
