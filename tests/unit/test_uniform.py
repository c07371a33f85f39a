"""The uniform allocation: a fair round robin, and the rule of the static strategies."""

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.inference.bounds import Bound
from finalist.problem import as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import Playable, Uniform
from finalist.strategies.static.uniform import GROWTH
from tests import instances
from tests.unit.test_static import holds


def rewards_of(arms, theta, seed, sigma=0.3):
    return DrawnRewards(arms.means(theta), sigma, "gaussian", np.random.default_rng(seed))


@pytest.mark.parametrize("K", [2, 3, 7, 49])
def test_pulls_of_any_prefix_differ_by_at_most_one(K):
    arms = fl.Arms.unstructured(K)
    run, rewards = (
        Uniform().start(as_problem(arms, sigma=1.0)),
        rewards_of(arms, np.zeros(K), 0, 1.0),
    )
    counts = np.zeros(K, dtype=np.int64)
    for size in (1, 1, None, 5, 2 * K + 1, None, None, 1, 3):
        batch = run.next(size)
        counts += batch.counts
        run.record(batch, rewards.batch(batch.counts))
        assert counts.max() - counts.min() <= 1
        if size is None:
            assert counts.max() == counts.min()
    assert counts.sum() > 5 * K


@pytest.mark.parametrize("bound", ["sharp", "soare"])
@pytest.mark.parametrize("settings", [{}, {"objective": "min"}, {"epsilon": 0.3}], ids=str)
def test_it_stops_after_the_first_round_at_which_the_rule_holds(bound: Bound, settings):
    X, theta = instances.gaussian(6, 3, 4), np.array([1.0, 0.4, -0.3])
    arms = fl.Arms(X)
    problem = as_problem(arms, sigma=0.3, delta=0.1, **settings)
    run, rewards = Uniform(bound).start(problem), rewards_of(arms, theta, 1)
    counts, sums = np.zeros(6), np.zeros(6)
    while not run.verdict.decided:
        assert holds(X, counts, sums, 6, problem, bound, problem.sign) is None
        batch = run.next()
        values = rewards.batch(batch.counts)
        counts, sums = counts + batch.counts, sums + values.total
        run.record(batch, values)
    assert holds(X, counts, sums, 6, problem, bound, problem.sign) == run.verdict.winner
    assert counts.sum() >= 12


def test_looks_are_rare_and_batches_small_beside_the_pulls_so_far():
    arms, theta = fl.Arms.unstructured(20), np.zeros(20)
    run, rewards = Uniform().start(as_problem(arms, sigma=1.0)), rewards_of(arms, theta, 2, 1.0)
    looks = 0
    while run.verdict.pulls < 10**6 and not run.verdict.decided:
        done, batch = run.verdict.pulls, run.next()
        assert batch.size <= max(20, GROWTH * done + 20)
        run.record(batch, rewards.batch(batch.counts))
        looks += 1
    assert looks < 500
    assert not isinstance(run, Playable)  # batches are as fast with any number of arms


def test_copies_of_an_arm_have_one_turn():
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert Uniform().start(as_problem(arms, sigma=1.0)).next(10).counts.tolist() == [5, 5]


def test_settings_are_checked():
    with pytest.raises(ProblemError, match="bound is 'best'"):
        Uniform(bound="best")  # type: ignore[arg-type]
