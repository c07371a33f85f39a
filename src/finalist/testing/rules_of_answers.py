"""Rules about what a strategy answers: the best arm, in all units, and wrong rarely enough.

Seeds are fixed, so a rule has the same outcome every time. Where chance decides, the exact 99.9 %
lower bound of the error probability must not be larger than delta.
"""

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.problem import as_problem
from finalist.simulation import exact_lower_bound
from finalist.simulation.instances import gaussian, one_hot_factorial
from finalist.strategies import Batch, Strategy, guaranteed
from finalist.testing.runs import (
    THETA,
    Make,
    NotApplicable,
    ensure,
    play,
    rewards_of,
    where_supported,
)

#: Small and odd problems by name: features and the true parameter.
ODD: dict[str, tuple[ArrayLike, ArrayLike]] = {
    "two arms": ([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0]),
    "one feature": ([[1.0], [0.4], [-0.5]], [1.0]),
    "rank-deficient": (one_hot_factorial((2, 3)), [0.0, 1.0, 0.0, 0.5, 0.0, -0.5]),
    "more features than arms": (gaussian(4, 9, 2), np.ones(9)),
}


def an_odd_problem_ends_with_the_best_arm(make: Make, problem: str, scale: float) -> None:
    """Few arms, few features, dependent features, and features of any size."""
    features, theta = map(np.asarray, ODD[problem])
    arms, parameter = Arms(features * scale), theta / scale
    question = as_problem(arms, sigma=0.1, delta=1e-6)
    winner = play(make(arms, parameter), question, parameter, seed=3).verdict.winner
    best = int(arms.means(parameter).argmax())
    ensure(winner == best, f"arm {winner} wins and arm {best} is the best")


def minimising_is_maximising_the_opposite(make: Make) -> None:
    """With `objective="min"` the smallest mean wins."""
    arms = Arms(gaussian(8, 3, 4))
    problem = as_problem(arms, sigma=0.1, delta=1e-6, objective="min")
    with where_supported():
        winner = play(make(arms, THETA), problem, THETA, 0).verdict.winner
    best = int(arms.means(THETA).argmin())
    ensure(winner == best, f"arm {winner} wins and arm {best} is the smallest")


def units_of_the_rewards_change_nothing(make: Make) -> None:
    """Rewards, sigma and theta in other units: the same pulls, the same verdict."""
    arms, unit = Arms(gaussian(8, 3, 4)), 2.0**30
    plain = play(make(arms, THETA), as_problem(arms, sigma=0.5), THETA, seed=5).verdict
    strategy, problem = make(arms, THETA * unit), as_problem(arms, sigma=0.5 * unit)
    scaled = play(strategy, problem, THETA * unit, seed=5).verdict
    ensure(plain == scaled, f"{plain} becomes {scaled} in other units of the rewards")


def units_of_the_features_change_nothing(make: Make) -> None:
    """Features in other units: the same winner and, but for rounding, the same pulls."""
    X, units = gaussian(8, 3, 4), np.array([2.0**20, 1.0, 2.0**-30])
    arms, scaled = Arms(X), Arms(X * units)
    plain = play(make(arms, THETA), as_problem(arms, sigma=1.0), THETA, seed=5).verdict
    strategy = make(scaled, THETA / units)
    other = play(strategy, as_problem(scaled, sigma=1.0), THETA / units, seed=5).verdict
    # Not the same numbers to the last digit: the coordinates are computed from the features.
    near = abs(other.pulls - plain.pulls) <= 0.02 * plain.pulls
    same = plain.winner == other.winner and near
    ensure(same, f"{plain} becomes {other} in other units of the features")


def ties_never_end_in_a_wrong_answer(make: Make) -> None:
    """Arms 0 and 1 are tied and far above the rest: until the cap nobody else may win."""
    arms, theta = Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    strategy, problem = make(arms, theta), as_problem(arms, delta=1e-3, sigma=1.0)
    for seed in range(20):
        verdict = play(strategy, problem, theta, seed, cap=20_000).verdict
        ensure(verdict.winner in (None, 0, 1), f"arms 0 and 1 are tied and {verdict.winner} wins")
        ensure({0, 1} & set(verdict.survivors), f"arms 0 and 1 are gone: {verdict}")


def a_good_enough_arm_ends_a_tie(make: Make) -> None:
    """With epsilon, two equal arms are no reason to go on."""
    arms, theta = Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    problem = as_problem(arms, epsilon=0.2, delta=1e-3, sigma=1.0)
    with where_supported():
        winner = play(make(arms, theta), problem, theta, seed=1).verdict.winner
    ensure(winner in (0, 1), f"arms 0 and 1 are tied and {winner} wins")


def errors_are_as_rare_as_promised(make: Make) -> None:
    """400 runs on a nearly tied instance with delta = 0.2."""
    delta, runs = 0.2, 400
    arms, theta = Arms.unstructured(4), np.array([0.5, 0.0, 0.0, 0.0])
    problem, strategy = as_problem(arms, delta=delta, sigma=1.0), make(arms, theta)
    _refuse_without_promise(strategy)
    wrong = sum(play(strategy, problem, theta, seed).verdict.winner != 0 for seed in range(runs))
    _ensure_rare(wrong, runs, delta, "the winner is wrong")


def good_enough_rules_out_no_best_arm(make: Make) -> None:
    """Where an arm within epsilon suffices, the best one stays among the survivors."""
    arms, theta = Arms.unstructured(4), np.array([1.0, 0.9, 0.0, 0.0])
    problem, strategy = as_problem(arms, epsilon=0.5, delta=0.05, sigma=1.0), make(arms, theta)
    _refuse_without_promise(strategy)
    missing = 0
    for seed in range(60):
        with where_supported():
            verdict = play(strategy, problem, theta, seed).verdict
        ensure(verdict.winner in verdict.survivors, f"no survivor wins: {verdict}")
        missing += 0 not in verdict.survivors
    _ensure_rare(missing, 60, 0.05, "the best arm is no survivor")


def an_arm_without_rewards_is_not_ruled_out(make: Make, lost: list[int], epsilon: float) -> None:
    """Of a batch with missing pulls a study records what is left."""
    arms, theta = Arms.unstructured(3), np.array([0.0, 1.0, 5.0])
    problem, strategy = as_problem(arms, epsilon=epsilon, sigma=1.0), make(arms, theta)
    if hasattr(strategy, "theta"):
        raise NotApplicable("it knows the answer")
    with where_supported():
        run, rewards = strategy.start(problem, seed=1), rewards_of(problem, theta, 7)
    for size in (None, None, 60, 60, 60, None):
        batch = run.next(size)
        left = batch.counts.copy()
        left[lost] = 0
        run.record(Batch(left, batch.note), rewards.batch(left))
        ensure(run.verdict.winner is None, "an arm wins against one that has no rewards")
        ensure(2 in run.verdict.survivors, "an arm is ruled out that has no rewards")


def _refuse_without_promise(strategy: Strategy) -> None:
    if not guaranteed(strategy):
        raise NotApplicable("it promises no error probability")


def _ensure_rare(errors: int, runs: int, delta: float, what: str) -> None:
    least = exact_lower_bound(errors, runs, 0.999)
    words = f"{what} in {errors} of {runs} runs, so with probability at least {least:.3f}"
    ensure(least <= delta, f"{words}; promised is {delta}")
