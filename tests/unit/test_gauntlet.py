"""The gauntlet against plain NumPy, row by row of what it promises; error rates are elsewhere."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import finalist as fl
from finalist.errors import FinalistError
from finalist.inference.bounds import pooled_radius
from finalist.inference.information import information
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.problem import as_problem as any_problem
from finalist.problem.rules import rules_of
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import Batch
from finalist.strategies.gauntlet import Gauntlet, planner
from finalist.strategies.gauntlet import best as best_arm
from finalist.strategies.gauntlet.bets import Bets
from finalist.strategies.gauntlet.scores import normal_scores
from tests import instances


def as_problem(*arms: Any, **settings: Any) -> Problem:
    """Return a problem by rules 2, which test each batch on its own; `epochs` has others."""
    return any_problem(*arms, **{"rules": rules_of(2), **settings})


THETA = np.array([1.0, 0.5, -1.0])
SPHERE = fl.Arms(instances.unit_sphere(12, 3, 1))


class Lab:
    """Rewards pull by pull, so that a referee can see every one of them."""

    def __init__(self, arms, theta, seed=0, sigma=1.0):
        self.means, self.sigma = arms.means(np.asarray(theta, dtype=float)), sigma
        self.rng = np.random.default_rng(seed)

    def pull(self, batch):
        picks = np.repeat(np.arange(len(self.means)), batch.counts)
        return picks, self.means[picks] + self.sigma * self.rng.standard_normal(len(picks))

    def measure(self, batch):
        return summed(len(self.means), *self.pull(batch))


def summed(K, picks, rewards):
    statistics = Statistics.empty(K)
    statistics.add_many(picks, rewards)
    return statistics


def drive(problem, theta, *, seed=0, size=None, batches=100, sigma=None):
    """Run to the end, or for some batches; return the run and its log."""
    lab = Lab(problem.arms, theta, seed, problem.sigma if sigma is None else sigma)
    run = Gauntlet().start(problem, seed=seed)
    log: list[tuple[Batch, Statistics]] = []
    while not run.verdict.decided and len(log) < batches:
        batch = run.next(size)
        log.append((batch, lab.measure(batch)))
        run.record(*log[-1])
    return run, log


def after_pilot(problem, theta, seed=0, sigma=1.0):
    """A run with its pilot recorded, and where its rewards come from."""
    run, lab = Gauntlet().start(problem, seed=seed), Lab(problem.arms, theta, seed, sigma)
    batch = run.next()
    run.record(batch, lab.measure(batch))
    return run, lab


def noted(batch, **changes):
    return Batch(batch.counts.copy(), {**batch.note, **changes})


def constant(batch, values):
    """The rewards of a batch in which every arm has one value, without any scatter."""
    statistics, K = Statistics.empty(len(batch.counts)), len(batch.counts)
    statistics.add_batch(batch.counts, batch.counts * np.broadcast_to(values, K), np.zeros(K))
    return statistics


@pytest.fixture
def placed(monkeypatch):
    """Every bet that is placed: (the bets, scores, speeds, which arms)."""
    seen, place = [], Bets.place

    def spy(self, z, speed, tested, *others, **named):
        seen.append((self, z.copy(), speed.copy(), tested.copy()))
        return place(self, z, speed, tested, *others, **named)

    monkeypatch.setattr(Bets, "place", spy)
    return seen


# ---- the score of a batch ----------------------------------------------------------------


def plain_scores(arms, picks, rewards, rivals, sigma, epsilon=0.0):
    """Z from the rows of one batch, by lstsq; with sigma None by Student's t."""
    X = arms.features[picks]
    theta, _, rank, _ = np.linalg.lstsq(X, rewards, rcond=None)
    freedom = len(picks) - int(rank)
    inverse = np.linalg.pinv(X.T @ X)
    scale = sigma
    if sigma is None:
        scale = math.sqrt(float(np.sum((rewards - X @ theta) ** 2)) / freedom)
    scores = {}
    for arm, rival in enumerate(rivals):
        if rival >= 0:
            y = arms.features[rival] - arms.features[arm]
            t = (y @ theta + epsilon) / (scale * math.sqrt(y @ inverse @ y))
            scores[arm] = t if sigma is not None else stats.norm.isf(stats.t.sf(t, freedom))
    return scores


@pytest.mark.parametrize("sigma", [1.0, 3.0, None])
@pytest.mark.parametrize(
    "features",
    [instances.unit_sphere(12, 3, 1), np.eye(4), instances.one_hot_factorial((2, 3))],
    ids=["sphere", "unstructured", "rank-deficient"],
)
def test_the_score_is_least_squares_of_the_batch_alone(features, sigma, placed):
    arms = fl.Arms(features)
    theta = np.linspace(0.2, 0.0, features.shape[1])
    run, lab = after_pilot(as_problem(arms, sigma=sigma), theta, sigma=sigma or 2.0)
    for _ in range(3):
        batch = run.next()
        picks, rewards = lab.pull(batch)
        run.record(batch, summed(len(arms), picks, rewards))
        _, z, speed, tested = placed[-1]
        expected = plain_scores(arms, picks, rewards, batch.note["rivals"], sigma)
        assert np.flatnonzero(tested).tolist() == list(expected) == list(range(len(arms)))
        np.testing.assert_allclose(z, list(expected.values()), rtol=1e-8, atol=1e-10)
        inverse = np.linalg.pinv(arms.features[picks].T @ arms.features[picks])
        Y = arms.features[batch.note["rivals"]] - arms.features
        np.testing.assert_allclose(speed, np.einsum("ij,jk,ik->i", Y, inverse, Y) ** -0.5)


@pytest.mark.parametrize("freedom", [1, 2, 5, 40, 1000])
def test_student_scores_are_normal_scores(freedom):
    t = np.array([-1e6, -50.0, -3.0, -0.1, 0.0, 0.1, 3.0, 50.0, 1e6])
    with np.errstate(divide="ignore"):
        tail = np.maximum(stats.t.sf(np.abs(t), freedom), 1e-300)
    expected = np.sign(t) * stats.norm.isf(tail)
    ours = normal_scores(t, freedom)
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-15)
    assert np.all(np.isfinite(ours))
    assert np.all(np.diff(ours) >= 0)


def test_the_past_never_enters_a_score(placed):
    first, lab = after_pilot(as_problem(SPHERE, sigma=1.0), THETA)
    second, _ = after_pilot(as_problem(SPHERE, sigma=1.0), -3.0 * THETA, seed=7)
    batch = first.next()
    assert second.next().note["rivals"] != batch.note["rivals"]  # it does enter the choices
    rewards = lab.measure(batch)
    first.record(batch, rewards)
    second.record(batch, rewards)
    (_, *scores), (_, *again) = placed
    for one, other in zip(scores, again, strict=True):
        np.testing.assert_array_equal(one, other)


# ---- what is decided before a batch ------------------------------------------------------


def test_next_is_the_same_until_it_is_recorded():
    run, lab = after_pilot(as_problem(SPHERE, sigma=1.0), THETA)
    for size in (None, 1, 5, 96):
        batch = run.next(size)
        run.next(17)
        run.words(), run.evidence()
        again = run.next(size)
        np.testing.assert_array_equal(again.counts, batch.counts)
        assert again.note == batch.note
        run.record(batch, lab.measure(batch))


def test_the_note_holds_everything_as_json():
    run, _ = after_pilot(as_problem(SPHERE, sigma=1.0), THETA)
    note = run.next().note
    assert json.loads(json.dumps(dict(note))) == dict(note)
    assert set(note) >= {"kind", "leader", "rivals", "batch"}
    assert note["kind"] == "test"
    assert 0 <= note["leader"] < len(SPHERE)
    assert len(note["rivals"]) == len(SPHERE)
    assert all(rival != arm for arm, rival in enumerate(note["rivals"]))


def test_the_rivals_are_those_of_the_note():
    left, _ = after_pilot(as_problem(fl.Arms.unstructured(3), sigma=1.0), np.zeros(3))
    right, _ = after_pilot(as_problem(fl.Arms.unstructured(3), sigma=1.0), np.zeros(3))
    batch = left.next(12)
    rewards = constant(batch, [2.0, 0.5, 0.6])
    left.record(noted(batch, rivals=[-1, 0, 0]), rewards)
    right.record(noted(batch, rivals=[-1, 0, 1]), rewards)
    assert left.evidence().share[1] == right.evidence().share[1] > 0
    assert left.evidence().share[2] > right.evidence().share[2] == 0
    assert left.evidence().rival.tolist() == [-1, 0, 0]
    assert right.evidence().rival.tolist() == [-1, 0, -1]


@pytest.mark.parametrize("settings", [{}, {"epsilon": 0.4}, {"sigma": None}], ids=str)
def test_a_replay_from_json_solves_no_design_and_is_the_same(settings, monkeypatch):
    problem = as_problem(SPHERE, **{"sigma": 1.0, **settings})
    live, log = drive(problem, 0.3 * THETA, sigma=1.0, batches=6)
    texts = [json.dumps([batch.counts.tolist(), dict(batch.note)]) for batch, _ in log]
    again = Gauntlet().start(problem, seed=0)
    with monkeypatch.context() as patch:
        patch.setattr(best_arm, "choose_rivals", None)
        for solver in ("allocate", "pilot_weights", "Rounded"):
            patch.setattr(planner, solver, None)
        for text, (_, rewards) in zip(texts, log, strict=True):
            counts, note = json.loads(text)
            again.record(Batch(np.array(counts), note), rewards)
    assert again.verdict == live.verdict
    np.testing.assert_array_equal(again.evidence().share, live.evidence().share)
    if not live.verdict.decided:
        np.testing.assert_array_equal(again.next(9).counts, live.next(9).counts)
        assert again.next(9).note == live.next(9).note


# ---- pilot and sizes ---------------------------------------------------------------------


def test_the_pilot_is_a_g_design_and_is_never_tested(placed):
    run, lab = Gauntlet().start(as_problem(SPHERE, sigma=1.0)), Lab(SPHERE, 100 * THETA)
    batch = run.next()
    assert batch.size == 4 * SPHERE.rank
    assert batch.note["kind"] == "pilot"
    weights = fl.optimal_design(SPHERE, "g").weights
    assert np.all(np.abs(batch.counts - batch.size * weights) < 1.0)
    run.record(batch, lab.measure(batch))
    assert not placed
    evidence = run.evidence()
    assert evidence.share.tolist() == [0.0] * 12
    assert evidence.p_value.tolist() == [1.0] * 12
    assert evidence.rival.tolist() == [-1] * 12
    assert run.verdict.survivors == tuple(range(12))


def test_a_pilot_in_parts_is_the_same_pilot():
    whole = Gauntlet().start(as_problem(SPHERE, sigma=1.0)).next().counts
    run, lab = Gauntlet().start(as_problem(SPHERE, sigma=1.0)), Lab(SPHERE, THETA)
    total = np.zeros(12, dtype=np.int64)
    for size in (1, 4, 5, 2):
        batch = run.next(size)
        assert (batch.size, batch.note["kind"]) == (size, "pilot")
        total += batch.counts
        run.record(batch, lab.measure(batch))
    np.testing.assert_array_equal(total, whole)
    assert run.next(3).note["kind"] == "test"


@pytest.mark.parametrize("growth", [0.1, 0.5])
def test_own_sizes(growth):
    arms = fl.Arms.unstructured(5)
    run, lab = Gauntlet(growth=growth).start(as_problem(arms, sigma=1.0)), Lab(arms, np.zeros(5))
    sizes = []
    for _ in range(20):
        batch = run.next()
        sizes.append(batch.size)
        run.record(batch, lab.measure(batch))
    expected = [20, 20]
    while len(expected) < 20:
        expected.append(max(15, math.ceil(growth * sum(expected))))
    assert sizes == expected
    assert sizes[-1] > 15


@pytest.mark.parametrize("growth", [0, -0.1, 11, math.nan, math.inf, True])
def test_a_growth_that_makes_no_sense_is_refused(growth):
    with pytest.raises(FinalistError, match="growth is"):
        Gauntlet(growth=growth)


@pytest.mark.parametrize(
    "features",
    [instances.unit_sphere(12, 3, 1), np.eye(5), instances.one_hot_factorial((3, 3))],
    ids=["sphere", "unstructured", "factorial"],
)
@pytest.mark.parametrize("sigma", [1.0, None])
def test_any_size_is_honoured(features, sigma):
    arms = fl.Arms(features)
    theta = np.zeros(features.shape[1])
    run, lab = Gauntlet().start(as_problem(arms, sigma=sigma)), Lab(arms, theta)
    for size in (1, 96, 1, 2, 3, 4, 5, 6, 7, 96, 1, 1000, 2):
        batch = run.next(size)
        assert batch.size == size
        run.record(batch, lab.measure(batch))


def test_a_batch_that_can_test_nothing_says_so(placed):
    run, lab = after_pilot(as_problem(SPHERE, sigma=1.0), THETA)
    batch = run.next(1)
    assert batch.note["rivals"] == [-1] * 12
    assert run.purpose(batch) == (
        "1 measurement in a batch cannot test any candidate; "
        "it only improves the estimates. A batch of 3 or more can."
    )
    run.record(batch, lab.measure(batch))
    assert not placed[-1][3].any()
    assert run.verdict.pulls == 13
    enough = run.next(3)
    assert run.purpose(enough) == "All 12 candidates that are still possible are tested."


def test_a_batch_never_tests_more_candidates_than_are_possible():
    # A later batch of an epoch: some of those that had a rival at its begin are out by now.
    arms = fl.Arms.unstructured(6)
    run, _ = after_pilot(as_problem(arms, sigma=1.0), np.arange(6.0))
    batch = run.next(4)
    note = {**batch.note, "rivals": [5, 5, 5, 5, 5, -1]}
    run._claims.survivors = np.array([3, 4, 5])
    words = run.purpose(replace(batch, note=note))
    assert "test only 2 of the 3 candidates that are still possible." in words


def test_a_small_batch_tests_what_it_can_and_the_others_keep_their_evidence():
    # Arms share nothing: two pulls compare the two arms that are pulled.
    run, lab = after_pilot(
        as_problem(fl.Arms.unstructured(4), sigma=1.0), np.array([1.0, 0.0, 0.0, 0.0])
    )
    for _ in range(5):
        before, batch = run.evidence(), run.next(2)
        pulled = set(np.flatnonzero(batch.counts).tolist())
        tested = {arm for arm, rival in enumerate(batch.note["rivals"]) if rival >= 0}
        assert tested <= pulled
        assert {rival for rival in batch.note["rivals"] if rival >= 0} <= pulled
        assert run.purpose(batch).startswith(
            "2 measurements in a batch test only 2 of the 4 candidates that are still possible. "
            "A batch of 4 or more can test all."
        )
        run.record(batch, lab.measure(batch))
        others = sorted(set(range(4)) - tested)
        np.testing.assert_array_equal(run.evidence().share[others], before.share[others])


def test_as_many_pulls_as_dimensions_test_every_arm():
    arms = fl.Arms(instances.hypercube(4))
    run, lab = after_pilot(as_problem(arms, sigma=1.0), arms.features[0])
    for _ in range(30):
        batch = run.next(4)
        needed = arms.coordinates[batch.note["leader"]] - arms.coordinates[run.verdict.survivors, :]
        assert information(arms.coordinates, batch.counts.astype(float)).spans(needed).all()
        run.record(batch, lab.measure(batch))
        if run.verdict.decided:
            break


def test_a_difference_that_the_batch_cannot_estimate_is_not_tested(placed):
    # Arms 0 and 1 are pulled; arm 2, and every difference to it, is outside their row space.
    arms = fl.Arms.unstructured(3)
    run, _ = after_pilot(as_problem(arms, sigma=1.0), np.zeros(3))
    counts, note = np.array([6, 6, 0]), {**run.next().note, "rivals": [2, 0, 0]}
    rewards = Statistics.empty(3)
    rewards.add_many(np.repeat([0, 1], 6), np.repeat([50.0, 0.0], 6))
    run.record(Batch(counts, note), rewards)
    assert placed[-1][3].tolist() == [False, True, False]
    assert run.evidence().share.tolist() == [0.0, 1.0, 0.0]
    assert run.verdict.survivors == (0, 2)


def test_an_arm_is_no_rival_of_itself(placed):
    run, lab = after_pilot(as_problem(fl.Arms.unstructured(3), sigma=1.0), np.zeros(3))
    batch = noted(run.next(), rivals=[0, 0, 2])
    run.record(batch, lab.measure(batch))
    assert placed[-1][3].tolist() == [False, True, False]


def test_a_single_pull_beside_a_million_counts(placed):
    arms = fl.Arms.unstructured(2)
    run, _ = after_pilot(as_problem(arms, sigma=1.0), np.zeros(2))
    rewards, counts = Statistics.empty(2), np.array([10**11, 1])
    rewards.add_batch(counts, np.array([0.0, 3.0]), np.zeros(2))
    run.record(Batch(counts, {**run.next().note, "rivals": [1, 0]}), rewards)
    np.testing.assert_allclose(placed[-1][1], [3.0, -3.0], rtol=1e-6)


@pytest.mark.parametrize("levels", [(12, 12), (6, 6, 6)], ids=str)
def test_the_pilot_can_estimate_every_arm(levels):
    arms = fl.Arms(instances.one_hot_factorial(levels))
    counts = Gauntlet().start(as_problem(arms, sigma=1.0)).next().counts.astype(float)
    assert information(arms.coordinates, counts).rank == arms.rank


def test_what_the_past_cannot_estimate_is_no_reason_to_reject():
    # The first pulls are of arms 0 and 1 only; afterwards all rewards are 0.
    run = Gauntlet().start(as_problem(fl.Arms.unstructured(3), sigma=1.0))
    counts = np.array([6, 6, 0])
    first = Batch(counts, run.next(12).note)
    run.record(first, constant(first, 0.0))
    for _ in range(3):
        batch = noted(run.next(12), rivals=[2, 2, 0])
        run.record(batch, constant(batch, 0.0))
    assert run.verdict.survivors == (0, 1, 2)
    assert np.all(np.isfinite(run.evidence().share))


# ---- odd problems ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "theta"),
    [
        (np.eye(2), [0.3, 0.0]),
        ([[1.0], [0.4], [-0.5]], [0.5]),
        ([[0.0], [1.0]], [-0.5]),
        (np.eye(6), [0.5, 0.2, 0.1, 0.0, 0.0, 0.0]),
        (instances.gaussian(4, 9, 2), np.ones(9)),
        (instances.with_duplicates(instances.gaussian(6, 2, 0), 6, 1), [1.0, 0.0]),
        (instances.scaled_columns(instances.gaussian(8, 3, 0)), [1e8, 1.0, -1e-8]),
        (instances.paper(3, 0.3).features, [2.0, 0.0, 0.0]),
    ],
    ids=["K=2", "d=1", "zero arm", "unstructured", "d > K", "duplicates", "units", "paper"],
)
@pytest.mark.parametrize("sigma", [0.5, None])
def test_odd_problems_end_with_the_best_arm(features, theta, sigma):
    arms = fl.Arms(features)
    problem = as_problem(arms, sigma=sigma, delta=1e-6)
    run, log = drive(problem, theta, sigma=0.5, batches=100)
    assert run.verdict.winner == int(arms.means(np.asarray(theta)).argmax())
    assert len(log) < 100


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30], ids=["1e-9", "1e9"])
@pytest.mark.parametrize("unknown", [False, True])
def test_units_of_rewards_and_of_features_change_no_pull(factor, unknown):
    def pulls(features, theta, sigma):
        problem = as_problem(fl.Arms(features), sigma=None if unknown else sigma)
        _, log = drive(problem, theta, sigma=sigma, batches=40)
        return [(batch.counts.tolist(), dict(batch.note)) for batch, _ in log]

    X, theta = SPHERE.features, 0.4 * THETA
    plain = pulls(X, theta, 1.0)
    assert len(plain) > 3
    assert pulls(X, theta * factor, factor) == plain
    assert pulls(X * factor, theta / factor, 1.0) == plain


# ---- unknown sigma -----------------------------------------------------------------------


def test_without_residuals_nothing_is_tested(placed):
    run, lab = after_pilot(as_problem(fl.Arms.unstructured(3), sigma=None), np.zeros(3))
    batch = run.next(3)
    assert batch.counts.tolist() == [1, 1, 1]
    assert batch.note["rivals"] == [-1, -1, -1]
    assert run.purpose(batch).endswith("A batch of 4 or more can.")
    run.record(noted(batch, rivals=[1, 0, 0]), lab.measure(batch))  # not even if it is asked for
    assert not any(tested.any() for _, _, _, tested in placed)
    assert any(rival >= 0 for rival in run.next(4).note["rivals"])


@pytest.mark.parametrize("value", [0.0, 5.0, -1e9])
def test_equal_rewards_are_not_tested(value, placed):
    run = Gauntlet().start(as_problem(fl.Arms.unstructured(4), sigma=None))
    for _ in range(4):
        batch = run.next()
        run.record(batch, constant(batch, value))
    assert not any(tested.any() for _, _, _, tested in placed)
    assert run.evidence().share.tolist() == [0.0] * 4


def test_equal_rewards_are_not_tested_whatever_rounding_makes_of_them(placed):
    run = Gauntlet().start(as_problem(SPHERE, sigma=None))
    for _ in range(4):
        batch = run.next()
        run.record(batch, constant(batch, SPHERE.means(THETA)))
    assert not any(tested.any() for _, _, _, tested in placed)


def test_sums_without_scatter_are_refused_at_once():
    run = Gauntlet().start(as_problem(fl.Arms.unstructured(3), sigma=None))
    batch, rewards = run.next(), Statistics.empty(3)
    rewards.add_batch(batch.counts, np.zeros(3))
    with pytest.raises(FinalistError, match="scatter"):
        run.record(batch, rewards)
    assert run.verdict.pulls == 0


def test_scores_stay_normal_when_sigma_changes_between_batches(placed):
    # All arms are equal; sigma jumps by 100. Arm 0 against a fixed rival: exactly N(0, 1).
    arms = fl.Arms(instances.unit_sphere(6, 3, 0))
    scores = []
    for seed in range(60):
        run, lab = after_pilot(as_problem(arms, sigma=None), np.zeros(3), seed)
        for k in range(5):
            lab.sigma = (0.1, 10.0)[k % 2]
            batch = noted(run.next(5), rivals=[1, -1, -1, -1, -1, -1])
            placed.clear()
            run.record(batch, lab.measure(batch))
            if placed[-1][3][0]:
                scores.append(placed[-1][1][0])
    assert len(scores) > 250
    assert stats.kstest(scores, "norm").pvalue > 1e-3


def test_the_scale_of_earlier_batches_does_not_enter_the_test(placed):
    problem = as_problem(SPHERE, sigma=None)
    quiet, lab = after_pilot(problem, THETA, sigma=0.01)
    loud, _ = after_pilot(problem, THETA, sigma=100.0)
    batch = quiet.next()
    rewards = lab.measure(batch)
    quiet.record(batch, rewards)
    loud.record(batch, rewards)
    np.testing.assert_array_equal(placed[0][1], placed[1][1])


# ---- epsilon -----------------------------------------------------------------------------


def test_levels_and_scores_of_the_leaders(placed, monkeypatch):
    levels, against = [], Bets.against

    def spy(K, level, *rest):
        levels.append(level)
        return against(K, level, *rest)

    monkeypatch.setattr(Bets, "against", spy)
    arms, epsilon = fl.Arms.unstructured(4), 0.5
    run, lab = after_pilot(as_problem(arms, epsilon=epsilon, delta=0.08, sigma=1.0), np.zeros(4))
    owners = []
    for leader in (2, 0, 2, 3, 1):
        batch = noted(run.next(8), leader=leader)
        placed.clear()
        picks, rewards = lab.pull(batch)
        run.record(batch, summed(4, picks, rewards))
        assert not run.verdict.decided
        (elimination, z, _, _), (bets, shifted, _, tested) = placed
        owners.append((elimination, bets))
        plain = plain_scores(arms, picks, rewards, batch.note["rivals"], 1.0)
        np.testing.assert_allclose(z[list(plain)], list(plain.values()), atol=1e-10)
        rivals = [-1 if arm == leader else leader for arm in range(4)]
        expected = plain_scores(arms, picks, rewards, rivals, 1.0, epsilon)
        assert np.flatnonzero(tested).tolist() == list(expected)
        np.testing.assert_allclose(shifted[tested], list(expected.values()), atol=1e-10)
    assert levels == pytest.approx([0.04, 0.04 / 2, 0.04 / 6, 0.04 / 12, 0.04 / 20])
    assert len({id(elimination) for elimination, _ in owners}) == 1
    assert owners[0][1] is owners[2][1]  # the process of arm 2, only where it leads
    assert len({id(bets) for _, bets in owners}) == 4


def test_a_leader_wins_when_every_other_arm_is_out_or_clearly_not_better():
    # No arm is clearly best: 0 and 1 are equal, 2 and 3 far below.
    problem = as_problem(fl.Arms.unstructured(4), epsilon=1.0, delta=1e-3, sigma=1.0)
    run, log = drive(problem, [3.0, 3.0, 0.0, 0.0], batches=100)
    assert run.verdict.winner in (0, 1)
    assert run.verdict.winner == log[-1][0].note["leader"]
    assert {0, 1} <= set(run.verdict.survivors)


def test_exact_ties_end_with_epsilon():
    for seed in range(5):
        problem = as_problem(fl.Arms.unstructured(3), epsilon=1.0, sigma=1.0)
        run, _ = drive(problem, np.zeros(3), seed=seed, batches=60)
        assert run.verdict.decided


def chain_errors(epsilon, means, runs, delta):
    """A chain of arms, each 0.6 better than the next, which speaks against it.

    Any rivals and leaders are allowed as long as they are chosen before the batch; here they are
    the worst there are. Arms 2 and 3 are more than 1 away from the best.
    """
    problem, wrong = as_problem(fl.Arms.unstructured(4), epsilon=epsilon, delta=delta, sigma=1.0), 0
    for seed in range(runs):
        run, lab = Gauntlet().start(problem, seed=seed), Lab(problem.arms, means, seed)
        for k in range(12):
            own = run.next(16 if k == 0 else 120)
            counts = np.full(4, own.size // 4)
            batch = Batch(counts, {**own.note, "leader": 3 - k // 6, "rivals": [1, 2, 3, -1]})
            run.record(batch, lab.measure(batch))
            if run.verdict.decided:
                wrong += run.verdict.winner in (2, 3)
                break
    return wrong


def test_a_chain_of_nearly_equal_arms():
    delta, means, epsilon = 0.1, np.array([1.8, 1.2, 0.6, 0.0]), 1.0
    assert exact_lower_bound(chain_errors(epsilon, means, 150, delta), 150, 0.999) <= delta
    # Epsilon added to each difference inside one elimination, which is wrong, is the same as
    # arms that are better by epsilon than the one before.
    shifted = means + epsilon * np.arange(4)
    assert exact_lower_bound(chain_errors(0.0, shifted, 40, delta), 40, 0.999) > delta


def test_a_chain_with_rivals_of_its_own_choice():
    delta, runs, wrong = 0.1, 200, 0
    problem = as_problem(fl.Arms.unstructured(5), epsilon=1.0, delta=delta, sigma=1.0)
    theta = 1.001 * np.arange(4.0, -1.0, -1.0)
    for seed in range(runs):
        run, _ = drive(problem, theta, seed=seed, batches=60)
        wrong += run.verdict.decided and run.verdict.winner != 0
    assert exact_lower_bound(wrong, runs, 0.999) <= delta


def test_the_winner_is_among_the_survivors():
    run, _ = after_pilot(as_problem(fl.Arms.unstructured(3), epsilon=1.0, sigma=1.0), np.zeros(3))
    batch = run.next(30)
    run.record(noted(batch, leader=1, rivals=[1, -1, -1]), constant(batch, [0.0, 3.0, 3.0]))
    assert run.verdict.survivors == (1, 2)
    while not run.verdict.decided:
        batch = Batch(np.full(3, 10), {**run.next(30).note, "leader": 0, "rivals": [-1] * 3})
        run.record(batch, constant(batch, [50.0, 0.0, 0.0]))
    assert run.verdict.winner == 0
    assert run.verdict.winner in run.verdict.survivors


# ---- the other direction, and the end ----------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"epsilon": 0.3}, {"sigma": None}], ids=str)
def test_minimising_mirrors_maximising(settings):
    problem = as_problem(SPHERE, **{"sigma": 1.0, **settings})
    run, log = drive(problem, 0.5 * THETA, sigma=1.0, batches=6)
    mirror = Gauntlet().start(problem.with_(objective="min"))
    for batch, rewards in log:
        opposite = Statistics.empty(12)
        opposite.add_batch(rewards.count, -rewards.total, rewards.m2)
        mirror.record(batch, opposite)
    assert mirror.verdict == run.verdict
    np.testing.assert_allclose(mirror.evidence().share, run.evidence().share, atol=1e-9)
    end, _ = drive(problem.with_(objective="min", delta=1e-6), 2 * THETA, sigma=0.3)
    assert end.verdict.winner == int(SPHERE.means(THETA).argmin())


def test_when_the_last_ones_go_together_the_best_of_them_is_named():
    for best in range(3):
        run, _ = after_pilot(as_problem(fl.Arms.unstructured(3), sigma=1.0), np.zeros(3))
        for _ in range(2):  # a pooled estimate with a clear order
            batch = noted(run.next(300), rivals=[-1, -1, -1])
            run.record(batch, constant(batch, 5.0 * np.eye(3)[best]))
        run._claims.bets.log_m[:] = (
            run._claims.bets.limit - 1e-9
        )  # one tiny step is missing for each
        batch = noted(run.next(12), rivals=[1, 0, 0])
        run.record(batch, constant(batch, 0.0))
        assert run.evidence().rejected.all()
        assert run.verdict.winner == best
        assert run.verdict.survivors == (best,)


# ---- what people see ---------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "sub-gaussian"])
def test_evidence_is_a_share_and_a_p_value(noise):
    delta = 0.02
    problem = as_problem(SPHERE, sigma=1.0, noise=noise, delta=delta)
    lab, run = Lab(SPHERE, THETA), Gauntlet().start(problem)
    while not run.verdict.decided:
        batch = run.next()
        run.record(batch, lab.measure(batch))
        evidence = run.evidence()
        assert evidence.share.min() >= 0
        assert evidence.share.max() <= 1
        assert evidence.p_value.max() <= 1
        assert evidence.p_value.min() >= delta * (1 - 1e-12)
        np.testing.assert_array_equal(evidence.rejected, evidence.share == 1.0)
        some = evidence.share > 0
        np.testing.assert_allclose(evidence.p_value[some], delta ** evidence.share[some])
        assert np.all(evidence.rival[evidence.rejected] >= 0)
        assert np.all(evidence.rival != np.arange(12))
        assert set(np.flatnonzero(~evidence.rejected)) == set(run.verdict.survivors)
    evidence.share[:] = 7.0  # what is shown is a copy
    evidence.rival[:] = 7
    assert run.evidence().share.max() == 1.0
    assert set(run.evidence().rival) != {7}


def test_words_of_every_stage():
    arms = fl.Arms.unstructured(["tin", "zinc", "iron"])
    run = Gauntlet().start(as_problem(arms, sigma=1.0))
    assert run.words() == "Nothing has been tested yet."
    batch = run.next(1)
    run.record(batch, constant(batch, 0.0))
    assert run.words() == "Nothing has been tested yet."
    batch = run.next(8)
    run.record(batch, constant(batch, 0.0))
    assert run.words() == "Nothing has been tested yet."
    batch = run.next(3)
    run.record(batch, constant(batch, [0.0, 2.0, 1.0]))
    many = (
        "zinc, iron and 1 more are still possible after 12 measurements; zinc minus "
        "iron is 0.25 +- "
    )
    assert run.words().startswith(many)
    assert run.words().endswith(" (95 %, whenever you look).")
    batch = noted(run.next(60), rivals=[1, -1, -1])
    run.record(batch, constant(batch, [0.0, 3.0, 2.9]))
    assert run.verdict.survivors == (1, 2)
    assert run.words().startswith("zinc and iron are still both possible after 72 measurements; ")
    batch = noted(run.next(6000), rivals=[-1, -1, 1])
    run.record(batch, constant(batch, [0.0, 3.0, 2.0]))
    assert run.words() == (
        "zinc is the best, after 6,072 measurements; this is wrong with probability at most 0.05."
    )
    close, _ = drive(
        as_problem(arms, epsilon=0.5, delta=0.01, sigma=1.0), [3.0, 0.0, 0.0], sigma=0.1
    )
    assert close.words().startswith("tin is within 0.5 of the best, after ")
    assert close.words().endswith("this is wrong with probability at most 0.01.")
    alone = Gauntlet().start(as_problem(fl.Arms([[1.0]], names=["gold"]), sigma=1.0))
    assert alone.words() == "gold is the only candidate."


def test_words_name_the_smallest_when_small_is_good():
    run = Gauntlet().start(as_problem(fl.Arms.unstructured(["a", "b"]), objective="min", sigma=1.0))
    batch = run.next()
    run.record(batch, constant(batch, [2.0, 1.0]))
    assert run.words().startswith(
        "b and a are still both possible after 8 measurements; b minus a is -1 "
    )


# ---- intervals ---------------------------------------------------------------------------


def test_the_pooled_radius():
    # sqrt(0 + 2 log 20) = 2.447747, 2.5 sqrt(3 + 2 log 100) = 8.735824.
    assert pooled_radius(0.0, 0.05, 1.0) == pytest.approx(2.447747, abs=1e-6)
    assert pooled_radius(3.0, 0.01, 2.5) == pytest.approx(8.735824, abs=1e-6)
    assert pooled_radius(40.0, 0.3, 1.0) == pytest.approx(6.512138, abs=1e-6)
    for wrong in ((-1.0, 0.05, 1.0), (np.nan, 0.05, 1.0), (1.0, 1.0, 1.0), (1.0, 0.5, 0.0)):
        with pytest.raises(FinalistError):
            pooled_radius(*wrong)


@pytest.mark.parametrize("sigma", [2.0, None])
def test_intervals_equal_a_direct_formula(sigma):
    run, log = drive(as_problem(SPHERE, sigma=sigma), np.zeros(3), sigma=2.0, batches=5)
    Z = SPHERE.coordinates
    counts = sum(batch.counts for batch, _ in log)
    total = sum(rewards.total for _, rewards in log)
    A, start = Z.T @ (counts[:, None] * Z), 4 * 3 / len(Z) * Z.T @ Z
    ratio = np.linalg.slogdet(A + start)[1] - np.linalg.slogdet(start)[1]
    phi = np.linalg.solve(A, Z.T @ total)
    scale = sigma
    if sigma is None:
        squares = sum(np.sum(r.m2 + r.count * r.mean**2) for _, r in log)
        scale = math.sqrt((squares - phi @ A @ phi) / stats.chi2.ppf(0.01, counts.sum() - 3))
    Y = Z[1:] - Z[0]
    gaps, widths = run.interval(Y, confidence=0.9)
    np.testing.assert_allclose(gaps, Y @ phi, atol=1e-10)
    inner = np.linalg.inv(A) @ (A + start) @ np.linalg.inv(A)
    radius = scale * math.sqrt(ratio + 2 * math.log(10))
    expected = radius * np.sqrt(np.einsum("ij,jk,ik->i", Y, inner, Y))
    np.testing.assert_allclose(widths, expected, rtol=1e-8)


def test_before_the_arms_are_spanned_intervals_are_infinite():
    run = Gauntlet().start(as_problem(SPHERE, sigma=1.0))
    Y = SPHERE.coordinates[:2]
    assert np.all(np.isinf(run.interval(Y)[1]))
    batch = run.next(2)
    run.record(batch, Lab(SPHERE, THETA).measure(batch))
    assert np.all(np.isinf(run.interval(Y)[1]))
    with pytest.raises(FinalistError):
        after_pilot(as_problem(SPHERE, sigma=1.0), THETA)[0].interval(Y, confidence=1.0)


def test_intervals_cover_the_truth_at_all_times():
    arms, theta = fl.Arms(instances.unit_sphere(6, 2, 3)), np.array([0.3, -0.2])
    problem, runs, misses = as_problem(arms, sigma=1.0), 200, 0
    truth = arms.means(theta)[1:] - arms.means(theta)[0]
    Y = arms.coordinates[1:] - arms.coordinates[0]
    for seed in range(runs):
        run, lab = after_pilot(problem, theta, seed)
        missed = False
        for _ in range(6):
            gaps, widths = run.interval(Y)
            missed |= bool(np.any(np.abs(gaps - truth) > widths))
            if run.verdict.decided:
                break
            batch = run.next()
            run.record(batch, lab.measure(batch))
        misses += missed
    assert exact_lower_bound(misses, runs, 0.999) <= 0.05


def test_simulated_sums_and_single_rewards_are_the_same_to_it():
    means = SPHERE.means(THETA)
    drawn = DrawnRewards(means, 1.0, "gaussian", np.random.default_rng(0))
    one, two = (
        Gauntlet().start(as_problem(SPHERE, sigma=1.0)),
        Gauntlet().start(as_problem(SPHERE, sigma=1.0)),
    )
    for _ in range(3):
        batch = one.next()
        picks = np.repeat(np.arange(12), batch.counts)
        single = summed(12, picks, drawn.pulls(picks))
        sums = Statistics.empty(12)
        sums.add_batch(single.count, single.total, single.m2)
        one.record(batch, single)
        two.record(batch, sums)
    np.testing.assert_allclose(two.evidence().share, one.evidence().share, atol=1e-9)
