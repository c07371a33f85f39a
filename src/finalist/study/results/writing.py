"""CSV files that are safe to open in a spreadsheet: pulls to measure, and any other table."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Protocol, runtime_checkable

import numpy as np

from finalist.arms.files import escape
from finalist.errors import OutputError
from finalist.files import write_file
from finalist.study.results.table import check_decimal, find_columns
from finalist.text import show

_PULL_COLUMNS = ("pull_id", "arm", "worker", "reward", "note")


@runtime_checkable
class TextStream(Protocol):
    """What text can be written to: an open file (opened with newline=""), or `io.StringIO`."""

    def write(self, text: str, /) -> object:
        """Write text."""
        ...


def write_pulls(
    target: str | PathLike[str] | TextStream,
    rows: Sequence[Mapping[str, object]],
    *,
    decimal: str = ".",
) -> None:
    """Write pulls to measure as a CSV file that a person fills in and `read_results` reads.

    Parameters
    ----------
    target : str, path or text stream
    rows : sequence of mappings
        With `pull_id` and `arm`, perhaps `worker` and `note`; what else they hold are features.
    decimal : "." or ","
        With a decimal comma, semicolons separate the cells.

    Examples
    --------
    >>> import sys
    >>> write_pulls(sys.stdout, [{"pull_id": 7, "arm": "=tin", "dose": 0.1}])
    pull_id,arm,dose,reward,note
    7,'=tin,0.1,,
    """
    features = dict.fromkeys(key for row in rows for key in row if key not in _PULL_COLUMNS)
    worker = ["worker"] if any(row.get("worker") is not None for row in rows) else []
    header = ["pull_id", "arm", *worker, *features, "reward", "note"]
    names = [name.strip() for name in header]
    find_columns(names, ("pull_id", "reward"), OutputError)
    if "" in names:
        raise OutputError(f"column {names.index('') + 1} has no name. Name the feature.")
    write_table(target, header, ([row.get(c) for c in header] for row in rows), decimal=decimal)


def write_table(
    target: str | PathLike[str] | TextStream,
    header: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    decimal: str = ".",
) -> None:
    """Write a CSV file that is safe to open in a spreadsheet.

    Numbers are in the shortest form that reads back exactly, None is an empty cell, and text
    that a spreadsheet might run gets an apostrophe in front. A file has a byte-order mark if it
    is not plain ASCII: without it Excel takes UTF-8 for something else.

    Parameters
    ----------
    target : str, path or text stream
    header : iterable of str
    rows : iterable of iterables
        As many cells each as the header has.
    decimal : "." or ","
        With a decimal comma, semicolons separate the cells.

    Examples
    --------
    >>> import sys
    >>> write_table(sys.stdout, ["arm", "mean"], [["-tin", -0.5]], decimal=",")
    arm;mean
    '-tin;-0,5
    """
    check_decimal(decimal, OutputError)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter="," if decimal == "." else ";")
    names = [escape(name) for name in header]
    writer.writerow(names)
    for number, row in enumerate(rows, 1):
        cells = [_cell(value, decimal) for value in row]
        if len(cells) != len(names):
            raise OutputError(f"row {number} has {len(cells)} cells; the header has {len(names)}.")
        writer.writerow(cells)
    text = buffer.getvalue()
    if not isinstance(target, str | PathLike):
        target.write(text)
        return
    try:
        write_file(target, text.encode("utf-8" if text.isascii() else "utf-8-sig"))
    except UnicodeEncodeError as error:
        raise OutputError(
            f"cannot write {target}: {show(text[error.start])} is not valid Unicode."
        ) from error


def _cell(value: object, decimal: str) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None:
        return ""
    if isinstance(plain, float):
        return repr(float(plain)).replace(".", decimal)
    if isinstance(plain, int):
        return str(plain)
    return escape(str(plain))
