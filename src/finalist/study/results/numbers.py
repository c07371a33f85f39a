"""Numbers from the cells of a CSV file; anything not plainly a number is rejected."""

import math
import re

import numpy as np
from jaxtyping import Bool, Float, Int64

from finalist.study.results.values import INT64, size_problem
from finalist.text import show

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d{1,19})(\.0*)?", re.ASCII)


def integers(
    cells: list[str], decimal: str
) -> tuple[Int64[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Convert the cells of a column to integers; return also which cells are not one."""
    n = len(cells)
    try:
        if _is_plain(cells):
            return np.fromiter(map(int, cells), np.int64, n), np.zeros(n, dtype=bool)
    except (ValueError, OverflowError):
        pass
    values = [_integer(cell, decimal) for cell in cells]
    wrong = np.fromiter((value is None for value in values), bool, n)
    return np.fromiter((value or 0 for value in values), np.int64, n), wrong


def _integer(cell: str, decimal: str) -> int | None:
    """Return a whole number, also from 3.0, as some spreadsheets write it."""
    match = _WHOLE.fullmatch(_dotted(cell, decimal))
    value = None if match is None else int(match[1])
    return value if value is not None and INT64.min <= value <= INT64.max else None


def floats(cells: list[str], decimal: str) -> Float[np.ndarray, " n"]:
    """Convert the cells of a column; what is not a number becomes nan."""
    n = len(cells)
    try:
        if _is_plain(cells):
            texts = cells if decimal == "." else (_dotted(cell, decimal) for cell in cells)
            return np.fromiter(map(float, texts), float, n)
    except ValueError:
        pass
    return np.fromiter((_float(cell, decimal) for cell in cells), float, n)


def _float(cell: str, decimal: str) -> float:
    text = _dotted(cell, decimal)
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _is_plain(cells: list[str]) -> bool:
    """Return whether Python reads these numbers as people do: no 1_000, no foreign digits."""
    text = "".join(cells)
    return text.isascii() and "_" not in text


def _dotted(cell: str, decimal: str) -> str:
    """Return a number as Python writes it; with a decimal comma, a point makes it invalid."""
    text = cell.strip()
    if decimal == ".":
        return text
    return "" if "." in text else text.replace(",", ".")


def reward_cell_problem(cell: str, decimal: str) -> str:
    """Say why a cell is not a reward."""
    other = "," if decimal == "." else "."
    if other in cell:
        mark = "point" if decimal == "." else "comma"
        hint = f"; use decimal={other!r}" if math.isfinite(_float(cell, other)) else ""
        return f"{show(cell)} is not a number with a decimal {mark} and nothing else{hint}"
    value = _float(cell, decimal)
    return f"{show(cell)} {size_problem(value)}"
