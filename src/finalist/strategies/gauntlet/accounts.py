"""The accounts A(c, x) of a `portfolio`: those of all claimants side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from finalist.problem import Problem
from finalist.shapes import Float, Int
from finalist.strategies.gauntlet.bets import MANY, Bets
from finalist.strategies.gauntlet.claims import bets_against

#: The arrays of `Bets` that have one entry for each account; `path` has them side by side.
PARTS = ("limit", "log_m", "scale", "wealth")


class Accounts(Mapping[int, Bets]):
    """Bets against each arm, by the claimant whose accounts they are.

    Attributes
    ----------
    bets : Bets
        Of all accounts; those of the i-th claimant are i K to (i + 1) K - 1. What the mapping
        returns shares memory with it.
    """

    def __init__(self, problem: Problem, limit: Float[np.ndarray, " K"]) -> None:
        self._problem, self._limit = problem, limit
        self._place: dict[int, int] = {}
        self.bets = bets_against(problem, 0, problem.delta)

    def __getitem__(self, c: int) -> Bets:
        K = len(self._limit)
        return self._slice(slice(self._place[c] * K, (self._place[c] + 1) * K))

    def __contains__(self, c: object) -> bool:
        return c in self._place

    def __iter__(self) -> Iterator[int]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)

    def _slice(self, some: slice) -> Bets:
        parts = {name: getattr(self.bets, name)[some] for name in PARTS}
        return replace(self.bets, path=self.bets.path[:, some], **parts)

    def place(self, claimants: Sequence[int]) -> Int[np.ndarray, " n"]:
        """Return which accounts are the first ones of claimants."""
        return len(self._limit) * np.array([self._place[c] for c in claimants], dtype=np.int64)

    @property
    def log_m(self) -> Float[np.ndarray, "n K"]:
        """The logarithms of what the accounts of each claimant have, in their order."""
        return self.bets.log_m.reshape(len(self), len(self._limit))

    def put(self, claimants: Sequence[int], amounts: Float[np.ndarray, "n K"]) -> None:
        """Add amounts to the accounts of claimants, new or not."""
        for c in claimants:
            if c not in self:
                new = bets_against(self._problem, len(self._limit), np.exp(-self._limit))
                new.log_m[:] = -np.inf
                self.open(c, new)
        rows = [self._place[c] for c in claimants]
        before, limit = self.log_m[rows], self.bets.limit.reshape(self.log_m.shape)[rows]
        with np.errstate(divide="ignore"):
            more = np.minimum(np.logaddexp(before, np.log(amounts)), limit)
        self.log_m[rows] = np.where(before >= limit, before, more)

    def open(self, c: int, new: Bets) -> None:
        """Let another claimant have accounts."""
        old, parts = self.bets, dict[str, Any]()
        for name in PARTS:
            parts[name] = np.concatenate([getattr(old, name), getattr(new, name)])
        path = np.concatenate([old.path, new.path], axis=1)
        self.bets = replace(self.bets, path=path, **parts)
        self._place[c] = len(self._place)

    def clear(self, c: int) -> None:
        """Let the accounts of a claimant begin anew, with nothing."""
        mine = self[c]
        mine.log_m[:], mine.scale[:], mine.path[:] = -np.inf, 0.0, 0.0
        mine.wealth[:] = mine.odds.shares(mine.untilted)

    def groups(self) -> Iterator[list[int]]:
        """Yield the claimants, so many at a time that their accounts are not too many at once."""
        some, each = list(self), max(1, MANY // max(len(self._limit), 1))
        for first in range(0, len(some), each):
            yield some[first : first + each]

    def copy(self) -> "Accounts":
        """Return accounts that change independently of these."""
        new = Accounts(self._problem, self._limit)
        new._place, new.bets = self._place.copy(), self.bets.copy()
        return new
