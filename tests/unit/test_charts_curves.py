"""Curves, ranges, stacked shares, and sets in the plane: what data they hold and refuse."""

from typing import Any

import numpy as np
import pytest

from finalist.arms import Arms
from finalist.charts.curves import Curve, Range, curves_chart, ranges_chart, spread
from finalist.charts.geometry import ConvexSet
from finalist.charts.plane import Panel, region_chart, regions_chart
from finalist.charts.ratios import shares_chart
from finalist.charts.theme import PALETTE, to_svg
from finalist.errors import ChartError

ARMS = Arms([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
THETA = np.array([2.0, 0.0])


def datasets(chart: Any) -> list[list[dict[str, Any]]]:
    """All rows of all data in a chart, whatever its structure."""
    spec = chart.to_dict()
    found = list(spec.get("datasets", {}).values())

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            if isinstance(part.get("data"), dict) and "values" in part["data"]:
                found.append(part["data"]["values"])
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk({key: value for key, value in spec.items() if key != "datasets"})
    return found


def having(chart: Any, key: str) -> list[dict[str, Any]]:
    return next(rows for rows in datasets(chart) if rows and key in rows[0])


class TestCurves:
    curve = Curve("a", (2.0, 3.0), (10.0, 20.0), (9.0, 18.0), (11.0, 22.0))

    def chart(self, *curves: Curve, log: bool = True) -> Any:
        return curves_chart(curves, "x", "y", "T", [], log)

    def test_points_and_intervals_are_there(self) -> None:
        rows = having(self.chart(self.curve), "low")
        assert [(r["x"], r["y"], r["low"], r["high"]) for r in rows] == [
            (2.0, 10.0, 9.0, 11.0),
            (3.0, 20.0, 18.0, 22.0),
        ]

    def test_a_logarithmic_horizontal_axis(self) -> None:
        curve = Curve("a", (5.0, 1000.0), (3.0, 2.0))
        chart = curves_chart([curve], "x", "y", "T", [], log_x=True)
        places = [row["x"] for row in having(chart, "reference")]
        assert places == pytest.approx([np.log10(5.0), 3.0])
        svg = to_svg(chart)
        assert ">5<" in svg
        assert ">1,000<" in svg
        with pytest.raises(ChartError, match="above 0"):
            curves_chart([Curve("a", (0.0, 1.0), (1.0, 1.0))], "x", "y", "T", [], log_x=True)

    def test_curves_with_intervals_stand_beside_each_other(self) -> None:
        other = Curve("b", self.curve.x, self.curve.y, self.curve.low, self.curve.high)
        rows = having(self.chart(self.curve, other), "low")
        places = {row["x"] for row in rows if row["x"] < 2.5}
        assert len(places) == 2
        assert max(places) - min(places) < 0.1
        assert np.mean(list(places)) == pytest.approx(2.0)

    def test_names_at_the_ends_are_a_line_apart(self) -> None:
        domain = [1.0, 1000.0]
        heights = spread([10.0, 10.0, 10.0, 500.0], domain, log=True)
        steps = np.diff(np.log10(sorted(heights)))
        assert steps.min() >= 3 * 17 / 340 * (1 - 1e-6)
        assert heights[3] == pytest.approx(500.0)
        assert np.log10(heights[:3]).mean() == pytest.approx(1.0)

    def test_a_reference_is_dashed(self) -> None:
        spec = self.chart(self.curve, Curve("r", (2.0, 3.0), (5.0, 5.0), reference=True)).to_dict()
        dashed = [x for x in spec["layer"] if x["mark"].get("strokeDash")]
        assert len(dashed) == 1
        assert [row["curve"] for row in dashed[0]["data"]["values"]] == ["r", "r"]

    @pytest.mark.parametrize("log", [True, False])
    def test_the_axis_is_as_wanted(self, log: bool) -> None:
        spec = self.chart(self.curve, log=log).to_dict()
        scales = [x["encoding"]["y"].get("scale", {}) for x in spec["layer"]]
        assert {scale["type"] for scale in scales if scale} == {"log" if log else "linear"}

    def test_what_cannot_be_drawn_is_refused(self) -> None:
        with pytest.raises(ChartError, match="no curve"):
            self.chart()
        with pytest.raises(ChartError, match="above 0"):
            self.chart(Curve("a", (1.0,), (0.0,)))
        with pytest.raises(ChartError, match="apart"):
            self.chart(*(Curve(str(i), (1.0,), (1.0,)) for i in range(len(PALETTE) + 1)))

    def test_ranges_have_their_numbers(self) -> None:
        chart = ranges_chart(
            [Range("a", 1.0, 2.0, 3.0, 9.0), Range("b", 1.0, 2.0, 3.0)], "x", "T", []
        )
        rows = having(chart, "claimed")
        assert [(r["low"], r["value"], r["high"], r["claimed"]) for r in rows] == [
            (1.0, 2.0, 3.0, 9.0),
            (1.0, 2.0, 3.0, None),
        ]


class TestShares:
    def test_notes_say_who_gets_the_pulls(self) -> None:
        groups = {
            "one": {"focus": np.array([0.9, 0.1, 0.0])},
            "two": {
                "focus": np.array([0.9, 0.1, 0.0]),
                "even": np.array([0.5, 0.5, 0.0]),
                "mixed": np.array([0.4, 0.35, 0.25]),
            },
        }
        chart = shares_chart(groups, ["a", "b", "c"], "T", [])
        notes = {row["strategy"]: row["note"] for row in having(chart, "note")}
        assert notes == {
            "focus": "a 90.0%",
            "even": "2 arms, 50.0% each",
            "mixed": "3 arms, 25.0% to 40.0%",
        }

    def test_nothing_and_too_many_arms_are_refused(self) -> None:
        with pytest.raises(ChartError, match="no shares"):
            shares_chart({}, ["a"], "T", [])
        with pytest.raises(ChartError, match="not enough for 7 arms"):
            shares_chart({"g": {"s": np.full(7, 1 / 7)}}, list("abcdefg"), "T", [])


class TestRegions:
    square = ConvexSet(np.vstack([np.eye(2), -np.eye(2)]), np.array([3.0, 1.0, -1.0, 1.0]))

    def test_a_polygon_is_cut_by_half_planes_and_the_frame(self) -> None:
        corners = {tuple(corner) for corner in self.square.polygon(10.0)}
        assert corners == {(1.0, -1.0), (3.0, -1.0), (3.0, 1.0), (1.0, 1.0)}
        half = ConvexSet(np.array([[1.0, 1.0]]), np.array([0.0]))
        assert _area(half.polygon(2.0)) == pytest.approx(8.0)

    def test_an_empty_set_has_no_corners(self) -> None:
        empty = ConvexSet(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0]))
        assert len(empty.polygon(5.0)) == 0
        assert empty.possible(ARMS.features) == []

    def test_the_chart_has_the_set_twice_where_it_is_one_sided(self) -> None:
        open_set = ConvexSet(np.array([[-1.0, 0.0]]), np.array([-1.0]))
        chart = region_chart(ARMS, THETA, open_set, 4.0, "T", [])
        outlines = [rows for rows in datasets(chart) if rows and set(rows[0]) == {"x", "y", "step"}]
        ends = sorted(max(row["x"] for row in rows) for rows in outlines)
        assert ends == [3.0, 8.0]  # 1 <= t_1 <= 3 on both sides of theta; to the frame otherwise

    def test_a_grid_has_a_panel_for_each_set(self) -> None:
        rows = [[Panel("a", self.square), Panel("b", self.square)], [Panel("c", self.square)]]
        spec = regions_chart(ARMS, THETA, rows, 4.0, "T", []).to_dict()
        titles = [[p["title"]["text"] for p in line["hconcat"]] for line in spec["vconcat"]]
        assert titles == [["a", "b"], ["c"]]

    def test_other_arms_and_no_panels_are_refused(self) -> None:
        with pytest.raises(ChartError, match="2 features"):
            region_chart(Arms(np.eye(3)), THETA, self.square, 4.0, "T", [])
        with pytest.raises(ChartError, match="no set"):
            regions_chart(ARMS, THETA, [], 4.0, "T", [])


def _area(polygon: np.ndarray) -> float:
    x, y = polygon.T
    return abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2))
