"""The course by rules 3: what is tested together, what is known when, and in which order."""

import copy
import itertools
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.inference.information import information
from finalist.inference.statistics import BatchResults, Statistics
from finalist.problem import Problem, as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn
from finalist.strategies import Batch
from finalist.strategies.gauntlet import Gauntlet
from finalist.strategies.gauntlet.chooser import LONGEST
from finalist.strategies.gauntlet.pilot import LONG
from tests import instances

SPHERE = fl.Arms(instances.unit_sphere(12, 6, 1))


def problem_of(arms: fl.Arms = SPHERE, **settings: Any) -> Problem:
    return as_problem(arms, **{"sigma": 1.0, "delta": 0.05, **settings})


def lab_of(means: Any, seed: int = 0, sigma: Any = 1.0) -> DrawnRewards:
    return DrawnRewards(np.asarray(means, float), sigma, "gaussian", np.random.default_rng(seed))


def first(batch: Batch, results: BatchResults, n: int) -> tuple[Batch, BatchResults]:
    """Return what has arrived after n results of a batch, as a study hands it on."""
    some = results.first(n)
    return Batch(some.count.copy(), batch.note), some


def state(run: Any) -> list[Any]:
    """Return all evidence of a run, and what is certain."""
    claims = run._course.claims
    bets = [claims.bets, *getattr(claims, "leaders", {}).values()]
    arrays = [a.tolist() for b in bets for a in (b.log_m, b.scale, b.wealth, b.path)]
    return [run.verdict.winners, run.verdict.survivors, *arrays]


def begun(problem: Problem, seed: int = 0) -> Any:
    """Begin a run."""
    return Gauntlet().start(problem, seed=seed)


def until_epoch(run: Any, lab: DrawnRewards, size: int = 3) -> Any:
    """Record batches until one begins an epoch, which is returned."""
    while "epoch" not in (batch := run.next(size)).note:
        run.record(batch, drawn(lab, batch))
    return batch


# ---- two epochs in one batch ---------------------------------------------------------------


def spanning(seed: int = 0, more: int = 9) -> tuple[Any, Any, Any]:
    """Return a run, and a batch that has the end of an epoch and another whole one."""
    run, lab = begun(problem_of(), seed=seed), lab_of(np.zeros(12), seed)
    batch = until_epoch(run, lab, 4)
    run.record(batch, drawn(lab, batch))
    batch = run.next(run.until_end + more)
    assert batch.note["rest"] > 0
    assert "epoch" in batch.note
    return run, batch, drawn(lab, batch)


def test_an_epoch_that_begins_in_the_same_batch_has_a_path_of_its_own():
    # All results of the old epoch have arrived, and some of the new one.
    for seed in range(5):
        run, batch, results = spanning(seed)
        whole = copy.deepcopy(run)
        whole.record(batch, results)
        for n in range(1, batch.size):
            course = run._course.copy()
            course.record(*first(batch, results, n), complete=False)
            if n < batch.note["rest"]:
                assert course.past.batches == 0
                continue
            assert course.past.batches == 1
            path = course.claims.bets.path
            # Of the new epoch alone: what it can say grows from nothing.
            info = course.epoch.estimate(course.past.problem, course.past.arms).information
            rivals = np.array(batch.note["epoch"]["attack"]["rivals"])
            Y = course.past.Z[rivals] - course.past.Z
            known = info.spans(Y)
            widths = np.full(len(Y), np.inf)
            widths[known] = info.variances(Y[known])
            assert (path[1] <= (1 + 1e-9) / widths).all()


def test_what_is_not_complete_is_not_closed_by_a_look():
    # All results but those of one arm of the old epoch have arrived.
    tried = map(spanning, range(20))
    run, batch, results = next(some for some in tried if some[0]._course.epoch.reserve is not None)
    rest, course = batch.note["rest"], run._course.copy()
    there = batch.order != batch.order[rest - 1]
    assert there[rest:].any()
    some = BatchResults.of(12, batch.order[there], results.value[there])
    course.record(Batch(some.count.copy(), batch.note), some, complete=False)
    assert course.past.batches == 0
    assert course.epoch.reserve is not None


def test_an_epoch_planned_while_another_is_open_stands_alone():
    # The reserve belongs to the open one: the next has to span without it.
    run, batch, results = spanning(more=6)
    plan = batch.note["epoch"]
    pulls = np.repeat(plan["pulled"], plan["times"])
    assert np.linalg.matrix_rank(SPHERE.features[pulls]) == 6
    run.record(batch, results)
    assert run._course.past.batches == 2
    assert (run._course.claims.bets.scale > 0.0).all()


# ---- results whose order is not known --------------------------------------------------------


def test_sums_are_looked_at_at_the_end_of_their_epoch():
    # Whoever chose the sizes of batches would choose the looks.
    run, lab = begun(problem_of(), seed=1), lab_of(np.zeros(12), 1)
    batch = until_epoch(run, lab, 2)
    run.record(batch, lab.batch(batch.counts))
    looked, batches = state(run), 0
    while run.until_end > 2:
        batch, batches = run.next(2), batches + 1
        run.record(batch, lab.batch(batch.counts))
        assert state(run) == looked
    assert batches > 0
    batch = run.next(2)
    run.record(batch, lab.batch(batch.counts))
    assert state(run) != looked


def test_one_result_needs_no_order():
    for ordered in (True, False):
        run, lab = begun(problem_of(), seed=1), lab_of(np.zeros(12), 1)
        until_epoch(run, lab)
        for _ in range(5):
            batch = run.next(1)
            run.record(batch, drawn(lab, batch) if ordered else lab.batch(batch.counts))
        if ordered:
            expected = state(run)
    assert state(run) == expected


# ---- arms that change ------------------------------------------------------------------------


def test_arms_change_between_epochs_only():
    run, lab = begun(problem_of(), seed=1), lab_of(np.zeros(12), 1)
    batch = until_epoch(run, lab)
    run.record(batch, drawn(lab, batch))
    left = run.until_end
    assert left > 0
    with pytest.raises(ProblemError, match=f"{left} more measurement"):
        run.changed(problem_of(), np.arange(12), 0.025, afresh=True)
    batch = run.next(left)
    run.record(batch, drawn(lab, batch))
    assert run.until_end == 0
    new = run.changed(problem_of(), np.arange(12), 0.025, afresh=False)
    assert new.verdict == run.verdict
    np.testing.assert_array_equal(new.evidence().share, run.evidence().share)
    assert new.next().note["batch"] == batch.note["batch"] + 1


def test_arms_that_change_after_the_pilot_have_no_reserve():
    # Whoever changes arms may have seen all results: what was kept back chooses now.
    run, lab = begun(problem_of(), seed=1), lab_of(np.arange(12.0), 1)
    batch = run.next()
    run.record(batch, drawn(lab, batch))
    new = run.changed(problem_of(), np.arange(12), 0.025, afresh=True)
    batch = until_epoch(new, lab, 6)
    new.record(batch, drawn(lab, batch))
    assert new._course.past.reserve is None
    plan = batch.note["epoch"]
    pulls = np.repeat(plan["pulled"], plan["times"])
    assert np.linalg.matrix_rank(SPHERE.features[pulls]) == 6


# ---- all at once and one by one --------------------------------------------------------------

QUESTIONS: dict[str, tuple[Problem, list[float]]] = {
    "best": (problem_of(), list(0.6 * SPHERE.features[3] @ SPHERE.features.T)),
    "epsilon": (problem_of(epsilon=0.3), list(0.6 * SPHERE.features[3] @ SPHERE.features.T)),
    "sets": (problem_of(fl.Arms.unstructured(5), top=2), [1.0, 0.9, 0.1, 0.0, 0.0]),
    "sigma per arm": (
        problem_of(fl.Arms.unstructured(3), sigma=(0.5, 1.0, 3.0)),
        [1.0, 0.3, 0.0],
    ),
    "min": (problem_of(fl.Arms.unstructured(3), objective="min"), [1.0, 0.3, 0.0]),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_results_one_by_one_say_what_they_say_together(name):
    problem, means = QUESTIONS[name]
    sigma = np.array(problem.sigmas)
    for seed in range(4):
        together, one = begun(problem, seed), begun(problem, seed)
        lab = lab_of(means, seed, sigma)
        while not together.verdict.decided:
            batch = together.next()
            order = np.repeat(np.arange(len(means)), batch.counts)
            results: Any = lab.sequence(order if batch.order is None else batch.order)
            together.record(batch, results)
            if batch.note["kind"] == "pilot":
                one.record(one.next(), results)
                continue
            # The epoch as `next` plans it, then pull by pull.
            plan, order = batch.note["epoch"], results.arm
            for t in range(batch.size):
                note = dict(batch.note) if t == 0 else {"kind": "test", "rest": 1}
                note["batch"] = one._course.past.recorded
                if t == 0:
                    note["epoch"] = {**plan, "later": order[1:].tolist()}
                single = BatchResults.of(len(means), order[t : t + 1], results.value[t : t + 1])
                one.record(Batch(single.count.copy(), note), single)
                if one.verdict.decided:
                    break
            # The planner numbers its draws by epochs, the noise of a pilot by batches.
            one._course.past.recorded = together._course.past.recorded
            assert one.verdict.decided == together.verdict.decided
            if one.verdict.decided:
                assert one.decided_at == together.decided_at
                assert one.verdict.winners == together.verdict.winners
                break
            a, b = state(one), state(together)
            assert a[:2] == b[:2]
            for x, y in zip(a[2:], b[2:], strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)


def test_a_look_decides_as_the_complete_batch_does():
    problem, means = QUESTIONS["best"]
    for seed in range(6):
        run, lab = begun(problem, seed=seed), lab_of(3.0 * np.array(means), seed)
        while True:
            batch = run.next(24)
            results, again = drawn(lab, batch), copy.deepcopy(run)
            run.record(batch, results)
            if batch.note["kind"] == "pilot":
                continue
            looks = next((n for n in range(1, 24) if again.look(*first(batch, results, n))), 0)
            if run.verdict.decided:
                break
            assert looks == 0
        before = again.verdict.pulls if looks else run.verdict.pulls
        assert before == run.decided_at
        assert again.verdict.winner == run.verdict.winner or not looks


def test_arms_that_are_nearly_the_same_do_not_make_a_run_endless():
    # The first rival of an arm may be its copy, from which it differs by a thousandth: the drifts
    # that the bets are laid out for are then a thousand times those against another rival.
    X = instances.unit_sphere(12, 3, 1)
    arms, theta = fl.Arms(np.vstack([X, 0.999 * X])), np.array([2.0, 1.0, -2.0])
    result = fl.simulate(arms, theta, runs=8, seed=3, sigma=1.0, max_pulls=2000)
    assert result.samples.max() < 300


# ---- lost results ----------------------------------------------------------------------------


def test_a_batch_whose_results_are_all_lost_changes_no_evidence():
    run, lab = begun(problem_of(), seed=2), lab_of(np.zeros(12), 2)
    batch = until_epoch(run, lab)
    run.record(batch, drawn(lab, batch))
    while run.until_end > 0:
        before = state(run)
        batch = run.next(3)
        none = BatchResults.of(12, np.empty(0, dtype=np.int64), np.empty(0))
        run.record(Batch(none.count.copy(), batch.note), none)
        assert state(run)[2:4] == before[2:4]
    assert run._course.past.batches == 1
    assert run._course.past.pulls == run.verdict.pulls


def test_what_is_lost_is_not_tested():
    # All pulls of a direction are lost: arms that differ in it are left alone.
    arms = fl.Arms.unstructured(3)
    run, lab = begun(problem_of(arms, noise="sub-gaussian"), seed=2), lab_of([9, 0, 0])
    batch = until_epoch(run, lab, 20)
    counts = batch.counts.copy()
    counts[2] = 0
    run.record(Batch(counts, batch.note), lab.batch(counts))
    log_m = run._course.claims.bets.log_m
    assert log_m[1] > 0.0
    assert log_m[2] == 0.0


def test_sums_that_belong_to_two_epochs_are_refused():
    run, batch, _ = spanning()
    before = state(run)
    sums = Statistics.of_batch(batch.counts, 0.0 * batch.counts, 0.0 * batch.counts)
    with pytest.raises(ProblemError, match="two epochs"):
        run.record(batch, sums)
    assert state(run) == before
    assert run.next(batch.size).note == batch.note


# ---- long races ------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "sub-gaussian"])
def test_a_long_race_takes_sums_and_no_list_of_its_pulls(noise):
    # Two arms that are tied for ever: 10^8 results, one by one, would be a gigabyte.
    run, lab = begun(problem_of(fl.Arms.unstructured(2), noise=noise, delta=1e-9)), lab_of([0, 0])
    while run.verdict.pulls < 10**8:
        batch = run.next()
        listed = 0 if batch.order is None else len(batch.order)
        assert max(listed, len(batch.note.get("epoch", {}).get("later", []))) <= LONGEST
        run.record(batch, drawn(lab, batch))
    assert batch.size > LONGEST
    assert run.until_test(batch) == 0


def test_a_pilot_that_says_a_race_will_be_long_is_spent():
    problem = problem_of()
    run, lab, r = begun(problem, seed=1), lab_of(np.zeros(12)), 6
    while "epoch" not in (batch := run.next()).note:
        run.record(batch, drawn(lab, batch))
    assert run.verdict.pulls == LONG * r
    kept = sum(step["pulls"] for step in batch.note["revealed"])
    assert kept == pytest.approx(run._past.reserve.kept)
    # All of it is known from now on and none of it is tested: the epoch spans by itself.
    assert information(SPHERE.coordinates, batch.counts.astype(float)).rank == r
    some = first(batch, drawn(lab, batch), 1)
    assert run.look(*some) is False
    run.record(*some)
    assert run._past.kept is None
    assert state(run)[2] == [0.0] * 12  # one result after it tells nothing yet


@pytest.mark.parametrize("sigma", [1.0, None])
def test_a_blank_that_alone_has_room_ends_no_run_with_an_error(sigma):
    # A control without any feature tells nothing; the others have had all their pulls.
    arms = fl.Arms([[0.0], [1.0], [2.0]], ["blank", "one", "two"])
    for seed, size in itertools.product(range(6), [None, 1, 5]):
        run = begun(problem_of(arms, sigma=sigma, max_pulls_per_arm=2), seed)
        lab, made = lab_of(np.zeros(3), seed), np.zeros(3, dtype=np.int64)
        while not run.verdict.decided and made.min() < 2:
            batch = run.next(size)
            run.record(batch, drawn(lab, batch))
            made += batch.counts
        assert made.max() <= 2
