"""`finalist simulate`: formats, settings of strategies, and wrong input."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.simulation.task import Outcome, Task
from finalist.strategies import XYAdaptive, configured
from tests.cli.common import ARMS, MAGIC, check_refused, run, write

THETA = "0.3,0.6"
FEW = ("--theta", THETA, "--runs", 8, "--sigma", 0.2)


@pytest.fixture
def arms_file(tmp_path: Path) -> Path:
    return write(tmp_path / "arms.csv", ARMS)


def as_json(*arguments: object) -> Any:
    result = run("simulate", *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=pytest.fail)


def test_json_has_the_numbers_of_the_library(arms_file: Path) -> None:
    settings = (
        "--strategy",
        "xy-adaptive",
        "--set",
        "alpha=0.1",
        "--set",
        "bound=soare",
        "--seed",
        3,
        "--delta",
        0.1,
    )
    few = ("--theta", THETA, "--runs", 8, "--sigma", 1)
    found = as_json(arms_file, *few, *settings, "--epsilon", 0.2, "--objective", "min")
    arms, theta = fl.Arms.from_csv(arms_file), np.array([0.3, 0.6])
    r = fl.simulate(
        arms,
        theta,
        XYAdaptive(alpha=0.1, bound="soare"),
        sigma=1.0,
        delta=0.1,
        epsilon=0.2,
        objective="min",
        runs=8,
        seed=3,
    )
    assert (found["strategy"], found["delta"]) == (r.strategy, 0.1)
    assert (found["name"], found["seed"], found["requested"]) == ("xy-adaptive", 3, 8)
    runs = found["runs"]
    assert [one["pulls"] for one in runs] == r.samples.tolist()
    assert [one["pulls_per_arm"] for one in runs] == r.pulls_per_arm.tolist()
    assert [one["winner"] for one in runs] == [arms.names[i] for i in r.winner]
    expected = r.summary()
    for word, value in found["summary"].items():
        if word != "mean_seconds":
            assert value == json.loads(json.dumps(getattr(expected, word)))
    assert [arm["mean_reward"] for arm in found["arms"]] == arms.means(theta).tolist()
    assert [arm["mean_pulls"] for arm in found["arms"]] == list(expected.mean_pulls_per_arm)


@pytest.mark.parametrize("name", ["g", "xy", "v"])
def test_static_strategies_by_name(arms_file: Path, name: str) -> None:
    settings = ("--strategy", name, "--set", "allocation=greedy", "--set", "bound=soare")
    found = as_json(arms_file, *FEW, *settings)
    arms = fl.Arms.from_csv(arms_file)
    strategy: Any = configured(name, {"allocation": "greedy", "bound": "soare"}, arms)
    r = fl.simulate(arms, [0.3, 0.6], strategy, sigma=0.2, runs=8)
    assert found["name"] == name
    assert [one["pulls_per_arm"] for one in found["runs"]] == r.pulls_per_arm.tolist()


def test_json_keys_are_those_of_the_help(arms_file: Path) -> None:
    found = as_json(arms_file, *FEW)
    help_text = run("simulate", "--help").stdout
    inner = (found["summary"], found["arms"][0], found["runs"][0])
    for key in (*found, *(key for keys in inner for key in keys)):
        assert key in help_text


def test_csv_has_a_row_per_run(arms_file: Path) -> None:
    result = run("simulate", arms_file, *FEW, "--format", "csv")
    header, *rows = csv.reader(io.StringIO(result.stdout, newline=""))
    assert header[:7] == ["run", "winner", "decided", "correct", "pulls", "batches", "seconds"]
    assert header[7:] == [
        "regret",
        *(f"pulls: {name}" for name in fl.Arms.from_csv(arms_file).names),
    ]
    assert len(rows) == 8
    assert {row[1] for row in rows} == {"'=1+1"}
    assert all(int(row[4]) == sum(map(int, row[8:])) for row in rows)


def test_the_table_says_what_came_out(arms_file: Path) -> None:
    text = run("simulate", arms_file, *FEW).stdout
    for word in (
        "measurements, mean",
        "95 % interval",
        "wrong winner",
        "0 of 8",
        "(exact 95 %), allowed 5.00%",
        "every run ended with a winner",
        "Expected result",
        "Share",
    ):
        assert word in text
    for name in ("[red]x[/red]", "=1+1", "<script>", "two\\nlines"):
        assert name in text


def test_undecided_runs_are_told(arms_file: Path) -> None:
    found = as_json(arms_file, *FEW, "--max-pulls", 1)
    runs = found["runs"]
    assert all(one["winner"] is None and not one["correct"] for one in runs)
    assert "the mean is too low" in run("simulate", arms_file, *FEW, "--max-pulls", 1).stdout


def test_jobs_change_nothing(arms_file: Path) -> None:
    one, two = (as_json(arms_file, *FEW, "--jobs", n) for n in (1, 2))
    for found in (one, two):
        del found["summary"]["mean_seconds"]
        for each in found["runs"]:
            del each["seconds"]
    assert one == two


def test_rewards_and_noise(arms_file: Path) -> None:
    few = ("--theta", THETA, "--runs", 2, "--max-pulls", 10**6)
    for more in (
        ("--noise", "bernoulli"),
        ("--rewards", "bernoulli", "--sigma", 1),
        ("--noise", "sub-gaussian", "--sigma", 0.3),
        ("--rewards", "bounded", "--sigma", 1),
    ):
        assert run("simulate", arms_file, *few, *more).exit_code == 0


def test_chart_and_output(arms_file: Path, tmp_path: Path) -> None:
    out, chart = tmp_path / "result.json", tmp_path / "pulls.svg"
    result = run("simulate", arms_file, *FEW, "--format", "json", "-o", out, "--chart", chart)
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(out.read_text())["requested"] == 8
    assert chart.read_bytes().startswith(MAGIC["svg"])
    undecided = run("simulate", arms_file, *FEW, "--max-pulls", 1, "--chart", chart)
    assert undecided.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((), ("--theta 1,0,...",)),
        (("--theta", "1"), ("shape (1,)",)),
        (("--theta", THETA, "--strategy", "best"), ("'best'", "xy-adaptive")),
        (("--theta", THETA, "--set", "grwoth=1"), ("grwoth=1", "growth")),
        (("--theta", THETA, "--set", "growth"), ("'growth'", "NAME=VALUE")),
        (("--theta", THETA, "--set", "growth=20"), ("growth is 20",)),
        (("--theta", THETA, "--strategy", "g", "--set", "bound=none"), ("bound is 'none'",)),
        (("--theta", THETA, "--runs", "0"), ("runs is 0",)),
        (("--theta", THETA, "--seed", "-1"), ("seed is -1",)),
        (("--theta", THETA, "--jobs", "0"), ("n_jobs is 0",)),
        (("--theta", THETA, "--max-pulls", "0"), ("max_pulls is 0",)),
        (("--theta", "2,0", "--rewards", "bernoulli"), ("between 0 and 1",)),
        (("--theta", THETA, "--noise", "bernoulli", "--sigma", "1"), ("both given",)),
        (("--theta", THETA, "--rewards", "cauchy"), ("--rewards",)),
    ],
)
def test_wrong_options_are_refused(
    arms_file: Path, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    own = () if "--noise" in arguments else ("--sigma", "1")
    check_refused(run("simulate", arms_file, *arguments, *own), *parts)


def test_ctrl_c_prints_what_is_finished(arms_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Task.run

    def interrupted(task: Task, index: int) -> Outcome:
        if index == 3:
            raise KeyboardInterrupt
        return whole(task, index)

    monkeypatch.setattr(Task, "run", interrupted)
    result = run("simulate", arms_file, *FEW)
    assert result.exit_code == 130
    assert "3 of 8 (interrupted)" in result.stdout
