"""What is computed once is what would be computed again: planned epochs, first pulls, looks."""

import json
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.inference.information import information
from finalist.inference.quick import quick_information
from finalist.problem import as_problem
from finalist.simulation.instances import unit_sphere
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies.gauntlet.bets import ODDS, Bets
from finalist.strategies.gauntlet.epochs import Epochs
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.pilot import _telling, first_pulls
from finalist.strategies.protocol import Batch

SPHERE = fl.Arms(unit_sphere(12, 4, 3))
SIGMA = tuple(np.linspace(0.5, 2.0, 12).tolist())
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "sigma per arm": {"sigma": SIGMA},
    "sigma unknown": {"sigma": None},
    "bias": {"misspecification": 0.05},
    "cost": {"cost": tuple(np.linspace(1.0, 3.0, 12).tolist())},
    "top 3": {"top": 3},
    "margin": {"epsilon": 0.2},
    "limit": {"max_pulls_per_arm": 40},
    "budget": {"budget": 150},
    "checked": {"check": 0.01},
}


def drawn(rewards: DrawnRewards, batch: Batch) -> Any:
    return rewards.batch(batch.counts) if batch.order is None else rewards.sequence(batch.order)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_replay_computes_again_what_was_planned(variant):
    problem = as_problem(SPHERE, **{"sigma": 1.0, "delta": 1e-3, **VARIANTS[variant]})
    sigma = np.array(SIGMA) if variant == "sigma per arm" else 1.0
    rng = np.random.default_rng(5)
    rewards = DrawnRewards(SPHERE.means(0.5 * np.ones(4)), sigma, "gaussian", rng)
    live, again = (fl.Gauntlet().start(problem, seed=2) for _ in range(2))
    epochs = told = 0
    for k, size in enumerate((None, 5, None, None, 7, 30, None, None, 1, None, None)):
        if live.verdict.decided:
            break
        batch = live.next(size)
        live.next(3 if k % 2 else size)  # an epoch that nobody records
        results = drawn(rewards, batch)
        course = live._course
        assert isinstance(course, Epochs)
        live.record(batch, results)
        again.record(
            Batch(batch.counts.copy(), json.loads(json.dumps(batch.note)), batch.order), results
        )
        np.testing.assert_array_equal(again._claims.bets.log_m, live._claims.bets.log_m)
        if "epoch" in batch.note and course._planned is not None:
            epochs, told = epochs + 1, told + (course._planned.told is not None)
    assert again.verdict == live.verdict
    assert epochs > 2
    assert (told > 0) == (variant not in ("bias", "budget"))


@pytest.mark.parametrize("settings", [{}, {"sigma": SIGMA}, {"max_pulls_per_arm": 1}], ids=str)
def test_the_first_pulls_of_all_runs_are_those_of_each(settings):
    some = np.arange(12) % 3 > 0
    for arms in (SPHERE, fl.Arms(SPHERE.features, measurable=some)):
        problem = as_problem(arms, **{"sigma": 1.0, **settings})
        past = Past(problem)
        for pulls in (4, 8):
            none = np.zeros(12, dtype=np.int64)
            fresh = _telling(past.Z, problem.precisions, none, past.room(), pulls)
            for _ in range(2):
                np.testing.assert_array_equal(first_pulls(past, pulls), fresh)
            assert fresh.sum() == pulls


def test_the_looks_that_reject_are_the_first_that_do():
    rng, K, L = np.random.default_rng(1), 8, 12
    V = np.cumsum(rng.uniform(0.5, 1.5, (L, K)), axis=0)
    S = 0.9 * V + np.cumsum(rng.standard_normal((L, K)), axis=0)
    V[:3, 5] = S[:3, 5] = 0.0  # not known before
    V[6, 2], S[6, 2] = V[5, 2], S[5, 2]  # a look at nothing new
    at, before = np.arange(K), (np.zeros(K), np.zeros(K))

    def bets_on(looks: int) -> Bets:
        bets = Bets.against(K, 0.3, True, 0.2, ODDS)
        bets.scale[:] = 1.0
        bets.place_along(S[:looks], V[:looks], at, before, ODDS)
        return bets

    bets = bets_on(L)
    firsts = [
        next(n for n in range(L) if bets_on(n + 1).rejected[k])
        for k in np.flatnonzero(bets.rejected)
    ]
    assert bets.out_along(V, at) == firsts
    assert len(set(firsts)) > 2


def test_quick_variances_are_infinite_where_they_are_no_numbers():
    for found in (quick_information, information):
        info = found(np.eye(2), np.array([4.0, 1.0]))
        Y = np.array([[1.0, -1.0], [np.nan, 0.0], [1e200, 0.0]])
        with np.errstate(over="ignore"):
            assert info.variances(Y).tolist() == [1.25, np.inf, np.inf]
