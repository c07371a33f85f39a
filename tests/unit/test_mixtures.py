"""Bets on single numbers and the ellipsoid in one wealth: by hand, at the edges, at all times."""

import math

import numpy as np
import pytest

import finalist as fl
from finalist.inference import mixtures
from finalist.inference.intervals import Ellipsoid, certainty, mixture, pooled_widths, start_of
from finalist.inference.leads import ahead_at_least, behind_at_most, leads, mean_widths
from finalist.inference.mixtures import Batches, Mixture
from finalist.inference.pooling import BatchSums, Pooled, batch_arms
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from tests import instances


def pooled_of(problem, batches):
    """Pool batches of (counts, means)."""
    pooled, sums = Pooled(problem), []
    for counts, means in batches:
        rewards = Statistics.of_batch(counts, np.multiply(counts, means), np.zeros(len(counts)))
        pooled.add(rewards)
        sums.append(BatchSums.of(rewards))
    return pooled.estimate(), Batches(problem, sums)


def test_a_mixture_by_hand():
    # Two bets, at 0 with unit 1 and at 1 with unit 2; F(t) = e^(t^2/2)/4 + e^((t-1)^2/8)/4.
    found = Mixture(
        np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]]), np.full((2, 1), math.log(4))
    )

    def F(t):
        return (math.exp(t * t / 2) + math.exp((t - 1) ** 2 / 8)) / 4

    below, above = (float(end[0]) for end in found.reach(0.05))
    assert F(above) == pytest.approx(20.0, rel=1e-7)
    assert F(-below) == pytest.approx(20.0, rel=1e-7)
    assert above > below  # the second one leans to the right
    assert found.level(np.array([-4.0]))[0] == pytest.approx(1 / F(-4.0), rel=1e-12)
    assert found.level(np.array([4.0]))[0] == 1.0  # F rises there: nothing is above 4


def test_where_no_value_is_left_there_is_no_interval():
    apart = Mixture(np.array([[0.0], [50.0]]), np.ones((2, 1)), np.zeros((2, 1)))
    assert [float(end[0]) for end in apart.reach(0.05)] == [math.inf, math.inf]


@pytest.mark.filterwarnings("error")
def test_nothing_known_and_everything_known():
    unit = np.array([[np.inf, 0.0, 1.0], [np.inf, np.inf, np.inf]])
    found = Mixture(np.zeros((2, 3)), unit, np.full((2, 3), math.log(2)))
    below, above = found.reach(0.05)
    np.testing.assert_array_equal(np.isinf(below), [True, False, False])
    assert above[1] == 0.0
    # A bet that is not made keeps its half: e^(t^2/2)/2 + 1/2 = 20.
    assert above[2] == pytest.approx(math.sqrt(2 * math.log(39)), rel=1e-7)


def test_a_bet_is_from_batches_alone_and_in_their_weights():
    # Unstructured: y = e_0 - e_1 has V_b = 1 / (1/n_0 + 1/n_1) / sigma^2 in each batch.
    problem = as_problem(fl.Arms.unstructured(3), sigma=1.0)
    batches = [([2, 2, 4], [1.0, 0.0, 0.0]), ([6, 3, 1], [4.0, 1.0, 0.0]), ([0, 5, 5], [0, 9, 9])]
    fit, bets = pooled_of(problem, batches)
    Z = problem.arms.coordinates
    Y = Z[[0, 0]] - Z[[1, 2]]
    found = bets.about(fit, Y)
    assert found is not None
    V, offset = found
    np.testing.assert_allclose(V, [1.0 + 2.0, 4 / 3 + 6 / 7], rtol=1e-12)  # the third cannot tell
    by_batch = np.array([(1.0 * 1.0 + 2.0 * 3.0) / 3.0, (4 / 3 + 4 * 6 / 7) / V[1]])
    np.testing.assert_allclose(fit.gaps(Y) + offset, by_batch, rtol=1e-12)


def test_the_noise_of_each_arm_and_shifts_between_batches():
    arms = fl.Arms(instances.gaussian(5, 3, 4))
    counts, theta = [3, 2, 4, 1, 2], np.array([1.0, -0.5, 2.0])
    for words in ({"sigma": (1.0, 2.0, 0.5, 1.0, 3.0)}, {"sigma": 1.0, "batch_intercept": True}):
        problem = as_problem(arms, **words)
        means = arms.means(theta)
        batches = [(counts, means + 7.0 * i * problem.batch_intercept) for i in range(3)]
        fit, bets = pooled_of(problem, batches)
        Z = batch_arms(problem).coordinates
        Y = Z[[0, 2]] - Z[[1, 4]]
        found = bets.about(fit, Y)
        assert found is not None
        V, offset = found
        # Equal batches lose nothing: V is that of all pulls, and without noise so is the estimate.
        np.testing.assert_allclose(1.0 / V, fit.information.variances(Y), rtol=1e-9)
        np.testing.assert_allclose(offset, 0.0, atol=1e-9)


def test_no_mean_has_an_interval_where_batches_are_shifted():
    problem = as_problem(fl.Arms.unstructured(3), sigma=1.0, batch_intercept=True)
    fit, bets = pooled_of(problem, [([4, 4, 4], [1.0, 0.0, 2.0]), ([4, 4, 4], [8.0, 7.0, 9.0])])
    start = start_of(problem)
    assert np.isinf(mean_widths(fit, start, 0.95, 1.0, bets)).all()
    found = leads(fit, 2, start, 0.95, 1.0, bets, sign=1, won=True)
    np.testing.assert_allclose(found.estimate[:2], [1.0, 2.0])
    assert np.isfinite(found.low[:2]).all()


def test_without_bets_it_is_the_ellipsoid():
    problem = as_problem(fl.Arms(instances.gaussian(6, 3, 1)), sigma=2.0)
    fit, bets = pooled_of(problem, [([5, 1, 2, 3, 4, 1], [1.0, 0.5, 2.0, 0.0, 1.0, 3.0])])
    start, Z = start_of(problem), problem.arms.coordinates
    expected = pooled_widths(fit, Z, start, 0.9, 2.0)
    np.testing.assert_allclose(mean_widths(fit, start, 0.9, 2.0, None), expected, rtol=1e-8)
    # Who has not won is judged by the ellipsoid's half of the wealth alone.
    two = leads(fit, 5, start, 0.9, 2.0, bets, sign=1, won=False)
    found = Ellipsoid.of(fit, start)
    assert found is not None
    half = found.units(Z[[5]] - Z[[0]])[0] * 2.0
    log_f = 0.5 * ((two.high[0] - two.estimate[0]) / half) ** 2 - found.log_det_ratio / 2
    assert math.exp(log_f) / 2 == pytest.approx(10.0, rel=1e-6)


def test_bets_that_lost_count_for_what_they_have_left_and_not_for_what_they_began_with():
    # Two batches say the same, so that the bets have lost: left out they must not count as even.
    problem = as_problem(fl.Arms.unstructured(2), sigma=1.0)
    fit, bets = pooled_of(problem, [([50, 50], [1.0, 0.0])] * 2)
    start, Y = start_of(problem), fit.arms.coordinates[:1] - fit.arms.coordinates[1:]
    at = np.zeros(1)
    all_of_it, part = (mixture(fit, Y, start, 1.0, some, 1) for some in (bets, bets.left_out()))
    assert all_of_it is not None
    assert part is not None
    assert part.log_wealth(at)[0] < all_of_it.log_wealth(at)[0] < math.log(0.5)


def test_an_unknown_sigma_and_none_at_all():
    problem = as_problem(fl.Arms.unstructured(3), sigma=None)
    pooled, batch = Pooled(problem), Statistics.of_batch([5] * 3, [5.0, 0.0, 2.0], [4.0] * 3)
    pooled.add(batch)
    fit, start, bets = pooled.estimate(), start_of(problem), Batches(problem, [BatchSums.of(batch)])
    # 12 degrees of freedom, a residual variance of 1: sigma is at most 1.83 with 99 %.
    known = mean_widths(fit, start, 0.95, 1.83325, bets)
    np.testing.assert_allclose(mean_widths(fit, start, 0.95, None, bets), known, rtol=1e-4)
    assert certainty(fit, 0, sign=1, sigma=None, start=start, bets=bets) is None
    assert mixture(fit, fit.arms.coordinates, None, 1.0, bets, 3) is None


def test_bets_are_left_out_where_they_take_long(monkeypatch):
    problem = as_problem(fl.Arms.unstructured(12), sigma=1.0)
    fit, bets = pooled_of(problem, [([10] * 12, np.zeros(12))])
    start = start_of(problem)
    sharp = mean_widths(fit, start, 0.95, 1.0, bets)
    monkeypatch.setattr(mixtures, "MAX_WORK", 10)
    wide = mean_widths(fit, start, 0.95, 1.0, bets)
    assert (wide > 1.2 * sharp).all()
    np.testing.assert_allclose(wide, mean_widths(fit, start, 0.95, 1.0, bets.left_out()))


@pytest.mark.parametrize("sign", [1, -1])
def test_leads_of_a_winner(sign):
    arms = fl.Arms(np.eye(4), names=list("abcd"))
    three = fl.Arms(np.eye(4)[:3], names=list("abc"))
    problem = as_problem(arms, candidates=three, sigma=1.0)
    fit, bets = pooled_of(problem, [([30] * 4, [0.0, 2.0, 1.0, 9.0])] * 2)
    start, best = start_of(problem), 1 if sign == 1 else 0
    found = leads(fit, best, start, 0.95, 1.0, bets, sign=sign, won=True)
    assert np.isnan(found.low[[best, 3]]).all()  # itself, and who cannot win
    other = 0 if sign == 1 else 1
    assert found.estimate[other] == pytest.approx(2.0)
    below, above = found.estimate - found.low, found.high - found.estimate
    np.testing.assert_allclose(below[[other, 2]], above[[other, 2]], rtol=1e-8)
    # V = 30 from 60 pulls of each, v = 1/8 of what 4 pulls of each tell, 2: two other candidates.
    u2 = 2 / 60 + 2 * 4 / 60**2
    F = 0.5 * (4 / 64) ** 2 * math.exp(below[2] ** 2 / 2 / u2)
    F += 0.25 * math.sqrt(0.25 / 30.25) * math.exp((30 * below[2]) ** 2 / 2 / 30.25)
    assert pytest.approx(20.0, rel=1e-6) == F


def test_certainty_is_where_the_intervals_just_exclude_a_better_arm():
    problem = as_problem(fl.Arms.unstructured(5), sigma=1.0)
    means = [0.0, 1.2, 0.2, 0.1, 0.3]
    fit, bets = pooled_of(problem, [([20] * 5, means), ([30, 40, 10, 30, 30], means)])
    start = start_of(problem)
    alone = certainty(fit, 1, sign=1, sigma=1.0, start=start)
    sure = certainty(fit, 1, sign=1, sigma=1.0, start=start, bets=bets)
    assert sure is not None
    assert alone is not None
    assert 0.9 < sure < 1.0
    for step, excluded in ((-1e-6, True), (1e-6, False)):
        found = leads(fit, 1, start, sure + step * (1 - sure), 1.0, bets, sign=1, won=True)
        assert (np.nanmin(found.low) > 0.0) == excluded
    # One bet on each of four leads beats five dimensions.
    assert 1 - sure < 0.5 * (1 - alone)


def test_behind_the_best_at_most_is_where_certainty_is_the_confidence():
    problem = as_problem(fl.Arms.unstructured(5), sigma=1.0)
    means = [0.0, 0.9, 0.2, 0.1, 1.0]
    fit, bets = pooled_of(problem, [([20] * 5, means), ([30, 40, 10, 30, 30], means)])
    start = start_of(problem)
    words = {"sign": 1, "sigma": 1.0, "start": start, "bets": bets}
    for arm in range(5):
        most = behind_at_most(fit, arm, **words, confidence=0.9)
        assert most is not None
        ends = leads(fit, arm, start, 0.9, 1.0, bets, sign=1, won=True)
        assert most == pytest.approx(max(-np.nanmin(ends.low), 0.0), rel=1e-9)
        assert certainty(fit, arm, **words, epsilon=most) == pytest.approx(0.9, abs=1e-6)
    bias = np.array([0.1, 0.0, 0.3, 0.2, 0.4])
    some = behind_at_most(fit, 1, **words, confidence=0.9, bias=bias)
    assert some is not None
    assert certainty(fit, 1, **words, epsilon=some, bias=bias) == pytest.approx(0.9, abs=1e-6)
    assert behind_at_most(fit, 1, **(words | {"start": None}), confidence=0.9) is None


def test_who_leads_by_enough_is_not_behind_at_all():
    problem = as_problem(fl.Arms.unstructured(2), sigma=1.0, objective="min")
    fit, bets = pooled_of(problem, [([60, 60], [0.0, 2.0])])
    words = {"sign": -1, "sigma": 1.0, "start": start_of(problem), "bets": bets}
    assert behind_at_most(fit, 0, **words, confidence=0.95) == 0.0
    most = behind_at_most(fit, 1, **words, confidence=0.95)
    assert most is not None
    assert most > 2.0


def test_any_arm_may_be_named_at_the_price_of_all_pairs():
    problem = as_problem(fl.Arms.unstructured(4), sigma=1.0)
    fit, bets = pooled_of(problem, [([30] * 4, [0.0, 2.0, 1.0, 1.5])] * 2)
    start = start_of(problem)
    words = {"sign": 1, "sigma": 1.0, "start": start, "bets": bets, "confidence": 0.95}
    least = ahead_at_least(fit, 1, **words)
    assert np.isnan(least[1])
    # As in the test of a winner's leads, but six pairs share the half of the bets.
    below, u2 = 1.0 - least[2], 2 / 60 + 2 * 4 / 60**2
    F = 0.5 * (4 / 64) ** 2 * math.exp(below**2 / 2 / u2)
    F += 0.5 / 6 * math.sqrt(0.25 / 30.25) * math.exp((30 * below) ** 2 / 2 / 30.25)
    assert pytest.approx(20.0, rel=1e-6) == F
    best, other = (leads(fit, 1, start, 0.95, 1.0, bets, sign=1, won=won) for won in (True, False))
    assert other.low[2] < least[2] < best.low[2]
    off = ahead_at_least(fit, 1, **words, bias=np.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_allclose(least - off, [0.1, np.nan, 0.3, 0.4])
    assert np.isnan(ahead_at_least(fit, 1, **(words | {"start": None}))).all()


def test_only_candidates_are_behind():
    arms, two = fl.Arms(np.eye(3), names=list("abc")), fl.Arms(np.eye(3)[:2], names=list("ab"))
    problem = as_problem(arms, candidates=two, sigma=1.0)
    fit, bets = pooled_of(problem, [([30] * 3, [0.0, 1.0, 9.0])])
    words = {"sign": 1, "sigma": 1.0, "start": start_of(problem), "bets": bets, "confidence": 0.95}
    most = behind_at_most(fit, 1, **words)
    assert most is not None
    assert most < 1.0  # the third is better by 8 and cannot win
    assert np.isnan(ahead_at_least(fit, 1, **words)[[1, 2]]).all()
