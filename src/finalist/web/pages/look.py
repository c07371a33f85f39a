"""The pages for reading: the list, a study, its charts, history, measurements and report."""

import io
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from finalist.errors import UnknownPullError
from finalist.study import Snapshot
from finalist.study.results import OwnColumns, sheet_of
from finalist.study.status import status as status_of
from finalist.tables.writer import write_table
from finalist.web.cache import is_unread
from finalist.web.depends import Number, PullNumber, SnapshotsDep, StudiesDep
from finalist.web.errors import Json, RefusedError
from finalist.web.example import SIZE as EXAMPLE_SIZE
from finalist.web.lifetime import Life
from finalist.web.pages.pictures import available, svg
from finalist.web.pages.report import report
from finalist.web.pages.said import said
from finalist.web.pages.shown import context
from finalist.web.render import render

router = APIRouter()

#: Arms shown unless all are asked for; rows of a batch to fill in at once.
MAX_ARMS, MAX_ROWS = 50, 400
#: The candidates' own columns that are shown beside a batch; the file has all of them.
MAX_OWN = 12
#: Columns in the table of effects.
MAX_EFFECTS = 30
#: Those on a sheet to print.
MAX_PRINTED = 6
#: Arms offered in a drop-down list; with more, the name is typed.
MAX_CHOICES = 1000
#: Seconds after which the list is shown even if not all studies are read; the page then reloads.
PATIENCE = 0.02
#: Events on a page of the history.
PAGE = 200


@router.get("/")
def studies_page(
    request: Request, snapshots: SnapshotsDep, q: Annotated[str, Query(max_length=200)] = ""
) -> HTMLResponse:
    """List all studies, the newest first, or those whose names contain a text."""
    every = snapshots.lines(PATIENCE)
    lines = [line for line in every if q.strip().lower() in line["name"].lower()]
    lines.sort(key=lambda line: (line["created"], line["number"]), reverse=True)
    return render(
        request,
        "list.html",
        lines=lines,
        q=q,
        total=len(every),
        reading=any(map(is_unread, every)),
        place=_place(request),
        said=said(request),
    )


def _place(request: Request) -> str:
    return str(request.app.state.studies.shown)


@router.get("/progress/{name}")
async def work(request: Request, name: str) -> Json:
    """Report the progress of a request, under the name that the waiting page gave it."""
    life: Life | None = request.app.state.lives.get(name)
    if life is None:
        raise RefusedError(404, "not found", "no such request is in progress.")
    done, total = life.progress or (None, None)
    seconds = round(time.monotonic() - life.begun, 1)
    return Json({"done": done, "total": total, "seconds": seconds, "deadline": life.seconds})


@router.get("/help")
def help_page(request: Request) -> HTMLResponse:
    """Explain what the pages say, a topic each."""
    return render(request, "help.html")


@router.get("/studies")
def to_studies() -> RedirectResponse:
    """Redirect to the list."""
    return RedirectResponse("/", status_code=303)


@router.get("/studies/{number}")
def study_page(request: Request, number: Number, snapshots: SnapshotsDep) -> HTMLResponse:
    """Show a study."""
    return show_study(request, snapshots.of(number), expected=snapshots.expected(number))


@router.get("/studies/{number}/sheet")
def sheet_page(request: Request, number: Number, snapshots: SnapshotsDep) -> Response:
    """Show the open batch as a sheet to print and to write on."""
    snapshot = snapshots.of(number)
    if snapshot.batch is None:
        raise RefusedError(404, "not found", "there is no batch to measure now.")
    own = snapshot.batch.own_columns()
    return render(request, "sheet.html", snapshot=snapshot, own=own, MAX_PRINTED=MAX_PRINTED)


def show_study(
    request: Request,
    snapshot: Snapshot,
    status: int = 200,
    *,
    problem: str | None = None,
    part: str = "",
    typed: dict[str, str] | None = None,
    wrong: dict[int, str] | None = None,
    expected: str | None = None,
) -> HTMLResponse:
    """Return the page of a study; after an error, with the problem and what was typed."""
    everything = request.query_params.get("all") == "1"
    shown = context(snapshot, status_of(snapshot))
    arms = shown["found"].rows
    return render(
        request,
        "study.html",
        status,
        **shown,
        arms=arms if everything else arms[:MAX_ARMS],
        more=0 if everything else max(len(arms) - MAX_ARMS, 0),
        pictures=available(snapshot),
        expected=expected,
        example_size=EXAMPLE_SIZE,
        MAX_EFFECTS=MAX_EFFECTS,
        rows=() if snapshot.batch is None else snapshot.batch.pulls[:MAX_ROWS],
        own=OwnColumns() if snapshot.batch is None else snapshot.batch.own_columns(),
        MAX_OWN=MAX_OWN,
        sheet=_sheet(snapshot),
        MAX_TOLD=MAX_ROWS,
        MAX_CHOICES=MAX_CHOICES,
        place=_place(request),
        said=None if problem else said(request),
        problem=problem,
        part=part,
        typed=typed or {},
        wrong=wrong or {},
    )


def _sheet(snapshot: Snapshot) -> str:
    """Return the open batch as text to paste into a spreadsheet."""
    if snapshot.batch is None:
        return ""
    header, rows = sheet_of(snapshot.batch.rows()[:MAX_ROWS], snapshot.batch.own_columns())
    buffer = io.StringIO(newline="")
    write_table(buffer, header, rows, delimiter="\t")
    return buffer.getvalue().replace("\r\n", "\n")


@router.get("/studies/{number}/chart/{chart}.svg")
def chart_svg(
    request: Request,
    number: Number,
    chart: str,
    snapshots: SnapshotsDep,
    theme: Literal["light", "dark"] = "light",
    narrow: bool = False,
) -> Response:
    """Draw a chart of a study."""
    moment, snapshot = snapshots.at(number)
    tag = f'"{moment[0]}-{number}-{moment[1]}-{theme}-{narrow}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    text = svg(
        snapshot,
        chart,
        theme,
        lambda: snapshots.status(number, forecast=True)[1].forecast,
        snapshots.cache,
        moment,
        narrow=narrow,
    )
    return Response(text, media_type="image/svg+xml", headers=headers)


@router.get("/studies/{number}/forecast")
def forecast_page(request: Request, number: Number, snapshots: SnapshotsDep) -> HTMLResponse:
    """Say how many measurements are still needed, and what a margin would change."""
    snapshot, found = snapshots.of(number), snapshots.status(number, forecast=True)[1]
    return render(
        request, "forecast.html", snapshot=snapshot, forecast=found.forecast, status_=found
    )


@router.get("/studies/{number}/history")
def history_page(
    request: Request,
    number: Number,
    snapshots: SnapshotsDep,
    studies: StudiesDep,
    before: Annotated[int, Query(ge=1, le=2**31 - 1)] = 2**31 - 1,
) -> HTMLResponse:
    """List the events, the newest first."""
    snapshot = snapshots.of(number)
    end = min(before - 1, snapshot.event)
    with studies.reading(number) as study:
        events = study.events(max(end - PAGE, 0), most=end - max(end - PAGE, 0))
    return render(
        request,
        "history.html",
        snapshot=snapshot,
        status_=status_of(snapshot),
        events=events[::-1],
        older=events[0]["number"] if events and events[0]["number"] > 1 else None,
    )


@router.get("/studies/{number}/pulls/{pull}")
def pull_page(
    request: Request, number: Number, pull: PullNumber, snapshots: SnapshotsDep
) -> HTMLResponse:
    """Show one pull of the open batch and what can be done about it."""
    return show_pull(request, snapshots.of(number), pull)


def show_pull(
    request: Request, snapshot: Snapshot, pull: int, status: int = 200, **context: Any
) -> HTMLResponse:
    """Return the page of a pull."""
    waiting = () if snapshot.batch is None else snapshot.batch.pulls
    found: dict[str, Any] | None = next(
        ({"arm": p.arm, "fate": "open", "reward": None} for p in waiting if p.pull_id == pull),
        next((vars(told) for told in snapshot.settled if told.pull_id == pull), None),
    )
    if found is None:
        raise UnknownPullError(
            f"measurement {pull} is not in the open batch, so it cannot be changed any more. The "
            "file of all results says what became of it; to start over from before its batch, "
            "start the study anew from there."
        )
    shown = {"problem": None, "typed": {}} | context
    return render(
        request, "pull.html", status, snapshot=snapshot, pull_id=pull, pull=found, **shown
    )


@router.get("/studies/{number}/report.html")
def report_file(request: Request, number: Number, snapshots: SnapshotsDep) -> Response:
    """Return a report in one file, to keep or to send."""
    moment, snapshot = snapshots.at(number)
    simulated = snapshots.status(number, forecast=True)[1]
    text = report(snapshot, simulated, _place(request), snapshots.cache, moment)
    name = f'attachment; filename="study-{number}.html"'
    return HTMLResponse(text, headers={"Content-Disposition": name})
