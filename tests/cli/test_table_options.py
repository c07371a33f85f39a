"""Tables of candidates on the command line: roles, models, dialects, and what is said of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from finalist.study import Study
from tests.cli.common import check_refused, run, write
from tests.unit.test_tables import workbook

SEEDS = "Nr;Sort;Tone;Dose\n" + "".join(
    f"{i};s{i};{tone};{i * i},5\n" for i, tone in enumerate(("calm", "loud", "dry") * 2, 1)
)


@pytest.fixture
def seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINALIST_DB", str(tmp_path / "lab.db"))
    return write(tmp_path / "seeds.csv", SEEDS)


def made(*arguments: object) -> Any:
    result = run("new", "seeds", *arguments, "--sigma", 1, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_output_shown_in_the_documentation_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text()
    table, shown = (
        re.search(pattern, page, flags=re.DOTALL)
        for pattern in (r"```csv\n(Nr;.*?)```", r"```text\n(Read as.*?)```")
    )
    assert table is not None
    assert shown is not None
    write(tmp_path / "candidates.csv", table[1])
    asked = run("new", "sorts", "candidates.csv", "--sigma", "unknown")
    check_refused(asked, "line 1", "'Nr' counts the rows", "--column=Nr=ignore")
    found = run("new", "sorts", "candidates.csv", "--sigma", "unknown", "--column", "Nr=ignore")
    assert found.stdout.startswith(shown[1]), found.stdout


def test_roles_and_models_are_options_and_are_said(seeds: Path) -> None:
    words = ("--column", "Nr=ignore", "--column", "Tone=ignore", "--model", "bending")
    found = made(seeds, *words)
    assert found["read_as"] == "semicolons, decimal comma"
    assert found["model"] == "bending"
    assert [column["role"] for column in found["columns"]] == ["ignore", "name", "ignore", "number"]
    with Study.open("lab.db", "seeds") as study:
        assert study.arms.feature_names == ("Dose", "Dose^2", "intercept")
        assert study.arms.table["Tone"][1] == "loud"
    told = run("new", "two", seeds, "--sigma", 1, *words).stdout
    assert "Dose^2 is the square" in told
    # Their spreadsheet wants the sheet as the table is: semicolons, decimal commas.
    assert told.rstrip().endswith("finalist ask two -o batch.csv --decimal ,")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ((), ("'Nr' counts the rows", "--column=Nr=ignore or --column=Nr=number")),
        (("--column", "Nr"), ("write NAME=ROLE",)),
        (("--column", "Nr=colour"), ("cannot be 'colour'",)),
        (("--column", "Nummer=ignore"), ("there is no column 'Nummer'",)),
        (("--column", "Nr=ignore", "--model", "wavy"), ("no model 'wavy'", "straight")),
        (("--delimiter", ",", "--decimal", ","), ("delimiter and the decimal sign",)),
        (("--sheet", "2"), ("only spreadsheets have sheets",)),
        (("--encoding", "utf-16"), ("is not utf-16 text",)),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_begins(
    seeds: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    check_refused(run("new", "seeds", seeds, "--sigma", 1, *words), *parts)
    assert not Path("lab.db").exists()


def test_missing_cells_can_be_left_out(seeds: Path) -> None:
    write(seeds, SEEDS.replace("loud;4,5", "loud;"))
    words = ("--column", "Nr=ignore")
    refused = run("new", "seeds", seeds, "--sigma", 1, *words)
    check_refused(refused, "line 3, column 'Dose'", "--drop-incomplete or --column=Dose=ignore")
    assert made(seeds, *words, "--drop-incomplete")["arms"] == 5


def test_a_sheet_is_chosen(seeds: Path) -> None:
    rows = [("name", "x"), ("a", 1), ("b", 2), ("c", 4)]
    Path("two.xlsx").write_bytes(workbook(("notes",), more=[("data", rows)]))
    assert made("two.xlsx", "--sheet", "data")["arms"] == 3
    assert made_plan("two.xlsx", "--sheet", "2")["rows"]


def made_plan(*arguments: object) -> Any:
    few = ("--sigma", 1, "--gap", 1, "--draws", 2, "--format", "json")
    result = run("plan", *arguments, *few)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_candidates_of_a_second_table_are_made_by_the_same_model(seeds: Path) -> None:
    others = write(seeds.parent / "others.csv", "Sort,Tone,Dose\nx,loud,50\ny,dry,2\n")
    words = ("--column", "Nr=ignore", "--candidates", others, "--model", "bending")
    assert made(seeds, *words)["candidates"] == 2
    with Study.open("lab.db", "seeds") as study:
        assert study.arms.names[-2:] == ("x", "y")
        assert study.arms.features[-2, 3] == (50 - study.arms.recipe.centres["Dose"]) ** 2
    write(others, "Sort,Tone,Dose\nx,wild,50\n")
    check_refused(run("new", "no", seeds, "--sigma", 1, *words), "'wild'")


def test_commands_of_research_take_tables_as_given(seeds: Path) -> None:
    numbers = write(
        seeds.parent / "n.csv", "name;n;x\n" + "".join(f"a{i};{i};{i * i},5\n" for i in range(1, 8))
    )
    found = json.loads(run("design", numbers, "--format", "json").stdout)
    assert found["features"] == ["n", "x"]
    check_refused(run("design", seeds), "line 2, column 'Tone'", "finalist new")
