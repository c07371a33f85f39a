"""Arms beside each other in shifted batches, without a model, against regression with dummies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finalist.inference.effects import Effects


def drawn(seed, K=8, batches=6, level=0.0):
    """Return batches of a few arms each: arms, weights and means."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(batches):
        arms = np.sort(rng.choice(K, rng.integers(1, 4), replace=False))
        mean = level + 5.0 * rng.standard_normal() + rng.standard_normal(len(arms))
        found.append((arms, rng.uniform(0.1, 9.0, len(arms)), mean))
    return K, found


def regression(K, batches):
    """Return effects and a generalised inverse, by NumPy, with a dummy for every batch."""
    arms, w, y = (np.concatenate(part) for part in zip(*batches, strict=True))
    of = np.repeat(np.arange(len(batches)), [len(b[0]) for b in batches])
    X = np.column_stack([np.eye(K)[arms], np.eye(len(batches))[of]])
    inverse = np.linalg.pinv(X.T @ (X * w[:, None]), rcond=1e-10)
    return (inverse @ X.T @ (w * y))[:K], inverse[:K, :K], X * np.sqrt(w)[:, None]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e6]))
def test_differences_are_those_of_the_regression_with_dummies(seed, level):
    K, batches = drawn(seed, level=level)
    found = Effects.of(K, batches)
    # Without the level: it is the regression that would lose digits.
    effects, inverse, X = regression(K, [(a, w, m - level) for a, w, m in batches])
    first, second = np.triu_indices(K, 1)
    difference, variance = found.differences(first, second)
    Y = np.zeros((len(first), X.shape[1]))
    Y[np.arange(len(Y)), first], Y[np.arange(len(Y)), second] = 1.0, -1.0
    known = np.linalg.norm(Y - Y @ np.linalg.pinv(X) @ X, axis=1) < 1e-8
    np.testing.assert_array_equal(np.isfinite(variance), known)
    expected = effects[first] - effects[second]
    np.testing.assert_allclose(difference[known], expected[known], atol=1e-7)
    E = Y[:, :K]
    expected = np.einsum("ij,jk,ik->i", E, inverse, E)
    np.testing.assert_allclose(variance[known], expected[known], rtol=1e-7)
    assert not difference[~known].any()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_a_model_is_compared_with_them_in_every_part(seed):
    K, batches = drawn(seed, batches=3)
    found = Effects.of(K, batches)
    means = np.random.default_rng(seed).standard_normal(K)
    beside = found.beside(means + 100.0)
    np.testing.assert_allclose(beside, found.beside(means), atol=1e-10)
    for part in range(found.part.max() + 1):
        mine = found.part == part
        assert found.weight[mine] @ found.effect[mine] == pytest.approx(0.0, abs=1e-9)
        assert found.weight[mine] @ beside[mine] == pytest.approx(0.0, abs=1e-9)
        rest = (beside - found.effect + means)[mine]
        np.testing.assert_allclose(rest, rest[0], atol=1e-9)  # they differ by a constant
    assert not beside[found.part < 0].any()


def test_weights_are_what_an_arm_says_if_the_others_are_known():
    # 2 and 6 pulls in a batch: the constant is known from the other arm, 1 / (1/2 + 1/6).
    both = np.array([0, 1])
    one = (both, np.array([2.0, 6.0]), np.array([1.0, 4.0]))
    assert Effects.of(3, [one]).weight == pytest.approx([1.5, 1.5, 0.0])
    alone = (np.array([0]), np.array([50.0]), np.array([9.0]))
    found = Effects.of(3, [one, alone])  # which says nothing but its constant
    assert found.weight == pytest.approx([1.5, 1.5, 0.0])
    assert found.effect == pytest.approx([-1.5, 1.5, 0.0])
    found = Effects.of(3, [one, one, alone])
    assert found.weight == pytest.approx([3.0, 3.0, 0.0])
    difference, variance = found.differences(np.array([1]), np.array([0]))
    assert difference == pytest.approx([3.0])
    assert variance == pytest.approx([1 / 3])


def test_nothing_says_nothing():
    for batches in ([], [(np.array([1]), np.ones(1), np.ones(1))]):
        found = Effects.of(2, batches)
        assert not found.beside(np.array([1.0, 2.0])).any()
        assert np.isinf(found.differences(np.array([1]), np.array([0]))[1]).all()


def test_arms_of_very_different_noise():
    rng = np.random.default_rng(2)
    w = 10.0 ** np.array([-6.0, 6.0, 0.0, 6.0, -6.0])
    batches = [
        (np.array([0, 1]), w[:2], 10 * rng.standard_normal() + np.arange(2.0)),
        (np.array([1, 3]), w[[1, 3]], 10 * rng.standard_normal() + np.array([1.0, 3.0])),
        (np.array([0, 2, 4]), w[[0, 2, 4]], 10 * rng.standard_normal() + np.array([0.0, 2.0, 4.0])),
    ]
    found = Effects.of(5, batches)
    first, second = np.arange(1, 5), np.zeros(4, dtype=int)
    difference, variance = found.differences(first, second)
    assert difference == pytest.approx([1.0, 2.0, 3.0, 4.0], rel=1e-6)
    assert variance == pytest.approx([1e6, 1e6, 1e6, 2e6], rel=1e-4)
