"""How the features of arms are made from the columns of the user's table.

`Arms` keep the table as it was given, the recipe, and the features that it made. A recipe keeps
what was decided on the first table (levels, centres, which columns are squared), so that later rows
get the same features. A new recipe is a function below and a line in `RECIPES`; the constant is not
theirs: `Recipe.features` adds it to whatever they make. `finalist.arms.models` makes recipes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from finalist.arms.levels import ANSWERS
from finalist.arms.terms import Made, by_column, centred, free, product
from finalist.errors import ArmsError
from finalist.shapes import Float, Int
from finalist.text import first_few

#: The user's table: for each column an array of numbers, or a tuple of text, numbers and None.
Columns = Mapping[str, Any]


@dataclass(frozen=True)
class Recipe:
    """What was done to a table to get features.

    Squares and products are of columns measured from their centre, if there is a constant: this
    changes no model, only what the coefficients mean. That of `dose` is then the slope at the
    centre, per unit of dose, and that of `dose^2` the bend, per squared unit: the slope changes by
    twice as much per unit. Without a constant the centre is 0, and `dose` has the slope at 0.

    Attributes
    ----------
    name : str
        One of `RECIPES`: "given" (the columns are the features); "straight" (so they are, with a
        constant where asked for, and categories as contrasts); "bending" (and squares); "surface"
        (and products of every two columns); "separate" (a feature for each row); "formula".
    columns : tuple of str
        What it reads. Arms added later bring these columns; after a formula, which is never
        evaluated again, they are the features that it made.
    text : str
        For people: the formula.
    constant : bool
        Whether a last feature is 1 for all arms. Separate arms need none.
    levels : mapping
        The levels of each column of categories, the reference first; ("no", "yes") for a yes/no
        column. The other columns are numbers.
    centres : mapping
        What is subtracted from a column of numbers before it is squared or multiplied. A column
        that is not here has neither a square nor products.
    squares : tuple of str
        The columns that are squared.

    Examples
    --------
    >>> recipe = Recipe("straight", ("dose", "Tone"), constant=True, levels={"Tone": ("a", "b")})
    >>> recipe.features({"name": ("x", "y"), "dose": (1.0, 2.5), "Tone": ("b", "a")})
    (array([[1. , 1. , 1. ],
           [2.5, 0. , 1. ]]), ('dose', 'Tone: b', 'intercept'))
    >>> Recipe("bending", ("dose",), centres={"dose": 2.0}, squares=("dose",)).words()
    'bending: dose^2 is the square of dose - 2'
    """

    name: str
    columns: tuple[str, ...]
    text: str = ""
    constant: bool = False
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    centres: Mapping[str, float] = field(default_factory=dict, hash=False)
    squares: tuple[str, ...] = ()

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
        made = RECIPES[self.name](self, table)
        if self.constant and self.name != "separate":
            rows = len(table[self.columns[0]])
            made[constant_name(tuple(made))] = np.ones(rows)
        return np.column_stack(list(made.values())), tuple(made)

    def check(self) -> None:
        """Refuse a recipe that contradicts itself, as one that somebody else wrote may."""
        own, levels = {*self.columns}, {*self.levels}
        bends = self.name in ("bending", "surface")
        good = (
            self.name in RECIPES
            and len(own) == len(self.columns) > 0
            and levels <= own
            and all(len({*one}) == len(one) > 0 for one in self.levels.values())
            and {*self.squares} <= {*self.centres} <= own - levels
            and (bends or not (self.squares or self.centres))
            and (self.name not in ("given", "formula") or not levels)
        )
        if not good:
            raise ArmsError("the recipe of the features contradicts itself. Leave it out.")

    def with_constant(self) -> "Recipe":
        """Return the recipe that adds a constant."""
        return replace(self, name=self.name.replace("given", "straight"), constant=True)

    def words(self) -> str:
        """Say what the features are, where that is not plain; empty if they are the columns."""
        found = [
            f"{column} against {levels[0]} (the reference)"
            for column, levels in self.levels.items()
            if levels and levels != ANSWERS and self.name != "separate"
        ]
        for column in self.squares:
            at = self.centres.get(column, 0.0)
            from_ = f" {'-' if at > 0 else '+'} {abs(at):.6g}" if at else ""
            found.append(f"{column}^2 is the square of {column}{from_}")
        if self.name == "surface":
            found.append("columns are multiplied two by two")
        if self.name == "separate":
            found.append("each candidate on its own")
        if self.name == "formula":
            found.append(self.text)
        words = first_few(found) if len(found) > 1 else "".join(found)
        return f"{self.name}: {words}" if words else ""

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as values that JSON can hold; what is empty is left out."""
        more = {"levels": dict(self.levels), "centres": dict(self.centres), "squares": self.squares}
        return {
            "name": self.name,
            "columns": list(self.columns),
            "text": self.text,
            "constant": self.constant,
            **{word: _listed(value) for word, value in more.items() if value},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Recipe":
        """Return a stored recipe; what a newer finalist has added to it is left out."""
        return cls(
            name=stored["name"],
            columns=tuple(stored["columns"]),
            text=stored.get("text", ""),
            constant=stored.get("constant", False),
            levels={c: tuple(levels) for c, levels in stored.get("levels", {}).items()},
            centres=dict(stored.get("centres", {})),
            squares=tuple(stored.get("squares", ())),
        )


def _listed(value: Any) -> Any:
    """Return tuples as lists, as JSON has them."""
    if isinstance(value, Mapping):
        return {word: _listed(one) for word, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def as_given(features: Float[np.ndarray, "N d"], names: tuple[str, ...]) -> Recipe:
    """Return the recipe of features that came without one.

    A last column of ones called "intercept", as `Arms.with_intercept` adds it, is a constant: so
    it is in files, in the API and in studies that stored no recipe.
    """
    if names[-1] == constant_name(names[:-1]) and bool(np.all(features[:, -1] == 1.0)):
        return Recipe("straight", names[:-1], constant=True)
    return Recipe("given", names)


def constant_name(names: Iterable[str]) -> str:
    """Return what the constant is called beside other features."""
    return free("intercept", tuple(names))


# --- the recipes ----------------------------------------------------------------------------


def _straight(recipe: Recipe, table: Columns) -> Made:
    return {
        name: v
        for made in by_column(recipe.columns, recipe.levels, table).values()
        for name, v in made.items()
    }


def _bending(recipe: Recipe, table: Columns) -> Made:
    made = _straight(recipe, table)
    for column in recipe.squares:
        from_centre = centred(made[column], recipe.centres[column])
        made[free(f"{column}^2", made)] = product((column, column), from_centre, from_centre)
    return made


def _surface(recipe: Recipe, table: Columns) -> Made:
    made = _bending(recipe, table)
    groups = {
        column: {n: centred(v, recipe.centres.get(column, 0.0)) for n, v in features.items()}
        for column, features in by_column(recipe.columns, recipe.levels, table).items()
        if column in recipe.levels or column in recipe.centres
    }
    for one, other in combinations(groups, 2):
        for a, first in groups[one].items():
            for b, second in groups[other].items():
                made[free(f"{a} * {b}", made)] = product((one, other), first, second)
    return made


def _separate(recipe: Recipe, table: Columns) -> Made:
    rows = len(table[recipe.columns[0]])
    # Not the name of a column: the table would take the feature for its cells.
    return {free(f"f{i}", recipe.columns): row for i, row in enumerate(np.eye(rows), 1)}


RECIPES: Mapping[str, Callable[[Recipe, Columns], Made]] = {
    "given": _straight,
    "straight": _straight,
    "bending": _bending,
    "surface": _surface,
    "separate": _separate,
    "formula": _straight,
}


class Table(NamedTuple):
    """The user's table, checked, with the features that a recipe made of it.

    Attributes
    ----------
    names : tuple of N str, or None
        A name for each row; None means the default names.
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

    def brought(self) -> dict[str, Any]:
        """Return the table with what recipes can read besides: features that were given."""
        recipe = self.recipe or as_given(self.features, self.feature_names)
        if recipe.name not in ("given", "formula"):
            return self.whole()
        return dict(zip(self.feature_names, self.features.T, strict=True)) | self.whole()

    def remade(
        self, features: Float[np.ndarray, "N e"], names: tuple[str, ...], recipe: Recipe
    ) -> "Table":
        """Return the same rows with other features; the cells stay what they were."""
        own, brought = self.columns(), self.brought()
        kept = recipe.columns if recipe.name != "separate" else ()
        cells = {}
        for column in dict.fromkeys([*own, *recipe.columns]):
            is_feature = column in kept and column not in recipe.levels
            is_name = column in own and own[column] is None and column not in self.feature_names
            cells[column] = None if is_feature or is_name else brought[column]
        return Table(features, self.names, names, cells, recipe)

    def like(self, other: "Table") -> "Table":
        """Return these rows with features made as those of another table, if they have its columns.

        Columns that the other table has and does not use are left out of the features.
        """
        made_by = other.recipe or as_given(other.features, other.feature_names)
        own = self.recipe or as_given(self.features, self.feature_names)
        plainly = not (made_by.levels or made_by.centres)
        if plainly and self.feature_names == other.feature_names:
            return self
        brought, known = self.brought(), {*made_by.columns, *other.columns()}
        if not (known.issuperset(own.columns) and brought.keys() >= set(made_by.columns)):
            return self
        return self.remade(*made_by.features(brought), made_by)

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
