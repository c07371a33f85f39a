"""Numbers in text, and which of the two decimal signs a table uses.

Nothing is guessed. "1,5" can only have a decimal comma and "1.5" only a decimal point; "1.000" is
one or a thousand. A table whose cells settle it is read that way, and points or commas that group
thousands are then read as such. A table that leaves both readings open is refused with both.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from finalist.shapes import Float

#: What people write instead of a hyphen, and between groups of three digits.
_MINUS, _SPACES, _APOSTROPHES = "\u2212\u2013", "\u00a0\u202f\u2009 ", "'\u2019"


def _pattern(decimal: str, group: str) -> re.Pattern[str]:
    plain = rf"(?:\d+(?:{decimal}\d*)?|{decimal}\d+)"
    groups = "|".join(rf"(?:{mark}\d{{3}})+" for mark in (group, f"[{_SPACES}]", "['\u2019]"))
    grouped = rf"[1-9]\d{{0,2}}(?:{groups})(?:{decimal}\d*)?"
    return re.compile(rf"[+-]?(?:{plain}|{grouped})(?:[eE][+-]?\d+)?", re.ASCII)


_PATTERNS = {".": _pattern(r"\.", ","), ",": _pattern(",", r"\.")}
#: Characters of a number.
LONGEST = 400
_SIGNS = ("point", "comma", "both")
#: Words for a missing number.
MISSING = frozenset({"na", "n/a", "n.a.", "nan", "null", "none", "-", "--", "?", "."})
#: A number with something behind it, such as a unit.
_UNIT = re.compile(r"[+-]?[\d.,]+\s*([^\d\s.,+-][^\d]{0,9})")


def is_missing(text: str) -> bool:
    """Tell whether a cell says that there is no number: n/a, failed.

    Examples
    --------
    >>> is_missing(" N/A "), is_missing("failed"), is_missing("0")
    (True, True, False)
    """
    return text.strip().lower() in MISSING or text.strip().lower() == "failed"


def number(text: str, decimal: str = ".") -> float:
    """Return the number that a cell holds, nan if it is not plainly one.

    Groups of three digits may be separated by spaces, apostrophes, or the sign that is not the
    decimal one. No 1_000, no foreign digits, no words.

    Examples
    --------
    >>> number(" -1,5e2", ","), number("1.000", ","), number("1.000"), number("1 000")
    (-150.0, 1000.0, 1.0, 1000.0)
    >>> number("1.5", ","), number("nan"), number("1.00,5", ",")
    (nan, nan, nan)
    """
    plain = text.strip()
    if len(plain) > LONGEST:
        return math.nan
    if plain[:1] in _MINUS:
        plain = "-" + plain[1:] if plain else plain
    if _PATTERNS[decimal].fullmatch(plain) is None:
        return math.nan
    for mark in (*_SPACES, *_APOSTROPHES, "," if decimal == "." else "."):
        plain = plain.replace(mark, "")
    return float(plain.replace(",", "."))


def of_cell(cell: Any, decimal: str) -> float:
    """Return the number in a cell of any type; nan for what is not one, and for infinity."""
    if isinstance(cell, str):
        value = number(cell, decimal)
    elif isinstance(cell, bool | np.bool_) or not isinstance(cell, int | float | np.number):
        return math.nan
    else:
        value = float(cell)
    return value if math.isfinite(value) else math.nan


def of_cells(cells: Sequence[Any], decimal: str) -> Float[np.ndarray, " N"]:
    """Return the numbers of a column, nan where there is none: fast if all cells are plain."""
    try:
        every = "".join(cells)
        # Python also reads 1_000, foreign digits, nan and inf; people write none of these.
        if every.isascii() and not {*"_nNiI"} & {*every}:
            if decimal == ",":
                if "." in every:
                    raise ValueError
                cells = [cell.replace(",", ".") for cell in cells]
            found = np.fromiter(map(float, cells), np.float64, len(cells))
            found[np.isinf(found)] = np.nan  # 1e999
            return found
    except (TypeError, ValueError, OverflowError):
        pass
    return np.fromiter((of_cell(cell, decimal) for cell in cells), np.float64, len(cells))


def unit_of(text: str) -> str:
    """Return what stands behind a number, "%" in "12 %"; empty if there is nothing.

    Examples
    --------
    >>> unit_of("12 %"), unit_of("3,5kg"), unit_of("12"), unit_of("A4")
    ('%', 'kg', '', '')
    """
    match = _UNIT.fullmatch(text.strip())
    return "" if match is None else match[1].strip()


class Decimal:
    """What the cells of a table say about its decimal sign.

    Attributes
    ----------
    point, comma, both : (int, int) or None
        Column and row of the first cell that can only have this sign, or can have both.
    grouped : (int, int) or None
        Of the first cell with a comma that can have both, in a column that does not settle it.

    Examples
    --------
    >>> seen = Decimal([["1.000", "2,5"]])
    >>> seen.point, seen.comma, seen.both
    (None, (0, 1), (0, 0))
    """

    def __init__(self, columns: Iterable[Sequence[Any]]) -> None:
        self.point: tuple[int, int] | None = None
        self.comma: tuple[int, int] | None = None
        self.both: tuple[int, int] | None = None
        self.grouped: tuple[int, int] | None = None
        for j, cells in enumerate(columns):
            self._look(j, cells)

    def _look(self, j: int, cells: Sequence[Any]) -> None:
        """Look at a column, if it holds numbers rather than text."""
        rows = [i for i, c in enumerate(cells) if isinstance(c, str) and not is_missing(c)]
        texts = [cells[i] for i in rows]
        every = "".join(texts)
        marks = [mark for mark in ".," if mark in every]
        if not marks:
            return
        kinds: Iterable[str] = map(kind_of, texts)
        # In a column of numbers with one of the signs, one cell that settles it is enough.
        enough = len(marks) == 1 and not np.isnan(of_cells(texts, marks[0])).any()
        if not enough:
            kinds = list(kinds)
            if 2 * sum(map(bool, kinds)) < len(texts):
                return
        grouped: tuple[int, int] | None = None
        settled = False
        for i, kind in zip(rows, kinds, strict=False):
            if kind in _SIGNS and getattr(self, kind) is None:
                setattr(self, kind, (j, i))
            if kind == "both" and "," in cells[i] and grouped is None:
                grouped = (j, i)
            settled = settled or kind in ("point", "comma")
            if enough and settled:
                break
        if not settled and self.grouped is None:
            self.grouped = grouped


def kind_of(text: str) -> str:
    """Return which decimal sign a number has: "point", "comma", "both" or "none"; "" for text.

    Examples
    --------
    >>> [kind_of(text) for text in ("1.5", "1,5", "1.000", "0.125", "1,000.5", "7", "A.1")]
    ['point', 'comma', 'both', 'point', 'point', 'none', '']
    """
    one, other = number(text, "."), number(text, ",")
    if one == other:
        return "none"  # there is no sign in it
    if math.isnan(one):
        return "" if math.isnan(other) else "comma"
    return "point" if math.isnan(other) else "both"
