"""Regions: designs, losses and refined nets, against brute force and closed forms."""

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import finalist as fl
from finalist.errors import ArmsError, EstimateError, ProblemError, UnknownArmError
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.region import Belief, Net, Record, Region
from finalist.region import loss as loss_module
from finalist.region import optimum as optimum_module
from finalist.region.loss import (
    largest_curvature,
    largest_gradient,
    largest_lead,
    largest_loss,
    radius_inside,
    radius_on_sphere,
)
from finalist.region.optimum import best_moments, largest_variance

POLYNOMIALS = [
    Region.box([-1], [1]),
    Region.box([0, 300], [1, 310]),
    Region.box([-1, 2, 0], [1, 7, 0.1]),
    Region.box([0] * 5, [1] * 5),
    Region.box([0, 0, 5], [1, 2, 6], "linear"),
    Region.ball(2),
    Region.ball(4),
    Region.ball(2, "quadratic"),
    Region.ball(3, "quadratic"),
]


#: Words that are refused.
CUBIC: Any = "cubic"
HALF: Any = 2.5
SOME: Any = "some"


def waves(x: np.ndarray) -> np.ndarray:
    """Four functions on [0, 2]; in coded coordinates their slopes are at most 0, 2, 3 and 1."""
    t = x[:, 0]
    return np.column_stack([np.ones(len(t)), np.sin(2 * t), np.cos(3 * t), t])


WAVES = Region.box([0], [2], waves, lipschitz=[0, 2, 3, 1])


def label(value: Any) -> str:
    if not isinstance(value, Region):
        return ""
    space = value.space
    return f"{space.shape}-{space.d}-{space.basis if space.polynomial else 'function'}"


def known(region: Region, theta: np.ndarray, radius: float = 0.0, sign: int = 1) -> Belief:
    """What rewards without noise say, with a radius as one likes."""
    arms = region.net(per_axis=3, measure="design").arms
    pulls = np.where(arms.measurable, 5, 0)
    means = Statistics.of_batch(pulls, pulls * arms.means(theta))
    fit = Record.of(as_problem(arms, sigma=1.0), [means]).fit
    return Belief(fit, fit.information.inverse_root, radius, sign)


def everywhere(region: Region, n: int, rng: np.random.Generator) -> np.ndarray:
    """Points of the region, half of them pushed to its boundary."""
    coded = rng.uniform(-1.0, 1.0, (n, region.space.d))
    if region.space.shape == "box":
        half = coded[: n // 2]
        half[:] = np.clip(1.5 * half, -1.0, 1.0)
    else:
        coded *= np.where(np.arange(n) % 2, 10.0, 1.0)[:, None]
    return region.space.decoded(coded)


def best_of(region: Region, theta: np.ndarray, start: np.ndarray) -> float:
    """The largest mean: the best of many points, made better by a local search."""
    low, high = region.space.low, region.space.high
    value = lambda x: -float((region.features(x[None]) @ theta)[0])  # noqa: E731
    rules: dict[str, Any] = {"method": "L-BFGS-B", "bounds": list(zip(low, high, strict=True))}
    if region.space.shape == "ball":
        inside = {"type": "ineq", "fun": lambda x: 1.0 - x @ x}
        rules = {"method": "SLSQP", "constraints": [inside]}
    found = start[int(np.argmax(region.features(start) @ theta))]
    polished = minimize(value, found, **rules).x
    if region.space.shape == "ball":
        polished = polished / max(1.0, float(np.linalg.norm(polished)))
    return max(-value(found), -value(np.clip(polished, low, high)))


# ---- where to measure --------------------------------------------------------------------------


@pytest.mark.parametrize("region", POLYNOMIALS, ids=label)
def test_no_point_has_a_larger_variance_than_the_certificate_says(region):
    design = region.net(2 if region.space.d > 3 else 5).design
    p = region.features(design.points).shape[1]
    assert design.lower_bound == p
    assert design.weights.sum() == pytest.approx(1.0)
    assert design.gap <= 1e-9
    X, points = region.features(design.points), everywhere(region, 20_000, np.random.default_rng(0))
    inverse = np.linalg.inv(X.T @ (design.weights[:, None] * X))
    F = region.features(points)
    assert np.einsum("ij,jk,ik->i", F, inverse, F).max() <= design.value * (1 + 1e-6)


def test_the_quadratic_design_on_an_interval_is_a_third_at_the_ends_and_in_the_middle():
    design = Region.box([2], [6]).net(5).design
    np.testing.assert_allclose(design.points.ravel(), [2, 4, 6])
    np.testing.assert_allclose(design.weights, [1 / 3] * 3)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_quadratic_design_on_a_box_is_that_of_the_solver(d):
    grid = np.array(list(product(np.linspace(-1, 1, 5), repeat=d)))
    region = Region.box([-1] * d, [1] * d)
    solved = fl.optimal_design(fl.Arms(region.features(grid)), "d", 1e-9)
    X = region.features(grid)
    moments = X.T @ (solved.weights[:, None] * X)
    mine = region.net(3).design
    Y = region.features(mine.points)
    np.testing.assert_allclose(Y.T @ (mine.weights[:, None] * Y), moments, atol=1e-4)


@pytest.mark.parametrize("d", [2, 4, 7])
def test_the_moments_maximise_the_determinant(d):
    def log_det(u, v):
        last = np.log(u + (d - 1) * v - d * u**2)
        return d * np.log(u) + d * (d - 1) / 2 * np.log(v) + (d - 1) * np.log(u - v) + last

    u, v = best_moments(d)
    for du, dv in [(1e-4, 0), (-1e-4, 0), (0, 1e-4), (0, -1e-4)]:
        assert log_det(u + du, v + dv) < log_det(u, v)


def test_a_function_gets_the_design_of_the_polynomial_that_it_is():
    def squares(x):
        return np.column_stack([np.ones(len(x)), x, x**2])

    design = Region.box([-1], [1], squares, lipschitz=[0, 1, 2]).net(5).design
    np.testing.assert_allclose(np.sort(design.points.ravel()), [-1, 0, 1], atol=0.02)
    np.testing.assert_allclose(design.weights, [1 / 3] * 3, atol=0.01)
    assert design.gap <= 0.02 + 1e-12


@pytest.mark.parametrize(
    "region",
    [
        WAVES,
        Region.ball(
            2,
            lambda x: np.column_stack([np.ones(len(x)), x, np.sin(2 * x[:, 0])]),
            lipschitz=[0, 1, 1, 2],
        ),
    ],
    ids=["waves", "disc"],
)
def test_the_bound_of_a_function_holds_and_is_close(region):
    design = region.net(5).design
    X = region.features(design.points)
    values, vectors = np.linalg.eigh(X.T @ (design.weights[:, None] * X))
    root = (vectors / np.sqrt(values)).T
    F = region.features(everywhere(region, 100_000, np.random.default_rng(1)))
    highest = np.square(F @ root.T).sum(axis=1).max()
    assert highest <= design.value <= 1.02 * design.lower_bound * (1 + 1e-12)
    assert design.value <= 1.03 * highest


def test_branch_and_bound_that_has_to_stop_early_is_still_a_bound(monkeypatch):
    root = np.diag([1.0, 2.0, 1.0, 0.5])
    fine = np.square(waves(np.linspace(0, 2, 100_001)[:, None]) @ root.T).sum(axis=1).max()
    exact, _ = largest_variance(WAVES.space, root, fine * 1.001)
    assert fine <= exact <= fine * 1.001 + 1e-12
    monkeypatch.setattr(optimum_module, "MAX_CELLS", 70)
    rough, _ = largest_variance(WAVES.space, root, fine * 1.001)
    assert exact < rough < 3 * fine


def test_branch_and_bound_does_not_miss_a_peak_between_its_first_points():
    peak = Region.box([0], [1], lambda x: np.maximum(1.0 - 80 * np.abs(x - 0.5), 0.1), lipschitz=40)
    points = peak.features((np.arange(64)[:, None] + 0.5) / 64)
    assert points.max() < 0.4
    bound, found = largest_variance(peak.space, np.eye(1), 0.5)
    assert 1.0 - 1e-9 <= bound <= 1.01
    assert peak.features(found).max() > 0.9


def test_a_function_of_unknown_smoothness_has_a_design_without_a_certificate():
    net = Region.box([0], [2], waves).net(41)
    assert np.isinf(net.design.gap)
    assert net.arms.rank == 4
    with pytest.raises(ArmsError, match="lipschitz="):
        net.loss(record_of(net, np.ones(4)))


# ---- the loss ----------------------------------------------------------------------------------


def record_of(net: Net, theta: Any, n: int = 50, seed: int = 0, **words: Any) -> Record:
    """Rewards of two batches of some pulls of every arm that is measured, with noise 1."""
    problem = as_problem(net.arms, **{"sigma": 1.0, **words})
    rng, counts = np.random.default_rng(seed), np.where(net.arms.measurable, n, 0)
    means, batches = net.arms.means(theta), []
    for _ in range(2):
        noise = rng.standard_normal(len(counts)) * np.sqrt(counts)
        squares = np.where(counts > 1, rng.chisquare(np.maximum(counts - 1, 1)), 0.0)
        batches.append(Statistics.of_batch(counts, counts * means + noise, squares))
    return Record.of(problem, batches)


def true_loss(net: Net, theta: np.ndarray, rng: np.random.Generator) -> float:
    region = Region(net.space)
    best = best_of(region, theta, np.vstack([everywhere(region, 4000, rng), net.points]))
    return best - float((region.features(net.points) @ theta).max())


@pytest.mark.parametrize(
    ("region", "per_axis"),
    [
        (Region.box([-1], [1]), 4),
        (Region.box([0, 3], [1, 9]), (3, 6)),
        (Region.box([-1, 0, 0], [1, 1, 2]), 4),
        (Region.box([0, 0], [1, 4], "linear"), 9),
        (Region.ball(2), 4),
        (Region.ball(3), 4),
        (Region.ball(4), 4),
        (Region.ball(2, "quadratic"), 5),
        (Region.ball(3, "quadratic"), 4),
        (WAVES, 7),
    ],
    ids=label,
)
def test_the_loss_is_never_larger_than_its_bound(region, per_axis):
    rng, net = np.random.default_rng(5), region.net(per_axis)
    p, ratios = net.arms.features.shape[1], []
    for _ in range(60 if region.space.polynomial else 15):
        theta = rng.standard_normal(p)
        if region.space.basis == "quadratic":  # peaks inside are the interesting case
            theta = theta / np.abs(region.features(region.space.high[None])[0])
            squares = [k for k, (i, j) in enumerate(region.space.pairs) if i == j]
            theta[[region.space.d + 1 + k for k in squares]] *= -2 * np.sign(rng.random() - 0.2)
        bound = largest_loss(net.space, net._coded, net.steps, known(region, theta))
        loss = true_loss(net, theta, rng)
        assert loss <= bound + 1e-6
        ratios.append(loss / max(bound, 1e-300))
    if not net.exact:
        assert max(ratios) > 0.2  # it is no empty promise


@pytest.mark.parametrize("d", [1, 2, 3])
def test_peaks_halfway_between_points_lose_exactly_the_bound(d):
    region = Region.box([-1] * d, [2] * d)
    net, curve = region.net(4), np.arange(1, d + 1)
    theta = np.zeros(net.arms.features.shape[1])
    theta[1 : d + 1] = 2 * curve * 0.5  # -sum c_i (x_i - 1/2)^2, the grid being -1, 0, 1, 2
    theta[[d + 1 + k for k, (i, j) in enumerate(region.space.pairs) if i == j]] = -curve
    exact = float(curve.sum()) / 4
    assert largest_loss(net.space, net._coded, net.steps, known(region, theta)) == pytest.approx(
        exact
    )
    assert true_loss(net, theta, np.random.default_rng(0)) == pytest.approx(exact)


def test_a_function_that_is_looked_at_nowhere_else_has_its_lipschitz_constant(monkeypatch):
    monkeypatch.setattr(loss_module, "MAX_EVALUATIONS", 1)
    net, rng = WAVES.net(7), np.random.default_rng(0)
    for _ in range(10):
        theta = rng.standard_normal(4)
        bound = largest_loss(net.space, net._coded, net.steps, known(WAVES, theta))
        assert bound == pytest.approx(np.abs(theta) @ [0, 2, 3, 1] / 6)
        assert true_loss(net, theta, rng) <= bound


@pytest.mark.parametrize("m", [3, 4, 9])
@pytest.mark.parametrize("d", [2, 3, 4])
def test_points_of_a_ball_are_as_near_to_the_net_as_is_claimed(d, m):
    rng = np.random.default_rng(d)
    sphere = rng.standard_normal((1000, d))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    inside = sphere * rng.random((1000, 1)) ** (1 / d)
    steps = Region.ball(d).net(m).steps
    assert radius_on_sphere(steps) == pytest.approx(np.sqrt(d - 1) / (m - 1))
    for basis, points, radius in [
        ("linear", sphere, radius_on_sphere(steps)),
        ("quadratic", inside, radius_inside(steps)),
        ("quadratic", sphere, radius_on_sphere(steps)),
    ]:
        words: Any = basis
        net = Region.ball(d, words).net(m).points
        assert (np.linalg.norm(net, axis=1) <= 1 + 1e-12).all()
        if points is sphere:
            net = net[np.linalg.norm(net, axis=1) > 1 - 1e-9]
        far = max(
            np.linalg.norm(part[:, None] - net, axis=2).min(axis=1).max()
            for part in np.array_split(points, 30)
        )
        assert 0.35 * radius <= far <= radius


@pytest.mark.parametrize(
    "region",
    [
        Region.box([-1], [1]),
        Region.box([0, 0], [1, 2]),
        Region.ball(3),
        Region.ball(2, "quadratic"),
        WAVES,
    ],
    ids=label,
)
def test_the_bounds_hold_for_every_parameter_of_the_set(region):
    rng, net = np.random.default_rng(2), region.net(5)
    theta = rng.standard_normal(net.arms.features.shape[1])
    belief = known(region, theta, radius=3.0)
    bound, space = largest_loss(net.space, net._coded, net.steps, belief), region.space
    arms, root = belief.fit.arms, belief.fit.information.inverse_root
    base, near = arms.to_span(np.eye(len(theta))), 0.0
    for _ in range(100):
        u = rng.standard_normal(len(root))
        other = theta + base @ root.T @ (3.0 * u / np.linalg.norm(u))
        assert true_loss(net, other, rng) <= bound + 1e-6
        if space.polynomial:
            hessian = space.curvature() @ other
            slope = np.linalg.norm(space.slopes(np.zeros((1, space.d)))[0] @ other)
            assert np.linalg.norm(hessian, 2) <= largest_curvature(space, belief) + 1e-9
            assert slope <= largest_gradient(space, belief) + 1e-9
            near = max(near, float(slope / largest_gradient(space, belief)))
    assert near > 0.7 or not space.polynomial


def test_for_a_minimum_the_parameter_changes_its_sign():
    region = Region.box([0, 0], [1, 2])
    net, theta = region.net(5), np.array([0.0, 1.0, -2.0, 3.0, 1.0, -4.0])
    up = Record(as_problem(net.arms, sigma=1.0), known(region, -theta).fit)
    down = Record(as_problem(net.arms, sigma=1.0, objective="min"), known(region, theta).fit)
    assert net.loss(down) == pytest.approx(net.loss(up))
    assert net.loss(down) != pytest.approx(net.loss(Record(up.problem, down.fit)))


def test_the_set_is_the_log_det_interval():
    net = Region.box([0], [1]).net(9)
    record = record_of(net, [0.0, 1.0, 0.0], n=30)
    belief = record.belief(0.02)
    # 60 pulls at 0, 1/2 and 1, and 4 each to start from: A_0 = A / 15.
    assert belief.radius == pytest.approx(math.sqrt(3 * math.log(16) + 2 * math.log(50)))
    # The coefficient of x^2 at ends 0 and 1 has variance 4 + 16 + 4 over the 60 pulls of each.
    unit = math.sqrt(24 / 60 * (1 + 1 / 15))
    assert belief.widths(np.eye(3))[2] == pytest.approx(belief.radius * unit)
    assert net.loss(record, 0.02) == pytest.approx(
        max(-2 * belief.estimates(np.eye(3))[2] + 2 * belief.widths(np.eye(3))[2], 0) / 16**2 / 2
    )


def test_shifted_batches_and_a_basis_without_a_constant():
    basis = lambda x: waves(x)[:, 1:]  # noqa: E731
    for region, theta in [
        (Region.box([0], [2], basis, lipschitz=[2, 3, 1]), np.array([1.0, -0.5, 0.2])),
        (Region.box([0], [1]), np.array([4.0, 1.0, -1.0])),
    ]:
        net = region.net(21, "all")
        losses = [
            net.loss(record_of(net, theta, n=2000, batch_intercept=shifted))
            for shifted in (False, True)
        ]
        assert losses[1] == pytest.approx(losses[0], rel=0.3)


# ---- finer where it matters --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "theta"),
    [
        (Region.box([-1], [1]), [0.0, 1.0, -2.0]),
        (Region.box([-1, 0], [1, 1]), [0.0, 1.0, 2.0, -2.0, 1.0, -1.0]),
        (Region.ball(2), [0.0, 1.0, 2.0]),
        (Region.ball(2, "quadratic"), [0.0, 1.0, 2.0, -2.0, 1.0, -1.0]),
        (WAVES, [0.0, 3.0, 1.0, 0.5]),
    ],
    ids=label,
)
def test_cells_are_left_out_only_where_no_parameter_has_its_best_point(region, theta):
    rng, net = np.random.default_rng(3), region.net(21)
    record = record_of(net, theta, n=3000)
    fine = net.refined(record, 0.01)
    assert fine.risk == 0.01
    assert fine.per_axis == (61,) * region.space.d
    whole = region.net(fine.per_axis if region.space.shape == "box" else 61)
    assert len(fine.points) < 0.8 * len(whole.points)
    belief = record.belief(0.01)
    root = belief.fit.information.inverse_root
    X = net.arms.features
    start = np.linalg.lstsq(X, belief.fit.arms.coordinates @ belief.fit.phi, rcond=None)[0]
    for _ in range(100):
        u = rng.standard_normal(len(root))
        other = (
            start
            + np.linalg.lstsq(
                X,
                net.arms.coordinates @ root.T @ (belief.radius * u / np.linalg.norm(u)),
                rcond=None,
            )[0]
        )
        best = float((region.features(whole.points) @ other).max())
        assert float((region.features(fine.points) @ other).max()) >= best - 1e-9
    assert fine.loss(record) < net.loss(record)


def test_the_lead_of_a_cell_is_at_least_that_of_each_of_its_points():
    for region in (Region.box([0, 1], [2, 4]), Region.ball(2, "quadratic"), WAVES):
        rng, net = np.random.default_rng(8), region.net(5)
        theta: Any = rng.standard_normal(net.arms.features.shape[1])
        belief, leader = known(region, theta), net.points[3]
        lead = largest_lead(net.space, net.points, net.steps, leader, belief)
        height = float((region.features(leader[None]) @ theta)[0])
        for bound, middle in zip(lead, net.points, strict=True):
            u = rng.uniform(-1, 1, (200, region.space.d)) * net.steps * region.space.half
            if region.space.shape == "ball":
                u = np.vstack([u, 2 * u])
                u = u[np.linalg.norm(u, axis=1) <= radius_inside(net.steps)]
            values = region.features(middle + u) @ theta
            assert values.max() - height <= bound + 1e-9


# ---- the whole promise -------------------------------------------------------------------------

#: The peak is at 2/3, halfway between points of the net, which are tied: the loss is 1/3.
VALLEY, TIED = Region.box([-1], [1]), np.array([0.0, 4.0, -3.0])


def off(found: Any) -> float:
    """How far the mean of the point is from that of the best."""
    return float(3.0 * (found.point["x1"] - 2 / 3) ** 2)


def test_the_claim_is_wrong_at_most_as_often_as_it_says():
    net, runs, delta = VALLEY.net(4), 60, 0.1
    found = [net.rehearse(TIED, 0.5, delta, sigma=0.5, seed=seed) for seed in range(runs)]
    assert sum(off(one) > one.within for one in found) <= binom.ppf(0.999, runs, delta)
    assert all(one.epsilon == pytest.approx(0.4) and one.delta == delta for one in found)
    # No point of the net is nearer than 1/3, and without the loss less would be promised.
    assert min(off(one) for one in found) == pytest.approx(1 / 3)
    fine = [net.rehearse(TIED, 0.1, delta, sigma=0.02, seed=seed) for seed in range(20)]
    assert all(one.epsilon < off(one) <= one.within < 0.6 for one in fine)


def test_a_coarse_net_is_told_to_be_refined_and_then_suffices():
    net = VALLEY.net(4)
    rough = net.rehearse(TIED, 0.3, sigma=0.1)
    assert rough.refine
    assert "finer" in rough.sentence
    fine = net.refined(record_of(net, TIED, n=20_000), 0.01)
    good = fine.rehearse(TIED, 0.3, 0.05, sigma=0.1)
    assert not good.refine
    assert good.within <= 0.3
    assert off(good) <= good.within
    assert good.delta == 0.05


def test_minimising_finds_the_bottom():
    net = VALLEY.net(9)
    found = net.rehearse(-TIED, 0.4, sigma=0.3, objective="min", seed=1)
    assert off(found) <= found.within


def test_a_linear_model_needs_the_corners_alone_and_the_whole_of_delta():
    net = Region.box([0, 0], [1, 1], "linear").net(21)
    assert sorted(net.arms.names)[0] == "x1=0, x2=0"
    assert len(net.arms) == 4
    assert net.question(0.1, 0.05) == {"epsilon": 0.1, "delta": 0.05, "check": 0.0}
    found = net.rehearse([0.0, 1.0, -1.0], 0.5, seed=3, sigma=1.0)
    assert (found.loss, found.within, found.point) == (0.0, 0.5, {"x1": 1.0, "x2": 0.0})
    assert net.refined(record_of(net, [0.0, 1.0, -1.0])) is net


def test_epsilon_and_delta_are_split():
    net = VALLEY.net(5)
    assert net.question(0.1, 0.05) == pytest.approx({"epsilon": 0.08, "delta": 0.04, "check": 0.0})
    fine = net.refined(record_of(net, TIED, n=500), 0.02)
    assert fine.question(0.1, 0.05)["delta"] == pytest.approx(0.8 * 0.03)
    assert fine.refined(record_of(fine, TIED, n=500), 0.01).risk == pytest.approx(0.03)
    with pytest.raises(ProblemError, match="between the risk of the net"):
        fine.question(0.1, 0.02)
    with pytest.raises(ProblemError, match="epsilon is 0"):
        net.question(0)


# ---- arms --------------------------------------------------------------------------------------


def test_arms_have_the_coordinates_as_names_and_the_basis_as_features():
    region = Region.box([250, 1], [350, 4], names=("temperature", "time"))
    net = region.net((11, 4))
    arms = net.arms
    assert len(arms) == 44 + 3  # time=2.5 is measured and not in the net
    assert arms.measurable.sum() == 9
    assert arms.candidate.all()
    name = "temperature=300, time=2"
    assert net.point(name) == {"temperature": 300.0, "time": 2.0}
    np.testing.assert_array_equal(arms.features[arms.index(name)], [1, 300, 2, 300**2, 300 * 2, 4])
    assert region.arms((11, 4)) == arms
    assert region.net((11, 4), "all").arms.measurable.all()
    with pytest.raises(UnknownArmError, match="Did you mean"):
        net.point("temperature=300, time=2.1")


def test_names_have_as_many_digits_as_they_need():
    arms = Region.box([1000], [1001], "quadratic").net(5).arms
    assert arms.names == ("x1=1000", "x1=1000.25", "x1=1000.5", "x1=1000.75", "x1=1001")
    names = Region.box([0], [1]).net(21).arms.names
    assert names[:4] == ("x1=0", "x1=0.05", "x1=0.1", "x1=0.15")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Region.box([0, 0], [1]), "low has 2 numbers and high 1"),
        (lambda: Region.box([0, 1], [1, 1]), "coordinate 2 goes from 1 to 1"),
        (lambda: Region.box([0], [np.inf]), "high is"),
        (lambda: Region.box([0], ["a"]), "high is"),
        (lambda: Region.box([0], [1], CUBIC), "basis is 'cubic'"),
        (lambda: Region.box([0], [1], names=["a", "b"]), "names is"),
        (lambda: Region.box([0, 0], [1, 1], names=["a", "a"]), "names is"),
        (lambda: Region.box([0], [1], names=["a=b"]), "equals signs"),
        (lambda: Region.box([0], [1], lipschitz=1.0), "basis of your own"),
        (lambda: Region.box([0], [2], waves, lipschitz=[1, 2]), "each of the 4 basis"),
        (lambda: Region.box([0], [2], waves, lipschitz=-1), "0 or more"),
        (lambda: Region.box([0], [1], lambda x: x[:, 0]), "returns .n, p. values"),
        (lambda: Region.ball(1), "Region.box"),
        (lambda: Region.ball(2).net(1), "per_axis is 1"),
        (lambda: Region.ball(2).net(HALF), "per_axis is 2.5"),
        (lambda: Region.ball(2).net((3, 4)), "for a box one for each"),
        (lambda: Region.box([0], [1]).net((3, 4)), "per_axis"),
        (lambda: Region.box([0], [1]).net(5, SOME), "measure is 'some'"),
        (lambda: Region.box([0] * 5, [1] * 5).net(21), "4,084,101 points"),
        (lambda: VALLEY.net(5).refined(record_of(VALLEY.net(5), TIED), parts=2), "odd"),
        (lambda: Region.box([0], [1]).features([0.5]), "points has shape"),
        (
            lambda: Region.box([0], [1], lambda x: np.column_stack([x, 2 * x])).arms(),
            "not independent",
        ),
        (
            lambda: Region.box([0, 0], [1, 1], lambda x: x[:, :1]).arms(5, "all"),
            "some points of the net",
        ),
        (lambda: Region.box([1e9], [1e9 + 1e-3]).arms(), "not independent"),
    ],
)
def test_what_is_wrong_is_said(call, words):
    with pytest.raises(ArmsError, match=words):
        call()


# ---- studies -----------------------------------------------------------------------------------


def study_of(tmp_path: Any, net: Net, name: str = "oven", **words: Any) -> "fl.Study":
    words = {"sigma": 0.5, "epsilon": 0.4, "delta": 0.04, "seed": 1, "check": 0.0} | words
    return fl.Study.create(tmp_path / "lab.db", name, net.arms, **words)


def measured(study: "fl.Study", net: Net, theta: np.ndarray, batches: int = 1000) -> "fl.Study":
    rng, means = np.random.default_rng(0), net.arms.means(theta)
    for _ in range(batches):
        batch = study.ask()
        if len(batch) == 0:
            break
        index = [net.arms.index(pull.arm) for pull in batch]
        rewards = means[index] + 0.5 * rng.standard_normal(len(index))
        study.tell({pull.pull_id: y for pull, y in zip(batch, rewards.tolist(), strict=True)})
    return study


def test_the_verdict_of_a_study(tmp_path):
    net = VALLEY.net(4)
    study = study_of(tmp_path, net)
    with pytest.raises(EstimateError, match="measure more"):
        net.verdict(study)
    measured(study, net, TIED, batches=2)
    open_ = net.verdict(study)
    assert open_.name is None
    assert "No winner yet" in open_.sentence
    measured(study, net, TIED)
    found = net.verdict(study, 0.05)
    status = study.status()
    assert found.name == status.winner
    assert found.epsilon == 0.4
    assert found.loss == net.loss(study, 0.05 - 0.04)
    assert found.within >= 1 / 3
    assert f"within {found.within:.3g} of the best point of the region" in found.sentence
    assert "at most 0.05" in str(found)
    assert found.point is not None
    assert found.to_dict()["point"] == {"x1": pytest.approx(found.point["x1"])}
    # The rewards of the study, one by one, are what its own estimate has.
    record = Record.of_study(study)
    means: Any = {arm.name: arm.estimate for arm in status.arms}
    np.testing.assert_allclose(record.fit.means(), [means[n] for n in net.arms.names])
    with pytest.raises(ProblemError, match="nothing is left"):
        net.verdict(study, 0.04)
    with pytest.raises(ArmsError, match="no arm"):
        VALLEY.net(5).verdict(study)
    with pytest.raises(ArmsError, match="no arm"):
        Region.box([-1], [2]).net(4).verdict(study)


def test_the_verdict_on_a_refined_net_leaves_room_for_its_risk(tmp_path):
    net = VALLEY.net(4)
    fine = net.refined(record_of(net, TIED, n=2000), 0.01)
    study = measured(study_of(tmp_path, fine, delta=0.03), fine, TIED)
    found = fine.verdict(study, 0.05)
    assert found.loss == pytest.approx(fine.loss(study, 0.01))
    assert off(found) <= found.within < 0.5
    with pytest.raises(ProblemError, match="nothing is left"):
        fine.verdict(study, 0.04)


def test_only_complete_batches_count(tmp_path):
    net = VALLEY.net(4)
    study = measured(study_of(tmp_path, net), net, TIED, batches=3)
    before = net.loss(study)
    batch = study.ask()
    study.tell({batch.pulls[0].pull_id: 100.0})
    assert net.loss(study) == before


def test_what_a_study_cannot_say(tmp_path):
    net = VALLEY.net(4)
    blind = measured(study_of(tmp_path, net, "blind", sigma=None), net, TIED, 2)
    with pytest.raises(ProblemError, match="sigma is unknown"):
        net.verdict(blind)
    bent = measured(study_of(tmp_path, net, "bent", misspecification=0.1), net, TIED, 2)
    with pytest.raises(ProblemError, match="misspecification is"):
        net.verdict(bent)
    several = study_of(tmp_path, net, "several", top=2, epsilon=0.0)
    with pytest.raises(ProblemError, match="2 best arms"):
        net.verdict(several)
    changed = measured(study_of(tmp_path, net, "changed"), net, TIED, 2)
    row = dict(zip(net.arms.feature_names, [1.0, 0.1, 0.01], strict=True))
    changed.add(fl.Arms(pd.DataFrame([{"name": "new"} | row])))
    with pytest.raises(EstimateError, match="were changed"):
        net.loss(changed)


def test_a_study_in_which_nothing_is_certain_says_nothing_of_a_region(tmp_path):
    net = Region.box([0], [1]).net(9)
    study = study_of(tmp_path, net, sigma=0.02, epsilon=0.5, delta=0.02)
    rng = np.random.default_rng(0)
    for _ in range(3):
        batch = study.ask(size=30)
        if not batch:
            break
        study.tell({pull.pull_id: 3.0 * rng.standard_normal() for pull in batch})
    status = study.status(forecast=False)
    assert not status.certain
    assert "scatter" in status.doubts[0]
    for ask in (net.refined, net.loss, net.verdict):
        with pytest.raises(EstimateError, match="nothing is certain in study 'oven', because the"):
            ask(study, 0.05)
