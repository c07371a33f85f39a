"""Undo: the results of the last save are taken back, unless a decision has used them."""

import re

import httpx
import pytest

import finalist as fl
from finalist.errors import ConflictError
from finalist.study import Study
from finalist.study.databases import check
from tests.web.labs import person, text_of
from tests.web.servers import in_thread


@pytest.fixture
def begun(tmp_path):
    place = tmp_path / "lab.db"
    with Study.create(place, "s", fl.Arms.unstructured(3), sigma=1.0, seed=1) as study:
        study.ask(size=12)
    return place


def save(somebody, **values):
    data = {f"reward-{pull[1:]}": value for pull, value in values.items()}
    answer = somebody.post("/studies/1/tell", data)
    assert answer.status_code == 303, text_of(answer)
    return answer.headers["location"]


def undo(somebody):
    (event,) = re.findall(r'name="event" value="(\d+)"', somebody.get("/studies/1").text)
    return somebody.post("/studies/1/undo", {"event": event})


def test_what_was_saved_last_can_be_taken_back_and_entered_again(begun):
    with person(begun) as somebody:
        assert "Undo" not in text_of(somebody.get("/studies/1"))
        save(somebody, p1="0.5")
        save(somebody, p2="5", p3="0.25")
        assert "Saved last: measurements 2 and 3." in text_of(somebody.get("/studies/1"))
        answer = undo(somebody)
        assert answer.status_code == 303
        page = text_of(somebody.get(answer.headers["location"]))
        assert "2 results are taken back. Their measurements are open again" in page
        assert "2 results taken back: measurements 2 and 3 are open again." in page
        assert "Saved last: measurement 1." in page
        rows = somebody.get("/api/v1/studies/1/export.json").json()["pulls"]
        assert [(row["state"], row["reward"]) for row in rows[:3]] == [
            ("told", 0.5),
            ("open", None),
            ("open", None),
        ]
        save(somebody, p2="0.5", p3="0.25")
        answer = undo(somebody)
        assert "said=undone&n=2" in answer.headers["location"]
    with Study.open(begun, "s") as study:
        assert study.status(forecast=False).open_pulls == 11
        assert study.fork("t", until=1)


def test_a_study_with_results_taken_back_goes_on_as_if_they_had_never_been(begun, tmp_path):
    values = {pull: 0.1 * pull for pull in range(1, 13)}
    with Study.open(begun, "s") as study:
        study.tell({1: 9.0, 2: 9.0})
        event = study._log.now().last
        assert study.undo(event) == {1: 9.0, 2: 9.0}
        study.tell(values)
        found = study.status(forecast=False)
    assert check(begun) == []
    with Study.create(tmp_path / "b.db", "s", fl.Arms.unstructured(3), sigma=1.0, seed=1) as plain:
        plain.ask(size=12)
        plain.tell({1: values[1], 2: values[2]})
        plain.tell(values)
        assert plain.status(forecast=False).arms == found.arms


def test_what_a_decision_has_used_stays_and_the_page_says_what_to_do(begun):
    with person(begun) as somebody:
        save(somebody, p1="0.5")
        (event,) = re.findall(r'name="event" value="(\d+)"', somebody.get("/studies/1").text)
        where = save(somebody, **{f"p{n}": "0.5" for n in range(2, 13)})
        page = text_of(somebody.get(where))
        assert "start the study anew from before batch 1, under “Change the study”." in page
        assert "Undo" not in page
        answer = somebody.post("/studies/1/undo", {"event": event})
        assert answer.status_code == 409
        assert "a decision has used them. To correct one, start the study anew from" in text_of(
            answer
        )


def test_an_undo_of_what_somebody_else_saved_meanwhile_is_refused(begun):
    with Study.open(begun, "s") as study:
        study.tell({1: 0.5})
        event = study._log.now().last
        study.tell({2: 0.5})
        with pytest.raises(ConflictError, match="others were saved or changed after them"):
            study.undo(event)
        assert [one.reward for one in study.snapshot().settled] == [0.5, 0.5]


def test_after_a_correction_the_page_offers_to_correct_and_not_to_undo(begun):
    with person(begun) as somebody:
        save(somebody, p1="5")
        (event,) = re.findall(r'name="event" value="(\d+)"', somebody.get("/studies/1").text)
        fields = {"reward": "0.5", "reason": "a slip"}
        assert somebody.post("/studies/1/pulls/1/amend", fields).status_code == 303
        assert "Undo" not in text_of(somebody.get("/studies/1"))
        answer = somebody.post("/studies/1/undo", {"event": event})
        assert answer.status_code == 409
        assert "Correct them one by one with “change” beside the result." in text_of(answer)


def test_programs_undo_over_http(begun):
    with in_thread(begun) as url:
        far, other = fl.connect(url).open("s"), Study.open(begun, "s")
        names = {pull.pull_id: pull.arm for pull in far.ask()}
        far.tell({1: 0.5})
        other.tell({2: 0.25, 3: 5.0})
        assert far.undo() == {2: 0.25, 3: 5.0}
        assert len(other.ask()) == 11
        with pytest.raises(ConflictError, match="others were saved or changed after them"):
            far.undo(event=2)
        last = other.history()[-3]
        assert last["kind"] == "told"
        with httpx.Client(base_url=f"{url}/api/v1/studies/1") as client:
            answer = client.post("/undo", json={"event": last["number"]})
            results = [{"pull_id": 1, "arm": names[1], "reward": 0.5}]
            assert answer.json() == {"results": results}
            assert client.post("/tell", json={"results": results}).json()["new"] == 1
            assert client.post("/undo", json={"event": 0}).status_code == 422
            assert client.post("/undo", json={"event": True}).status_code == 422
        far.tell({pull.pull_id: 0.5 for pull in far.ask()})
        with pytest.raises(ConflictError, match="a decision has used them"):
            far.undo()
        other.close()
