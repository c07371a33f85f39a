"""Text files and pasted cells: their encoding and delimiter, found out from the whole text."""

import codecs
import csv
import io
import re
from collections.abc import Collection
from typing import NamedTuple

from finalist.errors import FileFormatError, UnclearTableError
from finalist.tables import numbers
from finalist.tables.cells import Dialect
from finalist.text import show

#: What may stand between two cells, with its name.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
#: A first line that says what is between cells, as Excel reads and writes it.
_SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?\r?\n')
#: Characters that hold the first two lines.
_HEAD = 2**20
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
#: What encodings of text are called by Python, to begin with; others decode other things.
_ENCODINGS = ("utf-8", "utf-16", "utf-32", "cp", "iso", "ascii", "mac", "koi8", "gb", "big5",
              "shift", "euc", "johab")  # fmt: skip
_SHOWN = {"utf-8-sig": "UTF-8", "utf-8": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}


class Rows(NamedTuple):
    """A text cut into cells.

    Attributes
    ----------
    lines : list of int
        The line on which each row starts.
    rows : list of lists of str
        Rows with something in them; the first has the names of the columns.
    blank : int
        Blank rows between others, which are left out.
    delimiter : str
        Empty if there is only one column.
    """

    lines: list[int]
    rows: list[list[str]]
    blank: int
    delimiter: str


def decode(content: bytes, name: str, encoding: str | None) -> tuple[str, str]:
    r"""Return a text and the name of its encoding.

    Without a byte-order mark it is UTF-8 if that is possible, UTF-16 if every other byte is 0, or
    else Windows-1252.

    Examples
    --------
    >>> decode("Öl".encode("cp1252"), "the table", None)
    ('Öl', 'Windows-1252')
    >>> decode("Öl".encode("utf-16"), "the table", None)
    ('Öl', 'UTF-16')
    """
    if encoding is not None:
        try:
            codec = codecs.lookup(encoding).name
            if not codec.startswith(_ENCODINGS):
                raise LookupError
            text = content.decode(encoding).removeprefix("\ufeff")
            if "\0" in text and not codec.startswith("utf-8"):
                raise UnicodeError("it has null characters")
            return text, _SHOWN.get(codec, encoding)
        except (LookupError, ValueError) as error:
            if isinstance(error, UnicodeError):
                raise FileFormatError(f"{name} is not {encoding} text ({error}).") from error
            raise FileFormatError(
                f"there is no encoding {encoding!r}; write utf-8, utf-16 or windows-1252."
            ) from None
    found = next((one for bom, one in _BOMS.items() if content.startswith(bom)), None)
    if found is None and content[1::2].count(0) > len(content) // 4:
        found = "utf-16-le"
    elif found is None and content[::2].count(0) > len(content) // 4:
        found = "utf-16-be"
    candidates = ("utf-8", "cp1252") if found is None else (found,)
    for one in candidates:
        try:
            text = content.decode(one)
        except UnicodeError:
            continue
        if one != "cp1252" or "\0" not in text:  # almost any bytes are Windows-1252
            return text, _SHOWN.get(one, "UTF-16")
    raise FileFormatError(
        f"{name} is not a table: it is neither a spreadsheet nor text in UTF-8, UTF-16 or "
        "Windows-1252. Save it as .xlsx or as 'CSV UTF-8'."
    )


def cut(text: str, name: str, dialect: Dialect, expected: Collection[str] = ()) -> Rows:
    """Cut a text into rows and cells; the delimiter is found out from all rows.

    Raises
    ------
    FileFormatError
        Two delimiters are possible, a quote does not end, or a row has more cells than the header.
    """
    if dialect.delimiter is not None:
        return _checked(_parse(text, dialect.delimiter, name), name)
    said = _SEPARATOR.match(text)
    if said is not None:  # Excel's own line
        rows = _checked(_parse(text[said.end() :], said[1], name), name)
        return rows._replace(lines=[line + 1 for line in rows.lines])
    start = text.lstrip("\r\n\t ,;|")
    if not start:
        raise _nothing(name)
    head = "".join(start[:_HEAD].splitlines(keepends=True)[:2])
    found: dict[str, Rows] = {}
    marks = [mark for mark in DELIMITERS if mark in head]
    marks = [mark for mark in marks if _names(text, mark, expected)] or marks
    for mark in marks:
        try:
            found[mark] = _parse(text, mark, name)
        except FileFormatError:
            if head.count(mark) == max(map(head.count, marks)):
                raise
    fitting = {mark: rows for mark, rows in found.items() if _fits(rows)}
    if len(fitting) > 1:
        clean = {m: rows for m, rows in fitting.items() if _is_clean(rows, {*fitting} - {m})}
        fitting = clean if len(clean) == 1 else fitting
    if len(fitting) > 1:
        raise _both(fitting, name)
    if fitting:
        return _checked(next(iter(fitting.values())), name)
    wide = {mark: rows for mark, rows in found.items() if len(rows.rows[0]) > 1}
    if wide or found:  # no row fits: the most likely delimiter names the row
        best = max(wide or found, key=lambda mark: len(found[mark].rows[0]))
        return _checked(found[best], name)
    return _checked(_parse(text, ",", name), name)._replace(delimiter="")


def _names(text: str, mark: str, expected: Collection[str]) -> bool:
    """Tell whether the header has an expected column, if this mark separates cells."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    try:
        header = next((row for row in rows if any(map(str.strip, row))), [])
    except csv.Error:
        return False
    return any(cell.strip().lower() in expected for cell in header)


def _fits(table: Rows) -> bool:
    """Tell whether there are several columns, and no row has more cells than the header."""
    width = len(table.rows[0]) if table.rows else 0
    return width > 1 and all(
        len(row) > 1 and not any(map(str.strip, row[width:])) for row in table.rows
    )


def _is_clean(table: Rows, others: set[str]) -> bool:
    """Tell whether no cell below the header has another delimiter in it, but in numbers."""
    for row in table.rows[1:]:
        for cell in row:
            if any(mark in cell for mark in others) and not numbers.kind_of(cell):
                return False
    return True


def _both(fitting: dict[str, Rows], name: str) -> UnclearTableError:
    readings = [
        f"with {DELIMITERS[mark]} the columns are {show(table.rows[0], 80)}"
        for mark, table in fitting.items()
    ]
    return UnclearTableError(
        f"{name} can be read in {len(readings)} ways: {'; '.join(readings)}. Say which:",
        [f"delimiter={_typed(mark)}" for mark in fitting],
    )


def _typed(mark: str) -> str:
    return "tab" if mark == "\t" else f"'{mark}'"


def _parse(text: str, delimiter: str, name: str) -> Rows:
    """Return the rows that are not blank, with the line on which each starts."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines: list[int] = []
    rows: list[list[str]] = []
    line, blank, waiting = 1, 0, 0
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                lines.append(line)
                rows.append(cells)
                blank, waiting = blank + waiting, 0
            elif rows:
                waiting += 1  # blank rows at the end are nothing to speak of
            line = reader.line_num + 1
    except csv.Error as error:
        raise FileFormatError(f"{name}, line {line}: {error}. Check the quotes.") from error
    return Rows(lines, rows, blank, delimiter)


def _nothing(name: str) -> FileFormatError:
    return FileFormatError(f"{name} is empty. It needs a line with the names of the columns.")


def _checked(table: Rows, name: str) -> Rows:
    """Make all rows as wide as the header; refuse wider ones."""
    if not table.rows:
        raise _nothing(name)
    header, width = table.rows[0], len(table.rows[0])
    for line, cells in zip(table.lines, table.rows, strict=True):
        if any(map(str.strip, cells[width:])):
            raise FileFormatError(_wide(name, line, cells, header, table))
        if len(cells) != width:  # spreadsheets leave out or add empty cells at the end
            cells[width:] = [""] * (width - len(cells))
    return table


def _wide(name: str, line: int, cells: list[str], header: list[str], table: Rows) -> str:
    told = f"{name}, line {line}: {len(cells)} cells, and the header has {len(header)}"
    if len(header) == 1:
        return (
            f"{told}, {show(header[0])}. If that is a title, remove it: the first line names the "
            "columns."
        )
    return (
        f"{told}, the last {show(header[-1])}. Put a cell that has {table.delimiter!r} in it in "
        "double quotes."
    )
