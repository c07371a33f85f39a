"""What chooses in compiled loops, beside the same formulas in NumPy."""

import math

import numpy as np
import pytest

from finalist.strategies.gauntlet import choice_kernels as kernels


def fixed(*arrays):
    """Return arrays that cannot be written, as the loops take them."""
    for array in arrays:
        array.flags.writeable = False
    return arrays


@pytest.fixture(params=range(4))
def case(request):
    """Arms, pairs of them, a parameter and two inverse roots."""
    rng = np.random.default_rng(request.param)
    Z, phi, R, other = (rng.standard_normal(shape) for shape in ((9, 3), 3, (3, 3), (3, 3)))
    first, second = np.full(8, 2), np.delete(np.arange(9), 2)
    fixed(Z, phi, R, other, first, second)
    return Z, first, second, phi, R, other, np.append(0.0, rng.uniform(0.01, 1.2, 7))


def test_the_pulls_that_the_slowest_pair_needs(case):
    Z, first, second, phi, R, other, missing = case
    Y = Z[first] - Z[second]
    errors, widths = (np.sqrt(np.sum((Y @ M.T) ** 2, axis=1)) for M in (R, other))
    gaps = np.maximum(-2.0 * (Y @ phi) + 0.3 - 0.5 * errors, 0.7 * errors)
    expected = missing * 3.0 / (0.5 * gaps**2 / (widths**2 * 40.0))
    every = np.ones(8, dtype=bool)
    words = (Z, first, second, missing, phi, R)
    rest = (-2.0, 0.3, other), (40.0, 3.0, 0.5, 0.7)
    assert kernels.needed(*words, every, *rest[0], every, *rest[1]) == pytest.approx(expected.max())
    some = expected < expected.max()
    found = kernels.needed(*words, some, *rest[0], every, *rest[1])  # the past knows the others
    assert found == pytest.approx(expected[some].max())
    assert kernels.needed(*words, every, *rest[0], some, *rest[1]) == 1e15  # the batch does not


def test_a_need_that_is_no_number_is_none(case):
    Z, first, second, phi, R, other, _missing = case
    every = np.ones(8, dtype=bool)
    words = (Z, first, second, np.full(8, np.nan), phi, R, every, 1.0, 0.0, other, every)
    assert kernels.needed(*words, 40.0, 3.0, 0.5, 0.7) == 0.0


def test_directions_are_weighted_by_gaps_and_missing_evidence(case):
    Z, first, second, phi, R, _, missing = case
    thetas = np.vstack([phi, -phi, 2.0 * phi])
    off = np.linspace(0.0, 0.4, 9)
    Y = Z[first] - Z[second]
    widths = 1.5 * np.sqrt(np.sum((Y @ R.T) ** 2, axis=1))
    gaps = np.maximum(thetas @ Y.T + off[first] - off[second], 0.5 * widths) + 0.1
    gaps = np.minimum(gaps, 8.0 * gaps.min(axis=1, keepdims=True))
    scale = gaps.min() * np.sqrt(np.maximum(0.05, missing)) / gaps
    out = np.empty((3, 8, 3))
    rule = (0.5, 8.0, 0.05)
    kernels.aim(Z, first, second, missing, thetas, off, R, 1.5, 0.1, rule, out)
    assert np.allclose(out, Y[None] * scale[:, :, None])


def test_the_strongest_rival():
    W = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    means, rivals, chosen = np.array([0.0, 1.0, 3.0, 9.0]), np.arange(4), np.empty(4, np.int64)
    kernels.strongest(W, means, rivals, np.arange(4), chosen)
    # Arm 3 is where arm 0 is, so that nothing can tell these two apart.
    assert chosen.tolist() == [2, 3, 3, 2]
    kernels.strongest(W, means, rivals[:1], np.arange(4), chosen)
    assert chosen.tolist() == [-1, 0, 0, -1]
    kernels.strongest(W, np.full(4, np.nan), rivals, np.arange(4), chosen)
    assert chosen.tolist() == [-1] * 4  # a mean that is no number makes nobody a rival


def test_widths_of_what_is_spanned(case):
    Y, R = case[0] - case[0][0], case[4]
    spanned, width = np.ones(9, dtype=bool), np.zeros(9)
    spanned[4] = False
    tested = kernels.widths(Y, R, spanned, width)
    assert np.flatnonzero(~tested).tolist() == [0, 4]
    assert np.allclose(width[tested], np.sqrt(np.sum((Y[tested] @ R.T) ** 2, axis=1)))
    assert (width[~tested] == 0.0).all()


def test_how_far_two_estimates_are_apart(case):
    *_, phi, R, other, _ = case
    before = fixed(2.0 * phi + 1.0)[0]
    V = R.T @ R + other.T @ other
    expected = (phi - before) @ np.linalg.solve(V, phi - before)
    assert kernels.difference_of(phi, before, R, other) == pytest.approx(expected)
    flat = np.zeros((3, 3))
    flat[0] = R[0]
    assert math.isnan(kernels.difference_of(phi, before, *fixed(flat, flat)))
    bad = fixed(np.full((3, 3), np.nan))[0]
    assert math.isnan(kernels.difference_of(phi, before, bad, other))
