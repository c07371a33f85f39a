"""The cells of a table, with the place of each, as they stand in a file or a data frame."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import cached_property

import numpy as np
from jaxtyping import Float

from finalist.errors import FileFormatError
from finalist.tables import numbers
from finalist.text import first_few, show

#: Text of a file is a `str`; cells of sheets and data frames have types. A blank cell is None.
Cell = str | int | float | date | time | timedelta | None
_BREAK = re.compile("\r\n|\r|\n")


@dataclass(frozen=True)
class Dialect:
    """What the user says of a file; None means that it is found out.

    Attributes
    ----------
    delimiter : str or None
        The character between two cells of a text file.
    decimal : "." or "," or None
    encoding : str or None
        Of a text file: "utf-8", "windows-1252", ...
    sheet : str or None
        The name of a sheet, or its number from 1.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise FileFormatError(f"the decimal sign is {self.decimal!r}; it is '.' or ','.")
        if self.delimiter is not None and self.delimiter.lower() in ("tab", "\\t"):
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise FileFormatError(
                f"the delimiter is {self.delimiter!r}; it is one character, such as ';', or 'tab'."
            )
        if self.delimiter is not None and self.delimiter == self.decimal:
            raise FileFormatError(f"{self.decimal!r} is the delimiter and the decimal sign.")


@dataclass(frozen=True, eq=False)
class Cells:
    r"""A table with named columns.

    Attributes
    ----------
    names : tuple of str
        Those of the columns, without spaces around.
    columns : tuple of tuples
        The cells of each column; None where nothing is.
    lines : sequence of int
        Of each row, the line of the file on which it starts, or its number in a sheet or frame.
    source : str
        The file; empty for a data frame.
    word : "line" or "row"
    header : int
        The line with the names.
    decimal : "." or ","
    read_as : str
        What was found out about a file: "semicolons, decimal comma, Windows-1252".
    remarks : tuple of str
        What was left out, as sentences.
    headers : tuple of str
        The names with the spaces around them.

    Examples
    --------
    >>> from finalist.tables import read
    >>> table = read(b"Name;Dose\nA;1,5\nB;\n")
    >>> table.read_as, table.names, table.columns
    ('semicolons, decimal comma', ('Name', 'Dose'), (('A', 'B'), ('1,5', None)))
    >>> table.numbers("Dose"), table.where(1, "Dose")
    (array([1.5, nan]), "the table, line 3, column 'Dose'")
    """

    names: tuple[str, ...]
    columns: tuple[tuple[Cell, ...], ...]
    lines: Sequence[int]
    source: str = ""
    word: str = "row"
    header: int = 0
    decimal: str = "."
    read_as: str = ""
    remarks: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}

    def __contains__(self, column: object) -> bool:
        return column in self._index

    def column(self, name: str) -> tuple[Cell, ...]:
        """Return the cells of a column."""
        if name not in self._index:
            raise FileFormatError(
                f"{self.top()}there is no column {show(name)}. The columns are "
                f"{first_few([show(one) for one in self.names], 20)}."
            )
        return self.columns[self._index[name]]

    def top(self) -> str:
        """Return where the names of the columns are, as the beginning of a message."""
        return f"{self.source}, {self.word} {self.header}: " if self.source else ""

    def where(self, i: int, column: str | None = None) -> str:
        """Name a row, or one of its cells."""
        line = self.lines[i]
        if column is not None and self.word == "line":  # the cells before it may have several lines
            before = (cells[i] for cells in self.columns[: self._index[column]])
            line += sum(len(_BREAK.findall(cell)) for cell in before if isinstance(cell, str))
        place = (
            f"{self.word} {line}" if column is None else f"{self.word} {line}, column {column!r}"
        )
        return f"{self.source}, {place}" if self.source else place

    def number(self, cell: Cell) -> float:
        """Return the number in a cell of this table, nan if it is not plainly one."""
        return numbers.of_cell(cell, self.decimal)

    def numbers(self, name: str) -> Float[np.ndarray, " N"]:
        """Return a column as numbers, nan where a cell is blank or not plainly a number."""
        return numbers.of_cells(self.column(name), self.decimal)

    def text(self, cell: Cell) -> str:
        """Return a cell as text for people; whole numbers without a decimal point.

        Examples
        --------
        >>> [Cells((), (), ()).text(cell) for cell in (1.0, 2.5, True, "a", None)]
        ['1', '2.5', 'yes', 'a', '']
        """
        if cell is None:
            return ""
        if isinstance(cell, bool):
            return "yes" if cell else "no"
        if isinstance(cell, float) and math.isfinite(cell) and cell == int(cell):
            return str(int(cell))
        return str(cell)
