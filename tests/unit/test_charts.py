"""Charts: what data they hold, the geometry of the plane, and the files they become."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist import charts
from finalist.charts.geometry import Cone, cones, ellipse, hull_corners, sector
from finalist.charts.layers import _colours, place_labels
from finalist.charts.theme import MAX_ARMS, AnyChart, labels
from finalist.errors import ChartError, OutputError
from finalist.files import printable, write_file
from finalist.inference.bounds import static_radius

HOSTILE = ["[red]x[/red]", "<script>alert(1)</script>", "=1+1", "two\nlines", "a & 'b' \"c\""]
MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<svg", ".pdf": b"%PDF-"}


def values(chart: object) -> list[dict[str, object]]:
    """The rows of a chart whose layers share their data."""
    spec = chart.to_dict()  # type: ignore[attr-defined]
    rows: list[dict[str, object]] = spec["data"]["values"]
    return rows


def layer_values(chart: object, key: str) -> list[list[dict[str, object]]]:
    """The rows of every layer that has the column `key`, each once."""
    found: dict[str, list[dict[str, object]]] = {}

    def walk(spec: dict[str, Any], inherited: list[dict[str, object]]) -> None:
        rows = spec["data"]["values"] if "data" in spec else inherited
        if rows and key in rows[0]:
            found[str(rows)] = rows
        for layer in spec.get("layer", ()):
            walk(layer, rows)

    walk(chart.to_dict(), [])  # type: ignore[attr-defined]
    return list(found.values())


class TestBars:
    def test_weights_are_sorted_and_zero_weights_left_out(self) -> None:
        chart = charts.weights_chart(["a", "b", "c"], np.array([0.25, 0.0, 0.75]))
        assert [(row["arm"], row["weight"]) for row in values(chart)] == [("c", 0.75), ("a", 0.25)]

    def test_pulls_are_written_beside_the_bars(self) -> None:
        chart = charts.weights_chart(["a", "b"], np.array([0.25, 0.75]), np.array([1, 2000]))
        assert [row["note"] for row in values(chart)] == ["2,000 pulls  (75.0%)", "1 pull  (25.0%)"]
        assert "2,001 pulls in all" in chart.to_dict()["title"]["subtitle"][0]

    def test_at_most_40_arms_and_the_rest_is_counted(self) -> None:
        weights = np.linspace(1.0, 2.0, 100)
        chart = charts.weights_chart([f"n{i}" for i in range(100)], weights / weights.sum())
        assert [row["arm"] for row in values(chart)] == [f"n{i}" for i in range(99, 59, -1)]
        assert "60 more" in chart.to_dict()["title"]["subtitle"][1]

    def test_tiny_weights_do_not_look_like_zero(self) -> None:
        chart = charts.weights_chart(["a", "b"], np.array([1 - 1e-6, 1e-6]))
        assert values(chart)[1]["note"] == "<0.1%"

    def test_names_that_agree_when_shortened_stay_apart(self) -> None:
        names = ["a rather long name for an arm, 1", "a rather long name for an arm, 2"]
        rows = values(charts.weights_chart(names, np.array([0.6, 0.4])))
        assert len({row["arm"] for row in rows}) == 2

    def test_designs_have_a_row_for_each_design_and_pulled_arm(self) -> None:
        designs = {"G": np.array([0.5, 0.5, 0.0]), "XY": np.array([0.0, 1.0, 0.0])}
        rows = values(charts.designs_chart(designs, ["a", "b", "never"]))
        found = {(row["design"], row["arm"]): row["weight"] for row in rows}
        assert found == {("G", "a"): 0.5, ("G", "b"): 0.5, ("XY", "a"): 0.0, ("XY", "b"): 1.0}

    def test_designs_keep_the_heaviest_arms_in_their_order(self) -> None:
        weights = np.arange(1.0, 61.0)
        names = [f"n{i}" for i in range(60)]
        rows = values(charts.designs_chart({"one": weights / weights.sum()}, names))
        assert [row["arm"] for row in rows] == names[60 - MAX_ARMS :]

    def test_gaps_leave_the_best_out_and_mark_the_runner_up(self) -> None:
        chart = charts.gaps_chart(["a", "b", "c"], np.array([0.5, 0.0, 0.1]))
        found = [(row["arm"], row["gap"], row["hardest"]) for row in values(chart)]
        assert found == [("c", 0.1, True), ("a", 0.5, False)]
        assert "behind b" in chart.to_dict()["title"]["text"]

    @pytest.mark.parametrize(("smallest", "mark"), [(0.1, "bar"), (1e-4, "circle")])
    def test_gaps_of_different_size_get_a_logarithmic_axis(
        self, smallest: float, mark: str
    ) -> None:
        spec = charts.gaps_chart(["a", "b", "c"], np.array([0.0, smallest, 2.0])).to_dict()
        layer = spec["layer"][0]
        assert layer["mark"]["type"] == mark
        assert (layer["encoding"]["x"]["scale"].get("type") == "log") == (mark == "circle")

    def test_a_single_arm_has_a_chart_of_gaps(self) -> None:
        assert values(charts.gaps_chart(["only"], np.array([0.0]))) == []

    @pytest.mark.parametrize("bad", [[0.5], [0.5, np.nan], [1.5, -0.5]])
    def test_numbers_that_cannot_be_shown_are_refused(self, bad: list[float]) -> None:
        with pytest.raises(ChartError):
            charts.weights_chart(["a", "b"], np.array(bad))

    def test_no_design_is_refused(self) -> None:
        with pytest.raises(ChartError, match="no design"):
            charts.designs_chart({}, ["a"])


class TestLabels:
    def test_control_characters_are_spelt_out(self) -> None:
        assert printable("a\nb\x1b[2J") == "a\\nb\\x1b[2J"

    def test_labels_are_unique_even_against_the_numbered_ones(self) -> None:
        found = labels(["long name", "long nam3", "long … (2)", "long … (2)x"], width=6)
        assert len(set(found)) == 4

    def test_short_names_are_kept(self) -> None:
        assert labels(["é", "b"]) == ["é", "b"]


class TestCones:
    @pytest.mark.parametrize("seed", range(8))
    def test_the_sector_of_a_parameter_belongs_to_its_best_arm(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((int(rng.integers(2, 40)), 2)) + 3 * rng.standard_normal(2)
        found = cones(X)
        for t in rng.standard_normal((300, 2)):
            holding = [cone.arm for cone in found if _inside(cone, math.atan2(t[1], t[0]))]
            assert holding == [int((X @ t).argmax())]

    @pytest.mark.parametrize("seed", range(8))
    def test_cones_cover_the_plane_once(self, seed: int) -> None:
        X = np.random.default_rng(seed).standard_normal((20, 2))
        assert sum(c.end - c.start for c in cones(X)) == pytest.approx(2 * math.pi)

    def test_arms_on_a_line_have_two_half_planes(self) -> None:
        X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.5, 0.5]])
        found = {c.arm: c for c in cones(X)}
        assert sorted(found) == [0, 2]
        assert _inside(found[2], math.pi / 4)
        assert all(c.end - c.start == pytest.approx(math.pi) for c in found.values())

    def test_points_on_an_edge_are_no_corners(self) -> None:
        X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
        assert sorted(hull_corners(X).tolist()) == [0, 2, 3, 4]

    def test_a_single_arm_is_best_everywhere(self) -> None:
        assert cones(np.array([[1.0, 2.0]])) == [Cone(0, -math.pi, math.pi)]

    def test_huge_features_do_not_overflow(self) -> None:
        X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
        assert [c.arm for c in cones(1e200 * X)] == [c.arm for c in cones(X)]

    @pytest.mark.parametrize("seed", range(8))
    def test_sectors_tile_the_square(self, seed: int) -> None:
        X = np.random.default_rng(seed).standard_normal((12, 2))
        polygons = [sector(cone, 3.0) for cone in cones(X)]
        assert sum(map(_area, polygons)) == pytest.approx(36.0)
        assert all(np.abs(p).max() <= 3.0 + 1e-12 for p in polygons)

    @pytest.mark.parametrize("count", range(2, 30))
    def test_neighbouring_cones_differ_in_colour(self, count: int) -> None:
        colours = _colours(count)
        assert all(colours[j] != colours[j - 1] for j in range(count))


def _inside(cone: Cone, angle: float) -> bool:
    return (angle - cone.start) % (2 * math.pi) < cone.end - cone.start


def _area(polygon: np.ndarray) -> float:
    x, y = polygon.T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2)


class TestPlane:
    arms = fl.Arms([[1.0, 0.0], [0.0, 1.0], [math.cos(0.5), math.sin(0.5)]])

    def chart(self, pulls: int = 300, **settings: Any) -> AnyChart:
        design = np.array([0.5, 0.3, 0.2])
        return charts.plane_chart(
            self.arms, [2.0, 0.0], design, pulls, **{"sigma": 1.0, **settings}
        )

    def test_ellipse_points_satisfy_the_equation(self) -> None:
        X, n, centre = self.arms.features, np.array([30, 5, 1]), np.array([2.0, -1.0])
        offset = ellipse(X, n, centre, 1.7) - centre
        A = X.T @ (n[:, None] * X)
        np.testing.assert_allclose(np.einsum("ij,jk,ik->i", offset, A, offset), 1.7**2)

    def test_the_drawn_ellipse_has_the_static_radius(self) -> None:
        (rows,) = (
            r for r in layer_values(self.chart(delta=0.1, sigma=0.5), "step") if len(r) > 100
        )
        points = np.array([[row["x"], row["y"]] for row in rows], dtype=float) - [2.0, 0.0]
        X, n = self.arms.features, fl.round_design(np.array([0.5, 0.3, 0.2]), 300)
        A = X.T @ (n[:, None] * X)
        radius = static_radius(300.0, 3, 0.1, 0.5)
        np.testing.assert_allclose(np.einsum("ij,jk,ik->i", points, A, points), radius**2)

    def test_a_design_is_drawn_beside_its_ellipse_around_the_origin(self) -> None:
        design = np.array([0.5, 0.3, 0.2])
        chart = charts.design_plane_chart(self.arms, design, 50, sigma=1.0).to_dict()
        bars, plane = chart["hconcat"]
        data = chart.get("datasets", {})
        rows = [
            layer["data"].get("values") or data[layer["data"]["name"]]
            for layer in plane["layer"]
            if "data" in layer
        ]
        outline = next(r for r in rows if len(r) > 100 and "step" in r[0] and "arm" not in r[0])
        points = np.array([[row["x"], row["y"]] for row in outline], dtype=float)
        n = fl.round_design(design, 50)
        A = self.arms.features.T @ (n[:, None] * self.arms.features)
        radius = static_radius(50.0, 3, 0.05, 1.0)
        np.testing.assert_allclose(np.einsum("ij,jk,ik->i", points, A, points), radius**2)
        assert "θ" not in str(plane)
        assert str(int(n.max())) in str(bars)

    @pytest.mark.parametrize("pulls", [10, 60, 100, 200, 300, 1000])
    def test_the_title_says_whether_the_ellipse_is_in_one_cone(self, pulls: int) -> None:
        chart = self.chart(pulls)
        (rows,) = (r for r in layer_values(chart, "step") if len(r) > 100)
        outline = np.array([[row["x"], row["y"]] for row in rows], dtype=float)
        best = set((outline @ self.arms.features.T).argmax(axis=1).tolist())
        assert ("settle" in chart.to_dict()["title"]["text"]) == (best == {0})

    def test_both_titles_occur(self) -> None:
        assert "not enough" in self.chart(10).to_dict()["title"]["text"]
        assert "settle" in self.chart(1000).to_dict()["title"]["text"]

    def test_few_arms_are_all_arrows_and_of_many_only_those_with_a_cone(self) -> None:
        (rows,) = layer_values(self.chart(), "turn")
        assert [row["name"] for row in rows] == ["x1", "x2", "x3"]
        X = np.random.default_rng(0).standard_normal((30, 2))
        arms = fl.Arms(X)
        chart = charts.plane_chart(arms, [1.0, 0.5], np.full(30, 1 / 30), 500, sigma=1.0)
        drawn = layer_values(chart, "turn")
        arrows = next(rows for rows in drawn if rows[0]["arrow"])
        assert {row["name"] for row in arrows} == {arms.names[c.arm] for c in cones(X)}

    def test_labels_of_close_arrows_are_a_line_apart(self) -> None:
        arrows = [{"x": 0.4, "y": 0.001 * i, "name": str(i)} for i in range(5)]
        (left,) = place_labels(arrows, side=1.0).values()
        assert [row["name"] for row in left] == ["0", "1", "2", "3", "4"]
        assert min(np.diff([row["label_y"] for row in left])) > 0.07

    @pytest.mark.parametrize("features", [np.eye(3), [[1.0, 1.0], [2.0, 2.0]]])
    def test_other_dimensions_are_refused(self, features: object) -> None:
        arms = fl.Arms(features)
        weights = np.full(len(arms), 1 / len(arms))
        with pytest.raises(ChartError, match="2 features"):
            charts.plane_chart(arms, np.ones(arms.features.shape[1]), weights, 10, sigma=1.0)

    def test_a_design_on_one_arm_has_no_ellipse(self) -> None:
        with pytest.raises(ChartError, match="do not span"):
            charts.plane_chart(self.arms, [2.0, 0.0], np.array([1.0, 0.0, 0.0]), 10, sigma=1.0)


class TestSave:
    chart = staticmethod(lambda: charts.weights_chart(HOSTILE, np.full(5, 0.2)))

    @pytest.mark.parametrize("suffix", sorted(MAGIC))
    def test_files_are_what_their_suffix_says(self, tmp_path: Path, suffix: str) -> None:
        path = charts.save(self.chart(), tmp_path / f"chart{suffix}")
        assert path.read_bytes().startswith(MAGIC[suffix])
        assert [p.name for p in tmp_path.iterdir()] == [path.name]

    def test_names_are_escaped_in_svg(self, tmp_path: Path) -> None:
        from xml.etree import ElementTree

        text = charts.save(self.chart(), tmp_path / "chart.svg").read_text()
        assert "<script" not in text
        shown = " ".join(ElementTree.fromstring(text).itertext())
        assert "[red]x[/red]" in shown
        assert "two\\nlines" in shown

    @pytest.mark.parametrize("name", ["chart.gif", "chart", "chart.html"])
    def test_another_suffix_is_refused_with_the_allowed_ones(
        self, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(ChartError, match=r"\.png, \.svg, \.pdf"):
            charts.save(self.chart(), tmp_path / name)
        assert not list(tmp_path.iterdir())

    def test_a_missing_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(OutputError, match="there is no folder"):
            charts.save(self.chart(), tmp_path / "none" / "chart.svg")

    def test_a_failure_leaves_the_old_file_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file.txt"
        path.write_bytes(b"old")

        def fail(*_: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            write_file(path, b"new")
        assert path.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]

    def test_replacing_a_file_keeps_its_permissions(self, tmp_path: Path) -> None:
        path = tmp_path / "file.txt"
        path.touch()
        path.chmod(0o640)
        write_file(path, b"new")
        assert path.stat().st_mode & 0o777 == 0o640

    def test_a_new_file_has_the_permissions_of_any_new_file(self, tmp_path: Path) -> None:
        (tmp_path / "other").touch()
        path = write_file(tmp_path / "file.txt", b"new")
        assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
