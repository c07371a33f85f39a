"""Designs where noise, cost and roles of arms differ, against cvxpy and against plain designs."""

import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import finalist as fl
from finalist.design.optimal import design_value, optimal_design
from finalist.errors import DesignError


def worst(X, Y, lam, sigma, cost):
    """The largest y'Lambda^-1 y after one unit of cost spent in the shares lam of the pulls."""
    pulls = lam / (lam @ cost)
    L = (X * (pulls / sigma**2)[:, None]).T @ X
    return float(np.max(np.einsum("ij,ij->i", Y, np.linalg.solve(L, Y.T).T)))


def best_by_cvxpy(X, Y, sigma, cost):
    """The same, minimised: pulls p >= 0 with cost'p = 1."""
    cp: Any = importlib.import_module("cvxpy")

    p, t = cp.Variable(len(X), nonneg=True), cp.Variable()
    L = sum(p[i] / sigma[i] ** 2 * np.outer(X[i], X[i]) for i in range(len(X)))
    blocks = [cp.bmat([[L, y[:, None]], [y[None, :], cp.reshape(t, (1, 1), "C")]]) >> 0 for y in Y]
    problem = cp.Problem(cp.Minimize(t), [cost @ p == 1, *blocks])
    problem.solve(solver="CLARABEL")
    return float(t.value)


def pairs_of(X):
    first, second = np.triu_indices(len(X), 1)
    return X[first] - X[second]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["g", "xy"]))
def test_the_optimum_is_that_of_cvxpy(seed, criterion):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, 3))
    sigma, cost = rng.uniform(0.3, 3.0, 8), rng.uniform(0.3, 3.0, 8)
    mask = np.arange(8) < 5
    arms = fl.Arms(X, measurable=mask)
    found = optimal_design(arms, criterion, 1e-6, sigma=sigma, cost=cost)
    assert found.solved
    assert found.weights[~mask].sum() == 0
    assert found.weights.sum() == pytest.approx(1.0)
    Y = X if criterion == "g" else pairs_of(X)
    value = worst(X[mask], Y, found.weights[mask], sigma[mask], cost[mask])
    assert found.value == pytest.approx(value, rel=1e-6)
    optimum = best_by_cvxpy(X[mask], Y, sigma[mask], cost[mask])
    assert found.lower_bound <= optimum * (1 + 1e-5)
    assert value <= optimum * (1 + 1e-4)
    again = design_value(arms, found.weights, criterion, sigma=sigma, cost=cost)
    assert again == pytest.approx(value, rel=1e-9)


def test_the_mean_variance_of_candidates():
    rng = np.random.default_rng(2)
    X, C = rng.standard_normal((6, 2)), rng.standard_normal((9, 2)) * [5.0, 0.1]
    arms = fl.Arms(X).with_candidates(fl.Arms(C))
    found = optimal_design(arms, "v", 1e-8)
    L = (X * found.weights[:6][:, None]).T @ X
    mean = np.mean(np.einsum("ij,ij->i", C, np.linalg.solve(L, C.T).T))
    assert found.value == pytest.approx(float(mean), rel=1e-9)
    for _ in range(50):
        other = rng.dirichlet(np.ones(6))
        L = (X * other[:, None]).T @ X
        assert np.mean(np.einsum("ij,ij->i", C, np.linalg.solve(L, C.T).T)) >= mean * (1 - 1e-7)


def test_equal_noise_and_cost_change_only_the_value():
    arms = fl.Arms(np.random.default_rng(3).standard_normal((10, 3)))
    plain = optimal_design(arms, "xy", 1e-7)
    scaled = optimal_design(arms, "xy", 1e-7, sigma=2.0, cost=3.0)
    assert scaled.value == pytest.approx(12.0 * plain.value, rel=1e-6)
    assert design_value(arms, scaled.weights, "xy") == pytest.approx(plain.value, rel=1e-6)


def test_cheap_and_quiet_arms_get_more():
    arms = fl.Arms.unstructured(2)
    # Variance s_i^2 / p_i with c'p = 1: p_i proportional to s_i / sqrt(c_i) ... for xy.
    found = optimal_design(arms, "xy", 1e-9, sigma=[1.0, 2.0], cost=[4.0, 1.0])
    assert found.weights[0] / found.weights[1] == pytest.approx(0.5 / 2.0, rel=1e-4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"sigma": [1.0]}, "sigma has 1 value for 3 arms"),
        ({"cost": [1.0, -1.0, 2.0]}, "cost is"),
        ({"cost": "much"}, "cost is 'much'"),
    ],
)
def test_what_is_no_noise_or_cost_is_refused(words, message):
    with pytest.raises(DesignError, match=message):
        optimal_design(fl.Arms.unstructured(3), "xy", **words)


def test_an_arm_that_cannot_be_pulled_has_no_weight():
    arms = fl.Arms(np.eye(3), measurable=[True, True, False])
    with pytest.raises(DesignError, match="'x3' has weight 1 and cannot be pulled"):
        design_value(arms, np.array([0.0, 0.0, 1.0]), "xy")
