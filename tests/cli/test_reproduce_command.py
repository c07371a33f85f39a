"""`finalist reproduce`: what it prints, writes and refuses."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.common import MAGIC, check_refused, run, write


def test_cones_are_drawn_and_explained(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "paper"
    result = run("reproduce", "cones", "--out", folder)
    assert result.exit_code == 0, result.output
    assert "x1 and x3" in result.stdout
    assert "holds" in result.stdout
    for stem in ("cones", "cones-pulls"):
        for suffix in ("png", "svg"):
            path = folder / f"{stem}.{suffix}"
            assert path.read_bytes().startswith(MAGIC[suffix])
            assert str(path) in result.stdout
    assert not (folder / "results.sqlite").exists()  # nothing was simulated


def test_json_has_findings_and_tables(tmp_path: Path) -> None:
    result = run("reproduce", "cones", "--out", tmp_path, "--format", "json")
    content = json.loads(result.stdout)
    part = content["parts"]["cones"]
    assert {finding["holds"] for finding in part["findings"]} == {True}
    (table,) = part["tables"].values()
    with (tmp_path / "cones.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["pulls"] for row in rows] == [str(row["pulls"]) for row in table]
    assert all(Path(path).is_file() for path in content["files"])


def test_the_table_is_simulated_and_kept(tmp_path: Path) -> None:
    words = ("reproduce", "table", "--quick", "--runs", 2, "--seed", 3, "--jobs", 1)
    first = run(*words, "--out", tmp_path)
    assert first.exit_code == 0, first.output
    for word in ("XY-Oracle", "XY-Adaptive (0.1)", "Fully adaptive", "printed", "53,534"):
        assert word in first.stdout
    assert (tmp_path / "results.sqlite").stat().st_size > 0
    assert run(*words, "--out", tmp_path).stdout == first.stdout
    longest = max(map(len, first.stdout.split("Written:")[0].splitlines()))
    assert longest <= 100
    assert "…" not in first.stdout


def test_interrupts_are_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("finalist.lab.paper.report.measure", interrupt)
    result = run("reproduce", "table", "--quick", "--out", tmp_path)
    assert result.exit_code != 0
    assert "Traceback" not in result.output


def test_wrong_input_is_refused(tmp_path: Path) -> None:
    check_refused(run("reproduce", "figure", "--out", tmp_path), "figure")
    check_refused(run("reproduce", "table"), "--out")
    check_refused(run("reproduce", "table", "--runs", 1, "--out", tmp_path), "runs is 1")
    check_refused(run("reproduce", "table", "--jobs", 0, "--out", tmp_path), "n_jobs is 0")
    check_refused(run("reproduce", "table", "--seed", -1, "--out", tmp_path), "seed is -1")
    path = write(tmp_path / "file", "")
    check_refused(run("reproduce", "cones", "--out", path), str(path))


def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "results.sqlite", "mine")
    check_refused(run("reproduce", "table", "--quick", "--out", tmp_path), str(path))
    assert path.read_text() == "mine"
