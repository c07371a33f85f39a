"""A study as it goes on: a view that is drawn again and again, or lines without a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from finalist.cli.study.status import arms_table
from finalist.files import printable

if TYPE_CHECKING:
    from rich.console import Group

    from finalist.study import Status

_HEADER = f"{'Batch':>5}  {'Pulls':>6}  {'Left':>8}  Leader"


@contextmanager
def following(arms: int) -> "Iterator[Callable[[Status], None]]":
    """Give a function that shows a status: in place on a terminal, else a line when arms drop out.

    Parameters
    ----------
    arms : int
        How many there are at the start.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(markup=False, highlight=False, emoji=False)
    typer.echo(_HEADER)
    left = arms + 1

    def line(status: "Status") -> None:
        nonlocal left
        if len(status.survivors) < left:
            left = len(status.survivors)
            console.print(_line(status, arms), soft_wrap=True)

    if not console.is_terminal:
        yield line
        return
    # Nothing else is printed meanwhile, and stdout keeps telling what letters it can show.
    with Live(
        console=console,
        transient=True,
        refresh_per_second=10,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:

        def follow(status: "Status") -> None:
            line(status)
            live.update(_view(status, arms))

        yield follow


def _line(status: "Status", arms: int) -> str:
    left, leader = f"{len(status.survivors)} of {arms}", printable(status.leader or "", 40)
    return f"{status.batches:>5}  {status.pulls:>6,}  {left:>8}  {leader}"


def _view(status: "Status", arms: int) -> "Group":
    """Return the present line and the table of arms."""
    from rich.console import Group

    return Group("", _line(status, arms), *arms_table(status))
