"""The pages: look at studies, begin one, work on one."""

from fastapi import APIRouter

from finalist.web.pages import act, change, look, new

router = APIRouter()
for _part in (look, new, act, change):
    router.include_router(_part.router)
