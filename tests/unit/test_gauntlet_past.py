"""A past that is wrong: tests stay right, and the gauntlet finds its way all the same."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, f

import finalist as fl
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.problem import as_problem as any_problem
from finalist.problem.rules import rules_of
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import Batch
from finalist.strategies.gauntlet.past import CONTRADICTION, contradict
from tests.instances import FEIGNED, FEIGNED_MEANS, FEIGNED_SIGMA


def as_problem(*arms: Any, **settings: Any) -> Problem:
    """Return a problem by rules 2, which test each batch on its own; `epochs` has others."""
    return any_problem(*arms, **{"rules": rules_of(2), **settings})


PLANE = fl.Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])


def of_means(counts, means, squares=None):
    """Return statistics with given means, and no scatter unless squares are given."""
    counts, means = np.asarray(counts), np.asarray(means, dtype=float)
    found = Statistics.empty(len(counts))
    more = np.zeros(len(counts)) if squares is None else np.asarray(squares, dtype=float)
    found.add_batch(counts, counts * means, more)
    return found


def play(problem, means, seed, *, history=None, pilot=0.0, most=1000, shift=0.0, size=None):
    """Run the gauntlet; return its verdict. `pilot` is added to the rewards of the pilot.

    Every batch has a constant of its own, drawn with the standard deviation `shift`.
    """
    run = fl.Gauntlet().start(problem, seed=seed)
    if history is not None:
        run.inform(history)
    sigma, rng = problem.sigmas if problem.noise.sigma else 1.0, np.random.default_rng(seed)
    lab = DrawnRewards(np.asarray(means), sigma, "gaussian", rng)
    shifted = DrawnRewards(np.asarray(means) + pilot, sigma, "gaussian", rng)
    while not run.verdict.decided and run.verdict.pulls < most:
        batch = run.next(size)
        source = shifted if batch.note["kind"] == "pilot" else lab
        rewards = source.batch(batch.counts)
        if shift > 0.0:
            rewards.mean[rewards.count > 0] += shift * rng.standard_normal()
        run.record(batch, rewards)
    return run.verdict


# ---- what contradicts what ---------------------------------------------------------------


@pytest.mark.parametrize("part", [0.9, 1.1])
def test_the_test_of_wald_with_a_known_sigma(part):
    # Two free arms, 8 and 2 pulls, then 4 and 4: variances 1/8 + 1/4 and 1/2 + 1/4 for sigma = 1.
    arms, sigma = fl.Arms.unstructured(2), 3.0
    limit = part * chi2.isf(CONTRADICTION, 2)
    first = math.sqrt(limit / 2 * (1 / 8 + 1 / 4)) * sigma
    second = math.sqrt(limit / 2 * (1 / 2 + 1 / 4)) * sigma
    before = estimate(arms, of_means([8, 2], [1.0, 5.0]))
    now = estimate(arms, of_means([4, 4], [1.0 + first, 5.0 - second]))
    assert contradict(now, before, sigma) == (part > 1)


@pytest.mark.parametrize("part", [0.9, 1.1])
def test_the_test_of_wald_with_an_unknown_sigma(part):
    # Only the first arm was measured before. The residuals of now: 6 degrees of freedom.
    arms, variance = fl.Arms.unstructured(2), 4.0
    apart = math.sqrt(part * f.isf(CONTRADICTION, 1, 6) * variance * (1 / 5 + 1 / 4))
    before = estimate(arms, of_means([5, 0], [2.0, 0.0]))
    now = estimate(arms, of_means([4, 4], [2.0 + apart, 7.0], [3 * variance, 3 * variance]))
    assert contradict(now, before, None) == (part > 1)


def test_it_is_calibrated_for_linear_arms():
    rng, wrong, runs = np.random.default_rng(1), 0, 4000
    for _ in range(runs):
        before, now = (
            estimate(
                PLANE, of_means(n, PLANE.means([1.0, 2.0]) + rng.standard_normal(4) / np.sqrt(n))
            )
            for n in (np.array([3, 1, 2, 5]), np.array([1, 4, 4, 2]))
        )
        wrong += contradict(now, before, 1.0)
    assert exact_lower_bound(wrong, runs, 0.999) <= CONTRADICTION


def test_what_cannot_be_compared_contradicts_nothing():
    some, all_ = (
        estimate(PLANE, of_means([5, 0, 0, 0], [9.0, 0, 0, 0])),
        of_means([5] * 4, [0.0] * 4),
    )
    nothing = estimate(PLANE, Statistics.empty(4))
    assert contradict(estimate(PLANE, all_), some, 1.0)
    assert not contradict(some, estimate(PLANE, all_), 1.0)  # they do not span
    assert not contradict(estimate(PLANE, all_), nothing, 1.0)
    assert not contradict(estimate(PLANE, all_), some, None)  # no residuals


# ---- choices -----------------------------------------------------------------------------


def lies(count, means):
    return of_means([count] * len(means), means)


def test_a_history_is_left_out_while_it_is_contradicted():
    problem = as_problem(fl.Arms.unstructured(3), sigma=1.0)
    run = fl.Gauntlet().start(problem)
    run.inform(lies(1000, [0.0, 2.0, 1.0]))
    assert run._past.estimate().means() == pytest.approx([0.0, 2.0, 1.0])
    batch = run.next()
    run.record(batch, of_means(batch.counts, [2.0, 0.0, 0.0]))
    assert run._past.estimate().means() == pytest.approx([2.0, 0.0, 0.0])
    assert run.next().note["leader"] == 0


def test_a_history_that_agrees_is_used():
    run = fl.Gauntlet().start(as_problem(fl.Arms.unstructured(3), sigma=1.0))
    run.inform(lies(1000, [0.0, 2.0, 1.0]))
    batch = run.next()
    run.record(batch, of_means(batch.counts, [0.5, 1.8, 1.1]))
    assert run._past.estimate().means() == pytest.approx([0.0, 2.0, 1.0], abs=0.01)


def test_a_pilot_is_left_out_while_it_is_contradicted():
    run = fl.Gauntlet().start(as_problem(fl.Arms.unstructured(3), sigma=1.0))
    for means in ([-5.0, 5.0, 0.0], [1.0, 0.0, 0.0]):
        batch = run.next()
        run.record(batch, of_means(batch.counts, means))
    assert run._past.estimate().means() == pytest.approx([1.0, 0.0, 0.0])
    assert run.verdict.pulls == 24  # they are counted all the same
    assert run.interval(np.eye(3))[0] == pytest.approx(run._past.pooled.estimate().phi)


def test_shifts_between_batches_are_no_contradiction():
    run = fl.Gauntlet().start(as_problem(fl.Arms.unstructured(3), sigma=1.0, batch_intercept=True))
    run.inform(lies(100, [100.0, 102.0, 101.0]))
    batch = run.next()
    run.record(batch, of_means(batch.counts, [0.5, 1.8, 1.1]))
    means = run._past.estimate().means()
    assert means[1] - means[0] == pytest.approx(2.0, abs=0.05)


# ---- recovery ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [100, 1000, 100_000])
@pytest.mark.parametrize("means", [[0.0, 2.0], [0.0, 0.3], [0.5, 0.5]])
def test_two_arms_one_sigma_apart_are_told_apart_after_a_wrong_history(count, means):
    problem = as_problem(fl.Arms.unstructured(2), sigma=1.0)
    found = [play(problem, [1.0, 0.0], seed, history=lies(count, means)) for seed in range(20)]
    assert all(verdict.decided for verdict in found)
    assert np.mean([verdict.pulls for verdict in found]) < 80  # 40 without a history
    old = play(
        problem.with_(rules=rules_of(1)), [1.0, 0.0], 0, history=lies(100_000, means), most=300
    )
    assert not old.decided


def test_five_arms_are_told_apart_after_a_wrong_pilot():
    problem = as_problem(fl.Arms.unstructured(5), sigma=1.0)
    means, shift = [1.0, 0.0, 0.0, 0.0, 0.0], np.array([-40.0, 40.0, 0.0, 0.0, 0.0])
    found = [play(problem, means, seed, pilot=shift) for seed in range(20)]
    assert all(verdict.decided for verdict in found)
    assert np.mean([verdict.pulls for verdict in found]) < 360  # 120 with a right one
    assert not play(problem.with_(rules=rules_of(1)), means, 0, pilot=shift).decided


BENT = fl.Arms(np.column_stack([np.ones(7), np.linspace(-1, 1, 7)]))
PARABOLA = -3.0 * (BENT.features[:, 1] - 0.3) ** 2
SHIFTED: Any = {"sigma": 1.0, "misspecification": 1.7, "batch_intercept": True}


@pytest.mark.parametrize("sigma", [1.0, tuple(np.linspace(0.05, 0.3, 7))])
def test_the_top_of_a_parabola_is_found_with_a_line(sigma):
    # A line fits -3 (x - 0.3)^2 to within 1.7, and its best arm is the last one.
    problem = as_problem(BENT, sigma=sigma, misspecification=1.7)
    found = [play(problem, PARABOLA, seed, most=4000) for seed in range(8)]
    assert all(verdict.decided for verdict in found)
    assert sum(verdict.winner != int(PARABOLA.argmax()) for verdict in found) <= 2
    old = play(problem.with_(rules=rules_of(1)), PARABOLA, 0, most=2000)
    assert not old.decided


@pytest.mark.parametrize("sigma", [1.0, None, tuple(np.linspace(0.05, 0.3, 7))])
def test_the_top_of_a_parabola_is_found_with_a_line_in_shifted_batches(sigma):
    # The shifts leave no mean of an arm, but differences in each batch.
    problem = as_problem(BENT, sigma=sigma, misspecification=1.7, batch_intercept=True)
    found = [play(problem, PARABOLA, seed, most=4000, shift=2.0) for seed in range(3)]
    assert all(verdict.decided for verdict in found)
    assert sum(verdict.winner != int(PARABOLA.argmax()) for verdict in found) <= 1
    old = play(problem.with_(rules=rules_of(1)), PARABOLA, 0, most=2000, shift=2.0)
    assert not old.decided


def test_a_history_of_another_level_helps_with_a_line_in_shifted_batches():
    problem = as_problem(BENT, **SHIFTED)
    right, wrong = lies(30, PARABOLA + 100.0), lies(30, -PARABOLA)
    for history in (right, wrong):
        verdict = play(problem, PARABOLA, 1, history=history, most=4000, shift=2.0)
        assert verdict.winner == int(PARABOLA.argmax())
    run = fl.Gauntlet().start(problem)
    run.inform(right)
    means = run._past.means(run._past.estimate())
    assert np.diff(means) == pytest.approx(np.diff(PARABOLA), abs=0.1)


def test_batches_of_one_pull_go_by_the_model():
    # Nothing is linked to anything; no batch tests anything either.
    verdict = play(as_problem(BENT, **SHIFTED), PARABOLA, 1, most=20, size=1, shift=2.0)
    assert not verdict.decided
    assert verdict.pulls == 20


def test_other_arms_keep_what_is_known_of_them_in_shifted_batches():
    problem = as_problem(BENT, **SHIFTED)
    run: Any = fl.Gauntlet().start(problem)
    for shift in (0.0, 50.0, -9.0):
        batch = run.next(140)
        counts = batch.counts if shift == 0.0 else np.full(7, 20)
        if batch.note["kind"] == "test":
            batch = Batch(counts, batch.note)
        run.record(batch, of_means(batch.counts, PARABOLA + shift))
    kept = np.array([6, 4, 2, 3, -1])
    features = np.vstack([BENT.features[kept[:4]], [[1.0, 0.4]]])
    other = run.changed(as_problem(fl.Arms(features), **SHIFTED), kept, 0.01, afresh=True)
    means = other._past.means(other._past.estimate())
    assert np.diff(means[:4]) == pytest.approx(np.diff(PARABOLA[kept[:4]]), abs=0.1)
    assert other._past.estimate().effects.part.tolist() == [0, 0, 0, 0, -1]
    assert other.next().note["leader"] in (1, 4)


# ---- the best arm is not rejected --------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 2.0])
@pytest.mark.parametrize("rules", [1, 2])
def test_drifts_beyond_all_bounds_reject_no_best_arm(rules, shift):
    problem = as_problem(
        fl.Arms(FEIGNED),
        sigma=FEIGNED_SIGMA,
        misspecification=3.0,
        batch_intercept=shift > 0.0,
        rules=rules_of(rules),
    )
    runs, out = 20, 0
    for seed in range(runs):
        verdict = play(problem, FEIGNED_MEANS, seed, most=200, shift=shift)
        out += 0 not in verdict.survivors
    assert exact_lower_bound(out, runs, 0.999) <= 0.05
