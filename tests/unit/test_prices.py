"""What each model of a table would cost: the same numbers as plans, and what is said of them."""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.arms.models import MODELS
from finalist.errors import ArmsError, ProblemError
from finalist.planning import ModelPrice, ModelPrices
from finalist.problem.remodel import with_model
from tests.unit.test_models import arms_of

LINE = fl.Arms(np.arange(1.0, 8.0)[:, None]).with_intercept()
FEW: dict[str, Any] = {"sigma": 1.0, "gap": 0.5, "draws": 4}


def test_prices_are_those_of_plans():
    found = fl.model_prices(LINE, seed=5, **FEW)
    assert [row.name for row in found.rows] == list(MODELS)
    assert [row.features for row in found.rows] == [2, 3, 3, 7]
    for row in found.rows:
        other = fl.plan(LINE.with_model(row.name), against=(), seed=5, **FEW).rows[0]
        if not row.same_as:
            assert row.pulls.tolist() == other.pulls.tolist()
            assert (row.median, row.mean, row.high) == (other.median, other.mean, other.high)
    assert found.rows[0].median < found.rows[3].median


def test_models_that_say_the_same_are_simulated_once_and_named():
    calls = []
    found = fl.model_prices(LINE, progress=lambda done, of: calls.append((done, of)), **FEW)
    assert [row.same_as for row in found.rows] == ["", "", "bending", ""]
    assert found.rows[2].pulls is found.rows[1].pulls
    assert calls == [(i, 12) for i in range(1, 13)]
    assert "; surface is the same as bending for this table." in found.words()


def test_without_a_column_that_bends_bending_is_straight():
    arms = fl.Arms([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]).with_intercept()
    found = fl.model_prices(arms, **FEW)
    assert {row.name: row.same_as for row in found.rows}["bending"] == "straight"


def test_a_surface_of_as_many_features_as_arms_is_separate():
    found = fl.model_prices(arms_of("straight"), **FEW)
    last = found.rows[-1]
    assert last.name == "separate"
    assert last.features == 5
    assert last.same_as == next(row.name for row in found.rows if row.features == 5)


def test_a_model_that_is_impossible_is_said():
    arms = fl.Arms([[1.0], [2.0], [3.0], [9.0]], measurable=[True, True, True, False])
    found = fl.model_prices(arms.with_intercept(), **FEW)
    assert [row.name for row in found.rows] == ["straight", "bending", "surface"]
    assert list(found.impossible) == ["separate"]
    assert "separate is not possible: candidates cannot be compared" in found.words()
    with pytest.raises(ProblemError, match="no model is possible here: candidates cannot"):
        fl.model_prices(arms, models=["separate"], **FEW)


def test_costs_and_noise_of_each_arm_count():
    cost, sigma = [1.0] * 6 + [50.0], [1.0] * 6 + [2.0]
    found = fl.model_prices(LINE, cost=cost, **(FEW | {"sigma": sigma}))
    problem = fl.Problem(LINE, noise=fl.Gaussian(sigma), cost=cost)
    plain = fl.plan(with_model(problem, "separate"), gap=0.5, draws=4, against=()).rows[0]
    assert found.rows[-1].pulls.tolist() == plain.pulls.tolist()
    assert "units of cost" in found.words()


def test_words_and_json():
    def row(name, pulls, features, same=""):
        return ModelPrice(name, np.array(pulls), 0, features, same)

    rows = (
        row("straight", [50.0, 62.0, 63.0], 3),
        row("bending", [100.0, 140.0, np.inf], 5),
        row("surface", [100.0, 140.0, np.inf], 5, "bending"),
        row("separate", [np.inf] * 3, 9),
    )
    found = ModelPrices(rows, {}, 0.5, 0.05, 3, 1000, 0)
    assert found.words() == (
        "straight about 62 measurements, bending about 140, separate more than 1,000; surface is "
        "the same as bending for this table."
    )
    first, second, *_ = found.to_dict()["rows"]
    assert first["model"] == "straight"
    assert first["features"] == 3
    assert first["mean"] == pytest.approx(175 / 3)
    assert (first["undecided"], second["undecided"]) == (0, 1)
    assert second["mean"] is None
    assert "separate: 9 features, > 1,000 on average" in str(found)


def test_what_cannot_be_priced_is_refused():
    with pytest.raises(ProblemError, match="sigma is None, unknown"):
        fl.model_prices(LINE, gap=0.5, sigma=None)
    with pytest.raises(ProblemError, match="gap is -1"):
        fl.model_prices(LINE, gap=-1.0, sigma=1.0)
    with pytest.raises(ArmsError, match="no model 'cubic'"):
        fl.model_prices(LINE, models=["cubic"], **FEW)
    with pytest.raises(ProblemError, match="no model is given"):
        fl.model_prices(LINE, models=[], **FEW)
    with pytest.raises(ProblemError, match="spends a fixed budget"):
        fl.model_prices(LINE, strategy="gse", **FEW)
