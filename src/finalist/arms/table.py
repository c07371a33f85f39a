"""Files of arms with columns beside the features: measurable or not, size of the noise, cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from finalist.arms import files
from finalist.arms.arms import Arms
from finalist.arms.parts import any_of, merged
from finalist.arms.recipes import plain
from finalist.errors import FileFormatError

_YES, _NO = ("1", "1.0", "true", "yes", "y"), ("0", "0.0", "false", "no", "n", "")


@dataclass(frozen=True, eq=False)
class ArmsTable:
    """Arms, with the size of the noise and the cost of a pull of each.

    Attributes
    ----------
    arms : Arms
    sigma, cost : (K,) array or None
        None if the file has no such column.
    """

    arms: Arms
    sigma: Float[np.ndarray, " K"] | None = None
    cost: Float[np.ndarray, " K"] | None = None

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

        return ArmsTable(both, padded(self.sigma), padded(self.cost))


def read_table(
    path: str | PathLike[str],
    *,
    measurable: str | None = None,
    sigma: str | None = None,
    cost: str | None = None,
) -> ArmsTable:
    r"""Read a file of arms in which some columns are not features.

    Parameters
    ----------
    path : path-like
        CSV with a header line, .parquet, or .npy (features alone).
    measurable : str, optional
        The column that says which arms can be pulled: yes or no, true or false, 1 or 0.
    sigma, cost : str, optional
        The columns with the size of the noise and the cost of a pull of each arm.

    Returns
    -------
    ArmsTable

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "arms.csv"
    >>> _ = file.write_text("name,dose,price,stock\na,1,5,yes\nb,2,7,no\n")
    >>> table = read_table(file, measurable="stock", cost="price")
    >>> table.arms.measurable.tolist(), table.cost, table.arms.feature_names
    ([True, False], array([5., 7.]), ('dose',))
    >>> folder.cleanup()
    """
    aside = [column for column in (measurable, sigma, cost) if column is not None]
    if Path(path).suffix.lower() == ".npy":
        if aside:
            raise FileFormatError(f"{path}: a .npy file has no column names, so no {aside[0]!r}.")
        return ArmsTable(Arms.from_npy(path))
    table = files.read_file(path, aside)
    cells = dict(table.columns())
    texts = {column: tuple(map(str, plain(cells[column]))) for column in aside}
    parts = merged(table)
    owner = parts.owners()
    if measurable is not None:
        marks = _marks(path, measurable, texts[measurable])
        parts = parts.with_roles(any_of(marks, owner), None)
    numbers: dict[str | None, Float[np.ndarray, " K"]] = {}
    for column in (sigma, cost):
        if column is not None:
            numbers[column] = _numbers(path, column, texts[column], owner)
            cells[column] = numbers[column][owner]
    arms = Arms._of(replace(parts, cells=cells))
    return ArmsTable(arms, numbers.get(sigma), numbers.get(cost))


def is_readable(role: str, cell: str) -> bool:
    """Return whether a cell says what its column is for: "measurable", "sigma" or "cost".

    Examples
    --------
    >>> is_readable("measurable", "Yes"), is_readable("cost", "-1"), is_readable("sigma", "x")
    (True, False, False)
    """
    if role == "measurable":
        return cell.strip().lower() in (*_YES, *_NO)
    return 0 < files.number(cell) < np.inf


def _marks(path: str | PathLike[str], column: str, cells: Sequence[str]) -> Bool[np.ndarray, " N"]:
    words = [cell.strip().lower() for cell in cells]
    for i, word in enumerate(words):
        if not is_readable("measurable", word):
            raise FileFormatError(
                f"{path}, row {i + 1} below the header, column {column!r}: {cells[i]!r}; write yes "
                "or no."
            )
    return np.array([word in _YES for word in words])


def _numbers(
    path: str | PathLike[str], column: str, cells: Sequence[str], owner: Int[np.ndarray, " N"]
) -> Float[np.ndarray, " K"]:
    """Return one number for each arm; its rows must agree."""
    values = np.full(int(owner.max()) + 1, np.nan)
    for i, (cell, arm) in enumerate(zip(cells, owner.tolist(), strict=True)):
        value = files.number(cell)
        here = f"{path}, row {i + 1} below the header, column {column!r}"
        if not is_readable("sigma", cell):
            raise FileFormatError(f"{here}: {cell!r}; it must be a positive number.")
        if not np.isnan(values[arm]) and values[arm] != value:
            raise FileFormatError(
                f"{here}: {cell!r}, and {values[arm]:g} for the same features further up; rows "
                "with the same features are one arm."
            )
        values[arm] = value
    return values
