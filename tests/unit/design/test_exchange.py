"""Small allocations: the compiled search beside one by matrices, and numbers that are none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finalist.design.exchange import exchange, greedy_pulls, ordered
from finalist.design.kernels import exchange as kernels


def problem(seed):
    """Return rows, counts, M and what is known beside them."""
    rng = np.random.default_rng(seed)
    r = int(rng.integers(1, 6))
    K = int(rng.integers(r, 12))
    Z, Y = rng.standard_normal((K, r)), rng.standard_normal((4, r))
    return Z, rng.integers(0, 4, K), Y.T @ Y, np.eye(r) * rng.uniform(0.1, 2.0)


def criterion(Z, counts, M, start):
    return float(np.trace(M @ np.linalg.inv(start + (Z.T * counts) @ Z)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_each_pull_lowers_the_criterion_most(seed):
    Z, _, M, start = problem(seed)
    room = np.full(len(Z), 2)
    found = greedy_pulls(Z, 2 * len(Z) + 3, M, start, room)
    assert np.array_equal(np.bincount(found, minlength=len(Z)), room)  # there is no more room
    counts = np.zeros(len(Z))
    for pull in found[:5]:
        free = counts < room
        after = [criterion(Z, counts + np.eye(len(Z))[i], M, start) for i in np.flatnonzero(free)]
        counts[pull] += 1
        assert criterion(Z, counts, M, start) <= min(after) * (1.0 + 1e-3)  # but for the ridge


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_an_exchange_keeps_the_pulls_and_is_never_worse(seed):
    Z, counts, M, start = problem(seed)
    room = counts + 2
    found = exchange(Z, counts, M, start, room)
    assert found.sum() == counts.sum()
    assert (found >= 0).all()
    assert (found <= room).all()
    best = criterion(Z, found, M, start)
    assert best <= criterion(Z, counts, M, start) * (1.0 + 1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_an_order_has_all_pulls(seed):
    Z, counts, M, start = problem(seed)
    found = ordered(Z, counts, M, start)
    assert np.array_equal(np.bincount(found, minlength=len(Z)), counts)


@pytest.mark.parametrize("bad", ["M", "start"])
def test_what_is_not_a_number_is_not_pulled(bad):
    Z, M, P = np.eye(2), np.eye(2), np.eye(2)
    (M if bad == "M" else P)[:] = np.nan
    counts, room, order = np.array([2, 1]), np.array([5, 5]), np.empty(3, dtype=np.int64)
    Z.flags.writeable = M.flags.writeable = False
    assert kernels.descend(Z, room.copy(), P.copy(), M, order) == 0
    kernels.improve(Z, counts, room, P, M, 3, 1e-6)
    assert counts.tolist() == [2, 1]
