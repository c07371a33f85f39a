"""Rough designs against certified ones: what they promise about themselves must be true."""

import numpy as np
import pytest

import finalist as fl
from finalist.design import rough_design
from finalist.design.tasks import directions_task
from tests import instances, referees

FAMILIES = {
    "gaussian": instances.gaussian(30, 4, 0),
    "sphere": instances.unit_sphere(40, 5, 1),
    "cube": instances.hypercube(4),
    "factorial": instances.one_hot_factorial((3, 4)),
    "quadratic": instances.quadratic_grid(2, 5),
    "clusters 1e-2": instances.clusters(1e-2, 4, 6, 3, 0),
    "clusters 1e-5": instances.clusters(1e-5, 4, 6, 3, 0),
    "duplicates": instances.with_duplicates(instances.gaussian(12, 3, 2), 6, 0),
    "units": instances.scaled_columns(instances.gaussian(20, 4, 3)),
    "paper, wide": instances.paper(4, 0.5).features,
    "paper, narrow": instances.paper(4, 0.01).features,
    "plane": instances.plane(30),
    "unstructured": np.eye(6),
    "one feature": np.array([[1.0], [0.4], [-0.5]]),
}


def case(name, few=None):
    """Arms in their span, and the differences of the first one to (some of) the others."""
    Z = fl.Arms(FAMILIES[name]).coordinates
    Y = Z[0] - Z[1:]
    return Z, Y if few is None else Y[:few]


def check(Z, Y, weights, gap):
    """Compare a design and its gap with the optimum to 1e-6 and with plain NumPy."""
    assert np.all(np.isfinite(weights))
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1.0)
    assert gap >= -1e-9
    solution = directions_task(Z, Y).solve(1e-6, np.inf)
    value = referees.value(Z, weights, Y)
    certified = np.zeros(len(Z))
    certified[solution.arms] = solution.weights
    best = referees.value(Z, certified, Y)  # at least the optimum
    assert value >= solution.lower_bound * (1 - 1e-6)
    assert value <= (1 + gap) * best * (1 + 1e-5)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("tol", [0.1, 1e-2])
def test_the_value_is_within_the_gap(name, tol):
    Z, Y = case(name)
    weights, gap = rough_design(Z, Y, tol)
    check(Z, Y, weights, gap)
    assert gap <= max(tol, 0.05)  # 500 steps are enough for five percent


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("few", [1, 2])
def test_few_directions_have_a_singular_optimum(name, few):
    Z, Y = case(name, few)
    check(Z, Y, *rough_design(Z, Y, 1e-2))


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
@pytest.mark.parametrize("name", ["sphere", "paper, narrow", "clusters 1e-2"])
def test_when_the_steps_are_used_up_the_gap_is_honest(name, steps):
    Z, Y = case(name)
    weights, gap = rough_design(Z, Y, 1e-12, steps=steps)
    check(Z, Y, weights, gap)
    assert gap > 1e-12
    if steps == 1:
        np.testing.assert_allclose(weights, 1.0 / len(Z))


@pytest.mark.parametrize("name", ["sphere", "quadratic", "plane"])
def test_more_steps_are_never_worse(name):
    Z, Y = case(name)
    gaps = [rough_design(Z, Y, 1e-12, steps=steps)[1] for steps in (1, 4, 16, 64, 256)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.05


@pytest.mark.parametrize("name", ["gaussian", "sphere", "paper, narrow"])
def test_a_warm_start(name):
    Z, Y = case(name)
    near = 0.1 / len(Z) + 0.9 * rough_design(Z, Y, 1e-3)[0]
    kept = near.copy()
    weights, gap = rough_design(Z, Y, 1e-2, start=7.0 * near)
    check(Z, Y, weights, gap)
    assert rough_design(Z, Y, 1e-12, near, 3)[1] < rough_design(Z, Y, 1e-12, None, 3)[1]
    np.testing.assert_array_equal(near, kept)


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**300])
def test_units_of_the_directions_change_nothing(scale):
    Z, Y = case("sphere")
    weights, gap = rough_design(Z, Y)
    again, other = rough_design(Z, scale * Y)
    np.testing.assert_array_equal(again, weights)
    assert other == gap


def test_directions_of_very_different_length():
    Z, Y = case("gaussian")
    Y = Y * np.geomspace(1e-6, 1.0, len(Y))[:, None]
    check(Z, Y, *rough_design(Z, Y))


def test_two_arms_by_hand():
    # Variance a^2 / w_1 + b^2 / w_2 is least where the weights are as |a| to |b|.
    weights, gap = rough_design(np.eye(2), np.array([[3.0, -1.0]]), 1e-4)
    np.testing.assert_allclose(weights, [0.75, 0.25], atol=0.01)
    assert gap <= 1e-4


MANY = {
    "gaussian": instances.gaussian(600, 6, 0),
    "sphere": instances.unit_sphere(900, 4, 1),
    "cube": instances.hypercube(9),
    "plane": instances.plane(500),
    "units": instances.scaled_columns(instances.gaussian(400, 5, 3)),
    "clusters": instances.clusters(1e-4, 60, 8, 4, 0),
}


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("few", [None, 1, 30])
def test_many_arms_are_treated_by_a_working_set(name, few):
    Z = fl.Arms(MANY[name]).coordinates
    Y = Z[0] - Z[1:] if few is None else Z[0] - Z[1 : few + 1]
    weights, gap = rough_design(Z, Y, 0.05)
    check(Z, Y, weights, gap)
    assert gap <= 0.3 if few == 1 else gap <= 0.1  # one direction: few arms, slowly


def test_a_working_set_starts_from_what_it_is_given():
    Z = fl.Arms(MANY["sphere"]).coordinates
    Y = Z[0] - Z[1:]
    near, _ = rough_design(Z, Y, 1e-2)
    start = np.where(near > 1e-3, near, 0.0)
    weights, gap = rough_design(Z, Y, 2e-2, start=start)
    check(Z, Y, weights, gap)
    assert gap <= 2e-2
    poor = np.zeros(len(Z))
    poor[17] = 1.0  # one arm alone does not span
    check(Z, Y, *rough_design(Z, Y, 2e-2, start=poor))


def test_many_directions_and_few_arms():
    Z = fl.Arms(instances.gaussian(20, 3, 5)).coordinates
    Y = np.asarray(np.random.default_rng(0).standard_normal((700, 3)))
    weights, gap = rough_design(Z, Y, 0.02)
    check(Z, Y, weights, gap)
    assert gap <= 0.02
