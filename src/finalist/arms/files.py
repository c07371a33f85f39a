"""Arms as files: written as CSV and Parquet to read back exactly, and arrays of NumPy read."""

import csv
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.arms.inputs import read_array, read_input
from finalist.arms.recipes import Table
from finalist.errors import ArmsError, FileFormatError
from finalist.extras import need
from finalist.tables.escaping import escape

if TYPE_CHECKING:
    import pandas as pd

_BLOCK = 20_000

# --- CSV ------------------------------------------------------------------------------------


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


# --- Parquet --------------------------------------------------------------------------------


def _as_file_error(path: str | PathLike[str], read: Callable[[], Table]) -> Table:
    try:
        return read()
    except ArmsError as error:
        raise FileFormatError(f"{path}: {error}") from error


def _parquet() -> Any:
    need("Parquet files", "pyarrow")
    import pyarrow.parquet

    return pyarrow


def read_parquet(path: str | PathLike[str]) -> Table:
    """Read a Parquet file; errors have the row and the column."""
    pa = _parquet()
    try:
        frame = pa.parquet.read_table(Path(path), memory_map=True)
    except pa.ArrowInvalid as error:
        raise FileFormatError(f"{path}: this is not a Parquet file ({error}).") from error
    return _as_file_error(path, lambda: read_input(frame, None))


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
    need("Data frames", "pandas")
    import pandas as pd

    frame = pd.DataFrame(table.features, columns=list(table.feature_names), copy=True)
    frame.insert(0, "name", table.names)
    return frame
