"""The pages that people look at."""

import csv
import io
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import FormData

from finalist.arms.files import escape
from finalist.errors import UnknownPullError
from finalist.web import format as words
from finalist.web.cache import is_unread
from finalist.web.depends import Looked, Number, Opened, PullNumber
from finalist.web.errors import Json
from finalist.web.lifetime import Life
from finalist.web.pages.report import report
from finalist.web.pictures import Drawings, available
from finalist.web.refusals import RefusedError
from finalist.web.render import environment, render
from finalist.web.snapshot import Look, Looks, events_of, ranked, span_of

router = APIRouter()
environment.globals["say"] = words

#: Arms that the page shows unless all are asked for; rows of a batch to fill in at once.
MAX_ARMS, MAX_ROWS = 50, 400
#: Arms to choose from in a list; of more, the name is typed.
MAX_CHOICES = 1000
#: Seconds after which the list is shown, read or not; what is missing comes a moment later.
PATIENCE = 0.02
#: Events on a page of the history.
PAGE = 200
#: What the page says after something was done; `n` is a number.
SAID = {
    "created": "The study is created. Get the first batch below.",
    "issued": "A new batch is ready: measure it in this order.",
    "stored": "{n} new rewards are stored.",
    "stored-one": "1 new reward is stored.",
    "same": "Nothing is new: these rewards were stored already.",
    "void": "Pull {n} replaces the one that failed.",
    "missing": "Pull {n} is marked as missing.",
    "amended": "The reward of pull {n} is amended.",
    "noted": "The note is in the history.",
    "stopped": "The study is stopped. You can resume it at any time.",
    "resumed": "The study goes on.",
    "forked": "This is the new study. Tell the rewards of its open batch again.",
    "withdrawn": "The arm is withdrawn. All arms that are left are tested anew.",
    "added": "{n} new arms are tested from here on.",
    "added-one": "The new arm is tested from here on.",
    "deleted": "The study is deleted.",
}


async def _form(request: Request) -> AsyncIterator[FormData]:
    form = await request.form()
    try:
        yield form
    finally:
        await form.close()


Form = Annotated[FormData, Depends(_form)]


async def _looks(request: Request) -> Looks:
    state = request.app.state
    if not hasattr(state, "looks"):
        state.looks, state.drawings = Looks(state.studies), Drawings()
    looks: Looks = state.looks
    return looks


Seen = Annotated[Looks, Depends(_looks)]


def text_of(form: FormData, field: str) -> str:
    """Return a field of a form as text; a file is none."""
    value = form.get(field, "")
    return value if isinstance(value, str) else ""


def said(request: Request) -> str | None:
    """Return what was done last; the address holds a known word and a number, never a text."""
    words_ = SAID.get(request.query_params.get("said", ""))
    number = request.query_params.get("n", "")
    if words_ is None or not (number.isascii() and number.isdigit() and len(number) < 12):
        return words_ if words_ is not None and "{n}" not in words_ else None
    return words_.format(n=f"{int(number):,}")


def back(number: int, word: str, n: int | None = None, part: str = "#main") -> RedirectResponse:
    """Go back to the page of a study, which says what was done.

    Without a part it would be the one that the form came from, and the words are at the top.
    """
    query = f"said={word}" + ("" if n is None else f"&n={n}")
    return RedirectResponse(f"/studies/{number}?{query}{part}", status_code=303)


@router.get("/")
def studies_page(
    request: Request, looking: Looked, q: Annotated[str, Query(max_length=200)] = ""
) -> HTMLResponse:
    """Show all studies, the newest first, or those whose names hold a text."""
    every = looking.summaries(PATIENCE)
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
    """Say how far a request is that is worked on; a page that waits for it has given the name."""
    life: Life | None = request.app.state.lives.get(name)
    if life is None:
        raise RefusedError(404, "not found", "no such request is being worked on.")
    done, total = life.progress or (None, None)
    seconds = round(time.monotonic() - life.begun, 1)
    return Json({"done": done, "total": total, "seconds": seconds, "deadline": life.seconds})


@router.get("/studies")
def to_studies() -> RedirectResponse:
    """Go to the list."""
    return RedirectResponse("/", status_code=303)


@router.get("/studies/{number}")
def study_page(request: Request, number: Number, looks: Seen) -> HTMLResponse:
    """Show a study."""
    return show_study(request, looks.of(number))


def show_study(
    request: Request,
    look: Look,
    status: int = 200,
    *,
    problem: str | None = None,
    part: str = "",
    typed: dict[str, str] | None = None,
    wrong: dict[int, str] | None = None,
) -> HTMLResponse:
    """Return the page of a study; after something was refused, with what was typed and why."""
    everything = request.query_params.get("all") == "1"
    arms = ranked(look)
    return render(
        request,
        "study.html",
        status,
        look=look,
        status_=look.status,
        state=words.state(look.status, look.stopped),
        arms=arms if everything else arms[:MAX_ARMS],
        more=0 if everything else max(len(arms) - MAX_ARMS, 0),
        span=span_of(look),
        charts=available(look),
        rows=() if look.batch is None else look.batch.pulls[:MAX_ROWS],
        sheet=_sheet(look),
        MAX_TOLD=MAX_ROWS,
        MAX_CHOICES=MAX_CHOICES,
        place=_place(request),
        said=None if problem else said(request),
        problem=problem,
        part=part,
        typed=typed or {},
        wrong=wrong or {},
    )


def _sheet(look: Look) -> str:
    """Return the open batch as a spreadsheet takes it from the clipboard."""
    if look.batch is None:
        return ""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
    writer.writerow(["pull_id", "arm", "reward"])
    writer.writerows([p.pull_id, escape(p.arm), ""] for p in look.batch.pulls[:MAX_ROWS])
    return buffer.getvalue()


@router.get("/studies/{number}/chart/{chart}.svg")
def chart_svg(
    request: Request,
    number: Number,
    chart: str,
    looks: Seen,
    looking: Looked,
    theme: Literal["light", "dark"] = "light",
) -> Response:
    """Draw a chart of a study."""
    look = looks.of(number)
    tag = f'"{look.generation}-{number}-{look.last}-{theme}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    drawings: Drawings = request.app.state.drawings
    svg = drawings.svg(
        look, chart, theme, lambda: looking.status(number, forecast=True)[1].forecast
    )
    return Response(svg, media_type="image/svg+xml", headers=headers)


@router.get("/studies/{number}/forecast")
def forecast_page(request: Request, number: Number, looks: Seen, looking: Looked) -> HTMLResponse:
    """Say how many pulls are still needed, in words."""
    look = looks.of(number)
    found = looking.status(number, forecast=True)[1].forecast
    return render(request, "forecast.html", look=look, forecast=found)


@router.get("/studies/{number}/history")
def history_page(
    request: Request,
    number: Number,
    looks: Seen,
    studies: Opened,
    before: Annotated[int, Query(ge=1, le=2**31 - 1)] = 2**31 - 1,
) -> HTMLResponse:
    """Show what happened, the newest first."""
    look = looks.of(number)
    end = min(before - 1, look.last)
    with studies.reading(number) as study:
        events = events_of(study, max(end - PAGE, 0), most=end - max(end - PAGE, 0))
    return render(
        request,
        "history.html",
        look=look,
        events=events[::-1],
        older=events[0]["number"] if events and events[0]["number"] > 1 else None,
    )


@router.get("/studies/{number}/pulls/{pull}")
def pull_page(request: Request, number: Number, pull: PullNumber, looks: Seen) -> HTMLResponse:
    """Show one pull of the open batch, and what can be done about it."""
    return show_pull(request, looks.of(number), pull)


def show_pull(
    request: Request, look: Look, pull: int, status: int = 200, **context: Any
) -> HTMLResponse:
    """Return the page of a pull."""
    waiting = () if look.batch is None else look.batch.pulls
    found: dict[str, Any] | None = next(
        ({"arm": p.arm, "fate": "open", "reward": None} for p in waiting if p.pull_id == pull),
        next((vars(told) for told in look.told if told.pull_id == pull), None),
    )
    if found is None:
        raise UnknownPullError(
            f"pull {pull} is not in the open batch of study {words.name(look.name)!r}, so nothing "
            "can be changed about it. The file of all pulls says what became of it; to start anew "
            "from before its batch, fork the study."
        )
    shown = {"problem": None, "typed": {}} | context
    return render(request, "pull.html", status, look=look, pull_id=pull, pull=found, **shown)


@router.get("/studies/{number}/report.html")
def report_file(request: Request, number: Number, looks: Seen, looking: Looked) -> Response:
    """Return everything in one file, to keep or to send."""
    look = looks.of(number)
    forecast = looking.status(number, forecast=True)[1].forecast
    drawings: Drawings = request.app.state.drawings
    text = report(look, forecast, _place(request), drawings)
    name = f'attachment; filename="study-{number}.html"'
    return HTMLResponse(text, headers={"Content-Disposition": name})
