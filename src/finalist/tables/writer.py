"""Tables as files: CSV, tab-separated text and .xlsx that are safe to open in a spreadsheet."""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from finalist.errors import OutputError
from finalist.extras import need
from finalist.files import write_file
from finalist.tables.escaping import escape
from finalist.text import show

#: Limits of .xlsx: rows with the header, columns, characters of a cell.
MAX_ROWS, MAX_COLUMNS, MAX_CHARACTERS = 2**20, 2**14, 32_767
#: Digits that a spreadsheet keeps; longer numbers are written as text.
_LARGEST_WHOLE = 10**15
#: Widths of columns in characters, and rows that are measured for them.
_NARROWEST, _WIDEST, _MEASURED = 8, 44, 1000
_NOT_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
_FILL, _INK, _LINE = "#FFF4CC", "#7A5C00", "#D9C27A"


@runtime_checkable
class TextStream(Protocol):
    """What text can be written to: an open file (opened with newline=""), or `io.StringIO`."""

    def write(self, text: str, /) -> object:
        """Write text."""
        ...


@dataclass(frozen=True)
class Form:
    """What a person fills in, as a workbook shows it.

    Attributes
    ----------
    column : str
        The header of the column to fill in; its cells are marked.
    choices : tuple of str
        Words that its drop-down list offers; anything else can be typed too.
    title : str
        The name of the sheet.
    help : tuple of str
        Sentences on a second sheet.
    """

    column: str
    choices: tuple[str, ...] = ()
    title: str = "Table"
    help: tuple[str, ...] = ()


def write_table(
    target: str | PathLike[str] | TextStream,
    header: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    decimal: str = ".",
    delimiter: str | None = None,
    form: Form | None = None,
) -> None:
    """Write a table that is safe to open in a spreadsheet: CSV, .tsv or .xlsx, by the name.

    In text, numbers are in the shortest form that reads back exactly, None is an empty cell, and
    text that a spreadsheet might run gets an apostrophe in front. A file has a byte-order mark if
    it is not plain ASCII: without it Excel takes UTF-8 for something else. A workbook keeps text
    as text and numbers as numbers.

    Parameters
    ----------
    target : str, path or text stream
        A stream gets CSV.
    rows : iterable of iterables
        As many cells each as the header has.
    decimal : "." or ","
    delimiter : str, optional
        Between two cells of text; by default a tab in .tsv, a semicolon beside a decimal comma,
        or else a comma.
    form : Form, optional
        What a person fills in, for .xlsx.

    Examples
    --------
    >>> import sys
    >>> write_table(sys.stdout, ["arm", "mean"], [["-tin", -0.5]], decimal=",")
    arm;mean
    '-tin;-0,5
    """
    if decimal not in (".", ","):
        raise OutputError(f"decimal is {decimal!r}; it is '.' or ','.")
    delimiter = delimiter or ("," if decimal == "." else ";")
    if not isinstance(target, str | PathLike):
        target.write(_as_text(header, rows, decimal, delimiter))
        return
    suffix = Path(target).suffix.lower()
    if suffix == ".xlsx":
        write_file(target, workbook(header, rows, form))
        return
    if suffix in (".xls", ".xlsm", ".xlsb", ".ods", ".parquet"):
        raise OutputError(f"cannot write {target}: the name ends with .xlsx, .csv or .tsv.")
    text = _as_text(header, rows, decimal, "\t" if suffix == ".tsv" else delimiter)
    try:
        write_file(target, text.encode("utf-8" if text.isascii() else "utf-8-sig"))
    except UnicodeEncodeError as error:
        raise OutputError(
            f"cannot write {target}: {show(text[error.start])} is not valid Unicode."
        ) from error


def _checked(header: Iterable[str], rows: Iterable[Iterable[object]]) -> list[list[object]]:
    """Return the rows with the header on top; refuse a row of another length."""
    table: list[list[object]] = [list(header)]
    for number, row in enumerate(rows, 1):
        cells = list(row)
        if len(cells) != len(table[0]):
            raise OutputError(
                f"row {number} has {len(cells)} cells; the header has {len(table[0])}."
            )
        table.append(cells)
    return table


def _as_text(
    header: Iterable[str], rows: Iterable[Iterable[object]], decimal: str, delimiter: str
) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter)
    writer.writerows([_text(cell, decimal) for cell in row] for row in _checked(header, rows))
    text = buffer.getvalue()
    if "\0" in text:
        raise OutputError("there is a null character in the table. Write an .xlsx file.")
    return text


def _text(value: object, decimal: str) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None:
        return ""
    if isinstance(plain, float):
        return repr(float(plain)).replace(".", decimal)
    if isinstance(plain, int):
        return str(plain)
    return escape(str(plain))


# --- workbooks ------------------------------------------------------------------------------


def workbook(
    header: Iterable[str], rows: Iterable[Iterable[object]], form: Form | None = None
) -> bytes:
    """Return the content of an .xlsx file with a bold header that stays in view.

    Examples
    --------
    >>> from finalist.tables import read
    >>> table = read(workbook(["arm", "mean"], [["=tin", 0.5], ["007", None]]))
    >>> table.columns
    (('=tin', '007'), (0.5, None))
    """
    need("Spreadsheets", "xlsxwriter")
    import xlsxwriter

    table = _checked(header, rows)
    if len(table) > MAX_ROWS or len(table[0]) > MAX_COLUMNS:
        raise OutputError(
            f"{len(table) - 1:,} rows and {len(table[0]):,} columns are too many for .xlsx. Write "
            "a .csv file."
        )
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, {"in_memory": True}) as book:
        sheet = book.add_worksheet("Table" if form is None else form.title)
        _fill(sheet, book, table, form)
        if form is not None and form.help:
            _explain(book, form.help)
    return buffer.getvalue()


def _fill(sheet: Any, book: Any, table: list[list[object]], form: Form | None) -> None:
    names = list(map(str, table[0]))
    marked = names.index(form.column) if form is not None else -1
    head = {"bold": True, "bottom": 1, "valign": "top", "text_wrap": True}
    styles = {
        "head": book.add_format(head),
        "marked head": book.add_format({**head, "bg_color": _LINE, "font_color": _INK}),
        "marked": book.add_format({"bg_color": _FILL, "border": 1, "border_color": _LINE}),
        "date": book.add_format({"num_format": "yyyy-mm-dd"}),
        "datetime": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        "time": book.add_format({"num_format": "hh:mm:ss"}),
    }
    for j, name in enumerate(names):
        _write(sheet, 0, j, name, styles["marked head" if j == marked else "head"], styles)
    for i, row in enumerate(table[1:], 1):
        for j, cell in enumerate(row):
            _write(sheet, i, j, cell, styles["marked"] if j == marked else None, styles)
    for j, width in enumerate(_widths(table)):
        sheet.set_column(j, j, width)
    sheet.freeze_panes(1, 0)
    sheet.repeat_rows(0)
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    if form is not None and len(table) > 1:
        if form.choices:
            offered = {"validate": "list", "source": list(form.choices), "show_error": False}
            sheet.data_validation(1, marked, len(table) - 1, marked, offered)
        sheet.set_selection(1, marked, 1, marked)


def _write(sheet: Any, i: int, j: int, value: object, style: Any, styles: dict[str, Any]) -> None:
    """Write a cell by its type; text is never taken for a formula, a link or a number."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None:
        if style is not None:
            sheet.write_blank(i, j, None, style)
    elif isinstance(plain, bool):
        sheet.write_boolean(i, j, plain, style)
    elif isinstance(plain, int | float) and _fits(plain):
        sheet.write_number(i, j, plain, style)
    elif isinstance(plain, date | time) and getattr(plain, "tzinfo", None) is None:
        kind = "time" if isinstance(plain, time) else "date"
        kind = "datetime" if isinstance(plain, datetime) else kind
        sheet.write_datetime(i, j, plain, style or styles[kind])
    else:
        sheet.write_string(i, j, _storable(str(plain), i, j), style)


def _fits(number: int | float) -> bool:
    return abs(number) < _LARGEST_WHOLE if isinstance(number, int) else math.isfinite(number)


def _storable(text: str, i: int, j: int) -> str:
    where = f"row {i}, column {j + 1}" if i else f"the name of column {j + 1}"
    if len(text) > MAX_CHARACTERS:
        raise OutputError(
            f"{where}: {show(text, 40)} has {len(text):,} characters; a cell of .xlsx holds "
            f"{MAX_CHARACTERS:,}. Write a .csv file."
        )
    wrong = _NOT_XML.search(text)
    if wrong is not None:
        raise OutputError(f"{where}: {show(wrong[0])} cannot be written to .xlsx.")
    return text


def _widths(table: Sequence[Sequence[object]]) -> list[float]:
    """Return widths that show most cells in full; long text is cut off on screen."""
    shown = [[len(_text(cell, ".")) for cell in row] for row in table[:_MEASURED]]
    longest = [max(lengths) for lengths in zip(*shown, strict=True)]
    return [min(max(length + 2, _NARROWEST), _WIDEST) for length in longest]


def _explain(book: Any, sentences: Sequence[str]) -> None:
    sheet = book.add_worksheet("How to fill it in")
    style = book.add_format({"text_wrap": True, "valign": "top"})
    sheet.set_column(0, 0, 80)
    for i, sentence in enumerate(sentences):
        sheet.write_string(i, 0, sentence, style)
