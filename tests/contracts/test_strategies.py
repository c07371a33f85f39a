"""The contract that every registered strategy keeps, present and future."""

import numpy as np
import pytest
from scipy.stats import beta

import finalist as fl
from finalist.problem import as_problem
from finalist.statistics import Statistics
from finalist.strategies import STRATEGIES, Batch, Run, Strategy
from tests import instances

EVERY = pytest.mark.parametrize(
    "strategy", [make() for make in STRATEGIES.values()], ids=STRATEGIES
)


def pull(batch, means, sigma, rng) -> Statistics:
    """Draw the rewards of a batch, as sums: all that least squares needs."""
    rewards = Statistics.empty(len(means))
    n = batch.counts
    rewards.add_batch(n, n * means + sigma * np.sqrt(n) * rng.standard_normal(len(means)))
    return rewards


def play(strategy, problem, theta, seed, cap=10**8) -> tuple[Run, list[tuple[Batch, Statistics]]]:
    """Simulate a run to its end, or to `cap` pulls."""
    means = problem.arms.means(np.asarray(theta, dtype=float))
    rng, run, log = np.random.default_rng(seed), strategy.start(problem, seed=1), []
    while not run.verdict.decided and run.verdict.pulls < cap:
        batch = run.next()
        rewards = pull(batch, means, problem.sigma, rng)
        run.record(batch, rewards)
        log.append((batch, rewards))
    return run, log


@EVERY
def test_it_is_a_strategy(strategy):
    assert isinstance(strategy, Strategy)
    assert isinstance(strategy.start(as_problem(fl.Arms.unstructured(3))), Run)


@EVERY
def test_next_changes_nothing_and_is_deterministic(strategy):
    problem = as_problem(fl.Arms(instances.gaussian(12, 3, 0)))
    first, second = strategy.start(problem, seed=4), strategy.start(problem, seed=4)
    for _ in range(3):
        again = first.next().counts
        np.testing.assert_array_equal(first.next().counts, again)
        np.testing.assert_array_equal(second.next().counts, again)
        assert again.min() >= 0
        assert again.shape == (12,)
        batch, rng = first.next(), np.random.default_rng(1)
        rewards = pull(batch, np.linspace(0, 1e-3, 12), 1.0, rng)
        first.record(batch, rewards)
        second.record(batch, rewards)


@EVERY
def test_replay_equals_live(strategy, monkeypatch):
    theta = np.array([1.0, -0.3, 0.2])
    problem = as_problem(fl.Arms(instances.gaussian(10, 3, 1)), sigma=0.5)
    run, log = play(strategy, problem, theta, seed=0)
    replay = strategy.start(problem, seed=1)

    def refuse(*_, **__):
        raise AssertionError("replay solved a design")

    for module in list(__import__("sys").modules.values()):
        if getattr(module, "__name__", "").startswith("finalist.strategies"):
            monkeypatch.setattr(module, "optimal_design", refuse, raising=False)
    for batch, rewards in log:
        replay.record(batch, rewards)
    assert replay.verdict == run.verdict
    assert run.verdict.decided


@EVERY
def test_one_arm_needs_no_pull(strategy):
    run = strategy.start(as_problem(fl.Arms([[1.0, 2.0]])))
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
def test_small_and_odd_problems_end_with_the_best_arm(strategy, features, theta, scale):
    arms = fl.Arms(np.asarray(features) * scale)
    parameter = np.asarray(theta) / scale
    run, _ = play(strategy, as_problem(arms, sigma=0.1, delta=1e-6), parameter, seed=3)
    assert run.verdict.winner == int(arms.means(parameter).argmax())


@EVERY
def test_minimising_is_maximising_the_opposite(strategy):
    arms, theta = fl.Arms(instances.gaussian(8, 3, 4)), np.array([1.0, 0.5, -1.0])
    run, _ = play(strategy, as_problem(arms, sigma=0.1, delta=1e-6, objective="min"), theta, 0)
    assert run.verdict.winner == int(arms.means(theta).argmin())


@EVERY
def test_units_of_the_rewards_change_nothing(strategy):
    arms, theta = fl.Arms(instances.gaussian(8, 3, 4)), np.array([1.0, 0.5, -1.0])
    plain, _ = play(strategy, as_problem(arms, sigma=0.5), theta, seed=5)
    scaled, _ = play(strategy, as_problem(arms, sigma=0.5 * 2.0**30), theta * 2.0**30, seed=5)
    assert plain.verdict == scaled.verdict


@EVERY
def test_ties_never_end_in_a_wrong_answer(strategy):
    # Arms 0 and 1 are tied and far above the rest: until the cap nobody else may win.
    arms, theta = fl.Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    for seed in range(20):
        run, _ = play(strategy, as_problem(arms, delta=1e-3), theta, seed, cap=10**5)
        assert run.verdict.winner in (None, 0, 1)
        assert {0, 1} & set(run.verdict.survivors)


@EVERY
def test_a_good_enough_arm_ends_a_tie(strategy):
    arms, theta = fl.Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    run, _ = play(strategy, as_problem(arms, epsilon=0.2, delta=1e-3), theta, seed=1)
    assert run.verdict.winner in (0, 1)


@EVERY
def test_rewards_of_another_batch_are_refused(strategy):
    run = strategy.start(as_problem(fl.Arms.unstructured(3)))
    before = run.verdict
    with pytest.raises(fl.errors.FinalistError):
        run.record(run.next(), Statistics.empty(3))
    assert run.verdict == before


def exact_lower_bound(errors: int, runs: int, confidence: float) -> float:
    """Return the Clopper-Pearson lower bound of an error probability."""
    return 0.0 if errors == 0 else float(beta.ppf(1 - confidence, errors, runs - errors + 1))


@EVERY
def test_error_rate(strategy):
    # A nearly tied instance: the exact 99.9 % lower bound must not exceed delta.
    delta, runs = 0.2, 400
    arms, theta = fl.Arms.unstructured(4), np.array([0.05, 0.0, 0.0, 0.0])
    problem = as_problem(arms, delta=delta)
    wrong = sum(play(strategy, problem, theta, seed)[0].verdict.winner != 0 for seed in range(runs))
    assert exact_lower_bound(wrong, runs, 0.999) <= delta
