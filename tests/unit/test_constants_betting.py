"""Constants of the gauntlet's bets, against numbers worked out by hand.

`betting` has the formulas: LR(z) = sum_i w_i exp(l_i z - l_i^2 / 2), capped where the wealth
reaches 1/delta. A bet with one drift, or with two, can be done on paper.
"""

import math

import numpy as np
import pytest

import finalist as fl
from finalist.problem.rules import rules_of
from finalist.strategies.gauntlet import cap_kernels
from finalist.strategies.gauntlet import kernels as betting_kernels
from finalist.strategies.gauntlet.bets import GRID, PRIOR, Bets
from finalist.strategies.gauntlet.stakes import EXPERT, expected_drifts
from tests.unit.boundaries import problem_of

ONE, NONE = np.ones(1), np.zeros(1)
TESTED = np.ones(1, dtype=bool)


def test_grid_and_prior():
    # 2.5 / 1.4^10 = 2.5 / 28.9254654976, and 8 sum_m 1/((m+8)(m+9)) = 8 (1/8 - 1/38) = 15/19.
    assert len(GRID) == len(PRIOR) == 30
    assert GRID[[0, 10]] == pytest.approx([2.5, 0.0864290326], rel=1e-8)
    expected = [(8 / 72) * (19 / 15), (8 / (18 * 19)) * (19 / 15), (8 / (37 * 38)) * (19 / 15)]
    assert np.exp(PRIOR[[0, 10, 29]]) == pytest.approx(expected, rel=1e-12)


def test_quantiles_of_the_expert():
    assert pytest.approx(np.arange(1, 19, 2) / 18.0, rel=1e-12) == EXPERT
    # Half a normal: Phi^-1((1 + q) / 2) = Phi^-1(0.75) for the middle one, 0.6744897502.
    found = expected_drifts(NONE, np.array([2.0]))[0]
    assert found[4] == pytest.approx(2.0 * 0.6744897502, rel=1e-9)
    # Far from 0 nothing is cut off: the middle one is the mean.
    assert expected_drifts(np.array([20.0]), ONE)[0, 4] == pytest.approx(20.0, rel=1e-12)


def test_ratio_of_mills():
    # sqrt(pi / 2) at 0; e^(1/2) sqrt(2 pi) Phi(-1) at 1, with Phi(-1) = 0.15865525393.
    assert cap_kernels.mills(0.0) == pytest.approx(math.sqrt(math.pi / 2), rel=1e-14)
    found = cap_kernels.mills(1.0)
    assert found == pytest.approx(math.sqrt(2 * math.pi * math.e) * 0.15865525393, rel=1e-9)
    # Far out 1/u - 1/u^3 + 3/u^5 - 15/u^7 + 105/u^9 - ...: the error is below the next term.
    for u, error in ((15.0, 1e-7), (40.0, 1e-11), (1e4, 1e-15)):
        series = 1 - 1 / u**2 + 3 / u**4 - 15 / u**6 + 105 / u**8
        assert cap_kernels.mills(u) == pytest.approx(series / u, rel=error)
    # The fraction begins where the other formula ends.
    near = [cap_kernels.mills(u) for u in (10.0 - 1e-9, 10.0)]
    assert near == pytest.approx([0.0990285965] * 2, rel=1e-8)
    assert near[0] == pytest.approx(near[1], rel=1e-9)


#: Two drifts, 1 and 2, with weights 3/4 and 1/4.
TWO = (np.array([1.0, 2.0]), np.log([0.75, 0.25]))


def ratio(z):
    """LR of the two drifts."""
    return 0.75 * math.exp(z - 0.5) + 0.25 * math.exp(2 * z - 2)


def test_price_of_a_cap():
    # 20 e^(-3/2) Phi(1) + 20 Phi(-2) for the drift 1 capped at 2: 3.754587759 + 0.455002639.
    found = cap_kernels.log_price(2.0, math.log(20.0), ONE, NONE)
    assert math.exp(found) == pytest.approx(4.209590398, rel=1e-8)
    # Two drifts: (20 / LR(2)) (0.75 Phi(1) + 0.25 Phi(0)) + 20 Phi(-2).
    expected = 20 / ratio(2.0) * (0.75 * 0.8413447461 + 0.25 * 0.5) + 20 * 0.0227501319
    found = cap_kernels.log_price(2.0, math.log(20.0), *TWO)
    assert math.exp(found) == pytest.approx(expected, rel=1e-8)


def test_growth_of_a_capped_factor():
    # LR(0) / LR(1) of the two drifts; then far from the cap, where only the smaller one is left.
    found = betting_kernels.log_growth(0.0, 1.0, *TWO)
    assert found == pytest.approx(math.log(ratio(0.0) / ratio(1.0)), rel=1e-12)
    found = betting_kernels.log_growth(-1000.0, 1.0, *TWO)
    assert found == pytest.approx(math.log(0.75) - 1000.5 - math.log(ratio(1.0)), rel=1e-12)


@pytest.mark.parametrize("room", [0.3, 3.0, 7.0])
@pytest.mark.parametrize("drift", [0.5, 3.0, 30.0, 1e5])
def test_a_cap_costs_a_hair_less_than_one(room, drift):
    drifts = np.array([drift, 2.0 * drift])
    cap = cap_kernels.find_cap(room, drifts, TWO[1])
    price = cap_kernels.log_price(cap, room, drifts, TWO[1])
    assert -1.01e-11 <= price <= 1e-15


def placed(z=1.0, *, untilted=0.0, capped=False, speed=1.0, past=(0.0, 0.0), expert=None):
    """Return bets against one arm after one batch; V1 is 1."""
    bets = Bets.against(1, 1e-6, capped, untilted)
    bets.scale[:] = 1.0
    drifts = None if expert is None else np.array([expert])
    past_ = (np.array([past[0]]), np.array([past[1]]))
    bets.place(np.array([z]), np.array([speed]), TESTED, past_, drifts)
    return bets


def mixed(log_weights, drifts, z):
    """Return sum_i w_i exp(l_i z - l_i^2 / 2) over the sum of weights, in logarithms."""
    top = np.logaddexp.reduce(log_weights + drifts * z - drifts**2 / 2)
    return top - np.logaddexp.reduce(log_weights)


def test_shares_at_the_start():
    assert np.exp(Bets.against(2, 0.05, True, 0.2).wealth) == pytest.approx(
        np.tile([0.4, 0.4, 0.2], (2, 1)), rel=1e-12
    )
    # Rules 2 and 3 leave a fifth untilted, rules 1 nothing, and by rules 3 there is no expert; new
    # arms get what old ones got.
    for number, shares in ((1, [0.5, 0.5, 0.0]), (2, [0.4, 0.4, 0.2]), (3, [0.8, 0.0, 0.2])):
        run = fl.Gauntlet().start(problem_of(rules=rules_of(number)))
        assert np.exp(run._claims.bets.wealth[0]) == pytest.approx(shares, rel=1e-12)
        new = run._claims.bets.carried(np.array([0, -1]), 0.01)
        assert np.exp(new.wealth) == pytest.approx(np.tile(shares, (2, 1)), rel=1e-12)
        assert new.limit == pytest.approx([math.log(20), math.log(100)], rel=1e-12)


def test_three_bettors_and_what_they_make():
    # The past says S = 3, V = 4: the weights of the grid are prior exp(l S - l^2 V / 2). The speed
    # is 2, so the drifts are 2 l; the expert bets on 0.5 and 1.5 alike. Shares 0.4, 0.4, 0.2.
    z, drifts, expert = 0.7, 2.0 * GRID, np.array([0.5, 1.5])
    tilted = PRIOR + 3.0 * GRID - 2.0 * GRID**2
    made = [
        mixed(tilted, drifts, z),
        math.log((math.exp(0.5 * z - 0.125) + math.exp(1.5 * z - 1.125)) / 2.0),
        mixed(PRIOR, drifts, z),
    ]
    assert len({round(value, 2) for value in made}) == 3
    bets = placed(z, untilted=0.2, speed=2.0, past=(3.0, 4.0), expert=expert)
    shares = np.log([0.4, 0.4, 0.2])
    assert bets.wealth[0] == pytest.approx(shares + made, rel=1e-9)
    assert bets.log_m[0] == pytest.approx(np.logaddexp.reduce(shares + made), rel=1e-9)
    # What they have made is their share of the next bet; the past says nothing then.
    before = bets.wealth[0].copy()
    bets.place(np.array([z]), ONE, TESTED, (NONE, NONE), np.array([expert]))
    now = [mixed(PRIOR, GRID, z), made[1], mixed(PRIOR, GRID, z)]
    expected = np.logaddexp.reduce(before + now)
    assert bets.log_m[0] == pytest.approx(expected, rel=1e-9)


def test_the_grid_is_in_units_of_the_first_batch():
    # V1 = 4 after a first speed of 2: drifts l 2 / sqrt(4) = l, then l 6 / sqrt(4) = 3 l.
    bets = Bets.against(1, 1e-6, False)
    bets.place(ONE, np.array([2.0]), TESTED, (NONE, NONE))
    first = mixed(PRIOR, GRID, 1.0)
    assert (bets.scale[0], bets.log_m[0]) == (4.0, pytest.approx(first, rel=1e-12))
    bets.place(ONE, np.array([6.0]), TESTED, (NONE, NONE))
    assert bets.log_m[0] == pytest.approx(first + mixed(PRIOR, 3.0 * GRID, 1.0), rel=1e-12)


def test_the_wealth_below_a_cap():
    # b LR(z) with b = (1/delta) / LR(cap): below the cap the factor is more than LR.
    bets = placed(1.0, capped=True)
    cap = cap_kernels.find_cap(math.log(1e6), GRID, PRIOR)
    assert 1.0 < cap < 9.0
    expected = math.log(1e6) + mixed(PRIOR, GRID, 1.0) - mixed(PRIOR, GRID, cap)
    assert bets.log_m[0] == pytest.approx(expected, rel=1e-9)
    assert placed(cap + 1e-9, capped=True).rejected[0]
    assert not placed(cap - 1e-6, capped=True).rejected[0]


def test_wealth_ends_at_the_limit():
    bets = placed(50.0)
    assert bets.log_m[0] == math.log(1e6)
    bets.place(-50.0 * ONE, ONE, TESTED, (NONE, NONE))
    assert bets.log_m[0] == math.log(1e6)  # what is rejected stays so


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_price_that_is_no_number_buys_no_cap(bad):
    assert cap_kernels.find_cap(3.0, np.array([bad]), NONE) == math.inf
    assert cap_kernels.find_cap(bad, ONE, NONE) == math.inf


def test_scores_and_drifts_are_cut():
    # A score counts as -10^4 at least, and one that is no number counts as that.
    lowest = mixed(PRIOR, GRID, -1e4)
    for z in (-1e4, -1e9, -math.inf, math.nan):
        assert placed(z).log_m[0] == pytest.approx(lowest, rel=1e-12)
    assert placed(-0.99e4).log_m[0] > lowest + 1e-3
    # All drifts are 10^8 at most: 10^8 z - 10^16 / 2. The least drift is 1.4e-4 times the speed.
    assert placed(1.0, speed=1e30).log_m[0] == pytest.approx(1e8 - 5e15, rel=1e-12)
    bets = placed(1.0, speed=1e30, expert=[1e200, 1e300])
    assert bets.log_m[0] == pytest.approx(1e8 - 5e15, rel=1e-12)
    assert bets.wealth[0, :2] == pytest.approx([1e8 - 5e15] * 2, rel=1e-12)


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan])
def test_without_a_speed_nothing_is_bet(speed):
    bets = placed(5.0, speed=speed, expert=[0.5, 1.5])
    assert bets.log_m[0] == 0.0
    assert np.exp(bets.wealth[0]) == pytest.approx([0.5, 0.5, 0.0])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_without_a_past_that_is_a_number_nothing_is_bet(bad):
    bets = placed(5.0, untilted=0.2, past=(bad, 1.0))
    assert bets.log_m[0] == 0.0
    assert np.exp(bets.wealth[0]) == pytest.approx([0.4, 0.4, 0.2])
