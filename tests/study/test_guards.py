"""Two handles, one step of the other between reading and writing: each guard that looks again.

Whoever reads a state, decides what to write and then takes the lock finds a log that may have gone
on. `tests.study.guards` lists the guards and takes them away one by one: each test here that names
a guard must fail without it.
"""

import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import finalist as fl
from finalist.errors import ConflictError, DamagedError, NameTakenError, ProblemError, StudyError
from finalist.study import Study
from finalist.study.log import Log
from finalist.study.results import Results
from finalist.study.settings import from_json
from finalist.study.state import State
from finalist.study.storage import upgrade
from finalist.study.storage.database import Database
from finalist.study.storage.place import locate
from tests.mutation import SOURCE
from tests.study.guards import GUARDS
from tests.study.lab import ARMS, Lab

HARD = Lab(theta=[1.0, 0.3, 0.0])


@pytest.fixture
def pair(where):
    """One study, opened twice."""
    with (
        Study.create(where, "s", ARMS, sigma=0.6, seed=1) as one,
        Study.open(where, "s") as other,
    ):
        yield one, other


def after(steps, enter):
    """Return what enters a context after the steps of others, which are taken once."""

    @contextmanager
    def entering(*words):
        while steps:
            steps.pop()()
        with enter(*words) as given:
            yield given

    return entering


@contextmanager
def just_before_writing(study, step):
    """Let somebody else do something when a study has read and is about to take the lock."""
    waiting = [step]
    study._log.writing = after(waiting, study._log.writing)
    try:
        yield
    finally:
        del study._log.writing
    assert not waiting, "nothing was written"


def kinds(study):
    return [event["kind"] for event in study.history()]


def is_sound(study):
    """Replay the log from its beginning."""
    log = study._log
    state = Log(log.storage, log.row).now()
    assert state.last == len(study.history())
    return state


def first_batch(study, size=12):
    batch = study.ask(size)
    return batch, HARD.rewards(batch)


def test_a_batch_is_issued_once(pair):
    one, other = pair
    issued = []
    with just_before_writing(one, lambda: issued.append(other.ask(12))):
        mine = one.ask(6)
    assert kinds(one).count("issued") == 1
    assert mine.batch == issued[0].batch == 1
    assert [p.pull_id for p in mine] == [p.pull_id for p in issued[0]][:6]
    is_sound(one)


def test_a_batch_that_was_decided_meanwhile_is_not_issued_again(pair):
    one, other = pair

    def whole_batch():
        other.tell(HARD.rewards(other.ask(12)))

    with just_before_writing(one, whole_batch):
        mine = one.ask(12)
    assert mine.batch == 2
    is_sound(one)


def test_nothing_is_issued_after_a_stop(pair):
    one, other = pair
    with just_before_writing(one, lambda: other.stop("holidays")):
        assert one.ask(12).state == "stopped"
    assert "issued" not in kinds(one)


def test_a_pull_is_given_to_one_worker(pair):
    one, other = pair
    one.ask(12)
    theirs = []
    with just_before_writing(one, lambda: theirs.append(other.ask(5, worker="b"))):
        mine = one.ask(5, worker="a")
    assert not {p.pull_id for p in mine} & {p.pull_id for p in theirs[0]}
    is_sound(one)


def test_a_worker_with_two_handles_gets_the_same_pulls(pair):
    one, other = pair
    one.ask(12)
    theirs = []
    with just_before_writing(one, lambda: theirs.append(other.ask(5, worker="a"))):
        mine = one.ask(5, worker="a")
    assert [p.pull_id for p in mine] == [p.pull_id for p in theirs[0]]
    assert kinds(one).count("assigned") == 1


def test_a_batch_decided_meanwhile_has_no_pulls_to_give_out(pair):
    one, other = pair
    _, rewards = first_batch(one)
    with just_before_writing(one, lambda: other.tell(rewards)):
        mine = one.ask(5, worker="a")
    assert mine.batch == 2
    is_sound(one)


def test_a_reward_is_told_once(pair):
    one, other = pair
    batch, rewards = first_batch(one)
    some = dict(list(rewards.items())[:5])
    with just_before_writing(one, lambda: other.tell(some)):
        assert one.tell(rewards) == len(batch) - 5
    is_sound(one)


def test_another_reward_for_a_pull_that_was_told_meanwhile_is_refused(pair):
    one, other = pair
    _, rewards = first_batch(one)
    pull = next(iter(rewards))
    with (
        just_before_writing(one, lambda: other.tell({pull: 0.25})),
        pytest.raises(ConflictError, match="amend"),
    ):
        one.tell({pull: 0.5})
    assert one.to_frame().reward[pull - 1] == 0.25


def test_a_call_that_was_repeated_by_another_handle_is_taken_once(pair):
    one, other = pair
    _, rewards = first_batch(one)
    with just_before_writing(one, lambda: other.tell(rewards, client_id="call")):
        assert one.tell(rewards, client_id="call") == 0
    assert kinds(one).count("told") == 1


def test_a_pull_that_was_told_meanwhile_is_not_void_nor_missing(pair):
    one, other = pair
    batch, rewards = first_batch(one)
    for step in (one.void, one.missing):
        pull = batch[0 if step == one.void else 1].pull_id
        with (
            just_before_writing(one, lambda pull=pull: other.tell({pull: rewards[pull]})),
            pytest.raises(ConflictError, match="told"),
        ):
            step(pull, "broken")
    is_sound(one)


def test_a_pull_is_void_once(pair):
    one, other = pair
    pull = first_batch(one)[0][0].pull_id
    with (
        just_before_writing(one, lambda: other.void(pull, "broken")),
        pytest.raises(ConflictError, match="void already"),
    ):
        one.void(pull, "broken")
    assert len(one.to_frame()) == 13


def test_a_pull_is_missing_once(pair):
    one, other = pair
    pull = first_batch(one)[0][0].pull_id
    with just_before_writing(one, lambda: other.missing(pull, "lost")):
        one.missing(pull, "lost")
    assert kinds(one).count("missing") == 1
    is_sound(one)


def test_a_reward_that_a_decision_used_meanwhile_is_not_amended(pair):
    one, other = pair
    batch, rewards = first_batch(one)
    pull = batch[0].pull_id
    one.tell({pull: rewards.pop(pull)})
    with (
        just_before_writing(one, lambda: other.tell(rewards)),
        pytest.raises(ConflictError, match="its batch 1 is decided on"),
    ):
        one.amend(pull, 9.0, "a decimal point")
    is_sound(one)


def test_earlier_measurements_come_before_the_first_batch_and_once(pair):
    one, other = pair
    rows = [("a", 1.0), ("b", 0.5)]
    with (
        just_before_writing(one, lambda: other.import_history(rows)),
        pytest.raises(ConflictError, match="are in already"),
    ):
        one.import_history(rows)


def test_earlier_measurements_do_not_come_after_a_batch(pair):
    one, other = pair
    with (
        just_before_writing(one, lambda: other.ask(12)),
        pytest.raises(ConflictError, match="batch was issued"),
    ):
        one.import_history([("a", 1.0)])


def test_arms_do_not_change_while_a_batch_is_open(pair):
    one, other = pair
    one.tell(first_batch(one)[1])
    for step in (lambda: one.withdraw("c"), lambda: one.add(fl.Arms([[0.5] * 3], ["e"]))):
        with (
            just_before_writing(one, lambda: other.ask(12)),
            pytest.raises(ConflictError, match="is open"),
        ):
            step()
        other.tell(HARD.rewards(other.ask()))
    is_sound(one)


def test_arms_change_one_after_the_other(pair):
    one, other = pair
    one.tell(first_batch(one)[1])
    with just_before_writing(one, lambda: other.withdraw("c")):
        one.add(fl.Arms([[0.5] * 3], ["e"]))
    assert list(one.arms.names) == ["a", "b", "d", "e"]
    is_sound(one)


def test_a_study_that_is_decided_meanwhile_is_not_stopped(where):
    with (
        Study.create(where, "s", ARMS, sigma=0.01, seed=1) as one,
        Study.open(where, "s") as other,
    ):
        lab = Lab(sigma=0.01)

        def finish():
            while batch := other.ask():
                other.tell(lab.rewards(batch))

        with just_before_writing(one, finish), pytest.raises(ConflictError, match="a winner"):
            one.stop("enough")
        is_sound(one)


def test_a_study_is_resumed_once(pair):
    one, other = pair
    one.stop("holidays")
    with just_before_writing(one, other.resume), pytest.raises(ConflictError, match="not stopped"):
        one.resume()


def test_two_who_create_a_study_of_one_name_at_once(where, monkeypatch):
    """Both find the name free; one has it, the other is told."""
    Study.create(where, "first", ARMS, sigma=1.0).close()
    others = [lambda: Study.create(where, "s", ARMS, sigma=1.0).close()]
    monkeypatch.setattr(Database, "write", after(others, Database.write))
    with pytest.raises(NameTakenError, match="Choose another name"):
        Study.create(where, "s", ARMS, sigma=1.0)
    assert sorted(fl.studies(where)) == ["first", "s"]


def test_a_fork_copies_what_is_there_when_it_has_the_lock(pair, where):
    one, other = pair
    one.tell(first_batch(one)[1])
    one.ask(12)
    others = [lambda: other.tell(HARD.rewards(other.ask()))]
    one._log.storage.write = after(others, one._log.storage.write)
    with one.fork("copy", until=2) as copy:
        assert copy.ask().batch == 2
        is_sound(copy)


def test_a_state_that_failed_half_way_is_read_anew(pair, monkeypatch):
    one, _ = pair
    _, rewards = first_batch(one)
    decide = State.decide

    def fail(self, *words):
        decide(self, *words)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(State, "decide", fail)
        with pytest.raises(ZeroDivisionError):
            one.tell(rewards)
    assert one.status(forecast=False).pulls == 0
    assert one.tell(rewards) == 12
    is_sound(one)


def test_the_same_file_is_upgraded_by_one_of_two(tmp_path: Path, monkeypatch):
    """Both find old tables; the second finds them new when it has the lock."""
    where = str(tmp_path / "lab.db")
    Study.create(where, "s", ARMS, sigma=1.0).close()
    done: list[object] = []
    monkeypatch.setattr(upgrade, "_migrate", done.append)
    connections = upgrade._connect(locate(where))
    try:
        assert "nothing to do" in upgrade._bring_up(connections, create=False)
    finally:
        connections.close()
    assert done == []


def test_two_threads_make_one_file(tmp_path: Path):
    where, start, errors = tmp_path / "lab.db", threading.Barrier(4), []

    def make(name):
        start.wait()
        try:
            Study.create(where, name, ARMS, sigma=1.0).close()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=make, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert sorted(fl.studies(where)) == list("0123")


def test_two_threads_run_scripts_at_once(tmp_path: Path):
    """Alembic keeps what it is at in variables of its modules."""
    start, errors = threading.Barrier(4), []

    def migrate(name):
        engine = sa.create_engine(f"sqlite:///{tmp_path / name}")
        start.wait()
        try:
            with engine.begin() as connection:
                upgrade._migrate(connection)
        except Exception as error:
            errors.append(error)
        engine.dispose()

    threads = [threading.Thread(target=migrate, args=(f"{i}.db",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.tests)
def test_the_guards_that_are_taken_away_are_there(guard):
    assert guard.text in (SOURCE / guard.file).read_text()


# ---- what no writer could have written -----------------------------------------------------


def smuggle(study, kind, body, rewards=None):
    """Write an event as no method would."""
    log = study._log
    with log.storage.write() as writer:
        writer.append(log.row.id, writer.last(log.row.id) + 1, kind, body, rewards=rewards)


def issued(batch, arms=(0, 1, 2)):
    return ("issued", {"batch": batch, "arms": list(arms), "note": {}}, None)


def told(*pulls, count=None):
    count = len(pulls) if count is None else count
    return ("told", {"count": count}, Results(list(pulls), [0.5] * len(pulls)))


DECIDED: dict[str, object] = {"batch": 1, "pulls": 12, "winner": None, "rejected": []}
WRONG = {
    "created twice": [("created", {}, None)],
    "a batch beside an open one": [issued(2)],
    "the same batch again": [issued(1)],
    "arms that are not there": [told(*range(1, 13)), ("decided", DECIDED, None), issued(2, [7])],
    "a batch left out": [told(*range(1, 13)), ("decided", DECIDED, None), issued(3)],
    "a reward for an unknown pull": [told(13)],
    "a reward for pull 0": [told(0)],
    "two rewards for a pull": [told(1), told(1)],
    "fewer rewards than counted": [told(1, count=2)],
    "a decision before its time": [("decided", DECIDED, None)],
    "a decision on another batch": [("decided", {**DECIDED, "batch": 2}, None)],
    "no decision when it is due": [told(*range(1, 13)), ("note", {"text": "x"}, None)],
    "a void pull again": [("voided", {"pull": 1}, None)] * 2,
    "a missing pull again": [("missing", {"pull": 1}, None)] * 2,
    "a void pull that has a reward": [told(1), ("voided", {"pull": 1}, None)],
    "an amended pull without a reward": [("amended", {"pull": 1}, Results([1], [0.5]))],
    "an amendment of another pull": [told(1, 2), ("amended", {"pull": 1}, Results([2], [0.5]))],
    "an amendment without a value": [told(1), ("amended", {"pull": 1}, None)],
    "results that are taken back and not there": [
        ("amended", {"pull": 1, "taken_back": [1]}, None),
    ],
    "results that are taken back and come": [
        told(1),
        ("amended", {"pull": 1, "taken_back": [1]}, Results([1], [0.5])),
    ],
    "results that are taken back after the decision": [
        told(*range(1, 13)),
        ("decided", DECIDED, None),
        ("amended", {"pull": 1, "taken_back": [1]}, None),
    ],
    "an amendment after the decision": [
        told(*range(1, 13)),
        ("decided", DECIDED, None),
        ("amended", {"pull": 1}, Results([1], [0.5])),
    ],
    "a pull given to two": [("assigned", {"worker": w, "pulls": [1]}, None) for w in ("Ada", "Bo")],
    "a pull given out that has a reward": [
        told(1),
        ("assigned", {"worker": "Ada", "pulls": [1]}, None),
    ],
    "history after a batch": [("history", {"arms": [0], "rewards": [1.0]}, None)],
    "other arms while a batch is open": [
        ("changed", {"stage": 1, "kept": [0, 1, 2], "level": 0.1, "afresh": True}, None)
    ],
    "rewards in a note": [("note", {"text": "x"}, Results([1], [0.5]))],
}


@pytest.mark.parametrize("case", WRONG)
def test_a_log_that_no_writer_could_have_written_is_refused_with_the_event(tmp_path, case):
    where = tmp_path / "lab.db"
    with Study.create(where, "s", ARMS, sigma=0.6, seed=1) as study:
        study.ask(12)
        last = len(study.history())
        for event in WRONG[case]:
            smuggle(study, *event)
    number, kind = last + len(WRONG[case]), WRONG[case][-1][0]
    with Study.open(where, "s") as study:
        pattern = rf"damaged \(event {number} \({kind}\)"
        with pytest.raises(DamagedError, match=pattern):
            study.status(forecast=False)
        assert len(study.history()) == number  # it can still be looked at


def test_history_twice_and_other_arms_out_of_order_are_refused(tmp_path):
    body = {"arms": [0], "rewards": [1.0]}
    changed = {"kept": [0, 1, 2, 3], "level": 0.1, "afresh": True}
    for name, events in {
        "twice": [("history", body), ("history", body)],
        "unknown arm": [("history", {"arms": [4], "rewards": [1.0]})],
        "stage": [("changed", {**changed, "stage": 2})],
        "kept": [("changed", {**changed, "stage": 1, "kept": [9]})],
        "stopped": [("decided", {"stopped": "x"}), issued(1)[:2]],
    }.items():
        with Study.create(tmp_path / "lab.db", name, ARMS, sigma=1.0) as study:
            for event in events:
                smuggle(study, *event)
            with pytest.raises(DamagedError, match=rf"event {1 + len(events)} "):
                study.ask()


# ---- what was decided stays decided --------------------------------------------------------


def test_a_new_study_records_the_newest_rules_and_an_old_one_has_rules_1(tmp_path):
    from finalist.problem.rules import NEWEST

    with Study.create(tmp_path / "lab.db", "s", ARMS, sigma=1.0) as study:
        assert study.settings["rules"] == NEWEST.number
        assert study._log.now().problem.rules is NEWEST
        with Study.open(tmp_path / "lab.db", "s", sigma=1.0):
            pass
        row = study._log.row
        without = {key: value for key, value in row.settings.items() if key != "rules"}
        assert from_json(without, ARMS).problem.rules.number == 1
        with pytest.raises(ProblemError, match=r"rules 99 are not known.*Upgrade"):
            from_json({**without, "rules": 99}, ARMS)


@pytest.fixture
def undecided(tmp_path):
    """A study of some batches by the rules as they are, which goes on."""
    where = tmp_path / "lab.db"
    with Study.create(where, "s", ARMS, sigma=2.0, seed=1) as study:
        lab = Lab(theta=[1.0, 0.3, 0.0], sigma=2.0)
        for _ in range(5):
            study.tell(lab.rewards(study.ask(20)))
        study.ask(20)
        assert study.status(forecast=False).verdict == "continue"
    return where


def mend(monkeypatch, limit=0.01):
    """Let bets decide with a part of the evidence, as mended ones might."""
    from finalist.strategies.gauntlet.bets import Bets

    against = Bets.against

    def mended(*words):
        bets = against(*words)
        bets.limit[:] *= limit
        return bets

    monkeypatch.setattr(Bets, "against", mended)


def test_a_study_opens_with_its_decisions_when_evidence_is_computed_otherwise(
    undecided, monkeypatch
):
    with Study.open(undecided, "s") as study:
        before = study.status(forecast=False)
        decisions = [e for e in study.history() if e["kind"] == "decided"]
    assert before.risk == 0.05
    mend(monkeypatch)
    with Study.open(undecided, "s") as study:
        state, status = study._log.now(), study.status(forecast=False)
        assert state.replay.differs, "the evidence is not computed otherwise"
        assert (status.verdict, status.survivors) == (before.verdict, before.survivors)
        assert [d.winner for d in state.decisions] == [e["winner"] for e in decisions]
        assert [list(d.rejected) for d in state.decisions] == [e["rejected"] for e in decisions]
        assert status.risk is None
        assert "Nothing is certain" in status.sentence
        assert "probability at most" not in str(status)
        assert any("Nothing here is certain" in words for words in status.warnings)
        assert study.tell({p.pull_id: 0.5 for p in study.ask()}) == 20  # and it goes on


def test_winners_of_a_log_are_followed_all_of_them(tmp_path, monkeypatch):
    where, lab = tmp_path / "lab.db", Lab(sigma=0.5)
    with Study.create(where, "s", ARMS, sigma=0.5, seed=1, top=2) as study:
        while batch := study.ask(20):
            study.tell(lab.rewards(batch))
        before = study.status()
    assert len(before.winners) == 2
    mend(monkeypatch, 100.0)
    with Study.open(where, "s") as study:
        status = study.status()
        assert study._log.now().replay.differs
        assert status.winners[0] == before.winners[0]
        assert set(status.winners) == set(before.winners)
        assert status.risk is None


def test_a_winner_that_was_ruled_out_before_is_no_doubt(tmp_path):
    """Within epsilon of the best, the leader wins though its own test has ruled it out."""
    from finalist.strategies import Verdict
    from finalist.strategies.gauntlet.best import BestArm
    from finalist.strategies.gauntlet.run import ChangeableRun

    with Study.create(tmp_path / "lab.db", "s", ARMS, sigma=0.6, seed=1, epsilon=0.3) as study:
        study.tell(first_batch(study)[1])
        state = study._log.now()
        assert isinstance(state.run, ChangeableRun)
        claims = state.run._course.claims
        assert isinstance(claims, BestArm)
        claims.survivors = np.array([0, 3])
        claims.winner = 1
        assert state.verdict.survivors == (0, 1, 3)
        claims.winner = None
        body = {"winner": 1, "rejected": [], "pulls": 12}
        assert state.replay.logged(body, several=False) == Verdict(1, (0, 1, 3), 12)


def test_a_strategy_that_cannot_follow_its_log_is_left_out(tmp_path, monkeypatch):
    where, lab = tmp_path / "lab.db", Lab(sigma=0.6)
    with Study.create(where, "s", ARMS, "uniform", sigma=0.6, seed=1) as study:
        for _ in range(5):
            study.tell(lab.rewards(study.ask(4)))
        study.ask(4)
        before = study.status(forecast=False)
        assert before.verdict == "continue"
    start = fl.Uniform.start

    def hasty(self, problem, seed=0):
        return start(self, problem.with_(noise=fl.Gaussian(1e-9)), seed)

    monkeypatch.setattr(fl.Uniform, "start", hasty)
    with Study.open(where, "s") as study:
        status = study.status(forecast=False)
        assert study._log.now().replay.differs
        assert (status.verdict, status.survivors) == ("continue", before.survivors)
        assert status.risk is None
        with pytest.raises(StudyError, match="cannot go on here"):
            study.tell(lab.rewards(study.ask(4)))
        assert study.status(forecast=False).pulls == before.pulls
        study.note("a remark is taken all the same")
