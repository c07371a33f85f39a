"""Simulations with a budget: where runs end, what they recommend, and what is kept of them."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError, SimulationError
from finalist.inference.intervals import leaders
from finalist.inference.least_squares import estimate
from finalist.lab import Store
from finalist.lab.blocks import arrays_of, identity, outcomes
from finalist.problem.rules import rules_of
from finalist.simulation.task import make_task
from tests.fakes import Fast, Rounds
from tests.unit.test_simulation import ARMS, ARRAYS, THETA, check_same

HARD = np.array([0.3, 0.2, 0.0])


@pytest.mark.parametrize("name", ["gauntlet", "xy", "v", "uniform", "xy-adaptive"])
def test_a_large_budget_changes_nothing(name):
    plain = fl.simulate(ARMS, THETA, name, runs=12, sigma=0.5)
    other = fl.simulate(ARMS, THETA, name, runs=12, sigma=0.5, budget=10**7)
    check_same(plain, other)
    assert plain.certain.all()
    assert other.certain.all()
    assert (plain.budget, other.budget) == (None, 10**7)


@pytest.mark.parametrize("name", ["gauntlet", "xy", "uniform", "xy-adaptive", fl.FullyAdaptive(2)])
@pytest.mark.parametrize("budget", [2, 7, 61])
def test_a_small_budget_is_used_up_and_ends_with_a_recommendation(name, budget):
    result = fl.simulate(ARMS, HARD, name, runs=12, budget=budget, sigma=1.0)
    assert set(result.samples.tolist()) == {budget}
    assert result.decided.all()
    assert not result.certain.any()
    np.testing.assert_array_equal(result.correct, result.winner == 0)
    assert result.summary().errors == (result.winner != 0).sum() == result.errors


@pytest.mark.parametrize(
    "name", ["xy", "fully-adaptive", "lingape", "lingame", "lazy-ts", "track-and-stop"]
)
def test_playing_recommends_what_stepping_does(name, monkeypatch):
    arms = fl.Arms.unstructured(3) if name == "track-and-stop" else ARMS
    played = fl.simulate(arms, HARD, name, runs=20, budget=90, objective="min", sigma=1.0)
    assert len(set(played.winner.tolist())) > 1
    monkeypatch.setattr("finalist.simulation.task.Playable", type("Nothing", (), {}))
    stepped = fl.simulate(arms, HARD, name, runs=20, budget=90, objective="min", sigma=1.0)
    check_same(played, stepped)


def test_the_recommendation_is_the_best_by_all_rewards(monkeypatch):
    seen = []

    def noted(fit, sign, among, count):
        seen.append((fit, sign, among))
        return leaders(fit, sign, among, count)

    monkeypatch.setattr("finalist.simulation.task.leaders", noted)
    result = fl.simulate(ARMS, HARD, "gauntlet", runs=20, budget=150, sigma=0.3, objective="min")
    open_runs = np.flatnonzero(~result.certain)
    assert len(seen) == len(open_runs) > 0
    assert result.certain.any()
    for run, (fit, sign, among) in zip(open_runs, seen, strict=True):
        assert fit.statistics.pulls == 150
        np.testing.assert_array_equal(fit.statistics.count, result.pulls_per_arm[run])
        assert sign == -1
        means = np.full(3, np.inf)
        means[list(among)] = estimate(ARMS, fit.statistics).means()[list(among)]
        assert result.winner[run] == means.argmin()
    assert any(len(among) < 3 for _, _, among in seen)


def test_some_runs_are_certain_and_others_are_not():
    result = fl.simulate(ARMS, THETA, runs=60, sigma=1.0, budget=80)
    assert 0 < result.certain.sum() < 60
    assert (result.samples[~result.certain] == 80).all()
    assert result.samples[result.certain].max() <= 80


def test_where_nothing_is_planned_for_the_end_a_budget_only_cuts():
    problem = fl.Problem(ARMS, noise=fl.Gaussian(1.0), rules=rules_of(3))
    result = fl.simulate(problem.with_(budget=80), THETA, runs=60)
    free = fl.simulate(problem, THETA, runs=60)
    early = free.samples <= 60  # decided before the budget could cut a batch
    assert 0 < early.sum() < 60
    np.testing.assert_array_equal(free.winner[early], result.winner[early])
    assert result.certain[early].all()


def test_strategies_for_a_budget_are_never_certain():
    result = fl.simulate(ARMS, THETA, "od-linbai", runs=20, sigma=0.1, budget=30)
    assert result.correct.all()
    assert not result.certain.any()
    assert result.summary().certain == 0


@pytest.mark.parametrize("budget", [None, 2000])
def test_a_threshold_without_a_proof_is_never_certain(budget):
    strategy = fl.LazyTS(threshold="heuristic")
    result = fl.simulate(ARMS, THETA, strategy, runs=10, sigma=0.5, budget=budget)
    assert result.decided.all()
    assert not result.certain.any()
    assert fl.simulate(ARMS, THETA, fl.LazyTS(), runs=10, sigma=0.5, budget=budget).certain.all()


def test_tables_mark_a_threshold_without_a_proof():
    strategy = fl.LazyTS(threshold="heuristic")
    text = str(fl.simulate(ARMS, THETA, strategy, runs=4, sigma=0.5).summary())
    assert "of lazy-ts (no proof)\n" in text
    assert "asked for, without a proof, 5.00%" in text
    proven = fl.simulate(ARMS, THETA, "lazy-ts", runs=4, sigma=0.5)
    assert "of lazy-ts\n" in str(proven.summary())
    assert "allowed 5.00%" in str(proven.summary())
    cut = fl.simulate(ARMS, THETA, "uniform", runs=4, max_pulls=9, sigma=1.0).summary()
    assert cut.undecided == 4
    assert "proof" not in str(cut)
    words: dict[str, Any] = {"sigma": 0.5, "theta": THETA, "draws": 2}
    plan = fl.plan(ARMS, strategy=strategy, against="uniform", **words)
    assert [row.name for row in plan.rows] == ["lazy-ts (no proof)", "uniform"]
    both = fl.plan(ARMS, strategy=strategy, against=fl.LazyTS(), **words)
    assert [row.name.endswith(") (no proof)") for row in both.rows] == [True, False]


def test_a_strategy_that_ignores_sizes_is_refused():
    with pytest.raises(SimulationError, match="a batch of 3 with 1 measurement left"):
        fl.simulate(ARMS, THETA, Rounds(rounds=9), runs=1, budget=7, sigma=1.0)
    assert fl.simulate(ARMS, THETA, Rounds(rounds=9), runs=1, budget=6, sigma=1.0).samples[0] == 6
    assert fl.simulate(ARMS, THETA, Fast(rounds=9), runs=1, budget=7, sigma=1.0).samples[0] == 7


def test_wrong_budgets_are_refused():
    for wrong in (0, -5, 2.5, True):
        with pytest.raises(ProblemError, match="budget is"):
            fl.simulate(ARMS, THETA, budget=wrong, runs=1, sigma=1.0)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="give budget="):
        fl.simulate(ARMS, THETA, "od-linbai", runs=1, sigma=1.0)
    with pytest.raises(ProblemError, match="needs at least 7"):
        fl.simulate(ARMS, THETA, "od-linbai", runs=1, budget=3, sigma=1.0)


def test_the_summary_says_what_is_guaranteed_and_what_is_not():
    text = str(fl.simulate(ARMS, HARD, "gse", runs=40, budget=30, sigma=1.0).summary())
    assert "wrong candidate" in text
    assert "exact 95 %" in text
    assert "allowed" not in text
    assert "0 of 40" in text.split("certain")[1]
    plain = str(fl.simulate(ARMS, THETA, runs=5, sigma=0.1).summary())
    assert "allowed 5.00%" in plain
    assert "certain" not in plain


def test_processes_frames_and_merging_keep_it(tmp_path):
    one = fl.simulate(ARMS, HARD, runs=16, budget=60, sigma=0.3)
    two = fl.simulate(ARMS, HARD, runs=16, budget=60, sigma=0.3, n_jobs=2)
    check_same(one, two)
    np.testing.assert_array_equal(one.certain, two.certain)
    back = fl.Simulation.from_frame(
        one.to_frame(), name=one.name, strategy=one.strategy, delta=0.05, seed=0, budget=60
    )
    check_same(one, back)
    np.testing.assert_array_equal(one.certain, back.certain)
    assert back.budget == 60
    assert "certain" in one.to_frame()
    with pytest.raises(SimulationError, match="different budget"):
        one.merge(fl.simulate(ARMS, HARD, runs=16, budget=61, sigma=0.3))


#: For each setting of a problem and of a task that a run depends on, another value.
OTHERS: dict[str, Any] = {
    "noise": fl.Gaussian(2.0),
    "goal": fl.EpsilonBest(0.1),
    "delta": 0.1,
    "objective": "min",
    "cost": 2.0,
    "batch_intercept": True,
    "misspecification": 0.1,
    "max_pulls_per_arm": 7,
    "budget": 30,
    "check": 0.03,
}
TASK_OTHERS: dict[str, Any] = {"shift": 0.5, "size": 4, "noise": 0.7, "seed": 1, "max_pulls": 9}


def test_a_store_keeps_every_setting_apart():
    words: dict[str, Any] = {"rewards": None, "seed": 0, "max_pulls": 10**9}
    plain = make_task(ARMS, THETA, "gauntlet", sigma=1.0, **words)
    # Candidates are among the arms, a unit changes no run, and rules are beside the identity.
    elsewhere = {"arms", "candidates", "unit", "mean", "rules"}
    assert set(OTHERS) | elsewhere == {field.name for field in fields(plain.problem)}
    tasks = [replace(plain, problem=replace(plain.problem, **{k: v})) for k, v in OTHERS.items()]
    tasks += [replace(plain, **{name: value}) for name, value in TASK_OTHERS.items()]
    found = [str(identity(task)) for task in (plain, *tasks)]
    assert len(set(found)) == len(found)


def test_a_store_keeps_budgets_apart_and_old_results_readable(tmp_path):
    plain = make_task(ARMS, THETA, "uniform", rewards=None, seed=0, max_pulls=10**9, sigma=1.0)
    words = "kind features theta strategy noise goal delta objective rewards seed max_pulls"
    assert list(identity(plain)) == words.split()
    old = arrays_of([plain.run(i) for i in range(5)])
    del old["certain"]  # as versions before had it
    assert [o.certain for o in outcomes(old)] == [True] * 5
    with Store(tmp_path / "results.db") as results:
        free = results.simulate(ARMS, HARD, "gse", runs=6, budget=20, sigma=1.0)
        more = results.simulate(ARMS, HARD, "gse", runs=6, budget=21, sigma=1.0)
        again = results.simulate(ARMS, HARD, "gse", runs=6, budget=20, sigma=1.0)
        assert len(results) == 2
    for word in (*ARRAYS, "certain", "seconds"):
        np.testing.assert_array_equal(getattr(free, word), getattr(again, word))
    assert set(more.samples.tolist()) == {21}
