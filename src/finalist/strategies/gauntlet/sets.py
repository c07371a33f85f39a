"""Claims about the m best arms, that the gauntlet bets against: about sets, or about pairs.

Candidates are numbered from 0 to C - 1. Scores are by (a, x): how strongly a batch is expected to
show that a is better than x.
"""

from itertools import combinations

import numpy as np

from finalist.shapes import Bool, Float, Int


class Sets:
    """The claims "these are the m best", for all sets of m of C candidates.

    If an arm is one of the m best, the true set has it: the evidence against the arm, the smallest
    of its sets, is at most that against one true claim.
    """

    union = of_one_arm = 1

    def __init__(self, C: int, m: int) -> None:
        self._sets: Int[np.ndarray, "n m"] = np.array(list(combinations(range(C), m)), dtype=int)
        self._inside = np.zeros((len(self._sets), C), dtype=bool)
        np.put_along_axis(self._inside, self._sets, True, axis=1)
        self._number = {tuple(s): i for i, s in enumerate(self._sets.tolist())}

    def __len__(self) -> int:
        return len(self._sets)

    def attacked(
        self, score: Float[np.ndarray, "C C"], alive: Int[np.ndarray, " n"]
    ) -> Int[np.ndarray, "n 2"]:
        """Return for each set the arm outside and the arm inside with the largest score."""
        pairs = np.full((len(alive), 2), -1)
        for row, i in enumerate(alive):
            inside = self._sets[i]
            outside = np.flatnonzero(~self._inside[i])
            part = score[np.ix_(outside, inside)]
            a, x = divmod(int(part.argmax()), len(inside))
            if part[a, x] > -np.inf:
                pairs[row] = outside[a], inside[x]
        return pairs

    def missing(
        self, missing: Float[np.ndarray, " n"], pairs: Int[np.ndarray, "k 2"]
    ) -> Float[np.ndarray, " k"]:
        """Return how much evidence is missing against the set with each pair (x, a) swapped."""
        leading = set(pairs[:, 0].tolist())  # every one of them has a second arm
        swapped = (tuple(sorted((leading - {x}) | {a})) for x, a in pairs.tolist())
        return missing[[self._number[s] for s in swapped]]

    def places(
        self, rejected: Bool[np.ndarray, " n"]
    ) -> tuple[Bool[np.ndarray, " C"], Bool[np.ndarray, " C"]]:
        """Return which arms may be among the m best, and which are in every set that is left."""
        left = self._inside[~rejected]
        return left.any(axis=0), left.all(axis=0) & (len(left) > 0)

    def of_arms(
        self, share: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " C"], Int[np.ndarray, " C"]]:
        """Return the evidence against the most likely set of each arm, and which set that is."""
        of = np.where(self._inside, share[:, None], np.inf)
        return of.min(axis=0), of.argmin(axis=0)

    def winners(self, rejected: Bool[np.ndarray, " n"]) -> Int[np.ndarray, " m"] | None:
        """Return the only set that is left; an empty one if there is none."""
        left = np.flatnonzero(~rejected)
        if len(left) > 1:
            return None
        return self._sets[left[0]] if len(left) == 1 else np.empty(0, dtype=np.int64)


class AllPairs:
    """The claims "x is not worse than a", for all ordered pairs (x, a) of C candidates.

    If x is one of the m best, at most m - 1 arms are better: the m-th largest evidence against it
    is at most the largest against C - m true claims, those about the arms that are not among the m
    best.
    """

    def __init__(self, C: int, m: int) -> None:
        self._C, self._m, self.union, self.of_one_arm = C, m, m * (C - m), C - m
        x, a = np.nonzero(~np.eye(C, dtype=bool))
        self._x, self._a = x, a

    def __len__(self) -> int:
        return len(self._x)

    def _table(self, values: np.ndarray, own: float | bool) -> np.ndarray:
        """Return values by (x, a), with one for the diagonal."""
        table = np.full((self._C, self._C), own)
        table[self._x, self._a] = values
        return table

    def attacked(
        self, score: Float[np.ndarray, "C C"], alive: Int[np.ndarray, " n"]
    ) -> Int[np.ndarray, "n 2"]:
        """Return (a, x) of each claim whose opposite the past suggests; others are left alone."""
        pairs = np.column_stack([self._a[alive], self._x[alive]])
        pairs[~(score[pairs[:, 0], pairs[:, 1]] > 0.0)] = -1
        return pairs

    def missing(
        self, missing: Float[np.ndarray, " n"], pairs: Int[np.ndarray, "k 2"]
    ) -> Float[np.ndarray, " k"]:
        """Return how much evidence is missing for the first arm of each pair being better."""
        return np.asarray(self._table(missing, 0.0)[pairs[:, 1], pairs[:, 0]])

    def places(
        self, rejected: Bool[np.ndarray, " n"]
    ) -> tuple[Bool[np.ndarray, " C"], Bool[np.ndarray, " C"]]:
        """Return which arms fewer than m others are better than, and which beat all but m - 1."""
        worse = self._table(rejected, False)  # x is worse than a
        return worse.sum(axis=1) < self._m, worse.sum(axis=0) >= self._C - self._m

    def of_arms(
        self, share: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " C"], Int[np.ndarray, " C"]]:
        """Return the m-th largest evidence of another arm being better, and of which claim."""
        table = self._table(share, -1.0)
        claim = np.argsort(-table, axis=1, kind="stable")[:, self._m - 1]
        number = self._table(np.arange(len(self)), 0).astype(np.int64)
        row = np.arange(self._C)
        return table[row, claim], number[row, claim]

    def winners(self, rejected: Bool[np.ndarray, " n"]) -> Int[np.ndarray, " m"] | None:
        """Return the set of m arms each of which is shown to be better than each other arm."""
        worse = self._table(rejected, False)
        found = np.flatnonzero(worse.sum(axis=0) >= self._C - self._m)
        if len(found) != self._m:
            return None
        outside = np.setdiff1d(np.arange(self._C), found)
        return found if worse[np.ix_(outside, found)].all() else None
