"""The API: studies and their lives."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from finalist.arms import Arms
from finalist.errors import ConflictError, ProblemError, UnknownStudyError
from finalist.problem.noise import UNSET, PerArm, Unset, missing_sigma
from finalist.strategies import Strategy, configured
from finalist.study import Study
from finalist.web.api.answers import CountAnswer, StudiesAnswer, StudyAnswer, WordsAnswer
from finalist.web.api.bodies import (
    ForkBody,
    HistoryBody,
    MoreArms,
    NewStudy,
    NoteBody,
    Question,
    ReasonBody,
    WithdrawBody,
)
from finalist.web.depends import Looked, Number, Opened
from finalist.web.errors import Json
from finalist.web.pool import Studies
from finalist.web.strict import StrictRoute
from finalist.web.uploads import read_arms

router = APIRouter(route_class=StrictRoute, tags=["studies"])


@router.get("/studies", response_model=StudiesAnswer)
def list_studies(
    looking: Looked,
    studies: Opened,
    name: Annotated[str | None, Query(max_length=10_000, description="Only this one.")] = None,
) -> Json:
    """List the studies, by name."""
    if name is None:
        return Json({"studies": looking.summaries()})
    try:
        found = [looking.summary(studies.number(name))]
    except UnknownStudyError:
        found = []
    return Json({"studies": found})


@router.post("/studies", response_model=StudyAnswer, status_code=201)
def create(body: NewStudy, studies: Opened) -> Json:
    """Begin a study."""
    arms = arms_of(body)
    with studies.changing():
        study = Study.create(
            studies.place,
            body.name,
            arms,
            strategy_of(body.strategy, body.settings, arms),
            sigma=sigma_of(body),
            noise=body.noise,
            delta=body.delta,
            objective=body.objective,
            epsilon=body.epsilon,
            top=body.top,
            cost=body.cost,
            batch_intercept=body.batch_intercept,
            misspecification=body.misspecification,
            budget=body.budget,
            max_pulls_per_arm=body.max_pulls_per_arm,
            seed=body.seed,
            metadata=body.metadata,
        )
    with study:
        number = study._log.row.id
        return Json(_about(studies, number), 201, {"Location": f"/api/v1/studies/{number}"})


def arms_of(body: Question) -> Arms:
    """Return the arms of a question, in either form."""
    if body.arms is not None:
        return body.arms.to_arms()
    assert body.arms_csv is not None
    return read_arms(body.arms_csv.encode(), "arms_csv")


def sigma_of(body: Question) -> PerArm | Unset | None:
    """Return the size of the noise; there is no default, as a wrong one makes all worthless."""
    if body.sigma is not None:
        return body.sigma
    if body.noise == "bernoulli":
        return UNSET
    if "sigma" not in body.model_fields_set:
        raise missing_sigma(
            unknown="null if it is unknown: the gauntlet then estimates Gaussian noise from the "
            "rewards; a plan needs a guess",
            noise=body.noise,
        )
    return None


def strategy_of(name: str, settings: dict[str, Any], arms: Arms) -> Strategy:
    """Return a strategy of a name, with settings that are not as usual."""
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
def about(number: Number, studies: Opened) -> Json:
    """Return what a study was created with."""
    return Json(_about(studies, number))


@router.delete("/studies/{number}", response_model=WordsAnswer)
def delete(
    number: Number,
    studies: Opened,
    name: Annotated[str, Query(max_length=10_000, description="Its name, to be sure.")],
) -> Json:
    """Delete a study with all its rewards, for good."""
    row = studies.row(number)
    if row.name != name:
        raise ConflictError(
            f"study {number} is {row.name!r} and not {name!r}; nothing was deleted."
        )
    studies.delete(number)
    return Json({"words": f"Study {row.name!r} is deleted."})


@router.post("/studies/{number}/import", response_model=CountAnswer)
def import_history(number: Number, body: HistoryBody, studies: Opened) -> Json:
    """Bring in measurements made before the study."""
    with studies.writing(number) as study:
        pairs = [(row.arm, row.reward) for row in body.measurements]
        return Json({"count": study.import_history(pairs)})


@router.post("/studies/{number}/note", response_model=WordsAnswer)
def note(number: Number, body: NoteBody, studies: Opened) -> Json:
    """Write a remark into the log."""
    with studies.writing(number) as study:
        study.note(body.text)
    return Json({"words": "Noted."})


@router.post("/studies/{number}/stop", response_model=WordsAnswer)
def stop(number: Number, body: ReasonBody, studies: Opened) -> Json:
    """Stop without a winner, and say what is certain."""
    with studies.writing(number) as study:
        return Json({"words": study.stop(body.reason).sentence})


@router.post("/studies/{number}/resume", response_model=WordsAnswer)
def resume(number: Number, studies: Opened) -> Json:
    """Go on after a stop."""
    with studies.writing(number) as study:
        study.resume()
    return Json({"words": "The study goes on."})


@router.post("/studies/{number}/fork", response_model=StudyAnswer, status_code=201)
def fork(number: Number, body: ForkBody, studies: Opened) -> Json:
    """Start a new study from the log before the decision on a batch."""
    with studies.writing(number) as study, study.fork(body.name, body.until) as new:
        made = new._log.row.id
    return Json(_about(studies, made), 201, {"Location": f"/api/v1/studies/{made}"})


@router.post("/studies/{number}/withdraw", response_model=WordsAnswer)
def withdraw(number: Number, body: WithdrawBody, studies: Opened) -> Json:
    """Take arms out of the question."""
    with studies.writing(number) as study:
        return Json({"words": study.withdraw(*body.names)})


@router.post("/studies/{number}/add", response_model=WordsAnswer)
def add(number: Number, body: MoreArms, studies: Opened) -> Json:
    """Add arms to the question."""
    with studies.writing(number) as study:
        return Json({"words": study.add(body.to_arms(), sigma=body.sigma, cost=body.cost)})
