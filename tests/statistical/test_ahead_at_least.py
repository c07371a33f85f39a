"""How far an arm is ahead of others at least, whenever one looks and whoever is named.

An opponent who knows the truth chooses the pulls and lets large errors stand. After every third
batch all arms are looked at, so that whoever is named, and whenever, would have been right. Without
the price of their bets the bounds are wrong too often: that has to be caught. (How far an arm is
behind the best at most is the end of an interval of `test_interval_validity`: see test_mixtures.)
"""

from typing import Any

import numpy as np

from finalist.inference import intervals
from finalist.inference.leads import ahead_at_least
from finalist.inference.mixtures import Batches
from finalist.inference.pooling import BatchSums
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from tests.statistical.interval_validity import CASES, Watcher, broken, chased

CASE = next(case for case in CASES if case.name == "six arms, an opponent")
#: The probability that is allowed, large so that few runs tell.
Q, RUNS, BATCHES, EVERY = 0.2, 40, 30, 3


def is_ever_wrong(seed):
    """Return whether any arm was ever said to be further ahead of another than it is."""
    problem, truth = CASE.problem(), np.array(CASE.theta)
    start = intervals.start_of(problem)
    rng = np.random.default_rng([20261118, seed])
    lab, watcher = DrawnRewards(truth, 1.0, "gaussian", rng), Watcher(CASE, problem, "")
    sums: list[BatchSums] = []
    for number in range(BATCHES):
        rewards = lab.batch(chased(watcher, truth, rng))
        watcher.pooled.add(rewards)
        sums.append(BatchSums.of(rewards))
        if number % EVERY:
            continue
        fit, bets = watcher.pooled.estimate(), Batches(problem, sums)
        words: dict[str, Any] = {
            "sign": 1,
            "sigma": 1.0,
            "start": start,
            "confidence": 1.0 - Q,
            "bets": bets,
        }
        if any(
            np.any(ahead_at_least(fit, arm, **words) > mean - truth)  # false for nan
            for arm, mean in enumerate(truth)
        ):
            return True
    return False


def rate():
    """Return what the probability of being ever wrong is at least, with 99.9 %."""
    return exact_lower_bound(sum(map(is_ever_wrong, range(RUNS))), RUNS, 0.999)


def test_bounds_hold_at_all_times_for_all_arms():
    assert rate() <= Q


def test_bounds_without_the_price_of_their_bets_are_caught(monkeypatch):
    def free(*given):
        found = intervals.mixture(*given)
        return None if found is None else broken(found, given[-1], "no price")

    monkeypatch.setattr("finalist.inference.leads.mixture", free)
    assert rate() > Q
