"""Experiments of fixed size beside a plan: against formulas, simulated experiments, and delta."""

import math

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.planning.draws import Draws
from finalist.planning.equal import EqualShares, _levelled
from finalist.planning.figures import enough
from finalist.planning.fixed import POWER, FixedSize, fixed_size
from finalist.problem import Problem, study_problem
from finalist.simulation.binomial import exact_interval


def needed(problem, theta, *, guess=None, size=None, most=10**7):
    found = fixed_size(problem, [np.array(theta)] * 50, guess=guess, size=size, seed=0, most=most)
    assert found is not None
    return found


@pytest.mark.parametrize(("sigma", "gap", "delta"), [(1.0, 0.5, 0.05), (3.0, 0.4, 0.01)])
def test_two_candidates_take_what_the_textbook_says(sigma, gap, delta):
    # n / 2 each: gap sqrt(n / 4) / sigma = z(delta) + z(power).
    z = stats.norm.isf(delta) + stats.norm.ppf(POWER)
    expected = (2.0 * sigma * z / gap) ** 2
    problem = study_problem(fl.Arms.unstructured(2), sigma=sigma, delta=delta)
    assert needed(problem, [gap, 0.0]) == pytest.approx(expected, rel=0.06)  # 2,000 draws
    least = needed(problem.with_(objective="min"), [-gap, 0.0])
    assert least == pytest.approx(expected, rel=0.06)


def experiment(problem: Problem, theta, n: int, rng: np.random.Generator, guess=None):
    """Measure each candidate n times and test once, by the words of the module's docstring."""
    means = problem.sign * problem.means(theta)
    K = len(means)
    sigma = guess or problem.sigma
    sums = means + sigma * rng.standard_normal((n, K))
    average = sums.mean(axis=0)
    level = problem.delta / (K - 1)
    if guess is None:
        spread, limit = sigma, stats.norm.isf(level)
    else:
        freedom = n * K - K
        spread = math.sqrt(((sums - average) ** 2).sum() / freedom)
        limit = stats.t.isf(level, freedom)
    best = int(average.argmax())
    error = spread * math.sqrt(2.0 / n)
    clear = average[best] - np.delete(average, best) + problem.epsilon >= limit * error
    return best if clear.all() else None


@pytest.mark.parametrize("words", [{}, {"epsilon": 0.2}, {"sigma": None}], ids=str)
def test_it_names_the_best_as_often_as_it_says(words):
    problem = study_problem(fl.Arms.unstructured(4), **{"sigma": 1.0, **words})
    guess = 1.0 if problem.noise.sigma is None else None
    theta = np.array([0.8, 0.0, 0.1, -0.3])
    n = round(needed(problem, theta, guess=guess) / 4)
    rng = np.random.default_rng(1)
    named = sum(experiment(problem, theta, n, rng, guess) is not None for _ in range(1500))
    low, high = exact_interval(named, 1500)
    assert low - 0.02 <= POWER <= high + 0.02  # n is a whole number of each


@pytest.mark.parametrize("broken", [False, True])
def test_a_wrong_candidate_is_named_with_delta_at_most(broken):
    # Two that are all but tied: each is named as often, and one of them is wrong.
    problem = study_problem(fl.Arms.unstructured(2), sigma=1.0, delta=0.1)
    asked = FixedSize(problem, [np.array([1e-9, 0.0])] * 400, None, None, 3)
    if broken:  # the standard error of one mean instead of a difference
        asked._variances = asked._variances / 2.0
    tries = len(asked._noise)
    wrong = round(tries * asked.named(70) / 2.0)
    low, _ = exact_interval(wrong, tries)
    assert (low > 0.1) == broken


def test_bonferroni_pays_for_all_candidates():
    # One in front and six tied behind: each of them has its part of delta.
    problem = study_problem(fl.Arms.unstructured(7), sigma=1.0, delta=0.1)
    asked = FixedSize(problem, [np.array([1.0, *[0.0] * 6])] * 50, None, None, 3)
    z = stats.norm.isf(0.1 / 6.0)
    means, limits = np.array([[z, 0, 0, 0, 0, 0, 0]]), np.ones(1)
    asked._variances = np.ones((7, 7))
    assert asked._clear(means * 1.001, z * limits)
    assert not asked._clear(means * 0.999, z * limits)
    n = 200
    se = math.sqrt(7.0 / n)  # of one mean; a lead of 1 in se sqrt(2)
    rng = np.random.default_rng(0)
    drawn = se * rng.standard_normal((20_000, 7)) + np.eye(7)[0]
    expected = (drawn[:, 0] - drawn[:, 1:].max(axis=1) >= z * se * math.sqrt(2.0)).mean()
    found = FixedSize(problem, [np.eye(7)[0]] * 200, None, None, 3).named(n)
    assert found == pytest.approx(expected, abs=0.02)


def test_equal_shares_use_the_model_and_unequal_noise():
    line = fl.Arms(np.linspace(0.0, 1.0, 9)[:, None]).with_intercept()
    theta = np.array([2.0, 0.0])
    model = needed(study_problem(line, sigma=1.0), theta)
    alone = needed(study_problem(line.with_model("separate"), sigma=1.0), line.means(theta))
    assert model < alone / 3
    # The difference of neighbours is a part of the slope, which equal shares estimate with
    # variance sigma^2 / (n var(x)): the end is named if it leads its neighbour.
    x = np.linspace(0.0, 1.0, 9)
    z = stats.norm.isf(0.05 / 8) + stats.norm.ppf(POWER)
    assert model == pytest.approx((z / 2.0) ** 2 / x.var(), rel=0.07)
    noisy = needed(study_problem(line, sigma=[2.0] * 9), theta)
    assert noisy == pytest.approx(4.0 * model, rel=0.04)
    dear = needed(study_problem(line, sigma=1.0, cost=[3.0] * 9), theta)
    assert dear == pytest.approx(3.0 * model, rel=0.01)


def test_levels_of_plates_do_not_matter_where_each_plate_has_all():
    arms = fl.Arms(np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])).with_intercept()
    theta = np.array([0.6, -0.5, 0.0])
    plain = needed(study_problem(arms, sigma=1.0), theta)
    plates = needed(study_problem(arms, sigma=1.0, batch_intercept=True), theta, size=4)
    assert plates == pytest.approx(plain, rel=0.06)


def test_where_there_is_no_such_test_there_is_no_number():
    arms = fl.Arms([[0.0], [1.0], [2.0]]).with_intercept()
    for words in ({"misspecification": 0.1}, {"max_pulls_per_arm": 30}):
        problem = study_problem(arms, sigma=1.0, **words)
        thetas = [np.array([1.0, 0.0])]
        assert fixed_size(problem, thetas, guess=None, size=None, seed=0, most=100) is None
    far = study_problem(arms, sigma=1.0)
    assert needed(far, [1e-6, 0.0], most=5000) == math.inf


def test_several_winners_take_more_pairs():
    problem = study_problem(fl.Arms.unstructured(6), sigma=1.0)
    theta = [3.0, 2.5, 2.0, 0.0, 0.0, 0.0]
    two = needed(problem.with_(goal=fl.TopM(2)), theta)
    three = needed(problem.with_(goal=fl.TopM(3)), theta)
    assert three < two / 4  # a lead of 2 and not of 1/2


# ---- equal shares, with the gauntlet's own test ----------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"sigma": None}, {"epsilon": 0.2}, {"check": 0.0}])
def test_equal_shares_measure_equally_often(settings):
    problem = study_problem(fl.Arms.unstructured(6), **{"sigma": 1.0, **settings})
    guess = 1.0 if problem.noise.sigma is None else None
    draws = Draws(problem, (EqualShares(), "gauntlet"), 0.4, None, 0, 10**5, None, guess)
    for draw in range(0, 10, 2):
        counts = draws.run(draw).pulls
        assert counts.max() - counts.min() <= 0.2 * counts.max() + 3
    assert any(np.ptp(draws.run(draw).pulls) > 0.5 * draws.run(draw).pulls.max() for draw in (1, 3))


def test_equal_shares_keep_delta():
    problem = study_problem(fl.Arms.unstructured(4), sigma=1.0, delta=0.2)
    draws = Draws(problem, (EqualShares(),), 0.5, None, 3, 10**5)
    wrong = sum(not draws.run(i).correct for i in range(120))
    assert exact_interval(wrong, 120)[0] <= 0.2


def test_counts_are_levelled():
    rng = np.random.default_rng(0)
    for _ in range(200):
        done, size = rng.integers(0, 9, rng.integers(1, 7)), int(rng.integers(0, 40))
        more, expected = _levelled(done, size), np.zeros(len(done), dtype=int)
        for _ in range(size):
            expected[np.argmin(done + expected)] += 1
        assert more.sum() == size
        np.testing.assert_array_equal(np.sort(done + more), np.sort(done + expected))


# ---- what is enough for further studies --------------------------------------------------------


@pytest.mark.parametrize("n", [9, 20, 50, 100])
def test_enough_covers_further_values_as_often_as_it_says(n):
    rng = np.random.default_rng(n)
    hits = sum(rng.exponential() <= enough(rng.exponential(size=n), 0.9) for _ in range(4000))
    low, high = exact_interval(hits, 4000)
    assert high >= 0.9
    assert low - 0.01 <= math.ceil(0.9 * (n + 1)) / (n + 1)


def test_quantiles_would_cover_less():
    rng = np.random.default_rng(1)
    some = rng.exponential(size=(4000, 10))
    below = np.quantile(some, 0.9, axis=1, method="inverted_cdf")
    hits = int((rng.exponential(size=4000) <= below).sum())
    assert exact_interval(hits, 4000)[1] < 0.9  # 9 / 11
