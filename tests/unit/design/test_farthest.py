import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import finalist as fl
from finalist.design import farthest
from finalist.design.farthest import AllPairs, DirectionList, farthest_pairs


def brute(points):
    difference = points[:, None, :] - points[None, :, :]
    return (difference**2).sum(axis=2)


@given(st.integers(0, 10_000), st.integers(2, 60), st.integers(1, 5), st.integers(1, 9))
def test_the_farthest_pair_is_exact_for_every_block_size(seed, K, s, block):
    points = np.random.default_rng(seed).standard_normal((K, s)) * 10.0 ** (seed % 5 - 2)
    keep = farthest.PAIR_BLOCK
    farthest.PAIR_BLOCK = block
    try:
        pairs, top = farthest_pairs(points, 0.0, 5)
    finally:
        farthest.PAIR_BLOCK = keep
    D = brute(points)
    assert top == pytest.approx(D.max(), rel=1e-9)
    assert max(D[i, j] for i, j in pairs) == pytest.approx(D.max(), rel=1e-9)


def test_nothing_above_the_floor():
    points = np.random.default_rng(1).standard_normal((50, 3))
    pairs, top = farthest_pairs(points, 1e6, 5)
    assert len(pairs) == 0
    assert top == 1e6


def test_points_far_from_the_origin():
    points = 1e6 + np.random.default_rng(2).standard_normal((300, 3))
    assert farthest_pairs(points, 0.0, 1)[1] == pytest.approx(brute(points).max(), rel=1e-6)


def test_both_oracles_agree():
    rng = np.random.default_rng(3)
    Z, R = rng.standard_normal((40, 4)), rng.standard_normal((4, 4))
    i, j = np.triu_indices(40, 1)
    Y, top = AllPairs(Z).worst(R, 0.0, 3)
    listed, value = DirectionList(Z[i] - Z[j]).worst(R, 0.0, 3)
    assert top == pytest.approx(value)
    assert ((Y @ R.T) ** 2).sum(axis=1).max() == pytest.approx(top)
    assert ((listed @ R.T) ** 2).sum(axis=1).max() == pytest.approx(top)


def test_memory_of_xy_does_not_grow_with_the_number_of_pairs():
    # 20,000 arms have 200 million pairs; a float for each would take 1.6 GB.
    arms = fl.Arms(np.random.default_rng(4).standard_normal((20_000, 3)))
    _ = arms.coordinates
    tracemalloc.start()
    design = fl.optimal_design(arms, "xy", 1e-4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert design.solved
    assert peak < 20 * arms.features.nbytes + 16 * farthest.PAIR_BLOCK**2 * 8
