"""The contract that every registered strategy for a fixed budget keeps, present and future.

The rules are those of `finalist.testing`; what is about ours alone is added. Those that count
errors in many runs are in `tests/statistical/test_contract.py`.
"""

import numpy as np
import pytest

import finalist as fl
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import STRATEGIES, Batch, named, promise_of
from finalist.strategies.abilities import Lossy
from finalist.testing import BUDGET_RULES
from tests import instances
from tests.contracts.rules import check, few_runs

BUDGETED = [name for name, cls in STRATEGIES.items() if promise_of(cls) == "budget"]
EVERY = pytest.mark.parametrize("name", BUDGETED)
#: Those with phases, whose pulls do not depend on what is told of the noise.
PHASED = pytest.mark.parametrize("name", [name for name in BUDGETED if name != "top-two"])
THETA = np.array([1.0, 0.5, -1.0])


def start(name, problem):
    return named(name, problem.arms).start(problem, seed=1)


def spend(name, problem, theta, seed=0, size=None, sigma=1.0):
    """Run batch by batch to the end; return the run and its log."""
    means = problem.arms.means(np.asarray(theta, dtype=float))
    rewards = DrawnRewards(means, sigma, "gaussian", np.random.default_rng(seed))
    run = start(name, problem)
    log: list[tuple[Batch, Statistics]] = []
    while not run.verdict.decided:
        batch = run.next(size)
        log.append((batch, rewards.batch(batch.counts)))
        run.record(*log[-1])
    return run, log


def pulled(log):
    return sum(batch.counts for batch, _ in log)


def test_they_are_all_there():
    assert BUDGETED == [
        "od-linbai",
        "gse",
        "peace",
        "g-budget",
        "sequential-halving",
        "top-two",
    ]
    assert promise_of(fl.Gauntlet()) == promise_of(fl.Gauntlet) == "confidence"


@EVERY
@pytest.mark.parametrize("rule", few_runs(BUDGET_RULES))
def test_rule(rule, name):
    check(BUDGET_RULES[rule], name)


@EVERY
def test_it_has_the_name_that_it_is_known_by(name):
    strategy = named(name, fl.Arms.unstructured(3))
    assert strategy.name == name
    assert type(strategy) is STRATEGIES[name]


@EVERY
@pytest.mark.parametrize("size", [None, 1, 7, 96])
def test_all_of_the_budget_is_spent(name, size):
    for T in (97, 160):
        problem = as_problem(fl.Arms(instances.gaussian(12, 4, 0)), sigma=1.0, budget=T)
        run, log = spend(name, problem, np.ones(4), size=size)
        assert run.verdict.pulls == pulled(log).sum() == T
        assert run.verdict.survivors == (run.verdict.winner,)
    assert size is not None or name == "top-two" or len(log) <= 7


@PHASED
def test_batch_sizes_of_the_first_phase_change_no_allocation(name):
    problem = as_problem(fl.Arms(instances.gaussian(10, 3, 1)), sigma=1.0, budget=120)
    whole = start(name, problem).next().counts
    log = spend(name, problem, THETA, size=5)[1]
    parts = [batch.counts for batch, _ in log if batch.note["phase"] == 1]
    np.testing.assert_array_equal(sum(parts), whole)


@PHASED
@pytest.mark.parametrize("settings", [{"sigma": None}, {"delta": 1e-9}, {"epsilon": 0.3}])
def test_the_goal_and_the_noise_have_no_influence(name, settings):
    arms = fl.Arms(instances.gaussian(8, 3, 4))
    plain = spend(name, as_problem(arms, sigma=1.0, budget=70), THETA, seed=5)[0]
    problem = as_problem(arms, **{"sigma": 1.0, "budget": 70, **settings})
    other = spend(name, problem, THETA, seed=5)[0]
    assert plain.verdict == other.verdict


@EVERY
def test_a_budget_is_needed_and_the_error_says_the_smallest(name):
    for X in (instances.gaussian(12, 4, 0), np.eye(6), instances.gaussian(30, 7, 1)[:, :1]):
        arms = fl.Arms(X)
        with pytest.raises(fl.errors.ProblemError, match="give budget=, at least") as missing:
            start(name, as_problem(arms, sigma=1.0))
        least = int(str(missing.value).split("at least ")[1].split()[0])
        run, _ = spend(name, as_problem(arms, sigma=1.0, budget=least), np.ones(X.shape[1]))
        assert run.verdict.pulls == least
        if least > 1:
            with pytest.raises(fl.errors.ProblemError, match=f"needs at least {least} for"):
                start(name, as_problem(arms, sigma=1.0, budget=least - 1))


@EVERY
def test_wrong_rewards_and_sizes_are_refused_and_change_nothing(name):
    run = start(name, as_problem(fl.Arms.unstructured(3), sigma=1.0, budget=30))
    before, batch = run.verdict, run.next()
    for wrong in (Statistics.empty(3), Statistics.empty(4)):
        with pytest.raises(fl.errors.FinalistError, match="record all of them"):
            run.record(batch, wrong)
    with pytest.raises(fl.errors.FinalistError, match="4 arms and the problem 3"):
        run.record(Batch(np.zeros(4, dtype=np.int64)), Statistics.empty(4))
    with pytest.raises(fl.errors.FinalistError, match="no note"):
        run.record(Batch(np.zeros(3, dtype=np.int64)), Statistics.empty(3))
    later = Batch(np.zeros(3, dtype=np.int64), {**batch.note, "phase": 2})
    if name == "top-two":
        later = Batch(later.counts, {"first": 3, "last": 3})
    with pytest.raises(
        fl.errors.FinalistError, match=r"phase 1 is due|after 3 measurements and 0 are made"
    ):
        run.record(later, Statistics.empty(3))
    for size in (0, -1, True):
        with pytest.raises(fl.errors.FinalistError, match="size is"):
            run.next(size)
    assert run.verdict == before
    np.testing.assert_array_equal(run.next().counts, batch.counts)


@EVERY
def test_a_decided_run_takes_nothing_more(name):
    run, log = spend(name, as_problem(fl.Arms.unstructured(3), sigma=1.0, budget=30), THETA)
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.next()
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.record(*log[-1])


@EVERY
def test_what_is_not_carried_out_is_refused(name):
    arms = fl.Arms.unstructured(3)
    for settings in ({"goal": fl.TopM(2)}, {"max_pulls_per_arm": 5}, {"cost": 2.0}):
        with pytest.raises(fl.errors.NotYetSupportedError):
            start(name, as_problem(arms, sigma=1.0, budget=30, **settings))


@EVERY
def test_pulls_that_are_lost_use_up_the_budget(name):
    problem = as_problem(fl.Arms.unstructured(4), sigma=1.0, budget=60)
    run, issued = start(name, problem), 0
    while not run.verdict.decided:
        batch = run.next(7)
        issued += batch.size
        lost = np.minimum(batch.counts, [1, 0, 1, 0])
        counts = batch.counts - lost
        run.record(Batch(counts, batch.note), Statistics.of_batch(counts, 1.0 * counts))
        if isinstance(run, Lossy):
            run.lose(lost)
    assert issued == 60
    assert run.verdict.pulls < 60
