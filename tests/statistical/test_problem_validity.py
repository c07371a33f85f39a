"""A small part of `problem_validity` for every change; `make validate` runs all of it."""

from dataclasses import replace

import pytest

from finalist.simulation.binomial import exact_lower_bound
from tests.statistical.gauntlet_validity import CONFIDENCE
from tests.statistical.problem_validity import CASES, block

RUNS, BATCHES = 40, 16


SHORT = [case for case in CASES if case.part == 1.0]  # the others show nothing in so few runs


@pytest.mark.parametrize("case", SHORT, ids=lambda case: f"{case.name}, {case.delta}")
def test_what_is_true_is_rejected_with_probability_delta_at_most(case):
    batches = BATCHES if case.honest else case.batches  # it takes time until what is ignored shows
    count = sum(block(replace(case, batches=batches), 0, RUNS))
    kept = exact_lower_bound(count, RUNS, CONFIDENCE) <= case.bound
    assert kept is case.honest, f"{count} of {RUNS}"
