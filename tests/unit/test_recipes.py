"""Arms keep the user's table beside the features, and the recipe that made them."""

import pickle
import time
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import finalist as fl
from finalist.arms.recipes import RECIPES, Recipe
from finalist.errors import ArmsError, StudyError
from finalist.study import Study

FRAME = pd.DataFrame({"name": ["a", "b", "c"], "dose": [1, 2, 4], "kind": ["tin", "zinc", "tin"]})
FORMULA = "dose + C(kind)"


def told(arms):
    """The table as plain values."""
    return {column: list(cells) for column, cells in arms.table.items()}


def formula_arms():
    return fl.Arms.from_formula(FORMULA, FRAME)


def test_features_that_are_the_table_are_not_kept_twice():
    arms = fl.Arms([[1.0, 2.0], [3.0, 4.0]], names=["a", "b"])
    assert arms.recipe == Recipe("given", ("f1", "f2"))
    assert told(arms) == {"f1": [1, 3], "f2": [2, 4]}
    assert all(np.shares_memory(cells, arms.features) for cells in arms.table.values())


@pytest.mark.parametrize("frame", [pd.DataFrame, pa.table])
def test_a_frame_is_kept_with_its_names_in_the_order_of_its_columns(frame):
    arms = fl.Arms(frame({"x": [1, 2], "name": ["a", "b"], "y": [0.5, 0.25]}))
    assert list(told(arms).items()) == [("x", [1, 2]), ("name", ["a", "b"]), ("y", [0.5, 0.25])]
    assert arms.recipe == Recipe("given", ("x", "y"))


def test_a_constant_makes_a_table_straight_and_is_not_in_it():
    arms = fl.Arms([[1.0], [2.0]]).with_intercept()
    assert arms.recipe == Recipe("straight", ("f1",), constant=True)
    assert told(arms) == {"f1": [1, 2]}
    again = fl.Arms(arms.to_frame())  # a file or the API knows it by its name
    assert again.recipe == arms.recipe


@pytest.mark.parametrize("arms", [fl.Arms(FRAME[["name", "dose"]]), fl.Arms([[1.0], [2.0]])])
@pytest.mark.parametrize("constant", [False, True])
def test_the_recipe_makes_the_features_of_the_table(arms, constant):
    made = arms.with_intercept() if constant else arms
    features, names = made.recipe.features(made.table)
    assert features.tolist() == made.features.tolist()
    assert names == made.feature_names


def test_a_formula_is_text_and_its_table_is_the_frame():
    arms = formula_arms()
    assert arms.recipe == Recipe("formula", arms.feature_names, FORMULA)
    assert told(arms) == FRAME.to_dict("list")
    assert arms._parts.cells["dose"] is None  # the feature has it
    with pytest.raises(ArmsError, match="no column 'Intercept'"):
        arms.recipe.features(arms.table)


def test_cells_stay_what_they_were():
    day = pd.Timestamp("2026-02-01")
    frame = pd.DataFrame(
        {"n": [7, 8], "ok": [True, False], "day": [day, day], "rest": [None, "x"], "dose": [1, 2]}
    )
    arms = fl.Arms.from_formula("dose", frame, names=["a", "b"])
    table = told(arms)
    assert table["n"] == [7, 8]
    assert table["ok"] == [True, False]
    assert table["day"] == [str(day), str(day)]
    assert table["rest"] == [None, "x"]
    frame.loc[0, "n"] = 9
    assert told(arms)["n"] == [7, 8]


def test_columns_of_a_file_that_are_no_features_are_kept(tmp_path):
    file = tmp_path / "arms.csv"
    file.write_text("id,dose,price,stock\na,1,5,yes\nb,2,7,no\n")
    table = fl.read_table(file, measurable="stock", cost="price")
    expected = {"id": ["a", "b"], "dose": [1, 2], "price": [5, 7], "stock": ["yes", "no"]}
    assert told(table.arms) == expected
    assert table.arms.recipe.columns == ("dose",)
    frame = tmp_path / "arms.parquet"
    pd.read_csv(file).to_parquet(frame)
    assert told(fl.read_table(frame, measurable="stock", cost="price").arms) == expected


def test_rows_with_the_same_features_keep_their_own_cells():
    frame = pd.DataFrame({"name": list("abc"), "x": [1, 2, 1], "from": ["Rome", "Oslo", "Bern"]})
    arms = fl.Arms.from_formula("0 + x", frame)
    assert told(arms)["name"] == ["a", "c", "b"] == arms.to_frame()["name"].tolist()
    assert told(arms)["from"] == ["Rome", "Bern", "Oslo"]
    assert told(arms)["x"] == [1, 1, 2]
    assert told(arms.only(np.array([True, False])))["from"] == ["Rome", "Bern"]


def test_candidates_bring_their_rows():
    other = pd.DataFrame([[1.0, 9.0, 0.0]], columns=formula_arms().feature_names)
    arms = formula_arms().with_candidates(fl.Arms(other))
    table = told(arms)
    assert table["name"] == ["a", "b", "c", "z1"]
    assert table["dose"] == [1, 2, 4, 9]
    assert table["kind"] == ["tin", "zinc", "tin", None]
    assert arms.recipe.text == FORMULA


def test_pickles_keep_table_and_recipe_and_comparisons_do_not_ask():
    arms = formula_arms()
    again = pickle.loads(pickle.dumps(arms))
    assert (told(again), again.recipe) == (told(arms), arms.recipe)
    plain = fl.Arms(arms.to_frame())
    assert plain == arms
    assert hash(plain) == hash(arms)
    assert plain.recipe != arms.recipe


def test_pickles_of_the_first_version_have_none():
    arms = fl.Arms([[1.0], [2.0]]).with_intercept()
    restore, parts = cast(Any, arms.__reduce__())
    assert restore(*parts[:6]).recipe == arms.recipe


def test_a_recipe_goes_through_json():
    recipe = formula_arms().recipe
    assert Recipe.from_json(recipe.to_json()) == recipe
    newer = {**recipe.to_json(), "name": "waves", "lengths": {"dose": [1, 2]}}
    assert "waves" not in RECIPES
    with pytest.raises(ArmsError, match="'waves' are not known"):
        Recipe.from_json(newer).features({})


@pytest.mark.parametrize(
    "arms", [formula_arms(), fl.Arms(FRAME[["name", "dose"]]).with_intercept()]
)
def test_a_study_keeps_table_and_recipe_when_arms_change(tmp_path, arms):
    study = Study.create(tmp_path / "s.db", "s", arms, sigma=1.0)
    more = pd.DataFrame([[3.0] * len(arms.recipe.columns)], columns=arms.recipe.columns)
    study.add(fl.Arms(more, names=["d"]))
    study.withdraw("a")
    found = Study.open(tmp_path / "s.db", "s").arms
    assert found.recipe == arms.recipe
    assert told(found) == told(study.arms)
    assert told(found)["name"] == ["b", "c", "d"]
    assert told(found)["dose"] == [2, 4, 3]
    if "kind" in arms.table:
        assert told(found)["kind"] == ["zinc", "tin", None]
    assert all("given" not in event for event in study.history())


def test_other_columns_are_still_refused(tmp_path):
    study = Study.create(tmp_path / "s.db", "s", formula_arms(), sigma=1.0)
    with pytest.raises(StudyError, match="candidates to add have the features dose"):
        study.add(fl.Arms(pd.DataFrame({"dose": [3.0]})))


def test_numbers_that_json_does_not_have_are_missing_cells(tmp_path):
    frame = FRAME.assign(odd=[np.nan, np.inf, 1.0])
    Study.create(tmp_path / "s.db", "s", fl.Arms.from_formula("dose", frame), sigma=1.0)
    assert told(Study.open(tmp_path / "s.db", "s").arms)["odd"] == [None, None, 1.0]


def test_many_rows_stay_quick(tmp_path):
    K = 100_000
    frame = pd.DataFrame({"x": np.arange(K) / K, "tone": [f"tone {i % 7}" for i in range(K)]})
    names = [f"arm {i}" for i in range(K)]
    start = time.process_time()
    arms = fl.Arms.from_formula("x", frame, names=names)
    Study.create(tmp_path / "s.db", "s", arms, sigma=1.0, strategy="uniform")
    found = Study.open(tmp_path / "s.db", "s").arms
    assert time.process_time() - start < 10.0
    assert found.table["tone"] == arms.table["tone"]
