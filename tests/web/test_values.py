"""Values of charts that are pictures: on hover, on tap and by keyboard."""

import re

import numpy as np
import pytest

import finalist as fl
from finalist.charts.curves import Curve, curves_chart
from finalist.charts.theme import to_svg
from finalist.study import Study
from finalist.web.pages.pictures import available, draw
from tests.web.browsers import browser
from tests.web.labs import plane_study
from tests.web.servers import in_thread
from tests.web.test_bends_page import GRID, make

_SAID = re.compile(r'<\w+ aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="value"')


def said(svg):
    """What the marks of a picture say."""
    return _SAID.findall(svg)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    where = tmp_path_factory.mktemp("values") / "lab.db"
    plane_study(where)
    make(where, "dome", -3.0 * (GRID**2).sum(axis=1) + GRID[:, 0])
    return where


def test_every_picture_of_a_study_says_its_values(place):
    drawn = {}
    for name in ("plane", "dome"):
        with Study.open(place, name) as study:
            look, forecast = study.snapshot(), study.status().forecast
            for chart in available(look):
                found = said(to_svg(draw(look, chart, lambda seen=forecast: seen)))
                assert found, (name, chart)
                drawn[chart] = found
    assert set(drawn) == {
        "evidence", "forecast", "effects", "residuals", "plane", "bends", "curve-0", "curve-1"
    }  # fmt: skip
    expected = {
        "evidence": r"x\d+: (0\.\d\d|ruled out) after \d+ measurements",
        "forecast": r"\d+% decided after [\d,.]+ more measurements",
        "curve-0": r"x\d+, f1 .*: (measured .*, )?the model .* ± .*",
        "residuals": r"measurement \d+, x\d+: .*, expected .*",
        "bends": r"f[12] .*: measured .*, the model .*, with bends .*",
        "effects": r"f[12]: .*",
        "plane": r"(the estimate|oak|ash|elm): .*",
    }
    for chart, pattern in expected.items():
        assert [one for one in drawn[chart] if not re.fullmatch(pattern, one)] == [], chart


def test_values_are_those_of_the_study(place):
    with Study.open(place, "plane") as study:
        look = study.snapshot()
    pulls, evidence = look.trail
    svg = to_svg(draw(look, "evidence", lambda: None))
    for i, name in enumerate(look.arms.names):
        share = max(float(evidence[-1, i]), 0.0)
        words = f"{share:.2f}" if share < 1.0 else "ruled out"
        assert f"{name}: {words} after {pulls[-1]} measurements" in said(svg)


def test_curves_say_where_they_are_also_on_logarithmic_axes():
    curve = Curve("this study", (0.5, 5.0), (200.0, 20.0), (100.0, 10.0), (400.0, 40.0))
    for log_x in (False, True):
        found = said(to_svg(curves_chart([curve], "lead", "n", "t", [], log_x=log_x)))
        assert found == [
            "this study, at 0.5: 200 (100 to 400)", "this study, at 5: 20 (10 to 40)"
        ]  # fmt: skip


def test_hostile_names_stay_words(tmp_path):
    arms = fl.Arms.unstructured(['<script>"&amp;', "b"])
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=1.0, seed=1) as study:
        for _ in range(2):
            study.tell({p.pull_id: 0.5 for p in study.ask(8)})
        svg = to_svg(draw(study.snapshot(), "evidence", lambda: None))
    assert any("&lt;script" in one for one in said(svg))
    assert "<script" not in svg


@pytest.mark.parametrize("width", [1280, 390])
def test_values_show_on_hover_on_tap_and_by_keyboard(place, width):
    with in_thread(place) as url, browser() as chromium:
        context = chromium.new_context(viewport={"width": width, "height": 900}, has_touch=True)
        page, problems = context.new_page(), []
        page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
        page.goto(url + "/studies/1")
        box, tip = page.locator(".chart.evidence .values"), page.locator(".value-tip")
        box.scroll_into_view_if_needed()
        page.locator(".chart.evidence img").evaluate("(image) => image.decode()")
        assert tip.is_hidden()
        box.focus()
        page.keyboard.press("ArrowRight")
        tip.wait_for()
        first = tip.inner_text()
        assert re.fullmatch(r"\w+: (0\.\d\d|ruled out) after \d+ measurements", first)
        page.keyboard.press("End")
        last = tip.inner_text()
        assert last != first
        ring = page.locator(".value-ring").bounding_box()
        frame = page.locator(".chart.evidence img").bounding_box()
        assert ring is not None
        assert frame is not None
        x, y = ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2
        assert frame["x"] < x < frame["x"] + frame["width"]
        assert frame["y"] < y < frame["y"] + frame["height"]
        shown = tip.bounding_box()
        assert shown is not None
        assert shown["x"] >= 0
        assert shown["x"] + shown["width"] <= width
        page.keyboard.press("Escape")
        assert tip.is_hidden()
        page.touchscreen.tap(x, y)
        tip.wait_for()
        assert last in tip.inner_text().split("\n")  # and what covers it
        page.locator("h1").dispatch_event("pointerdown", {"pointerType": "touch"})
        assert tip.is_hidden()
        page.mouse.move(x + 3, y + 3)
        tip.wait_for()
        assert last in tip.inner_text().split("\n")  # and what covers it
        page.mouse.move(2, 2)
        assert tip.is_hidden()
        assert problems == []
        context.close()


def test_spoken_numbers_have_no_tail():
    from finalist.charts.values import spoken

    found = [spoken(v) for v in (0.1 + 0.2, -2.0, 1234567.8, np.nan)]
    assert found == ["0.3", "\N{MINUS SIGN}2", "1,234,568", "unknown"]
