"""Every criterion on every family of arms: the certificate is reached, and it is true.

The referees do not use finalist: values are re-evaluated with plain NumPy over all arms,
pairs or directions, and the lower bound is held against designs found by cvxpy + Clarabel.
"""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from tests import instances, referees

FAMILIES = {
    "gaussian": instances.gaussian(60, 5, 0),
    "gaussian wide": instances.gaussian(300, 10, 1),
    "sphere": instances.unit_sphere(200, 5, 2),
    "sphere in the plane": instances.unit_sphere(60, 2, 3),
    "cube 3": instances.hypercube(3),
    "cube 7": instances.hypercube(7),
    "factorial 3x4x5": instances.one_hot_factorial((3, 4, 5)),
    "factorial 2^5": instances.one_hot_factorial((2,) * 5),
    "quadratic 2d": instances.quadratic_grid(2, 9),
    "quadratic 3d": instances.quadratic_grid(3, 5),
    **{
        f"clusters {spread:g}": instances.clusters(spread, 8, 12, 5, 4)
        for spread in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    },
    "one cluster": 1.0 + 1e-6 * instances.gaussian(50, 4, 5),
    "duplicates": instances.with_duplicates(instances.gaussian(40, 4, 6), 30, 6),
    "scaled columns": instances.scaled_columns(instances.gaussian(80, 6, 7)),
    "constant column": np.column_stack([np.ones(50), instances.gaussian(50, 3, 8)]),
    "more features than arms": instances.gaussian(6, 20, 9),
    "two arms": instances.gaussian(2, 2, 10),
    "two arms in 5d": instances.gaussian(2, 5, 11),
    "one feature": instances.gaussian(20, 1, 12),
    "collinear pair": np.array([[1.0, 0.0], [0.9, 0.0]]),
    "plus and minus": np.vstack([np.eye(6), -np.eye(6)]),
    "plane": instances.plane(60),
    **{f"paper {omega:g}": instances.paper(5, omega).features for omega in (0.1, 1e-2, 1e-3, 1e-4)},
    "paper d=10": instances.paper(10, 0.01).features,
}


def criteria(name: str, arms: fl.Arms) -> dict[str, Any]:
    """All criteria for a family: also the oracle's weighted directions, and single ones."""
    X = arms.features
    theta = np.random.default_rng(7).standard_normal(X.shape[1]) / np.maximum(
        np.abs(X).max(axis=0), 1e-300
    )
    if X[:, -1].max() == 0.0:
        theta[-1] = 0.0
    if name.startswith("paper"):
        theta = np.eye(X.shape[1])[0] * 2.0
    means = X @ theta
    best = int(means.argmax())
    rest = np.delete(np.arange(len(X)), best)
    Y = X[best] - X[rest]
    return {
        "g": "g",
        "d": "d",
        "xy": "xy",
        "v": "v",
        "oracle": Y / (means[best] - means[rest])[:, None],
        "single difference": Y[:1],
        "single arm": X[best : best + 1],
    }


CASES = [
    (name, key)
    for name in FAMILIES
    for key in ("g", "d", "xy", "v", "oracle", "single difference", "single arm")
]


@pytest.mark.parametrize(("name", "key"), CASES)
def test_gap_is_reached_and_true(name, key):
    arms = fl.Arms(FAMILIES[name])
    criterion = criteria(name, arms)[key]
    design = fl.optimal_design(arms, criterion, tol=1e-6)
    assert design.solved, design.status
    assert design.gap <= 1e-6
    assert design.weights.min() >= 0.0
    assert design.weights.sum() == pytest.approx(1.0, abs=1e-12)
    r = arms.rank
    assert len(design.support) <= r * (r + 1) // 2 + 1
    # The upper bound, over all pairs, by brute force; clusters of spread 1e-6 cost digits.
    true = referees.criterion_value(arms.features, design.weights, criterion)
    assert true == pytest.approx(design.value, rel=1e-7)


SMALL = {
    "gaussian": instances.gaussian(14, 3, 0),
    "sphere": instances.unit_sphere(14, 3, 2),
    "cube 3": instances.hypercube(3),
    "factorial 2x3x2": instances.one_hot_factorial((2, 3, 2)),
    "quadratic 1d": instances.quadratic_grid(1, 9),
    "clusters 1e-2": instances.clusters(1e-2, 4, 4, 3, 4),
    "clusters 1e-6": instances.clusters(1e-6, 4, 4, 3, 4),
    "scaled columns": instances.scaled_columns(instances.gaussian(12, 4, 7)),
    "more features than arms": instances.gaussian(4, 9, 9),
    "two arms": instances.gaussian(2, 2, 10),
    "paper 0.1": instances.paper(3, 0.1).features,
    "paper 0.01": instances.paper(5, 0.01).features,
    "paper 0.0001": instances.paper(3, 1e-4).features,
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("key", ["g", "xy", "v", "oracle", "single difference"])
def test_lower_bound_never_exceeds_what_cvxpy_finds(name, key):
    arms = fl.Arms(SMALL[name])
    criterion = criteria(name, arms)[key]
    design = fl.optimal_design(arms, criterion)
    referee = referees.optimum(arms.features, criterion)
    assert design.lower_bound <= referee.value * (1.0 + 1e-9)
    assert referee.lower_bound <= design.value * (1.0 + 1e-7)


@pytest.mark.parametrize("form", referees.closed_forms(), ids=lambda form: form.name)
def test_closed_forms_of_the_appendix(form):
    arms = fl.Arms(form.features)
    for criterion, value in form.values.items():
        design = fl.optimal_design(arms, criterion)
        assert design.value == pytest.approx(value, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("criterion", ["g", "xy", "v"])
def test_extreme_scales_change_nothing(criterion, scale):
    X = instances.gaussian(40, 4, 3)
    plain = fl.optimal_design(fl.Arms(X), criterion)
    scaled = fl.optimal_design(fl.Arms(X * scale), criterion)
    assert scaled.value == pytest.approx(plain.value, rel=2e-6)
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-4)


def test_tiny_optimal_weights_are_found():
    # omega = 1e-4 with the oracle's directions: where conic solvers report "optimal" and
    # are wrong by factors. Closed form: the direction x_1 - x_6 over its gap dominates.
    arms = fl.Arms(instances.paper(5, 1e-4).features)
    Y = criteria("paper", arms)["oracle"]
    design = fl.optimal_design(arms, Y)
    assert design.gap <= 1e-6
    assert 0 < design.weights[design.weights > 0].min() < 1e-4
    assert referees.value(arms.features, design.weights, np.asarray(Y)) == pytest.approx(
        design.value, rel=1e-6
    )
