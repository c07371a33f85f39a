import os
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh

import finalist as fl
from finalist.design import optimal_design
from finalist.design.linalg import spanning_arms
from finalist.errors import ProblemError
from finalist.inference.information import information
from finalist.inference.statistics import Statistics
from finalist.problem import Gaussian, Problem, as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies.per_pull import base as per_pull
from finalist.strategies.per_pull import lazy_ts
from finalist.strategies.per_pull.kernels import lazy_ts as kernels
from finalist.strategies.per_pull.lazy_ts import LazyTS, optimal_weights
from finalist.strategies.protocol import Batch
from tests import instances
from tests.unit.per_pull import (
    FOUR,
    alongside,
    begin,
    check_batches,
    check_good_enough,
    check_pieces,
    check_playing,
    drawn,
    losing,
    replayed,
    state_bits,
    step,
    to_the_end,
    told_both_ways,
    wrong_winners,
)

STATE = ("A", "inverse", "damped", "log_det", "means", "weights", "total", "pulled", "progress")


@dataclass
class Twin:
    """The strategy in feature space, slowly: everything from all pulls and rewards, each time.

    With G = X'X / K the span coordinates are those in which G is I. Needs features of full rank.
    """

    settings: LazyTS
    problem: Problem
    picks: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    winner: int | None = None

    def __post_init__(self) -> None:
        self.X = self.problem.arms.features
        self.G = self.X.T @ self.X / len(self.X)
        self.c = max(float(x @ np.linalg.solve(self.G, x)) for x in self.X)
        self.A0 = spanning_arms(self.problem.arms.coordinates)
        self.r, self.forced, self.last = len(self.A0), 0, 0
        self.allocations: list[np.ndarray] = []  # of times 1, 2, ...
        first = np.zeros(len(self.X))
        first[self.A0] = 1 / self.r
        self.w = first

    def eigenvalue(self, A: np.ndarray) -> float:
        return float(eigh(A, self.G, eigvals_only=True)[0])

    @property
    def A(self) -> np.ndarray:
        X = self.X[self.picks]
        return np.asarray(X.T @ X)

    def estimate(self) -> np.ndarray:
        # Of a planned batch the last pulls have no rewards.
        X = self.X[self.picks[: len(self.rewards)]]
        return np.asarray(np.linalg.lstsq(X, np.array(self.rewards), rcond=None)[0])

    def choose(self) -> int:
        t = len(self.picks)
        self.update(t)
        if t > 0:
            self.allocations.append(self.w)
        smallest = self.eigenvalue(self.X[self.A0].T @ self.X[self.A0])
        level = smallest * np.sqrt(t / self.r) * (1 - 1e-9)
        if t < self.r or self.eigenvalue(self.A) < level:
            self.forced += 1
            return int(self.A0[(self.forced - 1) % self.r])
        total = np.sum(self.allocations, axis=0)
        lead = np.bincount(self.picks, minlength=len(self.X)) - total
        lead[total == 0] = np.inf
        assert np.partition(lead, 1)[1] - lead.min() > 1e-9 or (lead == lead.min()).sum() > 1
        return int(lead.argmin())

    def update(self, t: int) -> None:
        spans = np.linalg.matrix_rank(self.X[self.picks[: len(self.rewards)]]) == self.r
        due = self.last == 0 or t >= self.settings.growth * self.last
        if t == len(self.rewards) and t > 0 and spans and due:
            gaps = self.problem.sign * (self.X @ self.estimate())
            gaps = gaps.max() - gaps + self.problem.epsilon
            self.w, self.last = optimal_weights(self.problem.arms.coordinates, gaps), t

    def beta(self) -> float:
        t, problem = len(self.picks), self.problem
        if self.settings.threshold == "heuristic":
            return problem.sigma**2 * float(np.log((1 + np.log(t)) / problem.delta))
        u = self.settings.ridge
        ratio = np.linalg.det(self.A / (u * self.c) + self.G) / np.linalg.det(self.G)
        return (1 + u) * problem.sigma**2 * float(np.log(np.sqrt(ratio) / problem.delta))

    def record(self, arm: int, reward: float) -> None:
        self.picks.append(arm)
        self.rewards.append(reward)
        self.judge()

    def judge(self) -> None:
        if np.linalg.matrix_rank(self.A) < self.r:
            return
        means = self.problem.sign * (self.X @ self.estimate())
        best = int(means.argmax())
        Z = min(
            (means[best] - means[b] + self.problem.epsilon) ** 2
            / (2 * (y := self.X[best] - self.X[b]) @ np.linalg.solve(self.A, y))
            for b in range(len(self.X))
            if b != best
        )
        if self.beta() < Z and self.eigenvalue(self.A) >= self.c * (1 - 1e-9):
            self.winner = best


#: One heavy direction: most arms are almost the same, so lambda_min(A) >= c takes a while.
NARROW = np.vstack([np.column_stack([np.ones(12), np.linspace(0, 0.1, 12)]), [[0.0, 1.0]]])
CASES: dict[str, Any] = {
    "gaussian": (instances.gaussian(8, 3, 4), [1.0, 0.5, -1.0], {"sigma": 0.7}, {}),
    "paper": (*instances.paper(3, 0.5), {"sigma": 0.5}, {}),
    "unstructured": (np.eye(4), [0.9, 0.3, 0.2, 0.1], {"sigma": 0.3}, {"ridge": 1.0}),
    "minimise": (
        instances.gaussian(6, 2, 1),
        [1.0, 0.3],
        {"objective": "min", "sigma": 0.4},
        {"growth": 1.3},
    ),
    "good enough": (np.eye(3), [0.5, 0.45, 0.0], {"epsilon": 0.3, "sigma": 0.4}, {}),
    "heuristic": (instances.gaussian(5, 2, 2), [0.3, 0.0], {}, {"threshold": "heuristic"}),
    "one feature": ([[1.0], [0.4], [-0.5]], [1.0], {"delta": 0.01}, {}),
    "narrow": (NARROW, [1.0, 20.0], {"sigma": 1e-4}, {}),
}
EVERY_CASE = pytest.mark.parametrize("name", CASES)


start = partial(begin, LazyTS, CASES)
bits = partial(state_bits, STATE)


@EVERY_CASE
def test_the_pulls_are_those_of_the_plain_program(name):
    run, strategy, problem, means = start(name)
    twin = Twin(strategy, problem)
    list(alongside(run, twin, drawn(means, 1, problem.sigma), 1500))
    assert run.verdict.decided
    assert run.verdict.pulls == len(twin.picks) > 10
    check_good_enough(run, problem, means)


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
def test_playing_is_next_and_record(kind, monkeypatch):
    check_playing(LazyTS(), FOUR, FOUR.means([0.6, 0.5]), kind, bits, monkeypatch)


@EVERY_CASE
def test_playing_every_case_is_next_and_record(name):
    by_hand, strategy, problem, means = start(name)
    played = strategy.start(problem)
    to_the_end(by_hand, drawn(means, 8, problem.sigma), 2000)
    played.play(drawn(means, 8, problem.sigma), 2000)
    assert bits(played) == bits(by_hand)


def test_playing_stops_at_the_limit_and_goes_on():
    truth = instances.paper(3, 0.01)
    problem = as_problem(fl.Arms(truth.features), sigma=1.0)
    limits = (1, 2, 3, 24, 4999, 5000, 12_000, 12_000)
    check_pieces(LazyTS(), problem, problem.arms.means(truth.theta), limits, bits)


@EVERY_CASE
@pytest.mark.parametrize("size", [7, 40])
def test_a_batch_is_the_next_pulls_without_rewards(name, size):
    run, strategy, problem, means = start(name)
    check_batches(run, Twin(strategy, problem), drawn(means, 2, problem.sigma), size, bits)


@EVERY_CASE
@pytest.mark.parametrize("size", [None, 7])
def test_a_replay_solves_no_design(name, size, monkeypatch):
    run, strategy, problem, means = start(name)
    log = to_the_end(run, drawn(means, 4, problem.sigma), 2000, size)

    def refuse(*_, **__):
        raise AssertionError("replay solved a design")

    monkeypatch.setattr(lazy_ts, "rough_design", refuse)
    replay = replayed(strategy, problem, log)
    assert replay.verdict == run.verdict
    assert bits(replay) == bits(run)


def test_any_allocation_can_be_recorded():
    # Pulls that the strategy did not ask for, in one batch or one by one: the same estimate.
    _, strategy, problem, _ = start("gaussian")
    arms = np.random.default_rng(1).integers(8, size=30)
    run, other = told_both_ways(strategy, problem, arms)
    np.testing.assert_allclose(run._state.means, other._state.means, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run._state.log_det, other._state.log_det, rtol=1e-12)
    np.testing.assert_allclose(run._state.total, other._state.total, rtol=1e-12)
    assert run.next().counts.tolist() == other.next().counts.tolist()


@EVERY_CASE
def test_pulls_may_be_lost(name):
    run, _, problem, means = start(name)
    for _ in losing(run, drawn(means, 3, problem.sigma)):
        assert run._state.total.min() >= 0.0
        assert run._state.total.sum() == pytest.approx(max(run.verdict.pulls - 1, 0))
    check_good_enough(run, problem, means)


@pytest.mark.parametrize(("pulls", "tolerance"), [(4999, 1e-9), (5000, 1e-13), (19_999, 1e-9)])
def test_rank_one_updates_drift_little_and_refreshing_is_exact(pulls, tolerance):
    truth = instances.paper(5, 0.01)
    problem = as_problem(fl.Arms(truth.features), sigma=1.0)
    run = LazyTS().start(problem)
    run.play(drawn(problem.arms.means(truth.theta), 0), pulls)
    state, Z = run._state, problem.arms.coordinates
    assert state.counts.sum() == {4999: 4994, 5000: 0, 19_999: 4999}[pulls]  # 5 until they span
    assert state.pulled.sum() == pulls
    info = information(Z, state.pulled.astype(float))
    inverse = info.inverse_root.T @ info.inverse_root
    np.testing.assert_allclose(state.inverse, inverse, rtol=0, atol=tolerance * inverse.max())
    A = Z.T @ (state.pulled[:, None] * Z)
    np.testing.assert_allclose(state.A, A, rtol=0, atol=1e-12 * A.max())
    log_det = np.linalg.slogdet(A / run._ridge.eta + np.eye(5))[1]
    np.testing.assert_allclose(state.log_det[0], log_det, rtol=10 * tolerance)
    assert state.least[0] <= np.linalg.eigvalsh(A)[0] * (1 + 1e-9)


def test_the_pulls_do_not_depend_on_how_often_the_state_is_computed_anew(monkeypatch):
    truth, results = instances.paper(5, 0.05), []
    problem = as_problem(fl.Arms(truth.features), sigma=1.0)
    for refresh in (100, 5000, 10**9):
        monkeypatch.setattr(per_pull, "REFRESH", refresh)
        run = LazyTS().start(problem)
        counts = run.play(drawn(problem.arms.means(truth.theta), 1), 10**6)
        results.append((run.verdict, counts.tolist()))
    assert results[0] == results[1] == results[2]
    assert results[0][0].pulls > 5000


@pytest.mark.parametrize("name", ["gaussian", "paper", "unstructured", "narrow"])
def test_every_direction_is_explored(name):
    # Jedra and Proutiere 2020: lambda_min(A_t) falls behind f(t) by r + 1 pulls at most.
    problem = start(name)[2].with_(noise=Gaussian(100.0))
    run, rewards = LazyTS().start(problem), drawn(np.zeros(len(problem.arms)), 5)
    Z, r = problem.arms.coordinates, problem.arms.rank
    for t in range(1, 600):
        step(run, rewards)
        A = Z.T @ (run.counts[:, None] * Z)
        level = run._state.rule.force * np.sqrt(max(t - r - 1, 0))
        assert np.linalg.eigvalsh(A)[0] >= level - 1e-9
    assert 0 < run._state.progress[kernels.FORCED] < 200


@pytest.mark.parametrize("K", [3, 8, 30])
def test_the_allocation_is_optimal(K):
    arms, theta = fl.Arms(instances.gaussian(K, 3, K)), np.array([1.0, -0.5, 0.2])
    means, X = arms.means(theta), arms.features
    best = int(means.argmax())
    others = np.delete(np.arange(K), best)
    Y = (X[best] - X[others]) / (means[best] - means[others])[:, None]
    w = optimal_weights(arms.coordinates, means.max() - means)
    A = X.T @ (w[:, None] * X)
    value = max(y @ np.linalg.solve(A, y) for y in Y)
    assert w.sum() == pytest.approx(1.0)
    assert value <= 1.002 * optimal_design(arms, Y).value


def test_arms_that_look_tied_have_an_allocation():
    w = optimal_weights(np.eye(3), np.zeros(3))
    assert w == pytest.approx([0.4142, 0.2929, 0.2929], abs=0.02)
    w = optimal_weights(np.eye(3), np.array([0.0, 0.0, 1.0]))
    assert w == pytest.approx([0.5, 0.5, 0.0], abs=1e-3)
    assert optimal_weights(np.ones((3, 1)), np.zeros(3)) == pytest.approx(1 / 3)


def test_the_threshold_is_a_determinant():
    # Two unstructured arms: z = sqrt(2) e_i, c = 2, A = 2 diag(N), whatever the features' size.
    problem = as_problem(fl.Arms(1e9 * np.eye(2)), sigma=3.0, delta=0.01)
    run = LazyTS(ridge=0.5).start(problem)
    count, got = np.array([5, 9]), Statistics.empty(2)
    got.add_batch(count, np.zeros(2))
    run.record(Batch(count), got)
    rule, log_det = run._state.rule, float(run._state.log_det[0])
    expected = 1.5 * 9.0 * np.log(np.sqrt((5 / 0.5 + 1) * (9 / 0.5 + 1)) / 0.01)
    assert kernels.threshold.py_func(rule, 14, log_det) == pytest.approx(expected, rel=1e-12)
    rule = LazyTS(threshold="heuristic").start(problem)._state.rule
    expected = 9.0 * np.log((1 + np.log(14)) / 0.01)
    assert kernels.threshold.py_func(rule, 14, log_det) == pytest.approx(expected, rel=1e-12)


def test_the_estimate_is_inside_the_ellipsoid_of_the_threshold():
    # ||theta_hat - theta||_A^2 > 2 beta somewhere along the way, with probability delta at most.
    delta, runs, outside = 0.2, 100, 0
    problem = as_problem(fl.Arms(instances.gaussian(5, 2, 0)), delta=delta, sigma=1.0)
    for seed in range(runs):
        run, rewards = LazyTS().start(problem), drawn(np.zeros(5), seed)
        for _ in range(30):
            step(run, rewards, 1 if run.verdict.pulls < 10 else 20)
            if run.verdict.decided:  # a wrong winner: the arms are tied
                outside += 1
                break
            state, Z = run._state, problem.arms.coordinates
            if np.linalg.eigvalsh(state.A)[0] >= state.rule.enough:
                phi = np.linalg.lstsq(Z, state.means, rcond=None)[0]
                beta = kernels.threshold.py_func(state.rule, run.verdict.pulls, state.log_det[0])
                if phi @ state.A @ phi > 2 * beta:
                    outside += 1
                    break
    assert exact_lower_bound(outside, runs, 0.999) <= delta


def test_a_threshold_much_too_small_is_caught(monkeypatch):
    state = lazy_ts._state

    def ninth(*arguments):
        whole = state(*arguments)
        rule = whole.rule
        return whole._replace(rule=rule._replace(scale=rule.scale / 9))

    problem, means = (
        as_problem(fl.Arms.unstructured(2), delta=0.05, sigma=1.0),
        np.array([0.1, 0.0]),
    )
    wrong = partial(wrong_winners, LazyTS(), problem, means, 100)
    assert exact_lower_bound(wrong(), 100, 0.999) <= 0.05
    monkeypatch.setattr(lazy_ts, "_state", ninth)
    assert exact_lower_bound(wrong(), 100, 0.999) > 0.05


def test_the_paper_example_pulls_its_second_arm():
    truth = instances.paper(5, 0.1)
    problem = as_problem(fl.Arms(truth.features), sigma=1.0)
    run = LazyTS().start(problem)
    counts = run.play(drawn(problem.arms.means(truth.theta), 0), 10**7)
    assert run.verdict.winner == 0
    assert counts[1] > 0.8 * counts.sum()


def test_units_of_the_features_change_nothing():
    X, theta = instances.gaussian(7, 3, 1), np.array([0.5, -1.0, 0.3])
    mix = np.random.default_rng(2).standard_normal((3, 3)) * np.array([1e-100, 1.0, 1e100])
    plain, mixed = fl.Arms(X), fl.Arms(X @ mix)
    results = []
    for arms in (plain, mixed):
        run = LazyTS().start(as_problem(arms, sigma=1.0))
        pulls = run.play(drawn(plain.means(theta), 0), 10**6)
        results.append((run.verdict.winner, pulls.sum()))
    assert results[0][0] == results[1][0] == int(plain.means(theta).argmax())
    assert results[0][1] == pytest.approx(results[1][1], rel=0.02)


def test_rewards_without_noise_end_soon():
    for means in (np.zeros(3), np.array([0.0, 1.0, 0.0])):
        run = LazyTS().start(as_problem(fl.Arms.unstructured(3), sigma=1e-9))
        run.play(drawn(means, 0, 0.0), 500)
        assert run.verdict.winner == (1 if means.any() else None)


def test_it_says_what_is_proven():
    assert LazyTS().proven
    assert not LazyTS(threshold="heuristic").proven


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), True])
def test_numbers_among_the_settings_are_checked(value):
    for setting in ("ridge", "growth"):
        with pytest.raises(ProblemError, match=setting):
            LazyTS(**{setting: value})


@pytest.mark.skipif(bool(os.environ.get("FINALIST_SHAPES")), reason="the type checker is faster")
@pytest.mark.parametrize("value", ["1", None])
def test_types_of_the_settings_are_checked(value):
    for setting in ("ridge", "growth", "threshold"):
        with pytest.raises(ProblemError, match=setting):
            LazyTS(**{setting: value})


@pytest.mark.parametrize(
    "note",
    [{"forced": -1}, {"forced": "1"}, {"allocation": [1.0]}]
    + [{"allocation": [0.5, 0.5, value]} for value in (-1.0, 2.0, float("nan"))],
    ids=str,
)
def test_a_note_that_makes_no_sense_is_refused_and_changes_nothing(note):
    run = LazyTS().start(as_problem(fl.Arms.unstructured(3), sigma=1.0))
    before, batch, rewards = bits(run), run.next(), drawn(np.zeros(3), 0)
    with pytest.raises(ProblemError, match="note"):
        run.record(Batch(batch.counts.copy(), note), rewards.batch(batch.counts))
    assert bits(run) == before
