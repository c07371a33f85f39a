"""The API: read and export a study."""

import io
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from finalist.study.exports import arms_of, every_pull, everything, write_csv
from finalist.web.api.answers import ArmsAnswer, EventsAnswer, EvidenceAnswer, StatusAnswer
from finalist.web.api.measure import csv_answer
from finalist.web.depends import DecimalMark, Number, SnapshotsDep, StudiesDep
from finalist.web.errors import Json
from finalist.web.strict import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["looking"])


@router.get("/studies/{number}/status", response_model=StatusAnswer)
def status(
    number: Number,
    snapshots: SnapshotsDep,
    forecast: Annotated[bool, Query(description="Simulate the pulls still needed.")] = True,
    within: Annotated[
        float | None,
        Query(ge=0.0, le=1e150, description="With a budget: the difference of the outlook."),
    ] = None,
) -> Json:
    """Return what is certain, the evidence against every arm, and what is still needed."""
    last, found = snapshots.status(number, forecast=forecast, within=within)
    content = {"last": last, **found.to_dict()}
    if found.forecast is not None:
        content["forecast"]["pulls"] = found.forecast.pulls.tolist()
    return Json(content)


@router.get("/studies/{number}/arms", response_model=ArmsAnswer)
def arms(number: Number, studies: StudiesDep) -> Json:
    """Return the arms as they are now."""
    with studies.reading(number) as study:
        return Json(arms_of(study))


@router.get("/studies/{number}/evidence", response_model=EvidenceAnswer)
def evidence(number: Number, snapshots: SnapshotsDep) -> Json:
    """Return the evidence against each arm over time, since the arms last changed."""
    snapshot = snapshots.of(number)
    pulls, rows = snapshot.trail
    return Json(
        {"arms": list(snapshot.arms.names), "pulls": pulls.tolist(), "evidence": rows.tolist()}
    )


@router.get("/studies/{number}/history", response_model=EventsAnswer)
def history(
    number: Number,
    studies: StudiesDep,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="Only later events.")] = 0,
) -> Json:
    """Return the events, oldest first."""
    with studies.reading(number) as study:
        events = [event for event in study.history() if event["number"] > after]
    return Json({"events": events})


@router.get("/studies/{number}/pulls", response_model=dict[str, list[dict[str, Any]]])
def pulls(number: Number, studies: StudiesDep) -> Json:
    """Return every pull: its fate, its reward, when, and by whom."""
    with studies.reading(number) as study:
        return Json({"pulls": every_pull(study)})


@router.get("/studies/{number}/export.json", response_model=dict[str, Any])
def export_json(number: Number, studies: StudiesDep) -> Json:
    """Return everything: settings, arms, events, pulls."""
    with studies.reading(number) as study:
        content = everything(study)
    name = f'attachment; filename="study-{number}.json"'
    return Json(content, headers={"Content-Disposition": name})


@router.get("/studies/{number}/export.csv", response_class=Response)
def export_csv(number: Number, studies: StudiesDep, decimal: DecimalMark = ".") -> Response:
    """Return every pull as a table that is safe to open in a spreadsheet."""
    text = io.StringIO(newline="")
    with studies.reading(number) as study:
        write_csv(study, text, decimal=decimal)
    return csv_answer(text.getvalue(), f"study-{number}.csv")
