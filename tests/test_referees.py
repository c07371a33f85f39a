"""The referees against each other and against closed forms."""

import numpy as np
import pytest

from tests import instances, referees

SMALL = {
    "gaussian": instances.gaussian(12, 3, seed=0),
    "sphere": instances.unit_sphere(15, 3, seed=1),
    "hypercube": instances.hypercube(3),
    "one-hot": instances.one_hot_factorial((2, 3)),
    "quadratic": instances.quadratic_grid(2, 3),
    "clusters": instances.clusters(1e-3, centres=3, size=4, d=2, seed=2),
    "duplicates": instances.with_duplicates(instances.gaussian(8, 2, seed=3), copies=4, seed=4),
    "scaled": instances.scaled_columns(instances.gaussian(10, 3, seed=5)),
    "paper": instances.paper(4, 0.1).features,
    "plane": instances.plane(9),
}
CLOSED = [
    pytest.param(form.features, criterion, value, id=f"{form.name}-{criterion}")
    for form in referees.closed_forms()
    for criterion, value in form.values.items()
]


@pytest.fixture(params=list(SMALL.values()), ids=list(SMALL))
def features(request):
    return request.param


def oracle_directions(truth):
    best = truth.features @ truth.theta
    y = truth.features[best.argmax()] - np.delete(truth.features, best.argmax(), axis=0)
    return y / (y @ truth.theta)[:, None]


@pytest.mark.parametrize(("X", "criterion", "expected"), CLOSED)
def test_closed_forms(X, criterion, expected):
    found = referees.optimum(X, criterion)
    assert found.value == pytest.approx(expected, rel=1e-6)
    assert found.lower_bound == pytest.approx(expected, rel=1e-6)
    assert found.lower_bound <= expected * (1 + 1e-9)


@pytest.mark.parametrize("criterion", ["g", "xy", "v"])
def test_optimum_is_a_design_with_a_closed_gap(features, criterion):
    found = referees.optimum(features, criterion)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights.min() >= 0.0
    assert -1e-9 <= found.gap <= 2e-6


def test_g_by_ellipsoid_and_by_matrix_inequalities_reach_the_rank(features):
    rank = np.linalg.matrix_rank(features / np.abs(features).max(axis=0))
    stated = referees.directions_optimum(features, features)
    assert stated.value == pytest.approx(rank, rel=2e-6)
    assert stated.lower_bound == pytest.approx(rank, rel=2e-6)
    assert referees.g_optimum(features, by_ellipsoid=True).value == pytest.approx(rank, rel=1e-4)


@pytest.mark.parametrize("criterion", ["g", "xy"])
def test_bound_from_a_design_agrees_with_bound_from_dual_variables(features, criterion):
    found = referees.optimum(features, criterion)
    Y = referees.directions_of(features, criterion)
    bound = referees.lower_bound(features, found.weights, Y)
    assert bound <= found.value * (1 + 1e-9)
    assert bound == pytest.approx(found.lower_bound, rel=1e-4)


@pytest.mark.parametrize("criterion", ["g", "xy", "v"])
def test_no_design_is_below_the_lower_bound(features, criterion):
    bound = referees.optimum(features, criterion).lower_bound
    rng = np.random.default_rng(7)
    for lam in rng.dirichlet(np.full(len(features), 0.5), size=50):
        assert referees.criterion_value(features, lam, criterion) >= bound * (1 - 1e-9)


def test_v_is_the_best_of_a_grid_of_designs():
    X = np.array([[1.0, 0.0], [0.3, 1.0], [1.0, 1.0]])
    steps = np.arange(1, 100) / 100
    grid = [(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1]
    best = min(referees.criterion_value(X, np.array(lam), "v") for lam in grid)
    assert referees.v_optimum(X).value <= best <= referees.v_optimum(X).value * 1.001


def test_tiny_weights_of_the_oracle_on_the_paper_instance():
    truth = instances.paper(5, 0.01)
    found = referees.optimum(truth.features, oracle_directions(truth))
    assert found.gap <= 2e-6
    np.testing.assert_allclose(found.weights[2:5], 2.4874e-5, rtol=1e-3)


def test_value_agrees_with_the_pseudo_inverse(features):
    lam = np.random.default_rng(8).dirichlet(np.ones(len(features)))
    X = features / np.abs(features).max(axis=0)
    pinv = np.linalg.pinv((X.T * lam) @ X, hermitian=True)
    expected = max(float(y @ pinv @ y) for y in referees.all_pairs(X))
    assert referees.criterion_value(features, lam, "xy") == pytest.approx(expected, rel=1e-6)


def test_value_is_infinite_outside_the_row_space_of_the_support():
    X = np.eye(3)
    assert referees.value(X, np.array([0.5, 0.5, 0.0]), X[:2]) == pytest.approx(2.0)
    assert referees.value(X, np.array([0.5, 0.5, 0.0]), X) == np.inf
    with pytest.raises(ValueError, match="outside the span"):
        referees.directions_optimum(X[:2], X)


@pytest.mark.parametrize("block", [4, 1000])
def test_farthest_pair_in_blocks(features, block):
    lam = np.random.default_rng(9).dirichlet(np.ones(len(features)))
    i, j, largest = referees.farthest_pair(features, lam)
    assert referees.value(features, lam, features[[i]] - features[[j]]) == pytest.approx(largest)
    assert referees.xy_value(features, lam, block) == pytest.approx(largest, rel=1e-9)


def test_greedy_step_breaks_ties_by_reduction_then_index():
    basis = np.eye(3)
    # e_0 and e_1 tie with variance 1: pulling e_2 leaves the maximum and reduces nothing.
    assert referees.greedy_step(basis, np.array([1.0, 1.0, 4.0]), basis) == 0
    assert referees.greedy_step(basis[::-1], np.array([4.0, 1.0, 1.0]), basis) == 1
    assert referees.greedy_step(basis, np.array([2.0, 1.0, 4.0]), basis) == 1


def test_greedy_leaves_no_arm_behind_on_the_paper_instance():
    X = instances.paper(3, 0.01).features
    counts = np.array([1.0, 1.0, 1.0, 0.0])
    for _ in range(60):
        counts[referees.greedy_step(X, counts, referees.all_pairs(X))] += 1.0
    assert counts[:3].min() > 5.0
