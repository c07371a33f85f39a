"""`finalist complexity`: formats, ways to give theta, and wrong input."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import finalist as fl
from tests.cli.common import ARMS, MAGIC, check_refused, run, write

THETA = "2,-0.5"
ONE = ("--theta", THETA, "--sigma", 1)


@pytest.fixture
def arms_file(tmp_path: Path) -> Path:
    return write(tmp_path / "arms.csv", ARMS)


@pytest.mark.parametrize("bound", ["sharp", "soare"])
@pytest.mark.parametrize("objective", ["max", "min"])
def test_json_has_the_numbers_of_the_library(arms_file: Path, bound: str, objective: str) -> None:
    settings = ("--sigma", 0.3, "--delta", 0.1, "--bound", bound, "--objective", objective)
    result = run("complexity", arms_file, "--theta", THETA, *settings, "--format", "json")
    found = json.loads(result.stdout)
    arms = fl.Arms.from_csv(arms_file)
    theta = np.array([2.0, -0.5])
    c = fl.complexity(
        arms,
        theta,
        sigma=0.3,
        delta=0.1,
        bound=bound,  # type: ignore[arg-type]
        objective=objective,
    )
    for key in (
        "delta_min",
        "h_lb",
        "h_mab",
        "t_star",
        "lower_bound",
        "oracle_budget",
        "m_star",
        "bound",
    ):
        assert found[key] == getattr(c, key)
    for key, value in found["bounds"].items():
        assert value == getattr(c.bounds, key)
    assert found["best"] == arms.names[c.best]
    assert (found["sigma"], found["delta"], found["objective"]) == (0.3, 0.1, objective)
    assert [arm["gap"] for arm in found["arms"]] == c.gaps.tolist()
    assert [arm["mean"] for arm in found["arms"]] == arms.means(theta).tolist()
    assert [arm["oracle_weight"] for arm in found["arms"]] == c.oracle_design.weights.tolist()
    assert found["arms"][0]["aliases"] == ["[red]x[/red]", "copy"]


def test_json_keys_are_those_of_the_help(arms_file: Path) -> None:
    found = json.loads(run("complexity", arms_file, *ONE, "--format", "json").stdout)
    help_text = run("complexity", "--help").stdout
    inner = (found["bounds"], found["oracle_design"], found["arms"][0])
    for key in (*found, *(key for keys in inner for key in keys)):
        assert key in help_text


def test_json_has_null_for_what_is_infinite(tmp_path: Path) -> None:
    path = write(tmp_path / "one.csv", "name,a\nonly,1\n")
    text = run("complexity", path, "--theta", "1", "--sigma", 1, "--format", "json").stdout
    assert json.loads(text, parse_constant=pytest.fail)["delta_min"] is None
    assert run("complexity", path, "--theta", "1", "--sigma", 1).exit_code == 0


def test_csv_has_a_row_per_arm_the_best_first(arms_file: Path) -> None:
    result = run("complexity", arms_file, "--theta", "0.5,1", "--sigma", 1, "--format", "csv")
    header, *rows = csv.reader(io.StringIO(result.stdout, newline=""))
    assert header == ["name", "mean", "gap", "oracle_weight"]
    assert rows[0][:3] == ["'=1+1", "1.0", "0.0"]
    gaps = [float(row[2]) for row in rows]
    assert gaps == sorted(gaps)
    assert len(rows) == 4


def test_the_table_has_every_quantity_in_words(arms_file: Path) -> None:
    text = run("complexity", arms_file, *ONE).stdout
    for word in (
        "best candidate",
        "smallest gap",
        "lower bound",
        "or less for every theta",
        "oracle budget N*",
        "H_LB",
        "H_MAB",
        "T*",
        "M*",
        "Lemma 2",
        "Theorem 1",
        "Theorem 2",
        "Theorem 3",
        "1 merged",
    ):
        assert word in text
    for name in ("[red]x[/red]", "=1+1", "<script>", "two\\nlines"):
        assert name in text


@pytest.mark.parametrize(
    "content", ["2,-0.5\n", "2\n-0.5\n", "a,b\n2,-0.5\n", "b,a\n-0.5,2\n", "name,b,a\nt,-0.5,2\n"]
)
def test_theta_from_a_file(arms_file: Path, tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "theta.csv", content)
    expected = run("complexity", arms_file, *ONE).stdout
    assert run("complexity", arms_file, "--theta-file", path, "--sigma", 1).stdout == expected


def test_theta_may_begin_with_a_minus(arms_file: Path) -> None:
    result = run("complexity", arms_file, "--theta", "-1,2", "--sigma", 1, "--format", "json")
    assert json.loads(result.stdout)["best"] == "=1+1"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("1\nx\n", ("line 2", "column 1", "'x'")),
        ("1,x\n", ("line 1", "column 2", "'x'")),
        ("a\n1\n", ("line 1", "'b'")),
        ("a,b\n1,0\n0,1\n", ("2 rows",)),
        ("a,b\n1,oops\n", ("theta.csv, line 2, column 'b'", "'oops'")),
        ("1,2,3\n", ("shape (3,)",)),
        ("nan,1\n", ("theta is nan",)),
        ("", ("empty",)),
    ],
)
def test_wrong_files_of_theta_are_refused(
    arms_file: Path, tmp_path: Path, content: str, parts: tuple[str, ...]
) -> None:
    path = write(tmp_path / "theta.csv", content)
    check_refused(run("complexity", arms_file, "--theta-file", path, "--sigma", 1), *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((), ("--theta 1,0,...", "--theta-file")),
        (("--theta", "1"), ("shape (1,)",)),
        (("--theta", "1,x"), ("number 2 is 'x'",)),
        (("--theta", "1_0,1"), ("number 1 is '1_0'",)),
        (("--theta", "1,"), ("number 2 is ''",)),
        (("--theta", "0,0"), ("equally good",)),
        (("--theta", THETA, "--sigma", "0"), ("sigma",)),
        (("--theta", THETA, "--delta", "1"), ("delta",)),
        (("--theta", THETA, "--alpha", "2"), ("alpha",)),
        (("--theta", THETA, "--bound", "best"), ("--bound",)),
    ],
)
def test_wrong_options_are_refused(
    arms_file: Path, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    check_refused(run("complexity", arms_file, "--sigma", "1", *arguments), *parts)


def test_theta_twice_is_refused(arms_file: Path) -> None:
    result = run("complexity", arms_file, "--theta", THETA, "--theta-file", arms_file)
    check_refused(result, "either --theta")


def test_chart_and_output(arms_file: Path, tmp_path: Path) -> None:
    out, chart = tmp_path / "result.json", tmp_path / "gaps.svg"
    settings = (*ONE, "--format", "json", "-o", out, "--chart", chart)
    result = run("complexity", arms_file, *settings)
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(out.read_text())["best"] == "[red]x[/red]"
    assert chart.read_bytes().startswith(MAGIC["svg"])
    assert "<script" not in chart.read_text()
