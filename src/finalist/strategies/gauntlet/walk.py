"""Through the results of an epoch: what it says at each look, and which results are whose."""

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.errors import ProblemError
from finalist.inference.statistics import BatchResults, Statistics
from finalist.strategies.gauntlet.claims import Wager
from finalist.strategies.gauntlet.epoch import Epoch
from finalist.strategies.gauntlet.past import Past


class Walk:
    """The paths (S, V) of pairs through some results, at the looks that are due."""

    def __init__(
        self, past: Past, epoch: Epoch, results: BatchResults, due: Bool[np.ndarray, " n"]
    ) -> None:
        self._past, self._epoch, self.results, self._due = past, epoch, results, due
        self._start = epoch.root, epoch.side
        self._rows = epoch.rows(past.problem, past.Z, results) if epoch.every else None
        self._paths: dict[int, tuple[Float[np.ndarray, "L t"], Float[np.ndarray, "L t"]]] = {}

    def whole(self) -> None:
        """Go through all results without a look."""
        if self._rows is not None:
            self._along(np.empty((0, len(self._epoch.side))))

    def along(
        self, j: int, wager: Wager, tested: Int[np.ndarray, " t"]
    ) -> tuple[Float[np.ndarray, "L t"], Float[np.ndarray, "L t"]]:
        """Return S and V at all looks for the pairs of the j-th wager that are tested."""
        if j not in self._paths:
            Z, pairs, problem = self._past.Z, wager.pairs, self._past.problem
            Y = (Z[pairs.rivals[tested]] - Z[pairs.arms[tested]]) @ self._epoch.basis
            V, gaps = self._along(Y)
            scale = problem.scale or 1.0  # known where there are looks
            self._paths[j] = V * (problem.sign * gaps + wager.epsilon) / scale, V
        return self._paths[j]

    def _along(
        self, Y: Float[np.ndarray, "t s"]
    ) -> tuple[Float[np.ndarray, "L t"], Float[np.ndarray, "L t"]]:
        import finalist.strategies.gauntlet.path_kernels as kernels

        assert self._rows is not None
        epoch, due = self._epoch, self._due
        epoch.root, epoch.side = self._start[0].copy(), self._start[1].copy()
        V, gaps = np.zeros((2, np.count_nonzero(due), len(Y)))
        kernels.walk(epoch.root, epoch.side, *self._rows, due, Y, V, gaps)
        return V, gaps


def as_results(rewards: Statistics) -> BatchResults:
    """Return sums as the results of a batch whose order is not known."""
    return BatchResults(rewards.count, rewards.mean, rewards.m2, rewards.carry)


def parted(results: BatchResults, mine: Int[np.ndarray, " K"]) -> tuple[BatchResults, BatchResults]:
    """Return the first results of each arm, as many as `mine` says, and the others."""
    if (results.count <= mine).all():
        return results, BatchResults.empty(len(mine))
    if results.arm is None or results.value is None:
        raise ProblemError("these results belong to two epochs; give each of them, not their sums.")
    seen, first = np.zeros(len(mine), dtype=np.int64), np.zeros(len(results.arm), dtype=bool)
    for t, arm in enumerate(results.arm.tolist()):
        first[t] = seen[arm] < mine[arm]
        seen[arm] += 1
    K = len(mine)
    return (
        BatchResults.of(K, results.arm[first], results.value[first]),
        BatchResults.of(K, results.arm[~first], results.value[~first]),
    )
