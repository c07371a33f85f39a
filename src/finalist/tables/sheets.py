"""Spreadsheets: .xlsx and .ods, read by calamine once it is known what they unfold to."""

import io
import zipfile
from datetime import date, datetime, time
from typing import Any, NamedTuple

from finalist.errors import FileFormatError
from finalist.extras import need
from finalist.tables import archives
from finalist.tables.cells import Cell
from finalist.text import show

#: The beginning of .xlsx and .ods, and of files of old versions of Excel.
ZIP, OLD = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"


class Sheet(NamedTuple):
    """A sheet: rows of cells, and which one it is."""

    rows: list[list[Cell]]
    said: str


def read_sheet(content: bytes, name: str, wanted: str | None) -> Sheet:
    """Return the cells of a sheet, by default of the first one that has any."""
    safe = archives.checked(content, name)
    need("Spreadsheets", "python_calamine")
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        with CalamineWorkbook.from_filelike(io.BytesIO(safe)) as book:
            return _chosen(book, name, wanted)
    except PasswordError as error:
        raise FileFormatError(f"{name} has a password. Save it without one.") from error
    except (CalamineError, zipfile.BadZipFile, OSError) as error:
        raise FileFormatError(
            f"{name} cannot be read as a spreadsheet ({error}). Save it again as .xlsx, or as CSV."
        ) from error


def _chosen(book: Any, name: str, wanted: str | None) -> Sheet:
    names = list(book.sheet_names)
    if wanted is not None:
        number = int(wanted) - 1 if wanted.isascii() and wanted.isdigit() else -1
        chosen = wanted if wanted in names else names[number] if 0 <= number < len(names) else None
        if chosen is None:
            raise FileFormatError(
                f"{name} has no sheet {show(wanted)}; its sheets are {show(names, 200)}."
            )
        return _cells(book, chosen, f"sheet {show(chosen)}")
    for chosen in names:
        sheet = _cells(book, chosen, f"sheet {show(chosen)}")
        if any(cell is not None for row in sheet.rows for cell in row):
            return (
                sheet if len(names) == 1 else sheet._replace(said=f"{sheet.said} of {len(names)}")
            )
    raise FileFormatError(f"{name} is empty: there is nothing in its sheets.")


def _cells(book: Any, chosen: str, said: str) -> Sheet:
    sheet = book.get_sheet_by_name(chosen)
    rows = [[_plain(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)]
    return Sheet(rows, said)


def _plain(cell: Any) -> Cell:
    """Return a cell as it is typed: blank is None, a day without a time is a date."""
    if isinstance(cell, str):
        return cell if cell.strip() else None
    if isinstance(cell, datetime) and cell.time() == time():
        return date(cell.year, cell.month, cell.day)
    value: Cell = cell
    return value
