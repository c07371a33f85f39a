"""V-allocation: its pulls against cvxpy and closed forms, and wherever a strategy has a name.

The stopping rule is that of `test_static`.
"""

from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.problem import as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import VAllocation
from finalist.strategies.static.static import StaticRun
from tests import instances, referees
from tests.unit.test_static import endless, twin

#: Three candidates that one feature describes, and one that is alone.
CROWD = np.array([[1.0, 0.0], [0.9, 0.0], [0.8, 0.0], [0.0, 1.0]])
FAMILIES = {
    "gaussian": instances.gaussian(14, 3, 0),
    "sphere": instances.unit_sphere(14, 3, 2),
    "paper": instances.paper(3, 0.1).features,
    "factorial": instances.one_hot_factorial((2, 3)),
    "crowd": CROWD,
}


def first_pulls(X: np.ndarray, n: int, **settings: Any) -> np.ndarray:
    return VAllocation(**settings).start(as_problem(fl.Arms(X), sigma=1.0)).next(n).counts


@pytest.mark.parametrize("name", FAMILIES)
def test_the_first_pulls_are_optimal_up_to_rounding(name):
    X = FAMILIES[name]
    best = referees.optimum(X, "v")  # by cvxpy
    p = int((first_pulls(X, 5000) > 0).sum())
    for n in (p + 1, 2 * p, 100, 5000):
        value = referees.criterion_value(X, first_pulls(X, n) / n, "v")
        assert best.lower_bound * (1 - 1e-9) <= value <= best.value * (1 + 2e-6) * n / (n - p)


@pytest.mark.parametrize("name", FAMILIES)
def test_greedy_pulls_are_nearly_optimal(name):
    X = FAMILIES[name]
    counts = first_pulls(X, 2000, allocation="greedy")
    value = referees.criterion_value(X, counts / 2000, "v")
    assert value <= 1.01 * referees.optimum(X, "v").value


@pytest.mark.parametrize("allocation", ["relaxed", "greedy"])
def test_a_crowd_gets_the_root_of_its_weight(allocation):
    # With share q on the first arm the mean is (2.45 / q + 1 / (1 - q)) / 4, 2.45 being 1 + .81
    # + .64: smallest at q : 1 - q = sqrt(2.45) : 1. G has 1 : 1, whatever the crowd.
    counts = first_pulls(CROWD, 10_000, allocation=allocation)
    share = np.sqrt(2.45) / (1 + np.sqrt(2.45))
    np.testing.assert_allclose(counts / 10_000, [share, 0, 0, 1 - share], atol=5e-4)
    assert fl.optimal_design(fl.Arms(CROWD), "g").weights[0] == pytest.approx(0.5, abs=1e-3)


def test_it_has_the_smallest_mean_variance_and_not_the_smallest_largest_one():
    arms = fl.Arms(instances.gaussian(40, 4, 3))
    designs = {rule: fl.optimal_design(arms, rule).weights for rule in ("g", "xy", "v")}
    value = {
        (rule, of): referees.criterion_value(arms.features, weights, of)
        for rule, weights in designs.items()
        for of in designs
    }
    for of in designs:
        assert min(designs, key=lambda rule: value[rule, of]) == of


def test_the_printed_bound_is_used():
    X, theta = np.eye(3), np.array([0.9, 0.1, 0.0])
    problem = as_problem(fl.Arms(X), sigma=0.3, delta=0.1)
    run = VAllocation("soare").start(problem)
    counts = run.play(DrawnRewards(theta, 0.3, "gaussian", np.random.default_rng(0)), 10**5)
    slow = DrawnRewards(theta, 0.3, "gaussian", np.random.default_rng(0))
    sequence = endless(fl.optimal_design(fl.Arms(X), "v"))
    winner, expected = twin(X, sequence, slow, problem, "soare", 10**5)
    assert run.verdict.winner == winner == 0
    np.testing.assert_array_equal(counts, expected)


def test_a_study_with_it_finds_the_best_arm_and_comes_back(tmp_path):
    arms, theta = fl.Arms(CROWD, names=list("abcd")), np.array([1.0, 0.2])
    rng, where = np.random.default_rng(3), str(tmp_path / "lab.db")
    study = fl.Study.create(where, "one", arms, "v", sigma=0.1, seed=1)
    means = dict(zip(arms.names, arms.means(theta), strict=True))
    while batch := study.ask(24):
        told = {pull.pull_id: means[pull.arm] + 0.1 * rng.standard_normal() for pull in batch}
        study.tell(told)
        study = fl.Study.open(where, "one")
    assert study.status().winner == "a"


def test_it_is_known_by_name():
    result = fl.simulate(fl.Arms(CROWD), [1.0, 0.2], "v", sigma=0.3, runs=20)
    assert result.correct.all()
    design = fl.optimal_design(fl.Arms(CROWD), "v")
    for counts in result.pulls_per_arm:
        np.testing.assert_array_equal(counts, fl.round_design(design, int(counts.sum())))
    plan = fl.plan(fl.Arms(CROWD), sigma=0.3, gap=0.2, draws=4, strategy="v", against=("xy",))
    assert [row.name for row in plan.rows] == ["v", "xy"]
    assert fl.VAllocation is VAllocation
    assert isinstance(VAllocation().start(as_problem(fl.Arms(CROWD), sigma=1.0)), StaticRun)
