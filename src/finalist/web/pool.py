"""How a request gets at a study.

The database is open once for all threads. A `Study` belongs to one thread at a time, as it keeps
what it has read of the log; so handles are lent out, and the next request goes on where the last
one stopped reading. Whoever only looks takes a handle of its own and waits for nobody. Whoever
writes to a study waits for the others who do, for at most half a minute; if many wait already, it
is told so at once.

What is kept of a study belongs to a moment of it: the generation of the database and the number of
the last event. A file that takes the place of another, as a backup does, is a new generation: its
events have the same numbers and say other things.

Studies are known by their numbers: names may hold anything, and no name comes into an address.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from finalist.errors import StorageError, UnknownStudyError
from finalist.files import printable
from finalist.study import Study
from finalist.study.log import Log
from finalist.study.storage.database import Database, StudyRow
from finalist.study.storage.files import identity, locate
from finalist.web.limits import Turns

#: Handles kept for the next request, of all studies together and of one study.
MAX_IDLE, MAX_IDLE_EACH = 48, 2
#: Seconds to wait for others who write to the same study.
WAIT = 30.0
#: Threads that write or wait to, of all studies and of one; all the others are left to who looks.
MAX_WRITERS, MAX_WRITERS_EACH = 75, 50
_MANY = "many are writing to {what} at this moment. Nothing was changed; try again in a moment."
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
        self.shown = locate(place).shown
        self._path = locate(place).path
        self._lock = threading.Lock()
        self._changing = Turns(_MANY.format(what="these studies"), MAX_WRITERS, 0, 0.0)
        self._open = Database.open(place, create=True)
        self._file = self._identity()
        self._forget()

    def _forget(self) -> None:
        self.generation = secrets.token_hex(4)  # none comes twice, also after a restart
        self._rows: dict[int, StudyRow] = {}
        self._idle: OrderedDict[int, list[Study]] = OrderedDict()
        self._writers: dict[int, _Writing] = {}

    def close(self) -> None:
        """Close the database."""
        self._open.close()

    # ---- looking at all of them ------------------------------------------------------------

    def rows(self) -> list[StudyRow]:
        """Return all studies, by name."""
        database = self._database()
        with database.read() as reader:
            found = reader.studies()
        with self._lock:
            if database is self._open:
                self._rows = {row.id: row for row in found}
        return found

    def row(self, number: int) -> StudyRow:
        """Return a study by its number; neither its name nor its settings ever change."""
        self._database()
        row = self._rows.get(number)
        if row is None:
            row = next((row for row in self.rows() if row.id == number), None)
        if row is None:
            raise UnknownStudyError(
                f"there is no study with the number {number} in {self.shown}; it may have been "
                "deleted. The list of studies has the others."
            )
        return row

    def place_of(self, number: int) -> tuple[str | PathLike[str], str, StudyRow]:
        """Return where another process finds a study."""
        row = self.row(number)  # first: this notices a new file
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
        """Return until when whatever is read of a study now stays true."""
        last = self.last(number)  # first: this notices a new file
        return self.generation, last

    def number(self, name: str) -> int:
        """Return the number of the study of a name."""
        with self._database().read() as reader:
            return reader.study(name).id

    # ---- one of them -----------------------------------------------------------------------

    @contextmanager
    def reading(self, number: int) -> Iterator[Study]:
        """Lend a study to look at; it waits for nobody, and nobody waits for it."""
        row = self.row(number)
        with self._lock:
            handles = self._idle.get(number)
            study = handles.pop() if handles else None
        if study is None:
            study = self._handle(row)
        database = study._log.database
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
        """Write something, unless too many do: who looks needs threads too."""
        with self._changing.take():
            yield

    @contextmanager
    def writing(self, number: int) -> Iterator[Study]:
        """Lend a study to write to; one thread at a time has it."""
        row = self.row(number)
        with self._lock:
            writing = self._writers.setdefault(number, _Writing(row.name))
        try:
            with self.changing(), writing.turns.take():
                if writing.study is None or writing.study._log.database is not self._open:
                    writing.study = self._handle(row)
                yield writing.study
        except UnknownStudyError:
            self.drop(number)
            raise
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Keep few handles that write; a study that gets two of them comes to no harm."""
        with self._lock:
            surplus = max(len(self._writers) - MAX_IDLE, 0)
            for number in list(self._writers)[:surplus]:
                if not self._writers[number].turns.inside:
                    del self._writers[number]

    def delete(self, number: int) -> None:
        """Delete a study for good."""
        row = self.row(number)
        with self.changing(), Study.open(self.place, row.name) as study:
            if study._log.row != row:  # deleted, and another has its name
                self.drop(number)
                self.row(number)  # says so
            study.delete()
        self.drop(number)

    def drop(self, number: int) -> None:
        """Forget a study, because it was deleted."""
        with self._lock:
            self._rows.pop(number, None)
            self._idle.pop(number, None)
            self._writers.pop(number, None)

    def _handle(self, row: StudyRow) -> Study:
        return Study(Log(self._database(), row, self.place))

    # ---- the database ----------------------------------------------------------------------

    def _database(self) -> Database:
        """Return the database; a file that was replaced, as by a backup, is opened anew."""
        if self._path is None or self._identity() == self._file:
            return self._open
        with self._lock:
            now = self._identity()
            if now != self._file:
                fresh = Database.open(self.place)
                self._forget()  # first: nobody may take the new file for the old generation
                self._open.close()
                self._open, self._file = fresh, now
        return self._open

    def _identity(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            return identity(Path(self._path))
        except OSError as error:
            raise StorageError(
                f"{self.shown} is no longer there: it was moved or deleted. Put it back, with the "
                "file that ends in -wal if there is one."
            ) from error


class _Writing:
    """The one handle that writes to a study, and who has it."""

    def __init__(self, name: str) -> None:
        words = _MANY.format(what=f"study {printable(name, 100)!r}")
        self.turns = Turns(words, 1, MAX_WRITERS_EACH - 1, WAIT)
        self.study: Study | None = None
