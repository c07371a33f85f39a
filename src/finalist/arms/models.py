"""Models in plain words: straight, bending, surface, separate.

`make` decides on a table once: the levels of categories, which columns bend, and from where they
are measured. The recipe keeps all that for rows that come later.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from finalist.arms.levels import ANSWERS, levels_of
from finalist.arms.recipes import Columns, Recipe, Table, as_given
from finalist.arms.terms import number
from finalist.errors import ArmsError
from finalist.shapes import Float
from finalist.text import listed, show

#: The models that need nothing but the columns.
MODELS = ("straight", "bending", "surface", "separate")
#: Numbers that the features may have; more do not fit into the memory of a laptop.
MAX_NUMBERS = 10**8
#: Squares of smaller numbers lose digits.
SMALLEST = 1e-145


def make(
    model: str,
    table: Columns,
    numbers: Sequence[str],
    categories: Sequence[str] = (),
    answers: Sequence[str] = (),
    *,
    constant: bool,
    most: int = MAX_NUMBERS,
) -> tuple[Float[np.ndarray, "N d"], tuple[str, ...], Recipe]:
    """Make the features of a table by a model.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    table : mapping
        The columns, of which those below are used.
    numbers, categories, answers : sequence of str
        Columns of finite numbers, of text (or anything with few values), and of yes or no.
    constant : bool
        Whether to add a feature that is 1 for all arms. Separate arms need none.
    most : int
        Numbers that the features may have in all.

    Returns
    -------
    features : (N, d) array
    names : tuple of d str
        Columns of numbers and of yes or no keep theirs.
    recipe : Recipe
        Makes the same features of later rows.

    Examples
    --------
    >>> table = {"dose": [1.0, 2.0, 4.0], "Tone": ["calm", "friendly", "calm"]}
    >>> features, names, recipe = make("surface", table, ["dose"], ["Tone"], constant=True)
    >>> names
    ('dose', 'Tone: friendly', 'dose^2', 'dose * Tone: friendly', 'intercept')
    >>> recipe.words()
    'surface: Tone against calm (the reference), dose^2 is the square of dose - 2.5 and ...'
    """
    check_model(model)
    used = {*numbers, *categories, *answers}
    columns = tuple(column for column in table if column in used)
    levels = {
        column: ANSWERS if column in answers else levels_of(column, table[column])
        for column in columns
        if column not in numbers
    }
    recipe = Recipe(model, columns, constant=constant, levels=levels)
    if model in ("bending", "surface"):
        recipe = _bent(recipe, table)
    _check_size(recipe, table, most)
    return *recipe.features(table), recipe


def check_model(model: str) -> None:
    """Refuse a word that is not a model."""
    if model not in MODELS:
        raise ArmsError(f"there is no model {show(model)}; use {listed(MODELS, 'or')}.")


def _bent(recipe: Recipe, table: Columns) -> Recipe:
    """Decide which columns are squared and multiplied, and from where they are measured.

    Two points do not show a bend, so a column needs three values for a square.
    """
    centres, squares = {}, []
    for column in recipe.columns:
        if column in recipe.levels:
            continue
        values = number(column, table[column])
        distinct = len(np.unique(values))
        if distinct > 2 or (distinct == 2 and recipe.name == "surface"):
            middle = float(values.min() / 2 + values.max() / 2)
            centres[column] = middle if recipe.constant else 0.0
        if distinct > 2:
            squares.append(column)
            _refuse_vanishing(column, values - centres[column])
    return replace(recipe, centres=centres, squares=tuple(squares))


def _refuse_vanishing(column: str, from_centre: Float[np.ndarray, " N"]) -> None:
    """Refuse squares that vanish: the model would silently be a straight one."""
    largest = float(np.abs(from_centre).max())
    if largest < SMALLEST:
        raise ArmsError(
            f"column {column!r}: its values are at most {largest:.3g} from the centre, and their "
            "squares vanish. Use another unit."
        )


def _check_size(recipe: Recipe, table: Columns, most: int) -> None:
    """Refuse features that would not fit into the memory, or none at all."""
    if not recipe.columns:
        raise ArmsError("no column is used; a model needs at least one.")
    rows = len(table[recipe.columns[0]])
    parts = [
        1 if column not in recipe.levels else len(recipe.levels[column]) - 1
        for column in recipe.columns
    ]
    if recipe.name == "separate":
        count = rows
    elif sum(parts) == 0:
        raise ArmsError(
            f"no column tells the candidates apart: {listed([repr(c) for c in recipe.columns])} "
            "has the same value in every row. Use another column, or the model 'separate'."
        )
    else:
        count = sum(parts) + len(recipe.squares) + recipe.constant
        if recipe.name == "surface":
            count += (sum(parts) ** 2 - sum(part**2 for part in parts)) // 2
    if count * rows > most:
        raise ArmsError(
            f"the model {recipe.name!r} gives {rows:,} candidates {count:,} features each, which "
            f"is more than {most:,} numbers. Use a simpler model, or fewer columns."
        )


def remodelled(table: Table, model: str) -> Table:
    """Return the same rows with the features of another model: see `Arms.with_model`."""
    check_model(model)
    recipe = table.recipe or as_given(table.features, table.feature_names)
    brought = table.brought()
    columns = [column for column in recipe.columns if column not in recipe.levels]
    if model != "separate" and _unrelated(table):
        raise ArmsError(
            f"these candidates have no columns of which the model {model!r} could be made: each "
            "stands on its own. Give a table that describes them."
        )
    ones = [column for column in columns if np.all(np.asarray(brought[column]) == 1.0)]
    features, names, made = make(
        model,
        {column: brought[column] for column in recipe.columns},
        [column for column in columns if column not in ones],
        [column for column, levels in recipe.levels.items() if levels != ANSWERS],
        [column for column, levels in recipe.levels.items() if levels == ANSWERS],
        constant=recipe.constant or bool(ones),
    )
    return table.remade(features, names, made)


def _unrelated(table: Table) -> bool:
    """Tell whether there is nothing but one feature for each candidate."""
    X, recipe = table.features, table.recipe
    own = recipe is None or recipe.name in ("given", "formula")
    return own and X.shape[0] == X.shape[1] and np.array_equal(X, np.eye(len(X)))
