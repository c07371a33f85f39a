"""Connections: how many there may be, how long each may take, and how its requests are framed.

A new connection has not presented a token yet. One that sends nothing, or a byte at a time, is
closed, and so is one whose client does not read the response. No single address can take all
connections; those over the limit get a 503, and if too many are waiting for theirs, the oldest is
dropped: it probably has nothing to ask. uvicorn has neither a deadline for headers nor a limit per
address, hence this subclass of its protocol. A test names what is used of the insides of uvicorn
and h11, and fails when a new version lacks some of it.

A proxy and the server behind it must agree on where a request ends; if they do not, the end of one
request becomes the beginning of another that somebody else made up. So lines end with CR LF, none
is folded, and the length of a body is given once, in one way; everything else gets a 400, and the
connection is closed. h11 is lenient about line ends. It takes the lines of a head, and those after
the last chunk of a body, from a buffer of its own; `StrictBuffer` checks them as they are taken, no
matter how they were split into packets.
"""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

from finalist.web.addresses import is_loopback
from finalist.web.security.guard import FULL, App
from finalist.web.security.tokens import network_of

#: Bytes that a client may send ahead, before the response to its previous request.
AHEAD = 64 * 2**10
_BARE_LF = re.compile(rb"(?<!\r)\n")
_LENGTH, _CHUNKED = b"content-length", b"transfer-encoding"


@dataclass(frozen=True)
class Limits:
    """Limits on connections.

    Parameters
    ----------
    most, each, here : int
        Connections at a time: in all, from one address, and from this machine, which may run a
        proxy and many programs.
    told : int
        Connections beyond these that get a 503 instead of being dropped.
    headers, body : float
        Seconds from the connection, or from the previous response, until the headers of a request
        are complete; and for its body. The guard answers a slow body; this closes the connection
        of a client that goes on sending after the response.
    stuck : float
        Seconds within which a client must read at least some of a response.
    """

    most: int = 400
    each: int = 100
    here: int = 300
    told: int = 50
    headers: float = 10.0
    body: float = 70.0
    stuck: float = 60.0


class Connection(H11Protocol):
    """One connection, within the limits."""

    limits = Limits()
    #: Whether it is within the limit, the network it comes from, and when it was made.
    admitted, network, since = False, "", 0.0
    _timer: asyncio.TimerHandle | None = None
    #: What the connection waits for, in which request, and the bytes unsent when it began to.
    _awaited: tuple[str | None, object] = (None, None)
    _unsent = 0
    _lost = False

    # ---- how many ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit it, or let it get a 503."""
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
            self.app = _over_limit(self.app)
        self._watch()

    # ---- malformed requests ------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request and close; only close if a response has begun."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.close()

    # ---- how long ----------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Process a piece of a request."""
        super().data_received(data)
        if self.conn.their_state is h11.DONE and len(self.conn.trailing_data[0]) < AHEAD:
            self.flow.resume_reading()  # uvicorn pauses here, and would miss the disconnect
        self._watch()

    def on_response_complete(self) -> None:
        """Continue after a response."""
        super().on_response_complete()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        super().timeout_keep_alive_handler()
        self._watch()

    def shutdown(self) -> None:
        """Close gracefully."""
        super().shutdown()
        self._watch()

    def pause_writing(self) -> None:
        """Wait until the client has read more of a response."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Send more of a response."""
        super().resume_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        super().connection_lost(exc)
        self._lost = True
        self._start(None)

    def _watch(self) -> None:
        """Restart the timer if the connection now waits for something else."""
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
            self.transport.close()  # after sending what is left
            self._watch()
        elif self.transport.get_write_buffer_size() < self._unsent:
            self._start("stuck")
        else:
            self.transport.abort()


def _over_limit(app: Any) -> App:
    """Return the application, marking requests so that the guard answers them with a 503."""

    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        scope[FULL] = True
        await app(scope, receive, send)

    return refuse


def limited(limits: Limits) -> type[Connection]:
    """Return a connection class with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})


# ---- framing -----------------------------------------------------------------------------------


class StrictBuffer(ReceiveBuffer):
    r"""Returns lines only if they can be read in one way.

    Examples
    --------
    >>> buffer = StrictBuffer()
    >>> buffer += b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"
    >>> buffer.maybe_extract_lines()
    Traceback (most recent call last):
    h11._util.RemoteProtocolError: a line ends with LF alone
    """

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines up to the first empty one; None if that has not arrived yet."""
        before = bytes(self)
        lines = super().maybe_extract_lines()
        if lines is not None:
            check_lines(before[: len(before) - len(self)], lines)
        return lines


def check_lines(text: bytes, lines: list[bytearray]) -> None:
    """Reject lines that could be read in two ways; `text` is what they were taken from."""
    if _BARE_LF.search(text):
        raise h11.RemoteProtocolError("a line ends with LF alone")
    if any(line.startswith((b" ", b"\t")) for line in lines):
        raise h11.RemoteProtocolError("a header line is folded")
    names = Counter(bytes(line.partition(b":")[0]).strip().lower() for line in lines)
    if names[_LENGTH] + names[_CHUNKED] > 1:
        raise h11.RemoteProtocolError("the length of the body is given more than once")
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() == _LENGTH and not value.strip().isdigit():
            raise h11.RemoteProtocolError("the length of the body is not a number")
    if names[_CHUNKED] and lines and lines[0].endswith(b"HTTP/1.0"):
        raise h11.RemoteProtocolError("HTTP/1.0 has no chunked bodies")
