"""Names of arms: checked when they are given, looked up when they are used."""

import difflib
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import islice

import numpy as np

from finalist.errors import ArmsError, UnknownArmError
from finalist.shapes import Int
from finalist.text import show


def _row(i: int) -> str:
    return f"row {i + 1}"


def check_names(
    names: Iterable[object],
    where: Callable[[int], str] = _row,
    error: type[Exception] = ArmsError,
) -> tuple[str, ...]:
    """Return the names as a tuple of str; refuse empty and repeated ones, saying where."""
    if isinstance(names, str):
        raise error(f"names is the single text {show(names)}; pass a list with one name per arm.")
    if not isinstance(names, Iterable):
        raise error(f"names is {show(names)}; pass a list with one name per arm.")
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise error(f"{where(i)}: the name is {show(name)}; a name is text. Use str(...).")
        if not name.strip():
            raise error(f"{where(i)}: the name is {show(name)}; a name must not be empty.")
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise error(f"{where(i)}: the name {show(name)} is not valid Unicode. Rename the arm.")
        if first.setdefault(str(name), i) != i:
            raise error(
                f"{where(i)}: the name {show(name)} is taken already, by {where(first[name])}. "
                "Give each candidate a name of its own."
            )
    return tuple(first)


class Names:
    """The names of arms, made when somebody asks: a million arms may never need theirs.

    Parameters
    ----------
    given : tuple of N str, or None
        None means x1, ..., xN.
    owner : (N,) array
        The arm of each name.
    """

    def __init__(self, given: tuple[str, ...] | None, owner: Int[np.ndarray, " N"]) -> None:
        self._given, self._owner = given, owner

    @cached_property
    def aliases(self) -> tuple[tuple[str, ...], ...]:
        """All names of each arm."""
        given = self._given or [f"x{i}" for i in range(1, len(self._owner) + 1)]
        groups: list[list[str]] = [[] for _ in range(int(self._owner.max()) + 1)]
        for name, k in zip(given, self._owner.tolist(), strict=True):
            groups[k].append(name)
        return tuple(map(tuple, groups))

    @cached_property
    def first(self) -> tuple[str, ...]:
        """The first name of each arm."""
        return tuple(aliases[0] for aliases in self.aliases)

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of the arm that has a name."""
        return {name: k for k, names in enumerate(self.aliases) for name in names}

    def find(self, name: object) -> int:
        """Return the number of the arm with this name, or suggest another name."""
        if not (isinstance(name, str) and name in self.index):
            raise UnknownArmError(f"there is no candidate {show(name)}. {self._advice(name)}")
        return self.index[name]

    def _advice(self, name: object) -> str:
        similar = _similar(name, self.index) if isinstance(name, str) else []
        if similar:
            return f"Did you mean {' or '.join(map(repr, similar))}?"
        some = ", ".join(map(show, self.first[:3]))
        if len(self.first) == 1:
            return f"The only candidate is {some}."
        return f"The names of the {len(self.first)} candidates begin with {some}."


def _similar(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three names that resemble a misspelt one, at a bounded cost."""
    likely = (n for n in names if len(n) <= 64 and abs(len(n) - len(name)) <= 3)
    pool = {n.casefold(): n for n in islice(likely, 2000)}
    return [pool[n] for n in difflib.get_close_matches(name.casefold(), list(pool))]
