"""The style sheet and the script: contrast in both themes, and what they must not contain."""

import re
from pathlib import Path

import pytest

from finalist.charts.theme import CANDIDATES, DARK, INK, MUTED
from finalist.web.pages.standing import COLOURS
from finalist.web.render import HERE

STYLE = (HERE / "static" / "style.css").read_text()
ROWS = (HERE / "static" / "rows.css").read_text()
SCRIPTS = {name: (HERE / "static" / f"{name}.js").read_text() for name in ("app", "bench")}
#: Text on ground, as the style sheet uses them.
TEXT = [
    *(
        (ink, ground)
        for ink in ("ink", "muted", "link", "bad", "win")
        for ground in ("page", "card", "sunken")
    ),
    ("on-primary", "primary"),
    ("on-primary", "primary-deep"),
    ("good", "good-page"),
    ("warn", "warn-page"),
    ("bad", "bad-page"),
    ("card", "bad"),
    ("win", "win-page"),
    ("link", "info-page"),
    ("ink", "info-page"),
]
#: Edges of fields, bars and the ring of the focus.
SHAPES = [("edge", "card"), ("edge", "sunken"), ("primary", "card"), ("primary", "page"),
          ("part", "card"), ("part", "rule"), ("full", "card")]  # fmt: skip


def colours(theme):
    blocks = re.findall(r":root[^{]*\{(.*?)\}", STYLE, re.S)
    assert len(blocks) == 2
    found = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in blocks]
    return found[0] if theme == "light" else found[0] | found[1]


def luminance(colour):
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme):
    found = colours(theme)
    for ink, ground in TEXT:
        assert contrast(found[ink], found[ground]) >= 4.5, (theme, ink, ground)
    for shape, ground in SHAPES:
        least = 3.0 if ground != "rule" else 2.0  # a bar on its track has a number beside it
        assert contrast(found[shape], found[ground]) >= least, (theme, shape, ground)


def test_dark_defines_what_light_defines():
    blocks = re.findall(r":root[^{]*\{(.*?)\}", STYLE, re.S)
    names = [set(re.findall(r"--([a-z-]+):", block)) for block in blocks]
    assert names[0] == names[1]
    used = set(re.findall(r"var\(--([a-z-]+)\)", STYLE + ROWS))
    assert used <= names[0]
    assert names[0] <= used


def test_charts_can_be_read_on_the_cards_of_both_themes():
    light, dark = colours("light")["card"], colours("dark")["card"]
    assert DARK["white"].lower() == dark
    for ink in (INK, MUTED):
        assert contrast(ink.lower(), light) >= 4.5
        assert contrast(DARK[ink].lower(), dark) >= 4.5


def test_a_candidate_has_the_same_colour_in_rows_and_in_pictures():
    blocks = re.findall(r":root[^{]*\{(.*?)\}", ROWS, re.S)
    light, dark = (re.findall(r"--c([0-7]): (#[0-9a-f]{6});", block) for block in blocks)
    assert [colour for _, colour in light] == [colour.lower() for colour in CANDIDATES]
    assert [colour for _, colour in dark] == [DARK[colour].lower() for colour in CANDIDATES]
    assert len(CANDIDATES) == COLOURS
    for theme, found in (("light", light), ("dark", dark)):
        for _, colour in found:
            assert contrast(colour, colours(theme)["card"]) >= 3.0, (theme, colour)


def test_focus_is_seen_and_motion_can_be_off():
    assert re.search(r":focus-visible \{[^}]*outline: 3px solid var\(--primary\)", STYLE)
    assert re.findall(r"outline: none", STYLE) == ["outline: none"]  # of <main>, for the skip link
    assert "prefers-reduced-motion" in STYLE
    assert "@media print" in STYLE


def test_nothing_is_fetched_or_run_from_elsewhere():
    assert "url(" not in STYLE + ROWS
    assert "@import" not in STYLE + ROWS
    for word in ("eval(", "Function(", "innerHTML = ", "outerHTML", "insertAdjacentHTML", "http:",
                 "https:", "document.write", "setAttribute(\"style", ".style."):  # fmt: skip
        assert all(word not in script for script in SCRIPTS.values()), word
    assert all(len(script) < 10_000 for script in SCRIPTS.values())


def test_templates_hold_no_scripts_and_trust_no_text():
    templates = sorted(Path(HERE / "templates").glob("*.html"))
    assert len(templates) >= 12
    for template in templates:
        text = template.read_text()
        assert not re.search(r"\son\w+=", text), template.name
        assert " style=" not in text, template.name
        trusted = re.findall(r"\|\s*safe", text)
        assert len(trusted) == (1 if template.name == "report.html" else 0), template.name
        assert "autoescape" not in text
