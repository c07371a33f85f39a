"""What each arm is for: which can be pulled, and which can win."""

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import ArrayLike

from finalist.arms.inputs import Table, show
from finalist.arms.rows import equal_rows
from finalist.errors import ArmsError

#: Says something of every arm.
Mask = Bool[np.ndarray, " K"]


def as_mask(name: str, value: ArrayLike | None, rows: int) -> Mask | None:
    """Return what the user says of each row, checked."""
    if value is None:
        return None
    mask = np.asarray(value)
    if mask.dtype != bool or mask.shape != (rows,):
        raise ArmsError(
            f"{name} has shape {mask.shape} and type {mask.dtype}; give True or False for each of "
            f"the {rows} rows."
        )
    return mask


def any_of(mask: Bool[np.ndarray, " N"] | None, owner: Int[np.ndarray, " N"]) -> Mask | None:
    """Return for each arm whether one of its rows is marked."""
    return None if mask is None else np.bincount(owner, mask, owner.max() + 1) > 0


def role_of(what: str, mask: Mask | None, K: int) -> Mask:
    """Return a mask of its own, read-only; refuse one that is empty."""
    role = np.ones(K, dtype=bool) if mask is None else np.array(mask, dtype=bool)
    if not role.any():
        raise ArmsError(f"no arm {what}; mark at least one.")
    role.flags.writeable = False
    return role


def join(
    arms: Table, measurable: Bool[np.ndarray, " N"], candidates: Table
) -> tuple[Table, Bool[np.ndarray, " M"], Bool[np.ndarray, " M"]]:
    """Return a table to measure and one to choose from as one, with both roles of each row.

    A candidate that is in the first table too, by its name, is there once, and can win.
    """
    first, second = arms.names or (), candidates.names or ()
    names, rows = (*first, *second), len(arms.features)
    features = np.vstack([arms.features, candidates.features])
    owner = equal_rows(features)
    seen = {name: i for i, name in enumerate(first)}
    again = np.zeros(len(names), dtype=bool)
    for i, name in enumerate(second, start=rows):
        if name in seen and owner[i] != owner[seen[name]]:
            raise ArmsError(
                f"{show(name)} is an arm and a candidate with other features; give one of them "
                "another name."
            )
        again[i] = name in seen
    can_be_pulled = np.zeros(len(names), dtype=bool)
    can_be_pulled[:rows] = measurable
    # Also a row that comes again under its name.
    can_win = (np.bincount(owner, np.arange(len(names)) >= rows) > 0)[owner]
    rest = ~again
    kept = tuple(name for name, more in zip(names, rest.tolist(), strict=True) if more)
    table = Table(features[rest], kept, arms.feature_names)
    return table, can_be_pulled[rest], can_win[rest]
