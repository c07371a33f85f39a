"""Old results: measurements made before a study, from a table or as pairs, and sigma from them.

A table has a column that names candidates and one with results. Those called `arm`, `candidate` or
`name`, and `result` or `reward`, are taken; otherwise a column that is the only one with text, or
the only one with numbers, and that is said. Rows without a result are left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from finalist.errors import ArmsError, FileFormatError, RewardError, UnclearTableError
from finalist.inference.replicates import SigmaEstimate, sigma_of
from finalist.inference.statistics import reward_problem
from finalist.study.results.results import FAILED, Results
from finalist.study.results.table import values_of
from finalist.tables import Cell, Cells, Dialect, read
from finalist.tables.numbers import MISSING
from finalist.text import counted, first_few, listed, show

#: Columns that are recognised, in this order.
CANDIDATE, RESULT = ("arm", "candidate", "name"), ("result", "reward")
_NONE = MISSING | {FAILED}
#: Bad cells that one message names.
_MAX_SHOWN = 5


@dataclass(frozen=True, eq=False)
class OldResults:
    """A table of old results.

    Attributes
    ----------
    results : Results
        `arm` has the names and `value` the results, in the order of the rows.
    said : tuple of str
        How it was read and what was left out, as parts of a sentence.
    """

    results: Results
    said: tuple[str, ...] = ()


def estimate_sigma(
    table: Any, *, candidate_column: str | None = None, result_column: str | None = None
) -> SigmaEstimate:
    """Estimate sigma, the noise of one measurement, from repeated measurements.

    The standard deviation within candidates, pooled over all that were measured more than once,
    with its degrees of freedom and an exact interval for normal noise. It needs no model. It is an
    estimate: a study takes sigma as unknown unless you state a number.

    Parameters
    ----------
    table : path, data frame, or pairs
        With one row for each measurement, or pairs (candidate, result).
    candidate_column, result_column : str, optional
        The columns with names and results. Without them: `arm`, `candidate` or `name`, and `result`
        or `reward`; or else the only column with text, and the only one with numbers.

    Returns
    -------
    SigmaEstimate

    Raises
    ------
    EstimateError
        See `sigma_of`.

    Examples
    --------
    >>> import finalist as fl
    >>> found = fl.estimate_sigma([("tin", 1.2), ("tin", 0.8), ("zinc", 3.1), ("zinc", 2.7)])
    >>> print(found)
    about 0.28, from 4 repeated measurements of 2 candidates (2 degrees of freedom); with 95 %
    confidence between 0.15 and 1.8
    >>> found.degrees_of_freedom
    2
    """
    old = as_history(table, candidate_column=candidate_column, result_column=result_column)
    return sigma_of(old.arm, old.value)


def as_history(
    table: Any,
    *,
    dialect: Dialect | None = None,
    candidate_column: str | None = None,
    result_column: str | None = None,
) -> Results:
    """Read measurements made before a study; each row stands for a pull.

    Parameters
    ----------
    table : path, data frame, or pairs
        As for `estimate_sigma`.
    dialect : Dialect, optional
        Of a file, as far as it is not to be found out.

    Examples
    --------
    >>> as_history([("tin", 0.5), ("tin", 1)]).arm
    ('tin', 'tin')
    """
    if isinstance(table, Results):
        return table
    if isinstance(table, list | tuple | np.ndarray):
        return _of_pairs(table)
    try:
        cells = read(table, dialect)
    except FileFormatError:
        if isinstance(table, Iterable) and not isinstance(table, str | bytes | PathLike):
            return _of_pairs(table)
        raise
    return old_results(cells, candidate_column, result_column).results


def _of_pairs(pairs: Iterable[Any]) -> Results:
    names, values = [], []
    for pair in pairs:
        try:
            name, value = pair
        except (TypeError, ValueError):
            raise RewardError(
                f"{show(pair)} is not a pair; give old results as pairs (candidate, result), or as "
                "a table with a column for each."
            ) from None
        if not isinstance(name, str):
            raise ArmsError(f"a candidate is named {name!r}; give its name as text.")
        names.append(name)
        values.append(value)
    numbers = np.arange(1, len(names) + 1)
    found = Results(numbers, values, names, where=lambda i, what: f"row {i + 1}, column {what!r}")
    if found.failed.all():
        raise RewardError("there are no measurements in this table.")
    return found.taken(~found.failed)


def old_results(
    cells: Cells, candidate_column: str | None = None, result_column: str | None = None
) -> OldResults:
    r"""Find names and results in a table.

    Examples
    --------
    >>> found = old_results(read(b"Sorte;Ertrag\nA;1,5\nA;1,7\nB;\n"))
    >>> found.results.arm, found.results.value
    (('A', 'A'), array([1.5, 1.7]))
    >>> found.said
    ('semicolons, decimal comma', "candidates from 'Sorte', results from 'Ertrag'", '1 row ...')
    """
    none = FileFormatError(f"{cells.top()}there are no measurements in this table.")
    if not len(cells):
        raise none
    named = _named(cells, candidate_column, CANDIDATE)
    valued = _named(cells, result_column, RESULT)
    guessed = not (named and valued)
    if not named:
        texts = [c for c in cells.names if c not in valued and _kind(cells, c) == "text"]
        named = [_only(cells, texts, "text", "names the candidates", CANDIDATE)]
    if not valued:
        numbers = [c for c in cells.names if c not in named and _kind(cells, c) == "number"]
        valued = [_only(cells, numbers, "numbers", "has the results", RESULT)]
    if guessed and np.isfinite(cells.number(valued[0])):
        raise FileFormatError(
            f"{cells.top()}{show(valued[0])} is a number, and the first row names the columns. Put "
            "a row above it: candidate, result."
        )
    name, (values, _) = named[0], values_of(cells, valued, _NONE)
    rows = [i for i, value in enumerate(values) if value is not None]
    _check_cells(cells, name, rows, valued[0], values)
    if not rows:
        raise none
    said = [cells.read_as, *cells.remarks]
    if guessed or len(named) > 1:
        said.insert(1, f"candidates from {show(name)}, results from {show(valued[0])}")
    if len(rows) < len(cells):
        said.append(f"{counted(len(cells) - len(rows), 'row')} without a result left out")
    names = [cells.text(cells.column(name)[i]).strip() for i in rows]
    found = np.array([cells.number(values[i]) for i in rows])
    results = Results(np.arange(1, len(rows) + 1), found, names)
    return OldResults(results, tuple(filter(None, said)))


def _named(cells: Cells, given: str | None, known: Sequence[str]) -> list[str]:
    """Return the columns that are named for a purpose, in the order in which they count."""
    if given is not None:
        cells.column(given)  # or refuse
        return [given]
    lower = {name.lower(): name for name in reversed(cells.names)}
    return [lower[word] for word in known if word in lower]


def _kind(cells: Cells, column: str) -> str:
    """Return "number" if all cells with something in them are numbers, "text" if none is."""
    there = [cell for cell in cells.column(column) if not _is_none(cell)]
    numbers = sum(np.isfinite(cells.number(cell)) for cell in there)
    if numbers == len(there):
        return "number" if there else ""
    return "" if numbers else "text"


def _is_none(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _NONE)


def _only(cells: Cells, found: Sequence[str], kind: str, purpose: str, known: Sequence[str]) -> str:
    """Return the only column that can be meant."""
    if len(found) == 1:
        return found[0]
    count = "several have" if found else "none has"
    raise UnclearTableError(
        f"{cells.top()}no column is called {listed([repr(word) for word in known], 'or')}, and "
        f"{count} {kind}: it is not clear which {purpose}. The columns are "
        f"{first_few([show(one) for one in cells.names], 20)}. Rename one, or say which:",
        ["candidate-column=NAME" if known is CANDIDATE else "result-column=NAME"],
    )


def _check_cells(
    cells: Cells, name: str, rows: Sequence[int], column: str, values: Sequence[Cell]
) -> None:
    """Refuse results without a name, and results that are not numbers; the first few are named."""
    bad = []
    for i in rows:
        problem = reward_problem(cells.number(values[i]))
        if cells.column(name)[i] is None:
            bad.append(f"{cells.where(i, name)}: the cell is empty")
        elif problem is not None:
            bad.append(f"{cells.where(i, column)}: {show(values[i])} {problem}")
    if bad:
        more = [] if len(bad) <= _MAX_SHOWN else [f"and {len(bad) - _MAX_SHOWN} more cells"]
        raise FileFormatError(
            f"{'; '.join(bad[:_MAX_SHOWN] + more)}. Nothing was stored. Correct the table; leave a "
            "result empty that was not measured."
        )
