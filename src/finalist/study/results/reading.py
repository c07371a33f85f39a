"""Results that a person gives back: pulls with their rewards, from Python or from a table.

A CSV file of pulls to measure has an empty column `reward`; a spreadsheet fills it and it comes
back here. Nothing is guessed: a cell that is not plainly a number is refused with its line and
column, and then nothing of the table is taken. An empty reward is a pull not measured yet.

Text that a spreadsheet might run as a formula is written with an apostrophe in front, which is
removed again on reading.
"""

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from finalist.errors import RewardError
from finalist.study.results.csv import read_results
from finalist.study.results.frames import from_frame
from finalist.study.results.values import Results, from_pairs


def as_results(results: Any, *, decimal: str = ".") -> Results:
    """Read results in any of the forms in which they can be told.

    Parameters
    ----------
    results : mapping, pairs, data frame or path
        {pull: reward}; (pull, reward) pairs; any data frame with the columns `pull_id` and
        `reward`; or a CSV file. In a table an empty reward is a pull not measured yet, the
        column `arm` names the arm, and other columns become notes.
    decimal : "." or ","
        The decimal mark of a CSV file.

    Raises
    ------
    RewardError
        A reward that is not a finite number, a pull that is not a whole number, or a pull with
        two rewards.
    FileFormatError
        A file that is not a table of results; with the line and the column.

    Examples
    --------
    >>> as_results({3: 0.5, 4: 1}).rewards
    array([0.5, 1. ])
    >>> as_results([(3, 0.5), (3, 0.5)]).pulls
    array([3])
    """
    if isinstance(results, str | PathLike):
        return read_results(results, decimal=decimal)
    if isinstance(results, Mapping):
        return from_pairs(results.items())
    if not isinstance(results, list | tuple | np.ndarray):
        import narwhals as nw

        try:
            frame = nw.from_native(results, eager_only=True, pass_through=True)
            if isinstance(frame, nw.DataFrame):
                return from_frame(frame)
        except nw.exceptions.DuplicateError as error:
            raise RewardError(f"columns with the same name: {error}. Rename them.") from error
    return from_pairs(results)
