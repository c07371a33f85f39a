"""Statistics and estimates against direct formulas, hand-checked numbers and wrong input."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from finalist.arms import Arms
from finalist.errors import EstimateError, RewardError
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics


def state(statistics):
    return (statistics.count.tolist(), statistics.mean.tolist(), statistics.m2.tolist())


def filled(arms, rewards, K):
    statistics = Statistics.empty(K)
    statistics.add_many(arms, rewards)
    return statistics


@pytest.fixture
def line():
    """Four arms on a line, with an intercept: rank 2."""
    return Arms(np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]]))


# --- statistics -----------------------------------------------------------------------------


def test_statistics_by_hand():
    s = Statistics.empty(3)
    for arm, reward in [(0, 1.0), (2, 5.0), (0, 2.0), (0, 6.0)]:
        s.add(arm, reward)
    assert state(s) == ([3, 0, 1], [3.0, 0.0, 5.0], [14.0, 0.0, 0.0])
    assert s.pulls == 4
    assert list(s.total) == [9.0, 0.0, 5.0]


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e9])
def test_incremental_equals_batch_after_many_updates(shift):
    rng = np.random.default_rng(1)
    index, rewards = rng.integers(0, 7, 100_000), shift + rng.normal(size=100_000)
    one_by_one = Statistics.empty(7)
    for i, r in zip(index, rewards, strict=True):
        one_by_one.add(i, r)
    in_parts = Statistics.empty(7)
    for part in np.array_split(np.arange(100_000), 313):
        in_parts.add_many(index[part], rewards[part])
    at_once = filled(index, rewards, 7)
    for other in (one_by_one, in_parts):
        assert np.array_equal(other.count, at_once.count)
        np.testing.assert_allclose(other.mean, at_once.mean, rtol=1e-12)
        np.testing.assert_allclose(other.m2, at_once.m2, rtol=1e-10)


def test_large_means_keep_the_variance():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=5000)
    rewards = 1e9 + noise
    exact = rewards - 1e9  # a subtraction of close floats is exact
    s = filled(np.zeros(5000, dtype=int), rewards, 1)
    assert s.m2[0] == pytest.approx(np.sum((exact - exact.mean()) ** 2), rel=1e-12)
    assert s.mean[0] - 1e9 == pytest.approx(exact.mean(), abs=2e-7)


def test_merge_equals_all_pulls():
    rng = np.random.default_rng(3)
    index, rewards = rng.integers(0, 4, 60), rng.normal(size=60)
    first, second = filled(index[:25], rewards[:25], 4), filled(index[25:], rewards[25:], 4)
    kept = state(second)
    first.merge(second)
    whole = filled(index, rewards, 4)
    assert np.array_equal(first.count, whole.count)
    np.testing.assert_allclose(first.mean, whole.mean, rtol=1e-13)
    np.testing.assert_allclose(first.m2, whole.m2, rtol=1e-13)
    assert state(second) == kept


def test_merge_refuses_other_arms():
    with pytest.raises(RewardError, match="3 arms cannot be added to those of 2"):
        Statistics.empty(2).merge(Statistics.empty(3))


def test_merge_with_itself_doubles():
    s = filled([0, 0, 1], [1.0, 3.0, 7.0], 2)
    s.merge(s)
    assert state(s) == ([4, 2], [2.0, 7.0], [4.0, 0.0])


def test_copy_is_independent():
    s = filled([0, 1], [1.0, 2.0], 2)
    other = s.copy()
    other.add(0, 5.0)
    assert state(s) == ([1, 1], [1.0, 2.0], [0.0, 0.0])


def test_add_batch_equals_its_pulls():
    s = filled([0, 0, 1], [1.0, 2.0, 9.0], 3)
    expected = s.copy()
    expected.add_many([0, 0, 2, 2], [4.0, 6.0, 1.0, 2.0])
    s.add_batch([2, 0, 2], [10.0, 0.0, 3.0], [2.0, 0.0, 0.5])
    assert np.array_equal(s.count, expected.count)
    np.testing.assert_allclose(s.mean, expected.mean)
    np.testing.assert_allclose(s.m2, expected.m2)


def test_add_batch_without_squares_loses_the_scatter_of_repeated_arms_only():
    s = filled([0, 0, 1], [1.0, 3.0, 9.0], 3)
    s.add_batch([0, 1, 2], [0.0, 11.0, 3.0])
    assert list(s.mean) == [2.0, 10.0, 1.5]
    np.testing.assert_array_equal(s.m2, [2.0, 2.0, np.nan])
    s.add(2, 1.5)
    assert np.isnan(s.m2[2])


@pytest.mark.parametrize(
    "reward",
    [np.nan, np.inf, -np.inf, True, np.True_, "1.0", None, 1 + 0j, [1.0], 10**400, 1e200],
)
def test_wrong_rewards_leave_the_state(reward):
    s = filled([0, 1], [1.0, 2.0], 2)
    before = state(s)
    with pytest.raises(RewardError, match="reward for pull 0"):
        s.add(0, reward)
    with pytest.raises(RewardError, match="reward for pull 1"):
        s.add_many([0, 1, 0], [1.0, reward, 3.0])
    assert state(s) == before


@pytest.mark.parametrize("arm", [-1, 2, 1.0, True, "x1", None])
def test_wrong_arms_leave_the_state(arm):
    s = filled([0, 1], [1.0, 2.0], 2)
    before = state(s)
    with pytest.raises(RewardError, match="arm of pull 0"):
        s.add(arm, 1.0)
    with pytest.raises(RewardError, match="arm of pull 1"):
        s.add_many([0, arm], [1.0, 3.0])
    assert state(s) == before


@pytest.mark.parametrize(
    "rewards",
    [
        np.array([True, False]),
        np.array(["1", "2"]),
        np.array([1.0, np.nan]),
        np.array([1.0, np.inf], dtype=np.float16),
        np.array([1.0 + 0j, 2.0]),
        np.array([1.0, np.finfo(np.longdouble).max]),
        np.array([1.0, None]),
        np.ones((2, 1)),
        np.ones(3),
        7.0,
    ],
)
def test_wrong_reward_arrays_leave_the_state(rewards):
    s = Statistics.empty(2)
    with pytest.raises(RewardError):
        s.add_many(np.array([0, 1]), rewards)
    assert state(s) == state(Statistics.empty(2))


@pytest.mark.parametrize("reward", [3, np.float32(3), np.int8(3), Fraction(3)])
def test_any_real_number_is_a_reward(reward):
    s = Statistics.empty(1)
    s.add(0, reward)
    s.add_many([0], [reward])
    assert state(s) == ([2], [3.0], [0.0])


@pytest.mark.parametrize("index", [[0, -1], [0, 2], [0.0, 1.0], [True, False]])
def test_wrong_arm_arrays_leave_the_state(index):
    s = Statistics.empty(2)
    with pytest.raises(RewardError, match="arm of pull"):
        s.add_many(np.array(index), np.array([1.0, 2.0]))
    assert state(s) == state(Statistics.empty(2))


def test_negative_counts_are_named():
    with pytest.raises(RewardError, match="count is"):
        Statistics.empty(2).add_batch([1, -1], [1.0, 1.0])


def test_no_pulls_change_nothing():
    s = filled([], [], 2)
    s.add_many(np.array([], dtype=int), np.array([]))
    assert state(s) == ([0, 0], [0.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize(
    ("count", "total", "squares"),
    [
        ([1, -1], [1.0, 1.0], None),
        ([1.0, 1.0], [1.0, 1.0], None),
        ([True, True], [1.0, 1.0], None),
        ([1], [1.0], None),
        ([1, 1], [1.0, np.nan], None),
        ([1, 1], ["a", "b"], None),
        ([1, 0], [1.0, 1.0], None),
        ([2, 2], [1.0, 1.0], [1.0, -1.0]),
        ([2, 2], [1.0, 1.0], [1.0, np.inf]),
        ([2, 2], [1.0, 1.0], [1.0]),
        ([2, 1], [1.0, 1.0], [1.0, 1.0]),
    ],
)
def test_wrong_batches_leave_the_state(count, total, squares):
    s = filled([0, 1], [1.0, 2.0], 2)
    before = state(s)
    with pytest.raises(RewardError):
        s.add_batch(count, total, squares)
    assert state(s) == before


# --- estimates ------------------------------------------------------------------------------


def test_line_by_hand(line):
    # Means 1, 2, 4 at 0, 1, 2 with counts 1, 2, 1: slope 1.5, intercept 0.75.
    e = estimate(line, filled([0, 1, 1, 2], [1.0, 1.0, 3.0, 4.0], 4))
    np.testing.assert_allclose(e.means(), [0.75, 2.25, 3.75, 5.25], rtol=1e-13)
    # (A'A)^-1 = [[6, -4], [-4, 4]] / 8
    directions = line.to_span(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 3.0]]))
    np.testing.assert_allclose(e.widths(directions), np.sqrt([0.5, 0.75, 4.5]), rtol=1e-13)
    np.testing.assert_allclose(e.gaps(directions), [1.5, 0.75, 4.5], rtol=1e-13)
    # Between arms (0.25^2 * 4), within arms 2; degrees of freedom 4 - 2.
    assert e.residual_variance == pytest.approx(2.25 / 2, rel=1e-13)
    assert e.degrees_of_freedom == 2


def test_estimate_keeps_its_data(line):
    s = filled([0, 1, 1, 2], [1.0, 1.0, 3.0, 4.0], 4)
    e = estimate(line, s)
    s.add(3, 100.0)
    assert e.statistics.pulls == 4
    with pytest.raises(ValueError, match="read-only"):
        e.phi[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        e.statistics.mean[0] = 1.0


def test_directions_outside_the_pulled_arms_are_unknown():
    arms = Arms(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [2.0, 1.0, 0.0]]))
    e = estimate(arms, filled([0, 1, 1], [3.0, 4.0, 6.0], 4))
    np.testing.assert_allclose(e.means(), [3.0, 5.0, np.nan, 11.0])
    np.testing.assert_allclose(e.widths(arms.coordinates), [1.0, 0.5**0.5, np.inf, 4.5**0.5])
    assert e.degrees_of_freedom == 1


def test_no_pulls_say_nothing(line):
    e = estimate(line, Statistics.empty(4))
    assert np.all(np.isnan(e.means()))
    assert np.all(np.isinf(e.widths(line.coordinates)))
    assert e.degrees_of_freedom == 0
    assert e.lack_of_fit() is None


def test_no_degrees_of_freedom(line):
    with pytest.raises(EstimateError, match="2 pulls of arms of rank 2"):
        _ = estimate(line, filled([0, 3], [1.0, 2.0], 4)).residual_variance


def test_sums_only_have_no_residual_variance(line):
    s = Statistics.empty(4)
    s.add_batch([5, 0, 5, 5], [1.0, 0.0, 2.0, 3.0])
    e = estimate(line, s)
    assert np.all(np.isfinite(e.means()))
    with pytest.raises(EstimateError, match="add_batch"):
        _ = e.residual_variance
    with pytest.raises(EstimateError, match="add_batch"):
        e.lack_of_fit()


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("rank_deficient", [False, True])
def test_ridge_equals_the_feature_space_formula(ridge, rank_deficient):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6, 4)) * [1.0, 10.0, 0.1, 3.0]
    if rank_deficient:
        X[:, 3] = X[:, 0] - 2 * X[:, 1]
    index, rewards = rng.integers(0, 5, 30), rng.normal(size=30)  # the last arm is not pulled
    e = estimate(Arms(X), filled(index, rewards, 6), ridge=ridge)
    A = X[index].T @ X[index] + ridge * np.eye(4)
    theta = np.linalg.solve(A, X[index].T @ rewards)
    np.testing.assert_allclose(e.means(), X @ theta, rtol=1e-9)
    Y = X[:-1] - X[1:]
    widths = np.sqrt(np.einsum("ij,ij->i", Y, np.linalg.solve(A, Y.T).T))
    np.testing.assert_allclose(e.widths(e.arms.to_span(Y)), widths, rtol=1e-9)
    log_det = np.linalg.slogdet(A / ridge)[1]
    assert e.log_det_ratio() == pytest.approx(log_det, rel=1e-9)


def solve_exactly(A, b):
    """Solve A x = b by Gauss-Jordan elimination in rational numbers."""
    rows = [[*row, value] for row, value in zip(A, b, strict=True)]
    for c in range(len(rows)):
        pivot = max(range(c, len(rows)), key=lambda k: abs(rows[k][c]))
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [v / rows[c][c] for v in rows[c]]
        for k in range(len(rows)):
            if k != c:
                rows[k] = [v - rows[k][c] * w for v, w in zip(rows[k], rows[c], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize(
    "scales", [[1e6, 1.0, 1e-6], [1e150, 1.0, 1e-150], [1e-150, 1.0, 1e150], [1e150] * 3]
)
@pytest.mark.parametrize("repeat_column", [False, True])
def test_ridge_with_features_of_any_size(scales, repeat_column):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(5, 3)) * scales
    if repeat_column:
        X = np.column_stack([X, X[:, 1]])
    index, rewards = np.arange(15) % 5, rng.normal(size=15)
    e = estimate(Arms(X), filled(index, rewards, 5), ridge=1.0)
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    d = range(X.shape[1])
    A = [[sum(rows[i][p] * rows[i][q] for i in index) + (p == q) for q in d] for p in d]
    r = [Fraction(v) for v in rewards.tolist()]
    b = [sum(rows[i][p] * v for i, v in zip(index, r, strict=True)) for p in d]
    for mean, width, row in zip(e.means(), e.widths(e.arms.coordinates), rows, strict=True):
        theta, u = solve_exactly(A, b), solve_exactly(A, row)
        exact = float(sum(v * t for v, t in zip(row, theta, strict=True)))
        assert mean == pytest.approx(exact, abs=1e-13)
        variance = float(sum(v * t for v, t in zip(row, u, strict=True)))
        assert width == pytest.approx(variance**0.5, rel=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_a_single_arm_of_zeros(ridge):
    e = estimate(Arms(np.zeros((1, 2))), filled([0, 0], [1.0, 2.0], 1), ridge=ridge)
    assert list(e.means()) == [0.0]
    assert list(e.widths(e.arms.coordinates)) == [0.0]


def test_ridge_needs_no_pulls(line):
    e = estimate(line, Statistics.empty(4), ridge=4.0)
    np.testing.assert_allclose(e.means(), np.zeros(4))
    norms = np.linalg.norm(line.features, axis=1)
    np.testing.assert_allclose(e.widths(line.coordinates), norms / 2, rtol=1e-12)
    assert e.log_det_ratio() == pytest.approx(0.0, abs=1e-12)


def test_ridge_refuses_what_is_biased(line):
    e = estimate(line, filled([0, 1, 2, 2], [1.0, 2.0, 3.0, 5.0], 4), ridge=1.0)
    for question in (lambda: e.residual_variance, lambda: e.degrees_of_freedom, e.lack_of_fit):
        with pytest.raises(EstimateError, match="without ridge"):
            question()
    with pytest.raises(EstimateError, match="ridge=1"):
        estimate(line, Statistics.empty(4)).log_det_ratio()


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf])
def test_wrong_ridge(line, ridge):
    with pytest.raises(EstimateError, match="ridge is"):
        estimate(line, Statistics.empty(4), ridge=ridge)


def test_statistics_of_other_arms(line):
    with pytest.raises(EstimateError, match="of 3 arms and there are 4"):
        estimate(line, Statistics.empty(3))


# --- lack of fit ----------------------------------------------------------------------------


def test_lack_of_fit_by_hand(line):
    fit = estimate(line, filled([0, 1, 1, 2], [1.0, 1.0, 3.0, 4.0], 4)).lack_of_fit()
    assert fit is not None
    assert (fit.df_fit, fit.df_pure) == (1, 1)
    assert fit.ss_fit == pytest.approx(0.25)
    assert fit.ss_pure == pytest.approx(2.0)
    assert fit.f == pytest.approx(0.125)
    assert fit.p_value == pytest.approx(stats.f.sf(0.125, 1, 1))


def test_lack_of_fit_sees_curvature(line):
    rng = np.random.default_rng(6)
    index = np.repeat(np.arange(4), 50)
    noise = rng.normal(size=200)
    straight = estimate(line, filled(index, 2.0 * index + noise, 4)).lack_of_fit()
    curved = estimate(line, filled(index, (1.0 * index) ** 2 + noise, 4)).lack_of_fit()
    assert straight is not None
    assert curved is not None
    assert straight.p_value > 0.01
    assert curved.p_value < 1e-6
    assert (curved.df_fit, curved.df_pure) == (2, 196)


def test_lack_of_fit_p_values_are_uniform(line):
    rng = np.random.default_rng(7)
    index = np.repeat(np.arange(4), 3)
    p = []
    for _ in range(400):
        fit = estimate(line, filled(index, 1.0 - index + rng.normal(size=12), 4)).lack_of_fit()
        assert fit is not None
        p.append(fit.p_value)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("index", [[0, 1, 2, 3], [0, 0, 3, 3], [1, 1, 1]])
def test_lack_of_fit_without_degrees_of_freedom(line, index):
    e = estimate(line, filled(index, np.arange(len(index)), 4))
    assert e.lack_of_fit() is None


@pytest.mark.parametrize("offset", [0.1, 1e9 + 0.3])
def test_lack_of_fit_without_scatter(line, offset):
    index = np.repeat(np.arange(4), 3)
    exact = estimate(line, filled(index, offset + 0.7 * index, 4)).lack_of_fit()
    assert exact is not None
    assert (exact.f, exact.p_value) == (0.0, 1.0)
    bent = estimate(line, filled(index, offset + 0.7 * (index == 3), 4)).lack_of_fit()
    assert bent is not None
    assert (bent.f, bent.p_value) == (np.inf, 0.0)
