"""Tables of cells, from a CSV file or a data frame, with the line of every row.

Nothing is guessed: a cell that is not plainly a number stays text, with the reason.
"""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.arms.files import unescape
from finalist.errors import FileFormatError, RewardError
from finalist.study.results.results import Unread
from finalist.text import show

if TYPE_CHECKING:
    import narwhals as nw

_ROLES = ("pull_id", "reward", "arm")
_DELIMITERS = (",", ";", "\t")
_BREAK = re.compile("\r\n|\r|\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d{1,19})(\.0*)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of cells.

    Attributes
    ----------
    names : list of str
        Those of the columns.
    columns : list of sequences
        Values, None where there is none; in a file, text as it stands there.
    lines : sequence of int
        The line on which each row starts; in a data frame, the number of the row.
    source : str
        The name of the file; empty for a data frame.
    header : int
        The line with the names.
    decimal : "." or ","
        The decimal mark in a file.
    """

    names: list[str]
    columns: list[Sequence[Any]]
    lines: Sequence[int]
    source: str = ""
    header: int = 1
    decimal: str = "."

    @classmethod
    def of(cls, columns: Mapping[Any, Sequence[Any]]) -> "Table":
        """Return a table of values by the names of columns; its rows have the numbers 1, 2, ..."""
        rows = range(1, len(next(iter(columns.values()), ())) + 1)
        return cls([str(name).strip() for name in columns], [*columns.values()], rows)

    @property
    def error(self) -> type[Exception]:
        """What is raised if it is not a table of results."""
        return FileFormatError if self.source else RewardError

    def roles(self, needed: Sequence[str]) -> dict[str, int]:
        """Return which columns hold what; refuse a table without a column that it needs."""
        where = f"{self.source}, line {self.header}: " if self.source else ""
        return find_columns(self.names, needed, self.error, where)

    def where(self, i: int, column: int | None = None) -> str:
        """Name a row, or one of its cells."""
        word, line = "line" if self.source else "row", self.lines[i]
        if column is None:
            return f"{word} {line}"
        if self.source:  # the cells before it may have several lines
            line += sum(len(_BREAK.findall(cells[i])) for cells in self.columns[:column])
        return f"{word} {line}, column {self.names[column]!r}"

    def numbers(self, cells: Sequence[Any], *, whole: bool = False) -> Sequence[Any] | np.ndarray:
        """Return numbers; what is not one stays as it is, in a file with the reason."""
        if self.source:
            return _parsed(cells, self.decimal, whole)
        return [_as_int(cell) for cell in cells] if whole else cells

    def texts(self, cells: Sequence[Any]) -> list[Any]:
        """Return text without the apostrophe against formulas; blank cells are None."""
        if self.source:
            return [(unescape(c) if c[0] == "'" else c) if c.strip() else None for c in cells]
        return [None if isinstance(c, str) and not c.strip() else c for c in cells]


def find_columns(
    names: Sequence[str], needed: Sequence[str], error: type[Exception], where: str = ""
) -> dict[str, int]:
    """Find columns by name, in any case and order; refuse one that is missing or there twice."""
    keys = [name.lower() if name.lower() in _ROLES else name for name in names]
    for j, key in enumerate(keys):
        if key and keys.index(key) != j:
            raise error(
                f"{where}columns {keys.index(key) + 1} and {j + 1} are both {show(names[j])}. "
                "Rename one."
            )
    for wanted in needed:
        if wanted not in keys:
            found = show(list(names), 200)
            raise error(f"{where}there is no column {wanted!r}; the columns are {found}.")
    return {key: j for j, key in enumerate(keys) if key in _ROLES}


# --- CSV ------------------------------------------------------------------------------------


def read_csv(
    source: str | PathLike[str] | bytes, *, decimal: str = ".", name: str = "the table"
) -> Table:
    """Read a CSV file, or the bytes of one, which errors then call `name`.

    It is UTF-8; commas, semicolons or tabs separate the cells. Cells that a spreadsheet left out
    at the end of a row are empty.
    """
    check_decimal(decimal, FileFormatError)
    if not isinstance(source, bytes):
        name, source = str(source), Path(source).read_bytes()
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(re.findall(b"\r\n|\r|\n", source[: error.start])) + 1
        raise FileFormatError(
            f"{name}, line {line}: this is not UTF-8 text. Save the file as 'CSV UTF-8'."
        ) from error
    delimiter = max(_DELIMITERS, key=lambda mark: _fitness(text, mark))
    try:
        lines, rows = _parse(text, delimiter)
    except FileFormatError as error:
        raise FileFormatError(f"{name}, {error}") from error
    if not rows:
        raise FileFormatError(f"{name}: the file is empty. It needs a line with column names.")
    header, width = rows[0], len(rows[0])
    for line, cells in zip(lines, rows, strict=True):
        if any(map(str.strip, cells[width:])):
            raise FileFormatError(
                f"{name}, line {line}: {len(cells)} cells, and the header has {width}, the last "
                f"{show(header[-1])}. Put a cell that has {delimiter!r} in it in double quotes."
            )
        if len(cells) != width:  # spreadsheets leave out or add empty cells at the end
            cells[width:] = [""] * (width - len(cells))
    names = [unescape(cell.strip()).strip() for cell in header]
    columns: list[Sequence[str]] = list(zip(*rows[1:], strict=True)) or [()] * width
    return Table(names, columns, lines[1:], name, lines[0], decimal)


def _parse(text: str, delimiter: str, most: int | None = None) -> tuple[list[int], list[list[str]]]:
    """Return the line on which each row starts, and its cells; blank rows are skipped."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines: list[int] = []
    rows: list[list[str]] = []
    line = 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                lines.append(line)
                rows.append(cells)
                if len(rows) == most:
                    break
            line = reader.line_num + 1
    except csv.Error as error:
        raise FileFormatError(f"line {line}: {error}. Check the quotes.") from error
    return lines, rows


def _fitness(text: str, delimiter: str) -> tuple[int, int]:
    """Return how well a delimiter splits the header: known columns, and columns."""
    try:
        _, rows = _parse(text, delimiter, most=1)
    except FileFormatError:
        return -1, 0
    names = [cell.strip().lower() for row in rows for cell in row]
    return len({*names} & {*_ROLES}), len(names)


def check_decimal(decimal: str, error: type[Exception]) -> None:
    """Raise if there is no such decimal mark."""
    if decimal not in (".", ","):
        raise error(f"decimal is {decimal!r}; it is '.' or ','.")


# --- numbers --------------------------------------------------------------------------------


def number(cell: str, decimal: str = ".") -> float:
    """Return the number in a cell, nan if it is not plainly one: no 1_000, no foreign digits.

    Examples
    --------
    >>> number(" -1,5e2", ","), number("1.5", ","), number("nan")
    (-150.0, nan, nan)
    """
    text = _dotted(cell, decimal)
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _dotted(cell: str, decimal: str) -> str:
    """Return a number as Python writes it; with a decimal comma, a point makes it invalid."""
    text = cell.strip()
    if decimal == ".":
        return text
    return "" if "." in text else text.replace(",", ".")


def _parsed(cells: Sequence[str], decimal: str, whole: bool) -> Sequence[Any] | np.ndarray:
    """Read a column of numbers: all at once if Python reads them as people do."""
    every = "".join(cells)
    if every.isascii() and "_" not in every:
        texts = cells if whole or decimal == "." else [_dotted(cell, decimal) for cell in cells]
        try:
            if whole:
                return np.fromiter(map(int, texts), np.int64, len(cells))
            found = np.fromiter(map(float, texts), np.float64, len(cells))
            if np.isfinite(found).all():
                return found
        except (ValueError, OverflowError):
            pass
    return [_pull(cell, decimal) if whole else _reward(cell, decimal) for cell in cells]


def _pull(cell: str, decimal: str) -> int | Unread:
    """Read a whole number, also from 3.0, as some spreadsheets write it."""
    match = _WHOLE.fullmatch(_dotted(cell, decimal))
    return Unread(cell, "is not the number of a pull") if match is None else int(match[1])


def _reward(cell: str, decimal: str) -> float | Unread:
    value, other = number(cell, decimal), "," if decimal == "." else "."
    if math.isfinite(value):
        return value
    if other not in cell:
        return Unread(cell, "is not a finite number")
    mark = "point" if decimal == "." else "comma"
    hint = f"; use decimal={other!r}" if math.isfinite(number(cell, other)) else ""
    return Unread(cell, f"is not a number with a decimal {mark} and nothing else{hint}")


# --- data frames ----------------------------------------------------------------------------


def read_frame(frame: "nw.DataFrame[Any]") -> Table:
    """Read a data frame of any library."""
    columns = []
    for j in range(len(frame.columns)):
        missing = frame[:, j].is_null().to_list()
        cells = zip(frame[:, j].to_list(), missing, strict=True)
        columns.append([None if gone else cell for cell, gone in cells])
    return Table.of(dict(zip(frame.columns, columns, strict=True)))


def _as_int(cell: Any) -> Any:
    """Turn 3.0 into 3: pandas turns integers into floats when one is missing."""
    if not isinstance(cell, float | np.floating):
        return cell
    value = float(cell)
    return int(value) if abs(value) <= 2**53 and value.is_integer() else cell
