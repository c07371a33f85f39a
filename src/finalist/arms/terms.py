"""Features of single columns, and their products: what the recipes put together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from finalist.arms.levels import contrasts
from finalist.errors import ArmsError
from finalist.shapes import Float
from finalist.text import show

#: Features by their names.
Made = dict[str, Float[np.ndarray, " N"]]


def number(column: str, cells: Any) -> Float[np.ndarray, " N"]:
    """Return a column of numbers as it is; refuse anything else in it."""
    try:
        values = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([c if isinstance(c, int | float) else np.nan for c in cells], np.float64)
    if not np.isfinite(values).all():
        i = int(np.isfinite(values).argmin())
        raise ArmsError(
            f"row {i + 1}, column {column!r}: {show(cells[i])} is not a finite number. Correct it "
            "or leave the candidate out."
        )
    return values


def by_column(
    columns: Sequence[str], levels: Mapping[str, tuple[str, ...]], table: Mapping[str, Any]
) -> dict[str, Made]:
    """Return the features of each column: itself, or the contrasts of its levels.

    Examples
    --------
    >>> by_column(["x", "on"], {"on": ("no", "yes")}, {"x": [1.0, 2.0], "on": ["n", "y"]})
    {'x': {'x': array([1., 2.])}, 'on': {'on': array([0., 1.])}}
    """
    found: dict[str, Made] = {}
    taken = set(columns)
    for column in columns:
        if column not in levels:
            found[column] = {column: number(column, table[column])}
            continue
        made = contrasts(column, levels[column], table[column])
        found[column] = {c if c == column else free(c, taken): v for c, v in made.items()}
        taken |= set(found[column])
    return found


def free(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken."""
    while name in taken:
        name = f"{name}_"
    return name


def centred(values: Float[np.ndarray, " N"], centre: float) -> Float[np.ndarray, " N"]:
    """Return how far values are from a centre."""
    with np.errstate(over="ignore"):
        return np.asarray(values - centre)


def product(
    columns: tuple[str, str], first: Float[np.ndarray, " N"], second: Float[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """Multiply two columns; refuse products that are too large for a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = first * second
    if not np.isfinite(values).all():
        i = int(np.isfinite(values).argmin())
        one, other = columns
        what = "its square" if one == other else f"its product with {other!r} ({second[i]:.6g})"
        raise ArmsError(
            f"row {i + 1}, column {one!r}: {first[i]:.6g} from the centre is so large that {what} "
            "is above 1e308. Use another unit."
        )
    return np.asarray(values + 0.0)  # turns -0.0 into 0.0
