import math
import os
from itertools import permutations

import numpy as np
import pytest

import finalist as fl
from finalist.errors import NotYetSupportedError, ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import Gaussian, as_problem
from finalist.simulation.binomial import exact_lower_bound
from finalist.strategies.phased import rage
from finalist.strategies.phased.rage import RAGE, RAGERun, compare
from finalist.testing.runs import step
from tests import instances

THETA = np.array([0.5, -0.25, 0.1])


def inverted(X, counts) -> np.ndarray:
    """Return A^+: two survivors may need fewer arms than there are features."""
    return np.asarray(np.linalg.pinv(X.T @ (counts[:, None] * X), rcond=1e-10, hermitian=True))


def widths(X, counts, t, delta, sigma) -> np.ndarray:
    """Return ||z - z'||_{A^-1} sqrt(2 log(K^2 / delta_t)) sigma for all pairs, in feature space."""
    inverse = inverted(X, counts)
    radius = sigma * np.sqrt(2 * np.log(len(X) ** 2 / (delta / t**2)))
    return np.array([[radius * np.sqrt((x - z) @ inverse @ (x - z)) for z in X] for x in X])


@pytest.mark.parametrize(
    ("settings", "objective"),
    [({}, "max"), ({"epsilon": 0.4}, "max"), ({"sigma": 3.0, "delta": 0.3}, "min")],
    ids=["best", "good enough", "minimising"],
)
@pytest.mark.parametrize("first_gap", [0.25, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_every_phase_is_that_of_the_paper(settings, objective, first_gap, seed):
    # Everything again from the features: length, widths, eliminations, winner.
    X = instances.gaussian(9, 3, seed)
    problem = as_problem(fl.Arms(X), objective=objective, **{"sigma": 1.0, **settings})
    run, log = step(RAGE(first_gap=first_gap), problem, THETA, seed)
    replay, alive = RAGE(first_gap=first_gap).start(problem), list(range(9))
    for t, (batch, rewards) in enumerate(log, start=1):
        goal = first_gap * problem.sigma * 2.0 ** (1 - t)
        design = fl.optimal_design(problem.arms, "xy", 1e-7, among=np.array(alive))
        log_term = math.log(81 / (problem.delta / t**2))
        exact = 8 * (problem.sigma / goal) ** 2 * design.value * 1.1 * log_term
        assert batch.note["phase"] == t
        shortest = math.ceil(11 * np.count_nonzero(batch.counts))
        assert batch.size == shortest or exact - 1e-3 <= batch.size <= exact * 1.002 + 1
        assert batch.size >= max(exact - 1e-3, shortest)
        width = widths(X, batch.counts, t, problem.delta, problem.sigma)
        assert width[np.ix_(alive, alive)].max() <= goal / 2
        theta = inverted(X, batch.counts) @ X.T @ (batch.counts * rewards.mean)
        means = problem.sign * X @ theta
        pairs = list(permutations(alive, 2))
        out = {z for z, other in pairs if width[z, other] < means[other] - means[z]}
        most = {
            z: max(means[other] - means[z] + width[z, other] for other in alive if other != z)
            for z in alive
            if z not in out
        }
        alive = [z for z in alive if z not in out]
        replay.record(batch, rewards)
        assert list(replay.verdict.survivors) == alive
        best = min(most, key=lambda z: most[z])
        done = len(alive) == 1 or (problem.epsilon > 0 and most[best] <= problem.epsilon)
        assert replay.verdict.winner == (best if done else None)
    assert replay.verdict == run.verdict
    assert run.verdict.pulls == sum(batch.size for batch, _ in log)
    assert run.verdict.decided


def test_the_default_is_the_printed_formula():
    # Unstructured arms: rho = 2 K. Phase 2 of tied arms, so that nothing is dropped before.
    problem = as_problem(fl.Arms.unstructured(3), delta=0.1, sigma=1.0)
    run, log = step(RAGE(), problem, np.zeros(3), 1, cap=20_000)
    sizes = [
        math.ceil(8 * (2 ** (t + 1)) ** 2 * 6 * 1.1 * math.log(9 * t**2 / 0.1)) for t in (1, 2)
    ]
    assert run.verdict.survivors == (0, 1, 2)
    assert [batch.size for batch, _ in log[:2]] == pytest.approx(sizes, rel=1e-3)
    _, log = step(RAGE(first_gap=1.0), problem, np.zeros(3), 1, cap=1)
    assert log[0][0].size == pytest.approx(8 * 6 * 1.1 * math.log(9 / 0.1), abs=1.5)


@pytest.mark.parametrize("rounding", [0.1, 0.5])
def test_a_phase_is_long_enough_to_be_rounded(rounding):
    arms = fl.Arms(instances.gaussian(12, 4, 0))
    batch = RAGE(first_gap=1e6, rounding=rounding).start(as_problem(arms, sigma=1.0)).next()
    design = fl.optimal_design(arms, "xy", 1e-3)
    assert batch.size == math.ceil(len(design.support) * (1 + rounding) / rounding)
    reached = np.square(widths(arms.features, batch.counts, 1, 0.05, 1.0)).max()
    reached *= batch.size / (2 * math.log(144 / 0.05))
    assert reached <= design.value * (1 + rounding)


def test_a_phase_in_pieces_is_the_same_phase():
    problem = as_problem(fl.Arms(instances.gaussian(9, 3, 0)), sigma=1.0)
    whole = RAGE(first_gap=8.0).start(problem).next().counts
    run, total = RAGE(first_gap=8.0).start(problem), np.zeros(9, dtype=int)
    rng = np.random.default_rng(0)
    while run._number == 1 and not run.verdict.decided:
        batch = run.next(16)
        rewards = Statistics.empty(9)
        rewards.add_batch(batch.counts, batch.counts * rng.standard_normal(9))
        run.record(batch, rewards)
        total += batch.counts
    np.testing.assert_array_equal(total, whole)


def test_arms_are_compared_in_blocks(monkeypatch):
    rng = np.random.default_rng(3)
    means, points = rng.standard_normal(23), 0.3 * rng.standard_normal((23, 4))
    at_once = compare(means, points)
    monkeypatch.setattr(rage, "PAIRS", 70)
    for one, other in zip(at_once, compare(means, points), strict=True):
        np.testing.assert_array_equal(one, other)
    for b in range(23):
        others = [a for a in range(23) if a != b]
        gaps = np.array([means[a] - means[b] for a in others])
        wide = np.array([np.linalg.norm(points[a] - points[b]) for a in others])
        assert at_once[0][b] == pytest.approx((gaps - wide).max(), rel=1e-14)
        assert at_once[1][b] == pytest.approx((gaps + wide).max(), rel=1e-14)


def test_what_all_arms_share_changes_nothing():
    X = np.column_stack([np.ones(6), instances.gaussian(6, 2, 1)])
    plain, _ = step(RAGE(), as_problem(fl.Arms(X), sigma=1.0), [0.0, 0.5, 1.0], 3)
    high, _ = step(RAGE(), as_problem(fl.Arms(X), sigma=1.0), [1e9, 0.5, 1.0], 3)
    assert high.verdict == plain.verdict


@pytest.mark.parametrize("factor", [1.0, 1 / 3])
def test_error_rate_and_a_radius_three_times_too_small_is_caught(factor, monkeypatch):
    whole = RAGERun._log
    monkeypatch.setattr(RAGERun, "_log", lambda self: factor**2 * whole(self))
    problem, theta = as_problem(fl.Arms.unstructured(4), sigma=1.0), np.array([0.05, 0.0, 0.0, 0.0])
    wrong = sum(step(RAGE(), problem, theta, s)[0].verdict.winner != 0 for s in range(100))
    assert (exact_lower_bound(wrong, 100, 0.999) <= problem.delta) == (factor == 1.0)


def test_many_arms_need_little_memory_and_end():
    X = instances.unit_sphere(3000, 4, 0)
    problem = as_problem(fl.Arms(X), sigma=0.2, epsilon=0.03)
    run, log = step(RAGE(first_gap=10.0), problem, X[7], 0)
    assert X[run.verdict.winner] @ X[7] >= 1.0 - 0.03
    assert len(log) > 3


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), True])
def test_numbers_among_the_settings_are_checked(value):
    with pytest.raises(ProblemError, match="first_gap"):
        RAGE(first_gap=value)
    with pytest.raises(ProblemError, match="rounding"):
        RAGE(rounding=value)


@pytest.mark.skipif(bool(os.environ.get("FINALIST_SHAPES")), reason="the type checker is faster")
@pytest.mark.parametrize("setting", ["first_gap", "rounding"])
def test_types_of_the_settings_are_checked(setting):
    with pytest.raises(ProblemError, match=setting):
        RAGE(**{setting: "1"})  # type: ignore[arg-type]


def test_problems_are_checked():
    with pytest.raises(NotYetSupportedError, match="unknown sigma"):
        RAGE().start(fl.Problem(fl.Arms.unstructured(2), noise=Gaussian(None)))
