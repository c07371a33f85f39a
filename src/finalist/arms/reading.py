"""Arms from the table that somebody has: names, features, and what columns say beside them.

Two ways to take a table. *As given*: every column but the name is a feature, a number. By a
*model*: columns have roles (`finalist.tables.columns`), and a recipe makes the features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from finalist.arms.inputs import checked, is_name, read_formula, unstructured
from finalist.arms.levels import ANSWERS
from finalist.arms.models import MAX_NUMBERS, make
from finalist.arms.parts import Parts, any_of, merged
from finalist.arms.recipes import Recipe, Table
from finalist.arms.roles import Rows
from finalist.errors import ArmsError, FileFormatError, UnclearTableError
from finalist.extras import need
from finalist.shapes import Float
from finalist.tables.cells import Cells
from finalist.tables.columns import (
    BESIDE,
    Column,
    Role,
    columns_of,
    refuse_questions,
    said,
    with_role,
)
from finalist.text import first_few, show

#: Reasons to ignore a column that leave nothing to ask.
_KNOWN_TO_SAY_NOTHING = ("as you say", "long text", "dates or times", "counts the rows")
_TOTALS = frozenset({"total", "totals", "sum", "mean", "average", "summe", "mittelwert", "gesamt"})


@dataclass(frozen=True, eq=False)
class Made:
    """What was made of a table.

    Attributes
    ----------
    parts : Parts
        The arms.
    sigma, cost : (K,) array or None
        The noise and the cost of each arm, if columns hold them.
    remarks : tuple of str
        What a person should know about how the table was read.
    """

    parts: Parts
    sigma: Float[np.ndarray, " K"] | None
    cost: Float[np.ndarray, " K"] | None
    columns: tuple[Column, ...]
    remarks: tuple[str, ...]


def given_columns(cells: Cells, roles: Mapping[str, Role]) -> tuple[Column, ...]:
    """Return the columns of a table whose columns are features as they are.

    The column `name` names the arms, or else the first column without any number.
    """
    for name in roles:
        cells.column(name)
    free = [name for name in cells.names if name not in roles]
    label = next(filter(is_name, free), None)
    if label is None:
        label = next((name for name in free if np.isnan(cells.numbers(name)).all()), None)
    own: dict[str, Role] = {name: "name" if name == label else "number" for name in free}
    return tuple(Column(name, (own | dict(roles))[name], "as given") for name in cells.names)


def as_given(cells: Cells, roles: Mapping[str, Role] | None = None) -> Made:
    """Take a table as it is: every column without a role is a feature, but for the names."""
    cells = replace(cells, names=cells.headers)
    columns = given_columns(cells, roles or {})
    if not with_role(columns, "number"):
        raise FileFormatError(
            f"{cells.top()}there is no column beside {show(cells.names[0])}, the names. Add a "
            "column of numbers for each feature."
        )
    return _made(Rows(cells, columns, given=True), None, constant=False)


def by_model(
    cells: Cells,
    roles: Mapping[str, str] | None = None,
    *,
    model: str = "straight",
    constant: bool = True,
    drop_incomplete: bool = False,
    like: Recipe | None = None,
    most: int = MAX_NUMBERS,
) -> Made:
    """Take a table by the roles of its columns, and make the features by a model.

    Parameters
    ----------
    roles : mapping of str to str, optional
        The roles of some columns; the others are guessed.
    model : str
        "straight", "bending", "surface" or "separate".
    constant : bool
        Whether results have a level of their own; a table with a column of ones keeps that.
    drop_incomplete : bool
        Whether candidates with missing cells are left out.
    like : Recipe, optional
        Make the features as of another table, whatever `model` and `constant` are.
    most : int
        Numbers that the features may have in all.
    """
    cells = with_names_alone(cells)
    if cells.source and not any(np.isnan(cells.number(name)) for name in cells.names):
        raise FileFormatError(
            f"{cells.top()}there are numbers where the columns should be named. Add a first line "
            "with their names."
        )
    columns = columns_of(cells, _as_in(like, cells, roles or {}))
    refuse_questions(columns, cells)
    rows = Rows(cells, columns)
    rows = rows.complete() if drop_incomplete else rows
    return _made(rows, like or model, constant=constant, most=most)


def _as_in(like: Recipe | None, cells: Cells, roles: Mapping[str, str]) -> dict[str, str]:
    """Return roles with which a table is read as another one was."""
    if like is None:
        return dict(roles)
    beside = [name for name, role in roles.items() if role in BESIDE]
    for column in (*like.columns, *beside):
        cells.column(column)
    own = {name: role for name, role in roles.items() if name in cells}
    guessed = {column.name: column.role for column in columns_of(cells, own)}
    named = {name for name, role in guessed.items() if role == "name"}
    same = {name: guessed[name] if name in named else "ignore" for name in cells.names}
    kinds = {c: "yes/no" if like.levels[c] == ANSWERS else "category" for c in like.levels}
    return {**same, **own, **dict.fromkeys(like.columns, "number"), **kinds}


def with_names_alone(cells: Cells) -> Cells:
    """Take a list of names for one, although its first line stands where headers do."""
    if len(cells.names) > 1 or cells.names[0].lower() in ("name", "candidate", "arm"):
        return cells
    texts = (cells.names[0], *cells.columns[0])
    if not all(isinstance(cell, str) and np.isnan(cells.number(cell)) for cell in texts):
        return cells
    words = [str(text).split() for text in texts]
    apart = min(map(len, words)) == max(map(len, words)) > 1
    ends = [not np.isnan(cells.number(row[-1])) for row in words]
    if apart and not ends[0] and all(ends[1:]) and len({row[0] for row in words[1:]}) > 1:
        raise FileFormatError(
            f"{cells.top()}there is one column, {show(cells.names[0])}, with the same number of "
            "words in every row. If these are cells, put tabs, commas or semicolons between them."
        )
    lines = [cells.header, *cells.lines]
    remark = f"{show(cells.names[0])} is a candidate too: a heading would be called name"
    return replace(
        cells,
        names=("name",),
        headers=("name",),
        columns=(texts,),
        lines=lines,
        remarks=(*cells.remarks, remark),
    )


def _made(
    rows: Rows, model: str | Recipe | None, *, constant: bool, most: int = MAX_NUMBERS
) -> Made:
    """Make arms of rows: by a model, like others, or of their numbers as they are."""
    numbers = {column: rows.numbers(column) for column in rows.of("number")}
    names = rows.names()
    _refuse_totals(rows, numbers, names)
    try:
        made = _features(rows, numbers, model, constant, most)
        kept = _kept(rows, numbers, set(made.feature_names))
        table = checked(made.features, names, made.feature_names, kept)
    except ArmsError as error:
        where = rows.cells.source and f"{rows.cells.source}: "
        raise FileFormatError(f"{where}{error}") from error
    return _with_beside(rows, table._replace(recipe=made.recipe), names is not None)


def by_formula(
    cells: Cells,
    formula: str,
    roles: Mapping[str, str] | None = None,
    *,
    drop_incomplete: bool = False,
) -> Made:
    """Take a table by a formula of its columns, which is evaluated as Python.

    Columns with numbers alone are numbers there, others are text; roles count for the rest: the
    name, noise, cost, and what can be measured.
    """
    need("Formulas", "pandas", "formulaic")
    import pandas as pd

    rows = Rows(cells, columns_of(cells, roles))
    rows = rows.complete() if drop_incomplete else rows
    frame = {}
    for column in rows.cells.names:
        values = rows.cells.numbers(column)
        texts = [c if c is None else rows.cells.text(c) for c in rows.cells.column(column)]
        frame[column] = texts if np.isnan(values).any() else values
    names = rows.names()
    try:
        table = read_formula(formula, pd.DataFrame(frame), names)
    except ArmsError as error:
        where = rows.cells.source and f"{rows.cells.source}: "
        raise FileFormatError(f"{where}{error}") from error
    if table.names is None:
        table = table._replace(names=tuple(f"x{i}" for i in range(1, len(rows.cells) + 1)))
    return _with_beside(rows, table, names is not None)


def _with_beside(rows: Rows, table: Table, named: bool) -> Made:
    """Make arms of features, with what columns say beside them; `named`: a column has names."""
    parts = merged(table)
    owner = parts.owners()
    measurable = next(iter(rows.of("measurable")), None)
    if measurable is not None:
        parts = parts.with_roles(any_of(rows.marks(measurable), owner), None)
    sigma, cost = rows.each("noise", owner), rows.each("cost", owner)
    if named:
        _refuse_guessed_apart(rows, parts)
        rows.remarks += _merged_words(parts)
    return Made(parts, sigma, cost, rows.columns, tuple(rows.remarks))


def _features(
    rows: Rows,
    numbers: Mapping[str, Float[np.ndarray, " N"]],
    model: str | Recipe | None,
    constant: bool,
    most: int,
) -> Table:
    """Return the features, their names and their recipe; the rest of the table comes later."""
    if model is None:
        return Table(np.column_stack(list(numbers.values())), None, tuple(numbers))
    texts = {column: rows.texts(column) for column in rows.of("category")}
    answers = {column: rows.answers(column) for column in rows.of("yes/no")}
    used: dict[str, Any] = {**numbers, **texts, **answers}
    if isinstance(model, Recipe):
        X, names = model.features(used)
        return Table(X, None, names, None, model)
    if not used:
        if not rows.of("name"):
            raise FileFormatError(f"{rows.cells.top()}no column describes the candidates.")
        if model not in ("straight", "separate"):
            raise FileFormatError(
                f"{rows.cells.top()}no column describes the candidates, so there is nothing of "
                f"which the model {model!r} could be made. Say what a column is, or use 'separate'."
            )
        if len(rows.cells) ** 2 > most:
            raise ArmsError(
                f"there are {len(rows.cells):,} candidates, and nothing describes them; each would "
                f"be learnt about by itself. Describe them by columns."
            )
        return unstructured(len(rows.cells))
    ordered = {name: used[name] for name in rows.cells.names if name in used}
    ones = [column for column in numbers if constant and np.all(numbers[column] == 1.0)]
    if ones and model == "straight":
        ones, constant = [], False
    own = [column for column in numbers if column not in ones]
    X, names, recipe = make(
        model, ordered, own, list(texts), list(answers), constant=constant, most=most
    )
    return Table(X, None, names, None, recipe)


def _kept(
    rows: Rows, numbers: Mapping[str, Float[np.ndarray, " N"]], features: set[str]
) -> dict[str, Any]:
    """Return the whole table as arms keep it: what they have as features or names is None."""
    cells, kept = rows.cells, dict[str, Any]()
    for column in rows.columns:
        name = column.name
        if column.role == "name" or (name in numbers and name in features):
            kept[name] = None
        elif name in numbers or column.role in ("noise", "cost"):
            kept[name] = numbers.get(name, cells.numbers(name))
        elif column.role == "category":
            kept[name] = rows.levels(name)
        else:
            kept[name] = tuple(
                c if isinstance(c, str | int | float | None) else str(c) for c in cells.column(name)
            )
    return kept


def _refuse_totals(
    rows: Rows,
    numbers: Mapping[str, Float[np.ndarray, " N"]],
    names: Sequence[str] | None,
) -> None:
    """Refuse a last row that is called a total, and is one."""
    if names is None or len(names) < 3 or names[-1].strip().lower() not in _TOTALS:
        return
    for values in numbers.values():
        rest = values[:-1]
        if values[-1] != 0.0 and np.isclose(values[-1], [rest.sum(), rest.mean()], 1e-3).any():
            raise FileFormatError(
                f"{rows.cells.where(len(names) - 1)}: {show(names[-1])} is the total of the rows "
                "above, not a candidate. Remove it."
            )


def _refuse_guessed_apart(rows: Rows, parts: Parts) -> None:
    """Ask, if candidates are one only because a guess leaves out what tells them apart."""
    guessed = [c for c in rows.columns if c.role == "ignore" and c.why not in _KNOWN_TO_SAY_NOTHING]
    if rows.given or parts.owner is None or not guessed:
        return
    first: dict[int, int] = {}
    for i, arm in enumerate(parts.owner.tolist()):
        j = first.setdefault(arm, i)
        for column in guessed:
            cells = rows.cells.column(column.name)
            if cells[i] != cells[j] and None not in (cells[i], cells[j]):
                names = parts.given or ()
                raise UnclearTableError(
                    f"{rows.cells.where(i)}: {show(names[i])} and {show(names[j])} are described "
                    f"alike but for column {show(column.name)}, which would be ignored "
                    f"({column.why}). Say what it is:",
                    [said(column.name, role) for role in ("category", "ignore")],
                )


def _merged_words(parts: Parts) -> list[str]:
    groups = [names for names in parts.names.aliases if len(names) > 1]
    words = [f"{first_few(names, 3)} are described alike: one candidate" for names in groups[:3]]
    return words + ([f"so are {len(groups) - 3} more groups"] if len(groups) > 3 else [])
