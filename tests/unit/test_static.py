"""G, XY, V and the oracle's empirical rule: against a twin that evaluates it at every pull."""

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest

import finalist as fl
from finalist.design import Rounded, greedy, optimal_design, round_design
from finalist.errors import ParameterError, ProblemError
from finalist.inference.bounds import static_radius
from finalist.inference.statistics import Statistics
from finalist.problem import as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies import GAllocation, VAllocation, XYAllocation, XYOracle, named
from finalist.strategies.static.static import CHUNK, StaticRun
from finalist.strategies.static.xy_oracle import knowledge_of, oracle_design
from tests import instances


def holds(X, counts, sums, K, problem, bound, sign) -> int | None:
    """eq:emp.stop.condition.2 in plain NumPy, from the features: the best arm that fulfils it."""
    A = (X.T * counts) @ X
    if np.linalg.matrix_rank(A) < X.shape[1]:
        return None
    inverse, theta_hat = np.linalg.inv(A), np.linalg.solve(A, X.T @ (sign * sums))
    radius = static_radius(int(counts.sum()), K, problem.delta, problem.sigma, bound)
    good = []
    for x in range(K):
        y = np.delete(X[x] - X, x, axis=0)
        widths = np.sqrt(np.einsum("ij,jk,ik->i", y, inverse, y))
        if (radius * widths <= y @ theta_hat + problem.epsilon).all():
            good.append(x)
    return max(good, key=lambda x: X[x] @ theta_hat) if good else None


def twin(X, sequence, rewards, problem, bound, cap):
    """The static strategy as the paper tells it: pull, estimate, look, at every n."""
    counts, sums = np.zeros(len(X)), np.zeros(len(X))
    for arm, _ in zip(sequence, range(cap), strict=False):
        counts[arm] += 1
        sums[arm] += rewards.pulls(np.array([arm]))[0]
        winner = holds(X, counts, sums, len(X), problem, bound, problem.sign)
        if winner is not None:
            return winner, counts
    return None, counts


def endless(design):
    rounded = Rounded(design)
    while True:
        yield from rounded.extend(500)


CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "paper": (*instances.paper(3, 0.5), {}),
    "gaussian": (instances.gaussian(6, 3, 4), np.array([1.0, 0.4, -0.3]), {}),
    "minimise": (instances.gaussian(7, 2, 5), np.array([1.0, -0.8]), {"objective": "min"}),
    "unstructured": (np.eye(4), np.array([0.9, 0.1, 0.0, 0.2]), {}),
    "epsilon": (instances.unit_sphere(8, 2, 1), np.array([1.0, 0.0]), {"epsilon": 0.3}),
    "large rewards": (np.eye(3), np.array([1e6 + 1.0, 1e6, 1e6 + 0.2]), {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("criterion", "bound"),
    [("g", "sharp"), ("g", "soare"), ("xy", "sharp"), ("xy", "soare"), ("v", "sharp")],
)
@pytest.mark.parametrize("allocation", ["relaxed", "greedy"])
def test_it_stops_at_the_first_pull_at_which_the_rule_holds(case, criterion, bound, allocation):
    X, theta, settings = CASES[case]
    arms = fl.Arms(X)
    problem = as_problem(arms, sigma=0.3, delta=0.1, **settings)
    usual: Any = named(criterion, arms)
    strategy = replace(usual, bound=bound, allocation=allocation)
    for seed in range(2):
        means = arms.means(theta)
        run = strategy.start(problem)
        fast = DrawnRewards(means, 0.3, "gaussian", np.random.default_rng(seed))
        counts = run.play(fast, 10**5)
        slow = DrawnRewards(means, 0.3, "gaussian", np.random.default_rng(seed))
        relaxed = endless(optimal_design(arms, criterion)) if allocation == "relaxed" else None
        sequence = relaxed or greedy(arms, criterion)
        winner, expected = twin(X, sequence, slow, problem, bound, 10**5)
        assert winner is not None
        assert run.verdict.winner == winner
        np.testing.assert_array_equal(counts, expected)


def test_a_sequence_has_the_rounded_designs_as_prefixes():
    for K, d, seed in ((12, 3, 0), (40, 4, 1), (5, 5, 2)):
        design = optimal_design(fl.Arms(instances.gaussian(K, d, seed)), "xy")
        rounded = Rounded(design)
        sequence = np.concatenate([rounded.extend(n) for n in (1, 0, 7, 392)])
        for n in range(len(design.support), 400):
            counts = np.bincount(sequence[:n], minlength=K)
            np.testing.assert_array_equal(counts, round_design(design, n))


def test_pulls_are_made_in_chunks_without_a_seam():
    arms, theta = fl.Arms.unstructured(3), np.array([0.03, 0.0, 0.0])
    problem = as_problem(arms, sigma=1.0)
    runs = []
    for limits in ([10**7], [CHUNK - 1, CHUNK + 3, 2 * CHUNK, 10**7]):
        run = XYAllocation().start(problem)
        rewards = DrawnRewards(theta, 1.0, "gaussian", np.random.default_rng(1))
        counts = [run.play(rewards, limit) for limit in limits]
        runs.append((run.verdict, np.sum(counts, axis=0).tolist()))
    assert runs[0] == runs[1]
    assert runs[0][0].pulls > 2 * CHUNK
    assert runs[0][0].decided


def test_batches_are_looked_at_when_they_end():
    arms, theta = fl.Arms.unstructured(3), np.array([1.0, 0.0, 0.5])
    problem = as_problem(arms, sigma=1.0)
    plates = XYAllocation().start(problem)
    rewards = DrawnRewards(theta, 1.0, "gaussian", np.random.default_rng(3))
    while not plates.verdict.decided:
        batch = plates.next(96)
        assert batch.size == 96
        np.testing.assert_array_less(batch.counts, 34)
        plates.record(batch, rewards.batch(batch.counts))
    assert plates.verdict.winner == 0
    assert plates.verdict.pulls % 96 == 0


def test_the_margin_is_used_and_the_rule_hardly_ever_evaluated(monkeypatch):
    from finalist.strategies.static import kernels as static_kernels

    arms, theta = fl.Arms.unstructured(4), np.array([0.05, 0.0, 0.0, 0.0])
    run = XYAllocation().start(as_problem(arms, sigma=1.0))
    rewards = DrawnRewards(theta, 1.0, "gaussian", np.random.default_rng(2))
    evaluations, evaluate = 0, static_kernels.evaluate

    def counted(*arguments):
        nonlocal evaluations
        evaluations += 1
        return evaluate(*arguments)

    monkeypatch.setattr(static_kernels, "evaluate", counted)
    monkeypatch.setattr(static_kernels, "look", static_kernels.look.py_func)
    monkeypatch.setattr(static_kernels, "run", static_kernels.run.py_func)
    pulls = run.play(rewards, 10**6).sum()
    assert run.verdict.decided
    assert pulls > 10_000
    assert evaluations < pulls / 50


# ---- the oracle --------------------------------------------------------------------------


def oracle_radius(n, K, bound):
    """One look at K - 1 rivals; as printed, all n and all pairs."""
    return static_radius(n, K, 0.05, 1.0, bound) if bound == "soare" else oracle_sharp(K - 1)


def oracle_sharp(rivals):
    return np.sqrt(2 * np.log(rivals / 0.05))


def brute_force_oracle(X, theta, bound, K, n_max):
    """The first n whose rounded oracle design fulfils eq:oracle.stop.condition.2."""
    problem = as_problem(fl.Arms(X), sigma=1.0)
    known = knowledge_of(problem, theta)
    design = oracle_design(known)
    best = int((X @ theta).argmax())
    y = np.delete(X[best] - X, best, axis=0)
    for n in range(len(design.support), n_max):
        counts = round_design(design, n)
        inverse = np.linalg.inv((X.T * counts) @ X)
        widths = np.sqrt(np.einsum("ij,jk,ik->i", y, inverse, y))
        if (oracle_radius(n, K, bound) * widths <= y @ theta).all():
            return counts
    return None


@pytest.mark.parametrize("bound", ["sharp", "soare"])
def test_the_oracle_stops_at_the_first_rounded_design_that_is_enough(bound):
    X, theta = instances.gaussian(8, 3, 2), np.array([2.0, 1.0, -1.0])
    expected = brute_force_oracle(X, theta, bound, 8, 3000)
    batch = XYOracle(theta, bound).start(as_problem(fl.Arms(X), sigma=1.0)).next()
    np.testing.assert_array_equal(batch.counts, expected)


def test_the_oracle_needs_what_the_complexity_says():
    truth = instances.paper(5, 0.01)
    arms = fl.Arms(truth.features)
    hardness = fl.complexity(arms, truth.theta, bound="soare", sigma=1.0)
    pulls = XYOracle(truth.theta, "soare").start(as_problem(arms, sigma=1.0)).next().size
    assert hardness.oracle_budget <= pulls <= hardness.oracle_budget + 20
    # Sharp: H_LB radius^2, 1.7 times the mean pulls that a method needs at least if it keeps delta
    # for every theta.
    pulls = XYOracle(truth.theta).start(as_problem(arms, sigma=1.0)).next().size
    expected = hardness.h_lb * oracle_sharp(5) ** 2
    assert expected <= pulls <= expected + 20
    assert pulls < 1.8 * hardness.lower_bound


def test_the_oracle_does_not_say_what_it_knows_but_what_it_estimates():
    # Rewards of another parameter: the arm that they favour is returned.
    arms = fl.Arms.unstructured(3)
    run = XYOracle([1.0, 0.0, 0.0]).start(as_problem(arms, sigma=1.0))
    other = DrawnRewards(np.array([0.0, 0.0, 1.0]), 1.0, "gaussian", np.random.default_rng(0))
    batch = run.next()
    run.record(batch, other.batch(batch.counts))
    assert run.verdict.winner == 2


def test_only_wrong_answers_matter_to_the_oracle():
    arms = fl.Arms.unstructured(4)
    tied = XYOracle([1.0, 1.0, 0.0, 0.0]).start(as_problem(arms, sigma=1.0))
    assert tied.next().counts[1] == 0  # the same as the best: nothing to tell apart
    close = XYOracle([1.0, 0.99, 0.0, 0.0]).start(as_problem(arms, epsilon=0.1, sigma=1.0))
    assert close.next().size < 100
    good_enough = XYOracle([1.0, 0.99, 0.98, 0.97]).start(as_problem(arms, epsilon=0.1, sigma=1.0))
    assert good_enough.verdict.winner == 0


def test_a_greedy_oracle_stops_where_one_pull_less_is_not_enough():
    truth = instances.paper(3, 0.2)
    arms = fl.Arms(truth.features)
    counts = (
        XYOracle(truth.theta, allocation="greedy").start(as_problem(arms, sigma=1.0)).next().counts
    )
    known = knowledge_of(as_problem(arms, sigma=1.0), truth.theta)

    def enough(n):
        inverse = np.linalg.inv((truth.features.T * n) @ truth.features)
        y = known.features / known.smallest
        width = np.sqrt(np.einsum("ij,jk,ik->i", y, inverse, y)).max()
        return oracle_sharp(3) * width <= 1.0

    sequence = list(islice(greedy(arms, known.features), int(counts.sum())))
    np.testing.assert_array_equal(np.bincount(sequence, minlength=4), counts)
    assert enough(counts)
    assert not enough(np.bincount(sequence[:-1], minlength=4))


@pytest.mark.parametrize("allocation", ["relaxed", "greedy"])
def test_the_empirical_oracle_names_the_winner_also_where_its_design_does_not_span(allocation):
    arms, theta = fl.Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    problem = as_problem(arms, epsilon=0.3, sigma=1.0)
    run = XYOracle(theta, stopping="empirical", allocation=allocation).start(problem)
    assert isinstance(run, StaticRun)
    run.play(DrawnRewards(theta, 1.0, "gaussian", np.random.default_rng(0)), 10**6)
    assert run.verdict.winner in (0, 1)


# ---- validity ----------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.0, 1 / 3])
def test_a_radius_three_times_too_small_is_caught(factor, monkeypatch):
    arms, theta = fl.Arms.unstructured(4), np.array([0.1, 0.0, 0.0, 0.0])
    problem, wrong, runs = as_problem(arms, sigma=1.0), 0, 200
    start = StaticRun.__init__

    def smaller(self, *arguments):
        start(self, *arguments)
        self._rule = self._rule._replace(scale=self._rule.scale * factor)

    monkeypatch.setattr(StaticRun, "__init__", smaller)
    for seed in range(runs):
        run = XYAllocation().start(problem)
        run.play(DrawnRewards(theta, 1.0, "gaussian", np.random.default_rng(seed)), 10**7)
        wrong += run.verdict.winner != 0
    assert (exact_lower_bound(wrong, runs, 0.999) > problem.delta) == (factor < 1)


@pytest.mark.parametrize("make", [GAllocation, XYAllocation, VAllocation, partial(XYOracle, [1.0])])
def test_settings_are_checked(make):
    with pytest.raises(ProblemError, match="bound is 'best'"):
        make(bound="best")
    with pytest.raises(ProblemError, match="'relaxed' or 'greedy'"):
        make(allocation="best")


def test_the_oracle_needs_a_parameter():
    for theta in ([], [[1.0]], [np.nan], "much", None):
        with pytest.raises(ParameterError, match="theta is"):
            XYOracle(theta)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="stopping"):
        XYOracle([1.0], stopping="never")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        XYOracle([1.0, 2.0]).start(as_problem(fl.Arms.unstructured(3), sigma=1.0))


# ---- noise, roles and costs of each arm ------------------------------------------------------

SPHERE = fl.Arms(instances.unit_sphere(9, 3, 2))
DIRECTION = np.array([1.0, 0.4, -0.2])
MEASURABLE = np.arange(9) < 5
SIGMAS = np.linspace(0.3, 1.5, 9)


def holds_weighted(problem, counts, mean, delta=0.05):
    """The rule of the paper by plain NumPy, weighted: the candidate that is best, or None."""
    X, c = problem.arms.features, np.flatnonzero(problem.arms.candidate)
    w = counts / problem.sigmas**2
    A = (X * w[:, None]).T @ X
    if np.linalg.matrix_rank(A) < 3:
        return None
    theta = np.linalg.solve(A, X.T @ (w * mean))
    radius = static_radius(int(counts.sum()), len(c), delta, 1.0)
    for x in c:
        others = c[c != x]
        Y = X[x] - X[others]
        width = np.sqrt(np.einsum("ij,ij->i", Y, np.linalg.solve(A, Y.T).T))
        if (Y @ theta >= radius * width).all():
            return int(x)
    return None


@pytest.mark.parametrize("name", ["g", "xy", "v", "uniform", "xy-adaptive"])
def test_arms_that_cannot_be_measured_and_noise_of_each(name):
    arms = fl.Arms(SPHERE.features, measurable=MEASURABLE)
    theta = 2.0 * DIRECTION
    result = fl.simulate(arms, theta, name, sigma=SIGMAS, runs=6, seed=2)
    assert result.correct.all()
    assert result.pulls_per_arm[:, ~MEASURABLE].sum() == 0
    chosen = fl.Arms(SPHERE.features[:4]).with_candidates(fl.Arms(SPHERE.features[4:]))
    result = fl.simulate(chosen, theta, name, runs=4, seed=2, sigma=1.0)
    assert result.correct.all()
    assert (result.winner >= 4).all()


@pytest.mark.parametrize("name", ["g", "uniform"])
def test_the_rule_is_that_of_weighted_least_squares(name):
    arms = fl.Arms(SPHERE.features, measurable=MEASURABLE)
    problem = as_problem(arms, sigma=SIGMAS)
    means = arms.means(3.0 * DIRECTION)
    rewards = DrawnRewards(means, SIGMAS, "gaussian", np.random.default_rng(4))
    run = named(name, arms).start(problem)
    pooled = Statistics.empty(9)
    for _ in range(200):
        batch = run.next(12)
        values = rewards.batch(batch.counts)
        run.record(batch, values)
        pooled.merge(values)
        assert run.verdict.winner == holds_weighted(problem, pooled.count, pooled.mean)
        if run.verdict.decided:
            break
    assert run.verdict.decided
    again = run.pooled().mean if hasattr(run, "pooled") else pooled.mean
    np.testing.assert_allclose(again[MEASURABLE], pooled.mean[MEASURABLE], rtol=1e-9)


def test_greedy_rules_know_arms_of_one_kind_only():
    for strategy in (fl.GAllocation(allocation="greedy"), fl.XYAdaptive(allocation="greedy")):
        with pytest.raises(fl.errors.NotYetSupportedError, match="sigma per candidate"):
            fl.simulate(SPHERE, DIRECTION, strategy, sigma=SIGMAS, runs=1)


def test_cheap_arms_are_pulled_more_by_a_static_design():
    cost = np.linspace(5.0, 0.5, 9)
    aware = fl.simulate(SPHERE, DIRECTION, "g", cost=cost, runs=10, sigma=1.0)
    blind = fl.simulate(SPHERE, DIRECTION, "g", runs=10, sigma=1.0)
    assert aware.cost.mean() < (blind.pulls_per_arm @ cost).mean()
    with pytest.raises(fl.errors.NotYetSupportedError, match="cost"):
        fl.simulate(SPHERE, DIRECTION, "xy-adaptive", cost=cost, runs=1, sigma=1.0)
