"""Commands for noise, cost and roles of each arm, shifts, bent means, and several winners."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.arms.table import read_table
from finalist.study import Study
from tests.cli.common import check_refused, run, write

TABLE = """name,a,b,noise,price,stock
tin,1,0,0.5,2,yes
zinc,0,1,1.5,1,Yes
lead,1,1,1,4,no
gold,0.5,2,1,3,1
iron,2,1,0.3,1,0
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINALIST_DB", str(tmp_path / "lab.db"))
    return write(tmp_path / "arms.csv", TABLE)


COLUMNS = ("--sigma-column", "noise", "--cost-column", "price", "--measurable-column", "stock")


def content(*arguments: object) -> Any:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_simulation_reads_the_columns(table: Path) -> None:
    found = content("simulate", table, "--theta", "1,1.5", "--runs", 4, "--seed", 2, *COLUMNS)
    read = read_table(table, measurable="stock", sigma="noise", cost="price")
    assert read.arms.feature_names == ("a", "b")
    assert read.arms.measurable.tolist() == [True, True, False, True, False]
    assert read.cost is not None
    same = fl.simulate(read.arms, [1.0, 1.5], sigma=read.sigma, cost=read.cost, runs=4, seed=2)
    assert [one["pulls_per_arm"] for one in found["runs"]] == same.pulls_per_arm.tolist()
    assert found["summary"]["mean_cost"] == pytest.approx(same.cost.mean())
    assert [one["cost"] for one in found["runs"]] == same.cost.tolist()
    shown = run("simulate", table, "--theta", "1,1.5", "--runs", 4, *COLUMNS)
    assert "cost, mean" in shown.stdout


def test_a_study_keeps_the_columns(table: Path) -> None:
    made = content("new", "metals", table, *COLUMNS, "--batch-intercept", "--seed", 1)
    settings = made["settings"]
    assert settings["noise"]["sigma"] == [0.5, 1.5, 1.0, 1.0, 0.3]
    assert settings["cost"] == [2.0, 1.0, 4.0, 3.0, 1.0]
    assert settings["measurable"] == [True, True, False, True, False]
    assert settings["batch_intercept"] is True
    batch = content("ask", "metals", "--size", 12)
    assert {pull["arm"] for pull in batch["pulls"]} <= {"tin", "zinc", "gold"}
    said = run("status", "metals", "--no-forecast", "--format", "json")
    assert "cannot be measured" in said.stdout


def test_columns_and_other_candidates_go_together(table: Path) -> None:
    others = write(table.parent / "others.csv", "name,a,b\nx,3,1\ny,1,3\n")
    made = content("new", "metals", table, *COLUMNS, "--candidates", others, "--seed", 1)
    assert made["settings"]["noise"]["sigma"][:5] == [0.5, 1.5, 1.0, 1.0, 0.3]
    assert made["settings"]["cost"][:5] == [2.0, 1.0, 4.0, 3.0, 1.0]
    assert (made["arms"], made["measurable"], made["candidates"]) == (7, 3, 2)


def test_an_intercept_is_one_of_arms_and_candidates_together(table: Path) -> None:
    """Each file alone has a constant in its span, and both together have none."""
    arms = write(table.parent / "units.csv", "name,a,b,c\nx,1,0,0\ny,0,1,0\nz,0,0,1\n")
    others = write(table.parent / "others.csv", "name,a,b,c\np,1,1,0\nq,0,1,1\n")
    run("new", "units", arms, "--candidates", others, "--intercept", "--sigma", 1)
    study = Study.open(str(table.parent / "lab.db"), "units")
    assert study.arms.feature_names == ("a", "b", "c", "intercept")


def test_several_winners_and_other_candidates(table: Path) -> None:
    others = write(table.parent / "others.csv", "name,a,b\nx,3,1\ny,1,3\nz,2,2\n")
    plain = write(table.parent / "plain.csv", "name,a,b\ntin,1,0\nzinc,0,1\n")
    words = ("--sigma", 0.3, "--candidates", others, "--top", 2, "--seed", 1)
    made = content("new", "metals", plain, *words)
    assert made["settings"]["top"] == 2
    study = Study.open(str(table.parent / "lab.db"), "metals")
    rng = np.random.default_rng(1)
    while batch := study.ask(20):
        means = {"tin": 1.0, "zinc": 2.0}
        study.tell({p.pull_id: means[p.arm] + 0.3 * rng.standard_normal() for p in batch})
    status = content("status", "metals", "--no-forecast")
    assert sorted(status["winners"]) == ["y", "z"]
    assert "are the 2 best" in status["sentence"]
    few = ("--theta", "1,2", "--sigma", 1, "--runs", 2)
    found = content("simulate", plain, *few, "--candidates", others)
    assert [arm["name"] for arm in found["arms"]] == ["tin", "zinc", "x", "y", "z"]


def test_the_best_candidate_is_on_top_whatever_is_only_measured(table: Path) -> None:
    others = write(table.parent / "others.csv", "name,a,b\nx,1,1\ny,2,1\nz,1,3\n")
    plain = write(table.parent / "plain.csv", "name,a,b\ntin,1,0\nzinc,0,1\n")
    for objective, order in (("min", ["x", "y", "z"]), ("max", ["z", "y", "x"])):
        words = ("--sigma", 1, "--candidates", others, "--objective", objective, "--seed", 1)
        # Both arms together cannot tell a level from their features.
        content("new", objective, plain, *words, "--no-intercept")
        with Study.open(str(table.parent / "lab.db"), objective) as study:
            study.tell({p.pull_id: {"tin": 1.0, "zinc": 2.0}[p.arm] for p in study.ask(10)})
        shown = run("status", objective, "--no-forecast").stdout
        rows = [line.split()[0] for line in shown.splitlines() if line.endswith("  possible")]
        assert rows == order


def test_plans_and_designs_read_the_columns(table: Path) -> None:
    planned = content("plan", table, "--gap", 1, "--draws", 3, *COLUMNS)
    assert planned["unit"] == "units of cost"
    assert [row["name"] for row in planned["rows"]] == ["gauntlet", "equal shares"]
    plain = write(table.parent / "plain.csv", "name,a,b\ntin,1,0\nzinc,0,1\nlead,2,1\n")
    alone = content("plan", plain, "--gap", 1, "--draws", 2, "--sigma", 1, "--top", 2)
    assert alone["unit"] == "measurements"
    designed = content("design", table, *COLUMNS)
    assert [arm["weight"] > 0 for arm in designed["arms"]][2::2] == [False, False]
    assert "1 unit of cost" in " ".join(run("design", table, *COLUMNS).stdout.split())


def test_shifts_and_bent_means(table: Path) -> None:
    plain = write(table.parent / "plain.csv", "name,a,b\ntin,1,0\nzinc,0,1\nlead,2,1\n")
    words = ("--theta", "1,2", "--runs", 6, "--sigma", 0.3, "--shift", 50)
    honest = content("simulate", plain, *words, "--batch-intercept")
    assert honest["summary"]["errors"] == 0
    found = content(
        "simulate", plain, "--theta", "1,2", "--runs", 2, "--sigma", 0.3, "--misspecification", 0.1
    )
    assert found["summary"]["undecided"] == 0


@pytest.mark.parametrize(
    ("old", "new", "words", "parts"),
    [
        ("yes", "perhaps", COLUMNS, ("line 2", "'stock'", "'perhaps'", "yes or no")),
        ("0.5,2,yes", "0,2,yes", COLUMNS, ("'noise'", "'0'", "positive")),
        ("price", "prize", COLUMNS, ("no column 'price'", "prize")),
        ("yes", "yes", (*COLUMNS, "--sigma", "1"), ("--sigma-column", "both given")),
        (
            "zinc,0,1,1.5",
            "zinc,1,0,1.5",
            COLUMNS,
            ("line 3", "'noise'", "same features", "one candidate"),
        ),
    ],
)
def test_wrong_columns_are_refused_in_place(
    table: Path, old: str, new: str, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    table.write_text(TABLE.replace(old, new, 1))
    check_refused(run("new", "metals", table, *words), *parts)


def test_numpy_files_are_arms(tmp_path: Path) -> None:
    features = np.random.default_rng(0).standard_normal((5, 2))
    np.save(tmp_path / "arms.npy", features)
    np.testing.assert_array_equal(fl.Arms.from_npy(tmp_path / "arms.npy").features, features)
    found = content("design", tmp_path / "arms.npy")
    assert found["features"] == ["f1", "f2"]
    write(tmp_path / "bad.npy", "no numbers")
    check_refused(run("design", tmp_path / "bad.npy"), "bad.npy", "NumPy")
    refused = run("design", tmp_path / "arms.npy", "--cost-column", "c")
    check_refused(refused, "no column names", "'c'")


def test_parquet_files_have_such_columns_too(table: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    file = table.parent / "arms.parquet"
    pd.read_csv(table).to_parquet(file)
    found = read_table(file, measurable="stock", sigma="noise", cost="price")
    same = read_table(table, measurable="stock", sigma="noise", cost="price")
    assert found.arms == same.arms
    np.testing.assert_array_equal(found.cost, same.cost)
    np.testing.assert_array_equal(found.sigma, same.sigma)


def test_a_new_study_says_what_is_measured_and_what_can_win(table: Path) -> None:
    others = write(table.parent / "others.csv", "name,a,b\nx,3,1\ny,1,3\nz,2,2\n")
    plain = write(table.parent / "plain.csv", "name,a,b\ntin,1,0\nzinc,0,1\n")
    both = run("new", "both", plain, "--sigma", 1, "--candidates", others)
    assert "2 to measure, 3 to choose from, strategy gauntlet" in both.stdout
    some = run("new", "some", table, *COLUMNS)
    assert "3 to measure, 5 to choose from, strategy gauntlet" in some.stdout
    every = run("new", "every", plain, "--sigma", 1)
    assert ": 2 candidates, strategy gauntlet" in every.stdout
    made = content("new", "counts", plain, "--sigma", 1, "--candidates", others)
    assert [made[key] for key in ("arms", "measurable", "candidates")] == [5, 2, 3]


def test_the_chart_of_a_study_shows_what_can_win(table: Path) -> None:
    from finalist.cli.study.status import evidence_picture

    duels = fl.Arms([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]], names=["a against b", "b against c"])
    players = fl.Arms(np.eye(3), names=["a", "b", "c"])
    db = str(table.parent / "lab.db")
    with Study.create(db, "duels", duels, candidates=players, sigma=1.0, seed=1) as study:
        study.tell({p.pull_id: 0.0 for p in study.ask(12)})
        drawn = str(evidence_picture(study, "Evidence").to_dict())
    assert "'arm': 'a'" in drawn
    assert "a against b" not in drawn


def test_a_study_has_a_constant_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("arms.csv").write_text("name,x,y\na,-1,0\nb,0,1\nc,0,0\nd,1,-1\n")
    plain = run("new", "plain", "arms.csv", "--sigma", "1", "--no-intercept")
    assert "leave --no-intercept out" in " ".join(plain.output.split())
    level = run("new", "level", "arms.csv", "--sigma", "1")
    assert "Note" not in level.output
    with fl.Study.open("finalist.db", "plain") as study:
        assert study.arms.feature_names == ("x", "y")
    with fl.Study.open("finalist.db", "level") as study:
        assert study.arms.feature_names == ("x", "y", "intercept")
    shown = run("design", "arms.csv", "--intercept", "--format", "json")
    assert json.loads(shown.output)["rank"] == 3
    few = ("--theta", "1,0,20", "--sigma", "1", "--runs", "2")
    result = run("simulate", "arms.csv", *few, "--intercept")
    assert result.exit_code == 0
