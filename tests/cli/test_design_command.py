"""`finalist design`: formats, files, charts, and wrong input."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import finalist as fl
from tests.cli.common import ARMS, MAGIC, check_refused, run, write


@pytest.fixture
def arms_file(tmp_path: Path) -> Path:
    return write(tmp_path / "arms.csv", ARMS)


@pytest.mark.parametrize("criterion", ["g", "d", "xy", "v"])
def test_json_has_the_numbers_of_the_library(arms_file: Path, criterion: str) -> None:
    found = json.loads(
        run("design", arms_file, "--criterion", criterion, "--format", "json").stdout
    )
    arms = fl.Arms.from_csv(arms_file)
    design = fl.optimal_design(arms, criterion)  # type: ignore[arg-type]
    assert found["criterion"] == criterion
    assert [arm["weight"] for arm in found["arms"]] == design.weights.tolist()
    assert [arm["name"] for arm in found["arms"]] == list(arms.names)
    for key in ("value", "lower_bound", "gap", "status", "solved", "iterations"):
        assert found[key] == getattr(design, key)
    assert (found["rank"], found["rows"], found["distinct_arms"]) == (2, 5, 4)
    assert found["merged"] == [["[red]x[/red]", "copy"]]
    assert found["pulls"] is None
    assert found["arms"][0]["pulls"] is None


def test_json_keys_are_those_of_the_help(arms_file: Path) -> None:
    found = json.loads(run("design", arms_file, "--format", "json").stdout)
    help_text = run("design", "--help").stdout
    for key in (*found, *found["arms"][0]):
        assert key in help_text


def test_the_default_criterion_is_xy(arms_file: Path) -> None:
    assert json.loads(run("design", arms_file, "--format", "json").stdout)["criterion"] == "xy"


def test_pulls_are_rounded_as_the_library_does(arms_file: Path) -> None:
    found = json.loads(run("design", arms_file, "--pulls", 11, "--format", "json").stdout)
    design = fl.optimal_design(fl.Arms.from_csv(arms_file), "xy")
    assert [arm["pulls"] for arm in found["arms"]] == fl.round_design(design, 11).tolist()
    assert found["pulls"] == 11


def test_csv_is_sorted_full_precision_and_safe_in_a_spreadsheet(arms_file: Path) -> None:
    result = run("design", arms_file, "--criterion", "v", "--format", "csv", "--pulls", 50, "--all")
    header, *rows = csv.reader(io.StringIO(result.stdout, newline=""))
    assert header == ["name", "weight", "pulls"]
    arms = fl.Arms.from_csv(arms_file)
    design = fl.optimal_design(arms, "v")
    assert {row[0] for row in rows} == {"[red]x[/red]", "'=1+1", "<script>", "two\nlines"}
    weights = [float(row[1]) for row in rows]
    assert weights == sorted(design.weights.tolist(), reverse=True)
    assert sum(int(row[2]) for row in rows) == 50


def test_the_support_only_unless_all_are_wanted(arms_file: Path) -> None:
    some = run("design", arms_file, "--format", "csv").stdout.splitlines()
    everything = run("design", arms_file, "--format", "csv", "--all").stdout
    assert len(some) == 3
    assert "<script>,0.0" in everything


def test_the_table_shows_hostile_names_as_they_are(arms_file: Path) -> None:
    text = run("design", arms_file, "--all", "--pulls", 9).stdout
    for name in ("[red]x[/red]", "=1+1", "<script>", "two\\nlines"):
        assert name in text
    assert "1 merged" in text
    assert "[red]x[/red] = copy" in text
    for word in ("value", "lower bound", "gap", "solved", "2 of 2", "4 of 5"):
        assert word in text


def test_long_tables_are_cut_with_a_count(tmp_path: Path) -> None:
    rows = "".join(
        f"arm{i}," + ",".join(str(int(i == j)) for j in range(50)) + "\n" for i in range(50)
    )
    path = write(
        tmp_path / "many.csv", "name," + ",".join(f"f{j}" for j in range(50)) + "\n" + rows
    )
    text = run("design", path, "--criterion", "g").stdout
    assert "... and 10 more" in text
    assert text.count("arm") - text.count("arms") - text.count("an arm's") == 40
    full = run("design", path, "--criterion", "g", "--all").stdout
    assert "more" not in full
    assert "arm49" in full


def test_directions_come_by_column_name(arms_file: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "directions.csv", "b,a\n1,0\n1,1\n")
    result = run("design", arms_file, "--directions", path, "--format", "json")
    found = json.loads(result.stdout)
    design = fl.optimal_design(fl.Arms.from_csv(arms_file), np.array([[0.0, 1.0], [1.0, 1.0]]))
    assert found["criterion"] == "directions"
    assert [arm["weight"] for arm in found["arms"]] == design.weights.tolist()


def test_parquet_is_read(arms_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    arms = fl.Arms.from_csv(arms_file)
    arms.to_parquet(tmp_path / "arms.parquet")
    assert run("design", tmp_path / "arms.parquet").stdout == run("design", arms_file).stdout


def test_an_unsolved_design_says_so(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((300, 8))
    fl.Arms(X).to_csv(tmp_path / "arms.csv")
    result = run("design", tmp_path / "arms.csv", "--max-seconds", 0, "--format", "json")
    found = json.loads(result.stdout)
    assert not found["solved"]
    assert "max_seconds" in found["status"]
    text = " ".join(run("design", tmp_path / "arms.csv", "--max-seconds", 0).stdout.split())
    assert "not solved" in text
    assert "stopped after max_seconds" in text


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_output_goes_to_the_file_instead(arms_file: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "result"
    result = run("design", arms_file, "--format", form, "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert (
        out.read_bytes().decode()
        == run("design", arms_file, "--format", form).stdout_bytes.decode()
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arms.csv", "result"]


def test_a_failure_leaves_the_old_output(arms_file: Path, tmp_path: Path) -> None:
    out = write(tmp_path / "result", "old")
    check_refused(run("design", arms_file, "-o", out, "--pulls", 1), "1 pull")
    assert out.read_text() == "old"


@pytest.mark.parametrize("suffix", sorted(MAGIC))
def test_charts_are_what_their_suffix_says(arms_file: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"chart.{suffix}"
    result = run("design", arms_file, "--chart", path, "--pulls", 20)
    assert result.exit_code == 0
    assert path.read_bytes().startswith(MAGIC[suffix])


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("name,a,b\nx,1,2\ny,1,zz\n", ("line 3", "column 'b'", "'zz'")),
        ("name,a\nx,1\nx,2\n", ("line 3", "column 'name'", "taken already")),
        ("name,a\nx,1,5\n", ("line 2", "3 cells")),
        ("", ("empty",)),
        ("name;a\nx;1.000\n", ("line 2", "--decimal=. or --decimal=,")),
    ],
)
def test_wrong_files_are_refused_with_the_place(
    tmp_path: Path, content: str, parts: tuple[str, ...]
) -> None:
    check_refused(run("design", write(tmp_path / "bad.csv", content)), "bad.csv", *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--tol", "0"), ("tol is 0.0",)),
        (("--tol", "nan"), ("tol is nan",)),
        (("--max-seconds", "-1"), ("max_seconds is -1",)),
        (("--pulls", "1"), ("smallest number of pulls",)),
        (("--criterion", "a"), ("--criterion",)),
        (("--format", "xml"), ("--format",)),
        (("--chart", "chart.gif"), (".png, .svg, .pdf",)),
        (("--chart", "none/chart.png"), ("there is no folder",)),
        (("-o", "none/result"), ("there is no folder", "'none'")),
        (("-o", "."), ("it is a folder",)),
    ],
)
def test_wrong_options_are_refused(
    arms_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    parts: tuple[str, ...],
) -> None:
    monkeypatch.chdir(arms_file.parent)
    check_refused(run("design", arms_file, *arguments), *parts)
    assert [p.name for p in arms_file.parent.iterdir()] == ["arms.csv"]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("a\n1\n", ("line 1", "no column 'b'")),
        ("a,b,c\n1,0,0\n", ("line 1", "column 'c'")),
        ("a,b\n1,?\n2,3\n", ("line 2", "column 'b'", "'?'")),
        ("a,b\n1,?\n", ("column 'b'", "'?'")),
        ("a,b\n0,0\n", ("every direction is zero",)),
    ],
)
def test_wrong_directions_are_refused(
    arms_file: Path, tmp_path: Path, content: str, parts: tuple[str, ...]
) -> None:
    path = write(tmp_path / "directions.csv", content)
    check_refused(run("design", arms_file, "--directions", path), *parts)


def test_a_criterion_and_directions_exclude_each_other(arms_file: Path) -> None:
    result = run("design", arms_file, "--directions", arms_file, "--criterion", "g")
    check_refused(result, "not both")


def test_a_missing_file_is_refused() -> None:
    check_refused(run("design", "nowhere.csv"), "nowhere.csv")


def test_two_features_are_drawn_as_a_plane_with_cones(tmp_path: Path) -> None:
    flat, chart = tmp_path / "flat.csv", tmp_path / "flat.svg"
    flat.write_text("name,a,b\nu,1,0\nv,0,1\nw,0.8,0.6\n")
    assert run("design", flat, "--chart", chart).exit_code == 0
    assert "coloured cone" in chart.read_text()
    assert run("complexity", flat, "--theta", "2,0", "--sigma", 1, "--chart", chart).exit_code == 0
    assert "pulls settle it" in chart.read_text()


def test_two_features_on_one_line_are_drawn_as_bars(tmp_path: Path) -> None:
    line, chart = tmp_path / "line.csv", tmp_path / "line.svg"
    line.write_text("name,a,b\nu,1,0\nv,0.5,0\n")
    assert run("design", line, "--chart", chart).exit_code == 0
    assert "coloured cone" not in chart.read_text()
    assert run("complexity", line, "--theta", "2,0", "--sigma", 1, "--chart", chart).exit_code == 0
    assert "coloured cone" not in chart.read_text()
