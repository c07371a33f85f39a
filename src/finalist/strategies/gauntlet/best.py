"""The claims "this arm is best", one for each arm, and "this arm is good enough" for leaders.

An error needs the true best arm to be rejected, and each arm has one test: there is no union over
arms. With epsilon, by rules 1 and 2, half of delta is for that and half for leaders: the j-th
distinct arm that leads is bet on being within epsilon of each survivor, at the level
delta / (2 j (j + 1)). Later rules have a `portfolio`.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from finalist.errors import ProblemError
from finalist.inference.information import Information
from finalist.inference.misspecification import Bias
from finalist.problem import Problem
from finalist.strategies.abilities import Evidence
from finalist.strategies.gauntlet.bets import Bets
from finalist.strategies.gauntlet.claims import (
    Intervals,
    Wager,
    bets_against,
    can_test,
)
from finalist.strategies.gauntlet.contrasts import Pairs
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.rivals import choose_rivals
from finalist.strategies.gauntlet.targets import Comparisons
from finalist.strategies.protocol import Batch, Verdict
from finalist.text import counted, named, quoted


class BestArm:
    """The claims about one best arm; `survivors` are those that are not rejected."""

    def __init__(self, problem: Problem) -> None:
        K = len(problem.arms)
        self._problem = problem
        share = 0.5 if problem.epsilon > 0 else 1.0
        self.bets = bets_against(problem, K, share * problem.delta)
        self.leaders: dict[int, Bets] = {}
        self._leaders_before = 0  # leaders of earlier questions, whose levels are spent
        self._rival: Int[np.ndarray, " K"] = np.full(K, -1)
        self.survivors: Int[np.ndarray, " m"] = np.flatnonzero(problem.arms.candidate)
        self._rejected_at: Float[np.ndarray, " K"] = np.full(K, np.inf)  # pulls so far
        self.winner = int(self.survivors[0]) if len(self.survivors) == 1 else None
        self._said: tuple[object, object, Verdict] | None = None  # the last verdict, and what of
        self._barred = np.flatnonzero(~problem.arms.candidate)

    def verdict(self, pulls: int) -> Verdict:
        """Return what is certain after so many pulls."""
        said = self._said
        if said is not None and said[0] is self.survivors and said[1] == (self.winner, pulls):
            return said[2]
        survivors = self.survivors.tolist()  # in increasing order
        if self.winner is not None and self.winner not in survivors:
            survivors = sorted([*survivors, self.winner])  # with epsilon, also another arm may win
        verdict = Verdict(self.winner, tuple(survivors), pulls)
        self._said = self.survivors, (self.winner, pulls), verdict
        return verdict

    def evidence(self) -> Evidence:
        """Return the evidence against every arm, as people look at it."""
        bets = self.bets
        return Evidence(
            share=np.clip(bets.log_m / bets.limit, 0.0, 1.0),
            p_value=np.exp(-np.clip(bets.log_m, 0.0, bets.limit)),
            rival=self._rival.copy(),
            rejected=bets.rejected,
        )

    def words(self, past: Past, interval: Intervals) -> str:
        """Say in one sentence what is certain now, after the pilot."""
        names, risk = self._problem.arms.names, f"{self._problem.delta:.3g}"
        pulls, epsilon = counted(past.pulls, "measurement"), self._problem.epsilon
        if self.winner is not None and len(self._problem.candidates) == 1:
            return f"{quoted(names[self.winner])} is the only candidate."
        if self.winner is not None:
            what = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
            return (
                f"{quoted(names[self.winner])} is {what}, after {pulls}; this is wrong with "
                f"probability "
                f"at most {risk}."
            )
        means = self._problem.sign * past.estimate().means()
        alive = self.survivors[np.argsort(-means[self.survivors], kind="stable")]
        first, second = int(alive[0]), int(alive[1])
        gap, width = interval(past.Z[[first]] - past.Z[[second]])
        both = "both " if len(alive) == 2 else ""
        one, other = quoted(names[first]), quoted(names[second])
        who = named([names[i] for i in alive], 2)
        bound = f" +- {width[0]:.2g} (95 %, whenever you look)" if np.isfinite(width[0]) else ""
        return (
            f"{who} are still {both}possible after {pulls}; {one} minus {other} is "
            f"{gap[0]:.3g}{bound}."
        )

    # ---- before a batch ------------------------------------------------------------------

    def wanted(self, past: Past) -> Comparisons:
        """Return the leader and each survivor."""
        leader = int(self._means(past).argmax())
        others = self.survivors[self.survivors != leader]
        missing = (self.bets.limit - self.bets.log_m) / self.bets.limit
        age = past.pooled.pulls / self._rejected_at
        return Comparisons(leader, np.full(len(others), leader), others, missing[others], age)

    def _means(self, past: Past) -> Float[np.ndarray, " K"]:
        means = past.means(past.estimate())
        if len(self._barred) > 0:
            means[self._barred] = -np.inf  # may be better than the best candidate
        return means

    def attack(
        self, past: Past, counts: Int[np.ndarray, " K"], info: Information
    ) -> dict[str, Any]:
        """Return the note of a batch, with a rival for every survivor that it can test."""
        means, problem = self._means(past), self._problem
        rivals, bias = np.full(len(past.Z), -1), None
        if can_test(problem, counts, info):
            bias = Bias.of(problem.misspecification, problem.precisions, past.Z, counts, info)
            rivals[self.survivors] = choose_rivals(past.Z, means, self.survivors, info, bias)
        note: dict[str, Any] = {"leader": int(means.argmax()), "rivals": rivals.tolist()}
        if bias is not None:
            note["direct"] = bias.directly(past.Z, means, rivals, info).tolist()
        return note

    def purpose(self, batch: Batch, past: Past) -> str:
        """Say what a batch with the note of `attack` tests."""
        # An epoch comes in several batches: who had a rival at its begin may be out by now.
        tested = sum(batch.note["rivals"][i] >= 0 for i in self.survivors)
        alive, size = len(self.survivors), batch.size
        if tested == alive:
            which = "Both" if alive == 2 else f"All {alive}"
            return f"{which} candidates that are still possible are tested."
        made = counted(size, "measurement")
        if tested > 0:
            verb, least = "tests" if size == 1 else "test", past.least_size
            whole = f" A batch of {least} or more can test all." if size < least else ""
            return (
                f"{made} in a batch {verb} only {tested} of the {alive} candidates that are still "
                f"possible.{whole}"
            )
        only = "it only improves" if size == 1 else "they only improve"
        return (
            f"{made} in a batch cannot test any candidate; {only} the estimates. "
            f"A batch of {past.least_size} or more can."
        )

    # ---- after it ------------------------------------------------------------------------

    def check(self, note: Mapping[str, Any]) -> None:
        """Refuse a note that is not as `attack` returns it; that of a pilot has no attacks."""
        if "rivals" not in note:
            raise ProblemError("this batch has no note; record batches as `next` returns them.")
        K, chosen = len(self._problem.arms), [note.get("leader", -1), *note["rivals"]]
        known = set(map(type, chosen)) == {int} and min(chosen) >= -1 and max(chosen) < K
        if note["kind"] == "test" and not (known and len(chosen) == K + 1):
            raise ProblemError(
                f"the note of this batch does not name a candidate (or -1) for each of {K} "
                f"candidates; record "
                "batches as `next` returns them."
            )
        direct = note.get("direct", [False] * K)
        if len(direct) != K or set(map(type, direct)) != {bool}:
            raise ProblemError("the note of this batch is not as `next` returns it; record that.")

    def move(self, note: Mapping[str, Any]) -> None:
        """Do nothing: each claim has one bet."""

    def wagers(self, note: Mapping[str, Any]) -> Iterator[Wager]:
        """Yield the bets against all arms with a rival, then those on a leader that may do."""
        yield from self._on_best(note)
        if self._problem.epsilon > 0 and np.count_nonzero(~self.bets.rejected[self.survivors]) > 1:
            yield self._on_leader(int(note["leader"]))

    def _on_best(self, note: Mapping[str, Any]) -> Iterator[Wager]:
        """Bet against all arms with a rival, and remember whose bets were won."""
        rivals = np.array(note["rivals"], dtype=np.int64)
        before, tested = self.bets.log_m.copy(), (rivals >= 0).nonzero()[0]
        own = np.array(note["direct"])[tested] if "direct" in note else None
        yield Wager(self.bets, tested, Pairs(rivals[tested], tested, own))
        hit = self.bets.log_m > before
        self._rival[hit] = rivals[hit]

    def settle(self, note: Mapping[str, Any], past: Past, pulls: int) -> None:
        """Reject, and see whether one arm is left or the leader will do."""
        alive = self.survivors
        out = self.bets.rejected[alive]
        self.survivors = alive[~out]
        self._rejected_at[alive[out]] = past.pooled.pulls + pulls
        if len(self.survivors) == 0:  # all at once: the best of them by the rewards before
            means = past.means(past.estimate())[alive]
            self.survivors = alive[[int(np.nanargmax(means))]]
        if len(self.survivors) == 1:
            self.winner = int(self.survivors[0])
        elif self._problem.epsilon > 0:
            self.winner = self._good_enough(note)

    def _good_enough(self, note: Mapping[str, Any]) -> int | None:
        """Return the leader if no survivor can be better by epsilon."""
        leader = int(note["leader"])
        others = self.survivors[self.survivors != leader]
        return leader if self.leaders[leader].rejected[others].all() else None

    def end_epoch(self) -> None:
        """Let bets begin anew from what the past says."""
        for bets in (self.bets, *self.leaders.values()):
            bets.path[:] = 0.0

    def copy(self) -> "BestArm":
        """Return claims that change independently of these."""
        new = copy(self)
        new.bets = self.bets.copy()
        new.leaders = {leader: bets.copy() for leader, bets in self.leaders.items()}
        new._rival, new._rejected_at = self._rival.copy(), self._rejected_at.copy()
        return new

    def _on_leader(self, leader: int) -> Wager:
        """Bet on the leader being good enough, against each survivor, at a level of its own."""
        K = len(self._problem.arms)
        if leader not in self.leaders:
            j = self._leaders_before + len(self.leaders) + 1
            level = self._problem.delta / (2 * j * (j + 1))
            self.leaders[leader] = bets_against(self._problem, K, level)
        able = self._problem.arms.candidate & (leader >= 0)
        others = np.flatnonzero(able & (np.arange(K) != leader))
        pairs = Pairs(np.full(len(others), leader), others)
        return Wager(self.leaders[leader], others, pairs, self._problem.epsilon)

    # ---- what a study may add --------------------------------------------------------------

    def changed(
        self, problem: Problem, kept: Int[np.ndarray, " n"], level: float, *, afresh: bool
    ) -> "BestArm":
        """Return the claims about other arms, as `ChangeableRun.changed` has it."""
        new = BestArm(problem)
        share = 0.5 if problem.epsilon > 0 else 1.0
        self._carry(new, np.full(len(kept), -1) if afresh else kept, share * level)
        new._leaders_before = self._leaders_before + len(self.leaders)
        return new

    def _carry(self, new: "BestArm", kept: Int[np.ndarray, " n"], level: float) -> None:
        """Hand the evidence against arms that are kept on; others (-1) begin at a level."""
        new.bets, old = self.bets.carried(kept, level), kept >= 0
        new.survivors = np.flatnonzero(~new.bets.rejected & new._problem.arms.candidate)
        new._rejected_at[old] = self._rejected_at[kept[old]]
        number = {int(before): now for now, before in enumerate(kept) if before >= 0}
        new._rival[old] = [number.get(int(r), -1) for r in self._rival[kept[old]]]

    def follow(self, decision: Verdict, pulls: int) -> None:
        """Let the evidence give way to a decision that was taken after so many pulls."""
        bets, candidate = self.bets, self._problem.arms.candidate
        alive = np.zeros(len(candidate), dtype=bool)
        alive[list(decision.survivors)] = True
        out, kept = candidate & ~alive, candidate & alive
        bets.log_m[out] = np.maximum(bets.log_m[out], bets.limit[out])
        bets.log_m[kept] = np.minimum(bets.log_m[kept], np.nextafter(bets.limit[kept], 0.0))
        self._rejected_at[kept] = np.inf
        self._rejected_at[out] = np.minimum(self._rejected_at[out], pulls)
        self.survivors, self.winner = np.flatnonzero(kept), decision.winner
