"""Tables that people have, through the API, the client and the page."""

import base64
import io

import openpyxl
import pytest

import finalist as fl
from finalist.study import Study
from finalist.web.arms_preview import pack
from finalist.web.pages.form import DEFAULTS
from tests.unit.test_tables import workbook
from tests.web.labs import person, text_of
from tests.web.servers import in_thread

SEEDS = "Sort;Tone;Dose;Price\nA;calm;1,5;2\nB;loud;2;3\nC;calm;3;4\nD;loud;4;5\n"


@pytest.fixture
def somebody(tmp_path):
    with person(tmp_path / "lab.db") as found:
        yield found


def sheet():
    """Return the same table as a spreadsheet."""

    def cell(text):
        return float(text.replace(",", ".")) if text[0].isdigit() else text

    return workbook(*(map(cell, row.split(";")) for row in SEEDS.splitlines()))


@pytest.mark.parametrize("form", ["text", "base64"])
def test_a_study_begins_with_a_table_through_the_api(somebody, tmp_path, form):
    content = SEEDS if form == "text" else base64.b64encode(sheet()).decode()
    table = {form: content, "columns": {"Price": "cost"}, "model": "bending"}
    made = somebody.client.post(
        "/api/v1/studies", json={"name": "seeds", "table": table, "sigma": 1.0}
    )
    assert made.status_code == 201, made.text
    with Study.open(tmp_path / "lab.db", "seeds") as study:
        assert study.arms.feature_names == ("Tone: loud", "Dose", "Dose^2", "intercept")
        assert study.settings["cost"] == [2.0, 3.0, 4.0, 5.0]
        assert study.arms.table["Tone"] == ("calm", "loud", "calm", "loud")
        own = study.arms
    answer = somebody.client.get("/api/v1/studies/1/arms").json()
    assert answer["given"]["recipe"]["name"] == "bending"
    from finalist.client.values import parse_arms

    same = parse_arms(answer)
    assert same == own
    assert same.recipe == own.recipe
    assert same.table.keys() == own.table.keys()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "give the table once"),
        ({"text": SEEDS, "base64": ""}, "give the table once"),
        ({"base64": "not base64!"}, "did not come back"),
        ({"text": "a;p\nA;1.000\nB;2.000\n"}, "Say which: decimal=. or decimal=,"),
        ({"text": SEEDS, "columns": {"Tome": "ignore"}}, "no column 'Tome'"),
        ({"text": SEEDS, "columns": {"Price": "noise"}}, "both give the noise"),
        ({"text": SEEDS, "model": "wavy"}, "straight"),
        ({"text": "a\n" + "x\n" * 20_001}, "limits"),
    ],
)
def test_what_the_api_cannot_use_is_refused(somebody, table, words):
    body = {"name": "seeds", "table": table, "sigma": 1.0}
    answer = somebody.client.post("/api/v1/studies", json=body)
    assert answer.status_code in (413, 422), answer.text
    assert words in answer.text
    assert somebody.get("/api/v1/studies").json()["studies"] == []


def test_a_remote_study_keeps_the_table(tmp_path):
    arms = fl.Arms.from_table(SEEDS.encode(), columns={"Price": "ignore"}, model="bending")
    with in_thread(tmp_path / "lab.db") as url:
        server = fl.connect(url)
        remote = server.create("seeds", arms, sigma=1.0, seed=1)
        assert remote.arms == arms
        assert remote.arms.recipe == arms.recipe
        assert list(remote.arms.table) == list(arms.table)
    with Study.open(tmp_path / "lab.db", "seeds") as study:
        assert study.arms.recipe == arms.recipe
        assert study.arms.table["Price"] == ("2", "3", "4", "5")


def test_features_that_do_not_follow_from_the_table_are_refused(somebody):
    from finalist.client.values import arms_body

    arms = fl.Arms.from_table(SEEDS.encode(), columns={"Price": "ignore"})
    body = arms_body(arms)
    body["features"][0][0] += 1.0  # calm, and loud by its features
    answer = somebody.client.post(
        "/api/v1/studies", json={"name": "seeds", "arms": body, "sigma": 1.0}
    )
    assert answer.status_code == 422
    assert "not those that the recipe makes" in answer.text
    short = arms_body(arms)
    short["given"]["table"][1][1].pop()
    answer = somebody.client.post(
        "/api/v1/studies", json={"name": "seeds", "arms": short, "sigma": 1.0}
    )
    assert "3 cells for 4 rows" in answer.text


#: 1,500 candidates with 90 numbers each, of which a surface would make 4,185 features.
WIDE = "\n".join(
    [",".join(["name", *(f"x{j}" for j in range(90))])]
    + [",".join([f"a{i}", *(str((i * j) % 97) for j in range(90))]) for i in range(1_500)]
)
RECIPE = {"name": "straight", "columns": ["x"]}


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE | {"squares": ["x"]},
        RECIPE | {"levels": {"zz": []}},
        RECIPE | {"columns": []},
        RECIPE | {"columns": ["x", "x"]},
        RECIPE | {"name": "bending", "squares": ["x"]},
        RECIPE | {"name": "bending", "squares": ["y"], "centres": {"y": 0.0}},
        RECIPE | {"levels": {"x": ["a", "a"]}},
    ],
)
def test_a_recipe_that_contradicts_itself_is_refused(somebody, recipe):
    arms = {
        "names": ["a", "b", "c"],
        "features": [[1.0], [2.0], [4.0]],
        "feature_names": ["x"],
        "given": {"recipe": recipe, "table": [["x", None]]},
    }
    answer = somebody.client.post("/api/v1/studies", json={"name": "s", "arms": arms, "sigma": 1.0})
    assert answer.status_code == 422, answer.text
    assert somebody.get("/api/v1/studies").json() == {"studies": []}


@pytest.mark.parametrize(
    "table",
    [
        {"text": "name\n" + "".join(f"a{i}\n" for i in range(5_000))},
        {"text": WIDE, "model": "surface"},
    ],
)
def test_features_have_a_limit_before_they_are_made(somebody, table):
    body = {"name": "s", "table": table, "sigma": 1.0}
    answer = somebody.client.post("/api/v1/studies", json=body)
    assert answer.status_code == 422
    assert "candidates" in answer.text


# --- the page -------------------------------------------------------------------------------


def test_a_spreadsheet_is_read_on_the_page(somebody, tmp_path):
    seen = somebody.post("/new", {}, files={"file": ("seeds.xlsx", sheet())})
    assert seen.status_code == 200
    text = text_of(seen)
    for words in (
        "read as: sheet 'Sheet'",
        "4 candidates",
        "Tone against calm (the reference)",
        "Sort (name) Tone (category) Dose (number) Price (number)",
    ):
        assert words in text, words
    values = {**DEFAULTS, "name": "seeds", "arms": pack(sheet()), "do": "create"}
    made = somebody.post("/new/study", {**values, "role:Price": "ignore", "model": "bending"})
    assert made.status_code == 303
    with Study.open(tmp_path / "lab.db", "seeds") as study:
        assert study.arms.recipe.name == "bending"
        assert study.arms.table["Price"] == (2.0, 3.0, 4.0, 5.0)


def test_two_readings_are_settled_on_the_page(somebody):
    content = b"name;dose\nA;1.000\nB;2.500\n"
    seen = somebody.post("/new", {"pasted": content.decode()})
    assert seen.status_code == 422
    text = text_of(seen)
    assert "'1.000' is 1 with a decimal point and 1000 with a decimal comma" in text
    assert "--decimal" not in text
    assert 'name="decimal"' in seen.text
    values = {**DEFAULTS, "arms": pack(content), "do": "look"}
    good = somebody.post("/new/study", {**values, "decimal": ","})
    assert good.status_code == 200
    assert "2 candidates" in text_of(good)


def test_a_row_number_is_asked_about_on_the_page(somebody):
    rows = "".join(f"{i};s{i};{i * i}\n" for i in range(1, 9))
    seen = somebody.post("/new", {"pasted": f"Nr;Sort;Dose\n{rows}"})
    assert seen.status_code == 422
    assert "counts the rows" in text_of(seen)
    assert '<tr class="asked">' in seen.text
    assert "please choose" in seen.text


def test_models_have_prices_on_the_page(somebody):
    values = {**DEFAULTS, "arms": pack(SEEDS.encode()), "role:Price": "ignore", "do": "prices"}
    asked = somebody.post("/new/study", values)
    assert asked.status_code == 422
    assert "how large a lead has to be" in text_of(asked)
    told = somebody.post("/new/study", {**values, "gap": "2", "guess": "1"})
    assert told.status_code == 200
    text = text_of(told)
    assert text.count("measurements, 90 % within") >= 2
    assert "the same as" in text or text.count("90 % within") == 4


def test_a_zip_bomb_does_no_harm(somebody):
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "a", 1
    buffer = io.BytesIO()
    book.save(buffer)
    seen = somebody.post("/new", {}, files={"file": ("far.xlsx", buffer.getvalue())})
    assert seen.status_code == 422
    assert "1,048,576 rows and 16,384 columns" in text_of(seen)
