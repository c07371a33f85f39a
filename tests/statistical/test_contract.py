"""Rules of the contract of strategies that count errors in many runs, for each of ours."""

from dataclasses import replace

import pytest

import finalist as fl
from finalist.strategies import STRATEGIES
from finalist.testing import rules_of
from finalist.testing.rules_of_errors import TRIALS
from tests.contracts.rules import check, many_runs
from tests.contracts.test_budget_strategies import EVERY

CASES = [(rule, name) for name in STRATEGIES for rule in many_runs(rules_of(name))]
#: Runs of the gauntlet, each of which takes tens of milliseconds. They are enough: with half of its
#: sigma it is caught after 14 of them on two arms, and after 14 on five; `make validate` has more.
GAUNTLET_RUNS = 50


@pytest.mark.parametrize(("rule", "name"), CASES)
def test_rule(rule, name, monkeypatch):
    for trial, given in TRIALS.items() if name == "gauntlet" else ():
        monkeypatch.setitem(TRIALS, trial, replace(given, runs=min(given.runs, GAUNTLET_RUNS)))
    check(rules_of(name)[rule], name)


@EVERY
def test_the_error_falls_with_the_budget_and_is_gone_on_an_easy_instance(name):
    arms, theta = fl.Arms.unstructured(5), [0.6, 0.0, 0.0, 0.0, 0.0]
    wrong = [
        fl.simulate(arms, theta, name, sigma=1.0, budget=T, runs=200, seed=1).errors
        for T in (20, 100, 1000)
    ]
    assert wrong[0] > wrong[1] + 30 > wrong[2] + 30
    assert wrong[2] <= 2
    assert wrong[0] < 150  # a guess is wrong 160 times
