"""Thresholds of the successors' strategies, and their phases, against numbers worked out by hand.

As in `test_constants`: sigma = 2, delta = 0.05, three arms that share nothing.
"""

import math
from typing import Any

import numpy as np
import pytest

import finalist as fl
from tests.unit.boundaries import FAR, NEAR, THREE, WIDTHS, after_looks, problem_of, tell

# Xu et al. 2018, Prop. 1 (Abbasi-Yadkori et al. 2011, Thm. 2): the ridge counts as one pull of each
# arm, lambda = 3 in coordinates where S = 1.5; det(A) / det(lambda I) = 8 * 8 * 32 = 2^11 after
# (7, 7, 31) pulls, then 32 * 32 * 128 = 2^17 and 128 * 128 * 512 = 2^23:
#   2 sqrt(2 log(2^(11/2) / 0.05)) + sqrt(3) * 1.5 = 9.97807175
#   2 sqrt(2 log(2^(17/2) / 0.05)) + sqrt(3) * 1.5 = 11.03014989
#   2 sqrt(2 log(2^(23/2) / 0.05)) + sqrt(3) * 1.5 = 11.96479382
DETERMINANT = (9.97807175, 11.03014989, 11.96479382)
# Without proof, t = 45, 189 and 765:
#   2 sqrt(2 log((1 + log 45) / 0.05))  + sqrt(3) * 1.5 = 8.64174083
#   2 sqrt(2 log((1 + log 189) / 0.05)) + sqrt(3) * 1.5 = 8.81224865
#   2 sqrt(2 log((1 + log 765) / 0.05)) + sqrt(3) * 1.5 = 8.94101788
RIDGE_HEURISTIC = (8.64174083, 8.81224865, 8.94101788)
# Degenne et al. 2020, beta(t, delta) with d = 3, L^2 = eta: 1 + t / 3 = 16, 64 and 256.
# sqrt(2 sigma^2 beta) = sigma sqrt(2 log(1 / delta) + 3 log(1 + t / 3)) + sqrt(eta) M:
#   2 sqrt(2 log(1 / 0.05) + 3 log 16)  + sqrt(3) * 1.5 = 10.16358498
#   2 sqrt(2 log(1 / 0.05) + 3 log 64)  + sqrt(3) * 1.5 = 11.19298489
#   2 sqrt(2 log(1 / 0.05) + 3 log 256) + sqrt(3) * 1.5 = 12.11164481
GAME = (10.16358498, 11.19298489, 12.11164481)
# Jedra and Proutiere 2020, beta(t) = (1 + u) sigma^2 log(det(A / (u c) + I)^(1/2) / delta) with
# u = 1/10, A / c = diag(8, 8, 32), (32, 32, 128) and (128, 128, 512):
#   1.1 * 4 (log(81 * 81 * 321) / 2 + log(1 / 0.05))      = 45.21396876
#   1.1 * 4 (log(321 * 321 * 1281) / 2 + log(1 / 0.05))   = 54.31743481
#   1.1 * 4 (log(1281 * 1281 * 5121) / 2 + log(1 / 0.05)) = 63.45539676
# and gap^2 / (2 ||y||^2) > beta is gap > sqrt(2 beta) ||y||: 9.50936052, ...
LAZY = (9.50936052, 10.42280527, 11.26546908)
# Kaufmann and Koolen 2021: x = log((3 - 1) / 0.05) / 2 = 1.84443973, and C(x) = 3.41633527, the
# smallest of (2 l - 2 l log(4 l) + log zeta(2 l) - log(1 - l) / 2 + x) / l, at l = 0.933044:
#   4 log(4 + log(48 / 2))  + 2 * 3.41633527 = 14.71678372
#   4 log(4 + log(192 / 2)) + 2 * 3.41633527 = 15.42310266
#   4 log(4 + log(768 / 2)) + 2 * 3.41633527 = 16.02321906
# and gap^2 / (2 * 4 (1/8 + 1/8)) > beta is gap > 2 sqrt(2 beta) / 2: 2 sqrt(2 beta) is
TRACK = (10.85054237, 11.10787204, 11.32191470)
# Without proof, t = 48, 192 and 768:
#   2 sqrt(2 log((1 + log 48) / 0.05))  = 6.05248563
#   2 sqrt(2 log((1 + log 192) / 0.05)) = 6.21579426
#   2 sqrt(2 log((1 + log 768) / 0.05)) = 6.34326464
HEURISTIC = (6.05248563, 6.21579426, 6.34326464)

RIDGE: dict[str, tuple[Any, tuple[float, ...]]] = {
    "lingape": (fl.LinGapE(theta_norm=1.5), DETERMINANT),
    "lingape, ratio": (fl.LinGapE(theta_norm=1.5, selection="ratio"), DETERMINANT),
    "lingape, heuristic": (fl.LinGapE(theta_norm=1.5, threshold="heuristic"), RIDGE_HEURISTIC),
    "lingame": (fl.LinGame(theta_norm=1.5), GAME),
    "lingame, determinant": (fl.LinGame(theta_norm=1.5, threshold="determinant"), DETERMINANT),
    "lingame, heuristic": (fl.LinGame(theta_norm=1.5, threshold="heuristic"), RIDGE_HEURISTIC),
}
PLAIN: dict[str, tuple[Any, tuple[float, ...]]] = {
    "lazy-ts": (fl.LazyTS(), LAZY),
    "lazy-ts, heuristic": (fl.LazyTS(threshold="heuristic"), HEURISTIC),
    "track-and-stop": (fl.TrackAndStop(), TRACK),
    "track-and-stop, C": (fl.TrackAndStop(tracking="C"), TRACK),
    "track-and-stop, heuristic": (fl.TrackAndStop(threshold="heuristic"), HEURISTIC),
}
CASES = {**RIDGE, **PLAIN}
#: Below and above the boundary.
SIDES = ((1.0 - NEAR, None), (1.0 + NEAR, 0))


@pytest.mark.parametrize("look", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_a_look_decides_at_the_threshold(name, look):
    strategy, radii = CASES[name]
    boundary = radii[look - 1] * WIDTHS[look - 1]
    for factor, winner in SIDES:
        run = after_looks(strategy.start(problem_of()), look, factor * boundary, name in RIDGE)
        assert run.verdict.winner == winner


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("settings", "sign", "allowed"),
    [({"objective": "min"}, -1, 0.0), ({"goal": fl.EpsilonBest(0.25)}, 1, 0.25)],
    ids=["min", "epsilon"],
)
def test_small_rewards_and_good_enough_arms_have_the_same_threshold(name, settings, sign, allowed):
    strategy, radii = CASES[name]
    for factor, winner in SIDES:
        run, gap = strategy.start(problem_of(**settings)), factor * (radii[0] * 0.5 - allowed)
        after_looks(run, 1, gap, name in RIDGE, sign)
        assert run.verdict.winner == winner


@pytest.mark.parametrize(
    ("strategy", "radius"),
    [
        # Ridge 4, as 4 pulls of each arm: lambda = 4 * 3, and after (4, 4, 12) pulls
        # det = (8/4) (8/4) (16/4) = 16:
        #   2 sqrt(log 16 + 2 log(1 / 0.05)) + sqrt(12) * 1.5 = 11.11698117
        (fl.LinGapE(theta_norm=1.5, ridge=4.0), 11.11698117),
        (fl.LinGame(theta_norm=1.5, ridge=4.0, threshold="determinant"), 11.11698117),
        # 1 + t L^2 / (eta d) = 1 + 20 / (4 * 3) = 8/3:
        #   2 sqrt(3 log(8 / 3) + 2 log(1 / 0.05)) + sqrt(12) * 1.5 = 11.17409598
        (fl.LinGame(theta_norm=1.5, ridge=4.0), 11.17409598),
    ],
    ids=["lingape", "lingame, determinant", "lingame"],
)
def test_thresholds_with_another_ridge(strategy, radius):
    for factor, winner in SIDES:
        run, gap = strategy.start(problem_of()), factor * radius * 0.5
        tell(run, (4, 4, 12), [gap * 8 / 4, 0.0, FAR * 16 / 12])
        assert run.verdict.winner == winner


@pytest.mark.parametrize(
    ("strategy", "radius"),
    [
        # One pull of arm 0, whose sigma is 2 / sqrt(7), counts as 7: det = 8 * 8 * 32 as above.
        (fl.LinGapE(theta_norm=1.5), DETERMINANT[0]),
        (fl.LinGame(theta_norm=1.5, threshold="determinant"), DETERMINANT[0]),
        # L^2 / eta = 7, t = 39:
        #   2 sqrt(3 log(1 + 39 * 7 / 3) + 2 log(1 / 0.05)) + sqrt(3) * 1.5 = 11.44269724
        (fl.LinGame(theta_norm=1.5), 11.44269724),
    ],
    ids=["lingape", "lingame, determinant", "lingame"],
)
def test_unequal_noise_with_a_ridge(strategy, radius):
    noise = fl.Gaussian((2.0 / math.sqrt(7.0), 2.0, 2.0))
    for factor, winner in SIDES:
        run = strategy.start(fl.Problem(THREE, noise=noise, delta=0.05))
        tell(run, (1, 7, 31), [factor * radius * 0.5 * 8 / 7, 0.0, FAR * 32 / 31])
        assert run.verdict.winner == winner


def test_unequal_noise_of_lazy_ts():
    # sigma = 1 for arm 0: its two pulls count as 8, A / c = diag(8, 8, 32) as above.
    for factor, winner in SIDES:
        noise = fl.Gaussian((1.0, 2.0, 2.0))
        run = fl.LazyTS().start(fl.Problem(THREE, noise=noise, delta=0.05))
        tell(run, (2, 8, 32), [factor * LAZY[0] * 0.5, 0.0, FAR])
        assert run.verdict.winner == winner


def test_lazy_ts_with_another_ridge():
    # u = 4: (1 + 4) * 4 (log(3 * 3 * 9) / 2 + log(1 / 0.05)) = 103.85913702 after (8, 8, 32) pulls
    boundary = math.sqrt(2 * 103.85913702) * 0.5
    for factor, winner in SIDES:
        run = after_looks(fl.LazyTS(ridge=4.0).start(problem_of()), 1, factor * boundary)
        assert run.verdict.winner == winner


#: The first is as long as the others together, and the ridge as one pull of it.
UNEQUAL = fl.Arms([[2.0], [1.0], [-1.0]])


@pytest.mark.parametrize(
    ("strategy", "radius"),
    [
        # 2 sqrt(log(16 / 4) + 2 log(1 / 0.05)) + sqrt(2) * 1.5 = 7.55372641
        (fl.LinGapE(theta_norm=1.5), 7.553726407),
        (fl.LinGame(theta_norm=1.5, threshold="determinant"), 7.553726407),
        # d = 1, t = 6: 2 sqrt(log(1 + 6) + 2 log(1 / 0.05)) + sqrt(2) * 1.5 = 7.75598970
        (fl.LinGame(theta_norm=1.5), 7.755989703),
    ],
    ids=["lingape", "lingame, determinant", "lingame"],
)
def test_arms_of_unequal_length(strategy, radius):
    # Two pulls each: A = 4 + 8 + 2 + 2 = 16, and eta = 2^2 / mean(4, 1, 1) = 2 where S = 1.5.
    # theta_hat = (2 * 2 m) / 16, the difference of arms 0 and 1 has the width radius / 4 and that
    # of 0 and 2 three times as much: m = radius.
    for factor, winner in SIDES:
        run = strategy.start(problem_of(UNEQUAL))
        tell(run, (2, 2, 2), [factor * radius, 0.0, 0.0])
        assert run.verdict.winner == winner


def test_lazy_ts_with_arms_of_unequal_length():
    # A = 8 + 2 + 2 = 12, A / c = 3: beta = 1.1 * 4 (log(1 + 3 / 0.1) / 2 + log(1 / 0.05)) =
    # 20.73599385. theta_hat = 4 m / 12 > sqrt(2 beta / 12): m = 5.577095192.
    for factor, winner in SIDES:
        run = fl.LazyTS().start(problem_of(UNEQUAL))
        tell(run, (2, 2, 2), [factor * 5.577095192, 0.0, 0.0])
        assert run.verdict.winner == winner


def test_lazy_ts_waits_for_pulls_that_are_worth_one_of_the_longest_arm():
    # A >= c I: pulls of an arm half as long are worth a quarter. However clear it is, 3 do not do.
    arms = fl.Arms([[1.0], [0.5], [-0.5]])
    for pulls, winner in ((3, None), (4, 0)):
        run = fl.LazyTS().start(problem_of(arms))
        tell(run, (0, pulls, 0), [0.0, 1e6, 0.0])
        assert run.verdict.winner == winner


def test_forced_pulls_of_lazy_ts():
    # f(t) = lambda_min(sum over A_0) sqrt(t / r): the rarest of 3 arms has sqrt(27 / 3) = 3 pulls.
    for counts, forced in (((14, 11, 2), 1), ((13, 11, 3), 0)):
        run = fl.LazyTS().start(problem_of())
        tell(run, counts, [0.1, 0.0, 0.0])
        assert run.next().note["forced"] == forced


def test_forced_pulls_of_track_and_stop():
    # D-tracking, Sect. 3.1: the rarest arm, while it has fewer than sqrt(t) - K / 2 pulls. With 4
    # pulls of it: sqrt(30) - 1.5 = 3.977 and sqrt(31) - 1.5 = 4.068. Arm 2, far behind, has no
    # other reason to be pulled.
    for first, forced in ((13, False), (14, True)):
        run = fl.TrackAndStop().start(problem_of())
        tell(run, (first, 13, 4), [0.1, 0.0, FAR])
        assert bool(run.next().counts[2]) == forced


def test_best_proportions_of_two_arms_and_of_three():
    # Garivier and Kaufmann 2016, Thm. 5: 1/2 each for two arms. For three with equal gaps
    # x_a^2 + x_b^2 = 1, so x = 1 / sqrt(2), and w = 1 / (1 + sqrt(2)) = 0.41421356 for the best.
    run = fl.TrackAndStop().start(problem_of())
    tell(run, (5, 5, 5), [1.0, 0.0, 0.0])
    assert run.proportions == pytest.approx([0.41421356, 0.29289322, 0.29289322], abs=1e-8)


# ---- strategies for a budget ----------------------------------------------------------------


def stages(strategy: Any, arms: fl.Arms, budget: int) -> list[tuple[int, int]]:
    """Return pulls and survivors of each phase; arms with large numbers are worse."""
    run = strategy.start(problem_of(arms, budget=budget))
    means, found = -np.arange(float(len(arms))), []
    while not run.verdict.decided:
        batch = run.next()
        alive = batch.note.get("survivors", list(range(len(arms))))
        found.append((batch.size, len(alive)))
        tell(run, batch.counts, means, **batch.note)
    assert run.verdict.winner == 0
    return found


def test_phases_of_od_linbai():
    # Yang and Tan 2022, Alg. 1, r = K = 8: m = (100 - min(8, 36) - (4 + 2)) / 3 = 28.67, and the
    # phases have what rounding may cost on top: 28 + 8, 29 + 4, 29 + 2.
    assert stages(fl.ODLinBAI(), fl.Arms.unstructured(8), 100) == [(36, 8), (33, 4), (31, 2)]


def test_od_linbai_allows_for_no_more_than_a_design_has_arms():
    # r = 3, K = 10: m = (60 - min(10, 3 * 4 / 2) - 2) / 2 = 26, then 26 + 6 and 26 + 2.
    rest = np.random.default_rng(0).normal(size=(7, 3)) * 0.1
    arms = fl.Arms(np.vstack([np.eye(3), rest]))
    run = fl.ODLinBAI().start(problem_of(arms, budget=60))
    first = run.next()
    tell(run, first.counts, arms.means(np.array([1.0, 0.0, 0.0])), **first.note)
    assert (first.size, run.next().size, len(run.verdict.survivors)) == (32, 28, 2)


@pytest.mark.parametrize(
    ("eta", "K", "expected"),
    [
        # Azizi et al. 2022: ceil(log_2 8) = 3 stages of 100 / 3 pulls, 8, 4 and 2 arms
        (2, 8, [(33, 8), (33, 4), (34, 2)]),
        # ceil(10 / 3) = 4, ceil(4 / 3) = 2, ceil(2 / 3) = 1
        (3, 10, [(33, 10), (33, 4), (34, 2)]),
    ],
)
def test_stages_of_gse(eta, K, expected):
    assert stages(fl.GSE(eta=eta), fl.Arms.unstructured(K), 100) == expected


def test_g_budget_has_one_phase():
    assert stages(fl.GBudget(), fl.Arms.unstructured(8), 100) == [(100, 8)]


def test_phases_of_peace():
    # rho of m unstructured arms is 2 m, rho_2 = ||z - z'||^2 / max ||z||^2 = 2. All 8: rho = 16,
    # 1 + log2(16 / 2) = 4 phases, 100 // 4 pulls. Half of 16 is that of 4 arms: 1 + log2(8 / 2) = 3
    # phases, 75 // 3 pulls. Half of 8 is that of 2 arms, whose phase is the last.
    assert stages(fl.Peace(), fl.Arms.unstructured(8), 100) == [(25, 8), (25, 4), (50, 2)]
