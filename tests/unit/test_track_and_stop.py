import os
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import zeta

import finalist as fl
from finalist.design import optimal_design
from finalist.errors import ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import Gaussian, Problem, as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies.per_pull import track_and_stop
from finalist.strategies.per_pull.kernels import track_and_stop as kernels
from finalist.strategies.per_pull.track_and_stop import TrackAndStop, gaussian_calibration
from finalist.strategies.protocol import Batch
from tests import instances
from tests.unit.per_pull import (
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
    to_the_end,
    told_both_ways,
    wrong_winners,
)

STATE = ("means", "seen", "pulled", "total", "progress")


def plain_proportions(means, epsilon=0.0):
    """Return w* by the root of Garivier and Kaufmann 2016, Thm. 5, in their own letters."""
    best = int(np.argmax(means))
    d = (means[best] - np.delete(means, best) + epsilon) ** 2 / 2

    def x(y):
        return y / (d - y)

    y = brentq(lambda y: np.sum(x(y) ** 2) - 1, 0, d.min() * (1 - 1e-12), xtol=1e-300, rtol=1e-14)
    w = np.insert(x(y), best, 1.0)
    return w / w.sum()


def plain_projection(w, floor):
    """Return the closest proportions that are at least `floor`, by bisection of what is taken."""
    taken = brentq(lambda tau: np.maximum(w - tau, floor).sum() - 1, -1, 1, xtol=1e-16)
    return np.maximum(w - taken, floor)


@dataclass
class Twin:
    """The strategy, slowly: everything from all pulls and rewards, each time."""

    settings: TrackAndStop
    problem: Problem
    picks: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    winner: int | None = None

    def __post_init__(self) -> None:
        self.K = len(self.problem.arms)
        self.total = np.zeros(self.K)

    def means(self) -> np.ndarray | None:
        # Of a planned batch the last pulls have no rewards.
        arms, rewards = np.array(self.picks[: len(self.rewards)]), np.array(self.rewards)
        if len(set(arms.tolist())) < self.K:
            return None
        return self.problem.sign * np.array([rewards[arms == a].mean() for a in range(self.K)])

    def choose(self) -> int:
        t, N = len(self.picks), np.bincount(self.picks, minlength=self.K)
        means = self.means()
        w = np.full(self.K, 1 / self.K)
        if means is not None:
            w = plain_proportions(means, self.problem.epsilon)
        if self.settings.tracking == "C":
            self.total += plain_projection(w, 1 / (2 * np.sqrt(self.K**2 + t)))
            lack = self.total - N
        else:
            lack = t * w - N
            if N.min() < np.sqrt(t) - self.K / 2:
                return int(N.argmin())
        return int(N.argmin()) if N.min() == 0 else int(lack.argmax())

    def beta(self) -> float:
        t, delta = len(self.picks), self.problem.delta
        if self.settings.threshold == "heuristic":
            return float(np.log((1 + np.log(t)) / delta))
        calibration = gaussian_calibration(np.log((self.K - 1) / delta) / 2)
        return float(4 * np.log(4 + np.log(t / 2)) + 2 * calibration)

    def record(self, arm: int, reward: float) -> None:
        self.picks.append(arm)
        self.rewards.append(reward)
        self.judge()

    def judge(self) -> None:
        means, N = self.means(), np.bincount(self.picks, minlength=self.K)
        if means is None:
            return
        best = int(means.argmax())
        ratios = [
            N[best] * N[b] / (N[best] + N[b]) * (means[best] - means[b] + self.problem.epsilon) ** 2
            for b in range(self.K)
            if b != best
        ]
        if min(ratios) / (2 * self.problem.sigma**2) > self.beta():
            self.winner = best


CASES: dict[str, Any] = {
    "plain": (np.eye(4), [0.9, 0.3, 0.2, 0.1], {"sigma": 0.3}, {}),
    "cumulative": (np.eye(4), [0.9, 0.3, 0.2, 0.1], {"sigma": 0.3}, {"tracking": "C"}),
    "two arms": (np.eye(2), [0.5, 0.0], {"sigma": 0.5, "delta": 0.01}, {}),
    "minimise": (np.eye(3), [0.5, 0.0, 1.0], {"objective": "min", "sigma": 0.4}, {}),
    "good enough": (np.eye(3), [0.5, 0.45, 0.0], {"epsilon": 0.2, "sigma": 0.3}, {}),
    "heuristic": (np.eye(3), [0.5, 0.0, 0.0], {}, {"threshold": "heuristic", "tracking": "C"}),
    "features": (instances.gaussian(4, 6, 0), np.full(6, 0.5), {"sigma": 0.7}, {}),
}
EVERY_CASE = pytest.mark.parametrize("name", CASES)


start = partial(begin, TrackAndStop, CASES)
bits = partial(state_bits, STATE)


def told(means, strategy=None, **words):
    """Return a run that has seen these means, 100 pulls of each arm."""
    K = len(means)
    run = (strategy or TrackAndStop()).start(
        as_problem(fl.Arms.unstructured(K), **{"sigma": 1.0, **words})
    )
    got, count = Statistics.empty(K), np.full(K, 100)
    got.add_batch(count, 100 * np.asarray(means))
    run.record(Batch(count), got)
    return run


@EVERY_CASE
def test_the_pulls_are_those_of_the_plain_program(name):
    run, strategy, problem, means = start(name)
    twin = Twin(strategy, problem)
    list(alongside(run, twin, drawn(means, 1, problem.sigma), 1500))
    assert run.verdict.decided
    assert run.verdict.pulls == len(twin.picks) > 10
    check_good_enough(run, problem, means)


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
@pytest.mark.parametrize("tracking", ["C", "D"])
def test_playing_is_next_and_record(kind, tracking, monkeypatch):
    arms, means = fl.Arms.unstructured(4), np.array([0.8, 0.6, 0.5, 0.1])
    check_playing(TrackAndStop(tracking=tracking), arms, means, kind, bits, monkeypatch)


@EVERY_CASE
def test_playing_stops_at_the_limit_and_goes_on(name):
    _, strategy, problem, means = start(name)
    hard = problem.with_(noise=Gaussian(10.0))
    check_pieces(strategy, hard, means, (1, 2, 24, 999, 3000, 3000), bits)


@EVERY_CASE
@pytest.mark.parametrize("size", [3, 40])
def test_a_batch_is_the_next_pulls_without_rewards(name, size):
    run, strategy, problem, means = start(name)
    check_batches(run, Twin(strategy, problem), drawn(means, 2, problem.sigma), size, bits)


@EVERY_CASE
@pytest.mark.parametrize("size", [None, 7])
def test_a_replay_ends_the_same(name, size):
    run, strategy, problem, means = start(name)
    log = to_the_end(run, drawn(means, 4, problem.sigma), 2000, size)
    assert run.verdict.decided
    without_notes = [(Batch(batch.counts.copy()), got) for batch, got in log]
    assert bits(replayed(strategy, problem, without_notes)) == bits(run)


def test_any_allocation_can_be_recorded():
    _, strategy, problem, _ = start("plain")
    arms = np.random.default_rng(1).integers(3, size=30)  # arm 3 has none
    run, other = told_both_ways(strategy, problem, arms)
    np.testing.assert_allclose(run._state.means, other._state.means, rtol=0, atol=1e-14)
    assert run.next().counts.tolist() == other.next().counts.tolist() == [0, 0, 0, 1]


@EVERY_CASE
def test_pulls_may_be_lost(name):
    run, strategy, problem, means = start(name)
    for _ in losing(run, drawn(means, 3, problem.sigma)):
        if strategy.tracking == "C":
            assert run._state.total.sum() == pytest.approx(run.verdict.pulls)
    check_good_enough(run, problem, means)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("objective", ["max", "min"])
def test_the_proportions_are_the_optimal_design(epsilon, objective):
    means = np.array([0.2, 1.0, 0.7, -0.4, 0.69, 0.0])
    sign = 1.0 if objective == "max" else -1.0
    run = told(sign * means, sigma=50.0, epsilon=epsilon, objective=objective)
    w = run.proportions
    Y = np.delete(np.eye(6)[1] - np.eye(6), 1, axis=0)
    Y /= (1.0 - np.delete(means, 1) + epsilon)[:, None]
    design = optimal_design(fl.Arms.unstructured(6), Y, 1e-9)
    np.testing.assert_allclose(w, design.weights, atol=1e-4)
    values = (1 / w[1] + 1 / np.delete(w, 1)) * (Y.max(axis=1) ** 2)
    assert values == pytest.approx(design.value, rel=1e-7)  # all rivals are equally hard
    np.testing.assert_allclose(w, plain_proportions(means, epsilon), rtol=1e-9)


@pytest.mark.parametrize("K", [2, 3, 10, 200])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_the_proportions_solve_the_equation_whatever_the_gaps(K, spread):
    means = np.exp(np.log(spread) * np.random.default_rng(K).random(K))
    w = told(means, sigma=1e9).proportions
    best = int(means.argmax())
    assert w.sum() == pytest.approx(1.0)
    assert np.sum(np.delete(w, best) ** 2) == pytest.approx(w[best] ** 2, rel=1e-9)
    gaps = means[best] - np.delete(means, best)
    ratios = gaps**2 / (1 / w[best] + 1 / np.delete(w, best))
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)


def test_tied_arms_share_the_pulls():
    assert told([1.0, 1.0, 0.0]).proportions == pytest.approx([0.5, 0.5, 0.0])
    m = 1 / np.sqrt(2)
    expected = np.array([1, m, m]) / (1 + 2 * m)
    assert told([0.0, 0.0, 0.0]).proportions == pytest.approx(expected)


@pytest.mark.parametrize("t", [0, 5, 1000, 10**6])
@pytest.mark.parametrize("seed", range(4))
def test_cumulative_tracking_adds_the_closest_proportions_that_leave_no_arm_out(t, seed):
    w = np.random.default_rng(seed).dirichlet(np.full(6, 0.1))
    floor = 1 / (2 * np.sqrt(36 + t))
    state = TrackAndStop().start(as_problem(fl.Arms.unstructured(6), sigma=1.0))._state
    state.weights[:], total = w, state.total
    kernels.accumulate.py_func(state, t)
    assert total.sum() == pytest.approx(1.0)
    assert total.min() >= floor
    # min s with |p_a - w_a| <= s over proportions p of at least the floor
    A = np.block([[np.eye(6), -np.ones((6, 1))], [-np.eye(6), -np.ones((6, 1))]])
    closest = linprog(
        [0] * 6 + [1],
        A_ub=A,
        b_ub=np.concatenate([w, -w]),
        A_eq=[[1] * 6 + [0]],
        b_eq=[1],
        bounds=[(floor, 1)] * 6 + [(0, None)],
    )
    assert np.abs(total - w).max() == pytest.approx(closest.fun, abs=1e-9)
    np.testing.assert_allclose(total, plain_projection(w, floor), atol=1e-12)


def g(lam):
    return 2 * lam - 2 * lam * np.log(4 * lam) + np.log(zeta(2 * lam)) - np.log(1 - lam) / 2


@pytest.mark.parametrize("x", [0.1, 1.0, 2.5, 10.0, 300.0])
def test_the_calibration_is_the_smallest_value(x):
    grid = np.linspace(0.5, 1, 200_001)[1:-1]
    assert gaussian_calibration(x) == pytest.approx(np.min((g(grid) + x) / grid), rel=1e-6)


@pytest.mark.parametrize("lam", [0.55, 0.7, 0.9, 0.99])
def test_the_mixture_is_as_large_as_the_threshold_says(lam):
    # The supermartingale of the proof, by its definition, against its bound.
    i = np.arange(1, 4000)
    weights = i ** (-2 * lam) / zeta(2 * lam)
    for n in [1, 2, 3, 7, 30, 100, 1234, 10**5, 10**7]:
        with np.errstate(over="ignore"):
            c = np.exp(4 * lam * (i - 1)) * (1 - lam) / lam
            X = np.array([0.0, 0.5, 2.0, 10.0, 40.0])[:, None]
            mixture = weights * np.exp(X * n / (n + c)) / np.sqrt(1 + n / c)
        bound = lam * (X[:, 0] - 2 * np.log(4 + np.log(n))) - g(lam)
        assert np.all(np.log(mixture.sum(axis=1)) >= bound)


def test_the_mixture_is_the_integral():
    v, c, n, S, sigma = np.linspace(-60, 60, 400_001), 0.7, 5, 3.0, 0.4
    prior = np.sqrt(c * sigma**2 / (2 * np.pi)) * np.exp(-(v**2) * c * sigma**2 / 2)
    integral = np.trapezoid(np.exp(v * S - v**2 * sigma**2 * n / 2) * prior, v)
    assert integral == pytest.approx(
        np.sqrt(c / (c + n)) * np.exp(S**2 / (2 * sigma**2 * (n + c))), rel=1e-6
    )


def test_the_threshold():
    problem = as_problem(fl.Arms.unstructured(5), delta=0.01, sigma=1.0)
    rule = TrackAndStop().start(problem)._state.rule
    expected = 4 * np.log(4 + np.log(50)) + 2 * gaussian_calibration(np.log(400) / 2)
    assert kernels.threshold.py_func(rule, 100) == pytest.approx(expected)
    rule = TrackAndStop(threshold="heuristic").start(problem)._state.rule
    expected = np.log((1 + np.log(100)) / 0.01)
    assert kernels.threshold.py_func(rule, 100) == pytest.approx(expected)


def test_a_threshold_much_too_small_is_caught(monkeypatch):
    state = track_and_stop._state

    def twentieth(*arguments):
        whole = state(*arguments)
        rule = whole.rule
        return whole._replace(rule=rule._replace(variance=rule.variance / 20))

    problem, means = (
        as_problem(fl.Arms.unstructured(2), delta=0.05, sigma=1.0),
        np.array([0.2, 0.0]),
    )
    for tracking in ("D", "C"):
        wrong = wrong_winners(TrackAndStop(tracking=tracking), problem, means, 100)
        assert exact_lower_bound(wrong, 100, 0.999) <= 0.05
    monkeypatch.setattr(track_and_stop, "_state", twentieth)
    wrong = wrong_winners(TrackAndStop(), problem, means, 100)
    assert exact_lower_bound(wrong, 100, 0.999) > 0.05


def test_pulls_are_spent_on_the_close_rival():
    means = np.array([1.0, 0.9, 0.0, 0.0])
    run = TrackAndStop().start(as_problem(fl.Arms.unstructured(4), sigma=1.0))
    counts = run.play(drawn(means, 0), 10**7)
    assert run.verdict.winner == 0
    assert counts[:2].min() > 0.4 * counts.sum()
    assert counts.min() >= np.sqrt(counts.sum() - 4) - 3


def test_arms_that_share_features_are_refused():
    problem = as_problem(fl.Arms(instances.gaussian(12, 3, 0)), sigma=1.0)
    with pytest.raises(ProblemError, match=r"12 arms have rank 3.*LazyTS.*Arms\.unstructured"):
        TrackAndStop().start(problem)
    assert not TrackAndStop.suits(problem.arms)
    assert TrackAndStop.suits(fl.Arms(instances.gaussian(4, 9, 0)))


def test_units_of_the_rewards_change_nothing():
    means, unit = np.array([0.5, 0.1, 0.0]), 2.0**30
    results = []
    for scale in (1.0, unit):
        run = TrackAndStop().start(as_problem(fl.Arms.unstructured(3), sigma=scale))
        results.append(run.play(drawn(scale * means, 7, scale), 10**6).tolist())
    assert results[0] == results[1]


def test_it_says_what_is_proven():
    assert TrackAndStop().proven
    assert not TrackAndStop(threshold="heuristic").proven


@pytest.mark.skipif(bool(os.environ.get("FINALIST_SHAPES")), reason="the type checker is faster")
@pytest.mark.parametrize("value", ["E", None])
def test_settings_are_checked(value):
    for setting in ("tracking", "threshold"):
        with pytest.raises(ProblemError, match=setting):
            TrackAndStop(**{setting: value})
