"""A small version of `model_validity`: real runs, exact bounds, and the broken twin is caught."""

import pytest

from finalist.inference.bending import ALARM
from finalist.simulation.binomial import exact_lower_bound
from tests.statistical.model_validity import CASES, CONFIDENCE, TWINS, count

PROVEN = [case for case in CASES if case.proven]


@pytest.mark.parametrize("case", PROVEN, ids=lambda case: case.name)
def test_a_right_model_is_rarely_called_wrong(case):
    runs = 60
    assert exact_lower_bound(count(None, case, runs), runs, CONFIDENCE) <= ALARM


def test_a_prior_that_has_seen_its_block_is_caught():
    runs, unknown = 150, TWINS[1]
    assert exact_lower_bound(count(None, unknown, runs), runs, CONFIDENCE) > ALARM
