"""Every request ends: with its answer, at its deadline, or when its client goes.

The deadline holds until an answer begins; how long somebody may take to read it is the business
of `connections`. Streams of news have none. Work in another process is ended with the request (see
`workers`). A thread cannot be ended: what runs in one is short, and if it is not, the answer comes
at the deadline all the same, and what the thread does is done.
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

#: Seconds after the deadline in which a handler may say itself what took too long.
GRACE = 2.0
#: A page that waits gives its request a name, to ask how far it is.
_WORK = re.compile(rb"(?:^|&)work=([0-9a-f]{32})(?:&|$)")


class Deadlines:
    """Gives every request its life.

    Parameters
    ----------
    app : ASGI application
    seconds : float
        Until an answer has to begin.
    lives : dict
        Where requests with a name are found while they are worked on.
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
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = await receive()  # all of it: the guard has waited for it
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
        """Answer for work that goes on in a thread; its own answer is not sent."""
        words = (
            f"this took longer than {life.seconds:g} seconds, which is what a request has on this "
            "server. It is not known whether it will still be done: look before you repeat it."
        )
        refusal = as_refusal(DeadlineError(words))
        self._left.add(work)
        work.add_done_callback(self._forget)
        await respond(Request(scope), refusal)(scope, receive, answer.instead())

    def _forget(self, work: asyncio.Task[None]) -> None:
        self._left.discard(work)
        if not work.cancelled():
            work.exception()  # is in the log already


class _Answer:
    """Sends an answer, of which the first part stops the clock."""

    def __init__(self, send: Send, clock: asyncio.TimerHandle) -> None:
        self._send: Send | None = send
        self._clock, self.begun = clock, False

    async def __call__(self, message: Message) -> None:
        if self._send is not None:
            self.begun = True
            self._clock.cancel()
            await self._send(message)

    def instead(self) -> Send:
        """Return what sends another answer; this one is no longer sent."""
        send, self._send = self._send, None
        assert send is not None
        return send


class _Handed:
    """Hands on the body; after that there is only to hear that the client has gone."""

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
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()
    life.end("gone")
