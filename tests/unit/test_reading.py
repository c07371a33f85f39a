"""Arms from the tables that people have: roles, models, and files that fooled other programs."""

import io
import re
from datetime import date

import numpy as np
import openpyxl
import pandas as pd
import pytest

from finalist import Arms
from finalist.arms.table import read_candidates, read_table
from finalist.errors import ArmsError, FileFormatError, UnclearTableError
from finalist.tables import Dialect
from tests.unit.test_tables import frames, workbook

SEEDS = (
    b"Sort;Tone;Fresh;Dose;Remark\n"
    b"A;calm;yes;1,5;x\nB;loud;no;2;y\nC;calm;no;3;z\nD;dry;yes;4;\nE;calm;yes;5;\n"
)


def features(arms):
    return dict(zip(arms.feature_names, arms.features.T.tolist(), strict=True))


def test_the_table_becomes_contrasts_answers_and_numbers_with_a_constant():
    arms = Arms.from_table(SEEDS)
    assert arms.names == ("A", "B", "C", "D", "E")
    assert features(arms) == {
        "Tone: dry": [0, 0, 0, 1, 0],
        "Tone: loud": [0, 1, 0, 0, 0],
        "Fresh": [1, 0, 0, 1, 1],
        "Dose": [1.5, 2, 3, 4, 5],
        "intercept": [1, 1, 1, 1, 1],
    }
    assert "Tone against calm (the reference)" in arms.recipe.words()
    assert arms.table["Remark"] == ("x", "y", "z", None, None)
    assert arms.table["Tone"][1] == "loud"
    assert arms.recipe.name == "straight"


def test_the_same_features_whatever_the_table_came_in(tmp_path):
    columns = {
        "name": ["A", "B", "C", "D", "E", "F"],
        "Tone": ["calm", "loud", "calm", "dry", "calm", "loud"],
        "Plot": [1, 2, 1, 2, 2, 1],
        "Fresh": [True, False, True, True, False, False],
        "Dose": [1.5, 2.0, 3.0, 4.0, 5.0, 0.25],
    }
    given = {"Plot": "category"}
    frame = pd.DataFrame(columns)
    expected = Arms.from_table(frame, columns=given)
    assert expected.feature_names == (
        "Tone: dry",
        "Tone: loud",
        "Plot: 2",
        "Fresh",
        "Dose",
        "intercept",
    )
    categorical = frame.assign(Tone=pd.Categorical(frame["Tone"], ["loud", "dry", "calm"]))
    for other in (*frames(columns), categorical):
        assert Arms.from_table(other, columns=given) == expected
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "b.csv", sep=";", decimal=",", encoding="utf-16")  # with an index
    frame.to_parquet(tmp_path / "c.parquet")
    frame.to_excel(tmp_path / "d.xlsx", index=False)
    for path in sorted(tmp_path.iterdir()):
        assert Arms.from_table(path, columns=given) == expected, path.name
    pasted = frame.to_csv(sep="\t", index=False).encode()
    assert Arms.from_table(pasted, columns=given) == expected


@pytest.mark.parametrize("model", ["straight", "bending", "surface", "separate"])
def test_a_constant_is_added_to_every_model_but_one_that_is_there_is_kept(model):
    ones = re.sub(rb";[xyz]?\n", b";1\n", SEEDS.replace(b"Remark", b"one"))
    for content in (SEEDS, ones):
        arms = Arms.from_table(content, model=model)
        assert arms.has_intercept
        constant = np.all(arms.features == 1.0, axis=0)
        assert constant.sum() == (model != "separate")
    none = Arms.from_table(SEEDS, model=model, intercept=False)
    assert not np.all(none.features == 1.0, axis=0).any()


def test_a_small_table_has_a_constant_too_for_those_that_come_later():
    """Three candidates span everything, also without a constant; a fourth would not."""
    arms = Arms.from_table(b"name,x,y\na,1,0\nb,0,1\nc,2,5\n", columns={})
    assert arms.feature_names == ("x", "y", "intercept")


# --- as given -------------------------------------------------------------------------------


def test_paths_for_research_take_a_table_as_it_is(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("name,x,n\n" + "".join(f"a{i},{i * i},{i}\n" for i in range(1, 8)))
    arms = Arms.from_csv(path)
    assert arms.feature_names == ("x", "n")  # no constant, and 1..K is a feature
    assert read_table(path).arms == arms
    path.write_text("name,tone\na,calm\nb,loud\n")
    with pytest.raises(FileFormatError, match=r"line 2, column 'tone': 'calm'.*from_table"):
        Arms.from_csv(path)


# --- what has to be said or mended ----------------------------------------------------------


def refusal(content, **words):
    with pytest.raises(FileFormatError) as caught:
        read_candidates(content, **words)
    return caught.value


def test_a_row_number_is_asked_about():
    content = b"Nr,Dose\n" + b"".join(b"%d,%d\n" % (i, 10 - i) for i in range(1, 8))
    error = refusal(content)
    assert isinstance(error, UnclearTableError)
    assert error.choices == ("column=Nr=ignore", "column=Nr=number")
    assert read_candidates(content, {"Nr": "ignore"}).arms.feature_names == ("Dose", "intercept")
    assert read_candidates(content, {"Nr": "number"}).arms.feature_names[0] == "Nr"


def test_missing_cells_say_where_and_what_can_be_done():
    content = b"name,Dose,Tone\na,1,calm\nb,,calm\nc,n/a,loud\nd,4,\ne,5,loud\n"
    error = refusal(content)
    assert "line 3, column 'Dose': the cell is empty (and 1 more cell like it)" in str(error)
    assert error.choices == ("drop-incomplete", "column=Dose=ignore")
    found = read_candidates(content, drop_incomplete=True)
    assert found.arms.names == ("a", "e")
    assert found.remarks == ("line 3, 4, 5, with empty cells, left out",)
    kept = read_candidates(content, {"Dose": "ignore"}, drop_incomplete=True)
    assert kept.arms.aliases == (("a", "b"), ("c", "e"))
    assert "line 5, column 'Tone'" in str(refusal(content, columns={"Dose": "ignore"}))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        # a line of units below the header
        (b"name,Dose\n,mg\na,1\nb,2\n", "line 2, column 'Dose': 'mg' is not a number, and all"),
        (b"Dose,Size\nmg,cm\n1,2\n3,4\n5,6\n", "second line of headers or units"),
        # a total at the end
        (b"name,Dose\na,1\nb,2\nc,3\nTotal,6\n", "line 5: 'Total' is the total of the rows"),
        (b"name,Dose\na,1\nb,2\nc,3\nMean,2\n", "'Mean' is the total"),
        (b"name,Dose\na,1\nb,2\n,3\n", "line 4, column 'name': the name is ''"),
        (b"name,Dose\na,1\na,2\n", "line 3, column 'name': the name 'a' is taken"),
        (b"name,Dose\na,1\nb,two\nc,3\n", "line 3, column 'Dose': 'two' is not a finite number"),
        (b"1,2,3\n4,5,6\n7,8,10\n", "line 1: there are numbers where the columns should be named"),
        (b"name,Dose\na,1\nb,1e999\nc,3\n", "'1e999' is not a finite number"),
    ],
)
def test_rows_that_are_no_candidates_are_named(content, words):
    assert words in str(refusal(content))


def test_a_company_called_total_is_a_candidate():
    assert "Total" in Arms.from_table(b"name,Dose\nShell,1\nBP,2\nTotal,4\n")


# --- files that fooled other programs -------------------------------------------------------


def test_genes_that_look_like_dates_stay_genes():
    names = ("MARCH1", "SEPT2", "DEC1", "2-Sep", "1/3", "1E5", "TRUE")
    text = "gene,dose\n" + "".join(f"{name},{i * i}\n" for i, name in enumerate(names))
    assert Arms.from_table(text.encode()).names == names
    book = openpyxl.Workbook()
    for row in (["gene", "dose"], ["MARCH1", 1], [date(2026, 9, 2), 3], ["X", 4]):
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    error = refusal(buffer.getvalue(), columns={"gene": "name"})
    assert "row 3, column 'gene': the name is the date 2026-09-02" in str(error)


def test_leading_zeros_are_kept():
    text = "zip,dose\n" + "".join(f"{code},{i * i}\n" for i, code in enumerate(("0042", "0815")))
    assert Arms.from_table(text.encode()).names == ("0042", "0815")


def test_na_is_a_name_and_a_level_and_a_missing_number():
    text = b"country,zone,dose\nNA,NA,1\nSE,EU,2\nDE,EU,4\nUS,NA,8\n"
    arms = Arms.from_table(text)
    assert arms.names[0] == "NA"
    assert features(arms)["zone: NA"] == [1, 0, 0, 1]
    assert "'NA' is no value" in str(refusal(text.replace(b",2\n", b",NA\n")))


def test_a_thousand_is_not_one():
    text = "Sorte;Menge;Preis\nA;1.000;2,50\nB;2.500;3,00\nC;500;2,00\n"
    assert features(Arms.from_table(text.encode()))["Menge"] == [1000, 2500, 500]
    alone = text.replace(",50", "").replace(",00", "").encode()
    assert "1 with a decimal point and 1000" in str(refusal(alone))
    dialect = Dialect(decimal=".")
    assert features(Arms.from_table(alone, dialect=dialect))["Menge"] == [1, 2.5, 500]


def test_mixed_types_in_a_column_of_a_sheet_are_named():
    error = refusal(workbook(("name", "dose"), ("a", 1), ("b", "2 mg"), ("c", 3), ("d", 4)))
    assert "row 3, column 'dose': '2 mg' is not a finite number" in str(error)
    assert error.choices == ("column=dose=ignore", "column=dose=category")


def test_merged_header_cells_and_two_header_rows_are_named():
    book = openpyxl.Workbook()
    for row in (["name", "dose", None], [None, "mg", "ml"], ["a", 1, 2], ["b", 3, 4]):
        book.active.append(row)
    book.active.merge_cells("B1:C1")
    buffer = io.BytesIO()
    book.save(buffer)
    assert "column 3 has no name, and cells below" in str(refusal(buffer.getvalue()))


@pytest.mark.parametrize(("rows", "columns"), [(100_000, 3), (20, 2000)])
def test_large_tables_are_read(rows, columns):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10**6, (rows, columns)) / 8
    header = ";".join(["name", *(f"x{j}" for j in range(columns))])
    lines = [
        f"a{i};" + ";".join(f"{value:.3f}".replace(".", ",") for value in row)
        for i, row in enumerate(X)
    ]
    found = read_candidates("\n".join([header, *lines]).encode(), intercept=False)
    assert found.read_as == "semicolons, decimal comma"
    np.testing.assert_array_equal(found.arms.features, X)


# --- what columns say beside the features ---------------------------------------------------


def test_noise_cost_and_what_can_be_measured_come_from_columns():
    content = b"name,x,sd,price,stock\na,1,0.5,2,yes\nb,2,1,3,no\nc,4,1,4,1\n"
    roles = {"sd": "noise", "price": "cost", "stock": "measurable"}
    found = read_candidates(content, roles)
    assert found.arms.feature_names == ("x", "intercept")
    assert found.sigma is not None
    assert found.cost is not None
    assert found.sigma.tolist() == [0.5, 1, 1]
    assert found.cost.tolist() == [2, 3, 4]
    assert found.arms.measurable.tolist() == [True, False, True]
    assert found.arms.table["price"].tolist() == [2, 3, 4]
    bad = content.replace(b"0.5", b"-0.5")
    assert "line 2, column 'sd': '-0.5' is not a positive number" in str(
        refusal(bad, columns=roles)
    )


def test_candidates_are_made_as_the_measured_ones_were():
    arms = read_candidates(SEEDS, model="bending").arms
    others = b"Fresh,Sort,Dose,Tone,Extra\nno,X,9,loud,1\n"
    found = read_candidates(others, like=arms.recipe).arms
    assert found.feature_names == arms.feature_names
    assert features(found)["Dose^2"] == [(9 - arms.recipe.centres["Dose"]) ** 2]
    assert arms.with_candidates(found).candidate.sum() == 1
    unknown = others.replace(b"loud", b"wild")
    with pytest.raises(FileFormatError, match=r"'wild'.*calm"):
        read_candidates(unknown, like=arms.recipe)
    with pytest.raises(FileFormatError, match="there is no column 'Fresh'"):
        read_candidates(b"Sort,Dose,Tone\nX,9,loud\n", like=arms.recipe)


def test_candidates_described_alike_are_named():
    found = read_candidates(b"name,x\na,1\nb,2\nc,1\n")
    assert found.remarks == ("a and c are described alike: one candidate",)
    assert found.arms.aliases[0] == ("a", "c")


def test_candidates_apart_only_by_a_column_left_out_are_asked_about():
    content = b"name,dose,mat\nA,1,x\nB,2,y\nC,4,z\nD,4,w\n"
    error = refusal(content)
    assert "'D' and 'C' are described alike but for column 'mat'" in str(error)
    assert error.choices == ("column=mat=category", "column=mat=ignore")
    assert len(Arms.from_table(content, columns={"mat": "ignore"})) == 3
    assert len(Arms.from_table(content, columns={"mat": "category"})) == 4


def test_numbers_of_candidates_are_asked_about():
    content = b"Sample ID,dose,heat\n1001,3,1\n1007,5,3\n1003,2,2\n"
    assert refusal(content).choices == ("column='Sample ID=ignore'", "column='Sample ID=number'")
    named = Arms.from_table(content, columns={"Sample ID": "name"})
    assert named.names == ("1001", "1007", "1003")


def test_a_model_of_nothing_is_refused():
    assert "the model 'bending' could be made" in str(refusal(b"oak\nash\n", model="bending"))


def test_separate_candidates_are_never_those_of_another_table():
    """They would be taken for the measured ones: the winner would be something never measured."""
    arms = Arms.from_table(SEEDS, model="separate")
    others = Arms.from_table(SEEDS.replace(b"A;", b"X;").replace(b"B;", b"Y;"))
    with pytest.raises(ArmsError, match="says nothing about others"):
        arms.with_candidates(others)


def test_words_between_spaces_are_not_a_list_of_names():
    assert "put tabs" in str(refusal(b"name dose\nA 1\nB 2\n"))
    assert len(Arms.from_table(b"Sample 1\nSample 2\nSample 3\n")) == 3
    assert len(Arms.from_table(b"My samples\nSample 1\nSample 2\n")) == 3


def test_a_list_of_names_is_enough():
    found = read_candidates(b"oak\nash\nelm\n")
    assert found.arms.names == ("oak", "ash", "elm")
    assert found.remarks == ("'oak' is a candidate too: a heading would be called name",)
    named = Arms.from_table(b"Name\noak\nash\n")
    assert named.names == ("oak", "ash")
    assert named.rank == 2
