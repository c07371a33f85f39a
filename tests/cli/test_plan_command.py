"""`finalist plan`: the numbers of the library, formats, and wrong input."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import finalist as fl
from finalist.planning.draws import Draws
from finalist.simulation.task import Outcome
from tests.cli.common import ARMS, check_refused, run, write

FEW = ("--gap", 0.5, "--draws", 4, "--sigma", 0.5)
#: With a constant feature.
LINE = "name,one,x\na,1,0\nb,1,0.5\nc,1,1\n"


@pytest.fixture
def arms_file(tmp_path: Path) -> Path:
    return write(tmp_path / "arms.csv", ARMS)


def as_json(*arguments: object) -> Any:
    result = run("plan", *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=pytest.fail)


def test_json_has_the_numbers_of_the_library(arms_file: Path) -> None:
    names = ("--strategy", "xy", "--against", "v", "--against", "xy-oracle")
    more = ("--seed", 3, "--delta", 0.1, "--epsilon", 0.1, "--objective", "min")
    found = as_json(arms_file, *FEW, *names, *more, "--max-pulls", 500)
    expected = fl.plan(
        fl.Arms.from_table(arms_file),
        gap=0.5,
        sigma=0.5,
        draws=4,
        strategy="xy",
        against=("v", "xy-oracle"),
        seed=3,
        delta=0.1,
        epsilon=0.1,
        objective="min",
        max_pulls=500,
        leads=True,
    )
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert [row["name"] for row in found["rows"]] == ["xy", "v", "xy-oracle"]
    assert [row["lead"] for row in found["by_lead"]] == [0.25, 0.5, 1.0]
    one = as_json(arms_file, *FEW, *names, *more, "--max-pulls", 500, "--no-leads")
    assert [row["lead"] for row in one["by_lead"]] == [0.5]
    assert one["rows"] == found["rows"]


def test_theta_can_be_given_instead(arms_file: Path, tmp_path: Path) -> None:
    few = ("--draws", 3, "--sigma", 0.2)
    file = write(tmp_path / "theta.csv", "b,a\n0.6,0.3\n")
    level = as_json(arms_file, "--theta", "0.3,0.6", *few)
    assert level == as_json(arms_file, "--theta-file", file, *few)
    assert level == as_json(arms_file, "--theta", "0.3,0.6,0", *few)
    found = as_json(arms_file, "--theta", "0.3,0.6", *few, "--no-intercept")
    assert found == as_json(arms_file, "--theta-file", file, *few, "--no-intercept")
    runs = fl.simulate(fl.Arms.from_csv(arms_file), [0.3, 0.6], sigma=0.2, check=0.03, runs=3)
    assert found["rows"][0]["pulls"] == runs.samples.tolist()
    assert found["gap"] is None


def test_json_keys_are_those_of_the_help(arms_file: Path) -> None:
    found = as_json(arms_file, *FEW)
    help_text = run("plan", "--help").stdout
    for key in (*found, *found["rows"][0]):
        assert key in help_text


def test_csv_has_a_row_per_strategy(arms_file: Path) -> None:
    result = run("plan", arms_file, *FEW, "--max-pulls", 1, "--format", "csv")
    header, *rows = csv.reader(io.StringIO(result.stdout, newline=""))
    assert header == ["name", "median", "low", "high", "mean", "undecided", "wrong"]
    assert [row[0] for row in rows] == ["gauntlet", "equal shares"]
    assert rows[0][1:] == ["inf", "inf", "inf", "inf", "4", "0"]


def test_the_table_says_it_in_a_sentence(arms_file: Path) -> None:
    text = " ".join(run("plan", arms_file, *FEW).stdout.split())
    assert text.startswith("Expect about ")
    for word in ("same test with equal shares would need about", "90 % within", "Fixed number"):
        assert word in text
    assert "needs at least about" not in text  # an experiment for this lead may need fewer
    text = " ".join(run("plan", arms_file, "--theta", "1,2", *FEW[2:]).stdout.split())
    for word in ("needs at least about", "0 of 4", "gauntlet"):
        assert word in text
    text = run("plan", arms_file, *FEW, "--max-pulls", 1).stdout
    assert "Expect more than 1 measurements" in text
    assert "> 1 " in text


def test_bernoulli_noise(tmp_path: Path) -> None:
    line = write(tmp_path / "line.csv", LINE)
    found = as_json(line, "--gap", 0.4, "--noise", "bernoulli", "--draws", 2)
    assert (found["sigma"], found["lower_bound"]) == (0.5, None)


def test_output_and_jobs(arms_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    options = ("--format", "json", "--jobs", 2, "-o", out)
    result = run("plan", arms_file, *FEW, *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(out.read_text()) == as_json(arms_file, *FEW)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((), ("neither is given",)),
        (("--gap", "1", "--theta", "1,0"), ("both are given",)),
        (("--theta", "1"), ("shape (1,)",)),
        (("--gap", "0"), ("gap is 0.0",)),
        (("--gap", "much"), ("--gap",)),
        (("--gap", "1", "--strategy", "best"), ("'best'", "uniform")),
        (("--gap", "1", "--against", "best"), ("'best'", "uniform")),
        (("--gap", "1", "--draws", "0"), ("draws is 0",)),
        (("--gap", "1", "--jobs", "0"), ("n_jobs is 0",)),
        (("--gap", "1", "--max-pulls", "0"), ("max_pulls is 0",)),
        (("--gap", "0.1", "--noise", "bernoulli", "--sigma", "1"), ("both given",)),
        (("--gap", "0.9", "--noise", "bernoulli"), ("smaller gap",)),
    ],
)
def test_wrong_options_are_refused(
    arms_file: Path, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    own = () if "--noise" in arguments else ("--sigma", "1")
    check_refused(run("plan", arms_file, *arguments, *own), *parts)


def test_ctrl_c_ends_without_a_plan(arms_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Outcome:
        raise KeyboardInterrupt

    monkeypatch.setattr(Draws, "run", interrupted)
    result = run("plan", arms_file, *FEW)
    assert result.exit_code == 130
    assert result.stdout == ""


def test_models_are_compared(tmp_path: Path) -> None:
    file = write(
        tmp_path / "doses.csv",
        "name,dose,tone\n" + "".join(f"c{i},{5 * i},{'ab'[i % 2]}\n" for i in range(7)),
    )
    found = as_json(file, *FEW, "--models")
    assert [row["model"] for row in found["rows"]] == ["straight", "bending", "surface", "separate"]
    assert [row["features"] for row in found["rows"]] == [3, 4, 5, 7]
    shown = run("plan", file, *FEW, "--models")
    assert "Straight about" in shown.stdout
    assert "90 % within" in shown.stdout
    rows = list(
        csv.DictReader(io.StringIO(run("plan", file, *FEW, "--models", "--format", "csv").stdout))
    )
    assert [int(row["features"]) for row in rows] == [3, 4, 5, 7]


def test_models_need_a_lead_and_nothing_that_clashes(arms_file: Path) -> None:
    check_refused(run("plan", arms_file, "--sigma", 1, "--models"), "--models", "--gap")
    for more in (("--theta", "1,2"), ("--against", "xy")):
        check_refused(run("plan", arms_file, *FEW, "--models", *more), "--models", "--against")


def test_margins_are_compared(arms_file: Path, tmp_path: Path) -> None:
    few = ("--gap", 0.5, "--draws", 2, "--sigma", 0.5, "--margins", "--epsilon", 0.3)
    chart = tmp_path / "margins.svg"
    found = as_json(arms_file, *few, "--chart", chart)
    assert chart.read_bytes().startswith(b"<svg")
    arms = fl.Arms.from_table(arms_file)
    expected = fl.margin_prices(arms, gap=0.5, sigma=0.5, draws=2, epsilon=0.3, max_pulls=10**7)
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert [row["margin"] for row in found["rows"]][::2] == [0.0, 0.125, 0.25, 0.3, 0.5, 1.0]
    help_text = run("plan", "--help").stdout
    for key in (*found, *found["rows"][0]):
        assert key in help_text
    shown = run("plan", arms_file, *few).stdout
    assert " ".join(shown.split()).startswith("If the best leads by 0.5, expect about ")
    assert "Lead 0.125: median" in shown
    assert " none " in shown
    text = run("plan", arms_file, *few, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == 12
    assert (rows[1]["margin"], rows[1]["lead"]) == ("0.0", "0.125")


def test_margins_need_a_lead_and_nothing_that_clashes(arms_file: Path, tmp_path: Path) -> None:
    check_refused(run("plan", arms_file, "--sigma", 1, "--margins"), "--margins", "--gap")
    for more in (("--theta", "1,2"), ("--against", "xy")):
        check_refused(run("plan", arms_file, *FEW, "--margins", *more), "--margins", "--against")
    check_refused(run("plan", arms_file, *FEW, "--margins", "--models"), "both given")
    check_refused(
        run("plan", arms_file, *FEW, "--margins", "--top", 2), "the 2 best", "proof for one best"
    )
    picture = tmp_path / "margins.png"
    for other in (("--models",), ("--no-leads",), ("--budget", 20, "--top", 2)):
        check_refused(run("plan", arms_file, *FEW, *other, "--chart", picture), "--chart draws")
    bad = tmp_path / "margins.gif"
    check_refused(run("plan", arms_file, *FEW, "--margins", "--chart", bad), ".png")
    assert not picture.exists()


def test_an_unknown_sigma_needs_a_guess_and_batches_have_their_size(arms_file: Path) -> None:
    few = ("--gap", 0.5, "--draws", 3)
    check_refused(run("plan", arms_file, *few), "--sigma", "--guess")
    check_refused(run("plan", arms_file, *few, "--sigma", "unknown"), "guess")
    check_refused(run("plan", arms_file, *few, "--sigma", 1, "--guess", 1), "guess is 1.0")
    check_refused(run("plan", arms_file, *few, "--sigma", "wide"), "'wide'", "unknown")
    found = as_json(arms_file, *few, "--sigma", "unknown", "--guess", 0.5, "--size", 6)
    words: dict[str, Any] = {"sigma": None, "guess": 0.5, "size": 6, "leads": True}
    expected = fl.plan(fl.Arms.from_table(arms_file), gap=0.5, draws=3, max_pulls=10**7, **words)
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert (found["size"], found["known"], found["sigma"]) == (6, False, 0.5)
    assert found == as_json(arms_file, *few, "--guess", 0.5, "--size", 6)
    for option in ("--models", "--margins"):
        rows = as_json(arms_file, *few, "--guess", 0.5, "--size", 6, option)["rows"]
        assert all(row["median"] > 0 for row in rows)


def test_measurements_are_drawn_against_the_lead(arms_file: Path, tmp_path: Path) -> None:
    chart = tmp_path / "leads.svg"
    assert run("plan", arms_file, *FEW, "--chart", chart).exit_code == 0
    drawn = chart.read_text()
    for word in ("this study", "equal shares", "fixed number", "smallest lead"):
        assert word in drawn
