"""Charts of studies, what is kept of them, and the report on the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

import finalist as fl
from finalist.cli import app
from finalist.errors import ChartError
from finalist.inference.intervals import pooled_widths, start_of
from finalist.study import Study
from finalist.study.status import status
from finalist.web import cache, create_app
from finalist.web.pages import pictures
from finalist.web.pages.format import ordered
from finalist.web.pages.pictures import available, draw, svg
from finalist.web.server import warm_up
from tests.web.labs import EVIL_STUDY, Page, evil_study, plane_study


@pytest.fixture(scope="module")
def look(tmp_path_factory):
    place = tmp_path_factory.mktemp("drawings") / "lab.db"
    plane_study(place)
    with Study.open(place, "plane") as study:
        yield study.snapshot()


def none():
    raise AssertionError("no forecast is wanted")


def test_charts_come_as_there_is_something_to_draw(tmp_path, look):
    place = tmp_path / "lab.db"
    with Study.create(place, "s", fl.Arms.unstructured(3), sigma=1.0, seed=1) as study:
        assert available(study.snapshot()) == {}
        with pytest.raises(ChartError, match="there is no chart"):
            draw(study.snapshot(), "evidence", none)
        batch = study.ask(size=12)
        study.tell({next(iter(batch)).pull_id: 0.5})
        assert available(study.snapshot()) == {}  # of an open batch there is nothing to draw
        study.tell({p.pull_id: 0.5 for p in batch})
        assert set(available(study.snapshot())) == {
            "evidence",
            "forecast",
            "residuals",
        }
        assert study.status().forecast is not None
        study.stop("enough")
        assert "forecast" not in available(study.snapshot())
    assert list(available(look)) == [
        "evidence",
        "forecast",
        "effects",
        "residuals",
        "plane",
    ]


def test_the_ellipse_is_that_of_the_intervals(look):
    """Its shadow on the direction of an arm is the interval that holds for all directions."""
    chart = draw(look, "plane", none).to_dict()
    outline = next(
        layer["data"]["values"]
        for layer in chart["layer"]
        if layer["mark"].get("fillOpacity") == 0.6
    )
    points, Z = np.array([[p["x"], p["y"]] for p in outline]), look.arms.coordinates
    widths = pooled_widths(look.fit, Z, start_of(look.problem), 0.95, look.problem.scale)
    for mean, width, features in zip(look.means, widths, look.arms.features, strict=True):
        shadow = points @ features
        assert shadow.min() == pytest.approx(mean - width, abs=4e-3 * width)
        assert shadow.max() == pytest.approx(mean + width, abs=4e-3 * width)


def test_drawings_are_kept_by_event_and_theme_up_to_a_size(look, monkeypatch):
    calls: list[str] = []

    def to_svg(_: object, theme: str) -> str:
        calls.append(theme)
        return "x" * 100

    monkeypatch.setattr("finalist.charts.theme.to_svg", to_svg)
    kept, moment = cache.Cache(), ("a", look.event)
    for theme in ("light", "dark", "light"):
        svg(look, "effects", theme, none, kept, moment)
    assert calls == ["light", "dark"]
    monkeypatch.setattr(cache, "MAX_SIZE", 250)
    for chart in ("residuals", "evidence", "plane"):
        svg(look, chart, "light", none, kept, moment)
    assert len(kept._kept) == 2
    svg(look, "plane", "light", none, kept, moment)
    assert len(calls) == 5
    svg(look, "effects", "light", none, kept, moment)
    assert len(calls) == 6


def test_many_arms_and_batches_are_thinned_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_LINES", 4)
    monkeypatch.setattr(pictures, "MAX_BATCHES", 3)
    arms = fl.Arms.unstructured(6)
    with Study.create(tmp_path / "lab.db", "s", arms, sigma=1.0, seed=1) as study:
        rng = np.random.default_rng(0)
        while batch := study.ask(size=24):
            rewards = rng.standard_normal(len(batch))
            study.tell(
                {
                    p.pull_id: 0.2 * arms.index(p.arm) + r
                    for p, r in zip(batch, rewards, strict=True)
                }
            )
        look = study.snapshot()
    assert len(look.trail[0]) > 3
    chart = draw(look, "evidence", none).to_dict()
    assert chart["title"]["subtitle"][1] == "Not drawn: 2 that were ruled out early"
    names = {
        row["arm"] for layer in chart["layer"] for row in layer["data"]["values"] if "arm" in row
    }
    assert "x6" in names
    assert len(names) == 4
    out = {
        row["arm"] for layer in chart["layer"] for row in layer["data"]["values"] if "foot" in row
    }
    assert len(out) == 3  # every rejected arm ends at the line, whatever was left out


def test_arms_are_ranked_by_what_may_be_the_best(look):
    order = ordered(status(look), 1)
    assert [arm.survives for arm in order] == sorted((a.survives for a in order), reverse=True)
    alive = [arm.estimate or 0.0 for arm in order if arm.survives]
    assert alive == sorted(alive, reverse=True)


def test_the_report_of_the_command_line(tmp_path):
    place, out = tmp_path / "lab.db", tmp_path / "report.html"
    evil_study(place)
    words = ["report", EVIL_STUDY, "--db", str(place), "-o", str(out)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    page = Page(out.read_text())
    assert page.all("script") == page.all("link") == []
    assert len(page.all("img")) == 3  # evidence, forecast and residuals
    assert "Not decided yet" in page.text
    missing = CliRunner().invoke(app, ["report", "nobody", "--db", str(place), "-o", str(out)])
    assert missing.exit_code == 2
    assert "there is no study" in missing.output


def test_the_report_is_called_like_the_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plane_study(tmp_path / "lab.db", "../first trial")
    result = CliRunner().invoke(app, ["report", "../first trial", "--db", "lab.db"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "first-trial.html").stat().st_size > 10_000


@pytest.mark.parametrize("sigma", [1.0, None])
@pytest.mark.parametrize("told", [0, 2, 3, 4, 8])
def test_a_forecast_is_offered_when_there_is_one(tmp_path, sigma, told):
    arms = fl.Arms(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.7]]))
    words = {"strategy": "uniform", "sigma": 1.0} if sigma else {"sigma": None}
    with Study.create(tmp_path / "lab.db", "s", arms, seed=1, **words) as study:
        if told:
            batch = study.ask(size=told)
            rewards = np.random.default_rng(told).standard_normal(len(batch))
            study.tell({p.pull_id: r for p, r in zip(batch, rewards, strict=True)})
        offered = "forecast" in available(study.snapshot())
        assert offered == (study.status().forecast is not None)


def test_a_server_reads_its_studies_when_it_starts(tmp_path):
    plane_study(tmp_path / "lab.db")
    app_ = create_app(tmp_path / "lab.db")
    before = app_.state.snapshots.lines(0.0)
    warm_up(app_).join(60)
    after = app_.state.snapshots.lines(0.0)
    assert before[0]["verdict"] in (None, "continue")
    assert after[0]["verdict"] == "continue"
    app_.state.studies.close()
