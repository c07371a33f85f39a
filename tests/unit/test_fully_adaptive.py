import os
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.inference.bounds import adaptive_radius, determinant_radius
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.problem import Problem, as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies.per_pull import base as per_pull
from finalist.strategies.per_pull import fully_adaptive
from finalist.strategies.per_pull.fully_adaptive import FullyAdaptive
from finalist.strategies.per_pull.kernels import fully_adaptive as kernels
from finalist.strategies.protocol import Batch
from tests import instances
from tests.unit.per_pull import (
    CASES,
    FOUR,
    alongside,
    begin_knowing,
    check_good_enough,
    check_pieces,
    check_playing,
    drawn,
    replayed,
    state_bits,
    to_the_end,
    told_both_ways,
    wrong_winners,
)

STATE = ("cross", "leverage", "spread", "means", "log_det", "alive", "progress")
TIE = 1e-9


@dataclass
class Twin:
    """The strategy in feature space, slowly: inverses of every matrix, loops over every pair.

    With G = X'X / K the ridge eta I of span coordinates is eta G. Needs features of full rank.
    """

    settings: FullyAdaptive
    problem: Problem
    picks: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.X = self.problem.arms.features
        self.alive = list(range(len(self.X)))
        self.winner: int | None = None
        G = self.X.T @ self.X / len(self.X)
        self.L2 = max(float(x @ np.linalg.solve(G, x)) for x in self.X)
        self.eta = self.settings.ridge * self.L2
        self.ridge = self.eta * G

    def matrix(self) -> np.ndarray:
        return np.asarray(self.ridge + sum(np.outer(self.X[i], self.X[i]) for i in self.picks))

    def choose(self) -> int:
        A = self.matrix()
        Y = np.array([self.X[i] - self.X[j] for i, j in combinations(self.alive, 2)])

        def variances(M):
            return np.array([y @ np.linalg.inv(M) @ y for y in Y])

        now = variances(A)
        then = [variances(A + np.outer(x, x)) for x in self.X]
        worst = now >= now.max() * (1 - TIE)
        after = np.array([v.max() for v in then])
        total = np.array([(now - v)[worst].sum() for v in then])
        best = after <= after.min() * (1 + TIE)
        best &= total >= total[best].max() * (1 - TIE)
        return int(np.flatnonzero(best)[0])

    def radius(self) -> float:
        delta, sigma = self.problem.delta, self.problem.sigma
        S, eta, r = self.settings.theta_norm, self.eta, self.X.shape[1]
        if self.settings.bound == "soare":
            return adaptive_radius(
                len(self.picks), max(r, 2), delta, sigma, np.sqrt(self.L2), S, eta
            )
        ratio = np.linalg.slogdet(self.matrix())[1] - np.linalg.slogdet(self.ridge)[1]
        return determinant_radius(ratio, delta, sigma, S, eta)

    def record(self, arm: int, reward: float) -> None:
        self.picks.append(arm)
        self.rewards.append(reward)
        inverse = np.linalg.inv(self.matrix())
        theta = inverse @ self.X[self.picks].T @ np.array(self.rewards)
        radius, sign = self.radius(), self.problem.sign

        def gap(i, j):
            return float(sign * (self.X[i] - self.X[j]) @ theta)

        def width(i, j):
            y = self.X[i] - self.X[j]
            return float(radius * np.sqrt(y @ inverse @ y))

        out = {j for j in self.alive for i in self.alive if i != j and gap(i, j) > width(i, j)}
        self.alive = [i for i in self.alive if i not in out]
        most = {
            j: max((gap(i, j) + width(i, j) for i in self.alive if i != j), default=-np.inf)
            for j in self.alive
        }
        best = min(most, key=lambda j: most[j])
        if len(self.alive) == 1 or 0 < self.problem.epsilon >= most[best]:
            self.winner = best


EVERY_CASE = pytest.mark.parametrize("name", CASES)
EVERY_BOUND = pytest.mark.parametrize("bound", ["sharp", "soare"])


start = partial(begin_knowing, FullyAdaptive, CASES)
bits = partial(state_bits, STATE)


def ridge_estimate(run) -> tuple[np.ndarray, np.ndarray, float]:
    """Return Z A^-1 Z', the means and log(det A / det(eta I)) from all rewards, directly."""
    run._rewards.add_batch(run._state.counts, run._state.sums)
    run._state.counts[:], run._state.sums[:] = 0, 0.0
    Z, n, eta = run._ridge.Z, run._rewards.count, run._ridge.eta
    A = eta * np.eye(Z.shape[1]) + Z.T @ (n[:, None] * Z)
    C = Z @ np.linalg.solve(A, Z.T)
    return C, C @ (n * run._rewards.mean), np.linalg.slogdet(A / eta)[1]


@EVERY_CASE
@EVERY_BOUND
def test_it_pulls_what_a_slow_twin_pulls(name, bound):
    run, strategy, problem, means = start(name, bound=bound)
    twin = Twin(strategy, problem)
    for _ in alongside(run, twin, drawn(means, 5, problem.sigma), 400):
        assert list(run.verdict.survivors) == twin.alive
    assert len(twin.picks) > 20
    assert len(twin.alive) < len(twin.X)


@pytest.mark.parametrize("ridge", [0.01, 30.0])
def test_the_twin_agrees_on_other_ridges(ridge):
    run, strategy, problem, means = start("gaussian", ridge=ridge)
    twin = Twin(strategy, problem)
    for _ in alongside(run, twin, drawn(means, 1, problem.sigma), 100):
        assert list(run.verdict.survivors) == twin.alive
    assert len(twin.picks) > 8


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
@EVERY_BOUND
def test_playing_is_next_and_record(kind, bound, monkeypatch):
    strategy = FullyAdaptive(theta_norm=0.7, bound=bound)
    check_playing(strategy, FOUR, FOUR.means([0.9, 0.2]), kind, bits, monkeypatch)


@EVERY_CASE
def test_playing_every_case_is_next_and_record(name):
    by_hand, strategy, problem, means = start(name)
    played = strategy.start(problem)
    to_the_end(by_hand, drawn(means, 8, problem.sigma), 3000)
    played.play(drawn(means, 8, problem.sigma), 3000)
    assert bits(played) == bits(by_hand)


def test_playing_stops_at_the_limit_and_goes_on():
    truth = instances.paper(3, 0.01)
    arms = fl.Arms(truth.features)
    strategy, means = FullyAdaptive.knowing(arms, truth.theta), arms.means(truth.theta)
    check_pieces(
        strategy, as_problem(arms, sigma=1.0), means, (1, 4999, 5000, 12_000, 12_000), bits
    )


def test_noise_is_drawn_in_chunks(monkeypatch):
    asked, noise = [], DrawnRewards.noise

    def count(self, n):
        asked.append(n)
        return noise(self, n)

    monkeypatch.setattr(DrawnRewards, "noise", count)
    run = FullyAdaptive(theta_norm=1.0).start(as_problem(fl.Arms.unstructured(2), sigma=1.0))
    run.play(drawn(np.zeros(2), 0), 2 * per_pull.CHUNK + 7)
    assert asked[:4] == [512, 512, 1024, 2048]
    assert asked[-2:] == [per_pull.CHUNK, 7]
    assert sum(asked) == 2 * per_pull.CHUNK + 7


@EVERY_CASE
def test_a_batch_is_the_next_pulls_without_rewards(name):
    run, strategy, problem, means = start(name)
    twin, rewards = Twin(strategy, problem), drawn(means, 2, problem.sigma)
    for _ in range(5):
        before = bits(run)
        batch = run.next(7)
        np.testing.assert_array_equal(run.next(7).counts, batch.counts)
        assert bits(run) == before
        for _ in range(7):
            twin.picks.append(twin.choose())
        np.testing.assert_array_equal(
            batch.counts, np.bincount(twin.picks[-7:], minlength=len(problem.arms))
        )
        run.record(batch, rewards.batch(batch.counts))
        if run.verdict.decided:
            break
        twin.alive = list(run.verdict.survivors)


@EVERY_CASE
def test_batches_end_with_the_best_arm_and_replay(name):
    run, strategy, problem, means = start(name)
    log = to_the_end(run, drawn(means, 4, problem.sigma), 10_000, size=7)
    assert run.verdict.decided
    C, m, _ = ridge_estimate(run)
    np.testing.assert_allclose(run._state.means, m, rtol=0, atol=1e-12 * np.abs(m).max())
    np.testing.assert_allclose(run._state.cross, C, rtol=0, atol=1e-12 * C.max())
    check_good_enough(run, problem, means)
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


def test_of_several_good_enough_arms_the_best_looking_one_wins():
    problem = as_problem(fl.Arms.unstructured(4), epsilon=1.0, sigma=1.0)
    run, got = FullyAdaptive(theta_norm=0.6).start(problem), Statistics.empty(4)
    count = np.full(4, 10_000)
    got.add_batch(count, count * np.array([0.50, 0.52, 0.51, 0.50]))
    run.record(Batch(count), got)
    assert run.verdict.winner == 1
    assert run.verdict.survivors == (0, 1, 2, 3)


def test_replay_of_single_pulls():
    run, strategy, problem, means = start("paper")
    log = to_the_end(run, drawn(means, 4, problem.sigma), 10_000)
    assert bits(replayed(strategy, problem, log)) == bits(run)


@pytest.mark.parametrize(("pulls", "tolerance"), [(4999, 1e-10), (5000, 1e-13), (19_999, 1e-10)])
def test_rank_one_updates_drift_little_and_refreshing_is_exact(pulls, tolerance):
    truth = instances.paper(5, 0.01)
    arms = fl.Arms(truth.features)
    run = FullyAdaptive.knowing(arms, truth.theta).start(as_problem(arms, sigma=1.0))
    run.play(drawn(arms.means(truth.theta), 0), pulls)
    assert run.verdict.pulls == pulls
    assert run._state.counts.sum() == pulls % per_pull.REFRESH
    C, m, log_det = ridge_estimate(run)
    np.testing.assert_allclose(run._state.cross, C, rtol=0, atol=tolerance * C.max())
    np.testing.assert_allclose(run._state.means, m, rtol=0, atol=tolerance * np.abs(m).max())
    np.testing.assert_allclose(run._state.log_det[0], log_det, rtol=10 * tolerance)
    for i, j in combinations(run.verdict.survivors, 2):
        Z = run._ridge.Z
        y = Z[i] - Z[j]
        A = run._ridge.eta * np.eye(5) + Z.T @ (run.counts[:, None] * Z)
        np.testing.assert_allclose(run._state.spread[i, j], y @ np.linalg.solve(A, y), rtol=1e-7)


@EVERY_BOUND
@pytest.mark.parametrize("name", ["gaussian", "one feature"])
def test_the_radius_is_that_of_the_bounds(name, bound):
    run, strategy, problem, means = start(name, bound=bound, ridge=0.7)
    run.play(drawn(means, 0, problem.sigma), 9)
    log_det, Z = float(run._state.log_det[0]), problem.arms.coordinates
    L = float(np.linalg.norm(Z, axis=1).max())
    common = {"delta": 0.05, "sigma": problem.sigma, "S": strategy.theta_norm, "eta": 0.7 * L**2}
    radius = kernels.radius_of.py_func(run._state.rule, 9, log_det)
    if bound == "sharp":
        expected = determinant_radius(log_det, **common)
    else:
        expected = adaptive_radius(9, max(Z.shape[1], 2), L=L, **common)
    assert radius == pytest.approx(expected, rel=1e-14)


def test_the_estimate_is_the_ridge_estimate_of_the_library():
    # On unstructured arms span coordinates are the features, scaled.
    arms = fl.Arms.unstructured(3)
    run = FullyAdaptive(theta_norm=1.0).start(as_problem(arms, sigma=1.0))
    got = Statistics.empty(3)
    got.add_many([0, 1, 1, 2], [1.0, 2.0, 4.0, -1.0])
    run.record(Batch(got.count.copy()), got)
    fit = estimate(arms, got, ridge=1.0)
    np.testing.assert_allclose(run._state.means, fit.means(), rtol=1e-14)
    assert run._state.log_det[0] == pytest.approx(fit.log_det_ratio(), rel=1e-14)


def test_units_of_the_features_change_nothing():
    X, theta = instances.gaussian(7, 3, 1), np.array([0.5, -1.0, 0.3])
    mix = np.random.default_rng(2).standard_normal((3, 3)) * np.array([1e-100, 1.0, 1e100])
    plain, mixed = fl.Arms(X), fl.Arms(X @ mix)
    other = np.linalg.solve(mix / np.array([1e-100, 1.0, 1e100]), theta)
    other = other / np.array([1e-100, 1.0, 1e100])
    verdicts = []
    for arms, parameter in ((plain, theta), (mixed, other)):
        run = FullyAdaptive.knowing(arms, parameter).start(as_problem(arms, sigma=1.0))
        pulls = run.play(drawn(plain.means(theta), 0), 10**6)
        verdicts.append((run.verdict, pulls.tolist()))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0][0].winner == int(plain.means(theta).argmax())


@pytest.mark.parametrize(
    ("features", "theta"),
    [
        ([[1.0], [0.4], [-0.5]], [1.0]),
        (instances.one_hot_factorial((2, 3)), [0.0, 1.0, 0.0, 0.5, 0.0, -0.5]),
        (instances.gaussian(4, 9, 2), np.ones(9)),
    ],
    ids=["one feature", "rank-deficient", "more features than arms"],
)
@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
def test_odd_arms_end_with_the_best(features, theta, scale):
    arms, parameter = fl.Arms(np.asarray(features) * scale), np.asarray(theta) / scale
    run = FullyAdaptive.knowing(arms, parameter).start(as_problem(arms, sigma=0.1, delta=1e-6))
    run.play(drawn(arms.means(parameter), 3, 0.1), 10**6)
    assert run.verdict.winner == int(arms.means(parameter).argmax())


def nearly_tied(runs, delta) -> int:
    problem, theta = (
        as_problem(fl.Arms.unstructured(2), delta=delta, sigma=1.0),
        np.array([0.1, 0.0]),
    )
    return wrong_winners(FullyAdaptive.knowing(problem.arms, theta), problem, theta, runs)


def test_error_rate():
    wrong = nearly_tied(300, delta=0.2)
    assert exact_lower_bound(wrong, 300, 0.999) <= 0.2


def test_a_radius_three_times_too_small_is_caught(monkeypatch):
    state = fully_adaptive._state

    def third(*arguments):
        whole = state(*arguments)
        rule = whole.rule
        return whole._replace(rule=rule._replace(sigma=rule.sigma / 3, bias=rule.bias / 3))

    monkeypatch.setattr(fully_adaptive, "_state", third)
    wrong = nearly_tied(100, delta=0.05)
    assert exact_lower_bound(wrong, 100, 0.999) > 0.05


def test_the_paper_example_pulls_its_second_arm():
    truth = instances.paper(5, 0.1)
    arms, pulls = fl.Arms(truth.features), {}
    for bound in ("sharp", "soare"):
        strategy = replace(FullyAdaptive.knowing(arms, truth.theta), bound=bound)
        run = strategy.start(as_problem(arms, sigma=1.0))
        counts = run.play(drawn(arms.means(truth.theta), 0), 10**7)
        assert run.verdict.winner == 0
        assert counts[1] > 0.9 * counts.sum()
        pulls[bound] = run.verdict.pulls
    assert pulls["soare"] > 1.3 * pulls["sharp"]


def test_what_it_knows_is_the_root_mean_square_of_the_rewards():
    arms, theta = fl.Arms(instances.gaussian(9, 4, 0)), np.array([1.0, -2.0, 0.5, 0.0])
    strategy = FullyAdaptive.knowing(arms, theta)
    assert strategy.theta_norm == pytest.approx(np.linalg.norm(arms.parameter_to_span(theta)))
    tiny = FullyAdaptive.knowing(arms, theta * 1e-200)
    assert tiny.theta_norm == pytest.approx(1e-200 * strategy.theta_norm)
    assert FullyAdaptive.knowing(arms, 0.0 * theta).theta_norm > 0


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), True])
def test_numbers_among_the_settings_are_checked(value):
    with pytest.raises(ProblemError, match="theta_norm"):
        FullyAdaptive(theta_norm=value)
    with pytest.raises(ProblemError, match="ridge"):
        FullyAdaptive(theta_norm=1.0, ridge=value)


@pytest.mark.skipif(bool(os.environ.get("FINALIST_SHAPES")), reason="the type checker is faster")
@pytest.mark.parametrize("value", ["1", None])
def test_types_of_the_settings_are_checked(value):
    for setting in ("theta_norm", "ridge", "bound"):
        with pytest.raises(ProblemError, match=setting):
            FullyAdaptive(**{"theta_norm": 1.0, setting: value})


def test_problems_are_checked():
    with pytest.raises(ProblemError, match=r"3000 arms have 4498500 pairs.*XYAdaptive"):
        FullyAdaptive(theta_norm=1.0).start(
            as_problem(fl.Arms(np.arange(3000.0)[:, None]), sigma=1.0)
        )


def test_wrong_rewards_are_refused_and_change_nothing():
    run = FullyAdaptive(theta_norm=1.0).start(as_problem(fl.Arms.unstructured(3), sigma=1.0))
    before = bits(run)
    with pytest.raises(ProblemError, match="open batch"):
        run.record(run.next(), Statistics.empty(3))
    five = Statistics.empty(5)
    five.add(4, 1.0)
    with pytest.raises(ProblemError, match="5 arms"):
        run.record(Batch(five.count.copy()), five)
    with pytest.raises(ProblemError, match="size"):
        run.next(0)
    assert bits(run) == before


def test_the_tie_rule_is_that_of_the_greedy_allocation():
    from finalist.design.kernels import greedy as greedy_kernels
    from finalist.strategies.per_pull.kernels import common

    assert common.TIE == greedy_kernels.TIE == TIE
