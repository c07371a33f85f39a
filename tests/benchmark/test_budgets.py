"""The benchmark of budgets: closed forms against runs, the oracle, permuted arms, targets."""

import argparse
import math

import numpy as np
import pytest
from benchmarks.budgets import calibration, fixed, report, rivals
from benchmarks.budgets.cells import BUDGETS, PROMISED, SEEDS, TWO_LEVELS, Cell, cells
from benchmarks.budgets.families import LEADS, Truth, truth
from benchmarks.budgets.kinds import MEASURED, TUNED
from benchmarks.gauntlet.cells import CodeStore
from benchmarks.harness import Report
from scipy.special import ndtr

import finalist as fl
from finalist.simulation import exact_interval
from finalist.simulation.task import Outcome, Task
from tests import instances

SPHERE = truth("sphere 20 x 3", 1)
YES_NO = Truth(fl.Arms(np.eye(3)), np.array([0.6, 0.4, 0.5]), binary=True)


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether two error probabilities may be the same, at 99.99 %."""
    (low, high), (least, most) = (exact_interval(*found, 0.9999) for found in (one, other))
    return low < most and least < high


# ---- fixed allocations ---------------------------------------------------------------------


@pytest.mark.parametrize("budget", [86, 40])
def test_uniform_is_equal_shares_with_least_squares_reward_by_reward(budget):
    runs, rng = 1500, np.random.default_rng(0)
    X, means, wrong = SPHERE.arms.features, SPHERE.means, 0
    for _ in range(runs):
        rows = np.concatenate([rng.permutation(20) for _ in range(budget // 20 + 1)])[:budget]
        rewards = means[rows] + rng.standard_normal(budget)
        theta = np.linalg.lstsq(X[rows], rewards, rcond=None)[0]
        wrong += int((X @ theta).argmax() != means.argmax())
    found = fixed.draw(SPHERE, fixed.uniform(SPHERE.arms, budget), 8000, seed=1)
    assert overlap((int(found.wrong.sum()), 8000), (wrong, runs))


def test_uniform_is_the_strategy_when_that_never_stops():
    found = fixed.draw(SPHERE, fixed.uniform(SPHERE.arms, 80), 8000, seed=1)
    slow = fl.simulate(
        SPHERE.arms, SPHERE.theta, "uniform", sigma=1.0, budget=80, runs=1000, delta=1e-9
    )
    assert (slow.samples == 80).all()
    assert overlap((int(found.wrong.sum()), 8000), (slow.errors, 1000))


def test_g_is_the_strategy():
    pulls = fixed.designed(SPHERE.arms, "g", 86)
    run = fl.GBudget().start(fl.Problem(SPHERE.arms, noise=fl.Gaussian(1.0), budget=86))
    np.testing.assert_array_equal(pulls, run.next().counts)


def test_yes_no_ties_go_to_any_arm():
    runs, rng = 4000, np.random.default_rng(0)
    totals = rng.binomial(5, YES_NO.means, (runs, 3))
    best = totals == totals.max(axis=1, keepdims=True)
    wrong = 1.0 - (best[:, 0] / best.sum(axis=1)).mean()  # each of those tied with equal chance
    found = fixed.draw(YES_NO, fixed.uniform(YES_NO.arms, 15), 20_000, seed=1)
    assert found.wrong.mean() == pytest.approx(wrong, abs=4 * math.sqrt(0.25 / runs))
    favoured = 1.0 - (totals.argmax(axis=1) == 0).mean()  # the broken twin: the first one wins
    assert abs(found.wrong.mean() - favoured) > 0.05


def test_the_regret_is_the_gap():
    found = fixed.draw(YES_NO, fixed.uniform(YES_NO.arms, 15), 2000, seed=1)
    assert set(np.round(found.regret, 12)) == {0.0, 0.1, 0.2}
    np.testing.assert_array_equal(found.wrong, found.regret > 0)


# ---- the oracle ----------------------------------------------------------------------------


def test_the_derivative_of_the_sum():
    w = np.random.default_rng(0).dirichlet(np.ones(20))
    slope = fixed.log_errors(SPHERE, w, 300)[1]
    for i in (0, 7, 19):
        step = 1e-6 * np.eye(20)[i]
        ends = [fixed.log_errors(SPHERE, w + s * step, 300)[0] for s in (1, -1)]
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4)


def test_the_sum_of_two_arms_is_their_error():
    two = Truth(fl.Arms(np.eye(2)), np.array([0.5, 0.0]))
    value, _ = fixed.log_errors(two, np.array([0.25, 0.75]), 40)  # variance 1/10 + 1/30
    assert math.exp(value) == pytest.approx(ndtr(-0.5 / math.sqrt(1 / 10 + 1 / 30)))
    assert fixed.oracle(two, 40).tolist() == [20, 20]


def test_no_grid_of_weights_is_better_than_the_oracle():
    three = Truth(fl.Arms(np.eye(3)), np.array([0.6, 0.3, 0.0]))
    grid = [
        (a, b, 60 - a - b) for a in range(4, 56, 4) for b in range(4, 58 - a, 4) if 60 - a - b > 0
    ]
    sums = [fixed.log_errors(three, np.array(one) / 60, 60)[0] for one in grid]
    pulls = fixed.oracle(three, 60)
    assert pulls.sum() == 60
    assert fixed.log_errors(three, pulls / 60, 60)[0] < min(sums) + 0.02


def test_the_oracle_is_near_the_limit_on_the_papers_instance():
    paper = truth("paper", 1)
    found = fixed.draw(paper, fixed.fixed(fixed.oracle(paper, 1010)), 20_000, seed=3)
    limit = fl.pair_limit(paper.arms, paper.theta, sigma=1.0).error(1010)
    low, high = exact_interval(int(found.wrong.sum()), 20_000, 0.9999)
    assert low < 1.4 * limit
    assert high > limit


# ---- cells ---------------------------------------------------------------------------------


def test_the_cells_are_what_is_promised():
    assert set(BUDGETS) == {(f, seed) for f in (*PROMISED, *TWO_LEVELS) for seed in SEEDS.values()}
    for cell in cells():
        rank = cell.truth.arms.rank
        if cell.kind == "promised":
            assert cell.budget > 4 * rank
        elif cell.kind == "few pulls":
            assert 2 * rank <= cell.budget <= 4 * rank
        if cell.kind != "paper":
            least = next(v for start, v in LEADS.items() if cell.family.startswith(start))
            assert np.sort(cell.truth.gaps)[1] >= least
        if cell.truth.binary:
            assert 0.0 < cell.truth.means.min() < cell.truth.means.max() < 1.0
    assert len({cell.label for cell in cells()}) == len(cells())


@pytest.mark.parametrize("family", ["sphere 20 x 3", "yes/no 12 bare", "factorial 4 x 3 x 2"])
def test_uniform_errs_in_a_tenth_to_half_of_the_runs(family):
    for seed in SEEDS.values():
        one = truth(family, seed)
        for budget in BUDGETS[family, seed]:
            found = fixed.draw(one, fixed.uniform(one.arms, budget), 4000, seed=8)
            assert 0.1 < found.wrong.mean() < 0.5


# ---- runs ----------------------------------------------------------------------------------


def test_outcomes_of_permuted_runs_are_in_the_order_of_the_task(monkeypatch):
    seen = []

    def run(self, index):
        seen.append(self.means)
        pulls = np.round(10 * self.means).astype(int)
        return Outcome(index, int(self.means.argmin()), False, pulls, 1, 0.0, False)

    task = rivals.task_of(Cell("yes/no 12 bare", 1, 60, "promised"), "GSE")
    monkeypatch.setattr(Task, "run", run)
    for index in range(5):
        ended = rivals.Permuted(task).run(index)
        assert ended.winner == task.means.argmin()
        np.testing.assert_array_equal(ended.pulls, np.round(10 * task.means).astype(int))
    assert len({tuple(means) for means in seen}) == 5
    assert all(sorted(means) == sorted(task.means) for means in seen)


def test_a_permuted_run_has_the_features_of_its_means():
    task = rivals.task_of(Cell("sphere 20 x 3", 1, 86, "promised"), "GSE")
    errors = sum(not rivals.Permuted(task).run(i).correct for i in range(300))
    plain = sum(not task.run(i).correct for i in range(300))
    assert overlap((errors, 300), (plain, 300))


def test_what_was_simulated_is_read_again(tmp_path, monkeypatch):
    cell = Cell("sphere 20 x 3", 1, 86, "promised")
    with CodeStore(tmp_path / "runs.sqlite") as store:
        assert rivals.runs_stored(cell, "GSE", 60, store) == 0
        first = rivals.measure(cell, "GSE", 60, 1, store)
        assert [rivals.runs_stored(cell, "GSE", n, store) for n in (60, 50, 61)] == [60, 50, 60]
        more = rivals.measure(cell, "GSE", 110, 1, store)
        monkeypatch.setattr(rivals.Permuted, "run", lambda *_: pytest.fail("simulated again"))
        assert rivals.measure(cell, "GSE", 110, 1, store) == more
        assert rivals.measure(cell, "GSE", 60, 1, store) == first
    assert (first.runs, more.runs) == (60, 110)


def test_who_has_a_place_in_a_cell():
    few = Cell("sphere 20 x 3", 1, 6, "few pulls")
    assert not rivals.applies("GSE", few)
    assert rivals.applies("top-two", few)
    assert rivals.applies("uniform", few)
    assert not rivals.applies("halving", Cell("sphere 20 x 3", 1, 860, "promised"))
    assert rivals.applies("halving", Cell("bare 16 random", 1, 300, "promised"))
    assert rivals.applies("checked", few)
    assert not rivals.applies("checked", Cell("bare 16 random", 1, 300, "promised"))
    many = Cell("sphere 500 x 20", 1, 1800, "promised")
    assert [rivals.runs_of("Peace", cell, 10_000) for cell in (few, many)] == [2000, 200]
    assert [rivals.runs_of("gauntlet", cell, 100) for cell in (few, many)] == [100, 10]
    assert rivals.runs_of("uniform", few, 100) == 10_000
    assert rivals.runs_of("gauntlet", Cell("paper", 1, 1010, "paper"), 100) == 2000


def test_the_probes_of_a_checked_run_are_part_of_its_budget():
    cell = Cell("sphere 20 x 3", 1, 86, "promised")
    probed, plain = (rivals.task_of(cell, column) for column in ("checked", "gauntlet"))
    assert probed.problem.check == 0.03
    ended = [rivals.Permuted(probed).run(i) for i in range(5)]
    assert [one.pulls.sum() for one in ended] == [86] * 5
    others = [rivals.Permuted(plain).run(i) for i in range(5)]
    assert any((one.pulls != two.pulls).any() for one, two in zip(ended, others, strict=True))


# ---- targets -------------------------------------------------------------------------------


def found(wrong, runs=1000, **more):
    return rivals.Found(wrong, runs, 0.01, **more)


def targets(results):
    made = Report("some")
    report.add_targets(made, results)
    return {target.name: target for target in made.targets}


def test_targets_by_hand():
    tuned = Cell("sphere 20 x 3", 1, 86, "promised")
    flat = Cell(TWO_LEVELS[0], 1, 130, "two levels")
    paper = Cell("paper", 1, 1010, "paper")
    met = targets(
        {
            tuned: {"uniform": found(400), "gauntlet": found(100)},
            Cell("sphere 20 x 3", 1, 520, "promised"): {
                "uniform": found(100),
                "gauntlet": found(64),
                "oracle": found(1),
            },
            flat: {"uniform": found(100), "gauntlet": found(110)},
            paper: {"uniform": found(165), "gauntlet": found(4)},
        }
    )
    assert all(target.met for target in met.values())
    mean = met["beyond 4 pulls for each dimension, tuned: geometric mean over uniform"]
    assert mean.measured == "0.400"  # sqrt(.25 .64); two levels and the paper are left out
    missed = targets(
        {
            tuned: {"uniform": found(400), "gauntlet": found(200), "GSE": found(100)},
            flat: {"uniform": found(100), "gauntlet": found(200)},
            paper: {
                "uniform": found(165),
                "gauntlet": found(5),
                "stopping": found(5, certain=0.3, certain_wrong=100),
                "0.1.0": found(5, certain=0.4),
            },
        }
    )
    assert not any(target.met for target in missed.values())
    assert "GSE" in missed["everywhere, tuned: worse than the best other"].measured
    assert "certain and wrong, the worst cell" in missed
    seldom = missed["certain before T, beside 0.1.0"].measured
    assert seldom == "in 1 of 1 cell; 30.0% and 40.0% on average"


def test_tables_say_what_is_there():
    cell = Cell("bare 16 random", 2, 630, "promised")
    made = Report("some")
    ours = {"gauntlet": found(50, 500), "checked": found(30, 250)}
    stopping = found(50, certain=0.25, pulls=600.0)
    some = {cell: {"uniform": found(0), **ours, "stopping": stopping}}
    report.add_tables(made, some, {cell: 0.0123}, 1000)
    text = "\n".join(table.markdown() for table in made.tables)
    assert (
        "| bare 16 random | held out | 630 | 0 (0 to 0.0037) | 0.100 (0.075 to 0.130) | "
        "0.120 (0.082 to 0.167) | 0.050 (0.037 to 0.065) | 0.012 |" in text
    )
    assert "1,000 runs, in some cells 250 of checked; 500 of gauntlet" in text
    assert "| 200.00 | 200.00 | 1.20 | 25.0%, 600 |  | 0.0 |" in text


def test_papers_instance_is_the_one_of_the_paper():
    assert np.array_equal(truth("paper", 1).arms.features, instances.paper(10, 0.1).features)


# ---- calibration ---------------------------------------------------------------------------


def test_sets_of_kinds_are_apart_and_large_enough():
    assert not set(TUNED) & set(MEASURED)
    assert len(MEASURED) >= 20
    for kind in (*TUNED.values(), *MEASURED.values()):
        X, theta = kind.draw(np.random.default_rng(0))
        means = fl.Arms(X).means(theta)
        assert kind.budgets[0] < kind.budgets[1]
        assert not kind.binary or (means.min() >= 0.0 and means.max() <= 1.0)


@pytest.mark.parametrize("name", ["three arms", "yes/no, 10 rare", "shares"])
def test_a_run_notes_what_its_study_would_show(name):
    kind = MEASURED[name]
    found = [calibration.one(name, kind, kind.budgets[0], index) for index in range(4)]
    assert found == [calibration.one(name, kind, kind.budgets[0], index) for index in range(4)]
    shown = [one for one in found if not math.isnan(one.end)]
    assert shown
    for one in shown:
        assert 0.0 < one.end <= 1.0
        assert 0.0 < one.half <= 1.0
        assert 0.0 < one.ahead <= 1.0


def test_what_is_said_of_the_end_is_said_of_the_pulls_that_are_left(monkeypatch):
    kind, seen = MEASURED["three arms"], list[tuple[int, float]]()

    def foresee(problem, fit, _arms, _alive, more):
        seen.append((problem.budget - fit.statistics.pulls, more.sum()))

    monkeypatch.setattr(calibration, "foresee", foresee)
    calibration.one("three arms", kind, kind.budgets[0], 0)
    assert seen
    assert [more for _, more in seen] == pytest.approx([left for left, _ in seen])


def test_what_studies_showed_is_read_again(tmp_path, monkeypatch):
    kind, words = MEASURED["three arms"], argparse.Namespace(runs=3, jobs=1)
    words.store = tmp_path / "runs.sqlite"
    monkeypatch.setattr(calibration, "BLOCK", 2)
    first = calibration.measured({"three arms": kind}, words)
    assert len(first["end"]) == 6
    alone = calibration.one("three arms", kind, kind.budgets[1], 2)
    np.testing.assert_equal([first[word][-1] for word in calibration.Said._fields], list(alone))
    monkeypatch.setattr(calibration, "one", lambda *_: pytest.fail("simulated again"))
    again = calibration.measured({"three arms": kind}, words)
    for word in calibration.Said._fields:
        np.testing.assert_array_equal(again[word], first[word])


def test_a_table_of_calibration_counts_what_was_said():
    said = np.array([0.85, 0.89, 0.8, 1.0, 0.1])
    right = np.array([True, True, False, True, False])
    rows = calibration.table("t", said, right, "").rows
    assert [row[:2] for row in rows] == [
        ("0 to 30 %", "1"),
        ("80 to 90 %", "3"),
        ("99 to 100 %", "1"),
    ]
    assert rows[1][3].startswith("66.7 %")
