"""The page of a study with noise, cost and roles of each arm, several winners or shifts."""

import re

import numpy as np
import pytest

import finalist as fl
from finalist.study import Study
from finalist.study.status import status
from finalist.web.pages.format import ordered
from finalist.web.pages.pictures import available, draw
from finalist.web.pages.standing import standing
from tests.web.labs import Page, packed_in, person, text_of

THETA = np.array([1.0, 0.4])
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.7], [0.4, 0.1], [-0.5, 0.3], [0.3, -0.2]])


@pytest.fixture
def somebody(tmp_path):
    with person(tmp_path / "lab.db") as found:
        yield found


def lab(place, arms, batches, theta=THETA, shift=0.0, **words):
    """Make a study and tell it some batches; return what the page shows of it."""
    rng = np.random.default_rng(1)
    with Study.create(place, "lab", arms, **{"sigma": 0.5, "seed": 1, **words}) as study:
        means = dict(zip(study.arms.names, study.arms.means(theta), strict=True))
        for _ in range(batches):
            batch = study.ask(size=12)
            off = shift * rng.standard_normal()
            study.tell({p.pull_id: means[p.arm] + off + rng.standard_normal() / 2 for p in batch})
            if study.status(forecast=False).verdict == "winner":
                break
        return study.snapshot()


def none():
    raise AssertionError("no forecast is wanted")


def duels(place, batches=2):
    players = fl.Arms(np.eye(3), names=["a", "b", "c"])
    pairs = fl.Arms([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]], names=["a against b", "b against c"])
    return lab(place, pairs, batches, [0.0, 0.1, 0.05], candidates=players)


def test_what_is_only_measured_is_no_possible_winner(somebody, tmp_path):
    look = duels(tmp_path / "lab.db")
    assert status(look).verdict == "continue"
    page = Page(somebody.get("/studies/1").text)
    text = re.sub(r"\s+", " ", page.text)
    assert "3 of 3 candidates may be the best" in text
    assert "Still possible 3 of 3" in text
    assert "2 of 5 can be measured, 3 can win" in text
    assert "Which of 3 candidates has the largest mean?" in text
    assert [arm.name for arm in ordered(status(look), 1)][3:] == ["b against c", "a against b"]
    tags = [t for tags, t in page.texts if tags[-1] == "span" and t in ("possible", "out")]
    assert tags == ["possible"] * 3
    assert text.count("only measured ") == 2
    assert text.count("not tested") == 2
    assert "3 of 3" in text_of(somebody.get("/"))
    evidence = str(draw(look, "evidence", none).to_dict())
    assert "'arm': 'a'" in evidence
    assert "against" not in evidence.replace("Evidence against", "")
    states = [row.state for row in standing(look, status(look)).rows]
    assert sorted(states) == ["ahead", "other", "other", "possible", "possible"]


def test_duels_tell_no_level_of_a_player(tmp_path):
    """A constant added to all players changes no duel, so no interval can hold for a player."""
    look = duels(tmp_path / "lab.db")
    ends = {arm.name: arm.high for arm in status(look).arms}
    assert [ends[name] for name in "abc"] == [None] * 3
    assert ends["a against b"] is not None
    some = fl.Arms(FEATURES, measurable=np.arange(6) < 2)
    inside = lab(tmp_path / "inside.db", some, 2)
    assert all(arm.high is not None for arm in status(inside).arms)


def test_several_winners_are_all_called_so(somebody, tmp_path):
    look = lab(tmp_path / "lab.db", fl.Arms(FEATURES), 100, top=2)
    assert set(status(look).winners) == {"x1", "x3"}
    answer = somebody.get("/studies/1")
    text = text_of(answer)
    assert "Winners found" in text
    assert "Which 2 of 6 candidates have the largest means?" in text
    assert "The study has its winners." in text
    assert "Those that may be one of the 2 best come first" in text
    assert f"{', '.join(status(look).winners)} win." in text
    assert answer.text.count('<tr class="winner">') == 2
    assert "winners" in text_of(somebody.get("/"))
    assert [row.state for row in standing(look, status(look)).rows] == ["winner"] * 2 + ["out"] * 4
    strong = [
        layer["data"]["values"]
        for layer in draw(look, "evidence", none).to_dict()["layer"]
        if layer["mark"].get("strokeWidth") == 3.2
    ]
    assert len({row["id"] for rows in strong for row in rows}) == 2


def test_several_winners_before_they_are_known(somebody, tmp_path):
    look = lab(tmp_path / "lab.db", fl.Arms(FEATURES), 1, top=2)
    assert status(look).verdict == "continue"
    assert "6 of 6 candidates may be one of the 2 best." in text_of(somebody.get("/studies/1"))
    assert "No candidate is ruled out yet: any of the 6 candidates" in text_of(
        somebody.get("/studies/1")
    )
    with Study.open(tmp_path / "lab.db", "lab") as study:
        advice = study.stop("winter").advice or ""
    assert "Recommendation: x3 and x1, by the estimates" in advice
    assert advice in text_of(somebody.get("/studies/1"))


def test_cost_is_added_up_and_noise_is_a_range(somebody, tmp_path):
    cost, sigma = [1.0, 2.0, 4.0, 8.0, 3.0, 5.0], [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    look = lab(tmp_path / "lab.db", fl.Arms(FEATURES), 1, cost=cost, sigma=sigma)
    spent = sum(arm.pulls * c for arm, c in zip(status(look).arms, cost, strict=True))
    text = text_of(somebody.get("/studies/1"))
    assert f"Cost so far {spent:g} units" in text
    assert "Cost of a measurement of each candidate, 1 to 8" in text
    assert "sigma of each candidate, 0.5 to 1" in text
    assert (
        "Assumed the noise is Gaussian, of a size that is given for each candidate, 0.5 to 1"
        in text
    )
    assert f"Cost so far {spent:g} units" in text_of(somebody.get("/studies/1/report.html"))


def test_an_ordinary_study_says_nothing_of_cost(somebody, tmp_path):
    lab(tmp_path / "lab.db", fl.Arms(FEATURES), 1)
    text = text_of(somebody.get("/studies/1"))
    assert "Cost" not in text
    assert "Shifts between batches" not in text
    assert "misspecification" not in text


def test_shifts_and_deviations_are_named(somebody, tmp_path):
    words = {"batch_intercept": True, "misspecification": 0.05}
    look = lab(tmp_path / "lab.db", fl.Arms(FEATURES), 2, shift=3.0, **words)
    assert status(look).verdict == "continue"
    text = text_of(somebody.get("/studies/1"))
    assert "Shifts between batches allowed for" in text
    assert "Means off the model (misspecification) by 0.05 at most" in text
    assert "not yet" not in text
    assert "estimates are for comparing candidates only" in text
    assert "within 0.05 of a function that is linear" in text
    assert "Compare candidates only: the level of each batch is unknown." in text


@pytest.mark.parametrize(
    "words",
    [
        {"top": 2},
        {"cost": [1.0, 2.0, 3.0, 1.0, 1.0, 1.0]},
        {"sigma": [0.5, 0.6, 0.5, 0.5, 0.5, 0.5]},
        {"batch_intercept": True},
        {"misspecification": 0.05},
        {"measurable": np.arange(6) < 3},
        {},
    ],
)
def test_charts_for_the_plain_question_are_for_that_alone(tmp_path, words):
    arms = fl.Arms(FEATURES, measurable=words.pop("measurable", None))
    plain = not words and arms.measurable.all()
    look = lab(tmp_path / "lab.db", arms, 1, **words)
    assert ("plane" in available(look)) == plain


def test_further_arms_come_with_their_cost(somebody, tmp_path):
    names = list("abcdef")
    lab(tmp_path / "lab.db", fl.Arms(FEATURES, names=names), 0, cost=[1.0, 2, 3, 4, 5, 6])
    missing = somebody.post("/studies/1/add", {"pasted": "name,f1,f2\ng,0.2,0.9\n"})
    assert "there is no column 'cost'" in text_of(missing)
    table = "name,f1,f2,cost\nagain,1,0,1\ng,0.2,0.9,7\n"
    seen = somebody.post("/studies/1/add", {"pasted": table})
    assert "f1 (number) f2 (number) cost (cost)" in text_of(seen)
    packed = packed_in(seen.text)
    added = somebody.post("/studies/1/add", {"arms": packed})
    assert added.headers["location"].startswith("/studies/1?said=added-one")
    with Study.open(tmp_path / "lab.db", "lab") as study:
        assert study._log.now().problem.costs.tolist() == [1, 2, 3, 4, 5, 6, 7]
