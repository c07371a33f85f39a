"""The gauntlet with a budget, by rules 4: every pull counts for the choice at the end."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.problem import as_problem
from finalist.problem.rules import rules_of
from finalist.simulation.binomial import exact_upper_bound
from finalist.simulation.instances import one_hot_factorial, paper
from finalist.simulation.rewards import DrawnRewards, Kind
from finalist.simulation.task import drawn
from finalist.strategies.gauntlet import endgame

by_rules = partial(as_problem, rules=rules_of(4))
FACTORIAL = fl.Arms(one_hot_factorial((3, 3)))
MEANS = np.array([0.0, 0.3, 0.4, 0.1, 0.4, 0.5, 0.2, 0.5, 0.6])
QUESTIONS: dict[str, dict[str, Any]] = {
    "plain": {"sigma": 1.0},
    "unknown sigma": {"sigma": None},
    "yes or no": {"noise": "bernoulli"},
    "sub-Gaussian": {"noise": "sub-gaussian", "sigma": 1.0},
    "sigma of each arm": {"sigma": [0.5, 1.0, 1.5] * 3},
    "the smallest": {"sigma": 1.0, "objective": "min"},
    "the two best": {"sigma": 1.0, "top": 2},
    "a margin": {"sigma": 1.0, "epsilon": 0.1},
    "days": {"sigma": 1.0, "batch_intercept": True},
    "a model that may be wrong": {"sigma": 1.0, "misspecification": 0.02},
    "costs": {"sigma": 1.0, "cost": [1.0, 2.0, 3.0] * 3},
    "little material": {"sigma": 1.0, "max_pulls_per_arm": 7},
    "a small delta": {"sigma": 1.0, "delta": 1e-6},
}


def play(problem, size=None, seed=0):
    """Return the sizes of all batches until the budget is spent or it is decided."""
    rng, run = np.random.default_rng(seed), fl.Gauntlet().start(problem, seed=seed)
    sizes: list[int] = []
    kind: Kind = "bernoulli" if problem.noise.name == "bernoulli" else "gaussian"
    sigma = 1.0 if problem.noise.sigma is None else problem.sigmas
    rewards = DrawnRewards(MEANS, sigma, kind, rng)
    most = problem.budget if problem.capacity is None else min(problem.budget, problem.capacity)
    while not run.verdict.decided and sum(sizes) < most:
        left = most - sum(sizes)
        batch = run.next(None if size is None else min(size, left))
        if batch.size > left:
            batch = run.next(left)
        run.record(batch, drawn(rewards, batch))
        sizes.append(batch.size)
    return sizes, run


@pytest.mark.parametrize("size", [None, 1, 4, 7, 50])
@pytest.mark.parametrize("budget", [1, 4, 5, 9, 11, 23, 60, 90])
def test_a_budget_is_spent_to_the_last_pull(budget, size):
    sizes, run = play(by_rules(FACTORIAL, sigma=1.0, delta=1e-9, budget=budget), size)
    assert sum(sizes) == budget == run.verdict.pulls
    assert size is None or max(sizes) <= size


@pytest.mark.parametrize("budget", [12, 60])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_can_be_asked_with_a_budget(question, budget):
    problem = by_rules(FACTORIAL, budget=budget, **QUESTIONS[question])
    sizes, run = play(problem)
    spent = min(budget, problem.capacity or budget)
    assert run.verdict.decided or sum(sizes) == spent
    assert sum(sizes) <= budget


def test_candidates_that_cannot_be_measured_can_be_chosen_after_a_budget():
    measured = fl.Arms(np.eye(3), names=[*"abc"])
    candidates = fl.Arms([[1.0, 0.2, 0.0], [0.5, 0.5, 0.5]], names=["x", "y"])
    r = fl.simulate(measured, [1.0, 0.0, 0.2], candidates=candidates, sigma=0.1, budget=30, runs=20)
    assert r.correct.all()


def past_of(**settings):
    """Return a run of a few epochs of a budget of 200."""
    _, run = play(by_rules(FACTORIAL, **{"sigma": 1.0, "budget": 60, "delta": 1e-9, **settings}))
    run._past.problem = run._past.problem.with_(budget=200)
    return run._past


def test_who_is_ruled_out_is_no_rival():
    past = past_of()
    every, some = ([*range(9)], [6, 7, 8])
    for survivors in (every, some):
        ending = endgame.Ending.of(past, survivors, None)
        best = survivors[int(past.means(past.estimate())[survivors].argmax())]
        rivals = {tuple(row) for row in np.round(past.Z[best] - ending.needed, 9)}
        assert rivals == {tuple(row) for row in np.round(past.Z[survivors], 9)} - {
            tuple(np.round(past.Z[best], 9))
        }
    whole = endgame.Ending.of(past, every, None).error
    assert endgame.Ending.of(past, some, None).error < whole


def test_pulls_whose_results_are_to_come_are_counted():
    past = past_of()
    pulls = np.array([0, 0, 4, 8])
    ahead = past.before_results(pulls)
    assert endgame.pulls_left(past) == 140
    assert endgame.pulls_left(ahead) == 136
    extra = endgame.Ending.of(ahead, range(9), None).A - endgame.Ending.of(past, range(9), None).A
    np.testing.assert_allclose(extra, past.Z[pulls].T @ past.Z[pulls], atol=1e-9)


def test_lost_pulls_count_for_the_budget():
    past = past_of()
    past.lost[3] += 5
    assert endgame.pulls_left(past) == 135


@pytest.mark.parametrize(
    ("left", "n", "planned"), [(140, 10, 10), (15, 10, 10), (14, 14, 14), (3, 3, 3)]
)
def test_no_rest_is_too_small_for_an_epoch(left, n, planned):
    past = past_of()  # a twentieth of 200 is 10 pulls, the rank is 5
    past.lost[0] += endgame.pulls_left(past) - left
    assert endgame.epoch_size(past, None) == n
    assert endgame.within_budget(past, 10) == planned
    assert endgame.epoch_size(past, 4) == (12 if left == 140 else left)


def test_where_the_choice_would_hardly_err_certainty_is_planned_for(monkeypatch):
    planned: list[float] = []
    real = endgame.Ending.epoch

    def watched(self, n):
        planned.append(self.error)
        return real(self, n)

    monkeypatch.setattr(endgame.Ending, "epoch", watched)
    for budget in (40, 400):
        play(by_rules(FACTORIAL, sigma=0.3, budget=budget, delta=0.05), seed=2)
    assert planned
    assert min(planned) >= 0.05


def after_pilot(arms, budget):
    """Return the past of a run whose pilot is over."""
    run = fl.Gauntlet().start(by_rules(arms, sigma=1.0, budget=budget, delta=0.05), seed=1)
    means = np.linspace(0.5, -5.0, len(arms))
    rewards = DrawnRewards(means, 1.0, "gaussian", np.random.default_rng(1))
    while (batch := run.next(None)).note["kind"] == "pilot":
        run.record(batch, drawn(rewards, batch))
    return run._past


def test_of_many_arms_those_are_measured_that_tell_most():
    X = np.random.default_rng(3).standard_normal((400, 3))
    past = after_pilot(fl.Arms(X / np.linalg.norm(X, axis=1)[:, None]), 120)
    ending = endgame.Ending.of(past, range(400), None)
    assert (ending.weights > 0.0).all()  # a G-optimal design has a dozen
    counts, _, M = ending.epoch(1)  # which lowers tr(M A^-1) most, before what comes later?
    later = ending.A + (ending.W.T * ((ending.left - 1) * ending.weights)) @ ending.W

    def missed(i):
        return np.trace(M @ np.linalg.inv(later + np.outer(ending.W[i], ending.W[i])))

    assert missed(int(counts.argmax())) <= min(map(missed, range(400))) * (1.0 + 1e-6)


@pytest.mark.parametrize(("error", "tested"), [(0.4, True), (0.6, False)])
def test_epochs_span_where_certainty_may_be_within_reach(error, tested):
    ending = endgame.Ending.of(after_pilot(fl.Arms.unstructured(6), 600), range(6), None)
    two = np.array([0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    counts, _, _ = replace(ending, weights=two, error=error).epoch(30)
    assert (counts > 0).all() == tested
    assert counts.sum() == 30


def test_it_errs_less_than_equal_shares_on_the_instance_of_the_paper():
    # Equal shares and least squares err in .388 of the runs after 100 pulls (10,000 runs), and a
    # design for certainty in about .3.
    one = paper(10, 0.1)
    problem = by_rules(one.arms, sigma=1.0, budget=100)
    found = fl.simulate(problem, one.theta, "gauntlet", runs=200, seed=4)
    assert exact_upper_bound(int((~found.correct).sum()), 200, 0.999) < 0.36


def test_rules_3_go_on_as_they_did():
    old, free = (
        as_problem(FACTORIAL, sigma=1.0, rules=rules_of(3), budget=budget) for budget in (60, None)
    )
    first, second = (fl.Gauntlet().start(problem, seed=1) for problem in (old, free))
    rng = np.random.default_rng(0)
    for _ in range(4):
        batch = first.next()
        np.testing.assert_array_equal(batch.counts, second.next().counts)
        rewards = drawn(DrawnRewards(MEANS, 1.0, "gaussian", rng), batch)
        for run in (first, second):
            run.record(batch, rewards)
