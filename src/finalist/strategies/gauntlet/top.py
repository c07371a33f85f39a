"""The gauntlet for the m best arms: claims about sets of arms, or about pairs, are bet against.

While all sets of m candidates can be listed, each has one test: "these are the m best". Batch after
batch the set is attacked at the pair of an arm outside and an arm inside that the past suggests
most: if the claim is true, their difference is not positive, whatever pair is taken. An error
needs the true set to be rejected, so that there is no union over sets (the theorem of the gauntlet,
with sets in the place of arms).

With more sets than that, pairs are tested: "x is not worse than a", for all ordered pairs, each
at the level delta / (m (C - m)) for C candidates. Of the m (C - m) pairs with x among the m best
and a not, no claim is rejected with probability at least 1 - delta. A set is returned when each of
its arms is shown to be better than each other arm: were it wrong, some arm outside belongs to the m
best and one inside does not, and a true claim about this pair has been rejected.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.errors import ProblemError
from finalist.inference.misspecification import Bias
from finalist.inference.statistics import Statistics
from finalist.problem import Problem
from finalist.strategies.gauntlet.choosing import Choosing
from finalist.strategies.gauntlet.claims import AllPairs, Sets
from finalist.strategies.gauntlet.evidence import Evidence
from finalist.strategies.gauntlet.planner import Aim, allocate
from finalist.strategies.gauntlet.scores import Pairs
from finalist.strategies.protocol import Batch, Verdict, check_record
from finalist.text import counted

#: Sets are listed up to this number; beyond it pairs are tested, of at most so many candidates.
MAX_SETS, MAX_CANDIDATES = 5000, 400


class TopRun(Choosing):
    """The gauntlet at work for the m best arms."""

    def __init__(self, problem: Problem, growth: float, seed: int) -> None:
        super().__init__(problem, growth, seed)
        self._candidates: Int[np.ndarray, " C"] = np.flatnonzero(problem.arms.candidate)
        C, m = len(self._candidates), problem.top
        self._by_sets = math.comb(C, m) <= MAX_SETS
        if not self._by_sets and C > MAX_CANDIDATES:
            raise ProblemError(
                f"the {m} best of {C:,} candidates are too many pairs to test; leave candidates "
                f"out until there are {MAX_CANDIDATES}, or look for the best one."
            )
        self._claims: Sets | AllPairs = Sets(C, m) if self._by_sets else AllPairs(C, m)
        level = problem.delta / self._claims.union
        self._bets = self._bets_against(len(self._claims), level)
        self._rival: Int[np.ndarray, " n"] = np.full(len(self._claims), -1)
        self._winners: Int[np.ndarray, " m"] | None = None

    @property
    def verdict(self) -> Verdict:
        """What is certain now: winners when all are known; survivors may be among them."""
        pulls = self._all.pooled.pulls
        if self._winners is not None:
            found = tuple(self._candidates[self._winners].tolist())
            return Verdict(found[0], tuple(sorted(found)), pulls, found)
        possible, _ = self._claims.places(self._bets.rejected)
        return Verdict(None, tuple(self._candidates[possible].tolist()), pulls)

    @property
    def certain(self) -> tuple[int, ...]:
        """The arms that are among the m best for certain, at the risk delta."""
        _, sure = self._claims.places(self._bets.rejected)
        return tuple(self._candidates[sure].tolist())

    def evidence(self) -> Evidence:
        """Return the evidence against "this arm is one of the m best", for every arm."""
        K, bets = len(self._Z), self._bets
        share, claim = self._claims.of_arms(np.clip(bets.log_m / bets.limit, 0.0, 1.0))
        whole, rival = np.zeros(K), np.full(K, -1)
        whole[self._candidates] = share
        rival[self._candidates] = self._rival[claim]
        # Like the p-values of single arms these never fall below the level at which bets end.
        p_value = np.minimum(self._claims.of_one_arm * np.exp(-whole * float(bets.limit[0])), 1.0)
        rejected = whole >= 1.0
        return Evidence(whole, p_value, rival, rejected)

    def words(self) -> str:
        """Say in one sentence what is certain now."""
        problem, names = self._problem, self._problem.arms.names
        m, pulls = problem.top, counted(self._all.pooled.pulls, "pull")
        if self._winners is not None:
            who = _listed([names[i] for i in self._candidates[self._winners]])
            return (
                f"{who} are the {m} best, after {pulls}; this is wrong with probability at most "
                f"{problem.delta:.3g}."
            )
        if self._piloting:
            return self._say_piloting()
        sure, open_ = self.certain, len(self.verdict.survivors) - len(self.certain)
        others = counted(open_, "arm")
        if not sure:
            return f"{others} may still be among the {m} best, after {pulls}."
        verb = "belongs" if len(sure) == 1 else "belong"
        who = _listed([names[i] for i in sure])
        return f"{who} {verb} to the {m} best; {others} may still do so, after {pulls}."

    # ---- choosing ------------------------------------------------------------------------

    def _test(self, size: int) -> Batch:
        """Return a batch with a pair of arms for every claim that it can test."""
        fit, rejected = self._past(), self._bets.rejected
        C = self._candidates
        means = self._means(fit)[C]
        counts, info = allocate(self._aim(means), size)
        self._planned = counts, info
        misspecification, precisions = self._problem.misspecification, self._problem.precisions
        bias = Bias.of(misspecification, precisions, self._Z, counts, info)
        W = (self._Z @ info.inverse_root.T)[C]
        score = expected_scores(self._Z[C], W, means, info.spans)
        if bias is not None:
            apart = bias.between(C, C)
            width = np.sqrt(_squares_between(W))
            with np.errstate(invalid="ignore", divide="ignore"):
                score = np.where(np.isfinite(score), score - apart / width, -np.inf)
        pairs = np.full((len(rejected), 2), -1)
        if not self._unknown or size > info.rank:  # residuals are needed to estimate sigma
            alive = np.flatnonzero(~rejected)
            pairs[alive] = self._claims.attacked(score, alive)
        pairs = np.where(pairs >= 0, C[pairs], -1)
        tested = int(np.count_nonzero(pairs[:, 0] >= 0))
        what = "sets" if self._by_sets else "pairs"
        note = {
            "kind": "test",
            "pairs": pairs.tolist(),
            "words": f"{tested:,} of {int((~rejected).sum()):,} claims about {what} are tested.",
            "batch": self._recorded,
        }
        return Batch(counts, note)

    def _aim(self, means: Float[np.ndarray, " C"]) -> Aim:
        """Aim at the arms that lead against the others, where a swap is not ruled out yet."""
        order = np.argsort(-means, kind="stable")
        inside, outside = order[: self._problem.top], order[self._problem.top :]
        first, second = (part.ravel() for part in np.meshgrid(inside, outside, indexing="ij"))
        bets = self._bets
        missing = self._claims.missing((bets.limit - bets.log_m) / bets.limit, first, second)
        open_ = missing > 0.0
        if open_.any():
            first, second, missing = first[open_], second[open_], missing[open_]
        C, K = self._candidates, len(self._Z)
        fit = self._past()
        return self._aim_at(fit, C[first], C[second], missing, int(C[order[0]]), np.zeros(K))

    # ---- learning ------------------------------------------------------------------------

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Turn a complete batch into evidence, from its rewards alone."""
        check_record(self.verdict, len(self._Z), batch, rewards)
        self._check_due(batch, rewards)
        pairs = self._checked_pairs(batch)
        if batch.note["kind"] == "test":
            self._settle(batch, pairs, rewards)
        self._absorb(batch, rewards)

    def _checked_pairs(self, batch: Batch) -> Int[np.ndarray, "n 2"]:
        """Return the pair of each claim, none for a pilot; refuse a note that has none."""
        if batch.note["kind"] == "pilot":
            return np.empty((0, 2), dtype=np.int64)
        pairs = np.asarray(batch.note.get("pairs", []))
        ok = pairs.shape == (len(self._claims), 2) and pairs.dtype.kind == "i"
        if not ok or pairs.min(initial=0) < -1 or pairs.max(initial=0) >= len(self._Z):
            raise ProblemError(
                "the note of this batch does not name a pair of arms for each claim; record "
                "batches as `next` returns them."
            )
        return pairs

    def _settle(self, batch: Batch, pairs: Int[np.ndarray, "n 2"], rewards: Statistics) -> None:
        fit, past = self._fit(batch, rewards), self._past()
        tested = np.flatnonzero(pairs[:, 0] >= 0)
        before = self._bets.log_m.copy()
        self._bet(self._bets, tested, Pairs(pairs[tested, 0], pairs[tested, 1]), fit, past, 0.0)
        hit = self._bets.log_m > before
        self._rival[hit] = pairs[hit, 0]
        found = self._claims.winners(self._bets.rejected)
        if found is not None and len(found) == 0:  # all at once: the best by the rewards before
            means = self._problem.sign * past.means()[self._candidates]
            found = np.argsort(-np.nan_to_num(means, nan=-np.inf))[: self._problem.top]
        if found is not None:
            means = self._problem.sign * (self._Z @ past.phi)[self._candidates]
            self._winners = found[np.argsort(-means[found], kind="stable")]


def expected_scores(
    Z: Float[np.ndarray, "C r"],
    W: Float[np.ndarray, "C s"],
    means: Float[np.ndarray, " C"],
    spans: Callable[[Float[np.ndarray, "n r"]], Bool[np.ndarray, " n"]],
) -> Float[np.ndarray, "C C"]:
    """Return (mean_a - mean_x) / ||a - x||_{A^+} by (a, x); minus infinity if not estimable."""
    width = np.sqrt(_squares_between(W))
    first, second = np.triu_indices(len(Z), 1)
    known = np.zeros((len(Z), len(Z)), dtype=bool)
    known[first, second] = spans(Z[first] - Z[second])
    known |= known.T
    known &= width > 0.0
    gaps = means[:, None] - means
    return np.where(known, gaps / np.where(known, width, 1.0), -np.inf)


def _squares_between(W: Float[np.ndarray, "C s"]) -> Float[np.ndarray, "C C"]:
    difference = W[:, None] - W
    return np.asarray(np.einsum("abr,abr->ab", difference, difference))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
