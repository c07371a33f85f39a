"""The demo: a whole study on measured plots; and the example of the paper."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

import finalist as fl
from finalist import data
from finalist.cli import codes
from finalist.cli.research import demo
from finalist.cli.research.demo import following
from finalist.lab.paper import instance
from finalist.study import Study
from tests.cli.common import MAGIC, check_refused, run, write

# ---- a study on measured plots --------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The folder and the output of one demo."""
    folder = tmp_path_factory.mktemp("new") / "demo"
    return folder, run("demo", "--out", folder)


def test_the_demo_goes_from_new_to_the_verdict(shown: tuple[Path, Result]) -> None:
    folder, result = shown
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    for word in (
        "drawn with replacement",
        "Yates (1935)",
        "is within 15 of the best, after 96 measurements",
        "probability at most",
        "bend with nitrogen",
    ):
        assert word in result.stdout
    left = [int(n) for n in re.findall(r"(\d+) of 12  ", result.stdout)]
    assert left[0] == 12
    assert left == sorted(set(left), reverse=True)
    for suffix in ("png", "svg"):
        path = folder / f"evidence.{suffix}"
        assert path.read_bytes().startswith(MAGIC[suffix])
        assert str(path) in result.stdout


def test_the_study_of_the_demo_is_on_disk_with_measured_rewards(
    shown: tuple[Path, Result],
) -> None:
    folder, _ = shown
    status = run("status", demo.NAME, "--db", folder / "demo.db")
    assert status.exit_code == codes.DONE
    table = data.load("oats")
    with Study.open(folder / "demo.db", demo.NAME) as study:
        frame, found = study.to_frame(), study.status(forecast=False)
    best = max(rewards.mean() for rewards in table.rewards)
    assert found.verdict == "winner"
    assert found.winner is not None
    assert table.rewards[table.arms.index(found.winner)].mean() >= best - demo.MARGIN
    for name, reward in zip(frame["arm"], frame["reward"], strict=True):
        assert reward in table.rewards[table.arms.index(name)]
    assert frame.groupby("batch").size().eq(demo.SIZE).all()


def test_the_command_that_begins_the_demo_begins_the_same_study(
    shown: tuple[Path, Result], tmp_path: Path
) -> None:
    folder, result = shown
    begun = re.search(r"^  finalist (new oats .*)", result.stdout, flags=re.MULTILINE)
    assert begun is not None
    words = shlex.split(begun[1])
    words[words.index("--db") + 1] = str(tmp_path / "lab.db")
    assert run(*words).exit_code == 0
    settings = []
    for file in (folder / "demo.db", tmp_path / "lab.db"):
        with Study.open(file, demo.NAME) as study:
            said = {k: v for k, v in study.settings.items() if k not in ("seed", "metadata")}
            settings.append((said, study.arms.names, study.arms.features.tolist()))
    assert settings[0] == settings[1]


def test_the_demo_ends_with_the_command_that_opens_the_page(shown: tuple[Path, Result]) -> None:
    folder, result = shown
    last = result.stdout.rstrip().splitlines()[-1]
    assert shlex.split(last) == ["finalist", "serve", "--db", str(folder / "demo.db")]


def test_the_commands_the_demo_suggests_work(
    shown: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, result = shown
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FINALIST_DB", raising=False)
    write(tmp_path / "candidates.csv", (folder / "candidates.csv").read_text())
    lines = re.findall(r"^  finalist ([^#\n]*)", result.stdout, flags=re.MULTILINE)
    lines = [line for line in lines if not line.startswith(("new oats", "serve"))]
    expected = {"new": 0, "ask": 0, "tell": codes.CONTINUE, "status": codes.CONTINUE}
    assert [line.split()[0] for line in lines] == list(expected)
    for line in lines:
        words = line.split()
        done = run(*words)
        assert done.exit_code == expected[words[0]], done.output
        if words[0] == "ask":
            with (tmp_path / "batch.csv").open(newline="") as file:
                header, *rows = csv.reader(file)
            rng = np.random.default_rng(0)
            for row in rows:
                row[header.index("result")] = str(rng.normal())
            with (tmp_path / "batch.csv").open("w", newline="") as file:
                csv.writer(file).writerows([header, *rows])
    assert (tmp_path / "evidence.png").exists()


def test_the_python_lines_of_the_demo_run(
    shown: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, result = shown
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "candidates.csv", (folder / "candidates.csv").read_text())
    text = result.stdout
    lines = text[text.index("In Python:\n") : text.index("The study of this")].splitlines()[2:]
    code = "\n".join(line[2:] for line in lines if line.startswith("  ") or not line)
    table, rng = data.load("oats"), np.random.default_rng(0)
    # What is linear in the features, so that nothing speaks against the model.
    X = fl.Arms.from_table("candidates.csv").features
    means = X @ np.linalg.lstsq(X, [rewards.mean() for rewards in table.rewards], rcond=None)[0]

    def measure(arm: str) -> float:
        return float(5 * means[table.arms.index(arm)] + rng.normal())

    exec(compile(code, "demo", "exec"), {"measure": measure})
    with Study.open("finalist.db", "mine") as study:
        assert study.status(forecast=False).verdict == "winner"


def test_a_second_demo_replaces_its_own_file_and_no_other(
    shown: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_measure", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    file = tmp_path / "demo.db"
    file.write_bytes((shown[0] / "demo.db").read_bytes())
    again = run("demo", "--out", tmp_path)
    assert "earlier demo is replaced" in again.stdout
    with Study.open(file, demo.NAME) as study:
        assert len(study.to_frame()) == 0
        Study.create(file, "mine", study.arms, sigma=1.0).close()
    refused = run("demo", "--out", tmp_path)
    assert refused.exit_code == codes.WRONG
    assert "mine" in refused.stderr
    assert run("list", "--db", file).stdout.count("gauntlet") == 2
    file.write_text("a letter")
    assert run("demo", "--out", tmp_path).exit_code == codes.WRONG
    assert file.read_text() == "a letter"


def test_a_terminal_sees_the_table_while_the_study_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    arms = fl.Arms.unstructured(["tin", "zinc"])
    study = Study.create(tmp_path / "lab.db", "metals", arms, sigma=1.0, seed=1)
    with study, following(2) as follow:
        while batch := study.ask(8):
            study.tell({pull.pull_id: 5.0 * (pull.arm == "tin") for pull in batch})
            follow(study.status(forecast=False))
        follow(study.status(forecast=False))  # the pilot alone may decide
    text = capsys.readouterr().out
    assert "Evidence" in text
    assert "2 of 2  tin" in text
    assert "1 of 2  tin" in text


def test_demo_refuses_a_folder_that_is_a_file(tmp_path: Path) -> None:
    path = write(tmp_path / "file", "")
    check_refused(run("demo", "--out", path), str(path))
    check_refused(run("demo", "--paper", "--out", path), str(path))
    assert path.read_text() == ""


# ---- the example of the paper ---------------------------------------------------------------


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The folder and the output of one demo of the paper."""
    folder = tmp_path_factory.mktemp("new") / "demo"
    return folder, run("demo", "--paper", "--out", folder)


def test_the_paper_is_explained_and_drawn(paper: tuple[Path, Result]) -> None:
    folder, result = paper
    assert result.exit_code == 0, result.output
    for word in (
        "x6",
        "G-optimal",
        "XY-optimal",
        "Oracle",
        "proven best",
        "Lower bound",
        "whatever",
    ):
        assert word in result.stdout
    for stem in ("designs", "plane", "shares"):
        for suffix in ("png", "svg"):
            path = folder / f"{stem}.{suffix}"
            assert path.read_bytes().startswith(MAGIC[suffix])
            assert str(path) in result.stdout


def test_the_strategies_of_the_paper_race(paper: tuple[Path, Result]) -> None:
    _, result = paper
    rows = [line.split() for line in result.stdout.splitlines() if " sharp " in line]
    budgets = {" ".join(row[: row.index("sharp")]): row[row.index("sharp") + 5] for row in rows}
    assert len(budgets) == 6
    pulls = {name: int(text.replace(",", "")) for name, text in budgets.items()}
    assert pulls["XY-Adaptive (0.4)"] < pulls["XY"]


def test_the_command_the_demo_of_the_paper_suggests_works(paper: tuple[Path, Result]) -> None:
    text = paper[1].stdout
    suggestion = text.strip().splitlines()[-1].split()
    assert suggestion[0] == "finalist"
    done = run(*suggestion[1:])
    assert done.exit_code == 0
    assert "x2" in done.stdout


def test_the_pulls_of_the_demo_agree_with_the_oracle_budget() -> None:
    arms, theta = instance()
    c = fl.complexity(arms, theta, sigma=1.0)
    needed = c.budget(c.oracle_design)
    assert needed == pytest.approx(c.oracle_budget, rel=1e-6)
    assert c.budget(fl.optimal_design(arms, "xy")) > needed
