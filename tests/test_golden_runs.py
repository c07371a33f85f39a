"""Runs by all rules, 1 as version 0.1.0 had them: sizes, survivors and winners are those of then.

Only runs are kept in which rounding cannot matter (`golden_runs`); `make golden-runs` compares all
of them with another commit, on one machine.
"""

import json

import pytest

from finalist.problem import FEATURES, rules
from finalist.strategies import STRATEGIES
from tests.golden_runs import CLEAR, KEPT, QUESTIONS, Case, cases, whole

RUNS = json.loads(KEPT.read_text())
CASES = {case.name: case for case in cases()}


@pytest.mark.parametrize("strategy", CLEAR)
def test_runs_are_those_of_then(strategy):
    names = [name for name in RUNS if name.split(" | ")[0].split(":")[0] == strategy]
    assert names
    for name in names:
        assert CASES[name].run().plain() == RUNS[name], name


def test_every_strategy_has_a_case_that_it_takes():
    ours = {n for n, cls in STRATEGIES.items() if cls.__module__.startswith("finalist.strategies")}
    taken = {case.strategy for case in CASES.values() if case.seed == 1 and not case.refused()}
    assert taken >= ours


def test_every_option_is_asked():
    needs = [question.problem().needs for question in QUESTIONS.values()]
    assert frozenset().union(*needs) == FEATURES - {"link"}  # which no strategy takes yet


def test_all_rules_have_runs():
    names = {name.split(" | ")[0] for name in RUNS}
    assert {"gauntlet", *(f"gauntlet:rules={n}" for n in rules.RULES if n > 1)} <= names


def test_a_hash_is_of_whole_numbers_and_not_of_words():
    note = {"kind": "test", "words": "any", "radius": 0.1, "rivals": [1, 2.5, -1], "in": {"x": 1.0}}
    assert whole(note) == {"kind": "test", "rivals": [1, -1], "in": {}}


def test_a_case_gives_the_same_hash_again():
    case = Case("gauntlet", (), "best", 1)
    assert case.run() == case.run()
    assert case.run().hash != Case("gauntlet", (), "best", 2).run().hash
