"""The contract of strategies for a fixed budget: all of it, never more, the same every time."""

import json
import subprocess
import sys

import numpy as np
import pytest

import finalist as fl
from finalist.problem import as_problem
from finalist.rewards import DrawnRewards
from finalist.statistics import Statistics
from finalist.strategies import STRATEGIES, Batch, Run, Strategy, named, promise_of
from tests import instances

BUDGETED = [name for name, cls in STRATEGIES.items() if promise_of(cls) == "budget"]
EVERY = pytest.mark.parametrize("name", BUDGETED)
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
    assert BUDGETED == ["od-linbai", "gse", "peace", "g-budget"]
    assert promise_of(fl.Gauntlet()) == promise_of(fl.Gauntlet) == "confidence"


@EVERY
def test_it_is_a_strategy(name):
    problem = as_problem(fl.Arms.unstructured(3), budget=30, sigma=1.0)
    strategy = named(name, problem.arms)
    assert isinstance(strategy, Strategy)
    assert strategy.name == name
    assert isinstance(strategy.start(problem), Run)


@EVERY
@pytest.mark.parametrize("size", [None, 1, 7, 96])
def test_all_of_the_budget_and_never_more(name, size):
    for T in (97, 160):
        problem = as_problem(fl.Arms(instances.gaussian(12, 4, 0)), budget=T, sigma=1.0)
        run, log = spend(name, problem, np.ones(4), size=size)
        assert run.verdict.pulls == pulled(log).sum() == T
        assert size is None or max(batch.size for batch, _ in log) <= size
        assert run.verdict.survivors == (run.verdict.winner,)
    assert size is not None or len(log) <= 7


@EVERY
def test_no_winner_before_and_ever_fewer_survivors(name):
    problem = as_problem(fl.Arms(instances.gaussian(12, 4, 0)), budget=200, sigma=1.0)
    run, log = start(name, problem), spend(name, problem, np.ones(4), size=9)[1]
    before = set(range(12))
    for batch, rewards in log:
        assert run.verdict.winner is None
        assert set(run.verdict.survivors) <= before
        before = set(run.verdict.survivors)
        run.record(batch, rewards)
    assert run.verdict.winner in before


@EVERY
def test_next_changes_nothing_and_is_deterministic(name):
    problem = as_problem(fl.Arms(instances.gaussian(12, 3, 0)), budget=120, sigma=1.0)
    first, second = start(name, problem), start(name, problem)
    means = problem.arms.means(THETA)
    rewards = DrawnRewards(means, 1.0, "gaussian", np.random.default_rng(1))
    for size in (None, 5, 1, None, 7):
        if first.verdict.decided:  # it has one phase
            break
        verdict, again = first.verdict, first.next(size).counts
        first.next(3)
        assert first.verdict == verdict
        np.testing.assert_array_equal(first.next(size).counts, again)
        np.testing.assert_array_equal(second.next(size).counts, again)
        batch = first.next(size)
        values = rewards.batch(batch.counts)
        first.record(batch, values)
        second.record(batch, values)
    assert first.verdict == second.verdict


@EVERY
@pytest.mark.parametrize("size", [None, 40], ids=["own size", "plates of 40"])
def test_replay_equals_live_and_solves_no_design(name, size, monkeypatch):
    problem = as_problem(fl.Arms(instances.gaussian(10, 3, 1)), budget=150, sigma=1.0)
    run, log = spend(name, problem, THETA, size=size)

    def refuse(*_, **__):
        raise AssertionError("replay solved a design")

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("finalist.strategies"):
            for solver in ("optimal_design", "survivor_design", "difference_design"):
                monkeypatch.setattr(module, solver, refuse, raising=False)
    replay = start(name, problem)
    for batch, rewards in log:
        replay.record(batch, rewards)
        replay.verdict  # noqa: B018
    assert replay.verdict == run.verdict
    assert replay.fixed_batches == run.fixed_batches


@EVERY
def test_a_log_kept_as_json_goes_on_where_it_stopped(name):
    problem = as_problem(fl.Arms(instances.gaussian(10, 3, 1)), budget=120, sigma=1.0)
    live, full = start(name, problem), spend(name, problem, THETA, size=4)[1]
    for cut in (3, 12, 25):
        live, again = start(name, problem), start(name, problem)
        for batch, values in full[:cut]:
            live.record(batch, values)
            text = json.dumps([batch.counts.tolist(), dict(batch.note)])
            counts, note = json.loads(text)
            again.record(Batch(np.array(counts), note), values)
        np.testing.assert_array_equal(again.next(6).counts, live.next(6).counts)
        assert dict(again.next().note) == dict(live.next().note)
        assert again.verdict == live.verdict


@EVERY
def test_batch_sizes_of_the_first_phase_change_no_allocation(name):
    problem = as_problem(fl.Arms(instances.gaussian(10, 3, 1)), budget=120, sigma=1.0)
    whole = start(name, problem).next().counts
    log = spend(name, problem, THETA, size=5)[1]
    parts = [batch.counts for batch, _ in log if batch.note["phase"] == 1]
    np.testing.assert_array_equal(sum(parts), whole)


def test_same_pulls_in_another_process():
    code = """
import numpy as np, finalist as fl
from tests.contracts.test_budget_strategies import *
problem = as_problem(fl.Arms(instances.gaussian(9, 3, 5)), sigma=1.0, budget=120)
for name in BUDGETED:
    run, log = spend(name, problem, THETA, seed=2)
    print(run.verdict, [batch.counts.tolist() for batch, _ in log])
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**__import__("os").environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("Verdict") == len(BUDGETED)


@EVERY
def test_one_arm_needs_no_pull(name):
    run = start(name, as_problem(fl.Arms([[1.0, 2.0]]), budget=50, sigma=1.0))
    assert (run.verdict.winner, run.verdict.pulls) == (0, 0)


@EVERY
@pytest.mark.parametrize(
    ("features", "theta"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0]),
        ([[1.0], [0.4], [-0.5]], [1.0]),
        (instances.one_hot_factorial((2, 3)), [0.0, 1.0, 0.0, 0.5, 0.0, -0.5]),
        (instances.gaussian(4, 9, 2), np.ones(9)),
        ([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [1.0, 0.0]], [1.0, -0.2]),
    ],
    ids=["two arms", "one feature", "rank-deficient", "more features than arms", "zero arm"],
)
@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e120])
def test_small_and_odd_problems_end_with_the_best_arm(name, features, theta, scale):
    arms = fl.Arms(np.asarray(features) * scale)
    parameter = np.asarray(theta) / scale
    run, _ = spend(name, as_problem(arms, budget=90, sigma=1.0), parameter, sigma=0.02, seed=3)
    assert run.verdict.winner == int(arms.means(parameter).argmax())


@EVERY
@pytest.mark.parametrize("settings", [{"sigma": None}, {"delta": 1e-9}, {"epsilon": 0.3}])
def test_the_goal_and_the_noise_have_no_influence(name, settings):
    arms = fl.Arms(instances.gaussian(8, 3, 4))
    plain = spend(name, as_problem(arms, budget=70, sigma=1.0), THETA, seed=5)[0]
    other = spend(name, as_problem(arms, budget=70, **{"sigma": 1.0, **settings}), THETA, seed=5)[0]
    assert plain.verdict == other.verdict


@EVERY
def test_minimising_is_maximising_the_opposite(name):
    arms = fl.Arms(instances.gaussian(8, 3, 4))
    low = spend(name, as_problem(arms, budget=70, objective="min", sigma=1.0), THETA, sigma=0.05)[0]
    assert low.verdict.winner == int(arms.means(THETA).argmin())


@EVERY
def test_units_change_nothing(name):
    X, unit = instances.gaussian(8, 3, 4), 2.0**30
    units = np.array([2.0**20, 1.0, 2.0**-30])
    for seed in range(5):
        plain, log = spend(name, as_problem(fl.Arms(X), budget=70, sigma=1.0), THETA, seed=seed)
        scaled, scaled_log = spend(
            name, as_problem(fl.Arms(X), budget=70, sigma=1.0), THETA * unit, seed=seed, sigma=unit
        )
        assert plain.verdict == scaled.verdict
        np.testing.assert_array_equal(pulled(log), pulled(scaled_log))
        arms = fl.Arms(X * units)
        other = spend(name, as_problem(arms, budget=70, sigma=1.0), THETA / units, seed=seed)[0]
        assert plain.verdict.winner == other.verdict.winner


@EVERY
def test_a_budget_is_needed_and_the_error_says_the_smallest(name):
    for X in (instances.gaussian(12, 4, 0), np.eye(6), instances.gaussian(30, 7, 1)[:, :1]):
        arms = fl.Arms(X)
        with pytest.raises(fl.errors.ProblemError, match="give budget=, at least") as missing:
            start(name, as_problem(arms, sigma=1.0))
        least = int(str(missing.value).split("at least ")[1].split()[0])
        run, _ = spend(name, as_problem(arms, budget=least, sigma=1.0), np.ones(X.shape[1]))
        assert run.verdict.pulls == least
        if least > 1:
            with pytest.raises(fl.errors.ProblemError, match=f"needs at least {least} for"):
                start(name, as_problem(arms, budget=least - 1, sigma=1.0))


@EVERY
def test_wrong_rewards_and_sizes_are_refused_and_change_nothing(name):
    run = start(name, as_problem(fl.Arms.unstructured(3), budget=30, sigma=1.0))
    before, batch = run.verdict, run.next()
    for wrong in (Statistics.empty(3), Statistics.empty(4)):
        with pytest.raises(fl.errors.FinalistError, match="record all of them"):
            run.record(batch, wrong)
    with pytest.raises(fl.errors.FinalistError, match="4 arms and the problem 3"):
        run.record(Batch(np.zeros(4, dtype=np.int64)), Statistics.empty(4))
    with pytest.raises(fl.errors.FinalistError, match="no note"):
        run.record(Batch(np.zeros(3, dtype=np.int64)), Statistics.empty(3))
    later = Batch(np.zeros(3, dtype=np.int64), {**batch.note, "phase": 2})
    with pytest.raises(fl.errors.FinalistError, match="phase 1 is due"):
        run.record(later, Statistics.empty(3))
    for size in (0, -1, True):
        with pytest.raises(fl.errors.FinalistError, match="size is"):
            run.next(size)
    assert run.verdict == before
    np.testing.assert_array_equal(run.next().counts, batch.counts)


@EVERY
def test_a_decided_run_takes_nothing_more(name):
    run, log = spend(name, as_problem(fl.Arms.unstructured(3), budget=30, sigma=1.0), THETA)
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.next()
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.record(*log[-1])


@EVERY
def test_what_is_not_carried_out_is_refused(name):
    arms = fl.Arms.unstructured(3)
    for settings in ({"goal": fl.TopM(2)}, {"most_pulls": 5}, {"cost": 2.0}):
        with pytest.raises(fl.errors.NotYetSupportedError):
            start(name, as_problem(arms, budget=30, sigma=1.0, **settings))


@EVERY
def test_pulls_that_are_lost_are_not_repeated(name):
    problem = as_problem(fl.Arms.unstructured(4), budget=60, sigma=1.0)
    run, issued = start(name, problem), 0
    rng = np.random.default_rng(0)
    while not run.verdict.decided:
        batch = run.next(7)
        issued += batch.size
        lost = np.minimum(batch.counts, rng.integers(0, 2, 4))
        counts = batch.counts - lost
        rewards = DrawnRewards(np.array([1.0, 0, 0, 0]), 0.1, "gaussian", rng).batch(counts)
        run.record(Batch(counts, batch.note), rewards)
        run.lose(lost)
    assert issued == 60
    assert run.verdict.pulls < 60
    assert run.verdict.winner == 0


@EVERY
def test_the_error_falls_with_the_budget_and_is_gone_on_an_easy_instance(name):
    arms, theta = fl.Arms.unstructured(5), [0.6, 0.0, 0.0, 0.0, 0.0]
    wrong = [
        fl.simulate(arms, theta, name, budget=T, runs=200, seed=1, sigma=1.0).errors
        for T in (20, 100, 1000)
    ]
    assert wrong[0] > wrong[1] + 30 > wrong[2] + 30
    assert wrong[2] <= 2
    assert wrong[0] < 150  # a guess is wrong 160 times
