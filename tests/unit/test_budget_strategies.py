"""Strategies for a fixed budget against plain re-derivations and numbers by hand."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest

import finalist as fl
from finalist.design import Design, design_value
from finalist.inference.information import information
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import Batch, named
from finalist.strategies.budget.eliminations import rounded, split, survivor_design
from finalist.strategies.budget.od_linbai import kept, rounding_allowance
from finalist.strategies.budget.peace import difference_design, most_phases, shortened
from tests import instances, referees
from tests.contracts.test_budget_strategies import spend, start

D = 10
PAPER = fl.Arms(np.vstack([np.eye(D), [math.cos(0.1), math.sin(0.1), *[0.0] * (D - 2)]]))


def phases(log):
    """Return for each phase its pulls, its survivors and its rewards."""
    found: dict[int, list[tuple[Batch, Statistics]]] = {}
    for batch, rewards in log:
        found.setdefault(batch.note["phase"], []).append((batch, rewards))
    return [found[number] for number in sorted(found)]


def plain_ranking(X, data, alive):
    """Rank arms by least squares on raw features and rewards, with NumPy alone."""
    count = sum(rewards.count for _, rewards in data)
    total = sum(rewards.total for _, rewards in data)
    pulled = np.flatnonzero(count)
    A = sum(count[i] * np.outer(X[i], X[i]) for i in pulled)
    theta = np.linalg.pinv(A, rcond=1e-10) @ sum(total[i] * X[i] for i in pulled)
    return sorted(alive, key=lambda i: -float(X[i] @ theta))


# ---- OD-LinBAI ---------------------------------------------------------------------------


def test_od_linbai_has_the_phases_of_the_paper():
    # K = 11, r = 10, T = 3000: m = (3000 - 11 - (5 + 3 + 2)) / 4 = 744.75.
    problem = as_problem(PAPER, budget=3000, sigma=1.0)
    log = spend("od-linbai", problem, 2.0 * np.eye(D)[0])[1]
    assert [batch.size for batch, _ in log] == [755, 750, 748, 747]
    assert [len(b.note.get("survivors", range(11))) for b, _ in log] == [11, 5, 3, 2]
    assert kept(10) == (5, 3, 2, 1)
    assert kept(16) == (8, 4, 2, 1)
    assert kept(17) == (9, 5, 3, 2, 1)
    assert rounding_allowance(1000, 10) == (55, 5, 3, 2)


@pytest.mark.parametrize(("K", "d", "T"), [(30, 6, 150), (8, 8, 77), (40, 5, 1000)])
def test_od_linbai_gives_every_arm_the_pulls_of_the_paper(K, d, T):
    X = instances.gaussian(K, d, 3)
    arms = fl.Arms(X)
    run, log = spend("od-linbai", as_problem(arms, budget=T, sigma=1.0), np.ones(d), seed=2)
    R = math.ceil(math.log2(d))
    spared = sum(math.ceil(d / 2**r) for r in range(1, R))
    m = (T - min(K, d * (d + 1) // 2) - spared) / R
    alive = list(range(K))
    for number, data in enumerate(phases(log), start=1):
        counts = sum(batch.counts for batch, _ in data)
        assert list(data[0][0].note.get("survivors", alive)) == alive
        design = survivor_design(arms, tuple(alive))
        assert (counts >= np.ceil(math.floor(m) * design.weights - 1e-9)).all()
        assert set(np.flatnonzero(counts)) <= set(alive)
        alive = sorted(plain_ranking(X, data, alive)[: math.ceil(d / 2**number)])
    assert alive == [run.verdict.winner]


# ---- GSE ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("eta", "stages"), [(2, [11, 6, 3, 2]), (3, [11, 4, 2]), (20, [11])])
def test_gse_has_stages_of_equal_length(eta, stages):
    problem = as_problem(PAPER, budget=1001, sigma=1.0)
    run = fl.GSE(eta=eta).start(problem)
    sizes, alive = [], []
    rng = np.random.default_rng(0)
    while not run.verdict.decided:
        batch = run.next()
        sizes.append(batch.size)
        alive.append(len(run.verdict.survivors))
        rewards = DrawnRewards(np.zeros(11), 1.0, "gaussian", rng)
        run.record(batch, rewards.batch(batch.counts))
    assert alive == stages
    assert sizes == list(split(1001, len(stages)))
    assert sum(sizes) == 1001
    assert max(sizes) - min(sizes) <= 1


def test_gse_drops_the_worse_half_by_the_stage_alone():
    X = instances.gaussian(13, 4, 8)
    run, log = spend("gse", as_problem(fl.Arms(X), budget=160, sigma=1.0), np.ones(4), seed=1)
    alive = list(range(13))
    for data in phases(log):
        assert list(data[0][0].note.get("survivors", alive)) == alive
        alive = sorted(plain_ranking(X, data, alive)[: math.ceil(len(alive) / 2)])
    assert alive == [run.verdict.winner]


@pytest.mark.parametrize("eta", [1, 0, 2.5, True, "2"])
def test_gse_refuses_an_eta_that_would_not_end(eta):
    with pytest.raises(fl.errors.ProblemError, match="eta is"):
        fl.GSE(eta=eta)


# ---- Peace -------------------------------------------------------------------------------


def test_peace_halves_rho_of_unstructured_arms_by_hand():
    # rho of m unstructured arms is 2 m: 8, 4, 2 arms. 1 + log2(16 / 2) = 4 phases, then 3, then 1.
    problem = as_problem(fl.Arms.unstructured(8), budget=80, sigma=1.0)
    log = spend("peace", problem, [1.0, 0.5, *[0.0] * 6], sigma=0.1)[1]
    assert [batch.size for batch, _ in log] == [20, 20, 40]
    assert [batch.note["phases"] for batch, _ in log] == [4, 3, 1]
    assert [len(b.note.get("survivors", range(8))) for b, _ in log] == [8, 4, 2]
    assert difference_design(problem.arms, tuple(range(8))).value == pytest.approx(16, rel=1e-3)


def test_peace_keeps_the_longest_part_of_the_ranking_with_half_of_rho():
    X = instances.gaussian(9, 3, 5)
    arms = fl.Arms(X)
    run, log = spend("peace", as_problem(arms, budget=200, sigma=1.0), [0.4, 0.2, -0.3], seed=4)
    parts = phases(log)
    assert len(parts) >= 3
    alive = list(range(9))
    for data, following in pairwise(parts):
        ranked = plain_ranking(X, data, alive)
        value = {m: brute_rho(arms, ranked[:m]) for m in range(2, len(alive) + 1)}
        longest = max([m for m in value if value[m] <= 0.5 * value[len(alive)]], default=2)
        alive = sorted(ranked[:longest])
        assert following[0][0].note["survivors"] == alive
    assert run.verdict.winner == plain_ranking(X, parts[-1], alive)[0]


def brute_rho(arms, some):
    """Return rho by a program that knows nothing of ours."""
    X = arms.features
    differences = np.array([X[a] - X[b] for a, b in combinations(sorted(some), 2)])
    return referees.directions_optimum(X, differences).value


def test_peace_never_needs_more_phases_than_it_allows_for():
    arms = fl.Arms(instances.gaussian(12, 3, 7))
    Z = arms.coordinates
    pairs = [difference_design(arms, pair).value for pair in combinations(range(12), 2)]
    distance = min(float(np.sum((Z[a] - Z[b]) ** 2)) for a, b in combinations(range(12), 2))
    least = distance / float((Z**2).sum(axis=1).max())
    assert least <= min(pairs)
    everyone = tuple(range(12))
    assert most_phases(arms, everyone, 64.0 * least) == 7
    assert most_phases(arms, everyone, 63.0 * least) == 6
    assert most_phases(arms, everyone, 1e9 * least) == 11
    assert most_phases(arms, (3, 5), 1e9) == 1


def test_peace_measures_what_separates_the_survivors():
    _, log = spend(
        "peace", as_problem(PAPER, budget=3000, sigma=1.0), 2.0 * np.eye(D)[0], sigma=0.5
    )
    last = log[-1][0]
    assert last.note["survivors"] == [0, 10]
    pair = np.array(last.note["survivors"])
    got = design_value(PAPER, last.counts / last.size, "xy", among=pair)
    assert got <= 1.05 * fl.optimal_design(PAPER, "xy", among=pair).value
    assert shortened(PAPER, [0, 10, 1]) == [0, 10]


# ---- what they share -----------------------------------------------------------------------


def test_designs_are_of_the_survivors_on_their_own_span():
    arms = fl.Arms(instances.gaussian(20, 6, 1))
    design = survivor_design(arms, (2, 5, 11))
    assert set(np.flatnonzero(design.weights)) <= {2, 5, 11}
    assert design.value == pytest.approx(3.0, rel=1e-3)  # Kiefer and Wolfowitz: the rank
    assert design.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("pulls", [6, 7, 9, 30])
@pytest.mark.parametrize(
    "X", [instances.gaussian(60, 6, 1), instances.one_hot_factorial((3, 4))], ids=["any", "factors"]
)
def test_a_design_is_rounded_to_few_pulls_that_still_span(X, pulls):
    arms = fl.Arms(X)
    design = survivor_design(arms, tuple(range(len(arms))))
    assert arms.rank == 6
    assert len(design.support) > 9
    counts = rounded(arms, design, pulls)
    assert counts.sum() == pulls
    assert set(np.flatnonzero(counts)) <= set(design.support)
    assert information(arms.coordinates, counts.astype(float)).rank == 6


def test_few_pulls_span_before_they_follow_weights():
    arms = fl.Arms([[1.0, 0, 0], [0, 1.0, 0], [1.0, 1.0, 0], [1.0, -1.0, 0], [0, 0, 1.0]])
    weights = np.array([0.3, 0.25, 0.2, 0.2, 0.05])
    design = Design(weights, 3.0, 3.0, "g", "solved", 0)
    for pulls in (3, 4):
        counts = rounded(arms, design, pulls)
        assert (counts.sum(), counts.max(), counts[4]) == (pulls, 1, 1)
        assert information(arms.coordinates, counts.astype(float)).rank == 3


def test_the_whole_budget_on_the_g_optimal_design():
    arms = fl.Arms(instances.gaussian(15, 4, 2))
    X = arms.features
    run, log = spend("g-budget", as_problem(arms, budget=333, sigma=1.0), np.ones(4), seed=6)
    assert len(log) == 1
    counts = log[0][0].counts
    assert design_value(arms, counts / 333, "g") <= 1.05 * 4
    assert run.verdict.winner == plain_ranking(X, log, range(15))[0]


def test_batches_of_the_first_phase_are_fixed_in_advance():
    run = start("gse", as_problem(fl.Arms.unstructured(4), budget=40, sigma=1.0))
    log = spend(
        "gse", as_problem(fl.Arms.unstructured(4), budget=40, sigma=1.0), np.ones(4), size=5
    )[1]
    for batch, rewards in log:
        run.record(batch, rewards)


def test_the_error_names_another_strategy():
    with pytest.raises(fl.errors.ProblemError, match="'g-budget', which needs 10"):
        named("od-linbai", PAPER).start(as_problem(PAPER, budget=24, sigma=1.0))
    named("od-linbai", PAPER).start(
        as_problem(PAPER, budget=25, sigma=1.0)
    )  # 11 + 5 + 3 + 2 and 4 more


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, "9"])
def test_a_budget_is_a_number_of_pulls(budget):
    with pytest.raises(fl.errors.ProblemError, match="budget is"):
        as_problem(fl.Arms.unstructured(2), budget=budget, sigma=1.0)
