"""Trying an example: one click makes it, one click a batch simulates it; it is marked as such."""

import numpy as np
import pytest

from finalist.study import Study
from finalist.web.example import NAME, SIZE, candidates, draw, settings, simulate, table
from tests.web.browsers import browser, go
from tests.web.labs import person, text_of
from tests.web.servers import in_thread

#: Clicks after which every example of these seeds has its winner.
CLICKS = 12
SIMULATED = "its results are simulated"


@pytest.fixture
def somebody(tmp_path):
    with person(tmp_path / "lab.db") as found:
        yield found


def test_the_example_ends_certain_within_a_handful_of_clicks(tmp_path):
    clicks, best = [], {name: values.mean() for name, values in table().items()}
    for seed in range(12):
        with Study.create(tmp_path / "lab.db", f"s{seed}", candidates(), **settings(seed)) as study:
            for _ in range(CLICKS):
                study.ask(SIZE)
                assert simulate(study) > 0
                status = study.status(forecast=False)
                if status.verdict == "winner":
                    break
            assert status.verdict == "winner"
            assert status.certain
            assert status.winner is not None
            assert best[status.winner] >= max(best.values()) - 20  # a margin of 10, by the model
            clicks.append(status.batches)
    assert np.median(clicks) <= 6
    assert max(clicks) <= CLICKS


def test_a_result_is_drawn_from_what_was_measured_and_always_the_same():
    yields = table()
    drawn = {draw(3, pull, yields["Victory, 0.6"]) for pull in range(200)}
    assert drawn == set(yields["Victory, 0.6"])
    assert draw(3, 5, yields["Victory, 0.6"]) == draw(3, 5, yields["Victory, 0.6"])


def test_an_example_is_marked_wherever_it_is_shown(somebody):
    first = somebody.post("/example")
    second = somebody.post("/example")
    assert first.headers["location"] == "/studies/1?said=example#main"
    assert second.headers["location"] == "/studies/2?said=example#main"  # a name of its own
    somebody.post("/studies/1/simulate")
    assert SIMULATED in text_of(somebody.get("/studies/1"))
    assert SIMULATED in text_of(somebody.get("/studies/1/report.html"))
    for path in ("/", "/studies/1/history", "/studies/1/delete"):
        assert "(simulated results)" in text_of(somebody.get(path))
    assert somebody.get("/api/v1/studies/1/status").json()["name"] == NAME


def test_nobodys_measurements_are_simulated(somebody, tmp_path):
    Study.create(tmp_path / "lab.db", "real", candidates(), sigma=20.0, seed=1).close()
    answer = somebody.post("/studies/1/simulate")
    assert answer.status_code == 409
    assert "its results are measured" in answer.text
    assert somebody.get("/api/v1/studies/1/status").json()["open_pulls"] == 0
    assert SIMULATED not in text_of(somebody.get("/studies/1"))
    with Study.open(tmp_path / "lab.db", "real") as study:
        study.ask(4)
        with pytest.raises(Exception, match="is no example"):
            simulate(study)
        assert study.status(forecast=False).pulls == 0


def test_a_newcomer_has_a_verdict_within_a_minute(tmp_path):
    """The walk: the first page, one click, and a click a batch; nothing is read or typed."""
    with in_thread(tmp_path / "lab.db") as url, browser() as chromium:
        page = chromium.new_page()
        page.set_default_timeout(60_000)
        page.goto(url)
        go(page.get_by_role("button", name="Try an example"))
        clicks = 1
        while page.get_by_role("button", name="Simulate a batch").count():
            go(page.get_by_role("button", name="Simulate a batch"))
            clicks += 1
            assert clicks <= CLICKS + 1
        assert page.get_by_text("Winner found").is_visible()
        assert page.get_by_role("heading", name="Why this winner").is_visible()
        assert page.get_by_role("link", name="Begin a study of your own").is_visible()
