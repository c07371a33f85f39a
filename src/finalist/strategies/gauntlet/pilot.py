"""The pilot by rules 3: a few pulls that say where to measure, and whose rest is tested.

Where the pilot can be split (`reserve`) it begins with as many pulls as the rank. Parts of them are
revealed, step by step, until the leader leads every arm, or enough is revealed; more pulls are made
where the reserve would become too small. If what is revealed says that the race will be long, good
rivals are worth more than a few tested pulls: then the pilot is four times the rank, and spent: all
of it is revealed. Where it cannot be split it is twice the rank, and twice that if the race looks
long. With a margin (`portfolio`) the shortest pilot does. Nothing here sees what is kept back.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.arms import Arms
from finalist.design.exchange import exchange, greedy_pulls
from finalist.design.linalg import spanning_arms
from finalist.design.rounding import MAX_PULLS
from finalist.inference.least_squares import weighted_rows, weights_of
from finalist.inference.quick import quick_information
from finalist.strategies.gauntlet.past import Past, has_portfolio
from finalist.strategies.gauntlet.sizes import missing
from finalist.strategies.gauntlet.targets import Comparisons

#: What is revealed of the first pulls, and the most of all pulls that ever is before the test.
FIRST_SHOWN, MOST_SHOWN = 0.4, 0.5
#: Steps of revealing, and of further pulls, times the rank.
SMALL_STEP, LARGE_STEP, MORE_PULLS = 0.1, 0.2, 0.34
#: Further pulls are at least this part of those before.
GROWTH = 0.25
#: The leader leads enough, in standard errors, until as much as the rank is revealed, and then in
#: standard errors of that many pulls; and the most that is revealed, times the rank.
LEAD, ENOUGH = 0.7, 4.0
#: Pulls of a pilot without a split, and of one before a long race, times the rank; and the missing
#: pulls, times the rank, beyond which a race is long.
SHORT, LONG, FEW = 2, 4, 40.0
#: Of more arms than this only a spanning set and an even choice of others are looked at first.
MANY = 1000


def first_pulls(past: Past, pulls: int) -> Int[np.ndarray, " K"]:
    """Return pulls that tell most about all arms: a small tr(X'X A^-1) (exchange)."""
    problem, done = past.problem, past.pooled.statistics.count
    if problem.max_pulls_per_arm is None and not done.any():
        p = problem.precisions
        return _very_first(past.arms, None if p is None else tuple(p.tolist()), pulls)
    return _telling(past.Z, problem.precisions, done, past.room(), pulls)


@lru_cache(maxsize=16)
def _very_first(
    arms: Arms, precisions: tuple[float, ...] | None, pulls: int
) -> Int[np.ndarray, " K"]:
    """Return those that all runs with these arms begin with."""
    room, none = np.where(arms.measurable, MAX_PULLS, 0), np.zeros(len(arms), dtype=np.int64)
    p = None if precisions is None else np.array(precisions)
    counts = _telling(arms.coordinates, p, none, room, pulls)
    counts.flags.writeable = False
    return counts


def _telling(
    Z: Float[np.ndarray, "K r"],
    p: Float[np.ndarray, " K"] | None,
    done: Int[np.ndarray, " K"],
    room: Int[np.ndarray, " K"],
    pulls: int,
) -> Int[np.ndarray, " K"]:
    W = weighted_rows(Z, p)
    usable = np.flatnonzero(room > 0)
    span = usable[spanning_arms(Z[usable])]
    if len(usable) > MANY:
        even = usable[:: math.ceil(len(usable) / MANY)]
        usable = np.union1d(even, span)
    M = Z.T @ Z / len(Z)
    start = (W * done[:, None]).T @ W
    counts = np.zeros(len(Z), dtype=np.int64)
    narrow = quick_information(Z, done.astype(float)).rank < Z.shape[1]
    if not done.any():
        counts[span[:pulls]] = 1
    some = max(pulls - int(counts.sum()), 0)
    more = greedy_pulls(
        W[usable], some, M, start + (W * counts[:, None]).T @ W, (room - counts)[usable]
    )
    counts += np.bincount(usable[more], minlength=len(Z))
    found = counts.copy()
    found[usable] = exchange(W[usable], counts[usable], M, start, room[usable])
    if (
        narrow
        and quick_information(Z, (done + found).astype(float)).rank
        < quick_information(Z, (done + counts).astype(float)).rank
    ):
        return counts
    return found


def further_pulls(past: Past, wanted: Comparisons, pulls: int) -> Int[np.ndarray, " K"]:
    """Return pulls for the comparisons that are closest by what is revealed."""
    fit, room, Z = past.estimate(), past.room(), past.Z
    p = past.problem.precisions
    W = weighted_rows(Z, p)
    Y = Z[wanted.first] - Z[wanted.second]
    errors = past.scale(fit) * np.sqrt(fit.information.variances(Y))
    gaps = np.maximum(past.problem.sign * (Y @ fit.phi), 0.5 * errors)
    Y = Y * (gaps.min() / gaps)[:, None] ** 2
    A = (W * past.pooled.statistics.count[:, None]).T @ W
    picks = greedy_pulls(W, pulls, Y.T @ Y, A, room)
    return np.bincount(picks, minlength=len(Z))


def leads(past: Past, wanted: Comparisons) -> bool:
    """Return whether the leader leads every other arm by enough."""
    fit = past.estimate()
    Y = past.Z[wanted.first] - past.Z[wanted.second]
    errors = past.scale(fit) * np.sqrt(fit.information.variances(Y))
    assert past.reserve is not None
    lead = LEAD * max(1.0, math.sqrt(past.reserve.revealed / past.arms.rank))
    return bool(np.all(past.problem.sign * (Y @ fit.phi) >= lead * errors))


def is_long(past: Past, wanted: Comparisons, limit: float) -> bool:
    """Return whether the race will be long by what is known."""
    return missing(past, wanted, limit) > FEW * past.arms.rank


def spans(past: Past) -> bool:
    """Return whether all pulls so far span the arms."""
    if past.reserve is not None and past.reserve.revealed > 0.0:
        return True  # nothing is revealed before they do
    counts = weights_of(past.pooled.statistics.count, None)
    return bool(quick_information(past.Z, counts).rank == past.Z.shape[1])


class Revealing:
    """Reveals a reserve step by step; the steps are for the note of the next batch."""

    def __init__(self, past: Past, seed: int) -> None:
        assert past.reserve is not None
        self.past = past.with_reserve(past.reserve.copy())
        self.steps: list[dict[str, Any]] = []
        self._rng = np.random.default_rng([seed, past.recorded, 1])

    def reveal(self, pulls: float) -> None:
        """Reveal what so many pulls are worth, with noise of our own."""
        reserve = self.past.reserve
        assert reserve is not None
        noise = self._rng.standard_normal(len(reserve.arms()))
        step = {"pulls": pulls, "noise": noise.tolist()}
        self.past.reveal([step])
        self.steps.append(step)

    def more(self, wanted: Any, limit: float) -> int:
        """Reveal until it is enough, and return 0; or return how many more pulls it takes.

        `wanted` returns the comparisons by a past; `limit` is log(1 / level) of the bets.
        """
        past, r = self.past, self.past.arms.rank
        reserve, done = past.reserve, past.pooled.pulls
        assert reserve is not None
        if done < r or not spans(past):
            return max(r - done, 1)
        if reserve.revealed == 0.0:
            self.reveal(FIRST_SHOWN * done)
        if has_portfolio(past.problem):
            return 0  # its money is spread by what is likely: nobody has to lead
        while True:
            pairs = wanted(past)
            if leads(past, pairs):
                return 0
            if is_long(past, pairs, limit):
                if done >= LONG * r:
                    self.reveal(reserve.kept)
                return max(LONG * r - done, 0)
            if reserve.revealed >= ENOUGH * r:
                return 0
            rest = MOST_SHOWN * done - reserve.revealed
            if rest < SMALL_STEP * r:
                return math.ceil(max(MORE_PULLS * r, GROWTH * done))
            self.reveal(min(rest, max(LARGE_STEP * r, 0.5 * GROWTH * done)))
