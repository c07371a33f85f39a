"""The gauntlet with noise, cost and roles of each arm, shifts, bent means, several winners."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import finalist as fl
from finalist.errors import ProblemError
from finalist.inference.information import information
from finalist.inference.least_squares import estimate, weights_of
from finalist.inference.misspecification import Bias
from finalist.inference.statistics import BatchResults, Statistics
from finalist.problem import Problem
from finalist.problem import as_problem as any_problem
from finalist.problem.rules import rules_of
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import Batch, Gauntlet
from finalist.strategies.gauntlet.contrasts import Pairs
from finalist.strategies.gauntlet.run import ChangeableRun
from tests import instances
from tests.unit.bettors import scored


def as_problem(*arms: Any, **settings: Any) -> Problem:
    """Return a problem by rules 2, which test each batch on its own; `epochs` has others."""
    return any_problem(*arms, **{"rules": rules_of(2), **settings})


SPHERE = fl.Arms(instances.unit_sphere(12, 4, 1))
THETA = np.array([1.0, 0.5, -0.3, 0.2])
SIGMA = np.linspace(0.3, 2.0, 12)
COST = np.linspace(4.0, 0.5, 12)
SOME = np.arange(12) < 7
VARIANTS: dict[str, dict[str, Any]] = {
    "sigma per arm": {"sigma": SIGMA},
    "cost": {"cost": COST},
    "shifts": {"batch_intercept": True},
    "shifts, unknown sigma": {"batch_intercept": True, "sigma": None},
    "bias": {"misspecification": 0.05},
    "bias, unknown sigma": {"misspecification": 0.05, "sigma": None},
    "top 3": {"top": 3},
    "top 3, unknown sigma": {"top": 3, "sigma": None},
    "all": {
        "sigma": SIGMA,
        "cost": COST,
        "batch_intercept": True,
        "misspecification": 0.01,
        "epsilon": 0.1,
    },
    "top 2 of all": {"top": 2, "sigma": SIGMA, "cost": COST, "batch_intercept": True},
}


def problem_of(variant, arms=SPHERE, **more):
    return as_problem(arms, **{"sigma": 1.0, **VARIANTS[variant], **more})


def played(problem, theta=THETA, seed=1, most=40, shifts=None, size=None):
    """Return the batches of a run with their rewards; `shifts` are added to those of each."""
    sigma = problem.sigmas if isinstance(problem.noise.sigma, tuple) else 1.0
    rewards = DrawnRewards(
        problem.arms.means(theta), sigma, "gaussian", np.random.default_rng(seed)
    )
    run, log = Gauntlet().start(problem, seed=7), []
    for k in range(most):
        if run.verdict.decided:
            break
        batch = run.next(size)
        values = rewards.batch(batch.counts)
        if shifts is not None:
            values.mean[values.count > 0] += shifts[k]
        run.record(batch, values)
        log.append((batch, values))
    return run, log


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_replay_from_json_is_the_same(variant):
    run, log = played(problem_of(variant), most=12)
    again = Gauntlet().start(problem_of(variant), seed=7)
    for batch, values in log:
        note = json.loads(json.dumps(batch.note))
        again.record(Batch(batch.counts.copy(), note), values)
    assert again.verdict == run.verdict
    np.testing.assert_array_equal(again._claims.bets.log_m, run._claims.bets.log_m)
    np.testing.assert_array_equal(again.evidence().share, run.evidence().share)
    if not run.verdict.decided:
        np.testing.assert_array_equal(again.next(24).counts, run.next(24).counts)
    assert run.words() == again.words()


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_finds_what_is_asked_for(variant):
    problem = problem_of(variant)
    for seed in range(3):
        run, _ = played(problem, 3.0 * THETA, seed=seed, most=400)
        good = SPHERE.means(3.0 * THETA)
        best = np.argsort(-good)[: problem.top]
        assert run.verdict.decided
        if problem.epsilon == 0:
            assert set(run.verdict.winners) == set(best.tolist())
        assert good[run.verdict.winner] >= good.max() - max(problem.epsilon, 0) or problem.top > 1
        assert run.verdict.winner == run.verdict.winners[0]


@pytest.mark.parametrize("variant", ["shifts", "shifts, unknown sigma", "all", "top 2 of all"])
def test_a_constant_for_each_batch_changes_nothing(variant):
    rng = np.random.default_rng(3)
    plain, log = played(problem_of(variant), most=15)
    moved, other = played(problem_of(variant), most=15, shifts=100.0 * rng.standard_normal(15))
    for (a, _), (b, _) in zip(log, other, strict=True):
        np.testing.assert_array_equal(a.counts, b.counts)
    np.testing.assert_allclose(
        plain._claims.bets.log_m, moved._claims.bets.log_m, rtol=1e-6, atol=1e-8
    )


def test_without_allowing_for_it_a_constant_does_harm():
    shifts = 5.0 * np.random.default_rng(3).standard_normal(30)
    plain, _ = played(as_problem(SPHERE, sigma=1.0), most=30)
    moved, _ = played(as_problem(SPHERE, sigma=1.0), most=30, shifts=shifts)
    assert not np.allclose(plain._claims.bets.log_m, moved._claims.bets.log_m)


# ---- scores --------------------------------------------------------------------------------


def test_scores_of_unequal_noise_are_those_of_two_means():
    problem = as_problem(fl.Arms.unstructured(3), sigma=[1.0, 3.0, 0.5])
    batch = Statistics.of_batch([4, 9, 2], [8.0, 9.0, 1.0], [1.0, 1.0, 1.0])
    fit = estimate(problem.arms, batch, precisions=problem.precisions)
    found = scored(problem, fit, Pairs(np.array([0, 2]), np.array([1, 0])), 0.0)
    expected = [(2.0 - 1.0) / np.sqrt(1 / 4 + 9 / 9), (0.5 - 2.0) / np.sqrt(0.25 / 2 + 1 / 4)]
    np.testing.assert_allclose(found.z, expected, rtol=1e-12)
    np.testing.assert_allclose(found.speed, 1.0 / np.sqrt([1.25, 0.375]), rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_taken_off_is_the_worst_that_a_bent_model_can_do(seed):
    rng = np.random.default_rng(seed)
    K, c = 6, 0.3
    arms = fl.Arms(rng.standard_normal((K, 2)))
    sigma = rng.uniform(0.5, 2.0, K)
    problem = as_problem(arms, sigma=sigma, misspecification=c)
    counts = rng.integers(0, 4, K)
    counts[:2] += 1
    p = problem.precisions
    info = information(arms.coordinates, weights_of(counts, p))
    bias = Bias.of(c, p, arms.coordinates, counts, info)
    assert bias is not None
    a, x = rng.choice(K, 2, replace=False)
    signs = np.array(np.meshgrid(*[[-c, c]] * K)).reshape(K, -1).T  # every b with |b_i| = c
    X, w = arms.features, weights_of(counts, p)
    P = np.linalg.pinv((X * w[:, None]).T @ X) @ (X * w[:, None]).T
    errors = [float((X[a] - X[x]) @ P @ b - (b[a] - b[x])) for b in signs]
    expected = max(errors)
    assert bias.between(np.array([a]), np.array([x]))[0, 0] == pytest.approx(expected, rel=1e-9)
    assert bias.of_pairs(np.array([a]), np.array([x]))[0] == pytest.approx(expected, rel=1e-9)


def test_means_of_two_arms_need_no_model():
    arms = fl.Arms([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    problem = as_problem(arms, misspecification=10.0, sigma=1.0)
    batch = Statistics.of_batch([4, 4, 4], [0.0, 4.0, 40.0], [1.0, 1.0, 1.0])  # far from linear
    fit = estimate(arms, batch)
    pairs = (np.array([2, 2]), np.array([0, 1]))
    model = scored(problem, fit, Pairs(*pairs), 0.0)
    np.testing.assert_allclose(model.bias, [0.0, 20.0], atol=1e-12)  # a line through the ends
    assert model.z[1] < -10.0
    own = scored(problem, fit, Pairs(*pairs, np.array([True, True])), 0.0)
    np.testing.assert_allclose(own.z, [10.0 / np.sqrt(0.5), 9.0 / np.sqrt(0.5)])
    np.testing.assert_array_equal(own.bias, 0.0)
    alone = estimate(arms, Statistics.of_batch([4, 0, 4], [0.0, 0.0, 40.0], [1.0, 0.0, 1.0]))
    there = scored(problem, alone, Pairs(*pairs, np.array([True, True])), 0.0)
    assert there.bias[0] == 0.0
    assert there.bias[1] > 0.0  # arm 1 has no mean of its own: the model is all there is


def test_with_a_bent_model_only_repeated_pulls_measure_the_noise():
    arms = fl.Arms([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    batch = Statistics.of_batch([3, 3, 3], [0.0, 30.0, 0.0], [2.0, 2.0, 2.0])
    fit = estimate(arms, batch)
    problem = as_problem(arms, sigma=None, misspecification=1e-9)
    pairs = Pairs(np.array([1]), np.array([0]), np.array([True]))
    t = 10.0 / np.sqrt(1.0 * (1 / 3 + 1 / 3))  # variance 6 / 6, six degrees of freedom
    from scipy.stats import norm
    from scipy.stats import t as student

    assert scored(problem, fit, pairs, 0.0).z[0] == pytest.approx(
        norm.isf(student.sf(t, 6)), rel=1e-9
    )
    single = estimate(arms, Statistics.of_batch([1, 1, 1], [0.0, 1.0, 5.0], [0.0] * 3))
    assert not scored(problem, single, pairs, 0.0).tested.size


# ---- roles and costs -----------------------------------------------------------------------


def test_only_what_can_be_measured_is_pulled_and_only_candidates_win():
    arms = fl.Arms(SPHERE.features[SOME])
    candidates = fl.Arms(SPHERE.features[~SOME], names=list("abcde"))
    problem = as_problem(arms, candidates=candidates, sigma=1.0)
    names = problem.arms.names
    assert names[7:] == tuple("abcde")
    run, log = played(problem, 3.0 * THETA, most=300)
    good = problem.arms.means(3.0 * THETA)
    assert run.verdict.winner == 7 + int(good[7:].argmax())
    assert good[:7].max() > good[7:].max()  # a better arm that is no candidate
    for batch, _ in log:
        assert batch.counts[7:].sum() == 0
        assert all(rival == -1 or rival >= 7 for rival in batch.note["rivals"])
        assert all(batch.note["rivals"][i] == -1 for i in range(7) if batch.note["rivals"])
    assert not run.evidence().rejected[:7].any()


def test_differences_outside_the_level_of_the_arms_can_be_decided():
    duels = fl.Arms([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]], names=["a:b", "b:c"])
    problem = as_problem(duels, candidates=fl.Arms(np.eye(3), names=list("abc")), sigma=1.0)
    assert problem.arms.rank == 2
    run, _ = played(problem, np.array([0.0, 3.0, 1.0]), most=100)
    assert problem.arms.names[run.verdict.winner] == "b"


def test_it_pays_for_cheap_pulls():
    arms = fl.Arms(np.vstack([SPHERE.features, 0.999 * SPHERE.features]))  # each arm twice
    cost = np.repeat([10.0, 1.0], 12)
    theta = 2.0 * THETA
    with_cost = fl.simulate(arms, theta, cost=cost, runs=8, seed=3, sigma=1.0)
    blind = fl.simulate(arms, theta, runs=8, seed=3, sigma=1.0)
    assert with_cost.correct.all()
    assert with_cost.cost.mean() < 0.7 * (blind.pulls_per_arm @ cost).mean()
    assert with_cost.summary().mean_cost == pytest.approx(with_cost.cost.mean())
    assert blind.summary().mean_cost is None
    np.testing.assert_array_equal(blind.cost, blind.samples)


def test_quiet_arms_are_pulled_more():
    arms = fl.Arms(np.vstack([SPHERE.features, 0.999 * SPHERE.features]))
    sigma = np.repeat([0.5, 5.0], 12)
    result = fl.simulate(arms, 2.0 * THETA, sigma=sigma, runs=5, seed=3)
    assert result.pulls_per_arm[:, :12].sum() > 5 * result.pulls_per_arm[:, 12:].sum()
    loud = fl.simulate(arms, 2.0 * THETA, sigma=5.0, runs=5, seed=3)
    assert result.samples.mean() < 0.3 * loud.samples.mean()


# ---- the m best ----------------------------------------------------------------------------


@pytest.mark.parametrize(("sets", "rules"), [(5000, 2), (0, 2), (0, 4)])
def test_the_m_best_by_sets_by_pairs_and_by_a_portfolio(sets, rules, monkeypatch):
    from finalist.strategies.gauntlet import top as gauntlet_top

    monkeypatch.setattr(gauntlet_top, "MAX_SETS", sets)
    arms = fl.Arms.unstructured(6)
    means = np.array([0.0, 2.0, 1.6, 0.2, 1.8, 0.4])
    problem = as_problem(arms, top=3, sigma=1.0, rules=rules_of(rules))
    run, log = played(problem, means, most=200)
    assert run.verdict.survivors == tuple(sorted(run.verdict.winners)) == (1, 2, 4)
    who = [f"x{i + 1}" for i in run.verdict.winners]
    assert f"{who[0]}, {who[1]} and {who[2]} are the 3 best" in run.words()
    evidence = run.evidence()
    assert evidence.rejected.tolist() == [True, False, False, True, False, True]
    assert (evidence.rival[[0, 3, 5]] >= 0).all()
    early: Any = Gauntlet().start(problem, seed=7)
    assert early._claims.certain == ()
    for batch, values in log[:-1]:
        early.record(batch, values)
        sure = len(early._claims.certain)
        words = ["still be among the 3 best", "belongs to the 3 best", "belong to the 3 best"]
        assert words[min(sure, 2)] in early.words() or "Nothing has been tested" in early.words()
        assert set(early._claims.certain) <= {1, 2, 4}
        assert {1, 2, 4} <= set(early.verdict.survivors)
    assert "still may" in early.words() or rules == 4  # which knows a set all at once


def test_p_values_of_the_m_best_by_pairs_count_the_claims_that_they_are_the_largest_of(monkeypatch):
    from finalist.strategies.gauntlet import top as gauntlet_top

    monkeypatch.setattr(gauntlet_top, "MAX_SETS", 0)
    run: Any = Gauntlet().start(as_problem(fl.Arms.unstructured(6), top=2, delta=0.08, sigma=1.0))
    assert run._claims.bets.limit[0] == pytest.approx(math.log(8 / 0.08))  # 2 (6 - 2) = 8 pairs
    # Evidence that the first arm is worse than the others: the second largest counts, log 30.
    run._claims.bets.log_m[:5] = np.log([50.0, 30.0, 20.0, 0.5, 1.0])
    run._claims.bets.log_m[5:10] = run._claims.bets.limit[0]
    p_value = run.evidence().p_value
    assert p_value[0] == pytest.approx(4 / 30)  # of 4 true claims the largest is at most that
    assert p_value[1] == pytest.approx(4 * 0.08 / 8)  # out, at delta / m
    assert p_value[2] == 1.0
    monkeypatch.setattr(gauntlet_top, "MAX_SETS", 5000)
    run = Gauntlet().start(as_problem(fl.Arms.unstructured(3), top=2, delta=0.08, sigma=1.0))
    run._claims.bets.log_m[:] = np.log(
        [4.0, 2.0, 3.0]
    )  # sets 01, 02, 12: one true set for each arm
    assert run.evidence().p_value == pytest.approx([1 / 2, 1 / 3, 1 / 2])


def test_one_of_one_is_the_best_arm():
    problem = as_problem(SPHERE, goal=fl.TopM(1), sigma=1.0)
    assert problem.needs == frozenset()
    assert isinstance(Gauntlet().start(problem), ChangeableRun)


def test_what_top_m_refuses(monkeypatch):
    from finalist.strategies.gauntlet import top as gauntlet_top
    from finalist.strategies.gauntlet import top_answer

    for settings_, message in (
        ({"top": 2, "epsilon": 0.1}, "are both given"),
        ({"top": 0}, "m is 0"),
        ({"top": 12}, "m must be smaller"),
    ):
        with pytest.raises(ProblemError, match=message):
            as_problem(SPHERE, sigma=1.0, **settings_)
    monkeypatch.setattr(gauntlet_top, "MAX_SETS", 0)
    monkeypatch.setattr(top_answer, "MAX_CANDIDATES", 11)
    with pytest.raises(ProblemError, match="too many pairs to test"):
        Gauntlet().start(as_problem(SPHERE, top=2, sigma=1.0))
    run = Gauntlet().start(as_problem(fl.Arms.unstructured(4), top=2, sigma=1.0))
    batch = run.next()
    values = Statistics.of_batch(batch.counts, 0.0 * batch.counts, 0.0 * batch.counts)
    for note, message in (({}, "has no note"), ({**batch.note, "batch": 3}, "batch 0 is due")):
        with pytest.raises(ProblemError, match=message):
            run.record(Batch(batch.counts.copy(), note), values)
    run.record(batch, values)
    second = run.next()
    values = Statistics.of_batch(second.counts, 0.0 * second.counts, 0.0 * second.counts)
    for pairs in ([], [[0, 9]] * 6, [["a", "b"]] * 6):
        with pytest.raises(ProblemError, match="does not name a pair"):
            run.record(Batch(second.counts.copy(), {**second.note, "pairs": pairs}), values)
    run.record(second, values)


def test_a_wrong_note_about_means_is_refused():
    run = Gauntlet().start(problem_of("bias"), seed=1)
    batch = run.next()
    zero = np.zeros(12)
    run.record(batch, Statistics.of_batch(batch.counts, zero, zero))
    second = run.next()
    assert len(second.note["direct"]) == 12
    bad = Batch(second.counts.copy(), {**second.note, "direct": [1] * 12})
    with pytest.raises(ProblemError, match="not as `next` returns it"):
        run.record(bad, Statistics.of_batch(second.counts, zero, zero))


# ---- simulation ----------------------------------------------------------------------------


def test_simulations_draw_what_is_asked_for():
    deviations = np.zeros(12)
    deviations[3] = 9.0  # now it is the best, and not by the model
    result = fl.simulate(
        SPHERE,
        THETA,
        misspecification=9.0,
        deviations=deviations,
        runs=3,
        max_pulls=10**5,
        sigma=1.0,
    )
    assert result.correct.all()
    assert (result.winner == 3).all()
    with pytest.raises(fl.errors.SimulationError, match="deviations has shape"):
        fl.simulate(SPHERE, THETA, deviations=[1.0], runs=1, sigma=1.0)
    with pytest.raises(fl.errors.SimulationError, match="shift is -1"):
        fl.simulate(SPHERE, THETA, shift=-1.0, runs=1, sigma=1.0)
    shifted = fl.simulate(SPHERE, 2 * THETA, shift=20.0, batch_intercept=True, runs=5, sigma=1.0)
    assert shifted.correct.all()
    spent = fl.simulate(SPHERE, 2 * THETA, top=3, budget=60, runs=3, sigma=1.0)
    assert set(spent.samples.tolist()) <= {60} or spent.certain.any()


@pytest.mark.parametrize("strategy", ["g", "xy", "uniform", "xy-adaptive", "lingape", "rage"])
def test_others_refuse_what_they_cannot_do(strategy):
    for words in ({"top": 2}, {"batch_intercept": True}, {"misspecification": 0.1}):
        with pytest.raises(fl.errors.NotYetSupportedError):
            fl.simulate(SPHERE, THETA, strategy, runs=1, sigma=1.0, **words)


def test_batches_of_one_with_constants_of_their_own_tell_nothing():
    grid = np.array(np.meshgrid(*[np.linspace(-1.0, 1.0, 5)] * 2)).reshape(2, -1).T
    arms = fl.Arms(grid).with_intercept()
    problem = as_problem(arms, sigma=1.0, batch_intercept=True)
    run, rng = Gauntlet().start(problem), np.random.default_rng(1)
    for _ in range(30):
        batch = run.next(1)
        order = np.flatnonzero(batch.counts)
        run.record(batch, BatchResults.of(25, order, rng.normal(size=1)))
    assert len(run.verdict.survivors) == 25
