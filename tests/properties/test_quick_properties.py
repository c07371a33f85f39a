"""Compiled least squares beside the one with all its care."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finalist.arms import Arms
from finalist.inference.information import information
from finalist.inference.kernels.fit import MOST_ROWS
from finalist.inference.least_squares import estimate
from finalist.inference.quick import quick_estimate, quick_information
from finalist.inference.statistics import Statistics


def arms_and_counts(seed, spread):
    """Return arms and counts that differ by up to so many powers of ten; some are 0."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    arms = Arms(rng.standard_normal((int(rng.integers(d, 30)), d)) * 10.0 ** rng.uniform(-3, 3, d))
    counts = (10.0 ** rng.uniform(0, spread, len(arms))).astype(np.int64)
    return arms, np.where(rng.random(len(arms)) < rng.uniform(0.2, 1.0), counts, 0), rng


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 9.0))
def test_the_factor_is_that_of_information(seed, spread):
    arms, counts, _ = arms_and_counts(seed, spread)
    Z, weights = arms.coordinates, counts.astype(float)
    quick, careful = quick_information(Z, weights), information(Z, weights)
    assert quick.rank == careful.rank
    assert np.allclose(quick.basis, careful.basis)
    scale = np.abs(careful.inverse_root).max(initial=0.0)
    # With the same signs: draws of the parameter are made with it.
    assert np.allclose(quick.inverse_root, careful.inverse_root, rtol=0.0, atol=1e-9 * scale)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 6.0), st.booleans())
def test_the_estimate_is_that_of_estimate(seed, spread, uneven):
    arms, counts, rng = arms_and_counts(seed, spread)
    total = counts * rng.standard_normal(len(arms))
    statistics = Statistics.of_batch(counts, total, np.zeros(len(arms)))
    precisions = rng.uniform(0.1, 9.0, len(arms)) if uneven else None
    quick = quick_estimate(arms, statistics, precisions=precisions)
    careful = estimate(arms, statistics, precisions=precisions)
    assert np.allclose(quick.means(), careful.means(), rtol=1e-8, atol=1e-8, equal_nan=True)
    assert quick.information.rank == careful.information.rank


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_left_to_information(bad):
    Z = np.eye(2)
    try:
        expected = information(Z, np.array([1.0, bad])).rank
    except Exception as error:
        with pytest.raises(type(error)):
            quick_information(Z, np.array([1.0, bad]))
        return
    assert quick_information(Z, np.array([1.0, bad])).rank == expected


def test_arms_that_are_nearly_dependent_are_left_to_information():
    Z = np.random.default_rng(1).standard_normal((20, 4)) * [1.0, 1.0, 1.0, 1e-8]
    expected = information(Z, np.ones(20)).inverse_root
    assert np.array_equal(quick_information(Z, np.ones(20)).inverse_root, expected)


def test_more_rows_than_are_sorted_one_by_one():
    Z = np.random.default_rng(1).standard_normal((MOST_ROWS + 1, 3))
    weights = np.ones(len(Z))
    expected = information(Z, weights).inverse_root
    assert np.array_equal(quick_information(Z, weights).inverse_root, expected)
