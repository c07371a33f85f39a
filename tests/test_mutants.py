"""The list of constants to break is held to the source, so that it stays true."""

from dataclasses import replace

import pytest

from tests.mutants import MUTANTS, TABLE, kept_rows, red_test, row_start
from tests.mutation import ROOT, SOURCE


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.place)
def test_a_constant_that_is_broken_is_there_once(mutant):
    assert (SOURCE / mutant.file).read_text().count(mutant.text) == 1
    assert mutant.instead != mutant.text
    for file in mutant.tests:
        assert (ROOT / file).is_file()


def test_there_are_enough_and_each_is_another_one():
    assert len(MUTANTS) >= 40
    assert len({mutant.place for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(m.file, m.text, m.instead) for m in MUTANTS}) == len(MUTANTS)


def test_the_table_has_a_row_for_each_as_it_is_now():
    starts, rows = [row_start(mutant) for mutant in MUTANTS], kept_rows()
    missing = [start for start in starts if not any(row.startswith(start) for row in rows)]
    assert missing == [], "python -m tests.mutants <their places>"
    assert len(rows) == len(starts)
    red = sum("SURVIVED" not in row for row in rows)
    assert f"{red} of {len(starts)} broken constants turn a test red." in TABLE.read_text()


def test_a_broken_constant_is_told_from_one_that_is_not(tmp_path):
    test = "test_constants_bounds.py::test_lower_bound"
    found = next(m for m in MUTANTS if m.place == "lower bound: kl")
    assert found.tests == ("tests/unit/test_constants_bounds.py",)
    one = replace(found, tests=(f"tests/unit/{test}",))
    assert red_test(one, tmp_path) == test
    same = replace(one, instead=f"{one.text}  ")
    assert red_test(same, tmp_path) is None
