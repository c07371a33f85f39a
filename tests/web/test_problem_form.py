"""The form of a new study: noise, cost and roles of each arm, several winners, shifts."""

import re

import pytest

from finalist.arms.table import read_candidates
from finalist.study import Study
from finalist.web.arms_preview import pack
from finalist.web.pages.form import DEFAULTS
from tests.web.labs import Page, packed_in, person, text_of

TABLE = """name,a,b,noise,price,stock
tin,1,0,0.5,2,yes
zinc,0,1,1.5,1,Yes
lead,1,1,1,4,no
gold,0.5,2,1,3,1
iron,2,1,0.3,1,0
"""
PLAIN = "name,a,b\noak,1,0\nash,0,1\nelm,0.6,0.7\n"
OTHERS = "name,a,b\nx,3,1\ny,1,3\nz,2,2\n"
COLUMNS = {"role:noise": "noise", "role:price": "cost", "role:stock": "measurable"}


@pytest.fixture
def somebody(tmp_path):
    with person(tmp_path / "lab.db") as found:
        yield found


def question(table=TABLE, **values):
    return {**DEFAULTS, "name": "metals", "arms": pack(table.encode()), "do": "create", **values}


def settings_of(place, name="metals"):
    with Study.open(place, name) as study:
        return study.settings


def studies(somebody):
    return somebody.get("/api/v1/studies").json()["studies"]


def test_the_simple_case_stays_simple(somebody):
    page = Page(somebody.post("/new", {"pasted": PLAIN}).text)
    assert len(page.all("details")) == 5
    assert not any("open" in details for details in page.all("details"))
    assert [a["value"] for a in page.all("input") if a.get("name") == "known"] == [
        "unknown",
        "known",
    ]


def test_a_table_with_a_column_of_words_is_not_lost(somebody):
    table = TABLE.replace("zinc,0,1,1.5,1", "zinc,0,1,1.5,cheap")
    answer = somebody.post("/new", {"pasted": table})
    assert answer.status_code == 422
    assert "&#39;cheap&#39; is not a finite number" in answer.text
    packed = packed_in(answer.text)
    values = {"arms": packed, "name": "mine", "delta": "1", "do": "look"}
    again = somebody.post("/new/study", values)
    assert again.status_code == 422
    assert 'name="delta" value="1"' in again.text
    good = somebody.post("/new/study", {**values, "role:price": "ignore"})
    assert good.status_code == 200
    assert 'value="mine"' in good.text
    assert "price (ignore)" in text_of(good)


def test_columns_that_are_no_features_do_not_count_as_such(somebody):
    answer = somebody.post("/new/study", question(**COLUMNS, do="look"))
    assert answer.status_code == 200
    text = text_of(answer)
    for words in (
        "5 candidates",
        "3 arms to measure, 5 candidates",
        "a (number) b (number) noise (noise) price (cost) stock (measurable)",
        "known, of each candidate, in a column",
    ):
        assert words in text, words
    checked = [a["value"] for a in Page(answer.text).all("input") if "checked" in a]
    assert checked == ["certain", "max", "column", "yes", "straight"]
    assert studies(somebody) == []
    none = somebody.post("/new/study", question(known="column", do="look"))
    assert "noise (number) price (number) stock (yes/no)" in text_of(none)
    plain = somebody.post("/new/study", question(PLAIN, known="column", do="look"))
    checked = [a["value"] for a in Page(plain.text).all("input") if "checked" in a]
    assert checked == ["certain", "max", "unknown", "yes", "straight"]


def test_a_study_of_the_page_is_that_of_the_library(somebody, tmp_path):
    words = {"known": "column", "top": "2", "batch_intercept": "yes", "misspecification": "0.1"}
    answer = somebody.post("/new/study", question(**COLUMNS, **words))
    assert answer.status_code == 303, answer.text
    table = tmp_path / "arms.csv"
    table.write_text(TABLE)
    roles = {"noise": "noise", "price": "cost", "stock": "measurable"}
    read = read_candidates(table, roles)
    Study.create(
        tmp_path / "lab.db",
        "same",
        read.arms,
        sigma=read.sigma,
        cost=1.0 if read.cost is None else read.cost,
        top=2,
        batch_intercept=True,
        misspecification=0.1,
    ).close()
    made, same = (settings_of(tmp_path / "lab.db", name) for name in ("metals", "same"))
    assert made | {"seed": 0} == same | {"seed": 0}
    assert made["noise"]["sigma"] == [0.5, 1.5, 1.0, 1.0, 0.3]
    assert made["cost"] == [2.0, 1.0, 4.0, 3.0, 1.0]
    assert made["measurable"] == [True, True, False, True, False]
    with Study.open(tmp_path / "lab.db", "metals") as study:
        assert study.arms.feature_names == ("a", "b", "intercept")


def test_bad_cells_of_such_columns_are_marked(somebody):
    table = TABLE.replace("zinc,0,1,1.5", "zinc,0,1,-1.5").replace("no\n", "perhaps\n")
    answer = somebody.post("/new/study", question(table, **COLUMNS))
    assert answer.status_code == 422
    page = Page(answer.text)
    bad = [text for tags, text in page.texts if tags[-1] == "td" and text in ("-1.5", "perhaps")]
    assert bad == ["-1.5", "perhaps"]
    assert answer.text.count('<td class="bad">') == 2
    roles = [text for tags, text in page.texts if tags[-1] == "option"]
    assert answer.text.count("<option selected>") == 3, roles
    missing = somebody.post("/new/study", question(PLAIN, **{"role:price": "cost"}))
    assert "there is no column 'price'" in text_of(missing)
    assert studies(somebody) == []


def test_the_winner_is_chosen_from_other_candidates(somebody, tmp_path):
    values = question(**COLUMNS, known="column", candidates=OTHERS)
    look = somebody.post("/new/study", {**values, "do": "look"})
    assert "3 arms to measure, 3 candidates" in text_of(look)
    assert somebody.post("/new/study", values).status_code == 303
    with Study.open(tmp_path / "lab.db", "metals") as study:
        assert study.arms.names == ("tin", "zinc", "lead", "gold", "iron", "x", "y", "z")
        assert study.arms.candidate.tolist() == [False] * 5 + [True] * 3
        assert study.arms.measurable.tolist() == [True, True, False, True] + [False] * 4
        assert study.settings["noise"]["sigma"][:5] == [0.5, 1.5, 1.0, 1.0, 0.3]
        assert study.settings["cost"][:5] == [2.0, 1.0, 4.0, 3.0, 1.0]
    assert "sigma of each arm, 0.5 to 1.5" in text_of(somebody.get("/studies/1"))


def test_candidates_may_be_a_file_and_stay_when_something_else_is_wrong(somebody):
    values = question(PLAIN, delta="0")
    file = {"candidates_file": ("others.csv", OTHERS.encode())}
    answer = somebody.post("/new/study", values, files=file)
    assert answer.status_code == 422
    assert "not between 0 and 100" in answer.text
    assert "x,3,1" in text_of(answer)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ("name,a,b\nx,3,oops\ny,1,1\n", "line 2, column 'b': 'oops' is not a finite number"),
        ("name,a,c\nx,3,1\n", "there is no column 'b'"),
        ("name,a,b\noak,3,1\n", "'oak' is an arm and a candidate with other features"),
        ("x\ny\n", "there is no column 'a'"),
    ],
)
def test_candidates_that_cannot_be_used_are_marked(somebody, others, words):
    answer = somebody.post("/new/study", question(PLAIN, candidates=others))
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert 'id="candidates-wrong"' in answer.text
    assert studies(somebody) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"top": "0"}, "0 is not a whole number, 1 or more"),
        ({"top": "1.5"}, "not a whole number"),
        ({"misspecification": "-1"}, "-1 is below 0"),
        ({"misspecification": "1,000"}, "has two meanings; write it without a comma"),
        ({"known": "column"}, "Choose the column that holds the noise"),
    ],
)
def test_wrong_fields_are_marked(somebody, values, words):
    answer = somebody.post("/new/study", question(PLAIN, **values))
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert 'class="wrong"' in answer.text
    more = Page(answer.text).all("details")[2]
    assert ("open" in more) == ("known" not in values)
    assert studies(somebody) == []


@pytest.mark.parametrize("known", [{"known": "known", "sigma": "1"}, {"known": "unknown"}])
def test_noise_is_given_once(somebody, known):
    answer = somebody.post("/new/study", question(**COLUMNS, **known))
    assert answer.status_code == 422
    assert "give the noise once" in answer.text
    assert studies(somebody) == []


@pytest.mark.parametrize(
    "words",
    [
        {"top": 3},
        {"top": 2, "epsilon": 0.1},
        {"top": 2, "strategy": "xy"},
        {"misspecification": 0.1, "strategy": "uniform"},
        {"batch_intercept": True, "strategy": "g"},
    ],
)
def test_what_the_api_refuses_the_page_refuses_in_the_same_words(somebody, words):
    arms = {"names": ["oak", "ash", "elm"], "features": [[1, 0], [0, 1], [0.6, 0.7]]}
    body = {"name": "metals", "arms": arms, "sigma": 1.0, **words}
    refused = somebody.client.post("/api/v1/studies", json=body)
    typed = {word: "yes" if value is True else str(value) for word, value in words.items()}
    answer = somebody.post("/new/study", question(PLAIN, known="known", sigma="1", **typed))
    assert answer.status_code == refused.status_code == 422, refused.text
    assert refused.json()["message"] in text_of(answer)
    assert studies(somebody) == []


def test_a_plan_speaks_of_cost_and_of_several_winners(somebody):
    values = {"known": "column", "gap": "1", "do": "plan"}
    costs = text_of(somebody.post("/new/study", question(**COLUMNS, **values)))
    assert re.search(r"Expect about [\d,]+ units of cost, 90 % within", costs)
    assert "with sigma of each candidate, 0.5 to 1.5, and a lead of 1" in costs
    several = {"known": "known", "sigma": "0.5", "top": "2", "gap": "1", "do": "plan"}
    answer = text_of(somebody.post("/new/study", question(PLAIN, **several)))
    assert re.search(r"Expect about [\d,]+ measurements, 90 % within [\d,]+; the same test", answer)
    arms = {"features": [[1, 0], [0, 1], [0.6, 0.7]]}
    body = {"arms": arms, "sigma": 0.5, "gap": 1.0, "draws": 5, "top": 2, "cost": [1, 2, 3]}
    plan = somebody.client.post("/api/v1/plan", json=body).json()
    assert [row["name"] for row in plan["rows"]] == ["gauntlet", "equal shares"]
    assert plan["unit"] == "units of cost"


@pytest.mark.parametrize(
    ("said", "features"), [("yes", ("x", "y", "intercept")), ("no", ("x", "y"))]
)
def test_results_may_have_a_level_of_their_own(somebody, tmp_path, said, features):
    seen = somebody.post("/new", {"pasted": "name,x,y\na,-1,0\nb,0,1\nc,0,0\n"})
    assert "What is expected where all columns are 0?" in seen.text
    values = {"arms": packed_in(seen.text), "name": "level", "delta": "5", "known": "unknown"}
    made = somebody.post("/new/study", {**values, "intercept": said, "do": "create"})
    assert made.status_code == 303
    with Study.open(tmp_path / "lab.db", "level") as study:
        assert study.arms.feature_names == features
    more = somebody.get("/studies/1/add").text  # the intercept is added by itself
    assert "a name, and <code>x</code>, <code>y</code>." in more
    names = somebody.post("/new", {"pasted": "oak\nash\n"})
    assert "How do results follow from the columns?" not in names.text
