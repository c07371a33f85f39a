"""Results from a CSV file."""

import csv
import io
import re
from itertools import compress
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from finalist.arms.files import unescape
from finalist.errors import FileFormatError
from finalist.inference.statistics import LARGEST_REWARD
from finalist.study.results.numbers import floats, integers, reward_cell_problem
from finalist.study.results.tables import (
    NOT_MEASURED,
    Columns,
    as_notes,
    check_decimal,
    find_columns,
    refuse,
)
from finalist.study.results.values import Results, once
from finalist.text import show

_DELIMITERS = (",", ";", "\t")
_BREAK = re.compile("\r\n|\r|\n")


class _Rows(NamedTuple):
    """The rows of a CSV file below the header, all of one length, and the line of each."""

    columns: Columns
    cells: list[list[str]]
    lines: list[int]


def read_results(path: str | PathLike[str], *, decimal: str = ".") -> Results:
    r"""Read a CSV file with the columns `pull_id` and `reward`.

    The file is UTF-8; commas, semicolons or tabs separate its cells. Column names may be in any
    case and order. A row with an empty reward is skipped; cells that a spreadsheet left out at
    the end of a row are empty. The column `arm` names the arm; other columns become notes.

    Parameters
    ----------
    path : str or path
    decimal : "." or ","
        The decimal mark. A separator of thousands is refused, never guessed.

    Raises
    ------
    FileFormatError
        With the line and the column of up to five bad cells.
    RewardError
        A pull with two different rewards or arms.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("Pull_ID;arm;reward;note\n7;tin;0,5;\n8;zinc;;\n9;lead;2;hot\n")
    ...     file.flush()
    ...     results = read_results(file.name, decimal=",")
    >>> results.pulls, results.rewards
    (array([7, 9]), array([0.5, 2. ]))
    >>> results.arms, results.notes
    (('tin', 'lead'), (None, '{"note": "hot"}'))
    """
    check_decimal(decimal, FileFormatError)
    columns, cells, lines = _measured(_read_rows(path), path)

    def column(j: int) -> list[str]:
        return [row[j] for row in cells]

    pulls, wrong_pulls = integers(column(columns.pull), decimal)
    rewards = floats(column(columns.reward), decimal)
    wrong_rewards = ~(np.abs(rewards) <= LARGEST_REWARD)  # also nan

    def describe(i: int, j: int) -> str:
        line = lines[i] + sum(len(_BREAK.findall(cell)) for cell in cells[i][:j])
        problem = reward_cell_problem(cells[i][j], decimal)
        if j == columns.pull:
            problem = f"{show(cells[i][j])} is not the number of a pull"
        return f"line {line}, column {columns.names[j]!r}: {problem}"

    bad = [(int(i), columns.pull) for i in np.flatnonzero(wrong_pulls)]
    bad += [(int(i), columns.reward) for i in np.flatnonzero(wrong_rewards)]
    refuse(bad, describe, FileFormatError, f"{path}, ")
    arms = [None] * len(cells) if columns.arm is None else _texts(column(columns.arm))
    notes = [_texts(column(j)) for j in columns.notes]
    return once(
        pulls,
        rewards,
        as_notes([columns.names[j] for j in columns.notes], notes, len(cells)),
        tuple(arms),
        f"{path}: ",
        lambda i: f"line {lines[i]}",
    )


def _read_text(path: str | PathLike[str]) -> str:
    content = Path(path).read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(re.findall(b"\r\n|\r|\n", content[: error.start])) + 1
        raise FileFormatError(
            f"{path}, line {line}: this is not UTF-8 text. Save the file as 'CSV UTF-8'."
        ) from error


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


def _delimiter(text: str) -> str:
    """Return the delimiter with which the header has the columns that it must have."""

    def fitness(delimiter: str) -> tuple[int, int]:
        try:
            _, rows = _parse(text, delimiter, most=1)
        except FileFormatError:
            return -1, 0
        names = [cell.strip().lower() for row in rows for cell in row]
        return ("pull_id" in names) + ("reward" in names), len(names)

    return max(_DELIMITERS, key=fitness)


def _read_rows(path: str | PathLike[str]) -> _Rows:
    text = _read_text(path)
    delimiter = _delimiter(text)
    try:
        lines, rows = _parse(text, delimiter)
    except FileFormatError as error:
        raise FileFormatError(f"{path}, {error}") from error
    if not rows:
        raise FileFormatError(f"{path}: the file is empty. It needs the columns pull_id, reward.")
    header, first = rows.pop(0), lines.pop(0)
    names = (unescape(cell.strip()) for cell in header)
    columns = find_columns(names, FileFormatError, f"{path}, line {first}: ")
    for line, cells in zip(lines, rows, strict=True):
        if len(cells) != len(header):
            _fit(cells, header, f"{path}, line {line}", delimiter)
    named = [j for j in columns.notes if columns.names[j]]
    for j in set(columns.notes) - set(named):
        line = next((line for line, row in zip(lines, rows, strict=True) if row[j].strip()), 0)
        if line:
            raise FileFormatError(
                f"{path}, line {line}: column {j + 1} has no name. Name it in line {first}."
            )
    return _Rows(columns._replace(notes=named), rows, lines)


def _fit(cells: list[str], header: list[str], where: str, delimiter: str) -> None:
    """Give a row the length of the header: spreadsheets leave out or add empty cells at the end."""
    width = len(header)
    if any(map(str.strip, cells[width:])):
        raise FileFormatError(
            f"{where}: {len(cells)} cells, and the header has {width}, the last "
            f"{show(header[-1])}. Put a cell that has {delimiter!r} in it in double quotes."
        )
    cells[width:] = []
    cells.extend([""] * (width - len(cells)))


def _measured(rows: _Rows, path: str | PathLike[str]) -> _Rows:
    """Return the rows that have a reward."""
    columns, cells, lines = rows
    filled = [bool(row[columns.reward].strip()) for row in cells]
    if not any(filled):
        raise FileFormatError(f"{path}: {NOT_MEASURED}")
    return _Rows(columns, list(compress(cells, filled)), list(compress(lines, filled)))


def _texts(cells: list[str]) -> list[str | None]:
    """Return the cells of a column of text; blank ones are None."""
    return [(unescape(c) if c[0] == "'" else c) if c.strip() else None for c in cells]
