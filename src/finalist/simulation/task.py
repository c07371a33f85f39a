"""A simulation task, checked once, and how one run of it is made.

Run i of a task draws everything from the seed sequence (seed, i): its rewards from the first child,
the strategy's seed from the second. So a run is the same in every process, however many other
runs there are.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.compiled.threads import on_one_thread
from finalist.errors import ProblemError, SimulationError
from finalist.inference.intervals import leaders
from finalist.inference.pooling import Pooled
from finalist.inference.statistics import BatchResults
from finalist.problem import Problem, as_problem
from finalist.problem.budget import ROUNDING, cheapest, in_cost, of_budget, prices_of
from finalist.problem.values import checked_number
from finalist.simulation.rewards import DrawnRewards, FunctionRewards, Kind, RewardFunction
from finalist.simulation.summary import per_arm
from finalist.strategies import Batch, Playable, Run, Strategy, block_size, guaranteed, named
from finalist.strategies.abilities import Looking
from finalist.strategies.affordable import affordable


class Outcome(NamedTuple):
    """How one run ended; `winner` is -1 if it was stopped undecided.

    With a budget the winner is the recommendation; `certain` is whether the strategy decided with
    its guarantee.
    """

    run: int
    winner: int
    correct: bool
    pulls: Int[np.ndarray, " K"]
    batches: int
    seconds: float
    certain: bool


@runtime_checkable
class Numbered(Protocol):
    """Numbered runs, each a function of its number alone."""

    def run(self, index: int) -> Outcome:
        """Simulate the run with this number."""
        ...


@dataclass(frozen=True, eq=False)
class Task:
    """A problem with its true parameter, a strategy, and how rewards are drawn."""

    problem: Problem
    theta: Float[np.ndarray, " d"]
    means: Float[np.ndarray, " K"]
    strategy: Strategy
    rewards: Kind | RewardFunction
    seed: int
    max_pulls: int
    shift: float = 0.0
    size: int | None = None
    #: Size of the noise that is drawn where the problem says that it is unknown.
    noise: float | None = None

    @on_one_thread(lambda self, _: self.problem.arms.features.size)
    def run(self, index: int) -> Outcome:
        """Simulate the run with this number until it decides, or reaches its budget or the cap."""
        begin = time.thread_time()
        for_rewards, for_strategy = np.random.SeedSequence(self.seed, spawn_key=(index,)).spawn(2)
        rewards = self.draw_with(np.random.default_rng(for_rewards))
        seed = int(for_strategy.generate_state(1, np.uint64)[0] >> np.uint64(1))
        run, budget = self.strategy.start(self.problem, seed=seed), self.problem.budget
        if budget is None:
            pulls, batches = finish(
                run, rewards, len(self.means), self._at_most(self.max_pulls), self.size
            )
            winners = run.verdict.winners
        else:
            winners, pulls, batches = spend(run, rewards, self.problem, budget, self.size)
        winner = winners[0] if winners else -1
        certain = run.verdict.decided and guaranteed(self.strategy)
        seconds = time.thread_time() - begin
        return Outcome(index, winner, self.is_correct(winners), pulls, batches, seconds, certain)

    def _at_most(self, pulls: int) -> int:
        """Return a limit on pulls, or what the arms can give if that is less."""
        capacity = self.problem.capacity
        return pulls if capacity is None else min(pulls, capacity)

    def draw_with(self, rng: np.random.Generator) -> DrawnRewards | FunctionRewards:
        """Return the source of rewards of a run."""
        if callable(self.rewards):
            return FunctionRewards(self.rewards, len(self.means), rng)
        sigma: float | np.ndarray = 0.5
        if self.rewards != "bernoulli":
            per_arm = isinstance(self.problem.noise.sigma, tuple)
            sigma = self.problem.sigmas if per_arm else self.noise or self.problem.sigma
        return DrawnRewards(self.means, sigma, self.rewards, rng, self.shift)

    @property
    def gaps(self) -> Float[np.ndarray, " K"] | None:
        """How much worse each arm is than the best candidate; None if several are asked for."""
        if self.problem.top > 1:
            return None
        means = self.problem.sign * self.means
        return np.asarray(means[self.problem.arms.candidate].max() - means)

    def is_correct(self, winners: Sequence[int]) -> bool:
        """Return whether these arms are the best, or as good as the goal asks for."""
        problem = self.problem
        return problem.goal.is_right(problem.sign * self.means, winners, problem.arms.candidate)


def finish(
    run: Run, rewards: DrawnRewards | FunctionRewards, K: int, most: int, size: int | None = None
) -> tuple[Int[np.ndarray, " K"], int]:
    """Pull until there is a winner, or until the next batch would exceed `most` further pulls.

    Returns
    -------
    (K,) array of int, int
        The further pulls of each arm, and in how many batches.
    """
    able = size is None and hasattr(run, "play")  # asking for all of a protocol takes long
    if able and isinstance(run, Playable) and isinstance(rewards, DrawnRewards):
        played = run.play(rewards, run.verdict.pulls + most)
        return played, int(played.sum())
    pulls, total, batches = np.zeros(K, dtype=np.int64), 0, 0
    while total < most and not run.verdict.decided:
        batch = run.next(block_size(run, size))
        if batch.size == 0:
            raise SimulationError(
                "the strategy returns an empty batch and has no winner; it must pull or decide."
            )
        total += batch.size
        if total > most:
            break
        run.record(batch, drawn(rewards, batch))
        pulls += needed(run, batch, size)
        batches += 1
    return pulls, batches


def drawn(rewards: DrawnRewards | FunctionRewards, batch: Batch) -> BatchResults:
    """Return the rewards of a batch, one by one if their order matters."""
    if batch.order is None:
        return rewards.batch(batch.counts)
    return rewards.sequence(batch.order)


def needed(run: Run, batch: Batch, size: int | None) -> Int[np.ndarray, " K"]:
    """Return the pulls of a batch that it took: a run may decide before the last.

    Whoever asks for a size measures so many at a time, and counts all of them.
    """
    if size is not None or batch.order is None or not run.verdict.decided:
        return batch.counts
    # Asking for all of a protocol takes long.
    looks = Looking in type(run).__mro__ or isinstance(run, Looking)
    used = cast(Looking, run).decided_at if looks else None
    if used is None:
        return batch.counts
    spare = run.verdict.pulls - used
    return np.bincount(batch.order[: batch.size - spare], minlength=len(batch.counts))


def spend(
    run: Run,
    rewards: DrawnRewards | FunctionRewards,
    problem: Problem,
    budget: float,
    size: int | None = None,
) -> tuple[tuple[int, ...], Int[np.ndarray, " K"], int]:
    """Pull until there is a winner or the budget is spent; the last batch is cut to what is left.

    The budget is a number of pulls, or of their cost (`problem.budget`). Without a winner, the
    survivor with the best estimate from all rewards is recommended.

    Returns
    -------
    tuple of int, (K,) array of int, int
        The recommendation, the pulls of each arm, and in how many batches.
    """
    pooled, batches, prices = Pooled(problem), 0, prices_of(problem)
    pulls = np.zeros(len(problem.arms), dtype=np.int64)
    room, left, least = problem.capacity or np.inf, budget, cheapest(problem)
    plays = size is None and isinstance(run, Playable) and not in_cost(problem)
    if plays and isinstance(run, Playable) and isinstance(rewards, DrawnRewards):
        pulls += run.play(rewards, int(min(budget, room)))
        batches = int(pulls.sum())
        pooled.add(run.pooled())
        left -= batches
    while not run.verdict.decided and left >= least and pooled.pulls < room:
        batch = affordable(run, block_size(run, size), left, prices)
        if batch is None:
            break
        if not 0 < batch.counts @ prices <= left * (1.0 + ROUNDING):
            raise SimulationError(
                f"the strategy returns a batch of {batch.size} with {of_budget(problem, left)} "
                "left, and has no winner; it must accept the size it is asked for."
            )
        left -= float(batch.counts @ prices)
        values = drawn(rewards, batch)
        run.record(batch, values)
        pooled.add(values)
        pulls += needed(run, batch, size)
        batches += 1
    winners = run.verdict.winners
    if not winners:
        winners = leaders(pooled.estimate(), problem.sign, run.verdict.survivors, problem.top)
    return winners, pulls, batches


def make_task(
    arms: Arms | Problem,
    theta: ArrayLike,
    strategy: Strategy | str,
    *,
    rewards: Kind | RewardFunction | None,
    seed: int,
    max_pulls: int,
    size: int | None = None,
    shift: float = 0.0,
    deviations: ArrayLike | None = None,
    noise_drawn: float | None = None,
    **settings: Any,
) -> Task:
    """Check everything a simulation needs; `settings` are those of `as_problem`.

    `noise_drawn` is the size of the noise of the rewards, where the problem does not know it.
    """
    problem = as_problem(arms, **settings)
    means = problem.means(theta) + _deviations(deviations, problem)
    parameter = np.asarray(theta, dtype=float)
    if isinstance(strategy, str):
        strategy = named(strategy, problem.arms, parameter)
    elif isinstance(strategy, type) or not isinstance(strategy, Strategy):
        raise ProblemError(
            f"strategy is {strategy!r}; give a name, or an object such as XYAdaptive(alpha=0.4)."
        )
    task = Task(
        problem,
        parameter,
        means,
        strategy,
        problem.noise.rewards if rewards is None else rewards,
        whole("seed", seed, 0),
        whole("max_pulls", max_pulls, 1),
        _checked_shift(shift),
        None if size is None else whole("size", size, 1),
        noise_drawn if problem.noise.sigma is None else None,
    )
    _refuse_unknown_noise(task)
    task.draw_with(np.random.default_rng(0))  # refuses unknown kinds of rewards
    return task


def _refuse_unknown_noise(task: Task) -> None:
    """Refuse an unknown sigma if the strategy needs it, or if rewards cannot be drawn without."""
    if task.problem.noise.sigma is not None:
        return
    task.strategy.start(task.problem)  # raises if it needs sigma
    if task.noise is None and not callable(task.rewards) and task.rewards != "bernoulli":
        raise SimulationError(
            f"sigma is None, unknown; {task.strategy.name!r} can do without, but {task.rewards} "
            "rewards cannot be drawn. Give sigma=, or rewards= as a function that draws them."
        )


def _deviations(given: ArrayLike | None, problem: Problem) -> Float[np.ndarray, " K"]:
    """Return how far the mean of each arm is from the model."""
    K = len(problem.arms)
    if given is None:
        return np.zeros(K)
    return per_arm("deviations", given, K, "how far its mean is from the linear model")


def _checked_shift(value: object) -> float:
    shift = checked_number(value, "shift")
    if not 0 <= shift < float("inf"):
        raise SimulationError(
            f"shift is {shift}; it is the standard deviation of the constant of each batch, 0 or "
            "more."
        )
    return shift


def whole(name: str, value: object, least: int) -> int:
    """Return the value as int; refuse anything but a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SimulationError(f"{name} is {value!r}; it is a whole number, {least} or more.")
    return int(value)
