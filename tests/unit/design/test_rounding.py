import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import finalist as fl
from finalist.design import design_value
from finalist.errors import DesignError
from tests import instances


@st.composite
def designs(draw):
    raw = draw(
        st.lists(st.floats(0.0, 1.0).filter(lambda x: x == 0 or x > 1e-9), min_size=1, max_size=12)
    )
    weights = np.array([*raw, 0.5])
    return weights / weights.sum()


@given(designs(), st.integers(0, 200))
def test_sum_is_exact_and_every_support_point_is_pulled(weights, extra):
    p = np.count_nonzero(weights)
    counts = fl.round_design(weights, p + extra)
    assert counts.sum() == p + extra
    np.testing.assert_array_equal(counts > 0, weights > 0)


@given(designs(), st.integers(0, 60))
def test_one_more_pull_adds_exactly_one(weights, extra):
    n = np.count_nonzero(weights) + extra
    step = fl.round_design(weights, n + 1) - fl.round_design(weights, n)
    assert sorted(step)[-1] == 1
    assert step.sum() == 1
    assert step.min() == 0


def adams(weights, n):
    """The definition, one pull at a time: always the smallest n_i / lam_i."""
    counts = (weights > 0).astype(int)
    while counts.sum() < n:
        ratio = np.where(weights > 0, counts / np.where(weights > 0, weights, 1.0), np.inf)
        counts[int(np.argmin(ratio))] += 1
    return counts


@given(designs(), st.integers(0, 100))
def test_equals_the_slow_definition(weights, extra):
    n = np.count_nonzero(weights) + extra
    ours, slow = fl.round_design(weights, n), adams(weights / weights.sum(), n)
    # Equal up to ties in n_i / lam_i that rounding errors decide.
    np.testing.assert_allclose(
        np.sort(ours[ours > 0] / weights[ours > 0]).max(),
        np.sort(slow[slow > 0] / weights[slow > 0]).max(),
        rtol=1e-9,
    )


@pytest.mark.parametrize("criterion", ["g", "xy", "v"])
@pytest.mark.parametrize("factor", [1.2, 2, 5, 50])
def test_loss_is_within_the_guarantee(criterion, factor):
    arms = fl.Arms(instances.gaussian(60, 4, 2))
    design = fl.optimal_design(arms, criterion)
    p = len(design.support)
    n = int(np.ceil(factor * p))
    counts = fl.round_design(design, n)
    assert design_value(arms, counts / n, criterion) <= design.value / (1 - p / n)


def test_the_papers_bound_is_broken_where_ours_holds():
    # e1..e3 with 5 pulls: 5 > (1 + 3/5) * 3 = 4.8, but 5 <= 3 / (1 - 3/5) = 7.5.
    arms = fl.Arms.unstructured(3)
    counts = fl.round_design(fl.optimal_design(arms, "g"), 5)
    value = design_value(arms, counts / 5, "g")
    assert value == pytest.approx(5.0)
    assert value > (1 + 3 / 5) * 3


def test_too_few_pulls_names_the_smallest_number():
    with pytest.raises(DesignError, match="smallest number of pulls is 3"):
        fl.round_design(np.full(3, 1 / 3), 2)


@pytest.mark.parametrize("pulls", [2.5, "ten", None])
def test_pulls_are_whole_numbers(pulls):
    with pytest.raises(DesignError, match="whole number"):
        fl.round_design(np.full(3, 1 / 3), pulls)


def test_huge_numbers_of_pulls_are_immediate():
    counts = fl.round_design(np.array([0.1, 0.2, 0.7]), 10**15)
    assert counts.sum() == 10**15
