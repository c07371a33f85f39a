"""What a set of arms is made of: rows of features with names, and what each arm is for.

Rows with identical features become one arm. An arm can be pulled (`measurable`) or can win
(`candidate`); an arm with several rows can do whatever one of its rows can.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from finalist.arms.names import Names
from finalist.arms.recipes import Columns, Recipe, Table, as_given, constant_name
from finalist.arms.rows import equal_rows
from finalist.errors import ArmsError
from finalist.shapes import Bool, Float, Int
from finalist.text import show

#: A statement about every arm.
Mask = Bool[np.ndarray, " K"]


@dataclass(frozen=True, eq=False)
class Parts:
    """Everything that `Arms` knows; the rest follows from it.

    Attributes
    ----------
    features : (K, d) array
        Distinct rows.
    given : tuple of N str, or None
        The names as given; None means x1, ..., xN.
    owner : (N,) array or None
        The arm of each name; None means one name per arm.
    cells : mapping or None
        The user's table, a row for every name, as in `Table`.
    recipe : Recipe
        How the features were made.
    """

    features: Float[np.ndarray, "K d"]
    given: tuple[str, ...] | None
    owner: Int[np.ndarray, " N"] | None
    feature_names: tuple[str, ...]
    measurable: Mask
    candidate: Mask
    cells: Columns | None
    recipe: Recipe

    @cached_property
    def names(self) -> Names:
        """The names of each arm."""
        return Names(self.given, self.owners())

    def owners(self) -> Int[np.ndarray, " N"]:
        """Return the arm of each name, in the order in which the names were given."""
        return np.arange(len(self.features)) if self.owner is None else self.owner

    def rows(self) -> Int[np.ndarray, " N"]:
        """Return the arm of each row of `table`."""
        return self.owners() if self.owner is None else np.sort(self.owner)

    def table(self, some: Mask | None = None) -> Table:
        """Return the arms, or some of them, with a row for every name, arm by arm."""
        names = self.given or tuple(f"x{i}" for i in range(1, len(self.owners()) + 1))
        table = Table(self.features, names, self.feature_names, self.cells, self.recipe)
        if self.owner is None and some is None:
            return table
        owner = self.owners()
        if self.owner is not None:
            table = table._replace(features=self.features[owner])
        order = np.argsort(owner, kind="stable")
        return table.taken(order if some is None else order[some[owner[order]]])

    def same(self, other: "Parts") -> bool:
        """Return whether two sets of arms have equal features, names and roles.

        Table and recipe do not count: studies of 0.1.0 have stored none.
        """
        return (
            self.feature_names == other.feature_names
            and np.array_equal(self.features, other.features)
            and np.array_equal(self.measurable, other.measurable)
            and np.array_equal(self.candidate, other.candidate)
            and self.names.aliases == other.names.aliases
        )

    def with_roles(self, measurable: Mask | None, candidate: Mask | None) -> "Parts":
        """Return the same arms with other roles; None means all of them."""
        K = len(self.features)
        return replace(
            self,
            measurable=_role("can be measured", measurable, K),
            candidate=_role("can win", candidate, K),
        )

    def with_intercept(self) -> "Parts":
        """Return the arms with a last feature that is 1 for all of them."""
        wider = np.column_stack([self.features, np.ones(len(self.features))])
        wider.flags.writeable = False
        names = (*self.feature_names, constant_name(self.feature_names))
        return replace(
            self, features=wider, feature_names=names, recipe=self.recipe.with_constant()
        )


def merged(
    table: Table,
    measurable: Bool[np.ndarray, " N"] | None = None,
    candidate: Bool[np.ndarray, " N"] | None = None,
) -> Parts:
    """Make one arm of the rows with identical features; it can do what one of them can."""
    first_row = equal_rows(table.features)
    distinct = first_row == np.arange(len(first_row))
    features, owner = table.features, None
    if not distinct.all():
        owner = (np.cumsum(distinct) - 1)[first_row]
        features = table.features[distinct]
        measurable, candidate = any_of(measurable, owner), any_of(candidate, owner)
    features.flags.writeable = False
    all_arms = np.ones(len(features), dtype=bool)
    _, names, columns, cells, recipe = table
    recipe = recipe or as_given(features, columns)
    parts = Parts(features, names, owner, columns, all_arms, all_arms, cells, recipe)
    return parts.with_roles(measurable, candidate)


def as_mask(name: str, value: ArrayLike | None, rows: int) -> Mask | None:
    """Check what the user says of each row."""
    if value is None:
        return None
    mask = np.asarray(value)
    if mask.dtype != bool or mask.shape != (rows,):
        raise ArmsError(
            f"{name} has shape {mask.shape} and type {mask.dtype}; give True or False for each of "
            f"the {rows} rows."
        )
    return mask


def any_of(mask: Bool[np.ndarray, " N"] | None, owner: Int[np.ndarray, " N"]) -> Mask | None:
    """Return for each arm whether one of its rows is marked."""
    return None if mask is None else np.bincount(owner, mask, owner.max() + 1) > 0


def _role(what: str, mask: Mask | None, K: int) -> Mask:
    """Return a read-only copy of a mask; an empty one is refused."""
    role = np.ones(K, dtype=bool) if mask is None else np.array(mask, dtype=bool)
    if not role.any():
        raise ArmsError(f"no candidate {what}; mark at least one.")
    role.flags.writeable = False
    return role


def join(arms: Parts, candidates: Parts) -> Parts:
    """Join arms to measure with candidates to choose from.

    A candidate that is an arm too, by its name, is there once, and can win.
    """
    if arms.recipe.name == "separate":
        raise ArmsError(
            "with the model 'separate', measuring some candidates says nothing about others. Use a "
            "model that relates them, such as 'straight'."
        )
    one = arms.table()
    other = candidates.table().like(one)
    if other.feature_names != arms.feature_names:
        raise ArmsError(
            f"what can be measured has the features {', '.join(arms.feature_names)}, and what can "
            f"be chosen has {', '.join(candidates.feature_names)}; use the same, in the same order."
        )
    if candidates.given is None:
        other = other._replace(names=tuple(f"z{i}" for i in range(1, len(other.features) + 1)))
    first, second = one.names or (), other.names or ()
    N, rows = len(first) + len(second), len(first)
    both = one.stacked(other)
    owner = equal_rows(both.features)
    again = _named_again(first, second, owner)
    can_be_pulled = np.zeros(N, dtype=bool)
    can_be_pulled[:rows] = arms.measurable[arms.rows()]
    # Also a row that comes again under its name.
    can_win = (np.bincount(owner, np.arange(N) >= rows) > 0)[owner]
    rest = ~again
    return merged(both.taken(np.flatnonzero(rest)), can_be_pulled[rest], can_win[rest])


def _named_again(
    first: Sequence[str], second: Sequence[str], owner: Int[np.ndarray, " M"]
) -> Bool[np.ndarray, " M"]:
    """Return which rows of the second table are in the first; refuse other features."""
    seen = {name: i for i, name in enumerate(first)}
    again = np.zeros(len(owner), dtype=bool)
    for i, name in enumerate(second, start=len(first)):
        if name in seen and owner[i] != owner[seen[name]]:
            raise ArmsError(
                f"{show(name)} is in both tables with different features; give one of them another "
                "name."
            )
        again[i] = name in seen
    return again
