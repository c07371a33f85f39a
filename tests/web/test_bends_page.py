"""The page of a study whose model fails: what bends, and one click to a model that fits."""

import itertools
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import finalist as fl
from finalist.cli import app
from finalist.study import Study
from finalist.study.status import status as status_of
from finalist.web.pages.format import number
from finalist.web.pages.standing import lead, standing
from tests.web.labs import Page, person

GRID = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 5), repeat=2)))


def make(place, name, means):
    arms = fl.Arms(GRID).with_intercept()
    rng = np.random.default_rng(1)
    with Study.create(place, name, arms, sigma=0.5, seed=2, unit="%") as study:
        truth = dict(zip(arms.names, means, strict=True))
        for _ in range(8):
            if not (batch := study.ask(size=8)):
                break
            study.tell({p.pull_id: truth[p.arm] + 0.5 * rng.normal() for p in batch})


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    place = tmp_path_factory.mktemp("bends") / "lab.db"
    make(place, "dome", -3.0 * (GRID**2).sum(axis=1) + GRID[:, 0])
    make(place, "line", GRID @ [0.3, -1.0])
    with person(place) as somebody:
        yield somebody


def test_what_bends_is_drawn_beside_the_warning(lab):
    page = lab.get("/studies/1").text
    found = re.search(r'<div id="warnings".*?</div>\s*<section id="next"', page, re.S)
    assert found is not None
    warnings = found.group()
    assert "The model does not fit: the means bend" in warnings
    (chart,) = re.findall(r'src="(/studies/1/chart/bends[^"]+)"', warnings)
    svg = lab.get(chart.replace("&amp;", "&")).text
    assert "What bends" in svg
    # Light and dark, wide and narrow, and not among the charts again.
    assert page.count("chart/bends.svg") == 4
    report = lab.get("/studies/1/report.html").text
    assert "Measured means beside the line of the model" in report
    assert "What bends" not in lab.get("/studies/2").text


def test_the_verdict_does_not_repeat_what_the_warnings_below_it_say(lab):
    sentence = re.search(r'<p class="sentence">(.*?)</p>', lab.get("/studies/1").text, re.S)
    assert sentence is not None
    assert "Nothing is certain: the warnings below say why. After " in sentence[1]
    assert len(sentence[1]) < 160
    assert "the means bend" in lab.get("/api/v1/studies/1/status").json()["sentence"]


def test_one_click_begins_a_study_with_a_model_that_bends(lab):
    page = Page(lab.get("/studies/1").text)
    form = re.search(
        r'<form method="post" action="([^"]+/fork)#change" class="row">\s*<input type="hidden" '
        r'name="model" value="(\w+)">.*?name="name"[^>]* value="([^"]+)"',
        lab.get("/studies/1").text,
        re.S,
    )
    assert form is not None
    where, model, name = form.groups()
    assert (model, name) == ("bending", "dome, bending")
    assert "Start it with the model bending" in page.text
    answer = lab.post(where, {"model": model, "name": name})
    assert answer.status_code == 303
    new = lab.get("/api/v1/studies/3/status").json()
    assert new["name"] == "dome, bending"
    assert "bending: " in " ".join(new["assumptions"])
    again = lab.post(where, {"model": model, "name": name})
    assert again.status_code == 409  # the name is taken
    assert "dome, bending" in Page(again.text).text


def test_effects_are_on_the_page_and_in_the_report(lab):
    for path in ("/studies/2", "/studies/2/report.html"):
        text = re.sub(r"\s+", " ", Page(lab.get(path).text).text)
        assert re.search(r"Effects .*Change \(%\).*f1 from -1 to 1", text)
        assert "hold for all columns and at all times together" in text
    found = lab.get("/api/v1/studies/2/status").json()["effects"]
    assert [one["name"] for one in found] == ["f1", "f2"]
    assert found[0]["slope_low"] < 0.3 < found[0]["slope_high"]
    without = re.sub(r"\s+", " ", Page(lab.get("/studies/1").text).text)
    assert "There are no intervals while an assumption fails." in without


def test_means_by_a_model_that_bends_stand_beside_those_of_a_model_that_does_not_fit(lab):
    status = lab.get("/api/v1/studies/1/status").json()
    bent = {arm["name"]: arm["bent"] for arm in status["arms"]}
    straight = {arm["name"]: arm["estimate"] for arm in status["arms"]}
    best = max(bent, key=lambda name: bent[name])
    assert status["leader"] == max(
        (arm["name"] for arm in status["arms"] if arm["survives"]), key=lambda name: straight[name]
    )
    assert best != status["leader"]  # a dome: the best is in the middle, the leader at an edge
    truth = dict(zip(bent, -3.0 * (GRID**2).sum(axis=1) + GRID[:, 0], strict=True))
    error = {name: abs(bent[name] - truth[name]) for name in bent}
    assert sum(error.values()) < 0.5 * sum(abs(straight[n] - truth[n]) for n in straight)
    page = re.sub(r"\s+", " ", Page(lab.get("/studies/1").text).text)
    assert f"By a model that bends, {best} has the best mean: {number(bent[best])}." in page
    report = re.sub(r"\s+", " ", Page(lab.get("/studies/1/report.html").text).text)
    for text in (page, report):
        assert "is the mean by a model that bends" in text
        assert f"with bends {number(bent[best])}" in text
    for text in (lab.get("/studies/2").text, lab.get("/studies/2/report.html").text):
        assert "With bends" not in text
    assert {arm["bent"] for arm in lab.get("/api/v1/studies/2/status").json()["arms"]} == {None}
    said = CliRunner().invoke(app, ["status", "dome", "--db", str(lab.place)]).output
    assert "With bends" in said
    assert "Estimate: by the model of the study. With bends: by one that bends" in said


def test_differences_are_by_the_model_that_names_the_one_in_front(tmp_path):
    """A recommendation by a model that bends is never behind what it leads."""
    with Study.create(
        tmp_path / "lab.db", "d", fl.Arms(GRID).with_intercept(), sigma=0.5, seed=2, budget=400
    ) as study:
        rng = np.random.default_rng(1)
        means = -3.0 * (GRID**2).sum(axis=1) + GRID[:, 0]
        truth = dict(zip(study.arms.names, means, strict=True))
        while batch := study.ask(size=16):
            study.tell({p.pull_id: truth[p.arm] + 0.5 * rng.normal() for p in batch})
        snapshot = study.snapshot()
    status = status_of(snapshot)
    found = standing(snapshot, status)
    assert status.doubts
    assert found.front is not None
    assert found.front.name == status.recommendation == snapshot.arms.names[12]
    assert found.bent
    assert status.leader != status.recommendation  # that is by the model that does not fit
    left = [row for row in found.differences if row.name in status.survivors]
    assert left
    assert all(row.behind is not None and row.behind >= 0 for row in left)
    words = lead(snapshot, found)
    assert words is not None
    assert words.endswith("This is an estimate, by a model that bends; it has no interval.")
