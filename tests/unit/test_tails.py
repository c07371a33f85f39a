"""What is usual has tails far above the levels of all tests, by SciPy."""

import math

import numpy as np
import pytest
from scipy.special import chdtr, chdtrc, fdtrc

from finalist.inference.tails import LEAST, is_usual, is_usual_ratio
from finalist.strategies.gauntlet.past import CONTRADICTION
from finalist.study.checks import ALARM

FREEDOMS = [*range(1, 60), 75, 100, 200, 500, 1000, 10_000, 10**6, 10**8]


def test_all_levels_are_below_the_tails():
    assert max(ALARM, CONTRADICTION) <= LEAST / 2


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_both_tails_of_what_is_usual(freedom):
    spread = math.sqrt(2.0 * freedom)
    scores = np.abs(freedom + spread * np.linspace(-9.0, 9.0, 3001))
    usual = np.array([is_usual(freedom, score) for score in scores.tolist()])
    tails = np.minimum(chdtr(freedom, scores), chdtrc(freedom, scores))
    assert (tails[usual] > LEAST).all()
    assert usual[tails > 0.05].all()  # most are judged


@pytest.mark.parametrize("above", FREEDOMS)
def test_the_tail_of_a_usual_ratio(above):
    ratios = np.concatenate([np.linspace(0.0, 6.0, 601), np.geomspace(6.0, 1e6, 100)])
    for below in FREEDOMS:
        usual = np.array([is_usual_ratio(above, below, ratio) for ratio in ratios.tolist()])
        tails = fdtrc(above, below, ratios)
        assert (tails[usual] > LEAST).all(), below
        assert usual[tails > 0.05].all() or below < 10, below


def test_no_number_is_usual():
    assert not is_usual(3, math.nan)
    assert not is_usual(3, math.inf)
    assert not is_usual_ratio(3, 30, math.nan)
    assert not is_usual_ratio(3, 30, math.inf)
