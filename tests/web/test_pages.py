"""The pages without a browser: what they say, what they refuse, what they never contain."""

import re
import sqlite3
import time
from itertools import pairwise
from typing import Any

import httpx
import numpy as np
import pytest

import finalist as fl
from finalist.study import Study
from finalist.study.pulls import Pulls
from finalist.web.arms_preview import MAX_BYTES, pack
from finalist.web.pages import look
from finalist.web.pages.form import DEFAULTS
from finalist.web.pages.format import name as shown_name
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
    changed_study(place)
    with person(place) as somebody:
        yield somebody


def changed_study(place, name="changed"):
    """Make a study whose arms have changed, with hostile names."""
    arms = fl.Arms(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.7], [0.1, 0.2]]), [*EVIL[:3], EVIL[7]])
    with Study.create(place, name, arms, sigma=1.0, seed=3) as study:
        study.tell({p.pull_id: 0.5 for p in study.ask(size=12)})
        study.withdraw(EVIL[0])
        study.add(fl.Arms(np.array([[0.2, 0.9]]), [EVIL[6]]))


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
    yield somebody.post(f"/studies/{n}/withdraw", {"arm": EVIL[0], "reason": EVIL[7]})
    yield somebody.get(f"/studies/{n}/add")
    yield somebody.post(f"/studies/{n}/add", files={"file": (EVIL[0], evil_table.encode())})
    yield somebody.post(f"/studies/{n}/add", {"pasted": evil_table + "\nlast,oops<b>"})
    yield somebody.get(f"/studies/{numbers(somebody)['changed']}")
    yield somebody.get(f"/studies/{numbers(somebody)['changed']}/history")
    table = "name,f1,f2\n" + '"' + EVIL[7] + '",0.5,0.5'
    yield somebody.post(f"/studies/{numbers(somebody)['changed']}/add", {"pasted": table})
    yield somebody.get(f"/studies/{n}/delete")
    yield somebody.post(f"/studies/{n}/delete", {"name": EVIL[7]})
    yield somebody.get("/nothing/here<script>")
    yield somebody.get(f"/studies/{n}/report.html")


ENOUGH = "What difference would not matter to you?"
#: What every page loads, from this server.
SCRIPTS = [{"src": f"/static/{name}.js", "defer": None} for name in ("app", "bench", "values")]


@pytest.fixture(scope="module")
def pages(evil):
    return [(str(page.url), page.status_code, page.text) for page in evil_pages(evil)]


def test_no_page_lets_a_name_out_of_its_text(pages):
    assert len(pages) == 34
    for url, status, text in pages:
        assert status in (200, 404, 409, 422), url
        page = Page(text)
        report = "report.html" in url
        scripts = page.all("script")
        assert scripts == ([] if report else SCRIPTS), url
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
    for name in (
        EVIL[0],
        EVIL[7],
        "line\\nbreak\\ttab",
        "\\u202eoverride",
        "x" * 60 + "…" + "x" * 39,
    ):
        assert name[:55] in text, name


def test_drawings_escape_names_in_both_themes(evil):
    n = numbers(evil)[EVIL_STUDY]
    for theme in ("light", "dark"):
        for chart in ("evidence", "residuals", "forecast"):
            answer = evil.get(f"/studies/{n}/chart/{chart}.svg", params={"theme": theme})
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == "image/svg+xml"
            tags = Page(answer.text).tags
            assert tags[0][0] == "svg"
            known = {"svg", "g", "path", "text", "rect", "line", "tspan", "defs", "circle"}
            assert {tag for tag, _ in tags} <= known | {"clippath", "lineargradient", "stop"}
            assert not any(word.startswith("on") for _, a in tags for word in a)
    assert "&lt;script&gt;" in evil.get(f"/studies/{n}/chart/evidence.svg").text


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


def test_a_form_of_unknown_origin_is_rejected(somebody):
    url = somebody.client.base_url.join("/new")
    answer = httpx.post(url, data={"pasted": TABLE}, trust_env=False)
    assert answer.status_code == 403
    assert "Nothing was changed" in answer.text.replace("\n", " ")


# ---- beginning a study -------------------------------------------------------------------


def test_the_empty_list_says_how_to_begin(somebody):
    page = Page(somebody.get("/").text)
    assert "Find the best of several candidates with few measurements" in page.text
    assert {"method": "post", "action": "/example"} in page.all("form")
    for way in ("From a file", "From pasted cells", "From bare names"):
        assert way in page.text
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


@pytest.mark.parametrize(
    ("bad", "words"), [(2, "(and 1 more cell like it)"), (3, "(and 2 more cells like it)")]
)
def test_bad_cells_are_counted(somebody, bad, words):
    rows = "".join(f"z{i},oops,2\n" for i in range(bad))
    answer = somebody.post(
        "/new", files={"file": ("t.csv", f"name,a,b\no,1,1\np,2,1\nq,4,2\nr,5,2\n{rows}".encode())}
    )
    assert words in answer.text


def test_the_preview_says_what_was_found(somebody):
    table = TABLE.replace("b\n", "b,c\n", 1).replace("oak,1,0", "oak,1,0,1") + "pine,1,0,1\n"
    table = table.replace("ash,0,1", "ash,0,1,0").replace("elm,0.6,0.7", "elm,0.6,0.7,0.6")
    page = Page(somebody.post("/new", {"pasted": table}).text)
    text = re.sub(r"\s+", " ", page.text)
    for words in (
        "3 candidates from 4 rows",
        "name (name) a (number) b (number) c (number)",
        "3 numbers to learn: as many as candidates",
        "oak and pine are described alike",
    ):
        assert words.replace(" ", "") in text.replace(" ", ""), words


def test_a_list_of_names_is_enough(somebody):
    answer = somebody.post("/new", {"pasted": "red\ngreen\nblue\n"})
    assert answer.status_code == 200
    assert "nothing describes the candidates" in answer.text
    cells = re.findall(r"<td>(.*?)</td>", answer.text.partition("All 3 rows")[2])
    assert cells[:3] == ["red", "green", "blue"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "there is no table"),
        (b"\xff\xfe\x00", "is not a table"),
        (b"name,a\n", "no candidate below the header"),
        (b"x" * (MAX_BYTES + 1), "finalist new"),
        (b"a;b\nx;1.000\n", "1 with a decimal point and 1000 with a decimal comma"),
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
        ("epsilon", "0;5", "is not a number"),
        ("budget", "1.5", "not a whole number"),
        ("until", "budget", "Write how many measurements there are"),
        ("batch_size", "10001", "a whole number from 1 to 10,000"),
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


def test_the_first_question_is_when_it_is_over(somebody, tmp_path):
    known = {"known": "known", "sigma": "1", "gap": "0.5"}
    page = somebody.post("/new", {"pasted": TABLE}).text
    assert (
        page.index("When is it over?")
        < page.index("What difference would not matter to you?")
        < page.index("Which candidate is the best?")
    )
    both = somebody.post("/new/study", question(until="certain", budget="40", **known))
    assert both.status_code == 422
    assert "leave the number out" in both.text
    unused = somebody.post("/new/study", question(known="unknown", sigma="2"))
    assert unused.status_code == 422
    assert "You chose “unknown”: leave the number out, or choose “known”." in unused.text
    planned = somebody.post("/new/study", question(until="budget", budget="40", do="plan", **known))
    assert "With 40 measurements the study names the right one in about" in planned.text
    assert "Worse by, mean" in planned.text
    assert 'aria-label="Chart: how good what is named is"' in planned.text
    assert "Measurements against the lead" not in planned.text
    for name, until, budget in (("sixty", "budget", "60"), ("sure", "certain", "")):
        words = question(name=name, until=until, budget=budget, **known)
        assert somebody.post("/new/study", words).status_code == 303
        with Study.open(tmp_path / "lab.db", name) as study:
            assert study.settings["budget"] == (60 if budget else None)


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
    assert re.search(r"Expect about [\d,]+ measurements, 90 % within", answer.text)
    assert "sigma 0.5 that they do not know" in answer.text
    page = Page(answer.text)
    assert "Fixed number" in page.text
    assert 'alt="Measurements against the lead' in answer.text
    assert 'name="gap" inputmode="decimal" autocomplete="off" value="1"' in answer.text
    assert somebody.get("/api/v1/studies").json()["studies"] == []


def test_a_table_that_was_tampered_with_is_refused(somebody):
    assert somebody.post("/new/study", question(arms="!!")).status_code == 422
    assert somebody.post("/new/study", question(arms=pack(b"name,a\nx,1\n,2\n"))).status_code == 422


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
    assert answer.headers["location"] == "/studies/1?said=stored&n=2#main"
    assert "2 new results are stored." in at_work.get(answer.headers["location"]).text
    assert "1 new result is stored." in at_work.get("/studies/1?said=stored-one").text
    again = at_work.post("/studies/1/tell", {f"reward-{first}": "0.5"})
    assert again.headers["location"] == "/studies/1?said=same#main"
    other = at_work.post("/studies/1/tell", {f"reward-{first}": "0.75"})
    assert other.status_code == 409
    assert "correct a wrong one with “change” beside the result" in other.text


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
    assert answer.headers["location"] == "/studies/1?said=stored&n=3#main"
    pull = open_pulls(at_work)[0]
    pasted = f"pull_id\treward\n{pull}\t0,5"
    answer = at_work.post("/studies/1/upload", {"pasted": pasted})
    assert answer.headers["location"] == "/studies/1?said=stored-one&n=1#main"


def test_pulls_can_be_void_missing_and_amended(at_work):
    first, second, third, *_ = open_pulls(at_work)
    assert at_work.post(f"/studies/1/pulls/{first}/void", {"reason": ""}).status_code == 422
    answer = at_work.post(f"/studies/1/pulls/{first}/void", {"reason": "fell"})
    assert answer.headers["location"] == "/studies/1?said=void&n=31#next"
    answer = at_work.post(f"/studies/1/pulls/{second}/missing", {"reason": "gone"})
    assert "said=missing" in answer.headers["location"]
    at_work.post("/studies/1/tell", {f"reward-{third}": "1"})
    assert "Its result is" in at_work.get(f"/studies/1/pulls/{third}").text
    for wrong in ("2,500", "failed", "2,5.5"):
        bad = at_work.post(f"/studies/1/pulls/{third}/amend", {"reward": wrong, "reason": "typo"})
        assert bad.status_code == 422
    answer = at_work.post(f"/studies/1/pulls/{third}/amend", {"reward": "2.5", "reason": "typo"})
    assert "said=amended" in answer.headers["location"]
    page = Page(at_work.get("/studies/1/history").text).text
    for words in (f"Measurement {first} failed and is made again: fell",
                  f"Measurement {second} is missing: gone",
                  f"The result of measurement {third} was corrected, it was 1: typo"):  # fmt: skip
        assert words in page
    assert at_work.get("/studies/1/pulls/1").status_code == 404  # a decision has used it


def test_a_study_can_be_stopped_resumed_and_forked(at_work):
    assert at_work.post("/studies/1/stop", {"reason": ""}).status_code == 422
    at_work.post("/studies/1/stop", {"reason": "rain"})
    page = at_work.get("/studies/1").text
    assert "Reason: rain" in page
    assert '<span class="tag ended">Stopped</span>' in page
    assert "said=resumed" in at_work.post("/studies/1/resume").headers["location"]
    assert at_work.post("/studies/1/resume").status_code == 409
    answer = at_work.post("/studies/1/fork", {"name": "again", "until": "2"})
    assert answer.headers["location"] == "/studies/2?said=forked#main"
    assert "Measure batch 2" in at_work.get("/studies/2").text
    assert at_work.post("/studies/1/fork", {"name": "more", "until": "x"}).status_code == 422


def test_a_study_can_be_forked_with_another_model(at_work):
    assert '<option value="bending">' in at_work.get("/studies/1").text
    answer = at_work.post("/studies/1/fork", {"name": "apart", "model": "separate"})
    assert answer.headers["location"] == "/studies/2?said=remodelled#main"
    page = Page(at_work.get("/studies/2?said=remodelled").text).text
    assert "0.05 + 0.05 = 0.1 in all" in page
    assert "Its assumptions say what" in page
    history = Page(at_work.get("/studies/2/history").text).text
    assert "Begun with the model separate from the results of plane." in history
    wrong = at_work.post("/studies/1/fork", {"name": "more", "model": "cubic"})
    assert wrong.status_code == 422
    assert "no model &#39;cubic&#39;" in wrong.text


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


def test_a_page_links_only_charts_that_there_are(somebody, tmp_path):
    """A strategy for a fixed budget takes what is left of it: there is nothing to forecast."""
    arms = fl.Arms.unstructured(["a", "b", "c", "d"])
    words: dict[str, Any] = {"sigma": 1.0, "budget": 60, "seed": 1}
    with Study.create(tmp_path / "lab.db", "s", arms, "od-linbai", **words) as study:
        study.tell({p.pull_id: float(ord(p.arm)) for p in study.ask()})
        assert study.status().verdict == "continue"
        assert study.status().forecast is None
    charts = [image["src"] for image in Page(somebody.get("/studies/1").text).all("img")]
    assert [chart.partition(".svg")[0].rpartition("/")[2] for chart in charts] == ["residuals"]
    assert [somebody.get(chart).status_code for chart in charts] == [200]
    shown = Page(somebody.get("/studies/1").text).text
    assert "Means" in shown
    assert "Full bars are results" in shown


def test_without_a_guarantee_nobody_wins(somebody, tmp_path):
    arms = fl.Arms.unstructured(["a", "b", "c"])
    with Study.create(tmp_path / "lab.db", "s", arms, "gse", sigma=1.0, budget=30, seed=1) as study:
        while batch := study.ask():
            last = batch
            study.tell({p.pull_id: float(p.arm == "b") for p in batch[1:]})
            if len(batch) > 1 and study.ask()[0].pull_id == batch[0].pull_id:
                told = somebody.client.post(
                    "/api/v1/studies/1/tell",
                    json={"results": [{"pull_id": batch[0].pull_id, "reward": 0.5}]},
                ).json()
    assert last.batch > 1
    assert (told["verdict"], told["winner"], told["risk"]) == ("winner", "b", None)
    (line,) = somebody.get("/api/v1/studies").json()["studies"]
    assert (line["winner"], line["risk"]) == ("b", None)
    for path in (
        "/",
        "/studies/1",
        "/studies/1/history",
        "/studies/1/delete",
        "/studies/1/report.html",
    ):
        text = re.sub(r"<style>.*?</style>", "", somebody.get(path).text, flags=re.S)
        text = re.sub(r"\s+", " ", Page(text).text)
        assert "winner" not in text.lower().replace("the winner will be a recommendation", ""), path
        assert " wins" not in text, path
        assert "recommend" in text, path
    assert '<span class="tag winner">recommended</span> b' in somebody.get("/").text
    assert "b is recommended." in somebody.get("/studies/1/history").text
    for act, data in (("stop", {"reason": "x"}), ("withdraw", {"arm": "0-0", "reason": "x"})):
        answer = somebody.post(f"/studies/1/{act}", data)
        assert answer.status_code == 409
        assert "the study has a recommendation" in answer.text


def test_a_guarantee_is_in_the_list(somebody, tmp_path):
    plane_study(tmp_path / "lab.db")
    assert somebody.get("/api/v1/studies").json()["studies"][0]["risk"] == 0.05


def test_a_budget_that_is_used_up_is_said(somebody, tmp_path):
    plane_study(tmp_path / "lab.db", budget=24)
    assert "The budget is used up." in somebody.get("/studies/1").text


def test_small_objectives_come_first_when_small_is_good(somebody, tmp_path):
    plane_study(tmp_path / "lab.db", objective="min")
    rows = re.findall(
        r'<tr class="(?:possible|ahead)">\s*<th[^>]*><span[^>]*></span>(\w+)<',
        somebody.get("/studies/1").text,
    )
    estimates = {
        a["name"]: a["estimate"] for a in somebody.get("/api/v1/studies/1/status").json()["arms"]
    }
    assert rows == sorted(rows, key=estimates.__getitem__)
    assert len(rows) >= 2


def test_only_some_arms_are_shown_unless_all_are_asked_for(somebody, tmp_path):
    Study.create(tmp_path / "lab.db", "s", fl.Arms.unstructured(120), sigma=1.0, seed=1).close()
    few, every = somebody.get("/studies/1").text, somebody.get("/studies/1?all=1").text
    assert few.count('<tr class="possible">') == 50
    assert "Show all 120 candidates" in few
    assert every.count('<tr class="possible">') == 120


def test_what_evidence_speaks_against_is_said_in_words(evil):
    number = numbers(evil)["plane"]
    for page in (f"/studies/{number}", f"/studies/{number}/report.html"):
        text = evil.get(page).text
        assert "Against “this candidate is the best”. At 1 it is ruled out" in text
        assert "{{ say" not in text


def test_the_report_needs_nothing_else(evil):
    text = evil.get(f"/studies/{numbers(evil)['plane']}/report.html")
    assert text.headers["content-disposition"].startswith("attachment")
    page = Page(text.text)
    assert page.all("link") == page.all("script") == []
    assert len(page.all("img")) == 5  # evidence, forecast, effects, residuals, plane
    drawn = [image["alt"] for image in page.all("img")]
    kinds = ("Evidence against", "How many simulated", "The plane of", "Results less")
    assert all(any(alt.startswith(kind) for alt in drawn) for kind in kinds)
    assert all(a["src"].startswith("data:") for a in page.all("img"))
    assert "url(" not in text.text
    assert "Still to measure:" in page.text
    assert "rules number" in page.text


def test_the_list_does_not_wait_for_long_logs(somebody, tmp_path, monkeypatch):
    for name in ("one", "two"):
        plane_study(tmp_path / "lab.db", name)
    monkeypatch.setattr(look, "PATIENCE", -1.0)
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


# ---- changing it -------------------------------------------------------------------------


@pytest.fixture
def between(somebody, tmp_path):
    """Give somebody whose study has no batch open."""
    plane_study(tmp_path / "lab.db")
    return somebody


def events(somebody):
    return somebody.get("/api/v1/studies/1/history").json()["events"]


def names(somebody):
    return [arm["names"][0] for arm in somebody.get("/api/v1/studies/1/arms").json()["arms"]]


def test_an_arm_can_be_withdrawn_with_a_reason(between):
    page = between.get("/studies/1").text.replace("\xa0", " ")
    assert "A winner is then wrong with probability at most 7.5 %, not 5 %." in page
    assert re.findall(r'<option value="(0-\d)">(\w+)<', page) == [
        ("0-0", "oak"),
        ("0-1", "ash"),
        ("0-2", "elm"),
    ]
    answer = between.post("/studies/1/withdraw", {"arm": "0-1", "reason": "sold out <b>"})
    assert answer.headers["location"] == "/studies/1?said=withdrawn#main"
    assert names(between) == ["oak", "elm"]
    page = Page(between.get("/studies/1").text).text.replace("\xa0", " ")
    assert "ash was withdrawn. All candidates are tested from here on at the level 0.025." in page
    assert "ash was withdrawn: sold out <b>" in page
    assert "at most 8.75 %, not 7.5 %" in page


@pytest.mark.parametrize(
    ("data", "status", "words"),
    [
        ({"arm": "", "reason": "x"}, 422, "choose the arm"),
        ({"arm": "0-1", "reason": " "}, 422, "reason is"),
        ({"arm": "0-1", "reason": "x" * 9_999}, 422, "at most 10000 characters"),
        ({"arm": "1-1", "reason": "x"}, 409, "the arms have changed since"),
        ({"arm": "0-3", "reason": "x"}, 409, "the arms have changed since"),
        ({"arm": "0-" + "9" * 5000, "reason": "x"}, 409, "the arms have changed since"),
        ({"arm_name": "pine", "reason": "x"}, 404, "pine"),
    ],
)
def test_a_withdrawal_that_is_refused_leaves_everything(between, data, status, words):
    before = events(between)
    answer = between.post("/studies/1/withdraw", data)
    assert (answer.status_code, events(between)) == (status, before)
    assert words in Page(answer.text).text
    assert 'role="alert"' in answer.text.split('id="change"')[1]


def test_arms_do_not_change_while_a_batch_is_open(at_work):
    before = events(at_work)
    page = Page(at_work.get("/studies/1").text)
    assert "Batch 3 is open; the candidates can change when it is complete." in page.text
    assert not any("withdraw" in (form.get("action") or "") for form in page.all("form"))
    for path, data in (
        ("withdraw", {"arm": "0-1", "reason": "x"}),
        ("add", {"pasted": "name,f1,f2\npine,1,1"}),
        ("add", {"arms": pack(b"name,f1,f2\npine,1,1")}),
    ):
        answer = at_work.post(f"/studies/1/{path}", data)
        assert answer.status_code == 409
        assert "atch 3 is open; the candidates can change when it is complete." in answer.text
    assert events(at_work) == before


def test_a_strategy_that_keeps_its_arms_says_so(somebody, tmp_path):
    plane_study(tmp_path / "lab.db", strategy="uniform")
    assert "This strategy cannot go on with other candidates; the default strategy can." in (
        somebody.get("/studies/1").text
    )
    answer = somebody.post("/studies/1/withdraw", {"arm": "0-1", "reason": "x"})
    assert "this strategy cannot go on with other candidates" in answer.text
    assert len(names(somebody)) == 3


def test_arms_can_be_added_after_a_look_at_them(between):
    before = events(between)
    table = "name,f1,f2\npine,0.9,0.1\nfir,0.2,0.9\nlarch,1,0\n"
    answer = between.post("/studies/1/add", files={"file": ("more.csv", table.encode())})
    assert answer.status_code == 200
    page = re.sub(r"\s+", " ", Page(answer.text).text)
    assert (
        "2 new candidates are tested from here on. The others are described like candidates" in page
    )
    assert "at most 7.5 %, not 5 %" in page
    assert events(between) == before
    packed = re.search(r'name="arms" value="([^"]+)"', answer.text)
    assert packed is not None
    answer = between.post("/studies/1/add", {"arms": packed[1]})
    assert answer.headers["location"] == "/studies/1?said=added&n=2#main"
    assert names(between) == ["oak", "ash", "elm", "pine", "fir"]
    history = between.get("/studies/1/history").text
    assert "pine, fir were added and are tested at the level 0.025." in history
    answer = between.post("/studies/1/add", {"arms": pack(b"name,f1,f2\nyew,0.1,0.1")})
    assert answer.headers["location"] == "/studies/1?said=added-one#main"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", "There is no table"),
        ("name,f1,f2\npine,oops,1\nfir,1,1", "line 2, column 'f1': 'oops' is not a finite number"),
        ("name,f1\npine,1", "there is no column 'f2'"),
        ("name,f1,f2\nash,1,1", "there is already a candidate 'ash'"),
        ("name,f1,f2\npine,1,0", "have the same features as some that are there already"),
        ("pine\nfir\nyew", "there is no column 'f1'"),
        ("\n".join(f"tree {i}" for i in range(1500)), "there is no column 'f1'"),
    ],
)
def test_arms_that_cannot_be_added_are_refused_in_words(between, table, words):
    before = events(between)
    for data in ({"pasted": table}, {"arms": pack(table.encode())}):
        answer = between.post("/studies/1/add", data)
        text = Page(answer.text).text
        assert answer.status_code == 422, data
        assert words.lower() in text.lower()
        assert "Nothing was added." in text
        if "oops" in table:
            assert re.search(r'<td class="bad">.*oops', answer.text)
        assert len(text) < 4000 + len(table)
    assert events(between) == before


def test_the_history_names_arms_as_they_were_called_then(somebody, tmp_path):
    arms = fl.Arms.unstructured(["a", "b", "c", "d"])
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=0.01, seed=1) as study:
        means = {"a": 0.0, "b": 1.0, "c": 1.0, "d": 0.5}
        for _ in range(2):
            study.tell({p.pull_id: means[p.arm] for p in study.ask(size=40)})
        out = set(study.arms.names) - set(study.status().survivors)
        assert out == {"a", "d"}
        study.withdraw("b")
    page = Page(somebody.get("/studies/1/history").text).text
    assert "a, d are ruled out." in page
    assert "b was withdrawn." in page


def test_a_study_is_deleted_after_its_name_was_typed(between, tmp_path):
    plane_study(tmp_path / "lab.db", "other")
    page = Page(between.get("/studies/1/delete").text).text
    for part in ("24 results of 3 candidates", "events of its history", "It cannot be undone"):
        assert part in page
    for wrong in ("", "Plane", "other", "plane\0"):
        answer = between.post("/studies/1/delete", {"name": wrong})
        assert answer.status_code == 422
        assert "Nothing was deleted" in answer.text
    assert set(numbers(between)) == {"plane", "other"}
    answer = between.post("/studies/1/delete", {"name": " plane "})
    assert answer.headers["location"] == "/?said=deleted"
    assert "The study is deleted." in between.get("/?said=deleted").text
    assert set(numbers(between)) == {"other"}
    for path in ("", "/delete", "/add"):
        assert between.get(f"/studies/1{path}").status_code == 404
    assert between.post("/studies/1/delete", {"name": "plane"}).status_code == 404


def test_a_name_that_cannot_be_typed_is_typed_as_it_is_shown(somebody, tmp_path):
    Study.create(
        tmp_path / "lab.db", "two\nlines \u202e" + "x" * 500, fl.Arms.unstructured(2), sigma=1.0
    ).close()
    shown = "two\\nlines \\u202e"
    assert shown in Page(somebody.get("/studies/1/delete").text).text
    answer = somebody.post(
        "/studies/1/delete", {"name": shown_name("two\nlines \u202e" + "x" * 500)}
    )
    assert answer.status_code == 303
    assert numbers(somebody) == {}


def test_forms_of_unknown_origin_change_nothing(between):
    for path in ("withdraw", "add", "delete"):
        url = between.client.base_url.join(f"/studies/1/{path}")
        answer = httpx.post(url, data={"name": "plane", "arm": "0-1"}, trust_env=False)
        assert answer.status_code == 403
    assert names(between) == ["oak", "ash", "elm"]


def test_many_arms_are_withdrawn_by_name(somebody, tmp_path, monkeypatch):
    monkeypatch.setattr(look, "MAX_CHOICES", 2)
    plane_study(tmp_path / "lab.db")
    page = somebody.get("/studies/1").text
    assert '<input id="arm" name="arm_name"' in page
    answer = somebody.post("/studies/1/withdraw", {"arm_name": "ash", "reason": "x"})
    assert answer.status_code == 303
    assert names(somebody) == ["oak", "elm"]


# ---- small things ------------------------------------------------------------------------


def test_times_say_that_they_are_utc(between):
    for path in ("/", "/studies/1", "/studies/1/history"):
        times = re.findall(r"<time[^>]*>([^<]+)<", between.get(path).text)
        assert times
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", time) for time in times), path
    assert "UTC UTC" not in between.get("/studies/1").text


def test_an_error_leads_back_to_the_study(between):
    page = Page(between.get("/studies/1/pulls/1").text)
    links = [a["href"] for a in page.all("a")]
    for link in ("/studies/1", "/api/v1/studies/1/export.csv", "/studies/1#change"):
        assert link in links
    elsewhere = {"Origin": "http://elsewhere.example"}
    answer = between.client.post("/studies/1/note", data={"text": "x"}, headers=elsewhere)
    assert answer.status_code == 403
    assert "/studies/1" in [a["href"] for a in Page(answer.text).all("a")]
    for path in ("/studies/2", "/studies/2/history", "/nothing"):
        links = [a["href"] for a in Page(between.get(path).text).all("a")]
        assert not any(link.startswith("/studies/") for link in links), path


def test_a_batch_size_from_elsewhere_is_no_wish_that_is_refused(somebody, tmp_path):
    plane_study(tmp_path / "lab.db", metadata={"batch_size": 10**9})
    assert '000000"' not in somebody.get("/studies/1").text
    assert somebody.post("/studies/1/ask", {"size": ""}).status_code == 303


def test_a_large_batch_is_read_at_once_and_not_pull_by_pull(tmp_path, monkeypatch):
    arms = fl.Arms.unstructured(["a", "b", "c"])
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=1.0, seed=1) as study:
        batch = study.ask(2_000)
        study.tell({p.pull_id: 0.5 for p in batch[:1_000]})
        robot = study.ask(10, worker="robot")
        asked, column = [], Pulls.__getattr__

        def counted(pulls, word):
            asked.append(word)
            return column(pulls, word)

        monkeypatch.setattr(Pulls, "__getattr__", counted)
        snapshot = study.snapshot()
        again = study.ask(2_000)
    assert len(asked) < 200
    assert snapshot.batch is not None
    assert snapshot.batch.pulls == again.pulls
    assert [(p.pull_id, p.arm) for p in again] == [(p.pull_id, p.arm) for p in batch[1_000:]]
    assert [p for p in again if p.worker is not None] == list(robot)
    assert {p.worker for p in robot} == {"robot"}
    assert [t.pull_id for t in snapshot.settled] == [p.pull_id for p in batch[:1_000]]
    assert {(t.arm, t.fate, t.reward) for t in snapshot.settled} == {
        (a, "told", 0.5) for a in "abc"
    }
