"""What the rules are built from: a strategy for some arms, and its runs with drawn rewards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms import Arms
from finalist.errors import FinalistError, NotYetSupportedError, ProblemError
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.shapes import Float
from finalist.simulation.rewards import DrawnRewards, Kind
from finalist.strategies import Batch, Playable, Run, Strategy, about, named

#: A way to make the strategy for arms and their true parameter.
Make = Callable[[Arms, Float[np.ndarray, " d"]], Strategy]
Log = list[tuple[Batch, Statistics]]
#: A parameter for three features.
THETA = np.array([1.0, 0.5, -1.0])
#: Runs of a rule end long before this; a strategy that needs more cannot decide.
MAX_PULLS, MAX_BATCHES = 10**8, 100_000


class NotApplicable(Exception):  # noqa: N818
    """Raised by a rule that does not apply to a strategy; the message is the reason."""


def maker(given: Any) -> Make:
    """Return a function that makes the strategy.

    Parameters
    ----------
    given : class, strategy, str or function
        A class with defaults or with `knowing(arms, theta)`; an object with its settings; the name
        of a registered class; or a function of arms and theta.

    Examples
    --------
    >>> import finalist as fl
    >>> maker(fl.LinGapE)(fl.Arms.unstructured(3), np.ones(3)).theta_norm
    1.0
    """

    def make(arms: Arms, theta: Float[np.ndarray, " d"]) -> Strategy:
        strategy = _made(given, arms, np.asarray(theta, dtype=float))
        suits = about(strategy).suits
        if suits is not None and not suits(arms):
            raise NotApplicable("it is not for such arms")
        return strategy

    return make


def _made(given: Any, arms: Arms, theta: Float[np.ndarray, " d"]) -> Strategy:
    if isinstance(given, str):
        return named(given, arms, theta)
    if isinstance(given, type):
        knowing = about(given).knowing
        return cast(Strategy, given()) if knowing is None else knowing(arms, theta)
    if hasattr(given, "start"):
        return cast(Strategy, given)
    if callable(given):
        return cast(Strategy, given(arms, theta))
    raise ProblemError(
        f"{given!r} does not make a strategy; give a class, a configured object, a name, or a "
        "function of arms and theta."
    )


def ensure(fine: object, words: str) -> None:
    """Raise AssertionError unless a condition holds, even if Python runs without assert."""
    if not fine:
        raise AssertionError(words)


def ensure_refused(call: Callable[[], object], what: str) -> None:
    """Raise AssertionError unless a call is refused with an error of finalist."""
    try:
        call()
    except FinalistError:
        return
    except Exception as error:
        raise AssertionError(
            f"{what} raises {type(error).__name__}; raise an error of finalist.errors"
        ) from error
    raise AssertionError(f"{what} is not refused")


@contextmanager
def where_supported() -> Iterator[None]:
    """Skip a rule if the strategy does not support its problem."""
    try:
        yield
    except NotYetSupportedError as error:
        raise NotApplicable(f"it refuses such problems ({error})") from error


def rewards_of(
    problem: Problem, theta: ArrayLike, seed: int, kind: Kind = "gaussian"
) -> DrawnRewards:
    """Return the source of rewards of a run."""
    means = problem.means(np.asarray(theta, dtype=float))
    return DrawnRewards(means, problem.sigma, kind, np.random.default_rng(seed))


def step(
    strategy: Strategy,
    problem: Problem,
    theta: ArrayLike,
    seed: int,
    cap: int = MAX_PULLS,
    size: int | None = None,
    kind: Kind = "gaussian",
    least: int = 1,
    own_seed: int = 1,
) -> tuple[Run, Log]:
    """Run batch by batch to the end, or to `cap` pulls; return the run and its log.

    `seed` is for the rewards, `own_seed` for the strategy. A batch smaller than `least` is replaced
    by one of that size.
    """
    rewards, run = rewards_of(problem, theta, seed, kind), strategy.start(problem, seed=own_seed)
    log: Log = []
    while not run.verdict.decided and run.verdict.pulls < cap:
        batch = run.next(size)
        if batch.size < least:
            batch = run.next(least)
        ensure(batch.size, "next returns an empty batch although there is no winner")
        log.append((batch, rewards.batch(batch.counts)))
        run.record(*log[-1])
        ensure(len(log) < MAX_BATCHES, f"there is no winner after {MAX_BATCHES:,} batches")
    return run, log


def play(
    strategy: Strategy,
    problem: Problem,
    theta: ArrayLike,
    seed: int,
    cap: int = MAX_PULLS,
    least: int = 1,
    own_seed: int = 1,
) -> Run:
    """Run to the end as a simulation does: with its compiled loop, or as `step` does."""
    run = strategy.start(problem, seed=own_seed)
    if isinstance(run, Playable):
        run.play(rewards_of(problem, theta, seed), cap)
        return run
    return step(strategy, problem, theta, seed, cap, least=least, own_seed=own_seed)[0]


def ensure_out_stays_out(strategy: Strategy, problem: Problem, theta: ArrayLike) -> None:
    """Raise AssertionError unless survivors only become fewer and the winner is one of them."""
    run, rewards = strategy.start(problem, seed=1), rewards_of(problem, theta, 0)
    left = set(range(len(problem.arms)))
    while not run.verdict.decided:
        ensure(set(run.verdict.survivors) <= left, f"arms come back: {run.verdict}")
        left = set(run.verdict.survivors)
        batch = run.next(9)
        run.record(batch, rewards.batch(batch.counts))
    ensure(run.verdict.winner in left, f"an arm wins that was out: {run.verdict}")
