"""Tables that people have: what is read, what is found out and said, and what is refused."""

import io
import zipfile
from datetime import date, datetime

import numpy as np
import openpyxl
import pandas as pd
import pytest
import xlsxwriter

from finalist import tables
from finalist.errors import FileFormatError, TooLargeError, UnclearTableError
from finalist.tables import Dialect, Limits, archives, read, sheets
from finalist.tables.columns import columns_of

GERMAN = "Name;Dosis;Ton\nÄpfel;1,5;warm\nBirnen;2;kalt\n"


def workbook(*rows, title="Sheet", more=()):
    """Return the bytes of an .xlsx file that another program wrote."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    book.active.title = title
    for name, cells in more:
        sheet = book.create_sheet(name)
        for row in cells:
            sheet.append(list(row))
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def roles(content, given=None, **words):
    return [column.role for column in columns_of(read(content, **words), given)]


# --- encodings, delimiters, decimal signs ---------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("cp1252", ", Windows-1252"),
        ("utf-16", ", UTF-16"),
        ("utf-16-le", ", UTF-16"),
        ("utf-16-be", ", UTF-16"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_the_same_table_whatever_program_saved_it(encoding, said, end, mark):
    content = GERMAN.replace(";", mark).replace("\n", end).encode(encoding)
    found = read(content)
    words = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
    assert found.read_as == f"{words[mark]}, decimal comma{said}"
    assert found.names == ("Name", "Dosis", "Ton")
    assert found.column("Name") == ("Äpfel", "Birnen")
    assert found.numbers("Dosis").tolist() == [1.5, 2.0]
    assert found.where(1, "Ton") == "the table, line 3, column 'Ton'"


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (b"n;p;q\nA;1.000;2,5\nB;12.500,5;3\n", [1000.0, 12500.5]),  # a comma settles it
        (b'n,p\nA,"1,000.5"\nB,"2,000"\n', [1000.5, 2000.0]),
        (b"n,p\nA,1.000\nB,2.500\n", [1.0, 2.5]),  # commas are between the cells
        (b"n;p\nA;1 000\nB;-2\xc2\xa0500\n", [1000.0, -2500.0]),
        (b"n;p\nA;1'000\nB;2'500.5\n", [1000.0, 2500.5]),
        (b"n;p\nA;0.125\nB;1.500\n", [0.125, 1.5]),  # no thousand begins with 0
        (b"n;p\nA;1.000.000\nB;2.000\n", [1e6, 2000.0]),
        ("n;p\nA;\u22121,5\nB;+2e3\n".encode(), [-1.5, 2000.0]),
        (b"n\tp\nA\t1e-3\nB\t.5\n", [0.001, 0.5]),
    ],
)
def test_numbers_as_people_write_them(content, values):
    assert read(content).numbers("p").tolist() == values


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"n;p\nA;1.000\nB;2.500\n", ("line 2, column 'p'", "'1.000' is 1 ", "and 1000 with")),
        (b"n\tp\nA\t7\nB\t1,000\n", ("line 3", "'1,000' is 1000 ", "and 1 with")),
        (b'n,p\nA,"1,000"\n', ("is 1000 with a decimal point and 1 with a decimal comma",)),
        (b"n;p;q\nA;1.5;2,5\n", ("'1.5' has a decimal point", "'2,5' a decimal comma")),
        (b"a;b,c\nx;y,z\n", ("2 ways", "['a', 'b,c']", "['a;b', 'c']")),
    ],
)
def test_two_possible_readings_are_shown_and_one_word_settles_it(content, words):
    with pytest.raises(UnclearTableError) as caught:
        read(content)
    for word in words:
        assert word in str(caught.value)
    assert len(caught.value.choices) == 2
    assert "--" in caught.value.options
    for choice in caught.value.choices:
        name, _, value = choice.partition("=")
        read(content, Dialect(**{name: value.strip("'")}))


def test_what_the_user_says_is_not_found_out():
    content = b"n;p\nA;1.000\n"
    assert read(content, Dialect(decimal=".")).numbers("p").tolist() == [1.0]
    assert read(content, Dialect(decimal=",")).numbers("p").tolist() == [1000.0]
    assert read(content, Dialect(delimiter=",")).names == ("n;p",)
    assert read("n\nÄ\n".encode("cp1252"), Dialect(encoding="cp1250")).column("n") == ("Ä",)
    for words in ({"delimiter": ";;"}, {"decimal": "'"}, {"delimiter": ",", "decimal": ","}):
        with pytest.raises(FileFormatError):
            Dialect(**words)
    with pytest.raises(FileFormatError, match="no encoding 'klingon'"):
        read(content, Dialect(encoding="klingon"))
    with pytest.raises(FileFormatError, match="is not ascii text"):
        read("Ä;b\n1;2\n".encode(), Dialect(encoding="ascii"))
    with pytest.raises(FileFormatError, match="only spreadsheets have sheets"):
        read(content, Dialect(sheet="1"))


def test_words_and_dates_do_not_settle_the_decimal_sign():
    for content in (
        b"pull_id;result\n1;failed\n2;failed\n3;n/a\n4;1,234\n5;2,250\n",
        b"Name;Day;Yield\nA;12.05;1,234\nB;13.05;2,250\n",
    ):
        with pytest.raises(UnclearTableError, match=r"is 1234 with a decimal point and 1\.234"):
            read(content)
    settled = read(b"n;p\nA;1,000\nB;2,000.5\n")  # by the column itself
    assert settled.numbers("p").tolist() == [1000.0, 2000.5]


def test_excels_line_about_the_separator_is_not_a_row():
    found = read(b"sep=;\r\nname;dose\r\nA;1,5\r\n")
    assert found.names == ("name", "dose")
    assert found.where(0) == "the table, line 3"


@pytest.mark.parametrize("text", ["1" * 100_000 + "x", "1." * 50_000, "," * 100_000])
def test_long_cells_are_read_in_no_time(text):
    """A pattern that backtracks would take minutes, and hold up everybody."""
    found = read(f"a;b\n{text};1\n2;3\n".encode())
    assert np.isnan(found.numbers("a")[0])
    assert len(columns_of(found)) == 2


@pytest.mark.parametrize("encoding", ["punycode", "unicode_escape", "idna", "rot13", "a\0b", "x"])
def test_what_is_no_encoding_of_text_is_refused(encoding):
    with pytest.raises(FileFormatError, match="no encoding"):
        read(b"a;b\n1;2\n", Dialect(encoding=encoding))


def test_a_comma_in_a_header_or_a_text_does_not_make_commas_the_delimiter():
    assert read(b"n;price, EUR\nA;1,5\nB;2,5\n").names == ("n", "price, EUR")
    assert read(b"n;note\nA;warm, dry\nB;cold\n").names == ("n", "note")
    assert read(b'n;note\nA;"a;b"\n').column("note") == ("a;b",)


# --- rows and columns -----------------------------------------------------------------------


def test_blank_rows_empty_columns_and_row_numbers_are_left_out_and_said():
    found = read(b",name,dose,rest,\n0,A,1,,\n,,,,\n1,B,2,,\n,,,,\n\n")
    assert found.names == ("name", "dose")
    assert found.lines == [2, 4]
    assert found.remarks == (
        "1 blank row left out",
        "column 1, a row number without a name, left out",
        "column 'rest', which is empty, left out",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the table is empty"),
        (b" \n;;\n", "the table is empty"),
        (b"name,dose,,tone\nA,1,2,x\n", "column 3 has no name.*merged"),
        (b"dose,dose\n1,2\n", "columns 1 and 2 are both 'dose'"),
        (b"Trial 2025\nname,dose\nA,1\n", "line 2: 2 cells.*title"),
        (b"name,dose\nA,1,5\n", "line 2: 3 cells.*double quotes"),
        (b'name,dose\n"A,1\n', "line 2: .*quotes"),
        (bytes(range(256)), "is not a table"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old version of Excel"),
        (b"PAR1 but not really PAR1", "not a Parquet file"),
        (b"PK\x03\x04 not a zip", "damaged"),
    ],
)
def test_what_is_not_a_table_is_refused_with_its_place(content, message):
    with pytest.raises(FileFormatError, match=message):
        read(content)


def test_cells_over_several_lines_do_not_shift_the_lines_of_others():
    found = read(b'name,"note\nhere",dose\n"A\nB",x,1\nC,"p\nq",?\n')
    assert found.lines == [3, 5]
    assert found.where(1, "dose") == "the table, line 6, column 'dose'"


# --- spreadsheets ---------------------------------------------------------------------------


def test_a_spreadsheet_is_read_with_its_types():
    content = workbook(
        ("Name", "Dose", "When", "Fresh", None),
        ("A", 1.5, datetime(2026, 9, 2), True, None),
        (None, None, None, None, None),
        ("007", 2, datetime(2026, 9, 2, 12), False, None),
        more=[("notes", [("hello",)])],
    )
    found = read(content)
    assert found.read_as == "sheet 'Sheet' of 2"
    assert found.columns == (
        ("A", "007"),
        (1.5, 2.0),
        (date(2026, 9, 2), datetime(2026, 9, 2, 12)),
        (True, False),
    )
    assert found.where(1, "Dose") == "the table, row 4, column 'Dose'"
    assert found.remarks == ("1 blank row left out",)
    for name in ("notes", "2"):
        assert read(content, Dialect(sheet=name)).names == ("hello",)
    with pytest.raises(FileFormatError, match=r"no sheet 'x'; its sheets are \['Sheet', 'notes'\]"):
        read(content, Dialect(sheet="x"))


def test_formulas_are_their_values_and_titles_are_named():
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["Name", "Dose", "Ratio"])
        sheet.write_row(1, 0, ["A", 2])
        sheet.write_formula(1, 2, "=B2/4", value=0.5)
    assert read(buffer.getvalue()).column("Ratio") == (0.5,)
    with pytest.raises(FileFormatError, match=r"row 1: one cell, 'Trial'.*title"):
        read(workbook(("Trial",), ("Name", "Dose", "Tone"), ("A", 1, "x")))


def test_an_ods_file_is_read_with_repeated_cells():
    office = "urn:oasis:names:tc:opendocument:xmlns"
    names = " ".join(f'xmlns:{n}="{office}:{n}:1.0"' for n in ("office", "table", "text"))

    def cell(value, repeated=1):
        if value is None:
            return f'<table:table-cell table:number-columns-repeated="{repeated}"/>'
        kind = "float" if isinstance(value, float) else "string"
        number = f' office:value="{value}"' if kind == "float" else ""
        return (
            f'<table:table-cell office:value-type="{kind}"{number} '
            f'table:number-columns-repeated="{repeated}"><text:p>{value}</text:p></table:table-cell>'
        )

    def row(*cells, repeated=1):
        inside = "".join(cells)
        return (
            f'<table:table-row table:number-rows-repeated="{repeated}">{inside}</table:table-row>'
        )

    rows = [
        row(cell("name"), cell("x"), cell("y"), cell(None, 16381)),
        row(cell("a"), cell(1.5, 2), cell(None, 16381)),
        row(cell(None, 16384), repeated=2),
        row(cell("b"), cell(2.5), cell(3.5), cell(None, 16381)),
        row(cell(None, 16384), repeated=1_048_571),
    ]
    content = (
        f"<office:document-content {names}><office:body><office:spreadsheet>"
        f'<table:table table:name="Data">{"".join(rows)}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    parts = {"mimetype": kind, "content_xml": content, "META-INF/manifest_xml": manifest}
    found = read(packed(**parts))
    assert found.columns == (("a", "b"), (1.5, 2.5), (1.5, 3.5))
    assert found.lines == [2, 5]
    assert found.read_as == "sheet 'Data'"


def test_text_numbers_of_a_spreadsheet_are_settled_as_in_a_file():
    found = read(workbook(("n", "p"), ("A", "1,5"), ("B", 2.5)))
    assert found.numbers("p").tolist() == [1.5, 2.5]
    assert found.read_as == "decimal comma, sheet 'Sheet'"


def packed(**parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return buffer.getvalue()


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr(archives, "MAX_UNPACKED", 2**20)
    zeros = b" " * 2**21
    content = packed(xl__workbook_xml="x", xl__worksheets__sheet1_xml=zeros)
    assert len(content) < 10_000
    with pytest.raises(TooLargeError, match="unpacks to more than 1 MB"):
        read(content)
    # A file that lies about its size is unpacked no further.
    honest = (2**21).to_bytes(4, "little")
    assert honest in content
    with pytest.raises(TooLargeError, match="unpacks"):
        read(content.replace(honest, (100).to_bytes(4, "little")))


def test_a_cell_far_away_is_refused_before_the_table_between_is_made():
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "a", 1
    buffer = io.BytesIO()
    book.save(buffer)
    with pytest.raises(TooLargeError, match="1,048,576 rows and 16,384 columns"):
        read(buffer.getvalue())
    names = 'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    cell = '<table:table-cell table:number-columns-repeated="16384"><p>1</p></table:table-cell>'
    rows = f'<table:table-row table:number-rows-repeated="1000000">{cell}</table:table-row>'
    content = f"<office {names}><table:table>{rows}</table:table></office>"
    with pytest.raises(TooLargeError, match="1,000,000 rows and 16,384 columns"):
        read(packed(content_xml=content))
    inner = (
        f"<table:table-row><table:table-cell><table:table>{rows}</table:table></table:table-cell>"
    )
    for other in (
        content.replace("<p>1</p>", "").replace(
            "<table:table-cell ", '<table:table-cell o:value="1" '
        ),
        content.replace("urn:oasis", "urn:x"),
        content.replace(rows, f"{inner}</table:table-row>"),
    ):
        with pytest.raises(TooLargeError, match="16,384 columns"):
            read(packed(content_xml=other))
    sheet = "<worksheet><sheetData><row><c {}/></row></sheetData></worksheet>"
    for place in ("r='ZZZ1048576'", 'r ="ZZZ1048576"'):
        for part in ("xl__worksheets__sheet1_xml", "elsewhere__far_xml"):
            with pytest.raises(TooLargeError, match="1,048,576 rows"):
                read(packed(xl__workbook_xml="<x/>", **{part: sheet.format(place)}))


def test_one_long_text_in_many_cells_is_refused(monkeypatch):
    monkeypatch.setattr(archives, "MAX_TEXT", 10_000)
    strings = f"<sst><si><t>{'x' * 5_000}</t></si></sst>"
    cells = "".join(f'<c r="A{i}" t="s"><v>0</v></c>' for i in range(1, 4))
    parts = {
        "xl__worksheets__s_xml": f"<s><row>{cells}</row></s>",
        "xl__sharedStrings_xml": strings,
    }
    with pytest.raises(TooLargeError, match="characters in its cells"):
        read(packed(xl__workbook_xml="<x/>", **parts))
    long = {"xl__sharedStrings_xml": f"<sst><si><t>{'x' * 200_000}</t></si></sst>"}
    with pytest.raises(TooLargeError, match="100,000 characters in a cell"):
        read(packed(xl__workbook_xml="<x/>", **long))


def test_only_the_parts_that_were_checked_are_read():
    one, other = workbook(("a", "b"), (1, 2)), workbook(("c",), (3,))
    assert read(one + other).names == ("c",)  # the last archive, and nothing of the first
    twice = io.BytesIO(one)
    with zipfile.ZipFile(twice, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("xl/workbook.xml", "<x/>")
    with pytest.raises(FileFormatError, match="there twice"):
        read(twice.getvalue())


def test_errors_in_cells_and_document_types_are_refused():
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["Name", "Ratio"])
        sheet.write_formula(1, 1, "=1/0", value="#DIV/0!")
    with pytest.raises(FileFormatError, match=r"cell B2: it has an error, such as #DIV/0!"):
        read(buffer.getvalue())
    entity = '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'
    with pytest.raises(FileFormatError, match="document type"):
        read(packed(xl__workbook_xml=entity))


def test_macros_and_other_archives_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="has macros"):
        read(packed(xl__workbook_xml="x", **{"xl/vbaProject.bin": "x"}))
    with pytest.raises(FileFormatError, match="is not a spreadsheet"):
        read(packed(readme="x"))
    (tmp_path / "a.xlsm").write_bytes(workbook(("a",), (1,)))
    with pytest.raises(FileFormatError, match="may have macros"):
        read(tmp_path / "a.xlsm")


def test_limits_are_kept(tmp_path):
    content = b"a,b\n" + b"1,2\n" * 11
    for limits in (Limits(content=20), Limits(rows=10), Limits(cells=21)):
        with pytest.raises(TooLargeError):
            read(content, limits=limits)
        with pytest.raises(TooLargeError):
            read(workbook(("a", "b"), *[(1, 2)] * 11), limits=limits)
    assert len(read(content, limits=Limits(100, 11, 22))) == 11


# --- data frames ----------------------------------------------------------------------------


def frames(columns):
    import polars as pl
    import pyarrow as pa

    return [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]


def test_frames_of_all_libraries_are_the_same_table():
    columns = {"n": ["a", "b"], "x": [1.5, None], "k": [1, 2], "on": [True, False], "t": ["u", ""]}
    for frame in frames(columns):
        found = read(frame)
        assert found.names == tuple(columns)
        assert found.columns == (("a", "b"), (1.5, None), (1, 2), (True, False), ("u", None))
        assert found.where(1, "x") == "row 2, column 'x'"
    for other in ([1, 2], np.eye(2), 3):
        with pytest.raises(FileFormatError, match="a table is a file or a data frame"):
            read(other)


# --- roles ----------------------------------------------------------------------------------

TABLE = """Nr,Sort,Tone,Fresh,Dose,Remark,Code,Share
1,Alpha,calm,yes,1.5,{long},007,12%
2,Beta,loud,no,2,x,008,13%
3,Gamma,calm,no,3,y,009,14%
4,Delta,loud,yes,4,z,010,15%
5,Eps,calm,yes,5,,011,16%
6,Zeta,calm,no,2,,012,17%
""".format(long="a remark of a whole sentence that goes on " * 3).encode()


def test_roles_are_guessed_with_a_reason():
    found = columns_of(read(TABLE))
    assert [column.role for column in found] == [
        "ignore",
        "name",
        "category",
        "yes/no",
        "number",
        "ignore",
        "ignore",
        "ignore",
    ]
    why = {column.name: column.why for column in found}
    assert why["Tone"] == "text with 2 values"
    assert why["Remark"] == "long text"
    assert why["Share"] == "numbers with '%'; without '%' these would be numbers"
    assert [column.name for column in found if column.question] == ["Nr"]
    given = columns_of(read(TABLE), {"Nr": "number", "Code": "name", "Sort": "Category"})
    assert [column.role for column in given][:2] == ["number", "category"]
    assert given[6].role == "name"
    assert not any(column.question for column in given)


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        (["1", "2", "3", "4"], "number"),  # few rows: a dose
        (["2", "1", "3", "4", "5"], "number"),
        (["0", "1", "0", "1", "1"], "number"),
        (["true", "FALSE", "True", "false", "true"], "yes/no"),
        (["12", "n/a", "14", "", "15"], "number"),
        (["12", "high", "low", "low", "high"], "category"),
        (["a", "b", "c", "d", "e"], "ignore"),
        (["a", "a", "a", "a", "a"], "ignore"),
        (["007", "012", "007", "012", "007"], "category"),
        (["1.2.3", "1.2.4", "1.2.3", "1.2.4", "1.2.3"], "category"),
        (["2-Sep", "1-Mar", "2-Sep", "1-Mar", "2-Sep"], "category"),
        (["2024-01-05", "2024-01-05", "2024-02-01", "2024-02-01", "2024-01-05"], "ignore"),
        (["10%", "0%", "20%", "10%", "0%"], "ignore"),
        (["1,50 €", "2 €", "1,50 €", "2 €", "2 €"], "ignore"),
    ],
)
def test_what_a_column_is(cells, role):
    names = ["p", "q", "r", "s", "t"][: len(cells)]
    text = "name;x\n" + "".join(f"{n};{c}\n" for n, c in zip(names, cells, strict=True))
    assert roles(text.encode())[1] == role


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Tome": "category"}, "there is no column 'Tome'"),
        ({"Tone": "colour"}, "cannot be 'colour'; it is one of name, number"),
        ({"Tone": "name", "Sort": "name"}, "'Tone' and 'Sort' are both given as name"),
    ],
)
def test_wrong_words_for_columns_are_refused(given, message):
    with pytest.raises(FileFormatError, match=message):
        columns_of(read(TABLE), given)


def test_the_reader_loads_nothing_heavy_before_it_needs_it():
    assert "python_calamine" not in vars(sheets)
    assert tables.__all__ == ["Cell", "Cells", "Dialect", "Limits", "read"]
