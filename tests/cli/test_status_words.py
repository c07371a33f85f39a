"""What `status` and `tell` print beside each other does not contradict itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import finalist as fl
from finalist.cli.study.common import warnings
from finalist.cli.study.status import bar, certain, report
from finalist.strategies.abilities import ModelFindings
from finalist.study import ArmStatus, Status
from finalist.study.bends import bend_checks
from finalist.testing.studies import small_study
from tests.cli.common import run, write

ARMS = fl.Arms([[1.0], [2.0], [3.0]], ["thin", "as it is", "thick"])


def arm(name: str, *, evidence: float = 0.0, survives: bool = True, **more: Any) -> ArmStatus:
    mean = {"thin": 5.0, "as it is": 4.2, "thick": 3.5}[name]
    return ArmStatus(name, 4, mean, mean - 1, mean + 1, evidence, None, None, survives, **more)


def status_of(*arms: ArmStatus, **more: Any) -> Status:
    with small_study() as study:
        found = study.status(forecast=False)
    left = tuple(one.name for one in arms if one.survives)
    return replace(found, arms=arms, leader=arms[0].name, survivors=left, effects=(), **more)


def rows(found: Status) -> dict[str, str]:
    """Return the lines of the table by the name that they begin with."""
    from finalist.cli.output import to_text

    lines = to_text(*report(found)).splitlines()
    return {
        one.name: next(line for line in lines if line.strip().startswith(one.name))
        for one in found.arms
    }


@pytest.mark.parametrize(("share", "shown"), [(0.999, " 0.99"), (1.0, " 1.00"), (0.0, " 0.00")])
def test_evidence_is_full_only_against_what_is_out(share: float, shown: str) -> None:
    assert bar(share).endswith(shown)


def test_no_interval_of_a_mean_stands_beside_ruled_out() -> None:
    # 5 +- 1 and 4.2 +- 1 overlap: means say less than the test that ruled it out.
    found = status_of(arm("thin"), arm("thick"), arm("as it is", evidence=1.0, survives=False))
    table = rows(found)
    assert "ruled out" in table["as it is"]
    assert "+-" not in table["as it is"]
    assert "+- 1" in table["thin"]
    assert "+- 1" in table["thick"]


@pytest.mark.parametrize(
    ("verdict", "shown"), [("winner", "0.1 to 1.5"), ("undecided", "-")], ids=str
)
def test_in_the_end_intervals_are_those_of_differences(verdict: Any, shown: str) -> None:
    behind = {"behind": 0.8, "behind_low": 0.1, "behind_high": 1.5}
    out = arm("as it is", evidence=1.0, survives=False, **behind)
    won = {"winner": "thin", "winners": ("thin",)} if verdict == "winner" else {}
    found = status_of(arm("thin"), out, verdict=verdict, recommendation="thin", **won)
    line = rows(found)["as it is"].split("0.8", 1)[1]
    assert shown in line
    assert "+-" not in line
    assert line.count(" to ") == (verdict == "winner")


def test_nothing_is_called_certain_while_the_model_is_checked() -> None:
    one = status_of(arm("thin"), arm("thick", evidence=1.0, survives=False))
    assert (one.verdict, one.certain) == ("continue", True)
    assert list(certain(one)) == []
    two = status_of(arm("thin"), arm("thick"), arm("as it is", evidence=1.0, survives=False))
    (said,) = certain(two)
    assert said.startswith("Certain now: the best candidate is among thin and thick (2 of 3)")


@pytest.mark.parametrize(
    ("bent", "remedy"),
    [
        ((0,), "Go on with a model that bends: "),
        ((1,), "Measure both again, or go on with a model that bends: "),
    ],
)
def test_both_are_two(bent: tuple[int, ...], remedy: str) -> None:
    problem = fl.Problem(ARMS, noise=fl.Gaussian(1.0), check=0.03)
    found = ModelFindings(
        "squares", 0.1, False, "f1^2", chance=0.1, limit=0.03, outcome="hidden", winners=(0,)
    )
    (check,) = bend_checks(replace(found, bent=bent), problem, 40, "decided")
    assert check.remedy.startswith(remedy)
    assert ("at most 3 % is accepted" in check.seen) == (bent == (0,))


def test_a_shell_is_told_what_can_be_typed() -> None:
    found = status_of(arm("thin"), arm("thick"), doubts=("it scatters",), risk=None)
    remedy = "begin a new study with a larger one, or sigma=None. Or shifts (batch_intercept)."
    (said,) = warnings(replace(found, warnings=(remedy,)), None)
    assert said == (
        "Warning: begin a new study with a larger --sigma, or --sigma unknown. "
        "Or shifts (--batch-intercept)."
    )
    refused = run("new", "x", "arms.csv", "--sigma", 0)
    assert "sigma=None" not in refused.stderr


def test_a_strategy_that_guarantees_nothing_rules_nothing_out() -> None:
    found = status_of(arm("thin"), arm("thick", survives=False), risk=None)
    assert "out, not certain" in rows(found)["thick"]


def test_the_same_is_not_said_twice(tmp_path: Path) -> None:
    words: Any = {"strategy": "uniform", "sigma": 1.0, "seed": 1}
    with fl.Study.create(tmp_path / "lab.db", "plain", ARMS, **words) as study:
        while not study.status(forecast=False).pulls:
            study.tell({pull.pull_id: 0.0 for pull in study.ask(6)})
        early = study.status(forecast=False)
        many = {"thin": 9.0, "as it is": 0.0, "thick": -9.0}
        while len(study.status(forecast=False).survivors) == 3:
            study.tell({pull.pull_id: many[pull.arm] for pull in study.ask(6)})
        late = study.status(forecast=False)
    assert early.sentence == (
        "After 6 measurements: no candidate is ruled out: any of the 3 may be the best."
    )
    assert list(certain(early)) == list(certain(late)) == []


@pytest.mark.parametrize(
    ("error", "said"), [(1.0, "above 0.99"), (1e-9, "below 0.001"), (0.04, "0.04")]
)
def test_an_estimated_chance_is_never_0_or_1(error: float, said: str) -> None:
    from finalist.study.sentences import _rounded

    assert _rounded(error) == said


def test_a_list_of_names_has_separate_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINALIST_DB", str(tmp_path / "lab.db"))
    write(tmp_path / "names.csv", "name\nblue\ngreen\n")
    said = run("new", "buttons", "names.csv", "--noise", "bernoulli").stdout
    assert "Model: separate: each candidate on its own." in said
