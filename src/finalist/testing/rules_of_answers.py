"""Rules about the answers of a strategy: the best arm, in all units, with ties and lost rewards.

Seeds are fixed, so a rule has the same outcome every time.
"""

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.problem import as_problem
from finalist.simulation.instances import gaussian, one_hot_factorial
from finalist.strategies import Batch
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
    "an arm of zeros": ([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [1.0, 0.0]], [1.0, -0.2]),
}


def an_odd_problem_ends_with_the_best_arm(
    make: Make, problem: str, scale: float, budget: int | None = None
) -> None:
    """Few arms, few features, dependent features, and features of any size."""
    features, theta = map(np.asarray, ODD[problem])
    arms, parameter = Arms(features * scale), theta / scale
    sigma = 0.1 if budget is None else 0.02  # few pulls have to be enough
    question = as_problem(arms, sigma=sigma, delta=1e-6, budget=budget)
    winner = play(make(arms, parameter), question, parameter, seed=3).verdict.winner
    best = int(arms.means(parameter).argmax())
    ensure(winner == best, f"arm {winner} wins and arm {best} is the best")


def minimising_is_maximising_the_opposite(make: Make, budget: int | None = None) -> None:
    """With `objective="min"` the smallest mean wins."""
    arms = Arms(gaussian(8, 3, 4))
    problem = as_problem(arms, sigma=0.05, delta=1e-6, objective="min", budget=budget)
    with where_supported():
        winner = play(make(arms, THETA), problem, THETA, 0).verdict.winner
    best = int(arms.means(THETA).argmin())
    ensure(winner == best, f"arm {winner} wins and arm {best} is the smallest")


def units_of_the_rewards_change_nothing(make: Make, budget: int | None = None) -> None:
    """Rewards, sigma and theta in other units: the same pulls, the same verdict."""
    arms, unit = Arms(gaussian(8, 3, 4)), 2.0**30
    problem = as_problem(arms, sigma=0.5, budget=budget)
    plain = play(make(arms, THETA), problem, THETA, seed=5).verdict
    problem = as_problem(arms, sigma=0.5 * unit, budget=budget)
    scaled = play(make(arms, THETA * unit), problem, THETA * unit, seed=5).verdict
    ensure(plain == scaled, f"{plain} becomes {scaled} in other units of the rewards")


def units_of_the_features_change_nothing(make: Make, budget: int | None = None) -> None:
    """Features in other units: the same winner and, but for rounding, the same pulls."""
    X, units = gaussian(8, 3, 4), np.array([2.0**20, 1.0, 2.0**-30])
    arms, scaled = Arms(X), Arms(X * units)
    problem = as_problem(arms, sigma=1.0, budget=budget)
    plain = play(make(arms, THETA), problem, THETA, seed=5).verdict
    problem = as_problem(scaled, sigma=1.0, budget=budget)
    other = play(make(scaled, THETA / units), problem, THETA / units, seed=5).verdict
    # Not the same numbers to the last digit: the coordinates are computed from the features.
    near = abs(other.pulls - plain.pulls) <= 0.02 * plain.pulls
    same = plain.winner == other.winner and near
    ensure(same, f"{plain} becomes {other} in other units of the features")


def names_and_order_change_no_winner(make: Make, budget: int | None = None) -> None:
    """Names have no influence; in another order the same arm wins, if it is clearly best."""
    X, order = gaussian(8, 3, 4), np.array([5, 2, 7, 0, 3, 6, 1, 4])
    found = []
    for rows, names in ((X, "abcdefgh"), (X, "zyxwvuts"), (X[order], "abcdefgh")):
        arms = Arms(rows, names=list(names))
        problem = as_problem(arms, sigma=0.05, delta=1e-6, budget=budget)
        found.append(play(make(arms, THETA), problem, THETA, seed=0).verdict)
    plain, called, turned = found
    ensure(plain == called, f"{plain} becomes {called} when the arms have other names")
    winner = None if turned.winner is None else int(order[turned.winner])
    same = plain.winner == winner
    ensure(same, f"arm {plain.winner} wins, and arm {winner} in another order of the arms")


def ties_never_end_in_a_wrong_answer(make: Make) -> None:
    """Arms 0 and 1 are tied and far above the rest: up to the cap no other arm may win."""
    arms, theta = Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    strategy, problem = make(arms, theta), as_problem(arms, sigma=1.0, delta=1e-3)
    for seed in range(20):
        verdict = play(strategy, problem, theta, seed, cap=20_000).verdict
        ensure(verdict.winner in (None, 0, 1), f"arms 0 and 1 are tied and {verdict.winner} wins")
        ensure({0, 1} & set(verdict.survivors), f"arms 0 and 1 are gone: {verdict}")


def a_good_enough_arm_ends_a_tie(make: Make) -> None:
    """With epsilon, two equal arms do not keep a run from ending."""
    arms, theta = Arms.unstructured(4), np.array([1.0, 1.0, 0.0, 0.0])
    problem = as_problem(arms, sigma=1.0, epsilon=0.2, delta=1e-3)
    with where_supported():
        winner = play(make(arms, theta), problem, theta, seed=1).verdict.winner
    ensure(winner in (0, 1), f"arms 0 and 1 are tied and {winner} wins")


def an_arm_without_rewards_is_not_ruled_out(make: Make, lost: list[int], epsilon: float) -> None:
    """Of a batch with missing pulls, a study records only the rest."""
    arms, theta = Arms.unstructured(3), np.array([0.0, 1.0, 5.0])
    problem, strategy = as_problem(arms, sigma=1.0, epsilon=epsilon), make(arms, theta)
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
