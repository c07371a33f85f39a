"""A budget that is raised, cut, given or taken away while a study runs."""

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ConflictError, DamagedError, ProblemError, StudyError
from finalist.study import Study
from tests.cli.common import run
from tests.study.lab import Lab
from tests.web.labs import person

SIX = fl.Arms.unstructured(list("abcdef"))
MEANS = np.array([1.0, 0.8, 0.7, 0.1, 0.0, -0.2])
LAB = Lab(SIX, MEANS, 1.0, 4)


def begun(where, batches=3, size=12, strategy="gauntlet", name="one", **words):
    given = {"sigma": 1.0, "budget": 60, "delta": 0.001, "seed": 5, **words}
    study = Study.create(where, name, SIX, strategy, **given)
    go_on(study, batches, size)
    return study


def go_on(study, batches, size=12):
    """Measure so many batches; return what they were, arm by arm."""
    found = []
    for _ in range(batches):
        batch = study.ask(size=size)
        if not batch:
            break
        found.append([pull.arm for pull in batch])
        study.tell(LAB.rewards(batch))
    return found


@pytest.fixture
def where(tmp_path):
    return tmp_path / "lab.db"


def test_a_raised_budget_is_planned_for_and_written_down(where):
    study = begun(where)
    before = study.status(forecast=False)
    words = study.set_budget(600)
    assert "The budget is 600 measurements. Before, the budget is 60 measurements." in words
    assert "Left: 564 measurements." in words
    assert "The risk stays at most 0.001" in words
    event = study.history()[-1]
    assert (event["kind"], event["budget"], event["was"]) == ("note", 600, 60)
    after = study.status(forecast=False)
    assert (before.budget_left, after.budget_left) == (24, 564)
    assert (before.risk, before.survivors) == (after.risk, after.survivors)
    assert after.outlook.right == before.outlook.right
    assert after.outlook.right_at_end > before.outlook.right_at_end


def test_what_comes_next_is_what_a_study_with_that_budget_would_plan(where):
    """The same results, one with the budget from the start: its later epochs are the same size."""
    raised, given = begun(where, name="raised"), begun(where, name="given")
    raised.set_budget(1200)
    mine, other = go_on(raised, 6, None), go_on(given, 6, None)
    assert mine != other
    assert sum(map(len, mine)) > sum(map(len, other))  # 24 pulls are all that the other has
    assert given.status(forecast=False).budget_left == 0


def test_a_study_that_is_opened_again_goes_on_as_it_would_have(where):
    study = begun(where)
    study.set_budget(300)
    go_on(study, 1)
    study.ask(size=12)
    study.set_budget(240)  # while a batch is open
    again = Study.open(where, "one")
    assert again.snapshot().problem.budget == 240
    assert go_on(again, 3) == go_on(begun_twin(where), 3)


def begun_twin(where):
    study = begun(where, name="twin")
    study.set_budget(300)
    go_on(study, 1)
    study.ask(size=12)
    study.set_budget(240)
    return study


def test_a_budget_that_was_used_up_can_be_raised(where):
    study = begun(where, 5)
    assert study.status(forecast=False).budget_left == 0
    assert study.ask().state == "budget"
    study.set_budget(84)
    assert len(go_on(study, 9)) == 2
    assert study.ask().state == "budget"
    assert study.status(forecast=False).pulls == 84


def test_a_cut_below_what_is_measured_is_refused_and_at_it_ends_the_study(where):
    study = begun(where)
    events = len(study.history())
    with pytest.raises(StudyError, match=r"handed out already: 36 measurements\. With 36"):
        study.set_budget(35)
    assert len(study.history()) == events
    study.ask(size=12)
    with pytest.raises(StudyError, match="48 measurements"):
        study.set_budget(47)
    study.set_budget(48)
    go_on(study, 1)
    status = study.status(forecast=False)
    assert (status.budget_left, status.verdict) == (0, "undecided")
    assert status.recommendation is not None
    assert status.certainty is not None  # counted from intervals that hold at all times


def test_none_is_no_budget_and_a_study_without_one_can_get_one(where):
    study = begun(where, budget=None)
    assert "The budget is 60 measurements. Before, there is no budget." in study.set_budget(60)
    assert study.status(forecast=False).budget_left == 24
    assert "There is no budget." in study.set_budget(None)
    assert study.status(forecast=False).budget_left is None
    assert study.set_budget(None) == "There is no budget, as before."
    assert len([e for e in study.history() if e["kind"] == "note"]) == 2


@pytest.mark.parametrize("budget", [0, -3, 1.5, True, "60", 2**70])
def test_what_is_no_budget_is_refused(where, budget):
    with begun(where) as study, pytest.raises(ProblemError, match="budget"):
        study.set_budget(budget)


def test_a_pilot_that_is_seen_and_not_tested_keeps_its_budget(where):
    """Whoever saw its results would choose by them what they are tested with."""
    with begun(where, 0) as study:
        study.set_budget(70)  # nothing is measured
        batch = study.ask(size=3)
        study.tell(LAB.rewards(batch))
        with pytest.raises(ConflictError, match=r"would spoil the test.*: ask for the next batch"):
            study.set_budget(90)
        while "epoch" not in study._log.now().issued[-1].note:
            go_on(study, 1, 3)
            study.ask(size=3)
        study.set_budget(90)
    with begun(where, 0, name="unknown", sigma=None) as study:  # no part of this pilot is tested
        study.tell(LAB.rewards(study.ask(size=12)))
        study.set_budget(90)


def test_strategies_that_divide_their_budget_and_studies_with_a_winner_refuse(where):
    with (
        begun(where, 1, strategy="gse", name="gse") as study,
        pytest.raises(StudyError, match="divides its budget before the first measurement"),
    ):
        study.set_budget(90)
    with begun(where, 99, budget=2000, delta=0.3, name="sure") as study:
        assert study.status(forecast=False).winner is not None
        with pytest.raises(ConflictError, match="the study has a winner"):
            study.set_budget(3000)


def test_a_strategy_that_knows_of_no_budget_goes_on(where):
    with begun(where, 5, strategy="uniform") as study:
        study.set_budget(72)
        assert len(go_on(study, 9)) == 1


def test_a_fork_has_the_budget_of_its_moment(where):
    study = begun(where)
    study.set_budget(90)
    go_on(study, 1)
    assert study.fork("later", 4).snapshot().problem.budget == 90
    assert study.fork("earlier", 2).snapshot().problem.budget == 60


@pytest.mark.parametrize("body", [{"budget": 10}, {"budget": "x"}, {"budget": 0}])
def test_a_log_with_an_impossible_budget_is_refused(where, body):
    with begun(where) as study:
        log = study._log
        with pytest.raises(DamagedError, match="damaged"), log.writing() as (writer, now):
            log.append(writer, now, "note", {"text": "x", "was": 60, **body})


def test_the_command_changes_it(where):
    begun(where).close()
    words = ("--db", where)
    assert "The budget is 80 measurements." in run("budget", "one", 80, *words).output
    assert (
        "44 measurements of the budget are "
        "left" in run("status", "one", "--no-forecast", *words).output
    )
    assert run("budget", "one", *words).exit_code == 2
    assert run("budget", "one", 5, *words).exit_code == 2
    assert "There is no budget." in run("budget", "one", "--none", *words).output


def test_the_page_and_the_api_change_it(where):
    begun(where).close()
    with person(where) as somebody:
        page = somebody.get("/studies/1").text
        assert "Measurements in all</label>" in page
        assert somebody.post("/studies/1/budget", {"budget": "80"}).status_code == 303
        after = somebody.get("/studies/1?said=rebudgeted").text
        assert "The budget is changed." in after
        assert "The budget is 80 measurements. Before, the budget is 60 measurements." in after
        assert "80 measurements (at first 60)" in after
        low = somebody.post("/studies/1/budget", {"budget": "5"})
        assert low.status_code == 422
        assert "handed out already: 36 measurements" in low.text
        assert somebody.post("/studies/1/budget", {"budget": "many"}).status_code == 422
        told = somebody.post("/api/v1/studies/1/budget", json={"budget": 90})
        assert "The budget is 90 measurements." in told.json()["words"]
        assert somebody.post("/api/v1/studies/1/budget", json={"budget": 0}).status_code == 422
        assert somebody.post("/studies/1/budget", {"budget": ""}).status_code == 303
        assert "There is no budget." in somebody.get("/studies/1").text
