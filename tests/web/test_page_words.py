"""Every page speaks of candidates, measurements and results; `tests/words.py` has the list."""

import re
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.strategies import all_strategies
from finalist.study import Study
from finalist.web.pages.form import DEFAULTS
from finalist.web.pages.said import SAID
from tests.web.labs import packed_in, person, plane_study
from tests.words import found, said

TABLE = "name,dose,heat\nA,1,20\nB,2,20\nC,1,40\nD,2,40\n"
#: Settings of a problem that say something on a page which the plain ones do not.
KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"epsilon": 0.2},
    {"top": 2},
    {"cost": [1.0, 2.0, 1.0], "budget": 90},
    {"sigma": [0.5, 0.6, 0.7]},
    {"batch_intercept": True},
    {"misspecification": 0.05},
    {"sigma": None},
    {"budget": 30},
    {"objective": "min", "unit": "kg", "max_pulls_per_arm": 30},
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """What all pages of all kinds of studies say, at work, stopped, changed and at their end."""
    place = tmp_path_factory.mktemp("words") / "lab.db"
    shown: dict[str, str] = {}
    with person(place) as somebody:

        def look(path, answer=None):
            answer = somebody.get(path) if answer is None else answer
            shown[f"{len(shown)} {answer.request.method} {path}"] = said(answer.text)
            return answer

        look("/")
        look("/new")
        look("/sigma")
        look("/help")
        for n, words in enumerate(KINDS, 1):
            plane_study(place, f"kind {n}", **words)
            pull = None
            with Study.open(place, f"kind {n}") as study:
                if batch := study.ask(size=6):
                    study.note("It rained.")
                    pull = batch[0].pull_id
                    study.tell({batch[1].pull_id: 0.5})
            for part in ("", "/history", "/forecast", "/report.html", "/delete", "/add", "/sheet"):
                look(f"/studies/{n}{part}")
            if pull is not None:
                look(f"/studies/{n}/pulls/{pull}")
                look(f"/studies/{n}/pulls/{pull + 1}")
                for value in ("n/a", "1,5 kg", "1,000", "abc"):
                    path = f"/studies/{n}/tell"
                    look(path, somebody.post(path, {f"reward-{pull}": value}))
        with Study.open(place, "kind 1") as study:
            while study.status(forecast=False).verdict == "continue":
                rng = np.random.default_rng(study.status(forecast=False).pulls)
                means = {"oak": 0.2, "ash": 1.5, "elm": 0.5}
                batch = study.ask(size=12)
                study.tell({p.pull_id: means[p.arm] + rng.normal() / 2 for p in batch})
        for part in ("", "/history", "/report.html", "/delete", "/forecast", "/pulls/1"):
            look(f"/studies/1{part}")
        with Study.open(place, "kind 2") as study:
            study.stop("enough")
            study.fork("bent", model="bending").close()
        look("/studies/2")
        for act, data in (("stop", {}), ("ask", {"size": "x"}), ("budget", {"budget": "x"}),
                          ("withdraw", {}), ("fork", {"until": "x", "name": ""})):  # fmt: skip
            look(f"/studies/3/{act}", somebody.post(f"/studies/3/{act}", data))
        arms = fl.Arms.unstructured([f"c{i}" for i in range(1200)])
        Study.create(place, "large", arms, sigma=1.0, seed=1).close()
        look(f"/studies/{len(KINDS) + 2}")
        question = look("/new", somebody.post("/new", {"pasted": TABLE}))
        look("/new", somebody.post("/new", {"pasted": "name,dose\nA,1\nB,x"}))
        form = {**DEFAULTS, "arms": packed_in(question.text), "name": "mine"}
        for do in ("create", "plan", "margins", "prices", "look"):
            sent = {**form, "do": do, "delta": "x", "gap": "", "known": "known"}
            look("/new/study", somebody.post("/new/study", sent))
        plan = {**form, "known": "known", "sigma": "1", "gap": "2"}
        for do in ("plan", "margins", "prices"):
            look("/new/study", somebody.post("/new/study", {**plan, "do": do}))
        somebody.post("/example")
        look("/")
        look("/studies/99")
        look("/nothing")
    return shown


def test_no_page_says_what_only_researchers_say(pages):
    assert len(pages) > 120
    names = re.compile(r"\b(?:" + "|".join(map(re.escape, all_strategies())) + r")\b")  # exempt
    plain = {page: names.sub("", text) for page, text in pages.items()}
    wrong = {page: found(text) for page, text in plain.items() if found(text)}
    assert wrong == {}


def test_no_page_speaks_python_or_of_options(pages):
    spoken = re.compile(
        r"Traceback|\bNone\b|\bNaN\b|\bnan\b|Study\.\w+\(|study\.\w+\(|\w+=None|Arms\(| \(--\w"
    )
    wrong = {page: hit[0] for page, text in pages.items() if (hit := spoken.search(text))}
    assert wrong == {}


def test_nothing_was_created_only_where_somebody_asked_to(pages):
    asked = [page for page, text in pages.items() if "Nothing was created yet" in text]
    refused = [page for page, text in pages.items() if "the marked field" in text]
    assert len(asked) == 1
    assert len(refused) >= 4


def test_what_is_said_after_an_action_is_in_the_same_words():
    assert found(" ".join(SAID.values())) == []
