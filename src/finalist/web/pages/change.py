"""Other arms in the middle of a study, and its end: withdraw, add, delete."""

import re

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from finalist.arms import Arms
from finalist.errors import ConflictError, FinalistError, StudyError
from finalist.files import printable
from finalist.study import Study
from finalist.study.rules import check_text
from finalist.study.tables import union
from finalist.web import format as words
from finalist.web.arms_preview import Preview, preview, unpack
from finalist.web.depends import Number, Opened
from finalist.web.errors import status_of
from finalist.web.pages.act import change, uploaded
from finalist.web.pages.look import Form, Seen, back, text_of
from finalist.web.render import render
from finalist.web.snapshot import Look

router = APIRouter()
#: An arm as the list of arms sends it: the stage of the study, and its number in that stage.
_CHOICE = re.compile(r"([0-9]{1,6})-([0-9]{1,9})")
#: Letters of what is said about a table.
_LONGEST = 600


@router.post("/studies/{number}/withdraw")
def withdraw(
    request: Request, number: Number, form: Form, studies: Opened, looks: Seen
) -> Response:
    """Take an arm out of the question."""

    def act(study: Study) -> Response:
        reason = text_of(form, "reason")
        check_text("reason", reason)
        arm = _arm(study, form)
        note = f"{words.name(arm)} was withdrawn: {reason}"
        check_text("reason", note)  # the note must not be what fails
        study.withdraw(arm)
        study.note(note)
        return back(number, "withdrawn")

    return change(request, number, studies, looks, form, "withdraw", act)


def _arm(study: Study, form: Form) -> str:
    """Return the arm that was chosen from the list of arms, or whose name was typed."""
    chosen, typed = text_of(form, "arm"), text_of(form, "arm_name").strip()
    if not chosen and not typed:
        raise StudyError("choose the arm to withdraw. Nothing was changed.")
    if not chosen:
        return typed
    found, state = _CHOICE.fullmatch(chosen), study._log.now()
    if found is None or int(found[1]) != state.stage or int(found[2]) >= len(state.arms):
        raise ConflictError(
            "the arms have changed since this page was made. Nothing was changed now; choose again."
        )
    return state.arms.names[int(found[2])]


# ---- adding ------------------------------------------------------------------------------


@router.get("/studies/{number}/add")
def add_page(request: Request, number: Number, looks: Seen) -> HTMLResponse:
    """Ask for the arms to add."""
    return _show(request, looks.of(number))


def _show(
    request: Request,
    look: Look,
    status: int = 200,
    *,
    found: Preview | None = None,
    problem: str | None = None,
    pasted: str = "",
    new: int = 0,
) -> HTMLResponse:
    return render(
        request,
        "add.html",
        status,
        look=look,
        found=found,
        problem=None if problem is None else printable(problem, _LONGEST),
        pasted=pasted,
        new=new,
    )


@router.post("/studies/{number}/add")
def add(request: Request, number: Number, form: Form, studies: Opened, looks: Seen) -> Response:
    """Show what was found in a table of arms to add, then add them."""
    look, pasted, packed = looks.of(number), text_of(form, "pasted"), text_of(form, "arms")
    found = None
    try:
        content, name = (unpack(packed), "the table") if packed else uploaded(form)
        found = preview(content, name, roles=look.columns)
        if found.arms is None:
            return _show(request, look, 422, found=found, problem=found.error, pasted=pasted)
        if packed:
            with studies.writing(number) as study:
                before = len(study.arms)
                study.add(found.arms, **_own_values(study.arms, found.arms, found))
                new = len(study.arms) - before
            return back(number, "added-one") if new == 1 else back(number, "added", new)
        if look.fixed is not None:
            raise ConflictError(look.fixed)
        new = int((union(look.arms, found.arms)[1] < 0).sum())
    except FinalistError as error:
        return _show(
            request,
            looks.of(number),
            status_of(error),
            found=found,
            problem=str(error),
            pasted=pasted,
        )
    return _show(request, look, found=found, new=new)


def _own_values(arms: Arms, more: Arms, found: Preview) -> dict[str, np.ndarray | None]:
    """Return the noise and the cost of the arms that are new."""
    both, kept = union(arms, more)
    new = [more.index(both.names[i]) for i in np.flatnonzero(kept < 0)]
    values = {"sigma": found.sigma, "cost": found.cost}
    return {word: None if value is None else value[new] for word, value in values.items()}


# ---- deleting ----------------------------------------------------------------------------


@router.get("/studies/{number}/delete")
def delete_page(request: Request, number: Number, looks: Seen) -> HTMLResponse:
    """Say what is lost, and ask for the name."""
    return render(request, "delete.html", look=looks.of(number), problem=None, typed="")


@router.post("/studies/{number}/delete")
def delete(request: Request, number: Number, form: Form, studies: Opened, looks: Seen) -> Response:
    """Delete a study if its name was typed, as it is or as the page shows it."""
    look, typed = looks.of(number), text_of(form, "name").strip()
    if typed not in (look.name, words.name(look.name)):
        problem = "Nothing was deleted: this is not the name of the study."
        return render(request, "delete.html", 422, look=look, problem=problem, typed=typed)
    studies.delete(number)
    return RedirectResponse("/?said=deleted", status_code=303)
