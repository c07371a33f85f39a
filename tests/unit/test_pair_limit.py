"""The pair limit against closed forms, vertices of its linear program, and tests of its pair."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import finalist as fl
from finalist.complexity.pairs import cheapest_difference
from finalist.errors import NotYetSupportedError, ProblemError, TiedArmsError
from finalist.problem import as_problem
from tests import instances


def by_vertices(X, scale, y):
    """Minimise sum s_i |a_i| over all ways to write y with r arms: a vertex is a minimum."""
    least, r = math.inf, np.linalg.matrix_rank(X)
    for some in map(list, combinations(range(len(X)), r)):
        if np.linalg.matrix_rank(X[some]) == r:
            a = np.linalg.lstsq(X[some].T, y, rcond=None)[0]
            if np.allclose(X[some].T @ a, y):
                least = min(least, float(np.abs(a) @ scale[some]))
    return least


def test_arms_without_features_have_rho_2():
    limit = fl.pair_limit(fl.Arms.unstructured(5), [0.1, 0.9, 0.5, 0.0, 0.3], sigma=2.0)
    assert (limit.best, limit.rival) == (1, 2)
    assert limit.gap == pytest.approx(0.4)
    assert limit.rho == pytest.approx(4.0)  # 2 sigma
    assert limit.error(100) == pytest.approx(norm.cdf(-1.0))  # .4 10 / 4
    assert limit.error(0) == 0.5


@pytest.mark.parametrize("omega", [0.01, 0.1, 0.5])
def test_the_papers_instance(omega):
    # x_1 - x_k = (1 - cos omega) e_1 - sin omega e_2; x_k itself would cost 1 more for e_1.
    truth = instances.paper(6, omega)
    limit = fl.pair_limit(fl.Arms(truth.features), truth.theta, sigma=1.0)
    assert limit.rival == 6
    assert limit.gap == pytest.approx(2 * (1 - math.cos(omega)))
    assert limit.rho == pytest.approx(1 - math.cos(omega) + math.sin(omega), rel=1e-9)


def test_a_two_level_factorial_has_rho_2_for_an_effect():
    # Every pull tells equally much about every effect: y = 2 e_j, |x_i'u| <= 1 gives u = e_j.
    X = instances.hypercube(4)
    limit = fl.pair_limit(fl.Arms(X), [1.0, 0.8, 0.6, 0.1], sigma=1.0)
    assert limit.gap == pytest.approx(0.2)
    assert limit.rho == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(6))
def test_rho_is_the_best_vertex(seed):
    rng = np.random.default_rng(seed)
    X, scale = rng.standard_normal((7, 3)), rng.uniform(0.5, 2.0, 7)
    y = X[0] - X[1]
    assert cheapest_difference(X, scale, y) == pytest.approx(by_vertices(X, scale, y), rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_rival_is_the_one_with_the_largest_limit(seed):
    rng = np.random.default_rng(seed)
    X, theta = rng.standard_normal((8, 3)), rng.standard_normal(3)
    sigma = rng.uniform(0.5, 2.0, 8)
    limit = fl.pair_limit(fl.Arms(X), theta, sigma=sigma)
    best = int(np.argmax(X @ theta))
    ratios = {
        j: (X[best] - X[j]) @ theta / by_vertices(X, sigma, X[best] - X[j])
        for j in range(8)
        if j != best
    }
    rival = min(ratios, key=ratios.__getitem__)
    assert (limit.best, limit.rival) == (best, rival)
    assert limit.gap / limit.rho == pytest.approx(ratios[rival], rel=1e-8)
    for words in ({"objective": "min"}, {}):
        sign, unit = (-1.0, 1.0) if words else (1e9, 1e-9)  # nothing depends on the units
        same = fl.pair_limit(fl.Arms(unit * X), sign * theta, sigma=sigma, **words)
        assert same.rival == limit.rival
        assert same.error(30) == pytest.approx(limit.error(30))


def test_candidates_that_cannot_be_measured():
    # e_1 and e_2 are measured, the candidates are (1, 0) 3 and (0, 1) 2: rho = 3 + 2 there.
    arms, candidates = fl.Arms(np.eye(2)), fl.Arms([[3.0, 0.0], [0.0, 2.0]])
    problem = as_problem(arms, sigma=1.0, candidates=candidates)
    limit = fl.pair_limit(problem, [1.0, 1.0])
    assert limit.rho == pytest.approx(5.0)
    assert limit.gap == pytest.approx(1.0)
    names = problem.arms.features[[limit.best, limit.rival]]
    np.testing.assert_array_equal(names, [[3.0, 0.0], [0.0, 2.0]])


def test_complexity_has_it():
    c = fl.complexity(fl.Arms.unstructured(3), np.array([1.0, 0.5, 0.0]), sigma=1.0)
    assert c.pair_limit(64) == pytest.approx(norm.cdf(-2.0))


def mean_error(X, theta, other, counts, runs, rng):
    """Count errors of least squares under both parameters, pull by pull."""
    rows, wrong = np.repeat(X, counts, axis=0), 0.0
    for parameter in (theta, other):
        rewards = rows @ parameter + rng.standard_normal((runs, len(rows)))
        named = (rewards @ np.linalg.pinv(rows).T @ X.T).argmax(axis=1)
        wrong += float((named != (X @ parameter).argmax()).mean()) / 2.0
    return wrong


def test_no_allocation_is_below_it_and_that_of_the_linear_program_attains_it():
    # The plane with omega = .5: two arms to measure matter, x_1 and x_2.
    truth, T, runs = instances.paper(2, 0.5), 40, 20_000
    X, theta = truth.features, truth.theta
    limit = fl.pair_limit(fl.Arms(X), theta, sigma=1.0)
    u = np.array([1.0, -1.0])  # |x_i'u| <= 1, and y'u = 1 - cos + sin: the dual solution
    assert np.abs(X @ u).max() <= 1.0
    other = theta - 2 * limit.gap / limit.rho * u
    assert X[limit.rival] @ other - X[limit.best] @ other == pytest.approx(limit.gap)
    y, rng = X[limit.best] - X[limit.rival], np.random.default_rng(0)
    shares = T * np.append(np.abs(y), 0.0) / np.abs(y).sum()  # a = y on the canonical basis
    counts = {"theirs": np.round(shares).astype(int), "equal": np.array([14, 13, 13])}
    found = {name: mean_error(X, theta, other, n, runs, rng) for name, n in counts.items()}
    spread = 4 * math.sqrt(0.25 / runs)
    assert limit.error(T) - spread < found["theirs"] < limit.error(T) + 0.02
    assert found["equal"] > limit.error(T) + spread


def test_what_has_no_proof_is_refused():
    arms, theta = fl.Arms.unstructured(3), [0.5, 0.3, 0.1]
    for words in ({"noise": "bernoulli"}, {"sigma": None}, {"sigma": 1.0, "top": 2}):
        with pytest.raises(NotYetSupportedError, match="pair limit"):
            fl.pair_limit(arms, theta, **words)
    with pytest.raises(TiedArmsError):
        fl.pair_limit(arms, [0.5, 0.5, 0.1], sigma=1.0)
    with pytest.raises(ProblemError, match="one candidate"):
        fl.pair_limit(fl.Arms.unstructured(1), [0.5], sigma=1.0)
    limit = fl.pair_limit(arms, theta, sigma=1.0)
    wrong: Any
    for wrong in (-1, math.inf, math.nan, "many"):
        with pytest.raises(ProblemError, match="budget is"):
            limit.error(wrong)
