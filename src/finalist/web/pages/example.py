"""Trying an example: one click makes it, one click a batch simulates its results."""

from fastapi import APIRouter
from fastapi.responses import Response

from finalist.errors import ConflictError, FinalistError, NameTakenError
from finalist.study import Study
from finalist.web.depends import IssuerDep, StudiesDep
from finalist.web.example import NAME, SIZE, candidates, is_example, settings, simulate
from finalist.web.pages.act import Sent
from finalist.web.pages.said import back

router = APIRouter()
#: Examples that there may be at once.
_MAX_NUMBER = 100


@router.post("/example")
def begin(studies: StudiesDep) -> Response:
    """Create an example under a name that is free."""
    arms, words = candidates(), settings()
    with studies.changing():
        for number in range(1, _MAX_NUMBER + 1):
            name = NAME if number == 1 else f"{NAME[:-1]}, {number})"
            try:
                Study.create(studies.place, name, arms, **words).close()
            except NameTakenError:
                if number == _MAX_NUMBER:
                    raise
            else:
                break
    return back(studies.number(name), "example")


@router.post("/studies/{number}/simulate")
def simulate_batch(sent: Sent, issuer: IssuerDep) -> Response:
    """Choose the next batch of an example and simulate its results."""
    try:
        if not is_example(sent.snapshots.of(sent.number)):
            raise ConflictError("this study is no example: its results are measured.")
        issuer.ask(sent.number, SIZE)
    except FinalistError as error:
        return sent.refuse("next", error)

    def act(study: Study) -> Response:
        return back(sent.number, "simulated", simulate(study), "#verdict")

    return sent.change("next", act)
