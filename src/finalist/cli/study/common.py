"""What the commands of studies share: arguments, completion, opening a study, its messages."""

import os
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from finalist.cli import output
from finalist.cli.options import Printed
from finalist.cli.wording import for_shell
from finalist.files import printable

if TYPE_CHECKING:
    from finalist.study import Status, Study

#: Names with other characters would be split by the shell.
_SAFE = re.compile(r"\w[\w.,:+@%/-]*")
#: The remedy for a model that does not fit (`finalist.study.bends.remedy`).
_FORK = re.compile(r"study\.fork\(NAME, model='(\w+)'\), or finalist fork --model \w+")


def study_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the studies whose names begin like this, for the shell to complete.

    A shell waits for this on every Tab: the file is read with SQLite alone, never written, and if
    anything goes wrong there is simply nothing to offer. PostgreSQL is not asked.
    """
    try:
        names = _read(Path(str(ctx.params.get("db") or place())).expanduser())
    except (OSError, ValueError, sqlite3.Error):
        return []
    return [name for name in names if name.startswith(incomplete) and _SAFE.fullmatch(name)]


def place() -> str:
    """Return the same as `finalist.study.default_place`, without its imports."""
    return os.environ.get("FINALIST_DB") or "finalist.db"


def _read(path: Path) -> list[str]:
    if not path.is_file():
        return []
    # Without a write-ahead log, open the file as immutable: SQLite then leaves nothing beside it.
    beside = path.with_name(path.name + "-wal")
    changed = beside.exists() and beside.stat().st_size > 0
    address = f"file:{quote(str(path.resolve()))}?mode=ro" + ("" if changed else "&immutable=1")
    with closing(sqlite3.connect(address, uri=True, timeout=0.2)) as connection:
        rows = connection.execute("SELECT name FROM studies ORDER BY name").fetchall()
    return [str(row[0]) for row in rows]


StudyName = Annotated[
    str, typer.Argument(metavar="NAME", help="The study.", autocompletion=study_names)
]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="A name for the new study.")]
PullNumber = Annotated[
    int, typer.Argument(metavar="NUMBER", help="The number of the measurement: its pull_id.")
]
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
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the log.")
]


def where(db: str | None) -> str:
    """Return the database to use."""
    from finalist.study import default_place

    return db or default_place()


def shown(db: str | None) -> str:
    """Return the database for people: on one line, without a password."""
    from finalist.study.databases import locate

    return printable(locate(where(db)).shown)


@contextmanager
def opened(db: str | None, name: str) -> "Iterator[Study]":
    """Open a study and close it at the end."""
    from finalist.study import Study

    with Study.open(where(db), name) as study:
        yield study


def say(form: Printed, words: str, /, **content: Any) -> None:
    """Report what was done: a line for people, or JSON."""
    typer.echo(output.to_json(content) if form is Printed.json else words + "\n", nl=False)


def command(db: str | None, *words: str) -> str:
    """Return a command to paste into a shell, with the database if one was given."""
    place = () if db is None else ("--db", shown(db))
    return printable(shlex.join(["finalist", *words, *place]))


def warnings(found: "Status", db: str | None) -> list[str]:
    """Return the warnings of a study; where another model helps, with the command for it."""

    def whole(remedy: re.Match[str]) -> str:
        return command(db, "fork", found.name, f"{found.name} 2", "--model", remedy[1])

    said = (_FORK.sub(whole, printable(words)) for words in found.warnings)
    return [f"Warning: {for_shell(words)}" for words in said]
