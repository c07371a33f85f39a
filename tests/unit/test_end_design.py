"""`design.end` beside the integral that it is the derivative of, and a search by brute force."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from finalist.design.end import end_design, errors_at_end
from finalist.design.kernels.end import log_slope


def error_at_end(lead: float, now: float, left: float, epsilon: float) -> float:
    """Return the mean probability that the arm with the larger estimate is worse by epsilon."""
    if now <= left:
        return float(norm.cdf(-(abs(lead) + epsilon) / np.sqrt(left)))
    spread = np.sqrt(now - left)

    def integrand(e: float) -> float:
        return float(norm.pdf(e, lead, spread) * norm.cdf(-(abs(e) + epsilon) / np.sqrt(left)))

    ends = (lead - 12 * spread, lead + 12 * spread)
    points = [0.0] if ends[0] < 0 < ends[1] else None
    return float(quad(integrand, *ends, points=points, limit=200)[0])


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize(("lead", "now", "left"), [(0.0, 1.0, 0.5), (0.7, 0.4, 0.1), (2, 1, 0.2)])
def test_slopes_are_the_derivative_of_the_error(lead, now, left, epsilon):
    step = 1e-4 * left
    by_hand = (
        error_at_end(lead, now, left + step, epsilon)
        - error_at_end(lead, now, left - step, epsilon)
    ) / (2 * step)
    found = log_slope(float(lead), float(now), float(left), epsilon)
    assert np.exp(found) == pytest.approx(by_hand, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize(
    ("lead", "now", "left"), [(0.0, 1.0, 0.5), (0.7, 0.4, 0.1), (2, 1, 0.2), (9, 1, 0.9), (1, 2, 2)]
)
def test_errors_are_the_integral(lead, now, left, epsilon):
    found = errors_at_end(np.array([lead]), np.array([now]), np.array([left]), epsilon)
    assert found[0] == pytest.approx(error_at_end(lead, now, left, epsilon), rel=1e-3, abs=1e-12)


def sum_of_errors(Z, A, Y, leads, now, pulls, weights):
    inverse = np.linalg.inv(A + pulls * (Z.T * weights) @ Z)
    left = np.einsum("ij,jk,ik->i", Y, inverse, Y)
    return float(errors_at_end(leads, now, left).sum())


@pytest.mark.parametrize("seed", range(3))
def test_the_design_is_as_good_as_one_found_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    K, r, pulls = 5, 3, 60
    Z = rng.standard_normal((K, r))
    A = (Z.T * rng.integers(1, 4, K)) @ Z
    means = Z @ rng.standard_normal(r)
    order = np.argsort(-means)
    Y = Z[order[0]] - Z[order[1:]]
    leads = means[order[0]] - means[order[1:]]
    now = np.einsum("ij,jk,ik->i", Y, np.linalg.inv(A), Y)
    words = Z, A, Y, leads, now, pulls
    weights, _ = end_design(*words, np.full(K, 1 / K))

    def value(logits):
        shares = np.exp(logits - logits.max())
        return sum_of_errors(*words, shares / shares.sum())

    best = min(
        minimize(value, start, method="Nelder-Mead", options={"maxiter": 400}).fun
        for start in (np.zeros(K), np.log(weights + 1e-3))
    )
    even = sum_of_errors(*words, np.full(K, 1 / K))
    found = sum_of_errors(*words, weights)
    assert best <= found <= best + 0.1 * (even - best)


def test_arms_without_use_lose_their_weight():
    Z = np.array([[1.0, 0.0], [0.0, 1.0], [0.01, 0.01]])
    words = np.eye(2), np.array([[1.0, -1.0]]), np.array([0.1]), np.array([2.0])
    weights, M = end_design(Z, *words, 50, np.full(3, 1 / 3))
    assert weights[2] < 0.01
    assert weights[0] == pytest.approx(weights[1])
    assert np.allclose(M, M[0, 0] * np.array([[1.0, -1.0], [-1.0, 1.0]]))
