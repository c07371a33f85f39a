"""Changing the arms of a study, and deleting it."""

import re
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from finalist.arms import Arms
from finalist.arms.table import ArmsTable
from finalist.errors import ConflictError, FinalistError, StudyError
from finalist.files import printable
from finalist.study import Snapshot, Study
from finalist.study.rules import check_text
from finalist.study.status import status as status_of
from finalist.study.tables import union
from finalist.web.arms_preview import Preview, Reading, preview, unpack
from finalist.web.depends import Number, SnapshotsDep
from finalist.web.errors import http_status
from finalist.web.pages import format as words
from finalist.web.pages.act import Sent, Submission
from finalist.web.pages.fields import uploaded
from finalist.web.pages.said import back
from finalist.web.render import render

router = APIRouter()
#: An arm as the list of arms sends it: the stage of the study, and its number in that stage.
_CHOICE = re.compile(r"([0-9]{1,6})-([0-9]{1,9})")
#: Characters of an error about a table.
_MAX_PROBLEM = 600


@router.post("/studies/{number}/withdraw")
def withdraw(sent: Sent) -> Response:
    """Withdraw an arm."""

    def act(study: Study) -> Response:
        reason = sent.text("reason")
        check_text("reason", reason)
        arm = _arm(study, sent)
        note = f"{words.name(arm)} was withdrawn: {reason}"
        check_text("reason", note)  # before the change: the note must not fail after it
        study.withdraw(arm)
        study.note(note)
        return back(sent.number, "withdrawn")

    return sent.change("withdraw", act)


def _arm(study: Study, sent: Submission) -> str:
    """Return the arm that was chosen from the list, or whose name was typed."""
    chosen, typed = sent.text("arm"), sent.text("arm_name").strip()
    if not chosen and not typed:
        raise StudyError("choose the arm to withdraw. Nothing was changed.")
    if not chosen:
        return typed
    found, now = _CHOICE.fullmatch(chosen), study.snapshot(events=0)
    if found is None or int(found[1]) != now.stage or int(found[2]) >= len(now.arms):
        raise ConflictError(
            "the arms have changed since this page was loaded. Nothing was changed now; choose "
            "again."
        )
    return now.arms.names[int(found[2])]


# ---- adding ------------------------------------------------------------------------------


@router.get("/studies/{number}/add")
def add_page(request: Request, number: Number, snapshots: SnapshotsDep) -> HTMLResponse:
    """Ask for the arms to add."""
    return _show(request, snapshots.of(number))


def _show(
    request: Request,
    snapshot: Snapshot,
    status: int = 200,
    *,
    found: Preview | None = None,
    problem: str | None = None,
    pasted: str = "",
    new: int = 0,
) -> HTMLResponse:
    problem = None if problem is None else printable(problem, _MAX_PROBLEM)
    context: dict[str, Any] = {"found": found, "problem": problem, "pasted": pasted, "new": new}
    context |= {"columns": [*_roles(snapshot)], "own_features": snapshot.arms.recipe.columns}
    return render(request, "add.html", status, snapshot=snapshot, **context)


def _roles(snapshot: Snapshot) -> dict[str, str]:
    """Return columns besides features that a table of further arms needs, with their roles."""
    values = {"sigma": snapshot.problem.noise.sigma, "cost": snapshot.problem.cost}
    roles = {"sigma": "noise", "cost": "cost"}
    return {word: roles[word] for word, value in values.items() if isinstance(value, tuple)}


@router.post("/studies/{number}/add")
def add(sent: Sent) -> Response:
    """Show what was found in a table of arms to add; when that is confirmed, add them."""
    request, number = sent.request, sent.number
    snapshot, pasted, packed = sent.snapshots.of(number), sent.text("pasted"), sent.text("arms")
    found = None
    try:
        content, name = (unpack(packed), "the table") if packed else uploaded(sent.form)
        found = preview(content, name, Reading(_roles(snapshot), like=snapshot.arms.recipe))
        if found.table is None or found.arms is None:
            return _show(request, snapshot, 422, found=found, problem=found.error, pasted=pasted)
        if packed:
            with sent.studies.writing(number) as study:
                before = len(study.arms)
                study.add(found.arms, **_own_values(study.arms, found.table))
                new = len(study.arms) - before
            return back(number, "added-one") if new == 1 else back(number, "added", new)
        if snapshot.fixed is not None:
            raise ConflictError(snapshot.fixed)
        new = int((union(snapshot.arms, found.arms)[1] < 0).sum())
    except FinalistError as error:
        snapshot = sent.snapshots.of(number)
        status, problem = http_status(error), str(error)
        return _show(request, snapshot, status, found=found, problem=problem, pasted=pasted)
    return _show(request, snapshot, found=found, new=new)


def _own_values(arms: Arms, more: ArmsTable) -> dict[str, np.ndarray | None]:
    """Return the noise and the cost of the arms that are new."""
    both, kept = union(arms, more.arms)
    new = [more.arms.index(both.names[i]) for i in np.flatnonzero(kept < 0)]
    values = {"sigma": more.sigma, "cost": more.cost}
    return {word: None if value is None else value[new] for word, value in values.items()}


# ---- deleting ----------------------------------------------------------------------------


@router.get("/studies/{number}/delete")
def delete_page(request: Request, number: Number, snapshots: SnapshotsDep) -> HTMLResponse:
    """Say what would be lost, and ask for the name."""
    return _ask_to_delete(request, snapshots.of(number))


def _ask_to_delete(
    request: Request, snapshot: Snapshot, status: int = 200, **context: str
) -> HTMLResponse:
    shown = {"problem": None, "typed": "", "status_": status_of(snapshot), **context}
    return render(request, "delete.html", status, snapshot=snapshot, **shown)


@router.post("/studies/{number}/delete")
def delete(sent: Sent) -> Response:
    """Delete a study if its name was typed, either in full or as the page shows it."""
    snapshot, typed = sent.snapshots.of(sent.number), sent.text("name").strip()
    if typed not in (snapshot.name, words.name(snapshot.name)):
        problem = "Nothing was deleted: this is not the name of the study."
        return _ask_to_delete(sent.request, snapshot, 422, problem=problem, typed=typed)
    sent.studies.delete(sent.number)
    return RedirectResponse("/?said=deleted", status_code=303)
