"""Functions compiled by numba, and kept on disk for later processes where there is a place.

This is the only place that decides about it: kernels say `@kept(...)` where they would say
`@njit(cache=True, ...)`. Nothing about the disk stops a caller. What cannot be read or kept is
compiled again; the log says so once.

numba's own cache needs a folder that can be written, or the import fails; and it has an index
beside the code. A process that ends between the two writes leaves an index of the new source with
the code of the old one, and two processes that write at once can exchange their entries. Here
each compiled function is one file, named after all that it depends on and with a checksum of its
content, that is there in full or not at all.
"""

import inspect
import pickle
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from finalist.compiled.folders import SUFFIX, log, to_read, to_write
from finalist.files import write_file

_DIGEST = sha256().digest_size


def kept(**flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, or load what an earlier process compiled.

    Parameters
    ----------
    **flags
        Those of `numba.njit`, without `cache`.

    Returns
    -------
    decorator

    Examples
    --------
    >>> @kept(error_model="numpy")
    ... def half(x):
    ...     return x / 2
    >>> half(3.0)
    1.5
    """

    def decorated(function: Callable[..., Any]) -> Any:
        compiled = njit(**flags)(function)
        if compiled is not function:  # NUMBA_DISABLE_JIT
            compiled._cache = Kept(function)
        return compiled

    return decorated


class Kept(NullCache):  # type: ignore[misc, unused-ignore]
    """The compiled versions of a function on disk, one file for each types of its arguments.

    Parameters
    ----------
    function : function
        Its whole source file counts: code of other files that it uses would not be noticed.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        source = inspect.getfile(function)
        python = sys.implementation.cache_tag
        self._name = f"{Path(source).stem}.{function.__qualname__}.{python}"
        line = function.__code__.co_firstlineno
        self._depends = (numba.__version__, _source(source), line)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for some types, or None."""
        target_context.refresh()
        if self._depends[1] is None:
            return None
        for folder in to_read():
            path = folder / self._file(sig, target_context.codegen())
            try:
                content = path.read_bytes()
            except OSError:
                continue
            try:
                return _unpacked(content, target_context)
            except Exception as error:
                _say_once(f"{path} is damaged ({error!r}); compiled again.")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if there is a place for it."""
        if self._depends[1] is None or data.library.has_dynamic_globals:
            return
        folder = to_write()
        if folder is None:
            return
        try:
            packed = dumps(data._reduce())  # type: ignore[no-untyped-call, unused-ignore]
            write_file(folder / self._file(sig, data.codegen), sha256(packed).digest() + packed)
        except Exception as error:
            _say_once(f"Compiled code cannot be kept in {folder} ({error}); it works without.")

    def _file(self, sig: Any, codegen: Any) -> str:
        """Return the name of the file for some types on this kind of machine."""
        depends = repr((*self._depends, str(sig), codegen.magic_tuple()))
        return f"{self._name}.{sha256(depends.encode()).hexdigest()[:32]}{SUFFIX}"


def _unpacked(content: bytes, target_context: Any) -> Any:
    digest, packed = content[:_DIGEST], content[_DIGEST:]
    if sha256(packed).digest() != digest:
        raise ValueError("its checksum is another one")
    parts = pickle.loads(packed)
    return CompileResult._rebuild(  # type: ignore[no-untyped-call, unused-ignore]
        target_context, *parts
    )


@cache
def _source(path: str) -> str | None:
    """Return a digest of a source file as it is imported; None if there is no such file."""
    try:
        return sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


@cache
def _say_once(text: str) -> None:
    log.warning(text)
