"""What a study may do to a gauntlet: bring in earlier rewards, add arms, withdraw one."""

import math

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.problem.rules import rules_of
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn

EYE = fl.Arms(np.eye(4), names=list("abcd"))
MEANS = np.array([1.0, 0.9, 0.2, 0.0])


def start(arms=EYE, **settings):
    return fl.Gauntlet().start(as_problem(arms, **{"sigma": 1.0, **settings}), seed=0)


def drive(run, lab, batches):
    for _ in range(batches):
        if run.verdict.decided:
            return
        batch = run.next()
        run.record(batch, drawn(lab, batch))


def lab_of(means, seed=0):
    return DrawnRewards(np.asarray(means), 1.0, "gaussian", np.random.default_rng(seed))


def history(counts, totals):
    before = Statistics.empty(len(counts))
    before.add_batch(np.array(counts), np.array(totals), np.zeros(len(counts)))
    return before


# ---- earlier rewards ---------------------------------------------------------------------


def test_a_history_steers_the_design_and_is_no_evidence():
    plain, informed = start(), start()
    informed.inform(history([500, 500, 500, 500], [500.0, 450.0, -200.0, -400.0]))
    for run in (plain, informed):
        lab = lab_of(MEANS, 3)
        batch = run.next()
        assert batch.note["kind"] == "pilot"
        run.record(batch, lab.batch(batch.counts))
    assert np.all(informed.evidence().share == 0)
    assert informed.verdict.pulls == plain.verdict.pulls == 4
    counts = informed.next().counts
    assert counts[:2].sum() > 0.8 * counts.sum()  # the history says that a and b are in question
    assert plain.next().counts[:2].sum() < 0.8 * counts.sum()


def test_a_misleading_history_does_not_break_the_promise():
    # It says that arm d is best and a, the truly best, is bad.
    lies = history([200] * 4, [-600.0, 0.0, 0.0, 600.0])
    wrong = 0
    for seed in range(150):
        run = start(delta=0.2)
        run.inform(lies)
        drive(run, lab_of([0.8, 0.0, 0.0, 0.0], seed), 40)
        wrong += 0 not in run.verdict.survivors
    assert exact_lower_bound(wrong, 150, 0.999) <= 0.2


def test_a_history_comes_first_and_fits():
    run = start()
    with pytest.raises(ProblemError, match="3 arms"):
        run.inform(Statistics.empty(3))
    drive(run, lab_of(MEANS), 1)
    with pytest.raises(ProblemError, match="before the first"):
        run.inform(Statistics.empty(4))


def test_a_history_is_a_copy():
    before = history([5] * 4, [1.0] * 4)
    run = start()
    run.inform(before)
    first = run.next().counts
    before.add(0, 1e6)
    np.testing.assert_array_equal(run.next().counts, first)


# ---- adding and withdrawing ---------------------------------------------------------------


def more(problem_of, arms):
    return problem_of._problem.with_(arms=arms)


def test_an_added_arm_has_a_process_of_its_own_and_the_others_keep_theirs():
    run, lab = start(), lab_of(MEANS, 1)
    while run.evidence().share.max() == 0:
        drive(run, lab, 1)
    before = run.evidence()
    assert before.share.max() > 0
    five = fl.Arms(np.eye(5), names=list("abcde"))
    new = run.changed(more(run, five), np.array([0, 1, 2, 3, -1]), 0.025, afresh=False)
    after = new.evidence()
    np.testing.assert_array_equal(after.share[:4], before.share)
    np.testing.assert_array_equal(after.rejected[:4], before.rejected)
    assert after.share[4] == 0
    assert 4 in new.verdict.survivors
    np.testing.assert_allclose(new._claims.bets.limit, [-math.log(0.05)] * 4 + [-math.log(0.025)])
    assert new.verdict.pulls == run.verdict.pulls
    assert new.next().note["kind"] == "pilot"  # nothing is known of the new dimension
    assert new.next().note["batch"] == run.next().note["batch"]
    drive(new, lab_of([1.0, 0.9, 0.2, 0.0, 3.0], 2), 60)
    assert new.verdict.winner == 4


def test_after_withdrawing_all_begin_again_with_a_share():
    run = start()
    lab = lab_of([3.0, 1.0, 0.2, 0.0], 1)
    while not run.evidence().rejected[1]:
        drive(run, lab, 1)
    three = fl.Arms(np.eye(4)[1:], names=list("bcd"))
    new = run.changed(more(run, three), np.array([1, 2, 3]), 0.025, afresh=True)
    assert new.verdict.survivors == (0, 1, 2)  # b lost against a, which is no longer in question
    assert np.all(new.evidence().share == 0)
    np.testing.assert_allclose(new._claims.bets.limit, -math.log(0.025))
    assert new.verdict.pulls == run.verdict.pulls
    drive(new, lab_of([1.0, 0.2, 0.0], 2), 60)
    assert new.verdict.winner == 0


def test_intervals_end_and_words_still_work():
    run = start(epsilon=0.1)
    drive(run, lab_of(MEANS, 1), 3)
    assert np.isfinite(run.interval(np.eye(4))[1]).all()
    new = run.changed(run._problem, np.arange(4), 0.01, afresh=True)
    assert np.isinf(new.interval(np.eye(4))[1]).all()
    assert "+-" not in new.words()
    drive(new, lab_of(MEANS, 2), 2)
    assert np.isinf(new.interval(np.eye(4))[1]).all()


def test_levels_of_leaders_go_on_after_a_change():
    run, lab = start(epsilon=0.3, rules=rules_of(2)), lab_of(MEANS, 1)
    while not run._claims.leaders:
        drive(run, lab, 1)
    led = len(run._claims.leaders)
    new = run.changed(run._problem, np.arange(4), 0.025, afresh=True)
    lab = lab_of(MEANS, 2)
    while not new._claims.leaders:
        drive(new, lab, 1)
    limits = {float(bets.limit[0]) for bets in new._claims.leaders.values()}
    assert limits == {-math.log(0.05 / (2 * (led + 1) * (led + 2)))}


def test_an_arm_added_because_the_others_look_bad_keeps_its_share():
    # A user adds an arm as soon as any of two tied arms is rejected; the new one is better.
    rejected = 0
    for seed in range(200):
        run = start(fl.Arms(np.eye(2)), delta=0.3)
        lab = lab_of([0.0, 0.0], seed)
        for _ in range(12):
            if run.verdict.decided:
                break
            drive(run, lab, 1)
        if not run.verdict.decided:
            three = fl.Arms(np.eye(3))
            new = run.changed(more(run, three), np.array([0, 1, -1]), 0.15, afresh=False)
            drive(new, lab_of([0.0, 0.0, 0.0], 1000 + seed), 25)
            rejected += 2 not in new.verdict.survivors
    assert exact_lower_bound(rejected, 200, 0.999) <= 0.15


def test_missing_rewards_make_the_pilot_longer():
    run, lab = start(), lab_of(MEANS)
    batch = run.next()
    counts = batch.counts.copy()
    counts[3] = 0  # all pulls of d are missing
    run.record(type(batch)(counts, batch.note), lab.batch(counts))
    more_pulls = run.next()
    assert more_pulls.note["kind"] == "pilot"
    run.record(more_pulls, lab.batch(more_pulls.counts))
    while run.next().note["kind"] == "pilot":
        batch = run.next(size=4)
        run.record(batch, lab.batch(batch.counts))
    assert run._past.estimate().information.rank == 4
