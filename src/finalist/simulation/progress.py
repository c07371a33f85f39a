"""A bar on stderr for work that takes more than a second, or whatever else shows how far it is."""

import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from finalist.errors import SimulationError

#: Seconds of work after which the bar appears, unless it is asked for.
_PATIENCE = 1.0
#: Whether to show a bar, or a function that is called with how many runs are done, and of how many.
Shown = bool | Callable[[int, int], None] | None


@contextmanager
def bar(total: int, wanted: Shown) -> Iterator[Callable[[], None]]:
    """Show how many runs are done and the time left; yields what to call after each run.

    Parameters
    ----------
    total : int
        Runs to do.
    wanted : bool, function or None
        None: on a terminal, after a second. True: in any case, at once. False: never. A function
        is called after each run.
    """
    if callable(wanted):
        done = itertools.count(1)
        yield lambda: wanted(next(done), total)
        return
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = ("Simulating", BarColumn(), MofNCompleteColumn(), "runs", TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=wanted is None)
    row = progress.add_task("", total=total)
    # A timer, so that the bar also appears while the first run takes long.
    timer = threading.Timer(0.0 if wanted else _PATIENCE, progress.start)
    timer.start()
    try:
        yield lambda: progress.advance(row)
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def check_progress(wanted: object) -> None:
    """Refuse what is neither yes, no, None nor a function."""
    if wanted is not None and not isinstance(wanted, bool) and not callable(wanted):
        raise SimulationError(
            f"progress is {wanted!r}; it is True, False, None for a terminal, or a function of how "
            "many runs are done and of how many."
        )
