"""One BLAS thread for small matrices: several wait for each other longer than they compute.

With BLAS at its default, one thread a core, a design on a busy machine takes up to a hundred times
as long as with one thread (`python -m benchmarks.threads`). It is a number of the whole process,
so the first one in sets it and the last one out gives back what the user had.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")
#: Matrices of arms with more numbers than this have as many threads as the user allows.
LARGEST = 5_000_000
_lock = threading.Lock()
_inside = 0
_limits: Any = None


@contextmanager
def one_thread(size: int = 0) -> Iterator[None]:
    """Use one BLAS thread, unless the matrices are large; threads of the caller may do so at once.

    Parameters
    ----------
    size : int
        Numbers in the largest matrix.

    Examples
    --------
    >>> with one_thread():
    ...     print("one thread")
    one thread
    """
    global _inside, _limits
    if size > LARGEST or _is_single():
        yield
        return
    with _lock:
        if _inside == 0:
            _limits = _pools().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.restore_original_limits()


def on_one_thread(size: Callable[..., int]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Call a function with one BLAS thread; `size` has the function's arguments.

    Examples
    --------
    >>> @on_one_thread(lambda A: A.size)
    ... def trace(A):
    ...     return A.trace()
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            with one_thread(size(*args, **kwargs)):
                return function(*args, **kwargs)

        return called

    return decorated


def size_of_arms(arms: Any, *_: Any, **__: Any) -> int:
    """Return how many numbers the features of arms are; what is not arms the function refuses."""
    return int(getattr(getattr(arms, "features", None), "size", 0))


@cache
def _is_single() -> bool:
    """Return whether there is one thread anyway: then threadpoolctl need not be loaded."""
    return os.cpu_count() == 1 or os.environ.get("OMP_NUM_THREADS") == "1"


@cache
def _pools() -> "ThreadpoolController":
    # NumPy and SciPy have a BLAS each: both are to be loaded when it looks around.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
