"""The contract of strategies with an indifference zone; see `test_strategies` for the others."""

import numpy as np
import pytest

import finalist as fl
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.strategies import STRATEGIES, Batch, guaranteed, named, promise_of
from finalist.testing import ZONE_RULES
from tests.contracts.rules import check, few_runs

ZONED = [name for name, cls in STRATEGIES.items() if promise_of(cls) == "zone"]
EVERY = pytest.mark.parametrize("name", ZONED)


def started(name, arms, **words):
    problem = as_problem(arms, **{"sigma": 0.1, "epsilon": 0.1, **words})
    return named(name, arms).start(problem)


@EVERY
@pytest.mark.parametrize("rule", few_runs(ZONE_RULES))
def test_rule(rule, name):
    check(ZONE_RULES[rule], name)


@EVERY
def test_it_promises_less_than_delta_for_all_means(name):
    strategy = named(name, fl.Arms.unstructured(3))
    assert strategy.name == name
    assert type(strategy) is STRATEGIES[name]
    assert not guaranteed(strategy)


@EVERY
def test_what_is_refused_is_said_with_a_remedy(name):
    run = started(name, fl.Arms.unstructured(3))
    batch = run.next()
    with pytest.raises(fl.errors.FinalistError, match="record all of them"):
        run.record(batch, Statistics.empty(3))
    with pytest.raises(fl.errors.FinalistError, match="4 arms and the problem 3"):
        run.record(Batch(np.zeros(4, dtype=np.int64)), Statistics.empty(4))
    with pytest.raises(fl.errors.FinalistError, match="size is"):
        run.next(0)
    more = batch.counts + np.array([0, 0, 1])
    with pytest.raises(fl.errors.ProblemError, match=r"candidate 2 has .* that `next` asks for"):
        run.record(Batch(more), Statistics.of_batch(more, np.zeros(3), np.zeros(3)))
    assert run.verdict.pulls == 0


@EVERY
def test_a_decided_run_says_so(name):
    run = started(name, fl.Arms([[1.0, 2.0]]))
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.next()
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.record(Batch(np.array([1])), Statistics.of_batch([1], [0.5]))
