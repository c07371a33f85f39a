"""The contract that every registered strategy keeps, present and future.

The rules are those of `finalist.testing`, which are there for other people's strategies too. Here
they meet each of ours, and what is about ours alone is added. Those that count errors in many runs
are in `tests/statistical/test_contract.py`: they run without checks of all shapes.
"""

import numpy as np
import pytest

import finalist as fl
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.strategies import STRATEGIES, Batch, guaranteed, named, promise_of
from finalist.testing import RULES
from tests.contracts.rules import check, few_runs

#: Those for a fixed budget keep another contract: test_budget_strategies.
CONFIDENT = [name for name, cls in STRATEGIES.items() if promise_of(cls) == "confidence"]
EVERY = pytest.mark.parametrize("name", CONFIDENT)
THETA = np.array([1.0, 0.5, -1.0])


@EVERY
@pytest.mark.parametrize("rule", few_runs(RULES))
def test_rule(rule, name):
    check(RULES[rule], name)


@EVERY
def test_it_has_the_name_that_it_is_known_by(name):
    strategy = named(name, fl.Arms.unstructured(3), THETA)
    assert strategy.name == name
    assert type(strategy) is STRATEGIES[name]
    assert guaranteed(strategy)  # so the rules about errors apply


@EVERY
def test_what_is_refused_is_said_with_a_remedy(name):
    arms = fl.Arms.unstructured(3)
    run = named(name, arms, THETA).start(as_problem(arms, sigma=0.1))
    batch = run.next()
    for wrong in (Statistics.empty(3), Statistics.empty(4)):
        with pytest.raises(fl.errors.FinalistError, match="record all of them"):
            run.record(batch, wrong)
    with pytest.raises(fl.errors.FinalistError, match="4 arms and the problem 3"):
        run.record(Batch(np.zeros(4, dtype=np.int64)), Statistics.empty(4))
    for size in (0, -1, True):
        with pytest.raises(fl.errors.FinalistError, match="size is"):
            run.next(size)


@EVERY
def test_a_decided_run_says_so(name):
    arms = fl.Arms([[1.0, 2.0]])
    run = named(name, arms, np.ones(2)).start(as_problem(arms, sigma=1.0))
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.next()
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.record(Batch(np.array([1])), Statistics.of_batch([1], [0.5]))


@EVERY
def test_what_is_not_carried_out_is_refused(name):
    arms = fl.Arms.unstructured(3)
    strategy, problem = named(name, arms, THETA), as_problem(arms, sigma=1.0, goal=fl.TopM(2))
    if name == "gauntlet":  # it carries out everything
        assert strategy.start(problem).next().size > 0
        return
    with pytest.raises(fl.errors.NotYetSupportedError):
        strategy.start(problem)
