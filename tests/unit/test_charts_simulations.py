"""Pictures of simulated runs: what data they hold and refuse."""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.charts.simulations import decisions_chart, ends_chart, regrets_chart
from finalist.errors import ChartError
from tests.unit.test_charts_curves import datasets


def points(chart, first, second="share"):
    return [(row[first], row[second]) for row in datasets(chart)[0]]


def test_a_curve_begins_at_the_share_of_runs_that_name_the_best():
    chart = regrets_chart({"g": np.array([0.2, 0.0, 0.5, 0.0, 0.2])}, "t", ["s"])
    assert points(chart, "regret") == [(0.0, 0.4), (0.2, 0.8), (0.5, 1.0), (0.54, 1.0)]
    assert {row["label"] for row in datasets(chart)[0]} == {"g: 40.0% name the best"}
    never = regrets_chart({"g": np.array([0.3])}, "t", [])
    assert points(never, "regret")[0] == (0.0, 0.0)
    always = regrets_chart({"g": np.zeros(4)}, "t", [])
    assert points(always, "regret") == [(0.0, 1.0), (1.0, 1.0)]


def test_what_cannot_be_drawn_is_refused():
    for regrets in ({}, {str(i): np.zeros(2) for i in range(7)}):
        with pytest.raises(ChartError, match="draw 1 to 6"):
            regrets_chart(regrets, "t", [])
    for values in (np.zeros(0), np.array([0.0, np.nan])):
        with pytest.raises(ChartError, match="no regret"):
            regrets_chart({"g": values}, "t", [])
    with pytest.raises(ChartError, match="budget"):
        ends_chart(fl.plan(fl.Arms.unstructured(3), sigma=1.0, gap=1.0, draws=2))


def test_a_plan_is_drawn_beside_the_other_strategy():
    words: dict[str, Any] = {"sigma": 1.0, "gap": 1.0, "draws": 6, "budget": 9}
    plan = fl.plan(fl.Arms.unstructured(3), **words)
    chart = ends_chart(plan)
    assert chart.to_dict()["title"]["text"] == "What 9 measurements would name"
    rows = datasets(chart)[0]
    for row, name in zip(plan.named, ("this study: ", "equal shares: "), strict=True):
        mine = [r for r in rows if r["label"].startswith(name)]
        assert mine[0]["share"] == row.right / 6
        assert mine[-1]["share"] == 1.0
    dear = ends_chart(fl.plan(fl.Arms.unstructured(3), cost=2.0, **words))
    assert dear.to_dict()["title"]["text"] == "What a budget of 9 would name"


def test_runs_decide_one_after_the_other():
    assert points(decisions_chart(np.array([30, 10]), 4, "t", []), "pulls") == [
        (10, 0.0),
        (10, 0.25),
        (30, 0.5),
    ]
    assert datasets(decisions_chart(np.zeros(0, dtype=int), 4, "t", [])) == [[]]
