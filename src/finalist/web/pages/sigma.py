"""Old results on the page: a calculator of sigma, and what a new study reads of its field."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.datastructures import FormData

from finalist.errors import FinalistError
from finalist.inference.replicates import sigma_of
from finalist.study.results import Results
from finalist.study.results.earlier import old_results
from finalist.tables import Cells, Limits, read
from finalist.tables.text import decode
from finalist.web.pages.fields import Form, text_of, uploaded
from finalist.web.plain import plain
from finalist.web.render import render
from finalist.web.uploads import MAX_RESULTS

router = APIRouter()
#: Fields beside the table itself.
FIELDS = ("candidate_column", "result_column", "known_only")
LIMITS = Limits(content=20 * 2**20, rows=MAX_RESULTS, cells=1_000_000)


@dataclass(frozen=True, eq=False)
class Old:
    """A table of old results as it was sent.

    Attributes
    ----------
    text : str
        To be shown and sent again.
    results : Results or None
        None if there is no table, or if something is wrong with it.
    said : tuple of str
        How it was read.
    problem : str
        What is wrong with it; empty for nothing.
    """

    text: str = ""
    columns: tuple[str, ...] = ()
    results: Results | None = None
    said: tuple[str, ...] = ()
    problem: str = ""


@router.get("/sigma")
def sigma_page(request: Request) -> HTMLResponse:
    """Ask for old results."""
    return render(
        request, "sigma.html", old=Old(), values=dict.fromkeys(FIELDS, ""), found=None, problem=""
    )


@router.post("/sigma")
def estimate(request: Request, form: Form) -> HTMLResponse:
    """Show what they say of sigma; nothing is kept."""
    values = {field: text_of(form, field)[:2000] for field in FIELDS}
    old = read_old(form, values)
    found, problem = None, old.problem
    if old.results is not None:
        try:
            found = sigma_of(old.results.arm, old.results.value)
        except FinalistError as error:
            problem = on_page(error)
    elif not problem:
        problem = "paste some results, or choose a file."
    code = 422 if problem else 200
    return render(request, "sigma.html", code, old=old, values=values, found=found, problem=problem)


def read_old(form: FormData, values: Mapping[str, str]) -> Old:
    """Read the table of old results in a form, a file or pasted cells; none if both are empty."""
    content, name = uploaded(form, "history_file", "history", "the old results")
    if not content.strip():
        return Old()
    text, columns = text_of(form, "history"), tuple[str, ...]()
    try:
        cells = read(content, name=name, limits=LIMITS)
        columns, text = cells.names, _as_text(content, cells)
        old = old_results(
            cells, values["candidate_column"] or None, values["result_column"] or None
        )
        return Old(text, columns, old.results, old.said)
    except FinalistError as error:
        return Old(text, columns, problem=on_page(error))


def _as_text(content: bytes, cells: Cells) -> str:
    """Return a table as text that can be sent again: as it was, or with tabs."""
    try:
        return decode(content, "", None)[0]
    except FinalistError:
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
        writer.writerow(cells.names)
        writer.writerows(map(cells.text, row) for row in zip(*cells.columns, strict=True))
        return buffer.getvalue()


def on_page(error: FinalistError) -> str:
    """Return what an error says on a page."""
    return plain(str(error))
