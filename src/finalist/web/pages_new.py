"""Beginning a study: a table of arms, then the question, with a plan before the first pull."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from finalist.arms import Arms
from finalist.errors import FinalistError, NameTakenError
from finalist.planning import Plan
from finalist.study import Study
from finalist.web.api_planning import simulating
from finalist.web.arms_preview import Preview, preview, unpack
from finalist.web.depends import Opened
from finalist.web.errors import as_refusal, status_of
from finalist.web.new_study import (
    DEFAULTS,
    NOISES,
    FormError,
    Wish,
    make_plan,
    read_wish,
    strategies,
)
from finalist.web.opened import Studies
from finalist.web.pages_actions import uploaded
from finalist.web.pages_looking import Form, text_of
from finalist.web.rendering import render

router = APIRouter()


@router.get("/new")
def new_page(request: Request) -> HTMLResponse:
    """Ask for the arms."""
    return render(request, "new.html", found=None, problem=None, pasted="")


@router.post("/new")
def arms_page(request: Request, form: Form) -> HTMLResponse:
    """Show what was found in the table of arms, and ask for the rest."""
    content, name = uploaded(form)
    try:
        found = preview(content, name)
    except FinalistError as error:
        return render(request, "new.html", 422, found=None, problem=str(error), pasted="")
    if found.arms is None:
        pasted = text_of(form, "pasted")
        return render(request, "new.html", 422, found=found, problem=found.error, pasted=pasted)
    return _question(request, found, DEFAULTS)


def _question(
    request: Request,
    found: Preview,
    values: dict[str, str],
    status: int = 200,
    *,
    problem: str | None = None,
    wrong: dict[str, str] | None = None,
    plan: Plan | None = None,
) -> HTMLResponse:
    return render(
        request,
        "question.html",
        status,
        found=found,
        values=values,
        problem=problem,
        wrong=wrong or {},
        plan=plan,
        noises=NOISES,
        strategies=strategies(),
    )


@router.post("/new/study")
def create(request: Request, form: Form, studies: Opened) -> Response:
    """Make a plan or the study; what is wrong is shown beside what was typed."""
    values = {field: text_of(form, field)[:2000] for field in DEFAULTS}
    found = preview(unpack(text_of(form, "arms")))
    if found.arms is None:
        return render(request, "new.html", 422, found=found, problem=found.error, pasted="")
    planned = text_of(form, "do") == "plan"
    if planned and not values["name"].strip():
        wish_values = {**values, "name": "plan"}  # a plan needs no name
    else:
        wish_values = values
    try:
        wish = read_wish(wish_values)
        if planned:
            with simulating.take():
                plan = make_plan(found.arms, wish)
            return _question(request, found, values, plan=plan)
        return _create(studies, found.arms, wish)
    except FormError as error:
        return _question(request, found, values, 422, wrong=error.problems)
    except NameTakenError as error:
        return _question(request, found, values, status_of(error), wrong={"name": str(error)})
    except FinalistError as error:
        page = _question(request, found, values, status_of(error), problem=str(error))
        page.headers.update(as_refusal(error).headers)
        return page


def _create(studies: Studies, arms: Arms, wish: Wish) -> RedirectResponse:
    with studies.changing():
        Study.create(studies.place, wish.name, arms, **wish.words).close()
    return RedirectResponse(f"/studies/{studies.number(wish.name)}?said=created", status_code=303)
