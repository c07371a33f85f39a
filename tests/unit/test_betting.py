"""The bets: check values, a plain twin, and what a factor must be to keep the promise.

Check values and the twin are of bets without an untilted share, unless they say so.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm, truncnorm

from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies.gauntlet import cap_kernels
from finalist.strategies.gauntlet import kernels as betting_kernels
from finalist.strategies.gauntlet.bets import GRID, PRIOR, Bets
from finalist.strategies.gauntlet.stakes import EXPERT, expected_drifts

ONE = np.ones(1)
TESTED = np.ones(1, dtype=bool)


class Followed:
    """Bets whose past is what was bet on before, as the check values have it."""

    def __init__(self, arms, delta, capped):
        self.bets = Bets.against(arms, delta, capped)
        self.drift, self.time = np.zeros(arms), np.zeros(arms)

    def place(self, z, speed, tested, expert=None):
        open_ones = tested & ~self.bets.rejected
        caps = self.bets.place(z, speed, tested, (self.drift, self.time), expert)
        self.drift += np.where(open_ones, np.clip(z, -1e4, 1e4) * speed, 0.0)
        self.time += np.where(open_ones, speed**2, 0.0)
        return caps


def grid_only(delta, batches, capped=True):
    """V1 = 1, then speeds sqrt(V / 10), every score 1: caps and evidence after each batch."""
    followed, rows = Followed(1, delta, capped), []
    for k in range(batches):
        speed = ONE if k == 0 else np.sqrt(0.1 * followed.time)
        cap = followed.place(ONE, speed, TESTED)
        rows.append((cap[0], followed.bets.log_m[0]))
    return followed.bets, rows


def test_check_values_at_five_percent():
    expected = [
        (2.9839, 0.18991),
        (6.6234, 0.38719),
        (5.7257, 0.61748),
        (4.8840, 0.88251),
        (4.0956, 1.18247),
        (3.3570, 1.51636),
        (2.6601, 1.88520),
        (1.9773, 2.30377),
        (1.2169, 2.83511),
    ]
    bets, rows = grid_only(0.05, 10)
    np.testing.assert_allclose(rows[:9], expected, atol=6e-5)
    assert rows[9][0] == pytest.approx(-0.1536, abs=6e-5)
    assert bets.rejected[0]
    assert bets.log_m[0] == bets.limit


def test_check_values_at_a_thousandth():
    _, rows = grid_only(0.001, 8)
    assert rows[0] == pytest.approx((4.7404, 0.15288), abs=6e-5)
    assert all(math.isinf(cap) for cap, _ in rows[1:5])
    expected = [(8.1437, 1.47874), (7.2905, 1.84247), (6.4979, 2.23256)]
    np.testing.assert_allclose(rows[5:], expected, atol=6e-5)


def twin(scores, speeds, experts, delta, capped):
    """The bet against one arm as it is told: plain Python and a bisection."""
    limit, log_m, S, V, E, V1 = -math.log(delta), 0.0, 0.0, 0.0, 0.0, 0.0
    for z, d, expert in zip(scores, speeds, experts, strict=True):
        V1 = d * d if V == 0 else V1
        drifts = [g / math.sqrt(V1) for g in GRID]
        prior = [8 / ((m + 8) * (m + 9)) for m in range(30)]
        weights = [
            0.5 * p / sum(prior) * math.exp(g * S - g * g * V / 2)
            for p, g in zip(prior, drifts, strict=True)
        ]
        weights += [0.5 * math.exp(E) / 9] * 9
        lines = [g * d for g in drifts] + list(expert)
        weights = [w / sum(weights) for w in weights]

        def ratio(x, weights=weights, lines=lines):
            return sum(w * math.exp(v * x - v * v / 2) for w, v in zip(weights, lines, strict=True))

        C = math.exp(limit - log_m)

        def price(x, weights=weights, lines=lines, ratio=ratio, C=C):
            below = sum(w * ndtr(x - v) for w, v in zip(weights, lines, strict=True))
            return C / ratio(x) * below + C * ndtr(-x)

        if capped and price(9.0) <= 1:
            low, high = -9.0, 9.0
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if price(middle) > 1 else (low, middle)
            if z >= low:
                return limit
            log_m += math.log(C / ratio(low) * ratio(z))
        else:
            log_m += math.log(ratio(z))
            if log_m >= limit:
                return limit
        S, V = S + z * d, V + d * d
        E += math.log(sum(math.exp(v * z - v * v / 2) for v in expert) / 9)
    return log_m


@pytest.mark.parametrize("capped", [True, False])
@pytest.mark.parametrize("delta", [0.2, 0.05, 1e-3])
def test_it_equals_the_twin(delta, capped):
    rng = np.random.default_rng(3)
    for _ in range(5):
        n = 6
        scores, speeds = rng.normal(0.7, 1.0, n), rng.uniform(0.5, 3.0, n)
        experts = expected_drifts(rng.normal(0.5, 1.0, n), rng.uniform(0.2, 1.0, n))
        followed = Followed(1, delta, capped)
        for z, d, expert in zip(scores, speeds, experts, strict=True):
            followed.place(np.array([z]), np.array([d]), TESTED, expert[None])
        expected = twin(scores, speeds, experts, delta, capped)
        assert followed.bets.log_m[0] == pytest.approx(expected, abs=1e-7)


def mixture(seed):
    """Some drifts and weights such as a bet has."""
    rng = np.random.default_rng(seed)
    drifts = np.abs(rng.normal(0.0, 2.0, 39)) * 10.0 ** rng.uniform(-2, 0.5)
    return drifts, np.log(rng.dirichlet(np.ones(39)))


@pytest.mark.parametrize("seed", range(12))
def test_a_capped_factor_has_mean_one_and_never_falls(seed):
    drifts, log_weights = mixture(seed)
    room = float(np.random.default_rng(seed).uniform(0.01, 7.0))
    cap = cap_kernels.find_cap(room, drifts, log_weights)
    if math.isinf(cap):
        assert cap_kernels.log_price(9.0, room, drifts, log_weights) > 0
        return

    def log_ratio(z):
        return np.logaddexp.reduce(log_weights + drifts * z - drifts**2 / 2)

    def factor(z):
        return math.exp(room) if z >= cap else math.exp(room + log_ratio(z) - log_ratio(cap))

    below, _ = quad(lambda z: factor(z) * norm.pdf(z), -12, cap, epsabs=1e-12, limit=400)
    above = math.exp(room) * norm.sf(cap)
    assert below + above == pytest.approx(1.0, abs=1e-6)
    values = [factor(z) for z in np.linspace(-9, 9, 400)]
    assert np.all(np.diff(values) >= -1e-12)
    assert values[-1] == pytest.approx(math.exp(room))


# ---- drifts of any size ------------------------------------------------------------------

NODES, HEIGHTS = np.polynomial.legendre.leggauss(12)


def pieces(end):
    """Return nodes and weights of a quadrature up to an end, finer and finer towards it."""
    edges = end - np.append(np.geomspace(60.0, 1e-12, 120), 0.0)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    return (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * HEIGHTS).ravel()


def mean_of(log_factor, cap, room):
    """Return the mean under N(0, 1) of a factor given by its logarithm, `room` above the cap."""
    z, weight = pieces(cap)
    below = float(np.sum(weight * np.exp(log_factor(z) + norm.logpdf(z))))
    return below + math.exp(room + log_ndtr(-cap))


def settled(room, drifts, log_weights):
    """Return the cap of a bet, and the logarithm of its factor as a function of scores."""
    cap = cap_kernels.find_cap(room, drifts, log_weights)

    def log_factor(z):
        return room + np.array(
            [betting_kernels.log_growth(one, cap, drifts, log_weights) for one in z]
        )

    return cap, log_factor


def test_large_drifts_do_not_reject():
    # Phi(z - 45) is nothing in floating point, and exp(45^2 / 2) is infinite: their product is not.
    assert cap_kernels.find_cap(3.0, np.array([30.0]), np.zeros(1)) == pytest.approx(1.68, abs=0.01)
    for drift in (38.0, 45.0, 1e3, 1e6):
        cap = cap_kernels.find_cap(3.0, np.array([drift]), np.zeros(1))
        # It costs e^3 (phi(z) R(l - z) + Phi(-z)), with the ratio of Mills R(u) = 1/u - 1/u^3 + ...
        u = drift - cap
        price = math.exp(3.0) * (norm.pdf(cap) * (1 / u - 1 / u**3 + 3 / u**5) + norm.sf(cap))
        assert price == pytest.approx(1.0, abs=1e-6)
        assert cap > 1.6


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-3.0, 6.0), st.floats(-80.0, 0.0)), min_size=1, max_size=6),
    st.floats(-6.0, 2.8),
)
def test_a_factor_of_any_drifts_never_falls_and_costs_at_most_one(lines, log_room):
    drifts = 10.0 ** np.array([drift for drift, _ in lines])
    log_weights = np.array([weight for _, weight in lines])
    log_weights -= np.logaddexp.reduce(log_weights)
    room = 10.0**log_room
    cap, log_factor = settled(room, drifts, log_weights)
    if math.isinf(cap):
        assert cap_kernels.log_price(9.0, room, drifts, log_weights) > -1e-10
        return
    assert -9.0 <= cap <= 9.0
    assert mean_of(log_factor, cap, room) <= 1.0 + 1e-9
    values = log_factor(pieces(cap)[0])
    assert np.all(np.diff(values) >= -1e-9)
    assert values[-1] <= room


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-3.0, 3.0),
    st.floats(-3.0, 6.0),
    st.floats(-300.0, 300.0),
    st.floats(-4.0, 4.0),
    st.booleans(),
    st.sampled_from([0.0, 0.2]),
)
def test_a_placed_bet_never_falls_and_costs_at_most_one(
    log_first, log_speed, gap, log_time, capped, untilted
):
    """Each arm has another score, all else is the same: the wealth is the factor itself."""

    def place(z):
        bets = Bets.against(len(z), 0.01, capped, untilted)
        bets.scale[:] = 10.0**log_first
        time, one = np.full(len(z), 10.0**log_time), np.ones(len(z))
        past = (gap * time, time)
        speed = 10.0**log_speed * one
        expert = expected_drifts(gap * speed, speed / np.sqrt(time))
        return bets.log_m, bets.place(z, speed, one > 0, past, expert)

    cap = float(place(np.zeros(1))[1][0])
    if not math.isfinite(cap):
        log_m, _ = place(np.linspace(-40.0, 40.0, 401))
        assert np.all(np.diff(log_m) >= -1e-9)
        assert np.all(np.isfinite(log_m))
        return
    assert capped
    log_m, _ = place(np.append(pieces(cap)[0], [cap, cap + 1.0]))
    assert np.all(np.diff(log_m) >= -1e-9)
    assert log_m[-1] == log_m[-2] == -math.log(0.01)

    def log_factor(z):
        return place(z)[0]

    assert mean_of(log_factor, cap, -math.log(0.01)) <= 1.0 + 1e-9


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["z", "speed", "drift", "time", "expert"])
def test_what_is_not_finite_speaks_against_no_arm(where, bad):
    given = {name: np.ones(1) for name in ("z", "speed", "drift", "time")}
    given["expert"] = np.ones((1, 9))
    given["z"][0] = -0.5
    given[where].flat[0] = bad
    for capped in (True, False):
        bets = Bets.against(1, 0.05, capped, 0.2)
        past = given["drift"], given["time"]
        bets.place(given["z"], given["speed"], TESTED, past, given["expert"])
        rejects = where == "z" and bad == math.inf  # a score that is past all bounds
        assert bets.rejected[0] == rejects
        assert rejects or bets.log_m[0] <= 0.0
        assert not np.isnan(bets.log_m[0])


@pytest.mark.parametrize("drift", [math.nan, math.inf])
def test_a_price_that_is_no_number_cannot_be_paid(drift):
    assert cap_kernels.find_cap(3.0, np.array([drift]), np.zeros(1)) == math.inf
    assert cap_kernels.find_cap(3.0, np.ones(1), np.array([drift])) == math.inf
    assert cap_kernels.find_cap(math.nan, np.ones(1), np.zeros(1)) == math.inf


# ---- the share that no data tilt ---------------------------------------------------------


@pytest.mark.parametrize("capped", [True, False])
def test_the_wealth_is_at_least_the_untilted_share_of_what_the_prior_makes(capped):
    rng = np.random.default_rng(4)
    for lie in (-1e4, 1e4):  # what the past says of the gap, in standard errors
        bets, old, alone = Bets.against(1, 1e-12, capped, 0.2), Bets.against(1, 1e-12, capped), 0.0
        for _ in range(8):
            z, speed = rng.normal(2.0, 1.0, 1), rng.uniform(1.0, 3.0, 1)
            rest = (TESTED, (np.array([lie]), ONE), expected_drifts(lie * speed, speed))
            bets.place(z, speed, *rest)
            old.place(z, speed, *rest)
            drifts = GRID / math.sqrt(bets.scale[0]) * speed
            alone += np.logaddexp.reduce(PRIOR + drifts * z - drifts**2 / 2)
            assert bets.log_m[0] >= math.log(0.2) + alone - 1e-9
        if lie < 0.0:  # the past says that there is nothing to find: so rules 1 find nothing
            assert old.log_m[0] < 0.01 < 1.0 < bets.log_m[0]


def test_the_untilted_share_in_plain_numbers():
    # No past: the tilted grid is the prior too, and there is no expert. With z = 1 and speed 1
    # LR = sum_m prior_m exp(l_m - l_m^2 / 2), whatever the share.
    expected = math.log(sum(np.exp(PRIOR + GRID - GRID**2 / 2)))
    for share in (0.0, 0.2, 0.7):
        bets = Bets.against(1, 0.05, False, share)
        bets.place(ONE, ONE, TESTED, (np.zeros(1), np.zeros(1)))
        assert bets.log_m[0] == pytest.approx(expected, abs=1e-12)
        np.testing.assert_allclose(
            np.exp(bets.wealth[0, [0, 2]] - expected), [(1 - share) / 2, share]
        )


def test_without_a_cap_the_factor_has_mean_at_most_one_under_any_sub_gaussian_noise():
    # Noise +1 or -1 is sub-Gaussian with sigma = 1: E exp(l z) = cosh(l) <= exp(l^2 / 2).
    for seed in range(5):
        drifts, log_weights = mixture(seed)
        ratio = [np.logaddexp.reduce(log_weights + drifts * z - drifts**2 / 2) for z in (-1, 1)]
        assert np.mean(np.exp(ratio)) <= 1.0 + 1e-12
    bets, _ = grid_only(0.05, 20, capped=False)
    assert bets.rejected[0]


def test_arms_that_are_not_tested_or_rejected_are_left_alone():
    bets, nothing = Bets.against(3, 0.05, True), (np.zeros(3), np.zeros(3))
    tested = np.array([True, False, True])
    caps = bets.place(np.array([50.0, 50.0, 0.1]), np.ones(3), tested, nothing)
    assert bets.rejected.tolist() == [True, False, False]
    assert math.isnan(caps[1])
    assert bets.log_m[1] == bets.scale[1] == 0.0
    bets.place(np.array([-50.0, 0.0, 0.1]), np.ones(3), tested, nothing)
    assert bets.log_m[0] == bets.limit[0]  # what is rejected stays rejected


@pytest.mark.parametrize("z", [1e300, 1e4, -1e4, -1e300])
def test_scores_of_any_size_do_not_overflow(z):
    followed = Followed(1, 0.05, False)
    for _ in range(3):
        followed.place(np.array([z]), ONE, TESTED, np.array([[0.1, 5.0, 40.0]]))
    assert np.isfinite(followed.bets.log_m[0])
    assert followed.bets.rejected[0] == (z > 0)


def test_expected_drifts_are_quantiles_of_a_truncated_normal():
    for mean, spread in ((0.0, 1.0), (3.0, 0.5), (-5.0, 1.0), (-30.0, 2.0)):
        ours = expected_drifts(np.array([mean]), np.array([spread]))[0]
        expected = truncnorm.ppf(EXPERT, -mean / spread, np.inf, mean, spread)
        np.testing.assert_allclose(ours, expected, rtol=1e-6)
    far = expected_drifts(np.array([-1e5]), np.array([1.0]))
    assert np.all(np.isfinite(far))
    assert np.all(far >= 0)


def test_the_prior_is_a_probability():
    assert np.exp(PRIOR).sum() == pytest.approx(1.0)
    assert GRID[0] == 2.5
    assert len(GRID) == 30


def test_ville_holds_under_the_null():
    # 4,000 arms that are all best, 60 batches each: about delta of them are rejected, not more.
    rng, K, delta = np.random.default_rng(0), 4000, 0.1
    followed, total = Followed(K, delta, True), 1.0
    for _ in range(60):
        speed = np.full(K, math.sqrt(0.1 * total))
        followed.place(rng.standard_normal(K), speed, np.ones(K, dtype=bool))
        total *= 1.1
    rejected = int(followed.bets.rejected.sum())
    assert exact_lower_bound(rejected, K, 0.999) <= delta
    assert rejected > 0.2 * delta * K  # the cap wastes little
