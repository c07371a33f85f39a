"""Who may ask for what: every request passes here first.

In this order, so that little is done for whoever is refused: whether there is a place, the Host it
names (a foreign one comes from a page that fooled the browser about where it is), where a change
comes from (another site may not make one), the token, the size of the body.
"""

import asyncio
import ipaddress
import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response

from finalist.web.addresses import LOOPBACK
from finalist.web.csrf import new_cookie
from finalist.web.errors import respond, wants_page
from finalist.web.headers import FILES, HEADERS, PRIVATE, cookie_name
from finalist.web.refusals import RefusedError
from finalist.web.render import render
from finalist.web.security.tokens import Failures, Sessions, Token, matches

Message = MutableMapping[str, Any]
Scope = Message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

#: Bytes of a body; of one who has not signed in.
MAX_BODY, MAX_BODY_UNKNOWN = 16 * 2**20, 64 * 2**10
#: Seconds in which a body has to be here.
BODY_TIME = 60.0
#: The word in a scope that says: every place is taken (see `connections`).
FULL = "finalist.full"
_SAFE = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(:[0-9]{1,5})?")
#: What can be had without a token: the form for it, and what makes it look right.
_OPEN = ("/login", "/logout", "/static/")


class Guard:
    """Lets a request through to the application, or answers it.

    Parameters
    ----------
    app : ASGI application
    hosts : sequence of str
        Names and addresses under which this server may be called; "*.*.*.*" stands for every
        address in numbers, which no name server can turn into another.
    token : Token, optional
        Without one, everyone who gets here may do everything.
    behind_tls : bool
        Whether everybody comes through a proxy that speaks TLS.
    """

    def __init__(
        self,
        app: App,
        *,
        hosts: Sequence[str] = LOOPBACK,
        token: Token | None = None,
        failures: Failures | None = None,
        sessions: Sessions | None = None,
        behind_tls: bool = False,
    ) -> None:
        self.app, self.token, self.behind_tls = app, token or Token(), behind_tls
        self.hosts = {host.lower() for host in hosts}
        self.failures = failures or Failures()
        self.sessions = sessions or Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        if self.behind_tls:  # what the browser speaks: cookies are Secure
            scope["scheme"] = "https"
        request, send = Request(scope), _with_headers(scope, send)
        try:
            answer = self._refused(request)
            if answer is None:
                receive = await _whole_body(request, receive, self._most_body(request))
        except RefusedError as refusal:
            answer = respond(request, refusal)
        await (self.app if answer is None else answer)(scope, receive, send)

    def _refused(self, request: Request) -> Response | None:
        check_place(request)
        check_host(request.headers, self.hosts)
        check_origin(request.method, request.headers)
        token_hash = self.token.hash()
        return None if token_hash is None else self._check_token(request, token_hash)

    def _is_open(self, request: Request) -> bool:
        # not `request.url`, which is put together with the Host header
        return str(request.scope["path"]).startswith(_OPEN)

    def _most_body(self, request: Request) -> int:
        known = self.token.hash() is None or not self._is_open(request)
        return MAX_BODY if known else MAX_BODY_UNKNOWN

    def _check_token(self, request: Request, token_hash: str) -> Response | None:
        """Refuse who has no token; a browser is sent to the form for it."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            check_given(request, token.strip(), token_hash, self.failures)
            request.state.signed_in = lambda: self.token.hash() == token_hash
            return None
        if self._is_open(request):
            return None
        session = session_of(request)
        if self.sessions.is_good(session, token_hash):
            request.state.signed_in = lambda: self.sessions.is_good(session, self.token.hash())
            return None
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(path, safe='')}", status_code=303)
        if request.method == "POST" and wants_page(request):
            page = render(request, "signed_out.html", 401)
            page.headers["WWW-Authenticate"] = "Bearer"
            return page
        raise RefusedError(
            401,
            "token",
            "this server asks for a token.",
            "Send the header 'Authorization: Bearer TOKEN'; the token was printed by "
            "'finalist serve --new-token'.",
            {"WWW-Authenticate": "Bearer"},
        )


def session_of(request: Request) -> str:
    """Return what a browser has kept since it signed in."""
    return request.cookies.get(cookie_name("session", request.scope), "")


def check_place(request: Request) -> None:
    """Refuse whoever found every place taken."""
    if FULL in request.scope:
        raise RefusedError(
            503,
            "BusyError",
            "as many are connected to this server as it takes, from your address or in all. "
            "Nothing was changed.",
            "Try again in a moment; close pages that nobody needs.",
            {"Retry-After": "2", "Connection": "close"},
        )


def check_given(request: Request, token: str, token_hash: str, failures: Failures) -> None:
    """Refuse a wrong token; who has tried many is told to wait, but the right one always passes.

    Many people may come from one address, as through a proxy. Nobody guesses a token, so nothing
    is gained by locking them all out; what waits are programs that have an old one.
    """
    if matches(token, token_hash):
        return
    address = request.client.host if request.client else ""
    seconds = failures.wait(address)
    if seconds:
        raise RefusedError(
            429,
            "too many tokens",
            "this is not the token of this server, and too many wrong ones came from this address.",
            f"Wait {seconds} seconds before you try another; the right one is taken at once.",
            {"Retry-After": str(seconds)},
        )
    failures.count(address)
    raise RefusedError(
        401,
        "token",
        "this is not the token of this server.",
        "'finalist serve --new-token' makes a new one; the old one is no longer good then.",
        {"WWW-Authenticate": "Bearer"},
    )


def check_host(headers: Headers, hosts: set[str]) -> None:
    """Refuse a request that was meant for another host."""
    given = headers.getlist("host")
    found = _HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
    if found is None:
        raise RefusedError(400, "host", "the request has no Host header that can be read.")
    host = found[1]
    if host not in hosts and not ("*.*.*.*" in hosts and _is_address(host)):
        raise RefusedError(
            421,
            "host",
            f"this server is not called {host!r}.",
            "Start it with 'finalist serve --allow-host NAME' if that is a name of this machine.",
        )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def check_origin(method: str, headers: Headers) -> None:
    """Refuse a change that another site asks for; a program that is no browser says nothing."""
    if method in _SAFE:
        return
    site = headers.getlist("sec-fetch-site")
    foreign = any(value.lower() not in ("same-origin", "none") for value in site)
    for origin in headers.getlist("origin"):
        foreign = foreign or not _same_host(origin, headers.get("host", ""))
    if foreign:
        raise RefusedError(
            403,
            "origin",
            "another site asked for this change; it was not made.",
            "Do it on the page of this server.",
        )


def _same_host(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


async def _whole_body(request: Request, receive: Receive, most: int) -> Receive:
    """Read the body, in pieces or not, up to a size; return what hands it on."""
    length = request.headers.get("content-length")
    if length is None and "transfer-encoding" not in request.headers:
        return receive
    too_large = RefusedError(
        413, "too large", f"the body has more than {most:,} bytes.", headers={"Connection": "close"}
    )
    if length is not None and (not length.isdigit() or len(length) > 18 or int(length) > most):
        raise too_large
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(BODY_TIME):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, "disconnected", "the connection ended within the body.")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > most:
                    raise too_large
    except TimeoutError:
        raise RefusedError(
            408, "too slow", "the body did not come in time.", headers={"Connection": "close"}
        ) from None
    return _handed_on(bytes(body), receive)


def _handed_on(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that starts with a body that was read already."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return first.pop() if first else await receive()

    return next_message


def _with_headers(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds what every answer tells the browser."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            is_file = scope["path"].startswith("/static/")
            headers.setdefault("cache-control", FILES if is_file else PRIVATE)
            cookie = new_cookie(scope)
            if cookie is not None:
                headers.append("set-cookie", cookie)
        await send(message)

    return send_with_headers
