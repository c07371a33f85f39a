"""A stretch of code in which no design may be solved."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

#: What solves a design, wherever it is imported.
SOLVERS = ("optimal_design", "solve_task", "static_sequence", "oracle_sequence", "Greedy")


@contextmanager
def no_design(module: str) -> Iterator[None]:
    """Make the solvers of finalist raise AssertionError, in finalist and in a module that uses it.

    Not for several threads at once: the solvers are replaced for the whole process.

    Examples
    --------
    >>> import finalist as fl
    >>> with no_design("__main__"):
    ...     fl.optimal_design(fl.Arms.unstructured(3), "g")
    Traceback (most recent call last):
    AssertionError: record solves a design; keep what it needs in the note of the batch
    """
    places = [(vars(home), name) for home in _homes(module) for name in SOLVERS]
    known = [(names, name, names[name]) for names, name in places if _is_ours(names.get(name))]
    try:
        for names, name, _ in known:
            names[name] = _refuse
        yield
    finally:
        for names, name, solver in known:
            names[name] = solver


def _homes(module: str) -> list[ModuleType]:
    return [
        home
        for name, home in list(sys.modules.items())
        if name == module or name.partition(".")[0] == "finalist"
    ]


def _is_ours(solver: Any) -> bool:
    return str(getattr(solver, "__module__", "")).partition(".")[0] == "finalist"


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("record solves a design; keep what it needs in the note of the batch")
