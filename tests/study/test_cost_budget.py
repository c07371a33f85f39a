"""Budgets in cost: what is planned, batches that fit into what is left, and the end."""

import numpy as np
import pytest

import finalist as fl
from finalist.problem.budget import cheapest, in_cost, prices_of
from finalist.problem.rules import rules_of
from finalist.strategies.affordable import affordable
from finalist.study import Study
from tests.cli.common import run
from tests.study.lab import Lab
from tests.web.labs import person

SIX = fl.Arms.unstructured(list("abcdef"))
MEANS = np.array([1.0, 0.8, 0.7, 0.1, 0.0, -0.2])
COSTS = (1.0, 1.0, 2.5, 2.5, 4.0, 0.5)
LAB = Lab(SIX, MEANS, 1.0, 4)


def create(where, name="one", strategy="gauntlet", **words):
    given = {"sigma": 1.0, "cost": COSTS, "budget": 90, "delta": 1e-4, "seed": 5, **words}
    return Study.create(where, name, SIX, strategy, **given)


def spend(study, size):
    """Measure until nothing is left; return the cost of each batch."""
    costs: list[float] = []
    for _ in range(500):
        batch = study.ask(size=size)
        if not batch:
            return costs, batch.state
        costs.append(sum(COSTS[SIX.index(pull.arm)] for pull in batch))
        study.tell(LAB.rewards(batch))
    raise AssertionError("it does not end")


@pytest.fixture
def where(tmp_path):
    return tmp_path / "lab.db"


@pytest.mark.parametrize("strategy", ["gauntlet", "uniform", "xy"])
@pytest.mark.parametrize("size", [None, 1, 7, 24])
@pytest.mark.parametrize("more", [{}, {"sigma": None}, {"max_pulls_per_arm": 9}], ids=str)
def test_never_more_than_the_budget_and_hardly_less(where, strategy, size, more):
    if strategy != "gauntlet" and more:
        return
    with create(where, strategy=strategy, **more) as study:
        costs, state = spend(study, size)
        status = study.status(forecast=False)
        assert sum(costs) <= 90
        assert status.budget_left == pytest.approx(90 - sum(costs))
        assert (status.budget_in, status.risk) == ("cost", 1e-4)
        assert status.recommendation is not None
        assert state in ("budget", "stopped", "exhausted")
        if not more:
            assert status.budget_left < max(COSTS)  # the next pull does not fit


def test_simulation_and_study_spend_alike():
    problem = fl.Problem(SIX, noise=fl.Gaussian(1.0), cost=COSTS, budget=90, delta=1e-4)
    for strategy in ("gauntlet", "uniform"):
        found = fl.simulate(problem, MEANS, strategy, runs=20)
        spent = found.pulls_per_arm @ np.array(COSTS)
        assert (spent <= 90).all()
        assert spent.mean() > 86
        assert (found.winner >= 0).all()


def test_cheap_arms_are_measured_where_they_tell_as_much():
    """Two ways to measure each of three candidates, one of them four times as costly."""
    X = np.vstack([np.eye(3), np.eye(3) + 1e-9 * np.arange(9).reshape(3, 3)])
    arms, cost = fl.Arms(X), [1.0] * 3 + [4.0] * 3
    problem = fl.Problem(arms, noise=fl.Gaussian(1.0), cost=cost, budget=200, delta=1e-6)
    found = fl.simulate(problem, [0.5, 0.2, 0.0], "gauntlet", runs=20)
    assert found.pulls_per_arm[:, :3].mean() > 10 * found.pulls_per_arm[:, 3:].mean()


def test_planning_by_cost_is_right_more_often_than_equal_shares():
    """The rivals of the leader are cheap, and one that is far behind is costly."""
    cost, means, runs = [1.0] * 5 + [8.0], np.array([0.5, 0.2, 0.1, 0.1, 0.0, 0.0]), 300
    ours = fl.Problem(SIX, noise=fl.Gaussian(1.0), delta=1e-6, cost=cost, budget=150)
    right = fl.simulate(ours, means, "gauntlet", runs=runs).correct.mean()
    equal = fl.simulate(ours, means, "uniform", runs=runs).correct.mean()
    assert right > equal + 0.05


def test_one_cost_for_all_is_a_number_of_pulls():
    plain = fl.Problem(SIX, noise=fl.Gaussian(1.0), budget=40, delta=1e-6)
    double = fl.Problem(SIX, noise=fl.Gaussian(1.0), budget=80, delta=1e-6, cost=2.0)
    one, two = (fl.simulate(p, MEANS, "gauntlet", runs=5) for p in (plain, double))
    assert (one.samples == two.samples).all()
    assert (one.winner == two.winner).all()


def test_studies_of_earlier_rules_count_pulls():
    old = fl.Problem(SIX, noise=fl.Gaussian(1.0), cost=COSTS, budget=30, rules=rules_of(3))
    assert not in_cost(old)
    assert prices_of(old).tolist() == [1.0] * 6
    assert (fl.simulate(old, MEANS, "uniform", runs=3).samples == 30).all()
    new = old.with_(rules=rules_of(4))
    assert in_cost(new)
    assert cheapest(new) == pytest.approx(0.5)


def test_the_largest_batch_that_fits_is_found():
    problem = fl.Problem(SIX, noise=fl.Gaussian(1.0), cost=COSTS, budget=90)
    run_ = fl.Uniform().start(problem)
    prices = np.array(COSTS)
    for left in (0.4, 1.0, 3.3, 9.0, 11.5, 23.0, 1e9):
        batch = affordable(run_, 24, left, prices)
        sizes = [n for n in range(1, 25) if run_.next(n).counts @ prices <= left]
        assert (0 if batch is None else batch.size) == max(sizes, default=0)


def test_what_does_not_pay_for_the_next_pull_ends_a_study_with_the_reason(where):
    with create(where, budget=20, cost=(3.0, 7.0, 7.0, 7.0, 7.0, 7.0)) as study:
        _, state = spend_any(study)
        assert state in ("stopped", "budget")
        status = study.status(forecast=False)
        assert status.recommendation is not None
        if state == "stopped":
            assert "does not pay for the next measurement" in status.sentence


def spend_any(study):
    while batch := study.ask(size=2):
        study.tell(LAB.rewards(batch))
    return None, batch.state


def test_it_is_said_in_cost_everywhere_and_can_change(where):
    with create(where, unit="kg") as study:
        for _ in range(3):
            study.tell(LAB.rewards(study.ask(size=6)))
        left = study.status(forecast=False).budget_left
        assert study.status(forecast=False).outlook.to_come > 10
        assert "a cost of 200. Before, the budget is a cost of 90." in study.set_budget(200)
        assert study.status(forecast=False).budget_left == pytest.approx(left + 110)
        with pytest.raises(fl.errors.StudyError, match=r"handed out already: a cost of"):
            study.set_budget(2)
        study.set_budget(90)
    assert "of the budget is left" in run("status", "one", "--no-forecast", "--db", where).output
    with person(where) as somebody:
        assert "a cost of 90" in somebody.get("/studies/1").text


def test_lost_and_repeated_pulls_cost_once_more_or_less(where):
    with create(where) as study:
        batch = study.ask(size=6)
        before = study.status(forecast=False).budget_left
        study.void(batch[0].pull_id, "broke")  # measured again: the first is free
        assert study.status(forecast=False).budget_left == before
        study.missing(batch[1].pull_id, "lost")  # was made, so it counts
        assert study.status(forecast=False).budget_left == before


def test_a_plan_with_a_budget_in_cost(where):
    found = fl.plan(SIX, sigma=1.0, gap=0.5, cost=COSTS, budget=90, draws=10)
    assert found.words().startswith("With a budget of 90 the study names the right one")
    assert found.named[0].right <= 10
