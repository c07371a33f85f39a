"""The m best of many candidates: a portfolio of accounts, where sets are too many to list.

The claim "S is a set of m best arms" has a capital of 1. It begins as a reserve, from which money
is moved, before an epoch and by what is known then, to claimants: sets T that may be returned. A
claimant has an account A(T, x, a) for each arm x outside and each arm a inside, which bets against
"x is at least as good as a". What S gives to T goes to one of them: the x of S that is last, the a
not in S that is first, in an order that is fixed when T becomes a claimant. All claims give T the
same. So sets need not be listed: an account has what each S has there whose account it is. T is
returned when all its accounts have reached 1/delta.

Theorem. A set that is not one of the m best is returned with probability at most delta.

Proof. Let S be a set of m best arms, and W its reserve, what it has in its account of each claimant
other than S, and what it would have given to S, which is left lying. At the start W is 1, and
moving money leaves it as it is. In an account of S for a claimant that is not S, x is one of the m
best and a is not in S: the mean (a - x)'theta on which it bets is not positive. So W is a
nonnegative supermartingale at the ends of epochs. If T is returned and is not S, the account of S
for T has reached 1/delta, and W too. That has probability at most delta (Ville 1939).

When another set takes the place of a claimant T, the reserve gets back what the poorest account of
T has, at most what T was given: that is at most what S has there, also if S is T, and W does not
grow.

Looks inside an epoch are allowed although each pair has a filtration of its own there. W is a sum,
and given the past before an epoch the mean of each part at its end is at most what it was. An
account that reaches 1/delta inside is not bet on any more, and has it at the end.

There is no union over pairs or sets. The price is that money is divided between claimants.

Parts of the answer are known before. If all accounts of T have reached 1/delta whose arm outside
is x or comes after it, then so has that of each set with x: x is not one of the m best. If those
have whose arm inside is a or comes before it, so has that of each set without a.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from finalist.errors import ProblemError
from finalist.inference.information import Information
from finalist.problem import Problem
from finalist.shapes import Bool, Int
from finalist.strategies.abilities import Evidence
from finalist.strategies.gauntlet.accounts import Accounts
from finalist.strategies.gauntlet.bets import Bets
from finalist.strategies.gauntlet.claims import Wager, bets_against, can_test
from finalist.strategies.gauntlet.contrasts import Pairs
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.targets import Comparisons
from finalist.strategies.gauntlet.top_answer import TopAnswer, refuse_many, still_open, swaps
from finalist.strategies.protocol import Batch

#: Before each epoch a claimant gets MOST p^POWER of the reserve, where p is the probability that it
#: is the set of the m best; all together at most so much that 1/(k + 1) is left after k epochs, so
#: that a set that becomes likely late still gets something.
MOST, POWER = 0.95, 2.0
#: There are at most so many claimants, and fewer where that would be too many bets; and only sets
#: that are the best with this probability.
CLAIMANTS, FEWEST, BETS, LIKELY = 12, 2, 40_000, 0.01
#: Draws of the parameter by which that probability is estimated.
DRAWS = 400
#: What a set that leads now, and is no claimant, is thought to get of the reserve; and the least
#: that an account counts as having when the evidence that is missing is estimated.
EXPECTED, LEAST = 0.5, 1e-6


@dataclass(frozen=True, eq=False)
class Claimant:
    """A set that may be returned.

    Attributes
    ----------
    inside : (m,) array of int
        Its arms, the first of the order first.
    outside : (n,) array of int
        The others, the last of the order first.
    """

    inside: Int[np.ndarray, " m"]
    outside: Int[np.ndarray, " n"]

    @classmethod
    def of(cls, members: Int[np.ndarray, " m"], order: Int[np.ndarray, " C"]) -> "Claimant":
        """Return the claimant of some members, with an order of all candidates."""
        mine = np.isin(order, members)
        return cls(order[mine], order[~mine][::-1])

    @property
    def key(self) -> tuple[int, ...]:
        """Its arms in increasing order."""
        return tuple(sorted(self.inside.tolist()))


class TopPortfolio(TopAnswer):
    """The claims about sets of m arms, whose money is in the accounts of claimants.

    Attributes
    ----------
    accounts : Accounts
        Those of the claimant with number n, by (x, a) as `swaps` has them.
    claimants : dict
        By number.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        C, m = len(self.candidates), problem.top
        refuse_many(C, m)
        self._limit, self._swaps = -float(np.log(problem.delta)), m * (C - m)
        self._most = max(FEWEST, min(CLAIMANTS, BETS // self._swaps))
        self.accounts = Accounts(problem, np.full(self._swaps, self._limit))
        self.claimants: dict[int, Claimant] = {}
        self._before = bets_against(problem, 1, problem.delta)
        self._reserve, self._given, self._epochs = 1.0, dict[int, float](), 0
        self._shown: int | None = None  # the number of the claimant with the most likely set
        self._possible, self._sure = np.ones(C, dtype=bool), np.zeros(C, dtype=bool)

    @property
    def bets(self) -> Bets:
        """The bets of all accounts; before there are any, one like them."""
        return self.accounts.bets if len(self.accounts) else self._before

    def _places(self) -> tuple[Bool[np.ndarray, " C"], Bool[np.ndarray, " C"]]:
        """Return which candidates may be among the m best, and which are for certain."""
        return self._possible, self._sure

    def evidence(self) -> Evidence:
        """Return the evidence against "this arm is one of the m best", for every arm.

        For an arm outside the likeliest claimant it is that of the poorest account which a set with
        the arm can have there.
        """
        share, rival = np.zeros(len(self.candidates)), np.full(len(self._problem.arms), -1)
        if self._shown is not None:
            one, log_m = self.claimants[self._shown], self.accounts[self._shown].log_m
            found = np.clip(log_m / self._limit, 0.0, 1.0).reshape(len(one.outside), -1)
            share[one.outside] = np.minimum.accumulate(found.min(axis=1))
            rival[self.candidates[one.outside]] = self.candidates[one.inside[found.argmin(axis=1)]]
        share[~self._possible] = 1.0
        whole = np.zeros(len(rival))
        whole[self.candidates] = share
        return Evidence(whole, np.exp(-whole * self._limit), rival, whole >= 1.0)

    # ---- before a batch ------------------------------------------------------------------

    def wanted(self, past: Past) -> Comparisons:
        """Return the arms that lead against the others, where a swap is not ruled out yet."""
        C, order = self.candidates, self._in_order(past)
        m, number = self._problem.top, self._number(order[: self._problem.top])
        one = Claimant.of(order[:m], order) if number is None else self.claimants[number]
        second, first = swaps(one.inside, one.outside)
        if number is None:
            log_m = np.full(len(first), np.log(EXPECTED * self._reserve))
        else:
            log_m = self.accounts[number].log_m
        missing = (self._limit - np.maximum(log_m, np.log(LEAST))) / self._limit
        missing[~self._possible[second] | self._sure[first]] = 0.0
        first, second, missing = still_open(first, second, missing)
        return Comparisons(int(C[order[0]]), C[first], C[second], missing, np.zeros(len(past.Z)))

    def _number(self, members: Int[np.ndarray, " m"]) -> int | None:
        key = tuple(sorted(members.tolist()))
        return next((n for n, one in self.claimants.items() if one.key == key), None)

    def _likely(self, past: Past) -> tuple[list[list[int]], list[float]]:
        """Return the sets that are likely to be the m best, with their probabilities."""
        m, fit = self._problem.top, past.estimate()
        means = past.means(fit)[self.candidates]
        if np.count_nonzero(np.isfinite(means)) < m:
            return [], []
        rng, root = np.random.default_rng([past.recorded, 3]), fit.information.inverse_root
        noise = rng.standard_normal((DRAWS, len(root))) @ root
        drawn = means + past.scale(fit) * (noise @ past.Z[self.candidates].T)
        best = np.sort(np.argpartition(-drawn, m - 1, axis=1)[:, :m], axis=1)
        sets, count = np.unique(best, axis=0, return_counts=True)
        some = np.argsort(-count, kind="stable")[: self._most]
        some = some[count[some] >= LIKELY * DRAWS]
        return sets[some].tolist(), (count[some] / DRAWS).tolist()

    def attack(
        self, past: Past, counts: Int[np.ndarray, " K"], info: Information
    ) -> dict[str, Any]:
        """Return the note of an epoch: the order of the candidates, and who gets money."""
        sets, odds = self._likely(past)
        able = can_test(self._problem, counts, info)
        return {"order": self._in_order(past).tolist(), "sets": sets, "odds": odds, "able": able}

    def purpose(self, batch: Batch, _: Past) -> str:
        """Say what a batch with the note of `attack` tests."""
        m = self._problem.top
        if not batch.note["able"]:
            return "These measurements only improve the estimates."
        return (
            f"Each of the {m} candidates that lead is compared with the others that may still "
            f"be among the {m} best."
        )

    # ---- after it ------------------------------------------------------------------------

    def check(self, note: Mapping[str, Any]) -> None:
        """Refuse a note that is not as `attack` returns it; that of a pilot has no attacks."""
        if note["kind"] == "pilot":
            return
        C, m = len(self.candidates), self._problem.top
        lists = (note.get(name) for name in ("order", "sets", "odds"))
        order, sets, odds = (part if isinstance(part, list) else [None] for part in lists)
        good = set(map(type, order)) == {int} and sorted(order) == list(range(C))
        good = good and all(
            isinstance(some, list) and len(some) == len(set(some)) == m and set(some) <= set(order)
            for some in sets
        )
        good = good and len(set(map(tuple, sets))) == len(sets) == len(odds)
        good = good and all(isinstance(p, float) and p >= 0.0 for p in odds)
        if not (good and sum(odds) <= 1.0 + 1e-9 and isinstance(note.get("able"), bool)):
            raise ProblemError("the note of this batch is not as `next` returns it; record that.")

    def move(self, note: Mapping[str, Any]) -> None:
        """Move money to claimants when an epoch begins, as its note says."""
        order, odds = np.asarray(note["order"]), np.asarray(note["odds"], dtype=float)
        sets = np.asarray(note["sets"], dtype=np.int64).reshape(len(odds), self._problem.top)
        self._epochs += 1
        numbers = self._admit([Claimant.of(some, order) for some in sets])
        parts = MOST * odds**POWER
        most = max(1.0 - 1.0 / (self._epochs + 1.0) / self._reserve, 0.0)
        if parts.sum() > most:
            parts *= most / parts.sum()
        amounts = self._reserve * parts
        self.accounts.put(numbers, np.repeat(amounts[:, None], self._swaps, axis=1))
        for number, amount in zip(numbers, amounts.tolist(), strict=True):
            self._given[number] += amount
        self._reserve -= float(amounts.sum())
        self._shown = numbers[int(odds.argmax())] if numbers else self._shown

    def _admit(self, some: list[Claimant]) -> list[int]:
        """Return the numbers of claimants; new ones take places of the poorest old ones."""
        numbers = [self._number(one.inside) for one in some]
        new = numbers.count(None)
        old = sorted(set(self.claimants) - set(numbers), key=lambda n: self.accounts[n].log_m.min())
        free = [n for n in range(self._most) if n not in self.claimants]
        for number in old[: max(new - len(free), 0)]:
            self._dismiss(number)
            free.append(number)
        found = [free.pop(0) if number is None else number for number in numbers]
        for number, one, before in zip(found, some, numbers, strict=True):
            if before is None:
                self.claimants[number], self._given[number] = one, 0.0
        return found

    def _dismiss(self, number: int) -> None:
        """Let a claimant go: the reserve gets back what its poorest account has."""
        poorest = float(np.exp(self.accounts[number].log_m.min()))
        self._reserve += min(poorest, self._given[number])
        self.accounts.clear(number)
        del self.claimants[number]

    def wagers(self, note: Mapping[str, Any]) -> Iterator[Wager]:
        """Yield the bets of all accounts whose a seemed better than their x before the epoch."""
        if not note["able"] or not self.claimants:
            return
        place, C = np.empty(len(self.candidates), dtype=np.int64), self.candidates
        place[np.asarray(note["order"])] = np.arange(len(place))
        numbers = list(self.claimants)
        pairs = [swaps(one.inside, one.outside) for one in self.claimants.values()]
        x, a = (np.concatenate(part) for part in zip(*pairs, strict=True))
        at = (self.accounts.place(numbers)[:, None] + np.arange(self._swaps)).ravel()
        some = place[a] < place[x]
        yield Wager(self.accounts.bets, at[some], Pairs(C[a[some]], C[x[some]]))

    def settle(self, note: Mapping[str, Any], past: Past, pulls: int) -> None:  # noqa: ARG002
        """See who is out and who is in, and whether all are known."""
        possible, sure = self._possible.copy(), self._sure.copy()
        for number, one in self.claimants.items():
            done = self.accounts[number].rejected.reshape(len(one.outside), -1)
            done = done | ~possible[one.outside][:, None] | sure[one.inside]
            possible[one.outside[np.logical_and.accumulate(done.all(axis=1))]] = False
            sure[one.inside[np.logical_and.accumulate(done.all(axis=0))]] = True
        self._possible, self._sure, m = possible, sure, self._problem.top
        if np.count_nonzero(possible) <= m or np.count_nonzero(sure) >= m:
            # With probability at most delta these contradict each other; then estimates decide.
            order = self._in_order(past)
            rank = 2 * sure[order].astype(int) + possible[order]
            self._win(order[np.argsort(-rank, kind="stable")][:m], past)

    def end_epoch(self) -> None:
        """Let bets begin anew from what the past says."""
        self.accounts.bets.path[:] = 0.0

    def copy(self) -> "TopPortfolio":
        """Return claims that change independently of these."""
        new = copy(self)
        new.accounts = self.accounts.copy()
        new.claimants, new._given = dict(self.claimants), dict(self._given)
        return new
