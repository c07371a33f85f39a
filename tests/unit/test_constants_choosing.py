"""What the gauntlet bets by, and what its scores take off, against numbers worked out by hand."""

import math
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.inference.information import information
from finalist.inference.least_squares import estimate
from finalist.inference.misspecification import Bias
from finalist.inference.pooling import Pooled
from finalist.inference.statistics import Statistics
from finalist.problem import Problem, as_problem
from finalist.problem.rules import rules_of
from finalist.strategies.gauntlet.contrasts import Pairs
from finalist.strategies.gauntlet.past import Past, contradict
from finalist.strategies.gauntlet.sets import AllPairs, Sets
from finalist.strategies.gauntlet.stakes import _take_own_means, expected_drifts
from finalist.strategies.protocol import Batch
from tests.unit.bettors import bet, scored

FREE = fl.Arms.unstructured(2)
#: x'theta with x = 1 and x = 2.
RAY = fl.Arms([[1.0], [2.0]])
#: A line at 0, 1 and 2.
LINE = fl.Arms([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
NEAR = 1e-6


def of(counts, means, squares=None):
    """Return counts, means and squares as statistics."""
    n, m = np.array(counts), np.array(means, dtype=float)
    return Statistics.of_batch(n, n * m, np.zeros(len(n)) if squares is None else squares)


# ---- what contradicts what ---------------------------------------------------------------


def apart(limit, rank, sigma, squares=None):
    """Tell whether 4 pulls of each of two arms contradict 4 before, just below and above a limit.

    Before, so many arms as the rank says were pulled. Wald's statistic is limit sigma^2: each arm
    that both have differs by sqrt(limit sigma^2 (1/4 + 1/4) / rank).
    """
    counts = np.where(np.arange(2) < rank, 4, 0)
    found = []
    for part in (1 - NEAR, 1 + NEAR):
        gap = math.sqrt(part * limit * 9.0 * 0.5 / rank)
        before = estimate(FREE, of(counts, [0.0, 0.0]))
        now = estimate(FREE, of([4, 4], [gap, -gap], squares))
        found.append(contradict(now, before, sigma))
    return found


def test_rewards_contradict_others_at_a_thousandth():
    # Chi-square of rank 2 has the tail exp(-x / 2): 0.001 at 2 log 1000. Of rank 1 (tables):
    # 10.8275661707. sigma is 3.
    assert apart(2 * math.log(1000.0), 2, 3.0) == [False, True]
    assert apart(10.8275661707, 1, 3.0) == [False, True]
    # The residuals of now have variance 9 with 6 degrees of freedom. F(2, 6) has the tail
    # (1 + x / 3)^-3: 0.001 at 27, and Wald's statistic is twice that. F(1, 6): 35.5074909 (tables).
    squares = np.array([27.0, 27.0])
    assert apart(2 * 27.0, 2, None, squares) == [False, True]
    assert apart(35.5074909, 1, None, squares) == [False, True]


def test_what_does_not_span_contradicts_nothing():
    # Left out, nothing would be known of the second arm.
    before, now = (estimate(FREE, of([9, 0], [mean, 0.0])) for mean in (50.0, 0.0))
    assert not contradict(now, before, 1.0)
    both = estimate(FREE, of([9, 9], [0.0, 0.0]))
    assert contradict(both, before, 1.0)


def past_of(pilot, tested, history, rules=2):
    """Return the means by a past of four pulls of each arm, pilot, test and history."""
    past = Past(as_problem(FREE, sigma=1.0, rules=rules_of(rules)))
    if history is not None:
        past.inform(of([4, 4], history))
    for kind, means in (("pilot", pilot), ("test", tested)):
        past.add(Batch(np.array([4, 4]), {"kind": kind}), of([4, 4], means))
    return past.estimate().means().tolist()


def test_what_is_left_out():
    # 20 apart with a standard error of sqrt(1/2): the test counts, what came before does not.
    assert past_of([20.0, 0.0], [0.0, 0.0], None) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert past_of([20.0, 0.0], [0.0, 0.0], [0.5, 0.5]) == pytest.approx([0.25, 0.25])
    assert past_of([0.5, 0.5], [0.0, 0.0], [20.0, 0.0]) == pytest.approx([0.25, 0.25])
    assert past_of([0.5, 0.5], [0.0, 0.0], [1.0, 1.0]) == pytest.approx([0.5, 0.5])
    # Rules 1 take everything.
    assert past_of([20.0, 0.0], [0.0, 0.0], None, rules=1) == pytest.approx([10.0, 0.0])
    found = past_of([0.0, 0.0], [0.0, 0.0], [30.0, 0.0], rules=1)
    assert found == pytest.approx([10.0, 0.0])


# ---- what is expected --------------------------------------------------------------------


def run_of(problem: Problem) -> Any:
    return fl.Gauntlet().start(problem)


@pytest.mark.parametrize(("objective", "sign"), [("max", 1.0), ("min", -1.0)])
def test_how_far_means_seem_to_be_off(objective, sign):
    # 4 pulls each with means 0 and 5: theta = (4 * 0 + 4 * 2 * 5) / (4 + 16) = 2, so the means are
    # -2 and 1 off the model. c = 2, sigma = 4: c^2 w / (c^2 w + sigma^2) = 16 / 32 of it counts.
    fit = estimate(RAY, of([4, 4], [0.0, 5.0]))
    words = {"sigma": 4.0, "objective": objective, "misspecification": 2.0}
    run = run_of(as_problem(RAY, **words))
    assert run._past.off(fit) == pytest.approx([-1.0 * sign, 0.5 * sign], rel=1e-12)
    assert run._past.means(fit) == pytest.approx([1.0 * sign, 4.5 * sign], rel=1e-12)
    # An arm that was not pulled is where the model has it.
    alone = estimate(RAY, of([0, 4], [0.0, 5.0]))
    assert run._past.means(alone) == pytest.approx([2.5 * sign, 5.0 * sign], rel=1e-12)
    # Not by rules 1, nor where the model is right.
    for other in ({"rules": rules_of(1)}, {"misspecification": 0.0}):
        assert run_of(as_problem(RAY, **{**words, **other}))._past.off(fit) is None


def shifted(problem, *batches):
    """Return the estimate from batches of which each has a constant of its own."""
    pooled = Pooled(problem)
    for counts, means in batches:
        pooled.add(of(counts, means))
    return pooled.estimate()


@pytest.mark.parametrize(("objective", "sign"), [("max", 1.0), ("min", -1.0)])
def test_how_far_means_seem_to_be_off_where_batches_are_shifted(objective, sign):
    # Three arms on a line, 8 pulls of each beside each other, with means 0, 3 and 0, then 100 more:
    # the line is flat and the means are -1, 2 and -1 off it. A third batch has one arm alone, and
    # says nothing. With the others known, an arm has the weight 8 (1 - 1/3) in each batch, 32/3.
    # c = 3, sigma = 4: c^2 w / (c^2 w + sigma^2) = 96 / (96 + 16) of it counts.
    words = {"sigma": 4.0, "objective": objective, "misspecification": 3.0}
    problem = as_problem(LINE, batch_intercept=True, **words)
    means, once = np.array([0.0, 3.0, 0.0]), ([0, 5, 0], [0.0, -60.0, 0.0])
    fit = shifted(problem, ([8] * 3, means), ([8] * 3, means + 100.0), once)
    run = run_of(problem)
    part = sign * 96 / 112
    assert run._past.off(fit) == pytest.approx([-part, 2 * part, -part], rel=1e-9)
    assert np.diff(run._past.means(fit)) == pytest.approx([3 * part, -3 * part], rel=1e-9)
    for other in ({"rules": rules_of(1)}, {"misspecification": 0.0}):
        assert run_of(problem.with_(**other))._past.off(fit) is None


def test_what_is_expected_of_pairs_where_batches_are_shifted():
    # Arms 0 and 1 beside each other, 2 and 6 pulls, then 4 and 4 with 50 more: their differences,
    # 5 and 3, have the variances 2/3 and 1/2. Arm 2 was pulled alone: it is where the model has it.
    problem = as_problem(LINE, sigma=1.0, misspecification=0.1, batch_intercept=True)
    batches = (([2, 6, 0], [0.0, 5.0, 0.0]), ([4, 4, 0], [50.0, 53.0, 0.0]), ([0, 0, 9], [7.0] * 3))
    past = shifted(problem, *batches)
    pairs = Pairs(np.array([1, 1, 2]), np.array([0, 0, 0]), np.array([True, False, True]))
    difference, variance = np.full(3, 7.0), np.full(3, 9.0)
    own_means(run_of(problem), past, pairs, difference, variance)
    assert difference == pytest.approx([(5.0 * 1.5 + 3.0 * 2.0) / 3.5, 7.0, 7.0], rel=1e-9)
    assert variance == pytest.approx([1.0 / 3.5, 9.0, 9.0], rel=1e-9)
    # A bet on what a further batch says of them goes by it.
    fit = estimate(LINE, of([4, 4, 0], [0.0, 1.0, 0.0]))
    bets: Any = Noted(1)
    one = Pairs(np.array([1]), np.array([0]), np.array([True]))
    bet(run_of(problem), bets, np.array([0]), one, fit, past, 0.0)
    _, _, _, (drift, time), _ = bets.placed
    assert (drift[0], time[0]) == pytest.approx((13.5, 3.5), rel=1e-9)


def own_means(run: Any, past: Any, pairs: Pairs, difference: Any, variance: Any) -> None:
    contrasts: Any = SimpleNamespace(pairs=pairs)
    _take_own_means(run._past, past, contrasts, np.arange(len(pairs.arms)), difference, variance)


class Noted:
    """Bets that keep what is placed."""

    placed: Any

    def __init__(self, n: int) -> None:
        self.log_m = np.zeros(n)

    def place(self, *given: Any) -> None:
        self.placed = given


@pytest.mark.parametrize(("objective", "sign"), [("max", 1.0), ("min", -1.0)])
def test_what_is_expected_of_a_batch(objective, sign):
    # Before: 4 and 2 pulls, the second arm ahead by 3. Now: 8 and 8. sigma = 2, epsilon = 0.5.
    # The difference has the variance 1/4 + 1/2 = 3/4 before, and speed 1 / sqrt(1/4) = 2 now.
    run = run_of(as_problem(FREE, sigma=2.0, objective=objective))
    past, fit = estimate(FREE, of([4, 2], [0.0, 3.0])), estimate(FREE, of([8, 8], [0.0, 1.0]))
    bets: Any = Noted(3)
    bet(run, bets, np.array([2]), Pairs(np.array([1]), np.array([0])), fit, past, 0.5)
    z, speed, tested, (drift, time), expert = bets.placed
    assert tested.tolist() == [False, False, True]
    assert (z[2], speed[2]) == pytest.approx(((sign * 1.0 + 0.5) / (2.0 * 0.5), 2.0), rel=1e-12)
    gap = (sign * 3.0 + 0.5) / 2.0  # in units of sigma
    assert (drift[2], time[2]) == pytest.approx((gap / 0.75, 1.0 / 0.75), rel=1e-12)
    # The drift of the score is the gap times the speed, uncertain by its standard error.
    mean, spread = np.array([gap * 2.0]), np.array([math.sqrt(0.75) * 2.0])
    assert expert[2] == pytest.approx(expected_drifts(mean, spread)[0], rel=1e-12)


def test_what_is_expected_where_the_model_may_be_wrong():
    # By the model arm 1 is theta = 2 ahead of arm 0, less what the batch may feign; by the means of
    # the arms themselves it is 5, with the variance 1/4 + 1/4.
    run = run_of(as_problem(RAY, sigma=1.0, misspecification=0.1))
    past, fit = estimate(RAY, of([4, 4], [0.0, 5.0])), estimate(RAY, of([4, 4], [0.0, 1.0]))
    for direct in (False, True):
        bets: Any = Noted(1)
        pairs = Pairs(np.array([1]), np.array([0]), np.array([direct]))
        bet(run, bets, np.array([0]), pairs, fit, past, 0.0)
        _, speed, _, (drift, time), _ = bets.placed
        # theta has the variance 1 / (4 + 16); H = 4 (1, 2) / 20 = (0.2, 0.4) for y = 1, and the
        # batch may feign c (|0.2 + 1| + |0.4 - 1|) = 0.18.
        variance = 1 / 4 + 1 / 4 if direct else 1 / 20
        gap = 5.0 if direct else 2.0 - 0.18
        assert time[0] == pytest.approx(1.0 / variance, rel=1e-12)
        assert drift[0] == pytest.approx(gap / variance, rel=1e-12)
        assert speed[0] == pytest.approx(variance**-0.5, rel=1e-12)


def test_own_means_have_the_variance_of_both():
    # 4 pulls of the rival, 2 of the arm: 1/4 + 1/2.
    run = run_of(as_problem(RAY, sigma=1.0, misspecification=0.1))
    past = estimate(RAY, of([2, 4], [1.0, 5.0]))
    pairs = Pairs(np.array([1, 1]), np.array([0, 0]), np.array([True, False]))
    difference, variance = np.array([7.0, 7.0]), np.array([9.0, 9.0])
    own_means(run, past, pairs, difference, variance)
    assert difference.tolist() == [4.0, 7.0]
    assert variance.tolist() == [0.75, 9.0]


# ---- scores ------------------------------------------------------------------------------


@pytest.mark.parametrize(("objective", "sign"), [("max", 1.0), ("min", -1.0)])
def test_scores(objective, sign):
    # As above the model may feign 0.1 (1.2 + 0.6) = 0.18, and the difference is theta = 0.4;
    # its standard error is 2 / sqrt(20). Means of their own differ by 1, error 2 sqrt(1/4 + 1/4).
    problem = as_problem(RAY, sigma=2.0, misspecification=0.1, objective=objective)
    fit = estimate(RAY, of([4, 4], [0.0, 1.0]))
    arms = (np.array([1, 1]), np.array([0, 0]), np.array([False, True]))
    found = scored(problem, fit, Pairs(*arms), 0.25)
    expected = [
        (sign * 0.4 + 0.25 - 0.18) / (2.0 / math.sqrt(20.0)),
        (sign * 1.0 + 0.25) / (2.0 * math.sqrt(0.5)),
    ]
    assert found.z == pytest.approx(expected, rel=1e-12)
    assert found.bias == pytest.approx([0.18, 0.0], rel=1e-12)
    assert found.speed == pytest.approx([math.sqrt(20.0), math.sqrt(2.0)], rel=1e-12)
    uneven = estimate(RAY, of([2, 8], [0.0, 1.0]))
    found = scored(problem, uneven, Pairs(*(part[1:] for part in arms)), 0.0)
    assert found.speed == pytest.approx([1.0 / math.sqrt(1 / 2 + 1 / 8)], rel=1e-12)


def test_repeated_pulls_measure_the_noise_of_a_model_that_may_be_wrong():
    # Two pulls each with squares of 1: the variance is 2 / (4 - 2) = 1, with 2 degrees of freedom.
    # Means differ by 2, with a standard error of sqrt(1/2 + 1/2): t = 2, and Student's distribution
    # of 2 degrees of freedom has F(t) = 1/2 + t / (2 sqrt(2 + t^2)) = 0.9082482905 there.
    fit = estimate(RAY, of([2, 2], [0.0, 2.0], np.ones(2)))
    problem = as_problem(RAY, sigma=None, misspecification=0.1)
    pairs = Pairs(np.array([1]), np.array([0]), np.array([True]))
    found = scored(problem, fit, pairs, 0.0)
    assert NormalDist().cdf(found.z[0]) == pytest.approx(0.9082482905, rel=1e-9)


# ---- what a model that may be wrong can feign ---------------------------------------------


def test_what_a_batch_can_feign():
    # The ends of a line are pulled, 4 times each: their means are their own, the middle is the mean
    # of both, and its own deviation comes on top: c (1/2 + 1/2 + 1).
    Z, counts = LINE.coordinates, np.array([4, 0, 4])
    found = Bias.of(0.3, None, Z, counts, information(Z, counts.astype(float)))
    assert found is not None
    every = np.arange(3)
    assert found.of_arms(every) == pytest.approx([0.0, 0.6, 0.0], abs=1e-12)
    # The last minus the middle is (m_2 - m_0) / 2: c (|1/2 - 1| + |-1/2| + 1). The ends are exact.
    pairs = np.array([2, 2, 1]), np.array([1, 0, 2])
    assert found.of_pairs(*pairs) == pytest.approx([0.6, 0.0, 0.6], abs=1e-12)
    between = found.between(np.array([2, 1]), np.array([0, 1, 2]))
    assert between[0, :2] == pytest.approx([0.0, 0.6], abs=1e-12)
    assert between[1, [0, 2]] == pytest.approx([0.6, 0.6], abs=1e-12)
    errors = found.direct_errors(np.array([2, 2]), np.array([0, 1]))
    assert errors == pytest.approx([math.sqrt(0.5), math.inf], rel=1e-12)


def test_means_are_compared_where_they_say_more():
    # By the model arm 1 minus arm 0 is the slope, (m_2 - m_0) / 2, of width sqrt(1/8) and with
    # c (|-1/2 + 1| + |-1| + 1/2) = 2 c to take off; by means the width is sqrt(1/4 + 1/4).
    Z, counts = LINE.coordinates, np.array([4, 4, 4])
    info = information(Z, counts.astype(float))
    rivals = np.array([1, -1, -1])
    # (gap - 2 c) / sqrt(1/8) is less than gap / sqrt(1/2) as long as gap < 4 c.
    for gap, direct in ((4.0 * 0.3 - NEAR, True), (4.0 * 0.3 + NEAR, False)):
        bias = Bias.of(0.3, None, Z, counts, info)
        assert bias is not None
        found = bias.directly(Z, np.array([0.0, gap, 0.0]), rivals, info)
        assert found.tolist() == [direct, False, False]


# ---- claims about the m best --------------------------------------------------------------


def test_claims_about_pairs():
    # The 2 best of 5: of 6 true claims, those of one arm are 3.
    claims = AllPairs(5, 2)
    assert (claims.union, claims.of_one_arm, len(claims)) == (6, 3, 20)
    assert (Sets(5, 2).union, Sets(5, 2).of_one_arm, len(Sets(5, 2))) == (1, 1, 10)
    # Against arm 0 there is evidence by arms 1, 2, 3, 4: the second largest counts.
    share = np.zeros(20)
    share[:4] = [0.2, 0.9, 0.4, 0.6]
    found, claim = claims.of_arms(share)
    assert (found[0], claim[0]) == (0.6, 3)
    # One arm better than it: it may still be of the 2 best. Two: it is not.
    for better, possible in ((1, True), (2, False)):
        rejected = np.zeros(20, dtype=bool)
        rejected[:better] = True
        assert bool(claims.places(rejected)[0][0]) == possible
    # Arm 0 beats 2, then 3 of the other 4: then it is one of the 2 best.
    for beaten, sure in ((2, False), (3, True)):
        rejected = np.zeros(20, dtype=bool)
        rejected[[4, 8, 12, 16][:beaten]] = True
        assert bool(claims.places(rejected)[1][0]) == sure


@pytest.mark.parametrize("words", [{}, {"misspecification": 0.1}])
def test_intervals_of_a_run_need_a_model_and_arms_that_stay(words):
    problem = as_problem(FREE, sigma=1.0, **words)
    run = run_of(problem)
    batch = run.next()
    run.record(batch, of(batch.counts, [0.0, 0.0]))
    known = bool(np.isfinite(run.interval(np.eye(2))[1]).all())
    assert known == (not words)
    other = run.changed(problem, np.arange(2), 0.01, afresh=True)
    assert np.isinf(other.interval(np.eye(2))[1]).all()
