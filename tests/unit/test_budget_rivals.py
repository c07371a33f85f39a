"""Sequential Halving and top-two against plain twins that go pull by pull."""

import numpy as np
import pytest
from scipy.stats import norm

import finalist as fl
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation import exact_interval
from finalist.strategies import Batch
from finalist.strategies.budget.top_two import Posterior, greedy_pulls, top_two
from tests import instances
from tests.contracts.test_budget_strategies import spend

# ---- Sequential Halving ------------------------------------------------------------------


def test_rounds_of_the_paper():
    # K = 6: ceil(log2 6) = 3 rounds of 6, 3 and 2 arms. T = 100: floor(100 / 18) = 5 pulls each;
    # then (100 - 30) / 2 / 3 = 11, and what is left, 37, to two arms.
    problem = as_problem(fl.Arms.unstructured(6), sigma=1e-6, budget=100)
    log = spend("sequential-halving", problem, [0.1, 0.5, 0.3, 0.9, 0.7, 0.0], sigma=1e-6)[1]
    counts = [batch.counts.tolist() for batch, _ in log]
    assert counts == [[5] * 6, [0, 11, 0, 11, 11, 0], [0, 0, 0, 19, 18, 0]]


def plain_halving(means, T, pooled, rng):
    """Run Algorithm 1 of Karnin et al., one reward after the other."""
    alive, total, count = list(range(len(means))), np.zeros(len(means)), np.zeros(len(means))
    rounds = int(np.ceil(np.log2(len(means))))
    for _ in range(rounds):
        if not pooled:
            total[:], count[:] = 0.0, 0.0
        for i in alive:
            for _ in range(T // (len(alive) * rounds)):
                total[i] += means[i] + rng.standard_normal()
                count[i] += 1
        alive = sorted(alive, key=lambda i: -total[i] / count[i])[: -(-len(alive) // 2)]
    return alive[0]


@pytest.mark.parametrize("pooled", [False, True])
def test_errors_are_those_of_the_paper(pooled):
    means, T, runs = [0.5, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0], 240, 1500
    rng = np.random.default_rng(1)
    wrong = sum(plain_halving(means, T, pooled, rng) != 0 for _ in range(runs))
    strategy = fl.SequentialHalving(pooled=pooled)
    ours = fl.simulate(fl.Arms.unstructured(8), means, strategy, sigma=1.0, budget=T, runs=runs)
    low, high = ours.error_bounds(0.9999)
    least, most = exact_interval(wrong, runs, 0.9999)
    assert low < most
    assert least < high


def test_features_have_no_influence():
    X = instances.gaussian(8, 3, 0)
    theta = np.linalg.lstsq(X, np.ones(8), rcond=None)[0]
    log = spend("sequential-halving", as_problem(fl.Arms(X), sigma=1.0, budget=96), theta)[1]
    first, rewards = log[0]
    half = set(np.argsort(-rewards.mean)[:4].tolist())
    assert first.counts.tolist() == [4] * 8
    assert set(np.flatnonzero(log[1][0].counts).tolist()) == half


def test_means_are_of_the_round_or_of_all():
    problem = as_problem(fl.Arms.unstructured(3), sigma=1.0, budget=12)
    winners = {}
    for pooled in (False, True):
        run = fl.SequentialHalving(pooled=pooled).start(problem)
        for means in ([9.0, 1.0, 0.0], [0.0, 1.0, 0.0]):
            batch = run.next()
            run.record(batch, Statistics.of_batch(batch.counts, batch.counts * np.array(means)))
        winners[pooled] = run.verdict.winner
    assert winners == {False: 1, True: 0}


@pytest.mark.parametrize("strategy", [fl.SequentialHalving(), fl.LinearTopTwo(batches=5)])
def test_ties_favour_no_arm(strategy):
    problem = as_problem(fl.Arms.unstructured(4), noise="bernoulli", budget=32)
    wins = np.zeros(4)
    for seed in range(200):
        run = strategy.start(problem, seed=seed)
        while not run.verdict.decided:
            batch = run.next()
            run.record(batch, Statistics.of_batch(batch.counts, 1.0 * batch.counts))
        wins[run.verdict.winner] += 1
    low, _ = exact_interval(int(wins.min()), 200, 0.9999)
    _, high = exact_interval(int(wins.max()), 200, 0.9999)
    assert exact_interval(int(wins.min()), 200, 0.9999)[1] > 0.25 > low
    assert exact_interval(int(wins.max()), 200, 0.9999)[0] < 0.25 < high


def test_the_setting_is_checked():
    with pytest.raises(fl.errors.ProblemError, match="pooled is 1"):
        fl.SequentialHalving(pooled=1)  # type: ignore[arg-type]


# ---- top-two -----------------------------------------------------------------------------


def test_leaders_and_challengers_follow_the_posterior():
    # Two arms: the leader is arm 0 with probability Phi(lead / standard error).
    Z, root = np.eye(2), np.diag([0.6, 0.8])
    pairs = top_two(Posterior(Z, np.array([0.5, 0.0]), root), 4000, np.random.default_rng(0))
    share = norm.cdf(0.5)  # the difference has standard deviation 1
    low, high = exact_interval(int((pairs[:, 0] == 0).sum()), 4000, 0.9999)
    assert low < share < high
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_challengers_are_the_best_arms_of_draws_without_the_leader():
    Z, scores, rng = np.eye(3), np.array([1.0, 0.0, -0.3]), np.random.default_rng(0)
    pairs = top_two(Posterior(Z, scores, np.eye(3)), 6000, rng)
    drawn = (scores + np.random.default_rng(1).standard_normal((60_000, 3))).argmax(axis=1)
    chance = (drawn == 1).sum() / (drawn > 0).sum()
    led = pairs[pairs[:, 0] == 0, 1]
    low, high = exact_interval(int((led == 1).sum()), len(led), 0.9999)
    assert low < chance < high


def test_a_challenger_that_is_never_drawn_is_the_nearest_rival():
    # Leads of 100 and 60; standard errors 2^.5 and (1 + .01)^.5: 70.7 and 59.7.
    pairs = top_two(
        Posterior(np.eye(3), np.array([100.0, 0.0, 40.0]), np.diag([1.0, 1.0, 0.1])),
        5,
        np.random.default_rng(0),
    )
    assert pairs.tolist() == [[0, 2]] * 5
    # A larger gap may be the nearer one: 100 / 50 against 60 / 1.
    near = top_two(
        Posterior(np.eye(3), np.array([1e4, 0.0, 4e3]), np.diag([1.0, 500.0, 0.1])),
        5,
        np.random.default_rng(0),
    )
    assert near.tolist() == [[0, 1]] * 5


@pytest.mark.parametrize("seed", range(4))
def test_pulls_leave_the_least_variance(seed):
    rng = np.random.default_rng(seed)
    X, counts = rng.standard_normal((9, 4)), rng.integers(1, 5, 9)
    A = (X * counts[:, None]).T @ X
    pairs = rng.permutation(9)[:8].reshape(4, 2)
    picks = greedy_pulls(X, np.linalg.inv(A), pairs)
    for (i, j), pick in zip(pairs, picks, strict=True):
        y = X[i] - X[j]
        left = [y @ np.linalg.inv(A + np.outer(x, x)) @ y for x in X]
        assert left[pick] == pytest.approx(min(left))
        A += np.outer(X[pick], X[pick])


def test_pulls_of_a_batch_follow_each_other():
    # Two arms pulled 4 times and once: three for the second, then they take turns.
    picks = greedy_pulls(np.eye(2), np.diag([0.25, 1.0]), [(0, 1)] * 7)
    assert picks[:3].tolist() == [1, 1, 1]
    assert np.bincount(picks[3:]).tolist() == [2, 2]


def plain_top_two(X, theta, T, rng):
    """Top-two for the linear model, pull by pull, challengers drawn as often as it takes."""
    A, b = np.zeros((X.shape[1],) * 2), np.zeros(X.shape[1])

    def pull(i):
        nonlocal A, b
        A, b = A + np.outer(X[i], X[i]), b + X[i] * (X[i] @ theta + rng.standard_normal())

    for i in range(X.shape[1]):
        pull(i)
    for _ in range(T - X.shape[1]):
        B = np.linalg.inv(A)
        drawn = B @ b + rng.standard_normal((101, len(b))) @ np.linalg.cholesky(B).T
        leader, *others = (drawn @ X.T).argmax(axis=1)
        challenger = next((other for other in others if other != leader), leader)
        if challenger == leader:
            D = X[leader] - X
            with np.errstate(invalid="ignore"):
                lead = D @ B @ b / np.sqrt(np.einsum("ij,jk,ik->i", D, B, D))
            challenger = int(np.nanargmin(lead))
        y = X[leader] - X[challenger]
        left = y @ np.linalg.inv(A + X[:, :, None] * X[:, None, :]) @ y
        pull(int(np.argmin(left)))
    return int(np.argmax(X @ np.linalg.solve(A, b)))


def test_errors_are_those_of_the_plain_one():
    truth, T = instances.paper(3, 0.3), 60
    X, theta = truth.features, truth.theta
    rng = np.random.default_rng(0)
    wrong = sum(plain_top_two(X, theta, T, rng) != 0 for _ in range(250))
    ours = fl.simulate(fl.Arms(X), theta, fl.LinearTopTwo(batches=T), sigma=1.0, budget=T, runs=600)
    equal = fl.simulate(fl.Arms(X), theta, "g-budget", sigma=1.0, budget=T, runs=600)
    least, most = exact_interval(wrong, 250, 0.9999)
    low, high = ours.error_bounds(0.9999)
    assert low < most
    assert least < high
    assert ours.errors < 0.7 * equal.errors  # the broken twin: equal shares


def test_next_changes_nothing_and_records_alone_replay():
    problem = as_problem(fl.Arms(instances.gaussian(12, 4, 0)), sigma=1.0, budget=97)
    run, log = spend("top-two", problem, np.ones(4), seed=3)
    again = fl.LinearTopTwo().start(problem, seed=1)
    for batch, rewards in log:
        again.record(batch, rewards)
    assert again.verdict == run.verdict
    first = fl.LinearTopTwo().start(problem, seed=1)
    np.testing.assert_array_equal(first.next().counts, first.next().counts)
    assert first.next(2).size == 2


def test_lost_pulls_of_the_beginning_are_made_again():
    run = fl.LinearTopTwo().start(as_problem(fl.Arms.unstructured(3), sigma=1.0, budget=9), seed=1)
    batch = run.next()
    counts = np.array([1, 0, 1])
    run.record(Batch(counts, batch.note), Statistics.of_batch(counts, 1.0 * counts))
    assert run.next().counts.tolist() == [0, 1, 0]


def test_sigma_matters_and_is_needed():
    arms = fl.Arms.unstructured(3)
    with pytest.raises(fl.errors.NotYetSupportedError, match="unknown sigma"):
        fl.LinearTopTwo().start(as_problem(arms, sigma=None, budget=30))
    for batches in (0, True, 2.5):
        with pytest.raises(fl.errors.ProblemError, match="batches is"):
            fl.LinearTopTwo(batches=batches)  # type: ignore[arg-type]
