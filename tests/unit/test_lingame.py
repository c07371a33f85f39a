import math
import os
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

import finalist as fl
from finalist.errors import ProblemError
from finalist.inference.bounds import determinant_radius
from finalist.inference.statistics import Statistics
from finalist.problem import Problem, as_problem
from finalist.strategies.per_pull import base as per_pull
from finalist.strategies.per_pull import ridge
from finalist.strategies.per_pull.kernels import game
from finalist.strategies.per_pull.kernels import lingame as kernels
from finalist.strategies.per_pull.lingame import LinGame
from finalist.strategies.protocol import Batch
from tests import instances
from tests.unit import per_pull as shared
from tests.unit.per_pull import (
    FOUR,
    alongside,
    begin_knowing,
    case,
    check_good_enough,
    check_playing,
    drawn,
    replayed,
    state_bits,
    step,
    to_the_end,
)

STATE: tuple[str, ...] = ("cross", "leverage", "spread", "means", "log_det", "pulled", "tracked")
STATE += ("losses", "rows", "mixability", "progress")
TIE, FLOOR = 1e-9, 1e-8


@dataclass
class AdaHedge:
    """AdaHedge as de Rooij, van Erven, Grunwald and Koolen (2014) define it, Sect. 2."""

    experts: int

    def __post_init__(self) -> None:
        self.L, self.delta = np.zeros(self.experts), 0.0

    @property
    def rate(self) -> float:
        return math.log(self.experts) / self.delta if self.delta > 0 else math.inf

    def weights(self) -> np.ndarray:
        away = self.L - self.L.min()
        w = np.exp(-self.rate * away) if self.delta > 0 else (away <= TIE).astype(float)
        return np.asarray(w / w.sum())

    def incur(self, loss: np.ndarray) -> None:
        w, rate = self.weights(), self.rate
        if rate < math.inf:
            worst = (-rate * loss)[w > 0].max()
            mix = -(math.log(w @ np.exp(-rate * loss - worst)) + worst) / rate
        else:
            mix = (self.L + loss).min() - self.L.min()
        gap = float(w @ loss - mix)
        self.delta += max(gap, 0.0) if self.delta > 0 or gap > TIE else 0.0
        self.L = self.L + loss


@dataclass
class Twin:
    """The strategy in feature space, slowly: one expert per pair, inverses of every matrix.

    With G = X'X / K the ridge eta I of span coordinates is eta G. Needs features of full rank.
    """

    settings: LinGame
    problem: Problem
    picks: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.X = self.problem.arms.features
        self.K, self.d = self.X.shape
        self.G = self.X.T @ self.X / self.K
        self.L2 = max(float(x @ np.linalg.solve(self.G, x)) for x in self.X)
        self.eta = self.settings.ridge * self.L2
        self.learner, self.W = AdaHedge(self.K**2), np.zeros(self.K)
        self.winner: int | None = None

    @property
    def counts(self) -> np.ndarray:
        return np.bincount(self.picks, minlength=self.K)

    def V(self) -> np.ndarray:
        return np.asarray(self.eta * self.G + self.X.T @ np.diag(self.counts) @ self.X)

    def means(self) -> np.ndarray:
        known = self.picks[: len(self.rewards)]
        n = np.bincount(known, minlength=self.K)
        V = self.eta * self.G + self.X.T @ np.diag(n) @ self.X
        b = self.X[known].T @ np.array(self.rewards)
        return np.asarray(self.X @ np.linalg.inv(V) @ b)

    def leader(self) -> int:
        value = self.problem.sign * self.means()
        return int(np.flatnonzero(value >= value.max() - TIE * np.abs(value).max())[0])

    def beta(self, t: int, delta: float) -> float:
        """beta(t, delta) of the paper for noise of size sigma."""
        M, sigma = self.settings.theta_norm, self.problem.sigma
        log = self.d / 2 * math.log(1 + t * self.L2 / (self.eta * self.d))
        if self.settings.threshold == "determinant":
            log = (np.linalg.slogdet(self.V())[1] - np.linalg.slogdet(self.eta * self.G)[1]) / 2
        if self.settings.threshold == "heuristic":
            log = math.log(1 + math.log(t))
        return (math.sqrt(math.log(1 / delta) + log) + math.sqrt(self.eta / 2) * M / sigma) ** 2

    def bonus(self, t: int) -> tuple[np.ndarray, float]:
        """The bonus of every arm and the largest gain."""
        lengths = np.sqrt([x @ np.linalg.inv(self.V()) @ x for x in self.X])
        M, sigma = self.settings.theta_norm, self.problem.sigma
        if self.settings.optimism == "practical":
            return sigma * math.sqrt(2 * math.log(t)) * lengths, math.log(t)
        beta = Twin.beta(replace_threshold(self), t, t**-3.0)
        return sigma * math.sqrt(2 * beta) * lengths, self.L2 * (2 * M) ** 2 / (2 * sigma**2)

    def alternative(self, i: int, w: np.ndarray) -> np.ndarray:
        """How far nature moves the mean of every arm away from the estimate."""
        m, s, V = self.means(), self.problem.sign, self.X.T @ np.diag(w / w.sum() + FLOOR) @ self.X
        inverse, moves = np.linalg.inv(V), {}
        for j in range(self.K):
            y, g = self.X[i] - self.X[j], max(s * (m[i] - m[j]), 0.0) + self.problem.epsilon
            if j != i:
                size = float(y @ inverse @ y)
                moves[g**2 / size] = g * self.X @ inverse @ y / size
        return np.asarray(moves[min(moves)])

    def choose(self) -> int:
        t, n = len(self.picks), self.counts
        if n.min() == 0:
            self.W[n.argmin()] += 1.0
            return int(n.argmin())
        w, i = self.learner.weights().reshape(self.K, self.K), self.leader()
        moved = np.zeros((self.K, self.K))
        row = self.learner.L.reshape(self.K, self.K)[i]
        away = row - row.min()
        own = np.exp(-self.learner.rate * away) if self.learner.delta > 0 else away <= TIE
        moved[i] = self.alternative(i, own.astype(float))
        bonus, cap = self.bonus(t)
        gains = np.minimum((np.abs(moved) + bonus) ** 2 / (2 * self.problem.sigma**2), cap)
        self.learner.incur(-gains.ravel())
        self.W += w.sum(axis=0)
        behind = n - self.W
        return int(np.flatnonzero(behind <= behind.min() + TIE)[0])

    def record(self, arm: int, reward: float) -> None:
        self.picks.append(arm)
        self.rewards.append(reward)
        inverse, m, i = np.linalg.inv(self.V()), self.means(), self.leader()
        beta = self.beta(len(self.picks), self.problem.delta)

        def distance(j: int) -> float:
            y = self.X[i] - self.X[j]
            g = max(self.problem.sign * (m[i] - m[j]) + self.problem.epsilon, 0.0)
            return float(g**2 / (2 * self.problem.sigma**2 * (y @ inverse @ y)))

        if self.counts.min() > 0 and all(distance(j) > beta for j in range(self.K) if j != i):
            self.winner = i


def replace_threshold(twin: Twin) -> Twin:
    """The twin with the paper's threshold, which is that of its bonus in any case."""
    other = Twin(replace(twin.settings, threshold="proven"), twin.problem)
    other.picks = twin.picks
    return other


CASES = shared.CASES | {
    "gaussian": case(instances.gaussian(8, 3, 0), [1.0, -0.5, 0.2], sigma=0.5),
    "minimising": case(instances.gaussian(6, 2, 3), [0.4, 1.0], sigma=0.5, objective="min"),
    "epsilon": case(np.eye(3), [1.0, 0.95, 0.0], sigma=0.4, epsilon=0.3),
}
EVERY_CASE = pytest.mark.parametrize("name", CASES)


start = partial(begin_knowing, LinGame, CASES)
bits = partial(state_bits, STATE)  # all that later pulls depend on


def all_losses(state) -> np.ndarray:
    """Return the losses of every pair, with the row shared by the other answers written out."""
    K, known = len(state.rows), state.progress[game.ROWS]
    full = np.repeat(state.losses[[K]], K, axis=0)
    full[state.rows[:known]] = state.losses[state.rows[:known]]
    return full


@EVERY_CASE
@pytest.mark.parametrize(
    ("threshold", "optimism"),
    [("proven", "practical"), ("determinant", "paper"), ("heuristic", "practical")],
)
def test_it_pulls_what_a_slow_twin_pulls(name, threshold, optimism):
    run, strategy, problem, means = start(name, threshold=threshold, optimism=optimism)
    twin = Twin(strategy, problem)
    for _ in alongside(run, twin, drawn(means, 5, problem.sigma), 250):
        np.testing.assert_allclose(all_losses(run._state).ravel(), twin.learner.L, rtol=1e-7)
        np.testing.assert_allclose(run._state.mixability[0], twin.learner.delta, rtol=1e-6)
        np.testing.assert_allclose(run._state.tracked, twin.W, atol=1e-7)
    assert len(twin.picks) > twin.K + 1
    assert twin.learner.delta > 0


@pytest.mark.parametrize("ridge", [0.01, 30.0])
def test_the_twin_agrees_on_other_ridges(ridge):
    run, strategy, problem, means = start("gaussian", ridge=ridge)
    twin = Twin(strategy, problem)
    list(alongside(run, twin, drawn(means, 1, problem.sigma), 150))
    assert len(twin.picks) > 8


@pytest.mark.parametrize("seed", range(5))
def test_the_reference_learner_keeps_its_regret_bound(seed):
    # De Rooij et al. 2014, Sect. 2: regret <= 2 Delta <= range * (sqrt(T log K) + 4/3 log K + 2).
    rng, K, T = np.random.default_rng(seed), 9, 2000
    learner, total, bound = AdaHedge(K), 0.0, math.sqrt(2000 * math.log(9)) + 4 / 3 * math.log(9)
    for _ in range(T):
        w = learner.weights()
        loss = 3.0 * (rng.random(K) < 0.4 + 0.2 * w) if seed % 2 else 3.0 * np.eye(K)[w.argmax()]
        total += w @ loss
        learner.incur(loss)
    assert 0 < total - learner.L.min() <= 3.0 * (bound + 2)
    assert total - learner.L.min() <= 2 * learner.delta + 1e-9


@pytest.mark.parametrize("optimism", ["practical", "paper"])
def test_the_learner_is_adahedge(optimism):
    # Fed with the gains that a run makes, from the first round on to thousands.
    truth = instances.paper(4, 0.02)
    arms = fl.Arms(truth.features)
    strategy = replace(LinGame.knowing(arms, truth.theta), optimism=optimism)
    run, rewards = strategy.start(as_problem(arms, sigma=1.0)), drawn(arms.means(truth.theta), 0)
    run.play(rewards, 5)
    learner, before = AdaHedge(25), all_losses(run._state)
    for t in range(1200):
        w = learner.weights().reshape(5, 5).sum(axis=0)
        run.play(rewards, 6 + t)
        np.testing.assert_allclose(run._state.marginal, w, rtol=0, atol=1e-7)
        learner.incur((all_losses(run._state) - before).ravel())
        before = all_losses(run._state)
    np.testing.assert_allclose(run._state.mixability[0], learner.delta, rtol=1e-6)
    assert not run.verdict.decided


def test_the_pulls_stay_near_the_weights():
    # C-tracking: N - W lies between -log K and 1 (Degenne et al. 2020, appendix on tracking).
    truth = instances.paper(5, 0.1)
    arms = fl.Arms(truth.features)
    run = LinGame.knowing(arms, truth.theta).start(as_problem(arms, sigma=1.0))
    rewards = drawn(arms.means(truth.theta), 2)
    for limit in range(100, 5000, 100):
        run.play(rewards, limit)
        away = run._state.pulled - run._state.tracked
        assert -math.log(6) - 1e-6 <= away.min() <= away.max() <= 1 + 1e-6
        assert abs(away.sum()) < 1e-6


@pytest.mark.parametrize("name", ["gaussian", "unstructured", "minimising", "epsilon"])
@pytest.mark.parametrize("seed", range(3))
def test_nature_answers_with_the_nearest_alternative(name, seed):
    run, _, problem, means = start(name)
    run.play(drawn(means, seed, problem.sigma), 15)
    state, (K, r) = run._state, run._state.Z.shape
    share = np.random.default_rng(seed).dirichlet(np.ones(K))
    i = int((problem.sign * state.means).argmax())
    state.share[:] = share
    game.respond(state, i)
    Z, V = state.Z, state.Z.T @ np.diag(share) @ state.Z
    phi = np.linalg.lstsq(Z, state.means, rcond=None)[0]
    away = np.linalg.lstsq(Z, state.moved, rcond=None)[0]  # up to its sign

    def distance(x):
        return 0.5 * float((phi - x) @ V @ (phi - x))

    nearest = []
    for j in range(K):
        if j != i:
            y = problem.sign * (Z[j] - Z[i])
            wrong = LinearConstraint(y, lb=problem.epsilon)
            result = minimize(distance, np.zeros(r), constraints=wrong, tol=1e-14)
            nearest.append(result.fun)
    assert 0.5 * away @ V @ away == pytest.approx(min(nearest), rel=1e-5, abs=1e-10)
    other = Z @ (phi - problem.sign * away)
    assert (problem.sign * (other - other[i])).max() == pytest.approx(problem.epsilon, abs=1e-9)


@pytest.mark.parametrize("t", [1, 17, 10**6])
def test_the_threshold_is_that_of_the_paper(t):
    arms = fl.Arms(instances.gaussian(7, 3, 1))
    problem, strategy = as_problem(arms, sigma=2.0, delta=0.01), LinGame(1.5, ridge=0.3)
    rule = strategy.start(problem)._state.rule
    L2 = float((arms.coordinates**2).sum(axis=1).max())
    eta, d = 0.3 * L2, 3
    root = math.sqrt(math.log(100) + d / 2 * math.log(1 + t * L2 / (eta * d)))
    beta = (root + math.sqrt(eta / 2) * 1.5 / 2.0) ** 2
    radius = kernels.radius_of(rule, float(t), 0.0)
    assert radius**2 / (2 * 2.0**2) == pytest.approx(beta, rel=1e-12)
    log_det = d * math.log(1 + t * L2 / (eta * d))
    assert radius == pytest.approx(determinant_radius(log_det, 0.01, 2.0, 1.5, eta), rel=1e-12)
    sharp = replace(strategy, threshold="determinant").start(problem)._state.rule
    assert kernels.radius_of(sharp, float(t), log_det) == pytest.approx(radius, rel=1e-12)
    loose = replace(strategy, threshold="heuristic").start(problem)._state.rule
    want = 2.0 * math.sqrt(2 * math.log((1 + math.log(t)) / 0.01)) + math.sqrt(eta) * 1.5
    assert kernels.radius_of(loose, float(t), 0.0) == pytest.approx(want, rel=1e-12)
    paper = replace(strategy, optimism="paper").start(problem)._state.rule
    assert paper.cap == pytest.approx(2 * L2 * 1.5**2 / 2.0**2)


def test_only_the_heuristic_is_without_proof():
    assert LinGame(1.0).threshold == "proven"
    proven = {word: LinGame(1.0, threshold=word).proven for word in ("proven", "determinant")}
    assert proven == {"proven": True, "determinant": True}
    assert LinGame(1.0, threshold="heuristic").proven is False


def test_the_determinant_is_never_more_than_its_bound():
    run, _, problem, means = start("gaussian")
    for limit in (1, 10, 60):
        run.play(drawn(means, 1, problem.sigma), limit)
        state = run._state
        assert state.log_det[0] <= 3 * math.log1p(run.verdict.pulls * state.rule.growth) + 1e-12


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
@pytest.mark.parametrize("optimism", ["practical", "paper"])
def test_playing_is_next_and_record(kind, optimism, monkeypatch):
    strategy = LinGame(theta_norm=0.7, optimism=optimism)
    check_playing(strategy, FOUR, FOUR.means([0.9, 0.2]), kind, bits, monkeypatch)


@EVERY_CASE
def test_a_batch_is_what_the_learner_plays_without_rewards(name):
    run, strategy, problem, means = start(name)
    twin, rewards = Twin(strategy, problem), drawn(means, 2, problem.sigma)
    for size in (3, 7, 1, 9, 7):
        before = bits(run)
        batch = run.next(size)
        np.testing.assert_array_equal(run.next(size).counts, batch.counts)
        assert bits(run) == before
        for _ in range(size):
            twin.picks.append(twin.choose())
        counts = np.bincount(twin.picks[-size:], minlength=twin.K)
        np.testing.assert_array_equal(batch.counts, counts)
        got = rewards.batch(batch.counts)
        twin.rewards += [float(got.mean[arm]) for arm in twin.picks[-size:]]
        run.record(batch, got)
        np.testing.assert_allclose(run._state.tracked, twin.W, atol=1e-7)
        np.testing.assert_allclose(run._state.means, twin.means(), rtol=0, atol=1e-9)
        if run.verdict.decided:
            break


@EVERY_CASE
@pytest.mark.parametrize("size", [1, 7])
def test_a_run_ends_with_a_good_arm_and_replays(name, size):
    run, strategy, problem, means = start(name)
    log = to_the_end(run, drawn(means, 4, problem.sigma), 10_000, size=size)
    assert run.verdict.winner in run.verdict.survivors
    check_good_enough(run, problem, means)
    replay = replayed(strategy, problem, log)
    assert replay.verdict == run.verdict
    assert bits(replay) == bits(run)


def test_any_allocation_can_be_recorded_and_is_tracked():
    run, _, _, _ = start("gaussian")
    rng = np.random.default_rng(0)
    foreign = Statistics.empty(8)
    foreign.add_many([3] * 40, 0.1 * rng.standard_normal(40))
    run.record(Batch(foreign.count.copy()), foreign)
    assert run.verdict.pulls == 40
    assert run._state.tracked.sum() == pytest.approx(40)
    assert run.next(30).counts[3] == 0  # pulled too often: the others catch up


def test_no_arm_wins_before_every_arm_was_pulled():
    # The ridge pulls an unknown mean to 0, which is knowledge only if theta_norm is right.
    problem = as_problem(fl.Arms.unstructured(3), sigma=1.0)
    run, got = LinGame(0.01, ridge=100.0, threshold="heuristic").start(problem), Statistics.empty(3)
    got.add_batch([10_000, 10_000, 0], [10_000.0, 0.0, 0.0])
    run.record(Batch(got.count.copy()), got)
    assert run.verdict.winner is None
    np.testing.assert_array_equal(run.next().counts, [0, 0, 1])
    step(run, drawn(np.array([1.0, 0.0, 0.0]), 0))
    assert run.verdict.winner == 0


def test_an_empty_batch_changes_nothing():
    run, _, _, _ = start("gaussian")
    before = bits(run)
    run.record(Batch(np.zeros(8, dtype=np.int64)), Statistics.empty(8))
    assert bits(run) == before


def test_survivors_are_the_arms_that_may_be_best():
    run, _, problem, means = start("gaussian")
    run.play(drawn(means, 0, problem.sigma), 60)
    state = run._state
    radius = kernels.radius_of(state.rule, 60.0, state.log_det[0])
    gaps = state.means[:, None] - state.means[None, :]
    out = (gaps > radius * np.sqrt(state.spread)).any(axis=0)
    assert run.verdict.survivors == tuple(np.flatnonzero(~out).tolist())
    assert 1 < len(run.verdict.survivors) < 8


@pytest.mark.parametrize(("pulls", "tolerance"), [(4999, 1e-10), (5000, 1e-13), (9999, 1e-10)])
def test_rank_one_updates_drift_little_and_refreshing_is_exact(pulls, tolerance):
    truth = instances.paper(5, 0.01)
    arms = fl.Arms(truth.features)
    run = LinGame.knowing(arms, truth.theta).start(as_problem(arms, sigma=1.0))
    run.play(drawn(arms.means(truth.theta), 0), pulls)
    state = run._state
    assert state.counts.sum() == pulls % per_pull.REFRESH
    kept = [getattr(state, name).copy() for name in ("cross", "spread", "means", "leverage")]
    log_det = state.log_det[0]
    run._refresh()
    for old, name in zip(kept, ("cross", "spread", "means", "leverage"), strict=True):
        new = getattr(state, name)
        np.testing.assert_allclose(old, new, rtol=0, atol=tolerance * np.abs(new).max())
    assert log_det == pytest.approx(state.log_det[0], rel=10 * tolerance)


def test_a_bound_of_any_size_is_no_trouble():
    problem, means = as_problem(fl.Arms.unstructured(3), sigma=1.0), np.array([1.0, 0.0, 0.0])
    for norm in (1e-300, 1e150):
        for optimism in ("practical", "paper"):
            run = LinGame(theta_norm=norm, optimism=optimism).start(problem)
            run.play(drawn(means, 0), 200)
            assert np.isfinite(run._state.losses).all()
            assert np.isfinite(run._state.tracked).all()


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, 1e151, True])
def test_values_of_the_settings_are_checked(value):
    with pytest.raises(ProblemError, match="theta_norm"):
        LinGame(theta_norm=value)
    with pytest.raises(ProblemError, match="ridge"):
        LinGame(theta_norm=1.0, ridge=value)


@pytest.mark.skipif(bool(os.environ.get("FINALIST_SHAPES")), reason="the type checker is faster")
@pytest.mark.parametrize("value", ["1", None])
def test_types_of_the_settings_are_checked(value):
    for setting in ("theta_norm", "ridge", "threshold", "optimism"):
        with pytest.raises(ProblemError, match=setting):
            LinGame(**{"theta_norm": 1.0, setting: value})


def test_problems_are_checked(monkeypatch):
    monkeypatch.setattr(ridge, "MAX_PAIRS", 9)
    with pytest.raises(ProblemError, match=r"5 arms have 10 pairs.*XYAdaptive"):
        LinGame(1.0).start(as_problem(fl.Arms.unstructured(5), sigma=1.0))
