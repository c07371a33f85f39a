import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.design import design_value
from finalist.errors import DesignError, DirectionError, FinalistError, OutsideSpanError
from tests import instances


@pytest.fixture
def arms():
    return fl.Arms(instances.gaussian(30, 4, 0))


def test_one_arm_gets_all_the_weight():
    arm = fl.Arms([[1.0, 2.0]])
    assert fl.optimal_design(arm, "g").value == pytest.approx(1.0)
    xy = fl.optimal_design(arm, "xy")
    assert (xy.value, xy.gap, xy.weights.tolist()) == (0.0, 0.0, [1.0])


def test_arms_that_are_all_zero_need_no_information():
    design = fl.optimal_design(fl.Arms([[0.0, 0.0]]), "g")
    assert (design.value, design.gap) == (0.0, 0.0)


def test_weights_are_read_only(arms):
    with pytest.raises(ValueError, match="read-only"):
        fl.optimal_design(arms, "g").weights[0] = 1.0


@pytest.mark.parametrize("criterion", ["G", "a", "", None, 3])
def test_unknown_criterion_is_named(arms, criterion):
    with pytest.raises((DesignError, DirectionError)):
        fl.optimal_design(arms, criterion)


@pytest.mark.parametrize("tol", [0, -1e-6, math.nan, math.inf, "1e-6", True])
def test_tolerance_is_a_positive_number(arms, tol):
    with pytest.raises(DesignError, match="tol"):
        fl.optimal_design(arms, "g", tol)


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_max_seconds_is_not_negative(arms, seconds):
    with pytest.raises(DesignError, match="max_seconds"):
        fl.optimal_design(arms, "g", max_seconds=seconds)


def test_empty_list_of_directions(arms):
    with pytest.raises(DirectionError, match="empty"):
        fl.optimal_design(arms, np.zeros((0, 4)))


def test_zero_directions_are_dropped_and_alone_refused(arms):
    Y = np.vstack([np.zeros(4), np.eye(4)[0]])
    both, one = fl.optimal_design(arms, Y), fl.optimal_design(arms, Y[1:])
    assert both.value == pytest.approx(one.value, rel=1e-6)
    with pytest.raises(DirectionError, match="zero"):
        fl.optimal_design(arms, np.zeros((3, 4)))


def test_direction_with_nan_is_named(arms):
    Y = np.eye(4)
    Y[2, 1] = np.nan
    with pytest.raises(DirectionError, match="3"):
        fl.optimal_design(arms, Y)


def test_direction_of_the_wrong_length(arms):
    with pytest.raises(DirectionError):
        fl.optimal_design(arms, np.eye(5))


def test_direction_outside_the_span_is_named():
    flat = fl.Arms(np.column_stack([instances.gaussian(10, 2, 0), np.zeros(10)]))
    with pytest.raises(OutsideSpanError, match="direction 2"):
        fl.optimal_design(flat, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]))


def test_stopping_early_says_so_and_the_gap_is_true():
    arms = fl.Arms(instances.gaussian(3000, 20, 1))
    design = fl.optimal_design(arms, "xy", max_seconds=0.0)
    assert not design.solved
    assert "max_seconds" in design.status
    assert design.gap > 1e-6
    best = fl.optimal_design(arms, "xy").value
    assert design.lower_bound <= best
    assert design.value <= (1.0 + design.gap) * best * (1.0 + 1e-9)


def test_impossible_tolerance_is_not_claimed():
    design = fl.optimal_design(fl.Arms(1.0 + 1e-6 * instances.gaussian(50, 4, 5)), "xy", 1e-18)
    assert not design.solved
    assert "raise tol" in design.status
    assert design.gap < 1e-5


def exact_variance(features, weights, y):
    """Return y'A^-1 y in rational arithmetic; None if A is singular."""
    n = len(y)
    X = [[Fraction(v) for v in row] for row in np.asarray(features, dtype=float).tolist()]
    w = [Fraction(v) for v in weights.tolist()]
    A = [
        [sum(c * x[i] * x[j] for c, x in zip(w, X, strict=True)) for j in range(n)]
        for i in range(n)
    ]
    M = [[*row, Fraction(v)] for row, v in zip(A, y, strict=True)]
    for c in range(n):
        pivot = next((r for r in range(c, n) if M[r][c] != 0), None)
        if pivot is None:
            return None
        M[c], M[pivot] = M[pivot], M[c]
        M[c] = [v / M[c][c] for v in M[c]]
        for r in range(n):
            if r != c:
                M[r] = [a - M[r][c] * b for a, b in zip(M[r], M[c], strict=True)]
    return float(sum(Fraction(v) * M[i][n] for i, v in enumerate(y))) * float(sum(w))


@pytest.mark.parametrize(
    ("features", "y"),
    [
        ([[1.0, 0.0], [1.0, 1e-10], [0.0, 1.0]], [1.0, -1e-10]),
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1e-10]),
        ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1e-12]),
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1e-9, 1.0]], [1.0, 0.0, 1e-9]),
    ],
)
def test_a_direction_almost_in_a_row_space_is_not_cut_off(features, y):
    design = fl.optimal_design(fl.Arms(features), np.array([y]))
    assert design.solved
    true = exact_variance(features, design.weights, y)
    assert true == pytest.approx(design.value, rel=1e-9)


def test_close_survivors_are_told_apart_outside_the_row_space_of_the_others():
    features = [[1.0, 0.0], [0.0, 1.0], [0.5, 1e-10]]
    design = fl.optimal_design(fl.Arms(features), "xy", among=np.array([0, 2]))
    true = exact_variance(features, design.weights, [0.5, -1e-10])
    assert true == pytest.approx(design.value, rel=1e-9)


@pytest.mark.parametrize(("degree", "error"), [(11, 1e-9), (13, 1e-9), (15, 1e-6)])
def test_the_gap_is_true_for_almost_collinear_features(degree, error):
    # Condition numbers 7e9, 1e12 and 2e14; exact G value in rational arithmetic.
    X = np.vander(np.linspace(0.5, 1.5, 25), degree)
    design = fl.optimal_design(fl.Arms(X), "g")
    values = [exact_variance(X, design.weights, x) for x in X.tolist()]
    assert max(values) / degree - 1.0 <= design.gap + error


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_directions_whose_squares_are_no_numbers_are_refused(arms, size):
    with pytest.raises(DirectionError):
        fl.optimal_design(arms, size * np.eye(4))


LOOSE: Any = fl  # the same names, without the types that the calls below break


@pytest.mark.parametrize(
    "call",
    [
        lambda arms: LOOSE.optimal_design(arms, [["a", "b", "c", "d"]]),
        lambda arms: LOOSE.optimal_design(arms, [[1.0, 2.0], [1.0]]),
        lambda arms: LOOSE.optimal_design(arms, np.eye(4) * 1j),
        lambda arms: LOOSE.optimal_design(arms.features, "g"),
        lambda arms: LOOSE.optimal_design(arms, "g", max_seconds="a"),
        lambda _: LOOSE.round_design(["a", "b"], 3),
        lambda _: LOOSE.round_design(np.full(2, 0.5), 2**63 - 1),
        lambda arms: LOOSE.complexity(arms, ["a", "b", "c", "d"], sigma=1.0),
        lambda arms: LOOSE.complexity(arms, np.ones(4), alpha="x", sigma=1.0),
        lambda _: LOOSE.Arms(np.eye(2), names=5),
    ],
)
def test_nonsense_gets_a_typed_error(arms, call):
    with pytest.raises(FinalistError):
        call(arms)


def test_numbers_of_numpy_are_numbers(arms):
    assert LOOSE.optimal_design(arms, "g", np.float32(1e-4)).gap <= 1.01e-4


@pytest.mark.parametrize("weights", [np.full(3, 1 / 3), np.eye(30)])
def test_design_value_refuses_weights_of_the_wrong_shape(arms, weights):
    with pytest.raises(DesignError, match="shape"):
        design_value(arms, weights, "g")


@pytest.mark.parametrize("bad", [math.nan, -0.1, math.inf])
def test_design_value_names_the_bad_weight(arms, bad):
    weights = np.full(30, 1 / 30)
    weights[4] = bad
    with pytest.raises(DesignError, match="arm 5"):
        design_value(arms, weights, "g")


def test_design_value_refuses_weights_that_do_not_sum_to_one(arms):
    with pytest.raises(DesignError, match="sum to 2"):
        design_value(arms, np.full(30, 2 / 30), "g")


def test_design_value_is_infinite_when_something_cannot_be_estimated():
    arms = fl.Arms.unstructured(3)
    assert design_value(arms, np.array([0.5, 0.5, 0.0]), "g") == math.inf
    assert design_value(arms, np.array([0.5, 0.5, 0.0]), "xy") == math.inf
    one = design_value(arms, np.array([0.5, 0.5, 0.0]), np.array([[1.0, -1.0, 0.0]]))
    assert one == pytest.approx(4.0)


def test_same_call_same_design(arms):
    first, second = fl.optimal_design(arms, "xy"), fl.optimal_design(arms, "xy")
    np.testing.assert_array_equal(first.weights, second.weights)


def test_pairs_among_some_arms_equal_the_list_of_their_differences(arms):
    some = np.array([3, 7, 11, 20])
    X = arms.features
    i, j = np.triu_indices(4, 1)
    listed = fl.optimal_design(arms, X[some[i]] - X[some[j]])
    among = fl.optimal_design(arms, "xy", among=some)
    assert among.value == pytest.approx(listed.value, rel=2e-6)
    assert among.criterion == "xy"
    value = design_value(arms, among.weights, "xy", among=some)
    assert value == pytest.approx(among.value)
    assert value < design_value(arms, among.weights, "xy")


def test_two_survivors_are_a_single_direction(arms):
    X = arms.features
    single = fl.optimal_design(arms, X[[4]] - X[[9]])
    pair = fl.optimal_design(arms, "xy", among=np.array([9, 4]))
    assert pair.value == pytest.approx(single.value, rel=2e-6)


@pytest.mark.parametrize("among", [[], [1], [1, 1], [0, 30], [-1, 2], [0.5, 1.5], [[0, 1]]])
def test_among_is_checked(arms, among):
    with pytest.raises(DesignError, match="among"):
        fl.optimal_design(arms, "xy", among=np.array(among))


def test_among_needs_xy(arms):
    with pytest.raises(DesignError, match="among"):
        fl.optimal_design(arms, "g", among=np.array([0, 1]))


def test_a_solver_that_breaks_down_is_a_typed_error(arms, monkeypatch):
    def broken(*_):
        raise np.linalg.LinAlgError("the design matrix is singular")

    monkeypatch.setattr("finalist.design.tasks.solve_smooth", broken)
    with pytest.raises(DesignError, match="singular"):
        fl.optimal_design(arms, "g")
