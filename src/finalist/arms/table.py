"""Files of arms with columns beside the features: measurable or not, size of the noise, cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from finalist import tables
from finalist.arms import reading
from finalist.arms.arms import Arms
from finalist.arms.models import MAX_NUMBERS
from finalist.arms.recipes import Recipe
from finalist.errors import FileFormatError
from finalist.shapes import Float
from finalist.tables import Cells, Dialect, Limits
from finalist.tables.columns import Column, Role


@dataclass(frozen=True, eq=False)
class ArmsTable:
    """Arms, with the size of the noise and the cost of a pull of each.

    Attributes
    ----------
    arms : Arms
    sigma, cost : (K,) array or None
        None if the file has no such column.
    columns : tuple of Column
        What each column of the file is for.
    read_as : str
        What was found out about the file: "semicolons, decimal comma".
    remarks : tuple of str
        What was left out or put together.
    """

    arms: Arms
    sigma: Float[np.ndarray, " K"] | None = None
    cost: Float[np.ndarray, " K"] | None = None
    columns: tuple[Column, ...] = ()
    read_as: str = ""
    remarks: tuple[str, ...] = ()

    def with_candidates(self, candidates: Arms) -> "ArmsTable":
        """Return these arms to be measured, and others to choose from, as one table.

        The arms come first, in their order. Noise and cost of what is only chosen from count
        nowhere; the largest value there is leaves ranges as they are.
        """
        both = self.arms.with_candidates(candidates)

        def padded(values: Float[np.ndarray, " K"] | None) -> Float[np.ndarray, " M"] | None:
            if values is None:
                return None
            return np.append(values, np.full(len(both) - len(values), values.max()))

        return ArmsTable(
            both, padded(self.sigma), padded(self.cost), self.columns, self.read_as, self.remarks
        )


def _of(made: reading.Made, read_as: str) -> ArmsTable:
    arms = Arms._of(made.parts)
    return ArmsTable(arms, made.sigma, made.cost, made.columns, read_as, made.remarks)


def read_table(
    source: str | PathLike[str] | bytes,
    *,
    measurable: str | None = None,
    sigma: str | None = None,
    cost: str | None = None,
    dialect: Dialect | None = None,
    name: str = "the table",
    limits: Limits | None = None,
) -> ArmsTable:
    r"""Read a file of arms as given: columns are features, but for the name and those named here.

    Parameters
    ----------
    source : path-like or bytes
        Any table that `finalist.tables.read` reads, or .npy (features alone).
    measurable : str, optional
        The column that says which arms can be pulled: yes or no, true or false, 1 or 0.
    sigma, cost : str, optional
        The columns with the size of the noise and the cost of a pull of each arm.
    dialect : Dialect, optional
    name : str
        What errors call the table if bytes are given.
    limits : Limits, optional

    Returns
    -------
    ArmsTable

    Examples
    --------
    >>> table = b"name,dose,price,stock\na,1,5,yes\nb,2,7,no\n"
    >>> table = read_table(table, measurable="stock", cost="price")
    >>> table.arms.measurable.tolist(), table.cost, table.arms.feature_names
    ([True, False], array([5., 7.]), ('dose',))
    """
    words: dict[Role, str | None] = {"measurable": measurable, "noise": sigma, "cost": cost}
    roles = {column: role for role, column in words.items() if column is not None}
    if not isinstance(source, bytes) and Path(source).suffix.lower() == ".npy":
        if roles:
            raise FileFormatError(
                f"{source}: a .npy file has no column names, so no {next(iter(roles))!r}."
            )
        return ArmsTable(Arms.from_npy(source))
    cells = tables.read(source, dialect, name=name, limits=limits)
    return _of(reading.as_given(cells, roles), cells.read_as)


def read_candidates(
    source: Any,
    columns: Mapping[str, str] | None = None,
    *,
    model: str = "straight",
    intercept: bool = True,
    drop_incomplete: bool = False,
    like: Recipe | None = None,
    formula: str | None = None,
    dialect: Dialect | None = None,
    name: str = "the table",
    limits: Limits | None = None,
) -> ArmsTable:
    r"""Read a table of candidates by the roles of its columns; a model makes the features.

    Parameters
    ----------
    columns : mapping of str to str, optional
        Roles of columns: name, number, category, yes/no, ignore, noise, cost, measurable. Those
        of the others are guessed (`finalist.tables.columns`).
    model, intercept, drop_incomplete
        As in `Arms.from_table`.
    like : Recipe, optional
        Make the features as those of other arms, instead.
    formula : str, optional
        Make the features by a formula, instead. It is evaluated as Python: see
        `Arms.from_formula`.
    dialect, name, limits
        As in `read_table`.

    Examples
    --------
    >>> found = read_candidates(b"id;Tone;Dose\nA;calm;1,5\nB;calm;2\nC;loud;4\n")
    >>> found.arms.feature_names, found.read_as
    (('Tone: loud', 'Dose', 'intercept'), 'semicolons, decimal comma')
    """
    if isinstance(source, str | PathLike) and Path(source).suffix.lower() == ".npy":
        arms = Arms.from_npy(source)
        return ArmsTable(arms.with_intercept() if intercept else arms)
    if not isinstance(source, Cells):
        source = tables.read(source, dialect, name=name, limits=limits)
    cells: Cells = source
    if formula is not None:
        made = reading.by_formula(cells, formula, columns, drop_incomplete=drop_incomplete)
        return _of(made, cells.read_as)
    made = reading.by_model(
        cells,
        columns,
        model=model,
        constant=intercept,
        drop_incomplete=drop_incomplete,
        like=like,
        most=MAX_NUMBERS if limits is None else 4 * limits.cells,
    )
    return _of(made, cells.read_as)
