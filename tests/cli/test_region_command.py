"""`finalist region`: a file of arms that a study reads, and what the study has found."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import finalist as fl
from finalist.arms.table import read_table
from tests.cli.common import check_refused, run

BOX = ("region", "box", "--low", "-1", "--high", "1", "--names", "dose", "--per-axis", "4")
NET = fl.Region.box([-1], [1], names=("dose",)).net(4)


def test_the_file_is_read_back_as_the_arms_of_the_library(tmp_path: Path) -> None:
    result = run(*BOX, "-o", tmp_path / "arms.csv")
    assert result.exit_code == 0
    assert "Wrote" in result.stderr
    arms = read_table(tmp_path / "arms.csv", measurable="measurable").arms
    assert arms == NET.arms
    assert run(*BOX, "--format", "csv").stdout.splitlines() == (
        (tmp_path / "arms.csv").read_text().splitlines()
    )


def test_json_has_the_numbers_of_the_library_and_the_keys_of_the_help() -> None:
    found = json.loads(run(*BOX, "--epsilon", "0.5", "--format", "json").stdout)
    assert (found["shape"], found["basis"], found["per_axis"]) == ("box", "quadratic", [4])
    assert (found["points"], found["measured"]) == (5, 3)
    assert found["design"]["value"] == pytest.approx(3.0)
    assert [arm["name"] for arm in found["design"]["arms"]] == ["dose=-1", "dose=1", "dose=0"]
    assert [arm["weight"] for arm in found["design"]["arms"]] == pytest.approx([1 / 3] * 3)
    assert found["question"] == pytest.approx({"epsilon": 0.4, "delta": 0.04, "check": 0.0})
    assert found["found"] is None
    text = run("region", "--help").stdout
    for key in (*found, *found["design"], *found["question"]):
        assert key in text


def test_the_table_has_the_command_that_begins_a_study() -> None:
    text = run(*BOX, "--epsilon", "0.5").stdout
    assert "dose=0" in text
    assert "largest variance" in text
    assert "--measurable-column measurable --sigma SIZE --epsilon 0.4 --delta 0.04" in text


def test_a_ball_and_every_point_measured() -> None:
    found = json.loads(
        run("region", "ball", "--dimension", 2, "--per-axis", 5, "--format", "json").stdout
    )
    assert (found["shape"], found["basis"], found["points"]) == ("ball", "linear", 16)
    rows = run("region", "ball", "--dimension", 2, "--per-axis", 5, "--measure", "all").stdout
    assert "16" in rows
    text = run(
        *("region", "ball", "--dimension", 2, "--basis", "quadratic", "--measure", "all"),
        *("--format", "csv"),
    ).stdout
    marks = {row["measurable"] for row in csv.DictReader(io.StringIO(text))}
    assert marks == {"yes"}


def test_a_study_from_the_file_to_what_is_certain_of_the_region(tmp_path: Path) -> None:
    arms, db = tmp_path / "arms.csv", tmp_path / "lab.db"
    run(*BOX, "-o", arms)
    begun = run(
        *("new", "pills", arms, "--measurable-column", "measurable", "--db", db, "--seed", 1),
        *("--check", 0, "--sigma", 0.5, "--epsilon", 0.4, "--delta", 0.04),
    )
    assert begun.exit_code == 0, begun.output
    check_refused(run(*BOX, "--study", "pills", "--db", db), "measure more")
    rng, truth = np.random.default_rng(0), NET.arms.means([0.0, 4.0, -3.0])
    with fl.Study.open(db, "pills") as study:
        while batch := study.ask():
            noise = 0.5 * rng.standard_normal(len(batch))
            study.tell(
                {
                    pull.pull_id: truth[NET.arms.index(pull.arm)] + e
                    for pull, e in zip(batch, noise.tolist(), strict=True)
                }
            )
        expected = NET.verdict(study, 0.05)
    asked = (*BOX, "--study", "pills", "--db", db)
    assert expected.sentence in run(*asked).stdout.replace("\n", " ").replace("  ", " ")
    found = json.loads(run(*asked, "--format", "json").stdout)["found"]
    assert found == expected.to_dict()
    text = run("region", "--help").stdout
    assert all(key in text for key in found)
    check_refused(run(*asked, "--delta", 0.04), "nothing is left")
    other = ("region", "box", "--low", "-1", "--high", "2", "--names", "dose", "--per-axis", "4")
    check_refused(run(*other, "--study", "pills", "--db", db), "no arm")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("box", "--low", "0,a", "--high", "1,1"), "number 2 is 'a'"),
        (("box", "--low", "0,0"), "--low and --high"),
        (("box", "--low", "0", "--high", "1", "--dimension", "2"), "--low and --high"),
        (("ball",), "--dimension"),
        (("ball", "--dimension", "2", "--low", "0,0"), "--dimension"),
        (("box", "--low", "0,1", "--high", "1,1"), "coordinate 2"),
        (("box", "--low", "0", "--high", "1", "--names", "a,b"), "names"),
        (("box", "--low", "0", "--high", "1", "--per-axis", "1"), "per_axis"),
        (("box", "--low", "0", "--high", "1", "--epsilon", "-1"), "epsilon is -1"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], words: str) -> None:
    check_refused(run("region", *arguments), words)
