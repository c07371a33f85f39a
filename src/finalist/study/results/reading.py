"""Results that a person gives back: pulls with their rewards, from Python or from a table.

A CSV file of pulls to measure has an empty column `reward`; a spreadsheet fills it and it comes
back here. An empty reward is a pull not measured yet. A bad cell is refused with its line and
column, and then nothing of the table is taken.

Text that a spreadsheet might run as a formula is written with an apostrophe in front, which is
removed again on reading.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from os import PathLike
from typing import Any

import numpy as np

from finalist.errors import ArmsError, RewardError
from finalist.study.results.results import Results
from finalist.study.results.table import Table, read_csv, read_frame
from finalist.text import show

_to_json = json.JSONEncoder(ensure_ascii=False).encode


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
    >>> as_results({3: 0.5, 4: 1}).value
    array([0.5, 1. ])
    >>> as_results([(3, 0.5), (3, 0.5)]).pull
    array([3])
    """
    if isinstance(results, Results):
        return results
    if isinstance(results, Mapping):
        return Results([*results.keys()], [*results.values()])
    table = _as_table(results, decimal)
    if table is not None:
        return results_of(table)
    if not isinstance(results, Iterable) or isinstance(results, bytes | bytearray):
        raise RewardError(f"results are {show(results)}; give {{pull: reward}}, pairs or a table.")
    pulls, rewards = _pairs(results, "(pull, reward)")
    return Results(pulls, rewards)


def read_results(
    source: str | PathLike[str] | bytes, *, decimal: str = ".", name: str = "the table"
) -> Results:
    r"""Read a CSV file, or the bytes of one, with the columns `pull_id` and `reward`.

    The file is UTF-8; commas, semicolons or tabs separate its cells. Column names may be in any
    case and order. A row with an empty reward is skipped; cells that a spreadsheet left out at
    the end of a row are empty. The column `arm` names the arm; other columns become notes.

    Parameters
    ----------
    source : str, path or bytes
    decimal : "." or ","
        The decimal mark. A separator of thousands is refused, never guessed.
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
    >>> content = b"Pull_ID;arm;reward;note\n7;tin;0,5;\n8;zinc;;\n9;lead;2;hot\n"
    >>> results = read_results(content, decimal=",")
    >>> results.pull, results.value
    (array([7, 9]), array([0.5, 2. ]))
    >>> results.arm, results.note
    (('tin', 'lead'), (None, '{"note": "hot"}'))
    """
    return results_of(read_csv(source, decimal=decimal, name=name))


def results_of(table: Table) -> Results:
    """Return the results in a table with the columns `pull_id` and `reward`."""
    roles = table.roles(("pull_id", "reward"))
    filled = [c is not None for c in table.texts(table.columns[roles["reward"]])]
    if not any(filled):
        raise table.error(
            f"{table.source and table.source + ': '}no reward is filled in. Put the measured "
            "values into the column 'reward'."
        )
    rows = [*compress(range(len(filled)), filled)]

    def column(j: int) -> list[Any]:
        return [*compress(table.columns[j], filled)]

    others = [j for j in range(len(table.names)) if j not in roles.values()]
    notes = {j: table.texts(column(j)) for j in others}
    if table.source:
        _check_named(table, others)
    return Results(
        table.numbers(column(roles["pull_id"]), whole=True),
        table.numbers(column(roles["reward"])),
        [_text(c) for c in table.texts(column(roles["arm"]))] if "arm" in roles else None,
        _as_notes({table.names[j]: cells for j, cells in notes.items()}),
        where=lambda i, role: table.where(rows[i], roles[role] if role else None),
        source=table.source,
    )


def as_history(table: Any, *, decimal: str = ".") -> Results:
    """Read measurements made before a study; each row stands for a pull.

    Parameters
    ----------
    table : data frame, path of a CSV file, or pairs
        With the columns `arm`, the name of an arm, and `reward`; other columns are ignored.
    decimal : "." or ","
        The decimal mark of a CSV file.

    Examples
    --------
    >>> as_history([("tin", 0.5), ("tin", 1)]).arm
    ('tin', 'tin')
    """
    if isinstance(table, Results):
        return table
    found = _as_table(table, decimal)
    if found is None:
        try:
            named, rewards = _pairs(table, "(arm, reward)")
        except (TypeError, RewardError):
            raise RewardError(
                "give earlier measurements as a data frame with the columns 'arm' and 'reward', or "
                "as pairs (arm, reward)."
            ) from None
        found = Table.of({"arm": named, "reward": rewards})
    roles = found.roles(("arm", "reward"))
    names = [*found.columns[roles["arm"]]]
    if not names:
        where = found.source and f"{found.source}: "
        raise found.error(f"{where}there are no measurements in this table.")
    if found.source:
        names = found.texts([name.strip() for name in names])
        if None in names:
            where = found.where(names.index(None), roles["arm"])
            raise found.error(f"{found.source}, {where}: the cell is empty.")
    for name in names:
        if not isinstance(name, str):
            raise ArmsError(f"an arm is named {name!r}; give its name as text.")
    return Results(
        np.arange(1, len(names) + 1),
        found.numbers(found.columns[roles["reward"]]),
        names,
        where=lambda i, role: found.where(i, roles[role] if role else None),
        source=found.source,
    )


def _as_table(given: Any, decimal: str) -> Table | None:
    """Return what a file or a data frame holds, None if it is neither."""
    if isinstance(given, str | PathLike):
        return read_csv(given, decimal=decimal)
    if isinstance(given, list | tuple | np.ndarray):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(given, eager_only=True, pass_through=True)
        return read_frame(frame) if isinstance(frame, nw.DataFrame) else None
    except nw.exceptions.DuplicateError as error:
        raise RewardError(f"columns with the same name: {error}. Rename them.") from error


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


def _check_named(table: Table, columns: Iterable[int]) -> None:
    """Refuse a file with cells in a column that has no name."""
    for j in columns:
        if not table.names[j]:
            row = next((i for i, cell in enumerate(table.columns[j]) if cell.strip()), None)
            if row is not None:
                raise table.error(
                    f"{table.source}, {table.where(row)}: column {j + 1} has no name. Name it in "
                    f"line {table.header}."
                )


def _as_notes(columns: Mapping[str, Sequence[Any]]) -> list[str | None] | None:
    """Return for each row the JSON text of what is there, None when nothing is."""
    used = {name: cells for name, cells in columns.items() if any(c is not None for c in cells)}
    if not used:
        return None
    keys = [_to_json(name) + ": " for name in used]

    def note(values: tuple[Any, ...]) -> str | None:
        pairs = zip(keys, values, strict=True)
        parts = [key + _to_json(_plain(value)) for key, value in pairs if value is not None]
        return "{" + ", ".join(parts) + "}" if parts else None

    return [note(values) for values in zip(*used.values(), strict=True)]


def _plain(cell: Any) -> str | int | float:
    """Return a value that JSON can hold."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def _text(cell: Any) -> str | None:
    return None if cell is None else str(cell)
