"""Undo of the last save: what it takes back, what it leaves alone, and who else writes."""

import threading

import pytest

import finalist as fl
from finalist.errors import ConflictError
from finalist.study import Study
from finalist.study.databases import check

ARMS = fl.Arms.unstructured(3)


@pytest.fixture
def begun(tmp_path):
    with Study.create(tmp_path / "lab.db", "s", ARMS, sigma=1.0, seed=1) as study:
        study.ask(size=12)
        yield study


def results(study):
    frame = study.to_frame()
    return {int(p): float(r) for p, r in zip(frame["pull_id"], frame["reward"], strict=True)}


def test_what_is_taken_back_can_be_told_again(begun):
    begun.tell({1: 0.5})
    begun.tell({2: 5.0, 3: 0.25})
    taken = begun.undo()
    assert taken == {2: 5.0, 3: 0.25}
    assert [pull.pull_id for pull in begun.ask()] == list(range(2, 13))
    assert begun.tell(taken) == 2
    assert begun.undo() == taken
    assert begun.undo() == {1: 0.5}
    assert len(begun.ask()) == 12
    assert check(begun._log.storage.where) == []


def test_there_is_nothing_to_undo_before_the_first_result(begun, tmp_path):
    with pytest.raises(ConflictError, match="there is nothing to undo: no results are in yet"):
        begun.undo()
    with (
        Study.create(tmp_path / "other.db", "s", ARMS, sigma=1.0) as fresh,
        pytest.raises(ConflictError, match="there is nothing to undo: no results are in yet"),
    ):
        fresh.undo()


def test_what_a_decision_has_used_stays_and_the_error_says_what_to_do(begun):
    begun.tell(dict.fromkeys(range(1, 13), 0.5))
    remedy = r"a decision has used them.*'finalist fork NAME NEW --until 1', or study\.fork\(new, u"
    with pytest.raises(ConflictError, match=remedy):
        begun.undo()
    begun.ask(size=4)  # no result of the new batch yet
    with pytest.raises(ConflictError, match=remedy):
        begun.undo()
    assert begun.status(forecast=False).pulls == 12


def test_a_failed_measurement_is_no_result_that_can_be_taken_back(begun):
    begun.tell({1: "failed"})
    with pytest.raises(ConflictError, match="no results are in yet"):
        begun.undo()
    begun.tell({2: 0.5, 3: "failed"})
    assert begun.undo() == {2: 0.5}


def test_a_correction_is_corrected_again_so_that_no_value_is_lost(begun):
    begun.tell({1: 0.5, 2: 0.25})
    begun.amend(1, 5.0, "a slip")
    said = r"the last change was a correction: measurement 1 had 0\.5 before\. Correct it again"
    with pytest.raises(ConflictError, match=said):
        begun.undo()
    assert begun.snapshot().open.saved.correction  # the page offers no undo then
    begun.amend(1, 0.5, "the slip was none")
    assert results(begun)[1] == 0.5
    begun.tell({3: 0.75})
    assert begun.undo() == {3: 0.75}


def test_an_event_says_which_save_is_meant(begun):
    begun.tell({1: 0.5})
    event = begun.history()[-1]["number"]
    begun.tell({2: 0.5})
    with pytest.raises(ConflictError, match="others were saved or changed after them"):
        begun.undo(event)
    assert begun.undo(event + 1) == {2: 0.5}
    assert begun.undo(event) == {1: 0.5}


def test_another_handle_sees_it_at_once(begun):
    with Study.open(begun._log.storage.where, "s") as other:
        begun.tell({1: 0.5})
        assert other.undo() == {1: 0.5}
        assert len(begun.ask()) == 12
        with pytest.raises(ConflictError, match="no results are in yet"):
            begun.undo()
        assert begun.tell({1: 0.75}) == 1
        assert results(other)[1] == 0.75


def test_two_at_once_take_back_one_save_each_or_are_refused(begun):
    begun.tell({1: 0.5})
    taken, refused, start = [], [], threading.Barrier(4)

    def undo():
        with Study.open(begun._log.storage.where, "s") as study:
            start.wait()
            try:
                taken.append(study.undo())
            except ConflictError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=undo) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [{1: 0.5}]
    assert len(refused) == 3
    assert len(begun.ask()) == 12
    assert check(begun._log.storage.where) == []


def test_an_undo_survives_reopening(begun):
    begun.tell({1: 0.5, 2: 0.25})
    begun.undo()
    begun.tell({1: 1.5})
    with Study.open(begun._log.storage.where, "s") as study:
        assert results(study)[1] == 1.5
        assert len(study.ask()) == 11
        assert study.undo() == {1: 1.5}
