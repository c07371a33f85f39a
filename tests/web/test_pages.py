"""The pages without a browser: what they say, what they refuse, what they never contain."""

import re
import sqlite3
import time
from itertools import pairwise

import pytest

import finalist as fl
from finalist.study import Study
from finalist.web import pages_looking
from finalist.web.arms_preview import MOST_BYTES, pack
from finalist.web.new_study import DEFAULTS
from tests.web.labs import EVIL, EVIL_STUDY, Page, evil_study, person, plane_study

TABLE = "name,a,b\noak,1,0\nash,0,1\nelm,0.6,0.7\n"


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    place = tmp_path_factory.mktemp("evil") / "lab.db"
    evil_study(place)
    plane_study(place)
    plane_study(place, "stopped")
    with Study.open(place, "stopped") as study:
        study.stop(EVIL[7])
    with person(place) as somebody:
        yield somebody


@pytest.fixture
def somebody(tmp_path):
    with person(tmp_path / "lab.db") as found:
        yield found


def numbers(somebody):
    return {
        line["name"]: line["number"] for line in somebody.get("/api/v1/studies").json()["studies"]
    }


def evil_pages(somebody):
    """Return every page, with hostile content where there can be some."""
    n = numbers(somebody)[EVIL_STUDY]
    pulls = re.findall(rf"/studies/{n}/pulls/(\d+)", somebody.get(f"/studies/{n}").text)
    evil_table = "name,x\n" + "\n".join(
        '"' + name.replace('"', '""') + f'",{i}' for i, name in enumerate(EVIL)
    )
    yield somebody.get("/")
    yield somebody.get("/", params={"q": EVIL[7]})
    yield somebody.get("/", params={"q": "study"})
    yield somebody.get("/new")
    yield somebody.post("/new", files={"file": (EVIL[0] + ".csv", evil_table.encode())})
    yield somebody.post("/new", files={"file": (EVIL[7], (evil_table + "\nlast,oops<b>").encode())})
    yield somebody.post("/new", {"pasted": "\n".join(EVIL)})
    values = {**DEFAULTS, "name": EVIL[7], "delta": EVIL[0], "arms": pack(evil_table.encode())}
    yield somebody.post("/new/study", {**values, "do": "create"})
    yield somebody.get(f"/studies/{n}")
    yield somebody.get(f"/studies/{n}", params={"said": EVIL[0], "n": EVIL[7]})
    yield somebody.get(f"/studies/{numbers(somebody)['plane']}")
    yield somebody.get(f"/studies/{numbers(somebody)['stopped']}")
    yield somebody.get(f"/studies/{n}/history")
    yield somebody.get(f"/studies/{n}/forecast")
    yield somebody.get(f"/studies/{n}/pulls/{pulls[0]}")
    yield somebody.get(f"/studies/{n}/pulls/{pulls[-1]}")
    yield somebody.get(f"/studies/{n}/pulls/99999")
    yield somebody.get(f"/studies/{n}/chart/{'<script>'}.svg")
    yield somebody.post(f"/studies/{n}/tell", {f"reward-{pulls[0]}": EVIL[7]})
    yield somebody.post(f"/studies/{n}/ask", {"size": EVIL[7]})
    yield somebody.post(f"/studies/{n}/upload", {"pasted": "pull_id,reward\n1," + EVIL[0]})
    yield somebody.post(f"/studies/{n}/fork", {"name": EVIL[7], "until": "77"})
    yield somebody.post(f"/studies/{n}/pulls/{pulls[0]}/void", {"reason": " "})
    yield somebody.get("/nothing/here<script>")
    yield somebody.get(f"/studies/{n}/report.html")


@pytest.fixture(scope="module")
def pages(evil):
    return [(str(page.url), page.status_code, page.text) for page in evil_pages(evil)]


def test_no_page_lets_a_name_out_of_its_text(pages):
    assert len(pages) == 25
    for url, status, text in pages:
        assert status in (200, 404, 409, 422), url
        page = Page(text)
        report = "report.html" in url
        scripts = page.all("script")
        assert scripts == ([] if report else [{"src": "/static/app.js", "defer": None}]), url
        assert len(page.all("style")) == (1 if report else 0), url
        for tag, attributes in page.tags:
            assert tag not in ("iframe", "object", "embed", "base", "b"), (url, tag)
            assert not any(name.startswith("on") for name in attributes), (url, tag, attributes)
            assert "style" not in attributes, (url, tag)
            for word in ("href", "src", "action", "formaction", "srcset"):
                where = attributes.get(word) or "/"
                assert where.startswith(("/", "#", "?", "data:image/svg+xml;base64,")), (url, where)
        assert "49" not in re.findall(r"&amp;amp; (\S+)", text)  # {{ 7*7 }} was not computed


def test_hostile_names_are_there_to_be_read(pages):
    text = next(Page(text).text for url, _, text in pages if re.search(r"/studies/1$", url))
    for name in (EVIL[0], EVIL[7], "line\\nbreak\\ttab", "\\u202eoverride", "x" * 59 + "…"):
        assert name[:55] in text, name


def test_drawings_escape_names_in_both_themes(evil):
    n = numbers(evil)[EVIL_STUDY]
    for theme in ("light", "dark"):
        for chart in ("evidence", "estimates", "pulls", "forecast"):
            answer = evil.get(f"/studies/{n}/chart/{chart}.svg", params={"theme": theme})
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == "image/svg+xml"
            tags = Page(answer.text).tags
            assert tags[0][0] == "svg"
            known = {"svg", "g", "path", "text", "rect", "line", "tspan", "defs", "circle"}
            assert {tag for tag, _ in tags} <= known | {"clippath", "lineargradient", "stop"}
            assert not any(word.startswith("on") for _, a in tags for word in a)
    assert "&lt;script&gt;" in evil.get(f"/studies/{n}/chart/estimates.svg").text


def test_a_drawing_is_sent_once(evil):
    path = f"/studies/{numbers(evil)['plane']}/chart/plane.svg"
    first = evil.get(path)
    assert first.status_code == 200
    again = evil.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert evil.get(path + "?theme=dark").text != first.text
    assert evil.get(path + "?theme=pink").status_code == 422


def test_pages_keep_the_rules_of_accessibility(pages):
    for url, _, text in pages:
        page = Page(text)
        assert page.all("html")[0]["lang"] == "en"
        assert len(page.all("h1")) == 1, url
        assert len(page.all("title")) == len(page.all("main")) == 1
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert all(b <= a + 1 for a, b in pairwise(levels)), (url, levels)
        ids = [a["id"] for _, a in page.tags if "id" in a]
        assert len(ids) == len(set(ids)), (url, sorted(ids))
        labelled = {a.get("for") for a in page.all("label")}
        for tag, a in page.tags:
            if tag in ("input", "select", "textarea") and a.get("type") not in ("hidden", "radio"):
                assert a["id"] in labelled, (url, a)
            if tag == "img":
                assert a["alt"], url
            if tag == "svg":
                assert a.get("aria-hidden") == "true", url
            for word in ("aria-describedby", "aria-labelledby"):
                for part in (a.get(word) or "").split():
                    assert part in ids, (url, word, part)
        tables = len(page.all("table"))
        assert tables == len(page.all("caption")), url
        assert all(a.get("scope") in ("col", "row") for a in page.all("th")), url
        assert all((a["href"] or "")[1:] in ids for a in page.all("a") if a["href"][0] == "#"), url


def test_every_form_carries_the_secret(pages):
    for url, _, text in pages:
        posts = [f for f in re.findall(r"<form.*?</form>", text, re.S) if 'method="post"' in f]
        for form in posts:
            assert re.search(r'<input type="hidden" name="csrf" value="[\w-]{43}">', form), url
    somewhere = [text for url, _, text in pages if url.endswith("/new")]
    assert any("<form" in text for text in somewhere)


def test_a_form_without_the_secret_changes_nothing(somebody):
    answer = somebody.client.post("/new", data={"pasted": TABLE})
    assert answer.status_code == 403
    assert "Nothing was changed" in answer.text.replace("\n", " ")


# ---- beginning a study -------------------------------------------------------------------


def test_the_empty_list_says_how_to_begin(somebody):
    page = Page(somebody.get("/").text)
    assert "No studies yet" in page.text
    assert {"class": "button primary", "href": "/new"} in page.all("a")


def test_bad_cells_are_shown_in_place(somebody):
    rows = "".join(f"t{i},{i},1\n" for i in range(30))
    answer = somebody.post(
        "/new", files={"file": ("t.csv", f"name,a,b\n{rows}z,oops,2\n".encode())}
    )
    assert answer.status_code == 422
    assert (
        "t.csv, line 32, column &#39;a&#39;: &#39;oops&#39; is not a finite number" in answer.text
    )
    assert re.search(r'<th scope="row" class="number">32</th>.*?<td class="bad">', answer.text)
    assert answer.text.count('class="bad"') == 1
    assert "13 of 31 rows" in answer.text


def test_the_preview_says_what_was_found(somebody):
    table = TABLE.replace("b\n", "b,c\n", 1).replace("oak,1,0", "oak,1,0,1") + "pine,1,0,1\n"
    table = table.replace("ash,0,1", "ash,0,1,0").replace("elm,0.6,0.7", "elm,0.6,0.7,0.6")
    page = Page(somebody.post("/new", {"pasted": table}).text)
    text = re.sub(r"\s+", " ", page.text)
    for words in (
        "3 arms from 4 rows",
        "column name",
        "3 features : a , b , c",
        "rank 2",
        "oak = pine",
    ):
        assert words.replace(" ", "") in text.replace(" ", ""), words


def test_a_list_of_names_is_enough(somebody):
    answer = somebody.post("/new", {"pasted": "red\ngreen\nblue\n"})
    assert answer.status_code == 200
    assert "nothing relates the arms" in answer.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "there is no table"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"name,a\n", "no arm below the header"),
        (b"x" * (MOST_BYTES + 1), "finalist new"),
        (b"a;b\n1;2\n", "Separate cells with commas"),
        (b"red\nred\n", "is taken already"),
    ],
)
def test_tables_that_are_none_are_refused_in_words(somebody, content, words):
    answer = somebody.post("/new", files={"file": ("t.csv", content)})
    assert answer.status_code == 422
    assert words in Page(answer.text).text


def question(**values):
    return {**DEFAULTS, "name": "trees", "arms": pack(TABLE.encode()), "do": "create", **values}


def test_a_study_has_the_settings_of_the_form(somebody, tmp_path):
    answer = somebody.post(
        "/new/study",
        question(known="known", sigma="0.5", delta="1", epsilon="0.1", objective="min",
                 batch_size="12", budget="500", max_pulls_per_arm="200"),
    )  # fmt: skip
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"] == "/studies/1?said=created"
    with Study.open(tmp_path / "lab.db", "trees") as study:
        settings = study.settings
        assert study.arms.names == ("oak", "ash", "elm")
    assert settings["noise"] == {"model": "gaussian", "sigma": 0.5}
    assert (settings["delta"], settings["epsilon"], settings["objective"]) == (0.01, 0.1, "min")
    assert (settings["budget"], settings["max_pulls_per_arm"]) == (500, 200)
    assert settings["metadata"] == {"batch_size": 12}
    assert 'value="12"' in somebody.get("/studies/1").text


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", " ", "Give the study a name."),
        ("delta", "0", "not between 0 and 100"),
        ("delta", "nan", "is not a number"),
        ("epsilon", "-1", "is below 0"),
        ("epsilon", "0,5", "with a point, not a comma"),
        ("budget", "1.5", "not a whole number"),
        ("batch_size", "1e10", "not a whole number"),
        ("strategy", "xy-oracle", "is not one of these"),
        ("noise", "sub-gaussian", "its size must be known"),
        ("sigma", "", "Write the size of the noise"),
    ],
)
def test_wrong_fields_are_marked_and_nothing_is_created(somebody, field, value, words):
    known = {"known": "known"} if field == "sigma" else {}
    answer = somebody.post("/new/study", question(**{field: value, **known}))
    assert answer.status_code == 422
    page = Page(answer.text)
    assert words in page.text
    assert somebody.get("/api/v1/studies").json()["studies"] == []


def test_a_name_that_is_taken_is_marked(somebody):
    assert somebody.post("/new/study", question()).status_code == 303
    answer = somebody.post("/new/study", question())
    assert answer.status_code == 409
    assert "already" in answer.text


def test_a_plan_needs_a_lead_and_a_guess_and_creates_nothing(somebody):
    answer = somebody.post("/new/study", question(do="plan", name=""))
    assert "a plan needs it" in answer.text
    answer = somebody.post("/new/study", question(do="plan", gap="0.5"))
    assert "Guess the size of the noise" in answer.text
    answer = somebody.post("/new/study", question(do="plan", gap="1", guess="0.5", name=""))
    assert answer.status_code == 200
    assert re.search(r"Expect about [\d,]+ pulls with gauntlet, 90 % within", answer.text)
    assert 'name="gap" inputmode="decimal" autocomplete="off" value="1"' in answer.text
    assert somebody.get("/api/v1/studies").json()["studies"] == []


def test_a_table_that_was_tampered_with_is_refused(somebody):
    assert somebody.post("/new/study", question(arms="!!")).status_code == 422
    assert somebody.post("/new/study", question(arms=pack(b"name,a\nx,y\n"))).status_code == 422


# ---- working on one ----------------------------------------------------------------------


@pytest.fixture
def at_work(somebody, tmp_path):
    plane_study(tmp_path / "lab.db", metadata={"batch_size": 6})
    assert somebody.post("/studies/1/ask", {"size": "6"}).headers["location"].endswith("#next")
    return somebody


def open_pulls(somebody):
    found = re.findall(r'name="reward-(\d+)"', somebody.get("/studies/1").text)
    return list(map(int, found))


def test_looking_at_a_page_issues_nothing(somebody, tmp_path):
    plane_study(tmp_path / "lab.db")
    for _ in range(2):
        assert "Get the next batch" in somebody.get("/studies/1").text
    assert somebody.get("/api/v1/studies/1/status").json()["open_pulls"] == 0


def test_typed_rewards_are_stored_all_or_none(at_work):
    first, second, *_ = open_pulls(at_work)
    typed = {f"reward-{first}": "0.5", f"reward-{second}": "abc"}
    answer = at_work.post("/studies/1/tell", typed)
    assert answer.status_code == 422
    assert re.search(rf'name="reward-{first}"[^>]*value="0.5"', answer.text)
    assert re.search(rf'name="reward-{second}"[^>]*aria-invalid="true"', answer.text)
    assert len(open_pulls(at_work)) == 6
    answer = at_work.post("/studies/1/tell", typed | {f"reward-{second}": "\N{MINUS SIGN}1.5"})
    assert answer.headers["location"] == "/studies/1?said=stored&n=2"
    assert "2 new rewards are stored." in at_work.get(answer.headers["location"]).text
    again = at_work.post("/studies/1/tell", {f"reward-{first}": "0.5"})
    assert again.headers["location"] == "/studies/1?said=same"
    other = at_work.post("/studies/1/tell", {f"reward-{first}": "0.75"})
    assert other.status_code == 409
    assert "amend" in other.text


def test_a_batch_goes_to_a_spreadsheet_and_back(at_work):
    text = at_work.get("/api/v1/studies/1/open.csv").text
    lines = text.split()
    filled = [lines[0], *(re.sub(",,$", ",1.5,", line) for line in lines[1:4]), lines[4]]
    upload = {"file": ("../../etc/b.csv", "\n".join(filled).replace("1.5", "x", 1).encode())}
    answer = at_work.post("/studies/1/upload", files=upload)
    assert answer.status_code == 422
    assert "b.csv, line 2, column" in answer.text
    assert "/tmp" not in answer.text.replace(str(at_work.place), "")
    answer = at_work.post(
        "/studies/1/upload", files={"file": ("b.csv", "\n".join(filled).encode())}
    )
    assert answer.headers["location"] == "/studies/1?said=stored&n=3"
    pull = open_pulls(at_work)[0]
    pasted = f"pull_id\treward\n{pull}\t0,5"
    answer = at_work.post("/studies/1/upload", {"pasted": pasted, "decimal": ","})
    assert answer.headers["location"] == "/studies/1?said=stored&n=1"


def test_pulls_can_be_void_missing_and_amended(at_work):
    first, second, third, *_ = open_pulls(at_work)
    assert at_work.post(f"/studies/1/pulls/{first}/void", {"reason": ""}).status_code == 422
    answer = at_work.post(f"/studies/1/pulls/{first}/void", {"reason": "fell"})
    assert answer.headers["location"] == "/studies/1?said=void&n=31#next"
    answer = at_work.post(f"/studies/1/pulls/{second}/missing", {"reason": "gone"})
    assert "said=missing" in answer.headers["location"]
    at_work.post("/studies/1/tell", {f"reward-{third}": "1"})
    assert "Its reward is" in at_work.get(f"/studies/1/pulls/{third}").text
    bad = at_work.post(f"/studies/1/pulls/{third}/amend", {"reward": "2,5", "reason": "typo"})
    assert bad.status_code == 422
    answer = at_work.post(f"/studies/1/pulls/{third}/amend", {"reward": "2.5", "reason": "typo"})
    assert "said=amended" in answer.headers["location"]
    page = Page(at_work.get("/studies/1/history").text).text
    for words in (f"Pull {first} is void and was replaced: fell", f"Pull {second} is missing: gone",
                  f"The reward of pull {third} was amended, it was 1: typo"):  # fmt: skip
        assert words in page
    assert at_work.get("/studies/1/pulls/1").status_code == 404  # a decision has used it


def test_a_study_can_be_stopped_resumed_and_forked(at_work):
    assert at_work.post("/studies/1/stop", {"reason": ""}).status_code == 422
    at_work.post("/studies/1/stop", {"reason": "rain"})
    assert "Reason: rain" in at_work.get("/studies/1").text
    assert "said=resumed" in at_work.post("/studies/1/resume").headers["location"]
    assert at_work.post("/studies/1/resume").status_code == 409
    answer = at_work.post("/studies/1/fork", {"name": "again", "until": "2"})
    assert answer.headers["location"] == "/studies/2?said=forked"
    assert "Measure batch 2" in at_work.get("/studies/2").text
    assert at_work.post("/studies/1/fork", {"name": "more", "until": "x"}).status_code == 422


def test_a_note_is_in_the_history_on_many_pages(at_work):
    with Study.open(at_work.place, "plane") as study:
        for i in range(210):
            study.note(f"note {i}")
    assert at_work.post("/studies/1/note", {"text": "the last"}).status_code == 303
    page = at_work.get("/studies/1/history").text
    assert "the last" in page
    assert "Created with finalist" not in page
    older = re.search(r'href="(\?before=\d+)"', page)
    assert older is not None
    assert "Created with finalist" in at_work.get("/studies/1/history" + older[1]).text


def test_a_winner_ends_the_asking(somebody, tmp_path):
    arms = fl.Arms.unstructured(["a", "b"])
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=0.01, seed=1) as study:
        while batch := study.ask(size=10):
            study.tell({p.pull_id: float(p.arm == "b") for p in batch})
    page = somebody.get("/studies/1").text
    assert "b is the best" in page
    assert "Nothing is left to measure" in page
    assert "/ask" not in page
    assert somebody.get("/api/v1/studies").json()["studies"][0]["winner"] == "b"
    assert '<span class="tag winner">' in somebody.get("/").text
    assert somebody.get("/studies/1/chart/forecast.svg").status_code == 422
    assert "the study has ended" in somebody.get("/studies/1/forecast").text


def test_a_budget_that_is_used_up_is_said(somebody, tmp_path):
    plane_study(tmp_path / "lab.db", budget=24)
    assert "The budget is used up." in somebody.get("/studies/1").text


def test_small_objectives_come_first_when_small_is_good(somebody, tmp_path):
    plane_study(tmp_path / "lab.db", objective="min")
    rows = re.findall(r'<tr class="possible">\s*<th[^>]*>(\w+)<', somebody.get("/studies/1").text)
    estimates = {
        a["name"]: a["estimate"] for a in somebody.get("/api/v1/studies/1/status").json()["arms"]
    }
    assert rows == sorted(rows, key=estimates.__getitem__)
    assert len(rows) >= 2


def test_only_some_arms_are_shown_unless_all_are_asked_for(somebody, tmp_path):
    Study.create(tmp_path / "lab.db", "s", fl.Arms.unstructured(120), sigma=1.0, seed=1).close()
    few, every = somebody.get("/studies/1").text, somebody.get("/studies/1?all=1").text
    assert few.count('<tr class="possible">') == 50
    assert "Show all 120 arms" in few
    assert every.count('<tr class="possible">') == 120


def test_the_report_needs_nothing_else(evil):
    text = evil.get(f"/studies/{numbers(evil)['plane']}/report.html")
    assert text.headers["content-disposition"].startswith("attachment")
    page = Page(text.text)
    assert page.all("link") == page.all("script") == []
    assert len(page.all("img")) == 5
    assert all(a["src"].startswith("data:") for a in page.all("img"))
    assert "url(" not in text.text
    assert "Forecast:" in page.text


def test_the_list_does_not_wait_for_long_logs(somebody, tmp_path, monkeypatch):
    for name in ("one", "two"):
        plane_study(tmp_path / "lab.db", name)
    monkeypatch.setattr(pages_looking, "PATIENCE", -1.0)
    first = somebody.get("/").text
    assert first.count("reading…") == 2
    assert 'http-equiv="refresh"' in first
    until = time.monotonic() + 20
    while "reading…" in (page := somebody.get("/").text):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert 'http-equiv="refresh"' not in page
    assert page.count("ask for the next batch") == 2
    with Study.open(tmp_path / "lab.db", "one") as study:
        study.stop("enough")
    while "ended" not in somebody.get("/").text:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_study_that_cannot_be_read_hides_no_other(somebody, tmp_path):
    plane_study(tmp_path / "lab.db", "good")
    plane_study(tmp_path / "lab.db", "broken")
    with sqlite3.connect(tmp_path / "lab.db") as connection:
        connection.execute("DROP TRIGGER events_update")
        connection.execute("UPDATE events SET body = '{}' WHERE study = 2 AND number = 2")
    connection.close()
    until = time.monotonic() + 20
    while "reading…" in (page := somebody.get("/").text):
        assert time.monotonic() < until
    assert "cannot be read" in page
    assert "ask for the next batch" in page
    assert somebody.get("/studies/2").status_code == 500
