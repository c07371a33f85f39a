"""The API: everything the library does with studies, as JSON under /api/v1."""

from fastapi import APIRouter

from finalist.web import api_looking, api_measure, api_planning, api_studies, events, reference
from finalist.web.depends import ERRORS

router = APIRouter(prefix="/api/v1", responses=ERRORS)
for _part in (api_studies, api_measure, api_looking, api_planning, events, reference):
    router.include_router(_part.router)
