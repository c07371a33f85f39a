import math
import os
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest

import finalist as fl
from finalist.errors import ProblemError
from finalist.inference.bounds import determinant_radius
from finalist.problem import Problem, as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies.per_pull import lingape
from finalist.strategies.per_pull.lingape import LinGapE, pair_shares
from tests import instances
from tests.unit.per_pull import (
    CASES,
    FOUR,
    alongside,
    begin_knowing,
    check_pieces,
    check_playing,
    drawn,
    replayed,
    state_bits,
    to_the_end,
    told_both_ways,
    wrong_winners,
)

STATE = ("V", "leverage", "means", "log_det", "pulled", "counts", "sums", "progress")
TIE = 1e-9
EVERY_CASE = pytest.mark.parametrize("name", CASES)
EVERY_SELECTION = pytest.mark.parametrize("selection", ["greedy", "ratio"])
EVERY_THRESHOLD = pytest.mark.parametrize("threshold", ["proven", "heuristic"])


def smallest_sum(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the w of smallest sum of absolute values with X'w = y, by trying every basis."""
    K, d = X.shape
    best = np.full(K, np.inf)
    for arms in map(list, combinations(range(K), d)):
        if np.linalg.matrix_rank(X[arms]) == d:
            w = np.zeros(K)
            w[arms] = np.linalg.solve(X[arms].T, y)
            best = w if np.abs(w).sum() < np.abs(best).sum() * (1 - 1e-12) else best
    return best


@dataclass
class Twin:
    """The strategy in feature space, slowly: everything from scratch after every pull.

    With G = X'X / K the ridge lambda I of span coordinates is lambda G. Needs full rank.
    """

    settings: LinGapE
    problem: Problem
    picks: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.X = self.problem.arms.features
        G = self.X.T @ self.X / len(self.X)
        self.ridge = max(float(x @ np.linalg.solve(G, x)) for x in self.X) * self.settings.ridge
        self.G = G

    def solve(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return A^-1, theta_hat and C."""
        pulled = self.X[self.picks]
        A = self.ridge * self.G + pulled.T @ pulled
        inverse = np.linalg.inv(A)
        delta, t = self.problem.delta, len(self.picks)
        ratio = 1 + np.log(t)
        if self.settings.threshold == "proven":
            ratio = np.sqrt(np.linalg.det(A) / np.linalg.det(self.ridge * self.G))
        C = self.problem.sigma * np.sqrt(2 * np.log(ratio / delta))
        C += np.sqrt(self.ridge) * self.settings.theta_norm
        return inverse, inverse @ pulled.T @ np.array(self.rewards), float(C)

    def select(self) -> tuple[int, int, float]:
        """Return i_t, j_t and B(t)."""
        inverse, theta, C = self.solve()
        means = self.problem.sign * self.X @ theta
        i = int(means.argmax())
        upper = [
            means[j] - means[i] + C * np.sqrt((x - self.X[i]) @ inverse @ (x - self.X[i]))
            for j, x in enumerate(self.X)
        ]
        upper[i] = -np.inf
        return i, int(np.argmax(upper)), float(max(upper))

    def choose(self) -> int:
        for arm in range(len(self.X)):
            if arm not in self.picks:
                return arm
        i, j, _ = self.select()
        y = self.X[i] - self.X[j]
        if self.settings.selection == "ratio":
            w = np.abs(smallest_sum(self.X, self.X[min(i, j)] - self.X[max(i, j)]))
            count = np.bincount(self.picks, minlength=len(self.X))
            w = np.where(w > 1e-9 * w.max(), w, 0.0)
            after = np.where(w > 0, count / np.where(w > 0, w, 1.0), np.inf)
        else:
            A = np.linalg.inv(self.solve()[0])
            inverses = [np.linalg.inv(A + np.outer(x, x)) for x in self.X]
            reduced = np.array([y @ np.linalg.inv(A) @ y - y @ M @ y for M in inverses])
            return int(np.flatnonzero(reduced >= reduced.max() * (1 - 1e-7))[0])
        return int(np.flatnonzero(after <= after.min() * (1 + TIE))[0])

    def record(self, arm: int, reward: float) -> None:
        self.picks.append(arm)
        self.rewards.append(reward)

    @property
    def winner(self) -> int | None:
        if len(set(self.picks)) < len(self.X):
            return None
        i, _, most = self.select()
        return i if most <= self.problem.epsilon else None


start = partial(begin_knowing, LinGapE, CASES)
bits = partial(state_bits, STATE)


@EVERY_CASE
@EVERY_SELECTION
@EVERY_THRESHOLD
def test_it_pulls_what_a_slow_twin_pulls(name, selection, threshold):
    run, strategy, problem, means = start(name, selection=selection, threshold=threshold)
    twin = Twin(strategy, problem)
    list(alongside(run, twin, drawn(means, 5, problem.sigma), 300))
    assert twin.winner is not None


@pytest.mark.parametrize("ridge", [0.01, 30.0])
def test_the_twin_agrees_on_other_ridges(ridge):
    run, strategy, problem, means = start("gaussian", ridge=ridge)
    twin = Twin(strategy, problem)
    list(alongside(run, twin, drawn(means, 1, problem.sigma), 100))
    assert len(twin.picks) > 8


@pytest.mark.parametrize("kind", ["gaussian", "bounded", "bernoulli"])
@EVERY_SELECTION
def test_playing_is_next_and_record(kind, selection, monkeypatch):
    strategy = LinGapE(theta_norm=0.7, selection=selection)
    check_playing(strategy, FOUR, FOUR.means([0.9, 0.2]), kind, bits, monkeypatch)


@EVERY_SELECTION
def test_playing_stops_at_the_limit_and_goes_on(selection):
    truth = instances.paper(3, 0.01)
    arms = fl.Arms(truth.features)
    strategy = replace(LinGapE.knowing(arms, truth.theta), selection=selection)
    means, limits = arms.means(truth.theta), (1, 4999, 5000, 12_000, 12_000)
    check_pieces(strategy, as_problem(arms, sigma=1.0), means, limits, bits)


@EVERY_CASE
@EVERY_SELECTION
def test_a_batch_is_the_next_pulls_if_rewards_are_as_expected(name, selection):
    run, strategy, problem, means = start(name, selection=selection)
    twin, rewards = Twin(strategy, problem), drawn(means, 2, problem.sigma)
    for size in (len(means) + 2, 7, 1, 7):
        before, pulls = bits(run), len(twin.picks)
        batch = run.next(size)
        assert bits(run) == before
        for _ in range(size):
            arm = twin.choose()
            expected = float(twin.X[arm] @ twin.solve()[1]) if twin.picks else 0.0
            twin.picks.append(arm)
            twin.rewards.append(expected)
        chosen = np.bincount(twin.picks[pulls:], minlength=len(means))
        np.testing.assert_array_equal(batch.counts, chosen)
        got = rewards.batch(batch.counts)
        run.record(batch, got)
        twin.rewards[pulls:] = got.mean[twin.picks[pulls:]].tolist()
        if run.verdict.decided:
            break


@EVERY_SELECTION
def test_batches_end_with_the_best_arm_and_replay_without_a_program(selection, monkeypatch):
    run, strategy, problem, means = start("gaussian", selection=selection)
    log = to_the_end(run, drawn(means, 4, problem.sigma), 10**6, size=7)
    assert run.verdict.winner == int(means.argmax())
    monkeypatch.setattr(lingape, "pair_shares", None)
    assert bits(replayed(strategy, problem, log)) == bits(run)


def test_any_allocation_can_be_recorded():
    # Pulls that the strategy did not ask for, in one batch or one by one: the same estimate.
    _, strategy, problem, _ = start("gaussian")
    arms = np.random.default_rng(1).integers(7, size=30)
    run, other = told_both_ways(strategy, problem, arms)
    np.testing.assert_allclose(run._state.means, other._state.means, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run._state.V, other._state.V, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(run.next().counts, other.next().counts)
    assert run.next().counts.argmax() == 7  # the arm that was never pulled comes first


@pytest.mark.parametrize(("pulls", "tolerance"), [(4999, 1e-10), (5000, 1e-13), (19_999, 1e-10)])
def test_rank_one_updates_drift_little_and_refreshing_is_exact(pulls, tolerance):
    truth = instances.paper(5, 0.01)
    arms = fl.Arms(truth.features)
    run = LinGapE.knowing(arms, truth.theta).start(as_problem(arms, sigma=1.0))
    run.play(drawn(arms.means(truth.theta), 0), pulls)
    state, Z, n = run._state, run._ridge.Z, run.counts
    everything = run._rewards.copy()
    everything.add_batch(state.counts, state.sums)
    A = run._ridge.eta * np.eye(5) + Z.T @ (n[:, None] * Z)
    V = np.linalg.solve(A, Z.T).T
    np.testing.assert_array_equal(everything.count, n)
    np.testing.assert_allclose(state.V, V, rtol=0, atol=tolerance * np.abs(V).max())
    leverage = np.einsum("ij,ij->i", Z, V)
    np.testing.assert_allclose(state.leverage, leverage, rtol=0, atol=tolerance * leverage.max())
    means = V @ (Z.T @ (n * everything.mean))
    np.testing.assert_allclose(state.means, means, rtol=0, atol=10 * tolerance * means.max())
    ratio = np.linalg.slogdet(A / run._ridge.eta)[1]
    assert state.log_det[0] == pytest.approx(ratio, rel=tolerance)


def test_the_radius_is_that_of_the_paper():
    from finalist.strategies.per_pull.kernels.lingape import radius_of

    problem = as_problem(fl.Arms.unstructured(3), sigma=0.7, delta=0.1)
    rule = LinGapE(theta_norm=1.5, ridge=2.0).start(problem)._state.rule
    # Unstructured arms have squared norm 3 in span coordinates: lambda = 6.
    expected = determinant_radius(4.0, delta=0.1, sigma=0.7, S=1.5, eta=6.0)
    assert radius_of.py_func(rule, 17, 4.0) == pytest.approx(expected, rel=1e-14)
    by_hand = 0.7 * math.sqrt(2 * math.log(math.exp(4.0) ** 0.5 / 0.1)) + math.sqrt(6.0) * 1.5
    assert by_hand == pytest.approx(expected, rel=1e-14)
    rule = LinGapE(theta_norm=1.5, threshold="heuristic").start(problem)._state.rule
    heuristic = 0.7 * math.sqrt(2 * math.log((1 + math.log(17)) / 0.1)) + math.sqrt(3.0) * 1.5
    assert radius_of.py_func(rule, 17, 4.0) == pytest.approx(heuristic, rel=1e-14)


def test_an_offset_of_the_rewards_does_not_fool_the_heuristic():
    arms, means = fl.Arms.unstructured(3), np.array([100.0, 100.5, 99.0])
    strategy = replace(LinGapE.knowing(arms, means), threshold="heuristic")
    result = fl.simulate(arms, means, strategy, runs=10, max_pulls=10**6, sigma=1.0)
    assert (result.correct | ~result.decided).all()


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_those_of_the_smallest_sum(seed):
    X = instances.gaussian(7, 3, seed)
    for i, j in combinations(range(7), 2):
        w = smallest_sum(X, X[i] - X[j])
        arms, shares = pair_shares(fl.Arms(X), i, j)
        assert len(arms) <= 3
        assert shares.sum() == pytest.approx(1.0)
        signed = np.linalg.lstsq(X[arms].T, X[i] - X[j], rcond=None)[0]
        np.testing.assert_allclose(X[arms].T @ signed, X[i] - X[j], atol=1e-9)
        assert np.abs(signed).sum() == pytest.approx(np.abs(w).sum(), rel=1e-9)
        np.testing.assert_allclose(shares, np.abs(signed) / np.abs(signed).sum(), atol=1e-9)


def test_shares_of_nearly_equal_arms_are_found():
    truth = instances.paper(3, 1e-6)
    arms, shares = pair_shares(fl.Arms(truth.features), 0, 3)
    assert arms[-1] == 1
    assert shares[-1] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.skipif(bool(os.environ.get("FINALIST_SHAPES")), reason="the arms are no arms")
def test_arms_without_a_difference_share_the_pulls():
    class Same:
        coordinates = np.ones((3, 2))
        measurable = np.ones(3, dtype=bool)

        def __len__(self):
            return 3

    arms, shares = pair_shares.__wrapped__(Same(), 0, 2)
    assert (arms.tolist(), shares.tolist()) == ([0, 2], [0.5, 0.5])
    Same.measurable = np.array([False, True, True])
    assert pair_shares.__wrapped__(Same(), 0, 2)[0].tolist() == [2]
    Same.measurable = np.array([False, True, False])
    assert pair_shares.__wrapped__(Same(), 0, 2)[0].tolist() == [1]


def test_a_program_is_solved_once_for_a_pair_and_room_grows(monkeypatch):
    asked, solve = [], pair_shares

    def count(arms, i, j, relative):
        asked.append((i, j))
        return solve(arms, i, j, relative)

    monkeypatch.setattr(lingape, "pair_shares", count)
    roomy, strategy, problem, means = start("unstructured", selection="ratio")
    roomy.play(drawn(means, 1, problem.sigma), 10**6)
    assert len(asked) == len(set(asked)) > 2
    assert all(i < j for i, j in asked)
    monkeypatch.setattr(lingape, "ROOM", 1)
    tight = strategy.start(problem)
    tight.play(drawn(means, 1, problem.sigma), 10**6)
    assert bits(tight) == bits(roomy)
    assert tight.verdict.decided


@pytest.mark.parametrize("factor", [1.0, 1 / 3])
def test_error_rate_and_a_radius_three_times_too_small_is_caught(factor, monkeypatch):
    state = lingape._state

    def part(*arguments):
        whole = state(*arguments)
        rule = whole.rule
        return whole._replace(
            rule=rule._replace(sigma=rule.sigma * factor, bias=rule.bias * factor)
        )

    monkeypatch.setattr(lingape, "_state", part)
    problem, theta = as_problem(fl.Arms.unstructured(2), sigma=1.0), np.array([0.1, 0.0])
    wrong = wrong_winners(LinGapE.knowing(problem.arms, theta), problem, theta, 150)
    assert (exact_lower_bound(wrong, 150, 0.999) <= problem.delta) == (factor == 1.0)


@EVERY_SELECTION
def test_the_paper_example_pulls_its_second_arm(selection):
    truth = instances.paper(5, 0.1)
    arms, pulls = fl.Arms(truth.features), {}
    for threshold in ("proven", "heuristic"):
        strategy = replace(LinGapE.knowing(arms, truth.theta), selection=selection)
        run = replace(strategy, threshold=threshold).start(as_problem(arms, sigma=1.0))
        counts = run.play(drawn(arms.means(truth.theta), 0), 10**7)
        assert run.verdict.winner == 0
        assert counts[1] > 0.8 * counts.sum()
        pulls[threshold] = run.verdict.pulls
    assert pulls["proven"] > 1.5 * pulls["heuristic"]


def test_an_arm_that_is_good_enough_need_not_be_the_best():
    run, _, problem, means = start("epsilon")
    run.play(drawn(means, 0, problem.sigma), 10**6)
    assert run.verdict.winner in (0, 1)
    assert run.verdict.survivors == (0, 1, 2)


def test_only_the_default_threshold_is_proven():
    strategy = LinGapE(theta_norm=1)
    assert strategy.proven
    assert not replace(strategy, threshold="heuristic").proven


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), True])
def test_numbers_among_the_settings_are_checked(value):
    with pytest.raises(ProblemError, match="theta_norm"):
        LinGapE(theta_norm=value)
    with pytest.raises(ProblemError, match="ridge"):
        LinGapE(theta_norm=1.0, ridge=value)


@pytest.mark.skipif(bool(os.environ.get("FINALIST_SHAPES")), reason="the type checker is faster")
@pytest.mark.parametrize("setting", ["theta_norm", "ridge", "selection", "threshold"])
def test_types_of_the_settings_are_checked(setting):
    with pytest.raises(ProblemError, match=setting):
        LinGapE(**{"theta_norm": 1.0, setting: "best"})  # type: ignore[arg-type]


def test_many_arms_are_for_the_greedy_selection():
    problem = as_problem(fl.Arms(np.arange(3000.0)[:, None]), sigma=1.0)
    with pytest.raises(ProblemError, match=r"3000 arms have 4498500 pairs.*greedy"):
        LinGapE(theta_norm=1.0, selection="ratio").start(problem)
    run = LinGapE(theta_norm=2000.0).start(problem)
    run.play(drawn(np.arange(3000.0), 0), 10_000)
    assert run.verdict.winner == 2999
