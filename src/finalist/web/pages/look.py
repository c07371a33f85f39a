"""The pages for reading: the list, a study, its charts, history, pulls and report."""

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
from finalist.web.lifetime import Life
from finalist.web.pages import format as words
from finalist.web.pages.pictures import available, svg
from finalist.web.pages.report import report
from finalist.web.render import environment, render

router = APIRouter()
environment.globals["say"] = words

#: Arms shown unless all are asked for; rows of a batch to fill in at once.
MAX_ARMS, MAX_ROWS = 50, 400
#: The candidates' own columns that are shown beside a batch; the file has all of them.
MAX_OWN = 12
#: Columns in the table of effects.
MAX_EFFECTS = 30
#: Arms offered in a drop-down list; with more, the name is typed.
MAX_CHOICES = 1000
#: Seconds after which the list is shown even if not all studies are read; the page then reloads.
PATIENCE = 0.02
#: Events on a page of the history.
PAGE = 200
#: Messages after an action; `n` is a number.
SAID = {
    "created": "The study is created. Get the first batch below.",
    "issued": "A new batch is ready: measure it in this order.",
    "stored": "{n} new results are stored.",
    "stored-one": "1 new result is stored.",
    "failed": "{n} measurements failed. They are made again, below under new numbers.",
    "failed-one": "1 measurement failed. It is made again, below under a new number.",
    "same": "Nothing is new: these results were stored already.",
    "void": "Pull {n} replaces the one that failed.",
    "missing": "Pull {n} is marked as missing.",
    "amended": "The reward of pull {n} is amended.",
    "noted": "The note is in the history.",
    "stopped": "The study is stopped. You can resume it at any time.",
    "resumed": "The study goes on.",
    "rebudgeted": "The budget is changed. What is measured next is planned for it; what is certain "
    "stays certain.",
    "forked": "This is the new study. Tell the rewards of its open batch again.",
    "remodelled": "This is the new study, with fresh evidence. Its assumptions say what the "
    "probabilities of error of the two studies add up to.",
    "withdrawn": "The arm is withdrawn. All arms that are left are tested anew.",
    "added": "{n} new arms are tested from here on.",
    "added-one": "The new arm is tested from here on.",
    "deleted": "The study is deleted.",
}


def said(request: Request) -> str | None:
    """Return the message of the last action; the URL holds a key and numbers, never a text."""
    query = request.query_params
    first = _message(query.get("said", ""), query.get("n", ""))
    again = query.get("again", "")
    more = _message("failed-one" if again == "1" else "failed", again) if again else None
    return " ".join(filter(None, (first, more))) or None


def _message(word: str, number: str) -> str | None:
    words_ = SAID.get(word)
    if words_ is None or not (number.isascii() and number.isdigit() and len(number) < 12):
        return words_ if words_ is not None and "{n}" not in words_ else None
    return words_.format(n=f"{int(number):,}")


def back(
    number: int, word: str, n: int | None = None, part: str = "#main", *, again: int = 0
) -> RedirectResponse:
    """Redirect to the page of a study, with the message of an action.

    Without a fragment the browser would keep that of the form, but messages are at the top.
    """
    query = f"said={word}" + ("" if n is None else f"&n={n}") + (f"&again={again}" if again else "")
    return RedirectResponse(f"/studies/{number}?{query}{part}", status_code=303)


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


@router.get("/studies")
def to_studies() -> RedirectResponse:
    """Redirect to the list."""
    return RedirectResponse("/", status_code=303)


@router.get("/studies/{number}")
def study_page(request: Request, number: Number, snapshots: SnapshotsDep) -> HTMLResponse:
    """Show a study."""
    return show_study(request, snapshots.of(number))


def show_study(
    request: Request,
    snapshot: Snapshot,
    status: int = 200,
    *,
    problem: str | None = None,
    part: str = "",
    typed: dict[str, str] | None = None,
    wrong: dict[int, str] | None = None,
) -> HTMLResponse:
    """Return the page of a study; after an error, with the problem and what was typed."""
    everything = request.query_params.get("all") == "1"
    found = status_of(snapshot)
    arms = words.ranked(found, snapshot.problem.sign)
    return render(
        request,
        "study.html",
        status,
        snapshot=snapshot,
        status_=found,
        state=words.state(found, snapshot.stopped),
        arms=arms if everything else arms[:MAX_ARMS],
        more=0 if everything else max(len(arms) - MAX_ARMS, 0),
        span=words.span_of(found),
        charts=available(snapshot),
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
) -> Response:
    """Draw a chart of a study."""
    moment, snapshot = snapshots.at(number)
    tag = f'"{moment[0]}-{number}-{moment[1]}-{theme}"'
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
    )
    return Response(text, media_type="image/svg+xml", headers=headers)


@router.get("/studies/{number}/forecast")
def forecast_page(request: Request, number: Number, snapshots: SnapshotsDep) -> HTMLResponse:
    """Say how many pulls are still needed, and what a margin would change."""
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
            f"pull {pull} is not in the open batch of study {words.name(snapshot.name)!r}, so it "
            "cannot be changed. The file of all pulls says what became of it; to start over from "
            "before its batch, fork the study."
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
