"""The features of every model span what they should, by an independent construction."""

from itertools import combinations

import numpy as np
import pandas as pd
from formulaic import model_matrix
from hypothesis import given, settings
from hypothesis import strategies as st

from finalist.arms.models import make

ROWS = st.integers(3, 9)
NUMBER = st.integers(-40, 40).map(lambda n: n / 4)
LEVEL = st.sampled_from(["calm", "friendly", "stern", "1", "2"])


@st.composite
def tables(draw):
    n = draw(ROWS)
    return {
        "x": np.array(draw(st.lists(NUMBER, min_size=n, max_size=n))),
        "z": 1000.0 + np.array(draw(st.lists(NUMBER, min_size=n, max_size=n))),
        "T": tuple(draw(st.lists(LEVEL, min_size=n, max_size=n))),
        "U": tuple(draw(st.lists(LEVEL, min_size=n, max_size=n))),
        "on": tuple(draw(st.lists(st.sampled_from(["yes", "no"]), min_size=n, max_size=n))),
    }


def scaled(A):
    """Remove the units of columns: polynomials of 1000 are measured from there."""
    size = np.abs(A).max(axis=0)
    return A[:, size > 0] / size[size > 0]


def basis(A):
    Q, s, _ = np.linalg.svd(scaled(A), full_matrices=False)
    return Q[:, s > 1e-9 * s[0]]


def same_span(A, B):
    P, Q = basis(A), basis(B)
    return P.shape == Q.shape and np.abs(P @ (P.T @ Q) - Q).max() < 1e-6


def formula(model, table):
    columns = ["x", "w", "on"] + [f"C({c})" for c in ("T", "U") if len(set(table[c])) > 1]
    text = "1 + " + " + ".join(columns)
    if model != "straight":
        text += "".join(f" + I({c}**2)" for c, d in (("x", "x"), ("w", "z")) if bends(table[d]))
    if model == "surface":
        text += "".join(f" + {a}:{b}" for a, b in combinations(columns, 2))
    return text


def bends(values):
    return len(set(values.tolist())) > 2


@settings(max_examples=150, deadline=None)
@given(tables(), st.sampled_from(["straight", "bending", "surface"]))
def test_with_a_constant_the_span_is_that_of_the_formula(table, model):
    X, names, recipe = make(model, table, ["x", "z"], ["T", "U"], ["on"], constant=True)
    frame = pd.DataFrame({k: list(v) for k, v in table.items()})
    frame = frame.assign(w=frame.z - 1000.0, on=(frame.on == "yes").astype(float))
    assert same_span(X, np.asarray(model_matrix(formula(model, table), frame), dtype=float))
    assert np.array_equal(recipe.features(table)[0], X)
    assert len(names) == X.shape[1]


@settings(max_examples=100, deadline=None)
@given(tables(), st.sampled_from(["straight", "bending", "surface"]))
def test_without_a_constant_the_span_is_that_of_plain_products(table, model):
    X, _, _ = make(model, table, ["x", "z"], ["T", "U"], ["on"], constant=False)
    columns = {"x": [table["x"]], "z": [table["z"]]}
    for c in ("T", "U"):
        columns[c] = [np.array(table[c]) == level for level in sorted(set(table[c]))[1:]]
    columns["on"] = [np.array(table["on"]) == "yes"]
    parts = [v.astype(float) for column in columns.values() for v in column]
    if model != "straight":
        parts += [table[c] ** 2 for c in ("x", "z") if bends(table[c])]
    if model == "surface":
        several = [c for c in columns if c not in "xz" or len(set(table[c].tolist())) > 1]
        for one, other in combinations(several, 2):
            parts += [a * b for a in columns[one] for b in columns[other]]
    A = np.column_stack(parts)
    assert X.shape == A.shape
    order = np.lexsort(X), np.lexsort(A)
    assert np.array_equal(X[:, order[0]], A[:, order[1]])


@settings(max_examples=50, deadline=None)
@given(tables())
def test_separate_rows_share_nothing(table):
    X, _, _ = make("separate", table, ["x", "z"], ["T", "U"], ["on"], constant=True)
    assert np.array_equal(X, np.eye(len(table["x"])))
