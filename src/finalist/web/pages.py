"""The pages: look at studies, begin one, work on one."""

from fastapi import APIRouter

from finalist.web import pages_actions, pages_change, pages_looking, pages_new

router = APIRouter()
for _part in (pages_looking, pages_new, pages_actions, pages_change):
    router.include_router(_part.router)
