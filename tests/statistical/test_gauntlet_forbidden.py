"""What would break the guarantee of the gauntlet, tried through its public interface."""

import dataclasses
import inspect

import numpy as np
import pytest

import finalist as fl
from finalist.errors import FinalistError
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.simulation.task import drawn
from finalist.strategies import Batch
from finalist.strategies.gauntlet import Gauntlet
from finalist.strategies.gauntlet.run import ChangeableRun
from tests import instances

ARMS = fl.Arms.unstructured(4)
DELTA = 0.05


def started(seed=0, batches=2, problem=None):
    """A run after some epochs, or at its very beginning, and the source of its rewards."""
    run = Gauntlet().start(problem or as_problem(ARMS, delta=DELTA, sigma=1.0), seed=seed)
    rewards = DrawnRewards(np.zeros(4), 1.0, "gaussian", np.random.default_rng(seed))
    while batches > 0 and ("epoch" not in run.next().note or run._past.batches < batches):
        batch = run.next()
        run.record(batch, drawn(rewards, batch))
    return run, rewards


def state(run):
    evidence = run.evidence()
    return run.verdict, evidence.share.tolist(), evidence.rival.tolist(), run.next().counts.tolist()


# ---- choices that look at the batch they are for -----------------------------------------


def test_a_batch_is_chosen_without_its_rewards():
    # Rewards have one way in, together with a batch that is complete; sizes are plain numbers.
    assert list(inspect.signature(ChangeableRun.next).parameters) == ["self", "size"]
    assert list(inspect.signature(ChangeableRun.record).parameters) == ["self", "batch", "rewards"]
    public = {name for name in dir(ChangeableRun) if not name.startswith("_")}
    looks = {"verdict", "evidence", "interval", "words", "purpose", "least_size", "own_size"}
    # `inform` is refused after the first batch, `changed` spends a level of its own.
    # `follow` takes the decision of a log, which calls nothing certain from then on. `look` may
    # end a run, and otherwise changes nothing.
    looks |= {"decided_at", "until_end", "until_test", "leads", "model", "waits", "rest"}
    # `rebudget` is refused by a study while a pilot that is seen is not tested.
    assert public == looks | {
        "next", "record", "look", "inform", "changed", "lose", "follow", "rebudget",
    }  # fmt: skip
    run, rewards = started()
    with pytest.raises(FinalistError, match="size is"):
        run.next(rewards.batch(run.next().counts))


def test_what_was_issued_does_not_change_when_rewards_are_known():
    run, rewards = started()
    batch = run.next()
    rewards.batch(batch.counts)
    np.testing.assert_array_equal(run.next().counts, batch.counts)
    assert run.next().note == batch.note
    with pytest.raises(ValueError, match="read-only"):
        batch.counts[0] += 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.counts = np.ones(4, dtype=np.int64)


def test_the_issued_batch_is_independent_of_how_often_it_is_asked_for():
    # No redrawing of the random part of the design until it pleases.
    run, _ = started()
    counts = {tuple(run.next().counts.tolist()) for _ in range(5)}
    assert len(counts) == 1


# ---- batches that are cut short or changed -----------------------------------------------


@pytest.mark.parametrize("change", ["fewer", "one arm less", "more", "elsewhere", "none"])
@pytest.mark.parametrize("batches", [0, 2], ids=["pilot", "test"])
def test_other_rewards_than_those_of_the_batch_are_refused(change, batches):
    run, rewards = started(batches=batches)
    batch = run.next()
    counts = batch.counts.copy()
    if change == "fewer":
        counts[int(counts.argmax())] -= 1
    elif change == "one arm less":
        counts[int(counts.argmax())] = 0
    elif change == "more":
        counts[0] += 1
    elif change == "elsewhere":
        counts += [-1, 1, 0, 0]
    else:
        counts[:] = 0
    values = rewards.batch(counts) if counts.any() else Statistics.empty(4)
    before = state(run)
    with pytest.raises(FinalistError, match="record all of them"):
        run.record(batch, values)
    assert state(run) == before


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_rewards_are_not_dropped_because_of_their_value(lost):
    run, _ = started()
    batch, values = run.next(), Statistics.empty(4)
    picks = np.repeat(np.arange(4), batch.counts)
    pulled = np.where(np.arange(len(picks)) == 3, lost, 0.0)
    with pytest.raises(
        FinalistError, match=r"reward for pull 3 is (nan|inf), which is not a finite number"
    ):
        values.add_many(picks, pulled)
    keep = np.isfinite(pulled)
    values.add_many(picks[keep], pulled[keep])
    with pytest.raises(FinalistError, match="record all of them"):
        run.record(batch, values)


@pytest.mark.parametrize("batches", [0, 2], ids=["pilot", "test"])
def test_a_batch_is_recorded_once(batches):
    run, rewards = started(batches=batches)
    batch = run.next()
    values = rewards.batch(batch.counts)
    run.record(batch, values)
    before = state(run)
    with pytest.raises(FinalistError):
        run.record(batch, values)
    assert state(run) == before


def test_batches_are_recorded_in_the_order_of_issue():
    run, rewards = started()
    old = run.next(8)
    new = run.next(12)
    run.record(new, rewards.batch(new.counts))
    with pytest.raises(FinalistError):
        run.record(old, rewards.batch(old.counts))


@pytest.mark.parametrize("missing", ["everything", "batch", "kind", "rest", "epoch", "rivals"])
def test_a_batch_without_its_note_is_refused(missing):
    run, rewards = started()
    batch, before = run.next(), state(run)
    left = {key: value for key, value in batch.note.items() if missing not in (key, "everything")}
    if missing == "rivals":
        left["epoch"] = {**left["epoch"], "attack": {"leader": 0}}
    with pytest.raises(FinalistError):
        run.record(Batch(batch.counts.copy(), left), rewards.batch(batch.counts))
    assert state(run) == before


@pytest.mark.parametrize("rivals", [[99, 0, 0, 0], [1, 0], [1, 0, 0, 0, 0]], ids=str)
def test_a_note_that_makes_no_sense_is_refused_and_changes_nothing(rivals):
    run, rewards = started()
    batch = run.next()
    values, before = rewards.batch(batch.counts), state(run)
    plan = batch.note["epoch"]
    plan = {**plan, "attack": {**plan["attack"], "rivals": rivals}}
    with pytest.raises(FinalistError):
        run.record(Batch(batch.counts.copy(), {**batch.note, "epoch": plan}), values)
    assert state(run) == before
    run.record(batch, values)


# ---- the pilot, and delta ----------------------------------------------------------------


@pytest.mark.parametrize("noise", [None, "sub-gaussian"])
@pytest.mark.parametrize("size", [None, 1, 3, 16, 200])
def test_a_pilot_is_no_evidence(size, noise):
    # What is shown of it chooses; what is kept back is tested with the first epoch, not before.
    run = Gauntlet().start(as_problem(ARMS, delta=DELTA, sigma=1.0, noise=noise))
    rewards = DrawnRewards(np.array([99.0, 0, 0, 0]), 1.0, "gaussian", np.random.default_rng(0))
    while (batch := run.next(size)).note["kind"] == "pilot":
        assert "epoch" not in batch.note
        run.record(batch, drawn(rewards, batch))
        assert run.evidence().share.tolist() == [0.0] * 4
        assert len(run.verdict.survivors) == 4
    assert run.verdict.pulls >= (4 if noise is None else 8)


def test_delta_cannot_be_raised_later():
    problem = as_problem(ARMS, delta=1e-3, sigma=1.0)
    run, _ = started(problem=problem)
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.delta = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        Gauntlet().growth = 1.0
    for name in ("problem", "delta"):
        assert not hasattr(run, name)
    problem.with_(delta=0.5)  # another problem; the run keeps its own
    share = run.evidence().share.copy()
    run.evidence().share[:] = 1.0
    np.testing.assert_array_equal(run.evidence().share, share)
    with pytest.raises(AttributeError):
        run.verdict = None


# ---- many arms ---------------------------------------------------------------------------


def test_the_best_of_many_combinations_survives():
    arms, runs, rejected = fl.Arms(instances.one_hot_factorial((12, 12))), 40, 0
    for seed in range(runs):
        theta = 0.3 * arms.features[np.random.default_rng(seed).integers(len(arms))]
        means = arms.means(theta)
        rewards = DrawnRewards(means, 1.0, "gaussian", np.random.default_rng([7, seed]))
        run = Gauntlet().start(as_problem(arms, delta=DELTA, sigma=1.0), seed=seed)
        while run._past.batches < 2 and not run.verdict.decided:
            batch = run.next()
            run.record(batch, drawn(rewards, batch))
        rejected += int(run.evidence().rejected[int(means.argmax())])
    assert exact_lower_bound(rejected, runs, 0.999) <= DELTA
