"""The table of what each strategy takes is what `start` refuses, word for word."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import NotYetSupportedError
from finalist.problem import as_problem
from finalist.strategies import STRATEGIES, named, promise_of

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"
ARMS, THETA = fl.Arms.unstructured(4), np.array([0.4, 0.3, 0.2, 0.1])
OTHERS = fl.Arms([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [1, 0, 0, 2]], names=list("stuv"))
#: The columns: the word of a problem, and settings that need just that.
COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "epsilon": ("epsilon-best", {"epsilon": 0.1}),
    "sigma of each arm": ("sigma per arm", {"sigma": [1.0, 2.0, 3.0, 4.0]}),
    "unknown sigma": ("unknown sigma", {"sigma": None}),
    "other candidates": ("other candidates", {"candidates": OTHERS}),
    "cost": ("cost", {"cost": [1.0, 2.0, 3.0, 4.0]}),
    "top-m": ("top-m", {"top": 2}),
    "batch intercept": ("batch intercept", {"batch_intercept": True}),
    "misspecification": ("misspecification", {"misspecification": 0.1}),
    "limited pulls": ("limited pulls", {"max_pulls_per_arm": 50}),
}
#: What all of them take, by the text; those with an indifference zone the first only.
ALWAYS = ({"objective": "min"}, {"noise": "sub-gaussian"}, {"noise": "bernoulli"})
GREEDY = ("g", "xy", "v", "xy-oracle", "xy-adaptive")


def read() -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of the columns, and the cells of every row."""
    section = PAGE.read_text().split("## What each takes")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return cells[0][1:], {row[0].strip("`"): row[1:] for row in cells[2:]}


HEADER, ROWS = read()


def with_sigma(words: dict[str, Any]) -> dict[str, Any]:
    return words if words.get("noise") == "bernoulli" else {"sigma": 1.0, **words}


def takes(strategy: Any, words: dict[str, Any]) -> bool:
    if promise_of(strategy) == "zone" and not words.keys() & {"epsilon", "top"}:
        words = {"epsilon": 0.1, **words}
    try:
        run = strategy.start(as_problem(ARMS, budget=100, **with_sigma(words)))
    except NotYetSupportedError:
        return False
    assert run.verdict.decided or run.next().size > 0
    return True


def test_the_table_has_every_strategy_and_every_column():
    assert list(COLUMNS) == HEADER
    assert sorted(ROWS) == sorted(STRATEGIES)
    assert all(len(row) == len(HEADER) and set(row) <= {"yes", ""} for row in ROWS.values())
    for word, words in COLUMNS.values():
        assert as_problem(ARMS, **with_sigma(words)).needs == {word}


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_table_is_what_start_refuses(name):
    strategy = named(name, ARMS, THETA)
    found = ["yes" if takes(strategy, COLUMNS[column][1]) else "" for column in HEADER]
    assert found == ROWS[name]
    zoned = promise_of(strategy) == "zone"
    assert [takes(strategy, words) for words in ALWAYS] == [True, not zoned, not zoned]


@pytest.mark.parametrize("name", GREEDY)
def test_greedy_allocations_take_epsilon_only(name):
    settings = {"theta": THETA} if name == "xy-oracle" else {}
    strategy: Any = STRATEGIES[name]
    greedy = strategy(allocation="greedy", **settings)
    found = {column for column, (_, words) in COLUMNS.items() if takes(greedy, words)}
    assert found == {"epsilon"}


def test_only_these_have_a_greedy_allocation():
    from dataclasses import fields

    having = {
        name
        for name, strategy in STRATEGIES.items()
        if "allocation" in {field.name for field in fields(strategy)}  # type: ignore[arg-type]
    }
    assert having == set(GREEDY)
