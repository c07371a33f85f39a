"""Live updates of open pages, by server-sent events.

One task for the whole process polls the numbers of the last events of all studies, twice a second
and only while a page is open; it is a single short query that blocks no writer. Every page is sent
what changed. When the server shuts down, all streams are closed.

The messages are written here, not by `fastapi.sse`, which would save ten lines: it runs two more
tasks for each page and reads ahead, so that a slow client gets old news that newer ones would have
replaced, and the time between its keep-alive messages cannot be set.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import anyio
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from finalist.errors import FinalistError
from finalist.web.depends import ERRORS, Number, StudiesDep
from finalist.web.errors import RefusedError
from finalist.web.pool import Studies

#: Seconds between two polls, and between two keep-alive messages.
EVERY, ALIVE = 0.5, 15.0
#: Open streams at a time.
MAX_PAGES = 200

router = APIRouter(tags=["events"])


class Events:
    """Sends pages what changed."""

    def __init__(self, studies: Studies) -> None:
        self._studies = studies
        self._pages: set[_Page] = set()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lasts: dict[int, int] = {}
        self._thread: anyio.CapacityLimiter | None = None
        self.closed = False

    def __len__(self) -> int:
        return len(self._pages)

    def close(self) -> None:
        """Close all streams; callable from any thread and from signal handlers."""
        self.closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        for page in self._pages:
            page.ended = True
            page.woken.set()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    @contextmanager
    def page(
        self, number: int | None, lasts: dict[int, int], signed_in: Callable[[], bool]
    ) -> "Iterator[_Page]":
        """Subscribe a page to one study, or to all."""
        page = _Page(number, lasts, signed_in)
        self._pages.add(page)
        self._loop = asyncio.get_running_loop()
        if self._task is None and not self.closed:
            self._lasts = {}
            self._task = self._loop.create_task(self._watch())
        page.ended = self.closed
        try:
            yield page
        finally:
            self._pages.discard(page)
            if not self._pages and self._task is not None:
                self._task.cancel()
                self._task = None

    async def lasts(self) -> dict[int, int]:
        """Poll in a thread of its own: those of the pool may all be busy."""
        if self._thread is None:
            self._thread = anyio.CapacityLimiter(2)
        return await run_sync(self._studies.lasts, limiter=self._thread)

    async def _watch(self) -> None:
        while True:
            for page in self._pages:
                if not page.signed_in():
                    page.woken.set()
            try:
                lasts = await self.lasts()
            except FinalistError:  # the next poll may succeed
                await asyncio.sleep(EVERY)
                continue
            if lasts != self._lasts:
                self._lasts = lasts
                for page in self._pages:
                    page.see(lasts)
            await asyncio.sleep(EVERY)


class _Page:
    """An open page."""

    def __init__(
        self, number: int | None, lasts: dict[int, int], signed_in: Callable[[], bool]
    ) -> None:
        self.number, self.woken, self.ended = number, asyncio.Event(), False
        self.signed_in = signed_in
        self._known = self._mine(lasts)
        self._news: dict[int, int | None] = dict(self._known)

    def _mine(self, lasts: dict[int, int]) -> dict[int, int]:
        return {n: last for n, last in lasts.items() if self.number in (None, n)}

    def see(self, lasts: dict[int, int]) -> None:
        """Note what changed, replacing what was not sent yet."""
        mine = self._mine(lasts)
        news: dict[int, int | None] = {n: k for n, k in mine.items() if self._known.get(n) != k}
        news |= dict.fromkeys(self._known.keys() - mine.keys())
        self._known = mine
        if news:
            self._news |= news
            self.woken.set()

    async def messages(self) -> AsyncIterator[str]:
        """Yield messages until the server stops, the study is deleted or the user signs out."""
        yield "retry: 1000\n\n"
        while not self.ended and self.signed_in():
            news, self._news = self._news, {}
            self.woken.clear()
            for study, last in news.items():
                word = "changed" if last is not None else "deleted"
                yield f"event: {word}\ndata: {json.dumps({'study': study, 'last': last})}\n\n"
                if last is None and study == self.number:
                    return
            try:
                async with asyncio.timeout(ALIVE):
                    await self.woken.wait()
            except TimeoutError:
                yield ": alive\n\n"


def _stream(request: Request, number: int | None, lasts: dict[int, int]) -> StreamingResponse:
    events: Events = request.app.state.events
    if len(events) >= MAX_PAGES or events.closed:
        raise RefusedError(
            503,
            "too many pages",
            f"{MAX_PAGES} pages are already open.",
            "Close some, or load this one again when you need it.",
            {"Retry-After": "30"},
        )

    signed_in = getattr(request.state, "signed_in", lambda: True)  # there is no token

    async def messages() -> AsyncIterator[str]:
        with events.page(number, lasts, signed_in) as page:
            async for message in page.messages():
                yield message

    return StreamingResponse(
        messages(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


@router.get("/studies/{number}/events", response_class=StreamingResponse, responses=ERRORS)
async def study_events(number: Number, request: Request, studies: StudiesDep) -> StreamingResponse:
    """Stream changes of a study: `event: changed`, data {study, last}."""
    lasts = await request.app.state.events.lasts()
    if number not in lasts:
        studies.row(number)  # raises
    return _stream(request, number, lasts)


@router.get("/events", response_class=StreamingResponse, responses=ERRORS)
async def all_events(request: Request) -> StreamingResponse:
    """Stream changes of all studies."""
    return _stream(request, None, await request.app.state.events.lasts())
