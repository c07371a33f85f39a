"""Charts of a study: what is drawn, in which order, and what cannot be."""

import numpy as np
import pytest

import finalist as fl
from finalist.charts.studies import (
    allocation_chart,
    forecast_chart,
    intervals_chart,
    position_chart,
)
from finalist.charts.theme import ACCENT, DARK, INK, to_svg
from finalist.errors import ChartError

NAMES = ["a", "b", "c", "d"]
MEANS = np.array([1.0, 3.0, 2.0, np.nan])
ALIVE = np.array([True, False, True, True])


def rows(chart):
    return chart.to_dict()["data"]["values"]


def intervals(**words):
    return intervals_chart(NAMES, MEANS, MEANS - 1, MEANS + 1, ALIVE, **words)


def test_intervals_show_what_is_left_first_and_the_best_on_top():
    assert [row["arm"] for row in rows(intervals())] == ["c", "a", "b"]
    assert [row["arm"] for row in rows(intervals(sign=-1))] == ["a", "c", "b"]
    first = rows(intervals(winner=2))[0]
    assert first == {"arm": "c", "estimate": 2.0, "low": 1.0, "high": 3.0, "what": "winner"}
    assert [row["what"] for row in rows(intervals())] == ["possible", "possible", "out"]


def test_intervals_of_several_winners_and_of_what_is_only_measured():
    found = rows(intervals(winner=[2, 0]))
    assert [row["what"] for row in found] == ["winner", "winner", "out"]
    alive, can_win = np.array([False, False, True, True]), np.array([True, False, True, True])
    chart = intervals_chart(NAMES, MEANS, MEANS - 1, MEANS + 1, alive, candidate=can_win)
    assert [row["arm"] for row in rows(chart)] == ["c", "a", "b"]
    assert [row["what"] for row in rows(chart)] == ["possible", "out", "measured only"]


def test_intervals_that_are_not_known_are_points_and_many_arms_are_counted():
    none = np.full(50, np.nan)
    chart = intervals_chart(
        [str(i) for i in range(50)], np.arange(50.0), none, none, np.ones(50, dtype=bool)
    )
    assert len(rows(chart)) == 40
    assert rows(chart)[0]["low"] == rows(chart)[0]["high"] == 49.0
    assert chart.to_dict()["title"]["subtitle"] == ["Not shown: 10 more candidates"]
    with pytest.raises(ChartError, match="enter some results"):
        intervals_chart(["a"], none[:1], none[:1], none[:1], np.array([True]))


def test_pulls_stand_beside_those_of_the_design():
    chart = allocation_chart(["a", "b", "c"], np.array([6, 14, 0]), np.array([0.5, 0.25, 0.25]))
    assert rows(chart) == [
        {"arm": "b", "pulls": 14, "best": 5.0},
        {"arm": "a", "pulls": 6, "best": 10.0},
        {"arm": "c", "pulls": 0, "best": 5.0},
    ]
    alone = allocation_chart(["a", "b"], np.array([3, 0]), None)
    assert [row["arm"] for row in rows(alone)] == ["a"]
    assert len(alone.to_dict()["layer"]) == 2
    with pytest.raises(ChartError, match="no candidate was measured"):
        allocation_chart(["a"], np.array([0]), None)


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
    assert len(never["layer"]) == 1


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
    values = np.array([1.0, 2.0, 3.0])
    chart = intervals_chart(
        arms, values, values, values, np.ones(3, dtype=bool), winner=2, title="white"
    )
    light, dark = to_svg(chart), to_svg(chart, "dark")
    for name in arms[:2]:
        assert f">{name}</text>" in light
        assert f">{name}</text>" in dark
    assert ACCENT in light
    assert ACCENT not in dark
    assert DARK[ACCENT] in dark
    assert f'fill="{DARK["white"]}"' in dark


def test_an_arm_may_be_called_like_a_colour():
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], names=["white", INK, "south"])
    chart = position_chart(arms, np.array([1.0, 0.2]), np.array([5, 5, 5]), 1.0)
    light, dark = to_svg(chart), to_svg(chart, "dark")
    for name in arms.names:
        assert light.count(f">{name}</text>") == dark.count(f">{name}</text>") == 3
    for colour in ("#0072B2", "#E69F00", "#009E73"):
        assert light.count(colour) == dark.count(DARK[colour]) > 0
