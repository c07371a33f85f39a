"""Results come in as told, or not at all; tables survive the way through a spreadsheet."""

import io
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from finalist.errors import FileFormatError, OutputError, RewardError
from finalist.study.results import Results, as_results, read_results, write_pulls, write_table
from finalist.tables import Dialect

COMMA = Dialect(decimal=",")


@pytest.fixture
def file(tmp_path):
    """Write text or bytes to a CSV file, and return its path."""

    def write(content: str | bytes):
        path = tmp_path / "plate.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def told(results) -> dict[int, float]:
    return dict(zip(results.pull.tolist(), results.value.tolist(), strict=True))


# --- Python values --------------------------------------------------------------------------


def test_results_are_ordered_by_pull():
    results = as_results({9: 0.5, 2: 1, np.int32(4): np.float32(0.25), 5: Fraction(1, 2)})
    assert results.pull.tolist() == [2, 4, 5, 9]
    assert results.value.tolist() == [1.0, 0.25, 0.5, 0.5]
    assert results.pull.dtype == np.int64
    assert results.note == results.arm == (None,) * 4
    assert len(results) == 4


@pytest.mark.parametrize("form", [list, tuple, iter, dict])
def test_pairs_are_as_good_as_a_mapping(form):
    assert told(as_results(form([(1, 0.5), (7, -2.0)]))) == {1: 0.5, 7: -2.0}


def test_nothing_told_is_an_empty_result():
    assert len(as_results({})) == 0
    assert as_results([]).pull.dtype == np.int64


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (float("nan"), "result for measurement 17 is nan, which is not a finite number"),
        (float("inf"), "result for measurement 17 is inf, which is not a finite number"),
        (np.float64("-inf"), "result for measurement 17 is -inf"),
        (10**400, "result for measurement 17 is 1000.*not a finite number"),
        (1.1e150, r"result for measurement 17 is 1.1e\+150, which is beyond 1e\+150"),
        (True, "result for measurement 17 is True, which is not a number"),
        (np.True_, "result for measurement 17 is True, which is not a number"),
        ("0.5", "result for measurement 17 is '0.5', which is text"),
        (None, "result for measurement 17 is None, which is not a number"),
        (1j, "result for measurement 17 is 1j"),
        (Decimal("0.5"), "result for measurement 17"),
        ([0.5], "result for measurement 17"),
        (pd.NA, "result for measurement 17"),
    ],
)
def test_what_is_not_a_finite_number_is_refused_with_the_pull(reward, message):
    with pytest.raises(RewardError, match=message):
        as_results({3: 0.5, 17: reward})
    with pytest.raises(RewardError, match=message):
        as_results([(17, reward)])


def test_the_largest_reward_is_accepted():
    assert told(as_results({1: 1e150, 2: -(10**150)})) == {1: 1e150, 2: -1e150}


@pytest.mark.parametrize(
    ("pull", "message"),
    [
        ("17", r"measurement '17' is text.*Use int\(...\)"),
        (True, "measurement True is not a whole number"),
        (np.True_, "measurement True is not a whole number"),
        (17.0, "measurement 17.0 is not a whole number"),
        (None, "measurement None is not given"),
        (2**63, "is too large for a measurement"),
        (np.uint64(2**63), "is too large for a measurement"),
    ],
)
def test_what_is_not_the_number_of_a_pull_is_refused(pull, message):
    with pytest.raises(RewardError, match=message):
        as_results({pull: 0.5})


@pytest.mark.parametrize("results", [5, None, b"1,2", [1, 2], [(1, 2, 3)], ["ab"], object()])
def test_what_is_neither_pairs_nor_a_table_is_refused(results):
    with pytest.raises(RewardError):
        as_results(results)


def test_a_pull_told_twice_alike_is_one():
    assert told(as_results([(3, 0.5), (1, 2.0), (3, 0.5)])) == {3: 0.5, 1: 2.0}
    assert as_results([(3, 0.5), (1, 2.0), (3, 0.5)]).pull.tolist() == [1, 3]


def test_a_pull_with_two_rewards_is_refused_with_both():
    with pytest.raises(RewardError, match=r"measurement 3 has two results: 0\.5 and 0\.75"):
        as_results([(3, 0.5), (1, 2.0), (3, 0.75)])


def test_columns_of_different_lengths_and_text_that_cannot_be_stored_are_refused():
    for words in ({"value": [1.0]}, {"arm": ["a"]}, {"note": ["a", None, None]}):
        with pytest.raises(RewardError, match="each pull_id needs one result"):
            Results(**cast(Any, {"pull": [1, 2], "value": [1.0, 2.0], **words}))
    with pytest.raises(RewardError, match="not valid Unicode"):
        Results([1], [1.0], note=["half a \ud83e character"])


def test_results_name_their_rows_also_after_a_choice(file):
    results = read_results(file("pull_id,reward\n9,1\n\n7,2\n9,1\n8,3\n"))
    assert [results.where(i) for i in range(3)] == [
        "measurement 7 (line 4)",
        "measurement 8 (line 6)",
        "measurement 9 (line 2)",
    ]
    some = results.taken(np.array([False, True, True]))
    assert [some.where(i) for i in range(2)] == ["measurement 8 (line 6)", "measurement 9 (line 2)"]
    assert (some.pull.tolist(), some.value.tolist(), some.note) == ([8, 9], [3.0, 1.0], (None,) * 2)
    assert Results([4, 3], [1, 2]).where(0) == "measurement 3"


def test_bytes_are_read_like_a_file_under_a_name():
    assert told(read_results(b"pull_id;reward\n1;0,5\n")) == {1: 0.5}
    with pytest.raises(FileFormatError, match=r"^plate, line 2, column 'reward': 'x' is not"):
        read_results(b"pull_id,reward\n1,x\n", name="plate")


# --- data frames ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [lambda frame: frame, pa.Table.from_pandas])
def test_a_frame_is_read_by_its_columns(kind):
    frame = pd.DataFrame(
        {
            "well": ["A1", None, "A3"],
            " Reward": [0.5, np.nan, 2.0],
            "PULL_ID": [4, 5, 6],
            "Arm": ["tin", "lead", "zinc"],
        }
    )
    results = as_results(kind(frame))
    assert told(results) == {4: 0.5, 6: 2.0}
    assert results.arm == ("tin", "zinc")
    assert [json.loads(note or "") for note in results.note] == [{"well": "A1"}, {"well": "A3"}]


def test_whole_floats_are_pulls_because_pandas_makes_them_so():
    frame = pd.DataFrame({"pull_id": [4.0, np.nan], "reward": [1.0, np.nan]})
    assert told(as_results(frame)) == {4: 1.0}


@pytest.mark.parametrize(
    ("pulls", "rewards", "place"),
    [
        ([1.5, 2.5], [1.0, 2.0], "row 1, column 'pull_id': 1.5 is not a whole number"),
        ([1.0, 1e300], [1.0, 2.0], "row 2, column 'pull_id'"),
        (["1", "2"], [1.0, 2.0], "row 1, column 'pull_id': '1' is text"),
        ([True, False], [1.0, 2.0], "row 1, column 'pull_id': True is not"),
        ([1, None], [1.0, 2.0], "row 2, column 'pull_id': None is not given"),
        ([1, 2], [1.0, np.inf], "row 2, column 'reward': inf is not a finite"),
        ([1, 2], ["1.0", None], "row 1, column 'reward': '1.0' is text"),
        ([1, 2], [True, False], "row 1, column 'reward': True is not a number"),
        ([1, 2], [1.0, "x"], "row 2, column 'reward': 'x' is text"),
        ([1, 2], [None, 2e150], "row 2, column 'reward': 2e.150 is beyond"),
    ],
)
def test_a_bad_cell_of_a_frame_is_named(pulls, rewards, place):
    with pytest.raises(RewardError, match=place):
        as_results(pd.DataFrame({"pull_id": pulls, "reward": rewards}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"pull_id": [1]}, "no column 'result'"),
        ({"reward": [1.0]}, "no column 'pull_id'"),
        ({"pull_id": [1], "reward": [1.0], "Reward ": [2.0]}, "columns 2 and 3 are both"),
        ({"pull_id": [1, 2], "reward": [None, np.nan]}, "no result is filled in"),
        ({"pull_id": [1], "reward": [1.0], "arm": ["\ud800"]}, "not valid Unicode"),
        ({"pull_id": [1], "reward": [1.0], "note": ["\ud800"]}, "not valid Unicode"),
    ],
)
def test_a_frame_without_what_it_needs_is_refused(columns, message):
    with pytest.raises(RewardError, match=message):
        as_results(pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()}))


def test_columns_with_the_same_name_are_refused():
    frame = pd.DataFrame([[1, 2.0, 3.0]], columns=["pull_id", "reward", "reward"])
    with pytest.raises(RewardError):
        as_results(frame)


def test_notes_of_a_frame_are_valid_json_of_any_value():
    frame = pd.DataFrame(
        {
            "pull_id": [1, 2],
            "reward": [0.5, 0.5],
            "when": [pd.Timestamp("2026-01-02"), pd.NaT],
            "dose": [np.inf, np.nan],
            "n": [3, 4],
            7: ["µ\n\x00", " "],
        }
    )
    first, second = (json.loads(note or "") for note in as_results(frame).note)
    assert first == {"when": "2026-01-02 00:00:00", "dose": "inf", "n": 3, "7": "µ\n\x00"}
    assert second == {"n": 4}


# --- files ----------------------------------------------------------------------------------


def test_a_partly_filled_plate_gives_what_is_filled(file):
    path = file("pull_id,candidate,result,note\n1,tin,0.5,\n2,lead,,broke\n3,zinc, 1e-3 ,late\n")
    results = as_results(str(path))
    assert told(results) == {1: 0.5, 3: 0.001}
    assert results.arm == ("tin", "zinc")
    assert results.note == (None, '{"note": "late"}')
    assert told(as_results(path)) == told(results)


def test_a_file_without_a_reward_is_refused(file):
    with pytest.raises(FileFormatError, match=r"plate\.csv, line 1: no result is filled in"):
        read_results(file("pull_id,result\n1,\n2, \n"))
    with pytest.raises(FileFormatError, match="no result is filled in"):
        read_results(file("pull_id,reward\n"))


@pytest.mark.parametrize("content", ["", "\n\n", "  \n", "\ufeff"])
def test_an_empty_file_is_refused(file, content):
    with pytest.raises(FileFormatError, match=r"plate\.csv is empty"):
        read_results(file(content))


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_delimiters_line_ends_and_marks_are_recognised(file, mark, end, bom):
    rows = [["note", " Reward ", "ARM", "Pull_Id"], ["a", "0.5", "tin", "7"], ["", "2", "µ", "8"]]
    results = read_results(file(bom + end.join(mark.join(row) for row in rows)))
    assert told(results) == {7: 0.5, 8: 2.0}
    assert results.arm == ("tin", "µ")


def test_blank_lines_and_empty_cells_at_the_end_of_rows_do_no_harm(file):
    path = file("\n,,,\npull_id,reward,arm,note,,\n\n1,0.5\n,,,,,\n2,1,tin,,,,,\n3\n")
    results = read_results(path)
    assert told(results) == {1: 0.5, 2: 1.0}
    assert results.arm == (None, "tin")


def test_cells_beyond_the_header_are_refused_with_the_line(file):
    with pytest.raises(FileFormatError, match=r"line 3: 3 cells, and the header has 2"):
        read_results(file("pull_id,reward\n1,0.5\n2,0,5\n"))


def test_a_column_without_a_name_is_refused_with_the_line(file):
    with pytest.raises(FileFormatError, match=r"line 1: column 2 has no name"):
        read_results(file("pull_id,,reward\n1,,0.5\n2,x,0.5\n"))


def test_missing_and_repeated_columns_are_refused(file):
    with pytest.raises(FileFormatError, match=r"line 1: no result.* no column 'result' .*'rewrd'"):
        read_results(file("pull_id,rewrd\n1,0.5\n"))
    with pytest.raises(FileFormatError, match="line 1: columns 2 and 3 are both 'REWARD'"):
        read_results(file("pull_id,reward,REWARD\n1,0.5,0.5\n"))
    with pytest.raises(FileFormatError, match="columns 3 and 4 are both 'well'"):
        read_results(file("pull_id,result,well, well\n1,0.5,a,b\n"))


@pytest.mark.parametrize(
    "cell",
    [
        *(
            "x",
            "nan",
            "inf",
            "-inf",
            "1e400",
            "1.1e150",
            "1_000",
            "1,5.5",
            "1.2.3",
            "0x10",
        ),
        *("1e", "TRUE", "'1", "=1", "1%", "$1", "1.5.", "--1", "1 00"),
        *("n/a", "-", "?", "NA"),
        *("\u0661", "\uff11"),  # digits of other scripts
    ],
)
def test_what_is_not_plainly_a_number_is_refused_with_line_and_column(file, cell):
    path = file(f'pull_id;reward\n1;0.5\n2;"{cell}"\n')
    with pytest.raises(FileFormatError, match=r"plate\.csv, line 3, column 'reward': ") as caught:
        read_results(path)
    assert "write failed if the measurement failed" in str(caught.value)


@pytest.mark.parametrize(
    "cell", ["1.5", "1.23,5", "1,234,5", "1.234.5", "1 23,5", "1'23", "1_0,5", "nan"]
)
def test_with_a_decimal_comma_a_point_only_groups_thousands(file, cell):
    with pytest.raises(FileFormatError, match="line 3, column 'reward': ") as caught:
        read_results(file(f"pull_id;reward\n1;0,5\n2;{cell}\n"), COMMA)
    assert repr(cell) in str(caught.value)


def test_a_decimal_comma_is_found_out_or_said(file):
    path = file('pull_id,result\n1,"0,5"\n2,"-1,25e2"\n3, 7 \n4,",5"\n')
    assert told(read_results(path, COMMA)) == {1: 0.5, 2: -125.0, 3: 7.0, 4: 0.5}
    assert told(read_results(path)) == told(read_results(path, COMMA))
    with pytest.raises(FileFormatError, match=r"'0,5' is not a number; here a point is the dec"):
        read_results(path, Dialect(decimal="."))


@pytest.mark.parametrize("decimal", ["", ";", ".,"])
def test_other_decimal_marks_are_refused(file, decimal):
    with pytest.raises(FileFormatError, match=r"it is '\.' or ','"):
        read_results(file("pull_id,reward\n1,1\n"), Dialect(decimal=decimal))
    with pytest.raises(OutputError, match=r"it is '\.' or ','"):
        write_table(io.StringIO(), ["a"], [[1]], decimal=decimal)


@pytest.mark.parametrize("cell", ["", "x", "1.5", "1e-3", "1_0", "9" * 19, "1" * 5000, "\uff11"])
def test_what_is_not_the_number_of_a_pull_is_refused_with_line_and_column(file, cell):
    with pytest.raises(FileFormatError, match="line 3, column 'pull_id': "):
        read_results(file(f"pull_id,reward\n1,0.5\n{cell},0.5\n"))


def test_a_whole_number_with_a_point_is_a_pull(file):
    assert told(read_results(file("pull_id,result\n 7.0 ,1\n8.,1\n"))) == {7: 1.0, 8: 1.0}
    assert told(read_results(file("pull_id;reward\n7,0;1\n"), COMMA)) == {7: 1.0}


def test_lines_are_those_of_an_editor_after_cells_of_several_lines(file):
    text = 'pull_id,"the\nnote",reward\r\n1,"a\r\nb\rc",0.5\n\n2,"d\ne",bad\n'
    # The header is on lines 1 and 2, the first row on 3 to 5, the second on 7; its reward on 8.
    assert text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[7].endswith("bad")
    with pytest.raises(FileFormatError, match="line 8, column 'reward': 'bad'"):
        read_results(file(text))


def test_five_bad_cells_are_named_and_the_others_counted(file):
    rows = [f"{i},bad{i}" for i in range(4)] + ["x,bad4", "6,bad6"]
    with pytest.raises(FileFormatError) as caught:
        read_results(file("pull_id,reward\n" + "\n".join(rows)))
    message = str(caught.value)
    assert [f"line {i + 2}, column 'reward': 'bad{i}'" in message for i in range(4)] == [True] * 4
    assert "line 6, column 'pull_id': 'x'" in message
    assert "bad4" not in message
    assert "and 2 more cells" in message


def test_five_bad_cells_leave_no_others_to_count(file):
    with pytest.raises(FileFormatError) as caught:
        read_results(file("pull_id,reward\n" + "1,x\n" * 5))
    assert str(caught.value).count("column 'reward'") == 5
    assert " more cells" not in str(caught.value)


def test_a_pull_of_a_file_with_two_rewards_or_arms_is_refused_with_both_lines(file):
    with pytest.raises(
        RewardError, match=r"measurement 7 has two results: 0\.5 \(line 2\) and 0\.6 \(line 4\)"
    ):
        read_results(file("pull_id,reward\n7,0.5\n8,1\n7,0.6\n"))
    with pytest.raises(RewardError, match=r"two candidates: 'a' \(line 2\) and 'b' \(line 3\)"):
        read_results(file("pull_id,reward,arm\n7,0.5,a\n7,0.5,b\n"))


def test_a_pull_that_is_there_twice_alike_keeps_its_arm_and_note(file):
    results = read_results(file("pull_id,reward,arm,note\n7,0.5,,\n8,1,,\n7,0.50,tin,late\n"))
    assert results.pull.tolist() == [7, 8]
    assert results.arm == ("tin", None)
    assert results.note == ('{"note": "late"}', None)


def test_open_quotes_are_refused_with_the_line(file):
    with pytest.raises(FileFormatError, match=r"plate\.csv, line 2: "):
        read_results(file('pull_id,reward\n1,"0.5\n'))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "windows-1252", "utf-8-sig"])
def test_other_encodings_are_read(file, encoding):
    results = read_results(file("pull_id,arm,result\n1,Öl,0.5\n".encode(encoding)))
    assert (told(results), results.arm) == ({1: 0.5}, ("Öl",))


def test_a_file_that_is_not_there_is_not_a_format(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_results(tmp_path / "nothing.csv")


@pytest.mark.parametrize("decimal", [".", ","])
def test_a_hundred_thousand_rows_are_read_exactly(tmp_path, decimal):
    path = tmp_path / "large.csv"
    rows = ({"pull_id": i, "arm": f"arm {i % 50}", "result": i / 7} for i in range(100_000))
    write_pulls(path, list(rows), decimal=decimal)
    results = read_results(path, Dialect(decimal=decimal))
    assert results.value.tolist() == [i / 7 for i in range(100_000)]


# --- writing --------------------------------------------------------------------------------


def written(rows, **options) -> list[str]:
    stream = io.StringIO()
    write_pulls(stream, rows, **options)
    return stream.getvalue().split("\r\n")


def test_the_worker_is_a_column_only_if_there_is_one():
    pull = {"pull_id": 7, "arm": "tin"}
    assert written([{**pull, "worker": None}])[0] == "pull_id,candidate,result,note"
    assert written([pull, {**pull, "worker": "-Eve"}])[:3] == [
        "pull_id,candidate,worker,result,note",
        "7,tin,,,",
        "7,tin,'-Eve,,",
    ]


@pytest.mark.parametrize(
    ("header", "row", "notes"),
    [
        ("pull_id,candidate,result", "1,tin,0.5", None),
        ("pull_id,arm,result", "1,tin,0.5", None),
        ("pull_id,Candidate,reward", "1,tin,0.5", None),
        ("pull_id,arm,candidate,result", "1,tin,x,0.5", '{"candidate": "x"}'),
    ],
)
def test_the_name_is_read_by_the_header_of_today_and_of_0_1_0(file, header, row, notes):
    results = read_results(file(f"{header}\n{row}\n"))
    assert (results.arm, results.note) == (("tin",), (notes,))


def test_no_pulls_are_a_header():
    assert written([]) == ["pull_id,candidate,result,note", ""]


def test_a_decimal_comma_comes_with_semicolons():
    rows: list[dict[str, object]] = [{"pull_id": 7, "arm": "a;b", "result": -0.5, "note": "1.5"}]
    assert written(rows, decimal=",")[1] == '7;"a;b";-0,5;1.5'


@pytest.mark.parametrize("start", list("=+-@\t\r\n"))
def test_a_spreadsheet_does_not_run_text(start):
    stream = io.StringIO()
    write_table(stream, [start + "h"], [[start + "cmd"], [f"'{start}x"]])
    cells = [cell.strip('"') for cell in stream.getvalue().split("\r\n")]
    assert cells[:3] == [f"'{start}h", f"'{start}cmd", f"''{start}x"]


def test_numbers_are_not_taken_for_formulas():
    stream = io.StringIO()
    write_table(stream, ["x"], [[-1], [-0.1], [np.float32(0.5)], [1e-300], [None], [True]])
    lines = stream.getvalue().split("\r\n")[1:-1]
    assert lines == ["-1", "-0.1", "0.5", "1e-300", '""', "True"]


def test_a_row_of_another_length_is_refused_and_nothing_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("before")
    with pytest.raises(OutputError, match="row 2 has 1 cells; the header has 2"):
        write_table(path, ["a", "b"], [[1, 2], [3]])
    assert path.read_text() == "before"


def test_text_that_is_not_unicode_is_refused_and_nothing_written(tmp_path):
    with pytest.raises(OutputError, match="not valid Unicode"):
        write_table(tmp_path / "t.csv", ["a"], [["\ud800"]])
    assert list(tmp_path.iterdir()) == []


def test_a_file_has_a_byte_order_mark_only_if_excel_needs_it(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, ["a"], [["plain"]])
    assert path.read_bytes() == b"a\r\nplain\r\n"
    write_table(path, ["a"], [["µ"]])
    assert path.read_bytes() == b"\xef\xbb\xbfa\r\n\xc2\xb5\r\n"


# --- round trips ----------------------------------------------------------------------------

TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
).filter(str.strip)
DANGEROUS = st.builds(str.__add__, st.sampled_from([*"='+-@;,\"\t\r\n", "''", "'=", "''="]), TEXT)
NAMES = st.one_of(TEXT, DANGEROUS, st.sampled_from(["🍰", "'", "''", "NA", "007", " a "]))
REWARDS = st.floats(-1e150, 1e150)


@given(
    rows=st.dictionaries(
        st.integers(-(2**63), 2**63 - 1), st.tuples(NAMES, REWARDS, NAMES), min_size=1, max_size=6
    ),
    decimal=st.sampled_from([".", ","]),
)
@example(rows={1: ("'=x", 0.1, "''=x"), 2: ("'x", -0.0, "-1")}, decimal=",")
def test_names_notes_and_rewards_come_back_exactly(tmp_path_factory, rows, decimal):
    path = tmp_path_factory.getbasetemp() / "round.csv"
    pulls = [
        {"pull_id": pull, "arm": arm, "worker": note, "result": reward, "note": note}
        for pull, (arm, reward, note) in rows.items()
    ]
    write_pulls(path, pulls, decimal=decimal)
    results = read_results(path, Dialect(decimal=decimal))
    rows = dict(sorted(rows.items()))
    assert results.pull.tolist() == list(rows)
    assert results.arm == tuple(arm for arm, _, _ in rows.values())
    assert results.value.tolist() == [reward for _, reward, _ in rows.values()]
    notes = [json.loads(note or "") for note in results.note]
    assert notes == [{"worker": note, "note": note} for _, _, note in rows.values()]


PIECES = st.sampled_from(
    [
        *b",;\t\n\r\"1'= -_\0\xff",
        b"pull_id",
        b"reward",
        b"arm",
        b"\r\n",
        b"0.5",
        b"1,5",
        b"\xef\xbb\xbf",
    ]
).map(lambda piece: bytes([piece]) if isinstance(piece, int) else piece)
CELLS = st.sampled_from([b"1", b"2", b" 3 ", b"0.5", b"", b"1,5", b"x", b"'=", b'"a\n;"', b"\t"])
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS).map(b";".join), max_size=4)
LIKELY = ROWS.map(lambda rows: b"\n".join([b"pull_id;reward;arm", *rows]))


@given(
    content=st.one_of(st.binary(max_size=80), st.lists(PIECES).map(b"".join), LIKELY),
    decimal=st.sampled_from([".", ","]),
)
def test_any_bytes_are_results_or_refused(tmp_path_factory, content, decimal):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    path.write_bytes(content)
    try:
        results = read_results(path, Dialect(decimal=decimal))
    except (FileFormatError, RewardError) as error:
        message = str(error)
    else:
        message = str(path)
        assert len(results) > 0
        assert np.isfinite(results.value).all()
        assert len(set(results.pull.tolist())) == len(results.note) == len(results.arm)
    assert message.startswith(str(path))
