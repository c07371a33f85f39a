"""The pages in a real browser, as a person uses them."""

import re
import time

import numpy as np
import pytest

import finalist as fl
from finalist.study import Study
from tests.web.browsers import browser, go
from tests.web.servers import APPS, Process, in_thread

TABLE = "name,a,b\noak,1,0\nash,0,1\nelm,0.6,0.7\nfir,0.2,0.1\n"
#: Milliseconds: on a new machine the first ask and the first plan wait for compiled code.
FIRST_RUN = 180_000
MEANS = {"oak": 1.0, "ash": 4.0, "elm": 2.0, "fir": 0.0}


@pytest.fixture(scope="module")
def chromium():
    with browser() as opened:
        yield opened


@pytest.fixture
def page(chromium):
    context = chromium.new_context()
    context.set_default_timeout(FIRST_RUN)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if "Content Security" in m.text else None)
    yield page
    context.close()
    assert not problems


def begin(page, url, table=TABLE, name="trees"):
    """Go from the empty list to a new study by clicking."""
    page.goto(url + "/")
    go(page.get_by_role("link", name="New study").first)
    page.set_input_files(
        "#file", {"name": "trees.csv", "mimeType": "text/csv", "buffer": table.encode()}
    )
    go(page.get_by_role("button", name="Look at the table"))
    page.get_by_label("Name of the study").fill(name)
    page.get_by_label("known, as a standard deviation").check()
    page.get_by_label("Standard deviation of one measurement").fill("0.5")
    page.get_by_label("You measure at a time").fill("12")


def measure(page, rng, most=10**6):
    """Fill in rewards of the batch on the page, and store them."""
    for row in page.locator("table.batch tbody tr").all()[:most]:
        arm = row.locator("th").inner_text()
        row.locator("input").fill(f"{MEANS[arm] + 0.5 * rng.standard_normal():.3f}")
    go(page.get_by_role("button", name="Save results"))


def test_a_whole_life_from_csv_to_verdict_with_a_restart_in_the_middle(page, tmp_path):
    rng = np.random.default_rng(1)
    with Process(tmp_path / "lab.db") as server:
        page.goto(server.url + "/")
        assert page.get_by_role("heading", name="Find the best of several").is_visible()
        begin(page, server.url)
        assert page.get_by_text("4 candidates").is_visible()
        page.get_by_label("A lead that matters").fill("1")
        go(page.get_by_role("button", name="Make a plan"))
        plan = page.locator("#plan [role=status]").inner_text()
        assert re.search(r"Expect about \d+ measurements, 90 % within \d+; the same test", plan)
        go(page.get_by_role("button", name="Create the study"))
        assert page.get_by_text("The study is created").is_visible()
        go(page.get_by_role("button", name="Get the batch"))
        measure(page, rng, most=5)
        assert page.get_by_text("5 new results are stored.").is_visible()
        port, address = server.port, page.url
        server.kill()
    with Process(tmp_path / "lab.db", port=port) as server:
        page.goto(address)
        assert page.locator("table.batch tbody tr").count() == 7
        page.reload()
        assert page.locator("table.batch tbody tr").count() == 7
        for _ in range(60):
            if page.locator("table.batch").count():
                measure(page, rng)
            elif page.get_by_role("button", name="Get the batch").count():
                go(page.get_by_role("button", name="Get the batch"))
            else:
                break
        assert "ash is the best" in page.locator("#verdict .sentence").inner_text()
        assert page.locator("tr.winner th").inner_text() == "ash"
        with page.expect_download() as download:
            page.get_by_role("link", name="Report (HTML)").click()
        report = download.value.path().read_text()
        assert "ash is the best" in report
        assert "data:image/svg+xml;base64," in report
        page.get_by_label("Add a note").fill("the best tree <b>")
        go(page.get_by_role("button", name="Add", exact=True))
        assert page.locator(".events").get_by_text("the best tree <b>").is_visible()
        server.end()


def test_columns_candidates_and_more_are_chosen_by_clicking(page, tmp_path):
    table = TABLE.replace("a,b\n", "a,b,price,stock\n").replace("fir,0.2,0.1", "fir,0.2,0.1,1,no")
    for row, more in (("oak,1,0", "2,yes"), ("ash,0,1", "1,yes"), ("elm,0.6,0.7", "3,yes")):
        table = table.replace(row, f"{row},{more}")
    with in_thread(tmp_path / "lab.db") as url:
        page.goto(url + "/new")
        page.get_by_label("Or paste cells").fill(table)
        go(page.get_by_role("button", name="Look at the table"))
        with page.expect_navigation():  # one click is enough
            page.get_by_label("stock", exact=True).select_option("measurable")
        with page.expect_navigation():
            page.get_by_label("price", exact=True).select_option("cost")
        assert page.get_by_text("3 to measure, 4 to choose from").is_visible()
        assert page.get_by_label("a", exact=True).input_value() == ""  # as guessed
        assert not page.get_by_label("Look for the best").is_visible()
        page.get_by_text("More: several winners").click()
        page.get_by_label("Look for the best").fill("2")
        page.get_by_label("batches may be shifted").check()
        page.get_by_label("Name of the study").fill("trees")
        assert page.get_by_label("unknown: it is estimated").is_checked()
        page.get_by_label("Standard deviation of one").fill("0.5")
        assert page.get_by_label("known, as a standard deviation").is_checked()
        page.get_by_label("How many of them").fill("90")
        assert page.get_by_label("after a number of measurements").is_checked()
        page.get_by_label("when it is certain").check()
        page.get_by_label("How many of them").fill("")
        page.get_by_label("You measure at a time").press("Enter")  # creates nothing
        assert page.get_by_label("batches may be shifted").is_checked()
        assert page.get_by_label("Look for the best").input_value() == "2"
        page.set_input_files(
            "#candidates_file",
            {
                "name": "more.csv",
                "mimeType": "text/csv",
                "buffer": b"name,a,b\noak,1,0\nyew,2,1\nbox,1,2\n",
            },
        )
        go(page.get_by_role("button", name="Create the study"))
        assert page.get_by_text("The study is created").is_visible()
    with Study.open(tmp_path / "lab.db", "trees") as study:
        settings = study.settings
        assert study.arms.names == ("oak", "ash", "elm", "fir", "yew", "box")
    assert settings["measurable"] == [True, True, True, False, False, False]
    assert settings["candidate"] == [True, False, False, False, True, True]
    assert settings["cost"][:4] == [2.0, 1.0, 3.0, 1.0]
    assert (settings["top"], settings["batch_intercept"]) == (2, True)
    assert settings["metadata"] == {}


def lab(path, open_batch=True):
    arms = fl.Arms(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.7]]), ["oak", "ash", "elm"])
    with Study.create(path, "trees", arms, sigma=0.5, seed=3) as study:
        rng = np.random.default_rng(2)
        batch = study.ask(size=12)
        study.tell({p.pull_id: MEANS[p.arm] / 4 + 0.5 * rng.standard_normal() for p in batch})
        if open_batch and study.status(forecast=False).verdict == "continue":
            study.ask(size=12)
    return path


def test_two_browsers_see_each_other_and_keep_what_is_typed(chromium, page, tmp_path):
    with in_thread(lab(tmp_path / "lab.db")) as url:
        context = chromium.new_context()
        other = context.new_page()
        other.goto(url + "/studies/1")
        page.goto(url + "/studies/1")
        fields = page.locator("table.batch input")
        first, second = fields.nth(0), other.locator("table.batch input").nth(1)
        kept = second.get_attribute("id")
        second.fill("0.25")
        second.focus()
        before = other.locator("table.batch tbody tr").count()
        first.fill("0.5")
        page.get_by_role("button", name="Save results").click()
        page.get_by_text("1 new result is stored.").wait_for()
        start = time.monotonic()
        other.locator("table.batch tbody tr").nth(before - 1).wait_for(
            state="detached", timeout=30_000
        )
        took = time.monotonic() - start
        assert took < 2.0
        assert other.locator(f"#{kept}").input_value() == "0.25"
        assert other.evaluate("document.activeElement.id") == kept
        other.locator("table.batch input").nth(3).fill("oops")
        other.get_by_role("button", name="Save results").click()
        other.get_by_text("“oops” is not a").wait_for()
        with fl.Study.open(tmp_path / "lab.db", "trees") as study:  # another program
            study.note("from a program")
        other.get_by_text("from a program").wait_for(timeout=2_000)
        assert other.locator(f"#{kept}").input_value() == "0.25"  # also after a refused form
        assert other.locator("table.batch input").nth(3).input_value() == "oops"
        context.close()


def test_a_study_is_changed_and_deleted_by_clicking(page, tmp_path):
    with in_thread(lab(tmp_path / "lab.db", open_batch=False)) as url:
        page.goto(url + "/studies/1")
        page.get_by_role("navigation", name="Parts").get_by_role("link", name="Change").click()
        page.get_by_label("Withdraw", exact=True).select_option("elm")
        page.get_by_label("because", exact=True).fill("sold out")
        go(page.get_by_role("button", name="Withdraw"))
        assert page.get_by_text("The candidate is withdrawn.").is_visible()
        assert page.locator("table.arms tbody tr").count() == 2
        go(page.get_by_role("link", name="Add candidates"))
        page.get_by_label("Or paste the rows").fill("name,f1,f2\nfir,0.9,oops\nyew,1,1")
        go(page.get_by_role("button", name="Look at the table"))
        assert page.locator("td.bad").inner_text().endswith("oops")
        page.get_by_label("Or paste the rows").fill("name,f1,f2\nfir,0.9,0.3\nyew,1,1")
        go(page.get_by_role("button", name="Look at the table"))
        go(page.get_by_role("button", name="Add 2 candidates"))
        assert page.get_by_text("2 new candidates are tested from here on.").is_visible()
        assert page.locator("table.arms tbody tr").count() == 4
        page.get_by_label("Stop without a winner, because").fill(" ")
        go(page.get_by_role("button", name="Stop"))
        assert page.locator("#change [role=alert]").is_visible()
        above = "document.getElementById('change').getBoundingClientRect().top < 400"
        for _ in range(50):  # the page's policy forbids what `wait_for_function` repeats
            if page.evaluate(above):
                break
            page.wait_for_timeout(100)
        assert page.evaluate(above)  # the reason is in sight
        page.get_by_label("Stop without a winner, because").fill("rain")
        go(page.get_by_role("button", name="Stop"))
        go(page.get_by_role("button", name="Resume"))
        go(page.get_by_role("button", name="Get the batch"))
        assert page.get_by_text(
            "is open; the candidates can change when it is complete"
        ).is_visible()
        go(page.get_by_role("link", name="Delete the study"))
        page.get_by_label("Type the name").fill("tree")
        go(page.get_by_role("button", name="Delete for good"))
        assert page.get_by_text("Nothing was deleted").is_visible()
        page.get_by_label("Type the name").fill("trees")
        go(page.get_by_role("button", name="Delete for good"))
        assert page.get_by_text("The study is deleted.").is_visible()
        assert page.get_by_role("heading", name="Find the best of several").is_visible()


def test_everything_works_without_javascript(chromium, tmp_path):
    context = chromium.new_context(java_script_enabled=False)
    context.set_default_timeout(FIRST_RUN)
    page = context.new_page()
    rng = np.random.default_rng(4)
    with in_thread(tmp_path / "lab.db") as url:
        begin(page, url, name="no script")
        go(page.get_by_role("button", name="Create the study"))
        go(page.get_by_role("button", name="Get the batch"))
        go(page.get_by_role("link", name="failed? Measurement 1", exact=True))
        page.locator("#void-reason").fill("fell")
        go(page.get_by_role("button", name="It failed, measure again"))
        assert page.get_by_text("Measurement 13 replaces the one that failed.").is_visible()
        page.locator("table.batch input").nth(0).fill("zero")
        page.locator("table.batch input").nth(1).fill("1.5")
        go(page.get_by_role("button", name="Save results"))
        assert page.get_by_text("“zero” is not a").is_visible()
        assert page.locator("table.batch input").nth(1).input_value() == "1.5"
        measure(page, rng, most=3)
        go(page.locator(".told a").nth(0))
        page.get_by_label("The right result").fill("1.25")
        page.get_by_label("What was wrong?").fill("misread")
        go(page.get_by_role("button", name="Correct it"))
        assert page.get_by_text("is corrected.").is_visible()
        page.get_by_label("Stop without a winner, because").fill("enough")
        go(page.get_by_role("button", name="Stop"))
        assert page.get_by_text("The study is stopped.").first.is_visible()
        go(page.get_by_role("button", name="Resume"))
        page.get_by_label("as a new study called").fill("again")
        go(page.get_by_role("button", name="Start anew").first)
        assert page.get_by_role("heading", name="again", level=1).is_visible()
        page.goto(url + "/?q=AGA")
        assert page.locator("table.studies tbody tr").count() == 1
    context.close()


def test_pages_follow_the_theme_of_the_machine_and_fit_a_phone(chromium, tmp_path):
    with in_thread(lab(tmp_path / "lab.db")) as url:
        grounds = {}
        for scheme in ("light", "dark"):
            context = chromium.new_context(
                color_scheme=scheme, viewport={"width": 390, "height": 800}
            )
            page = context.new_page()
            for path in ("/", "/new", "/studies/1", "/studies/1/history", "/studies/1/pulls/13"):
                page.goto(url + path)
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= 390, path
            page.goto(url + "/studies/1")
            grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
            page.locator("#charts").scroll_into_view_if_needed()
            page.evaluate(
                "() => Promise.all([...document.images].map((image) => { image.loading = 'eager';"
                " return image.decode().catch(() => null); }))"
            )
            drawn = page.evaluate(
                "[...document.images].map((image) => image.currentSrc).filter(Boolean)"
            )
            assert drawn
            assert all(f"theme={scheme}" in address for address in drawn)
            context.close()
        assert grounds["light"] != grounds["dark"]


#: Writes down what is said while the browser waits, and stops after a while.
WATCH = """() => {
  sessionStorage.seen = "";
  const timer = setInterval(() => {
    const note = document.querySelector(".working");
    if (note) sessionStorage.seen += note.innerText.replace(/\\n/g, " ") + "|";
    if (!/ [2-9] of 40 runs/.test(sessionStorage.seen)) return;
    clearInterval(timer);
    note.querySelector("button").click();
  }, 100);
}"""


def test_a_plan_that_takes_long_says_how_far_it_is_and_can_be_stopped(page, tmp_path):
    names = "name\n" + "".join(f"a{i}\n" for i in range(46))
    with in_thread(tmp_path / "lab.db") as url:
        begin(page, url, names)
        page.get_by_label("Standard deviation of one measurement").fill("30")
        page.get_by_label("A lead that matters").fill("0.0005")
        page.evaluate(WATCH)
        page.get_by_role("button", name="Make a plan").click(no_wait_after=True)
        workers = APPS[url].state.workers
        until = time.monotonic() + FIRST_RUN / 1000
        while not len(workers) and time.monotonic() < until:
            time.sleep(0.05)
        while (
            len(workers) and time.monotonic() < until
        ):  # the work ends with the page that wanted it
            time.sleep(0.05)
        assert len(workers) == 0
        page.wait_for_function("!document.querySelector('.working')")  # it may be navigating still
        page.wait_for_load_state()
        seen = page.evaluate("sessionStorage.seen")
        assert re.search(r"Simulating: [2-9] of 40 runs, [0-9]+ of at most 50 seconds", seen), seen
        assert page.locator(".working").count() == 0
        page.get_by_label("Standard deviation of one measurement").fill("0.01")
        page.get_by_label("A lead that matters").fill("2")
        go(page.get_by_role("button", name="Make a plan"))
        assert "Expect about" in page.locator("#plan").inner_text()


def test_at_the_bench_what_is_typed_is_kept_until_it_is_saved(page, tmp_path):
    with in_thread(lab(tmp_path / "lab.db")) as url:
        page.goto(url + "/studies/1")
        fields = page.locator("table.batch input")
        fields.nth(0).fill("0.5")
        fields.nth(0).press("Enter")  # goes down, and saves nothing
        assert fields.nth(1).evaluate("field => field === document.activeElement")
        page.evaluate(
            """() => { const data = new DataTransfer();
              data.setData("text", "1.5\\n2.5\\nfailed\\n");
              document.activeElement.dispatchEvent(new ClipboardEvent("paste",
                { clipboardData: data, bubbles: true, cancelable: true })); }"""
        )
        typed = [fields.nth(i).input_value() for i in range(5)]
        assert typed == ["0.5", "1.5", "2.5", "failed", ""]
        assert "4 results are typed and not saved yet" in page.locator("#drafts").inner_text()
        page.reload()  # a phone that went to sleep
        assert [fields.nth(i).input_value() for i in range(5)] == typed
        with Study.open(tmp_path / "lab.db", "trees") as study:
            assert study.status(forecast=False).open_pulls == 12
        go(page.get_by_role("button", name="Save results"))
        assert page.get_by_text("3 new results are stored.").is_visible()
        assert page.evaluate("Object.keys(localStorage).length") == 0
        assert page.locator("#drafts").inner_text() == ""
        inside = page.locator("table.batch").evaluate(
            "table => { for (let box = table; box; box = box.parentElement)"
            " if (box.scrollHeight > box.clientHeight + 1"
            " && getComputedStyle(box).overflowY === 'auto') return box.className; return ''; }"
        )
        assert inside == ""  # nothing to scroll in but the page itself


def test_the_cells_of_a_batch_are_big_on_a_phone_and_charts_are_as_wide(chromium, tmp_path):
    with in_thread(lab(tmp_path / "lab.db")) as url:
        context = chromium.new_context(viewport={"width": 390, "height": 800})
        page = context.new_page()
        page.goto(url + "/studies/1")
        box = page.locator("table.batch input").first.bounding_box()
        assert box["height"] >= 44  # of a finger
        assert box["width"] >= 200
        for part in ("figure.differences", "figure.means", "figure.amounts"):
            ends = page.locator(f"{part} circle, {part} rect, {part} .value").evaluate_all(
                "all => all.map((one) => { const box = one.getBoundingClientRect();"
                " return [box.left, box.right]; })"
            )
            assert ends
            assert min(left for left, _ in ends) >= 0
            assert max(right for _, right in ends) <= 390
        context.close()


def test_what_is_still_to_be_measured_comes_by_itself(page, tmp_path):
    with in_thread(lab(tmp_path / "lab.db")) as url:
        page.goto(url + "/studies/1")
        page.locator("#expect", has_text=re.compile(r"About [\d,]+ more")).wait_for()


def test_names_have_room_on_a_phone_beside_the_numbers_of_two_models(chromium, tmp_path):
    doses = np.arange(11.0) / 2
    arms = fl.Arms(doses[:, None], [f"dose of {dose:g}" for dose in doses])
    rng = np.random.default_rng(4)
    study = Study.create(tmp_path / "lab.db", "s", arms.with_intercept(), sigma=0.8, seed=4)
    while not (status := study.status(forecast=False)).doubts and status.batches < 12:
        means = {name: 5 - 1.2 * (d - 2.5) ** 2 for name, d in zip(arms.names, doses, strict=True)}
        study.tell({p.pull_id: means[p.arm] + 0.8 * rng.normal() for p in study.ask(size=24)})
    assert any(arm.bent is not None for arm in status.arms)
    study.close()
    with in_thread(tmp_path / "lab.db") as url:
        page = chromium.new_context(viewport={"width": 390, "height": 800}).new_page()
        page.goto(url + "/studies/1")
        names = page.locator("figure.means .line:not(.scale) .who").evaluate_all(
            "all => all.map((one) => one.getBoundingClientRect().width)"
        )
    assert len(names) == 11
    assert min(names) >= 100
