"""What results say of bends once a model has explained what it can.

Everything that `bending` and `hidden` need follows from the products of the bends' columns and the
rewards, after the projection onto the complement of the rows of the model: large tables stay small.
"""

from dataclasses import dataclass

import numpy as np

from finalist.inference.bends import Bends
from finalist.inference.pooling import BatchSums
from finalist.shapes import Float, Int

#: Singular values below this part of the largest are rounding.
ROUNDING = 1e-8
#: Residuals below this part of the results are rounding.
NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Cells:
    """Means of results of some arms, and the batches that are shifted each by a constant, if any.

    Attributes
    ----------
    weight : (n,) array
        What a mean counts: pulls, over sigma^2 where that differs.
    pure : float
        The squares of results around these means.
    freedom : int
        Their degrees of freedom.
    group : (n,) array of int or None
        The batch of each; None if batches are not shifted.
    """

    arms: Int[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    pure: float = 0.0
    freedom: int = 0
    group: Int[np.ndarray, " n"] | None = None

    @classmethod
    def of(
        cls,
        batches: list[BatchSums],
        precisions: Float[np.ndarray, " K"] | None,
        *,
        shifted: bool,
    ) -> "Cells":
        """Return the cells of some batches."""
        batches = [b for b in batches if len(b.arms) > 0]
        if not batches:
            nothing = np.empty(0)
            return cls(np.empty(0, dtype=np.int64), nothing, nothing)
        arms = np.concatenate([b.arms for b in batches])
        p = precisions
        pure = [float((b.m2 if p is None else b.m2 * p[b.arms]).sum()) for b in batches]
        number = np.repeat(np.arange(len(batches)), [len(b.arms) for b in batches])
        return cls(
            arms,
            np.concatenate([b.weights(p) for b in batches]),
            np.concatenate([b.mean for b in batches]),
            sum(pure),
            sum(int(b.count.sum()) - len(b.arms) for b in batches),
            number if shifted else None,
        )


@dataclass(frozen=True, eq=False)
class Residuals:
    """What some results say of bends once the model has explained what it can.

    Attributes
    ----------
    G : (q, q) array
        B'RB.
    g : (q,) array
        B'e, in the unit of the results.
    squares : float
        |e|^2.
    freedom : int
        Degrees of freedom of e.
    """

    G: Float[np.ndarray, "q q"]
    g: Float[np.ndarray, " q"]
    squares: float
    freedom: int

    @classmethod
    def of(cls, Z: Float[np.ndarray, "K r"], bends: Bends, cells: Cells) -> "Residuals":
        """Project out what arms with coordinates Z explain, and constants of batches."""
        X, y = centred_rows(Z, cells)
        B, _ = centred_rows(bends.columns, cells)
        basis = row_space(X)
        values = np.column_stack([B, y])
        size = np.linalg.norm(values, axis=0)
        for _ in range(2):  # the second time for what was rounded in the first
            values = values - basis @ (basis.T @ values)
        values[:, np.linalg.norm(values, axis=0) <= NOTHING * size] = 0.0
        B, e = values[:, :-1], values[:, -1]
        constants = 0 if cells.group is None else len(np.unique(cells.group))
        freedom = len(cells.arms) - basis.shape[1] - constants + cells.freedom
        return cls(B.T @ B, B.T @ e, float(e @ e) + cells.pure, freedom)

    def scale(self) -> float:
        """Return what the residuals say of sigma; 0 if there are none."""
        return float(np.sqrt(self.squares / self.freedom)) if self.freedom > 0 else 0.0


def centred_rows(
    rows: Float[np.ndarray, "K s"], cells: Cells
) -> tuple[Float[np.ndarray, "n s"], Float[np.ndarray, " n"]]:
    """Return the weighted rows of least squares and their rewards, batches at their means."""
    root, some, mean = np.sqrt(cells.weight), rows[cells.arms], cells.mean
    if cells.group is not None:
        both = np.column_stack([some, mean])
        total = np.bincount(cells.group, cells.weight)
        for i, column in enumerate(both.T):
            centre = np.bincount(cells.group, cells.weight * column) / total
            both[:, i] = column - centre[cells.group]
        both[np.abs(both) < NOTHING * np.abs(np.column_stack([some, mean])).max(axis=0)] = 0.0
        some, mean = both[:, :-1], both[:, -1]
    return some * root[:, None], mean * root


def row_space(X: Float[np.ndarray, "n r"]) -> Float[np.ndarray, "n s"]:
    """Return an orthonormal basis of the columns of a matrix."""
    size = np.linalg.norm(X, axis=0)
    if X.shape[0] == 0 or not size.any():
        return np.zeros((X.shape[0], 0))
    U, s, _ = np.linalg.svd(X[:, size > 0.0] / size[size > 0.0], full_matrices=False)
    return np.asarray(U[:, s > ROUNDING * s[0]])
