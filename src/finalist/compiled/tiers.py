"""Loops that Python runs as they stand until it is worth compiling them.

A small study spends milliseconds in its loops, but a third of a second on loading numba, and
seconds on compiling where nothing is kept. So a loop is interpreted at first, and compiled, or
loaded, when as much time has gone into interpreting as that would cost. Which of the two has run
never matters, because both give the same bits (`tests/unit/test_tiers.py`): loops say `@tiered` if

* they do nothing but +, -, *, / and functions of `math` to numbers and to entries of arrays,
  without slices of two-dimensional arrays, in an order that the compiler keeps (no `fastmath`),
* powers are products: `x * x`, not `x**2`.

What Python refuses, as a division by zero or the logarithm of 0, the compiler gives a number or
NaN: then everything is put back, and compiled code does it.
"""

import math
import os
import sys
from collections.abc import Callable
from importlib import import_module
from time import thread_time
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from finalist.compiled.folders import SUFFIX, to_read
from finalist.loading import loading

#: Seconds of interpreting after which numba is loaded where compiled code is kept, and seconds of
#: one loop after which it is compiled.
LOADING, COMPILING = 0.5, 0.6
_CACHE = "finalist.compiled.cache"


class _Clock:
    """The seconds that went into interpreting, of all loops, and whether there are to be any."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.interprets = True


CLOCK = _Clock()


def compile_at_once() -> None:
    """Compile loops when they are first called from now on: whoever calls this will run for long.

    Examples
    --------
    >>> compile_at_once()
    """
    CLOCK.interprets = False


def tiered(instead: str | None = None, **flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """Interpret a function until it is worth compiling.

    Parameters
    ----------
    instead : str, optional
        Module and name of a function that does the same faster with NumPy while this is
        interpreted, to the same bits.
    **flags
        Those of `numba.njit`, without `cache`. With `inline` it is for other such functions only.

    Examples
    --------
    >>> @tiered(error_model="numpy")
    ... def total(x):
    ...     whole = 0.0
    ...     for i in range(len(x)):
    ...         whole += x[i]
    ...     return whole
    >>> total(np.array([0.5, 1.0]))
    1.5
    """
    return lambda function: Tiered(function, flags, instead)


class Tiered:
    """A function that is interpreted at first.

    Attributes
    ----------
    py_func : function
        As it is written.
    """

    def __init__(
        self, function: Callable[..., Any], flags: dict[str, Any], instead: str | None = None
    ) -> None:
        assert isinstance(function, FunctionType)
        self.py_func, self._flags, self._instead = function, flags, instead
        self._looped: Any = None
        self._compiled: Any = None
        self._ready: Any = None
        self._spent, self._is_looked_for = 0.0, True

    def __call__(self, *args: Any) -> Any:
        """Return what the function returns, and change arrays as it does."""
        if self._ready is not None:
            return self._ready(*args)
        if not CLOCK.interprets or self._is_worth_it(args):
            self._ready = self.compiled
            return self._ready(*args)
        kept = [(a, a.copy()) for a in args if isinstance(a, np.ndarray) and a.flags.writeable]
        begin = thread_time()
        try:
            found = self.interpreted(*map(_plain, args))
        except (ArithmeticError, ValueError):
            for array, before in kept:
                array[...] = before
            self._ready = self.compiled
            return self._ready(*args)
        finally:
            took = thread_time() - begin
            self._spent += took
            CLOCK.spent += took
        return np.asarray(found) if isinstance(found, memoryview) else found

    @property
    def interpreted(self) -> Any:
        """What is interpreted: the loops, or what does the same with NumPy."""
        if self._instead is None:
            return self.looped
        module, _, name = self._instead.rpartition(".")
        return getattr(import_module(module), name)

    @property
    def looped(self) -> Any:
        """The function for memory views in the place of arrays: they give Python's numbers."""
        if self._looped is None:
            self._looped = self._with("interpreted", np=_ARRAYS, math=_MATH)
        return self._looped

    @property
    def compiled(self) -> Any:
        """The function as numba compiles it, or finds it compiled."""
        if self._compiled is None:
            with loading():
                from numba import njit

                from finalist.compiled.cache import kept

            decorate = njit if "inline" in self._flags else kept
            self._compiled = decorate(**self._flags)(self._with("compiled"))
        return self._compiled

    def _with(self, kind: str, **names: Any) -> FunctionType:
        """Return the function with what it calls of the same kind."""
        function = self.py_func
        around = {**function.__globals__, **names}
        for name in function.__code__.co_names:
            if isinstance(around.get(name), Tiered):
                around[name] = getattr(around[name], kind)
        code, closure = function.__code__, function.__closure__
        return FunctionType(code, around, function.__name__, None, closure)

    def _is_worth_it(self, args: tuple[Any, ...]) -> bool:
        if self._spent > COMPILING:
            return True
        loads = CLOCK.spent > LOADING
        if not self._is_looked_for or not (loads or _CACHE in sys.modules):
            return False
        self._is_looked_for = False  # once: what others compile later is not waited for
        if _CACHE not in sys.modules and not self._may_be_kept():
            return False
        if "inline" in self._flags or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            return False  # nothing is kept
        return bool(self.compiled._cache.has(self.compiled, args))

    def _may_be_kept(self) -> bool:
        """Return whether some version of it is there; only numba knows whether it is this one."""
        stem = self.py_func.__module__.rpartition(".")[2]
        name = f"{stem}.{self.py_func.__name__}.{sys.implementation.cache_tag}.*{SUFFIX}"
        return any(next(folder.glob(name), None) is not None for folder in to_read())


def _plain(value: Any) -> Any:
    """Return what gives Python's numbers: an array as a view of its memory."""
    if isinstance(value, np.ndarray):
        return value.data
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _hypot(x: float, y: float) -> float:
    """Return what the C library does, as compiled code; `math.hypot` has a way of its own."""
    return abs(complex(x, y))


def _empty(shape: int | tuple[int, ...]) -> Any:
    """Return room for numbers; a list is faster than a view of memory, and need not be returned."""
    return np.empty(shape).data if isinstance(shape, tuple) else [0.0] * shape


def _module(name: str, **names: Any) -> ModuleType:
    """Return a module: Python finds names in one faster than in other objects."""
    module = ModuleType(name)
    vars(module).update(names)
    return module


#: What interpreted loops have for NumPy, and for `math`.
_ARRAYS = _module(
    "numpy",
    empty=_empty,
    zeros=lambda shape, dtype=float: np.zeros(shape, dtype).data,
    bool_=np.bool_,
)
_MATH = _module("math", **{**vars(math), "hypot": _hypot})
