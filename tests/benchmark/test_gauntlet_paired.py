"""Rules compared on the same noise."""

from dataclasses import replace
from typing import Any

import numpy as np
from benchmarks.gauntlet.paired import CommonNoise, changed, pulls_of, ratio

import finalist as fl
from finalist.problem import as_problem
from finalist.problem.rules import rules_of
from finalist.simulation.instances import unstructured
from finalist.simulation.task import finish


def test_the_nth_result_of_an_arm_does_not_depend_on_the_others():
    order = np.random.default_rng(0).integers(3, size=900)
    whole = CommonNoise(np.array([5.0, 0.0, -5.0]), seed=1).sequence(order)
    parts = CommonNoise(np.array([5.0, 0.0, -5.0]), seed=1)
    alone = [parts.sequence(np.full(np.count_nonzero(order == arm), arm)) for arm in (2, 0, 1)]
    assert whole.value is not None
    for arm, part in zip((2, 0, 1), alone, strict=True):
        assert part.value is not None
        np.testing.assert_array_equal(part.value, whole.value[order == arm])
    noise = whole.value - np.array([5.0, 0.0, -5.0])[order]
    assert abs(noise.mean()) < 0.15
    assert 0.9 < noise.std() < 1.1
    assert len(np.unique(noise)) == len(noise)


def test_pulls_are_those_after_which_it_was_decided():
    instance, rules = unstructured([1.0, 0.3, 0.0]), rules_of(4)
    for seed in range(4):
        problem = as_problem(instance.arms, sigma=1.0, delta=0.1, rules=rules)
        noise: Any = CommonNoise(instance.theta, seed)
        run = fl.Gauntlet().start(problem, seed=seed)
        expected = int(finish(run, noise, 3, 10**6)[0].sum())
        assert pulls_of(instance, rules, 0.1, seed, 10**6) == expected
        assert 4 <= pulls_of(instance, rules, 0.1, seed, 4) < expected


def test_rules_are_as_good_as_themselves_and_others_are_not():
    same, changed_rules = rules_of(4), changed(rules_of(4), ["untilted=0.9", "endgame=False"])
    assert changed_rules == replace(same, untilted=0.9, endgame=False)
    assert ratio(5, (same, same), 0.05, 2, "unstructured") == (1.0, 0.0)
    mean, error = ratio(5, (same, rules_of(1)), 0.05, 2, "unstructured")
    assert mean > 2.0  # rules 1 have a pilot of four times the rank
    assert 0.0 < error < 1.0
