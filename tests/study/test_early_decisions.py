"""Decisions inside a batch: what has arrived is enough, and the rest is not needed any more."""

import itertools
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ConflictError, DamagedError, NotNeededError
from finalist.study import Pull, Study
from finalist.study.exports import every_pull, everything
from tests.study.lab import Lab

ARMS = fl.Arms.unstructured(list("abcd"))
EASY = Lab(ARMS, np.array([2.0, 0.0, 0.1, -0.2]), sigma=0.6)
TIED = Lab(ARMS, np.array([1.0, 1.0, 0.0, 0.0]), sigma=0.6)


def create(where, name="one", **settings):
    return Study.create(where, name, ARMS, **{"sigma": 0.6, "seed": 3, **settings})


def state(study):
    """Everything that two handles of one study must agree on."""
    asked = study.ask()
    evidence = [one.tolist() for one in study.evidence()]
    return asked, study.status(forecast=False).to_dict(), every_pull(study), evidence


def decide_inside(study, lab=EASY, size=40):
    """Tell results one by one until the study is decided; return the batch and how many it took."""
    study.tell(lab.rewards(study.ask(4)))
    while True:
        batch = study.ask(size)
        for n, pull in enumerate(batch, 1):
            study.tell({pull.pull_id: lab.measure(pull)})
            if study.status(forecast=False).winner is not None:
                assert n < len(batch)
                return batch, n


def test_it_is_decided_inside_a_batch_and_the_rest_is_not_needed(where):
    study = create(where, budget=100)
    batch, n = decide_inside(study)
    status = study.status()
    assert status.winner == "a"
    made = status.pulls
    assert (status.unneeded, status.open_pulls) == (len(batch) - n, 0)
    assert f"after {made} measurements" in status.sentence
    assert f"{len(batch) - n} measurements were not needed." in str(status)
    assert status.budget_left == 100 - made
    assert study.ask().state == study.ask(worker="Ada").state == "decided"
    rows = every_pull(study)
    assert [row["state"] for row in rows].count("unneeded") == len(batch) - n
    last = study.history()[-1]
    assert (last["kind"], last["winner"], last["unneeded"]) == ("decided", 0, len(batch) - n)
    assert last["pulls"] == made


@pytest.mark.parametrize(
    "act",
    [
        lambda study, pull: study.void(pull, "broken"),
        lambda study, pull: study.missing(pull, "broken"),
        lambda study, pull: study.amend(pull, 1.0, "typing error"),
    ],
    ids=["void", "missing", "amend"],
)
def test_whoever_gives_up_a_pull_that_is_not_needed_is_told_so(where, act):
    study = create(where)
    batch, n = decide_inside(study)
    before = len(study.history())
    with pytest.raises(NotNeededError, match=r"not needed any more: .*a wins. There is nothing"):
        act(study, batch[n].pull_id)
    assert len(study.history()) == before
    assert study.tell({batch[n - 1].pull_id: EASY.measure(batch[n - 1])}) == 0  # told before


def test_results_that_come_after_the_decision_are_kept_and_change_no_verdict(where):
    study = create(where)
    batch, n = decide_inside(study)
    before, evidence, left = study.status(), study.evidence(), len(batch) - n
    rest = EASY.rewards(batch[n:])
    pull, reward = next(iter(rest.items()))
    assert study.tell({pull: reward}) == 1
    assert study.tell({batch[n + 1].pull_id: "failed"}) == 0  # there is nothing to measure again
    with pytest.raises(ConflictError, match="correct a wrong one"):
        study.tell({pull: reward + 1.0})
    with pytest.raises(ConflictError, match="decided"):
        study.amend(pull, 0.0, "second thoughts")
    assert study.tell(rest) == left - 1
    after = study.status()
    assert (after.winner, after.sentence) == (before.winner, before.sentence)
    assert (after.pulls, after.unneeded) == (before.pulls + left, 0)
    for old, new in zip(evidence, study.evidence(), strict=True):
        np.testing.assert_array_equal(old, new)
    means = {arm.name: arm.estimate for arm in after.arms}
    frame = study.to_frame().groupby("arm")["reward"].mean()
    assert means == pytest.approx(frame.to_dict())
    assert after.arms[0].high - after.arms[0].low < before.arms[0].high - before.arms[0].low
    kept = state(study)
    study.close()
    assert state(Study.open(where, "one")) == kept


def test_results_that_come_late_and_contradict_sigma_are_no_secret(where):
    study = create(where)
    batch, n = decide_inside(study)
    assert study.status(forecast=False).certain
    far = {pull.pull_id: EASY.measure(pull) + 30.0 * (-1) ** i for i, pull in enumerate(batch[n:])}
    study.tell(far)
    for handle in (study, Study.open(where, "one")):
        status = handle.status(forecast=False)
        assert (status.winner, status.certain, status.risk) == ("a", False, None)
        assert "scatter" in status.sentence
    assert state(Study.open(where, "one")) == state(study)


def test_a_reward_that_decided_cannot_be_amended(where):
    study = create(where)
    batch, n = decide_inside(study)
    with pytest.raises(ConflictError, match=r"its batch \d+ is decided on"):
        study.amend(batch[n - 1].pull_id, 0.0, "second thoughts")


def test_a_replay_is_as_the_study_was(where):
    study = create(where)
    decide_inside(study)
    before = state(study)
    study.close()
    assert state(Study.open(where, "one")) == before


def test_one_by_one_and_all_at_once_decide_alike(where):
    for seed in range(6):
        lab = Lab(ARMS, np.array([1.2, 0.0, 0.1, -0.2]), sigma=0.6, seed=seed)
        one = create(where, f"one {seed}", seed=seed)
        all_ = create(where, f"all {seed}", seed=seed)
        for size in itertools.cycle((5, 1, 17, 3)):
            batch = one.ask(size)
            assert batch.pulls == all_.ask(size).pulls
            if not batch:
                break
            for pull in batch:
                one.tell({pull.pull_id: lab.measure(pull)})
                if one.status(forecast=False).winner is not None:
                    break
            all_.tell(lab.rewards(batch))
        first, second = one.status(forecast=False), all_.status(forecast=False)
        assert first.winner == second.winner is not None
        assert second.pulls == first.pulls + first.unneeded
        assert second.unneeded == 0


def test_two_handles_take_turns(where):
    one, single = create(where), create(where, "two")
    other = Study.open(where, "one")
    for k in range(200):
        handle = (one, other)[k % 2]
        batch = single.ask(9)
        if not batch:
            break
        assert handle.ask(9).pulls == batch.pulls
        pull = batch[0]
        for study in (handle, single):
            study.tell({pull.pull_id: TIED.measure(pull) if k < 30 else EASY.measure(pull)})
    assert single.ask().state == "decided"
    for handle in (one, other, Study.open(where, "one")):
        found, expected = handle.status(forecast=False), single.status(forecast=False)
        assert found.to_dict() | {"name": ""} == expected.to_dict() | {"name": ""}


def test_a_handle_that_asked_before_learns_that_it_is_decided(where):
    one = create(where)
    one.tell(EASY.rewards(one.ask(4)))
    other = Study.open(where, "one")
    assert len(one.ask(80)) == 80
    batch = other.ask(40, worker="Bob")
    mine = one.ask(40, worker="Ada")
    assert mine
    for pull in mine:
        one.tell({pull.pull_id: EASY.measure(pull)})
        if one.ask(worker="Ada").state == "decided":
            break
    assert one.status(forecast=False).winner == "a"
    assert other.ask(40, worker="Bob").state == "decided"
    rows = every_pull(other)
    assert {row["state"] for row in rows if row["worker"] == "Bob"} == {"unneeded"}
    assert other.tell(EASY.rewards(batch)) == len(batch)  # Bob had measured them
    assert one.status(forecast=False).unneeded < len(batch)


def test_an_amended_reward_counts_where_it_came_and_may_decide(where):
    plain = create(where, "plain")
    needed: list[Pull] = []
    plain.tell(EASY.rewards(plain.ask(4)))
    batch = plain.ask(40)
    while plain.ask().state != "decided":
        needed.append(batch[len(needed)])
        plain.tell(EASY.rewards(needed[-1:]))
    rewards, wrong = EASY.rewards(needed), needed[-1]  # which decided
    sign = -1.0 if wrong.arm == "a" else 1.0
    for off in np.arange(0.5, 8.0, 0.5):  # so wrong that nothing is decided
        study = create(where, str(off))
        study.tell(EASY.rewards(study.ask(4)))
        assert study.ask(40).pulls == batch.pulls
        study.tell(rewards | {wrong.pull_id: rewards[wrong.pull_id] + sign * off})
        if study.ask().state == "open":
            break
    assert study.ask().state == "open"
    study.amend(wrong.pull_id, rewards[wrong.pull_id], "typing error")
    assert study.ask().state == "decided"
    first, second = (one.status(forecast=False).to_dict() for one in (study, plain))
    assert first | {"name": ""} == second | {"name": ""}
    assert state(Study.open(where, study.name)) == state(study)


def test_missing_pulls_wait_for_nobody(where):
    study = create(where)
    study.tell(EASY.rewards(study.ask(4)))
    batch = study.ask(40)
    study.missing(batch[0].pull_id, "spilled")
    again = study.void(batch[1].pull_id, "dropped")
    for pull in [*batch[2:], again]:
        study.tell({pull.pull_id: EASY.measure(pull)})
        if study.ask().state == "decided":
            break
    status = study.status(forecast=False)
    assert status.winner == "a"
    assert status.unneeded == 41 - 2 - (status.pulls - 4)
    assert state(Study.open(where, "one")) == state(study)


def test_the_pilot_alone_may_decide(where):
    """What is kept back of it is tested before the first pull of the next batch is made."""
    found = 0
    for seed in range(12):
        study = create(where, str(seed), seed=seed)
        lab = Lab(ARMS, np.array([9.0, 0.0, 0.1, -0.2]), sigma=0.6, seed=seed)
        while batch := study.ask(4):
            study.tell(lab.rewards(batch))
        assert study.status(forecast=False).winner == "a"
        last = study.history()[-1]
        if last.get("unneeded", 0) == 4:
            found += 1
            assert study.history()[-2]["kind"] == "issued"
            assert state(Study.open(where, str(seed))) == state(study)
            study.fork(f"fork {seed}", until=last["batch"])
            fork = Study.open(where, f"fork {seed}")
            assert fork.ask().state == "decided"
            assert fork.status(forecast=False).unneeded == 4
            assert (
                fork.history()[1:-1]
                == [  # what was drawn stays drawn
                    one | {"at": two["at"]}
                    for one, two in zip(study.history()[1:-1], fork.history()[1:-1], strict=True)
                ]
            )
    assert found > 0


def test_a_fork_from_before_the_batch_that_decided_has_it_open(where):
    study = create(where)
    batch, n = decide_inside(study)
    fork = study.fork("fork", until=batch.batch)
    again = fork.ask(40)
    assert [(p.pull_id, p.arm) for p in again] == [(p.pull_id, p.arm) for p in batch]
    for pull in again[:n]:
        fork.tell({pull.pull_id: EASY.measure(pull)})
    assert fork.status(forecast=False).winner == "a"
    assert fork.status(forecast=False).unneeded == len(batch) - n


def test_noise_of_our_own_is_drawn_once(where):
    study = create(where)
    study.tell(EASY.rewards(study.ask(4)))
    study.ask(3)
    note = study.history()[-1]["note"]
    assert note["revealed"]
    other = Study.open(where, "one")
    assert other.ask(3).pulls == study.ask(3).pulls
    assert everything(other)["events"][-1]["note"] == note
    assert study.fork("two", until=2).history()[-1]["note"] == note


def test_nothing_changes_while_a_test_is_under_way(where):
    study = create(where, sigma=None)
    for _ in range(40):
        study.tell(TIED.rewards(study.ask(1)))
        left = study.status(forecast=False).until_test
        if left:
            break
    assert left > 1
    before = study.history()
    with pytest.raises(ConflictError, match=rf"needs {left} more measurements.*ask\(size={left}\)"):
        study.withdraw("d")
    assert study.history() == before
    assert f"The next test is after {left} measurements." in study.status(forecast=False).sentence
    assert study.snapshot().fixed
    study.stop("lunch")  # at any time
    study.resume()
    batch = study.ask(left)
    assert len(batch) == left
    assert study.status(forecast=False).until_test == 0  # the batch ends it
    study.tell(TIED.rewards(batch))
    assert study.snapshot().fixed is None
    assert "All candidates are tested from here on" in study.withdraw("d")
    study.tell(Lab(ARMS, np.array([1.0, 1.0, 0.0, 0.0])).rewards(study.ask(5)))


def test_batches_have_the_size_that_is_asked_for(where):
    for sigma in (0.6, None):
        study = create(where, str(sigma), sigma=sigma)
        for size in (1, 2, 30, 1, 1, 7, 96, 1, 3):
            batch = study.ask(size)
            assert len(batch) == size
            study.tell(TIED.rewards(batch))
            if study.ask(1).state == "decided":
                break
            study.tell(TIED.rewards(study.ask(1)))
        assert state(Study.open(where, str(sigma))) == state(study)


def test_a_waiting_test_counts_what_is_open(where):
    study = create(where, sigma=None)
    while not (left := study.status(forecast=False).until_test):
        study.tell(TIED.rewards(study.ask(1)))
    while left > 1:
        batch = study.ask(1)
        assert study.status(forecast=False).until_test == left
        assert f"The test is {left - 1} measurement" in batch.words
        study.tell(TIED.rewards(batch))
        left -= 1
        assert study.status(forecast=False).until_test == left
    batch = study.ask(1)
    assert "The test is" not in batch.words


def test_a_budget_does_not_pay_for_what_is_not_needed(where):
    study = create(where, budget=90)
    study.tell(EASY.rewards(study.ask(4)))
    batch = study.ask(96)
    assert len(batch) == 86
    assert study.status(forecast=False).budget_left == 0
    for pull in batch:
        study.tell({pull.pull_id: EASY.measure(pull)})
        if study.ask().state == "decided":
            break
    status = study.status(forecast=False)
    assert status.budget_left == status.unneeded > 0


def test_a_log_that_ends_a_batch_early_without_a_winner_is_damaged(where):
    study = create(where)
    decide_inside(study)
    other = study.fork("two", until=2)
    number = len(other.ask(40))
    body: dict[str, Any] = {
        "batch": 2,
        "pulls": 4,
        "winner": None,
        "rejected": [],
        "unneeded": number,
    }
    for wrong in (body, body | {"winner": 0, "unneeded": number - 1}):
        with pytest.raises(DamagedError, match="not complete"), other._log.writing() as (w, now):
            other._log.append(w, now, "decided", wrong)
