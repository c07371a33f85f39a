import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from finalist.arms import Arms
from finalist.errors import OutsideSpanError

shapes = st.tuples(st.integers(1, 8), st.integers(1, 8))
small = st.integers(-5, 5).map(float)
#: Small whole numbers: ranks are clear-cut, and duplicates and collinear columns are common.
matrices = hnp.arrays(np.float64, shapes, elements=small)
finite = st.floats(allow_nan=False, allow_infinity=False)
#: Any text that can be a name, with the letters that break files more often than by chance.
hostile = st.text(
    st.one_of(st.sampled_from("=+-@\t\r\n'\",; \0\ufeff\u2028"), st.characters(codec="utf-8")),
    min_size=1,
    max_size=8,
).filter(str.strip)
powers = st.sampled_from([-150, -1, 0, 150])


def gram(arms):
    """Return Z Z' / K: the projection on the column space of X, free of the choice of basis."""
    return arms.coordinates @ arms.coordinates.T / len(arms)


@st.composite
def invertible(draw, d):
    """Draw a product of unit triangular matrices: whole numbers, determinant 1."""
    entries = hnp.arrays(np.float64, (d, d), elements=st.sampled_from([-1.0, 0.0, 1.0]))
    lower = np.tril(draw(entries), -1) + np.eye(d)
    upper = np.triu(draw(entries), 1) + np.eye(d)
    return lower @ upper


@given(matrices)
@example(np.zeros((3, 2)))
@example(np.ones((4, 1)))
@example(np.arange(1.0, 9.0)[None, :])
def test_coordinates_are_orthonormal_and_span_the_arms(X):
    arms = Arms(X)
    Z, K = arms.coordinates, len(arms)
    assert arms.rank == np.linalg.matrix_rank(arms.features)
    assert Z.shape == (K, arms.rank)
    np.testing.assert_allclose(Z.T @ Z / K, np.eye(arms.rank), atol=1e-12)
    # X = Z B with B = Z'X / K.
    np.testing.assert_allclose(Z @ (Z.T @ arms.features / K), arms.features, atol=1e-10)


@given(matrices, st.data())
def test_products_are_the_same_in_both_spaces(X, data):
    arms = Arms(X)
    K, d = arms.features.shape
    theta = data.draw(hnp.arrays(np.float64, d, elements=small))
    mix = data.draw(hnp.arrays(np.float64, (3, K), elements=small))
    phi = arms.parameter_to_span(theta)
    np.testing.assert_allclose(arms.coordinates @ phi, X_theta := arms.means(theta), atol=1e-9)
    np.testing.assert_allclose(X_theta, arms.features @ theta, atol=1e-12)
    W = arms.to_span(mix @ arms.features)
    np.testing.assert_allclose(W, mix @ arms.coordinates, atol=1e-8)
    np.testing.assert_allclose(W @ phi, mix @ X_theta, atol=1e-8)


@given(matrices, st.data())
def test_invariance_under_linear_maps_and_column_scales(X, data):
    d = X.shape[1]
    T = data.draw(invertible(d))
    scales = 10.0 ** np.array(data.draw(st.lists(powers, min_size=d, max_size=d)))
    arms, mapped = Arms(X), Arms((X @ T) * scales)
    assert mapped.aliases == arms.aliases
    assert mapped.rank == arms.rank
    np.testing.assert_allclose(gram(mapped), gram(arms), atol=1e-8)


@given(matrices, st.data())
def test_a_constant_or_collinear_column_adds_what_it_should(X, data):
    weights = data.draw(hnp.arrays(np.float64, X.shape[1], elements=small))
    arms = Arms(X)
    collinear = Arms(np.column_stack([X, X @ weights]))
    assert collinear.rank == arms.rank
    np.testing.assert_allclose(gram(collinear), gram(arms), atol=1e-9)
    constant = Arms(np.column_stack([X, np.ones(len(X))]))
    assert constant.rank - arms.rank in (0, 1)
    ones = np.ones(len(constant))
    np.testing.assert_allclose(gram(constant) @ ones, ones, atol=1e-9)


@given(matrices, st.data())
def test_directions_orthogonal_to_the_span_are_refused(X, data):
    arms = Arms(X)
    d = X.shape[1]
    assume(arms.rank < d)
    _, _, Vt = np.linalg.svd(arms.features)
    inside = data.draw(hnp.arrays(np.float64, len(arms), elements=small)) @ arms.features
    scale = 10.0 ** data.draw(powers)
    with pytest.raises(OutsideSpanError, match="direction 2"):
        Arms(X * scale).to_span(np.stack([inside, inside + Vt[-1]]) * scale)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=finite))
def test_duplicates_merge_in_order_of_first_appearance(X):
    groups: dict[tuple[float, ...], list[str]] = {}
    for i, row in enumerate(X.tolist(), 1):
        groups.setdefault(tuple(row), []).append(f"x{i}")
    arms = Arms(X)
    assert [tuple(row) for row in arms.features.tolist()] == list(groups)
    assert arms.aliases == tuple(map(tuple, groups.values()))
    assert arms.names == tuple(names[0] for names in groups.values())
    for k, names in enumerate(groups.values()):
        assert {arms.index(name) for name in names} == {k}


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=finite))
def test_any_finite_features_have_coordinates(X):
    arms = Arms(X)
    Z = arms.coordinates
    np.testing.assert_allclose(Z.T @ Z / len(arms), np.eye(arms.rank), atol=1e-10)
    if arms.rank == X.shape[1]:
        # Beside an arm 1e14 times as large an arm may count as zero, and be outside the span.
        np.testing.assert_allclose(arms.to_span(arms.features), Z, atol=1e-12)


@settings(deadline=None)
@given(st.data(), st.lists(hostile, min_size=1, max_size=6, unique=True))
def test_files_round_trip(data, names):
    columns = data.draw(st.integers(1, 3))
    elements = st.one_of(finite, small)
    features = data.draw(hnp.arrays(np.float64, (len(names), columns), elements=elements))
    arms = Arms(features, names=names)
    with tempfile.TemporaryDirectory() as folder:
        arms.to_csv(Path(folder) / "arms.csv")
        assert Arms.from_csv(Path(folder) / "arms.csv") == arms
        arms.to_parquet(Path(folder) / "arms.parquet")
        assert Arms.from_parquet(Path(folder) / "arms.parquet") == arms
    assert Arms(arms.to_frame()) == arms


@settings(deadline=None)
@given(st.data(), st.lists(hostile, min_size=1, max_size=4, unique=True))
def test_feature_names_round_trip(data, columns):
    import pandas as pd

    assume(not any(column.strip().lower() == "name" for column in columns))
    row = data.draw(st.lists(finite, min_size=len(columns), max_size=len(columns)))
    arms = Arms(pd.DataFrame([row], columns=columns))
    assert arms.feature_names == tuple(columns)
    with tempfile.TemporaryDirectory() as folder:
        arms.to_csv(Path(folder) / "arms.csv")
        assert Arms.from_csv(Path(folder) / "arms.csv") == arms
