"""`finalist sigma`, and `finalist new --history`: the files that people have, and what is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.common import check_refused, run, write

ARMS = "name,dose\na,0.5\nb,1\nc,2\nd,3.5\n"
HILL = {"a": -2.25, "b": -1.0, "c": 0.0, "d": -2.25}
ROWS = [(name, mean + d) for name, mean in HILL.items() for d in (-0.1, 0.0, 0.1)]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINALIST_DB", str(tmp_path / "lab.db"))
    write(tmp_path / "arms.csv", ARMS)
    write(tmp_path / "old.csv", table())
    return tmp_path


def table(delimiter: str = ",", decimal: str = ".", header: str = "arm,reward") -> str:
    rows = [f"{name}{delimiter}{value:.3f}".replace(".", decimal) for name, value in ROWS]
    return "\n".join([header.replace(",", delimiter), *rows]) + "\n"


def content(result: Any) -> Any:
    return json.loads(result.stdout)


def words(result: Any) -> str:
    return " ".join(str(result.stdout).split())


# ---- sigma --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header", ["arm,reward", "Candidate,Result", "name,result", "Variety,Yield"]
)
@pytest.mark.parametrize(("delimiter", "decimal"), [(",", "."), (";", ","), ("\t", ",")])
def test_sigma_is_said_whatever_the_file(
    lab: Path, header: str, delimiter: str, decimal: str
) -> None:
    write(lab / "old.txt", table(delimiter, decimal, header))
    told = run("sigma", "old.txt")
    assert told.exit_code == 0
    assert words(told) == (
        "Sigma is about 0.1, from 12 repeated measurements of 4 candidates (8 degrees of freedom); "
        "with 95 % confidence between 0.068 and 0.19."
    )
    assert ("from 'Variety'" in told.stderr) == (header == "Variety,Yield")


def test_json_has_the_numbers(lab: Path) -> None:
    found = content(run("sigma", "old.csv", "--format", "json"))
    assert found["sigma"] == pytest.approx(0.1)
    assert found["degrees_of_freedom"] == 8
    assert found["low"] < 0.1 < found["high"]
    assert found["level"] == 0.95
    assert set(found) == {
        *("sigma", "low", "high", "level", "degrees_of_freedom", "measurements", "candidates"),
        *("resolved", "remark", "words", "read_as"),
    }


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("arm,reward\na,1\nb,2\n", ("none was measured twice", "Measure some")),
        ("arm,reward\na,0\na,1\n", ("0 or 1", "--noise bernoulli")),
        ("x,y,z\na,b,1\n", ("line 1", "which names", "--candidate-column=NAME")),
        ("arm,y,z\na,2,1\n", ("line 1", "which has the results", "--result-column=NAME")),
        ("arm,reward,result\na,2,1\n", ("line 2", "Keep the right one")),
        ("arm,reward\na,1\na,oops\n", ("line 3, column 'reward'", "'oops'")),
        ("a,1.5\na,2\n", ("1.5", "names the columns")),
        ("arm,reward\n", ("no measurements",)),
    ],
)
def test_what_cannot_be_used_is_said_with_the_remedy(
    lab: Path, text: str, parts: tuple[str, ...]
) -> None:
    write(lab / "old.csv", text)
    check_refused(run("sigma", "old.csv"), *parts)


def test_other_columns_are_named(lab: Path) -> None:
    write(lab / "old.csv", "x,y,z\na,p,1.5\na,q,2.5\n")
    told = run("sigma", "old.csv", "--candidate-column", "x", "--result-column", "z")
    assert "about 0.71" in words(told)
    check_refused(run("sigma", "old.csv", "--candidate-column", "w"), "no column 'w'", "'x'")


def test_results_that_are_not_there_are_left_out_and_said(lab: Path) -> None:
    write(lab / "old.csv", table() + "a,\nb,NA\nc,failed\n")
    told = run("sigma", "old.csv")
    assert "12 repeated measurements" in words(told)
    assert "3 rows without a result left out" in told.stderr


def test_reward_counts_where_result_is_empty(lab: Path) -> None:
    write(lab / "old.csv", "arm,reward,result\na,1.5,\na,,2.5\na,3.5,3.5\n")
    assert "from 3 repeated measurements" in words(run("sigma", "old.csv"))


def test_results_that_do_not_scatter_are_not_taken_for_no_noise(lab: Path) -> None:
    write(lab / "old.csv", "arm,reward\na,1.5\na,1.5\n")
    assert "below the resolution of the numbers" in words(run("sigma", "old.csv"))


# ---- new --history ------------------------------------------------------------------------


def test_a_new_study_says_what_old_results_say(lab: Path) -> None:
    made = run("new", "doses", "arms.csv", "--history", "old.csv")
    assert made.exit_code == 0
    assert "Old results: 12 measurements of 4 candidates; sigma about 0.1 (8 degrees" in words(made)
    assert "Warning: Old results speak against the model (straight)" in words(made)
    bent = content(
        run(
            "new",
            "bent",
            "arms.csv",
            "--history",
            "old.csv",
            "--model",
            "bending",
            "--format",
            "json",
        )
    )
    assert "the model fits them" in bent["old_results"]
    assert bent["warnings"] == []
    assert bent["settings"]["noise"]["sigma"] is None
    seen = run("status", "doses")
    assert "Old results: 12 measurements of 4 candidates" in words(seen)
    assert "Warning: Old results speak against" in words(seen)
    assert content(run("status", "doses", "--format", "json"))["old_results"] in words(made)


def test_a_sigma_that_the_file_contradicts_is_warned_of(lab: Path) -> None:
    made = run("new", "doses", "arms.csv", "--history", "old.csv", "--sigma", "0.01")
    assert "scatter by 0.1, more than sigma = 0.01 says" in words(made)


def test_a_column_of_noise_is_used_and_not_replaced(lab: Path) -> None:
    write(lab / "arms.csv", "name,dose,noise\na,0.5,0.1\nb,1,0.1\nc,2,0.1\nd,3.5,0.1\n")
    words_ = ("--history", "old.csv", "--sigma-column", "noise", "--format", "json")
    made = content(run("new", "doses", "arms.csv", *words_))
    assert made["settings"]["noise"]["sigma"] == [0.1] * 4


def test_other_candidates_are_refused_or_left_out(lab: Path) -> None:
    write(lab / "old.csv", table() + "".join(f"other {i},1.5\n" for i in range(7)))
    refused = run("new", "doses", "arms.csv", "--history", "old.csv")
    check_refused(refused, "7 candidates", "'other 4' and 2 more", "--known-only")
    assert not (lab / "lab.db").exists()
    made = run("new", "doses", "arms.csv", "--history", "old.csv", "--known-only")
    assert "7 old results of other candidates left out: 'other 0', " in words(made)
    assert content(run("list", "--format", "json"))["studies"][0]["name"] == "doses"


def test_yes_and_no_are_sent_to_bernoulli(lab: Path) -> None:
    write(lab / "old.csv", "arm,reward\na,0\na,1\nb,1\n")
    check_refused(run("new", "coins", "arms.csv", "--history", "old.csv"), "--noise bernoulli")
    made = run("new", "coins", "arms.csv", "--history", "old.csv", "--noise", "bernoulli")
    assert "Old results: 3 measurements of 2 candidates" in words(made)
