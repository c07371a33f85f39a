"""`finalist db`: maintenance of the database."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from finalist.cli import codes
from finalist.cli.groups import with_options
from finalist.cli.options import Printed, PrintedOption
from finalist.cli.study.common import DbOption, say, shown, where
from finalist.files import printable
from finalist.text import counted

HELP = """Upgrade, copy, restore or check the database of studies.

\b
Example:
  finalist db backup lab-copy.db --db lab.db
"""
_UPGRADE_HELP = """Bring the tables of a database up to date; a file is backed up first.

\b
Example:
  finalist db upgrade --db lab.db

Opening a study does this automatically. --format json has the keys where, words.
"""
_BACKUP_HELP = """Copy the file of studies, even while it is in use.

\b
Example:
  finalist db backup lab-copy.db --db lab.db

An existing file is not replaced. For PostgreSQL use pg_dump. --format json has the keys where,
file.
"""
_RESTORE_HELP = """Replace the file of studies by a copy of a backup.

\b
Example:
  finalist db restore lab-copy.db --db lab.db

Use this instead of cp: changes that a killed program left beside the file (lab.db-wal) belong to
the old file and would be applied to the backup. The old file is kept under the name printed.
Programs that have it open continue with the restored one, or report that it was replaced.
--format json has the keys where, file, words.
"""
_CHECK_HELP = """Look for damage in the whole database.

\b
Example:
  finalist db check --db lab.db

Ends with exit code 2 if something is wrong. --format json has the keys where, problems.
"""

database = typer.Typer(
    name="db",
    help=HELP,
    epilog=codes.EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@dataclass(frozen=True)
class PlaceOptions:
    """A database, and how what was done is printed, as options."""

    db: DbOption = None
    form: PrintedOption = Printed.table

    @property
    def where(self) -> str:
        """The database to use."""
        return where(self.db)

    @property
    def shown(self) -> str:
        """The database for people."""
        return shown(self.db)

    def say(self, words: str, /, **content: Any) -> None:
        """Report what was done to it."""
        say(self.form, words, where=self.shown, **content)


@database.command("upgrade", help=_UPGRADE_HELP, epilog=codes.EPILOG)
@with_options
def upgrade(place: PlaceOptions) -> None:
    """Bring tables up to date."""
    from finalist.study import databases

    words = printable(databases.upgrade(place.where))
    place.say(words, words=words)


@database.command("backup", help=_BACKUP_HELP, epilog=codes.EPILOG)
@with_options
def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="The copy.")], place: PlaceOptions
) -> None:
    """Copy the file."""
    from finalist.study import databases

    copy = databases.backup(place.where, to)
    place.say(f"{printable(str(copy))} is a copy of {place.shown}.", file=str(copy))


@database.command("restore", help=_RESTORE_HELP, epilog=codes.EPILOG)
@with_options
def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="The copy to go back to.")],
    place: PlaceOptions,
) -> None:
    """Go back to a backup."""
    from finalist.study import databases

    words = printable(databases.restore(place.where, backup))
    place.say(words, file=str(backup), words=words)


@database.command("check", help=_CHECK_HELP, epilog=codes.EPILOG)
@with_options
def check(place: PlaceOptions) -> None:
    """Check everything."""
    from finalist.study import databases

    problems = databases.check(place.where)
    words = "\n".join(map(printable, problems)) or f"{place.shown} is in order."
    place.say(words, problems=problems)
    if problems:
        typer.echo(f"Error: {place.shown} has {counted(len(problems), 'problem')}.", err=True)
        raise typer.Exit(codes.WRONG)
