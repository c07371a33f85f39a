"""Sheets of results on the page, over the API and by the client."""

import io
import sys

import openpyxl
import pandas as pd
import pytest

import finalist as fl
from finalist.client import connect
from finalist.errors import TooLargeError
from finalist.study import Study
from finalist.web import uploads
from tests.web.labs import Page, person
from tests.web.servers import api, in_thread

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
TABLE = pd.DataFrame(
    {
        "name": ["tin", "lead", "zinc"],
        "dose": [1.5, 2, 4],
        "Tone": ["warm <b>", "mild", "=cold"],
    }
)


@pytest.fixture
def place(tmp_path):
    arms = fl.Arms.from_formula("dose", TABLE)
    with Study.create(tmp_path / "lab.db", "metals", arms, sigma=1.0, seed=1) as study:
        study.ask(6)
    return tmp_path / "lab.db"


def states(place):
    with Study.open(place, "metals") as study:
        return list(study.to_frame().state)


def filled(content: bytes, values: list[object]) -> bytes:
    book = openpyxl.load_workbook(io.BytesIO(content))
    sheet = book.worksheets[0]
    column = [cell.value for cell in sheet[1]].index("result") + 1
    for i, value in enumerate(values, 2):
        sheet.cell(i, column).value = value
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


VALUES: list[object] = [0.5, "failed", "1,5", None, 2]


def test_a_workbook_goes_from_the_page_and_comes_back(place):
    with person(place) as somebody:
        answer = somebody.get("/api/v1/studies/1/open.xlsx")
        assert answer.headers["content-type"] == XLSX
        assert "batch.xlsx" in answer.headers["content-disposition"]
        sent = {"file": ("batch.xlsx", filled(answer.content, VALUES))}
        answer = somebody.post("/studies/1/upload", files=sent)
        assert answer.headers["location"] == "/studies/1?said=stored&n=3&again=1#main"
        page = somebody.get(answer.headers["location"]).text
        assert "3 new results are stored. 1 measurement failed. It is made again" in page
        again = somebody.post("/studies/1/upload", files=sent)
        assert again.headers["location"] == "/studies/1?said=same#main"
    assert states(place) == ["told", "void", "told", "open", "told", "open", "open"]


def test_without_the_extra_for_workbooks_the_page_names_it_and_takes_csv(place, monkeypatch):
    with person(place) as somebody:
        book = somebody.get("/api/v1/studies/1/open.xlsx").content
        for module in ("python_calamine", "xlsxwriter"):
            monkeypatch.setitem(sys.modules, module, None)
        sent = {"file": ("batch.xlsx", book)}
        for answer in (
            somebody.get("/api/v1/studies/1/open.xlsx"),
            somebody.post("/studies/1/upload", files=sent),
        ):
            assert answer.status_code == 501
            assert "pip install 'finalist[tables]'" in answer.text.replace("&#39;", "'")
        typed = somebody.get("/api/v1/studies/1/open.csv").content
        answer = somebody.post("/studies/1/upload", files={"file": ("batch.csv", typed)})
        assert answer.status_code < 500
        assert "finalist[" not in answer.text


def test_the_page_shows_the_candidates_own_columns(place):
    with person(place) as somebody:
        page = somebody.get("/studies/1")
        text = Page(page.text).text
        assert "Candidate dose Tone Result" in " ".join(text.split())
        assert "warm <b>" in text
        assert "<b>" not in page.text
        assert "'=cold" in page.text.replace("&#39;", "'")  # in what is copied into a spreadsheet
        assert 'name="decimal"' not in page.text


def test_typed_results_may_have_a_comma_or_say_failed(place):
    with person(place) as somebody:
        typed = {
            "reward-1": "1,5",
            "reward-2": "1.000",
            "reward-3": " Failed ",
            "reward-4": "1,000",
        }
        answer = somebody.post("/studies/1/tell", typed)
        assert answer.status_code == 422
        assert "may mean 1 or 1000" in answer.text
        assert set(states(place)) == {"open"}
        answer = somebody.post("/studies/1/tell", typed | {"reward-4": ""})
        assert answer.headers["location"] == "/studies/1?said=stored&n=2&again=1#main"
        only = somebody.post("/studies/1/tell", {"reward-4": "failed"})
        assert "1 measurement failed" in somebody.get(only.headers["location"]).text
        told = somebody.post("/studies/1/tell", {"reward-4": "2"})
        assert told.status_code == 409
        assert "its candidate is measured again under another number" in told.text
    with Study.open(place, "metals") as study:
        assert study.to_frame().reward.tolist()[:2] == [1.5, 1.0]


def test_a_table_with_two_readings_is_refused_with_both_and_a_choice(place):
    pasted = {"pasted": "pull_id\tresult\n1\t1.000\n2\t2.500\n"}
    with person(place) as somebody:
        answer = somebody.post("/studies/1/upload", pasted)
        assert answer.status_code == 422
        text = Page(answer.text).text
        assert "is 1 with a decimal point and 1000 with a decimal comma" in text
        assert "decimal=" not in text
        assert 'name="decimal"' in answer.text
        answer = somebody.post("/studies/1/upload", pasted | {"decimal": ","})
        assert answer.headers["location"] == "/studies/1?said=stored&n=2#main"
    with Study.open(place, "metals") as study:
        assert study.to_frame().reward.tolist()[:2] == [1000.0, 2500.0]


def test_the_api_takes_workbooks_and_failures(place):
    with in_thread(place) as url, api(url) as client:
        content = filled(client.get("/studies/1/open.xlsx").content, VALUES)
        headers = {"Content-Type": XLSX, "Idempotency-Key": "once"}
        for _ in range(2):
            answer = client.post("/studies/1/tell.xlsx", content=content, headers=headers).json()
            assert (answer["new"], answer["again"]) == (3, 1)
        assert answer["repeated"]
        wrong = client.post(
            "/studies/1/tell.xlsx", content=content, headers={"Content-Type": "text/plain"}
        )
        assert wrong.status_code == 415
        bad = client.post(
            "/studies/1/tell.xlsx", content=content[:-900], headers={"Content-Type": XLSX}
        )
        assert bad.status_code == 422
        rows = {"results": [{"pull_id": 4, "reward": "failed"}, {"pull_id": 6, "reward": 1.0}]}
        answer = client.post("/studies/1/tell", json=rows).json()
        assert (answer["new"], answer["again"]) == (1, 1)
        rows = {"results": [{"pull_id": 7, "reward": "FAILED!"}]}
        assert client.post("/studies/1/tell", json=rows).status_code == 422
        narrow = client.get("/studies/1/open.csv", params={"columns": "false"}).text
        assert narrow.startswith("pull_id,candidate,result,note")
        assert client.get("/studies/1/open.csv").text.startswith(
            "pull_id,candidate,dose,Tone,result,note"
        )


def test_the_client_tells_files_frames_and_failures(place, tmp_path):
    with in_thread(place) as url:
        study = connect(url).open("metals")
        with api(url) as client:
            content = client.get("/studies/1/open.xlsx").content
        (tmp_path / "batch.xlsx").write_bytes(filled(content, VALUES))
        assert study.tell(tmp_path / "batch.xlsx") == 3
        (tmp_path / "batch.csv").write_text("pull_id;result\n4;1.250\n")
        assert study.tell(tmp_path / "batch.csv", decimal=",") == 1
        assert study.tell({6: "failed", 7: 1.0}) == 1
        assert study.to_frame().reward.tolist()[3] == 1250.0
    assert states(place).count("void") == 2


def test_too_many_rows_are_refused_with_the_remedy(place, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_RESULTS", 1)
    with (
        Study.open(place, "metals") as study,
        pytest.raises(TooLargeError, match="Send it in parts"),
    ):
        uploads.tell_table(study, b"pull_id,result\n1,1\n2,2\n")
    assert set(states(place)) == {"open"}
