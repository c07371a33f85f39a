"""Levels and radii of the paper's strategies and of RAGE, against numbers worked out by hand.

Simulations do not see a wrong constant: there is slack in every proof. Here sigma = 2 and
delta = 0.05 for three arms, so that no two factors are the same. `tests.mutants` breaks the
constants one by one and says which of these tests goes red.
"""

import math
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.inference.bounds import Bound
from tests.unit.boundaries import (
    FAR,
    NEAR,
    PULLS,
    THREE,
    WIDTHS,
    after_looks,
    after_phases,
    problem_of,
    tell,
)

# Soare 2014, Prop. 1 (eq:err.bound), K = 3, after n = 48, 192 and 768 pulls.
# As the proof has it, levels 6 delta / (pi n)^2 for 3 * 2 ordered pairs (docs/paper.md):
#   2 sqrt(2 log(pi^2 * 48^2 * 6 / (6 * 0.05)))  = 10.20885657
#   2 sqrt(2 log(pi^2 * 192^2 * 6 / (6 * 0.05))) = 11.24284049
#   2 sqrt(2 log(pi^2 * 768^2 * 6 / (6 * 0.05))) = 12.18942870
SHARP = (10.20885657, 11.24284049, 12.18942870)
# As printed, c = 2 sqrt(2) sigma and c' = 6 / pi^2:
#   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 48^2 * 3^2 / 0.05))  = 19.95006452
#   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 192^2 * 3^2 / 0.05)) = 22.06191092
#   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 768^2 * 3^2 / 0.05)) = 23.98855461
PRINTED = (19.95006452, 22.06191092, 23.98855461)

# Soare 2014, Prop. 2 (eq:err.adaptive.bound), d = 3, eta = L^2 (the ridge counts as one pull of
# each arm), ||theta|| = 1.5 in coordinates where eta = 3, after n = 45, 189 and 765 pulls:
#   2 sqrt(3 log((1 + 45) / 0.05))  + sqrt(3) * 1.5 = 11.64752283
#   2 sqrt(3 log((1 + 189) / 0.05)) + sqrt(3) * 1.5 = 12.54358154
#   2 sqrt(3 log((1 + 765) / 0.05)) + sqrt(3) * 1.5 = 13.35181851
ADAPTIVE = (11.64752283, 12.54358154, 13.35181851)
# Abbasi-Yadkori et al. 2011, Thm. 2: det(A + eta I) / det(eta I) = 8 * 8 * 32 = 2^11 after
# (7, 7, 31) pulls, then 32 * 32 * 128 = 2^17 and 128 * 128 * 512 = 2^23:
#   2 sqrt(11 log 2 + 2 log(1 / 0.05)) + sqrt(3) * 1.5 = 9.97807175
#   2 sqrt(17 log 2 + 2 log(1 / 0.05)) + sqrt(3) * 1.5 = 11.03014989
#   2 sqrt(23 log 2 + 2 log(1 / 0.05)) + sqrt(3) * 1.5 = 11.96479382
DETERMINANT = (9.97807175, 11.03014989, 11.96479382)

# Soare 2014, Sect. 5, read as docs/paper.md says: phase j has the level 6 delta / (pi j)^2, here
# 0.030396, 0.0075991 and 0.0033774, and one look at m (m - 1) = 6 ordered pairs of 3 survivors:
#   2 sqrt(2 log(6 * pi^2 * 1^2 / (6 * 0.05))) = 6.50242542
#   2 sqrt(2 log(6 * pi^2 * 2^2 / (6 * 0.05))) = 7.30560684
#   2 sqrt(2 log(6 * pi^2 * 3^2 / (6 * 0.05))) = 7.73688135
PHASES = (6.50242542, 7.30560684, 7.73688135)
# Prop. 1 as printed at these levels, after the 48 pulls of the phase:
#   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 48^2 * 3^2 * pi^2 * 1^2 / (6 * 0.05))) = 20.34530619
#   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 48^2 * 3^2 * pi^2 * 2^2 / (6 * 0.05))) = 21.40777671
#   2 sqrt(2) * 2 sqrt(log(6 / pi^2 * 48^2 * 3^2 * pi^2 * 3^2 / (6 * 0.05))) = 22.00551455
PHASES_PRINTED = (20.34530619, 21.40777671, 22.00551455)

# Fiez et al. 2019, Alg. 1: delta_t = delta / t^2, sqrt(2 log(K^2 / delta_t)) with K = 3:
#   2 sqrt(2 log(9 * 1^2 / 0.05)) = 6.44543674
#   2 sqrt(2 log(9 * 2^2 / 0.05)) = 7.25493003
#   2 sqrt(2 log(9 * 3^2 / 0.05)) = 7.68904750
RAGE = (6.44543674, 7.25493003, 7.68904750)

LOOKS: dict[str, tuple[Any, tuple[float, ...]]] = {
    "g": (fl.GAllocation(), SHARP),
    "xy": (fl.XYAllocation(), SHARP),
    "v": (fl.VAllocation(), SHARP),
    "uniform": (fl.Uniform(), SHARP),
    "oracle": (fl.XYOracle((1.0, 0.0, 0.0), stopping="empirical"), SHARP),
    "g, printed": (fl.GAllocation(bound="soare"), PRINTED),
    "xy, printed": (fl.XYAllocation(bound="soare"), PRINTED),
    "v, printed": (fl.VAllocation(bound="soare"), PRINTED),
    "uniform, printed": (fl.Uniform(bound="soare"), PRINTED),
    "oracle, printed": (
        fl.XYOracle((1.0, 0.0, 0.0), stopping="empirical", bound="soare"),
        PRINTED,
    ),
    "fully-adaptive": (fl.FullyAdaptive(theta_norm=1.5), DETERMINANT),
    "fully-adaptive, printed": (fl.FullyAdaptive(theta_norm=1.5, bound="soare"), ADAPTIVE),
}
TESTED_ONCE: dict[str, tuple[Any, tuple[float, ...]]] = {
    "xy-adaptive": (fl.XYAdaptive(), PHASES),
    "xy-adaptive, printed": (fl.XYAdaptive(bound="soare"), PHASES_PRINTED),
    "rage": (fl.RAGE(), RAGE),
}
#: Below and above the boundary.
SIDES = ((1.0 - NEAR, None), (1.0 + NEAR, 0))


@pytest.mark.parametrize("look", [1, 2, 3])
@pytest.mark.parametrize("name", LOOKS)
def test_a_look_decides_at_the_radius(name, look):
    strategy, radii = LOOKS[name]
    ridge = name.startswith("fully")
    boundary = radii[look - 1] * WIDTHS[look - 1]
    for factor, winner in SIDES:
        run = after_looks(strategy.start(problem_of()), look, factor * boundary, ridge)
        assert run.verdict.winner == winner


@pytest.mark.parametrize("phase", [1, 2, 3])
@pytest.mark.parametrize("name", TESTED_ONCE)
def test_a_phase_decides_at_the_radius_of_its_level(name, phase):
    strategy, radii = TESTED_ONCE[name]
    for factor, winner in SIDES:
        run = after_phases(strategy.start(problem_of()), phase, factor * radii[phase - 1] * 0.5)
        assert run.verdict.winner == winner
        assert run.verdict.survivors == ((0, 1) if winner is None else (0,))


@pytest.mark.parametrize("name", [*LOOKS, *TESTED_ONCE])
@pytest.mark.parametrize(
    ("settings", "sign", "allowed"),
    [({"objective": "min"}, -1, 0.0), ({"goal": fl.EpsilonBest(0.25)}, 1, 0.25)],
    ids=["min", "epsilon"],
)
def test_small_rewards_and_good_enough_arms_have_the_same_radius(name, settings, sign, allowed):
    strategy, radii = {**LOOKS, **TESTED_ONCE}[name]
    for factor, winner in SIDES:
        run, gap = strategy.start(problem_of(**settings)), factor * (radii[0] * 0.5 - allowed)
        if name in TESTED_ONCE:
            after_phases(run, 1, gap, sign)
        else:
            after_looks(run, 1, gap, name.startswith("fully"), sign)
        assert run.verdict.winner == winner


@pytest.mark.parametrize(
    ("strategy", "radius"),
    [
        # two survivors, m (m - 1) = 2: 2 sqrt(2 log(2 * pi^2 * 2^2 / (6 * 0.05))) = 6.67704972
        (fl.XYAdaptive(), 6.67704972),
        # Prop. 1 as printed, and RAGE, are for all three arms to the end
        (fl.XYAdaptive(bound="soare"), PHASES_PRINTED[1]),
        (fl.RAGE(), RAGE[1]),
    ],
    ids=["xy-adaptive", "xy-adaptive, printed", "rage"],
)
def test_what_an_arm_that_is_out_changes_in_the_second_phase(strategy, radius):
    for factor, winner in SIDES:
        run = strategy.start(problem_of())
        tell(run, PULLS[0], [0.0, 0.0, FAR], phase=1, ends=True)
        assert run.verdict.survivors == (0, 1)
        tell(run, PULLS[0], [factor * radius * 0.5, 0.0, 0.0], phase=2, ends=True)
        assert run.verdict.winner == winner


@pytest.mark.parametrize("strategy", [fl.XYAdaptive(), fl.RAGE()], ids=lambda s: s.name)
def test_the_worse_of_two_arms_is_out_and_not_a_third(strategy):
    radius = {"xy-adaptive": PHASES, "rage": RAGE}[strategy.name][0]
    run = strategy.start(problem_of())
    # Arms 0 and 1 are 0.99 of a width apart; arm 2, of which sqrt(1/8 + 1/32) = 0.395 is the
    # width, is less than that behind arm 1 and more than that behind arm 0.
    gap = 0.99 * radius * 0.5
    tell(run, PULLS[0], [gap, 0.0, -0.01 * radius], phase=1, ends=True)
    assert run.verdict.survivors == (0, 1)


def test_an_arm_that_is_behind_by_exactly_the_width_stays(monkeypatch):
    # Lemma 4 is strict. Without noise a width is 0, exactly, and so is the gap of equal arms.
    from finalist.strategies.phased import rage, xy_adaptive

    monkeypatch.setattr(xy_adaptive.XYAdaptiveRun, "_radius", lambda *_: 0.0)
    monkeypatch.setattr(rage.RAGERun, "_log", lambda *_: 0.0)
    for strategy in (fl.XYAdaptive(), fl.RAGE()):
        for gap, survivors in ((0.0, (0, 1)), (1e-12, (0,))):
            run = strategy.start(problem_of(fl.Arms([[1.0], [-1.0]])))
            tell(run, (2, 2), [gap / 2, -gap / 2], phase=1, ends=True)
            assert run.verdict.survivors == survivors


def test_static_rule_holds_where_gap_and_width_are_equal():
    # eq:emp.stop.condition.2 is not strict: an equal gap is enough.
    from finalist.strategies.static.kernels import evaluate
    from finalist.strategies.static.static import StaticState

    Z, counts = np.array([[1.0], [-1.0]]), np.array([2, 2])
    for gap, winner in ((4.0, 0), (np.nextafter(4.0, 0.0), -1)):
        first, room = np.array([gap / 2, -gap / 2]), np.zeros((4, 2))
        state = StaticState(Z, Z, counts, first, *room, most=np.zeros(2, dtype=np.int64))
        assert evaluate(state, 4.0, 0.0) == winner


def test_only_candidates_are_counted():
    # Four arms, three candidates: K (K - 1) = 6 and K^2 = 9 as above; the radius is that of 50
    # pulls, 2 sqrt(2 log(pi^2 * 50^2 * 6 / (6 * 0.05))) = 10.24079608.
    four, three = fl.Arms(np.eye(4)), fl.Arms(np.eye(4)[:3])
    means = [0.0, 0.0, FAR, 0.0]
    for strategy, radius in (
        (fl.GAllocation(), 10.24079608),
        (fl.XYAdaptive(), PHASES[0]),
        (fl.RAGE(), RAGE[0]),
    ):
        for factor, winner in SIDES:
            run = strategy.start(problem_of(four, candidates=three))
            means[0] = factor * radius * 0.5
            tell(run, (*PULLS[0], 2), means, phase=1, ends=True)
            assert run.verdict.winner == winner


@pytest.mark.parametrize(
    ("strategy", "radius", "pulls"),
    [
        # sigma = 1 for arm 0 and 2 for the others: with (2, 8, 32) pulls the difference of arms 0
        # and 1 has the standard error sqrt(1/2 + 4/8) = 1, as 2 * 1/2 above. n = 42:
        #   2 sqrt(2 log(pi^2 * 42^2 * 6 / (6 * 0.05))) = 10.10367509
        (fl.GAllocation(), 10.10367509, (2, 8, 32)),
        (fl.XYAdaptive(), PHASES[0], (2, 8, 32)),
        (fl.RAGE(), RAGE[0], (2, 8, 32)),
        # sigma = 2 / sqrt(7): one pull of arm 0 counts as 7, so that det = 8 * 8 * 32 as above.
        (fl.FullyAdaptive(theta_norm=1.5), DETERMINANT[0], (1, 7, 31)),
        # L^2 / eta = 7: 2 sqrt(3 log((1 + 39 * 7) / 0.05)) + sqrt(3) * 1.5 = 12.76204810
        (fl.FullyAdaptive(theta_norm=1.5, bound="soare"), 12.76204810, (1, 7, 31)),
    ],
    ids=["g", "xy-adaptive", "rage", "fully-adaptive", "fully-adaptive, printed"],
)
def test_unequal_noise(strategy, radius, pulls):
    ridge = pulls[0] == 1
    sigmas = (2.0 / math.sqrt(7.0) if ridge else 1.0, 2.0, 2.0)
    far = FAR * 32 / 31 if ridge else FAR
    for factor, winner in SIDES:
        run = strategy.start(fl.Problem(THREE, noise=fl.Gaussian(sigmas), delta=0.05))
        gap = factor * radius * 0.5 * (8 / 7 if ridge else 1)
        tell(run, pulls, [gap, 0.0, far], phase=1, ends=True)
        assert run.verdict.winner == winner


# ---- how long phases are -------------------------------------------------------------------


def test_phases_of_xy_adaptive():
    # eq:phase.length, max y'A^-1 y <= alpha times the last: 2/5 <= 0.4 * 1; then (13, 13, 13) with
    # 2/13 <= 0.4 * 0.4 < 1/12 + 1/13; then (33, 33, 33) with 2/33 <= 0.4 * 2/13 < 1/32 + 1/33.
    run = fl.XYAdaptive().start(problem_of())
    for phase, each in enumerate((5, 13, 33), start=1):
        assert run.next().counts.tolist() == [each] * 3
        tell(run, [each] * 3, [0.0] * 3, phase=phase, ends=True)


def test_phases_of_rage():
    # N_t = ceil(8 (2^(t+1))^2 rho (1 + e) log(K^2 t^2 / delta)), rho = 3 + 3 and e = 1/10:
    #   8 * 4^2 * 6 * 1.1 log(9 * 1 / 0.05)  = 4387.0099
    #   8 * 8^2 * 6 * 1.1 log(9 * 4 / 0.05)  = 22232.6057
    #   8 * 16^2 * 6 * 1.1 log(9 * 9 / 0.05) = 99891.6043
    # in units of sigma, whatever that is.
    run = fl.RAGE().start(problem_of())
    for phase, pulls in enumerate((4388, 22233, 99892), start=1):
        batch = run.next()
        assert batch.size == pulls
        tell(run, batch.counts, [0.0] * 3, phase=phase, ends=True)


def test_rage_rounds_with_enough_pulls():
    # r(e) = p (1 + e) / e = 3 * 1.1 / 0.1 = 33, where the gap to resolve asks for less.
    assert fl.RAGE(first_gap=1e6).start(problem_of()).next().size == 33
    # 3 * 1.25 / 0.25 = 15
    assert fl.RAGE(first_gap=1e6, rounding=0.25).start(problem_of()).next().size == 15


@pytest.mark.parametrize(
    ("bound", "pulls"),
    [
        # One look, two arms that would be wrong: sigma^2 2 log(2 / 0.05) = 73777.589
        ("sharp", 73778),
        # n = sigma^2 8 log(6 / pi^2 * n^2 * 3^2 / 0.05), solved by iteration: 2747832.182
        ("soare", 2747833),
    ],
)
def test_pulls_of_the_oracle(bound, pulls):
    # eq:oracle.stop.condition.2 with sigma = 100. Arms 2, 1 and -2, theta = 1/2: the gaps are 1/2
    # and 2, y / gap = 2 for both, and A = 4 n. So radius * 2 / sqrt(4 n) <= 1: n >= radius^2.
    problem = fl.Problem(fl.Arms([[2.0], [1.0], [-2.0]]), noise=fl.Gaussian(100.0), delta=0.05)
    assert fl.XYOracle((0.5,), bound=bound).start(problem).next().size == pulls


def test_the_ridge_of_the_fully_adaptive_strategy():
    # Ridge 4, as 4 pulls of each arm: eta = 4 * 3, means sum / (4 + n), ||e_0 - e_1|| = 1/2 after
    # (4, 4, 12) pulls, det = (8/4) (8/4) (16/4) = 16, 1 + n L^2 / eta = 1 + 20 / 4 = 6:
    #   2 sqrt(log(16) + 2 log(1 / 0.05)) + sqrt(12) * 1.5 = 11.11698117
    #   2 sqrt(3 log(6 / 0.05)) + sqrt(12) * 1.5           = 12.77572371
    radii: dict[Bound, float] = {"sharp": 11.11698117, "soare": 12.77572371}
    for bound, radius in radii.items():
        for factor, winner in SIDES:
            strategy = fl.FullyAdaptive(theta_norm=1.5, ridge=4.0, bound=bound)
            run, gap = strategy.start(problem_of()), factor * radius * 0.5
            tell(run, (4, 4, 12), [gap * 8 / 4, 0.0, FAR * 16 / 12])
            assert run.verdict.winner == winner


def test_the_oracle_makes_up_for_rounding():
    # Two arms, one rival: 2 log(1 / 0.05) = 5.99146455, gap^2 = 4 * 5.99146455 / 94.995 =
    # 0.25228547. 95 pulls would do if they were divisible: 48 and 47 leave 0.25230015, which is too
    # much, 48 and 48 leave 5.99146455 / 24 = 0.24964436.
    problem = fl.Problem(fl.Arms.unstructured(2), noise=fl.Gaussian(1.0), delta=0.05)
    run = fl.XYOracle((math.sqrt(0.25228547), 0.0)).start(problem)
    assert run.next().counts.tolist() == [48, 48]


@pytest.mark.parametrize(
    ("bound", "radius"),
    [
        # 2 sqrt(log(16 / 4) + 2 log(1 / 0.05)) + sqrt(2) * 1.5 = 7.55372641
        ("sharp", 7.553726407),
        # d = 1 needs the 2 of the proof: 2 sqrt(2 log((1 + 6) / 0.05)) + sqrt(2) * 1.5 = 8.40885876
        ("soare", 8.408858763),
    ],
)
def test_arms_of_unequal_length(bound, radius):
    # Arms 2, 1 and -1, two pulls each: the ridge is one pull of the longest, A = 4 + 8 + 2 + 2,
    # and eta = 2^2 / mean(4, 1, 1) = 2 where S = 1.5. theta_hat = (2 * 2 m) / 16, the difference of
    # arms 0 and 1 has the width radius / 4 and that of 0 and 2 three times as much: m = radius.
    for factor, winner in SIDES:
        strategy = fl.FullyAdaptive(theta_norm=1.5, bound=bound)
        run = strategy.start(problem_of(fl.Arms([[2.0], [1.0], [-1.0]])))
        tell(run, (2, 2, 2), [factor * radius, 0.0, 0.0])
        assert run.verdict.winner == winner


def test_noise_of_coins():
    # Hoeffding's lemma: sigma = 1/2, a quarter of the 2 above.
    problem = fl.Problem(THREE, noise=fl.Bernoulli(), delta=0.05)
    for factor, winner in SIDES:
        run = after_looks(fl.Uniform().start(problem), 3, factor * SHARP[2] * WIDTHS[2] / 4)
        assert run.verdict.winner == winner
        run = after_phases(fl.XYAdaptive().start(problem), 1, factor * PHASES[0] * 0.5 / 4)
        assert run.verdict.winner == winner
