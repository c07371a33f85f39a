"""The gauntlet: every arm is compared, batch after batch, with its strongest rival so far.

Before a batch is issued, its allocation and for each surviving arm a rival are chosen from the
past. When it is complete, the batch alone estimates the difference of the two, and `betting` turns
its score into evidence against the arm. An arm is out when its evidence reaches 1/delta; the last
one standing is the winner. An error needs the true best arm to be rejected, and each arm has one
test: there is no union over arms, and no dimension in the threshold.

Theorem. Let x* be a best arm and the noise of each batch N(0, sigma^2) given the past. Then x* is
ever rejected with probability at most delta. So at the end of any batch the survivors contain x*
with probability at least 1 - delta, and a returned winner is wrong with probability at most delta.
With tied best arms this holds for each of them. (The proof is in `betting`: for x* the difference
to any rival is not positive.)

What makes it short is where it measures: the optimal design for the differences of the leader and
the survivors, weighted by their gaps and by the evidence that is still missing. Neither the
guarantee nor the evidence depends on that choice, nor on the choice of rivals, as long as both
are made before the batch is seen. The first pulls, a pilot, are for choosing only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from finalist.errors import ProblemError
from finalist.inference.information import Information
from finalist.inference.least_squares import Estimate
from finalist.inference.misspecification import Bias
from finalist.inference.statistics import Statistics
from finalist.problem import FEATURES, Feature, Problem
from finalist.strategies.gauntlet.bets import Bets
from finalist.strategies.gauntlet.choosing import Choosing
from finalist.strategies.gauntlet.evidence import Evidence
from finalist.strategies.gauntlet.planner import Aim, allocate, choose_rivals
from finalist.strategies.gauntlet.scores import Pairs
from finalist.strategies.gauntlet.top import TopRun
from finalist.strategies.protocol import Batch, Verdict, check_record, is_number
from finalist.text import counted

SUPPORTED: frozenset[Feature] = FEATURES


@dataclass(frozen=True)
class Gauntlet:
    """The strategy with its settings.

    Parameters
    ----------
    growth : float
        A batch is this part of all pulls so far, unless a size is asked for.

    Examples
    --------
    >>> import finalist as fl
    >>> run = Gauntlet().start(fl.Problem(fl.Arms.unstructured(3), noise=fl.Gaussian(1.0)))
    >>> run.next().counts
    array([4, 4, 4])
    """

    name: ClassVar[str] = "gauntlet"
    growth: float = 0.1

    def __post_init__(self) -> None:
        if not (is_number(self.growth) and 0 < self.growth <= 10):
            raise ProblemError(f"growth is {self.growth!r}; it is positive, at most 10: 0.1.")

    def start(self, problem: Problem, seed: int = 0) -> "GauntletRun | TopRun":
        """Begin with a problem; the seed draws plausible parameters to plan for."""
        problem.refuse_unsupported(self.name, SUPPORTED)
        if problem.top > 1:
            return TopRun(problem, self.growth, seed)
        return GauntletRun(self, problem, seed)


class GauntletRun(Choosing):
    """The gauntlet at work: evidence against every arm, and the pooled rewards to choose by."""

    def __init__(self, settings: Gauntlet, problem: Problem, seed: int) -> None:
        K = len(problem.arms)
        super().__init__(problem, settings.growth, seed)
        self._settings = settings
        self._gone = 0  # pulls of arms that were withdrawn
        self._leaders_before = 0  # leaders of earlier questions, whose levels are spent
        # With epsilon, half of delta is for elimination and half for "c is good enough".
        share = 0.5 if problem.epsilon > 0 else 1.0
        self._bets = self._bets_against(K, share * problem.delta)
        self._leaders: dict[int, Bets] = {}
        self._rival: Int[np.ndarray, " K"] = np.full(K, -1)
        self._survivors: Int[np.ndarray, " m"] = np.flatnonzero(problem.arms.candidate)
        self._rejected_at: Float[np.ndarray, " K"] = np.full(K, np.inf)  # pulls so far
        self._winner = int(self._survivors[0]) if len(self._survivors) == 1 else None

    @property
    def verdict(self) -> Verdict:
        """What is certain after the batches recorded so far."""
        survivors = self._survivors.tolist()  # in increasing order
        if self._winner is not None and self._winner not in survivors:
            survivors = sorted([*survivors, self._winner])  # with epsilon, also another arm may win
        return Verdict(self._winner, tuple(survivors), self._all.pooled.pulls + self._gone)

    def evidence(self) -> Evidence:
        """Return the evidence against every arm, as people look at it."""
        bets = self._bets
        return Evidence(
            share=np.clip(bets.log_m / bets.limit, 0.0, 1.0),
            p_value=np.exp(-np.clip(bets.log_m, 0.0, bets.limit)),
            rival=self._rival.copy(),
            rejected=bets.rejected,
        )

    def words(self) -> str:
        """Say in one sentence what is certain now."""
        names, risk = self._problem.arms.names, f"{self._problem.delta:.3g}"
        pulls, epsilon = counted(self.verdict.pulls, "pull"), self._problem.epsilon
        if self._winner is not None and len(self._problem.candidates) == 1:
            return f"{names[self._winner]} is the only arm."
        if self._winner is not None:
            what = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
            return (
                f"{names[self._winner]} is {what}, after {pulls}; this is wrong with probability "
                f"at most {risk}."
            )
        if self._piloting:
            return self._say_piloting()
        means = self._problem.sign * self._past().means()
        alive = self._survivors[np.argsort(-means[self._survivors], kind="stable")]
        first, second = int(alive[0]), int(alive[1])
        gap, width = self.interval(self._Z[[first]] - self._Z[[second]])
        both = "both " if len(alive) == 2 else ""
        who = f"{names[first]} and {names[second]}" + (
            "" if len(alive) == 2 else f" and {len(alive) - 2} more"
        )
        bound = f" +- {width[0]:.2g} (95 %, log-det bound)" if np.isfinite(width[0]) else ""
        return (
            f"{who} are still {both}possible after {pulls}; {names[first]} minus {names[second]} "
            f"is {gap[0]:.3g}{bound}."
        )

    # ---- choosing ------------------------------------------------------------------------

    def _test(self, size: int) -> Batch:
        """Return a batch with a rival for every survivor that it can test."""
        fit = self._past()
        means = self._means(fit)
        means[~self._problem.arms.candidate] = -np.inf  # may be better than the best candidate
        leader = int(means.argmax())
        counts, info = allocate(self._aim(fit, leader), size)
        precisions, bias = self._problem.precisions, None
        self._planned = counts, info
        rivals = np.full(len(self._Z), -1)
        if not self._unknown or size > info.rank:  # residuals are needed to estimate sigma
            bias = Bias.of(self._problem.misspecification, precisions, self._Z, counts, info)
            rivals[self._survivors] = choose_rivals(self._Z, means, self._survivors, info, bias)
        words = self._say_tested(int(counts.sum()), rivals, info)
        note: dict[str, Any] = {
            "kind": "test",
            "leader": leader,
            "rivals": rivals.tolist(),
            "words": words,
        }
        note["batch"] = self._recorded
        if bias is not None:
            note["direct"] = bias.directly(self._Z, means, rivals, info).tolist()
        return Batch(counts, note)

    def _say_tested(self, size: int, rivals: Int[np.ndarray, " K"], info: Information) -> str:
        tested, alive = int(np.count_nonzero(rivals >= 0)), len(self._survivors)
        if tested == alive:
            return f"All {alive} arms that are still possible are tested."
        made = counted(size, "pull")
        reason = f"{made} of arms that span {info.rank} of {self._Z.shape[1]} dimensions"
        if tested > 0:
            verb = "tests" if size == 1 else "test"
            return f"{reason} {verb} {tested} of the {alive} arms that are still possible."
        only = "it only improves" if size == 1 else "they only improve"
        return (
            f"{reason} cannot test any arm; {only} the estimate. "
            f"{self.least_size} or more pulls in a batch can."
        )

    def _aim(self, fit: Estimate, leader: int) -> Aim:
        others = self._survivors[self._survivors != leader]
        missing = (self._bets.limit - self._bets.log_m) / self._bets.limit
        age = self._all.pooled.pulls / self._rejected_at
        return self._aim_at(fit, np.full(len(others), leader), others, missing[others], leader, age)

    # ---- what a study may add --------------------------------------------------------------

    def changed(
        self, problem: Problem, kept: Int[np.ndarray, " n"], level: float, *, afresh: bool
    ) -> "GauntletRun":
        """Go on with other arms.

        Parameters
        ----------
        problem : Problem
            With the new arms; all else must be the same.
        kept : (n,) array of int
            For each new arm the number it had before, -1 if it is new.
        level : float
            The share of delta of what is tested from its beginning: the new arms, or all.
        afresh : bool
            Whether every arm starts again without evidence. It must when an arm is withdrawn: if
            that was the best one, the evidence against the others was right, and the new best is
            among them.

        Returns
        -------
        GauntletRun
            With all rewards of arms that are left, to choose by. Intervals end here: their proof
            needs a start that was fixed in advance, and arms may be chosen by rewards.
        """
        new = GauntletRun(self._settings, problem, self._seed)
        old = kept >= 0
        share = 0.5 if problem.epsilon > 0 else 1.0
        bets = self._bets.carried(np.full(len(kept), -1) if afresh else kept, share * level)
        new._bets = bets
        new._survivors = np.flatnonzero(~bets.rejected & problem.arms.candidate)
        new._all = self._all.taken(kept, problem)
        new._gone = self._gone + self._all.pooled.pulls - new._all.pooled.pulls
        new._lost[old] = self._lost[kept[old]]
        new._recorded, new._batches = self._recorded, self._batches
        new._leaders_before = self._leaders_before + len(self._leaders)
        if not afresh:
            new._rejected_at[old] = self._rejected_at[kept[old]]
            number = {int(before): now for now, before in enumerate(kept) if before >= 0}
            new._rival[old] = [number.get(int(r), -1) for r in self._rival[kept[old]]]
        new._other_arms = True
        return new

    def follow(self, decision: Verdict) -> None:
        """Take over a decision that was taken before and is not what the evidence says now.

        The evidence gives way: it is at the limit for an arm that is out, and below it for one
        that is not.
        """
        bets, candidate = self._bets, self._problem.arms.candidate
        alive = np.zeros(len(self._Z), dtype=bool)
        alive[list(decision.survivors)] = True
        out, kept = candidate & ~alive, candidate & alive
        bets.log_m[out] = np.maximum(bets.log_m[out], bets.limit[out])
        bets.log_m[kept] = np.minimum(bets.log_m[kept], np.nextafter(bets.limit[kept], 0.0))
        self._rejected_at[kept] = np.inf
        self._rejected_at[out] = np.minimum(self._rejected_at[out], self._all.pooled.pulls)
        self._survivors, self._winner = np.flatnonzero(kept), decision.winner

    # ---- learning ------------------------------------------------------------------------

    def record(self, batch: Batch, rewards: Statistics) -> None:
        """Turn a complete batch into evidence, from its rewards alone."""
        check_record(self.verdict, len(self._Z), batch, rewards)
        self._check_note(batch, rewards)
        if batch.note["kind"] == "test":
            self._settle(batch, rewards)
        self._absorb(batch, rewards)

    def _check_note(self, batch: Batch, rewards: Statistics) -> None:
        """Refuse batches that were not issued for this moment, or whose note is another."""
        self._check_due(batch, rewards, "rivals")
        K, chosen = len(self._Z), [batch.note.get("leader", -1), *batch.note["rivals"]]
        known = all(isinstance(a, int) and -1 <= a < K for a in chosen)
        if batch.note["kind"] == "test" and not (known and len(chosen) == K + 1):
            raise ProblemError(
                f"the note of this batch does not name an arm (or -1) for each of {K} arms; record "
                "batches as `next` returns them."
            )
        direct = batch.note.get("direct", [False] * K)
        if len(direct) != K or not all(isinstance(one, bool) for one in direct):
            raise ProblemError("the note of this batch is not as `next` returns it; record that.")

    def _settle(self, batch: Batch, rewards: Statistics) -> None:
        rivals = np.array(batch.note["rivals"], dtype=np.int64)
        fit, past = self._fit(batch, rewards), self._past()
        before, tested = self._bets.log_m.copy(), np.flatnonzero(rivals >= 0)
        own = np.array(batch.note["direct"])[tested] if "direct" in batch.note else None
        pairs = Pairs(rivals[tested], tested, own)
        self._bet(self._bets, tested, pairs, fit, past, 0.0)
        hit = self._bets.log_m > before
        self._rival[hit] = rivals[hit]
        alive = self._survivors
        out = self._bets.rejected[alive]
        self._survivors = alive[~out]
        self._rejected_at[alive[out]] = self._all.pooled.pulls + rewards.pulls
        if len(self._survivors) == 0:  # all at once: the best of them by the rewards before
            means = self._means(past)[alive]
            self._survivors = alive[[int(np.nanargmax(means))]]
        if len(self._survivors) == 1:
            self._winner = int(self._survivors[0])
        elif self._problem.epsilon > 0:
            self._settle_leader(batch.note, fit, past)

    def _settle_leader(self, note: Mapping[str, Any], fit: Estimate, past: Estimate) -> None:
        """Bet for the leader being good enough, against each survivor at a level of its own."""
        leader, K = int(note["leader"]), len(self._Z)
        if leader not in self._leaders:
            j = self._leaders_before + len(self._leaders) + 1
            level = self._problem.delta / (2 * j * (j + 1))
            self._leaders[leader] = self._bets_against(K, level)
        bets, rivals = self._leaders[leader], np.full(K, leader)
        rivals[leader] = -1
        rivals[~self._problem.arms.candidate] = -1
        tested = np.flatnonzero(rivals >= 0)
        pairs = Pairs(rivals[tested], tested)
        self._bet(bets, tested, pairs, fit, past, self._problem.epsilon)
        others = self._survivors[self._survivors != leader]
        if bets.rejected[others].all():
            self._winner = leader
