"""The API: plans and previews, before a study begins."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from fastapi import APIRouter

from finalist.errors import ProblemError
from finalist.planning import margin_prices
from finalist.planning import plan as make_plan
from finalist.web.api.answers import MarginsAnswer, PlanAnswer, PreviewAnswer
from finalist.web.api.bodies import MarginsBody, PlanBody
from finalist.web.arms_preview import preview
from finalist.web.depends import CSV_BODY, Csv, WorkersDep
from finalist.web.errors import Json
from finalist.web.strict import StrictRoute
from finalist.web.workers.pool import PLAN

router = APIRouter(route_class=StrictRoute, tags=["planning"])
#: Plans are made up to so many arms times squared rank.
MAX_WORK = 2_000_000
_Prices = TypeVar("_Prices")


@router.post("/plan", response_model=PlanAnswer)
def plan(body: PlanBody, workers: WorkersDep) -> Json:
    """Say before any measurement how many pulls to expect."""
    content = workers.run(PLAN, _simulating(make_plan, body), tells=True).to_dict()
    for row in content["rows"]:
        del row["pulls"]
    return Json(content)


@router.post("/plan/margins", response_model=MarginsAnswer)
def margins(body: MarginsBody, workers: WorkersDep) -> Json:
    """Say how many pulls to expect without a margin and with several."""
    return Json(workers.run(PLAN, _simulating(margin_prices, body), tells=True).to_dict())


def _simulating(make: Callable[..., _Prices], body: PlanBody | MarginsBody) -> partial[_Prices]:
    """Return what a worker has to do for a body; refuse what takes too long."""
    arms, words = body.read()
    if len(arms) * arms.rank**2 > MAX_WORK:
        raise ProblemError(
            f"a plan for {len(arms):,} arms of rank {arms.rank} takes too long for a server. Use "
            "'finalist plan' on a machine of your own."
        )
    return partial(make, arms, **words)


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
