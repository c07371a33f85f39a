"""Charts of ratios and survival curves: what they show, and what they refuse."""

import math

import numpy as np
import pytest

from finalist.charts.ratios import Ratio, Survival, ratios_chart, survival_chart, survival_domain
from finalist.errors import ChartError


def test_ratios_are_shown_in_their_order_with_empty_cells() -> None:
    ratios = [
        Ratio("z", "second", 1.5),
        Ratio("a", "second", None),
        Ratio("z", "first", 200.0, least=True),
        Ratio("a", "first", 12.34),
    ]
    spec = ratios_chart(ratios, "T", ["S"]).to_dict()
    assert [row["text"] for row in spec["data"]["values"]] == ["1.50", "-", "≥ 200", "12.3"]
    encoding = spec["layer"][0]["encoding"]
    assert encoding["x"]["sort"] == ["z", "a"]
    assert encoding["y"]["sort"] == ["second", "first"]
    with pytest.raises(ChartError, match="no ratio to show"):
        ratios_chart([Ratio("a", "b", None)], "T", [])


def test_survival_is_the_share_of_runs_that_go_on() -> None:
    ends = np.array([4.0, 1.0, math.inf, 2.0])
    spec = survival_chart([Survival("p", "g", ends)], "x", "T", []).to_dict()
    points = [(row["x"], row["share"]) for row in spec["data"]["values"]]
    assert points == [(1.0, 1.0), (1.0, 0.75), (2.0, 0.5), (4.0, 0.25)]


def test_long_survival_curves_are_thinned_and_keep_their_ends() -> None:
    ends = np.arange(1.0, 1001.0)
    spec = survival_chart([Survival("p", "g", ends)], "x", "T", []).to_dict()
    points = [(row["x"], row["share"]) for row in spec["data"]["values"]]
    assert len(points) == 51
    assert (points[1], points[-1]) == ((1.0, 0.999), (1000.0, 0.0))
    assert all(abs(share - (1000 - x) / 1000) < 1e-12 for x, share in points[1:])


def test_survival_charts_that_are_compared_have_one_axis() -> None:
    curves = [Survival("p", "g", np.array([1.1, 2.0])), Survival("p", "xy", np.array([10.0]))]
    domain = survival_domain(curves)
    assert domain == pytest.approx((1.0, 11.0))
    for curve in curves:
        spec = survival_chart([curve], "x", "T", [], 3, domain).to_dict()
        assert spec["spec"]["layer"][0]["encoding"]["x"]["scale"]["domain"] == list(domain)


def test_too_many_curves_and_none_are_refused() -> None:
    ends = np.array([1.0])
    with pytest.raises(ChartError, match="7 curves in a panel"):
        survival_chart([Survival("p", str(i), ends) for i in range(7)], "x", "T", [])
    with pytest.raises(ChartError, match="0 curves in a panel"):
        survival_chart([], "x", "T", [])
    with pytest.raises(ChartError, match="no curve to draw"):
        survival_chart([Survival("p", "g", np.array([math.inf]))], "x", "T", [])
