"""Uploaded tables, read by the library as temporary files under names of our own."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from finalist.arms.table import ArmsTable, read_table
from finalist.errors import FinalistError, TooLargeError
from finalist.study import Study, handles
from finalist.study.measure import Told
from finalist.study.results import read_results

#: Rows accepted at a time.
MAX_ARMS, MAX_RESULTS = 20_000, 200_000


@contextmanager
def as_file(content: bytes, name: str) -> Iterator[Path]:
    """Give a temporary file with this content; errors say `name` instead of its path."""
    with tempfile.TemporaryDirectory(prefix="finalist-") as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(content)
        try:
            yield path
        except FinalistError as error:
            error.args = (str(error).replace(str(path), name), *error.args[1:])
            raise


def check_lines(content: bytes, most: int, name: str, remedy: str) -> None:
    r"""Reject a table with too many lines, without parsing it; the first is the header.

    Examples
    --------
    >>> check_lines(b"name\na\nb\n", 2, "the table", "Send less.")
    >>> check_lines(b"name\na\nb\nc", 2, "the table", "Send less.")
    Traceback (most recent call last):
    finalist.errors.TooLargeError: the table has more than 2 rows, ... Send less.
    """
    ends = max(content.count(b"\n"), content.count(b"\r"))
    if ends + (not content.endswith((b"\n", b"\r"))) > most + 1:
        raise TooLargeError(
            f"{name} has more than {most:,} rows, the server's limit for one request. "
            f"Nothing was changed. {remedy}"
        )


def check_arms(content: bytes, name: str) -> None:
    """Reject a table of more arms than the server accepts."""
    remedy = "Create larger studies with the command 'finalist new'; the page shows them."
    check_lines(content, MAX_ARMS, name, remedy)


def read_arms_table(
    content: bytes, name: str = "the table", columns: Mapping[str, str] | None = None
) -> ArmsTable:
    r"""Read arms from the bytes of a CSV file.

    `columns` are those that are not features, as in `finalist.arms.table.read_table`: measurable,
    sigma, cost.

    Examples
    --------
    >>> read_arms_table(b"name,dose\na,1\nb,x\n")
    Traceback (most recent call last):
    finalist.errors.FileFormatError: the table, line 3, column 'dose': 'x' is not a finite number...
    """
    check_arms(content, name)
    with as_file(content, name) as path:
        return read_table(path, **(columns or {}))


def tell_table(
    study: Study,
    content: bytes,
    client_id: str | None = None,
    *,
    decimal: str = ".",
    name: str = "the table",
) -> Told:
    """Tell a study the rewards in the bytes of a CSV file."""
    remedy = "Send it in parts, or use 'finalist tell' on the machine that holds the study."
    check_lines(content, MAX_RESULTS, name, remedy)
    return handles.tell(study, read_results(content, decimal=decimal, name=name), client_id)
