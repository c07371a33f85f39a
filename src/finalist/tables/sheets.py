"""Spreadsheets: .xlsx and .ods, read by calamine after a look at what unpacking them would take.

A few kilobytes can unpack to gigabytes, or put a cell at the far end of a sheet so that the table
between is enormous: both are refused before anything is unpacked into memory.
"""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any, NamedTuple
from xml.etree import ElementTree

from finalist.errors import FileFormatError, MissingExtraError, TooLargeError
from finalist.tables.cells import Cell
from finalist.text import show

#: Bytes that the parts of a file may unpack to, parts it may have, and cells of a sheet.
MAX_UNPACKED, MAX_PARTS, MAX_CELLS = 400 * 2**20, 10_000, 10_000_000
#: The beginning of .xlsx and .ods, and of files of old versions of Excel.
ZIP, OLD = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_PLACE = re.compile(rb'\br="([A-Z]{0,3})(\d{1,7})"')
_ODS = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"


class Sheet(NamedTuple):
    """A sheet: rows of cells, and which one it is."""

    rows: list[list[Cell]]
    said: str


def read_sheet(content: bytes, name: str, wanted: str | None) -> Sheet:
    """Return the cells of a sheet, by default of the first one that has any."""
    _check(content, name)
    try:
        from python_calamine import CalamineError, CalamineWorkbook, PasswordError
    except ImportError as error:
        raise MissingExtraError(
            "Spreadsheets need python-calamine. Install it with: pip install python-calamine"
        ) from error
    try:
        with CalamineWorkbook.from_filelike(io.BytesIO(content)) as book:
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


def _check(content: bytes, name: str) -> None:
    """Refuse macros, and what would unpack to more than memory should hold."""
    try:
        parts = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise FileFormatError(f"{name} is damaged ({error}). Save it again.") from error
    if len(parts) > MAX_PARTS:
        raise TooLargeError(f"{name} has {len(parts):,} parts inside; a table has a few.")
    names = [part.filename.lower() for part in parts]
    if any(one.endswith("vbaproject.bin") or one.startswith("basic/") for one in names):
        raise FileFormatError(f"{name} has macros. Save it as .xlsx, which has none.")
    if not any(one in ("xl/workbook.xml", "content.xml") for one in names):
        raise FileFormatError(f"{name} is not a spreadsheet. Save the table as .xlsx or CSV.")
    left = MAX_UNPACKED
    for part in parts:
        sheet = part.filename.lower().startswith("xl/worksheets/")
        data = _unpacked(content, part, left, name)
        left -= len(data)
        if sheet:
            _check_size(name, *_extent(data))
        elif part.filename.lower() == "content.xml":
            for rows, columns in _extents(data, name):
                _check_size(name, rows, columns)


def _unpacked(content: bytes, part: zipfile.ZipInfo, most: int, name: str) -> bytes:
    """Unpack a part, whatever size it claims to have."""
    start = part.header_offset
    if len(content) < start + 30:
        raise FileFormatError(f"{name} is damaged. Save it again.")
    skip = sum(struct.unpack("<HH", content[start + 26 : start + 30]))
    packed = content[start + 30 + skip : start + 30 + skip + part.compress_size]
    if part.compress_type == zipfile.ZIP_STORED:
        data = packed
    elif part.compress_type == zipfile.ZIP_DEFLATED:
        try:
            data = zlib.decompressobj(-15).decompress(packed, most + 1)
        except zlib.error as error:
            raise FileFormatError(f"{name} is damaged ({error}). Save it again.") from error
    else:
        raise FileFormatError(f"{name} is packed in an unusual way. Save it again as .xlsx.")
    if len(data) > most:
        raise TooLargeError(
            f"{name} unpacks to more than {MAX_UNPACKED // 2**20} MB. Save the table alone, as CSV."
        )
    return data


def _extent(sheet: bytes) -> tuple[int, int]:
    """Return the last row and column that a sheet of .xlsx names."""
    rows = columns = 0
    for letters, digits in _PLACE.findall(sheet):
        rows = max(rows, int(digits))
        column = 0
        for letter in letters:
            column = 26 * column + letter - 64
        columns = max(columns, column)
    return rows, columns


def _extents(content: bytes, name: str) -> Iterator[tuple[int, int]]:
    """Give the last row and column with something in it of each sheet of .ods."""
    row = column = last_row = last_column = 0
    try:
        for event, node in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):
            tag = node.tag.removeprefix(_ODS)
            if tag == node.tag:
                continue
            if event == "start":
                if tag == "table":
                    row = last_row = last_column = 0
                elif tag == "table-row":
                    column, filled = 0, 0
            elif tag in ("table-cell", "covered-table-cell"):
                column += int(node.get(f"{_ODS}number-columns-repeated", 1))
                if len(node) or node.text:
                    filled = column
                    last_column = max(last_column, column)
            elif tag == "table-row":
                row += int(node.get(f"{_ODS}number-rows-repeated", 1))
                last_row = row if filled else last_row
                node.clear()
            elif tag == "table":
                yield last_row, last_column
    except (ElementTree.ParseError, ValueError) as error:
        raise FileFormatError(f"{name} is damaged ({error}). Save it again.") from error


def _check_size(name: str, rows: int, columns: int) -> None:
    if rows * columns > MAX_CELLS:
        raise TooLargeError(
            f"{name} has a sheet of {rows:,} rows and {columns:,} columns up to its last cell; the "
            f"limit is {MAX_CELLS:,} cells. Delete what is far away from the table."
        )
