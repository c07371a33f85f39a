"""Widths against brute force, hand-checked numbers and simulated error rates."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from finalist.errors import BoundError
from finalist.inference.bounds import (
    Bound,
    adaptive_radius,
    determinant_radius,
    kl_bernoulli,
    lower_bound_pulls,
    smallest_pulls,
    static_radius,
)

BOUNDS: list[Bound] = ["soare", "sharp"]


def test_static_radius_by_hand():
    # n = 2, K = 3, delta = 1/2: soare log(6/pi^2 * 4 * 9 * 2), sharp log(pi^2 * 4 * 6 * 2 / 6)
    soare = 2 * math.sqrt(2) * 1.5 * math.sqrt(math.log(432 / math.pi**2))
    sharp = 1.5 * math.sqrt(2 * math.log(8 * math.pi**2))
    assert static_radius(2, 3, 0.5, 1.5, "soare") == pytest.approx(soare, rel=1e-14)
    assert static_radius(2, 3, 0.5, 1.5, "sharp") == pytest.approx(sharp, rel=1e-14)


@pytest.mark.parametrize("bound", BOUNDS)
def test_static_radius_vectorised_and_without_overflow(bound):
    n = np.array([1, 7, 10**6, 10**18])
    radii = static_radius(n, 10**9, 1e-12, 2.0, bound)
    assert radii.shape == (4,)
    assert list(radii) == [static_radius(int(k), 10**9, 1e-12, 2.0, bound) for k in n]
    assert np.all(np.diff(radii) > 0)
    assert type(static_radius(3, 2, 0.1, 1.0, bound)) is float


def test_static_radius_of_one_arm():
    assert static_radius(5, 1, 0.05, 1.0, "sharp") == 0.0
    assert static_radius(1, 1, 0.9, 1.0, "soare") == 0.0  # the logarithm is negative


def test_adaptive_radius_by_hand():
    # sigma sqrt(d log((1 + n L^2 / eta) / delta)) + sqrt(eta) S with n L^2 / eta = 9
    expected = 2 * math.sqrt(3 * math.log(100)) + 2 * 5
    assert adaptive_radius(4, 3, 0.1, 2.0, L=3.0, S=5.0, eta=4.0) == pytest.approx(expected)
    radii = adaptive_radius(np.array([4, 5]), 3, 0.1, 2.0, L=3.0, S=5.0, eta=4.0)
    assert radii[0] == pytest.approx(expected)
    assert radii[1] > radii[0]


def test_adaptive_radius_refuses_one_feature():
    with pytest.raises(BoundError, match="determinant_radius"):
        adaptive_radius(10, 1, 0.1, 1.0, L=1.0, S=1.0)


def test_determinant_radius_by_hand():
    # det(A + eta I) / det(eta I) = 16: sigma sqrt(2 log(4 / delta)) + sqrt(eta) S
    expected = 3 * math.sqrt(2 * math.log(40)) + 2 * 5
    assert determinant_radius(math.log(16), 0.1, 3.0, S=5.0, eta=4.0) == pytest.approx(expected)


@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("delta", [0.5, 0.01])
def test_determinant_form_is_never_wider(d, delta):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(40, d))
    L = float(np.linalg.norm(x, axis=1).max())
    for n in (1, 5, 40):
        _, log_det = np.linalg.slogdet(np.eye(d) + x[:n].T @ x[:n] / 0.3)
        tight = determinant_radius(float(log_det), delta, 1.0, S=1.0, eta=0.3)
        assert tight <= adaptive_radius(n, d, delta, 1.0, L=L, S=1.0, eta=0.3)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("h", [0.0, 1e-12, 0.01, 0.3, 1.0, 7.7, 250.0])
def test_smallest_pulls_against_brute_force(h, bound):
    n = np.arange(1, 400_000)
    holds = h * static_radius(n, 4, 0.05, 1.0, bound) ** 2 <= n
    assert smallest_pulls(h, lambda k: static_radius(k, 4, 0.05, 1.0, bound)) == n[holds][0]


def test_smallest_pulls_at_every_boundary():
    # The condition changes at integers for these h, where an off-by-one shows.
    def radius(k):
        return 2.0

    assert [smallest_pulls(h / 4, radius) for h in range(1, 70)] == list(range(1, 70))


def test_smallest_pulls_takes_the_first_when_larger_ones_fail():
    def radius(k):
        return static_radius(k, 2, 0.9, 1.0)

    h = 0.385
    assert h * radius(1) ** 2 <= 1
    assert h * radius(2) ** 2 > 2
    assert smallest_pulls(h, radius) == 1


@pytest.mark.parametrize("h", [1e6, 1e9, 1e12])
def test_smallest_pulls_is_a_sharp_boundary(h):
    def radius(k):
        return static_radius(k, 100, 0.05, 1.0)

    n = smallest_pulls(h, radius)
    assert h * radius(n) ** 2 <= n
    assert h * radius(n - 1) ** 2 > n - 1


def test_smallest_pulls_says_when_there_is_none():
    with pytest.raises(BoundError, match="no number of pulls"):
        smallest_pulls(2.0, math.sqrt)
    with pytest.raises(BoundError, match="h is inf"):
        smallest_pulls(math.inf, math.sqrt)


def test_kl_bernoulli():
    assert kl_bernoulli(0.5, 0.25) == pytest.approx(0.5 * math.log(4 / 3), rel=1e-14)
    assert kl_bernoulli(0.3, 0.3) == 0.0
    assert kl_bernoulli(0.0, 0.5) == pytest.approx(math.log(2))
    assert kl_bernoulli(1.0, 0.5) == pytest.approx(math.log(2))
    assert kl_bernoulli(0.0, 0.0) == kl_bernoulli(1.0, 1.0) == 0.0
    assert kl_bernoulli(0.5, 0.0) == kl_bernoulli(0.5, 1.0) == math.inf
    assert kl_bernoulli(1.0, 5e-324) == pytest.approx(1074 * math.log(2))


@pytest.mark.parametrize("delta", [1e-300, 1e-3, 0.05, 0.49])
def test_lower_bound_pulls(delta):
    expected = 3.0 * (1 - 2 * delta) * math.log((1 - delta) / delta)
    assert lower_bound_pulls(3.0, delta) == pytest.approx(expected, rel=1e-12)


def test_lower_bound_is_a_relative_entropy():
    assert lower_bound_pulls(1.0, 0.1) == pytest.approx(kl_bernoulli(0.1, 0.9), rel=1e-12)


def test_lower_bound_is_empty_when_guessing_may_do():
    assert lower_bound_pulls(3.0, 0.5) == lower_bound_pulls(3.0, 0.9) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: static_radius(10, 2, 0.0, 1.0), "delta is 0"),
        (lambda: static_radius(10, 2, math.nan, 1.0), "delta is nan"),
        (lambda: static_radius(10, 2, 0.1, -1.0), "sigma is -1"),
        (lambda: static_radius(0, 2, 0.1, 1.0), "n is 0"),
        (lambda: static_radius(10, 0, 0.1, 1.0), "K is 0"),
        (lambda: static_radius(10, 2, 0.1, 1.0, "blunt"), "bound is 'blunt'"),  # type: ignore[call-overload]
        (lambda: adaptive_radius(10, 2, 0.1, 1.0, L=1.0, S=1.0, eta=0.0), "eta is 0"),
        (lambda: adaptive_radius(10, 2, 0.1, 1.0, L=1.0, S=-1.0), "S is -1"),
        (lambda: adaptive_radius(-1, 2, 0.1, 1.0, L=1.0, S=1.0), "n is -1"),
        (lambda: adaptive_radius(1, 2, 0.1, 1.0, L=math.inf, S=1.0), "L is inf"),
        (lambda: determinant_radius(-0.1, 0.1, 1.0, S=1.0), "log_det_ratio is -0.1"),
        (lambda: kl_bernoulli(1.1, 0.5), "p is 1.1"),
        (lambda: kl_bernoulli(0.5, math.nan), "q is nan"),
        (lambda: lower_bound_pulls(-1.0, 0.1), "t_star is -1"),
    ],
)
def test_wrong_values_are_named(call, message):
    with pytest.raises(BoundError, match=message):
        call()


def failures_of_static_radius(factor, delta, runs=1500, n_max=240) -> tuple[int, int]:
    """Count runs of a fixed sequence in which some gap leaves factor * radius for some n."""
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
    rows = x[np.arange(n_max) % 3]
    noise = np.random.default_rng(2014).normal(size=(runs, n_max))
    b = np.cumsum(noise[:, :, None] * rows, axis=1)
    A = np.cumsum(rows[:, :, None] * rows[:, None, :], axis=0)
    directions = np.array([x[i] - x[j] for i in range(3) for j in range(3) if i != j])
    failed = np.zeros(runs, dtype=bool)
    for n in range(2, n_max + 1):
        inverse = np.linalg.inv(A[n - 1])
        errors = b[:, n - 1] @ inverse @ directions.T
        norms = np.sqrt(np.einsum("ij,jk,ik->i", directions, inverse, directions))
        failed |= np.any(errors > factor * static_radius(n, 3, delta, 1.0) * norms, axis=1)
    return int(failed.sum()), runs


def is_refuted(failures, runs, delta):
    """Tell whether an error rate of delta would give so many failures less than once in 10^4."""
    return bool(binom.sf(failures - 1, runs, delta) < 1e-4)


@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_sharp_radius_holds_and_a_third_of_it_does_not(delta):
    assert not is_refuted(*failures_of_static_radius(1.0, delta), delta)
    assert is_refuted(*failures_of_static_radius(1 / 3, delta), delta)
