"""What a plan and a strategy for a fixed budget say when the budget is missing or too small."""

from pathlib import Path

import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.strategies import STRATEGIES, promise_of
from tests.cli.common import check_refused, run, write

BUDGET = [name for name, strategy in STRATEGIES.items() if promise_of(strategy) == "budget"]


@pytest.mark.parametrize("name", BUDGET)
def test_a_plan_is_for_strategies_that_stop_by_themselves(name: str) -> None:
    arms = fl.Arms.unstructured(3)
    words = f"'{name}' spends a fixed budget; a plan is for strategies that stop by themselves"
    with pytest.raises(ProblemError, match=words):
        fl.plan(arms, sigma=1.0, gap=0.5, draws=1, strategy=name)
    with pytest.raises(ProblemError, match=words):
        fl.plan(arms, sigma=1.0, gap=0.5, draws=1, against=STRATEGIES[name]())


def test_the_command_refuses_them_too(tmp_path: Path) -> None:
    path = write(tmp_path / "arms.csv", "name,a,b\nx,1,0\ny,0,1\n")
    result = run("plan", path, "--sigma", 1, "--gap", 0.5, "--strategy", "od-linbai")
    check_refused(result, "'od-linbai'", "a plan is for strategies that stop by themselves")
    assert "budget=" not in result.stderr


def test_a_missing_budget_is_named_for_the_command_line_too(tmp_path: Path) -> None:
    path = write(tmp_path / "arms.csv", "name,a,b\nx,1,0\ny,0,1\n")
    words = ("simulate", path, "--theta", "1,0", "--sigma", 1, "--strategy", "g-budget")
    check_refused(run(*words), "give budget=, at least 2", "(--budget on the command line)")


def test_nobody_is_sent_to_the_strategy_that_just_refused() -> None:
    problem = fl.Problem(fl.Arms.unstructured(5), budget=4, noise=fl.Gaussian(1.0))
    with pytest.raises(ProblemError, match=r"needs at least 5 .* Give more\.$"):
        STRATEGIES["g-budget"]().start(problem)
    with pytest.raises(ProblemError, match="or use 'g-budget', which needs 5"):
        STRATEGIES["gse"]().start(problem)
