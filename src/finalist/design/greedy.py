"""The greedy incremental allocations of the paper.

Pull next the arm that leaves the smallest worst variance (Soare 2014,
eq:g.optimal.design.incremental and eq:xy.optimal.design.incremental), or with "v" the smallest
mean variance of the arms. On general arms the rule of the worst variance does not converge to
the optimal design; it is here because the paper has it, and the rounded optimal design is the
default everywhere.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.compiled.threads import on_one_thread, size_of_arms
from finalist.design.linalg import spanning_arms
from finalist.design.tasks import Criterion, span_directions
from finalist.errors import DesignError
from finalist.inference.information import information, row_norms
from finalist.shapes import Float, Int
from finalist.text import counted

#: Pulls computed at once by the iterator.
CHUNK = 256
#: The rule looks at every pair at every step; beyond this many it is the wrong tool.
MAX_PAIRS = 20_000_000


class Greedy:
    """The state of a greedy allocation; pulls are taken with `extend` or by iterating.

    The first r pulls are a set of arms that spans, so that the design matrix is regular
    from the start (the paper begins with the canonical arms).

    Parameters
    ----------
    arms : Arms
    criterion : {"g", "xy", "v"} or (M, d) array
        Which variances count: those of the arms, of all pairs, or of given directions; with
        "v" the mean of those of the arms.
    among : (m,) array of int, optional
        For "xy": only the pairs of these arms count; every arm may be pulled.
    """

    def __init__(
        self, arms: Arms, criterion: Criterion, *, among: Int[np.ndarray, " m"] | None = None
    ) -> None:
        if arms.rank == 0:
            raise DesignError("all features are zero; pulls of such an arm teach nothing.")
        if not (arms.measurable.all() and arms.candidate.all()):
            raise DesignError(
                "some of these arms cannot be pulled or cannot win, which the greedy rule does not "
                "know; use optimal_design and round_design instead."
            )
        Z = np.array(arms.coordinates)
        self._counts: Int[np.ndarray, " K"] = np.zeros(len(Z), dtype=np.int64)
        self._start = spanning_arms(Z)
        self._fresh = 0
        self._rule: _Worst | _Mean
        if among is not None:
            self._rule = _Worst(Z, _pairs_among(arms, criterion, among), False)
        elif isinstance(criterion, str) and criterion == "v":
            self._rule = _Mean(Z)
        else:
            self._rule = _Worst(Z, *_directions(arms, criterion))

    @property
    def counts(self) -> Int[np.ndarray, " K"]:
        """The pulls of each arm so far."""
        return self._counts.copy()

    def extend(self, pulls: int) -> Int[np.ndarray, " n"]:
        """Choose the next `pulls` arms (0 or more) and return them in order."""
        if pulls < 0:
            raise DesignError(f"pulls is {pulls}; it must be at least 0.")
        from finalist.design.kernels import greedy as kernels

        done = int(self._counts.sum())
        picks = np.empty(pulls, dtype=np.int64)
        start = self._start[done : done + pulls]
        picks[: len(start)] = start
        np.add.at(self._counts, start, 1)
        filled = len(start)
        while filled < pulls:
            if self._fresh == 0:
                self._rule.refresh(self._counts)
                self._fresh = kernels.REFRESH
            took = self._rule.run(picks[filled:], self._fresh)
            self._counts += np.bincount(picks[filled : filled + took], minlength=len(self._counts))
            self._fresh -= took
            filled += took
        return picks

    def __iter__(self) -> Iterator[int]:
        while True:
            yield from self.extend(CHUNK).tolist()


class _Rule:
    """What to pull next, by a compiled loop that changes a state."""

    _state: Any
    _run: Callable[..., int]

    def run(self, picks: Int[np.ndarray, " n"], fresh: int) -> int:
        """Fill `picks`, at most `fresh` of them; return how many."""
        return int(self._run(self._state, picks, fresh))

    def _whiten(self, counts: Int[np.ndarray, " K"]) -> tuple[np.ndarray, np.ndarray]:
        """Recompute the leverages; return R with R'R = A^-1, and the arms times R'."""
        R = information(self._state.Z, counts.astype(float)).inverse_root
        white = self._state.Z @ R.T
        self._state.leverage[:] = np.einsum("ij,ij->i", white, white)
        return R, white


class _Worst(_Rule):
    """The rule of the worst variance, over a list of directions or all pairs of arms."""

    def __init__(self, Z: np.ndarray, Y: np.ndarray, pairs: bool) -> None:
        from finalist.design.kernels import greedy as kernels

        K, r = Z.shape
        self._state = kernels.State(
            Z=Z,
            Y=Y,
            pairs=pairs,
            inverse=np.zeros((r, r)),
            cross=np.zeros((K, K) if pairs else (1, 1)),
            leverage=np.zeros(K),
            f=np.zeros(K * (K - 1) // 2 if pairs else len(Y)),
            rowmax=np.zeros(K - 1 if pairs else 1),
            a=np.zeros(r),
            dots=np.zeros(max(K, len(Y))),
            after=np.zeros(K),
            total=np.zeros(K),
        )
        self._run = kernels.run

    def refresh(self, counts: Int[np.ndarray, " K"]) -> None:
        """Recompute the state from the counts, so that rounding errors do not add up."""
        state, (R, white) = self._state, self._whiten(counts)
        state.inverse[:] = R.T @ R
        if not state.pairs:
            state.f[:] = row_norms(state.Y, R)
            state.rowmax[0] = state.f.max()
            return
        state.cross[:] = white @ white.T
        start = 0
        for i in range(len(white) - 1):
            difference = white[i + 1 :] - white[i]
            row = np.einsum("ij,ij->i", difference, difference)
            state.f[start : start + len(row)] = row
            state.rowmax[i] = row.max()
            start += len(row)


class _Mean(_Rule):
    """The rule of the mean variance of the arms."""

    def __init__(self, Z: np.ndarray) -> None:
        from finalist.design.kernels import greedy as kernels

        self._state = kernels.MeanState(Z, np.zeros_like(Z), np.zeros(len(Z)))
        self._run = kernels.run_mean

    def refresh(self, counts: Int[np.ndarray, " K"]) -> None:
        """Recompute the state from the counts."""
        R, white = self._whiten(counts)
        self._state.solved[:] = white @ R


def greedy(arms: Arms, criterion: Criterion) -> Iterator[int]:
    """Iterate forever over the arms that the greedy rule pulls.

    Parameters
    ----------
    arms, criterion
        As in `Greedy`.

    Yields
    ------
    int
        The index of the next arm.

    Raises
    ------
    DesignError
        For another criterion, for more than 20 million pairs, and where some arms cannot be pulled
        or cannot win.

    Examples
    --------
    >>> from itertools import islice
    >>> import finalist as fl
    >>> list(islice(greedy(fl.Arms.unstructured(["a", "b", "c"]), "xy"), 7))
    [0, 1, 2, 0, 1, 2, 0]
    """
    return iter(Greedy(arms, criterion))


@on_one_thread(size_of_arms)
def greedy_allocation(arms: Arms, criterion: Criterion, pulls: int) -> Int[np.ndarray, " K"]:
    """Return how often the greedy rule pulls each arm in its first `pulls` steps.

    Parameters
    ----------
    arms : Arms
    criterion : {"g", "xy", "v"} or (M, d) array
    pulls : int
        At least the rank of the arms.

    Examples
    --------
    >>> import finalist as fl
    >>> greedy_allocation(fl.Arms.unstructured(["a", "b", "c"]), "g", 10)
    array([4, 3, 3])
    """
    if not isinstance(pulls, int | np.integer) or pulls < arms.rank:
        raise DesignError(
            f"pulls is {pulls!r}, which does not span; give a whole number, the smallest number is "
            f"{arms.rank}."
        )
    state = Greedy(arms, criterion)
    state.extend(pulls)
    return state.counts


def _directions(arms: Arms, criterion: Criterion) -> tuple[Float[np.ndarray, "M r"], bool]:
    """Return a list of directions, or an empty one and True for all pairs of arms."""
    if not isinstance(criterion, str):
        return np.array(span_directions(arms, criterion)), False
    K = len(arms)
    if criterion == "g" or (criterion == "xy" and K == 1):
        return np.array(arms.coordinates), False
    if criterion != "xy":
        raise DesignError(
            f"criterion is {criterion!r}; the greedy rule knows 'g', 'xy', 'v' and directions."
        )
    _check_pairs(K)
    return np.zeros((0, arms.rank)), True


def _pairs_among(
    arms: Arms, criterion: Criterion, among: Int[np.ndarray, " m"]
) -> Float[np.ndarray, "M r"]:
    """Return the differences of some arms."""
    if not (isinstance(criterion, str) and criterion == "xy"):
        raise DesignError(f"among goes with criterion 'xy', not with {criterion!r}.")
    if len(among) < 2:
        raise DesignError(f"among has {counted(len(among), 'arm')}; a difference needs two.")
    _check_pairs(len(among))
    Z = arms.coordinates[among]
    first, second = np.triu_indices(len(among), 1)
    return np.asarray(Z[first] - Z[second])


def _check_pairs(K: int) -> None:
    if K * (K - 1) // 2 > MAX_PAIRS:
        raise DesignError(
            f"{K} arms have {K * (K - 1) // 2} pairs, too many for the greedy rule; "
            'use optimal_design(arms, "xy") and round_design instead.'
        )
