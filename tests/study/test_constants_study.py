"""Levels of the checks, and what a study calls certain, against numbers worked out by hand."""

import math

import numpy as np
import pytest
from scipy.stats import ncf, ncx2

import finalist as fl
from finalist.inference.least_squares import estimate
from finalist.inference.pooling import BatchSums
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.study import checks
from finalist.study.checks import doubts_of, promised, risk_of
from finalist.study.snapshot import take
from finalist.study.status import status as status_of
from finalist.study.storage.rows import StudyRow

TWO = fl.Arms.unstructured(["a", "b"])
#: x'theta with x = 1 and x = 2.
RAY = fl.Arms([[1.0], [2.0]], ["one", "two"])
#: Four points of a line; (1, -1, -1, 1) is orthogonal to all lines.
LINE = fl.Arms([[1.0, -3.0], [1.0, -1.0], [1.0, 1.0], [1.0, 3.0]])
BEND = np.array([1.0, -1.0, -1.0, 1.0])
NEAR = 1e-6
#: 2 ALARM / (k (k + 1)) at the first and the third look.
LEVELS = ((1, 1e-3), (3, 1e-3 / 6))
BOUNDARY = (1 - NEAR, 1 + NEAR)


def looked(looks):
    """Return so many batches without a reward."""
    none = np.zeros(0, dtype=np.int64)
    return [BatchSums(none, none, np.zeros(0), np.zeros(0))] * looks


def found(problem, counts, means, squares, looks):
    n = np.array(counts)
    rewards = Statistics.of_batch(n, n * np.array(means), np.array(squares, dtype=float))
    return checks.found(problem, estimate(problem.arms, rewards), looked(looks), 0)


# ---- checks --------------------------------------------------------------------------------


@pytest.mark.parametrize(("looks", "level"), LEVELS)
def test_noise_that_is_too_large_or_too_small(looks, level):
    # Two pulls of each of two arms: chi-square of 2 degrees of freedom, with the tail exp(-x / 2).
    # sigma = 2: the squares add up to 4 x.
    problem = as_problem(TWO, sigma=2.0)
    large, small = -2.0 * math.log(level), -2.0 * math.log1p(-level)
    for x, fails in ((large, True), (small, False)):
        seen = [
            found(problem, [2, 2], [0.0, 9.0], [4.0 * part * x, 0.0], looks) for part in BOUNDARY
        ]
        beyond = 1 if fails else 0  # above the one, below the other
        assert [len(each) for each in seen] == [1 - beyond, beyond]
        assert seen[beyond][0].fails == fails
    # A model that may be wrong by c = 0.5 adds up to 4 c^2 / sigma^2 = 1/4 to the noncentrality.
    problem = as_problem(TWO, sigma=2.0, misspecification=0.5)
    x = float(ncx2.isf(level, 2, 0.25))
    for part, count in zip((1 - 1e-4, 1 + 1e-4), (0, 1), strict=True):
        seen = found(problem, [2, 2], [0.0, 9.0], [4.0 * part * x, 0.0], looks)
        assert len(seen) == count


@pytest.mark.parametrize(("looks", "level"), LEVELS)
def test_means_that_are_not_linear(looks, level):
    # Two pulls of each of four arms with squares of 1: F has 2 and 4 degrees of freedom and the
    # tail (1 + x / 2)^-2. A bend of q gives F = (2 * 4 q^2 / 2) / (4 / 4) = 4 q^2.
    x = 2.0 * (level**-0.5 - 1.0)
    for c in (0.0, 0.2):
        # Squares of at most 8 c^2, in units of the variance 1: noncentrality.
        limit = x if c == 0.0 else float(ncf.isf(level, 2, 4, 8.0 * c * c))
        problem = as_problem(LINE, sigma=None, misspecification=c)
        seen = []
        for part in (1 - 1e-4, 1 + 1e-4):
            q = math.sqrt(part * limit / 4.0)
            seen.append(found(problem, [2] * 4, 5.0 + q * BEND, [1.0] * 4, looks))
        assert [len(each) for each in seen] == [0, 1]
        assert seen[1][0].fails


@pytest.mark.parametrize(("looks", "level"), LEVELS)
def test_batches_that_are_shifted(looks, level, monkeypatch):
    problem = as_problem(TWO, sigma=2.0)
    for part, count in zip(BOUNDARY, (1, 0), strict=True):
        monkeypatch.setattr(checks, "shift_p_value", lambda *_, p=part * level: p)
        seen = found(problem, [2, 2], [0.0, 9.0], [4.0, 4.0], looks)
        assert [check.fails for check in seen] == [True] * count
        allowed = as_problem(TWO, sigma=2.0, batch_intercept=True)
        assert found(allowed, [2, 2], [0.0, 9.0], [4.0, 4.0], looks) == []


@pytest.mark.parametrize(("K", "known"), [(10, False), (11, True)])
def test_shifts_need_ten_degrees_of_freedom(K, known):
    # K arms in two batches: 2 K means, K - 1 differences and 2 constants leave K - 1.
    rng, every = np.random.default_rng(0), np.arange(K)
    batches = [
        BatchSums(every, np.ones(K, int), rng.standard_normal(K), np.zeros(K)) for _ in range(2)
    ]
    p = checks.shift_p_value(fl.Arms.unstructured(K), batches)
    assert (p is not None) == known


# ---- what is certain -----------------------------------------------------------------------


def study_of(
    where, arms, means, scatter=1.0, strategy="gauntlet", most=3, name="s", size=None, **words
):
    """Measure up to some batches: each arm has its mean plus and minus a scatter, in turn."""
    words = {"sigma": 1.0, "delta": 0.05} | words
    study = fl.Study.create(where / "lab.db", name, arms, strategy, **words)
    turn = dict.fromkeys(arms.names, 1.0)
    for _ in range(most):
        told = {}
        for pull in study.ask(size) or ():
            turn[pull.arm] *= -1.0
            told[pull.pull_id] = means[pull.arm] - scatter * turn[pull.arm]
        study.tell(told)
    return study


def said_of(state):
    return status_of(take(StudyRow(1, "s", "", "", {}), state))


def seen_of(study):
    """Return what is certain, and the state."""
    state = study._log.now()
    return said_of(state), state


CLEAR = {"a": 100.0, "b": 0.0}


def test_a_winner_is_certain_if_nothing_speaks_against_it(tmp_path):
    status, state = seen_of(study_of(tmp_path, TWO, CLEAR))
    assert promised(state)
    assert doubts_of(state) == []
    assert (status.verdict, status.certain, status.winner) == ("winner", True, "a")
    assert risk_of(state) == status.risk == 0.05
    assert (status.advice, status.error_estimate, status.certainty) == (None, None, None)
    # This version would have decided otherwise: all of it is lost.
    state.replay.differs.append(1)
    status = said_of(state)
    assert not promised(state)
    assert len(doubts_of(state)) == 1
    assert (status.verdict, status.certain, status.winner) == ("uncertain", False, "a")
    assert (risk_of(state), status.risk) == (None, None)
    assert (status.error_estimate, status.certainty) == (None, None)
    assert status.advice == "Recommendation: a."
    assert [(arm.low, arm.p_value) for arm in status.arms] == [(None, None)] * 2


def test_a_check_that_fails_takes_certainty_away_and_another_does_not(tmp_path):
    # Four times sigma: the noise is too large. A hundredth of it: too small, which does no harm.
    for scatter, sure in ((4.0, False), (0.01, True)):
        status, state = seen_of(study_of(tmp_path, TWO, CLEAR, scatter, name=str(scatter), size=12))
        assert [check.fails for check in checks.checks_of(state)] == [not sure]
        assert (status.certain, promised(state)) == (sure, sure)
        assert len(doubts_of(state)) == (0 if sure else 1)
        assert status.verdict == ("winner" if sure else "uncertain")
        assert status.risk == (0.05 if sure else None)
        assert (status.error_estimate, status.certainty) == (None, None)
        assert [arm.low is None for arm in status.arms] == [not sure] * 2


def test_a_threshold_without_a_proof_is_never_certain(tmp_path):
    strategy = fl.TrackAndStop(threshold="heuristic")
    status, state = seen_of(study_of(tmp_path, TWO, CLEAR, strategy=strategy))
    assert doubts_of(state) == []
    assert not promised(state)
    assert (status.verdict, status.certain, status.risk) == ("winner", False, None)
    assert status.error_estimate is not None


def stopped(where, **words):
    """Stop after the pilot: four pulls of the arm with x = 2 and mean 3, with squares of 4."""
    study = study_of(where, RAY, {"one": 0.0, "two": 3.0}, most=1, size=4, **words)
    study.stop("enough")
    status, state = seen_of(study)
    assert state.pooled.statistics.count.tolist() == [0, 4]
    return status, state


#: A = 16 and A_0 = 4 (1 + 4) / 2 = 10: y = 1 has the norm sqrt(1/16 + 10/16^2), and the ratio is
#: 26 / 10. At 95 % the radius is sqrt(log 2.6 + 2 log 20) = 2.635711667.
NORM, RADIUS = math.sqrt(1 / 16 + 10 / 256), 2.635711667


def wealth(t, count):
    """By hand: half of it is in the ellipsoid, half in bets; V = 16, and v = A_0 / 8 = 1.25."""
    ellipsoid = math.sqrt(10 / 26) * math.exp((t / NORM) ** 2 / 2)
    bet = math.sqrt(1.25 / 17.25) * math.exp((16 * t) ** 2 / (2 * 17.25))
    return ellipsoid / 2 + bet / (2 * count)


def test_intervals_certainty_and_the_estimate_of_an_error(tmp_path):
    status, _ = stopped(tmp_path)  # theta = 1.5
    assert status.verdict == "undecided"
    one, two = status.arms
    assert (one.estimate, two.estimate) == pytest.approx((1.5, 3.0), rel=1e-12)
    for arm, size in ((one, 1), (two, 2)):  # two means share what is bet on one
        for end in (arm.low, arm.high):
            assert wealth((end - arm.estimate) / size, 2) == pytest.approx(20.0, rel=1e-6)
    assert status.certainty == pytest.approx(1 - 1 / wealth(1.5, 1), abs=1e-12)
    # Phi(-1.5 / sqrt(1/16)) = Phi(-6)
    assert status.error_estimate == pytest.approx(9.8658765e-10, rel=1e-6)


def test_intervals_and_certainty_where_the_model_may_be_wrong(tmp_path):
    # The mean of the first arm is half of the other's: c (1/2 + 1) can be feigned, and so it can
    # for the difference. What is pulled is as it is. There are no bets: the ellipsoid has it all.
    c = 0.1
    status, _ = stopped(tmp_path, misspecification=c)
    one, two = status.arms
    width = RADIUS * NORM
    assert (one.low, one.high) == pytest.approx(
        (1.5 - width - 1.5 * c, 1.5 + width + 1.5 * c), rel=1e-6
    )
    assert (two.low, two.high) == pytest.approx((3.0 - 2 * width, 3.0 + 2 * width), rel=1e-6)
    z = (1.5 - 1.5 * c) / NORM
    assert status.certainty == pytest.approx(1 - math.exp(-(z * z - math.log(2.6)) / 2), rel=1e-9)
    assert status.error_estimate is None


def test_with_doubts_there_are_no_figures(tmp_path):
    _, state = stopped(tmp_path)
    state.replay.differs.append(1)
    status = said_of(state)
    assert (status.error_estimate, status.certainty, status.verdict) == (None, None, "undecided")
    assert status.advice == "Recommendation: two."


@pytest.mark.parametrize(
    ("words", "changed", "known"),
    [
        ({}, False, True),
        ({}, True, False),  # other arms were not fixed in advance
        ({"misspecification": 0.1}, False, True),
        ({"batch_intercept": True}, False, True),
        ({"misspecification": 0.1, "batch_intercept": True}, False, False),  # no bound for both
    ],
)
def test_where_intervals_have_no_proof(tmp_path, words, changed, known):
    arms = fl.Arms.unstructured(["a", "b", "c"])
    study = study_of(tmp_path, arms, {"a": 2.0, "b": 0.0, "c": 0.0}, most=1, **words)
    if changed:
        study.withdraw("c")
    study.stop("enough")
    status, _ = seen_of(study)
    assert (status.certainty is not None) == known
    assert [arm.p_value is None for arm in status.arms] == [changed] * len(status.arms)
    if "batch_intercept" not in words:  # which leaves no level of a single arm
        assert [arm.low is not None for arm in status.arms] == [known] * len(status.arms)
