"""Arms as files: CSV and Parquet, read with the place of every mistake, written to read back.

In a file the column `name` (in any case) names the arms; without one, the first text column
does. Names that a spreadsheet might run as a formula are written with an apostrophe in front.
"""

import csv
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from finalist.arms.inputs import (
    CATEGORIES,
    NO_FEATURE,
    check_columns,
    checked,
    is_name,
    read_array,
    read_input,
)
from finalist.arms.names import check_names
from finalist.arms.recipes import Table
from finalist.errors import ArmsError, FileFormatError, MissingExtraError
from finalist.text import more, show

if TYPE_CHECKING:
    import pandas as pd

#: A spreadsheet may run a cell that starts with one of these.
_EXECUTABLE = ("=", "+", "-", "@", "\t", "\r", "\n")
_BLOCK = 20_000
_BLANK = ("", "nan")

# --- CSV ------------------------------------------------------------------------------------


def escape(text: str) -> str:
    """Keep a spreadsheet from running a cell: a leading apostrophe makes it text."""
    return "'" + text if text.startswith((*_EXECUTABLE, "'")) else text


def unescape(text: str) -> str:
    """Undo `escape`; an apostrophe before an ordinary letter belongs to the text."""
    return text[1:] if text[:1] == "'" and text[1:].startswith((*_EXECUTABLE, "'")) else text


def write_csv(path: str | PathLike[str], table: Table) -> None:
    """Write a table that has names; floats in the shortest form that reads back exactly."""
    names = table.names or ()
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", *map(escape, table.feature_names)])
        for start in range(0, len(names), _BLOCK):
            labels = map(escape, names[start : start + _BLOCK])
            rows = table.features[start : start + _BLOCK].tolist()
            writer.writerows([label, *row] for label, row in zip(labels, rows, strict=True))


class Cells(NamedTuple):
    """The cells of a CSV file, not yet checked.

    Attributes
    ----------
    lines : list of int
        The line on which each row starts, without the header.
    columns : dict of str to tuple of str
        The cells of each column.
    label : str or None
        The column that names the arms.
    numbers : dict of str to (N,) array
        The other columns; NaN or infinite where a cell is bad.
    """

    lines: list[int]
    columns: dict[str, tuple[str, ...]]
    label: str | None
    numbers: dict[str, Float[np.ndarray, " N"]]


def read_cells(path: str | PathLike[str], aside: Sequence[str] = ()) -> Cells:
    """Read a comma-separated file with a header line, whatever its cells hold.

    Columns that are put aside are neither names nor features.
    """
    lines, rows = _csv_rows(path)
    columns = _csv_header(path, rows)
    cells = dict(zip(columns, zip(*rows[1:], strict=True), strict=True))
    label = next(filter(is_name, columns), None)
    numbers = {c: _numbers(t) for c, t in cells.items() if c != label and c not in aside}
    if label is None:
        label = next((c for c in numbers if _holds_text(cells[c], numbers[c])), None)
    if label is not None:
        numbers.pop(label, None)
    return Cells(lines[1:], cells, label, numbers)


def read_file(path: str | PathLike[str], aside: Sequence[str] = ()) -> Table:
    """Read a CSV or Parquet file; columns put aside are no features, only cells of the table."""
    return (read_parquet if is_parquet(path) else read_csv)(path, aside)


def is_parquet(path: str | PathLike[str]) -> bool:
    """Tell by its suffix whether this is a Parquet file."""
    return Path(path).suffix.lower() in (".parquet", ".pq")


def _require(path: str | PathLike[str], wanted: Sequence[str], columns: Sequence[str]) -> None:
    for name in wanted:
        if name not in columns:
            raise FileFormatError(
                f"{path}, line 1: there is no column {name!r}. The columns are "
                f"{show(list(columns), 200)}."
            )


def read_csv(path: str | PathLike[str], aside: Sequence[str] = ()) -> Table:
    """Read a comma-separated file with a header line; errors have the line and the column."""
    lines, cells, label, numbers = read_cells(path, aside)
    _require(path, aside, list(cells))

    def place(i: int, column: str) -> str:
        return f"{path}, line {lines[i]}, column {column!r}"

    names = None
    if label is not None:
        given = map(unescape, cells[label])
        names = check_names(given, lambda i: place(i, label), FileFormatError)
    if not numbers:
        raise FileFormatError(f"{path}, line 1: {_single_column(next(iter(cells)))}")
    values = np.column_stack(list(numbers.values()))
    bad = ~np.isfinite(values)
    if bad.any():
        i, j = divmod(int(bad.argmax()), len(numbers))
        column = list(numbers)[j]
        problem = _csv_problem(cells[column], i, numbers[column], label)
        raise FileFormatError(f"{place(i, column)}: {problem}{more(int(bad.sum()))}.")
    kept = {column: texts if column in aside else None for column, texts in cells.items()}
    return _as_file_error(path, lambda: checked(values, names, list(numbers), kept))


def _csv_rows(path: str | PathLike[str]) -> tuple[list[int], list[list[str]]]:
    """Return the rows of a CSV file and the line each starts on; blank lines are skipped."""
    lines: list[int] = []
    rows: list[list[str]] = []
    line = 1
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            for cells in reader:
                if cells:
                    lines.append(line)
                    rows.append(cells)
                line = reader.line_num + 1
        except csv.Error as error:
            raise FileFormatError(f"{path}, line {line}: {error}. Check the quotes.") from error
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"{path}, line {_undecodable_line(path)}: this is not UTF-8 text. "
                "Save the file as 'CSV UTF-8'."
            ) from error
    for line, cells in zip(lines, rows, strict=True):
        if len(cells) != len(rows[0]):
            raise FileFormatError(
                f"{path}, line {line}: {len(cells)} cells, and the header has {len(rows[0])}, "
                f"the last {rows[0][-1]!r}. Put a cell that has a comma in it in double quotes."
            )
    return lines, rows


def _undecodable_line(path: str | PathLike[str]) -> int:
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _csv_header(path: str | PathLike[str], rows: list[list[str]]) -> list[str]:
    if not rows:
        raise FileFormatError(f"{path}: the file is empty. It needs a header line and one per arm.")
    columns = check_columns(map(unescape, rows[0]), FileFormatError, f"{path}, line 1: ")
    if len(rows) == 1:
        raise FileFormatError(
            f"{path}, line 2: there is no arm below the header. Add one per line."
        )
    return columns


def _numbers(cells: tuple[str, ...]) -> Float[np.ndarray, " N"]:
    """Convert the cells of a column; what is not a number becomes nan."""
    try:
        if "_" not in "".join(cells):  # Python reads 1_000 as a number, nobody else does
            return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        pass
    return np.fromiter(map(number, cells), np.float64, len(cells))


def number(cell: str) -> float:
    """Return the number in a cell, or NaN."""
    try:
        return np.nan if "_" in cell else float(cell)
    except ValueError:
        return np.nan


def _holds_text(cells: tuple[str, ...], numbers: Float[np.ndarray, " N"]) -> bool:
    """Tell whether a column has text and not a single number."""
    return bool(np.isnan(numbers).all()) and not all(c.strip().lower() in _BLANK for c in cells)


def _csv_problem(
    cells: tuple[str, ...], i: int, numbers: Float[np.ndarray, " N"], label: str | None
) -> str:
    """Say what is wrong with cell `i` of a feature column, and what to do."""
    if not cells[i].strip():
        return "the cell is empty. Fill it in or leave the arm out"
    if label is not None and _holds_text(cells, numbers):
        return f"{show(cells[i])} is text, and {label!r} names the arms. {CATEGORIES[:-1]}"
    advice = "" if label is not None else " (a column called 'name' may hold any text)"
    return f"{show(cells[i])} is not a finite number. Correct it{advice} or leave the arm out"


def _single_column(column: str) -> str:
    separator = next((mark for mark in ";\t|" if mark in column), None)
    if separator is not None:
        return f"{show(column)} is a single column. Separate cells with commas, not {separator!r}."
    return f"there is no column beside {show(column)}, the names. {NO_FEATURE}"


# --- Parquet --------------------------------------------------------------------------------


def _as_file_error(path: str | PathLike[str], read: Callable[[], Table]) -> Table:
    try:
        return read()
    except ArmsError as error:
        raise FileFormatError(f"{path}: {error}") from error


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            "Parquet files need pyarrow. Install it with: pip install 'finalist[parquet]'"
        ) from error
    return pyarrow


def read_parquet(path: str | PathLike[str], aside: Sequence[str] = ()) -> Table:
    """Read a Parquet file; errors have the row and the column."""
    pa = _parquet()
    try:
        frame = pa.parquet.read_table(Path(path), memory_map=True)
    except pa.ArrowInvalid as error:
        raise FileFormatError(f"{path}: this is not a Parquet file ({error}).") from error
    _require(path, aside, frame.column_names)
    return _as_file_error(path, lambda: read_input(frame, None, aside))


def read_npy(path: str | PathLike[str]) -> Table:
    """Read a NumPy file with the features, without a copy of it in memory beside the result."""
    try:
        array = np.load(Path(path), mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FileFormatError(
            f"{path}: this is not a NumPy file with numbers ({error})."
        ) from error
    return _as_file_error(path, lambda: read_array(array, None))


def write_parquet(path: str | PathLike[str], table: Table) -> None:
    """Write a table with names to a Parquet file."""
    pa = _parquet()
    columns = [pa.array(table.names, pa.string()), *map(pa.array, table.features.T)]
    pa.parquet.write_table(pa.table(columns, ["name", *table.feature_names]), Path(path))


def to_frame(table: Table) -> "pd.DataFrame":
    """Return a pandas data frame with the column `name` and the features."""
    import pandas as pd

    frame = pd.DataFrame(table.features, columns=list(table.feature_names), copy=True)
    frame.insert(0, "name", table.names)
    return frame
