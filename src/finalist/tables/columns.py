"""What each column of a table of candidates is for: guessed from its cells, and changed by a word.

A guess is shown with its reason, never silent. Where a wrong guess would cost an experiment, as
for a column 1, 2, 3, ... that is a row number or a dose, there is a question instead.
"""

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Literal, get_args

import numpy as np

from finalist.errors import FileFormatError, UnclearTableError
from finalist.tables.cells import Cell, Cells
from finalist.tables.numbers import MISSING, unit_of
from finalist.tables.reader import is_count
from finalist.text import show

Role = Literal["name", "number", "category", "yes/no", "ignore", "noise", "cost", "measurable"]
ROLES: tuple[Role, ...] = get_args(Role)
#: Roles that one column can have.
SINGLE: tuple[Role, ...] = ("name", "noise", "cost", "measurable")
#: Roles that only a table of what is measured has.
BESIDE: tuple[Role, ...] = SINGLE[1:]
YES, NO = frozenset({"yes", "y", "true", "1", "1.0"}), frozenset({"no", "n", "false", "0", "0.0"})
#: Days and times of day, as text.
_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:\d{2}(:\d{2})?)?|\d{1,2}([./])\d{1,2}\3\d{2,4}|"
    r"\d{1,2}:\d{2}(:\d{2})?"
)
_NAMES = ("name", "candidate", "arm")
#: Names of columns that identify.
_ID = re.compile(r"(?i)(^|[\s_-])(id|nr|no|number|nummer|index|ean|sku)\.?$|^#$")
#: Levels of a category, characters of text that describes something, rows that may be numbered.
MAX_LEVELS, LONG, FEW_ROWS = 20, 60, 5


@dataclass(frozen=True)
class Column:
    """A column and what it is for.

    Attributes
    ----------
    why : str
        What was found in it; "as you say" for a role that was given.
    question : str
        What has to be answered before the table is used; empty if nothing.
    """

    name: str
    role: Role
    why: str
    question: str = ""


def columns_of(table: Cells, given: Mapping[str, str] | None = None) -> tuple[Column, ...]:
    r"""Return what the columns of a table are for.

    Text with few values is a category, text that is all different names the candidates (the first
    such column) or is ignored, and so is long text. Yes and no are answers, numbers are numbers. A
    number that counts the rows is asked about.

    Parameters
    ----------
    given : mapping of str to str, optional
        Roles of some columns, in the user's words.

    Examples
    --------
    >>> from finalist.tables import read
    >>> found = columns_of(read(b"id,Tone,Dose\nA,calm,1\nB,calm,2\nC,loud,4\n"))
    >>> [(column.name, column.role) for column in found]
    [('id', 'name'), ('Tone', 'category'), ('Dose', 'number')]
    """
    roles = _checked(table, given or {})
    found = {name: Column(name, role, "as you say") for name, role in roles.items()}
    named = any(column.role == "name" for column in found.values())
    label = None if named else _label(table, roles)
    for name in table.names:
        if name in found:
            continue
        if name == label:
            found[name] = Column(name, "name", "names the candidates")
        else:
            found[name] = _guess(name, table)
    return tuple(found[name] for name in table.names)


def refuse_questions(columns: Sequence[Column], table: Cells) -> None:
    """Raise if something has to be answered before these columns are used."""
    asked = [column for column in columns if column.question]
    if asked:
        choices = [said(asked[0].name, role) for role in ("ignore", "number")]
        raise UnclearTableError(f"{table.top()}{asked[0].question}", choices)


def said(column: str, role: str) -> str:
    """Return how to say that a column has a role.

    Examples
    --------
    >>> said("Nr", "ignore"), said("Row number", "ignore")
    ('column=Nr=ignore', "column='Row number=ignore'")
    """
    return f"column={shlex.quote(f'{column}={role}')}"


def with_role(columns: Sequence[Column], role: Role) -> list[str]:
    """Return the names of the columns with a role."""
    return [column.name for column in columns if column.role == role]


def _checked(table: Cells, given: Mapping[str, str]) -> dict[str, Role]:
    known = {role: role for role in ROLES} | {"yesno": ROLES[3], "yes-no": ROLES[3]}
    roles: dict[str, Role] = {}
    for name, word in given.items():
        table.column(name)  # an unknown one is refused
        if word.strip().lower() not in known:
            raise FileFormatError(
                f"column {show(name)} cannot be {show(word)}; it is one of {', '.join(ROLES)}."
            )
        roles[name] = known[word.strip().lower()]
    for role in SINGLE:
        twice = [name for name, one in roles.items() if one == role]
        if len(twice) > 1:
            raise FileFormatError(
                f"columns {show(twice[0])} and {show(twice[1])} are both given as {role}; only one "
                "column can be that."
            )
    return roles


def _label(table: Cells, roles: Mapping[str, Role]) -> str | None:
    """Return the column that names the candidates: by its own name, or the first that can."""
    free = [name for name in table.names if name not in roles]
    for word in _NAMES:
        for name in free:
            if name.lower() == word:
                return name
    return next((name for name in free if _can_name(table.column(name), table)), None)


def _can_name(cells: Sequence[Cell], table: Cells) -> bool:
    """Tell whether cells are short texts, or numbers with leading zeros, all different."""
    if len(set(cells)) < len(cells) or not all(isinstance(cell, str) for cell in cells):
        return False
    texts = [str(cell).strip() for cell in cells]
    if max(map(len, texts), default=0) > LONG:
        return False
    if all(map(_DATE.fullmatch, texts)):
        return False
    numeric = sum(not np.isnan(table.number(text)) for text in texts)  # 1E5 is a gene, too
    return has_leading_zeros(texts) or 2 * numeric < len(texts)


def has_leading_zeros(texts: Sequence[str]) -> bool:
    """Tell whether digits are a code rather than a number: 007.

    Examples
    --------
    >>> has_leading_zeros(["007", "012"]), has_leading_zeros(["0", "12"])
    (True, False)
    """
    return all(text.isdigit() for text in texts) and any(
        len(text) > 1 and text[0] == "0" for text in texts
    )


def _guess(name: str, table: Cells) -> Column:
    cells = [cell for cell in table.column(name) if cell is not None]
    if not cells:
        return Column(name, "ignore", "there are no rows")
    if all(isinstance(cell, date | time | timedelta) for cell in cells):
        return Column(name, "ignore", "dates or times")
    if all(isinstance(cell, bool) for cell in cells):
        return Column(name, "yes/no", "yes and no")
    words = [str(cell).strip().lower() for cell in cells]
    known = [cell for cell, word in zip(cells, words, strict=True) if word not in MISSING]
    numeric = [cell for cell in known if not np.isnan(table.number(cell))]
    texts = [str(cell).strip() for cell in cells if isinstance(cell, str)]
    code = len(texts) == len(cells) and has_leading_zeros(texts)
    if numeric and 2 * len(numeric) >= len(known) and not code:
        return _number(name, table.column(name))
    if {*words} <= YES | NO:
        return Column(name, "yes/no", "yes and no")
    return _text(name, [str(cell).strip() for cell in cells], len(table))


def _number(name: str, cells: Sequence[Cell]) -> Column:
    counts = len(cells) >= FEW_ROWS and is_count(cells)
    if not counts and not (_ID.search(name) and len({*cells}) == len(cells)):
        return Column(name, "number", "numbers")
    why = "counts the rows" if counts else "is different in all rows"
    return Column(
        name,
        "ignore",
        why,
        f"column {show(name)} {why}, up to {cells[-1]}: does it number the candidates, or is it a "
        "number that describes them? Say which:",
    )


def _text(name: str, texts: Sequence[str], rows: int) -> Column:
    levels = Counter(texts)
    if all(map(_DATE.fullmatch, texts)):
        return Column(name, "ignore", "dates or times")
    unit = unit_of(texts[0])
    if unit and all(unit_of(text) == unit for text in texts):
        hint = f"without {show(unit)} these would be numbers"
        return Column(name, "ignore", f"numbers with {show(unit)}; {hint}")
    if max(map(len, texts)) > LONG:
        return Column(name, "ignore", "long text")
    if len(levels) == 1:
        some = "all rows" if len(texts) == rows else f"{len(texts)} rows"
        return Column(name, "ignore", f"the same text in {some}, {show(texts[0], 30)}")
    if len(levels) <= min(MAX_LEVELS, max(3, rows // 2)) and len(levels) < len(texts):
        return Column(name, "category", f"text with {len(levels)} values")
    many = "all different" if len(levels) == len(texts) else f"{len(levels)} different"
    return Column(name, "ignore", f"text with {many} values")
