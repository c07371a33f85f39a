"""All rewards together: weighted, and with a constant for each batch, against plain regression."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import finalist as fl
from finalist.errors import EstimateError
from finalist.inference.least_squares import estimate
from finalist.inference.pooling import Pooled, batch_arms
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem


def regression(X, y, weights):
    """Weighted least squares by NumPy: the parameter and the weighted residual squares."""
    root = np.sqrt(weights)
    theta = np.linalg.lstsq(X * root[:, None], y * root, rcond=None)[0]
    return theta, float(np.sum(weights * (y - X @ theta) ** 2))


def drawn(seed, K=7, d=3, batches=4, size=12, level=0.0):
    """Return arms, the pulls of each batch, and their rewards, with a shift for each batch."""
    rng = np.random.default_rng(seed)
    arms = fl.Arms(rng.standard_normal((K, d)))
    theta = rng.standard_normal(d)
    found = []
    for _ in range(batches):
        pulls = rng.integers(0, K, size)
        shift = level + 5.0 * rng.standard_normal()
        found.append((pulls, arms.features[pulls] @ theta + shift + rng.standard_normal(size)))
    return arms, found


def pooled_of(problem, found):
    pooled = Pooled(problem)
    for pulls, rewards in found:
        batch = Statistics.empty(len(problem.arms))
        batch.add_many(pulls, rewards)
        pooled.add(batch)
    return pooled


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 1e6]))
def test_with_a_constant_for_each_batch_it_is_the_regression_with_dummies(seed, unequal, level):
    arms, found = drawn(seed, level=level)
    sigma = np.random.default_rng(seed + 1).uniform(0.2, 3.0, len(arms)) if unequal else 1.0
    problem = as_problem(arms, batch_intercept=True, sigma=sigma)
    fit = pooled_of(problem, found).estimate()
    pulls = np.concatenate([p for p, _ in found])
    of = np.repeat(np.arange(len(found)), [len(p) for p, _ in found])
    X = np.column_stack([arms.features[pulls], np.eye(len(found))[of]])
    y = np.concatenate([r for _, r in found])
    weights = np.broadcast_to(sigma, len(arms))[pulls] ** -2.0 if unequal else np.ones(len(y))
    theta, squares = regression(X, y, weights)
    Z = fit.arms.coordinates
    expected = arms.features @ theta[:3]
    np.testing.assert_allclose(fit.gaps(Z[1:] - Z[0]), expected[1:] - expected[0], atol=1e-7)
    assert fit.degrees_of_freedom == len(y) - 3 - len(found)
    assert fit.residual_variance == pytest.approx(squares / fit.degrees_of_freedom, rel=1e-6)
    covariance = np.linalg.inv((X * weights[:, None]).T @ X)[:3, :3]
    Y = arms.features[1:] - arms.features[0]
    np.testing.assert_allclose(
        fit.widths(Z[1:] - Z[0]), np.sqrt(np.einsum("ij,jk,ik->i", Y, covariance, Y)), rtol=1e-7
    )
    assert fit.means() @ np.bincount(pulls, weights, minlength=len(arms)) == pytest.approx(
        float(weights @ y), rel=1e-6
    )  # the level is that of all rewards


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_unequal_noise_is_weighted_regression(seed):
    arms, found = drawn(seed, batches=1, size=30)
    sigma = np.random.default_rng(seed).uniform(0.1, 5.0, len(arms))
    problem = as_problem(arms, sigma=sigma)
    fit = pooled_of(problem, found).estimate()
    pulls, y = found[0]
    theta, squares = regression(arms.features[pulls], y, sigma[pulls] ** -2.0)
    np.testing.assert_allclose(fit.means(), arms.features @ theta, rtol=1e-8, atol=1e-10)
    assert fit.residual_variance == pytest.approx(squares / (len(y) - 3), rel=1e-9)


def test_equal_sigmas_of_each_arm_are_one_sigma():
    arms, found = drawn(3)
    same = pooled_of(as_problem(arms, sigma=[2.0] * len(arms)), found).estimate()
    one = pooled_of(as_problem(arms, sigma=2.0), found).estimate()
    np.testing.assert_allclose(same.phi, one.phi, rtol=1e-12)
    np.testing.assert_allclose(
        same.widths(arms.coordinates), 2.0 * one.widths(arms.coordinates), rtol=1e-12
    )


def test_a_constant_is_added_only_where_there_is_none():
    plain = fl.Arms([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    assert batch_arms(as_problem(plain, sigma=1.0)) is plain
    wider = batch_arms(as_problem(plain, batch_intercept=True, sigma=1.0))
    assert wider.rank == 3
    assert wider.feature_names == ("f1", "f2", "intercept")
    for arms in (fl.Arms.unstructured(4), fl.Arms([[1.0, 2.0], [1.0, 3.0], [1.0, 5.0]])):
        assert batch_arms(as_problem(arms, batch_intercept=True, sigma=1.0)) is arms
    with_roles = fl.Arms([[1.0], [2.0], [9.0]], measurable=[True, True, False])
    assert batch_arms(
        as_problem(with_roles, batch_intercept=True, sigma=1.0)
    ).measurable.tolist() == [
        True,
        True,
        False,
    ]


def test_many_batches_are_compressed_and_stay_the_same():
    arms, found = drawn(5, batches=60, size=4)
    problem = as_problem(arms, batch_intercept=True, sigma=1.0)
    whole = pooled_of(problem, found)
    step = Pooled(problem)
    for pulls, rewards in found:
        batch = Statistics.empty(len(arms))
        batch.add_many(pulls, rewards)
        step.add(batch)
        step.estimate()
    a, b = whole.estimate(), step.estimate()
    Z = a.arms.coordinates
    np.testing.assert_allclose(a.gaps(Z - Z[0]), b.gaps(Z - Z[0]), atol=1e-10)
    assert a.residual_variance == pytest.approx(b.residual_variance, rel=1e-9)
    assert len(step._centred) <= 4 * (a.arms.rank + 1)


def test_what_a_batch_of_one_arm_says_is_nothing():
    problem = as_problem(fl.Arms([[1.0], [2.0]]), batch_intercept=True, sigma=1.0)
    pooled = Pooled(problem)
    for total in (5.0, 7.0):
        pooled.add(Statistics.of_batch([2, 0], [total, 0.0], [0.5, 0.0]))
    fit = pooled.estimate()
    assert fit.information.rank == 0
    assert np.isnan(fit.gaps(np.diff(fit.arms.coordinates, axis=0))).all()
    assert fit.means()[0] == pytest.approx(3.0)
    assert np.isnan(fit.means()[1])
    assert (fit.degrees_of_freedom, fit.residual_variance) == (2, 0.5)
    one = Pooled(problem)
    one.add(Statistics.of_batch([1, 0], [5.0, 0.0], [0.0, 0.0]))
    with pytest.raises(EstimateError, match="leave nothing to estimate the variance from"):
        _ = one.estimate().residual_variance


def test_sums_without_their_scatter_say_nothing_of_the_noise():
    pooled = Pooled(as_problem(fl.Arms([[1.0], [2.0], [3.0]]), batch_intercept=True, sigma=1.0))
    for _ in range(3):
        pooled.add(Statistics.of_batch([3, 3, 3], [1.0, 2.0, 5.0]))
    for ask in (lambda fit: fit.residual_variance, lambda fit: fit.lack_of_fit()):
        with pytest.raises(EstimateError, match="scatter within arms is unknown"):
            ask(pooled.estimate())


def test_lack_of_fit_within_batches():
    rng = np.random.default_rng(1)
    x = np.linspace(-1.0, 1.0, 6)
    arms = fl.Arms(np.column_stack([np.ones(6), x]))
    for bent, alarmed in ((0.0, False), (3.0, True)):
        pooled = Pooled(as_problem(arms, batch_intercept=True, sigma=1.0))
        for _ in range(3):
            pulls = np.tile(np.arange(6), 4)
            means = 2.0 * x + bent * x**2 + 10.0 * rng.standard_normal()
            batch = Statistics.empty(6)
            batch.add_many(pulls, means[pulls] + 0.5 * rng.standard_normal(len(pulls)))
            pooled.add(batch)
        test = pooled.estimate().lack_of_fit()
        assert test is not None
        assert (test.df_fit, test.df_pure) == (18 - 3 - 1, 72 - 18)
        assert (test.p_value < 1e-4) is alarmed


def test_other_arms_keep_what_concerns_them():
    arms, found = drawn(8)
    problem = as_problem(arms, batch_intercept=True, sigma=1.0)
    pooled = pooled_of(problem, found)
    kept = np.array([4, 2, 6, 0, 5])
    fewer = as_problem(fl.Arms(arms.features[kept]), batch_intercept=True, sigma=1.0)
    again = Pooled(fewer)
    for pulls, rewards in found:
        batch = Statistics.empty(len(arms))
        batch.add_many(pulls, rewards)
        again.add(batch.taken(kept))
    one, other = pooled.taken(kept, fewer).estimate(), again.estimate()
    np.testing.assert_allclose(one.phi, other.phi, atol=1e-10)
    assert one.residual_variance == pytest.approx(other.residual_variance)


def test_earlier_rewards_are_a_batch_of_their_own_and_change_nothing():
    arms, found = drawn(9)
    pooled = pooled_of(as_problem(arms, batch_intercept=True, sigma=1.0), found[:3])
    before = Statistics.empty(len(arms))
    before.add_many(*found[3])
    phi = pooled.estimate().phi
    assert pooled.with_earlier(None) is pooled
    np.testing.assert_allclose(
        pooled.with_earlier(before).estimate().phi,
        pooled_of(pooled.problem, found).estimate().phi,
        atol=1e-10,
    )
    np.testing.assert_array_equal(pooled.estimate().phi, phi)


def test_without_anything_special_it_is_the_plain_estimate():
    arms, found = drawn(10)
    fit = pooled_of(as_problem(arms, sigma=1.0), found).estimate()
    plain = Statistics.empty(len(arms))
    for pulls, rewards in found:
        batch = Statistics.empty(len(arms))
        batch.add_many(pulls, rewards)
        plain.merge(batch)
    np.testing.assert_array_equal(fit.phi, estimate(arms, plain).phi)
