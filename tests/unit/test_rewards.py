"""Rewards of a batch have the distribution of the single pulls they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finalist.errors import RewardError
from finalist.inference.statistics import BatchResults, Statistics
from finalist.simulation.rewards import DrawnRewards, FunctionRewards

MEANS = np.array([0.2, 0.5, 0.9, 0.4])
COUNTS = np.array([6, 0, 3, 1])
SIGMA = 0.7


def drawn(kind, seed):
    return DrawnRewards(MEANS, SIGMA, kind, np.random.default_rng(seed))


def one_by_one(rewards: DrawnRewards) -> Statistics:
    arms = np.repeat(np.arange(len(COUNTS)), COUNTS)
    total = Statistics.empty(len(COUNTS))
    total.add_many(arms, rewards.pulls(arms))
    return total


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
def test_batches_and_single_pulls_have_the_same_distribution(kind):
    repeats = 4000
    drawn_batch, drawn_pulls = drawn(kind, 1), drawn(kind, 2)
    batches = [drawn_batch.batch(COUNTS) for _ in range(repeats)]
    pulls = [one_by_one(drawn_pulls) for _ in range(repeats)]
    for word in ("total", "m2"):
        a = np.array([getattr(s, word) for s in batches])
        b = np.array([getattr(s, word) for s in pulls])
        centre = a.mean(axis=0)
        for x, y in ((a, b), ((a - centre) ** 2, (b - centre) ** 2)):
            error = np.sqrt((x.var(axis=0) + y.var(axis=0)) / repeats)
            assert np.all(np.abs(x.mean(axis=0) - y.mean(axis=0)) <= 4.5 * error + 1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
def test_moments_are_those_of_the_distribution(kind):
    repeats = 4000
    source = drawn(kind, 3)
    batches = [source.batch(COUNTS) for _ in range(repeats)]
    variance = MEANS * (1 - MEANS) if kind == "bernoulli" else np.full(4, SIGMA**2)
    total = np.array([s.total for s in batches])
    scatter = np.array([s.m2 for s in batches])
    error = np.sqrt(COUNTS * variance / repeats)
    assert np.all(np.abs(total.mean(axis=0) - COUNTS * MEANS) <= 4.5 * error + 1e-12)
    np.testing.assert_allclose(total.var(axis=0), COUNTS * variance, rtol=0.15)
    expected = np.maximum(COUNTS - 1, 0) * variance
    np.testing.assert_allclose(scatter.mean(axis=0), expected, rtol=0.1)


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
def test_a_batch_of_one_is_a_pull(kind):
    batch = drawn(kind, 4).batch(np.array([0, 0, 1, 0]))
    assert batch.mean[2] == drawn(kind, 4).pulls(np.array([2]))[0]
    assert batch.count.tolist() == [0, 0, 1, 0]


def test_the_values_of_two_point_rewards():
    arms = np.array([0, 2] * 50)
    assert set(drawn("bernoulli", 0).pulls(arms)) == {0.0, 1.0}
    noise = drawn("bounded", 0).pulls(arms) - MEANS[arms]
    assert set(np.round(noise, 12)) == {-SIGMA, SIGMA}


def test_an_unknown_kind_is_refused():
    with pytest.raises(RewardError, match=r"rewards is 'cauchy'; it is one of gaussian, bounded,"):
        drawn("cauchy", 0)


@pytest.mark.parametrize("means", [[-0.01, 0.5], [0.5, 1.01]])
def test_probabilities_outside_0_and_1_are_refused(means):
    with pytest.raises(RewardError, match=r"go from .* need them between 0 and 1"):
        DrawnRewards(np.array(means), 1.0, "bernoulli", np.random.default_rng(0))


def test_a_function_must_return_as_many_rewards_as_pulls():
    def draw(arm, n, rng):
        return np.zeros(n + 1)

    rewards = FunctionRewards(draw, 2, np.random.default_rng(0))
    with pytest.raises(RewardError, match=r"shape \(4,\) for 3 pulls of arm 1"):
        rewards.batch(np.array([0, 3]))


# --- the results of a batch -----------------------------------------------------------------


@given(data=st.data(), size=st.integers(0, 12))
def test_the_first_results_of_a_batch_are_those_added_one_by_one(data, size):
    arms = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), int)
    values = np.array(
        data.draw(st.lists(st.floats(-1e6, 1e6), min_size=size, max_size=size)), float
    )
    order = np.array(data.draw(st.permutations(range(size))), int)
    results = BatchResults.of(4, arms, values, order)
    for n in range(size + 1):
        expected, found = Statistics.empty(4), results.first(n)
        for i in order[:n]:
            expected.add(int(arms[i]), float(values[i]))
        assert found.arm is not None
        assert found.value is not None
        assert (found.arm.tolist(), found.value.tolist()) == (
            arms[order[:n]].tolist(),
            values[order[:n]].tolist(),
        )
        assert found.count.tolist() == expected.count.tolist()
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(found.m2, expected.m2, rtol=1e-9, atol=1e-3)
    for n in (-1, size + 1):
        with pytest.raises(RewardError, match=f"this batch has {size} results"):
            results.first(n)


def test_of_drawn_sums_only_all_results_are_known():
    rewards = DrawnRewards(np.zeros(2), 1.0, "gaussian", np.random.default_rng(0))
    drawn = rewards.batch(np.array([3, 2]))
    assert (drawn.arm, drawn.value) == (None, None)
    assert drawn.first(5) is drawn
    with pytest.raises(RewardError, match="only sums"):
        drawn.first(4)
