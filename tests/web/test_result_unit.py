"""The unit of the results, wherever they are shown."""

import csv
import io

import finalist as fl
from finalist.study import Study
from finalist.study.status import status
from finalist.web.pages.pictures import draw
from tests.cli.common import run
from tests.web.labs import person, text_of

ARMS = fl.Arms([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]], ["oak", "ash", "elm"])


def test_the_unit_is_shown_in_status_charts_sheets_page_and_report(tmp_path):
    place = tmp_path / "lab.db"
    with Study.create(place, "trees", ARMS, sigma=1.0, seed=1, unit="kg <m>") as study:
        batch = study.ask(size=8)
        batch.to_csv(tmp_path / "batch.csv")
        study.tell({pull.pull_id: 0.5 * pull.pull_id for pull in batch})
        study.ask(size=4)
        shown = study.snapshot()
        assert status(shown).unit == study.status().to_dict()["unit"] == "kg <m>"
        axis = str(draw(shown, "residuals", lambda: None).to_dict())
        assert "Estimate (kg <m>)" in axis
    with (tmp_path / "batch.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["unit"] for row in rows} == {"kg <m>"}
    assert "Estimate (kg <m>)" in run("status", "trees", "--db", place).stdout
    with person(place) as somebody:
        page = somebody.get("/studies/1")
        assert "Mean (kg <m>" in text_of(page)
        assert "Result (kg <m>)" in text_of(page)
        assert "kg <m>" not in page.text
        assert "Mean (kg <m>" in text_of(somebody.get("/studies/1/report.html"))
        sheet = somebody.get("/api/v1/studies/1/open.csv").text
        assert {row["unit"] for row in csv.DictReader(io.StringIO(sheet))} == {"kg <m>"}
        assert somebody.get("/api/v1/studies/1/open").json()["unit"] == "kg <m>"


def test_a_sheet_with_a_unit_is_taken_back(tmp_path):
    sheet = tmp_path / "batch.csv"
    with Study.create(tmp_path / "lab.db", "trees", ARMS, sigma=1.0, seed=1, unit="kg") as study:
        study.ask(size=8).to_csv(sheet)
        filled = sheet.read_text().replace(",,", ",1.5,")
        sheet.write_text(filled)
        assert study.tell(sheet) == 8
