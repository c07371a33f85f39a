"""Plans and forecasts: against simulations, exact gaps, and what cannot be known."""

import json
import math
import pickle
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import finalist as fl
from finalist.errors import EstimateError, FinalistError, ProblemError
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.planning import Forecast, Plan, PlanRow, forecast
from finalist.planning.draws import Draws
from finalist.planning.equal import EqualShares
from finalist.planning.figures import about, quantile
from finalist.planning.parameters import leading
from finalist.problem import as_problem
from finalist.simulation import task
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import STRATEGIES, Strategy, named, promise_of
from tests import fakes, instances

TWO = fl.Arms.unstructured(2)
THREE = fl.Arms.unstructured(3)
#: Arms with a constant feature, so that Bernoulli means around 1/2 exist.
LINE = fl.Arms([[1.0, 0.0], [1.0, 0.5], [1.0, 1.0]])


def sure(arms, means, pulls=10**12):
    """An estimate that leaves no doubt about the means."""
    rewards, n = Statistics.empty(len(arms)), np.full(len(arms), pulls)
    rewards.add_batch(n, n * np.asarray(means, dtype=float), np.zeros(len(arms)))
    return estimate(arms, rewards)


def begun(strategy, problem, means, seed=0, batches=2, size=None):
    """A run after some batches, and all its rewards."""
    run = strategy.start(problem, seed=1)
    source = DrawnRewards(np.asarray(means), 1.0, "gaussian", np.random.default_rng(seed))
    rewards = Statistics.empty(len(problem.arms))
    for _ in range(batches):
        batch = run.next(size)
        values = source.batch(batch.counts)
        run.record(batch, values)
        rewards.merge(values)
    return run, rewards


# ---- figures -----------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.95])
def test_quantiles_are_those_of_the_inverted_distribution(share):
    for n in range(1, 61):
        values = np.random.default_rng(n).permutation(n) * 1.5
        assert quantile(values, share) == np.quantile(values, share, method="inverted_cdf")


def test_quantiles_are_infinite_when_so_many_draws_are():
    values = np.array([1.0, 2.0, np.inf, np.inf])
    assert quantile(values, 0.5) == 2.0
    assert quantile(values, 0.51) == np.inf


def test_a_promise_is_rounded_up():
    for value in (1, 9, 10, 99, 101, 119, 120, 999, 1001, 123_456):
        shown = int(about(float(value), up=True).replace(",", ""))
        assert value <= shown <= 1.1 * value
        assert abs(int(about(float(value)).replace(",", "")) - value) <= 0.05 * value


# ---- forecasts ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n, s in STRATEGIES.items() if promise_of(s) != "budget"])
def test_a_forecast_changes_nothing_and_depends_on_the_seed_alone(name):
    K = 3 if name == "track-and-stop" else 8  # it is for arms that share nothing
    arms = fl.Arms(instances.gaussian(K, 3, 2))
    theta = np.array([1.0, 0.5, -1.0]) / 4
    zoned = promise_of(STRATEGIES[name]) == "zone"
    problem = as_problem(arms, sigma=1.0, epsilon=0.3 if zoned else 0.0)
    (run, rewards), (untouched, _) = (
        begun(named(name, arms, theta), problem, arms.means(theta), size=12) for _ in range(2)
    )
    fit = estimate(arms, rewards)
    one, again = (forecast(run, problem, fit, 24, draws=8, seed=3) for _ in range(2))
    other = forecast(run, problem, fit, 24, draws=8, seed=4)
    np.testing.assert_array_equal(one.pulls, again.pulls)
    # Pulls fixed in advance; a first phase above the cap.
    if name not in ("xy-oracle", "rage", "bechhofer"):
        assert (one.pulls != other.pulls).any()
    more = forecast(run, problem, fit, 24, draws=12, seed=3)
    np.testing.assert_array_equal(more.pulls[:8], one.pulls)
    assert one.pulls.min() >= 1
    assert run.verdict == untouched.verdict
    for size in (None, 7):
        np.testing.assert_array_equal(run.next(size).counts, untouched.next(size).counts)
    source = DrawnRewards(arms.means(theta), 1.0, "gaussian", np.random.default_rng(9))
    values = source.batch((batch := run.next(5)).counts)
    run.record(batch, values)
    untouched.record(batch, values)
    assert run.verdict == untouched.verdict


@pytest.mark.parametrize("name", ["gauntlet", "uniform", "xy"])
@pytest.mark.parametrize("settings", [{}, {"objective": "min"}], ids=["max", "min"])
def test_a_forecast_from_the_start_is_a_simulation(name, settings):
    theta, sign = np.array([1.5, 0.0]), -1 if settings else 1
    problem = as_problem(TWO, sigma=1.0, **settings)
    run = named(name, TWO).start(problem, seed=5)
    soon = forecast(run, problem, sure(TWO, sign * theta), 0, draws=120, seed=1)
    runs = fl.simulate(TWO, sign * theta, name, runs=120, seed=2, sigma=1.0, **settings)
    error = math.hypot(soon.pulls.std(), runs.samples.std()) / math.sqrt(120)
    assert abs(soon.pulls.mean() - runs.samples.mean()) < 4 * error
    assert soon.pulls.mean() > 10  # not at once


def test_doubt_about_the_parameter_widens_a_forecast():
    problem, theta = as_problem(TWO, sigma=1.0), np.array([1.5, 0.0])
    run = fl.XYAllocation().start(problem)
    certain = forecast(run, problem, sure(TWO, theta), 0, draws=100)
    doubtful = forecast(run, problem, sure(TWO, theta, pulls=5), 0, draws=100)
    assert doubtful.high > 2 * certain.high
    assert doubtful.low < certain.low


def test_later_forecasts_need_less():
    problem = as_problem(THREE, sigma=1.0)
    run, _ = begun(fl.XYAllocation(), problem, [0.8, 0.0, 0.0], size=60)
    assert not run.verdict.decided
    known = sure(THREE, [0.8, 0.0, 0.0])
    later = forecast(run, problem, known, 120, draws=100)
    fresh = forecast(fl.XYAllocation().start(problem), problem, known, 0, draws=100)
    assert later.median < fresh.median - 60


def test_copies_share_the_arms_and_the_problem(monkeypatch):
    arms = fl.Arms(instances.gaussian(8, 3, 2))
    problem, seen = as_problem(arms, sigma=1.0), []

    def watch(run, rewards, K, most):
        seen.append(run)
        return np.zeros(K, dtype=np.int64), 0

    monkeypatch.setattr(task, "finish", watch)
    run = fl.Gauntlet().start(problem)
    forecast(run, problem, sure(arms, np.zeros(8)), 0, draws=2)
    assert len({id(one) for one in [run, *seen]}) == 3
    for twin in seen:
        assert twin._problem is problem
        assert twin._course.past.Z is arms.coordinates
        assert twin._course.past is not run._course.past


def test_a_decided_run_needs_no_more_pulls():
    problem = as_problem(TWO, sigma=1.0)
    run, rewards = begun(fl.Uniform(), problem, [50.0, 0.0], batches=1, size=200)
    assert run.verdict.decided
    soon = forecast(run, problem, estimate(TWO, rewards), 200)
    assert soon.pulls.tolist() == [0.0] * 20
    assert soon.words() == "No more measurements are needed."


def test_draws_are_cut_at_the_cap():
    problem = as_problem(TWO, sigma=1.0)
    tied = sure(TWO, [1.0, 1.0])
    for strategy in (fl.Uniform(), fl.XYAllocation(), fl.Gauntlet()):
        soon = forecast(strategy.start(problem), problem, tied, 0, draws=4, cap=60)
        assert soon.pulls.tolist() == [np.inf] * 4
        assert (soon.cap, soon.median, soon.low) == (60, np.inf, np.inf)
    assert (
        soon.words()
        == "More than 60 more measurements: none of 4 simulations had a winner by then."
    )
    run, _ = begun(fl.XYAllocation(), problem, [0.6, 0.0], size=60, batches=1)
    ended = forecast(run, problem, sure(TWO, [2.5, 0.0]), 60, draws=40, cap=20).pulls
    assert 1 <= ended.min() <= 20  # further pulls, not those of the whole run
    assert np.isinf(ended).any()


@pytest.mark.parametrize(("done", "cap"), [(0, 50 * 40), (39, 50 * 40), (100, 50 * 100)])
def test_the_default_cap_grows_with_the_pulls(done, cap):
    problem = as_problem(TWO, sigma=1.0)
    assert forecast(fl.Uniform().start(problem), problem, sure(TWO, [9, 0]), done).cap == cap


def test_limited_pulls_end_a_draw_without_an_error():
    problem = as_problem(THREE, max_pulls_per_arm=9, sigma=1.0)
    run, rewards = begun(fl.Gauntlet(), problem, [0.0, 0.0, 0.0], batches=1)
    soon = forecast(run, problem, sure(THREE, [1.0, 1.0, 1.0]), rewards.pulls, draws=5)
    assert soon.cap == 27 - rewards.pulls
    assert soon.low == np.inf


def drawn_with(monkeypatch):
    """Collect the rewards of the draws of a forecast."""
    seen = []

    def watch(run, rewards, K, most):
        seen.append(rewards)
        return np.zeros(K, dtype=np.int64), 0

    monkeypatch.setattr(task, "finish", watch)
    return seen


def test_unknown_sigma_comes_from_the_residuals(monkeypatch):
    problem = as_problem(TWO, sigma=None)
    run, rewards = begun(fl.Gauntlet(), problem, [0.0, 0.0])
    fit, seen = estimate(TWO, rewards), drawn_with(monkeypatch)
    forecast(run, problem, fit, rewards.pulls)
    assert {one.sigma for one in seen} == {math.sqrt(fit.residual_variance)}
    few = Statistics.empty(2)
    few.add_many([0, 1], [1.0, 2.0])
    with pytest.raises(EstimateError, match="nothing to estimate the variance from"):
        forecast(run, problem, estimate(TWO, few), 2)


def test_parameters_have_the_covariance_of_the_estimate(monkeypatch):
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    problem, seen = as_problem(arms, sigma=2.0), drawn_with(monkeypatch)
    rewards = Statistics.empty(3)
    rewards.add_batch([10, 40, 5], [10.0, 80.0, 0.0], [1.0, 1.0, 1.0])
    fit = estimate(arms, rewards)
    forecast(fl.Uniform().start(problem), problem, fit, 55, draws=4000)
    means = np.array([one.means for one in seen])
    A = (arms.features.T * [10, 40, 5]) @ arms.features
    expected = 4.0 * arms.features @ np.linalg.inv(A) @ arms.features.T
    np.testing.assert_allclose(np.cov(means.T), expected, rtol=0.15, atol=0.02)
    np.testing.assert_allclose(means.mean(axis=0), fit.means(), atol=0.05)


def test_arms_never_measured_are_like_those_that_were(monkeypatch):
    arms, seen = fl.Arms.unstructured(4), drawn_with(monkeypatch)
    problem, rewards = as_problem(arms, sigma=1.0), Statistics.empty(4)
    n = 10**10
    rewards.add_batch([n, n, 0, 0], [100.0 * n, 110.0 * n, 0.0, 0.0], np.zeros(4))
    forecast(fl.Uniform().start(problem), problem, estimate(arms, rewards), 2 * n, draws=2000)
    means = np.array([one.means for one in seen])
    np.testing.assert_allclose(means[:, :2], np.broadcast_to([100.0, 110.0], (2000, 2)), atol=0.01)
    # Two directions are known, with a spread of 5: each of them has 5 / sqrt(2), arms 2 of it.
    np.testing.assert_allclose(means[:, 2:].mean(axis=0), 105.0, atol=1.0)
    np.testing.assert_allclose(means[:, 2:].std(axis=0), 2 * 5 / math.sqrt(2), rtol=0.1)


@pytest.mark.parametrize("pulls", [[], [1], [1, 1, 1]], ids=["none", "one", "one arm"])
def test_a_forecast_needs_rewards_of_two_arms(pulls):
    problem, rewards = as_problem(THREE, sigma=1.0), Statistics.empty(3)
    rewards.add_many(np.array(pulls, dtype=int), np.ones(len(pulls)))
    with pytest.raises(EstimateError, match="or use plan"):
        forecast(fl.Uniform().start(problem), problem, estimate(THREE, rewards), len(pulls))


def test_bernoulli_means_are_cut(monkeypatch):
    problem = as_problem(TWO, noise="bernoulli")
    fit = sure(TWO, [0.98, 0.03], pulls=30)
    soon = forecast(fl.Gauntlet().start(problem), problem, fit, 60, draws=10)
    assert math.isfinite(soon.median)
    seen = drawn_with(monkeypatch)
    forecast(fl.Gauntlet().start(problem), problem, fit, 60, draws=50)
    means = np.array([one.means for one in seen])
    assert means.min() == 0.0
    assert means.max() == 1.0
    assert {one.kind for one in seen} == {"bernoulli"}


def test_wrong_words_of_a_forecast_are_refused():
    problem = as_problem(TWO, sigma=1.0)
    run, fit = fl.Uniform().start(problem), sure(TWO, [1.0, 0.0])
    for words in ({"draws": 0}, {"seed": -1}, {"cap": 0}, {"draws": 1.5}):
        with pytest.raises(FinalistError, match=f"{next(iter(words))} is"):
            forecast(run, problem, fit, 0, **words)
    with pytest.raises(FinalistError, match="done is -1"):
        forecast(run, problem, fit, -1)
    with pytest.raises(EstimateError, match="other candidates"):
        forecast(run, problem, sure(THREE, [1.0, 0.0, 0.0]), 0)


def test_words_of_a_forecast():
    some = Forecast(np.array([90.0] + [240.0] * 17 + [np.inf] * 2), cap=5000)
    assert (
        some.words()
        == "About 240 more measurements; 2 of 20 simulations had no winner after 5,000."
    )
    assert (some.low, some.median, some.high) == (90.0, 240.0, np.inf)


# ---- plans -------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"objective": "min"}, {"epsilon": 0.3}], ids=str)
def test_a_plan_for_theta_is_a_simulation_run_for_run(settings):
    arms, theta = fl.Arms(instances.gaussian(6, 3, 4)), [1.0, 0.4, -0.3]
    against: list[Strategy | str] = ["uniform", "xy-oracle", fl.XYAdaptive(alpha=0.2)]
    common = {"sigma": 0.7, "delta": 0.1, "seed": 5, "max_pulls": 3000, **settings}
    found = fl.plan(arms, theta=theta, draws=6, against=against, **common)
    for row, strategy in zip(found.rows, ["gauntlet", *against], strict=True):
        runs = fl.simulate(arms, theta, strategy, runs=6, **{"check": 0.03, **common})
        expected = np.where(runs.decided, runs.samples, np.inf)
        np.testing.assert_array_equal(row.pulls, expected)
        assert row.wrong == runs.errors
        assert row.undecided == int((~runs.decided).sum())
    assert [row.name for row in found.rows] == ["gauntlet", "uniform", "xy-oracle", "xy-adaptive"]


GEOMETRIES = {
    "sphere": instances.unit_sphere(20, 5, 0),
    "units": instances.scaled_columns(instances.gaussian(10, 4, 1)),
    "rank-deficient": instances.one_hot_factorial((2, 3)),
    "more features than arms": instances.gaussian(4, 9, 2),
    "tiny": 1e-120 * np.eye(3),
    "clusters": instances.clusters(1e-4, 3, 4, 3, 5),
    "one feature": np.array([[1.0], [-2.0], [0.5]]),
}


@pytest.mark.parametrize("objective", ["max", "min"])
@pytest.mark.parametrize("case", GEOMETRIES)
def test_the_best_arm_leads_by_exactly_the_gap(case, objective):
    problem = as_problem(fl.Arms(GEOMETRIES[case]), objective=objective, sigma=1.0)
    for seed in range(20):
        theta = leading(problem, 0.37, np.random.default_rng(seed))
        means = np.sort(problem.sign * problem.arms.means(theta))
        assert means[-1] - means[-2] == pytest.approx(0.37, rel=1e-6)


def test_directions_are_uniform_whatever_the_units_of_the_features():
    arms = fl.Arms(np.diag([1e-9, 1.0, 1e9, 3.0]))
    rng = np.random.default_rng(0)
    means = np.array(
        [arms.means(leading(as_problem(arms, sigma=1.0), 1.0, rng)) for _ in range(800)]
    )
    best = np.bincount(means.argmax(axis=1), minlength=4)
    assert best.min() > 150  # of 200, four standard deviations
    # Where all vary, means are above 0 half of the time; where one stands out, fewer are.
    assert 0.4 < np.mean(means > 0) < 0.55


def test_all_strategies_meet_the_same_parameters():
    arms = fl.Arms(instances.unit_sphere(8, 3, 1))
    draws = Draws(
        as_problem(arms, sigma=1.0), ("gauntlet", "uniform", "xy-oracle"), 0.5, None, 3, 100
    )
    thetas = [draws.task(index).theta for index in range(9)]
    for draw in range(3):
        for which in range(3):
            np.testing.assert_array_equal(thetas[3 * draw + which], draws.parameter(draw))
    assert not np.allclose(thetas[0], thetas[3])
    oracle = draws.task(2).strategy
    assert isinstance(oracle, fl.XYOracle)
    assert oracle.theta == tuple(thetas[0])
    assert pickle.loads(pickle.dumps(draws)).run(4).pulls.tolist() == draws.run(4).pulls.tolist()


def test_a_draw_depends_on_the_seed_and_its_number_alone():
    arms = fl.Arms(instances.unit_sphere(8, 3, 1))
    few = fl.plan(arms, gap=0.8, draws=3, seed=1, sigma=1.0)
    for more in (
        fl.plan(arms, gap=0.8, draws=6, seed=1, n_jobs=2, progress=False, sigma=1.0),
        fl.plan(
            arms,
            gap=0.8,
            draws=4,
            seed=1,
            strategy="g",
            against=["gauntlet", EqualShares()],
            sigma=1.0,
        ),
    ):
        rows = {row.name: row for row in more.rows}
        for row in few.rows:
            np.testing.assert_array_equal(rows[row.name].pulls[:3], row.pulls)
    other = fl.plan(arms, gap=0.8, draws=3, seed=2, sigma=1.0)
    assert (other.rows[1].pulls != few.rows[1].pulls).all()


def test_a_smaller_gap_needs_more():
    wide, narrow = (fl.plan(THREE, gap=gap, draws=30, against=(), sigma=1.0) for gap in (1.0, 0.25))
    assert 8 < narrow.rows[0].median / wide.rows[0].median < 32
    assert narrow.fixed is not None
    assert narrow.fixed / 16 == pytest.approx(wide.fixed, rel=0.03)
    both = fl.plan(THREE, gap=0.25, draws=30, against=(), sigma=1.0, leads=[1.0, 0.5])
    assert [row.lead for row in both.by_lead] == [0.25, 0.5, 1.0]
    for one, row in ((narrow, both.by_lead[0]), (wide, both.by_lead[2])):
        np.testing.assert_array_equal(row.rows[0].pulls, one.rows[0].pulls)
        assert row.fixed == one.fixed


def test_units_of_the_reward_change_nothing():
    one = fl.plan(THREE, gap=0.5, sigma=1.0, draws=8)
    large = fl.plan(THREE, gap=0.5 * 2**20, sigma=2.0**20, draws=8)
    for a, b in zip(one.rows, large.rows, strict=True):
        np.testing.assert_array_equal(a.pulls, b.pulls)


def test_the_lower_bound_is_that_of_the_complexity():
    arms, theta = fl.Arms(instances.gaussian(6, 3, 4)), np.array([1.0, 0.4, -0.3])
    found = fl.plan(arms, theta=theta, sigma=2.0, delta=0.1, objective="min", draws=1)
    c = fl.complexity(arms, theta, 2.0, 0.1, objective="min")
    assert found.lower_bound == c.lower_bound
    other = fl.plan(THREE, theta=[1.0, 0.5, 0.0], epsilon=0.1, draws=1, sigma=1.0)
    assert other.lower_bound is None
    other = fl.plan(THREE, theta=[1.0, 0.5, 0.0], noise="sub-gaussian", draws=1, sigma=1.0)
    assert other.lower_bound is None
    # An experiment of fixed size that is told the lead may need fewer: no bound beside it.
    assert fl.plan(THREE, gap=0.5, draws=1, sigma=1.0).lower_bound is None


def test_epsilon_makes_a_plan_shorter():
    exact, near = (
        fl.plan(THREE, gap=0.2, epsilon=e, draws=10, against=(), sigma=1.0) for e in (0.0, 0.5)
    )
    assert near.rows[0].median < exact.rows[0].median / 2


@pytest.mark.parametrize("objective", ["max", "min"])
def test_bernoulli_means_lie_around_one_half(objective):
    problem = as_problem(LINE, noise="bernoulli", objective=objective)
    for seed in range(20):
        means = LINE.means(leading(problem, 0.3, np.random.default_rng(seed)))
        assert means.min() + means.max() == pytest.approx(1.0)
        assert means.min() > 0
        ordered = np.sort(problem.sign * means)
        assert ordered[-1] - ordered[-2] == pytest.approx(0.3)
    found = fl.plan(LINE, gap=0.3, noise="bernoulli", objective=objective, draws=3)
    assert found.sigma == 0.5
    assert found.rows[0].undecided == 0


def test_a_bernoulli_gap_that_does_not_fit_is_refused_with_the_largest():
    with pytest.raises(ProblemError, match=r"gap is 0\.6.*below 0\.5\b"):
        fl.plan(LINE, gap=0.6, noise="bernoulli")  # three arms in a line: at most 1/2 each
    assert fl.plan(LINE, gap=0.499, noise="bernoulli", draws=2).rows[0].undecided == 0
    with pytest.raises(ProblemError, match="below 1"):
        fl.plan(TWO, gap=1.0, noise="bernoulli")


def test_bernoulli_means_need_a_constant_feature():
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.3, 0.2]])
    with pytest.raises(ProblemError, match=r"with_intercept.*or give theta"):
        fl.plan(arms, gap=0.1, noise="bernoulli")
    assert fl.plan(arms, theta=[0.9, 0.1], noise="bernoulli", draws=2).rows[0].undecided == 0


def test_tied_arms_are_never_told_apart():
    found = fl.plan(THREE, theta=[1.0, 1.0, 0.0], draws=3, max_pulls=500, sigma=1.0)
    for row in found.rows:
        assert (row.undecided, row.wrong) == (3, 0)
        assert row.median == row.high == row.mean == np.inf
    assert found.lower_bound == np.inf
    assert "Expect more than 500 measurements; 3 of 3 simulations" in found.words()
    assert "the same test with equal shares would need more than 500" in found.words()
    assert "tied" in str(found)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["rows"][0]["pulls"] == [None] * 3


def test_the_cap_has_a_default():
    assert fl.plan(TWO, theta=[5.0, 0.0], draws=1, sigma=1.0).max_pulls == 10**7


def test_wrong_winners_are_counted():
    always = fakes.Always(arm=1)
    found = fl.plan(THREE, theta=[1.0, 0.0, 0.0], strategy=always, draws=4, against=(), sigma=1.0)
    assert (found.rows[0].wrong, found.rows[0].undecided) == (4, 0)


def test_strategies_of_one_name_are_told_apart():
    found = fl.plan(
        TWO, theta=[5.0, 0.0], strategy=fl.Uniform(), against=fl.Uniform("soare"), sigma=1.0
    )
    assert [row.name for row in found.rows] == [
        "Uniform(bound='sharp')",
        "Uniform(bound='soare')",
    ]
    assert found.rows[0].median < found.rows[1].median


@pytest.mark.parametrize(
    ("strategy", "against", "names"),
    [
        ("uniform", ("uniform",), ["uniform"]),
        ("gauntlet", "xy", ["gauntlet", "xy"]),
        ("gauntlet", (), ["gauntlet"]),
        ("gauntlet", ["xy", "g", "xy", "gauntlet"], ["gauntlet", "xy", "g"]),
    ],
)
def test_every_strategy_is_simulated_once(strategy, against, names):
    found = fl.plan(TWO, theta=[5.0, 0.0], strategy=strategy, against=against, draws=1, sigma=1.0)
    assert [row.name for row in found.rows] == names


def test_a_single_arm_needs_no_pull():
    sure: dict[str, Any] = {"sigma": 1.0}
    coins: dict[str, Any] = {"noise": "bernoulli"}
    for words in ({"gap": 1.0, **sure}, {"theta": [2.0], **sure}, {"gap": 0.1, **coins}):
        found = fl.plan(fl.Arms([[1.0]]), draws=2, **words)
        assert found.words() == "There is a single candidate: no measurement is needed."
        assert found.rows[0].pulls.tolist() == [0.0, 0.0]


def made(*medians, cap=10_000, draws=10):
    names = ("gauntlet", "uniform", "xy")
    rows = tuple(
        PlanRow(name, np.array([m] * 8 + [2 * m] * 2, dtype=float), 0)
        for name, m in zip(names, medians, strict=False)
    )
    return Plan(rows, 0.5, 1.0, 0.05, draws, cap, 0, 61.3)


def test_words_of_a_plan():
    assert made(241, 904).words() == (
        "Expect about 240 measurements, 90 % within 490; uniform would need about 900."
    )
    assert "uniform would need more than 10,000; xy would" in made(243, np.inf, 500).words()


def test_the_bound_of_a_plan_stands_beside_a_mean_and_says_whom_it_binds():
    # 8 draws of 243 and 2 of 486: their mean is 291.6.
    average = "On average over the simulations the study needs about 290 measurements."
    whom = "A method whose risk is at most 0.05 whatever the truth is, not only with this theta,"
    least = f"{whom} needs at least about 61 measurements on average."
    found = replace(made(243, 904), gap=None)
    assert found.remarks() == [f"{average} {least}"]
    assert f"{average} {least}" in str(found)
    assert replace(made(np.inf, 904), gap=None).remarks() == [least]  # no mean is known
    assert "at least" not in str(made(243, 904))  # with a lead: fixed designs may need fewer


def test_a_plan_as_data():
    found = made(243, np.inf)
    frame = found.to_frame()
    assert list(frame.columns) == ["name", "median", "low", "high", "mean", "undecided", "wrong"]
    assert frame["high"].tolist() == [486.0, np.inf]
    assert frame["undecided"].tolist() == [0, 10]
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["rows"][0]["median"] == 243.0
    assert content["rows"][1]["median"] is None
    assert (content["gap"], content["lower_bound"]) == (0.5, 61.3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "neither is given"),
        ({"gap": 1.0, "theta": [1.0, 0.0, 0.0]}, "both are given"),
        ({"gap": 0.0}, "gap is 0.0"),
        ({"gap": -1}, "gap is -1.0"),
        ({"gap": np.inf}, "gap is inf"),
        ({"gap": np.nan}, "gap is nan"),
        ({"gap": "much"}, "gap is 'much'"),
        ({"gap": 1.0, "sigma": None}, "a guess"),
        ({"gap": 1.0, "noise": fl.Gaussian(None)}, "a guess"),
        ({"gap": 1.0, "draws": 0}, "draws is 0"),
        ({"gap": 1.0, "seed": -1}, "seed is -1"),
        ({"gap": 1.0, "max_pulls": 0}, "max_pulls is 0"),
        ({"gap": 1.0, "n_jobs": 0}, "n_jobs is 0"),
        ({"gap": 1.0, "progress": "yes"}, "progress is 'yes'"),
        ({"gap": 1.0, "strategy": "best"}, "strategy is 'best'"),
        ({"gap": 1.0, "against": "best"}, "strategy is 'best'"),
        ({"gap": 1.0, "against": [fl.Uniform]}, "or an object such as"),
        ({"theta": [1.0]}, r"shape \(1,\)"),
        ({"theta": [2.0, 0.0, 0.0], "noise": "bernoulli"}, "between 0 and 1"),
        ({"gap": 1.0, "objective": "best"}, "objective is 'best'"),
    ],
)
def test_wrong_words_of_a_plan_are_refused(words, message):
    with pytest.raises(FinalistError, match=message):
        fl.plan(THREE, **words if "noise" in words else {"sigma": 1.0, **words})


def test_arms_too_close_to_scale_are_refused():
    with pytest.raises(ProblemError, match="near-duplicates"):
        fl.plan(fl.Arms([[1.0], [1.0 + 1e-13]]), gap=1.0, sigma=1.0)


def test_ctrl_c_ends_a_plan(monkeypatch):
    whole = Draws.run

    def interrupted(draws, index):
        if index == 3:
            raise KeyboardInterrupt
        return whole(draws, index)

    monkeypatch.setattr(Draws, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fl.plan(TWO, gap=1.0, draws=4, sigma=1.0)


def test_a_plan_speaks_of_cost_where_pulls_cost_different_amounts():
    arms = fl.Arms(instances.unit_sphere(8, 3, 1))
    cost = np.linspace(1.0, 8.0, 8)
    found = fl.plan(arms, gap=0.5, sigma=np.linspace(0.5, 1.5, 8), cost=cost, draws=6, seed=1)
    assert [row.name for row in found.rows] == ["gauntlet", "equal shares"]
    assert "units of cost, 90 % within" in found.words()
    assert found.unit == found.to_dict()["unit"] == "units of cost"
    assert found.rows[0].mean < found.rows[1].mean
    words: Any = {"sigma": 2.0, "cost": cost, "check": 0.03}
    one = fl.simulate(arms, np.array([1.0, 0.3, 0.0]), runs=1, seed=4, **words)
    given = fl.plan(
        arms, theta=np.array([1.0, 0.3, 0.0]), sigma=2.0, cost=cost, draws=1, seed=4, against=[]
    )
    assert given.rows[0].pulls[0] == pytest.approx(one.cost[0])


def test_a_cut_of_a_plan_with_costs_is_in_pulls():
    found = fl.plan(THREE, gap=1e-3, cost=[0.01, 0.01, 0.02], max_pulls=1000, draws=2, sigma=1.0)
    assert found.words().startswith("Expect more than 1,000 measurements; 2 of 2 simulations")
    assert found.words().endswith("equal shares would need more than 1,000 measurements.")
    assert found.shown(math.inf) == "> 1,000 measurements"
    assert found.shown(20.0) == "20"
    plain = fl.plan(THREE, gap=1e-3, max_pulls=1000, draws=2, sigma=1.0)
    assert plain.words().endswith("equal shares would need more than 1,000.")
    assert plain.shown(math.inf) == "> 1,000"


def test_a_name_that_stands_for_no_proof_is_marked(monkeypatch):
    @dataclass(frozen=True)
    class Hasty(fl.Gauntlet):
        name: ClassVar[str] = "hasty"
        proven: ClassVar[bool] = False

    monkeypatch.setitem(STRATEGIES, "hasty", Hasty)
    found = fl.plan(
        TWO, gap=2.0, strategy="hasty", draws=2, against=[Hasty(growth=0.2), "uniform"], sigma=1.0
    )
    names = ["hasty (no proof)", f"{Hasty(growth=0.2)} (no proof)", "uniform"]
    assert [row.name for row in found.rows] == names


def test_one_more_pull_is_one():
    one = Forecast(np.array([1.0, 1.0, 2.0]), cap=100)
    assert one.words() == "About 1 more measurement, with 90 % between 1 and 2."


def test_a_plan_of_what_uniform_cannot_do_is_of_the_strategy_alone():
    arms = fl.Arms(instances.unit_sphere(8, 3, 1))
    words: dict[str, Any] = {"gap": 0.5, "batch_intercept": True, "top": 2, "sigma": 1.0}
    found = fl.plan(arms, draws=3, budget=60, **words)
    assert [row.name for row in found.rows] == ["gauntlet"]
    assert found.lower_bound is None
    found = fl.plan(arms, draws=3, **words)  # the gauntlet's own test can do all of it
    assert [row.name for row in found.rows] == ["gauntlet", "equal shares"]


def test_the_least_cost_is_that_of_the_paper_in_its_setting():
    from finalist.complexity import least_cost

    arms, theta = fl.Arms(instances.unit_sphere(8, 3, 1)), np.array([1.0, 0.3, 0.0])
    plain = fl.complexity(arms, theta, sigma=2.0, delta=0.1).lower_bound
    problem = as_problem(arms, sigma=2.0, delta=0.1)
    assert least_cost(problem, theta) == pytest.approx(plain, rel=1e-6)
    assert least_cost(problem.with_(cost=3.0), theta) == pytest.approx(3.0 * plain, rel=1e-6)
    each = as_problem(arms, sigma=[2.0] * 8, delta=0.1, cost=[3.0] * 8)
    assert least_cost(each, theta) == pytest.approx(3.0 * plain, rel=1e-6)
    # Two arms alone: sigma_i sqrt(c_i) add up, (s1 sqrt(c1) + s2 sqrt(c2))^2 2 kl / gap^2.
    two = as_problem(fl.Arms.unstructured(2), sigma=[1.0, 2.0], cost=[4.0, 9.0], delta=0.1)
    one = as_problem(fl.Arms.unstructured(2), delta=0.1, sigma=1.0)
    ratio = least_cost(two, [1.0, 0.0]) / least_cost(one, [1.0, 0.0])
    assert ratio == pytest.approx((2.0 + 6.0) ** 2 / 4.0, rel=1e-5)
    with pytest.raises(ProblemError, match="sigma is unknown"):
        least_cost(problem.with_(noise=fl.Gaussian(None)), theta)


# ---- with a budget -------------------------------------------------------------------------


def test_a_plan_with_a_budget_counts_what_is_named_by_then():
    arms = fl.Arms.unstructured(4)
    words: dict[str, Any] = {"sigma": 1.0, "gap": 0.5, "draws": 30, "seed": 3}
    found = fl.plan(arms, budget=40, within=0.7, **words)
    again = fl.plan(arms, budget=40, **words)
    first, second = found.named
    assert (first.name, second.name) == ("gauntlet", "uniform")
    assert (first.right + first.wrong, found.budget, found.within) == (30, 40, 0.7)
    nearer, near = again.named[0].near, first.near
    assert nearer is not None
    assert near is not None
    assert first.right <= nearer <= near
    assert again.within == 0.5  # the lead: the second best is within it
    assert found.lower_bound is None
    for which, row in enumerate(found.named):  # against `simulate`, with the same parameters
        right = near = certain = 0
        worse = []
        for draw in range(30):
            task = Draws(
                fl.Problem(arms, noise=fl.Gaussian(1.0), budget=40),
                ("gauntlet", "uniform"), 0.5, None, 3, 40,
            ).task(2 * draw + which)  # fmt: skip
            ended = task.run(draw)
            right += ended.correct
            worse.append(task.means.max() - task.means[ended.winner])
            near += worse[-1] <= 0.7
            certain += ended.certain
        assert (row.right, row.near, 30 - row.undecided) == (right, near, certain)
        assert row.behind is not None
        np.testing.assert_allclose(row.behind, worse)
        assert row.regret == pytest.approx(np.mean(worse))


def test_a_plan_with_a_budget_says_so():
    arms = fl.Arms.unstructured(3)
    found = fl.plan(arms, sigma=1.0, gap=1.0, draws=10, budget=30, within=2.0)
    said = found.words()
    assert said.startswith("With 30 measurements the study names the right one in about ")
    assert "within 2 of the best in " in said
    assert "95 % interval" in found.remarks()[0]
    plain = found.to_dict()
    assert (plain["budget"], plain["within"]) == (30, 2.0)
    assert plain["rows"][0]["right"] == found.named[0].right
    assert plain["rows"][0]["regret"] == found.named[0].regret
    assert {"right", "near", "regret"} <= set(found.to_frame().columns)
    assert "budget" not in fl.plan(arms, sigma=1.0, gap=1.0, draws=2).to_dict()


def test_a_larger_budget_is_right_more_often():
    arms = fl.Arms.unstructured(5)
    few, many = (
        fl.plan(arms, sigma=1.0, gap=0.3, draws=40, budget=T, against="g-budget").named
        for T in (10, 400)
    )
    assert few[0].right < many[0].right
    assert [row.name for row in few] == ["gauntlet", "g-budget"]  # one for a fixed budget too


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"within": 0.5}, "Give a budget"),
        ({"within": -1.0, "budget": 10}, "0 or more"),
        ({"within": 0.5, "budget": 10, "top": 2}, "single winner"),
        ({"strategy": "gse"}, "spends a fixed budget"),
    ],
)
def test_a_plan_refuses_what_has_no_meaning(words, said):
    with pytest.raises(ProblemError, match=said):
        fl.plan(fl.Arms.unstructured(3), sigma=1.0, gap=0.5, draws=1, **words)


def test_several_winners_and_a_fixed_theta_have_a_plan_with_a_budget():
    arms = fl.Arms.unstructured(4)
    several = fl.plan(arms, sigma=1.0, gap=0.5, draws=3, budget=40, top=2)
    assert several.named[0].near is several.named[0].regret is None
    fixed = fl.plan(arms, sigma=1.0, theta=[1.0, 0.0, 0.0, 0.0], draws=3, budget=40)
    assert fixed.within is fixed.named[0].near is None
    assert fixed.named[0].regret == pytest.approx(fixed.named[0].wrong / 3)
    assert "within" not in fixed.words()
