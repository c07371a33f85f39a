"""Connections: how many there may be, and how long each may take.

Whoever connects has given no token yet. A connection that says nothing, or one letter at a time,
is closed, and so is one whose answer nobody reads. One address cannot take all places; whoever
finds none is told to come back; if too many are to be told, the one that has been there longest,
and so has probably nothing to ask, hears nothing.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from finalist.web.addresses import is_loopback
from finalist.web.security.guard import FULL, App
from finalist.web.security.heads import StrictBuffer
from finalist.web.security.tokens import network_of

#: Bytes of requests that are sent before the answer to the one before.
AHEAD = 64 * 2**10


@dataclass(frozen=True)
class Limits:
    """What connections may take.

    Parameters
    ----------
    most, each, here : int
        Connections at a time: of all, of one address, of this machine, where many programs and a
        proxy may be.
    told : int
        Further ones, which are told to come back.
    headers, body : float
        Seconds from the connection, or from the answer before, until the headers of a request are
        here; and for its body. `security` answers who is slow with a body, this ends who goes on
        sending after an answer.
    stuck : float
        Seconds in which at least some of an answer has to be taken.
    """

    most: int = 400
    each: int = 100
    here: int = 300
    told: int = 50
    headers: float = 10.0
    body: float = 70.0
    stuck: float = 60.0


class Connection(H11Protocol):
    """One connection, with limits."""

    limits = Limits()
    #: Whether it has one of the places, whose it is, and when it began.
    admitted, network, since = False, "", 0.0
    _timer: asyncio.TimerHandle | None = None
    #: What is waited for, in which request, and what was not sent yet when that began.
    _awaited: tuple[str | None, object] = (None, None)
    _unsent = 0
    _lost = False

    # ---- how many ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give it a place, or let it be told that there is none."""
        others = [other for other in self.connections if isinstance(other, Connection)]
        self.conn._receive_buffer = StrictBuffer()
        super().connection_made(transport)
        self.network = network_of(self.client[0] if self.client else "")
        self.since = self.loop.time()
        places = [other for other in others if other.admitted]
        same = sum(other.network == self.network for other in places)
        each = self.limits.here if is_loopback(self.network) else self.limits.each
        self.admitted = len(places) < self.limits.most and same < each
        if not self.admitted:
            told = [o for o in others if not o.admitted and not o.transport.is_closing()]
            if len(told) >= self.limits.told:
                min(told, key=lambda other: other.since).transport.abort()
            self.app = _told_to_come_back(self.app)
        self._watch()

    # ---- what is no request ------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request and close, or only close if there is an answer already."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.close()

    # ---- how long ----------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        super().data_received(data)
        if self.conn.their_state is h11.DONE and len(self.conn.trailing_data[0]) < AHEAD:
            self.flow.resume_reading()  # uvicorn stops at a request ahead, and would hear no end
        self._watch()

    def on_response_complete(self) -> None:
        """Go on after an answer."""
        super().on_response_complete()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that nobody uses."""
        super().timeout_keep_alive_handler()
        self._watch()

    def shutdown(self) -> None:
        """End in good order."""
        super().shutdown()
        self._watch()

    def pause_writing(self) -> None:
        """Wait until more of an answer is taken."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Send more of an answer."""
        super().resume_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        super().connection_lost(exc)
        self._lost = True
        self._start(None)

    def _watch(self) -> None:
        """See what is waited for; a deadline holds until that changes."""
        awaited = (self._waits_for(), self.cycle)
        if awaited != self._awaited and not self._lost:
            self._awaited = awaited
            self._start(awaited[0])

    def _waits_for(self) -> str | None:
        if self.transport.is_closing() or self.flow.write_paused:
            return "stuck"
        return {h11.IDLE: "headers", h11.SEND_BODY: "body"}.get(self.conn.their_state)

    def _start(self, awaited: str | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if awaited is not None:
            self._unsent = self.transport.get_write_buffer_size()
            self._timer = self.loop.call_later(getattr(self.limits, awaited), self._too_slow)

    def _too_slow(self) -> None:
        if self._awaited[0] != "stuck":
            self.transport.close()  # what is not sent yet is sent
            self._watch()
        elif self.transport.get_write_buffer_size() < self._unsent:
            self._start("stuck")
        else:
            self.transport.abort()


def _told_to_come_back(app: Any) -> App:
    """Return an application that refuses in our words."""

    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        scope[FULL] = True
        await app(scope, receive, send)

    return refuse


def limited(limits: Limits) -> type[Connection]:
    """Return connections with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})
