"""What holds for all data: order, grouping, shifts and scales of rewards do not matter."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from finalist.arms import Arms
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics

seeds = st.integers(0, 2**32 - 1)


def draw_pulls(seed, K, size):
    rng = np.random.default_rng(seed)
    return rng.integers(0, K, size), rng.normal(size=size) * 10.0 ** rng.integers(-3, 4)


def filled(arms, rewards, K):
    statistics = Statistics.empty(K)
    statistics.add_many(arms, rewards)
    return statistics


def assert_same(left, right, rtol=1e-10, scale=1.0):
    assert np.array_equal(left.count, right.count)
    np.testing.assert_allclose(left.mean, right.mean, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(left.m2, right.m2, rtol=rtol, atol=rtol * scale**2)


@given(seeds, st.integers(1, 6), st.integers(0, 80), st.integers(0, 80))
def test_any_grouping_gives_the_same_statistics(seed, K, size, cut):
    index, rewards = draw_pulls(seed, K, size)
    whole = filled(index, rewards, K)
    scale = float(np.max(np.abs(rewards), initial=0.0))
    one_by_one = Statistics.empty(K)
    for i, r in zip(index, rewards, strict=True):
        one_by_one.add(int(i), float(r))
    merged = filled(index[:cut], rewards[:cut], K)
    merged.merge(filled(index[cut:], rewards[cut:], K))
    part = filled(index[cut:], rewards[cut:], K)
    summed = filled(index[:cut], rewards[:cut], K)
    summed.add_batch(part.count, part.total, part.m2)
    order = np.random.default_rng(seed).permutation(size)
    shuffled = filled(index[order], rewards[order], K)
    for other in (one_by_one, merged, summed, shuffled):
        assert_same(other, whole, scale=scale)


@given(seeds, st.integers(1, 60))
def test_statistics_equal_the_definition(seed, size):
    index, rewards = draw_pulls(seed, 4, size)
    s = filled(index, rewards, 4)
    for arm in range(4):
        own = rewards[index == arm]
        assert s.count[arm] == len(own)
        np.testing.assert_allclose(s.total[arm], own.sum(), rtol=1e-9, atol=1e-9 * size)
        np.testing.assert_allclose(
            s.m2[arm], len(own) * np.var(own) if len(own) else 0.0, rtol=1e-9, atol=1e-20
        )


@given(seeds, st.integers(2, 8), st.integers(1, 5), st.integers(20, 60))
def test_estimate_equals_lstsq_on_all_rewards(seed, K, d, size):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(K, d))
    # Every arm is pulled, so that every mean can be estimated.
    index = np.append(np.arange(K), rng.integers(0, K, size))
    rewards = X[index] @ rng.normal(size=d) + rng.normal(size=len(index))
    theta, _, rank, _ = np.linalg.lstsq(X[index], rewards, rcond=None)
    e = estimate(Arms(X), filled(index, rewards, K))
    np.testing.assert_allclose(e.means(), X @ theta, rtol=1e-8, atol=1e-8)
    assert e.degrees_of_freedom == len(index) - rank
    squares = np.sum((rewards - X[index] @ theta) ** 2)
    np.testing.assert_allclose(e.residual_variance, squares / (len(index) - rank), rtol=1e-8)
    inverse = np.linalg.pinv(X[index].T @ X[index])
    variances = np.einsum("ij,jk,ik->i", X, inverse, X)
    np.testing.assert_allclose(e.widths(e.arms.coordinates) ** 2, variances, rtol=1e-6)


@given(seeds, st.sampled_from([1.0, 1e3, 1e6, 1e9]))
def test_a_shift_of_all_rewards_moves_only_the_intercept(seed, shift):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(6), rng.normal(size=(6, 2))])
    arms = Arms(X)
    index = np.append(np.arange(6), rng.integers(0, 6, 40))
    noise = rng.normal(size=46)
    # Rewards are rounded by the shift; compare with the rounded ones.
    shifted = shift + noise
    plain = estimate(arms, filled(index, shifted - shift, 6))
    moved = estimate(arms, filled(index, shifted, 6))
    Y = arms.to_span(X[1:] - X[0])
    tolerance = 1e-13 * shift + 1e-12
    np.testing.assert_allclose(moved.gaps(Y), plain.gaps(Y), rtol=0, atol=10 * tolerance)
    np.testing.assert_allclose(moved.means() - shift, plain.means(), rtol=0, atol=10 * tolerance)
    np.testing.assert_allclose(moved.residual_variance, plain.residual_variance, rtol=tolerance)
    left, right = moved.lack_of_fit(), plain.lack_of_fit()
    assert left is not None
    assert right is not None
    np.testing.assert_allclose(left.p_value, right.p_value, atol=10 * tolerance, rtol=0)


@given(seeds, st.sampled_from([1e-100, 1e-6, 1e6, 1e100]))
def test_units_of_features_and_rewards_do_not_matter(seed, unit):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 3))
    index = np.append(np.arange(5), rng.integers(0, 5, 20))
    rewards = rng.normal(size=25)
    plain = estimate(Arms(X), filled(index, rewards, 5))
    scaled = estimate(Arms(X * [unit, 1.0, 1 / unit]), filled(index, unit * rewards, 5))
    np.testing.assert_allclose(scaled.means() / unit, plain.means(), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        scaled.residual_variance / unit / unit, plain.residual_variance, rtol=1e-7
    )


@given(seeds, st.integers(2, 12))
def test_light_arms_beside_heavy_ones_still_count(seed, digits):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, 3))
    means = rng.normal(size=3)
    s = Statistics.empty(3)
    s.add_batch([10**digits, 1, 2], [means[0] * 10**digits, means[1], means[2] * 2])
    e = estimate(Arms(X), s)
    np.testing.assert_allclose(e.means(), means, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        e.widths(e.arms.coordinates), np.array([10.0**digits, 1, 2]) ** -0.5, rtol=1e-6
    )
