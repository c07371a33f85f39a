"""The claims about the m best arms: about sets of them, or about pairs.

While all sets of m candidates can be listed, each has one test: "these are the m best". Batch after
batch the set is attacked at the pair of an arm outside and an arm inside that the past suggests
most: if the claim is true, their difference is not positive, whatever pair is taken. An error
needs the true set to be rejected, so that there is no union over sets (the theorem of the gauntlet,
with sets in the place of arms).

With more sets than that, later rules have a `top_portfolio`. By rules 1 to 3 pairs are tested: "x
is not worse than a", for all ordered pairs, each at the level delta / (m (C - m)) for C candidates.
Of the m (C - m) pairs with x among the m best and a not, no claim is rejected with probability at
least 1 - delta. A set is returned when each of its arms is shown to be better than each other arm:
were it wrong, some arm outside belongs to the m best and one inside does not, and a true claim
about this pair has been rejected.
"""

import math
from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np

from finalist.errors import ProblemError
from finalist.inference.information import Information
from finalist.inference.misspecification import Bias
from finalist.problem import Problem
from finalist.shapes import Bool, Float, Int
from finalist.strategies.abilities import Evidence
from finalist.strategies.gauntlet.claims import Wager, bets_against, can_test
from finalist.strategies.gauntlet.contrasts import Pairs
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.rivals import expected_scores, squares_between
from finalist.strategies.gauntlet.sets import AllPairs, Sets
from finalist.strategies.gauntlet.targets import Comparisons
from finalist.strategies.gauntlet.top_answer import TopAnswer, refuse_many, still_open
from finalist.strategies.protocol import Batch

#: Sets are listed up to this number; beyond it pairs are tested, or there is a `top_portfolio`.
MAX_SETS = 5000


def listed(problem: Problem) -> bool:
    """Return whether all sets of m candidates can be listed."""
    return math.comb(len(problem.candidates), problem.top) <= MAX_SETS


class TopArms(TopAnswer):
    """The claims about the m best arms."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        C, m = len(self.candidates), problem.top
        self._by_sets = listed(problem)
        if not self._by_sets:
            refuse_many(C, m)
        self.tested: Sets | AllPairs = Sets(C, m) if self._by_sets else AllPairs(C, m)
        level = problem.delta / self.tested.union
        self.bets = bets_against(problem, len(self.tested), level)
        self._rival: Int[np.ndarray, " n"] = np.full(len(self.tested), -1)

    def _places(self) -> tuple[Bool[np.ndarray, " C"], Bool[np.ndarray, " C"]]:
        """Return which candidates may be among the m best, and which are for certain."""
        return self.tested.places(self.bets.rejected)

    def evidence(self) -> Evidence:
        """Return the evidence against "this arm is one of the m best", for every arm."""
        K, bets = len(self._problem.arms), self.bets
        share, claim = self.tested.of_arms(np.clip(bets.log_m / bets.limit, 0.0, 1.0))
        whole, rival = np.zeros(K), np.full(K, -1)
        whole[self.candidates] = share
        rival[self.candidates] = self._rival[claim]
        # Like the p-values of single arms these never fall below the level at which bets end.
        p_value = np.minimum(self.tested.of_one_arm * np.exp(-whole * float(bets.limit[0])), 1.0)
        rejected = whole >= 1.0
        return Evidence(whole, p_value, rival, rejected)

    # ---- before a batch ------------------------------------------------------------------

    def wanted(self, past: Past) -> Comparisons:
        """Return the arms that lead against the others, where a swap is not ruled out yet."""
        order, m, bets, C = self._in_order(past), self._problem.top, self.bets, self.candidates
        first, second = (part.ravel() for part in np.meshgrid(order[:m], order[m:], indexing="ij"))
        left = (bets.limit - bets.log_m) / bets.limit
        missing = self.tested.missing(left, np.column_stack([first, second]))
        first, second, missing = still_open(first, second, missing)
        return Comparisons(int(C[order[0]]), C[first], C[second], missing, np.zeros(len(past.Z)))

    def attack(
        self, past: Past, counts: Int[np.ndarray, " K"], info: Information
    ) -> dict[str, Any]:
        """Return the note of a batch, with a pair of arms for every claim that it can test."""
        problem, C, rejected = self._problem, self.candidates, self.bets.rejected
        pairs = np.full((len(rejected), 2), -1)
        if can_test(problem, counts, info):
            alive = np.flatnonzero(~rejected)
            pairs[alive] = self.tested.attacked(self._expected(past, counts, info), alive)
        return {"pairs": np.where(pairs >= 0, C[pairs], -1).tolist()}

    def purpose(self, batch: Batch, _: Past) -> str:
        """Say what a batch with the note of `attack` tests."""
        tested = sum(pair[0] >= 0 for pair in batch.note["pairs"])
        left = int((~self.bets.rejected).sum())
        if not self._by_sets:
            return f"{tested:,} of the {left:,} comparisons that are still open are tested."
        what = f"sets of {self._problem.top} that may still be the best"
        return f"{tested:,} of the {left:,} {what} are tested."

    def _expected(
        self, past: Past, counts: Int[np.ndarray, " K"], info: Information
    ) -> Float[np.ndarray, "C C"]:
        """Return the scores to expect by (a, x), without what a wrong model can feign."""
        problem, C = self._problem, self.candidates
        means = past.means(past.estimate())[C]
        W = (past.Z @ info.inverse_root.T)[C]
        score = expected_scores(past.Z[C], W, means, info.spans)
        bias = Bias.of(problem.misspecification, problem.precisions, past.Z, counts, info)
        if bias is None:
            return score
        width = np.sqrt(squares_between(W))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(np.isfinite(score), score - bias.between(C, C) / width, -np.inf)

    # ---- after it ------------------------------------------------------------------------

    def check(self, note: Mapping[str, Any]) -> None:
        """Refuse a note that is not as `attack` returns it; that of a pilot has no attacks."""
        if note["kind"] == "pilot":
            return
        pairs = np.asarray(note.get("pairs", []))
        ok = pairs.shape == (len(self.tested), 2) and pairs.dtype.kind == "i"
        if not ok or pairs.min(initial=0) < -1 or pairs.max(initial=0) >= len(self._problem.arms):
            raise ProblemError(
                "the note of this batch does not name a pair of candidates for each claim; record "
                "batches as `next` returns them."
            )

    def move(self, note: Mapping[str, Any]) -> None:
        """Do nothing: each claim has one bet."""

    def wagers(self, note: Mapping[str, Any]) -> Iterator[Wager]:
        """Yield the bets against every claim that is attacked."""
        pairs = np.asarray(note["pairs"])
        tested = np.flatnonzero(pairs[:, 0] >= 0)
        before = self.bets.log_m.copy()
        yield Wager(self.bets, tested, Pairs(pairs[tested, 0], pairs[tested, 1]))
        hit = self.bets.log_m > before
        self._rival[hit] = pairs[hit, 0]

    def settle(self, note: Mapping[str, Any], past: Past, pulls: int) -> None:  # noqa: ARG002
        """See what is left."""
        found, fit = self.tested.winners(self.bets.rejected), past.estimate()
        if found is not None and len(found) == 0:  # all at once: the best by the rewards before
            means = self._problem.sign * fit.means()[self.candidates]
            found = np.argsort(-np.nan_to_num(means, nan=-np.inf))[: self._problem.top]
        if found is not None:
            self._win(found, past)

    def end_epoch(self) -> None:
        """Let bets begin anew from what the past says."""
        self.bets.path[:] = 0.0

    def copy(self) -> "TopArms":
        """Return claims that change independently of these."""
        new = copy(self)
        new.bets, new._rival = self.bets.copy(), self._rival.copy()
        return new
