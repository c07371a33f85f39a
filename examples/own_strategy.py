"""A strategy of your own: elimination in rounds, in about thirty lines.

    python examples/own_strategy.py

Round k makes twice the pulls of round k - 1, shared as the G-optimal design wants. At its end the
arms are estimated from the pulls of this round alone, and those too far behind the leader go.

Why it keeps delta. The pulls of a round are fixed before it begins. So (x - a)'theta_hat is wrong
by more than far = sigma sqrt(2 log(K (K - 1) / delta_k) (x - a)'A^-1 (x - a)), for any of the
K (K - 1) pairs, with probability at most delta_k = delta / (k (k + 1)), which sums to delta. If
this never happens, the best arm never goes, and a leader is at most far - gap behind it.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import finalist as fl
from finalist.inference.least_squares import estimate
from finalist.inference.statistics import Statistics
from finalist.strategies import Batch, Verdict
from finalist.strategies.protocol import SUPPORTED, check_record, check_size, refuse_decided
from finalist.testing import check_strategy


@fl.register  # from now on it is known by its name, in this process
@dataclass(frozen=True)
class Doubling:
    """The settings. `start` makes a run for one problem."""

    name: ClassVar[str] = "doubling"
    first: int = 4  # pulls of the first round, times the rank of the arms

    def start(self, problem: fl.Problem, seed: int = 0) -> "DoublingRun":  # noqa: ARG002
        """Begin; nothing here is random. What the strategy cannot do is refused by name."""
        problem.refuse_unsupported(self.name, SUPPORTED)
        return DoublingRun(self.first, problem)


class DoublingRun:
    """One run: `next` decides and changes nothing, `record` takes rewards and draws conclusions."""

    def __init__(self, first: int, problem: fl.Problem) -> None:
        self._first, self._problem, self._K = first, problem, len(problem.arms)
        self._alive, self._winner = np.ones(self._K, dtype=bool), 0 if self._K == 1 else None
        self._pulls, self._round, self._seen = 0, 1, Statistics.empty(self._K)

    @property
    def verdict(self) -> Verdict:
        """What is certain now."""
        return Verdict(self._winner, tuple(np.flatnonzero(self._alive).tolist()), self._pulls)

    def next(self, size: int | None = None) -> Batch:
        """Return what is left of the round, or `size` pulls of it; the plan goes into the note."""
        check_size(size)
        refuse_decided(self.verdict)
        design = fl.optimal_design(self._problem.arms, "g", tol=0.01)
        pulls = self._first * self._problem.arms.rank * 2 ** (self._round - 1)
        plan = fl.round_design(design, pulls)
        left = np.repeat(np.arange(self._K), plan - self._seen.count)
        return Batch(np.bincount(left[:size], minlength=self._K), {"plan": plan.tolist()})

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Take over the rewards of a batch; at the end of a round, eliminate."""
        check_record(self.verdict, self._K, batch, rewards)
        self._seen.merge(rewards)
        self._pulls += batch.size
        if np.any(self._seen.count < batch.note["plan"]):  # from the note: no design is solved
            return
        fit, x = estimate(self._problem.arms, self._seen), self._problem.arms.coordinates
        means = np.nan_to_num(self._problem.sign * fit.means(), nan=-np.inf)
        leader = int(np.where(self._alive, means, -np.inf).argmax())
        gap = self._problem.sign * fit.gaps(x[leader] - x)
        delta = self._problem.delta / (self._round * (self._round + 1))
        pairs = self._K * (self._K - 1)
        far = self._problem.sigma * np.sqrt(2 * np.log(pairs / delta)) * fit.widths(x[leader] - x)
        if (far - gap <= self._problem.epsilon)[self._alive].all():
            self._winner = leader
        self._alive &= ~(gap > far)
        self._round, self._seen = self._round + 1, Statistics.empty(self._K)


if __name__ == "__main__":
    print(check_strategy(Doubling), end="\n\n")
    arms = fl.Arms(np.random.default_rng(0).standard_normal((10, 3)))
    for strategy in ("doubling", Doubling(first=20), "xy-adaptive", "gauntlet"):
        print(fl.simulate(arms, [1.0, 0.5, -0.2], strategy, sigma=1.0, runs=100, seed=1).summary())
        print()
