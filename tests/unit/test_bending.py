"""Evidence of bends: against densities written out, and what it must not do."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import finalist as fl
from finalist.inference.bending import ALARM, BendEvidence, _log_e, log_e, log_mean_exp_chi
from finalist.inference.bends import MAX_BENDS, Bends
from finalist.inference.pooling import BatchSums
from finalist.inference.residuals import Cells, Residuals
from finalist.inference.statistics import BatchResults

GRID = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 4), repeat=2)))
ARMS = fl.Arms(GRID).with_intercept()
BENDS = Bends.of(ARMS)


def cells_of(order, values):
    return Cells.of([BatchSums.of(BatchResults.of(len(ARMS), order, values))], None, shifted=False)


def evidence_of(problem: fl.Problem, before: Any = None) -> Any:
    return BendEvidence.of(problem, before)


def complement(X):
    """An orthonormal basis of what is orthogonal to the columns of X."""
    U, s, _ = np.linalg.svd(X)
    return U[:, np.count_nonzero(s > 1e-9) :]


def block(seed, n=12):
    rng = np.random.default_rng(seed)
    order = rng.integers(0, len(ARMS), n)
    return order, rng.normal(size=n) + 0.5 * BENDS.columns[order, 0]


# ---- what is looked for ------------------------------------------------------------------


def test_bends_are_what_the_model_cannot_say():
    Z = ARMS.coordinates
    assert BENDS.names == ("f1^2", "f2^2", "f1 * f2")
    assert np.abs(Z.T @ BENDS.columns).max() < 1e-12
    assert BENDS.words() == "squares and products"


def test_a_constant_that_is_missing_is_a_bend():
    assert Bends.of(fl.Arms(GRID)).names[0] == "a constant"


def test_models_that_bend_miss_cubes_and_products():
    bent = ARMS.with_model("bending")
    assert Bends.of(bent).names == (
        "f1 * f2",
        "f1^3",
        "f2^3",
        "f1^2 * f2",
        "f2^2 * f1",
    )
    separate = ARMS.with_model("separate")
    assert Bends.of(separate).count == 0


def test_arms_that_are_equal_have_the_bends_of_their_own_recipe():
    by_hand = fl.Arms(ARMS.with_model("bending").features)
    assert by_hand.features.shape == ARMS.with_model("bending").features.shape
    assert Bends.of(by_hand).names != Bends.of(ARMS.with_model("bending")).names


def test_a_bend_that_no_measurement_shows_is_not_looked_for():
    ends = fl.Arms([[-1.0], [1.0]]).with_intercept()
    between = fl.Arms([[0.0], [0.5]]).with_intercept()
    assert Bends.of(fl.Problem(ends, noise=fl.Gaussian(1.0), candidates=between).arms).count == 0
    three = fl.Arms([[-1.0], [0.2], [1.0]]).with_intercept()
    asked = fl.Problem(three, noise=fl.Gaussian(1.0), candidates=between)
    assert Bends.of(asked.arms).names == ("f1^2",)


def test_categories_may_interact():
    cells = list(itertools.product([0.0, 1.0, 2.0], "abc"))
    names = [f"{kind}{dose}" for dose, kind in cells]
    table = {"name": names, "kind": [k for _, k in cells], "dose": [d for d, _ in cells]}
    arms = fl.Arms.from_table(pd.DataFrame(table), intercept=True)
    assert Bends.of(arms).names == ("dose^2", "kind: b * dose", "kind: c * dose")


def test_of_many_features_the_main_directions_bend():
    many = fl.Arms(np.random.default_rng(0).normal(size=(200, 50))).with_intercept()
    found = Bends.of(many)
    assert found.count <= MAX_BENDS
    assert len(found.base_names) == 10


# ---- the e-value of a block --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("part", [[0], [2], [0, 1, 2]])
def test_with_a_known_sigma_it_is_a_ratio_of_normal_densities(seed, part):
    order, values = block(seed)
    sigma, h = 0.7, 1.3
    earlier = Residuals.of(ARMS.coordinates, BENDS, cells_of(*block(seed + 10, 20)))
    found = Residuals.of(ARMS.coordinates, BENDS, cells_of(order, values))
    G0, g0 = earlier.G[np.ix_(part, part)], earlier.g[part]
    S = np.linalg.inv(G0 + np.eye(len(part)) / h**2)
    m = S @ g0 / sigma
    # Pull by pull, from the definition.
    Q = complement(ARMS.coordinates[order])
    e, H = Q.T @ values, Q.T @ BENDS.columns[order][:, part]
    mean, cov = sigma * H @ m, sigma**2 * (np.eye(len(e)) + H @ S @ H.T)
    alternative = stats.multivariate_normal(mean, cov).logpdf(e)
    null = stats.multivariate_normal(np.zeros(len(e)), sigma**2 * np.eye(len(e))).logpdf(e)
    G, g = found.G[np.ix_(part, part)], found.g[part]
    assert _log_e(G, g, G0, g0, found, h, sigma, sigma) == pytest.approx(alternative - null)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("part", [[1], [0, 1, 2]])
def test_with_an_unknown_sigma_it_is_a_ratio_of_integrals(seed, part):
    order, values = block(seed)
    earlier = Residuals.of(ARMS.coordinates, BENDS, cells_of(*block(seed + 10, 20)))
    found = Residuals.of(ARMS.coordinates, BENDS, cells_of(order, values))
    h, scale = 0.8, earlier.scale()
    G0, g0 = earlier.G[np.ix_(part, part)], earlier.g[part]
    S = np.linalg.inv(G0 + np.eye(len(part)) / h**2)
    m = S @ g0 / scale
    Q = complement(ARMS.coordinates[order])
    e, H = Q.T @ values, Q.T @ BENDS.columns[order][:, part]
    D = np.eye(len(e)) + H @ S @ H.T

    def density(log_sigma, mean, cov):
        s = np.exp(log_sigma)
        return np.exp(stats.multivariate_normal(s * mean, s * s * cov).logpdf(e) + 15.0)

    top, low = (
        integrate.quad(density, -6, 6, args=args, limit=400, epsabs=0, epsrel=1e-10)[0]
        for args in ((H @ m, D), (np.zeros(len(e)), np.eye(len(e))))
    )
    G, g = found.G[np.ix_(part, part)], found.g[part]
    ratio = _log_e(G, g, G0, g0, found, h, None, scale)
    assert ratio == pytest.approx(np.log(top / low), rel=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "signs", "unknown"])
def test_its_mean_is_at_most_1_where_the_model_is_right(noise):
    rng = np.random.default_rng(5)
    order = np.repeat(np.arange(len(ARMS)), 1)
    earlier = Residuals.of(ARMS.coordinates, BENDS, cells_of(*block(3, 20)))
    sigma = None if noise == "unknown" else 1.0
    found = []
    for _ in range(3000):
        draws = rng.normal(size=len(order)) if noise != "signs" else rng.choice([-1, 1], len(order))
        one = Residuals.of(ARMS.coordinates, BENDS, cells_of(order, GRID[order] @ [3, 1] + draws))
        G, g = one.G, one.g
        found.append(np.exp(_log_e(G, g, earlier.G, earlier.g, one, 0.5, sigma, 1.0)))
    mean, error = np.mean(found), np.std(found) / np.sqrt(len(found))
    assert mean < 1.0 + 4.0 * error
    if noise != "signs":
        assert mean > 1.0 - 4.0 * error


def test_theta_and_its_size_do_not_matter():
    order, values = block(1)
    one = Residuals.of(ARMS.coordinates, BENDS, cells_of(order, values))
    other = Residuals.of(
        ARMS.coordinates, BENDS, cells_of(order, values + ARMS.features[order] @ [5, -900, 1e4])
    )
    assert one.g == pytest.approx(other.g, abs=1e-8)
    assert one.squares == pytest.approx(other.squares)


def test_rows_that_the_model_explains_say_nothing():
    corners = np.flatnonzero(np.abs(GRID).min(axis=1) == 1.0)[:3]
    found = Residuals.of(ARMS.coordinates, BENDS, cells_of(corners, np.array([1.0, 50.0, -9.0])))
    assert found.freedom == 0
    assert found.squares == 0.0
    assert not found.g.any()


@pytest.mark.parametrize(("t", "nu"), [(0.0, 1), (3.0, 1), (-2.0, 2), (40.0, 7), (-30.0, 50)])
def test_the_integral_over_chi(t, nu):
    middle = stats.chi(nu)
    values, weights = np.polynomial.legendre.leggauss(600)
    high = max(t, 0.0) + 4.0 * np.sqrt(nu) + 20.0
    c = high * (values + 1.0) / 2.0
    logs = middle.logpdf(c) + t * c
    expected = np.log(np.sum(weights * np.exp(logs - logs.max()))) + logs.max() + np.log(high / 2)
    assert log_mean_exp_chi(t, nu) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("size", [1e-150, 1e-8, 1e8, 1e150])
def test_the_unit_of_the_results_does_not_matter(size):
    problem = fl.Problem(ARMS, noise=fl.Gaussian(1.0), check=0.03)
    scaled = problem.with_(noise=fl.Gaussian(size))
    found = []
    for asked, unit in ((problem, 1.0), (scaled, size)):
        evidence = evidence_of(asked)
        before = cells_of(np.arange(0), np.zeros(0))
        for seed in range(3):
            order, values = block(seed)
            evidence.add(cells_of(order, unit * values), before)
            before = cells_of(order, unit * values)
        found.append(evidence.log_total)
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_bend_is_found_and_named():
    evidence = evidence_of(fl.Problem(ARMS, noise=fl.Gaussian(1.0), check=0.03))
    rng, before = np.random.default_rng(0), cells_of(np.arange(0), np.zeros(0))
    for _ in range(4):
        order = np.arange(len(ARMS))
        values = -3.0 * GRID[:, 1] ** 2 + rng.normal(size=len(order))
        evidence.add(cells_of(order, values), before)
        before = cells_of(order, values)
    assert evidence.alarm
    assert evidence.log_total > np.log(1.0 / ALARM)
    assert evidence.strongest == "f2^2"


def test_the_evidence_of_blocks_is_multiplied():
    problem = fl.Problem(ARMS, noise=fl.Gaussian(1.0), check=0.03)
    evidence, rng = evidence_of(problem), np.random.default_rng(1)
    known, expected = cells_of(np.arange(0), np.zeros(0)), np.zeros(1)
    for _ in range(3):
        order = np.arange(len(ARMS))
        block = cells_of(order, GRID[:, 0] ** 2 + rng.normal(size=len(order)))
        h, scale = evidence.size(known)
        now, before = (Residuals.of(ARMS.coordinates, evidence.bends, c) for c in (block, known))
        expected = expected + log_e(now, before, h, 1.0, scale)
        evidence.add(block, known)
        known = block
    assert evidence.log_m == pytest.approx(expected)


def test_an_alarm_takes_evidence_of_twenty_to_one():
    evidence = evidence_of(fl.Problem(ARMS, noise=fl.Gaussian(1.0), check=0.03))
    for more, strong in ((-1e-9, False), (1e-9, True)):
        evidence.log_m = np.full(len(evidence.log_m), np.log(20.0) + more)
        assert evidence.log_total == pytest.approx(np.log(20.0))
        assert evidence.strong is strong


def test_constants_of_batches_cost_degrees_of_freedom():
    rng, order = np.random.default_rng(2), np.arange(len(ARMS))
    values = [shift + rng.normal(size=len(order)) for shift in (0.0, 3.0)]
    sums = [BatchSums.of(BatchResults.of(len(ARMS), order, some)) for some in values]
    found = Residuals.of(ARMS.coordinates, Bends.of(ARMS), Cells.of(sums, None, shifted=True))
    own = np.repeat(np.eye(2), len(ARMS), axis=0)
    X = np.column_stack([np.tile(GRID, (2, 1)), own])
    left = complement(X).T @ np.concatenate(values)
    assert found.freedom == 2 * len(ARMS) - np.linalg.matrix_rank(X)
    assert found.squares == pytest.approx(left @ left)


def test_with_other_arms_the_evidence_is_kept():
    problem = fl.Problem(ARMS, noise=fl.Gaussian(1.0), check=0.03)
    old = evidence_of(problem)
    old.log_m = np.array([1.0, 2.0, 3.0, 0.5])
    fewer = problem.with_(arms=fl.Arms(GRID[:-2]).with_intercept())
    new = evidence_of(fewer, old)
    assert new.log_total == pytest.approx(old.log_total)


def test_nothing_is_checked_unless_asked_for():
    assert evidence_of(fl.Problem(ARMS, noise=fl.Gaussian(1.0))) is None
    apart = fl.Problem(fl.Arms.unstructured(5), noise=fl.Gaussian(1.0), check=0.03)
    assert evidence_of(apart) is None
