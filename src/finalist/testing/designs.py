"""A stretch of code in which no design may be solved."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

#: Functions that solve a design, by module. Those of strategies cache their results, so the solvers
#: behind them are not always called.
SOLVERS: dict[str, tuple[str, ...]] = {
    "finalist.design.optimal": ("optimal_design", "solve_task"),
    "finalist.design.greedy": ("Greedy", "greedy", "greedy_allocation"),
    "finalist.design.rough": ("rough_design",),
    "finalist.strategies.static.static": ("static_sequence", "static_design"),
    "finalist.strategies.static.xy_oracle": (
        "oracle_sequence",
        "oracle_design",
        "oracle_allocation",
    ),
    "finalist.strategies.phased.xy_adaptive": ("phase_design", "phase_allocation"),
    "finalist.strategies.phased.rage": ("survivors_design",),
    "finalist.strategies.budget.eliminations": ("survivor_design",),
    "finalist.strategies.budget.peace": ("difference_design",),
    "finalist.strategies.per_pull.lingape": ("pair_shares",),
}
#: What a method that may not solve a design should do instead.
REMEDY = {
    "start": "solve it in `next`, which a replay does not call",
    "record": "keep what it needs in the note of the batch",
}


@contextmanager
def no_design(where: Literal["start", "record"]) -> Iterator[None]:
    """Make the solvers of finalist raise AssertionError, in all modules that have imported them.

    Not thread-safe: the solvers are replaced for the whole process. Solvers of other packages are
    unknown here.

    Examples
    --------
    >>> import finalist as fl
    >>> with no_design("record"):
    ...     fl.optimal_design(fl.Arms.unstructured(3), "g")
    Traceback (most recent call last):
    AssertionError: record solves a design; keep what it needs in the note of the batch
    """

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError(f"{where} solves a design; {REMEDY[where]}")

    known = _places()
    try:
        for names, name, _ in known:
            names[name] = refuse
        yield
    finally:
        for names, name, solver in known:
            names[name] = solver


def _places() -> list[tuple[dict[str, Any], str, Callable[..., Any]]]:
    """Find every name of a solver: the namespace of a module, the name in it, the solver."""
    solvers = {
        id(vars(sys.modules[home])[name])
        for home, names in SOLVERS.items()
        if home in sys.modules
        for name in names
    }
    modules = [vars(module) for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
    return [
        (names, name, value)
        for names in modules
        for name, value in list(names.items())
        if id(value) in solvers
    ]
