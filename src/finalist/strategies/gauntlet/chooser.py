"""What is measured next, by rules 3: all that is fixed before a batch of the pilot or an epoch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from finalist.design.exchange import ordered
from finalist.inference.information import Information, information
from finalist.inference.least_squares import weighted_rows, weights_of
from finalist.strategies.gauntlet import endgame, sizes
from finalist.strategies.gauntlet.claims import Claims
from finalist.strategies.gauntlet.model_check import ModelCheck
from finalist.strategies.gauntlet.past import Past, has_portfolio
from finalist.strategies.gauntlet.pilot import (
    LONG,
    SHORT,
    Revealing,
    first_pulls,
    further_pulls,
    is_long,
    spans,
)
from finalist.strategies.gauntlet.planner import EXCHANGED, Planner
from finalist.strategies.gauntlet.reserve import Reserve

#: Dozens of pulls: so many times the rank.
DOZENS = 25.0
#: Looks come after this part of all pulls.
LOOK = 0.01
#: An epoch of more pulls is looked at when it is complete: it takes sums, not each result.
LONGEST = 10_000
#: Bets in all looks of an epoch, at most: with many arms looks are rarer.
MANY_BETS = 4000


class Planned(NamedTuple):
    """An epoch: its counts, what is noted of it, and M (`Planner.plan_epoch`).

    `told` is what it will tell, if that was computed as `Epoch.information` would.
    """

    counts: Int[np.ndarray, " K"]
    plan: dict[str, Any]
    M: Float[np.ndarray, "r r"]
    told: Information | None


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses by a past, which has no reward that is still to be tested.

    Attributes
    ----------
    claims : Claims
        What is to be told apart.
    looks : bool
        Whether there are looks inside epochs.
    model : ModelCheck or None
        Adds probes to epochs.
    """

    planner: Planner
    claims: Claims
    looks: bool
    model: ModelCheck | None = None

    def pilot(self, past: Past) -> tuple[int, Past, list[dict[str, Any]]]:
        """Return how many more pulls the pilot takes, the past as it is then, and what is shown."""
        if past.reserve is not None:
            revealing = Revealing(past, self.planner.seed)
            more = revealing.more(self.claims.wanted, self._limit())
            return endgame.pilot_within(past, more), revealing.past, revealing.steps
        r, done = past.arms.rank, past.pooled.pulls
        if done < SHORT * r or not spans(past):
            return max(SHORT * r - done, 1), past, []
        long = not has_portfolio(past.problem) and done < LONG * r
        if long and is_long(past, self.claims.wanted(past), self._limit()):
            return endgame.pilot_within(past, LONG * r - done), past, []
        return 0, past, []

    def pilot_order(self, past: Past, n: int) -> Int[np.ndarray, " n"]:
        """Return the next n pulls of a pilot, in random order."""
        if past.reserve is None or past.reserve.revealed == 0.0:
            counts = first_pulls(past, n)
        else:
            counts = further_pulls(past, self.claims.wanted(past), n)
        rng = np.random.default_rng([self.planner.seed, past.recorded, 2])
        return rng.permutation(np.repeat(np.arange(len(counts)), counts))

    def _limit(self) -> float:
        limit = self.claims.bets.limit
        low = float(limit.min())  # nearly always that of all arms, and a median takes long
        return low if low == limit.max() else float(np.median(limit))

    def plan(self, past: Past, size: int | None, reserve: Reserve | None) -> "Planned":
        """Return the next epoch.

        Parameters
        ----------
        size : int or None
            What is asked for at a time: an epoch is whole batches.
        reserve : Reserve or None
            What is tested with it.
        """
        problem, wanted = past.problem, self.claims.wanted(past)
        span, sized = past.arms.rank, wanted
        if has_portfolio(problem):  # what is out against the claimant needs no pulls
            sized = wanted.of_leader()
            span = min(span, len(sized.first) + 1)
        missing = sizes.missing(past, sized, self._limit())
        ending = self._ending(past, reserve)
        if ending is not None:
            n = endgame.epoch_size(past, size)
            probed = self._probes(past, n)
            counts, info, M = ending.epoch(n - probed)
        else:
            n = sizes.epoch_size(past, missing, self.planner.growth, self.looks, span)
            if reserve is None:
                n = max(n, span)
            probed = self._probes(past, n)
            n = sizes.in_batches(past, n + probed, size)
            if endgame.has_end(past):
                n = endgame.within_budget(past, n)
            probed = min(probed, n - 1)
            counts, info, M = self.planner.plan_epoch(past, wanted, n - probed, reserve)
        probes: list[int] = []
        if probed > 0:
            counts, info, probes = self._with_probes(past, counts, probed, reserve)
        quick = ending is None and probed == 0 and problem.misspecification == 0.0
        few = past.few if past.batches > 0 else missing <= DOZENS * past.arms.rank
        pulled = counts.nonzero()[0]
        plan: dict[str, Any] = {
            "attack": self.claims.attack(past, counts, info),
            "pulled": pulled.tolist(),
            "times": counts[pulled].tolist(),
            "every": self._every(past, int(counts.sum())),
            "few": bool(few),
        }
        if probes:
            plan["probed"] = probes
        return Planned(counts, plan, M, info if quick else None)

    def _ending(self, past: Past, reserve: Reserve | None) -> endgame.Ending | None:
        """Return a plan for the choice at the end of a budget, if that is what matters now."""
        if not endgame.has_end(past):
            return None
        ending = endgame.Ending.of(past, self.claims.verdict(0).survivors, reserve)
        return None if ending.error < past.problem.delta else ending

    def _probes(self, past: Past, pulls: int) -> int:
        """Return how many probes are due in an epoch of so many pulls."""
        return 0 if self.model is None else min(self.model.due(past.pulls + pulls), pulls - 1)

    def _with_probes(
        self,
        past: Past,
        counts: Int[np.ndarray, " K"],
        probed: int,
        reserve: Reserve | None,
    ) -> tuple[Int[np.ndarray, " K"], Information, list[int]]:
        """Return an epoch with probes, what it can estimate, and which arms are probed."""
        assert self.model is not None
        survivors = np.array(self.claims.verdict(0).survivors)
        leader = int(survivors[np.argmax(past.means(past.estimate())[survivors])])
        probes = self.model.choose(past, counts, leader, probed)
        counts = counts + probes
        weights = weights_of(counts, past.problem.precisions)
        if reserve is not None:
            weights = weights + weights_of(reserve.worth, past.problem.precisions)
        chosen = np.repeat(np.arange(len(probes)), probes)
        return counts, information(past.Z, weights), chosen.tolist()

    def _every(self, past: Past, n: int) -> int:
        """Return after how many results a look is due; 0 for none but at the end."""
        if not self.looks or n > LONGEST:
            return 0
        bets = np.count_nonzero(~self.claims.bets.rejected)
        rare = math.ceil(n * bets / MANY_BETS)
        return max(1, math.ceil(LOOK * past.pooled.pulls), rare)

    def ordered(
        self,
        past: Past,
        counts: Int[np.ndarray, " K"],
        M: Float[np.ndarray, "r r"],
        reserve: Reserve | None,
        probes: Sequence[int] = (),
    ) -> Int[np.ndarray, " n"]:
        """Return the pulls of an epoch in an order in which first parts tell most.

        Probes come at even distances.
        """
        if probes:
            probed = np.bincount(probes, minlength=len(counts))
            order = self.ordered(past, counts - probed, M, reserve)
            distance = len(order) / len(probes)
            places = np.floor(distance * (np.arange(len(probes)) + 0.5)).astype(np.int64)
            return np.insert(order, places, probes)
        p, Z = past.problem.precisions, past.Z
        W = weighted_rows(Z, p)
        start = None if reserve is None else (W * reserve.worth[:, None]).T @ W
        if counts.sum() > EXCHANGED * past.arms.rank:
            return interleaved(counts)
        return ordered(W, counts, M, start)


def is_plan(plan: Mapping[str, Any], K: int) -> bool:
    """Return whether the plan of an epoch in a note can be one of K arms."""
    lists = all(isinstance(plan.get(name), list) for name in ("pulled", "times", "later"))
    if not lists or not isinstance(plan.get("attack"), dict):
        return False
    numbers = [*plan["pulled"], *plan["later"]]
    whole = set(map(type, numbers)) <= {int} and min(numbers, default=0) >= 0
    whole = whole and max(numbers, default=0) < K
    times = set(map(type, plan["times"])) <= {int} and min(plan["times"], default=1) > 0
    looks = isinstance(plan.get("every"), int) and isinstance(plan.get("few"), bool)
    return whole and times and looks and len(plan["pulled"]) == len(plan["times"])


def counts_of(plan: Mapping[str, Any], K: int) -> Int[np.ndarray, " K"]:
    """Return how often an epoch pulls each of K arms, by its plan in a note."""
    counts: Int[np.ndarray, " K"] = np.zeros(K, dtype=np.int64)
    counts[plan["pulled"]] = plan["times"]
    return counts


def interleaved(counts: Int[np.ndarray, " K"]) -> Int[np.ndarray, " n"]:
    """Return pulls in an order in which each arm comes at even distances.

    Examples
    --------
    >>> interleaved(np.array([4, 2]))
    array([0, 1, 0, 0, 1, 0])
    """
    arms = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    place = (np.arange(len(arms)) - first[arms] + 0.5) / counts[arms]
    return np.asarray(arms[np.argsort(place, kind="stable")])
