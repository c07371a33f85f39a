"""The candidates' own columns, as sheets of results show them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from finalist.arms import Arms
from finalist.arms.recipes import plain
from finalist.problem.shown import BESIDE

#: Columns that a sheet has if they say something.
FURTHER = ("worker", *BESIDE)
#: Columns of a sheet that are not the candidate's.
RESERVED = ("pull_id", "candidate", "arm", *FURTHER, "result", "reward", "note")


class OwnColumns:
    """The user's table as columns of a sheet, without the names, which are the column `candidate`.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"name": ["a", "b"], "dose": [1, 2.5], "Note": [0, 1]})
    >>> own = OwnColumns(Arms(table))
    >>> own.headers, own.cells("b")
    (('dose', 'Note (candidate)'), (2.5, 1))
    """

    def __init__(self, arms: Arms | None = None) -> None:
        self._arms = arms
        table = {} if arms is None or _is_unrelated(arms) else arms.table
        if arms is not None:
            aliases = arms.aliases
            names = tuple(name for each in aliases for name in each)
            table = {c: cells for c, cells in table.items() if not _are(cells, names)}
            self._first = np.cumsum([0, *map(len, aliases)])  # rows of the table are names
        self._columns = list(table.values())
        self.headers = tuple(_headers(table))

    def __len__(self) -> int:
        return len(self.headers)

    def cells(self, arm: str) -> tuple[Any, ...]:
        """Return the cells of a candidate; whole numbers as integers."""
        if self._arms is None:
            return ()
        row = int(self._first[self._arms.index(arm)])
        return tuple(_short(column[row]) for column in self._columns)


def _is_unrelated(arms: Arms) -> bool:
    """Return whether the arms have names alone: what `Arms.unstructured` makes of them."""
    K = len(arms)
    if arms.feature_names != tuple(f"f{i}" for i in range(1, K + 1)):
        return False
    return arms.recipe.columns == arms.feature_names and bool(
        np.array_equal(arms.features, np.eye(K))
    )


def _are(cells: Any, names: tuple[str, ...]) -> bool:
    return not isinstance(cells, np.ndarray) and tuple(plain(cells)) == names


def _short(cell: Any) -> Any:
    value = cell.item() if isinstance(cell, np.generic) else cell
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return int(value) if whole else value


def _headers(columns: Iterable[str]) -> list[str]:
    """Return the names of columns, those that mean something else in a sheet told apart."""
    names = list(columns)
    taken = {*RESERVED, *(name.strip().lower() for name in names)}
    headers = []
    for name in names:
        header = name
        if name.strip().lower() in RESERVED:
            header = f"{name.strip()} (candidate)"
            while header.lower() in taken:
                header += "*"
            taken.add(header.lower())
        headers.append(header)
    return headers
