"""What the commands of studies share: their arguments, opening a study, saying what was done."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from finalist.cli import output
from finalist.cli.completion import study_names
from finalist.cli.options import Printed
from finalist.files import printable

if TYPE_CHECKING:
    from finalist.study import Study

StudyName = Annotated[
    str, typer.Argument(metavar="NAME", help="The study.", autocompletion=study_names)
]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="A name for the new study.")]
PullNumber = Annotated[int, typer.Argument(metavar="PULL", help="The number of the pull.")]
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="WHERE",
        help="Where studies are kept: a file, or postgresql://user@host/name.",
        show_default="FINALIST_DB, or finalist.db",
    ),
]
DecimalOption = Annotated[
    str, typer.Option("--decimal", metavar="MARK", help="Decimal mark of the CSV file: . or ,")
]
ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")]


def where(db: str | None) -> str:
    """Return the database that is meant."""
    from finalist.study import default_place

    return db or default_place()


def shown(db: str | None) -> str:
    """Return the database for people: on one line, without a password."""
    from finalist.study.storage.files import locate

    return printable(locate(where(db)).shown)


@contextmanager
def opened(db: str | None, name: str) -> "Iterator[Study]":
    """Open a study, and close it at the end."""
    from finalist.study import Study

    with Study.open(where(db), name) as study:
        yield study


def say(form: Printed, words: str, /, **content: Any) -> None:
    """Say what was done: a line for people, or the same as JSON."""
    typer.echo(output.to_json(content) if form is Printed.json else words + "\n", nl=False)


def command(db: str | None, *words: str) -> str:
    """Return a command to copy to a shell, with the database if it was given."""
    place = () if db is None else ("--db", shown(db))
    return printable(shlex.join(["finalist", *words, *place]))
