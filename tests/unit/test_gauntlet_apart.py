"""What chooses is apart from what tests: it never sees a batch's rewards before their test."""

import copy

import numpy as np
import pytest

import finalist as fl
from finalist.problem import as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies.gauntlet import run as loop
from finalist.strategies.gauntlet.stakes import stakes_of

ARMS = fl.Arms([[1.0, 0.0], [0.8, 0.5], [0.2, 1.0], [0.9, 0.9]])
SETTINGS = [
    {},
    {"epsilon": 0.3},
    {"sigma": None},
    {"top": 2},
    {"misspecification": 0.1},
    {"misspecification": 0.1, "batch_intercept": True},
    {"delta": 0.001, "objective": "min"},
]


def halfway(settings, seed):
    """Return a run in front of the rewards of its third test, and where they come from."""
    problem = as_problem(ARMS, **{"sigma": 1.0, **settings})
    rng = np.random.default_rng(seed)
    rewards = DrawnRewards(np.array([0.3, 0.2, 0.1, 0.0]), 1.0, "gaussian", rng)
    run = fl.Gauntlet().start(problem, seed=seed)
    while run._past.batches < 2:
        batch = run.next()
        run.record(batch, rewards.batch(batch.counts))
    return run, rewards


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_two_outcomes_of_a_batch_are_bet_on_alike(settings, monkeypatch):
    run, rewards = halfway(settings, 3)
    batch, twin, stakes = run.next(), copy.deepcopy(run), []
    known, real = run._past.pulls, stakes_of

    def noted(past, contrasts, epsilon):
        assert past.pulls == known, "the chooser knows rewards before they are tested"
        found = real(past, contrasts, epsilon)
        stakes.append(
            (*vars(found).values(), *(np.asarray(v) for v in vars(contrasts.pairs).values()))
        )
        return found

    monkeypatch.setattr(loop, "stakes_of", noted)
    for one in (run, twin):
        one.record(batch, rewards.batch(batch.counts))
    half = len(stakes) // 2
    assert half > 0
    for first, second in zip(stakes[:half], stakes[half:], strict=True):
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)
    assert run._past.pulls == twin._past.pulls == known + batch.size


def test_the_twin_that_looks_first_is_noticed(monkeypatch):
    run, rewards = halfway({}, 3)
    batch = run.next()
    outcome, known, real = rewards.batch(batch.counts), run._past.pulls, stakes_of

    def noted(past, *more):
        assert past.pulls == known
        return real(past, *more)

    monkeypatch.setattr(loop, "stakes_of", noted)
    run._past.add(batch, outcome)  # before the test
    run._past.recorded -= 1
    with pytest.raises(AssertionError):
        run.record(batch, outcome)
