"""Uploaded tables and what the server accepts of them."""

from finalist.arms.table import ArmsTable, read_table
from finalist.errors import TooLargeError
from finalist.study import Study, handles
from finalist.study.measure import Told
from finalist.study.results import OwnColumns, read_results
from finalist.tables import Dialect, Limits

#: Rows accepted at a time.
MAX_ARMS, MAX_RESULTS = 20_000, 200_000
#: What is read of a table of arms.
LIMITS = Limits(rows=MAX_ARMS, cells=1_000_000)


def read_arms_table(content: bytes, name: str = "the table") -> ArmsTable:
    r"""Read arms from the bytes of a file, as given.

    Examples
    --------
    >>> read_arms_table(b"name,dose\na,1\nb,x\n")
    Traceback (most recent call last):
    finalist.errors.FileFormatError: the table, line 3, column 'dose': 'x' is not a finite number...
    """
    return read_table(content, name=name, limits=LIMITS)


def tell_table(
    study: Study,
    content: bytes,
    client_id: str | None = None,
    dialect: Dialect | None = None,
    *,
    name: str = "the table",
) -> Told:
    """Tell a study the results in the bytes of a file, or in pasted cells."""
    own, limits = OwnColumns(study.arms).headers, Limits(rows=MAX_RESULTS)
    try:
        results = read_results(content, dialect, own=own, name=name, limits=limits)
    except TooLargeError as error:
        raise TooLargeError(
            f"{error} Nothing was changed. Send it in parts, or use 'finalist tell' on the machine "
            "that holds the study."
        ) from error
    return handles.tell(study, results, client_id)
