"""Intervals of a study whose noise is not known."""

import numpy as np
import pytest

import finalist as fl
from finalist.inference.intervals import start_of
from finalist.inference.leads import leads
from finalist.inference.mixtures import Batches
from finalist.study import Study
from finalist.study.estimates import _bets
from tests.study.lab import Lab


def create(where, arms, name="one"):
    return Study.create(where, name, arms, sigma=None, seed=7)


def test_as_many_pulls_as_dimensions_with_an_unknown_sigma(where):
    study = create(where, fl.Arms.unstructured(3))
    study.tell({p.pull_id: float(p.pull_id) for p in study.ask(3)})
    status = study.status()
    assert status.forecast is None
    assert all(arm.low is None for arm in status.arms)


def test_equal_rewards_and_an_unknown_sigma_give_no_interval(where):
    study = create(where, fl.Arms.unstructured(2))
    for _ in range(3):
        study.tell(dict.fromkeys([p.pull_id for p in study.ask(8)], 5.0))
    assert "+-" not in study.status(forecast=False).sentence


def test_intervals_with_an_unknown_sigma_cover(tmp_path):
    missed = 0
    for seed in range(60):
        lab = Lab(fl.Arms.unstructured(2), np.array([1.0, 0.0]), 1.0, seed)
        study = create(tmp_path / "lab.db", fl.Arms.unstructured(2), f"s{seed}")
        for _ in range(6):
            if not (batch := study.ask(3)):
                break
            study.tell(lab.rewards(batch))
            for arm in study.status(forecast=False).arms:
                if arm.low is not None and not arm.low <= lab.means[arm.name] <= arm.high:
                    missed += 1
                    break
        study.close()
    assert missed <= 6  # 5 % of 60 is 3; an estimated sigma taken as it is misses 8 and more


def decided(where, **words):
    """A study of three arms with a winner, and the truth."""
    lab = Lab(fl.Arms.unstructured(3), np.array([1.5, 0.0, 0.5]), 1.0, 3)
    study = Study.create(where, "three", fl.Arms.unstructured(3), seed=7, **words)
    while batch := study.ask():
        study.tell(lab.rewards(batch))
    return study


def test_the_winner_leads_by_what_bets_and_the_ellipsoid_say(where):
    study = decided(where, sigma=1.0)
    seen, state = study.snapshot(), study._log.now()
    sums = Batches(state.problem, state.measured)
    won = leads(seen.fit, 0, start_of(seen.problem), 0.95, 1.0, sums, sign=1, won=True)
    np.testing.assert_array_equal(seen.leads.low, np.maximum(won.low, 0.0))  # it has won
    np.testing.assert_array_equal(seen.leads.high, won.high)
    first, second, third = study.status().arms
    assert (first.behind, first.behind_low, first.behind_high) == (None, None, None)
    assert (second.behind_low, third.behind_high) == (won.low[1], won.high[2])
    assert (won.low[2] < 0.0, third.behind_low) == (True, 0.0)  # tests said what this did not
    assert second.behind_low <= 1.5 <= second.behind_high
    # The run itself leaves out the epoch in which it decided: nothing fixed where that would end.
    run = state.run.leads()
    assert np.all(run.low[1:] <= won.low[1:])
    assert run.low[1] <= 1.5 <= run.high[1]


@pytest.mark.parametrize(
    "words",
    [{"sigma": 1.0, "epsilon": 0.3}, {"sigma": 1.0, "strategy": fl.LazyTS(threshold="heuristic")}],
)
def test_without_proof_that_a_winner_is_the_best_there_are_no_bets_on_its_leads(where, words):
    study = decided(where, **words)
    seen = study.snapshot()
    none = Batches(seen.problem, None)
    start = start_of(seen.problem)
    wide = leads(seen.fit, seen.recommendation, start, 0.95, 1.0, none, sign=1, won=True)
    least = -words["epsilon"] if "epsilon" in words else -np.inf  # it is within that of the best
    np.testing.assert_array_equal(seen.leads.low, np.maximum(wide.low, least))


def test_pulls_given_up_late_leave_the_bets_out(where):
    study = Study.create(where, "late", fl.Arms.unstructured(3), sigma=1.0, seed=7)
    batch = study.ask(12)
    study.tell({p.pull_id: float(p.pull_id % 2) for p in list(batch)[:-1]})
    before = _bets(study._log.now())
    study.missing(list(batch)[-1].pull_id, "lost")
    after = _bets(study._log.now())
    assert before is not None
    assert after is not None
    assert before.sums is not None
    assert after.sums is None
    assert study.status(forecast=False).arms[0].low is not None


def test_a_study_that_goes_on_has_no_leads(where):
    study = create(where, fl.Arms.unstructured(3))
    assert study.snapshot().leads is None
    assert study.status(forecast=False).arms[0].behind is None
