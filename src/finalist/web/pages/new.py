"""Creating a study: a table of arms, then the question, with a plan before the first pull."""

from dataclasses import dataclass, replace

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from finalist.arms import Arms
from finalist.arms.table import ArmsTable
from finalist.errors import ArmsError, FinalistError, NameTakenError
from finalist.planning import Plan
from finalist.study import Study
from finalist.web.arms_preview import Preview, preview, unpack
from finalist.web.depends import StudiesDep, WorkersDep
from finalist.web.errors import as_refusal, http_status
from finalist.web.pages.fields import Form, text_of, uploaded
from finalist.web.pages.form import (
    DEFAULTS,
    NOISES,
    ROLES,
    FormError,
    StudyDraft,
    make_plan,
    read_draft,
    roles_of,
    strategies,
)
from finalist.web.pool import Studies
from finalist.web.render import render

router = APIRouter()


@dataclass(frozen=True, eq=False)
class Tables:
    """The uploaded tables.

    Attributes
    ----------
    found : Preview or None
        The table of arms.
    candidates : str
        A second table, as given, from which the winner is chosen.
    arms : Arms or None
        Both as one set; None if anything is wrong.
    problem : str or None
        What is wrong with the candidates.
    """

    found: Preview | None = None
    candidates: str = ""
    arms: Arms | None = None
    problem: str | None = None


@router.get("/new")
def new_page(request: Request) -> HTMLResponse:
    """Ask for the arms."""
    return _ask_arms(request, Tables(), DEFAULTS, 200)


@router.post("/new")
def arms_page(request: Request, form: Form) -> HTMLResponse:
    """Show what was found in the table of arms, and ask for the rest."""
    try:
        found = preview(*uploaded(form))
    except FinalistError as error:
        return _ask_arms(request, Tables(), DEFAULTS, problem=str(error))
    if found.arms is None:
        return _ask_arms(request, Tables(found), DEFAULTS, pasted=text_of(form, "pasted"))
    return _question(request, Tables(found, "", found.arms), DEFAULTS)


def _ask_arms(
    request: Request,
    tables: Tables,
    values: dict[str, str],
    status: int = 422,
    *,
    problem: str | None = None,
    pasted: str = "",
) -> HTMLResponse:
    """Ask for a table; if one was given that cannot be used, show it with the reason."""
    return render(
        request,
        "new.html",
        status,
        tables=tables,
        found=tables.found,
        values=values,
        problem=problem if tables.found is None else tables.found.error,
        pasted=pasted,
        wrong={},
        roles=ROLES,
    )


def _question(
    request: Request,
    tables: Tables,
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
        tables=tables,
        found=tables.found,
        values=values,
        problem=problem,
        wrong=wrong or {},
        plan=plan,
        noises=NOISES,
        roles=ROLES,
        strategies=strategies(),
    )


@router.post("/new/study")
def create(request: Request, form: Form, studies: StudiesDep, workers: WorkersDep) -> Response:
    """Preview the tables again, make a plan, or create the study; errors are shown in place."""
    values = {field: text_of(form, field)[:2000] for field in DEFAULTS}
    tables = _tables(form, values)
    if tables.arms is not None and values["intercept"] == "yes":
        tables = replace(tables, arms=tables.arms.with_intercept())
    if tables.found is None or tables.found.arms is None:
        return _ask_arms(request, tables, values)
    do = text_of(form, "do")
    if do == "look":
        values["known"] = _known(values)
    if tables.arms is None:
        wrong = {"candidates": tables.problem or ""}
        return _question(request, tables, values, 422, wrong=wrong)
    if do == "look":
        return _question(request, tables, values)
    planned = do == "plan"
    draft_values = values
    if planned and not values["name"].strip():
        draft_values = {**values, "name": "plan"}  # a plan needs no name
    try:
        draft = read_draft(draft_values, tables.found)
        if planned:
            plan = make_plan(tables.arms, draft, workers)
            return _question(request, tables, values, plan=plan)
        return _create(studies, tables.arms, draft)
    except FormError as error:
        return _question(request, tables, values, 422, wrong=error.problems)
    except NameTakenError as error:
        return _question(request, tables, values, http_status(error), wrong={"name": str(error)})
    except FinalistError as error:
        page = _question(request, tables, values, http_status(error), problem=str(error))
        page.headers.update(as_refusal(error).headers)
        return page


def _tables(form: Form, values: dict[str, str]) -> Tables:
    """Read the table that was sent back, and the candidates if there are any."""
    found = preview(unpack(text_of(form, "arms")), roles=roles_of(values))
    content, name = uploaded(form, "candidates_file", "candidates", "the candidates")
    text = content.decode("utf-8-sig", "replace")
    if found.arms is None or not content.strip():
        return Tables(found, text, found.arms)
    try:
        others = preview(content, name)
        if others.arms is None:
            raise ArmsError(others.error or f"{name} cannot be read.")
        both = ArmsTable(found.arms, found.sigma, found.cost).with_candidates(others.arms)
        return Tables(replace(found, sigma=both.sigma, cost=both.cost), text, both.arms)
    except FinalistError as error:
        return Tables(found, text, None, str(error))


def _known(values: dict[str, str]) -> str:
    """Return how the noise is given; a column that was chosen for it is used."""
    if values["sigma_column"]:
        return "column"
    return "unknown" if values["known"] == "column" else values["known"]


def _create(studies: Studies, arms: Arms, draft: StudyDraft) -> RedirectResponse:
    with studies.changing():
        Study.create(studies.place, draft.name, arms, **draft.words).close()
    return RedirectResponse(f"/studies/{studies.number(draft.name)}?said=created", status_code=303)
