"""Accessibility by axe-core in a real browser: no violation, in light and dark and on a phone."""

import pytest

from finalist.study import Study
from tests.web.browsers import browser
from tests.web.labs import plane_study
from tests.web.servers import browser_of, in_thread

TABLE = "name,dose,heat\nA,1,20\nB,2,20\nC,1,40\nD,2,40\n"
#: Everything that axe-core calls a violation, its best practices included.
PAGES = (
    "/",
    "/new",
    "/sigma",
    "/help",
    "/studies/1",
    "/studies/1/sheet",
    "/studies/1/forecast",
    "/studies/1/history",
    "/studies/1/add",
    "/studies/1/delete",
    "/studies/1/pulls/25",
    "/studies/2",
    "/studies/3",
    "/studies/99",
    "/api/v1/docs",
)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server with a study at work, one that has not begun and an example at its end."""
    place = tmp_path_factory.mktemp("axe") / "lab.db"
    plane_study(place)
    with Study.open(place, "plane") as study:
        study.ask(size=12)
        arms = study.arms
    Study.create(place, "new", arms, sigma=1.0, seed=1).close()
    with in_thread(place) as address, browser_of(address, timeout=180) as client:
        client.post("/example")
        while "Simulate a batch" in client.get("/studies/3").text:
            client.post("/studies/3/simulate")
        yield address


def violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    return [
        (one["id"], node["target"], node["html"][:120], node.get("failureSummary", "")[:200])
        for one in axe.run(page).response["violations"]
        for node in one["nodes"]
    ]


def prepared(page):
    """Open what is closed, and wait until nothing is being animated."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_no_page_has_a_violation(url, scheme, width):
    with browser() as chromium:
        context = chromium.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
            reduced_motion="reduce",
        )
        page, found = context.new_page(), {}
        page.set_default_timeout(120_000)
        for path in PAGES:
            page.goto(url + path)
            prepared(page)
            found[path] = violations(page)
        page.goto(url + "/new")
        page.fill("#pasted", TABLE)
        page.get_by_role("button", name="Look at the table").click()
        page.wait_for_selector("#question-title")
        prepared(page)
        found["the question"] = violations(page)
        page.get_by_role("button", name="Create the study").click()
        page.wait_for_selector("[role=alert]")
        prepared(page)
        found["the question, refused"] = violations(page)
        context.close()
    assert {path: some for path, some in found.items() if some} == {}


def test_a_page_without_names_for_its_fields_is_caught(url):
    """The broken twin: what axe-core is trusted to see, it sees under this policy."""
    with browser() as chromium:
        page = chromium.new_page()
        page.goto(url + "/new")
        page.evaluate("document.querySelectorAll('label').forEach((one) => one.remove())")
        assert "label" in {one[0] for one in violations(page)}
