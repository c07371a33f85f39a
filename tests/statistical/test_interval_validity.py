"""The short version of `tests.statistical.interval_validity`: a few runs of each claim."""

from dataclasses import replace

import numpy as np
import pytest

from finalist.inference.mixtures import Batches
from finalist.inference.pooling import BatchSums, Pooled, batch_arms
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from tests.statistical.interval_validity import BROKEN, CASES, Summed, tally

BY_NAME = {case.name: replace(case, batches=20) for case in CASES}
TWENTY = BY_NAME["twenty arms, an opponent"]


def wrong(counts, runs, q):
    return [exact_lower_bound(count, runs, 0.999) > q for count in counts.tolist()]


@pytest.mark.parametrize("name", ["four-way tie", "shifted batches", "sphere, an opponent"])
def test_intervals_hold_at_all_times(name):
    case, runs = BY_NAME[name], 25
    assert not any(wrong(tally(None, case, "", runs), runs, case.q))


@pytest.mark.parametrize("twin", ["", *(twin for _, twin in BROKEN)])
def test_broken_intervals_are_caught(twin):
    runs = 40
    assert wrong(tally(None, TWENTY, twin, runs), runs, 0.2) == [twin != "", twin != "", False]


@pytest.mark.parametrize("name", ["four-way tie", "shifted batches", "noise of each arm"])
def test_what_is_summed_on_the_way_is_what_batches_say(name):
    problem = BY_NAME[name].problem()
    Z, K = batch_arms(problem).coordinates, len(problem.arms)
    lab = DrawnRewards(np.zeros(K), 1.0, "gaussian", np.random.default_rng(3))
    pooled, sums, summed, Y = Pooled(problem), [], Summed(problem, ()), Z[1:] - Z[:1]
    for counts in np.random.default_rng(4).integers(0, 3, (5, K)):
        rewards = lab.batch(counts)
        pooled.add(rewards)
        sums.append(BatchSums.of(rewards))
        summed.add(rewards, Y)
    once = Batches(problem, sums).about(pooled.estimate(), Y)
    assert once is not None
    np.testing.assert_allclose(summed.about(pooled.estimate(), Y), once, atol=1e-9)
