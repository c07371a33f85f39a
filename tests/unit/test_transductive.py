"""Strategies that are told a sigma of each arm, and candidates that cannot be measured."""

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.design import design_value
from finalist.errors import DesignError, NotYetSupportedError, ProblemError, SimulationError
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import STRATEGIES, Batch, Playable, named, promise_of
from finalist.strategies.per_pull.kernels import game
from finalist.strategies.per_pull.lazy_ts import optimal_weights
from finalist.strategies.per_pull.lingape import pair_shares
from finalist.strategies.phased.rage import RAGE, survivors_design
from finalist.strategies.units import Units
from tests import instances

X = instances.unit_sphere(12, 3, 1)
THETA = np.array([1.0, 0.5, -0.3])
SIGMA = np.linspace(0.3, 2.0, 12)
#: 0 to 6 can be measured, 4 to 11 can win.
ARMS, CANDIDATES = fl.Arms(X[:7]), fl.Arms(X[4:], [f"c{i}" for i in range(4, 12)])
NAMES = ["rage", "lingape", "lazy-ts", "lingame", "fully-adaptive", "xy-oracle"]
OTHERS = {
    "lingape, ratio": fl.LinGapE(1.0, selection="ratio"),
    "lingape, heuristic": fl.LinGapE(1.0, threshold="heuristic"),
    "lingame, paper": fl.LinGame(1.0, threshold="determinant", optimism="paper"),
    "fully-adaptive, soare": fl.FullyAdaptive(1.0, bound="soare"),
    "xy-oracle, empirical": fl.XYOracle(THETA, stopping="empirical"),
    "rage, coarse": RAGE(first_gap=4.0),
}
EVERY = pytest.mark.parametrize("name", [*NAMES, *OTHERS])


def strategy_of(name, arms, theta=THETA):
    return OTHERS[name] if name in OTHERS else named(name, arms, np.asarray(theta))


def beyond(**words):
    """Return a problem with unequal noise in which most candidates cannot be measured."""
    return as_problem(ARMS, candidates=CANDIDATES, sigma=SIGMA, **words)


def drawn(problem, theta, seed, sigma=None):
    each = problem.sigmas if sigma is None else sigma
    rng = np.random.default_rng(seed)
    return DrawnRewards(problem.arms.means(theta), each, "gaussian", rng)


def stepped(strategy, problem, theta, seed, most=10**6, size=None, sigma=None):
    """Run batch by batch; return the run and its log."""
    rewards, run, log = drawn(problem, theta, seed, sigma), strategy.start(problem, seed=1), []
    while not run.verdict.decided and run.verdict.pulls < most:
        batch = run.next(size)
        log.append((batch, rewards.batch(batch.counts)))
        run.record(*log[-1])
    return run, log


def ended(strategy, problem, theta, seed, sigma=None):
    """Run as a simulation does; return the verdict and the pulls of each arm."""
    run = strategy.start(problem, seed=1)
    if isinstance(run, Playable):
        pulls = run.play(drawn(problem, theta, seed, sigma), 10**6)
        return run.verdict, pulls
    run, log = stepped(strategy, problem, theta, seed, sigma=sigma)
    return run.verdict, sum(batch.counts for batch, _ in log)


# ---- nothing changes where nothing differs -------------------------------------------------


@EVERY
@pytest.mark.parametrize("sigma", [1.0, 0.7])
def test_a_sigma_for_each_that_is_the_same_for_all_changes_nothing(name, sigma):
    arms = fl.Arms(X)
    strategy = strategy_of(name, arms)
    kinds: tuple[dict[str, Any], ...] = ({}, {"epsilon": 0.2, "objective": "min"})
    for words in kinds:
        one = ended(strategy, as_problem(arms, sigma=sigma, **words), THETA, 3, sigma)
        each = as_problem(arms, sigma=np.full(12, sigma), **words)
        assert "sigma per arm" in each.needs
        for noise in (sigma, np.full(12, sigma)):
            other = ended(strategy, each, THETA, 3, noise)
            assert other[0] == one[0]
            np.testing.assert_array_equal(other[1], one[1])


@EVERY
def test_roles_that_all_arms_have_change_nothing(name):
    strategy, plain = strategy_of(name, fl.Arms(X)), as_problem(fl.Arms(X), sigma=1.0)
    one = ended(strategy, plain, THETA, 3, 1.0)
    for problem in (
        as_problem(fl.Arms(X, measurable=np.ones(12, dtype=bool)), sigma=1.0),
        as_problem(fl.Arms(X), candidates=fl.Arms(X), sigma=1.0),
    ):
        other = ended(strategy, problem, THETA, 3, 1.0)
        assert other[0] == one[0]
        np.testing.assert_array_equal(other[1], one[1])


def test_the_units_are_those_of_what_can_be_pulled():
    units = Units.of(beyond())
    assert units.sigma == SIGMA[6]
    np.testing.assert_allclose(units.weights[:7], (SIGMA[6] / SIGMA[:7]) ** 2, rtol=1e-14)
    np.testing.assert_array_equal(units.weights[7:], 0.0)
    assert units.candidates.tolist() == list(range(4, 12))
    Z = beyond().arms.coordinates
    expected = Z[:7] * (SIGMA[6] / SIGMA[:7])[:, None]
    np.testing.assert_allclose(units.rows(Z), expected, rtol=1e-14)
    loud = as_problem(ARMS, candidates=CANDIDATES, sigma=np.append(SIGMA[:7], np.full(5, 1e9)))
    assert Units.of(loud).relative == units.relative


# ---- what every one of them keeps ----------------------------------------------------------


@EVERY
@pytest.mark.parametrize("words", [{}, {"epsilon": 0.3}, {"objective": "min", "delta": 0.2}])
def test_only_what_can_be_measured_is_pulled_and_a_candidate_wins(name, words):
    problem = beyond(**words)
    strategy, theta = strategy_of(name, ARMS), 2.0 * problem.sign * THETA
    if name.startswith("xy-oracle"):
        strategy = fl.XYOracle(theta, stopping=strategy.stopping)
    verdict, pulls = ended(strategy, problem, theta, 5)
    good = problem.sign * problem.arms.means(theta)
    assert good[:4].max() > good[4:].max() - 1.0  # arms that cannot win are no rivals
    assert verdict.decided
    assert verdict.winner in verdict.survivors
    assert min(verdict.survivors) >= 4
    assert good[4:].max() - good[verdict.winner] <= problem.epsilon
    assert pulls[7:].sum() == 0
    assert pulls.sum() == verdict.pulls


@EVERY
def test_playing_equals_stepping(name):
    problem, strategy = beyond(), strategy_of(name, ARMS)
    run = strategy.start(problem, seed=1)
    if not isinstance(run, Playable) or name.startswith("xy-oracle"):
        pytest.skip("it has no compiled loop of its own")
    pulls = run.play(drawn(problem, THETA, 4), 600)
    other, log = stepped(strategy, problem, THETA, 4, most=600)
    assert run.verdict == other.verdict
    np.testing.assert_array_equal(pulls, sum(batch.counts for batch, _ in log))


@EVERY
def test_batches_replay_from_json(name):
    problem, strategy = beyond(), strategy_of(name, ARMS)
    run, log = stepped(strategy, problem, 2.0 * THETA, 6, size=40)
    again = strategy.start(problem, seed=1)
    for batch, values in log:
        assert batch.counts[7:].sum() == 0
        note = json.loads(json.dumps(dict(batch.note)))
        again.record(Batch(batch.counts.copy(), note), values)
    assert again.verdict == run.verdict
    assert run.verdict.decided


@EVERY
def test_only_differences_have_to_be_measured(name):
    duels = fl.Arms([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]], names=["a:b", "b:c"])
    players = fl.Arms(np.eye(3), names=list("abc"))
    problem = as_problem(duels, candidates=players, sigma=[0.5, 1.0])
    theta = np.array([0.0, 3.0, 1.0])
    strategy = strategy_of(name, duels, theta)
    if name.startswith("xy-oracle"):
        strategy = fl.XYOracle(theta, stopping=strategy.stopping)
    verdict, _ = ended(strategy, problem, theta, 1)
    assert problem.arms.names[verdict.winner] == "b"
    lonely = fl.Arms(np.eye(4), names=list("abcd"))
    four = fl.Arms([[1.0, -1.0, 0.0, 0.0], [0.0, 1.0, -1.0, 0.0]], names=["a:b", "b:c"])
    with pytest.raises(ProblemError, match="cannot be compared"):
        as_problem(four, candidates=lonely, sigma=1.0)


@EVERY
def test_a_single_candidate_wins_at_once(name):
    problem = as_problem(ARMS, candidates=fl.Arms(X[8:9], ["only"]), sigma=SIGMA[:7])
    verdict = strategy_of(name, ARMS).start(problem).verdict
    assert verdict.winner == 7
    assert verdict.survivors == (7,)


@EVERY
def test_nobody_is_ruled_out_by_rewards_that_were_lost(name):
    if name.startswith("xy-oracle"):
        pytest.skip("it knows the answer")
    problem, strategy = beyond(), strategy_of(name, ARMS)
    run = strategy.start(problem, seed=1)
    for size in (None, 50, 50, None):
        batch = run.next(size)
        none = np.zeros(12, dtype=np.int64)
        run.record(Batch(none, batch.note), Statistics.empty(12))
        assert run.verdict.winner is None
        assert run.verdict.survivors == tuple(range(4, 12))


def test_greedy_allocations_refuse_it():
    for words in ({"sigma": SIGMA[:7]}, {"sigma": 1.0, "candidates": CANDIDATES}):
        with pytest.raises(NotYetSupportedError, match="allocation='greedy'"):
            fl.XYOracle(THETA, allocation="greedy").start(as_problem(ARMS, **words))


# ---- twins that divide arms and rewards by the noise ---------------------------------------


class Twin:
    """Everything from scaled rows and plain least squares, in the coordinates of the span."""

    def __init__(self, problem, log, ridge=0.0):
        self.problem, self.Z = problem, problem.arms.coordinates
        self.sigma = float(problem.sigmas[:7].max())
        self.rows = self.Z[:7] * (self.sigma / problem.sigmas[:7])[:, None]
        self.longest = float((self.Z[:7] ** 2).sum(axis=1).max())
        self.L2 = float((self.rows**2).sum(axis=1).max())
        self.ridge, r = ridge * self.longest, self.Z.shape[1]
        arms = [int(batch.counts.argmax()) for batch, _ in log]
        rewards = [values.mean[arm] for arm, (_, values) in zip(arms, log, strict=True)]
        scaled = np.array(rewards) * self.sigma / problem.sigmas[arms]
        stacked = np.vstack([self.rows[arms], math.sqrt(self.ridge) * np.eye(r)])
        answers = np.append(scaled, np.zeros(r))
        self.phi = np.linalg.lstsq(stacked, answers, rcond=None)[0]
        self.A = stacked.T @ stacked
        self.inverse = np.linalg.inv(self.A)
        self.log_det = float(np.linalg.slogdet(self.A)[1]) - r * math.log(self.ridge or 1.0)
        self.means = problem.sign * (self.Z @ self.phi)
        self.pulls = len(log)
        self.who = range(4, 12)

    @property
    def leader(self):
        return max(self.who, key=lambda i: self.means[i])

    def width(self, i, j):
        y = self.Z[i] - self.Z[j]
        return math.sqrt(y @ self.inverse @ y)

    def left(self, arm, pairs):
        """Return the largest variance of pairs after one more pull."""
        M = np.linalg.inv(self.A + np.outer(self.rows[arm], self.rows[arm]))
        ys = [self.Z[i] - self.Z[j] for i, j in pairs]
        return max(float(y @ M @ y) for y in ys)

    def chooses_well(self, arm, pairs):
        least = min(self.left(a, pairs) for a in range(7))
        return self.left(arm, pairs) <= least * (1.0 + 1e-8)


def growing(strategy, problem, theta, seed, most):
    """Yield a run, its log and its next batch, pull by pull; the batch is None at the end."""
    rewards, run = drawn(problem, theta, seed), strategy.start(problem, seed=1)
    log: list[tuple[Batch, Statistics]] = []
    while not run.verdict.decided and run.verdict.pulls < most:
        batch = run.next()
        yield run, log, batch
        log.append((batch, rewards.batch(batch.counts)))
        run.record(*log[-1])
    yield run, log, None


@pytest.mark.parametrize("words", [{}, {"objective": "min", "epsilon": 0.4}])
def test_lingape_is_that_of_scaled_rows(words):
    problem, S, seen = beyond(**words), 1.0, 0
    strategy = fl.LinGapE(theta_norm=S, ridge=0.5)
    for run, log, batch in growing(strategy, problem, 4.0 * THETA, 2, 400):
        if len(log) < 7:  # every arm that can be measured, once
            assert batch.counts.argmax() == len(log)
            continue
        twin = Twin(problem, log, 0.5)
        radius = twin.sigma * math.sqrt(twin.log_det - 2 * math.log(0.05))
        radius += math.sqrt(twin.ridge) * S
        i = twin.leader
        better = {
            j: twin.means[j] - twin.means[i] + radius * twin.width(i, j) for j in twin.who if j != i
        }
        rival = max(better, key=lambda j: better[j])
        assert run.verdict.winner == (i if better[rival] <= problem.epsilon else None)
        np.testing.assert_allclose(run._state.means, problem.sign * twin.means, atol=1e-9)
        assert run._state.log_det[0] == pytest.approx(twin.log_det, rel=1e-9)
        if batch is not None:
            assert twin.chooses_well(int(batch.counts.argmax()), [(i, rival)])
            seen += 1
    assert seen > 50 or problem.epsilon > 0
    assert run.verdict.decided


@pytest.mark.parametrize("bound", ["sharp", "soare"])
def test_fully_adaptive_is_that_of_scaled_rows(bound):
    problem, alive, seen = beyond(), set(range(4, 12)), 0
    strategy = fl.FullyAdaptive(2.0, bound=bound)
    for run, log, batch in growing(strategy, problem, 8.0 * THETA, 2, 400):
        twin = Twin(problem, log, 1.0) if log else None
        if twin is not None:
            inside = twin.log_det - 2 * math.log(0.05)
            if bound == "soare":
                inside = 3 * math.log((1 + len(log) * twin.L2 / twin.ridge) / 0.05)
            radius = twin.sigma * math.sqrt(inside) + math.sqrt(twin.ridge) * 2.0
            alive -= {
                z
                for z in alive
                for x in alive
                if twin.means[x] - twin.means[z] > radius * twin.width(x, z) + 1e-12
            }
            assert set(run.verdict.survivors) == alive
            np.testing.assert_allclose(run._state.means, twin.means, atol=1e-9)
        if twin is not None and batch is not None:
            assert twin.chooses_well(int(batch.counts.argmax()), list(combinations(alive, 2)))
            seen += 1
    assert seen > 50
    assert run.verdict.decided


@pytest.mark.parametrize("words", [{}, {"objective": "min", "epsilon": 0.4}])
def test_lazy_ts_stops_by_scaled_rows(words):
    problem, u = beyond(**words), 0.1
    for run, log, _ in growing(fl.LazyTS(ridge=u), problem, 3.0 * THETA, 2, 2000):
        if not log or np.linalg.matrix_rank(X[[int(b.counts.argmax()) for b, _ in log]]) < 3:
            continue
        twin = Twin(problem, log)
        c, i = twin.longest, twin.leader
        A = twin.A
        log_det = np.linalg.slogdet(A / (u * c) + np.eye(3))[1]
        beta = (1 + u) * twin.sigma**2 * (0.5 * log_det - math.log(0.05))
        gaps = {j: twin.means[i] - twin.means[j] + problem.epsilon for j in twin.who if j != i}
        far = all(gap**2 / (2 * twin.width(i, j) ** 2) > beta for j, gap in gaps.items())
        done = far and np.linalg.eigvalsh(A)[0] >= c * (1 - 1e-9)
        assert run.verdict.winner == (i if done else None)
        np.testing.assert_allclose(run._state.means, problem.sign * twin.means, atol=1e-8)
    assert run.verdict.decided


def test_the_allocation_of_lazy_ts_is_the_best_for_scaled_rows():
    problem = beyond()
    units, Z = Units.of(problem), problem.arms.coordinates
    gaps = np.linspace(0.0, 1.0, 8)
    weights = optimal_weights(Z[4:], gaps, units.rows(Z))
    assert weights.shape == (7,)
    gap = np.maximum(gaps[1:], 1e-9)
    directions = (X[4] - X[5:]) / gap[:, None]
    best = fl.optimal_design(problem.arms, directions, 1e-6, sigma=SIGMA / SIGMA[6])
    whole = np.append(weights, np.zeros(5))
    reached = design_value(problem.arms, whole, directions, sigma=SIGMA / SIGMA[6])
    assert best.value * (1 - 1e-6) <= reached <= best.value * 1.002
    log = stepped(fl.LazyTS(), problem, THETA, 3, most=40)[1]
    allocations = [batch.note["allocation"] for batch, _ in log if "allocation" in batch.note]
    assert len(allocations) > 2
    assert all(np.sum(given[7:]) == 0.0 for given in allocations)


def test_lingame_is_that_of_scaled_rows():
    problem, M, seen = beyond(), 1.0, 0
    for run, log, _ in growing(fl.LinGame(theta_norm=M), problem, 4.0 * THETA, 2, 600):
        if len(log) < 7:
            continue
        twin = Twin(problem, log, 1.0)
        bound = 1.5 * math.log1p(len(log) * twin.L2 / (3.0 * twin.ridge))
        beta = math.sqrt(-math.log(0.05) + bound) + math.sqrt(twin.ridge / 2) * M / twin.sigma
        i = twin.leader
        ratio = min(
            (twin.means[i] - twin.means[j]) / (twin.sigma * twin.width(i, j))
            for j in twin.who
            if j != i
        )
        assert run.verdict.winner == (i if ratio > math.sqrt(2.0) * beta else None)
        np.testing.assert_allclose(run._state.means, twin.means, atol=1e-9)
        seen += 1
    assert seen > 50
    assert run.verdict.decided
    assert run._state.tracked[7:].sum() == 0.0
    assert run._state.rule.experts == 56.0


def test_nature_and_the_gains_know_of_the_noise():
    problem = beyond()
    run, log = stepped(fl.LinGame(theta_norm=1.0), problem, THETA, 3, most=60)
    state, twin = run._state, Twin(problem, log, 1.0)
    rng = np.random.default_rng(0)
    share = np.append(rng.dirichlet(np.ones(7)), np.zeros(5))
    i = twin.leader
    state.share[:] = share
    game.respond(state, i)
    W = np.linalg.inv(twin.rows.T @ ((share[:7] + 1e-8)[:, None] * twin.rows))
    least, step = math.inf, np.zeros(3)
    for j in twin.who:
        if j != i:
            y, g = twin.Z[i] - twin.Z[j], twin.means[i] - twin.means[j]
            if g**2 / (y @ W @ y) < least:
                least, step = g**2 / (y @ W @ y), g * W @ y / (y @ W @ y)
    np.testing.assert_allclose(state.moved, twin.Z @ step, rtol=1e-8)
    game.gather_gains(state, 60.0)
    common, gained = state.common, state.gained
    leverages = np.einsum("ij,jk,ik->i", twin.rows, twin.inverse, twin.rows)
    bonus = np.sqrt(2 * math.log(60.0) * leverages)
    optimistic = np.minimum((np.abs(twin.rows @ step) / twin.sigma + bonus) ** 2 / 2, math.log(60))
    np.testing.assert_allclose(gained[:7], optimistic, rtol=1e-8)
    np.testing.assert_allclose(common[:7], np.minimum(bonus**2 / 2, math.log(60)), rtol=1e-8)
    np.testing.assert_array_equal(common[7:], 0.0)


def test_shares_of_a_pair_are_those_of_scaled_rows():
    from scipy.optimize import linprog

    problem = beyond()
    units, Z = Units.of(problem), problem.arms.coordinates
    rows = units.rows(Z)
    arms, shares = pair_shares(problem.arms, 5, 10, units.relative)
    assert arms.max() < 7
    y = Z[5] - Z[10]
    best = linprog(np.ones(14), A_eq=np.hstack([rows.T, -rows.T]), b_eq=y).fun
    w = np.linalg.lstsq(rows[arms].T, y, rcond=None)[0]
    assert np.abs(w).sum() == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(shares, np.abs(w) / np.abs(w).sum(), rtol=1e-8)


# ---- the phases of RAGE and the oracle -----------------------------------------------------


@pytest.mark.parametrize("words", [{}, {"epsilon": 0.05}, {"objective": "min", "delta": 0.3}])
def test_every_phase_of_rage_is_that_of_scaled_rows(words):
    # Again from the features: length, weighted estimate, widths, eliminations, winner.
    problem = beyond(**words)
    log = stepped(RAGE(), problem, 0.1 * THETA, 1)[1]
    replay, alive = RAGE().start(problem), list(range(4, 12))
    F, largest = problem.arms.features, SIGMA[6]
    rows = F[:7] / SIGMA[:7, None]
    for t, (batch, rewards) in enumerate(log, start=1):
        n, log_term = batch.counts[:7], math.log(64 * t**2 / problem.delta)
        inverse = np.linalg.pinv(rows.T @ (n[:, None] * rows), rcond=1e-10, hermitian=True)
        stacked = np.sqrt(n)[:, None] * rows
        answers = np.sqrt(n) * rewards.mean[:7] / SIGMA[:7]
        theta = np.linalg.lstsq(stacked, answers, rcond=1e-10)[0]
        goal = 0.25 * largest * 2.0 ** (1 - t)
        design = fl.optimal_design(problem.arms, "xy", 1e-7, among=np.array(alive), sigma=SIGMA)
        exact = 8 / goal**2 * design.value * 1.1 * log_term
        shortest = math.ceil(11 * np.count_nonzero(n))
        assert batch.size == shortest or exact - 1e-3 <= batch.size <= exact * 1.002 + 1
        width = {
            (a, b): math.sqrt(2 * log_term * (F[a] - F[b]) @ inverse @ (F[a] - F[b]))
            for a in alive
            for b in alive
        }
        assert max(width.values()) <= goal / 2
        means = problem.sign * F @ theta
        out = {a for a in alive for b in alive if width[a, b] < means[b] - means[a]}
        most = {
            a: max(means[b] - means[a] + width[a, b] for b in alive if b != a)
            for a in alive
            if a not in out
        }
        alive = sorted(most)
        replay.record(batch, rewards)
        assert list(replay.verdict.survivors) == alive
        best = min(most, key=lambda a: most[a])
        done = len(alive) == 1 or (problem.epsilon > 0 and most[best] <= problem.epsilon)
        assert replay.verdict.winner == (best if done else None)
    assert replay.verdict.decided
    assert len(log) > 1


def test_noise_and_features_scaled_together_are_the_same_problem():
    # Divide arms and rewards by their noise: one sigma, other candidates, the same pulls.
    each = as_problem(fl.Arms(X), sigma=SIGMA)
    rows = X * (SIGMA[-1] / SIGMA)[:, None]
    scaled = as_problem(fl.Arms(rows), candidates=fl.Arms(X, list("abcdefghijkl")), sigma=SIGMA[-1])
    assert len(scaled.arms) == 23  # the noisiest arm is a candidate as it is
    for strategy in (RAGE(), RAGE(first_gap=4.0), fl.XYOracle(THETA)):
        one, log = stepped(strategy, each, THETA, 8)
        other = strategy.start(scaled, seed=1)
        for batch, values in log:
            counts = np.append(batch.counts, np.zeros(11, dtype=np.int64))
            assert np.abs(other.next().counts - counts).sum() <= 0.01 * counts.sum() + 2
            total = np.append(values.mean * batch.counts * SIGMA[-1] / SIGMA, np.zeros(11))
            note = {**batch.note}
            other.record(Batch(counts, note), Statistics.of_batch(counts, total))
        number = {i: 11 if i == 11 else 12 + i for i in range(12)}
        assert other.verdict.winner == number[one.verdict.winner]


def test_many_arms_have_the_same_designs_as_few(monkeypatch):
    from finalist.strategies.phased import rage

    problem = beyond()
    alive, relative = tuple(range(4, 12)), Units.of(problem).relative
    few = survivors_design(problem.arms, alive, relative)
    monkeypatch.setattr(rage, "FEW", 3)
    many = survivors_design.__wrapped__(problem.arms, alive, relative)
    assert many[1] == pytest.approx(few[1], rel=3e-3)
    assert many[0].shape == few[0].shape == (12,)
    assert many[0][7:].sum() == few[0][7:].sum() == 0.0


def test_the_oracle_is_long_enough_for_its_candidates():
    problem = beyond()
    good = problem.arms.means(THETA)
    best = 4 + int(good[4:].argmax())
    counts = fl.XYOracle(THETA).start(problem).next().counts
    precisions = 1.0 / SIGMA[:7] ** 2
    radius = math.sqrt(2 * math.log(7 / 0.05))

    def enough(n):
        inverse = np.linalg.inv((X[:7] * (n * precisions)[:, None]).T @ X[:7])
        return all(
            radius * math.sqrt((X[best] - X[j]) @ inverse @ (X[best] - X[j]))
            <= (good[best] - good[j]) * (1 + 1e-9)
            for j in range(4, 12)
        )

    assert enough(counts[:7])
    assert not enough(0.95 * counts[:7])
    assert counts[7:].sum() == 0


# ---- the promise ---------------------------------------------------------------------------

#: Quiet and loud arms; the candidates cannot be measured, and the first is the best by little.
NEAR = np.vstack([np.eye(3), [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]])
NOISE = [0.2, 1.0, 2.0]


def near(delta, gap):
    candidates = fl.Arms(NEAR[3:], names=["ab", "ac", "bc"])
    measured = fl.Arms(NEAR[:3], names=["a", "b", "c"])
    problem = as_problem(measured, candidates=candidates, sigma=NOISE, delta=delta)
    return problem, np.array([0.5 + gap, 0.5 + gap, 0.5])


@pytest.mark.parametrize("name", NAMES)
def test_delta_is_kept(name):
    problem, theta = near(0.2, 0.8)
    strategy = strategy_of(name, fl.Arms(NEAR[:3], names=["a", "b", "c"]), theta)
    good = problem.arms.means(theta)
    wrong = 0
    for seed in range(200):
        winner = ended(strategy, problem, theta, seed)[0].winner
        wrong += good[winner] < good[3:].max() - 1e-9
    assert exact_lower_bound(wrong, 200, 0.999) <= 0.2


@pytest.mark.parametrize("factor", [1.0, 5.0])
def test_noise_that_is_larger_than_it_is_said_to_be_is_caught(factor):
    problem, theta = near(0.2, 0.05)
    good = problem.arms.means(theta)
    told = problem.with_(noise=fl.Gaussian(tuple(problem.sigmas / factor)))
    wrong = 0
    for seed in range(200):
        run, _ = stepped(RAGE(first_gap=1.0), told, theta, seed, sigma=problem.sigmas)
        assert run.verdict.decided
        wrong += good[run.verdict.winner] < good[3:].max() - 1e-9
    assert (exact_lower_bound(wrong, 200, 0.999) <= 0.2) == (factor == 1.0)


def test_quiet_arms_save_pulls():
    arms = fl.Arms(X)
    for name in NAMES:
        pulls = {}
        for key, sigma in (("each", SIGMA), ("largest", 2.0)):
            told = fl.simulate(arms, 2.0 * THETA, name, sigma=sigma, runs=3, seed=1)
            assert told.correct.all()
            pulls[key] = told.samples.mean()
        assert pulls["each"] < 0.7 * pulls["largest"]


def test_estimates_are_weighted():
    problem = as_problem(fl.Arms(X), sigma=SIGMA)
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 9, 12)
    rewards = drawn(problem, THETA, 2).batch(counts)
    p = Units.of(problem).precisions
    fit = estimate(problem.arms, rewards, precisions=p)
    scale = np.sqrt(counts) / SIGMA
    theta = np.linalg.lstsq(X * scale[:, None], rewards.mean * scale, rcond=None)[0]
    np.testing.assert_allclose(fit.means(), X @ theta, rtol=1e-10)


# ---- unknown noise -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["uniform", "g", "rage", "lingape", "xy-adaptive"])
def test_who_has_to_know_the_noise_says_so_and_what_to_do(name):
    for rewards in (None, lambda _, n, rng: rng.standard_normal(n)):
        with pytest.raises(NotYetSupportedError, match=f"by {name}: 'unknown sigma'.*'gauntlet'"):
            fl.simulate(fl.Arms(X), THETA, name, sigma=None, rewards=rewards, runs=1)


def test_noise_of_unknown_size_cannot_be_drawn():
    with pytest.raises(SimulationError, match=r"'gauntlet' can do without.*rewards= as a function"):
        fl.simulate(fl.Arms(X), THETA, sigma=None, runs=1)


PARTLY = [
    name
    for name, cls in STRATEGIES.items()
    if promise_of(cls) == "confidence" and name not in ("track-and-stop", "v")
]


@pytest.mark.parametrize("name", PARTLY)
def test_candidates_may_differ_in_a_part_of_what_is_measured(name):
    others = fl.Arms([[0.0, 1.0, 0.2], [0.0, 0.2, 1.0], [0.0, 0.5, 0.5]], names=["p", "q", "r"])
    theta = [3.0, 1.0, 0.0]
    words: dict[str, Any] = {"sigma": 0.1, "delta": 0.01, "max_pulls": 20_000}
    result = fl.simulate(
        fl.Arms(np.eye(3)), theta, name, candidates=others, runs=2, seed=1, **words
    )
    assert result.correct.all()
    assert result.arms[result.winner[0]] == "p"


def test_v_refuses_candidates_that_need_a_part_of_what_is_measured():
    others = fl.Arms([[0.0, 1.0, 0.2], [0.0, 0.2, 1.0]], names=["p", "q"])
    problem = as_problem(fl.Arms(np.eye(3)), candidates=others, sigma=1.0)
    with pytest.raises(DesignError, match="criterion 'v' cannot take"):
        fl.VAllocation().start(problem)
    with pytest.raises(DesignError, match="use 'g' or 'xy'"):
        fl.optimal_design(problem.arms, "v")
