"""What a spreadsheet file would unfold to, found out before any of it is.

.xlsx and .ods are archives of XML. A few kilobytes can unpack to gigabytes, name a cell at the far
end of a sheet, repeat a row a million times, or use one long text in every cell. All parts are
unpacked within a limit and scanned as a stream; the reader then gets an archive made of just these
parts, so that it cannot see others.
"""

import io
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from xml.parsers import expat

from finalist.errors import FileFormatError, FinalistError, TooLargeError

#: Bytes that the parts of a file may unpack to, characters in all cells, parts, cells of a sheet,
#: and characters of a cell (Excel has 32,767).
MAX_UNPACKED, MAX_TEXT, MAX_PARTS, MAX_CELLS, MAX_CELL = 2**28, 2**28, 10_000, 10_000_000, 100_000
_PLACE = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})")
#: Attributes by which a cell of .ods has a value.
_VALUES = frozenset({"value", "string-value", "date-value", "time-value", "boolean-value"})


def checked(content: bytes, name: str) -> bytes:
    """Return the same spreadsheet without anything beside its parts; refuse what is too large.

    Raises
    ------
    FileFormatError
        Damaged, with macros, a document type, or an error in a cell.
    TooLargeError
        It would unfold to more than the limits.
    """
    parts = _parts(content, name)
    scan = _Scan(name)
    for part in sorted(parts, key=lambda part: "sharedstrings" not in part.lower()):
        scan.read(parts[part])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for part, data in parts.items():
            archive.writestr(zipfile.ZipInfo(part), data)
    return buffer.getvalue()


def _parts(content: bytes, name: str) -> dict[str, bytes]:
    """Unpack all parts within the limit, whatever sizes they claim to have."""
    try:
        entries = zipfile.ZipFile(io.BytesIO(content)).infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise FileFormatError(f"{name} is damaged ({error}). Save it again.") from error
    if len(entries) > MAX_PARTS:
        raise TooLargeError(f"{name} has {len(entries):,} parts inside; a table has a few.")
    parts: dict[str, bytes] = {}
    left = MAX_UNPACKED
    for entry in entries:
        if entry.filename in parts:
            raise FileFormatError(f"{name} is damaged: a part is there twice. Save it again.")
        parts[entry.filename] = _unpacked(content, entry, left, name)
        left -= len(parts[entry.filename])
    names = {part.lower() for part in parts}
    if any(one.endswith("vbaproject.bin") or one.startswith("basic/") for one in names):
        raise FileFormatError(f"{name} has macros. Save it as .xlsx, which has none.")
    if not names & {"xl/workbook.xml", "content.xml"}:
        raise FileFormatError(f"{name} is not a spreadsheet. Save the table as .xlsx or CSV.")
    return parts


def _unpacked(content: bytes, entry: zipfile.ZipInfo, most: int, name: str) -> bytes:
    start = entry.header_offset
    if len(content) < start + 30:
        raise FileFormatError(f"{name} is damaged. Save it again.")
    skip = sum(struct.unpack("<HH", content[start + 26 : start + 30]))
    packed = content[start + 30 + skip : start + 30 + skip + entry.compress_size]
    if entry.compress_type == zipfile.ZIP_STORED:
        data = packed
    elif entry.compress_type == zipfile.ZIP_DEFLATED:
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


@dataclass
class _Sheet:
    """Where one is in a sheet, and how far it goes."""

    row: int = 0
    column: int = 0
    rows: int = 1  # how often the row of .ods is repeated
    cells: int = 1  # how often the cell is
    filled: bool = False
    last_row: int = 0
    last_column: int = 0


class _Scan:
    """Counts cells and text of the parts of a spreadsheet, whatever prefixes their names have."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.strings: list[int] = []
        self.total = 0
        self.sheets = [_Sheet()]
        self.kind = ""  # of the cell
        self.length = 0  # of the text in it
        self.value = ""
        self.in_value = False

    def read(self, data: bytes) -> None:
        """Read a part, if it is XML."""
        if not data.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<"):
            return
        self.sheets = [_Sheet()]
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        try:
            parser.Parse(data, True)
        except FinalistError:
            raise
        except (expat.ExpatError, ValueError) as error:
            raise FileFormatError(f"{self.name} is damaged ({error}). Save it again.") from error

    def _doctype(self, *_: object) -> None:
        raise FileFormatError(f"{self.name} has a document type inside. Save it again as .xlsx.")

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        kind = element.rpartition(":")[2]
        words = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        sheet = self.sheets[-1]
        if kind == "row":  # .xlsx from here
            sheet.row = int(words.get("r", sheet.row + 1))
            sheet.column = 0
            self._reach(sheet, sheet.row, sheet.last_column)
        elif kind == "c":
            self._cell(sheet, words)
        elif kind == "v":
            self.value, self.in_value = "", True
        elif kind in ("si", "is"):
            self.length = 0
        elif kind == "table":  # .ods from here
            self.sheets.append(_Sheet())
        elif kind == "table-row":
            sheet.rows, sheet.column = int(words.get("number-rows-repeated", 1)), 0
            sheet.filled = False
        elif kind in ("table-cell", "covered-table-cell"):
            sheet.cells, self.length = int(words.get("number-columns-repeated", 1)), 0
            if words.keys() & _VALUES:
                self._fill(sheet)

    def _cell(self, sheet: _Sheet, words: dict[str, str]) -> None:
        place = _PLACE.fullmatch(words.get("r", ""))
        self.kind = words.get("t", "")
        if place is None:
            sheet.column += 1
        else:
            sheet.row, sheet.column = int(place[2]), 0
            for letter in place[1].upper():
                sheet.column = 26 * sheet.column + ord(letter) - 64
        self._reach(sheet, sheet.row, sheet.column)
        if self.kind == "e":
            where = f"cell {place[0]}" if place else f"a cell in row {sheet.row}"
            raise FileFormatError(
                f"{self.name}, {where}: it has an error, such as #DIV/0! or #N/A, and no value. "
                "Correct its formula or delete it."
            )

    def _text(self, text: str) -> None:
        if self.in_value:
            self.value += text[:20]
            return
        self.length += len(text)
        if self.length > MAX_CELL:
            raise TooLargeError(
                f"{self.name} has a text of more than {MAX_CELL:,} characters in a cell."
            )
        if len(self.sheets) > 1 and text.strip():
            self._fill(self.sheets[-1])

    def _end(self, element: str) -> None:
        kind = element.rpartition(":")[2]
        sheet = self.sheets[-1]
        if kind == "si":
            self.strings.append(self.length)
            self.length = 0
        elif kind == "v":
            self.in_value = False
            if self.kind == "s":
                number = int(self.value) if self.value.strip().isdigit() else -1
                known = 0 <= number < len(self.strings)
                self._count(self.strings[number] if known else 0)
        elif kind == "c":
            self.kind, self.length = "", 0
        elif kind in ("table-cell", "covered-table-cell"):
            self._count(self.length * sheet.cells * sheet.rows)
            sheet.column += sheet.cells
            self.length = 0
        elif kind == "table-row":
            sheet.row += sheet.rows
            if sheet.filled:
                self._reach(sheet, sheet.row, sheet.last_column)
        elif kind == "table" and len(self.sheets) > 1:
            self.sheets.pop()

    def _fill(self, sheet: _Sheet) -> None:
        """Note that the cell of .ods has something in it."""
        sheet.filled = True
        self._reach(sheet, sheet.row + sheet.rows, sheet.column + sheet.cells)

    def _count(self, characters: int) -> None:
        self.total += characters
        if self.total > MAX_TEXT:
            raise TooLargeError(
                f"{self.name} has more than {MAX_TEXT // 2**20} million characters in its cells."
            )

    def _reach(self, sheet: _Sheet, row: int, column: int) -> None:
        sheet.last_row, sheet.last_column = max(sheet.last_row, row), max(sheet.last_column, column)
        if sheet.last_row * max(sheet.last_column, 1) > MAX_CELLS:
            raise TooLargeError(
                f"{self.name} has a sheet of {sheet.last_row:,} rows and {sheet.last_column:,} "
                f"columns up to its last cell; the limit is {MAX_CELLS:,} cells. Delete what is "
                "far away from the table."
            )
