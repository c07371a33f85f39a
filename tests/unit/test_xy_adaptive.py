import numpy as np
import pytest

import finalist as fl
from finalist.errors import NotYetSupportedError, ProblemError
from finalist.problem import Gaussian, as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies import XYAdaptive
from finalist.strategies.phased.xy_adaptive import XYAdaptiveRun, largest_variance, phase_allocation
from finalist.testing.runs import step
from tests import instances


def test_a_phase_is_the_shortest_that_is_accurate_enough():
    arms = fl.Arms(instances.gaussian(12, 3, 0))
    some = (0, 3, 5, 9)
    counts = phase_allocation(arms, some, 0.01)
    design = fl.optimal_design(arms, "xy", 1e-3, among=np.array(some))
    assert largest_variance(arms, np.array(some), counts) <= 0.01
    shorter = fl.round_design(design, int(counts.sum()) - 1)
    assert largest_variance(arms, np.array(some), shorter) > 0.01


def test_phases_have_at_least_the_pulls_that_the_proof_needs():
    assert phase_allocation(fl.Arms.unstructured(3), (0, 1, 2), 1e9).sum() == 13


@pytest.mark.parametrize("alpha", [0.1, 0.4])
def test_every_phase_reduces_the_variance_and_keeps_the_discarded_out(alpha):
    truth = instances.paper(5, 0.1)
    run, log = step(
        XYAdaptive(alpha=alpha), as_problem(fl.Arms(truth.features), sigma=1.0), truth.theta, 0
    )
    assert run.verdict.winner == 0
    replay = XYAdaptive(alpha=alpha).start(as_problem(fl.Arms(truth.features), sigma=1.0))
    before, variance = set(range(6)), 1.0
    for batch, rewards in log:
        alive = np.array(sorted(before))
        reached = largest_variance(fl.Arms(truth.features), alive, batch.counts)
        assert reached <= alpha * variance * (1 + 1e-11)
        replay.record(batch, rewards)
        after = set(replay.verdict.survivors)
        assert after <= before
        before, variance = after, reached


def test_printed_constants_cost_more():
    truth = instances.paper(3, 0.1)
    problem = as_problem(fl.Arms(truth.features), sigma=1.0)
    sharp, _ = step(XYAdaptive(bound="sharp"), problem, truth.theta, 0)
    soare, _ = step(XYAdaptive(bound="soare"), problem, truth.theta, 0)
    assert soare.verdict.pulls > 4 * sharp.verdict.pulls


def test_a_radius_three_times_too_small_is_caught(monkeypatch):
    radius = XYAdaptiveRun._radius
    monkeypatch.setattr(XYAdaptiveRun, "_radius", lambda self, n: radius(self, n) / 3)
    problem, theta = as_problem(fl.Arms.unstructured(4), sigma=1.0), np.array([0.05, 0.0, 0.0, 0.0])
    wrong = sum(step(XYAdaptive(), problem, theta, s)[0].verdict.winner != 0 for s in range(100))
    assert exact_lower_bound(wrong, 100, 0.999) > problem.delta


def test_settings_and_problems_are_checked():
    with pytest.raises(ProblemError, match="alpha"):
        XYAdaptive(alpha=1.0)
    with pytest.raises(ProblemError, match="bound"):
        XYAdaptive(bound="best")  # type: ignore[arg-type]
    with pytest.raises(NotYetSupportedError, match="unknown sigma"):
        XYAdaptive().start(fl.Problem(fl.Arms.unstructured(2), noise=Gaussian(None)))


def test_a_decided_run_has_nothing_left_to_pull():
    run = XYAdaptive().start(as_problem(fl.Arms([[1.0]]), sigma=1.0))
    with pytest.raises(ProblemError, match="decided"):
        run.next()
