"""A preview of an uploaded table of arms: what was found in it, with errors marked in place."""

import base64
import binascii
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from finalist import tables
from finalist.arms import Arms
from finalist.arms.reading import with_names_alone
from finalist.arms.recipes import Recipe
from finalist.arms.table import ArmsTable, read_candidates
from finalist.errors import ArmsError, FinalistError, TooLargeError, UnclearTableError
from finalist.files import printable
from finalist.shapes import Bool
from finalist.tables import Cells, Dialect
from finalist.tables.columns import NO, YES, Column, columns_of, with_role
from finalist.web.uploads import LIMITS

#: Bytes of a table of arms that the page accepts; larger ones are for the command line.
MAX_BYTES = 700_000
#: Arms without features that the page accepts, and rows of a table that it shows.
MAX_UNRELATED, MAX_ROWS = 2_000, 12
#: Rows with bad cells that are shown.
MAX_BAD = 20


@dataclass(frozen=True)
class Reading:
    """How somebody wants a table to be read; what is left out is found out.

    Attributes
    ----------
    roles : mapping of str to str, optional
        The roles of some columns.
    like : Recipe, optional
        Read it as other arms were, instead.
    """

    roles: Mapping[str, str] | None = None
    dialect: Dialect = field(default_factory=Dialect)
    model: str = "straight"
    intercept: bool = True
    drop_incomplete: bool = False
    like: Recipe | None = None


@dataclass(frozen=True)
class PreviewCell:
    """A cell of the preview."""

    text: str
    bad: bool = False


@dataclass(frozen=True)
class PreviewRow:
    """A row of the preview, with the line of the file on which it starts."""

    line: int
    cells: tuple[PreviewCell, ...]


@dataclass(frozen=True, eq=False)
class Preview:
    """What was found in a table.

    Attributes
    ----------
    packed : str
        The file as text, to be sent back by the form.
    problem : FinalistError or None
        What is wrong, with line and column.
    table : ArmsTable or None
        None if something is wrong.
    columns : tuple of Column
        What each column is for.
    rows : tuple of PreviewRow
        The first ones, and those with a bad cell.
    count : int
        Rows in all.
    word : "line" or "row"
    """

    packed: str
    problem: FinalistError | None = None
    table: ArmsTable | None = None
    columns: tuple[Column, ...] = ()
    rows: tuple[PreviewRow, ...] = ()
    count: int = 0
    read_as: str = ""
    remarks: tuple[str, ...] = ()
    word: str = "line"

    @property
    def error(self) -> str | None:
        """What is wrong, in words for the page: how to read an unclear table is asked there."""
        if isinstance(self.problem, UnclearTableError):
            return f"{self.problem.reason.removesuffix(':')} below."
        return None if self.problem is None else str(self.problem)

    @property
    def arms(self) -> Arms | None:
        """The arms, if nothing is wrong."""
        return None if self.table is None else self.table.arms

    @property
    def label(self) -> str | None:
        """The column with the names."""
        return next(iter(with_role(self.columns, "name")), None)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that describe the arms."""
        return tuple(c.name for c in self.columns if c.role in ("number", "category", "yes/no"))

    @property
    def unrelated(self) -> bool:
        """Whether the arms have names only."""
        return self.arms is not None and not self.features

    @property
    def merged(self) -> list[tuple[str, ...]]:
        """Groups of names with the same features: each is one arm."""
        return [] if self.arms is None else [names for names in self.arms.aliases if len(names) > 1]


def pack(content: bytes) -> str:
    """Return a table as text that a form can send back unchanged."""
    return base64.b64encode(content).decode()


def unpack(packed: str) -> bytes:
    """Return the table that was packed.

    Examples
    --------
    >>> unpack(pack(b"name,x"))
    b'name,x'
    """
    try:
        return base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        raise ArmsError(
            "the table did not come back as it was sent. Choose the file again."
        ) from None


def preview(content: bytes, name: str = "the table", reading: Reading | None = None) -> Preview:
    r"""Preview a table of arms.

    Examples
    --------
    >>> found = preview(b"name,dose\na,1\nb,x\nc,2\n")
    >>> found.label, found.features, [[cell.bad for cell in row.cells] for row in found.rows]
    ('name', ('dose',), [[False, False], [False, True], [False, False]])
    >>> preview(b"oak\nash\n").arms.names
    ('oak', 'ash')
    >>> preview(b"name,dose,price\na,1,5\nb,2,7\n", reading=Reading({"price": "cost"})).features
    ('dose',)
    """
    reading = reading or Reading()
    if len(content) > MAX_BYTES:
        raise ArmsError(
            f"the table has {len(content):,} bytes; the page accepts {MAX_BYTES:,}. Create larger "
            "studies with the command 'finalist new'; the page shows them like all others."
        )
    if not content.strip():
        raise ArmsError("there is no table. Choose a file, or paste the cells.")
    packed = pack(content)
    try:
        cells = tables.read(content, reading.dialect, name=name, limits=LIMITS)
        with suppress(FinalistError):  # said below, with the table
            cells = with_names_alone(cells)
        columns = columns_of(cells, reading.roles)
    except TooLargeError:
        raise
    except FinalistError as error:
        return Preview(packed, error)
    table = error = None
    try:
        table = _read(cells, name, reading)
    except FinalistError as problem:
        error = problem
    if table is not None:
        columns = table.columns
    return Preview(
        packed,
        error,
        table,
        columns,
        _rows(cells, columns, error is not None),
        len(cells),
        cells.read_as,
        cells.remarks if table is None else table.remarks,
        cells.word,
    )


def _read(cells: Cells, name: str, reading: Reading) -> ArmsTable:
    table = read_candidates(
        cells,
        reading.roles,
        model=reading.model,
        intercept=reading.intercept,
        drop_incomplete=reading.drop_incomplete,
        like=reading.like,
        limits=LIMITS,
    )
    K = len(table.arms)
    if K > MAX_UNRELATED and len(table.arms.feature_names) == K:
        raise ArmsError(
            f"{name} has {K:,} candidates that share nothing; the page accepts "
            f"{MAX_UNRELATED:,}. Describe them by columns."
        )
    return table


def _rows(cells: Cells, columns: tuple[Column, ...], wrong: bool) -> tuple[PreviewRow, ...]:
    bad = {c.name: _bad(cells, c) for c in columns} if wrong else {}
    worst = np.flatnonzero(np.logical_or.reduce([*bad.values()])) if bad else np.array([], int)
    shown = sorted({*range(min(MAX_ROWS, len(cells))), *worst[:MAX_BAD].tolist()})

    def cell(i: int, name: str) -> PreviewCell:
        text = printable(cells.text(cells.column(name)[i]), 60)
        return PreviewCell(text, name in bad and bool(bad[name][i]))

    return tuple(
        PreviewRow(cells.lines[i], tuple(cell(i, name) for name in cells.names)) for i in shown
    )


def _bad(cells: Cells, column: Column) -> Bool[np.ndarray, " N"]:
    """Return which cells cannot be used as what their column is for."""
    values = cells.column(column.name)
    if column.role in ("number", "noise", "cost"):
        numbers = cells.numbers(column.name)
        return np.isnan(numbers) if column.role == "number" else ~(numbers > 0.0)
    if column.role in ("yes/no", "measurable"):
        known = YES | NO | (frozenset({""}) if column.role == "measurable" else frozenset())
        return np.array([cells.text(cell).strip().lower() not in known for cell in values])
    if column.role in ("name", "category"):
        return np.array([cell is None for cell in values], dtype=bool)
    return np.zeros(len(cells), dtype=bool)
