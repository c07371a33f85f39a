"""The one reader of tables: what kind of file it is, its dialect, its header and its rows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from finalist.errors import FileFormatError, TooLargeError, UnclearTableError
from finalist.tables import sheets, text
from finalist.tables.cells import Cell, Cells, Dialect
from finalist.tables.escaping import unescape
from finalist.tables.frames import PARQUET, frame_columns, read_parquet
from finalist.tables.numbers import Decimal, number
from finalist.text import counted, show

_WORDS = {".": "decimal point", ",": "decimal comma"}


@dataclass(frozen=True)
class Limits:
    """How much is read: bytes of a file, rows below the header, and cells."""

    content: int = 2**30
    rows: int = 10**7
    cells: int = 10**8


def read(
    source: Any,
    dialect: Dialect | None = None,
    *,
    name: str = "the table",
    limits: Limits | None = None,
    expected: Collection[str] = (),
) -> Cells:
    r"""Read a table from a file, from the bytes of one, or from a data frame.

    The first row names the columns. What kind of file it is shows in its content: .xlsx, .ods,
    Parquet, or text, in which encoding, delimiter and decimal sign are found out from all of it.

    Parameters
    ----------
    dialect : Dialect, optional
        What is not to be found out.
    name : str
        What errors call the table if bytes are given.
    expected : collection of str
        Columns that the table should have, in lower case. A header that names them settles the
        delimiter, and numbers in other columns do not settle the decimal sign.

    Raises
    ------
    FileFormatError
        It is not a table, or can be read in two ways: the message shows both.
    TooLargeError
        It is beyond the limits.

    Examples
    --------
    >>> read(b"name\tdose\n\nA\t1\nB\t2\n").read_as
    'tabs'
    >>> read(b"name;dose\nA;1.000\nB;2.500\n")
    Traceback (most recent call last):
    finalist.errors.UnclearTableError: the table, line 2, column 'dose': '1.000' is 1 with a decimal
    point and 1000 with a decimal comma... Say which: decimal=. or decimal=,.
    """
    dialect, limits = dialect or Dialect(), limits or Limits()
    if isinstance(source, str | PathLike):
        path = Path(source)
        if path.suffix.lower() in (".xlsm", ".xltm", ".xlam", ".xlsb"):
            raise FileFormatError(f"{path} may have macros. Save it as .xlsx, which has none.")
        name = str(source)
        _check_bytes(path.stat().st_size, name, limits)
        source = path.read_bytes()
    if isinstance(source, bytes):
        _check_bytes(len(source), name, limits)
        return _of_bytes(source, dialect, name, limits, expected)
    return _of_frame(source, dialect, "", limits, expected)


def _check_bytes(size: int, name: str, limits: Limits) -> None:
    if size > limits.content:
        raise TooLargeError(f"{name} has {size:,} bytes; the limit is {limits.content:,}.")


def _check_rows(rows: int, columns: int, name: str, limits: Limits) -> None:
    if rows > limits.rows or rows * columns > limits.cells:
        raise TooLargeError(
            f"{name or 'the table'} has {rows:,} rows and {columns:,} columns; the limits are "
            f"{limits.rows:,} rows and {limits.cells:,} cells."
        )


def _of_bytes(
    content: bytes, dialect: Dialect, name: str, limits: Limits, expected: Collection[str]
) -> Cells:
    if content.startswith(PARQUET):
        frame = read_parquet(content, name, lambda r, c: _check_rows(r, c, name, limits))
        return _of_frame(frame, dialect, name, limits, expected)
    if content.startswith(sheets.OLD):
        raise FileFormatError(
            f"{name} is a file of an old version of Excel, or has a password. Save it as .xlsx."
        )
    if content.startswith(sheets.ZIP):
        sheet = sheets.read_sheet(content, name, dialect.sheet)
        return _of_sheet(sheet, dialect, name, limits, expected)
    if dialect.sheet is not None:
        raise FileFormatError(f"{name} is a text file; only spreadsheets have sheets.")
    return _of_text(content, dialect, name, limits, expected)


# --- each kind of source --------------------------------------------------------------------


def _of_frame(
    frame: Any, dialect: Dialect, name: str, limits: Limits, expected: Collection[str]
) -> Cells:
    found = frame_columns(frame)
    if found is None:
        raise FileFormatError(
            f"a table is a file or a data frame, not {show(frame)} ({type(frame).__name__})."
        )
    names, columns = found
    rows = len(columns[0]) if columns else 0
    _check_rows(rows, len(names), name, limits)
    stripped = tuple(one.strip() for one in names)
    table = Cells(stripped, tuple(columns), range(1, rows + 1), name, headers=tuple(names))
    return _settled(_tidy(table), dialect, expected)


def _of_text(
    content: bytes, dialect: Dialect, name: str, limits: Limits, expected: Collection[str]
) -> Cells:
    decoded, encoding = text.decode(content, name, dialect.encoding)
    lines_at_least = max(decoded.count("\n"), decoded.count("\r"))
    _check_rows(lines_at_least - 1, 1, name, limits)  # before it is cut into cells
    lines, rows, blank, delimiter = text.cut(decoded, name, dialect, expected)
    _check_rows(len(rows) - 1, len(rows[0]), name, limits)
    headers = tuple(map(unescape, rows[0]))
    table = Cells(
        tuple(header.strip() for header in headers),
        tuple(tuple(map(_cell, cells)) for cells in zip(*rows[1:], strict=True)),
        lines[1:],
        name,
        "line",
        lines[0],
        remarks=_blank(blank),
        headers=headers,
    )
    marks = (text.DELIMITERS.get(delimiter, repr(delimiter)),) if delimiter else ()
    after = () if encoding == "UTF-8" else (encoding,)
    return _settled(_tidy(table), dialect, expected, marks, after)


def _cell(cell: str) -> Cell:
    if cell[:1] == "'":
        return unescape(cell)
    return cell if cell and not cell.isspace() else None


def _of_sheet(
    sheet: sheets.Sheet, dialect: Dialect, name: str, limits: Limits, expected: Collection[str]
) -> Cells:
    """Make a table of the rows of a sheet; the first that is not blank names the columns."""
    kept = [i for i, row in enumerate(sheet.rows) if any(cell is not None for cell in row)]
    if not kept:
        raise FileFormatError(f"{name}, {sheet.said}: it is empty.")
    header, *rows = (sheet.rows[i] for i in kept)
    _check_rows(len(rows), len(header), name, limits)
    _refuse_title(header, rows, f"{name}, row {kept[0] + 1}")
    headers = tuple("" if cell is None else unescape(str(cell)) for cell in header)
    table = Cells(
        tuple(one.strip() for one in headers),
        tuple(zip(*rows, strict=True)),
        [i + 1 for i in kept[1:]],
        name,
        "row",
        kept[0] + 1,
        remarks=_blank(kept[-1] - kept[0] + 1 - len(kept)),
        headers=headers,
    )
    return _settled(_tidy(table), dialect, expected, (), (sheet.said,))


def _refuse_title(header: list[Cell], rows: list[list[Cell]], where: str) -> None:
    filled = [cell for cell in header if cell is not None]
    widest = max((sum(cell is not None for cell in row) for row in rows), default=0)
    if len(filled) == 1 and widest > 2:
        raise FileFormatError(
            f"{where}: one cell, {show(filled[0])}, and up to {widest} in the rows below. If that "
            "is a title, remove it: the first row names the columns."
        )


# --- what all have in common ----------------------------------------------------------------


def _blank(rows: int) -> tuple[str, ...]:
    return (f"{counted(rows, 'blank row')} left out",) if rows else ()


def _tidy(table: Cells) -> Cells:
    """Leave out empty columns and a row number without a name; check the names of the others."""
    remarks = list(table.remarks)
    columns: dict[str, tuple[Cell, ...]] = {}
    places: dict[str, int] = {}
    cells_of = table.columns or ((),) * len(table.names)
    for j, (name, cells) in enumerate(zip(table.names, cells_of, strict=True), 1):
        if cells and not any(cell is not None for cell in cells):
            if name:
                remarks.append(f"column {show(name)}, which is empty, left out")
        elif not name and j == 1 and is_count(cells):
            remarks.append("column 1, a row number without a name, left out")
        elif not name and cells:
            raise FileFormatError(
                f"{table.top()}column {j} has no name, and cells below. Name it; header cells "
                "that were merged name one column only."
            )
        elif name in columns:
            raise FileFormatError(
                f"{table.top()}columns {places[name]} and {j} are both {show(name)}. Rename one."
            )
        elif name:
            columns[name], places[name] = cells, j
    if not columns:
        raise FileFormatError(f"{table.top()}there is no column with anything in it.")
    return replace(
        table,
        names=tuple(columns),
        columns=tuple(columns.values()),
        remarks=tuple(remarks),
        headers=tuple(table.headers[j - 1] for j in places.values()),
    )


def is_count(cells: Sequence[Cell]) -> bool:
    """Tell whether cells count rows: 0, 1, 2, ... or 1, 2, 3, ... in this order.

    Examples
    --------
    >>> is_count(["1", "2", "3"]), is_count([0.0, 1.0]), is_count(["01", "02"]), is_count([2, 1])
    (True, True, False, False)
    """
    first = _whole(cells[0]) if len(cells) > 1 else None
    return first in (0, 1) and all(_whole(c) == first + i for i, c in enumerate(cells))


def _whole(cell: Cell) -> int | None:
    if isinstance(cell, str):
        plain = cell.strip()[:18]
        leading = len(plain) > 1 and plain[0] == "0"
        return int(plain) if plain.isascii() and plain.isdigit() and not leading else None
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return None
    return int(cell) if cell == cell // 1 else None


def _settled(
    table: Cells,
    dialect: Dialect,
    expected: Collection[str],
    marks: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
) -> Cells:
    """Settle the decimal sign by all cells, if it is not given, and say how the table was read."""
    decimal = dialect.decimal or _decimal(table, expected, "commas" in marks)
    words = (*marks, *((_WORDS[decimal],) if decimal else ()), *after)
    read_as = ", ".join(words) if table.source else ""
    return replace(table, decimal=decimal or ".", read_as=read_as)


def _decimal(table: Cells, expected: Collection[str], commas: bool) -> str | None:
    """Return the decimal sign, None if no number has one; refuse two possible readings."""
    counting = [not expected or name.lower() in expected for name in table.names]
    pairs = zip(table.columns, counting, strict=True)
    seen = Decimal(cells if counts else () for cells, counts in pairs)

    def cell(place: tuple[int, int]) -> tuple[str, str]:
        j, i = place
        return table.where(i, table.names[j]), str(table.columns[j][i])

    if seen.point is not None and seen.comma is not None:
        (where, one), (there, other) = cell(seen.point), cell(seen.comma)
        raise UnclearTableError(
            f"{where}: {show(one)} has a decimal point, and {show(other)} a decimal comma "
            f"({there}). Correct one of them, or say which counts:",
            ("decimal=.", "decimal=,"),
        )
    # Points elsewhere may be of dates: they do not make thousands of commas.
    unsettled = seen.comma is None and not commas and seen.grouped is not None
    if not unsettled and (seen.point is not None or seen.comma is not None or seen.both is None):
        return "." if seen.point is not None else "," if seen.comma is not None else None
    open_ = seen.grouped if unsettled else seen.both
    assert open_ is not None
    where, one = cell(open_)
    if commas and "," not in one:
        return "."  # a file with commas between its cells has none in its numbers
    raise UnclearTableError(
        f"{where}: {show(one)} is {number(one, '.'):g} with a decimal point and "
        f"{number(one, ','):g} with a decimal comma, and no cell like it settles it. Say which:",
        ("decimal=.", "decimal=,"),
    )
