"""How the features of arms are made from the columns of the user's table.

`Arms` keep the table as it was given, the recipe, and the features that it made. A new recipe is
a function below and a line in `RECIPES`. "bending" would append the square of every column, named
`dose^2`; "categories" would turn a column of text into one feature for each level but the first,
and keep the levels in a field of `Recipe`, so that a later table without some of them gives the
same features. The constant is not theirs: `Recipe.features` adds it to whatever they make.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from finalist.errors import ArmsError

#: The user's table: for each column an array of numbers, or a tuple of text, numbers and None.
Columns = Mapping[str, Any]


@dataclass(frozen=True)
class Recipe:
    """What was done to a table to get features.

    Attributes
    ----------
    name : str
        One of `RECIPES`: "given" (the columns are the features), "straight" (they are, with a
        constant where asked for) or "formula".
    columns : tuple of str
        What it reads. Arms added later bring these columns; after a formula, which is never
        evaluated again, they are the features that it made.
    text : str
        For people: the formula.
    constant : bool
        Whether a last feature is 1 for all arms.

    Examples
    --------
    >>> recipe = Recipe("straight", ("dose",), constant=True)
    >>> recipe.features({"name": ("a", "b"), "dose": (1.0, 2.5)})
    (array([[1. , 1. ],
           [2.5, 1. ]]), ('dose', 'intercept'))
    """

    name: str
    columns: tuple[str, ...]
    text: str = ""
    constant: bool = False

    def features(self, table: Columns) -> tuple[Float[np.ndarray, "N d"], tuple[str, ...]]:
        """Make the features of a table, and their names."""
        if self.name not in RECIPES:
            raise ArmsError(
                f"features by the recipe {self.name!r} are not known; a newer finalist made them. "
                "Upgrade finalist."
            )
        missing = [column for column in self.columns if column not in table]
        if missing:
            raise ArmsError(f"there is no column {missing[0]!r}, which these arms have. Add it.")
        X, names = RECIPES[self.name](self, table)
        if not self.constant:
            return X, names
        return np.column_stack([X, np.ones(len(X))]), (*names, constant_name(names))

    def with_constant(self) -> "Recipe":
        """Return the recipe that adds a constant."""
        return replace(self, name=self.name.replace("given", "straight"), constant=True)

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as values that JSON can hold."""
        return {**asdict(self), "columns": list(self.columns)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Recipe":
        """Return a stored recipe; what a newer finalist has added to it is left out."""
        words = ("name", "columns", "text", "constant")
        values = {word: stored[word] for word in words if word in stored}
        return cls(**{**values, "columns": tuple(stored["columns"])})


def as_given(features: Float[np.ndarray, "N d"], names: tuple[str, ...]) -> Recipe:
    """Return the recipe of features that came without one.

    A last column of ones called "intercept", as `Arms.with_intercept` adds it, is a constant: so
    it is in files, in the API and in studies that stored no recipe.
    """
    if names[-1] == constant_name(names[:-1]) and bool(np.all(features[:, -1] == 1.0)):
        return Recipe("straight", names[:-1], constant=True)
    return Recipe("given", names)


def constant_name(names: tuple[str, ...]) -> str:
    """Return what the constant is called beside other features."""
    name = "intercept"
    while name in names:
        name = f"{name}_"
    return name


def _as_they_are(
    recipe: Recipe, table: Columns
) -> tuple[Float[np.ndarray, "N d"], tuple[str, ...]]:
    columns = [np.asarray(table[column], dtype=np.float64) for column in recipe.columns]
    return np.column_stack(columns), recipe.columns


_Make = Callable[[Recipe, Columns], tuple[Float[np.ndarray, "N d"], tuple[str, ...]]]
RECIPES: Mapping[str, _Make] = {
    "given": _as_they_are,
    "straight": _as_they_are,
    "formula": _as_they_are,
}


class Table(NamedTuple):
    """The user's table, checked, with the features that a recipe made of it.

    Attributes
    ----------
    features : (N, d) array
    names : tuple of N str, or None
        A name for each row; None means the default names.
    feature_names : tuple of d str
    cells : mapping or None
        The columns as given, in their order. None stands for the cells of the feature of that
        name, or else for the names: they are not kept twice. Without cells the features, but for
        the constant, are the table.
    recipe : Recipe or None
        None means that the features are as they came.
    """

    features: Float[np.ndarray, "N d"]
    names: tuple[str, ...] | None
    feature_names: tuple[str, ...]
    cells: Columns | None = None
    recipe: Recipe | None = None

    def columns(self) -> Columns:
        """Return the columns as in `cells`, also where the features are the table."""
        if self.cells is not None:
            return self.cells
        recipe = self.recipe or as_given(self.features, self.feature_names)
        return dict.fromkeys(recipe.columns)

    def whole(self) -> dict[str, Any]:
        """Return the table as it was given."""
        return {column: self._cells(column) for column in self.columns()}

    def _cells(self, column: str) -> Any:
        own = self.columns().get(column)
        if own is not None:
            return own
        if column in self.feature_names:
            return self.features[:, self.feature_names.index(column)]
        return self.names if column in self.columns() else (None,) * len(self.features)

    def taken(self, rows: Int[np.ndarray, " n"]) -> "Table":
        """Return some of the rows, by number."""
        cells = self.cells
        return self._replace(
            features=self.features[rows],
            names=_taken(self.names, rows),
            cells=None if cells is None else {c: _taken(v, rows) for c, v in cells.items()},
        )

    def stacked(self, other: "Table") -> "Table":
        """Return these rows and others with the same features below; a cell may be missing."""
        cells, tables = None, (self, other)
        if self.cells is not None or other.cells is not None:
            cells = {
                column: None
                if all(table.columns().get(column) is None for table in tables)
                else tuple(cell for table in tables for cell in plain(table._cells(column)))
                for column in {**self.columns(), **other.columns()}
            }
        return self._replace(
            features=np.vstack([self.features, other.features]),
            names=(*(self.names or ()), *(other.names or ())),
            cells=cells,
        )


def _taken(cells: Any, rows: Int[np.ndarray, " n"]) -> Any:
    if isinstance(cells, tuple):
        return tuple([cells[i] for i in rows.tolist()])
    return None if cells is None else cells[rows]


def plain(cells: Any) -> Any:
    """Return cells as text, numbers of Python and None."""
    return cells.tolist() if isinstance(cells, np.ndarray) else cells
