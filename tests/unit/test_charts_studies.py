"""Charts of a study: what is drawn, in which order, and what cannot be."""

import numpy as np
import pytest

import finalist as fl
from finalist.charts.effects import effects_chart
from finalist.charts.studies import (
    forecast_chart,
    position_chart,
)
from finalist.charts.theme import CANDIDATES, DARK, INK, PALETTE, to_svg
from finalist.errors import ChartError


def test_a_forecast_counts_the_draws_that_are_decided():
    chart = forecast_chart(np.array([30.0, 10.0, 10.0, np.inf]), cap=500).to_dict()
    area = chart["layer"][0]
    assert area["data"]["values"] == [
        {"pulls": 0.0, "share": 0.0},
        {"pulls": 10.0, "share": 0.25},
        {"pulls": 10.0, "share": 0.5},
        {"pulls": 30.0, "share": 0.75},
        {"pulls": 500.0, "share": 0.75},
    ]
    assert area["encoding"]["y"]["stack"] is False
    assert chart["layer"][2]["data"]["values"][0]["words"] == "half by 10"
    never = forecast_chart(np.array([np.inf, np.inf]), cap=500).to_dict()
    assert len(never["layer"]) == 2  # no middle; what it says is there


def test_a_single_future_that_is_far_off_does_not_flatten_a_forecast():
    pulls = np.append(np.arange(10.0, 200.0, 10.0), 50_000.0)
    chart = forecast_chart(pulls, cap=10**6).to_dict()["layer"][0]
    assert chart["encoding"]["x"]["scale"]["domain"] == [0.0, pytest.approx(1.6 * 180.0)]
    assert chart["data"]["values"][-1]["share"] == 0.95


def test_the_plane_shows_the_cones_of_the_best_also_when_small_is_good():
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], names=["east", "north", "south"])
    theta, counts = np.array([1.0, 0.2]), np.array([5, 5, 5])

    def cone_at(sign):
        layers = position_chart(arms, theta, counts, 1.0, sign=sign).to_dict()["layer"]
        corners = layers[0]["data"]["values"]
        found = {}
        for name in arms.names:
            points = np.array([[r["x"], r["y"]] for r in corners if r["arm"] == name])
            found[name] = points[np.linalg.norm(points, axis=1) > 0]
        return found

    for sign in (1, -1):
        for name, points in cone_at(sign).items():
            scores = sign * points @ arms.features.T
            best = scores.max(axis=1) - scores[:, arms.index(name)]
            assert np.abs(best).max() < 1e-9, (sign, name)
    with pytest.raises(ChartError, match="2 features"):
        position_chart(fl.Arms.unstructured(3), theta, counts, 1.0)


def test_the_ellipse_has_the_radius_in_the_norm_of_the_pulls():
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0]])
    chart = position_chart(arms, np.zeros(2), np.array([4, 25]), 2.0).to_dict()
    outline = next(
        layer["data"]["values"]
        for layer in chart["layer"]
        if layer["mark"].get("fillOpacity") == 0.6
    )
    assert max(abs(p["x"]) for p in outline) == pytest.approx(2.0 / 2)
    assert max(abs(p["y"]) for p in outline) == pytest.approx(2.0 / 5, rel=1e-3)


def test_dark_changes_colours_and_no_names():
    arms = ["white", "#1F2933", "c"]
    values, blue = np.array([1.0, 2.0, 3.0]), PALETTE[0]
    chart = effects_chart(arms, values, values, values, title="white")
    light, dark = to_svg(chart), to_svg(chart, "dark")
    for name in arms[:2]:
        assert f">{name}</text>" in light
        assert f">{name}</text>" in dark
    assert blue in light
    assert blue not in dark
    assert DARK[blue] in dark
    assert f'fill="{DARK["white"]}"' in dark


def test_an_arm_may_be_called_like_a_colour():
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], names=["white", INK, "south"])
    chart = position_chart(arms, np.array([1.0, 0.2]), np.array([5, 5, 5]), 1.0)
    light, dark = to_svg(chart), to_svg(chart, "dark")
    for name in arms.names:
        assert light.count(f">{name}</text>") == dark.count(f">{name}</text>") == 3
    for colour in CANDIDATES[:3]:  # the same as in all charts of a study
        assert colour in light
        assert colour not in dark
        assert DARK[colour] in dark
