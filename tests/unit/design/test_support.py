import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finalist.design import reduce_support
from tests import instances


def matrix(Z, w):
    return Z.T @ (w[:, None] * Z)


@pytest.mark.parametrize(
    "Z",
    [
        instances.gaussian(200, 4, 0),
        instances.hypercube(6),
        instances.unit_sphere(1000, 5, 1),
        instances.clusters(1e-6, 3, 40, 3, 2),
        instances.plane(50),
    ],
    ids=["gaussian", "cube", "sphere", "clusters", "plane"],
)
def test_same_matrix_from_few_arms(Z):
    r = Z.shape[1]
    weights = np.random.default_rng(0).dirichlet(np.ones(len(Z)))
    reduced = reduce_support(Z, weights)
    assert np.count_nonzero(reduced) <= r * (r + 1) // 2 + 1
    assert reduced.min() >= 0.0
    assert reduced.sum() == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(matrix(Z, reduced), matrix(Z, weights), atol=1e-9)


def test_small_supports_stay_as_they_are():
    Z = instances.gaussian(20, 3, 3)
    weights = np.zeros(20)
    weights[[2, 5, 9]] = [0.2, 0.3, 0.5]
    np.testing.assert_allclose(reduce_support(Z, weights), weights, atol=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 40))
def test_support_is_a_subset(seed, r, K):
    rng = np.random.default_rng(seed)
    Z, weights = rng.standard_normal((K, r)), rng.dirichlet(np.ones(K))
    weights[rng.random(K) < 0.3] = 0.0
    reduced = reduce_support(Z, weights)
    assert not np.any((reduced > 0) & (weights == 0))
    np.testing.assert_allclose(matrix(Z, reduced), matrix(Z, weights), atol=1e-8)
