"""The API: create, list, change and delete studies."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from finalist.arms import Arms
from finalist.errors import ConflictError, ProblemError, UnknownStudyError
from finalist.strategies import Strategy, configured
from finalist.study import Study
from finalist.web.api.answers import CountAnswer, StudiesAnswer, StudyAnswer, WordsAnswer
from finalist.web.api.bodies import (
    BudgetBody,
    ForkBody,
    HistoryBody,
    MoreArms,
    NewStudy,
    NoteBody,
    ReasonBody,
    WithdrawBody,
)
from finalist.web.depends import Number, SnapshotsDep, StudiesDep
from finalist.web.errors import Json
from finalist.web.pool import Studies
from finalist.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["studies"])


@router.get("/studies", response_model=StudiesAnswer)
def list_studies(
    snapshots: SnapshotsDep,
    studies: StudiesDep,
    name: Annotated[str | None, Query(max_length=10_000, description="Only this one.")] = None,
) -> Json:
    """List the studies, by name."""
    if name is None:
        return Json({"studies": snapshots.lines()})
    try:
        found = [snapshots.line(studies.number(name))]
    except UnknownStudyError:
        found = []
    return Json({"studies": found})


@router.post("/studies", response_model=StudyAnswer, status_code=201)
def create(body: NewStudy, studies: StudiesDep) -> Json:
    """Create a study."""
    arms, words = body.read()
    words["strategy"] = strategy_of(body.strategy, body.settings, arms)
    words["history"] = [(row.arm, row.reward) for row in body.history] or None
    with studies.changing():
        study = Study.create(studies.place, body.name, arms, **words)
    with study:
        number = study.number
        return Json(_about(studies, number), 201, {"Location": f"/api/v1/studies/{number}"})


def strategy_of(name: str, settings: dict[str, Any], arms: Arms) -> Strategy:
    """Return a strategy by name, with settings other than its defaults."""
    try:
        return configured(name, settings, arms)
    except TypeError as error:
        raise ProblemError(f"the settings of {name} cannot be {settings!r}: {error}.") from error


def _about(studies: Studies, number: int) -> dict[str, Any]:
    row = studies.row(number)
    return {
        "number": number,
        "name": row.name,
        "created": row.created,
        "last": studies.last(number),
        "settings": row.settings,
    }


@router.get("/studies/{number}", response_model=StudyAnswer)
def about(number: Number, studies: StudiesDep) -> Json:
    """Return what a study was created with."""
    return Json(_about(studies, number))


@router.delete("/studies/{number}", response_model=WordsAnswer)
def delete(
    number: Number,
    studies: StudiesDep,
    name: Annotated[str, Query(max_length=10_000, description="Its name, as a confirmation.")],
) -> Json:
    """Delete a study with all its rewards, permanently."""
    row = studies.row(number)
    if row.name != name:
        raise ConflictError(f"study {number} is {row.name!r}, not {name!r}; nothing was deleted.")
    studies.delete(number)
    return Json({"words": f"Study {row.name!r} is deleted."})


@router.post("/studies/{number}/import", response_model=CountAnswer)
def import_history(number: Number, body: HistoryBody, studies: StudiesDep) -> Json:
    """Bring in measurements made before the study."""
    with studies.writing(number) as study:
        pairs = [(row.arm, row.reward) for row in body.measurements]
        return Json({"count": study.import_history(pairs)})


@router.post("/studies/{number}/note", response_model=WordsAnswer)
def note(number: Number, body: NoteBody, studies: StudiesDep) -> Json:
    """Write a remark into the log."""
    with studies.writing(number) as study:
        study.note(body.text)
    return Json({"words": "Noted."})


@router.post("/studies/{number}/stop", response_model=WordsAnswer)
def stop(number: Number, body: ReasonBody, studies: StudiesDep) -> Json:
    """Stop without a winner, and say what is certain."""
    with studies.writing(number) as study:
        return Json({"words": study.stop(body.reason).sentence})


@router.post("/studies/{number}/resume", response_model=WordsAnswer)
def resume(number: Number, studies: StudiesDep) -> Json:
    """Continue after a stop."""
    with studies.writing(number) as study:
        study.resume()
    return Json({"words": "The study goes on."})


@router.post("/studies/{number}/fork", response_model=StudyAnswer, status_code=201)
def fork(number: Number, body: ForkBody, studies: StudiesDep) -> Json:
    """Start a new study from before a batch, or with another model or margin."""
    with (
        studies.writing(number) as study,
        study.fork(body.name, body.until, model=body.model, epsilon=body.epsilon) as new,
    ):
        made = new.number
    return Json(_about(studies, made), 201, {"Location": f"/api/v1/studies/{made}"})


@router.post("/studies/{number}/budget", response_model=WordsAnswer)
def budget(number: Number, body: BudgetBody, studies: StudiesDep) -> Json:
    """Go on with another budget; below what is measured or handed out, one is refused."""
    with studies.writing(number) as study:
        return Json({"words": study.set_budget(body.budget)})


@router.post("/studies/{number}/withdraw", response_model=WordsAnswer)
def withdraw(number: Number, body: WithdrawBody, studies: StudiesDep) -> Json:
    """Withdraw arms."""
    with studies.writing(number) as study:
        return Json({"words": study.withdraw(*body.names)})


@router.post("/studies/{number}/add", response_model=WordsAnswer)
def add(number: Number, body: MoreArms, studies: StudiesDep) -> Json:
    """Add arms."""
    with studies.writing(number) as study:
        return Json({"words": study.add(body.to_arms(), sigma=body.sigma, cost=body.cost)})
