"""Where studies are kept."""

import os
from os import PathLike

from finalist.study.storage.database import Database

#: The variable that says where studies are kept unless said otherwise.
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
