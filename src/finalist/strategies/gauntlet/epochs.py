"""The course of the gauntlet by rules 3: a pilot, then epochs, each tested on its own.

At the start of an epoch its sequence of pulls, its length and a rival for each arm are fixed, from
the past. Batches of any size go through the sequence. At the end, the epoch alone estimates the
difference y of an arm and its rival, and bets are placed on it (`bets`).

**Looks inside an epoch** (normal noise, known sigma). After n of its pulls let A_n be their design
matrix, and, as soon as y is in its row space, V_n = 1 / (y'A_n^+ y), S_n = V_n y'theta_hat_n, for a
sigma of 1. For m < n

    cov(S_m, S_n) = V_m V_n y'A_m^+ A_m A_n^+ y = V_m V_n y'A_n^+ y = V_m,

because A_m^+ A_m is the projection onto the row space of A_m, which contains y. So S is
Brownian motion with drift y'theta at the times V_n, in the filtration of the past before the epoch
together with the path of S itself, though not of the other rewards of the epoch. That, and at the
end of the epoch everything, make one filtration, in which the evidence against a best arm is a
supermartingale: a bet may use the past and its own path. What a user may do between looks: stop
for good. Whatever goes on otherwise (another rival, other arms) waits for the end of the epoch.
Looks are at fixed numbers of results, and all of them count, whether anybody looked or not.

**The first epoch** begins with the reserve of the pilot (`reserve`): given what was revealed, it is
as good as rewards of the epoch, which arrived first.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int

from finalist.errors import ProblemError
from finalist.inference.statistics import BatchResults, Statistics
from finalist.strategies.gauntlet.bets import ODDS, ODDS_OF_FEW, Bets, Odds
from finalist.strategies.gauntlet.chooser import Chooser, Planned, counts_of, is_plan
from finalist.strategies.gauntlet.claims import Claims, Wager
from finalist.strategies.gauntlet.contrasts import contrasts_of
from finalist.strategies.gauntlet.course import Course
from finalist.strategies.gauntlet.epoch import Epoch, passes
from finalist.strategies.gauntlet.past import Past, looks_inside
from finalist.strategies.gauntlet.planner import Planner
from finalist.strategies.gauntlet.reserve import reveals_in
from finalist.strategies.gauntlet.scores import scores_of
from finalist.strategies.gauntlet.stakes import stakes_of
from finalist.strategies.gauntlet.walk import Walk, as_results, parted
from finalist.strategies.protocol import Batch
from finalist.text import counted


class Epochs(Course):
    """Pilot and epochs at work.

    Attributes
    ----------
    epoch : Epoch or None
        The open one.
    """

    kinds: ClassVar[tuple[str, ...]] = ("pilot", "test")

    def __init__(self, past: Past, planner: Planner, claims: Claims) -> None:
        super().__init__(past, planner, claims)
        self.epoch: Epoch | None = None
        self._looks = looks_inside(past.problem)
        self._chosen: dict[Any, Batch] = {}  # what `next` returns until it is recorded
        self._planned: Planned | None = None

    def copy(self) -> "Epochs":
        """Return one that changes independently."""
        new = copy(self)
        new.past, new.claims = self.past.copy(), self.claims.copy()
        new.epoch, new._chosen = None if self.epoch is None else self.epoch.copy(), {}
        return new

    # ---- before a batch ------------------------------------------------------------------

    def next(self, size: int | None) -> Batch:
        """Return the next batch: the rest of the open epoch, and of a new one what is missing."""
        if (asked := (size, self.past.problem.budget)) not in self._chosen:
            self._chosen[asked] = self._next(size)
        return self._chosen[asked]

    def _next(self, size: int | None) -> Batch:
        note: dict[str, Any] = {"batch": self.past.recorded}
        rest = np.empty(0, dtype=np.int64) if self.epoch is None else self.epoch.later
        rest = rest[:size]
        note["rest"] = len(rest)
        if (size is None and len(rest) > 0) or len(rest) == size:
            return self._batch(rest, {"kind": "test", **note})
        past = self.past.before_results(rest)
        chooser = self._chooser()
        if not past.room().any():
            return self._batch(rest, {"kind": "test", **note})
        if self.epoch is None and not past.begun:
            more, past, steps = chooser.pilot(past)
            note["revealed"] = steps
            if more > 0:
                n = more if size is None else size
                return self._batch(chooser.pilot_order(past, n), {"kind": "pilot", **note})
        reserve = past.kept if self.epoch is None else None  # an open epoch has it
        some = None if size is None else size - len(rest)
        self._planned = counts, plan, M, _ = chooser.plan(past, some, reserve)
        if size is None and plan["every"] == 0:
            note["epoch"] = {**plan, "later": []}
            return Batch(counts, {"kind": "test", **note})
        order = chooser.ordered(past, counts, M, reserve, plan.get("probed", ()))
        note["epoch"] = {**plan, "later": [] if some is None else order[some:].tolist()}
        return self._batch(np.append(rest, order[:some]), {"kind": "test", **note})

    def _chooser(self) -> Chooser:
        return Chooser(self.planner, self.claims, self._looks)

    def _batch(self, order: Int[np.ndarray, " n"], note: dict[str, Any]) -> Batch:
        return Batch(np.bincount(order, minlength=len(self.past.Z)), note, order)

    @property
    def own_size(self) -> int:
        """The size of the next batch unless another is asked for."""
        return self.next(None).size

    @property
    def least_size(self) -> int:
        """The smallest batch that is ever tested: any, unless each has a constant of its own."""
        own = self.past.problem.batch_intercept and self.past.begun
        return self.past.least_size if own else 1

    @property
    def until_end(self) -> int:
        """The pulls of the open epoch that are not made yet."""
        return 0 if self.epoch is None else len(self.epoch.later)

    def until_test(self, batch: Batch | None) -> int:
        """Return how many pulls after a batch, or from now, nothing is tested."""
        rest = 0 if batch is None else int(batch.note["rest"])
        if batch is None or rest > 0:  # the last of an epoch are tested when the batch is complete
            inside = self.epoch is not None and self.epoch.every > 0
            return 0 if inside else self.until_end - rest
        plan = batch.note.get("epoch")
        return 0 if plan is None or plan["every"] > 0 else len(plan["later"])

    def purpose(self, batch: Batch) -> str:
        """Say what a batch is for that is not recorded yet."""
        note = batch.note
        if note["kind"] == "pilot":
            if self.past.reserve is None:
                return "These first measurements show where to measure, and are not tested."
            return (
                "These first measurements show where to measure next. Part of what each one tells "
                "is kept for the tests, unless the study is going to be long."
            )
        if "epoch" not in note:
            assert self.epoch is not None
            attack, counts = self.epoch.note, self.epoch.counts
        else:
            plan = note["epoch"]
            counts = counts_of(plan, len(self.past.Z))
            attack = plan["attack"]
        words, left = self.claims.purpose(Batch(counts, attack), self.past), self.until_test(batch)
        test = f"{words} The test is {counted(left, 'measurement')} after these."
        return words if left == 0 else test

    def check(self, note: Mapping[str, Any]) -> None:
        """Refuse a note that is not as `next` returns it."""
        K, rest = len(self.past.Z), note.get("rest", -1)
        plan, open_ = note.get("epoch"), self.until_end
        good = isinstance(rest, int) and 0 <= rest <= open_ and note["kind"] in self.kinds
        good = good and (plan is None or rest == open_)
        good = good and (note["kind"] != "test" or plan is not None or rest > 0)
        for step in reveals_in(note):
            reserve = self.past.reserve
            good = good and reserve is not None and len(step["noise"]) == len(reserve.arms())
        if plan is not None and (good := good and is_plan(plan, K)):
            self.claims.check({"kind": "test", **plan["attack"]})
        if not good:
            raise ProblemError("the note of this batch is not as `next` returns it; record that.")

    # ---- after it ------------------------------------------------------------------------

    def may_decide(
        self, batch: Batch, rewards: Statistics, seen: Int[np.ndarray, " K"] | None
    ) -> bool:
        """Return whether what has arrived of a batch reaches a look that was not taken yet."""
        note, rest = batch.note, int(batch.note["rest"])
        if not self._looks or note["kind"] != "test":
            return False
        if seen is None and rest == 0 and self.past.kept is not None:
            return True
        before = 0 * rewards.count if seen is None else seen
        if rest == 0:
            return passes(0, int(before.sum()), rewards.pulls, note["epoch"]["every"])
        epoch = self.epoch
        assert epoch is not None
        mine = np.bincount(epoch.later[:rest], minlength=len(before))
        n, now = (int(np.minimum(count, mine).sum()) for count in (before, rewards.count))
        if passes(epoch.results.pulls, n, now, epoch.every):
            return True
        if "epoch" not in note or now < rest:
            return False
        later = (0, int(before.sum()) - n, rewards.pulls - now)
        return n < rest or passes(*later, note["epoch"]["every"])

    def record(self, batch: Batch, rewards: Statistics, *, complete: bool = True) -> None:
        """Turn a batch, or what has arrived of it, into evidence; then learn from it.

        Looks at an epoch wait until all of the one before it has arrived.
        """
        past, note = self.past, batch.note
        results = rewards if isinstance(rewards, BatchResults) else as_results(rewards)
        old, new = self._parted(note, results)  # or it is refused, before anything changes
        self._chosen = {}
        past.reveal(reveals_in(note))
        past.recorded += 1
        if note["kind"] == "pilot":
            past.pooled.add(results)
            past.learn(results, tested=False)
            return
        ended = 0
        for epoch, part, last in self._parts(note, old, new):
            self.epoch = epoch
            self._advance(part, ended)
            epoch.results.merge(part)
            ended += part.pulls
            if last and (complete or epoch.complete) and self.used in (None, past.pulls + ended):
                self._close(ended)
            if self.used is not None or self.epoch is not None:
                break  # what comes after an epoch waits for all of it
        past.pooled.add(results)

    def _parted(
        self, note: Mapping[str, Any], results: BatchResults
    ) -> tuple[BatchResults, BatchResults]:
        """Return the results of the open epoch, and those of a new one."""
        K, rest = len(self.past.Z), note.get("rest", 0)
        if rest == 0:
            return BatchResults.empty(K), results
        assert self.epoch is not None
        return parted(results, np.bincount(self.epoch.later[:rest], minlength=K))

    def _parts(
        self, note: Mapping[str, Any], old: BatchResults, new: BatchResults
    ) -> Iterator[tuple[Epoch, BatchResults, bool]]:
        """Yield which results belong to which epoch, and whether they are its last."""
        rest, K = note["rest"], len(self.past.Z)
        if rest > 0:
            assert self.epoch is not None
            self.epoch.later = self.epoch.later[rest:]
            yield self.epoch, old, len(self.epoch.later) == 0
        if "epoch" in note:
            plan = note["epoch"]
            epoch = Epoch.of(plan, counts_of(plan, K), self.past.kept)
            if self._planned is not None and plan["times"] is self._planned.plan["times"]:
                epoch.whole = self._planned.told
            self.past.begun, self.past.few = True, epoch.few
            epoch.begin(self.past.problem, self.past.Z)
            self.claims.move(epoch.note)
            yield epoch, new, len(epoch.later) == 0

    def _advance(self, results: BatchResults, before: int) -> None:
        """Take all looks that are due inside some results, until it is decided."""
        epoch, past = self.epoch, self.past
        assert epoch is not None
        due = epoch.looks(results)
        looks, walked = due.nonzero()[0], Walk(past, epoch, results, due)
        if len(looks) == 0:
            walked.whole()
            return
        start, epoch.looked = self.claims.copy(), True
        placed = self._bet(self.claims, walked, len(looks))
        epoch.ended = bool(due[-1]) and epoch.completed_by(results)
        if self.claims.verdict(0).decided:
            out = sorted({n for bets, V, at in placed for n in bets.out_along(V, at)}) or [0]
            low, high = 0, len(out) - 1  # one of these decides first: before it nothing is new
            while low < high:
                middle = (low + high) // 2
                tried = start.copy()
                self._bet(tried, walked, out[middle] + 1)
                low, high = (low, middle) if tried.verdict(0).decided else (middle + 1, high)
            if out[low] + 1 < len(looks):
                self._bet(start, walked, out[low] + 1)
                self.claims = start
            self.used = past.pulls + before + int(looks[out[low]])

    def _bet(self, claims: Claims, walked: Walk, looks: int) -> list[tuple[Bets, Any, Any]]:
        """Bet on the first looks of a walk, and conclude; return the bets, their V and arms."""
        epoch, placed = self.epoch, []
        assert epoch is not None
        for j, wager in enumerate(claims.wagers(epoch.note)):
            tested, before = self._stake(j, wager)
            S, V = walked.along(j, wager, tested)
            at = wager.at[tested]
            wager.bets.place_along(S[:looks], V[:looks], at, before, self._odds(wager))
            placed.append((wager.bets, V, at))
        claims.settle(epoch.note, self.past, walked.results.pulls)
        return placed

    def _odds(self, wager: Wager) -> Odds:
        assert self.epoch is not None
        return wager.odds or (ODDS_OF_FEW if self.epoch.few else ODDS)

    def _stake(self, j: int, wager: Wager) -> tuple[Int[np.ndarray, " t"], Any]:
        """Return which pairs of a wager the epoch can test, and what the past says of them."""
        epoch, past = self.epoch, self.past
        assert epoch is not None
        if j not in epoch.stakes:
            info = epoch.information(past.problem, past.Z)
            contrasts = contrasts_of(past.problem, past.Z, epoch.counts, info, wager.pairs)
            stakes = stakes_of(past, contrasts, wager.epsilon)
            tested = contrasts.tested
            worth = epoch.counts.sum() + (0.0 if epoch.reserve is None else epoch.reserve.kept)
            scale = 3.0 * past.arms.rank / worth * stakes.speed**2
            before = stakes.before(len(wager.bets.log_m), wager.at[tested])
            epoch.stakes[j], epoch.planned[j] = (tested, before, scale), contrasts
        tested, before, scale = epoch.stakes[j]
        wager.open(wager.at[tested], scale, past.scale(past.estimate()))
        return tested, before

    def _close(self, pulls: int) -> None:
        """Take the look at the end of an epoch, and let the chooser know of it."""
        epoch, past = self.epoch, self.past
        assert epoch is not None
        if not epoch.ended:
            self._bet_on_all()
            self.claims.settle(epoch.note, past, pulls)
        if self.claims.verdict(0).decided:
            self.used = past.pulls + pulls
        self.claims.end_epoch()
        if past.reserve is not None:
            past.release()
        past.learn(epoch.results, tested=True)
        past.batches += 1
        past.last, past.last_info = epoch.counts, epoch.whole if epoch.reserve is None else None
        self.epoch = None

    def _bet_on_all(self) -> None:
        """Bet on all results of an epoch together."""
        epoch, past, problem = self.epoch, self.past, self.past.problem
        assert epoch is not None
        fit = epoch.estimate(problem, past.arms)
        for j, wager in enumerate(self.claims.wagers(epoch.note)):
            _, before = self._stake(j, wager)
            contrasts = epoch.planned[j]
            if not epoch.complete:
                count, info = epoch.results.count, fit.information
                contrasts = contrasts_of(problem, past.Z, count, info, wager.pairs)
            scores, tested = scores_of(problem, fit, contrasts, wager.epsilon), contrasts.tested
            if scores is not None:
                speed = 1.0 / contrasts.width[tested]
                S, V = (scores[tested] * speed)[None], (speed**2)[None]
                wager.bets.place_along(S, V, wager.at[tested], before, self._odds(wager))
