"""Loading modules without Python's search for cycles of garbage, a fifth of the time otherwise.

What is loaded stays, so that there is nothing to find.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: New objects after which a command looks for cycles; Python's own number is for servers.
OBJECTS = 50_000


@contextmanager
def loading() -> Iterator[None]:
    """Pause the garbage collector, unless it is off or paused already.

    Examples
    --------
    >>> with loading():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
