import copy
import csv
import pickle
import re
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import finalist.arms.rows
from finalist.arms import Arms
from finalist.arms.names import check_names
from finalist.errors import (
    ArmsError,
    DirectionError,
    FileFormatError,
    MissingExtraError,
    OutsideSpanError,
    ParameterError,
    UnknownArmError,
)


@pytest.fixture
def arms():
    features = [[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [3.0, -1.0, 0.5]]
    return Arms(features, names=["a", "b", "c", "d"])


def in_span(arms):
    """Return B of X = Z B, from the definition of to_span on the arms themselves."""
    return np.linalg.lstsq(arms.coordinates, arms.features, rcond=None)[0]


# --- what enters ----------------------------------------------------------------------------


def test_attributes(arms):
    assert len(arms) == 3
    assert arms.names == ("a", "b", "d")
    assert arms.aliases == (("a", "c"), ("b",), ("d",))
    assert arms.feature_names == ("f1", "f2", "f3")
    assert arms.rank == 3
    assert arms.features.dtype == np.float64
    np.testing.assert_array_equal(arms.features, [[1, 0, 2], [0, 1, 2], [3, -1, 0.5]])
    assert repr(arms) == "Arms(K=3, d=3, rank=3)"


def test_default_names_count_rows_not_arms():
    arms = Arms([[1.0], [1.0], [2.0]])
    assert arms.aliases == (("x1", "x2"), ("x3",))
    assert arms.names == ("x1", "x3")


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, object])
def test_numeric_types_become_float64(dtype):
    arms = Arms(np.array([[1, 0], [1, 1]], dtype=dtype))
    np.testing.assert_array_equal(arms.features, [[1.0, 0.0], [1.0, 1.0]])


def test_the_input_is_copied():
    X = np.eye(3)
    arms = Arms(X)
    X[0, 0] = 7.0
    assert arms.features[0, 0] == 1.0


def test_arms_cannot_be_changed(arms):
    for name in ("features", "names", "aliases", "rank", "coordinates", "feature_names"):
        with pytest.raises(AttributeError):
            setattr(arms, name, 1)
    with pytest.raises(AttributeError):
        arms.anything = 1
    for array in (arms.features, arms.coordinates):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([[1.0, 2.0], [3.0, np.nan]], r"row 2, column 'f2': nan is not a finite number\. Correct"),
        ([[1.0, -np.inf], [np.nan, 1.0]], r"row 1, column 'f2': -inf .*and 1 more cell like"),
        ([[1.0, None]], r"row 1, column 'f2': nan"),
        ([[1.0, 2.0], [3.0, "x"]], r"row 2, column 'f2': 'x' is not a number.*from_table"),
        ([[1, 10**400]], r"row 1, column 'f2': 1000.*is not a number"),
        ([[1.0, 2.0], [3.0]], r"row 2 has 1 features and row 1 has 2"),
        ([[1.0 + 2.0j]], r"complex128; a feature is a real number"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), r"datetime64"),
        ([1.0, 2.0], r"shape \(2,\); it must be 2-D.*reshape"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.zeros((0, 2)), r"no candidates"),
        (np.zeros((2, 0)), r"no feature column.*unstructured"),
        (np.ma.masked_array([[1, 2]], [[False, True]]), r"row 1, column 'f2': nan"),
        (3.0, r"shape \(\)"),
    ],
)
def test_bad_features_are_refused(features, message):
    with pytest.raises(ArmsError, match=message):
        Arms(features)


def test_a_bad_cell_is_reported_with_the_name_of_its_arm():
    with pytest.raises(ArmsError, match=r"row 2 \(candidate 'tin'\), column 'f1': inf"):
        Arms([[1.0], [np.inf]], names=["zinc", "tin"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "2 names for 3 rows"),
        (["a", "b", "a"], "row 3: the name 'a' is taken already, by row 1"),
        (["a", "", "c"], "row 2: the name is ''"),
        (["a", " \t", "c"], "row 2: .*must not be empty"),
        (["a", "b", "\ud800"], "row 3: .*not valid Unicode"),
        ("abc", "single text 'abc'"),
    ],
)
def test_bad_names_are_refused(names, message):
    with pytest.raises(ArmsError, match=message):
        Arms(np.eye(3), names=names)


@pytest.mark.parametrize("name", [2, None, b"a"])
def test_names_that_are_not_text_are_refused(name):
    with pytest.raises(ArmsError, match=f"row 2: the name is {name}; a name is text"):
        check_names(["a", name, "c"])


def test_names_stay_unique_also_among_identical_arms():
    with pytest.raises(ArmsError, match="taken already"):
        Arms([[1.0], [1.0]], names=["a", "a"])


# --- data frames ----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_a_data_frame_gives_names_and_feature_names(make):
    arms = Arms(make({"dose": [1, 2], "alloy": ["p", "q"], "hot": [True, False]}))
    assert arms.names == ("p", "q")
    assert arms.feature_names == ("dose", "hot")
    np.testing.assert_array_equal(arms.features, [[1.0, 1.0], [2.0, 0.0]])


def test_the_column_name_goes_before_other_text_columns():
    frame = pd.DataFrame({"Name": [101, 102], "dose": [1.0, 2.0]})
    assert Arms(frame).names == ("101", "102")
    with pytest.raises(ArmsError, match=r"row 1, column 'kind': 'u' is text.*from_table"):
        Arms(pd.DataFrame({"kind": ["u", "v"], "name": ["a", "b"], "dose": [1.0, 2.0]}))


def test_a_data_frame_without_text_gets_default_names():
    arms = Arms(pd.DataFrame(np.eye(2)))
    assert arms.names == ("x1", "x2")
    assert arms.feature_names == ("0", "1")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"name": ["a", None], "dose": [1, 2]}), "row 2: the name is"),
        (
            pd.DataFrame({"name": ["a", "b"], "dose": [1, None]}),
            r"row 2 \(candidate 'b'\), column 'dose'",
        ),
        (
            pd.DataFrame({"dose": pd.array([None, 1, None], dtype="Int64")}),
            r"row 1, column 'dose': nan .*and 1 more",
        ),
        (pd.DataFrame([[1, 2]], columns=["u", "u"]), "same name"),
        (pd.DataFrame({1: [1.0], "1": [2.0]}), "columns 1 and 2 are both '1'"),
        (pd.DataFrame({"": [1.0]}), "column 1 has no name"),
        (pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), "'day' is of type Datetime"),
        (
            pd.DataFrame({"u": [1.0, 2.0], "v": pd.Series([1, "a"], dtype=object)}),
            "row 2, column 'v': 'a' is not a number",
        ),
        (pd.DataFrame({"name": ["a"]}), "no feature column"),
        (pd.DataFrame({"name": ["a"], "NAME": [2.0]}), "'NAME' would name the candidates"),
        (pd.Series([1.0, 2.0]), "must be 2-D"),
    ],
)
def test_bad_data_frames_are_refused(frame, message):
    with pytest.raises(ArmsError, match=message):
        Arms(frame)


def test_names_beside_a_name_column_are_refused():
    with pytest.raises(ArmsError, match="'name' would name the candidates"):
        Arms(pd.DataFrame({"name": [1.0, 2.0]}), names=["a", "b"])


# --- formulas -------------------------------------------------------------------------------


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "alloy": ["p", "q", "r"],
            "dose": [1.0, 2.0, 3.0],
            "material": ["tin", "zinc", "tin"],
        },
        index=[7, 8, 9],
    )


def test_formula_with_category_interaction_and_polynomial(table):
    arms = Arms.from_formula("dose + C(material) + dose:C(material) + I(dose**2)", table)
    assert arms.names == ("p", "q", "r")
    columns = dict(zip(arms.feature_names, arms.features.T, strict=True))
    np.testing.assert_array_equal(columns["Intercept"], [1, 1, 1])
    np.testing.assert_array_equal(columns["C(material)[T.zinc]"], [0, 1, 0])
    np.testing.assert_array_equal(columns["I(dose ** 2)"], [1, 4, 9])
    np.testing.assert_array_equal(columns["dose:C(material)[T.zinc]"], [0, 2, 0])


def test_formula_with_functions_and_quoted_columns(table):
    table["hot rod"] = [4.0, 5.0, 6.0]
    arms = Arms.from_formula("0 + `hot rod` + np.log(dose) + poly(dose, 2)", table)
    np.testing.assert_array_equal(arms.features[:, 0], [4, 5, 6])
    np.testing.assert_allclose(arms.features[:, 1], np.log([1, 2, 3]))
    assert arms.features.shape == (3, 4)


def test_formula_names_come_from_a_text_column_outside_the_formula(table):
    assert Arms.from_formula("0 + C(alloy)", table.drop(columns="material")).names[0] == "x1"
    assert Arms.from_formula("dose", table, names=["u", "v", "w"]).names == ("u", "v", "w")
    merged = Arms.from_formula("0 + material", table)
    assert merged.aliases == (("p", "r"), ("q",))


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ dose", "right-hand side"),
        ("dose + speed", r"`speed` is not present.*has the columns \['alloy', 'dose'"),
        ("dose +", "cannot be used"),
        ("nonsense(dose)", "cannot be used.*nonsense"),
        ("log(dose - 2)", r"row 1 \(candidate 'p'\), column 'log\(dose - 2\)': nan"),
        ("0", "no feature column"),
    ],
)
def test_bad_formulas_are_refused(table, formula, message):
    with pytest.raises(ArmsError, match=message):
        Arms.from_formula(formula, table)


@pytest.mark.parametrize(("column", "formula"), [("dose", "dose"), ("material", "C(material)")])
def test_formula_never_drops_a_row(table, column, formula):
    table[column] = table[column].astype(object).where([True, False, False], None)
    with pytest.raises(ArmsError, match=f"row 2, column '{column}': the value is missing.*1 more"):
        Arms.from_formula(formula, table)


def test_formula_needs_a_data_frame():
    with pytest.raises(ArmsError, match="needs a data frame"):
        Arms.from_formula("dose", [[1.0]])


def test_unstructured():
    arms = Arms.unstructured(["a", "b", "c"])
    np.testing.assert_array_equal(arms.features, np.eye(3))
    np.testing.assert_allclose(arms.coordinates, np.sqrt(3) * np.eye(3), rtol=1e-15)
    assert arms.names == ("a", "b", "c")
    assert Arms.unstructured(2).names == ("x1", "x2")
    with pytest.raises(ArmsError, match="0 arms"):
        Arms.unstructured(0)
    with pytest.raises(ArmsError, match="0 arms"):
        Arms.unstructured([])
    with pytest.raises(ArmsError, match="taken already"):
        Arms.unstructured(["a", "a"])


# --- names and identity ---------------------------------------------------------------------


def test_index_takes_any_alias(arms):
    assert [arms.index(name) for name in "abcd"] == [0, 1, 0, 2]
    assert "c" in arms
    assert "z" not in arms
    assert 3 not in arms
    assert ["a"] not in arms


def test_an_unknown_name_gets_a_suggestion():
    arms = Arms(np.eye(3), names=["alloy-7", "alloy-9", "Brass"])
    with pytest.raises(UnknownArmError, match=r"no candidate 'aloy-7'\. Did you mean 'alloy-7' or"):
        arms.index("aloy-7")
    with pytest.raises(UnknownArmError, match="Did you mean 'Brass'"):
        arms.index("brass")
    with pytest.raises(UnknownArmError, match="names of the 3 candidates begin with 'alloy-7'"):
        arms.index("q")
    with pytest.raises(UnknownArmError, match="The only candidate is 'alloy-7'"):
        Arms([[1.0]], names=["alloy-7"]).index("q")


def test_a_suggestion_is_cheap_among_many_and_long_names(monkeypatch):
    names = [f"x{i}" for i in range(10_000)] + ["x" * 1000]
    arms = Arms(np.arange(10_001.0)[:, None], names)
    pools: list[list[str]] = []

    def record(name, pool):
        pools.append(pool)
        return []

    monkeypatch.setattr("difflib.get_close_matches", record)
    for name in ("x12_4", "x" * 1001):
        with pytest.raises(UnknownArmError):
            arms.index(name)
    assert [len(pool) for pool in pools] == [2000, 0]


def test_equality_and_hash(arms):
    same = Arms(arms.features[[0, 0, 1, 2]], names=["a", "c", "b", "d"])
    assert arms == same
    assert hash(arms) == hash(same)
    assert arms != Arms(arms.features, names=["a", "b", "d"])
    assert arms != Arms(arms.features[[0, 0, 1, 2]] * 2, names=["a", "c", "b", "d"])
    assert arms != Arms(arms.to_frame().rename(columns={"f1": "g1"}))
    assert arms != "arms"


def test_pickle_and_copies_stay_immutable(arms):
    back = pickle.loads(pickle.dumps(arms))
    assert back == arms
    assert not back.features.flags.writeable
    np.testing.assert_array_equal(back.coordinates, arms.coordinates)
    for twin in (copy.copy(arms), copy.deepcopy(arms)):
        assert twin == arms
        assert not twin.features.flags.writeable


def test_negative_zero_is_zero():
    arms = Arms([[0.0, 1.0], [-0.0, 1.0]])
    assert len(arms) == 1
    assert not np.signbit(arms.features).any()


@pytest.mark.parametrize(
    "hashes",
    [lambda X: np.zeros(len(X), np.uint64), lambda X: (X[:, 0] % 2).astype(np.uint64)],
)
def test_hash_collisions_do_not_merge_different_arms(monkeypatch, hashes):
    monkeypatch.setattr(finalist.arms.rows, "row_hashes", hashes)
    rows = [5, 1, 3, 5, 2, 1, 1, 4, 3, 5]
    arms = Arms(np.array(rows, dtype=float)[:, None])
    np.testing.assert_array_equal(arms.features[:, 0], [5, 1, 3, 2, 4])
    assert arms.aliases[0] == ("x1", "x4", "x10")
    assert arms.aliases[1] == ("x2", "x6", "x7")


def test_many_arms_merge_in_order_and_fast():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 20))
    X[60_000:] = X[rng.integers(60_000, size=40_000)]
    start = time.perf_counter()
    arms = Arms(X)
    assert time.perf_counter() - start < 5.0
    np.testing.assert_array_equal(arms.features, X[:60_000])
    Z = arms.coordinates
    np.testing.assert_allclose(Z.T @ Z / len(arms), np.eye(20), atol=1e-12)


def test_similar_rows_have_different_hashes():
    grid = np.stack(np.meshgrid(*[np.arange(-5.0, 6.0)] * 4), axis=-1).reshape(-1, 4)
    assert len(np.unique(finalist.arms.rows.row_hashes(grid))) == len(grid)


# --- span -----------------------------------------------------------------------------------


def test_coordinates_of_a_known_case():
    arms = Arms([[3.0, 0.0], [0.0, 0.5]])
    # Scaled by powers of two the columns are 3/4 and 1/2: the first comes first.
    np.testing.assert_allclose(arms.coordinates, np.sqrt(2) * np.eye(2), atol=1e-15)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-150, 1.0, 1e150, 1e308])
def test_scale_does_not_matter(scale):
    base = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    arms = Arms(base * np.array([scale, 1.0, scale]))
    assert arms.rank == 3
    reference = Arms(base).coordinates
    np.testing.assert_allclose(
        arms.coordinates @ arms.coordinates.T, reference @ reference.T, atol=1e-12
    )
    np.testing.assert_allclose(arms.to_span(arms.features), arms.coordinates, atol=1e-12)


def test_zero_arms_have_rank_zero():
    arms = Arms([[0.0, 0.0]])
    assert arms.rank == 0
    assert arms.coordinates.shape == (1, 0)
    assert arms.to_span(np.zeros((2, 2))).shape == (2, 0)
    assert arms.parameter_to_span([1.0, 2.0]).shape == (0,)
    with pytest.raises(OutsideSpanError):
        arms.to_span([[1e-300, 0.0]])


def test_rank_of_collinear_columns_that_rounding_makes_independent():
    u = np.array([0.1, 0.2, 0.7])
    v = np.array([0.3, 0.4, 0.11])
    assert Arms(np.stack([u, v, u + v], axis=1)).rank == 2
    # Converting units back and forth costs some units of rounding; that is no new dimension.
    converted = (u + v) * (1 + 128 * np.finfo(float).eps * np.array([1, 0, -1]))
    assert Arms(np.stack([u, v, converted], axis=1)).rank == 2
    assert Arms(np.stack([u, v, (u + v) * [1, 1, 1 + 1e-12]], axis=1)).rank == 3


def test_ill_conditioned_arms_have_orthonormal_coordinates():
    x = np.linspace(0.0, 1.0, 50)
    arms = Arms(x[:, None] ** np.arange(12))
    assert arms.rank == 12
    Z = arms.coordinates
    np.testing.assert_allclose(Z.T @ Z / len(arms), np.eye(12), atol=1e-12)


def test_signs_are_deterministic():
    X = np.random.default_rng(1).standard_normal((30, 4))
    np.testing.assert_array_equal(Arms(X).coordinates, Arms(X).coordinates)
    flipped = Arms(-X).coordinates
    np.testing.assert_allclose(flipped, -Arms(X).coordinates, atol=1e-12)


def test_blocks_give_the_same_coordinates(monkeypatch):
    X = np.random.default_rng(2).standard_normal((500, 3))
    Y = X[:200] - X[200:400]
    whole = Arms(X)
    expected = whole.coordinates, whole.to_span(Y)
    monkeypatch.setattr(finalist.arms.rows, "BLOCK", 30)
    parts = Arms(np.vstack([X, X]))
    np.testing.assert_allclose(parts.coordinates, expected[0], atol=1e-12)
    np.testing.assert_allclose(parts.to_span(Y), expected[1], atol=1e-12)


@pytest.mark.parametrize(("size", "partner"), [(1e150, 1e-150), (1e-150, 1e150), (1.0, 1.0)])
def test_parameters_and_directions_at_extreme_scales(size, partner):
    X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    theta = np.array([2.0, 1.0])
    arms = Arms(X * size)
    phi = arms.parameter_to_span(theta * partner)
    np.testing.assert_allclose(arms.coordinates @ phi, X @ theta, rtol=1e-12)
    np.testing.assert_allclose(arms.means(theta * partner), X @ theta, rtol=1e-12)
    Y = np.array([[1.0, -1.0], [0.0, 0.0]])
    np.testing.assert_allclose(arms.to_span(Y * size) @ phi, Y @ theta, rtol=1e-12)
    tiny = arms.to_span(Y * size * 1e-100) @ phi
    np.testing.assert_allclose(tiny, Y @ theta * 1e-100, rtol=1e-12)


def test_parameter_outside_the_span_vanishes():
    arms = Arms([[1.0, 1.0], [2.0, 2.0]])
    np.testing.assert_allclose(arms.parameter_to_span([1.0, -1.0]), [0.0], atol=1e-15)
    np.testing.assert_allclose(arms.means([1.0, 0.0]), [1.0, 2.0])


def test_to_span_gives_w_with_y_equal_w_b(arms):
    Y = np.array([[1.0, -1.0, 0.0], [2.0, -2.0, -1.5]])
    np.testing.assert_allclose(arms.to_span(Y) @ in_span(arms), Y, atol=1e-12)
    assert arms.to_span(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("directions", "message"),
    [
        ([1.0, 0.0, 0.0], r"shape \(3,\); it must be \(M, 3\)"),
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
        ([[0.0, 0.0, 0.0], [1.0, np.nan, 0.0]], r"direction 2 is not finite: \[ 1. nan  0.\]"),
        ([[0.0, np.inf, 0.0]], "direction 1 is not finite"),
        ([["a", "b", "c"]], "real numbers"),
        ([[1j, 0, 0]], "real numbers"),
        ([[1.0], [1.0, 2.0]], "real numbers"),
    ],
)
def test_bad_directions_are_refused(arms, directions, message):
    with pytest.raises(DirectionError, match=message):
        arms.to_span(directions)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_direction_outside_the_span_is_named(scale):
    arms = Arms(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]) * scale)
    inside = np.array([1.0, 2.0, 1.0]) * scale
    outside = np.array([1.0, 0.0, 0.0]) * scale
    with pytest.raises(OutsideSpanError, match=r"direction 3, \[.*\], is outside.*Add an arm"):
        arms.to_span([inside, 0 * inside, outside, outside])
    off = np.array([1.0, -1.0, 1.0]) * scale  # orthogonal to the span
    assert arms.to_span([inside + 1e-8 * off]).shape == (1, 2)
    with pytest.raises(OutsideSpanError):
        arms.to_span([inside + 1e-5 * off])


def test_a_component_that_is_zero_for_all_arms_is_outside_however_small():
    arms = Arms([[1e150, 0.0], [2e150, 0.0]])
    assert arms.to_span([[1.0, 0.0]]).shape == (1, 1)
    with pytest.raises(OutsideSpanError):
        arms.to_span([[1e150, 1e-200]])


def test_a_direction_too_large_for_its_coordinates_is_refused():
    with pytest.raises(DirectionError, match="direction 1 is too large"):
        Arms([[1e-300]]).to_span([[1e300]])


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ([1.0, 2.0], r"shape \(2,\); these arms need \(3,\)"),
        ([[1.0, 2.0, 3.0]], r"shape \(1, 3\)"),
        ([1.0, np.nan, 0.0], r"theta is nan for feature 'f2' \(number 2\)"),
        (["a", "b", "c"], "real numbers"),
        ([1e308, -1e308, 1e308], "above 1e308"),
    ],
)
def test_bad_parameters_are_refused(arms, theta, message):
    with pytest.raises(ParameterError, match=message):
        arms.means(theta)
    with pytest.raises(ParameterError, match=message):
        arms.parameter_to_span(theta)


# --- files ----------------------------------------------------------------------------------


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_with_and_without_bom_and_any_line_end(tmp_path, encoding, end):
    text = end.join(["dose,name,speed", "1,Jürgen,-2e3", "", " 0.5 ,b,7", ""])
    arms = Arms.from_csv(write(tmp_path / "a.csv", text, encoding))
    assert arms.names == ("Jürgen", "b")
    assert arms.feature_names == ("dose", "speed")
    np.testing.assert_array_equal(arms.features, [[1.0, -2000.0], [0.5, 7.0]])


def test_csv_takes_the_first_text_column_as_names(tmp_path):
    arms = Arms.from_csv(write(tmp_path / "a.csv", "dose,alloy\n1,p\n2,q\n"))
    assert arms.names == ("p", "q")
    assert Arms.from_csv(write(tmp_path / "b.csv", "u,v\n1,2\n3,4\n")).names == ("x1", "x2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "arms.csv is empty"),
        ("\n\n", "arms.csv is empty"),
        ("name,dose\n", "line 1: there is no candidate below"),
        ("name,dose\na,1\nb\n", r"line 3, column 'dose': the cell is empty"),
        ("name,dose\na,1,5\n", r"line 2: 3 cells"),
        ("name,dose\na,1\n\nb,\n", r"line 4, column 'dose': the cell is empty"),
        ("name,dose\na,1\nb,x\nc,y\n", r"line 3, column 'dose': 'x' is not .*and 1 more"),
        ("name,dose\na,1\nb,1e400\n", r"line 3, column 'dose': '1e400' is not a finite"),
        ("name,dose\na,1\nb,nan\n", r"line 3, column 'dose': 'nan' is no value"),
        ("name,dose\na,1_000\n", r"line 2, column 'dose': '1_000'"),
        ("dose,speed\n1,2\nfast,3\n", r"line 3, column 'dose': 'fast' is not a finite"),
        ("name,dose\na,1\nb,2\na,3\n", r"line 4, column 'name': the name 'a' is taken.*line 2"),
        ("alloy,dose\na,1\n,2\n", r"line 3, column 'alloy': the name is ''"),
        ('name,dose\n"a\nb",1\nc,?\n', r"line 4, column 'dose': '\?'"),
        ("name,dose,dose\na,1,2\n", r"line 1: columns 2 and 3 are both 'dose'"),
        (",dose\na,1\n", r"line 1: column 1 has no name"),
        ("name,kind,dose\na,u,1\nb,v,2\n", r"line 2, column 'kind': 'u'.*from_table"),
        ("alloy,kind,dose\na,u,1\nb,v,2\n", r"line 2, column 'kind': 'u'.*from_table"),
        ("name,NAME,dose\na,2,1\nb,3,2\n", r"'NAME' would name the candidates"),
        ("name\na\n", r"line 1: there is no column beside 'name'"),
        ('name,dose\n"a"b,1\n', r"line 2: .*expected after"),
        ('name,dose\nb,1\n"a,1\n', r"line 3: unexpected end of data"),
        ("{name},dose\nb,1\nb,1\n", r"column '{name}': the name 'b' is taken"),
    ],
)
def test_bad_csv_is_refused_with_line_and_column(tmp_path, text, message):
    path = write(tmp_path / "arms.csv", text)
    with pytest.raises(FileFormatError, match=message) as caught:
        Arms.from_csv(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_csv_in_other_encodings_is_read(tmp_path, encoding):
    path = write(tmp_path / "a.csv", "name;dose\nJürgen;1,5\n", encoding)
    arms = Arms.from_csv(path)
    assert arms.names == ("Jürgen",)
    assert arms.features.tolist() == [[1.5]]


HOSTILE = ["=1+1", "+a", "-b", "@c", "\td", "\re", "\nf", "'g", "''h", "'=i", 'j",j', " k ", "l\0"]


def test_csv_round_trip_with_hostile_names(tmp_path):
    features = [[0.1 + 0.2, 5e-324], *([1.0, float(i // 2)] for i in range(len(HOSTILE) - 1))]
    arms = Arms(features, names=HOSTILE)
    assert len(arms) < len(HOSTILE)
    arms.to_csv(tmp_path / "a.csv")
    assert Arms.from_csv(tmp_path / "a.csv") == arms


def test_csv_cells_cannot_run_in_a_spreadsheet(tmp_path):
    frame = pd.DataFrame({"name": HOSTILE, "=cmd()": np.arange(len(HOSTILE)) - 3.5})
    arms = Arms(frame)
    arms.to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["name", "'=cmd()"]
    assert not any(re.match(r"[=+\-@\t\r\n]", row[0]) for row in rows)
    assert Arms.from_csv(tmp_path / "a.csv") == arms


def test_an_apostrophe_in_a_handwritten_name_stays(tmp_path):
    arms = Arms.from_csv(write(tmp_path / "a.csv", "name,dose\n'round,1\n"))
    assert arms.names == ("'round",)


def test_a_large_csv_comes_back(tmp_path):
    features = np.random.default_rng(0).standard_normal((100_000, 5))
    arms = Arms(features)
    arms.to_csv(tmp_path / "a.csv")
    assert Arms.from_csv(tmp_path / "a.csv") == arms


def test_frame_round_trip(arms):
    frame = arms.to_frame()
    assert list(frame.columns) == ["name", "f1", "f2", "f3"]
    assert list(frame["name"]) == ["a", "c", "b", "d"]
    assert Arms(frame) == arms
    frame.loc[0, "f1"] = 99.0
    assert arms.features[0, 0] == 1.0


def test_parquet_round_trip(tmp_path):
    features = [[0.1 + 0.2, 5e-324], *([1.0, float(i // 2)] for i in range(len(HOSTILE) - 1))]
    arms = Arms(features, names=HOSTILE)
    arms.to_parquet(tmp_path / "a.parquet")
    assert Arms.from_parquet(tmp_path / "a.parquet") == arms


def test_bad_parquet_is_refused(tmp_path):
    path = write(tmp_path / "a.parquet", "name,dose\na,1\n")
    with pytest.raises(FileFormatError, match="not a Parquet file"):
        Arms.from_parquet(path)
    pd.DataFrame({"name": ["a", "b"], "dose": [1.0, None]}).to_parquet(path)
    with pytest.raises(FileFormatError, match=r"a.parquet: row 2 \(candidate 'b'\), column 'dose'"):
        Arms.from_parquet(path)


def test_parquet_without_pyarrow_says_how_to_install_it(tmp_path, arms, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (arms.to_parquet, Arms.from_parquet):
        with pytest.raises(MissingExtraError, match=r"pip install 'finalist\[parquet\]'"):
            call(tmp_path / "a.parquet")


def test_importing_arms_does_not_import_heavy_modules():
    import subprocess

    code = (
        "import sys, finalist.arms, numpy; finalist.arms.Arms(numpy.eye(2)).coordinates;"
        "print([m for m in ('pandas', 'narwhals', 'formulaic', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_intercept_is_added_once_and_keeps_names_and_roles():
    arms = Arms(
        [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [1.0, 0.0]],
        names=["a", "b", "c", "d"],
        measurable=[True, True, True, True],
    )
    assert not arms.has_intercept
    wider = arms.with_intercept()
    assert wider.has_intercept
    assert wider.with_intercept() is wider
    assert wider.aliases == arms.aliases
    assert wider.feature_names == ("f1", "f2", "intercept")
    np.testing.assert_array_equal(wider.features[:, :2], arms.features)
    np.testing.assert_array_equal(wider.features[:, 2], 1.0)


def test_an_intercept_is_seen_in_any_combination_of_features():
    shares = np.random.default_rng(0).dirichlet(np.ones(4), size=9)  # a mixture: they sum to 1
    assert Arms(shares).has_intercept
    assert not Arms(shares[:, :3]).has_intercept
    mask = [True] * 8 + [False]
    marked = Arms(shares[:, :3], measurable=mask).with_intercept()
    assert marked.measurable.tolist() == mask
    named = Arms(pd.DataFrame({"intercept": [1.0, 2.0, 4.0], "x": [0.0, 1.0, 0.0]}))
    assert named.with_intercept().feature_names == ("intercept", "x", "intercept_")
