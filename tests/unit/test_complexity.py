import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import finalist as fl
from finalist.complexity import hardness
from finalist.complexity.ties import closest_tie
from finalist.errors import BoundError, FinalistError, ProblemError, TiedArmsError
from finalist.inference.bounds import static_radius
from tests import instances


def paper(d=5, omega=0.01, **settings):
    truth = instances.paper(d, omega)
    return fl.complexity(fl.Arms(truth.features), truth.theta, **{"sigma": 1.0, **settings})


def test_the_papers_example():
    c = paper()
    # Reading of the paper's own instance: H_LB = 1.01e4, lower bound about 53,530 pulls.
    assert c.h_lb == pytest.approx(1.01e4, rel=2e-3)
    assert c.lower_bound == pytest.approx(53_530, rel=1e-3)
    assert c.t_star == pytest.approx(2 * c.h_lb)
    assert c.delta_min == pytest.approx(2 - 2 * math.cos(0.01))
    # The oracle pulls x_2 two hundred times as often as x_1.
    assert c.oracle_design.weights[1] / c.oracle_design.weights[0] == pytest.approx(200, rel=0.05)


def test_the_printed_lower_bound_of_lemma_2_is_false_and_ours_holds():
    c = paper()
    L = 1.0
    X = c.problem.arms.features
    largest = np.max(np.sum((X[c.best] - X[c.others]) ** 2, axis=1))
    printed = largest / (L * c.delta_min**2)
    assert printed > 1e4 * c.h_lb / 2
    assert c.bounds.lemma2_lower <= c.h_lb <= c.bounds.lemma2_upper


def test_oracle_budget_solves_the_implicit_equation():
    for bound in ("soare", "sharp"):
        c = paper(bound=bound)
        n = c.oracle_budget
        assert c.h_lb * c.radius(n) ** 2 <= n
        assert c.h_lb * c.radius(n - 1) ** 2 > n - 1
        assert c.radius(n) == static_radius(n, 6, 0.05, 1.0, bound)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0.05, 3.0), min_size=1, max_size=8))
def test_unstructured_arms_reduce_to_the_classical_complexity(gaps):
    theta = np.concatenate([[3.0], 3.0 - np.array(gaps)])
    c = fl.complexity(fl.Arms.unstructured(len(theta)), theta, sigma=1.0)
    assert c.h_mab <= c.h_lb * (1 + 1e-6)
    assert c.h_lb <= 2 * c.h_mab * (1 + 1e-6)


def test_h_mab_counts_the_best_arm_with_the_smallest_gap():
    c = fl.complexity(fl.Arms.unstructured(3), np.array([1.0, 0.5, 0.2]), sigma=1.0)
    assert c.h_mab == pytest.approx(4 + 4 + 1 / 0.64)


def test_gaps_keep_the_digits_that_large_features_hide():
    c = fl.complexity(fl.Arms([[1e14, 0.125], [1e14, 0.0]]), np.array([1.0, 1.0]), sigma=1.0)
    assert c.delta_min == 0.125


@pytest.mark.parametrize("size", [1e-60, 1e-9, 1.0, 1e9, 1e60])
def test_m_star_does_not_depend_on_the_unit_of_the_rewards(size):
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    plain = fl.complexity(arms, np.array([1.0, 0.2]), sigma=1.0)
    scaled = fl.complexity(arms, size * np.array([1.0, 0.2]), sigma=size)
    assert scaled.m_star == pytest.approx(plain.m_star, abs=1)
    assert scaled.lower_bound == pytest.approx(plain.lower_bound)


def test_m_star_of_tiny_gaps():
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    assert fl.complexity(arms, np.array([1e-7, 0.2e-7]), sigma=1.0).m_star > 1e12


@pytest.mark.parametrize("theta", [[1e200, 0.0], [1e-300, 0.0], [1e308, 1e308]])
def test_sizes_that_cannot_be_squared_are_refused(theta):
    with pytest.raises(FinalistError):
        fl.complexity(fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]), np.array(theta), sigma=1.0)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 4))
def test_lemma_2_on_random_arms(seed, K, d):
    rng = np.random.default_rng(seed)
    arms = fl.Arms(rng.standard_normal((K, d)))
    c = fl.complexity(arms, rng.standard_normal(d), sigma=1.0)
    assert c.bounds.lemma2_lower <= c.h_lb * (1 + 1e-6)
    assert c.h_lb <= c.bounds.lemma2_upper * (1 + 1e-6)


def brute_closest_tie(c, rng, tries=200_000):
    """Random parameters at which two suboptimal arms are best together: the smallest scale."""
    from finalist.inference.information import information

    arms = c.problem.arms
    Z, phi = arms.coordinates, arms.parameter_to_span(c.theta)
    design = fl.optimal_design(arms, "xy")
    Y = Z[c.best] - Z[c.others]
    norms = np.sqrt(information(Z, design.weights).variances(Y))
    smallest = math.inf
    T = rng.standard_normal((tries, Z.shape[1])) * 2 + phi
    for a in c.others:
        for b in c.others:
            if a < b:
                v = Z[a] - Z[b]
                P = T - np.outer(T @ v, v) / (v @ v)
                values = P @ Z.T
                best = values.max(axis=1) <= values[:, a] + 1e-9
                if best.any():
                    scale = ((phi - P[best]) @ Y.T / norms).max(axis=1)
                    smallest = min(smallest, scale.min())
    return smallest


@pytest.mark.parametrize("seed", range(4))
def test_m_star_against_random_search(seed):
    rng = np.random.default_rng(seed)
    c = fl.complexity(fl.Arms(rng.standard_normal((6, 2))), rng.standard_normal(2), sigma=1.0)
    exact = closest_tie(c.problem.arms, c.problem.arms.parameter_to_span(c.theta), c.best, c.gaps)
    found = brute_closest_tie(c, rng)
    assert exact <= found * (1 + 1e-6)
    assert found <= exact * 1.1
    n = c.m_star
    assert c.radius(n) <= exact * math.sqrt(n) * (1 + 1e-12)
    assert n == 1 or c.radius(n - 1) > exact * math.sqrt(n - 1) * (1 - 1e-12)


def test_m_star_needs_two_suboptimal_arms():
    assert fl.complexity(fl.Arms.unstructured(2), np.array([1.0, 0.0]), sigma=1.0).m_star == 1


@pytest.mark.parametrize("bound", ["soare", "sharp"])
def test_theorem_budgets(bound):
    c = paper(bound=bound)
    n, p, r = c.bounds.theorem1, 16, 5
    assert 16 * r * c.radius(n) ** 2 <= c.delta_min**2 * (n - p)
    assert 16 * r * c.radius(n - 1) ** 2 > c.delta_min**2 * (n - 1 - p)
    assert c.bounds.theorem2 == c.bounds.theorem1
    assert c.lower_bound < c.oracle_budget < c.bounds.theorem3
    assert c.oracle_budget < c.bounds.theorem1


def test_budget_of_a_design():
    c = paper()
    assert c.budget(c.oracle_design) == pytest.approx(c.oracle_budget, rel=1e-6)
    xy = fl.optimal_design(c.problem.arms, "xy")
    # On the basis, XY gives 1/5 to x_2 where the oracle gives nearly all: about five times.
    assert 4 * c.oracle_budget < c.budget(xy) < 7 * c.oracle_budget
    one = fl.complexity(fl.Arms([[1.0]]), np.array([1.0]), sigma=1.0)
    assert one.budget(one.oracle_design) == 1


def test_scaling_rules():
    c, doubled = paper(), paper(sigma=2.0)
    assert doubled.h_lb == c.h_lb
    assert doubled.lower_bound == pytest.approx(4 * c.lower_bound)
    X, theta = instances.gaussian(12, 3, 0), np.array([1.0, -2.0, 0.5])
    plain = fl.complexity(fl.Arms(X), theta, sigma=1.0)
    for scale in (1e-150, 1e150):
        scaled = fl.complexity(fl.Arms(X * scale), theta / scale, sigma=1.0)
        assert scaled.h_lb == pytest.approx(plain.h_lb, rel=1e-5)
        assert scaled.m_star == pytest.approx(plain.m_star, rel=1e-4)
        assert scaled.bounds.lemma2_lower == pytest.approx(plain.bounds.lemma2_lower, rel=1e-6)


def test_minimising_is_maximising_the_opposite():
    X, theta = instances.gaussian(12, 3, 0), np.array([1.0, -2.0, 0.5])
    least = fl.complexity(fl.Arms(X), -theta, objective="min", sigma=1.0)
    most = fl.complexity(fl.Arms(X), theta, sigma=1.0)
    assert least.best == most.best
    assert least.h_lb == pytest.approx(most.h_lb, rel=1e-9)
    assert least.m_star == most.m_star


def test_a_single_arm_needs_no_pull():
    c = fl.complexity(fl.Arms([[1.0, 2.0]]), np.array([1.0, 1.0]), sigma=1.0)
    assert (c.h_lb, c.h_mab, c.lower_bound, c.oracle_budget, c.m_star) == (0.0, 0.0, 0.0, 1, 1)
    assert c.bounds.theorem1 == 1


def test_tied_arms_are_named():
    with pytest.raises(TiedArmsError, match="'a' and 'c' are equally good"):
        fl.complexity(fl.Arms.unstructured(["a", "b", "c"]), np.array([1.0, 0.0, 1.0]), sigma=1.0)


def test_nothing_costly_happens_before_it_is_read(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a design was solved")

    monkeypatch.setattr(hardness, "solve_task", refuse)
    c = paper()
    assert c.delta_min > 0
    assert c.h_mab > 0
    with pytest.raises(AssertionError):
        _ = c.h_lb


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"theta": np.ones(4)}, FinalistError),
        ({"theta": np.array([1.0, np.nan, 0.0])}, FinalistError),
        ({"sigma": -1.0}, ProblemError),
        ({"sigma": None}, FinalistError),
        ({"delta": 1.0}, ProblemError),
        ({"bound": "best"}, BoundError),
        ({"alpha": 1.0}, ProblemError),
        ({"objective": "most"}, ProblemError),
    ],
)
def test_bad_input_is_refused(change, error):
    arguments = {"arms": fl.Arms.unstructured(3), "theta": np.array([1.0, 0.5, 0.0]), "sigma": 1.0}
    with pytest.raises(error):
        fl.complexity(**{**arguments, **change})


def test_importing_the_module_does_not_hide_the_function():
    import finalist.complexity  # noqa: F401

    assert callable(fl.complexity)
