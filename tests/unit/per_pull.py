"""What the tests of strategies that look after every pull share.

A twin is a strategy written down once more, slowly: `choose` returns its next pull, `record` takes
the reward of a pull, and `picks`, `rewards` and `winner` say how far it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import finalist as fl
from finalist.inference.statistics import Statistics
from finalist.problem import Problem, as_problem
from finalist.simulation.rewards import DrawnRewards
from finalist.strategies.per_pull import base as per_pull
from finalist.strategies.protocol import Batch
from tests import instances

Log = list[tuple[Batch, Statistics]]
#: A problem with its true parameter.
Case = tuple[Problem, np.ndarray]
#: What `start` of a test module returns: run, strategy, problem and true means.
Started = tuple[Any, Any, Problem, np.ndarray]

FOUR = fl.Arms([[1.0, 0.0], [0.8, 0.3], [0.1, 0.9], [0.5, 0.5]])
PAPER = instances.paper(3, 0.3)


# ---- cases -------------------------------------------------------------------------------


def case(features, theta, **settings) -> Case:
    return as_problem(fl.Arms(features), **settings), np.asarray(theta, dtype=float)


#: For strategies that have to know the norm of the parameter.
CASES = {
    "gaussian": case(instances.gaussian(8, 3, 0), [1.0, -0.5, 0.2], sigma=0.3),
    "paper": case(PAPER.features, PAPER.theta, sigma=0.2),
    "unstructured": case(np.eye(4), [0.6, 0.0, 0.2, -0.3], sigma=0.3),
    "one feature": case([[1.0], [0.5], [-2.0]], [1.0], sigma=8.0),
    "minimising": case(instances.gaussian(6, 2, 3), [0.4, 1.0], sigma=0.3, objective="min"),
    "epsilon": case(np.eye(3), [1.0, 0.95, 0.0], sigma=0.3, epsilon=0.3),
}


def begin_knowing(cls: Any, cases: Mapping[str, Case], name: str, **settings) -> Started:
    """Start a strategy that is told the norm of the true parameter."""
    problem, theta = cases[name]
    strategy = replace(cls.knowing(problem.arms, theta), **settings)
    return strategy.start(problem), strategy, problem, problem.arms.means(theta)


def begin(cls: Any, cases: Mapping[str, Any], name: str, **changes) -> Started:
    """Start a strategy with the settings of a case: features, theta, problem, settings."""
    features, theta, words, settings = cases[name]
    problem = as_problem(fl.Arms(np.asarray(features)), **{"sigma": 1.0, **words})
    strategy = replace(cls(**settings), **changes)
    return strategy.start(problem), strategy, problem, problem.arms.means(np.asarray(theta))


def noise_of(kind: str) -> dict[str, Any]:
    """Return the words of a problem with rewards of that kind, of size 0.4."""
    return {"noise": "bernoulli"} if kind == "bernoulli" else {"sigma": 0.4}


# ---- runs --------------------------------------------------------------------------------


def drawn(means, seed: int, sigma: float = 1.0, kind: Any = "gaussian") -> DrawnRewards:
    return DrawnRewards(means, sigma, kind, np.random.default_rng(seed))


def step(run, rewards, size: int | None = None) -> tuple[Batch, Statistics]:
    batch = run.next(size)
    got = rewards.batch(batch.counts)
    run.record(batch, got)
    return batch, got


def to_the_end(run, rewards, most: int, size: int | None = None) -> Log:
    """Go on until there is a winner or `most` pulls are made; return the log."""
    log = []
    while not run.verdict.decided and run.verdict.pulls < most:
        log.append(step(run, rewards, size))
    return log


def replayed(strategy, problem: Problem, log: Log):
    """Return a run that is told what another one was."""
    run = strategy.start(problem)
    for batch, got in log:
        run.record(batch, got)
    return run


def state_bits(names: Sequence[str], run) -> list[bytes]:
    """Return parts of the state, to the last bit."""
    return [getattr(run._state, name).tobytes() for name in names]


def wrong_winners(strategy, problem: Problem, means, runs: int) -> int:
    """Return how many of the runs end with another arm than the first, which is the best."""
    wrong = 0
    for seed in range(runs):
        run = strategy.start(problem)
        run.play(drawn(means, seed), 10**8)
        wrong += run.verdict.winner != 0
    return wrong


def told_both_ways(strategy, problem: Problem, arms) -> tuple[Any, Any]:
    """Return two runs with pulls that nobody asked for: one by one, and in one batch."""
    one_by_one, together, K = strategy.start(problem), strategy.start(problem), len(problem.arms)
    rewards = np.random.default_rng(0).standard_normal(len(arms))
    for arm, reward in zip(arms, rewards, strict=True):
        one = Statistics.empty(K)
        one.add(arm, reward)
        one_by_one.record(Batch(one.count.copy()), one)
    whole = Statistics.empty(K)
    whole.add_many(arms, rewards)
    together.record(Batch(whole.count.copy()), whole)
    np.testing.assert_array_equal(one_by_one.counts, together.counts)
    return one_by_one, together


def losing(run, rewards) -> Iterator[None]:
    """Lose the first batches of four and half of all later pulls, until there is a winner."""
    rng = np.random.default_rng(7)
    for number in range(2000):
        batch = run.next(4)
        kept = np.zeros_like(batch.counts) if number < 3 else rng.binomial(batch.counts, 0.5)
        run.record(Batch(kept, batch.note), rewards.batch(kept))
        yield
        if run.verdict.decided:
            break


# ---- checks ------------------------------------------------------------------------------


def alongside(run, twin, rewards, most: int) -> Iterator[None]:
    """Pull one by one with a twin that has the same rewards: both choose, and end, alike."""
    while not run.verdict.decided and len(twin.picks) < most:
        assert twin.winner is None
        batch, got = step(run, rewards)
        arm = int(batch.counts.argmax())
        assert arm == twin.choose()
        twin.record(arm, float(got.mean[arm]))
        assert run.verdict.winner == twin.winner
        yield


def check_batches(run, twin, rewards, size: int, bits: Callable[[Any], list[bytes]]) -> None:
    """A batch is what a twin pulls without new rewards, and asking for it changes nothing.

    `judge` of the twin looks whether there is a winner.
    """
    for _ in range(40):
        before = bits(run)
        batch = run.next(size)
        np.testing.assert_array_equal(run.next(size).counts, batch.counts)
        assert bits(run) == before
        for _ in range(size):
            twin.picks.append(twin.choose())
        chosen = np.bincount(twin.picks[-size:], minlength=len(batch.counts))
        np.testing.assert_array_equal(batch.counts, chosen)
        got = rewards.batch(batch.counts)
        run.record(batch, got)
        twin.rewards += [float(got.mean[arm]) for arm in twin.picks[-size:]]
        twin.judge()
        assert run.verdict.winner == twin.winner
        if run.verdict.decided:
            break


def check_playing(strategy, arms: fl.Arms, means, kind: str, bits, monkeypatch) -> None:
    """`play` is `next` and `record`, across chunks of noise and exact computations."""
    monkeypatch.setattr(per_pull, "REFRESH", 50)
    monkeypatch.setattr(per_pull, "CHUNK", 64)
    problem = as_problem(arms, **noise_of(kind))
    by_hand, played = strategy.start(problem), strategy.start(problem)
    to_the_end(by_hand, drawn(means, 3, 0.4, kind), 10_000)
    pulls = played.play(drawn(means, 3, 0.4, kind), 10_000)
    assert played.verdict == by_hand.verdict
    assert played.verdict.decided
    assert played.verdict.pulls > 2 * per_pull.CHUNK
    np.testing.assert_array_equal(pulls, by_hand.counts)
    assert bits(played) == bits(by_hand)


def check_pieces(strategy, problem: Problem, means, limits: Sequence[int], bits) -> None:
    """`play` stops at each limit and goes on as if it had not."""
    at_once, pieces = strategy.start(problem), strategy.start(problem)
    at_once.play(drawn(means, 0), limits[-1])
    rewards, pulls = drawn(means, 0), np.zeros(len(means), dtype=int)
    for limit in limits:
        pulls += pieces.play(rewards, limit)
        assert pieces.verdict.pulls == limit == pulls.sum()
    assert bits(at_once) == bits(pieces)
    np.testing.assert_array_equal(pulls, at_once.counts)


def check_good_enough(run, problem: Problem, means) -> None:
    """The winner is as good as the problem asks for."""
    worth = problem.sign * means
    assert worth.max() - worth[run.verdict.winner] <= problem.epsilon
