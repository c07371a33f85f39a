"""A study on disk: what it promises about asking, telling, and coming back."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import finalist as fl
from finalist.errors import (
    ConflictError,
    FileFormatError,
    FinalistError,
    NotYetSupportedError,
    ProblemError,
    RewardError,
    StudyError,
    UnknownArmError,
    UnknownStudyError,
)
from finalist.problem import UNSET
from finalist.problem.rules import rules_of
from finalist.study import Study, studies
from finalist.study.replay import Replay
from finalist.study.storage.database import Database
from tests.study.lab import ARMS, Lab, finish

ANY = ["gauntlet", "xy-adaptive", "g", "xy", "uniform", fl.FullyAdaptive(2.0)]
LAB = Lab()
HARD = Lab(theta=np.array([1.0, 0.3, 0.0]))  # a and d are nearly equal


def create(where, name="one", arms=ARMS, **settings):
    return Study.create(where, name, arms, **{"sigma": 0.6, "seed": 7, **settings})


def ids(batch):
    return [pull.pull_id for pull in batch]


# ---- beginning and coming back -------------------------------------------------------------


def test_a_study_finds_the_best_arm(where):
    study = create(where)
    assert study.status().verdict == "continue"
    finish(study, LAB)
    status = study.status()
    assert (status.verdict, status.winner) == ("winner", "a")
    assert status.survivors == ("a",)
    assert "at most 0.05" in status.sentence
    empty = study.ask()
    assert (len(empty), bool(empty), empty.state) == (0, False, "decided")
    assert study.tell({}) == 0


def test_it_comes_back_as_it_was(where):
    study = create(where, metadata={"who": "Ada"}, epsilon=0.05, budget=5000)
    for _ in range(4):
        study.tell(HARD.rewards(study.ask(9)))
    part = study.ask(9)
    study.tell({part[0].pull_id: 1.0})
    before = study.status().to_dict()
    study.close()
    again = Study.open(where, "one")
    assert again.status().to_dict() == before
    assert again.metadata == {"who": "Ada"}
    assert again.settings["seed"] == 7
    assert ids(again.ask(9)) == ids(part)[1:]
    assert again.arms == ARMS
    other = create(where, "two", metadata={"who": "Ada"}, epsilon=0.05, budget=5000)
    for _ in range(4):
        other.tell(HARD.rewards(other.ask(9)))
    assert [p.arm for p in other.ask(9)] == [p.arm for p in part]


@pytest.mark.parametrize("strategy", ANY)
def test_any_strategy_serves_a_study_and_agrees_with_itself_alone(where, strategy):
    arms = fl.Arms.unstructured(["p", "q"])
    lab = Lab(arms, np.array([2.0, 0.0]), 0.5)
    study = Study.create(where, "one", arms, strategy, sigma=0.5, seed=3)
    finish(study, lab, size=4)
    assert study.status().winner == "p"
    assert Study.open(where, "one").status().to_dict() == study.status().to_dict()


def test_duplicates_and_names_of_features_survive(where):
    frame = pd.DataFrame({"name": ["x", "y", "z"], "dose": [1.0, 1.0, 2.0], "n": [0.0, 0.0, 1.0]})
    study = create(where, arms=fl.Arms(frame))
    again = Study.open(where, "one").arms
    assert again == study.arms
    assert again.aliases == (("x", "y"), ("z",))
    assert again.feature_names == ("dose", "n")


def test_opening_with_other_settings_is_refused(where):
    create(where, delta=0.1)
    Study.open(where, "one", delta=0.1, sigma=0.6, arms=ARMS, seed=7)
    for other in ({"delta": 0.05}, {"sigma": 1.0}, {"seed": 8}, {"strategy": "g"}, {"budget": 9}):
        with pytest.raises(StudyError, match="other settings"):
            Study.open(where, "one", **other)
    with pytest.raises(StudyError, match="other arms"):
        Study.open(where, "one", arms=fl.Arms.unstructured(4))
    with pytest.raises(StudyError, match="sgima"):
        Study.open(where, "one", sgima=1.0)
    with pytest.raises(StudyError, match="'goal' is not an argument"):
        Study.open(where, "one", goal=fl.Best())
    Study.open(where, "one", seed=None, metadata=None)  # drawn, whatever it was; empty


def test_names(where):
    create(where, "alloys")
    create(where, "zinc; DROP TABLE studies--")
    assert studies(where) == ["alloys", "zinc; DROP TABLE studies--"]
    with pytest.raises(StudyError, match="alloys"):
        create(where, "alloys")
    with pytest.raises(UnknownStudyError, match="alloys"):
        Study.open(where, "aloys")
    for bad in ("", " ", " x", "a\0b", 5, None, "x" * 20_000):
        with pytest.raises(StudyError):
            create(where, bad)
    Study.open(where, "alloys").delete()
    assert studies(where) == ["zinc; DROP TABLE studies--"]


def test_what_cannot_be_a_study_is_refused_before_anything_is_written(where):
    cases: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"strategy": "best"}, ProblemError),
        ({"strategy": "xy-oracle"}, ProblemError),
        ({"strategy": "g", "sigma": None}, NotYetSupportedError),
        ({"strategy": "g", "max_pulls_per_arm": 5}, NotYetSupportedError),
        ({"delta": 2}, ProblemError),
        ({"budget": 0}, ProblemError),
        ({"seed": -1}, StudyError),
        ({"seed": 2**63}, StudyError),
        ({"metadata": [1]}, StudyError),
        ({"metadata": {"x": {1, 2}}}, StudyError),
        ({"arms": [[1.0]]}, ProblemError),
    ]
    for words, error in cases:
        with pytest.raises(error):
            create(where, **words)
    create(where)
    assert studies(where) == ["one"]


# ---- asking --------------------------------------------------------------------------------


def test_the_open_batch_comes_back_until_it_is_complete(where):
    study = create(where)
    batch = study.ask(10)
    assert len(batch) == 10
    assert ids(study.ask(10)) == ids(batch) == ids(Study.open(where, "one").ask())
    study.tell({batch[3].pull_id: 1.0})
    assert ids(study.ask()) == [i for i in ids(batch) if i != batch[3].pull_id]
    assert study.status().batches == 0
    study.tell(LAB.rewards(study.ask()))
    assert study.status().batches == 1
    assert ids(study.ask(10))[0] == 11


def test_a_plate_is_a_batch_and_so_is_a_single_pull(where):
    study = create(where)
    study.tell(HARD.rewards(study.ask(12)))
    plate = study.ask(96)
    assert (len(plate), plate.left) == (96, 96)
    study.tell(HARD.rewards(plate))
    for batches in range(2, 8):
        assert study.status(forecast=False).batches == batches
        one = study.ask(1)
        assert (len(one), one.left) == (1, 1)
        assert ids(study.ask(1)) == ids(one)
        study.tell(HARD.rewards(one))


def test_by_rules_2_single_pulls_are_parts_of_a_batch(where):
    problem = fl.Problem(ARMS, noise=fl.Gaussian(0.6), rules=rules_of(2))
    study = Study.create(where, "one", problem, seed=7)
    study.tell(HARD.rewards(study.ask(12)))  # the pilot: 4 times the rank
    seen = []
    while study.status(forecast=False).batches == 1:
        one = study.ask(1)
        assert len(one) == 1
        assert ids(study.ask(1)) == ids(one)
        seen += ids(one)
        study.tell(HARD.rewards(one))
    assert len(seen) >= 9  # a block that can be tested, not one pull
    assert seen == sorted(set(seen))


def test_rows_are_in_random_order_and_reproducible(where):
    arms = [p.arm for p in create(where).ask(40)]
    assert arms != sorted(arms)
    assert arms == [p.arm for p in create(where, "two").ask(40)]
    assert arms != [p.arm for p in create(where, "three", seed=8).ask(40)]


def test_workers_share_a_batch_and_never_a_pull(where):
    study = create(where)
    first = study.ask(worker="Ada")
    second = study.ask(worker="Bob")
    assert first
    assert second
    assert not set(ids(first)) & set(ids(second))
    assert {p.worker for p in first} == {"Ada"}
    assert ids(study.ask(worker="Ada")) == ids(first)
    assert ids(Study.open(where, "one").ask(worker="Bob")) == ids(second)
    everything = study.ask()
    assert set(ids(first) + ids(second)) <= set(ids(everything))
    done = set()
    for _ in range(40):
        for name in ("Ada", "Bob", "Cleo"):
            part = study.ask(worker=name)
            if part.batch != first.batch:
                break
            done |= set(ids(part))
            study.tell(LAB.rewards(part))
    assert done == set(ids(everything))


def test_when_others_have_everything_a_worker_waits(where):
    study = create(where)
    total = len(study.ask())
    got = study.ask(total, worker="Ada")
    assert len(got) == total
    waiting = study.ask(worker="Bob")
    assert (waiting.state, len(waiting), waiting.left) == ("waiting", 0, total)
    study.tell(LAB.rewards(got))
    assert study.ask(worker="Bob").state == "open"


def test_workers_with_plates_share_a_block(where):
    study = create(where)
    first, none = study.ask(4, worker="Ada"), study.ask(4, worker="Bob")
    assert (len(first), none.state) == (4, "waiting")  # nobody knew of Bob
    study.tell(HARD.rewards(first))
    for number in range(2, 5):
        first, second = study.ask(4, worker="Ada"), study.ask(4, worker="Bob")
        assert len(first) == len(second) == 4
        assert first.batch == second.batch == number
        assert not set(ids(first)) & set(ids(second))
        study.tell(HARD.rewards(study.snapshot().batch))


def test_a_budget_ends_a_study_with_the_set(where):
    study = create(where, budget=25, arms=fl.Arms.unstructured(["a", "b"]))
    lab = Lab(study.arms, np.array([0.0, 0.0]))
    while batch := study.ask(10):
        study.tell(lab.rewards(batch))
    assert batch.state == "budget"
    status = study.status()
    assert (status.verdict, status.pulls, status.budget_left) == ("undecided", 25, 0)
    assert "budget of 25" in status.sentence
    assert status.survivors == ("a", "b")


def test_arms_that_run_out(where):
    study = create(where, max_pulls_per_arm=6, arms=fl.Arms.unstructured(["a", "b"]))
    lab = Lab(study.arms, np.array([0.0, 0.0]))
    while batch := study.ask():
        study.tell(lab.rewards(batch))
    assert batch.state == "exhausted"
    assert [arm.pulls for arm in study.status().arms] == [6, 6]
    assert "6 measurements" in study.status().sentence


def test_stopping_is_allowed_at_any_time_and_so_is_going_on(where):
    study = create(where)
    study.tell(LAB.rewards(study.ask()))
    status = study.stop("the harvest is over")
    assert status.verdict == "undecided"
    assert "the harvest is over" in status.sentence
    assert study.ask().state == "stopped"
    study.resume()
    assert study.ask().state == "open"
    with pytest.raises(ConflictError, match="not stopped"):
        study.resume()


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "9"])
def test_sizes_that_make_no_sense(where, size):
    with pytest.raises(StudyError, match="size"):
        create(where).ask(size)


# ---- telling -------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.6, None])
def test_parts_do_not_matter_nor_does_the_order_if_sigma_is_unknown(where, sigma):
    one, two = create(where, sigma=sigma), create(where, "two", sigma=sigma)
    rng = np.random.default_rng(0)
    for _ in range(3):
        batch = one.ask(12)
        assert ids(batch) == ids(two.ask(12))
        rewards = HARD.rewards(batch)
        one.tell(dict(reversed(rewards.items())))  # those of one call count as they were issued
        for pull in ids(batch) if sigma else rng.permutation(ids(batch)):
            two.tell({int(pull): rewards[int(pull)]})
    a, b = one.status(), two.status()
    assert a.arms == b.arms
    assert a.sentence == b.sentence
    assert [p.arm for p in one.ask()] == [p.arm for p in two.ask()]


def test_telling_again_changes_nothing_and_something_else_is_refused(where):
    study = create(where)
    batch = study.ask(5)
    first = batch[0].pull_id
    assert study.tell({first: 1.25}) == 1
    assert study.tell({first: 1.25}) == 0
    events = len(study.history())
    with pytest.raises(ConflictError, match="amend"):
        study.tell({first: 1.5, batch[1].pull_id: 0.0})
    assert len(study.history()) == events
    assert study.to_frame().reward.notna().sum() == 1


def test_messages_name_numbers_as_people_write_them(where):
    study = create(where)
    pull = study.ask(12)[0].pull_id
    study.tell({pull: 0.5})
    with pytest.raises(ConflictError, match=f"measurement {pull} has the result 0.5 and not 0.75;"):
        study.tell({pull: 0.75})
    with pytest.raises(StudyError, match="there is no measurement 99 in this study"):
        study.void(np.int64(99), "lost")


@pytest.mark.parametrize(
    "reward", [float("nan"), float("inf"), "1", True, None, 1e200, 10**400], ids=repr
)
def test_what_is_no_reward_is_refused_and_nothing_is_stored(where, reward):
    study = create(where)
    batch = study.ask(5)
    events = len(study.history())
    with pytest.raises(FinalistError):
        study.tell({batch[0].pull_id: 1.0, batch[1].pull_id: reward})
    assert len(study.history()) == events
    assert study.status().pulls == 0


def test_unknown_pulls_are_refused(where):
    study = create(where)
    with pytest.raises(StudyError, match="nothing has been asked"):
        study.tell({1: 0.5})
    study.ask(5)
    for wrong in (0, 6, -1, 10**12):
        with pytest.raises(StudyError, match="1 to 5"):
            study.tell({wrong: 0.5})


def test_bernoulli_rewards_are_zero_or_one(where):
    study = create(where, sigma=UNSET, noise="bernoulli")
    batch = study.ask(5)
    with pytest.raises(RewardError, match="Bernoulli"):
        study.tell({batch[0].pull_id: 0.5})
    study.tell({batch[0].pull_id: 1})


def test_a_call_that_is_repeated_counts_once(where):
    study = create(where)
    batch = study.ask(5)
    rewards = LAB.rewards(batch)
    assert study.tell(rewards, client_id="call 1") == 5
    assert study.tell(rewards, client_id="call 1") == 0
    with pytest.raises(ConflictError, match="call 1"):
        study.tell({batch[0].pull_id: 9.0}, client_id="call 1")
    assert study.tell({}, client_id="call 2") == 0


def test_the_order_of_a_repeated_call_does_not_matter(where):
    study = create(where)
    rewards = LAB.rewards(study.ask(4))
    assert study.tell(rewards, client_id="x") == 4
    assert study.tell(dict(reversed(rewards.items())), client_id="x") == 0


def test_tables_and_files(where, tmp_path):
    study = create(where)
    batch = study.ask(6)
    frame = batch.to_frame()
    frame["reward"] = [LAB.measure(pull) for pull in batch]
    frame["weather"] = "wet"
    assert study.tell(frame.iloc[:2]) == 2
    path = tmp_path / "plate.csv"
    batch.to_csv(path)
    table = pd.read_csv(path)
    table["reward"] = frame["reward"]
    table.to_csv(path, index=False)
    assert study.tell(path) == 4
    assert "wet" in study.to_frame().note[0]
    mixed = study.ask(6).to_frame()
    mixed["reward"], mixed["arm"] = 0.0, "d"
    with pytest.raises(RewardError, match="mixed up"):
        study.tell(mixed)


# ---- lost, wrong, late ----------------------------------------------------------------------


def test_a_void_pull_is_issued_again_in_the_same_batch(where):
    study = create(where)
    batch = study.ask(8)
    lost = batch[2]
    again = study.void(lost.pull_id, "the tube broke")
    assert (again.pull_id, again.arm) == (9, lost.arm)
    assert set(ids(study.ask())) == {*ids(batch), 9} - {lost.pull_id}
    with pytest.raises(ConflictError, match="void"):
        study.tell({lost.pull_id: 1.0})
    with pytest.raises(ConflictError, match="void already"):
        study.void(lost.pull_id, "again")
    study.tell(LAB.rewards(study.ask()))
    assert study.status().batches == 1
    with pytest.raises(ConflictError, match="fork"):
        study.void(batch[0].pull_id, "too late")
    with pytest.raises(StudyError, match="reason"):
        study.void(9, "")


def test_what_has_been_seen_is_not_drawn_again(where):
    study = create(where)
    batch = study.ask(8)
    study.tell({batch[0].pull_id: 99.0})
    study.missing(batch[1].pull_id, "lost")
    for pull in batch[:2]:
        with pytest.raises(ConflictError, match="not lost"):
            study.void(pull.pull_id, "it looks odd")
    assert study.status().pulls == 1


def test_missing_pulls_complete_a_batch(where):
    study = create(where)
    batch = study.ask(12)
    study.tell(LAB.rewards(batch[:-1]))
    assert study.status().batches == 0
    study.missing(batch[-1].pull_id, "eaten by deer")
    study.missing(batch[-1].pull_id, "told twice")
    status = study.status()
    assert (status.batches, status.pulls) == (1, 11)
    assert any("missing" in words for words in status.assumptions)
    with pytest.raises(ConflictError):
        study.tell({batch[-1].pull_id: 1.0})
    with pytest.raises(ConflictError):
        study.missing(batch[0].pull_id, "has a result")
    finish(study, LAB)
    assert study.status().winner == "a"


@pytest.mark.parametrize("strategy", ANY)
def test_a_batch_of_which_nothing_is_left(where, strategy):
    study = create(where, strategy=strategy)
    for _ in range(3):
        batch = study.ask(4)
        for pull in batch:
            study.missing(pull.pull_id, "flooded")
    assert study.status().pulls == 0
    study.tell(LAB.rewards(study.ask(4)))
    assert Study.open(where, "one").status().to_dict() == study.status().to_dict()


def test_lost_pulls_use_up_an_arm(where):
    study = create(where, arms=fl.Arms.unstructured(["a", "b"]), max_pulls_per_arm=3)
    while batch := study.ask():
        for pull in batch:
            study.missing(pull.pull_id, "lost")
    assert batch.state == "exhausted"
    assert len(study.to_frame()) == 6


def test_giving_up_pulls_after_a_look_is_said_aloud(where):
    study = create(where)
    batch = study.ask(12)
    study.missing(batch[0].pull_id, "never arrived")
    study.tell(LAB.rewards(batch[1:]))
    assert not any("given up" in words for words in study.status().warnings)
    batch = study.ask(12)
    study.tell({pull.pull_id: 0.0 for pull in batch[:5]})
    for pull in batch[5:]:
        study.missing(pull.pull_id, "no time")
    assert any("7 measurements were given up" in words for words in study.status().warnings)


def test_a_batch_that_was_looked_at_stays_so_when_its_reward_is_amended(where):
    study = create(where)
    first, second, *_ = study.ask(12)
    study.tell({first.pull_id: 1.0})
    study.missing(second.pull_id, "lost")
    study.amend(first.pull_id, 1.5, "a typing error")
    assert any("1 measurement was given up" in words for words in study.status().warnings)
    assert Study.open(where, "one").status().warnings == study.status().warnings


def test_amending_leaves_a_trace_and_ends_with_the_decision(where):
    study = create(where)
    batch = study.ask(8)
    pull = batch[0].pull_id
    with pytest.raises(ConflictError, match="tell"):
        study.amend(pull, 1.0, "not told yet")
    study.tell({pull: 100.0})
    study.amend(pull, 1.0, "a decimal point")
    assert study.to_frame().reward[0] == 1.0
    event = study.history()[-1]
    assert (event["kind"], event["old"], event["reason"]) == ("amended", 100.0, "a decimal point")
    assert Study.open(where, "one").to_frame().reward[0] == 1.0
    study.tell({pull: 1.0})
    study.tell(LAB.rewards(study.ask()))
    with pytest.raises(ConflictError, match=r"fork\(new, until=1\)"):
        study.amend(pull, 2.0, "too late")


def test_a_fork_starts_before_the_batch(where):
    study = create(where)
    for _ in range(3):
        study.tell(HARD.rewards(study.ask(12)))
    fork = study.fork("again", until=2)
    batch = fork.ask()
    assert (batch.batch, ids(batch)) == (2, list(range(13, 25)))
    assert fork.status().batches == 1
    fork.tell(HARD.rewards(batch))
    assert [p.arm for p in fork.ask(12)] == study.to_frame().arm[24:36].tolist()
    assert fork.history()[0]["fork_of"] == "one"
    assert study.status().batches == 3
    for wrong in (0, 9, "x"):
        with pytest.raises(StudyError, match="no batch"):
            study.fork("third", until=wrong)
    with pytest.raises(StudyError, match="again"):
        study.fork("again", until=1)


def test_a_fork_has_a_life_of_its_own(where):
    study = create(where)
    study.tell(HARD.rewards(study.ask(12)))
    with study.fork("f", until=1) as fork:
        fork.ask()
    assert study.status().batches == 1
    study.withdraw("c")
    again = study.fork("g", until=1)
    again.tell(HARD.rewards(again.ask()))
    again.withdraw("b")
    assert again.arms.names == ("a", "c", "d")
    with pytest.raises(StudyError):
        study.fork("h", until=True)


def test_notes_of_rewards_are_forked_too(where):
    study = create(where)
    frame = study.ask(12).to_frame().assign(reward=0.5, weather="wet")
    study.tell(frame)
    study.ask(12)
    assert "wet" in study.fork("f", until=2).to_frame().note[0]


def test_a_strategy_gets_the_single_results_in_the_order_in_which_they_came(where, monkeypatch):
    seen = []

    def record(self, batch, rewards):
        seen.append(rewards)
        kept(self, batch, rewards)

    kept = Replay.record
    monkeypatch.setattr(Replay, "record", record)
    study = create(where)
    batch = study.ask(12)
    later, first = batch[:7], batch[7:]
    study.missing(first[0].pull_id, "spilled")
    again = study.void(first[1].pull_id, "dropped")
    study.tell({pull.pull_id: float(pull.pull_id) for pull in (*first[:1:-1], again)})
    study.amend(first[3].pull_id, -1.0, "typing error")
    study.tell({pull.pull_id: float(pull.pull_id) for pull in later})
    arms = {pull.pull_id: ARMS.index(pull.arm) for pull in (*batch, again)}
    came = [*ids(first[2:]), again.pull_id, *ids(later)]
    values = [-1.0 if number == first[3].pull_id else float(number) for number in came]
    Study.open(where, "one").status(forecast=False)  # replays the log
    assert len(seen) == 2
    for results in seen:
        assert results.arm.tolist() == [arms[number] for number in came]
        assert results.value.tolist() == values
        assert results.count.tolist() == np.bincount(results.arm, minlength=4).tolist()
    assert seen[0].mean.tolist() == seen[1].mean.tolist()


# ---- other arms, earlier measurements ---------------------------------------------------------


def test_earlier_measurements_steer_and_are_not_tested(where):
    study = create(where)
    rows = [("a", 1.0), ("b", 0.9), ("c", -3.0), ("d", -3.0)] * 30
    assert study.import_history(pd.DataFrame(rows, columns=["arm", "reward"])) == 120
    assert study.status().pulls == 0
    assert any("120 earlier" in words for words in study.status().assumptions)
    finish(study, LAB)
    assert study.status().winner == "a"
    with pytest.raises(ConflictError, match="before"):
        study.import_history(rows)
    other = create(where, "two")
    with pytest.raises(UnknownArmError):
        other.import_history([("zzz", 1.0)])
    with pytest.raises(RewardError):
        other.import_history([("a", float("nan"))])
    with pytest.raises(RewardError):
        other.import_history([])
    with pytest.raises(StudyError, match="the default one can"):
        create(where, "three", strategy="g").import_history(rows)


def test_earlier_measurements_in_a_file(where, tmp_path):
    (tmp_path / "old.csv").write_text("day,Arm,reward\n1,a,0.5\n2,b,oops\n")
    study = create(where)
    with pytest.raises(FileFormatError, match=r"old\.csv, line 3, column 'reward': 'oops' is not"):
        study.import_history(tmp_path / "old.csv")
    (tmp_path / "old.csv").write_text("day,Arm,reward\n1,a,0.5\n2,b,1\n3,c,\n")  # c: no result
    assert study.import_history(tmp_path / "old.csv") == 2


def test_one_table_of_earlier_measurements(where):
    study = create(where)
    study.import_history([("a", 1.0)])
    with pytest.raises(ConflictError, match="one table"):
        study.import_history([("b", 1.0)])
    coin = Study.create(where, "coin", ARMS, noise="bernoulli")
    with pytest.raises(RewardError, match="row 2"):
        coin.import_history([("a", 1.0), ("b", 7.3)])


def test_earlier_measurements_are_named_by_their_rows(where):
    study = create(where)
    with pytest.raises(RewardError, match="row 2, column 'reward': nan is not a finite"):
        study.import_history([("a", 1.0), ("b", float("nan"))])
    study.import_history([("a", 1.0)])
    with pytest.raises(ConflictError, match="1 earlier measurement is in already"):
        study.import_history([("a", 1.0)])


def test_withdrawing_begins_the_tests_again_and_says_what_it_costs(where):
    study = create(where)
    for _ in range(3):
        study.tell(HARD.rewards(study.ask(12)))
    words = study.withdraw("a")
    assert "0.075" in words
    assert study.arms.names == ("b", "c", "d")
    status = study.status()
    assert status.risk == pytest.approx(0.075)
    assert all(arm.evidence == 0 for arm in status.arms)
    assert status.pulls == 36
    assert Study.open(where, "one").status().to_dict() == status.to_dict()
    finish(study, HARD)
    assert study.status().winner == "d"
    assert "0.075" in study.status().sentence
    assert set(study.to_frame().arm) <= set("abcd")


def test_adding_arms(where):
    study = create(where)
    for _ in range(3):
        study.tell(HARD.rewards(study.ask(12)))
    before = {arm.name: arm.evidence for arm in study.status().arms}
    better = fl.Arms([[2.0, 0.0, 0.5]], ["e"])
    assert "0.075" in study.add(better)
    after = {arm.name: arm.evidence for arm in study.status().arms}
    assert after == {**before, "e": 0.0}
    lab = Lab(study.arms)
    finish(study, lab)
    assert study.status().winner == "e"
    assert Study.open(where, "one").status().to_dict() == study.status().to_dict()
    for wrong in (fl.Arms([[1.0, 2.0, 3.0]], ["a"]), fl.Arms([[1.0]], ["f"]), "f"):
        with pytest.raises((StudyError, ConflictError)):
            create(where, f"s{id(wrong)}").add(wrong)
    with pytest.raises(ConflictError, match="winner"):
        study.add(fl.Arms([[1.0, 2.0, 3.0]], ["z"]))


def test_arms_change_between_batches_only(where):
    study = create(where)
    study.ask()
    with pytest.raises(ConflictError, match="open"):
        study.withdraw("a")
    other = create(where, "two", strategy="g")
    with pytest.raises(StudyError, match="the default strategy"):
        other.withdraw("a")
    with pytest.raises(UnknownArmError):
        create(where, "three").withdraw("nobody")
    with pytest.raises(StudyError, match="two or more"):
        create(where, "four").withdraw("a", "b", "c")


# ---- looking ---------------------------------------------------------------------------------


def test_status_is_json_and_a_table(where):
    study = create(where)
    for _ in range(3):
        study.tell(HARD.rewards(study.ask(12)))
    status = study.status()
    plain = json.loads(json.dumps(status.to_dict()))
    assert plain["pulls"] == 36
    assert plain["forecast"]["words"] == status.forecast.words()
    assert [arm["name"] for arm in plain["arms"]] == list("abcd")
    frame = status.to_frame()
    assert (frame.low <= frame.estimate).all()
    assert (frame.estimate <= frame.high).all()
    assert str(status).startswith(status.sentence)
    assert study.status(forecast=False).forecast is None


def test_warnings(where):
    quiet = create(where, "quiet")
    finish(quiet, Lab(sigma=0.6), most=400)
    assert quiet.status().warnings == ()
    loud = create(where, "loud")
    for _ in range(8):
        loud.tell(Lab(sigma=1.5).rewards(loud.ask(40)))
        if not loud.ask():
            break
    assert any("sigma" in words and "does not hold" in words for words in loud.status().warnings)
    careful = create(where, "careful", sigma=5.0)
    for _ in range(6):
        careful.tell(HARD.rewards(careful.ask(12)))
    assert any("fewer measurements" in words for words in careful.status().warnings)


def test_a_bent_world_is_noticed(where):
    grid = np.array([[1.0, x, z] for x in (-1, 0, 1) for z in (-1, 0, 1)])
    study = create(where, arms=(arms := fl.Arms(grid)), sigma=0.2)
    bend = dict(zip(arms.names, 3.0 * grid[:, 1] * grid[:, 2], strict=True))
    rng = np.random.default_rng(0)
    for _ in range(6):
        if batch := study.ask(60):
            study.tell({p.pull_id: bend[p.arm] + 0.2 * rng.standard_normal() for p in batch})
    assert study.status().warnings


def test_shifted_batches_are_noticed(where):
    study = create(where, arms=fl.Arms.unstructured(["a", "b", "c"]), sigma=None)
    rng = np.random.default_rng(1)
    for k in range(8):
        batch = study.ask(30)
        if not batch:
            break
        shift = 3.0 * (k % 2)
        study.tell({p.pull_id: shift + 0.6 * rng.standard_normal() for p in batch})
    assert any("shifted" in words for words in study.status().warnings)


def test_evidence_over_time(where):
    study = create(where)
    assert study.evidence()[1].shape == (0, 4)
    for _ in range(3):
        study.tell(HARD.rewards(study.ask(12)))
    pulls, evidence = study.evidence()
    assert pulls.tolist() == [12, 24, 36]
    assert evidence.shape == (3, 4)
    np.testing.assert_allclose(evidence[-1], study.status().to_frame().evidence, atol=1e-6)
    assert create(where, "two", strategy="g").evidence()[1].shape == (0, 4)


def test_evidence_of_nothing_has_whole_numbers_of_pulls(where):
    pulls, evidence = create(where).evidence()
    assert (pulls.dtype, pulls.shape, evidence.shape) == (np.int64, (0,), (0, 4))


def test_the_log_is_readable(where):
    study = create(where)
    study.note("plates from Monday")
    study.tell(LAB.rewards(study.ask(12)))
    kinds = [event["kind"] for event in study.history()]
    assert kinds == ["created", "note", "issued", "told", "decided"]
    frame = study.to_frame()
    assert list(frame.columns) == [
        "pull_id", "batch", "arm", "state", "reward", "worker", "issued", "told", "note",
        "fitted", "residual",
    ]  # fmt: skip
    assert (frame.state == "told").all()
    assert frame.told.str.startswith("20").all()


# ---- several at once ---------------------------------------------------------------------------


def test_two_handles_see_each_other(where):
    one = create(where)
    two = Study.open(where, "one")
    batch = one.ask(8)
    assert ids(two.ask(8)) == ids(batch)
    two.tell(HARD.rewards(batch[:4]))
    assert ids(one.ask()) == ids(batch)[4:]
    one.tell(HARD.rewards(batch[4:]))
    assert two.status().to_dict() == one.status().to_dict()
    assert two.ask(8).batch == 2


def test_reopening_solves_no_design(where, monkeypatch):
    study = create(where)
    for _ in range(4):
        study.tell(HARD.rewards(study.ask(12)))
    study.ask(12)
    expected = study.status(forecast=False)
    from finalist.strategies.gauntlet import best, planner

    monkeypatch.setattr(best, "choose_rivals", None)
    for solver in ("allocate", "pilot_weights", "Rounded"):
        monkeypatch.setattr(planner, solver, None)
    again = Study.open(where, "one")
    assert again.status(forecast=False) == expected
    assert len(again.ask(12)) == 12


def test_an_error_in_the_middle_leaves_the_study_as_it_was(where, monkeypatch):
    study = create(where)
    batch = study.ask(12)
    monkeypatch.setattr(Database, "write", _failing(Database.write))
    with pytest.raises(RuntimeError):
        study.tell(LAB.rewards(batch))
    monkeypatch.undo()
    assert study.status().pulls == 0
    assert study.tell(LAB.rewards(batch)) == 12
    assert study.status().batches == 1


def _failing(write):
    """A transaction that fails when all is written and nothing is committed."""
    from contextlib import contextmanager

    @contextmanager
    def fail(self):
        with write(self) as writer:
            yield writer
            raise RuntimeError("power cut")

    return fail
