"""The gauntlet by rules 3 in plain Python: what it should have made of notes and rewards."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from finalist.problem import Problem
from finalist.strategies.gauntlet.bets import ODDS, ODDS_OF_FEW, Odds


def mixture(z: float, drifts: Any, log_weights: Any) -> float:
    """Return log sum_i w_i exp(l_i z - l_i^2 / 2) with the weights normalised."""
    all_ = log_weights + drifts * z - drifts**2 / 2
    return float(np.logaddexp.reduce(all_) - np.logaddexp.reduce(log_weights))


def cap_of(room: float, drifts: Any, log_weights: Any) -> float:
    """Return where the capped factor costs 1; infinity beyond 9."""
    log_w = log_weights - np.logaddexp.reduce(log_weights)

    def price(z: float) -> float:
        first = np.logaddexp.reduce(log_w + log_ndtr(z - drifts)) - mixture(z, drifts, log_w)
        return room + float(np.logaddexp(first, log_ndtr(-z)))

    # Without a chance to reach the limit at 9 nothing can be saved for it.
    if mixture(9.0, drifts, log_w) < room or price(9.0) > 0.0:
        return math.inf
    return float(brentq(price, -9.0, 9.0, xtol=1e-13))


class SlowBet:
    """A bet against one arm: shares of two bettors, looks, epochs."""

    def __init__(self, delta: float, untilted: float, scale: float | None = None) -> None:
        self.limit, self.log_m, self.scale = -math.log(delta), 0.0, scale
        self.wealth = [math.log(1.0 - untilted), math.log(untilted) if untilted else -math.inf]
        self.path = (0.0, 0.0)

    @property
    def rejected(self) -> bool:
        return self.log_m >= self.limit

    def look(
        self, S: float, V: float, before: tuple[float, float], odds: Odds, capped: bool = True
    ) -> None:
        """Bet on one look, by 0.7 of what was before the epoch and by the path so far."""
        if self.path[1] * (1.0 + 1e-9) >= V or self.rejected:
            return
        assert self.scale is not None
        more, rates = V - self.path[1], odds.grid / math.sqrt(self.scale)
        z, drifts = (S - self.path[0]) / math.sqrt(more), rates * math.sqrt(more)
        known = [0.7 * a + b for a, b in zip(before, self.path, strict=True)]
        tilted = odds.prior + rates * known[0] - rates**2 * known[1] / 2
        tilted -= np.logaddexp.reduce(tilted)
        both = np.logaddexp(tilted + self.wealth[0], odds.prior + self.wealth[1])
        cap = cap_of(self.limit - self.log_m, drifts, both) if capped else math.inf
        if z >= cap:
            self.log_m = self.limit
        elif cap < math.inf:
            self.log_m = self.limit + mixture(z, drifts, both) - mixture(cap, drifts, both)
        else:
            self.log_m = min(self.limit, self.log_m + mixture(z, drifts, both))
        self.wealth[0] += mixture(z, drifts, tilted)
        self.wealth[1] += mixture(z, drifts, odds.prior)
        self.path = (S, V)


class SlowRun:
    """All evidence from notes and rewards alone; choices are taken from the notes."""

    def __init__(self, problem: Problem) -> None:
        self.problem, K = problem, len(problem.arms)
        self.X, self.sigma = problem.arms.features, np.array(problem.sigmas)
        self.bets = [SlowBet(problem.delta, problem.rules.untilted) for _ in range(K)]
        self.known: list[tuple[int, float]] = []  # results of the pilot and of epochs that ended
        self.split = problem.noise.normal
        self.kept, self.kept_sum = np.zeros((2, K))
        self.shown, self.shown_sum = np.zeros((2, K))
        self.epoch: dict[str, Any] | None = None
        self.pulls = 0
        self.decided_at: int | None = None

    def record(self, note: Mapping[str, Any], order: Any, values: Any) -> None:
        """Take the results of a batch, in their order."""
        pulls = list(zip(order.tolist(), values.tolist(), strict=True))
        for step in note.get("revealed", []):
            self.reveal(step["pulls"], step["noise"])
        if note["kind"] == "pilot":
            self.known += pulls
            self.pulls += len(pulls)
            for arm, value in pulls:
                self.kept[arm] += 1.0
                self.kept_sum[arm] += value
            return
        for pull in pulls[: note["rest"]]:
            self.take(pull)
        if "epoch" in note:
            self.begin(note["epoch"])
            for pull in pulls[note["rest"] :]:
                self.take(pull)

    def reveal(self, pulls: float, noise: Any) -> None:
        """Split what is kept back of each arm."""
        share, noises = pulls / self.kept.sum(), iter(noise)
        for i in np.flatnonzero(self.kept):
            own = self.sigma[i] * math.sqrt(share * (1.0 - share) * self.kept[i]) * next(noises)
            part = share * self.kept_sum[i] + own
            self.shown_sum[i] += part
            self.kept_sum[i] -= part
            self.shown[i] += share * self.kept[i]
            self.kept[i] *= 1.0 - share

    def fit(self, worth: Any, total: Any) -> tuple[Any, Any]:
        """Return A and theta of least squares in which sums of rewards are worth some pulls."""
        w = worth / self.sigma**2
        A = (self.X * w[:, None]).T @ self.X
        return A, np.linalg.lstsq(A, self.X.T @ (total / self.sigma**2), rcond=None)[0]

    def sums(self, pulls: Any) -> tuple[Any, Any]:
        """Return how often each arm is among some pulls, and the sum of its rewards."""
        arms = np.array([arm for arm, _ in pulls], dtype=int)
        K = len(self.X)
        return np.bincount(arms, minlength=K) + 0.0, np.bincount(
            arms, [value for _, value in pulls], minlength=K
        )

    def paths(self, A: Any, theta: Any) -> list[tuple[float, float]]:
        """Return (S, V) of each arm against its rival; zeros where it cannot be told."""
        assert self.epoch is not None
        found, inverse = [], np.linalg.pinv(A, hermitian=True)
        for arm, rival in enumerate(self.epoch["rivals"]):
            y, V = self.X[rival] - self.X[arm], 0.0
            if rival >= 0 and np.allclose(A @ (inverse @ y), y, atol=1e-9):
                V = 1.0 / float(y @ inverse @ y)
            found.append((self.problem.sign * V * float(y @ theta), V))
        return found

    def begin(self, plan: Any) -> None:
        """Begin an epoch: all but its rewards is known."""
        rank, first = self.X.shape[1], self.split and self.epoch is None and self.kept.any()
        planned = np.zeros(len(self.X))
        planned[plan["pulled"]] = plan["times"]
        self.epoch = {
            "rivals": plan["attack"]["rivals"],
            "every": plan["every"],
            "odds": ODDS_OF_FEW if plan["few"] else ODDS,
            "reserve": (self.kept, self.kept_sum) if first else np.zeros((2, len(self.X))),
            "results": [],
            "size": planned.sum(),
        }
        past = (self.shown, self.shown_sum) if first else self.sums(self.known)
        whole = self.epoch["reserve"][0] + planned
        self.epoch["before"] = self.paths(*self.fit(*past))
        A = self.fit(whole, whole)[0]
        self.epoch["rank"] = np.linalg.matrix_rank(A)
        for bet, (_, V) in zip(self.bets, self.paths(A, np.zeros(rank)), strict=True):
            own = 3.0 * rank / whole.sum() * V
            if V > 0.0 and (bet.scale is None or not own / 30.0 <= bet.scale <= own * 30.0):
                bet.scale = own
        if first:
            self.look()

    def take(self, pull: tuple[int, float]) -> None:
        """Take one result of the open epoch, look if that is due, and end it with its last."""
        assert self.epoch is not None
        if self.decided_at is not None:
            return
        self.pulls += 1
        results, every = self.epoch["results"], self.epoch["every"]
        results.append(pull)
        end = len(results) == self.epoch["size"]
        if end or (every > 0 and len(results) % every == 0):
            self.look()
        if end:
            self.known += results
            self.kept = np.zeros(len(self.X))
            for bet in self.bets:
                bet.path = (0.0, 0.0)

    def look(self) -> None:
        """Bet on what the epoch says so far, if it can say anything."""
        assert self.epoch is not None
        count, total = self.sums(self.epoch["results"])
        worth, sums = self.epoch["reserve"]
        A, theta = self.fit(count + worth, total + sums)
        if np.linalg.matrix_rank(A) < self.epoch["rank"]:
            return
        for arm, (S, V) in enumerate(self.paths(A, theta)):
            before, odds = self.epoch["before"][arm], self.epoch["odds"]
            self.bets[arm].look(S, V, before, odds, self.problem.noise.normal)
        if sum(not bet.rejected for bet in self.bets) <= 1:
            self.decided_at = self.pulls
