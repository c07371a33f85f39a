"""The contract that every registered strategy keeps, present and future."""

import json
import subprocess
import sys

import numpy as np
import pytest

import finalist as fl
from finalist.problem import as_problem
from finalist.rewards import DrawnRewards
from finalist.simulation.binomial import exact_lower_bound
from finalist.statistics import Statistics
from finalist.strategies import STRATEGIES, Batch, Playable, Run, Strategy, promise_of
from finalist.strategies import named as registered
from tests import instances

#: Those for a fixed budget keep another contract: test_budget_strategies.
CONFIDENT = [name for name, cls in STRATEGIES.items() if promise_of(cls) == "confidence"]
EVERY = pytest.mark.parametrize("name", CONFIDENT)
THETA = np.array([1.0, 0.5, -1.0])


def named(name, arms, theta):
    """Return a strategy, or skip the test where it says that it is not for such arms."""
    suits = getattr(STRATEGIES[name], "suits", None)
    if suits is not None and not suits(arms):
        pytest.skip("it is not for arms that share features")
    return registered(name, arms, theta)


def rewards_of(problem, theta, seed, kind="gaussian"):
    means = problem.arms.means(np.asarray(theta, dtype=float))
    return DrawnRewards(means, problem.sigma, kind, np.random.default_rng(seed))


def step(strategy, problem, theta, seed, cap=10**8, size=None, kind="gaussian"):
    """Run batch by batch to the end, or to `cap` pulls; return the run and its log."""
    rewards, run = rewards_of(problem, theta, seed, kind), strategy.start(problem, seed=1)
    log: list[tuple[Batch, Statistics]] = []
    while not run.verdict.decided and run.verdict.pulls < cap:
        batch = run.next(size)
        log.append((batch, rewards.batch(batch.counts)))
        run.record(*log[-1])
    return run, log


def play(strategy, problem, theta, seed, cap=10**8):
    """Run to the end as a simulation does."""
    run = strategy.start(problem, seed=1)
    if isinstance(run, Playable):
        run.play(rewards_of(problem, theta, seed), cap)
        return run
    return step(strategy, problem, theta, seed, cap)[0]


@EVERY
def test_it_is_a_strategy(name):
    arms = fl.Arms.unstructured(3)
    strategy = named(name, arms, THETA)
    assert isinstance(strategy, Strategy)
    assert strategy.name == name
    assert isinstance(strategy.start(as_problem(arms)), Run)


@EVERY
def test_next_changes_nothing_and_is_deterministic(name):
    arms = fl.Arms(instances.gaussian(12, 3, 0))
    problem, strategy = as_problem(arms), named(name, arms, 1e-3 * THETA)
    first, second = strategy.start(problem, seed=4), strategy.start(problem, seed=4)
    rewards = rewards_of(problem, 1e-3 * THETA, seed=1)
    for size in (None, 5, 1, None, 7):
        if first.verdict.decided:  # the oracle needs one batch only
            break
        again = first.next(size).counts
        first.next(3)
        np.testing.assert_array_equal(first.next(size).counts, again)
        np.testing.assert_array_equal(second.next(size).counts, again)
        assert again.min() >= 0
        assert again.shape == (12,)
        assert again.sum() >= 1
        assert size is None or again.sum() <= size
        batch = first.next(size)
        values = rewards.batch(batch.counts)
        first.record(batch, values)
        second.record(batch, values)
    assert first.verdict == second.verdict


@EVERY
@pytest.mark.parametrize("size", [None, 40], ids=["own size", "plates of 40"])
def test_replay_equals_live_and_solves_no_design(name, size, monkeypatch):
    arms = fl.Arms(instances.gaussian(10, 3, 1))
    problem, strategy = as_problem(arms, sigma=0.3), named(name, arms, THETA)
    run, log = step(strategy, problem, THETA, seed=0, size=size)
    assert run.verdict.decided

    def refuse(*_, **__):
        raise AssertionError("replay solved a design")

    solvers = ("optimal_design", "solve_task", "static_sequence", "oracle_sequence", "Greedy")
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("finalist.strategies"):
            for solver in solvers:
                monkeypatch.setattr(module, solver, refuse, raising=False)
    replay = strategy.start(problem, seed=1)
    for batch, rewards in log:
        replay.record(batch, rewards)
    assert replay.verdict == run.verdict


@EVERY
def test_a_log_kept_as_json_goes_on_where_it_stopped(name):
    arms = fl.Arms(instances.gaussian(10, 3, 1))
    problem, strategy = as_problem(arms, sigma=2.0), named(name, arms, THETA)
    rewards, live = rewards_of(problem, THETA, 2), strategy.start(problem, seed=3)
    log = []
    for _ in range(3):
        batch = live.next(4)
        values = rewards.batch(batch.counts)
        log.append((json.dumps([batch.counts.tolist(), dict(batch.note)]), values))
        live.record(batch, values)
    again = strategy.start(problem, seed=3)
    for text, values in log:
        counts, note = json.loads(text)
        again.record(Batch(np.array(counts), note), values)
    np.testing.assert_array_equal(again.next(6).counts, live.next(6).counts)
    assert again.verdict == live.verdict


@EVERY
@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
def test_playing_equals_stepping(name, kind):
    arms = fl.Arms.unstructured(4)
    theta = np.array([0.9, 0.3, 0.2, 0.1])
    problem, strategy = as_problem(arms, sigma=0.5), named(name, arms, theta)
    played = strategy.start(problem, seed=1)
    if not isinstance(played, Playable):
        pytest.skip("it has no compiled loop")
    counts = played.play(rewards_of(problem, theta, 6, kind), 10**6)
    stepped, log = step(strategy, problem, theta, seed=6, kind=kind)
    assert played.verdict == stepped.verdict
    assert played.verdict.decided
    np.testing.assert_array_equal(counts, sum(batch.counts for batch, _ in log))
    assert len(log) == counts.sum() > 10


@EVERY
def test_the_cap_of_a_simulation_is_kept(name):
    arms = fl.Arms.unstructured(4)
    problem, theta = as_problem(arms), np.array([1e-6, 0.0, 0.0, 0.0])
    run = named(name, arms, theta).start(problem)
    if not isinstance(run, Playable):
        pytest.skip("it has no compiled loop")
    assert run.play(rewards_of(problem, theta, 0), 70_001).sum() == 70_001
    assert run.verdict.pulls == 70_001
    assert not run.verdict.decided


@EVERY
def test_same_pulls_in_another_process(name):
    named(name, fl.Arms(instances.gaussian(9, 3, 5)), THETA)  # skip here, not in there
    code = f"""
import numpy as np, finalist as fl
from tests.contracts.test_strategies import *
arms = fl.Arms(instances.gaussian(9, 3, 5))
problem = as_problem(arms, sigma=0.5)
run, log = step(named({name!r}, arms, THETA), problem, THETA, seed=2, cap=500)
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
    assert "Verdict" in outputs.pop()


@EVERY
def test_one_arm_needs_no_pull(name):
    arms = fl.Arms([[1.0, 2.0]])
    run = named(name, arms, np.ones(2)).start(as_problem(arms))
    assert run.verdict.winner == 0
    assert run.verdict.pulls == 0


@EVERY
@pytest.mark.parametrize(
    ("features", "theta"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0]),
        ([[1.0], [0.4], [-0.5]], [1.0]),
        (instances.one_hot_factorial((2, 3)), [0.0, 1.0, 0.0, 0.5, 0.0, -0.5]),
        (instances.gaussian(4, 9, 2), np.ones(9)),
    ],
    ids=["two arms", "one feature", "rank-deficient", "more features than arms"],
)
@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e120])
def test_small_and_odd_problems_end_with_the_best_arm(name, features, theta, scale):
    arms = fl.Arms(np.asarray(features) * scale)
    parameter = np.asarray(theta) / scale
    strategy = named(name, arms, parameter)
    run = play(strategy, as_problem(arms, sigma=0.1, delta=1e-6), parameter, seed=3)
    assert run.verdict.winner == int(arms.means(parameter).argmax())


@EVERY
def test_minimising_is_maximising_the_opposite(name):
    arms = fl.Arms(instances.gaussian(8, 3, 4))
    problem = as_problem(arms, sigma=0.1, delta=1e-6, objective="min")
    run = play(named(name, arms, THETA), problem, THETA, 0)
    assert run.verdict.winner == int(arms.means(THETA).argmin())


@EVERY
def test_units_of_the_rewards_change_nothing(name):
    arms = fl.Arms(instances.gaussian(8, 3, 4))
    unit = 2.0**30
    plain = play(named(name, arms, THETA), as_problem(arms, sigma=0.5), THETA, seed=5)
    strategy = named(name, arms, THETA * unit)
    scaled = play(strategy, as_problem(arms, sigma=0.5 * unit), THETA * unit, seed=5)
    assert plain.verdict == scaled.verdict


@EVERY
def test_units_of_the_features_change_nothing(name):
    X = instances.gaussian(8, 3, 4)
    units = np.array([2.0**20, 1.0, 2.0**-30])
    arms, scaled = fl.Arms(X), fl.Arms(X * units)
    plain = play(named(name, arms, THETA), as_problem(arms), THETA, seed=5)
    strategy = named(name, scaled, THETA / units)
    other = play(strategy, as_problem(scaled), THETA / units, seed=5)
    assert plain.verdict.winner == other.verdict.winner
    # Not the same numbers to the last digit: the coordinates are computed from the features.
    assert other.verdict.pulls == pytest.approx(plain.verdict.pulls, rel=0.02)


@EVERY
def test_ties_never_end_in_a_wrong_answer(name):
    # Arms 0 and 1 are tied and far above the rest: until the cap nobody else may win.
    arms, theta = fl.Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    strategy = named(name, arms, theta)
    for seed in range(20):
        run = play(strategy, as_problem(arms, delta=1e-3), theta, seed, cap=20_000)
        assert run.verdict.winner in (None, 0, 1)
        assert {0, 1} & set(run.verdict.survivors)


@EVERY
def test_a_good_enough_arm_ends_a_tie(name):
    arms, theta = fl.Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    run = play(named(name, arms, theta), as_problem(arms, epsilon=0.2, delta=1e-3), theta, seed=1)
    assert run.verdict.winner in (0, 1)


@EVERY
def test_wrong_rewards_and_sizes_are_refused_and_change_nothing(name):
    arms = fl.Arms.unstructured(3)
    run = named(name, arms, THETA).start(as_problem(arms))
    before, batch = run.verdict, run.next()
    for wrong in (Statistics.empty(3), Statistics.empty(4)):
        with pytest.raises(fl.errors.FinalistError, match="record all of them"):
            run.record(batch, wrong)
    with pytest.raises(fl.errors.FinalistError, match="4 arms and the problem 3"):
        run.record(Batch(np.zeros(4, dtype=np.int64)), Statistics.empty(4))
    for size in (0, -1, True):
        with pytest.raises(fl.errors.FinalistError, match="size is"):
            run.next(size)
    assert run.verdict == before
    np.testing.assert_array_equal(run.next().counts, batch.counts)


@EVERY
def test_a_decided_run_takes_nothing_more(name):
    arms = fl.Arms.unstructured(3)
    problem = as_problem(arms, sigma=0.1)
    run, log = step(named(name, arms, THETA), problem, THETA, seed=0)
    assert run.verdict.decided
    assert run.verdict.winner in run.verdict.survivors
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.next()
    with pytest.raises(fl.errors.FinalistError, match="decided"):
        run.record(*log[-1])


@EVERY
def test_what_is_not_carried_out_is_refused(name):
    arms = fl.Arms.unstructured(3)
    strategy = named(name, arms, THETA)
    problem = as_problem(arms, goal=fl.TopM(2))
    if name == "gauntlet":  # it carries out everything
        assert strategy.start(problem).next().size > 0
        return
    with pytest.raises(fl.errors.NotYetSupportedError):
        strategy.start(problem)


@EVERY
def test_error_rate(name):
    # A nearly tied instance: the exact 99.9 % lower bound must not exceed delta.
    delta, runs = 0.2, 400
    arms, theta = fl.Arms.unstructured(4), np.array([0.5, 0.0, 0.0, 0.0])
    problem, strategy = as_problem(arms, delta=delta), named(name, arms, theta)
    wrong = sum(play(strategy, problem, theta, seed).verdict.winner != 0 for seed in range(runs))
    assert exact_lower_bound(wrong, runs, 0.999) <= delta


@EVERY
def test_where_good_enough_suffices_the_best_arm_is_not_ruled_out(name):
    arms, theta = fl.Arms.unstructured(4), np.array([1.0, 0.9, 0.0, 0.0])
    problem, strategy = as_problem(arms, epsilon=0.5, delta=0.05), named(name, arms, theta)
    missing = 0
    for seed in range(60):
        verdict = play(strategy, problem, theta, seed).verdict
        assert verdict.winner in verdict.survivors
        missing += 0 not in verdict.survivors
    assert exact_lower_bound(missing, 60, 0.999) <= 0.05


@EVERY
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("lost", [[2], [0, 1, 2]], ids=["one arm", "everything"])
def test_an_arm_whose_rewards_were_lost_is_not_ruled_out(name, lost, epsilon):
    # A study records what is left of a batch when pulls are missing.
    if name == "xy-oracle":
        pytest.skip("it knows the answer")
    arms, theta = fl.Arms.unstructured(3), np.array([0.0, 1.0, 5.0])
    problem = as_problem(arms, epsilon=epsilon)
    run, rewards = named(name, arms, theta).start(problem, seed=1), rewards_of(problem, theta, 7)
    for size in (None, None, 60, 60, 60, None):
        batch = run.next(size)
        left = batch.counts.copy()
        left[lost] = 0
        run.record(Batch(left, batch.note), rewards.batch(left))
        assert run.verdict.winner is None
        assert 2 in run.verdict.survivors
