"""Import paths of 0.1.0 whose modules have moved: they still work, and warn with the new path.

A finder behind all others makes such a module when it is imported. It holds nothing itself: every
attribute is looked up in the module's new home. (Making the old name an alias of the new module
would overwrite the new one's `__spec__`.)
"""

import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Old path below `finalist` -> new path; what is below an old path moved with it.
MOVED = {
    "arms_table": "arms.table",
    "benchmark": "lab.benchmark",
    "benchmark.suites": "lab.benchmark.plan",
    "bounds": "inference.bounds",
    "information": "inference.information",
    "intervals": "inference.intervals",
    "least_squares": "inference.least_squares",
    "noise": "problem",
    "paper": "lab.paper",
    "paper.alpha": "lab.paper.budget",
    "paper.measure": "lab.paper.experiment",
    "pooling": "inference.pooling",
    "report": "lab",
    "rewards": "simulation.rewards",
    "rules": "problem.rules",
    "simulation.store": "lab.store",
    "span": "arms.span",
    "statistics": "inference.statistics",
    "strategies.fully_adaptive": "strategies.per_pull.fully_adaptive",
    "strategies.g": "strategies.static.static",
    "strategies.g_budget": "strategies.budget.g_budget",
    "strategies.gse": "strategies.budget.gse",
    "strategies.lazy_ts": "strategies.per_pull.lazy_ts",
    "strategies.lingame": "strategies.per_pull.lingame",
    "strategies.lingape": "strategies.per_pull.lingape",
    "strategies.od_linbai": "strategies.budget.od_linbai",
    "strategies.peace": "strategies.budget.peace",
    "strategies.rage": "strategies.phased.rage",
    "strategies.track_and_stop": "strategies.per_pull.track_and_stop",
    "strategies.uniform": "strategies.static.uniform",
    "strategies.v": "strategies.static.static",
    "strategies.xy": "strategies.static.static",
    "strategies.xy_adaptive": "strategies.phased.xy_adaptive",
    "strategies.xy_oracle": "strategies.static.xy_oracle",
}


def home_of(name: str) -> str | None:
    """Return where a module of 0.1.0 is now, or None if it has not moved.

    Examples
    --------
    >>> home_of("finalist.benchmark.plan")
    'finalist.lab.benchmark.plan'
    """
    package, _, path = name.partition(".")
    old, below = path, ""
    while package == "finalist" and old:
        if old in MOVED:
            return f"finalist.{MOVED[old]}{below}"
        old, _, last = old.rpartition(".")
        below = f".{last}{below}"
    return None


def warn(old: str, attribute: str, home: str) -> None:
    """Warn the caller of a module's `__getattr__` that an attribute has moved."""
    message = f"{old}.{attribute} has moved; import {attribute} from {home}."
    warnings.warn(message, DeprecationWarning, stacklevel=3)


class Finder(MetaPathFinder, Loader):
    """Finds modules under the paths that they had in 0.1.0."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return a spec for a module that has moved."""
        home = home_of(name)
        if home is None:
            return None
        return ModuleSpec(name, self, is_package=hasattr(import_module(home), "__path__"))

    def exec_module(self, module: ModuleType) -> None:
        """Let the module take every attribute from its new home."""
        name, home = module.__name__, home_of(module.__name__)
        assert home is not None
        there = import_module(home)

        def delegate(attribute: str) -> object:
            if not (attribute.startswith("__") and attribute.endswith("__")):
                warn(name, attribute, home)
            return getattr(there, attribute)

        module.__dict__["__getattr__"] = delegate
        module.__doc__ = f"Moved to `{home}`."
