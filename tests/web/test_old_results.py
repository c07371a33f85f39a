"""Old results on the page and over the API: a calculator of sigma, and a field of a new study."""

import io
import re

import pytest

import finalist as fl
from finalist.study import Study
from finalist.web.arms_preview import pack
from finalist.web.pages.form import DEFAULTS
from tests.web.labs import Page, person

ARMS = "name,dose\na,0.5\nb,1\nc,2\nd,3.5\n"
HILL = {"a": -2.25, "b": -1.0, "c": 0.0, "d": -2.25}
#: Three results of each candidate that scatter by 0.1.
ROWS = [(name, mean + d) for name, mean in HILL.items() for d in (-0.1, 0.0, 0.1)]


def pasted(rows=ROWS, header="Sorte\tErtrag", decimal="."):
    lines = [f"{name}\t{value:.3f}".replace(".", decimal) for name, value in rows]
    return "\r\n".join([header, *lines]) + "\r\n"


def sheet(rows=ROWS):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        page = book.add_worksheet()
        page.write_row(0, 0, ["Sorte", "Tag", "Ertrag"])
        for i, (name, value) in enumerate(rows, 1):
            page.write_row(i, 0, [name, i % 3, value])
    return buffer.getvalue()


def question(**values):
    return {**DEFAULTS, "name": "doses", "arms": pack(ARMS.encode()), "do": "create", **values}


@pytest.fixture
def somebody(tmp_path):
    with person(tmp_path / "lab.db") as found:
        yield found


def studies(somebody):
    return somebody.get("/api/v1/studies").json()["studies"]


# ---- the calculator ------------------------------------------------------------------------


def test_the_calculator_is_on_the_list_and_needs_no_study(somebody):
    assert 'href="/sigma"' in somebody.get("/").text
    page = somebody.get("/sigma")
    assert page.status_code == 200
    assert "<script" not in re.sub(
        r"<script src=./static/(app|bench|values).js. defer></script>", "", page.text
    )


@pytest.mark.parametrize("decimal", [".", ","])
def test_pasted_cells_give_sigma(somebody, decimal):
    text = Page(somebody.post("/sigma", {"history": pasted(decimal=decimal)}).text).text
    assert "Sigma is about 0.1" in text
    assert "between 0.068 and 0.19" in text
    assert "12 repeated measurements of 4 candidates" in text
    assert "candidates from 'Sorte', results from 'Ertrag'" in text
    assert studies(somebody) == []


def test_a_sheet_asks_which_column_and_keeps_the_cells(somebody):
    files = {"history_file": ("old.xlsx", sheet(), "application/octet-stream")}
    answer = somebody.post("/sigma", {}, files=files)
    assert answer.status_code == 422
    page = Page(answer.text)
    assert "It is not clear which has the results" in page.text.replace("it is", "It is")
    assert "choose it below" in page.text
    assert "--" not in page.text
    kept = re.findall(r'name="history"[^>]*>\n?(.*?)</textarea>', answer.text, re.DOTALL)
    again = somebody.post("/sigma", {"history": kept[0], "result_column": "Ertrag"})
    assert "Sigma is about 0.1" in Page(again.text).text
    assert '<option value="Ertrag" selected>' in again.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Paste some results"),
        ("a\tb\n", "no measurements"),
        ("x\t1.5\nx\t2\n", "names the columns"),
        ("name\tresult\na\t1.5\nb\t2\n", "none was measured twice"),
        ("name\tresult\na\t0\na\t1\n", "bernoulli"),
        ("name\tresult\na\toops\na\t1\n", "line 2, column 'result': 'oops'"),
        ("name\tresult\na\t1.5\na\t1.5\n", None),
        ("<script>alert(1)</script>\tresult\nx\t1\n", "none was measured twice"),
    ],
)
def test_what_the_calculator_cannot_use_is_said_in_place(somebody, text, words):
    answer = somebody.post("/sigma", {"history": text})
    page = Page(answer.text)
    assert "<script>alert" not in answer.text
    assert answer.status_code == (422 if words else 200)
    assert (words or "below the resolution of the numbers") in page.text
    assert "--" not in page.text


# ---- a new study ---------------------------------------------------------------------------


def test_the_form_looks_at_old_results_before_anything_is_created(somebody):
    answer = somebody.post("/new/study", question(do="old", name="", history=pasted()))
    text = Page(answer.text).text
    assert answer.status_code == 200
    assert "Old results: 12 measurements of 4 candidates; sigma about 0.1" in text
    assert "the model does not fit them" in text
    assert "Old results speak against the model (straight)" in text
    assert studies(somebody) == []
    bent = somebody.post("/new/study", question(do="old", history=pasted(), model="bending"))
    assert "the model fits them" in Page(bent.text).text


def test_a_study_is_created_with_its_old_results(somebody, tmp_path):
    answer = somebody.post("/new/study", question(history=pasted()))
    assert answer.status_code in (200, 303)
    with Study.open(tmp_path / "lab.db", "doses") as study:
        assert [event["kind"] for event in study.history()] == ["created", "history"]
        assert study.settings["noise"]["sigma"] is None
    text = Page(somebody.get("/studies/1").text).text
    assert "Old results: 12 measurements of 4 candidates" in text
    assert "Old results speak against the model" in text
    assert "Old results: 12 measurements" in Page(somebody.get("/studies/1/report.html").text).text
    status = somebody.get("/api/v1/studies/1/status").json()
    assert status["old_results"].startswith("Old results: 12 measurements")
    assert any("speak against" in words for words in status["warnings"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"history": pasted([*ROWS, ("zzz", 1.0)])}, "'zzz'"),
        ({"history": "name\tresult\na\toops\n"}, "'oops'"),
        ({"history": pasted([("a", 1.0), ("a", 0.0)])}, "bernoulli"),
        ({"history": pasted(), "noise": "bernoulli"}, "a result is 0 or 1"),
    ],
)
def test_wrong_old_results_create_nothing_and_stay_in_the_form(somebody, values, words):
    answer = somebody.post("/new/study", question(**values))
    assert answer.status_code == 422
    assert words in Page(answer.text).text
    assert 'id="history-wrong"' in answer.text
    assert "--" not in Page(answer.text).text
    assert values["history"].split()[0] in answer.text
    assert studies(somebody) == []


def test_results_of_other_candidates_can_be_left_out(somebody):
    values = {"history": pasted([*ROWS, ("zzz", 1.0)]), "known_only": "yes"}
    looked = Page(somebody.post("/new/study", question(do="old", **values)).text).text
    assert "1 old result of other candidates left out: 'zzz'" in looked
    somebody.post("/new/study", question(**values))
    assert len(studies(somebody)) == 1


def test_a_strategy_that_cannot_use_them_says_so_and_creates_nothing(somebody):
    values = {"history": pasted(), "strategy": "rage", "known": "known", "sigma": "0.1"}
    answer = somebody.post("/new/study", question(**values))
    assert "cannot use earlier measurements" in Page(answer.text).text
    assert studies(somebody) == []


# ---- the API -------------------------------------------------------------------------------


def test_the_api_creates_a_study_with_its_old_results_or_nothing(somebody):
    rows = [{"arm": name, "reward": value} for name, value in ROWS]
    body = {"name": "doses", "arms_csv": ARMS, "sigma": None, "history": rows}
    wrong = somebody.post(
        "/api/v1/studies", json={**body, "history": [*rows, {"arm": "zzz", "reward": 1.0}]}
    )
    assert wrong.status_code in (404, 422)
    assert "'zzz'" in wrong.text
    assert studies(somebody) == []
    assert somebody.post("/api/v1/studies", json=body).status_code == 201
    assert somebody.get("/api/v1/studies/1/status").json()["old_results"]
    events = somebody.get("/api/v1/studies/1/history").json()["events"]
    assert [event["kind"] for event in events] == ["created", "history"]


def test_the_estimate_is_that_of_the_library(somebody):
    found = fl.estimate_sigma(ROWS)
    text = Page(somebody.post("/sigma", {"history": pasted()}).text).text
    assert f"about {found.shown(found.sigma)}" in text
