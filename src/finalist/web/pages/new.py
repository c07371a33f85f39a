"""Creating a study: a table of candidates, then the question, with a plan before it begins."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from finalist.arms import Arms
from finalist.arms.table import ArmsTable
from finalist.errors import ArmsError, FinalistError, NameTakenError
from finalist.inference.statistics import BatchResults
from finalist.planning import MarginPrices, ModelPrices, Plan
from finalist.problem import as_problem
from finalist.study import Study
from finalist.study.history import History, event_body, examine, of_known, tells_sigma
from finalist.study.results import Results
from finalist.tables.columns import BESIDE, ROLES
from finalist.tables.text import decode
from finalist.web.arms_preview import Preview, pack, preview, unpack
from finalist.web.depends import StudiesDep, WorkersDep
from finalist.web.errors import as_refusal, http_status
from finalist.web.pages.fields import Form, text_of, texts_of, uploaded
from finalist.web.pages.form import (
    DEFAULTS,
    DIALECTS,
    METHODS,
    RESULTS,
    ROLE,
    FormError,
    StudyDraft,
    make_margins,
    make_plan,
    make_prices,
    read_draft,
    reading_of,
    strategies,
)
from finalist.web.pages.pictures import of_ends, of_leads, of_margins
from finalist.web.pages.sigma import Old, on_page, read_old
from finalist.web.pool import Studies
from finalist.web.render import render

router = APIRouter()
#: What the fields for the table can be, for templates.
_CHOICES = {"roles": ROLES, "role_field": ROLE, "dialects": DIALECTS}


@dataclass(frozen=True, eq=False)
class Tables:
    """The uploaded tables.

    Attributes
    ----------
    found : Preview or None
        The table of arms.
    candidates : bytes
        A second table, as given, from which the winner is chosen.
    both : ArmsTable or None
        Both as one; None if anything is wrong.
    problem : str or None
        What is wrong with the candidates.
    """

    found: Preview | None = None
    candidates: bytes = b""
    both: ArmsTable | None = None
    problem: str | None = None

    @property
    def text(self) -> str:
        """The candidates, to be shown and sent again; empty if they are not text."""
        try:
            return decode(self.candidates, "", None)[0]
        except FinalistError:
            return ""

    @property
    def packed(self) -> str:
        """The candidates, if they are not text."""
        return "" if self.text else pack(self.candidates)

    @property
    def arms(self) -> Arms | None:
        """Both as one set of arms."""
        return None if self.both is None else self.both.arms


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
    return _question(request, Tables(found, both=found.table), DEFAULTS)


def _ask_arms(
    request: Request,
    tables: Tables,
    values: dict[str, str],
    status: int = 422,
    *,
    problem: str | None = None,
    pasted: str = "",
    old: Old | None = None,
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
        old=old or Old(),
        wrong={},
        **_CHOICES,
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
    prices: ModelPrices | None = None,
    margins: MarginPrices | None = None,
    old: Old | None = None,
    before: History | None = None,
    asked_to_create: bool = False,
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
        prices=prices,
        margins=margins,
        pictures={} if margins is None else of_margins(margins),
        leads={} if plan is None else of_leads(plan),
        ends={} if plan is None else of_ends(plan),
        old=old or Old(),
        before=before,
        asked_to_create=asked_to_create,
        noises=RESULTS,
        strategies=strategies(),
        methods=METHODS,
        **_CHOICES,
    )


@router.post("/new/study")
def create(request: Request, form: Form, studies: StudiesDep, workers: WorkersDep) -> Response:
    """Preview the tables again, make a plan, or create the study; errors are shown in place."""
    values = {field: text_of(form, field)[:2000] for field in DEFAULTS}
    old = read_old(form, values)
    do = text_of(form, "do")
    ask_again = partial(_question, request, old=old, asked_to_create=do == "create")
    try:
        tables = _tables(form, values)
    except FinalistError as error:
        return _ask_arms(request, Tables(), values, problem=str(error), old=old)
    if tables.found is None or tables.found.table is None:
        return _ask_arms(request, tables, values, old=old)
    if do == "look":
        values["known"] = _known(values, tables.found.table)
    if tables.both is None:
        return ask_again(tables, values, 422, wrong={"candidates": tables.problem or ""})
    if do == "look":
        return ask_again(tables, values)
    draft_values = values
    if do in ("plan", "prices", "margins", "old") and not values["name"].strip():
        draft_values = {**values, "name": "plan"}  # a plan needs no name
    try:
        draft = read_draft(draft_values, tables.both)
        history, old = _history(old, draft, tables.both.arms, values)
        if do == "old":
            before = None if history is None else _examine(history, draft, tables.both.arms)
            return ask_again(tables, values, old=old, before=before)
        if do == "plan":
            plan = make_plan(tables.both.arms, draft, workers)
            return ask_again(tables, values, plan=plan)
        if do == "prices":
            prices = make_prices(tables.both.arms, draft, workers)
            return ask_again(tables, values, prices=prices)
        if do == "margins":
            margins = make_margins(tables.both.arms, draft, workers)
            return ask_again(tables, values, margins=margins)
        return _create(studies, tables.both.arms, draft, history)
    except FormError as error:
        return ask_again(tables, values, 422, wrong=error.problems)
    except NameTakenError as error:
        return ask_again(tables, values, http_status(error), wrong={"name": str(error)})
    except FinalistError as error:
        page = ask_again(tables, values, http_status(error), problem=str(error))
        page.headers.update(as_refusal(error).headers)
        return page


def _history(
    old: Old, draft: StudyDraft, arms: Arms, values: dict[str, str]
) -> tuple[Results | None, Old]:
    """Return the old results of candidates in the table, None if none were sent."""
    if old.problem:
        raise FormError({"history": old.problem})
    history = old.results
    if history is None:
        return None, old
    try:
        if values["known_only"] == "yes":
            history, words = of_known(arms, history)
            old = replace(old, said=(*old.said, *filter(None, [words])))
        event_body(as_problem(arms, **_words(draft)), history)
        if draft.words["sigma"] is None:
            tells_sigma(draft.words["noise"], history)
    except FinalistError as error:
        raise FormError({"history": on_page(error)}) from error
    return history, old


def _examine(history: Results, draft: StudyDraft, arms: Arms) -> History:
    """Test the assumptions of the study on its old results, before it is created."""
    problem = as_problem(arms, **_words(draft))
    index = np.array(event_body(problem, history)["arms"])
    return examine(problem, BatchResults.of(len(arms), index, history.value))


def _words(draft: StudyDraft) -> dict[str, Any]:
    return {k: v for k, v in draft.words.items() if k not in ("strategy", "metadata")}


def _tables(form: Form, values: dict[str, str]) -> Tables:
    """Read the table that was sent back, and the candidates if there are any."""
    roles = {
        field.removeprefix(ROLE): text
        for field, text in texts_of(form).items()
        if field.startswith(ROLE) and text
    }
    reading = reading_of(values, roles)
    found = preview(unpack(text_of(form, "arms")), reading=reading)
    content, name = uploaded(form, "candidates_file", "candidates", "the candidates")
    if not content.strip():
        content = unpack(text_of(form, "packed_candidates"))
    if found.table is None or not content.strip():
        return Tables(found, content, found.table)
    try:
        own = {column: role for column, role in roles.items() if role not in BESIDE}
        like = replace(reading, roles=own, like=found.table.arms.recipe)
        others = preview(content, name, like)
        if others.arms is None:
            raise ArmsError(others.error or f"{name} cannot be read.")
        return Tables(found, content, found.table.with_candidates(others.arms))
    except FinalistError as error:
        return Tables(found, content, None, str(error))


def _known(values: dict[str, str], table: ArmsTable) -> str:
    """Return how the noise is given; a column that was chosen for it is used."""
    if table.sigma is not None:
        return "column"
    return "unknown" if values["known"] == "column" else values["known"]


def _create(
    studies: Studies, arms: Arms, draft: StudyDraft, history: Results | None
) -> RedirectResponse:
    with studies.changing():
        Study.create(studies.place, draft.name, arms, history=history, **draft.words).close()
    return RedirectResponse(f"/studies/{studies.number(draft.name)}?said=created", status_code=303)
