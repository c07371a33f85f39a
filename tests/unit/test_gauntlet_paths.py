"""Bets along the path of an epoch, and the path itself, against plain NumPy."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.inference.statistics import BatchResults
from finalist.problem import as_problem
from finalist.strategies.gauntlet import path_kernels
from finalist.strategies.gauntlet.bets import ODDS, ODDS_OF_FEW, Bets, Odds
from tests import instances
from tests.unit.slow_gauntlet import SlowBet, SlowRun

AT = np.zeros(1, dtype=np.int64)


def placed(bets: Bets, S: Any, V: Any, before: Any = (0.0, 0.0), odds: Odds = ODDS) -> None:
    """Bet against one arm on the looks of an epoch."""
    S, V = np.atleast_1d(S).astype(float)[:, None], np.atleast_1d(V).astype(float)[:, None]
    bets.place_along(S, V, AT, (np.array([before[0]]), np.array([before[1]])), odds)


def begun(delta: float = 1e-6, untilted: float = 0.0, capped: bool = True) -> Bets:
    bets = Bets.against(1, delta, capped, untilted, ODDS)
    bets.scale[:] = 1.0
    return bets


# ---- odds ----------------------------------------------------------------------------------


def test_odds_are_flat_and_then_fall():
    # 0.9 / 11 for m = 0..10, then 0.1 * 3 / ((m - 8) (m - 7)), which sums to 0.1 (1 - 3 / 22).
    total = 0.9 + 0.1 * (1.0 - 3.0 / 22.0)
    weights = np.exp(ODDS.prior)
    assert len(weights) == 30
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert weights[:11] == pytest.approx([0.9 / 11 / total] * 11, rel=1e-12)
    assert weights[[11, 29]] == pytest.approx([0.3 / 12 / total, 0.3 / 462 / total], rel=1e-12)
    assert weights[[0, 11, 29]] == pytest.approx([0.082949, 0.025346, 0.000658], abs=5e-7)
    assert ODDS.grid[[0, 10]] == pytest.approx([1.8, 1.8 / 28.9254654976], rel=1e-9)
    # Four larger drifts, each of the weight of the others.
    few = np.exp(ODDS_OF_FEW.prior)
    assert few[[0, 14, 15, 33]] == pytest.approx([0.062284] * 2 + [0.019031, 0.000494], abs=5e-7)
    assert ODDS_OF_FEW.grid[[0, 4]] == pytest.approx([1.8 * 1.4**4, 1.8], rel=1e-12)
    assert (ODDS.temper, ODDS.expert) == (ODDS_OF_FEW.temper, ODDS_OF_FEW.expert) == (0.7, 0.0)


# ---- bets on looks ---------------------------------------------------------------------------

#: Log of the wealth after each of twelve epochs with one look each, worked out apart.
WEALTH = {
    0.05: ("0.2517 0.4030 0.5723 0.7615 0.9725 1.2068 1.4655 1.7496 2.0608 2.4091 2.8369 2.9957"),
    0.001: ("0.2503 0.4016 0.5709 0.7602 0.9711 1.2054 1.4641 1.7480 2.0572 2.3913 2.7491 3.1288"),
}


@pytest.mark.parametrize("delta", WEALTH)
def test_wealth_after_epochs_of_one_look(delta):
    bets, S, V, found = begun(delta), 0.0, 0.0, []
    for k in range(12):
        speed = 1.0 if k == 0 else math.sqrt(0.1 * V)
        placed(bets, speed, speed**2, (S, V))
        bets.path[:] = 0.0  # the epoch ends
        S, V = S + speed, V + speed**2
        found.append(float(bets.log_m[0]))
    assert found == pytest.approx([float(word) for word in WEALTH[delta].split()], abs=6e-5)
    assert bool(bets.rejected[0]) == (delta == 0.05)


@pytest.mark.parametrize("capped", [True, False])
@pytest.mark.parametrize("odds", [ODDS, ODDS_OF_FEW], ids=["many", "few"])
def test_bets_on_looks_are_as_in_plain_python(odds, capped):
    rng = np.random.default_rng(5)
    for _ in range(5):
        bets, V = begun(0.01, 0.2, capped), np.cumsum(rng.exponential(size=30))
        slow = SlowBet(0.01, 0.2, 1.0)
        S = 0.3 * V + np.cumsum(rng.standard_normal(30) * np.sqrt(np.diff(V, prepend=0.0)))
        before = (0.4, 2.0)
        for epoch in range(2):
            placed(bets, S, V, before, odds)
            for s, v in zip(S, V, strict=True):
                slow.look(s, v, before, odds, capped)
            assert bets.log_m[0] == pytest.approx(slow.log_m, rel=1e-7, abs=1e-8), epoch
            bets.path[:], slow.path = 0.0, (0.0, 0.0)
            before = (before[0] + S[-1], before[1] + V[-1])


def test_the_own_path_is_not_tempered():
    # What was before the epoch counts for 0.7 of itself, its own path for all.
    first, second = begun(untilted=0.2), begun(untilted=0.2)
    placed(first, [3.0, 3.5], [4.0, 5.0])
    placed(second, 3.0, 4.0)
    second.path[:] = 0.0
    placed(second, 0.5, 1.0, (3.0 / 0.7, 4.0 / 0.7))
    assert first.log_m == pytest.approx(second.log_m, rel=1e-12)
    assert first.wealth == pytest.approx(second.wealth, rel=1e-12)


def test_looks_one_by_one_and_together():
    rng = np.random.default_rng(1)
    V = np.cumsum(rng.exponential(size=20))
    S = np.cumsum(rng.standard_normal(20))
    one, all_ = begun(0.05, 0.2), begun(0.05, 0.2)
    placed(all_, S, V, (1.0, 2.0))
    for s, v in zip(S, V, strict=True):
        placed(one, s, v, (1.0, 2.0))
    assert one.log_m.tolist() == all_.log_m.tolist()
    assert one.path.tolist() == all_.path.tolist()


@pytest.mark.parametrize("look", [(math.nan, 2.0), (1.0, math.nan), (1.0, math.inf), (1.0, 1.0)])
def test_a_look_that_says_nothing_is_no_evidence(look):
    bets = begun(0.05, 0.2)
    placed(bets, 1.0, 1.0)
    before = float(bets.log_m[0])
    placed(bets, *look)
    assert bets.log_m[0] <= before
    placed(bets, 50.0, 3.0)  # what comes after a sum that is no number is none either
    if math.isnan(look[0]):
        assert bets.log_m[0] <= before


def test_a_look_that_adds_nothing_but_rounding_is_left_out():
    bets = begun(0.05, 0.2)
    placed(bets, 1.0, 1.0)
    before = bets.log_m.copy()
    placed(bets, 1.0 + 1e-7, 1.0 + 1e-12)
    assert bets.log_m.tolist() == before.tolist()
    assert bets.path[:, 0].tolist() == [1.0, 1.0]


def test_a_factor_has_mean_one_at_each_look():
    # The wealth after one look is a function of z; its mean under N(0, 1) is 1 with the cap and
    # without, whatever the path was.
    z = np.linspace(-12, 12, 40_001)
    K, every = len(z), np.ones(len(z))
    for capped in (True, False):
        for S, V, more in ((0.0, 0.0, 1.0), (2.5, 3.0, 0.5), (-2.0, 5.0, 9.0)):
            bets = Bets.against(K, 0.05, capped, 0.2, ODDS)
            bets.scale[:] = 1.0
            looks = (
                np.array([S * every, S + z * math.sqrt(more)]),
                np.array([V * every, (V + more) * every]),
            )
            before = 0.7 * every, 1.5 * every
            for s, v in zip(*looks, strict=True):
                start = bets.log_m.copy()
                bets.place_along(s[None], v[None], np.arange(K), before, ODDS)
            factor = np.exp(bets.log_m - start)
            mean = np.trapezoid(factor * stats.norm.pdf(z), z)
            assert mean <= 1.0 + 1e-6
            assert mean > (1.0 - 1e-4 if capped else 0.5)
            assert (np.diff(factor) >= -1e-12).all()  # nondecreasing


# ---- the path of an epoch --------------------------------------------------------------------


def walked(rows: Any, values: Any, Y: Any, look: Any) -> tuple[Any, Any]:
    r = rows.shape[1]
    V, gaps = np.zeros((2, int(np.count_nonzero(look)), len(Y)))
    state = np.zeros((r, r)), np.zeros(r)
    path_kernels.walk(*state, np.ascontiguousarray(rows), values, look, Y, V, gaps)
    return V, gaps


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("near", [1.0, 1e-3])
def test_a_path_is_least_squares_again_and_again(scale, offset, near):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((9, 4))
    X[:, 0], X[:, 3] = 1.0, X[:, 2] + near * X[:, 3]  # two features that are nearly one
    arms = fl.Arms(scale * X)
    Z = arms.coordinates
    pulls = np.r_[np.arange(9), rng.integers(0, 9, 40)]
    noise = rng.standard_normal(len(pulls))
    weights = rng.uniform(0.2, 3.0, 9)[pulls]  # precisions
    rows = Z[pulls] * np.sqrt(weights)[:, None]
    look = np.ones(len(pulls) + 1, dtype=bool)
    Y = Z[1:] - Z[0]
    V, gaps = walked(rows, (offset + noise) * np.sqrt(weights), Y, look)
    assert not V[:4].any()  # nothing can be said before there are four rows
    assert V[9:].all()
    for n in (9, 10, 20, 49):
        A = rows[:n].T @ rows[:n]
        theta = np.linalg.lstsq(rows[:n], noise[:n] * np.sqrt(weights[:n]), rcond=None)[0]
        assert V[n] == pytest.approx(1.0 / np.einsum("ij,ji->i", Y, np.linalg.solve(A, Y.T)), 1e-9)
        # The constant is a feature: it changes no difference, but for rounding.
        error = 1e-8 + 1e-14 * offset
        assert gaps[n] * np.sqrt(V[n]) == pytest.approx(Y @ theta * np.sqrt(V[n]), abs=error * 50)
    assert (np.diff(V[9:], axis=0) >= -1e-9 * V[9:-1]).all()


def test_a_path_is_brownian_motion():
    # cov(S_m, S_n) = V_m, whatever the pulls: by the weights of the rewards, without any draw.
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((7, 3))
    pulls = np.r_[np.arange(4), rng.integers(0, 7, 16)]
    Y, n = Z[[1]] - Z[[0]], len(pulls)
    look = np.zeros(n + 1, dtype=bool)
    look[4:] = True
    rows = Z[pulls]
    V, _ = walked(rows, np.zeros(n), Y, look)
    weights = np.array([walked(rows, row, Y, look)[1][:, 0] for row in np.eye(n)]) * V[:, 0]
    covariance = weights.T @ weights
    expected = np.minimum.outer(V[:, 0], V[:, 0])
    np.testing.assert_allclose(covariance, expected, rtol=1e-9)


# ---- a whole run in plain Python -------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"objective": "min"},
        {"sigma": (0.5, 1.0, 2.0, 1.0, 1.0, 1.0, 1.5, 1.0, 1.0)},
        {"noise": "sub-gaussian"},
    ],
    ids=str,
)
def test_a_run_is_what_its_notes_say_in_plain_python(settings):
    # From notes and rewards alone: the reserve by hand, each look by lstsq, each bet by SlowBet.
    arms = fl.Arms(instances.unit_sphere(9, 3, 2))
    problem = as_problem(arms, **{"sigma": 1.0, "delta": 0.05, **settings})
    sigma = np.array(problem.sigmas)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        run, slow = fl.Gauntlet().start(problem, seed=seed), SlowRun(problem)
        while not run.verdict.decided:
            batch = run.next(5)
            order = np.repeat(np.arange(9), batch.counts) if batch.order is None else batch.order
            noise = rng.standard_normal(batch.size)
            values = arms.means([2.5, 0.2, 0.0])[order] + sigma[order] * noise
            run.record(batch, BatchResults.of(9, order, values))
            slow.record(batch.note, order, values)
            log_m = run._course.claims.bets.log_m
            assert log_m == pytest.approx([b.log_m for b in slow.bets], rel=1e-6, abs=1e-7)
        alive = [i for i, bet in enumerate(slow.bets) if not bet.rejected]
        assert alive == [run.verdict.winner]
        assert run.decided_at == slow.decided_at
