"""Results that a person gives back: pulls with their rewards, from Python or from a table.

A sheet of pulls to measure has an empty column `result`; a person fills it in and it comes back
here, as CSV, .xlsx, .ods, pasted cells or a data frame. An empty result is a pull not measured
yet, "failed" one that failed. A bad cell is refused with its line and column, and then nothing of
the table is taken.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import compress
from os import PathLike
from typing import Any

import numpy as np

from finalist.errors import FileFormatError, RewardError
from finalist.study.results.results import Results
from finalist.study.results.table import (
    NUMBERS,
    VALUES,
    as_notes,
    column_of,
    columns_of,
    error_of,
    place_of,
    pulls_of,
    rewards_of,
    values_of,
)
from finalist.tables import Cell, Cells, Dialect, Limits, read
from finalist.tables.escaping import unescape
from finalist.text import show


def as_results(
    results: Any,
    dialect: Dialect | None = None,
    *,
    own: Callable[[], Collection[str]] = tuple,
) -> Results:
    """Read results in any of the forms in which they can be told.

    Parameters
    ----------
    results : mapping, pairs, data frame or path
        {pull: reward}; (pull, reward) pairs; any data frame with the columns `pull_id` and
        `result` or `reward`; or a file. In a table an empty result is a pull not measured yet,
        the column `arm` names the arm, and other columns become notes. "failed" instead of a
        reward says that the measurement failed.
    dialect : Dialect, optional
        What is not to be found out about a file.
    own : callable
        Returns the names of the candidates' own columns, which are not notes.

    Raises
    ------
    RewardError
        A reward that is not a finite number, a pull that is not a whole number, or a pull with
        two rewards.
    FileFormatError
        A file that is not a table of results; with the line and the column.

    Examples
    --------
    >>> as_results({3: 0.5, 4: 1}).value
    array([0.5, 1. ])
    >>> as_results([(3, 0.5), (3, 0.5), (4, "failed")]).failed
    array([False,  True])
    """
    if isinstance(results, Results):
        return results
    if isinstance(results, Mapping):
        return Results([*results.keys()], [*results.values()])
    table = _as_table(results, dialect)
    if table is not None:
        return results_of(table, own())
    if not isinstance(results, Iterable) or isinstance(results, bytes | bytearray):
        raise RewardError(f"results are {show(results)}; give {{pull: reward}}, pairs or a table.")
    pulls, rewards = _pairs(results, "(pull, reward)")
    return Results(pulls, rewards)


def read_results(
    source: str | PathLike[str] | bytes,
    dialect: Dialect | None = None,
    *,
    own: Collection[str] = (),
    name: str = "the table",
    limits: Limits | None = None,
) -> Results:
    r"""Read a file, or the bytes of one, with the columns `pull_id` and `result`.

    Column names may be in any case and order. A row without a result is skipped; `reward` counts
    where `result` is empty or not there. The column `candidate` names the arm, as
    `arm` does in files of version 0.1.0; other columns become notes.

    Parameters
    ----------
    dialect : Dialect, optional
        What is not to be found out.
    own : collection of str
        The candidates' own columns, which are not notes.
    name : str
        What errors call the table if bytes are given.

    Raises
    ------
    FileFormatError
        With the line and the column of up to five bad cells.
    RewardError
        A pull with two different rewards or arms.

    Examples
    --------
    >>> content = b"Pull_ID;arm;result;note\n7;tin;0,5;\n8;zinc;;\n9;lead;2;hot\n"
    >>> results = read_results(content)
    >>> results.pull, results.value
    (array([7, 9]), array([0.5, 2. ]))
    >>> results.arm, results.note
    (('tin', 'lead'), (None, '{"note": "hot"}'))
    """
    return results_of(_read(source, dialect, name=name, limits=limits), own)


def results_of(table: Cells, own: Collection[str] = ()) -> Results:
    """Return the results in a table; columns of the candidates' `own` are not notes."""
    roles = columns_of(table, ("pull_id",))
    values, origin = values_of(table, [roles[role] for role in VALUES if role in roles])
    filled = [cell is not None for cell in values]
    if not any(filled):
        raise error_of(table)(
            f"{table.source and table.source + ': '}no result is filled in. Put the measured "
            "values into the column 'result'."
        )
    rows = [*compress(range(len(filled)), filled)]

    def column(name: str) -> list[Cell]:
        return [*compress(table.column(name), filled)]

    known = {name.lower() for name in (*roles.values(), *own, *map(unescape, own))}
    notes = {name: column(name) for name in table.names if name.lower() not in known}
    results = Results(
        pulls_of(table, roles["pull_id"], filled),
        rewards_of(table, [*compress(values, filled)]),
        [c if c is None or isinstance(c, str) else table.text(c) for c in column(roles["arm"])]
        if "arm" in roles
        else None,
        as_notes(notes),
        where=lambda i, role: place_of(table, rows[i], column_of(role, roles, origin, rows[i])),
        source=table.source,
    )
    results.read_as = table.read_as
    return results


def _as_table(given: Any, dialect: Dialect | None) -> Cells | None:
    """Return what a file or a data frame holds, None if it is neither."""
    if isinstance(given, str | PathLike):
        return _read(given, dialect)
    if isinstance(given, list | tuple | np.ndarray | bytes | bytearray):
        return None
    import narwhals as nw

    if not (nw.dependencies.is_into_dataframe(given) or isinstance(given, nw.DataFrame)):
        return None
    try:
        return _read(given, dialect)
    except FileFormatError as error:
        raise RewardError(str(error)) from error


def _pairs(pairs: Iterable[Any], form: str) -> tuple[list[Any], list[Any]]:
    """Return both sides of pairs."""
    first, second = [], []
    for pair in pairs:
        try:
            one, other = pair
        except (TypeError, ValueError):
            raise RewardError(f"{show(pair)} is not a pair; give {form}.") from None
        first.append(one)
        second.append(other)
    return first, second


def _read(source: Any, dialect: Dialect | None, **words: Any) -> Cells:
    """Read a table in which the results settle the decimal sign, not what else stands there."""
    return read(source, dialect, expected=NUMBERS, **words)
