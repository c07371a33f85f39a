"""Tables that come over the network, read by the library as files; no name of a file is theirs."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from finalist import arms_table
from finalist.arms import Arms
from finalist.arms_table import ArmsTable
from finalist.errors import FinalistError
from finalist.study import Study


@contextmanager
def as_file(content: bytes, name: str) -> Iterator[Path]:
    """Give a temporary file with this content; errors speak of `name` in place of its path."""
    with tempfile.TemporaryDirectory(prefix="finalist-") as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(content)
        try:
            yield path
        except FinalistError as error:
            error.args = (str(error).replace(str(path), name), *error.args[1:])
            raise


def read_table(
    content: bytes, name: str = "the table", columns: Mapping[str, str] | None = None
) -> ArmsTable:
    """Read arms from the bytes of a CSV file; `columns` are those that are no features.

    Their keys are words of `arms_table.read_table`: measurable, sigma, cost.
    """
    with as_file(content, name) as path:
        return arms_table.read_table(path, **(columns or {}))


def read_arms(content: bytes, name: str = "the table") -> Arms:
    r"""Read arms from the bytes of a CSV file.

    Examples
    --------
    >>> read_arms(b"name,dose\na,1\nb,x\n")
    Traceback (most recent call last):
    finalist.errors.FileFormatError: the table, line 3, column 'dose': 'x' is not a finite number...
    """
    return read_table(content, name).arms


def tell_table(
    study: Study,
    content: bytes,
    client_id: str | None = None,
    *,
    decimal: str = ".",
    name: str = "the table",
) -> int:
    """Tell a study the rewards in the bytes of a CSV file; return how many were new."""
    with as_file(content, name) as path:
        return study.tell(path, client_id, decimal=decimal)
