"""The API: everything the library does with studies, as JSON under /api/v1."""

from fastapi import APIRouter

from finalist.web import live as events
from finalist.web.api import look, measure, plan, reference, studies
from finalist.web.depends import ERRORS

router = APIRouter(prefix="/api/v1", responses=ERRORS)
for _part in (studies, measure, look, plan, events, reference):
    router.include_router(_part.router)
