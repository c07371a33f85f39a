"""The rows of a table whose columns have roles, read with the place of every mistake."""

from dataclasses import replace
from datetime import date, time, timedelta

import numpy as np

from finalist.arms.names import check_names
from finalist.errors import FileFormatError, UnclearTableError
from finalist.shapes import Bool, Float, Int
from finalist.tables.cells import Cell, Cells
from finalist.tables.columns import NO, YES, Column, Role, said, with_role
from finalist.tables.numbers import MISSING
from finalist.text import more, show

_AS_GIVEN = (
    "Here every column but the names is a feature. Categories, remarks and row numbers are for "
    "Arms.from_table, 'finalist new' and 'finalist plan'."
)


class Rows:
    """Rows of a table; reads columns by their roles, and says where a cell is wrong."""

    def __init__(self, cells: Cells, columns: tuple[Column, ...], given: bool = False) -> None:
        self.cells, self.columns, self.given = cells, columns, given
        self.remarks = list(cells.remarks)
        if not len(cells):
            raise FileFormatError(
                f"{cells.top()}there is no candidate below the header. Add one per line."
            )

    def of(self, role: Role) -> list[str]:
        """Return the columns with a role."""
        return with_role(self.columns, role)

    def missing(self, column: str, role: Role) -> Bool[np.ndarray, " N"]:
        """Return which cells of a column are missing: blank, or in numbers a word such as n/a."""
        words = MISSING if role in ("number", "noise", "cost") else frozenset()
        return np.array(
            [
                cell is None or (isinstance(cell, str) and cell.strip().lower() in words)
                for cell in self.cells.column(column)
            ]
        )

    def complete(self) -> "Rows":
        """Return the rows in which nothing is missing that is used."""
        used = [c for c in self.columns if c.role not in ("ignore", "measurable")]
        gone = np.logical_or.reduce([self.missing(c.name, c.role) for c in used])
        if not gone.any():
            return self
        kept = np.flatnonzero(~gone).tolist()
        some = replace(
            self.cells,
            columns=tuple(tuple(column[i] for i in kept) for column in self.cells.columns),
            lines=[self.cells.lines[i] for i in kept],
            remarks=(*self.cells.remarks, _left_out(self.cells, np.flatnonzero(gone))),
        )
        return Rows(some, self.columns)

    def names(self) -> tuple[str, ...] | None:
        """Return the names of the arms."""
        label = next(iter(self.of("name")), None)
        if label is None:
            return None
        for i, cell in enumerate(self.cells.column(label)):
            if isinstance(cell, date | time | timedelta):
                raise FileFormatError(
                    f"{self.cells.where(i, label)}: the name is the date {cell}. If a spreadsheet "
                    "has turned a name into a date, format the column as text and type it again."
                )
        texts = map(self.cells.text, self.cells.column(label))
        return check_names(texts, lambda i: self.cells.where(i, label), FileFormatError)

    def numbers(self, column: str) -> Float[np.ndarray, " N"]:
        """Return a column of numbers; refuse a cell that is missing or is not one."""
        values = self.cells.numbers(column)
        bad = np.flatnonzero(np.isnan(values))
        if bad.size:
            self.refuse(column, "number", bad)
        return values

    def refuse(self, column: str, role: Role, bad: Int[np.ndarray, " n"]) -> None:
        """Raise for cells that cannot be used as what their column is for."""
        missing = self.missing(column, role)[bad]
        if missing[0]:
            gone = bad[missing]
            i = int(gone[0])
            cell = self.cells.column(column)[i]
            what = "the cell is empty" if cell is None else f"{show(cell)} is no value"
            told = f"{self.cells.where(i, column)}: {what}{more(gone.size)}."
            if self.given:
                raise FileFormatError(f"{told} Fill it in or leave the candidate out.")
            raise UnclearTableError(
                f"{told} Fill it in, or leave out such candidates or this column:",
                ("drop-incomplete", said(column, "ignore")),
            )
        bad = bad[~missing]
        i = int(bad[0])
        where, found = self.cells.where(i, column), self.cells.column(column)[i]
        cell = f"the date {found}" if isinstance(found, date | time | timedelta) else show(found)
        if i == 0 and bad.size == 1 and len(self.cells) > 2 and role == "number":
            raise FileFormatError(
                f"{where}: {cell} is not a number, and all cells below are. If this is a second "
                "line of headers or units, remove it."
            )
        what = {"number": "a finite number", "yes/no": "yes or no"}.get(role, "a positive number")
        if self.given:
            text = bad.size == len(self.cells) and role == "number"
            advice = _AS_GIVEN if text else "Correct it or leave the candidate out."
            raise FileFormatError(f"{where}: {cell} is not {what}{more(bad.size)}. {advice}")
        other: tuple[Role, ...] = ("ignore", "category") if role == "number" else ("ignore",)
        raise UnclearTableError(
            f"{where}: {cell} is not {what}{more(bad.size)}. Correct it, or say what it is:",
            [said(column, one) for one in other],
        )

    def texts(self, column: str) -> tuple[Cell, ...]:
        """Return the levels of a category."""
        gone = np.flatnonzero(self.missing(column, "category"))
        if gone.size:
            self.refuse(column, "category", gone)
        cells = self.cells.column(column)
        texts = {str(cell).strip() for cell in cells}
        alike = {text.casefold() for text in texts}
        if len(alike) < len(texts):
            self.remarks.append(
                f"column {show(column)} has values that differ only in upper and lower case"
            )
        return self.levels(column)

    def levels(self, column: str) -> tuple[Cell, ...]:
        """Return the cells of a category as a table keeps them.

        With a decimal comma, "1,5" is the number 1.5: the same level as in a sheet or a frame.
        """
        cells, comma = self.cells.column(column), self.cells.decimal == ","
        found: list[Cell] = []
        for cell in cells:
            signs = comma and isinstance(cell, str) and ("," in cell or "." in cell)
            value = self.cells.number(cell) if signs else np.nan
            plain = cell if isinstance(cell, str | int | float | None) else str(cell)
            found.append(plain if np.isnan(value) else value)
        return tuple(found)

    def answers(self, column: str) -> tuple[Cell, ...]:
        """Return a column of yes and no."""
        cells = self.cells.column(column)
        known = [_answer(self.cells.text(cell)) is not None for cell in cells]
        bad = np.flatnonzero(~np.array(known))
        if bad.size:
            self.refuse(column, "yes/no", bad)
        return tuple("yes" if _answer(self.cells.text(cell)) else "no" for cell in cells)

    def marks(self, column: str) -> Bool[np.ndarray, " N"]:
        """Return which arms can be measured; an empty cell means no."""
        texts = [self.cells.text(cell) for cell in self.cells.column(column)]
        found = [False if not text.strip() else _answer(text) for text in texts]
        bad = [i for i, answer in enumerate(found) if answer is None]
        if bad:
            self.refuse(column, "yes/no", np.array(bad))
        return np.array(found, dtype=bool)

    def each(self, role: Role, owner: Int[np.ndarray, " N"]) -> Float[np.ndarray, " K"] | None:
        """Return the positive number that a column has for each arm; its rows must agree."""
        column = next(iter(self.of(role)), None)
        if column is None:
            return None
        values = self.cells.numbers(column)
        bad = np.flatnonzero(~(values > 0.0))
        if bad.size:
            self.refuse(column, role, bad)
        found = np.empty(int(owner.max()) + 1)
        found[owner[::-1]] = values[::-1]
        for i in np.flatnonzero(found[owner] != values)[:1].tolist():
            raise FileFormatError(
                f"{self.cells.where(i, column)}: {values[i]:g}, and {found[owner[i]]:g} for the "
                "same features further up; rows with the same features are one candidate."
            )
        return found


def _answer(text: str) -> bool | None:
    word = text.strip().lower()
    return True if word in YES else False if word in NO else None


def _left_out(cells: Cells, gone: Int[np.ndarray, " n"]) -> str:
    rows = ", ".join(str(cells.lines[i]) for i in gone[:5].tolist())
    return f"{cells.word} {rows}{' and more' if gone.size > 5 else ''}, with empty cells, left out"
