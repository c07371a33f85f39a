"""Results from a data frame of any library."""

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from finalist.errors import RewardError
from finalist.study.results.tables import NOT_MEASURED, as_notes, find_columns, refuse
from finalist.study.results.values import LARGEST_EXACT, Results, once, pull_problem, reward_problem
from finalist.text import show

if TYPE_CHECKING:
    import narwhals as nw

_SURROGATE = re.compile("[\ud800-\udfff]")


def from_frame(frame: "nw.DataFrame[Any]") -> Results:
    """Read a data frame with the columns `pull_id` and `reward`; an empty reward is skipped."""
    columns = find_columns(frame.columns, RewardError, "")
    cells = _frame_cells(frame, columns.reward)
    rows = [i for i, cell in enumerate(cells) if cell is not None]
    if not rows:
        raise RewardError(NOT_MEASURED)

    def column(j: int) -> list[Any]:
        values = _frame_cells(frame, j)
        return [values[i] for i in rows]

    rewards, pulls = column(columns.reward), [_whole(cell) for cell in column(columns.pull)]
    problems = _problems(columns.pull, pulls, pull_problem)
    problems |= _problems(columns.reward, rewards, reward_problem)

    def describe(i: int, j: int) -> str:
        return f"row {rows[i] + 1}, column {columns.names[j]!r}: {problems[i, j]}"

    refuse(problems, describe, RewardError, "")
    arms = [None] * len(rows) if columns.arm is None else map(_text, column(columns.arm))
    notes = [list(map(_plain, column(j))) for j in columns.notes]
    return once(
        np.array(pulls, dtype=np.int64),
        np.array(rewards, dtype=float),
        as_notes([columns.names[j] for j in columns.notes], notes, len(rows)),
        tuple(arms),
        "",
        lambda i: f"row {rows[i] + 1}",
    )


def _problems(
    j: int, values: list[Any], check: Callable[[object], str | None]
) -> dict[tuple[int, int], str]:
    """Say what is wrong with the cells of column j, by row and column."""
    found = ((i, value, check(value)) for i, value in enumerate(values))
    return {(i, j): f"{show(value)} {text}" for i, value, text in found if text is not None}


def _frame_cells(frame: "nw.DataFrame[Any]", j: int) -> list[Any]:
    """Return the cells of a column; missing ones and blank text are None."""
    series = frame[:, j]
    missing = series.is_null().to_list()
    return [
        None if gone or (isinstance(cell, str) and not cell.strip()) else cell
        for cell, gone in zip(series.to_list(), missing, strict=True)
    ]


def _whole(cell: Any) -> Any:
    """Turn 3.0 into 3: pandas turns integers into floats when one is missing."""
    if not isinstance(cell, float | np.floating):
        return cell
    value = float(cell)
    return int(value) if abs(value) <= LARGEST_EXACT and value.is_integer() else cell


def _text(cell: Any) -> str | None:
    """Return text that can be stored; a lone surrogate cannot."""
    text = None if cell is None else str(cell)
    if text is not None and not text.isascii() and _SURROGATE.search(text):
        raise RewardError(f"{show(text)} is not valid Unicode. Correct the text.")
    return text


def _plain(cell: Any) -> str | int | float | None:
    """Return a value that JSON can hold."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is None or isinstance(value, int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else _text(value)
