"""Models in plain words: their features, what they keep for later rows, what they refuse."""

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import finalist as fl
from finalist.arms import Arms
from finalist.arms.levels import ANSWERS
from finalist.arms.models import MODELS, make
from finalist.arms.recipes import Recipe, Table
from finalist.arms.table import read_candidates
from finalist.errors import ArmsError

TABLE: dict[str, Any] = {
    "id": ("a", "b", "c", "d", "e"),
    "dose": np.array([1.0, 2.0, 4.0, 4.0, 3.0]),
    "Tone": ("calm", "friendly", "stern", "calm", "friendly"),
    "oven": ("yes", "no", "no", "yes", "yes"),
    "heat": np.array([10.0, 20.0, 10.0, 20.0, 20.0]),
}


def made(model, constant=True, table=TABLE):
    return make(model, table, ["dose", "heat"], ["Tone"], ["oven"], constant=constant)


def arms_of(model, constant=True, table=TABLE):
    """Arms as a reader of tables makes them."""
    features, names, recipe = made(model, constant, table)
    cells = {
        c: None if c in ("id", "dose", "heat") and model != "separate" else v
        for c, v in table.items()
    }
    return Arms._from_table(Table(features, table["id"], names, cells, recipe))


# --- features -------------------------------------------------------------------------------


def test_straight_is_the_columns_with_contrasts():
    X, names, recipe = made("straight")
    assert names == ("dose", "Tone: friendly", "Tone: stern", "oven", "heat", "intercept")
    assert X[:, 0].tolist() == [1, 2, 4, 4, 3]
    assert X[:, 1].tolist() == [0, 1, 0, 0, 1]
    assert X[:, 2].tolist() == [0, 0, 1, 0, 0]
    assert X[:, 3].tolist() == [1, 0, 0, 1, 1]
    assert recipe.levels == {"Tone": ("calm", "friendly", "stern"), "oven": ANSWERS}
    assert recipe.centres == {}


def test_bending_squares_what_has_three_values_from_the_middle():
    X, names, recipe = made("bending")
    assert names[:-1] == (*made("straight")[1][:-1], "dose^2")
    assert X[:, -2].tolist() == [2.25, 0.25, 2.25, 2.25, 0.25]
    assert recipe.centres == {"dose": 2.5}
    assert recipe.squares == ("dose",)


def test_without_a_constant_nothing_is_subtracted():
    X, names, recipe = made("bending", constant=False)
    assert names[-1] == "dose^2"
    assert X[:, -1].tolist() == [1, 4, 16, 16, 9]
    assert recipe.centres == {"dose": 0.0}


def test_a_surface_multiplies_columns_and_not_levels_of_one_column():
    X, names, recipe = made("surface")
    products = [name for name in names if " * " in name]
    assert products == [
        "dose * Tone: friendly",
        "dose * Tone: stern",
        "dose * oven",
        "dose * heat",
        "Tone: friendly * oven",
        "Tone: stern * oven",
        "Tone: friendly * heat",
        "Tone: stern * heat",
        "oven * heat",
    ]
    assert recipe.centres == {"dose": 2.5, "heat": 15.0}
    assert recipe.squares == ("dose",)
    at = dict(zip(names, X.T, strict=True))
    assert at["dose * heat"].tolist() == [7.5, -2.5, -7.5, 7.5, 2.5]
    assert at["dose * Tone: friendly"].tolist() == [0, -0.5, 0, 0, 0.5]


def test_separate_has_a_feature_for_each_row_and_keeps_the_table():
    arms = arms_of("separate")
    assert np.array_equal(arms.features, np.eye(5))
    assert arms.recipe.name == "separate"
    assert list(arms.table["Tone"]) == list(TABLE["Tone"])
    assert list(arms.table["dose"]) == [1, 2, 4, 4, 3]
    assert arms.has_intercept


def test_a_column_with_one_value_has_no_square_and_no_products():
    table = {"x": np.array([1.0, 2.0, 3.0]), "same": np.array([5.0, 5.0, 5.0])}
    _, names, recipe = make("surface", table, ["x", "same"], constant=True)
    assert names == ("x", "same", "x^2", "intercept")
    assert recipe.centres == {"x": 2.0}


def test_names_that_are_taken_are_not_used_twice():
    table: dict[str, Any] = {
        "x": np.array([1.0, 2.0, 4.0]),
        "x^2": np.array([3.0, 1.0, 1.0]),
        "T: b": np.array([0.0, 1.0, 5.0]),
        "T": ("a", "b", "a"),
        "intercept": np.array([7.0, 8.0, 9.0]),
    }
    for model in MODELS:
        X, names, _ = make(model, table, ["x", "x^2", "T: b", "intercept"], ["T"], constant=True)
        assert len(set(names)) == len(names) == X.shape[1]
        if model != "separate":
            at = dict(zip(names, X.T, strict=True))
            assert all(at[c].tolist() == list(table[c]) for c in table if c != "T")


def test_years_and_times_are_well_conditioned():
    years = np.arange(1_700_000_000.0, 1_700_000_050.0)
    X, _, _ = make("bending", {"time": years}, ["time"], constant=True)
    arms = Arms(X)
    assert arms.rank == 3


def test_effects_are_per_unit_of_the_column():
    """y = 3 + 2 (x - 5) - 0.5 (x - 5)^2 + 4 [friendly]: slope at the centre, bend and step."""
    x = np.array([2.0, 8.0, 4.0, 6.0, 5.0, 3.0])
    tone = ("calm", "friendly") * 3
    y = 3 + 2 * (x - 5) - 0.5 * (x - 5) ** 2 + 4 * np.array([0, 1] * 3)
    X, names, recipe = make("bending", {"x": x, "Tone": tone}, ["x"], ["Tone"], constant=True)
    theta = np.linalg.solve(X.T @ X, X.T @ y)
    expected = {"x": 2.0, "Tone: friendly": 4.0, "x^2": -0.5, "intercept": 13.0 - 20.0}
    assert dict(zip(names, theta, strict=True)) == pytest.approx(expected)
    words = "bending: Tone against calm (the reference) and x^2 is the square of x - 5"
    assert recipe.words() == words


# --- kept for later -------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("constant", [False, True])
def test_recipes_go_through_json_and_pickles(model, constant):
    recipe = made(model, constant)[2]
    stored = json.loads(json.dumps(recipe.to_json()))
    assert Recipe.from_json(stored) == recipe
    assert hash(Recipe.from_json(stored)) == hash(recipe)
    arms = arms_of(model, constant)
    assert pickle.loads(pickle.dumps(arms)).recipe == recipe


def test_recipes_of_earlier_versions_have_neither_levels_nor_centres():
    stored = {"name": "straight", "columns": ["x"], "text": "", "constant": True}
    assert Recipe.from_json(stored) == Recipe("straight", ("x",), constant=True)
    assert Recipe("straight", ("x",), constant=True).to_json() == stored


@pytest.mark.parametrize("model", ["straight", "bending", "surface"])
def test_later_rows_get_the_features_of_the_first_table(model):
    """One row has one level and one value; its features are those it had among all rows."""
    X, names, recipe = made(model)
    for i in range(5):
        row = {column: cells[i : i + 1] for column, cells in TABLE.items()}
        assert recipe.features(row)[0].tolist() == X[[i]].tolist()
        assert recipe.features(row)[1] == names


def test_an_unknown_level_names_itself_the_column_and_the_levels():
    recipe = made("straight")[2]
    row = {column: cells[:1] for column, cells in TABLE.items()} | {"Tone": ("rude",)}
    match = "row 1, column 'Tone': 'rude' is not a level .* there are calm, friendly and stern"
    with pytest.raises(ArmsError, match=match):
        recipe.features(row)


def test_candidates_get_the_features_of_the_arms():
    arms, rows = arms_of("bending"), [1, 2]
    new: dict[str, Any] = {c: tuple(cells[i] for i in rows) for c, cells in TABLE.items()}
    new |= {"id": ("y", "z"), "dose": np.array([9.0, 2.0])}
    both = arms.with_candidates(arms_of("separate", table=new))
    assert both.names == ("a", "b", "c", "d", "e", "y", "z")
    assert both.features[5, 0] == 9.0
    assert both.features[5, both.feature_names.index("dose^2")] == 6.5**2
    assert both.table["Tone"][-2:] == ("friendly", "stern")
    rude = arms_of("separate", table=new | {"Tone": ("rude", "calm")})
    with pytest.raises(ArmsError, match="'rude'"):
        arms.with_candidates(rude)


# --- with_model -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", MODELS)
@pytest.mark.parametrize("second", MODELS)
def test_every_model_leads_to_every_other(first, second):
    arms = arms_of(first).with_model(second)
    expected = arms_of(second)
    assert arms == expected
    assert arms.recipe == expected.recipe
    assert {c: list(v) for c, v in arms.table.items()} == {c: list(v) for c, v in TABLE.items()}


def test_roles_stay():
    arms = Arms([[1.0], [2.0], [4.0]], measurable=[True, True, False])
    for model in MODELS:
        other = arms.with_model(model)
        assert other.measurable.tolist() == [True, True, False]
        assert other.names == arms.names


def test_rows_that_are_one_arm_are_two_when_separate():
    arms = Arms([[1.0], [2.0], [1.0]], names=["a", "b", "c"])
    apart = arms.with_model("separate")
    assert arms.aliases == (("a", "c"), ("b",))
    assert sorted(apart.names) == ["a", "b", "c"]
    assert apart.with_model("straight").aliases == arms.aliases


def test_a_feature_of_ones_is_the_constant():
    arms = Arms([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    bent = arms.with_model("bending")
    assert bent.feature_names == ("f1", "f1^2", "intercept")
    assert bent.recipe.centres == {"f1": 2.5}
    assert list(bent.table) == ["f1", "f2"]


def test_features_of_a_formula_are_columns_of_numbers():
    frame = pd.DataFrame({"name": list("abc"), "dose": [1, 2, 4], "kind": ["tin", "zinc", "tin"]})
    arms = Arms.from_formula("dose + C(kind)", frame)
    bent = arms.with_model("bending")
    assert bent.feature_names == ("dose", "C(kind)[T.zinc]", "dose^2", "intercept")
    assert list(bent.table["kind"]) == ["tin", "zinc", "tin"]
    apart = bent.with_model("separate")
    assert apart.with_model("bending") == bent


def test_separate_features_do_not_hide_columns_of_arrays():
    apart = Arms([[1.0, 7.0], [2.0, 8.0], [4.0, 9.0]]).with_model("separate")
    assert {c: list(v) for c, v in apart.table.items()} == {"f1": [1, 2, 4], "f2": [7, 8, 9]}
    text = b"name,f1,f2\na,1.5,7\nb,2.5,8\nc,4.5,8.5\n"
    table = read_candidates(text, model="separate").arms.table
    assert list(table["f1"]) == [1.5, 2.5, 4.5]


def test_arms_without_columns_have_no_other_model():
    arms = Arms.unstructured(["a", "b"])
    assert np.array_equal(arms.with_model("separate").features, np.eye(2))
    with pytest.raises(ArmsError, match="no columns of which the model 'bending'"):
        arms.with_model("bending")


# --- refused --------------------------------------------------------------------------------


def test_an_unknown_model_is_refused():
    with pytest.raises(
        ArmsError, match="no model 'quadratic'; use straight, bending, surface or separate"
    ):
        fl.Arms([[1.0], [2.0]]).with_model("quadratic")


def test_squares_that_overflow_name_the_column_and_the_value():
    table = {"x": np.array([0.0, 1.0, 4e200])}
    with pytest.raises(ArmsError, match=r"row 1, column 'x': -2e\+200 from the centre"):
        make("bending", table, ["x"], constant=True)
    with pytest.raises(ArmsError, match=r"row 3, column 'x': 4e\+200 from the centre"):
        make("bending", table, ["x"], constant=False)
    table = {"x": np.array([0.0, 4e200]), "y": np.array([0.0, 1e200])}
    with pytest.raises(ArmsError, match=r"its product with 'y' \(1e\+200\)"):
        make("surface", table, ["x", "y"], constant=False)


def test_squares_that_vanish_are_refused():
    with pytest.raises(ArmsError, match=r"column 'x': .* squares vanish"):
        make("bending", {"x": np.array([0.0, 1.0, 4.0]) * 1e-170}, ["x"], constant=True)


def test_extreme_columns_with_squares_that_are_numbers_work():
    for size in (1e-140, 1e150):
        X, _, _ = make("bending", {"x": np.array([1.0, 2.0, 4.0]) * size}, ["x"], constant=True)
        assert Arms(X).rank == 3


def test_columns_that_say_nothing_are_refused():
    with pytest.raises(ArmsError, match="no column tells the candidates apart: 'T'"):
        make("straight", {"T": ("a", "a")}, [], ["T"], constant=True)
    with pytest.raises(ArmsError, match="no column is used"):
        make("straight", {"T": ("a", "a")}, [], constant=True)


def test_models_too_large_for_the_memory_are_refused_before_they_are_made():
    wide = {f"c{i}": np.arange(100.0) for i in range(2000)}
    with pytest.raises(ArmsError, match="2,003,001 features each"):
        make("surface", wide, list(wide), constant=True)
    with pytest.raises(ArmsError, match="20,000 candidates 20,000 features each"):
        make("separate", {"x": np.arange(20_000.0)}, ["x"], constant=True)
