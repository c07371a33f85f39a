"""The columns and cells of a table of results: which is which, and what a cell says."""

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, time, timedelta
from itertools import compress
from typing import Any

import numpy as np

from finalist.errors import FileFormatError, RewardError
from finalist.study.results.results import Unread, is_failed
from finalist.tables import Cell, Cells
from finalist.tables.numbers import of_cells
from finalist.text import show

#: What measured values are called: in sheets, and by programs.
VALUES = ("result", "reward")
#: Columns that hold numbers, and so show which decimal sign a file has.
NUMBERS = ("pull_id", *VALUES)
#: What columns are for, by their names. A sheet says "candidate", and 0.1.0 said "arm".
_ROLES = {**{name: name for name in NUMBERS}, "arm": "arm", "candidate": "arm"}
_WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_NO_PULL = (
    "is empty, and the row has a result. Delete a row of totals, or write the number "
    "of the measurement"
)
_to_json = json.JSONEncoder(ensure_ascii=False).encode


def error_of(table: Cells) -> type[Exception]:
    """Return what is raised if it is not a table of results."""
    return FileFormatError if table.source else RewardError


def place_of(table: Cells, i: int, column: str | None) -> str:
    """Name a row or a cell, without the file: messages begin with that."""
    return table.where(i, column).removeprefix(f"{table.source}, " if table.source else "")


def columns_of(table: Cells, needed: Sequence[str]) -> dict[str, str]:
    """Find columns by name, in any case and order; refuse one that is missing or there twice."""
    roles: dict[str, str] = {}
    lower = [name.lower() for name in table.names]
    for name in table.names:
        role = _ROLES.get(name.lower())
        if role is None or (name.lower() == "candidate" and "arm" in lower):
            continue  # beside `arm` it is a column of the candidates' own
        if role in roles:
            raise error_of(table)(
                f"{table.top()}columns {table.names.index(roles[role]) + 1} and "
                f"{table.names.index(name) + 1} are both {show(name)}. Rename one."
            )
        roles[role] = name
    for role in needed:
        if role not in roles:
            raise error_of(table)(
                f"{table.top()}there is no column {role!r}; the columns are "
                f"{show(list(table.names), 200)}."
            )
    if not any(role in roles for role in VALUES):  # an empty column is left out on reading
        raise error_of(table)(
            f"{table.top()}no result is filled in: there is no column 'result' with anything in "
            f"it; the columns are {show(list(table.names), 200)}."
        )
    return roles


def column_of(role: str, roles: Mapping[str, str], origin: Sequence[str], i: int) -> str | None:
    """Return the column of a cell of row i, by what it is; None for the whole row."""
    return origin[i] if role == "reward" else roles.get(role)


def values_of(
    table: Cells, columns: Sequence[str], nothing: Collection[str] = ()
) -> tuple[list[Cell], Sequence[str]]:
    """Return the measured values, and of each the column that it is from.

    A value of a later column counts where those before it have none: an empty cell, or one of the
    words that mean `nothing`.
    """

    def cells(column: str) -> list[Cell]:
        found = [*table.column(column)]
        if not nothing:
            return found
        words = (c.strip().lower() if isinstance(c, str) else "" for c in found)
        return [None if word in nothing else c for word, c in zip(words, found, strict=True)]

    values, origin = cells(columns[0]), [columns[0]] * len(table)
    for other in columns[1:]:
        for i, (one, two) in enumerate(zip(values, cells(other), strict=True)):
            if one is None and two is not None:
                values[i], origin[i] = two, other
            elif two is not None and not _same(table, one, two):
                raise error_of(table)(
                    f"{table.where(i)}: {columns[0]!r} is {show(one)} and {other!r} is "
                    f"{show(two)}. Nothing was stored. Keep the right one, the other empty."
                )
    return values, origin


def _same(table: Cells, one: Cell, other: Cell) -> bool:
    if is_failed(one) and is_failed(other):
        return True
    return table.number(one) == table.number(other) or one == other


# --- cells ----------------------------------------------------------------------------------


def pulls_of(table: Cells, name: str, filled: Sequence[bool]) -> Sequence[Any] | np.ndarray:
    """Return the numbers of pulls; what is not one stays as it is, in a file with the reason."""
    cells = [*compress(table.column(name), filled)]
    if not table.source:
        return [_as_int(cell) for cell in cells]
    found = table.numbers(name)[np.asarray(filled)]
    if np.all(np.abs(found) < 2**53) and np.all(found == np.rint(found)):
        return np.asarray(found, dtype=np.int64)
    return [_pull(table, cell) for cell in cells]


def _pull(table: Cells, cell: Cell) -> int | Unread:
    """Read a whole number, also from 3.0, as some spreadsheets write it."""
    if cell is None:
        return Unread("", _NO_PULL)
    if isinstance(cell, str) and _WHOLE.fullmatch(cell.strip()):
        return int(cell)
    number = _as_int(table.number(cell))
    return (
        number
        if isinstance(number, int)
        else Unread(str(cell), "is not the number of a measurement")
    )


def _as_int(cell: Any) -> Any:
    """Turn 3.0 into 3: pandas turns integers into floats when one is missing."""
    if not isinstance(cell, float):
        return cell
    return int(cell) if abs(cell) <= 2**53 and cell.is_integer() else cell


def rewards_of(table: Cells, cells: Sequence[Cell]) -> Sequence[Any] | np.ndarray:
    """Return measured values; what is not a number stays as it is, in a file with the reason."""
    if not table.source:
        return cells
    found = of_cells(cells, table.decimal)
    return found if np.isfinite(found).all() else [_reward(table, cell) for cell in cells]


def _reward(table: Cells, cell: Cell) -> Any:
    if isinstance(cell, float):
        return cell
    if isinstance(cell, date | time | timedelta):
        kind = "a date" if isinstance(cell, date) else "a time"
        return Unread(
            str(cell),
            f"is {kind}; a spreadsheet may have made it of a number. Write the number again, in a "
            "cell that is formatted as a number",
        )
    if not isinstance(cell, str) or is_failed(cell):
        return cell
    value = table.number(cell)
    if math.isfinite(value):
        return value
    if "," in cell and table.decimal == ".":
        return Unread(cell, "is not a number; here a point is the decimal sign")
    if "." in cell and table.decimal == ",":
        return Unread(cell, "is not a number; here a comma is the decimal sign")
    return Unread(cell, f"is not a {'' if math.isnan(value) else 'finite '}number")


def as_notes(columns: Mapping[str, Sequence[Any]]) -> list[str | None] | None:
    """Return for each row the JSON text of what is there, None when nothing is."""
    used = {name: cells for name, cells in columns.items() if any(c is not None for c in cells)}
    if not used:
        return None
    keys = [_to_json(name) + ": " for name in used]

    def note(values: tuple[Any, ...]) -> str | None:
        pairs = zip(keys, values, strict=True)
        parts = [key + _to_json(_plain(value)) for key, value in pairs if value is not None]
        return "{" + ", ".join(parts) + "}" if parts else None

    return [note(values) for values in zip(*used.values(), strict=True)]


def _plain(cell: Any) -> str | int | float:
    """Return a value that JSON can hold."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
