"""Margins on the page, in the API and in reports: before a study, in one, and forks."""

import base64
import re
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.client.values import parse_status
from finalist.study import Study
from finalist.study.status import status as status_of
from finalist.web.arms_preview import pack
from finalist.web.pages.form import DEFAULTS
from tests.study.lab import Lab
from tests.web.labs import Page, person

THREE = fl.Arms.unstructured(["plain", "honey", "nut"])
TIED = Lab(THREE, np.array([2.0, 1.95, 0.0]), 1.0, 2)


@pytest.fixture
def lab(tmp_path):
    """Somebody with three studies: nearly tied, with a margin, and with a winner within it."""
    place = tmp_path / "lab.db"
    with Study.create(place, "cakes", THREE, sigma=1.0, seed=3) as study:
        for _ in range(8):
            study.tell(TIED.rewards(study.ask(30)))
    for name, batches in (("at work", 1), ("done", 100)):
        with Study.create(place, name, THREE, sigma=1.0, epsilon=0.5, seed=3) as study:
            for _ in range(batches):
                if batch := study.ask(12):
                    study.tell(TIED.rewards(batch))
    with person(place) as somebody:
        yield somebody


def out_of(status):
    """Return which are shown not to be within the margin."""
    return {"plain", "honey", "nut"} - {status["winner"], *status["within_reach"]}


def text_of(answer):
    return Page(answer.text).text


# ---- before a study ------------------------------------------------------------------------


VALUES = {**DEFAULTS, "arms": pack(b"name\noak\nash\nelm\n"), "do": "margins"}


def test_the_form_shows_what_margins_save_as_words_table_and_picture(lab):
    asked = lab.post("/new/study", VALUES)
    assert asked.status_code == 422
    assert "how large a lead has to be" in text_of(asked)
    told = lab.post("/new/study", {**VALUES, "gap": "1", "guess": "0.5", "epsilon": "0,7"})
    assert told.status_code == 200
    text = text_of(told)
    assert "If the best leads by 1, expect about" in text
    assert "with a margin of 0.7" in text
    table = re.search(r'<table class="margins".*?</table>', told.text, re.DOTALL)
    assert table is not None
    heads = re.findall(r'<th scope="row">([^<]*)</th>', table[0])
    assert heads == ["none", "0.5", "0.7", "1", "2"]
    assert len(re.findall(r'<td class="number">[0-9,]+ <small>\([0-9,]+\)</small>', table[0])) == 10
    pictures = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", told.text)
    drawn = [base64.b64decode(picture).decode() for picture in pictures]
    assert len(drawn) == 2
    assert all(svg.startswith("<svg") and "What a margin saves" in svg for svg in drawn)
    assert drawn[0] != drawn[1]  # dark and light


def test_several_winners_have_no_margin(lab):
    told = lab.post("/new/study", {**VALUES, "gap": "1", "guess": "0.5", "top": "2"})
    assert told.status_code == 422
    assert "a margin has a proof for one best only" in text_of(told)


def test_the_api_prices_margins(lab):
    body = {"arms": {"names": list("abc")}, "sigma": 0.5, "gap": 1.0, "draws": 2, "margins": [0.5]}
    found = lab.client.post("/api/v1/plan/margins", json=body).json()
    expected = fl.margin_prices(
        fl.Arms.unstructured(list("abc")),
        sigma=0.5, gap=1.0, draws=2, margins=[0.5], max_pulls=1_000_000,
    )  # fmt: skip
    assert found == expected.to_dict()
    wrong: Any
    for wrong in ({"margins": []}, {"margins": [0]}, {"gap": 0}, {"top": 2}, {"draws": 1000}):
        answer = lab.client.post("/api/v1/plan/margins", json={**body, **wrong})
        assert answer.status_code == 422, wrong


# ---- in a study ----------------------------------------------------------------------------


def test_an_undecided_study_says_what_is_good_enough_and_what_a_margin_would_change(lab):
    status = lab.get("/api/v1/studies/1/status").json()
    assert status["verdict"] == "continue"
    assert status["within"] > 0
    assert [set(one) for one in status["margins"]] == [
        {"epsilon", "median", "low", "high", "cap"}
    ] * 2
    page = lab.get("/studies/1")
    assert status["good_enough"] in text_of(page)
    assert 'href="/studies/1/forecast#margins" data-long="Simulating">What would it save to' in (
        page.text
    )
    assert status["saving"] in text_of(lab.get("/studies/1/forecast"))
    report = text_of(lab.get("/studies/1/report.html"))
    assert status["good_enough"] in report
    assert status["saving"] in report


def test_a_stopped_study_can_still_be_compared(lab):
    lab.post("/studies/1/stop", {"reason": "season"})
    assert "What would it save to accept a small difference?" in lab.get("/studies/1").text
    status = lab.get("/api/v1/studies/1/status").json()
    assert status["forecast"] is None
    assert status["saving"] in text_of(lab.get("/studies/1/forecast"))
    assert status["saving"] in text_of(lab.get("/studies/1/report.html"))


def test_a_study_with_a_margin_says_so_while_it_runs_and_at_the_end(lab):
    at_work = lab.get("/studies/2")
    assert "Not decided yet: none is sure to be within 0.5 of the best." in text_of(at_work)
    assert "Whatever is within 0.5 of the best is good enough." in text_of(at_work)
    assert "What would it save to accept a small difference?" not in at_work.text
    status = lab.get("/api/v1/studies/3/status").json()
    assert status["verdict"] == "winner"
    page = lab.get("/studies/3")
    for place in (text_of(page), text_of(lab.get("/studies/3/report.html"))):
        assert f"{status['winner']} is within 0.5 of the best, after" in place
        assert status["good_enough"] in place
    assert status["within_reach"]
    assert page.text.count('<span class="tag possible">') == len(status["within_reach"])
    assert "may be within 0.5 of the best too come first" in text_of(page)
    near = 1 + len(status["within_reach"])
    assert re.search(rf"<dt>May be near enough</dt><dd>{near} <small>of 3<", page.text)
    assert page.text.count('<span class="tag out">not within 0.5 of the best</span>') == len(
        out_of(status)
    )
    assert "What would it save to accept a small difference?" not in page.text


def test_a_fork_with_a_margin_on_the_page(lab):
    page = lab.get("/studies/1")
    assert "if you rely on both, the chance that one is wrong is at most 10\xa0%." in page.text
    answer = lab.post("/studies/1/fork", {"name": "enough", "epsilon": "0,5"})
    assert answer.headers["location"] == "/studies/4?said=remodelled#main"
    new = text_of(lab.get("/studies/4?said=remodelled"))
    assert "this study has a margin of 0.5 and fresh evidence" in new
    assert "0.05 + 0.05 = 0.1 in all" in new
    history = text_of(lab.get("/studies/4/history"))
    assert "Begun with a margin of 0.5 from the results of cakes." in history
    for typed, what in (
        ("much", "“much” is not a number"),
        ("-1", "below 0"),
        ("", "is not a number"),
        ("0", "has the margin 0 already"),
    ):
        wrong = lab.post("/studies/1/fork", {"name": "more", "epsilon": typed})
        assert wrong.status_code == 422, typed
        assert what in text_of(wrong)
        assert 'id="margin-name" name="name" maxlength="200" autocomplete="off" value="more"' in (
            wrong.text
        )
        assert 'id="fork-name" name="name" maxlength="200" autocomplete="off" value=""' in (
            wrong.text
        )


# ---- other versions ------------------------------------------------------------------------


def test_a_status_comes_back_whole_and_an_older_server_knows_no_margins(lab):
    sent = lab.get("/api/v1/studies/3/status").json()
    with Study.open(lab.place, "done") as study:
        own = status_of(study.snapshot())
    assert parse_status(sent) == own
    new = ("epsilon", "within", "within_reach", "good_enough", "margins", "saving")
    old = parse_status({key: value for key, value in sent.items() if key not in new})
    assert (old.epsilon, old.within_reach, old.margins, old.saving) == (0.0, None, (), None)
