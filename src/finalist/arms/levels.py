"""Columns of categories: which levels there are, and the 0/1 features that they become.

A cell is a level by its text, the same whatever the table came from: 1, 1.0 and "1.00" are the
level "1", and True is "true". Every level but the first, the reference, becomes a feature, whose
effect is that of the level against the reference (treatment contrasts; Chambers and Hastie 1992,
Statistical Models in S, Sect. 2.3.2). A yes/no column is one feature, yes against no.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from finalist.errors import ArmsError
from finalist.shapes import Float
from finalist.tables.columns import NO, YES
from finalist.text import first_few, show

#: The levels of every yes/no column.
ANSWERS = ("no", "yes")
#: A decimal number as people write it. "007" is a code and stays as it is.
_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]*)\.([0-9]+)")
#: Levels that an error names.
_MAX_NAMED = 12


def level_text(cell: object) -> str:
    """Return the level that a cell stands for; empty if the cell is.

    Examples
    --------
    >>> [level_text(cell) for cell in (1, 1.0, "1", " 1.00 ", np.float64(0.25), 1e-5)]
    ['1', '1', '1', '1', '0.25', '0.00001']
    >>> [level_text(cell) for cell in (True, "FALSE", " calm", "007", None, float("nan"))]
    ['true', 'false', 'calm', '007', '', '']
    """
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float):
        text = np.format_float_positional(cell, trim="-")
        return "0" if text == "-0" else text
    text = str(cell).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return "0" if text == "-0" else text
    sign, whole, rest = found[1], found[2], found[3].rstrip("0")
    if rest:
        return f"{sign}{whole}.{rest}"
    return whole if whole == "0" else sign + whole


def answer(cell: object) -> bool | None:
    """Return what a cell of a yes/no column says; None if it is neither yes nor no.

    Examples
    --------
    >>> [answer(cell) for cell in ("Yes", "n", True, 0.0, "1", "perhaps", None)]
    [True, False, True, False, True, None, None]
    """
    word = level_text(cell).lower()
    return True if word in YES else False if word in NO else None


def levels_of(column: str, cells: Sequence[Any]) -> tuple[str, ...]:
    """Return the levels of a column, sorted as texts; the first is the reference.

    Examples
    --------
    >>> levels_of("Tone", ("friendly", "calm ", "friendly"))
    ('calm', 'friendly')
    """
    texts = [level_text(cell) for cell in cells]
    _refuse_empty(column, texts)
    return tuple(sorted(set(texts)))


def contrasts(
    column: str, levels: Sequence[str], cells: Sequence[Any]
) -> dict[str, Float[np.ndarray, " N"]]:
    """Return the 0/1 features of a column, by their names.

    Parameters
    ----------
    levels : sequence of str
        The reference first; `ANSWERS` for a yes/no column.

    Raises
    ------
    ArmsError
        If a cell is empty, or is none of the levels.

    Examples
    --------
    >>> contrasts("Tone", ("calm", "friendly", "stern"), ["stern", "calm"])
    {'Tone: friendly': array([0., 0.]), 'Tone: stern': array([1., 0.])}
    >>> contrasts("oven", ANSWERS, ["Y", False])
    {'oven': array([1., 0.])}
    """
    if tuple(levels) == ANSWERS:
        said = [answer(cell) for cell in cells]
        if None in said:
            i = said.index(None)
            raise ArmsError(
                f"row {i + 1}, column {column!r}: {show(cells[i])} is neither yes nor no. "
                "Write yes or no."
            )
        return {column: np.array(said, dtype=np.float64)}
    texts = [level_text(cell) for cell in cells]
    _refuse_empty(column, texts)
    number = {level: i for i, level in enumerate(levels)}
    for i, text in enumerate(texts):
        if text not in number:
            raise ArmsError(
                f"row {i + 1}, column {column!r}: {show(text)} is not a level that these "
                f"candidates have; there are {first_few(list(levels), _MAX_NAMED)}. Correct the "
                "cell; another level needs a new study."
            )
    which = np.array([number[text] for text in texts])
    return {
        f"{column}: {level}": (which == i).astype(np.float64)
        for i, level in enumerate(levels)
        if i > 0
    }


def _refuse_empty(column: str, texts: Sequence[str]) -> None:
    if "" in texts:
        raise ArmsError(
            f"row {texts.index('') + 1}, column {column!r}: the cell is empty. Fill it in, leave "
            "the candidate out, or ignore the column."
        )
