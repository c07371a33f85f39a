"""What chooses is apart from what tests: it never sees rewards before their test."""

import copy
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.problem import as_problem
from finalist.problem.rules import rules_of
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn
from finalist.strategies.gauntlet import batches, epochs
from finalist.strategies.gauntlet.stakes import stakes_of

ARMS = fl.Arms([[1.0, 0.0], [0.8, 0.5], [0.2, 1.0], [0.9, 0.9]])
SETTINGS: list[dict[str, Any]] = [
    {},
    {"epsilon": 0.3},
    {"sigma": None},
    {"top": 2},
    {"misspecification": 0.1},
    {"misspecification": 0.1, "batch_intercept": True},
    {"delta": 0.001, "objective": "min"},
    {"budget": 200},
    {"budget": 200, "sigma": None, "delta": 0.2},
]
#: Rules, and how many tests are over: the first epoch by rules 3 has the reserve of the pilot.
WHEN = [(2, 2), (3, 0), (3, 2), (4, 2)]


def halfway(settings, seed, rules, tests):
    """Return a run in front of the rewards of a test, and where they come from."""
    problem = as_problem(ARMS, **{"sigma": 1.0, "rules": rules_of(rules), **settings})
    rng = np.random.default_rng(seed)
    rewards = DrawnRewards(np.array([0.3, 0.2, 0.1, 0.0]), 1.0, "gaussian", rng)
    run = fl.Gauntlet().start(problem, seed=seed)
    while run.next().note["kind"] == "pilot" or run._past.batches < tests:
        batch = run.next()
        run.record(batch, drawn(rewards, batch))
    return run, rewards


def watch(monkeypatch, run):
    """Note all stakes, and refuse those of a chooser that knows more than this run does now."""
    stakes, known = [], run._past.pulls

    def noted(past, contrasts, epsilon):
        assert past.pulls == known, "the chooser knows rewards before they are tested"
        found = stakes_of(past, contrasts, epsilon)
        stakes.append(
            (*vars(found).values(), *(np.asarray(v) for v in vars(contrasts.pairs).values()))
        )
        return found

    for module in (batches, epochs):
        monkeypatch.setattr(module, "stakes_of", noted)
    return stakes, known


@pytest.mark.parametrize(("rules", "tests"), WHEN)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_two_outcomes_of_a_batch_are_bet_on_alike(settings, rules, tests, monkeypatch):
    run, rewards = halfway(settings, 3, rules, tests)
    batch, twin = run.next(), copy.deepcopy(run)
    stakes, known = watch(monkeypatch, run)
    for one in (run, twin):
        one.record(batch, drawn(rewards, batch))
    half = len(stakes) // 2
    assert half > 0
    for first, second in zip(stakes[:half], stakes[half:], strict=True):
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)
    assert run._past.pulls == twin._past.pulls == known + batch.size


@pytest.mark.parametrize(("rules", "tests"), WHEN)
def test_the_twin_that_looks_first_is_noticed(rules, tests, monkeypatch):
    run, rewards = halfway({}, 3, rules, tests)
    batch = run.next()
    outcome = drawn(rewards, batch)
    watch(monkeypatch, run)
    run._past.pooled.add(outcome)  # before the test
    with pytest.raises(AssertionError):
        run.record(batch, outcome)


def test_nothing_that_chooses_sees_what_is_kept_back():
    # Two pilots of which the same is shown, and other results are kept back: what is chosen is the
    # same. The noise of our own hides the change of the results.
    one, _ = halfway({}, 3, 3, 0)
    (step,) = one.next().note["revealed"]
    other = copy.deepcopy(one)
    reserve, noise = other._past.reserve, np.array(step["noise"])
    i, share = reserve.arms(), step["pulls"] / reserve.kept
    change = np.array([0.7, -0.4, 0.3, -0.9])[i]
    reserve.total[i] += change
    hidden = noise - share * change / np.sqrt(share * (1.0 - share) * reserve.worth[i])
    for run, w in ((one, noise), (other, hidden)):
        run._past.reveal([{**step, "noise": w.tolist()}])
        run._course._chosen = {}
    np.testing.assert_allclose(one._past.reserve.shown_total, reserve.shown_total, rtol=1e-13)
    assert not np.allclose(one._past.reserve.total, reserve.total, atol=0.1)
    assert one.next().note["epoch"] == other.next().note["epoch"]
    np.testing.assert_array_equal(one.next().order, other.next().order)
