"""Data frames of any library, and Parquet files."""

import io
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from finalist.errors import FileFormatError
from finalist.extras import need
from finalist.tables.cells import Cell

#: The beginning of a Parquet file.
PARQUET = b"PAR1"


def frame_columns(frame: Any) -> tuple[list[str], list[tuple[Cell, ...]]] | None:
    """Return the names and cells of a data frame; None if this is not one."""
    if isinstance(frame, list | tuple | np.ndarray | str | bytes):
        return None
    import narwhals as nw

    try:
        found = nw.from_native(frame, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise FileFormatError(f"columns with the same name: {error}. Rename them.") from error
    if not isinstance(found, nw.DataFrame):
        return None
    columns = []
    for j in range(len(found.columns)):
        series = found[:, j]
        pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
        columns.append(tuple(None if gone else _plain(cell) for cell, gone in pairs))
    return [str(name).strip() for name in found.columns], columns


def _plain(cell: Any) -> Cell:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, str):
        return cell if cell.strip() else None
    if isinstance(cell, Decimal):
        cell = float(cell)
    if isinstance(cell, float) and cell != cell:
        return None
    if isinstance(cell, int | float | date | time | timedelta):
        return cell
    return str(cell)


def read_parquet(content: bytes, name: str, size: Callable[[int, int], None]) -> Any:
    """Return the table in a Parquet file; `size` refuses its rows and columns before it is read."""
    need("Parquet files", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(io.BytesIO(content))
        size(file.metadata.num_rows, file.metadata.num_columns)
        return file.read()
    except (pa.ArrowInvalid, OSError) as error:
        raise FileFormatError(f"{name} is not a Parquet file ({error}).") from error
