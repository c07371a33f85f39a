"""Claims with a margin: "this arm is within epsilon of the best", as a portfolio of accounts.

Each arm x has a capital of 1. A share of it, account 0, bets against "x is best". The rest is a
reserve, from which money is moved, before an epoch and by what is known then, to accounts A(c, x)
that bet against "x is better than c by epsilon or more". Nothing is moved back. c is returned when
for every other arm x account 0 of x or A(c, x) has reached 1/delta.

Theorem. For every theta, an arm that is worse than the best by epsilon or more is returned with
probability at most delta.

Proof. Let x* be a best arm and B = {c : c'theta <= x*'theta - epsilon}, a fixed set. Let W be what
account 0, the reserve and the accounts A(c, x*) with c in B have of the capital of x*: at most 1 at
the start. Moving money to c in B leaves W as it is, to another c it lowers W. Account 0 bets on
a mean (a - x*)'theta <= 0, and A(c, x*) with c in B on (c - x*)'theta + epsilon <= 0. So each
factor has a conditional mean of at most 1, given the past, and W is a nonnegative supermartingale.
If c in B is returned, W has reached 1/delta: with probability at most delta (Ville 1939).

There is no union over leaders: an arm pays for each claimant with its own capital, and only
claimants that are worse by epsilon count against the guarantee.

A portfolio is not looked at inside epochs. It would be allowed, although each difference has a
filtration of its own there (`top_portfolio` has the argument); it was tried, and took as many
pulls.

W has account 0, the reserve and A(c, x*): what they have *together* might reach 1/delta as well.
That was tried, and took as many pulls. Accounts of other claimants than c do not count: whether
they are in B is not known.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from finalist.errors import ProblemError
from finalist.inference.information import Information
from finalist.inference.least_squares import Estimate
from finalist.problem import Problem
from finalist.shapes import Bool, Float, Int
from finalist.strategies.gauntlet.accounts import Accounts
from finalist.strategies.gauntlet.best import BestArm
from finalist.strategies.gauntlet.bets import Odds
from finalist.strategies.gauntlet.claims import Intervals, Wager, bets_against
from finalist.strategies.gauntlet.contrasts import Pairs
from finalist.strategies.gauntlet.past import Past
from finalist.strategies.gauntlet.targets import Comparisons
from finalist.strategies.protocol import Verdict
from finalist.text import counted, named, quoted

#: The share of account 0.
ACCOUNT_0 = 0.05
#: Before each epoch A(c, x) gets MOST p^POWER of the reserve of x, where p is the probability that
#: c is the best of all arms but x: little while all are alike, most of it when one stands out, and
#: all at once where there are but two. Amounts below LEAST are worth nothing.
MOST, POWER, LEAST = 0.95, 1.2, 1e-6
#: At most so many arms have accounts, and fewer where that would be too many bets; and only those
#: that are best with this probability.
ACCOUNTS, FEWEST, BETS, LIKELY = 64, 4, 200_000, 0.005
#: Draws of the parameter by which that probability is estimated, of so many arms.
DRAWS, LOOKED_AT = 400, 64
#: Gaps count as at least so many standard errors when claimants are compared.
LEAST_GAP = 0.7
#: A claimant is kept as long as it needs at most so many times what another one needs. Pulls are
#: for at most so many other claimants too, which need at most so many times what it needs.
STAY, OTHERS, NEAR = 1.3, 2, 2.0
#: What an arm that leads now, and has no account, is thought to get of the reserve.
EXPECTED = 0.5


def _margin_odds() -> Odds:
    """Return drifts 1.4^m, m = -6..9, in units of epsilon, most where a best claimant has them.

    The best arm is ahead by nothing or more, so that its shifted lead is epsilon or more: flat for
    m = 0..3, that is up to 2.7 epsilon. Where it is many times that, few pulls are needed whatever
    is bet; and smaller ones are for claimants that are not the best.
    """
    m = np.arange(-6, 10).astype(float)
    weights = np.where(m < 0, 0.5**-m, np.where(m <= 3, 1.0, 0.8 ** (m - 3.0)))
    return Odds(1.4**m, np.log(weights / weights.sum()), 0.7, 0.0)


#: How accounts bet.
MARGIN_ODDS = _margin_odds()


class Portfolio(BestArm):
    """The claims of arms with a margin; `accounts` has A(c, .) by c.

    Parameters
    ----------
    level : float, optional
        Of the test, if it is not all of delta.
    """

    def __init__(self, problem: Problem, level: float | None = None) -> None:
        super().__init__(problem)
        level = problem.delta if level is None else level
        self.bets = bets_against(problem, len(problem.arms), level)
        self.bets.log_m[:] = np.log(ACCOUNT_0)
        self._reserve: Float[np.ndarray, " K"] = np.full(len(problem.arms), 1.0 - ACCOUNT_0)
        self.accounts = Accounts(problem, self.bets.limit)
        self._shown: int | None = None  # the last claimant
        self._last_needed: tuple[Estimate, dict[int, float]] | None = None  # until bets change

    def words(self, past: Past, interval: Intervals) -> str:
        """Say in one sentence what is certain now: who may still be better than the claimant."""
        if self.winner is not None or self._shown is None:
            return super().words(past, interval)
        c = self._claimant(self._needed_by_each(past))  # by all that is known now
        names = self._problem.arms.names
        rest = [names[x] for x in np.flatnonzero(~self._out(c))]
        who = named(rest, 3 if len(rest) <= 3 else 1)
        return (
            f"{quoted(names[c])} may be within {self._problem.epsilon:g} of the best after "
            f"{counted(past.pulls, 'measurement')}; {who} may still be better than it by more."
        )

    # ---- before an epoch -----------------------------------------------------------------

    def wanted(self, past: Past) -> Comparisons:
        """Return the claimant, and each arm that may still be better by epsilon.

        By later rules also what would return others that are near.
        """
        needed, K = self._needed_by_each(past), len(past.Z)
        c, first, second, missing = self._claimant(needed), list[int](), [], []
        for claimant, weight in [(c, 1.0), *self._near(needed, c)]:
            others = np.flatnonzero(~self._out(claimant))
            if len(others) == 0:  # a log that is followed may know less than the evidence
                others = np.flatnonzero(self._problem.arms.candidate & (np.arange(K) != claimant))
            first += [claimant] * len(others)
            second.append(others)
            part = (self.bets.limit - self._wealth(claimant)) / self.bets.limit
            missing.append(weight * part[others])
        pairs = np.array(first, dtype=np.int64), np.concatenate(second)
        return Comparisons(c, *pairs, np.concatenate(missing), np.zeros(K))

    def _out(self, c: int) -> Bool[np.ndarray, " K"]:
        """Return which arms are not better than c by epsilon; also c, and what is no candidate."""
        out = self.bets.rejected | ~self._problem.arms.candidate
        if c in self.accounts:
            out |= self.accounts[c].rejected
        out[c] = True
        return np.asarray(out)

    def _wealth(self, c: int) -> Float[np.ndarray, " K"]:
        """Return the logarithms of what accounts of c have, or would probably get."""
        if c in self.accounts:
            return np.asarray(np.maximum(self.accounts[c].log_m, np.log(LEAST)))
        return np.asarray(np.log(np.maximum(EXPECTED * self._reserve, LEAST)))

    def _claimant(self, needed: Mapping[int, float]) -> int:
        """Return the arm that is expected to be shown good enough with the fewest pulls.

        By later rules it is the last one as long as that needs few more.
        """
        best = min(needed, key=lambda c: needed[c])
        last, rules = self._shown, self._problem.rules
        if last is None or last not in needed or not rules.near_claimants:
            return best
        return last if needed[last] <= STAY * needed[best] else best

    def _near(self, needed: Mapping[int, float], c: int) -> list[tuple[int, float]]:
        """Return arms that may be returned nearly as soon as the claimant c, each with its weight.

        The weight is what c needs over what the arm needs.
        """
        if not self._problem.rules.near_claimants:
            return []
        least = max(needed[c], 1e-9)
        some = [x for x in needed if x != c and 0.0 < needed[x] <= NEAR * least]
        some.sort(key=lambda x: needed[x])
        return [(x, least / needed[x]) for x in some[:OTHERS]]

    def _needed_by_each(self, past: Past) -> dict[int, float]:
        """Return `_needed` of all arms with accounts and of the one that leads."""
        fit = past.estimate()
        if self._last_needed is not None and self._last_needed[0] is fit:
            return self._last_needed[1]
        leader = int(self._means(past).argmax())
        new = [] if leader in self.accounts else [leader]
        log_m, needed = self.accounts.log_m, list[float]()
        for some in self.accounts.groups():
            first = len(needed)
            needed += self._needed(past, some, log_m[first : first + len(some)])
        if new:
            expected = np.log(np.maximum(EXPECTED * self._reserve, LEAST))
            needed += self._needed(past, new, expected[None])
        found = dict(zip([*self.accounts, *new], needed, strict=True))
        self._last_needed = fit, found
        return found

    def _needed(self, past: Past, some: list[int], log_m: Float[np.ndarray, "n K"]) -> list[float]:
        """Return how many times the past is missing until each of some arms can be returned."""
        fit, limit = past.estimate(), self.bets.limit
        open_ = ~(self.bets.rejected | ~self._problem.arms.candidate | (log_m >= limit))
        open_[np.arange(len(some)), some] = False
        i, others = np.nonzero(open_)
        Y, scale = past.Z[np.array(some)[i]] - past.Z[others], past.scale(fit)
        variance = fit.information.variances(Y)
        gaps = (self._problem.sign * (Y @ fit.phi) + self._problem.epsilon) / scale
        gaps = np.maximum(gaps, LEAST_GAP * np.sqrt(variance))
        missing = (limit - np.maximum(log_m, np.log(LEAST)))[open_]
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.zeros(open_.shape)
            needed[open_] = np.nan_to_num(2.0 * missing * variance / gaps**2, nan=0.0, posinf=1e15)
        found: list[float] = needed.max(axis=1, initial=0.0).tolist()
        return found

    def _likely(self, past: Past) -> list[tuple[int, float]]:
        """Return the arms that are likely to be best, with the probability, the likeliest first."""
        means, fit = self._means(past), past.estimate()
        some = np.argsort(-means, kind="stable")[:LOOKED_AT]
        some = some[np.isfinite(means[some])]
        rng, root = np.random.default_rng([past.recorded, 3]), fit.information.inverse_root
        noise = rng.standard_normal((DRAWS, len(root))) @ root
        drawn = means[some] + past.scale(fit) * (noise @ past.Z[some].T)
        share = np.bincount(drawn.argmax(axis=1), minlength=len(some)) / DRAWS
        order = np.argsort(-share, kind="stable")
        return [(int(some[i]), float(share[i])) for i in order if share[i] >= LIKELY]

    def _favoured(self, past: Past) -> list[list[float]]:
        """Return the arms whose accounts get money now, with the probability that each is best."""
        most = min(ACCOUNTS, max(FEWEST, BETS // len(past.Z)))
        free, some = most - len(self.accounts), []
        for c, probability in self._likely(past):
            new = c not in self.accounts
            if not new or free > 0:
                free -= new
                some.append([c, probability])
        return some

    def attack(
        self, past: Past, counts: Int[np.ndarray, " K"], info: Information
    ) -> dict[str, Any]:
        """Return the note of an epoch: rivals for account 0, the claimant, and who gets money."""
        note = super().attack(past, counts, info)
        claimant = self._claimant(self._needed_by_each(past))
        return {**note, "leader": claimant, "favoured": self._favoured(past)}

    # ---- after it ------------------------------------------------------------------------

    def check(self, note: Mapping[str, Any]) -> None:
        """Refuse a note that is not as `attack` returns it."""
        super().check(note)
        some, K = note.get("favoured"), len(self._problem.arms)
        good = isinstance(some, list) and all(
            len(one) == 2 and isinstance(one[0], int) and 0 <= one[0] < K and one[1] >= 0.0
            for one in some
        )
        arms, odds = zip(*some, strict=True) if good and some else ((), ())
        if not good or len(set(arms)) < len(arms) or not sum(odds) <= 1.0 + 1e-9:
            raise ProblemError("the note of this batch is not as `next` returns it; record that.")

    def move(self, note: Mapping[str, Any]) -> None:
        """Move money to accounts when an epoch begins, as its note says."""
        self._shown, K = int(note["leader"]), len(self.bets.limit)
        p, before = np.zeros(K), self._reserve.copy()
        for c, probability in note["favoured"]:
            p[int(c)] = probability
        others = np.maximum(1.0 - p, 1e-9)  # that any but this arm is the best
        favoured = np.flatnonzero(p)
        amounts = MOST * before * np.minimum(p[favoured, None] / others, 1.0) ** POWER
        amounts[np.arange(len(favoured)), favoured] = 0.0
        amounts[amounts < LEAST] = 0.0
        self.accounts.put(favoured.tolist(), amounts)
        for amount in amounts:
            self._reserve -= amount
        self._last_needed = None

    def wagers(self, note: Mapping[str, Any]) -> Iterator[Wager]:
        """Yield the bets of account 0, then those of all other accounts."""
        yield from self._on_best(note)
        K, candidate, bets = len(self.bets.limit), self._problem.arms.candidate, self.accounts.bets
        for some in self.accounts.groups():
            i, x = np.nonzero(candidate & (np.array(some)[:, None] != np.arange(K)))
            c, at = np.array(some)[i], self.accounts.place(some)[i] + x
            yield Wager(bets, at, Pairs(c, x), self._problem.epsilon, MARGIN_ODDS)

    def settle(self, note: Mapping[str, Any], past: Past, pulls: int) -> None:
        """Reject, and see whether a claimant can be returned."""
        self._last_needed = None
        super().settle(note, past, pulls)

    def follow(self, decision: Verdict, pulls: int) -> None:
        """Let the evidence give way to a decision that was taken after so many pulls."""
        self._last_needed = None
        super().follow(decision, pulls)

    def _good_enough(self, note: Mapping[str, Any]) -> int | None:
        """Return a claimant against which every other arm is out, if there is one."""
        nobody = self.bets.rejected | ~self._problem.arms.candidate
        out = np.asarray(nobody | (self.accounts.log_m >= self.bets.limit))
        owners = np.array(list(self.accounts), dtype=np.int64)
        out[np.arange(len(owners)), owners] = True
        found: list[int] = owners[np.all(out, axis=1)].tolist()
        return next(iter(sorted(found, key=lambda c: c != note["leader"])), None)

    def copy(self) -> "Portfolio":
        """Return claims that change independently of these."""
        new = super().copy()
        assert isinstance(new, Portfolio)
        new._reserve, new.accounts = self._reserve.copy(), self.accounts.copy()
        return new

    def end_epoch(self) -> None:
        """Let bets begin anew from what the past says."""
        super().end_epoch()
        self.accounts.bets.path[:] = 0.0

    def changed(
        self, problem: Problem, kept: Int[np.ndarray, " n"], level: float, *, afresh: bool
    ) -> "Portfolio":
        """Return the claims about other arms, as `ChangeableRun.changed` has it.

        An arm that is added has a capital of its own, of which no account has anything yet.
        """
        new, old = Portfolio(problem, level), kept >= 0
        if afresh:
            return new
        self._carry(new, kept, level)
        new.bets.log_m[~old] = np.log(ACCOUNT_0)
        new._reserve[old] = self._reserve[kept[old]]
        number = {int(before): now for now, before in enumerate(kept) if before >= 0}
        new.accounts = Accounts(problem, new.bets.limit)
        for c, bets in self.accounts.items():
            carried = bets.carried(kept, level)
            carried.log_m[~old] = -np.inf
            new.accounts.open(number[c], carried)
        return new
