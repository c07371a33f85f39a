"""Sheets go out, people edit them in a spreadsheet, and they come back."""

import csv
import io
import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import finalist as fl
from finalist.errors import FileFormatError, OutputError, RewardError
from finalist.study import Study
from finalist.study.results import OwnColumns, read_results, write_pulls
from finalist.tables.writer import write_table

TABLE = pd.DataFrame(
    {
        "name": ["=tin", "007", "zinc, hot", "1.000"],
        "Note": ["a", "b", "c", "d"],
        "dose": [1.0, 2.5, 3.0, 1.125],
        "Result": [1, 2, 3, 4],
    }
)
ARMS = fl.Arms.from_formula("dose", TABLE)
KINDS = ("xlsx", "csv", "tsv")


@pytest.fixture
def study(tmp_path):
    with Study.create(tmp_path / "lab.db", "metals", ARMS, sigma=1.0, seed=1) as study:
        yield study


def issued(study: Study, path: Path, size: int = 8) -> Path:
    study.ask(size).to_csv(path)
    return path


def rows_of(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Read a workbook as somebody else does."""
    sheet = openpyxl.load_workbook(path).worksheets[0]
    header, *rows = sheet.iter_rows(values_only=True)
    return [str(cell) for cell in header], [list(row) for row in rows]


def save(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    """Save a workbook as somebody else does."""
    book = openpyxl.Workbook()
    for row in (header, *rows):
        book.active.append(row)
    book.save(path)
    return path


def filled(path: Path, values: Any) -> tuple[list[str], list[list[Any]]]:
    header, rows = rows_of(path)
    for row, value in zip(rows, values, strict=False):
        row[header.index("result")] = value
    return header, rows


def states(study: Study) -> dict[int, str]:
    frame = study.to_frame()
    return dict(zip(frame.pull_id.tolist(), frame.state.tolist(), strict=True))


def rewards(study: Study) -> dict[int, float]:
    frame = study.to_frame().query("state == 'told'")
    return dict(zip(frame.pull_id.tolist(), frame.reward.tolist(), strict=True))


# --- what is written ------------------------------------------------------------------------

HEADER = [
    "pull_id",
    "candidate",
    "Note (candidate)",
    "dose",
    "Result (candidate)",
    "result",
    "note",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_sheet_has_the_candidates_own_columns(study, tmp_path, kind):
    path = issued(study, tmp_path / f"batch.{kind}")
    if kind == "xlsx":
        header, rows = rows_of(path)
    else:
        lines = csv.reader(io.StringIO(path.read_text()), delimiter="," if kind == "csv" else "\t")
        header, *rows = lines
    assert header == HEADER
    own = dict(zip(TABLE.name, TABLE.itertuples(index=False), strict=True))
    for row in rows:
        arm = row[1].removeprefix("'") if kind != "xlsx" else row[1]
        expected = [own[arm].Note, own[arm].dose, own[arm].Result]
        shown = [str(int(c)) if c == int(c) else str(c) for c in expected[1:]]
        assert list(map(str, row[2:5])) == [expected[0], *shown]
        assert row[5] in (None, "")


def test_a_workbook_is_easy_to_fill_in(study, tmp_path):
    book = openpyxl.load_workbook(issued(study, tmp_path / "batch.xlsx"))
    sheet, manual = book.worksheets
    assert sheet.freeze_panes == "A2"
    assert all(cell.font.bold for cell in sheet[1])
    result, note = (HEADER.index(word) + 1 for word in ("result", "note"))
    marked, plain = sheet.cell(2, result), sheet.cell(2, note)
    assert marked.fill.fgColor.rgb == "FFFFF4CC"
    assert plain.fill.fgColor.rgb != marked.fill.fgColor.rgb
    (choice,) = sheet.data_validations.dataValidation
    assert (choice.type, choice.formula1) == ("list", '"failed"')
    assert not choice.showErrorMessage  # numbers are not forbidden
    assert choice.sqref == openpyxl.worksheet.cell_range.MultiCellRange("F2:F9")
    names = [cell for cell in sheet["B"][1:] if cell.value == "=tin"]
    assert names
    assert {cell.data_type for cell in names} == {"s"}  # text, not a formula
    assert {cell.data_type for cell in sheet["D"][1:]} == {"n"}
    assert all(8 <= sheet.column_dimensions[c].width <= 46 for c in "ABCDEFG")
    words = " ".join(str(row[0]) for row in manual.iter_rows(values_only=True))
    assert "failed" in words
    assert "empty" in words


def test_arms_with_names_alone_have_no_columns_of_their_own():
    assert OwnColumns(fl.Arms.unstructured(["a", "b"])).headers == ()
    assert OwnColumns(fl.Arms(np.eye(2) + 1)).headers == ("f1", "f2")


def test_rows_of_one_arm_show_that_of_its_first_name():
    table = pd.DataFrame({"name": ["a", "b", "c"], "x": [2, 1, 2]})
    own = OwnColumns(fl.Arms(table))
    assert [own.cells(name) for name in ("a", "b", "c")] == [(2,), (1,), (2,)]


def test_own_columns_are_told_apart_from_each_other():
    names = ["note", "Note ", "note (candidate)", "UNIT", "reward"]
    arms = fl.Arms(pd.DataFrame([[1, 2, 3, 4, 5], [2, 3, 4, 5, 7]], columns=names))
    headers = OwnColumns(arms).headers
    assert len({header.lower() for header in headers}) == 5
    assert not {header.lower() for header in headers} & {"note", "unit", "reward"}


@pytest.mark.parametrize(
    ("cell", "message"),
    [("x" * 32_768, "32,768 characters"), ("\ufffe", "cannot be written"), ("\ud800", "cannot be")],
)
def test_what_a_workbook_cannot_hold_is_refused_and_nothing_written(tmp_path, cell, message):
    with pytest.raises(OutputError, match=message):
        write_table(tmp_path / "t.xlsx", ["a", "b"], [[1, cell]])
    assert list(tmp_path.iterdir()) == []


def test_names_of_files_that_are_not_written_are_refused(tmp_path):
    for name in ("t.ods", "t.xls", "T.XLSM"):
        with pytest.raises(OutputError, match=r"ends with \.xlsx, \.csv or \.tsv"):
            write_table(tmp_path / name, ["a"], [[1]])
    with pytest.raises(OutputError, match="null character"):
        write_table(tmp_path / "t.csv", ["a"], [["\0"]])
    assert list(tmp_path.iterdir()) == []


def test_cells_of_all_types_are_kept_in_a_workbook(tmp_path):
    when, day = datetime(2026, 1, 2, 3, 4, 5), date(2026, 1, 2)
    row = [True, 1, 0.1, when, day, "=1+1", "http://x.y", "1e5", 10**18, float("nan"), None]
    write_table(tmp_path / "t.xlsx", list("abcdefghijk"), [row])
    (found,) = rows_of(tmp_path / "t.xlsx")[1]
    expected = [True, 1, 0.1, when, datetime(2026, 1, 2), *row[5:8], str(10**18), "nan", None]
    assert found == expected


# --- what people do to sheets ---------------------------------------------------------------


def test_a_workbook_comes_back_sorted_with_columns_moved_and_added(study, tmp_path):
    path = issued(study, tmp_path / "batch.xlsx")
    header, rows = filled(path, [0.5, "0,25", "1,5 ", 3, None, "2", -1.5])
    order = [5, 0, 1, 2, 3, 4, 6]
    rows = sorted(([row[i] for i in order] + ["lamp 2"] for row in rows), key=lambda row: row[2])
    rows.insert(3, [None] * 8)
    save(path, [header[i].upper() for i in order] + ["Lamp"], rows)
    assert study.tell(path) == 6
    assert rewards(study) == {1: 0.5, 2: 0.25, 3: 1.5, 4: 3.0, 6: 2.0, 7: -1.5}
    notes = study.to_frame().set_index("pull_id").note
    assert json.loads(str(notes[1])) == {"Lamp": "lamp 2"}
    assert study.tell(path) == 0


def test_the_candidates_own_columns_are_no_notes_and_others_are(study, tmp_path):
    path = issued(study, tmp_path / "batch.xlsx")
    header, rows = filled(path, [1.0] * 8)
    rows[0][-1] = "wet"
    save(path, [*header, "lamp"], [[*row, "L2"] for row in rows])
    assert study.tell(path) == 8
    notes = [json.loads(str(note)) for note in study.to_frame().note]
    assert notes == [{"note": "wet", "lamp": "L2"}, *[{"lamp": "L2"}] * 7]


def test_a_formula_counts_as_the_value_it_has(study, tmp_path):
    import xlsxwriter

    path = tmp_path / "batch.xlsx"
    study.ask(2)
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["pull_id", "result"])
        sheet.write_number(1, 0, 1)
        sheet.write_formula(1, 1, "=1/8", value=0.125)
    assert study.tell(path) == 1
    assert rewards(study) == {1: 0.125}


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (date(2026, 5, 1), "column 'result': '2026-05-01' is a date"),
        (True, "column 'result': True is not a number"),
        ("n/a", "'n/a' is not .*write failed if the measurement failed"),
        ("-", "'-' is not .*Leave the result empty if it has not been measured yet"),
        ("?", "write failed if"),
        ("fail", "'fail' is not a number.*write failed"),
        ("1.5 kg", "'1.5 kg' is not"),
    ],
)
def test_a_cell_that_is_no_result_is_refused_and_nothing_taken(study, tmp_path, cell, message):
    path = issued(study, tmp_path / "batch.xlsx")
    save(path, *filled(path, [0.5, "failed", cell]))
    with pytest.raises(FileFormatError, match=rf"batch\.xlsx, row 4, .*{message}"):
        study.tell(path)
    assert set(states(study).values()) == {"open"}


@pytest.mark.parametrize("first", [None, "Total", "Sum"])
def test_a_row_of_totals_is_refused_with_its_line(study, tmp_path, first):
    path = issued(study, tmp_path / "batch.xlsx")
    header, rows = filled(path, [1.0] * 8)
    save(path, header, [*rows, [first, None, None, None, None, 8.0, None]])
    with pytest.raises(FileFormatError, match=r"row 10, column 'pull_id'.* total|is not the num"):
        study.tell(path)
    assert set(states(study).values()) == {"open"}


def test_a_half_sorted_sheet_is_caught(study, tmp_path):
    path = issued(study, tmp_path / "batch.xlsx")
    header, rows = filled(path, [1.0] * 8)
    names = sorted(row[1] for row in rows)
    save(path, header, [[row[0], name, *row[2:]] for row, name in zip(rows, names, strict=True)])
    with pytest.raises(RewardError, match="were rows mixed up"):
        study.tell(path)


def test_numbers_of_pulls_may_be_floats_and_names_numbers(tmp_path):
    arms = fl.Arms(pd.DataFrame({"name": ["1", "2"], "x": [0, 1]}))
    with Study.create(tmp_path / "lab.db", "numbers", arms, sigma=1.0, seed=1) as study:
        rows: list[list[Any]] = [[float(p.pull_id), float(p.arm), 1] for p in study.ask(2)]
        path = save(tmp_path / "batch.xlsx", ["pull_id", "arm", "result"], rows)
        assert study.tell(path) == 2


# --- result and reward ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("pull_id,result\n1,0.5\n", {1: 0.5}),
        ("pull_id,reward\n1,0.5\n", {1: 0.5}),
        ("pull_id,Reward,RESULT\n1,0.5,\n2,,3\n3,,\n", {1: 0.5, 2: 3.0}),
        ("pull_id,result,reward\n1,0.5,0.50\n2,1,1.0\n", {1: 0.5, 2: 1.0}),
        ("pull_id,result,reward\n1,,0.5\n2,,1\n", {1: 0.5, 2: 1.0}),
    ],
)
def test_a_filled_reward_counts_where_the_result_is_empty(content, expected):
    results = read_results(content.encode())
    assert dict(zip(results.pull.tolist(), results.value.tolist(), strict=True)) == expected


@pytest.mark.parametrize("cells", ["0.5,0.6", "failed,1", "1,failed", "x,1"])
def test_both_filled_and_different_is_an_error_with_the_line(cells):
    with pytest.raises(FileFormatError, match=r"the table, line 3: 'result' is .* and 'reward' is"):
        read_results(f"pull_id,result,reward\n1,2,2\n2,{cells}\n".encode())


def test_the_column_of_a_bad_cell_is_the_one_it_is_in():
    with pytest.raises(
        FileFormatError, match=r"line 2, column 'reward': 'x'.*column 'result': 'y'"
    ):
        read_results(b"pull_id,result,reward\n1,,x\n2,y,\n")


def test_other_columns_do_not_settle_the_decimal_sign():
    content = b"pull_id;arm;dose;result\n1;1.5;1.125;0,5\n2;a,b;2.250;2\n"
    assert read_results(content).value.tolist() == [0.5, 2.0]
    with pytest.raises(FileFormatError, match="1 with a decimal point and 1000 with a decimal com"):
        read_results(b"pull_id;result\n1;1.000\n")


# --- round trips ----------------------------------------------------------------------------

TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufffe\uffff"), min_size=1
).filter(str.strip)
ODD = st.sampled_from(
    ["=1+1", "'=x", "''", "-5", "007", "1e5", "1,5", "1.000", "2026-05-01", "TRUE", "NA", "failed",
     'a"b', "a\nb", "a\r\nb", "a,b;c\td|e", "_x000D_", " a ", "🍰", "http://x.y", "pull_id"]
)  # fmt: skip
NAMES = st.one_of(TEXT, ODD)
VALUES = st.one_of(st.floats(-1e150, 1e150), st.just("failed"), st.none())


@given(
    names=st.lists(NAMES, min_size=2, max_size=5, unique_by=str.strip),
    column=NAMES,
    texts=st.lists(NAMES, min_size=5, max_size=5),
    values=st.lists(VALUES, min_size=5, max_size=5).filter(
        lambda values: any(value is not None for value in values)
    ),
    kind=st.sampled_from(KINDS),
)
@example(["'=x", "=x"], "'=h", ["=1"] * 5, [0.1, "failed", None, 1.5, 2.0], "xlsx")
@example(["a;b", "a,b"], "1,5", ["1.000"] * 5, [1000.5, None, None, None, 1.0], "csv")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_table_of_candidates_comes_back(tmp_path_factory, names, column, texts, values, kind):
    path = tmp_path_factory.getbasetemp() / f"round.{kind}"
    names = [name.strip() for name in names]
    column = column.strip()
    if column.lower() in ("name", "x"):
        return
    table = {"name": names, "x": range(len(names)), column: texts[: len(names)]}
    own = OwnColumns(fl.Arms.from_formula("x", pd.DataFrame(table)))
    rows = [
        {"pull_id": i, "arm": names[i % len(names)], "result": value, "note": texts[i - 1]}
        for i, value in enumerate(values, 1)
    ]
    try:
        write_pulls(path, rows, own)
    except OutputError:
        assert kind == "xlsx"
        return
    results = read_results(path, own=own.headers)
    told = [row for row in rows if row["result"] is not None]
    assert results.pull.tolist() == [row["pull_id"] for row in told]
    assert results.arm == tuple(row["arm"] for row in told)
    assert results.failed.tolist() == [row["result"] == "failed" for row in told]
    exact = 1e-15 if kind == "xlsx" else 0.0  # workbooks have 16 digits
    for value, row in zip(results.value.tolist(), told, strict=True):
        if row["result"] != "failed":
            assert value == pytest.approx(row["result"], rel=exact, abs=0.0)
    notes = [json.loads(note or "{}") for note in results.note]
    assert notes == [{"note": row["note"]} for row in told]
