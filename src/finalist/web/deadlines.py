"""Every request ends: with its response, at its deadline, or when its client disconnects.

The deadline holds until a response begins; how long a client may take to read it is up to
`connections`. Event streams have none. Work in another process is killed with the request (see
`workers`). A thread cannot be killed: what runs in one is short, and if it is not, the client still
gets a response at the deadline, while the thread runs to its end.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import Request

from finalist.errors import DeadlineError
from finalist.web.errors import as_refusal, respond
from finalist.web.lifetime import DEADLINE, Life, living

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

#: Seconds after the deadline in which a handler can still say itself what took too long.
GRACE = 2.0
#: A page that waits names its request, to ask for its progress.
_WORK = re.compile(rb"(?:^|&)work=([0-9a-f]{32})(?:&|$)")


class Deadlines:
    """Gives every request a `Life`.

    Parameters
    ----------
    seconds : float
        Until a response must begin.
    lives : dict
        Named requests in progress.
    """

    def __init__(
        self,
        app: Callable[[Any, Any, Any], Awaitable[None]],
        *,
        seconds: float = DEADLINE,
        lives: dict[str, Life] | None = None,
    ) -> None:
        self.app, self.seconds = app, seconds
        self.lives: dict[str, Life] = {} if lives is None else lives
        self._left: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = await receive()  # all of it: the guard has read it
        if body["type"] == "http.disconnect":
            return
        life, gone = Life(self.seconds), asyncio.Event()
        loop = asyncio.get_running_loop()
        clock = loop.call_later(self.seconds, life.end, "late")
        answer = _Answer(send, clock)
        name = _WORK.search(scope.get("query_string", b""))
        if name is not None:
            self.lives[name[1].decode()] = life
        with living(life):
            work = loop.create_task(self._work(scope, _Handed(body, gone), answer))
        watch = loop.create_task(_watch(receive, life, gone))
        try:
            await asyncio.wait({work}, timeout=self.seconds + GRACE)
            if work.done() or answer.begun:
                await work
            else:
                await self._too_late(scope, receive, answer, life, work)
        except asyncio.CancelledError:
            life.end("gone")
            work.cancel()
            raise
        finally:
            clock.cancel()
            watch.cancel()
            if name is not None:
                self.lives.pop(name[1].decode(), None)

    async def _work(self, scope: Message, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    async def _too_late(
        self, scope: Message, receive: Receive, answer: "_Answer", life: Life, work: Any
    ) -> None:
        """Respond in place of work that is still running in a thread."""
        words = (
            f"this took longer than {life.seconds:g} seconds, this server's limit for a request. "
            "It may still complete: look before you repeat it."
        )
        refusal = as_refusal(DeadlineError(words))
        self._left.add(work)
        work.add_done_callback(self._forget)
        await respond(Request(scope), refusal)(scope, receive, answer.instead())

    def _forget(self, work: asyncio.Task[None]) -> None:
        self._left.discard(work)
        if not work.cancelled():
            work.exception()  # retrieved: it is in the log already


class _Answer:
    """Sends a response; its first part stops the clock."""

    def __init__(self, send: Send, clock: asyncio.TimerHandle) -> None:
        self._send: Send | None = send
        self._clock, self.begun = clock, False

    async def __call__(self, message: Message) -> None:
        if self._send is not None:
            self.begun = True
            self._clock.cancel()
            await self._send(message)

    def instead(self) -> Send:
        """Return a `send` for another response; this one is discarded."""
        send, self._send = self._send, None
        assert send is not None
        return send


class _Handed:
    """Passes on the body; after that, only the disconnect of the client is left to receive."""

    def __init__(self, body: Message, gone: asyncio.Event) -> None:
        self._body: Message | None = body
        self._gone = gone

    async def __call__(self) -> Message:
        body, self._body = self._body, None
        if body is not None:
            return body
        await self._gone.wait()
        return {"type": "http.disconnect"}


async def _watch(receive: Receive, life: Life, gone: asyncio.Event) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()
    life.end("gone")
