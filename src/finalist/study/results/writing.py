"""Sheets of measurements to make, which a person fills in and `read_results` takes back."""

from collections.abc import Mapping, Sequence
from os import PathLike

from finalist.errors import OutputError
from finalist.study.results.columns import FURTHER, OwnColumns
from finalist.study.results.results import FAILED
from finalist.tables.writer import Form, TextStream, workbook, write_table
from finalist.text import counted

#: Cells of the candidates' own columns that a sheet may have.
MAX_OWN_CELLS = 10_000_000
_FORM = Form(
    "result",
    (FAILED,),
    "Batch",
    (
        "Write each measured value into the yellow cell of its row, in the order of the rows, and "
        "leave a cell empty that is not measured yet.",
        f"If a measurement failed, write {FAILED} and say in the column 'note' what happened: it "
        "is measured again. That must have nothing to do with how large the value was.",
    ),
)


def write_pulls(
    target: str | PathLike[str] | TextStream,
    rows: Sequence[Mapping[str, object]],
    own: OwnColumns | None = None,
    *,
    decimal: str = ".",
) -> None:
    """Write pulls to measure as a CSV, .tsv or .xlsx file with an empty column `result`.

    Parameters
    ----------
    target : str, path or text stream
        A stream gets CSV.
    rows : sequence of mappings
        With `pull_id` and `arm`, perhaps `worker`, `unit`, `result` and `note`.
    own : OwnColumns, optional
        The candidates' own columns.
    decimal : "." or ","
        With a decimal comma, semicolons separate the cells of a CSV file.

    Examples
    --------
    >>> import sys
    >>> write_pulls(sys.stdout, [{"pull_id": 7, "arm": "=tin"}])
    pull_id,candidate,result,note
    7,'=tin,,
    """
    write_table(target, *sheet_of(rows, own), decimal=decimal, form=_FORM)


def pulls_workbook(rows: Sequence[Mapping[str, object]], own: OwnColumns | None = None) -> bytes:
    """Return the content of an .xlsx file with an empty column `result`, as `write_pulls`."""
    return workbook(*sheet_of(rows, own), _FORM)


def sheet_of(
    rows: Sequence[Mapping[str, object]], own: OwnColumns | None = None
) -> tuple[list[str], list[list[object]]]:
    """Return the header and the rows of a sheet."""
    own = own or OwnColumns()
    if len(rows) * len(own) > MAX_OWN_CELLS:
        raise OutputError(
            f"{counted(len(own), 'column')} of the candidates in {len(rows):,} rows are too many "
            "for a sheet. Leave them out with --no-columns."
        )
    extra = [word for word in FURTHER if any(row.get(word) is not None for row in rows)]
    first, last = ["pull_id", "arm", *extra], ["result", "note"]
    headers = ["pull_id", "candidate", *extra, *own.headers, *last]
    known = {str(row["arm"]): own.cells(str(row["arm"])) for row in rows}
    table = [
        [*(row.get(c) for c in first), *known[str(row["arm"])], *(row.get(c) for c in last)]
        for row in rows
    ]
    return headers, table
