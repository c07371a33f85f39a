"""Rules for strategies that spend a fixed budget: no more than it, one winner, and they learn.

A winner after a fixed budget is a recommendation without a promised error probability, so there is
no delta to test. The bar is what any sensible strategy reaches. With a large budget it is wrong in
at most `EASY` of the runs, on instances where equal shares are hardly ever wrong; with a small one
it beats guessing. Bounds are exact (Clopper and Pearson 1934). Where arms are alike, the best one
changes from run to run, so that always naming the same arm is no better than guessing. A strategy
that is wrong less often than `EASY` fails with probability at most `ALPHA`, and one that guesses
passes with at most that probability.
"""

from dataclasses import dataclass

import numpy as np

from finalist.arms import Arms
from finalist.errors import FinalistError
from finalist.problem import as_problem
from finalist.shapes import Float, Int
from finalist.simulation import exact_lower_bound
from finalist.simulation.instances import gaussian, paper
from finalist.strategies import Batch, Run
from finalist.strategies.abilities import Lossy
from finalist.testing.rules_of_errors import ALPHA, TIED
from finalist.testing.runs import (
    Make,
    ensure,
    ensure_out_stays_out,
    ensure_refused,
    play,
    rewards_of,
    step,
)

#: Accepted error probability with a large budget.
EASY = 0.05
#: Runs of a statistical rule, and the fewest batches per run (phases may need more).
RUNS, BATCHES = 100, 20


@dataclass(frozen=True, eq=False)
class BudgetTrial:
    """An instance and a budget.

    Attributes
    ----------
    turned : bool
        Whether the best arm changes from run to run; only if all arms are alike.
    """

    arms: Arms
    theta: Float[np.ndarray, " d"]
    budget: int
    turned: bool = True


def _alike(means: list[float], budget: int) -> BudgetTrial:
    return BudgetTrial(Arms.unstructured(len(means)), np.array(means), budget)


def _linear(budget: int) -> BudgetTrial:
    """Return the paper's instance (Soare 2014, Sect. 6) with a wide angle, the best arm last."""
    found = paper(4, 0.8)
    return BudgetTrial(Arms(found.features[::-1]), found.theta, budget, turned=False)


#: Large budgets: with equal shares the standard error is at most a fifth of the gap.
LARGE: dict[str, BudgetTrial] = {
    "five arms": _alike([0.6, 0.0, 0.0, 0.0, 0.0], 1_000),
    "tied best arms": _alike([0.6, 0.6, 0.0, 0.0, 0.0], 1_000),
    "many arms": _alike([0.6, *[0.0] * 11], 2_400),
    "linear": _linear(1_000),
}
#: A small budget: equal shares are right in nine runs of ten.
SMALL = _alike([0.6, 0.0, 0.0, 0.0, 0.0], 100)


def never_more_than_the_budget(make: Make, size: int | None) -> None:
    """There is a winner by the time the budget is spent, with batches of any size.

    The verdict counts the recorded pulls, and no batch is larger than asked for.
    """
    arms = Arms(gaussian(12, 4, 0))
    for budget in (97, 160):
        problem = as_problem(arms, sigma=1.0, budget=budget)
        run, log = step(make(arms, np.ones(4)), problem, np.ones(4), seed=0, size=size)
        made = sum(batch.size for batch, _ in log)
        ensure(made <= budget, f"{made} pulls are made with a budget of {budget}")
        ensure(
            run.verdict.pulls == made,
            f"{made} pulls are recorded, but the verdict is {run.verdict}",
        )
        largest = max(batch.size for batch, _ in log)
        ensure(size is None or largest <= size, f"{largest} pulls when asked for {size}")
        ensure(run.verdict.winner in run.verdict.survivors, f"no survivor wins: {run.verdict}")


def who_is_out_stays_out(make: Make) -> None:
    """Survivors only become fewer, and the winner was always among them."""
    arms = Arms(gaussian(12, 4, 0))
    problem = as_problem(arms, sigma=1.0, budget=200)
    ensure_out_stays_out(make(arms, np.ones(4)), problem, np.ones(4))


def a_budget_is_needed(make: Make) -> None:
    """Without a budget `start` refuses; one pull for 12 arms is refused, or is enough."""
    arms = Arms(gaussian(12, 4, 0))
    strategy = make(arms, np.ones(4))
    missing, small = as_problem(arms, sigma=1.0), as_problem(arms, sigma=1.0, budget=1)
    ensure_refused(lambda: strategy.start(missing), "a problem without a budget")
    try:
        strategy.start(small)
    except FinalistError:
        return
    made = sum(batch.size for batch, _ in step(strategy, small, np.ones(4), seed=0)[1])
    ensure(made <= 1, f"{made} pulls are made with a budget of 1")


def lost_pulls_are_spent(make: Make) -> None:
    """Lost pulls count as spent and are not made again; the best arm is still found.

    A study records the rest of the batch and calls `lose` with the lost pulls, if a run has it.
    """
    arms, theta, budget = Arms.unstructured(4), np.array([0.0, 0.0, 1.0, 0.0]), 60
    problem = as_problem(arms, sigma=0.1, budget=budget)
    run, rewards = make(arms, theta).start(problem, seed=1), rewards_of(problem, theta, 0)
    rng, made = np.random.default_rng(0), 0
    while not run.verdict.decided:
        batch = run.next(7)
        made += batch.size
        ensure(made <= budget, f"{made} pulls, with those that were lost, and {budget} can be made")
        ensure(batch.size, "next returns an empty batch although there is no winner")
        lost = np.minimum(batch.counts, rng.integers(0, 2, 4))
        run.record(Batch(batch.counts - lost, batch.note), rewards.batch(batch.counts - lost))
        _lose(run, lost)
    ensure(run.verdict.winner == 2, f"arm {run.verdict.winner} wins and arm 2 is the best")


def _lose(run: Run, counts: Int[np.ndarray, " K"]) -> None:
    if isinstance(run, Lossy):
        run.lose(counts)


def all_rewards_may_be_lost(make: Make) -> None:
    """Even then the run ends, with some winner."""
    arms, budget = Arms.unstructured(4), 60
    run = make(arms, np.ones(4)).start(as_problem(arms, sigma=1.0, budget=budget), seed=1)
    nothing, made = np.zeros(4, dtype=np.int64), 0
    while not run.verdict.decided:
        batch = run.next(7)
        made += batch.size
        ensure(batch.size > 0 and made <= budget, f"{made} pulls, all lost, with {budget} to make")
        empty = rewards_of(as_problem(arms, sigma=1.0), np.ones(4), 0).batch(nothing)
        run.record(Batch(nothing.copy(), batch.note), empty)
        _lose(run, batch.counts)
    ensure(run.verdict.winner in range(4), f"the winner is {run.verdict.winner}")


def a_large_budget_finds_the_best_arm(make: Make, task: str) -> None:
    """If equal shares are hardly ever wrong, neither is the strategy."""
    wrong = _wrong(make, LARGE[task])
    share = ALPHA / (len(LARGE) + 1)
    words = f"it is wrong in {wrong} of {RUNS} runs with {LARGE[task].budget:,} pulls"
    least = exact_lower_bound(wrong, RUNS, 1.0 - share)
    ensure(least <= EASY, f"{words}, so with probability {least:.2f} at least; this one is easy")


def a_small_budget_is_better_than_a_guess(make: Make) -> None:
    """With 20 pulls for each arm it learns something."""
    K, share = len(SMALL.arms), ALPHA / (len(LARGE) + 1)
    right = RUNS - _wrong(make, SMALL)
    words = f"it is right in {right} of {RUNS} runs with {SMALL.budget} pulls"
    least = exact_lower_bound(right, RUNS, 1.0 - share)
    ensure(least > 1.0 / K, f"{words}; a guess among {K} arms may be as good")


def _wrong(make: Make, task: BudgetTrial) -> int:
    """Return how many runs name an arm that is not one of the best."""
    problem, wrong = as_problem(task.arms, sigma=1.0, budget=task.budget), 0
    for run in range(RUNS):
        theta = np.roll(task.theta, run) if task.turned else task.theta
        strategy, least = make(task.arms, theta), task.budget // BATCHES
        winner = play(strategy, problem, theta, run, least=least, own_seed=run).verdict.winner
        means = task.arms.means(theta)
        ensure(winner in range(len(means)), f"the winner is {winner}")
        wrong += bool(means[winner] < means.max() - TIED)
    return wrong
