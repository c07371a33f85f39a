"""Levels of the gauntlet's bets, against numbers worked out by hand.

A p-value is never below the level of its test: bets end there. After rewards that leave no doubt
it is the level itself, which shows what a run really tests at.
"""

import math
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.problem.rules import rules_of
from finalist.strategies.gauntlet.bets import Bets
from tests.unit.boundaries import problem_of, tell


def after_pilot(problem: fl.Problem) -> Any:
    """Return a run whose pilot says nothing."""
    return through_pilot(fl.Gauntlet().start(problem))


def through_pilot(run: Any) -> Any:
    """Tell a run that nothing shows until it tests."""
    while (batch := run.next()).note["kind"] != "test":
        tell(run, batch.counts, np.zeros(len(batch.counts)), **batch.note)
    return run


def clearly(run: Any, means: list[float], **attack: Any) -> Any:
    """Tell a run the rewards of a batch that leave no doubt: sigma is 2, the pulls are many."""
    K = len(means)
    note = run.next(100 * K).note
    if "epoch" in note:
        plan = {"pulled": list(range(K)), "times": [100] * K, "later": []}
        note = {**note, "epoch": {**note["epoch"], **plan}}
        note["epoch"]["attack"] = {**note["epoch"]["attack"], **attack}
    else:
        note = {**note, **attack}
    tell(run, [100] * K, means, **note)
    return run


def attacks(batch: Any) -> Any:
    """Return the part of a note that says who attacks whom."""
    return batch.note["epoch"]["attack"] if "epoch" in batch.note else batch.note


@pytest.fixture(autouse=True, params=[2, 3], ids=["batches", "epochs"])
def _rules(request, monkeypatch):
    by_rules = partial(problem_of, rules=rules_of(request.param))
    monkeypatch.setattr(sys.modules[__name__], "problem_of", by_rules)


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({}, 0.05),  # one test for each arm, no union: delta
        ({"goal": fl.EpsilonBest(0.5)}, None),  # delta / 2 for elimination, or a share of capital
        ({"objective": "min"}, 0.05),
    ],
    ids=["best", "epsilon", "min"],
)
def test_level_of_elimination(settings, level):
    run, sign = after_pilot(problem_of(**settings)), -1 if "objective" in settings else 1
    clearly(run, [50.0 * sign, 49.0 * sign, 0.0], rivals=[-1, -1, 0])
    evidence = run.evidence()
    if level is None:
        level = 0.05 if run._problem.rules.epochs else 0.025
    assert evidence.rejected.tolist() == [False, False, True]
    assert evidence.p_value[2] == pytest.approx(level, rel=1e-12)
    assert run.verdict.survivors == (0, 1)


def test_evidence_just_below_the_level_rejects_nobody():
    # log(1 / 0.05) = 2.99573227
    for log_m, rejected in ((2.9957322, False), (2.9957323, True)):
        run = after_pilot(problem_of())
        run._claims.bets.log_m[2] = log_m
        assert bool(run.evidence().rejected[2]) == rejected
        clearly(run, [0.0, 0.0, 0.0], rivals=[-1, -1, -1])
        assert run.verdict.survivors == ((0, 1) if rejected else (0, 1, 2))


# The other half of delta is for "the leader is good enough", delta / (2 j (j + 1)) for the j-th
# leader, which sums to delta / 2: 0.05 / 4, 0.05 / 12, 0.05 / 24.
LEADERS = (0.0125, 0.05 / 12, 0.05 / 24)


@pytest.mark.parametrize("_rules", [2], indirect=True, ids=["batches"])
def test_levels_of_leaders(monkeypatch):
    against, levels = Bets.against, []

    def noted(arms: int, delta: float, *more: Any) -> Bets:
        levels.append(delta)
        return against(arms, delta, *more)

    monkeypatch.setattr(Bets, "against", noted)
    run = after_pilot(problem_of(goal=fl.EpsilonBest(0.5)))
    for leader in (2, 0, 2, 1):  # a leader that comes back keeps its bets
        clearly(run, [0.0] * 3, leader=leader, rivals=[-1] * 3)
    assert levels == pytest.approx([0.025, *LEADERS], rel=1e-12)


@pytest.mark.parametrize("_rules", [2], indirect=True, ids=["batches"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_leader_wins_at_its_level(place, monkeypatch):
    # The evidence for leader 0 as the first, second or third one: below the level, then above.
    for factor, winner in ((1 - 1e-9, None), (1 + 1e-9, 0)):
        run = after_pilot(problem_of(goal=fl.EpsilonBest(1e-9)))
        for leader in (1, 2)[:place]:
            clearly(run, [0.0] * 3, leader=leader, rivals=[-1] * 3)
        clearly(run, [0.0] * 3, leader=0, rivals=[-1] * 3)
        run._claims.leaders[0].log_m[1:] = -math.log(LEADERS[place]) * factor
        with monkeypatch.context() as patched:  # nothing is said now
            for name in ("place", "place_along"):
                patched.setattr(Bets, name, lambda *_: None)
            clearly(run, [0.0] * 3, leader=0, rivals=[-1] * 3)
        assert run.verdict.winner == winner


def test_levels_of_sets_and_of_pairs():
    # The 2 best of 4: 6 sets, one test each at delta, no union.
    run = after_pilot(problem_of(fl.Arms.unstructured(4), goal=fl.TopM(2)))
    batch = run.next(400)
    # Every set is attacked by arm 0 or 1 from outside; {0, 1} by arm 2, which is worse.
    sets = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    inside = [(2, 0), (1, 2), (1, 3), (0, 2), (0, 3), (0, 2)]
    assert len(attacks(batch)["pairs"]) == len(sets)
    clearly(run, [50.0, 50.0, 0.0, 0.0], pairs=[list(p) for p in inside])
    assert run.verdict.winners == (0, 1)
    assert run.evidence().p_value[2:] == pytest.approx([0.05, 0.05], rel=1e-12)
    # The 5 best of 20 are 15504 sets: pairs, at delta / (5 * 15) = 0.05 / 75. An arm that belongs
    # to the best is out by the largest of 15 true claims: its p-value is 15 * 0.05 / 75.
    run = after_pilot(problem_of(fl.Arms.unstructured(20), goal=fl.TopM(5)))
    clearly(run, [50.0] * 5 + [0.0] * 15, pairs=[list(pair) for pair in every_pair(20)])
    assert sorted(run.verdict.winners) == [0, 1, 2, 3, 4]
    assert run._claims.bets.limit == pytest.approx([math.log(75 / 0.05)] * 380, rel=1e-12)
    assert run.evidence().p_value[5:] == pytest.approx([0.01] * 15, rel=1e-12)


def every_pair(C: int) -> list[tuple[int, int]]:
    """Return (a, x) for all claims "x is not worse than a"."""
    return [(a, x) for x in range(C) for a in range(C) if a != x]


def test_levels_after_arms_have_changed():
    # New arms are tested at the level given, old ones as before; with epsilon at half of both, or
    # with a share of their capital.
    half = 1.0 if problem_of().rules.epochs else 0.5
    goals: tuple[tuple[Any, float], ...] = ((fl.Best(), 1.0), (fl.EpsilonBest(0.5), half))
    for goal, share in goals:
        run = after_pilot(problem_of(goal=goal))
        four = problem_of(fl.Arms.unstructured(4), goal=goal)
        new = run.changed(four, np.array([0, 1, 2, -1]), 0.0125, afresh=False)
        clearly(through_pilot(new), [50.0, 49.0, 0.0, 0.0], rivals=[-1, -1, 0, 0])
        p = new.evidence().p_value
        assert p[2:] == pytest.approx([0.05 * share, 0.0125 * share], rel=1e-12)
        begun = run.changed(problem_of(goal=goal), np.arange(3), 0.0125, afresh=True)
        clearly(through_pilot(begun), [50.0, 49.0, 0.0], rivals=[-1, -1, 0])
        assert begun.evidence().p_value[2] == pytest.approx(0.0125 * share, rel=1e-12)


def test_levels_of_a_study_whose_arms_change(tmp_path):
    # delta / 2^stage: 0.05, then 0.025, 0.0125 and 0.00625; what they add up to is the risk.
    arms = fl.Arms(np.eye(4), names=["a", "b", "c", "d"])
    with fl.Study.create(tmp_path / "lab.db", "s", arms, sigma=2.0, delta=0.05) as study:
        for stage, name in enumerate(("d", "c"), start=1):
            study.withdraw(name)
            body = [e for e in study.history() if e["kind"] == "changed"][-1]
            assert body["level"] == 0.05 / 2**stage
        assert study.status(forecast=False).risk == pytest.approx(0.05 + 0.025 + 0.0125)
