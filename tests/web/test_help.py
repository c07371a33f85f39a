"""Help on the page: every link to a topic finds it, and it is where it is needed."""

import re

import pytest

from finalist.study import Study
from finalist.web.render import HERE
from tests.web.labs import Page, packed_in, person, plane_study, text_of
from tests.words import found, said


@pytest.fixture(scope="module")
def somebody(tmp_path_factory):
    place = tmp_path_factory.mktemp("help") / "lab.db"
    plane_study(place)
    with Study.open(place, "plane") as study:
        batch = study.ask(size=6)
        study.tell({batch[0].pull_id: 0.5})
    with person(place) as one:
        yield one


def topics(text):
    return {link["href"].split("#")[1] for link in Page(text).all("a") if "/help#" in link["href"]}


def test_every_link_to_the_help_finds_its_topic(somebody):
    there = {attributes.get("id") for _, attributes in Page(somebody.get("/help").text).tags}
    linked: set[str] = set()
    for template in (HERE / "templates").iterdir():
        linked |= set(re.findall(r'help_on\("([a-z]+)"', template.read_text(encoding="utf-8")))
    assert linked
    assert linked <= there
    for link in Page(somebody.get("/help").text).all("a"):
        if link["href"].startswith("#"):
            assert link["href"][1:] in there | {"main"}


def test_help_is_where_somebody_needs_it(somebody):
    assert {"verdict", "bench", "wrong"} <= topics(somebody.get("/studies/1").text)
    assert topics(somebody.get("/studies/1/pulls/26").text) == {"failed"}
    table = "name,dose,heat\nA,1,20\nB,2,20\nC,1,40\nD,2,40\n"
    question = somebody.post("/new", {"pasted": table})
    assert packed_in(question.text)
    assert {"sigma", "margin", "budget", "plan"} <= topics(question.text)
    for path in ("/", "/studies/99"):
        assert any(link["href"] == "/help" for link in Page(somebody.get(path).text).all("a"))


def test_links_from_forms_keep_what_is_typed(somebody):
    for link in Page(somebody.get("/studies/1").text).all("a"):
        if "/help#" in link["href"]:
            assert (link["target"], link["rel"]) == ("_blank", "noopener")


def test_the_help_is_in_the_words_for_people(somebody):
    text = somebody.get("/help").text
    assert found(said(text)) == []
    assert "Python" not in text_of(somebody.get("/help"))
