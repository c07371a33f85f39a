"""Looks while results of a batch arrive: they decide when the whole batch says so, not before."""

import copy

import numpy as np
import pytest

import finalist as fl
from finalist.inference.statistics import BatchResults
from finalist.strategies.protocol import Batch

SIZES = (1, 2, 5, 9, 3, 14)


def start(seed, **settings):
    arms = fl.Arms.unstructured(4)
    return fl.Gauntlet().start(fl.Problem(arms, noise=fl.Gaussian(1.0), **settings), seed=seed)


def arrived(order, values, n):
    return BatchResults.of(4, order[:n], values[:n])


def looks(run, batch, order, values):
    """Tell results one by one; return after how many it was decided, None if not before all."""
    seen = None
    for n in range(len(order)):
        results = arrived(order, values, n)
        if run.look(Batch(results.count.copy(), batch.note), results, seen):
            return n
        seen = results.count
    return None


def straddles(batch):
    return batch.note["rest"] > 0 and "epoch" in batch.note


def arrival(batch, order, needed):
    """Return when so many results had arrived, those of the older epoch counted first."""
    left = np.bincount(batch.order[: batch.note["rest"]], minlength=4)
    older = np.zeros(len(order), dtype=bool)
    for t, arm in enumerate(order):
        older[t] = left[arm] > 0
        left[arm] -= 1
    first = np.flatnonzero(older)
    if needed <= len(first):
        return first[needed - 1] + 1 if needed > 0 else 0
    newer = np.flatnonzero(~older)[needed - len(first) - 1]
    return max(newer, first.max(initial=-1)) + 1


@pytest.mark.parametrize("gap", [2.5, 0.8])
@pytest.mark.parametrize("mixed", [False, True], ids=["as asked", "any order"])
def test_looks_decide_at_the_result_at_which_the_whole_batch_does(gap, mixed):
    means = np.array([gap, 0.0, -0.2, 0.1])
    inside = across = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 7])
        run, sizes = start(seed), rng.permutation(SIZES)
        while not run.verdict.decided:
            batch = run.next(int(rng.choice(sizes)))
            order = batch.order
            if order is None:  # of a pilot
                order = np.repeat(np.arange(len(batch.counts)), batch.counts)
            order = rng.permutation(order) if mixed else order
            values = means[order] + rng.standard_normal(len(order))
            before, early = run.verdict.pulls, copy.deepcopy(run)
            after = looks(early, batch, order, values)
            run.record(batch, arrived(order, values, len(order)))
            if not run.verdict.decided:
                assert after is None
                continue
            expected = arrival(batch, order, run.decided_at - before)
            assert after == (expected if expected < len(order) else None)
            if after is not None:
                assert early.verdict.winner == run.verdict.winner
                inside, across = inside + 1, across + straddles(batch)
    assert inside > 20
    assert across > 3
