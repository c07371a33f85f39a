"""What margins would save: the numbers of plans, what is said of them, the picture, refusals."""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.charts.curves import margins_chart
from finalist.errors import ChartError, NotYetSupportedError, ProblemError
from finalist.planning import MarginPrice, MarginPrices
from finalist.planning.margins import CLOSE, STEPS
from finalist.problem.remodel import with_margin

THREE = fl.Arms.unstructured(3)
FEW: dict[str, Any] = {"sigma": 1.0, "gap": 1.0, "draws": 3}


def prices(pulls, *, margins=(0.0, 0.5), leads=(1.0, 0.25), **words):
    """Prices of these pulls: a row for each margin and lead."""
    rows = tuple(
        MarginPrice(f"{margin} {lead}", np.array(pulls[margin, lead]), 0, margin, lead)
        for margin in margins
        for lead in leads
    )
    given = {"chosen": 0.5, "gap": 1.0, "delta": 0.05, "draws": 3, "max_pulls": 1000, "seed": 0}
    return MarginPrices(rows, **({"impossible": {}} | given | words))


SOME = {
    (0.0, 1.0): [50.0, 62.0, 63.0],
    (0.5, 1.0): [20.0, 21.0, 30.0],
    (0.0, 0.25): [np.inf] * 3,
    (0.5, 0.25): [70.0, 81.0, np.inf],
}


def test_prices_are_those_of_plans_with_the_same_truths():
    found = fl.margin_prices(THREE, seed=5, **FEW)
    assert found.margins == (0.0, *STEPS)
    assert found.leads == (1.0, CLOSE)
    for row in found.rows:
        words = {**FEW, "gap": row.lead, "epsilon": row.margin}
        other = fl.plan(THREE, against=(), seed=5, **words).rows[0]
        assert row.pulls.tolist() == other.pulls.tolist()
        assert row.wrong == other.wrong
    assert found.row(1.0, 0.25).median < found.row(0.0, 0.25).median


def test_the_margin_of_the_question_is_one_of_them_and_is_spoken_of():
    found = fl.margin_prices(THREE, epsilon=0.3, margins=[0.7], **FEW)
    assert found.margins == (0.0, 0.3, 0.7)
    assert found.chosen == 0.3
    assert "with a margin of 0.3" in found.words()
    assert fl.margin_prices(THREE, margins=[4.0, 0.9], **FEW).chosen == 0.9  # that next to the lead
    assert fl.margin_prices(THREE, margins=[0.5, 0.0, 0.5], **FEW).margins == (0.0, 0.5)


def test_every_margin_is_a_step_of_the_progress():
    calls: list[tuple[int, int]] = []
    fl.margin_prices(
        THREE, margins=[0.5], progress=lambda done, of: calls.append((done, of)), **FEW
    )
    assert calls == [(i, 12) for i in range(1, 13)]


def test_words_and_json():
    found = prices(SOME)
    assert found.words() == (
        "If the best leads by 1, expect about 62 measurements without a margin and about 21 with a "
        "margin of 0.5. If all are 4 times closer together (a lead of 0.25), more than 1,000 "
        "without a margin and about 81 with it."
    )
    content = found.to_dict()
    assert content["chosen"] == 0.5
    last = content["rows"][-1]
    assert (last["margin"], last["lead"], last["median"], last["high"]) == (0.5, 0.25, 81.0, None)
    assert "name" not in last
    assert content["rows"][1]["median"] is None
    assert "> 1,000 (median)" in str(found)
    costly = prices(SOME, unit="units of cost")
    assert "expect about 62 units of cost" in costly.words()


def test_costs_count_instead_of_pulls():
    found = fl.margin_prices(THREE, cost=[1.0, 1.0, 9.0], margins=[1.0], **FEW)
    plain = fl.plan(THREE, cost=[1.0, 1.0, 9.0], against=(), epsilon=1.0, **FEW).rows[0]
    assert found.row(1.0, 1.0).pulls.tolist() == plain.pulls.tolist()
    assert found.unit == "units of cost"


def test_a_budget_is_the_longest_study():
    found = fl.margin_prices(THREE, budget=40, margins=[2.0], **FEW)
    assert found.max_pulls == 40
    assert found.row(0.0, 0.25).undecided == 3


def test_where_a_margin_has_no_proof_it_is_refused():
    with pytest.raises(ProblemError, match="the 2 best; a margin has a proof for one best only"):
        fl.margin_prices(THREE, top=2, **FEW)
    with pytest.raises(ProblemError, match="the 2 best"):
        with_margin(fl.Problem(THREE, noise=fl.Gaussian(1.0), goal=fl.TopM(2)), 0.0)
    with pytest.raises(ProblemError, match="spends a fixed budget"):
        fl.margin_prices(THREE, strategy="gse", **FEW)
    with pytest.raises(NotYetSupportedError, match="cost"):
        fl.margin_prices(THREE, strategy="rage", cost=[1.0, 2.0, 3.0], **FEW)


def test_a_strategy_that_needs_a_margin_has_no_price_without_one():
    found = fl.margin_prices(THREE, strategy="kn", margins=[0.5], **FEW)
    assert found.margins == (0.5,)
    assert list(found.impossible) == ["no margin"]
    assert "Not possible, no margin: kn needs an indifference zone" in found.words()
    assert "without a margin and" not in found.words()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"sigma": None}, "sigma is None, unknown"),
        ({"gap": 0.0}, "gap is 0"),
        ({"margins": [-1.0]}, "epsilon is -1"),
        ({"margins": [np.inf]}, "epsilon is inf"),
        ({"margins": ["much"]}, "epsilon is 'much'"),
        ({"margins": []}, "no margin is given"),
        ({"margins": [0.0]}, "no margin is given"),
    ],
)
def test_what_cannot_be_priced_is_refused(words, what):
    with pytest.raises(ProblemError, match=what):
        fl.margin_prices(THREE, **(FEW | words))


# ---- the picture ---------------------------------------------------------------------------


def drawn(chart):
    """Return the points of the curves."""
    rows = [row for layer in chart.to_dict()["layer"] for row in layer["data"].get("values", [])]
    return {(row["curve"], row["y"]) for row in rows if "x" in row}


def test_the_picture_has_a_curve_for_each_lead_and_leaves_out_what_is_not_known():
    chart = margins_chart(prices(SOME))
    assert drawn(chart) == {("lead 1", 62.0), ("lead 1", 21.0), ("lead 0.25", 81.0)}
    text = str(chart.to_dict()["title"])
    assert "Studies that need more than 1,000 were stopped." in text
    lows = [
        (row["low"], row["high"])
        for layer in chart.to_dict()["layer"]
        for row in layer["data"].get("values", [])
        if row.get("y") == 81.0 and "low" in row
    ]
    assert lows[0] == (70.0, 1000.0)  # the upper end is beyond the cap


def test_nothing_known_is_not_drawn():
    with pytest.raises(ChartError, match="no curve"):
        margins_chart(prices({key: [np.inf] * 3 for key in SOME}))
    whole = prices({key: [5.0, 6.0, 7.0] for key in SOME}, unit="units of cost")
    content = str(margins_chart(whole).to_dict())
    assert "were stopped" not in content
    assert "Units of cost" in content
