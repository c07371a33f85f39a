"""Candidates that differ in one column of numbers alone from the one in front."""

from dataclasses import dataclass

import numpy as np

from finalist.shapes import Float, Int
from finalist.study import Snapshot
from finalist.study.results import OwnColumns

#: Models that have squares of a column at most.
_SMOOTH = ("straight", "bending", "surface")
#: Columns with a curve of their own; candidates among which they are looked for.
MAX_SLICES, MAX_ARMS = 3, 2000


@dataclass(frozen=True, eq=False)
class Slice:
    """Candidates along one column.

    Attributes
    ----------
    column : str
    place : (n,) array of int
        Which candidates.
    x : (n,) array
        The column.
    fixed : str
        The other columns and their values, in words; empty if there are none.
    """

    column: str
    place: Int[np.ndarray, " n"]
    x: Float[np.ndarray, " n"]
    fixed: str


def slices(snapshot: Snapshot, front: int | None) -> tuple[Slice, ...]:
    """Return the columns along which three candidates or more have means by the model."""
    arms = snapshot.arms
    if front is None or arms.recipe.name not in _SMOOTH or len(arms) > MAX_ARMS:
        return ()
    own = OwnColumns(arms)
    cells = [own.cells(name) for name in arms.names]
    known, found = np.isfinite(snapshot.means), []
    described = [k for k, header in enumerate(own.headers) if header in arms.recipe.columns]
    for k in described:
        rest = [j for j in described if j != k]
        if any(isinstance(row[k], bool) or not isinstance(row[k], int | float) for row in cells):
            continue
        same = [i for i, row in enumerate(cells) if all(row[j] == cells[front][j] for j in rest)]
        place = np.array([i for i in same if known[i]], dtype=int)
        x = np.array([float(cells[i][k]) for i in place])
        if len(np.unique(x)) >= 3:
            fixed = ", ".join(f"{own.headers[j]} {cells[front][j]}" for j in rest)
            found.append(Slice(own.headers[k], place, x, fixed))
    return tuple(found[:MAX_SLICES])
