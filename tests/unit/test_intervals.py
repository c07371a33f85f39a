"""Who leads, how likely that is wrong by an estimate, and what is certain, against closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.inference.bounds import pooled_level, pooled_radius
from finalist.inference.intervals import (
    certainty,
    error_estimate,
    leader,
    leaders,
    pooled_widths,
    start_of,
)
from finalist.inference.least_squares import estimate
from finalist.inference.pooling import Pooled, batch_arms
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation.binomial import exact_interval, exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from tests import instances


def fitted(arms, counts, means, spread=0.0):
    """Return the estimate from pulls whose rewards are means plus and minus a spread."""
    s = Statistics.empty(len(arms))
    for arm, (n, mean) in enumerate(zip(counts, means, strict=True)):
        signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        s.add_many(np.full(n, arm), mean + spread * signs)
    return estimate(arms, s)


TWO = fl.Arms.unstructured(2)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("gap", [-0.5, 0.0, 0.3, 5.0])
def test_two_arms_have_the_error_of_the_normal_distribution(gap, epsilon, sign):
    fit = fitted(TWO, [10, 30], [sign * gap, 0.0])
    sd = 0.7 * math.sqrt(1 / 10 + 1 / 30)
    expected = stats.norm.cdf(-(gap + epsilon) / sd)
    found = error_estimate(fit, 0, sign=sign, sigma=0.7, epsilon=epsilon)
    assert found == pytest.approx(expected, rel=1e-9)


def test_an_unknown_sigma_makes_it_the_t_distribution():
    fit = fitted(TWO, [4, 4], [0.5, 0.0], spread=0.4)
    sd = math.sqrt(fit.residual_variance * (1 / 4 + 1 / 4))
    expected = stats.t.cdf(-0.5 / sd, df=6)
    assert error_estimate(fit, 0, sign=1, sigma=None) == pytest.approx(expected, rel=1e-9)
    assert expected > stats.norm.cdf(-0.5 / sd) * 1.2


def test_many_arms_agree_with_another_way_to_count():
    arms = fl.Arms(instances.gaussian(7, 3, 1))
    theta = np.array([0.3, 0.1, -0.2])
    fit = fitted(arms, [5] * 7, arms.means(theta))
    best = int(arms.means(theta).argmax())
    X, A = arms.features, 5.0 * arms.features.T @ arms.features
    draws = np.random.default_rng(5).multivariate_normal(theta, np.linalg.inv(A), 200_000)
    # Stein's prior in three coordinates, with tau integrated out, is 1 / |b|: draws count by it.
    C = X - X.mean(axis=0)
    weight = 1.0 / np.sqrt(np.einsum("ij,jk,ik->i", draws, C.T @ C, draws))
    wrong = (X @ draws.T).argmax(axis=0) != best
    expected = float(np.average(wrong, weights=weight))
    assert 0.1 < expected < 0.9
    assert expected > wrong.mean() + 0.02  # a flat prior believes the leader more
    found = error_estimate(fit, best, sign=1, sigma=1.0)
    assert found == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 4000))
    assert found == error_estimate(fit, best, sign=1, sigma=1.0)
    mirrored = fitted(arms, [5] * 7, arms.means(-theta))
    opposite = error_estimate(mirrored, best, sign=-1, sigma=1.0)
    assert opposite == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 4000))


def test_rivals_that_never_win_do_not_make_it_zero():
    arms = fl.Arms.unstructured(40)
    means = [10.0, *[0.0] * 39]
    found = error_estimate(fitted(arms, [2] * 40, means), 0, sign=1, sigma=1.0)
    assert found is not None
    single = stats.norm.cdf(-10.0)  # under a flat prior
    assert single <= found * (1 + 1e-9)
    # The common scale of 39 equal arms moves the lead of 10 standard errors towards 0 by less
    # than a fifth.
    assert found <= 39 * stats.norm.cdf(-8.0)


def test_nothing_is_estimated_where_nothing_is_known():
    three = fl.Arms.unstructured(3)
    assert error_estimate(fitted(three, [5, 5, 0], [1, 0, 0]), 0, sign=1, sigma=1.0) is None
    assert error_estimate(fitted(TWO, [1, 1], [1, 0]), 0, sign=1, sigma=None) is None
    assert error_estimate(fitted(TWO, [5, 5], [1, 0]), 0, sign=1, sigma=None) is None  # no scatter
    one = fl.Arms.unstructured(1)
    assert error_estimate(fitted(one, [0], [0]), 0, sign=1, sigma=1.0) == 0.0


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_certainty_is_where_the_intervals_just_exclude_a_better_arm(sign, epsilon):
    arms = fl.Arms(instances.gaussian(6, 3, 2))
    theta = sign * np.array([1.0, 0.5, -0.5])
    fit = fitted(arms, [120] * 6, arms.means(theta))
    best = int((sign * arms.means(theta)).argmax())
    start = start_of(as_problem(arms, sigma=1.0))
    sure = certainty(fit, best, sign=sign, sigma=1.0, start=start, epsilon=epsilon)
    assert sure is not None
    assert 0.1 < sure < 1 - 1e-9
    Z = arms.coordinates
    Y = sign * (Z[best] - np.delete(Z, best, axis=0))

    def excluded(confidence):
        widths = pooled_widths(fit, Y, start, confidence, 1.0)
        return bool((fit.gaps(Y) + epsilon >= widths).all())

    assert excluded(sure - 1e-6 * (1 - sure))
    assert not excluded(sure + 1e-6 * (1 - sure))


def test_certainty_is_none_without_intervals_and_zero_without_evidence():
    fit = fitted(TWO, [20, 20], [0.1, 0.0], spread=1.0)
    start = start_of(as_problem(TWO, sigma=1.0))
    assert certainty(fit, 0, sign=1, sigma=1.0, start=start) == 0.0
    assert certainty(fit, 1, sign=1, sigma=1.0, start=start) == 0.0
    assert certainty(fit, 0, sign=1, sigma=1.0, start=None) is None
    assert certainty(fit, 0, sign=1, sigma=None, start=start) is None
    three = fitted(fl.Arms.unstructured(3), [5, 5, 0], [1, 0, 0])
    assert certainty(three, 0, sign=1, sigma=1.0, start=np.eye(3)) is None


@pytest.mark.parametrize("bias", [0.0, 0.3, 2.0])
def test_certainty_with_what_a_wrong_model_can_feign(bias):
    fit, start = fitted(TWO, [50, 50], [1.0, 0.0]), start_of(as_problem(TWO, sigma=1.0))
    sure = certainty(fit, 0, sign=1, sigma=1.0, start=start, bias=np.array([0.0, bias]))
    # A = 50 and A_0 = 4 for each arm: 1 - bias is z units of sqrt(2 (1/50 + 4/50^2)).
    z = (1.0 - bias) / math.sqrt(2 * (1 / 50 + 4 / 50**2))
    expected = 1 - math.exp(-(z**2 - 2 * math.log(54 / 4)) / 2) if z > 0 else 0.0
    assert sure == pytest.approx(max(expected, 0.0), abs=1e-12)


@pytest.mark.parametrize("delta", [0.9, 0.05, 1e-12, 1e-200])
def test_the_level_is_the_inverse_of_the_radius(delta):
    z = pooled_radius(4.0, delta, 1.0)
    assert math.log(pooled_level(4.0, z)) == pytest.approx(math.log(delta), abs=1e-8)
    assert pooled_radius(4.0, pooled_level(4.0, z * 1.01), 1.0) <= z * 1.01


@pytest.mark.parametrize("z", [-3.0, 0.0, 1.9, math.nan])
def test_too_little_is_no_evidence(z):
    assert pooled_level(4.0, z) == 1.0


def test_overwhelming_evidence_stays_a_number():
    assert 0.0 < pooled_level(0.0, 1e6) < 1e-300


# ---- where the parameter is, at all times --------------------------------------------------


def test_a_width_by_hand():
    # Two arms, A = diag(10, 30), A_0 = diag(4, 4): y = e_1 - e_2.
    # y'A^-1 y = 1/10 + 1/30, y'A^-1 A_0 A^-1 y = 4/100 + 4/900, sum 0.1777778;
    # log(14/4) + log(34/4) = 3.3928292, 2 log 20 = 5.9914645, sqrt of both together 3.0633797.
    fit, Z = fitted(TWO, [10, 30], [0.0, 0.0]), TWO.coordinates
    start = start_of(as_problem(TWO, sigma=1.0))
    width = pooled_widths(fit, Z[[0]] - Z[[1]], start, 0.95, sigma=2.0)
    assert width[0] == pytest.approx(2.0 * 3.0633797 * math.sqrt(0.1777778), rel=1e-6)


def test_the_start_is_from_the_question_alone():
    arms = fl.Arms(instances.gaussian(5, 3, 4), measurable=[True, True, True, True, False])
    sigma = (1.0, 2.0, 0.5, 1.0, 9.0)
    Z, p = arms.coordinates, 1.0 / np.square(sigma[:4])
    expected = sum(p[i] * np.outer(Z[i], Z[i]) for i in range(4)) * 4 * 3 / 4
    np.testing.assert_allclose(start_of(as_problem(arms, sigma=sigma)), expected)
    shifted = start_of(as_problem(arms, sigma=1.0, batch_intercept=True))
    one = arms.with_intercept().coordinates[:4]
    np.testing.assert_allclose(
        shifted, (one - one.mean(0)).T @ (one - one.mean(0)) * 4 * 4 / 4, atol=1e-12
    )


def test_what_has_no_dimension_has_no_interval():
    problem = as_problem(fl.Arms([[1.0]]), sigma=1.0, batch_intercept=True)
    pooled = Pooled(problem)
    pooled.add(Statistics.of_batch([2], [1.0], [0.5]))
    fit = pooled.estimate()
    assert fit.dimension == 0
    assert np.isinf(pooled_widths(fit, fit.arms.coordinates, start_of(problem), 0.95, 1.0)).all()


def misses(q, factor=1.0, runs=200, **words):
    """Count runs in which an interval misses a difference at any time; pulls follow the noise."""
    arms, theta = fl.Arms(instances.unit_sphere(6, 3, 3)), np.array([0.3, -0.2, 0.1])
    problem = as_problem(arms, sigma=1.0, **words)
    start, truth, missed = start_of(problem), arms.means(theta), 0
    Y = np.diff(batch_arms(problem).coordinates, axis=0)
    shift = 2.0 if problem.batch_intercept else 0.0
    for seed in range(runs):
        lab = DrawnRewards(truth, 1.0, "gaussian", np.random.default_rng(seed), shift)
        pooled, counts = Pooled(problem), np.ones(6, dtype=np.int64)
        for _ in range(30):
            pooled.add(lab.batch(counts))
            fit = pooled.estimate()
            widths = factor * pooled_widths(fit, Y, start, 1.0 - q, 1.0)
            if np.any(np.abs(fit.gaps(Y) - np.diff(truth)) > widths):
                missed += 1
                break
            best = int((pooled.arms.coordinates @ fit.phi).argmax())
            counts = np.bincount([best, best, (best + 1) % 6], minlength=6)
    return missed, runs


@pytest.mark.parametrize("words", [{}, {"batch_intercept": True}])
def test_intervals_hold_at_all_times_and_narrower_ones_do_not(words):
    for factor, wrong in ((1.0, False), (0.55, True)):
        missed, runs = misses(0.2, factor, **words)
        assert (exact_lower_bound(missed, runs, 0.999) > 0.2) == wrong


def test_ties_favour_no_row():
    # Four arms with the same mean and five yes/no results each: ties are frequent.
    arms, rng, first = fl.Arms.unstructured(4), np.random.default_rng(5), np.zeros(4, dtype=int)
    runs = 800
    for _ in range(runs):
        results = Statistics.empty(4)
        results.add_many(np.repeat(np.arange(4), 5), (rng.random(20) < 0.5).astype(float))
        found = leaders(estimate(arms, results), 1, range(4), 4)
        assert sorted(found) == [0, 1, 2, 3]
        assert found == leaders(estimate(arms, results), 1, range(4), 4)
        first[found[0]] += 1
    for count in first:  # the first of equals, as `argmax` has it, leads in about .41 of the runs
        low, high = exact_interval(int(count), runs, 0.9999)
        assert low <= 0.25 <= high


def test_what_nobody_knows_comes_last_and_in_order():
    results = Statistics.empty(4)
    results.add_many([2, 2], [-1.0, -1.0])
    assert leaders(estimate(fl.Arms.unstructured(4), results), 1, range(4), 4) == (2, 0, 1, 3)


def test_the_leader_is_among_those_asked_for():
    fit = fitted(fl.Arms.unstructured(4), [3, 3, 3, 0], [1.0, 4.0, 2.0, 0.0])
    assert leader(fit, 1, (0, 2, 3)) == 2
    assert leader(fit, -1, (1, 2)) == 2
    assert leader(fit, 1, (3,)) == 3


@pytest.mark.filterwarnings("error")
def test_any_number_of_standard_errors_has_a_level():
    s = Statistics.empty(2)
    s.add_many([0] * 5 + [1] * 5, [1e150] * 5 + [0.0] * 5)
    fit = estimate(fl.Arms.unstructured(2), s)
    start = start_of(as_problem(TWO, sigma=1.0))
    assert certainty(fit, 0, sign=1, sigma=1e-150, start=start) == math.nextafter(1.0, 0.0)
    assert certainty(fit, 1, sign=1, sigma=1e-150, start=start) == 0.0
    assert error_estimate(fit, 0, sign=1, sigma=1e-150) == 0.0
    assert pooled_level(3.0, math.inf) == pooled_level(3.0, 1e200) < 1e-300
