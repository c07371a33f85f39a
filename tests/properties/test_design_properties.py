"""What must not change: the map, the order, the units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import finalist as fl
from tests import instances

seeds = st.integers(0, 2**32 - 1)
criteria = st.sampled_from(["g", "d", "xy", "v"])


@settings(deadline=None, max_examples=30)
@given(seeds, criteria, st.integers(1, 5), st.integers(2, 40))
def test_invertible_linear_maps(seed, criterion, d, K):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((K, d))
    T = rng.standard_normal((d, d)) + 3.0 * np.eye(d)
    T *= 10.0 ** rng.uniform(-3, 3, d)
    plain = fl.optimal_design(fl.Arms(X), criterion, 1e-9)
    mapped = fl.optimal_design(fl.Arms(X @ T), criterion, 1e-9)
    assert mapped.value == pytest.approx(plain.value, rel=1e-7)
    np.testing.assert_allclose(mapped.weights, plain.weights, atol=2e-3)


@settings(deadline=None, max_examples=30)
@given(seeds, criteria)
def test_order_of_the_arms(seed, criterion):
    rng = np.random.default_rng(seed)
    X, order = rng.standard_normal((25, 3)), rng.permutation(25)
    plain = fl.optimal_design(fl.Arms(X), criterion, 1e-9)
    shuffled = fl.optimal_design(fl.Arms(X[order]), criterion, 1e-9)
    np.testing.assert_allclose(shuffled.weights, plain.weights[order], atol=2e-3)


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([1e-150, 1e-100, 1e-8, 1e8, 1e100, 1e150]))
def test_scaled_directions_scale_the_value(seed, factor):
    rng = np.random.default_rng(seed)
    arms = fl.Arms(rng.standard_normal((20, 4)))
    Y = rng.standard_normal((6, 4))
    plain, scaled = fl.optimal_design(arms, Y), fl.optimal_design(arms, factor * Y)
    assert scaled.value == pytest.approx(factor**2 * plain.value, rel=2e-6)


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_more_arms_to_pull_never_hurt(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((30, 4)), rng.standard_normal((5, 4))
    few, many = fl.Arms(X[:15]), fl.Arms(X)
    assert fl.optimal_design(many, Y).lower_bound <= fl.optimal_design(few, Y).value


def test_duplicates_are_one_arm():
    X = instances.gaussian(20, 3, 0)
    twice = fl.Arms(np.vstack([X, X]))
    assert len(twice) == 20
    np.testing.assert_allclose(
        fl.optimal_design(twice, "xy").weights, fl.optimal_design(fl.Arms(X), "xy").weights
    )
