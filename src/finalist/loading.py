"""Loading modules faster: without searches for cycles of garbage, and without what nobody uses.

The search takes a fifth of the time otherwise, and what is loaded stays, so that there is nothing
to find.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

#: New objects after which a command looks for cycles; Python's own number is for servers.
OBJECTS = 50_000
#: SciPy imports all that NumPy has, a tenth of the time of a short command: whoever uses one of
#: these loads it.
SELDOM = frozenset({"numpy.f2py", "numpy.testing"})


class _WhenUsed(MetaPathFinder):
    """Finds modules that are loaded when something in them is looked for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in SELDOM else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def when_used(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are loaded when they are used.

    Parameters
    ----------
    homes : mapping
        The module in the package that has a name.

    Examples
    --------
    >>> find = when_used("finalist.planning", {"expected": "figures"})
    >>> find("expected").__module__
    'finalist.planning.figures'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find


@contextmanager
def loading() -> Iterator[None]:
    """Pause the garbage collector, unless it is off already, and load nothing of `SELDOM`.

    What was loaded joins the oldest objects, or the next look at the young ones would take long.

    Examples
    --------
    >>> with loading():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    finder, paused = _WhenUsed(), gc.isenabled()
    gc.disable()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if paused:
            if gc.get_freeze_count() == 0:  # somebody else's objects stay frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
