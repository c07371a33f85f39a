"""--budget on the command line: simulations, and studies that end with a recommendation."""

import json
from pathlib import Path

import pytest

from finalist.cli import codes
from tests.cli.common import MAGIC, check_refused, run, write
from tests.cli.test_study_commands import ARMS, SIGMA, content, fill, status


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of arms, where FINALIST_DB names a database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINALIST_DB", str(tmp_path / "lab.db"))
    write(tmp_path / "arms.csv", ARMS)
    return tmp_path


def simulated(*more: object) -> tuple[object, ...]:
    return "simulate", "arms.csv", "--theta", "1,0.5,0", "--sigma", 1, "--runs", 12, *more


def test_a_simulation_says_what_is_certain_and_how_often_it_is_wrong(lab: Path) -> None:
    table = run(*simulated("--strategy", "gse", "--budget", 40))
    assert table.exit_code == 0
    assert "wrong candidate" in table.stdout
    assert "allowed" not in table.stdout
    found = json.loads(run(*simulated("--budget", 90, "--format", "json")).stdout)
    assert found["summary"]["budget"] == 90
    assert found["summary"]["undecided"] == 0
    certain = [one["certain"] for one in found["runs"]]
    assert sum(certain) == found["summary"]["certain"]
    assert 0 < sum(certain) < 12
    gaps = {row["name"]: 1.0 - row["mean_reward"] for row in found["arms"]}
    assert [one["regret"] for one in found["runs"]] == [
        gaps[one["winner"]] for one in found["runs"]
    ]
    assert "regret, mean" in table.stdout
    assert all(one["winner"] is not None and one["pulls"] <= 90 for one in found["runs"])
    rows = run(*simulated("--budget", 90, "--format", "csv")).stdout.splitlines()
    assert "seconds,regret,certain,pulls: tin" in rows[0]
    assert "certain" not in run(*simulated("--format", "csv")).stdout
    for budget in (90, 6):
        assert run(*simulated("--budget", budget, "--chart", "c.png", "-o", "x")).exit_code == 0
        assert Path("c.png").read_bytes().startswith(MAGIC["png"])
    assert run(*simulated("--budget", 6, "--chart", "c.svg", "-o", "x")).exit_code == 0
    drawn = Path("c.svg").read_text()
    for words in ("Worse than the best by at most", "name the best", "12 runs of 6 measurements"):
        assert words in drawn


def test_a_budget_in_cost_is_called_so(lab: Path) -> None:
    header, *rows = ARMS.splitlines()
    write(lab / "arms.csv", "\n".join([f"{header},price", *(f"{row},2" for row in rows)]))
    said = run(*simulated("--budget", 12, "--cost-column", "price", "--chart", "c.svg"))
    assert "a cost of 12 or less" in " ".join(said.stdout.split())
    assert "12 runs of a cost of 12 at most" in Path("c.svg").read_text()


def test_a_plan_with_a_budget_draws_how_good_what_is_named_is(lab: Path) -> None:
    asked = ("plan", "arms.csv", "--sigma", 1, "--gap", 0.5, "--draws", 3, "--budget", 6)
    said = run(*asked, "--chart", "c.svg")
    assert said.exit_code == 0
    assert "Worse by, mean" in said.stdout
    assert "What 6 measurements would name" in Path("c.svg").read_text()
    several = run(*asked, "--top", 2, "--chart", "d.svg")
    assert several.exit_code == 2
    assert "without --top" in " ".join(several.stderr.split())
    assert not Path("d.svg").exists()


def test_wrong_budgets_are_explained(lab: Path) -> None:
    check_refused(run(*simulated("--strategy", "od-linbai")), "give budget=, at least 7")
    check_refused(run(*simulated("--strategy", "peace", "--budget", 5)), "budget is 5", "at least")
    check_refused(run(*simulated("--budget", 0)), "budget is 0")
    check_refused(run("new", "m", "arms.csv", "--sigma", 1, "--strategy", "gse"), "give budget=")


def test_a_budget_that_is_too_small_is_said_at_once(lab: Path) -> None:
    said = run("new", "few", "arms.csv", "--sigma", SIGMA, "--budget", 1)
    assert said.exit_code == 0
    assert "Warning: The budget pays for 1 measurement" in " ".join(said.stdout.split())
    found = run("new", "json", "arms.csv", "--sigma", SIGMA, "--budget", 1, "--format", "json")
    assert "The budget pays for 1 measurement" in json.loads(found.stdout)["warnings"][0]
    assert "Warning" not in run("new", "more", "arms.csv", "--sigma", SIGMA, "--budget", 40).stdout


def test_a_study_ends_with_a_recommendation(lab: Path) -> None:
    words = ("--sigma", 0.5, "--seed", 1, "--strategy", "od-linbai", "--budget", 24)
    assert run("new", "metals", "arms.csv", *words).exit_code == 0
    going = run("status", "metals")
    assert going.exit_code == codes.CONTINUE
    assert "nothing is certain" in " ".join(going.stdout.split())
    for _ in range(20):
        asked = run("ask", "metals", "--size", 7, "-o", "batch.csv")
        if "nothing is left to measure" in asked.output:
            break
        told = run("tell", "metals", fill(Path("batch.csv")))
    assert told.exit_code == codes.DONE
    printed = run("status", "metals")
    for text in (asked.output, told.stdout, printed.stdout):
        assert "tin is recommended after 24 measurements" in text
        assert "Recommendation: tin." in text
        assert "not a guarantee" in " ".join(text.split())
        assert "at most" not in text
    assert "recommended" in printed.stdout.split("State")[1]
    found = status()
    assert (found["winner"], found["recommendation"], found["risk"]) == ("tin", "tin", None)
    assert 0.0 < found["error_estimate"] < 0.01
    assert 0.9 < found["certainty"] < 1.0
    for key in found:
        assert key in run("status", "--help").stdout
    assert content(run("export", "metals", "--format", "json"))


def test_a_list_tells_a_recommendation_from_a_winner(lab: Path) -> None:
    words = ("arms.csv", "--sigma", SIGMA, "--seed", 1, "--budget", 400)
    heuristic = ("--strategy", "lazy-ts", "--set", "threshold=heuristic")
    for name, more in (("sure", ()), ("spent", ("--strategy", "gse")), ("guess", heuristic)):
        assert run("new", name, *words, *more).exit_code == 0
        for _ in range(40):
            asked = run("ask", name, "-o", "batch.csv")
            if "nothing is left to measure" in asked.output:
                break
            run("tell", name, fill(Path("batch.csv")))
    rows = {row["name"]: row for row in content(run("list", "--format", "json"))["studies"]}
    assert [rows[name]["risk"] for name in ("sure", "spent", "guess")] == [0.05, None, None]
    text = run("list").stdout
    assert text.count("winner: tin") == 1
    assert text.count("recommended: tin") == 2
    assert text.count("lazy-ts (no proof)") == 1


def test_a_simulation_marks_a_strategy_without_a_proof(lab: Path) -> None:
    for more in ((), ("--budget", 500)):
        words = simulated("--strategy", "lazy-ts", "--set", "threshold=heuristic", *more)
        assert "lazy-ts (no proof)" in run(*words).stdout
        assert run(*words).stdout.count("no proof") == 1
        assert json.loads(run(*words, "--format", "json").stdout)["name"] == "lazy-ts (no proof)"
        assert run(*words, "--chart", "c.svg", "-o", "x").exit_code == 0
        drawn = Path("c.svg").read_text()
        assert "lazy-ts (no proof)" in drawn
        assert 'aria-roledescription="line mark"' in drawn  # runs that decided, without a proof
