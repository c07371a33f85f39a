"""The API: plans and previews, before a study begins."""

from typing import Any

from fastapi import APIRouter

from finalist.arms import Arms
from finalist.errors import ProblemError
from finalist.planning import MarginPrices, Plan
from finalist.web.api.answers import MarginsAnswer, PlanAnswer, PreviewAnswer
from finalist.web.api.bodies import MarginsBody, PlanBody
from finalist.web.arms_preview import preview
from finalist.web.depends import CSV_BODY, Csv, WorkersDep
from finalist.web.errors import Json
from finalist.web.strict import StrictRoute
from finalist.web.workers import jobs
from finalist.web.workers.pool import PLAN, Workers

router = APIRouter(route_class=StrictRoute, tags=["planning"])
#: Plans are made up to so many arms times squared rank.
MAX_WORK = 2_000_000


@router.post("/plan", response_model=PlanAnswer)
def plan(body: PlanBody, workers: WorkersDep) -> Json:
    """Say before any measurement how many pulls to expect."""
    content = make_plan(body, workers).to_dict()
    for row in content["rows"]:
        del row["pulls"]
    return Json(content)


@router.post("/plan/margins", response_model=MarginsAnswer)
def margins(body: MarginsBody, workers: WorkersDep) -> Json:
    """Say how many pulls to expect without a margin and with several."""
    found: MarginPrices = workers.run(PLAN, jobs.margins, *_read(body), tells=True)
    return Json(found.to_dict())


def make_plan(body: PlanBody, workers: Workers) -> Plan:
    """Simulate in a worker."""
    plan: Plan = workers.run(PLAN, jobs.plan, *_read(body), tells=True)
    return plan


def _read(body: PlanBody | MarginsBody) -> tuple[Arms, dict[str, Any]]:
    """Return the arms and the settings; refuse what takes too long."""
    arms, words = body.read()
    if len(arms) * arms.rank**2 > MAX_WORK:
        raise ProblemError(
            f"a plan for {len(arms):,} arms of rank {arms.rank} takes too long for a server. Use "
            "'finalist plan' on a machine of your own."
        )
    return arms, words


@router.post("/arms/preview", response_model=PreviewAnswer, openapi_extra=CSV_BODY)
def preview_arms(table: Csv) -> Json:
    """Preview a table of arms: columns, rank, duplicates, bad cells."""
    found = preview(table)
    rows = [{"line": row.line, "cells": [vars(cell) for cell in row.cells]} for row in found.rows]
    return Json(
        {
            "columns": [column.name for column in found.columns],
            "roles": [{k: v for k, v in vars(c).items() if k != "name"} for c in found.columns],
            "read_as": found.read_as,
            "remarks": found.remarks,
            "name_column": found.label,
            "feature_columns": found.features,
            "rows": rows,
            "row_count": found.count,
            "arms": None if found.arms is None else len(found.arms),
            "rank": None if found.arms is None else found.arms.rank,
            "duplicates": found.merged,
            "problem": None if found.problem is None else str(found.problem),
        }
    )
