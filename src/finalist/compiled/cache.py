"""Functions compiled by numba, kept on disk for later processes where something can be written.

Kernels say `@kept(...)` where they would say `@njit(cache=True, ...)`; nothing else decides about
the cache. A problem with the disk never stops a caller: what cannot be read or kept is compiled
again, and the log says so once.

numba's own cache fails at import without a writable folder, notices changes of a function's own
file only, and keeps an index beside the code. A process that ends between the two writes leaves an
index of the new source with the code of the old one, and two processes that write at once can
swap their entries. Here each compiled function is one file, named after everything that it depends
on, with a checksum of its content, and is there in full or not at all.
"""

import inspect
import pickle
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from hashlib import sha256
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from finalist.compiled.alone import alone
from finalist.compiled.folders import SUFFIX, log, to_read, to_write
from finalist.files import write_file
from finalist.loading import loading

with loading():
    import numba
    from numba import njit
    from numba.core.caching import NullCache
    from numba.core.compiler import CompileResult
    from numba.core.runtime.nrt import rtsys
    from numba.core.serialize import dumps

_DIGEST = sha256().digest_size
_PATIENCE = "Compiling what runs often, once on this machine: some seconds ..."
#: The functions that this process compiled.
COMPILED: list[str] = []


def kept(**flags: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, or load what an earlier process compiled.

    Parameters
    ----------
    **flags
        Those of `numba.njit`, without `cache`.

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
            compiled.compile = compiled._cache.locked(compiled.compile)
        return compiled

    return decorated


class Kept(NullCache):  # type: ignore[misc, unused-ignore]
    """The compiled versions of a function on disk, one file for each tuple of argument types.

    Parameters
    ----------
    function : function
        All source files of its folder count, and what it takes from a function around it; compiled
        code of another folder that it uses would go unnoticed when it changes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        source = inspect.getfile(function)
        python = sys.implementation.cache_tag
        self._name = f"{Path(source).stem}.{function.__name__}.{python}"
        self._depends = (numba.__version__, _sources(source), _identity(function))
        self._locks: list[ExitStack] = []

    def locked(self, compile_: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return numba's step from types to a function, with the lock taken on the way given back.

        numba calls it in one thread at a time, and from within itself for what a function calls.
        """

        def compiled(sig: Any) -> Any:
            with ExitStack() as lock, loading():
                self._locks.append(lock)
                try:
                    return compile_(sig)
                finally:
                    self._locks.remove(lock)

        return compiled

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for some types; None if it is to be compiled here.

        Another process may be at it: it keeps the function, and this one takes it from there.
        """
        rtsys.initialize(target_context)  # what compiled code calls
        found = None if self._depends[1] is None else self._load(sig, target_context)
        if found is not None:
            return found
        target_context.refresh()  # numba's registries, which only the compiler needs
        if self._depends[1] is None:
            return None
        folder = to_write()
        _say_that_it_takes_time()
        if folder is not None and self._locks:
            name = self._file(sig, target_context.codegen())
            self._locks[-1].enter_context(alone(folder / f"{name}.lock"))
            found = self._load(sig, target_context)
        return found

    def has(self, compiled: Any, args: tuple[Any, ...]) -> bool:
        """Return whether an earlier process kept the function for arguments like these."""
        sig = tuple(map(compiled.typeof_pyval, args))
        name = self._file(sig, compiled.targetctx.codegen())
        return self._depends[1] is not None and any((f / name).exists() for f in to_read())

    def _load(self, sig: Any, target_context: Any) -> Any:
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
        """Keep a compiled function if some folder can be written."""
        COMPILED.append(self._name)
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
        raise ValueError("its checksum does not match")
    parts = pickle.loads(packed)
    return CompileResult._rebuild(  # type: ignore[no-untyped-call, unused-ignore]
        target_context, *parts
    )


def _identity(value: Any) -> str:
    """Return what tells a function from others of its folder, or a constant from other values."""
    function = getattr(value, "py_func", value)
    if not inspect.isfunction(function):
        return repr(value)
    around = [_identity(cell.cell_contents) for cell in function.__closure__ or ()]
    return f"{function.__module__}:{function.__code__.co_firstlineno}:{around}"


@cache
def _sources(path: str) -> str | None:
    """Return a digest of a source file and those beside it; None if there is no such file."""
    try:
        files = {path, *map(str, Path(path).parent.glob("*.py"))}
        whole = [(Path(file).name, sha256(Path(file).read_bytes()).digest()) for file in files]
        return sha256(repr(sorted(whole)).encode()).hexdigest()
    except OSError:
        return None


@cache
def _say_that_it_takes_time() -> None:
    """Say so once, where a person looks; other processes of a simulation are silent."""
    stderr = sys.stderr
    if stderr is None or current_process().name != "MainProcess":
        return
    if stderr.isatty() or "ipykernel" in sys.modules:  # a terminal, or a notebook
        print(_PATIENCE, file=stderr, flush=True)


@cache
def _say_once(text: str) -> None:
    log.warning(text)
