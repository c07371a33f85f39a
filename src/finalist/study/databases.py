"""Databases of studies as a whole; everything outside `study` comes to them through here."""

import os
from os import PathLike

from finalist.study.storage.database import Database, StudyRow
from finalist.study.storage.place import locate
from finalist.study.storage.upgrade import backup, check, restore, upgrade

__all__ = [
    "Database",
    "StudyRow",
    "backup",
    "check",
    "default_place",
    "locate",
    "restore",
    "studies",
    "upgrade",
]

#: The environment variable that says where studies are kept.
DEFAULT = "FINALIST_DB"


def studies(where: str | PathLike[str]) -> list[str]:
    """Return the names of all studies in a database.

    Examples
    --------
    >>> import tempfile
    >>> import finalist as fl
    >>> folder = tempfile.TemporaryDirectory()
    >>> where = folder.name + "/lab.db"
    >>> fl.Study.create(where, "first", fl.Arms.unstructured(3), sigma=1.0).close()
    >>> studies(where)
    ['first']
    >>> folder.cleanup()
    """
    with Database.open(where) as database, database.read() as reader:
        return [row.name for row in reader.studies()]


def default_place() -> str:
    """Return where studies are kept: what FINALIST_DB says, or finalist.db."""
    return os.environ.get(DEFAULT) or "finalist.db"
