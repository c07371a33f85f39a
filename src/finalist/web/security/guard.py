"""Access control: every request passes through here first.

Checks are ordered so that a rejected request costs little: the connection limit, the Host header (a
foreign one means DNS rebinding), the origin of a change (another site may not make one), the token,
the size of the body.
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
from finalist.web.errors import RefusedError, respond, wants_page
from finalist.web.headers import FILES, HEADERS, PRIVATE, cookie_name
from finalist.web.render import render
from finalist.web.security.tokens import Failures, Sessions, Token, matches

Message = MutableMapping[str, Any]
Scope = Message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

#: Bytes of a body; of a client that has not signed in.
MAX_BODY, MAX_BODY_UNKNOWN = 16 * 2**20, 64 * 2**10
#: Seconds within which a body must arrive.
BODY_TIME = 60.0
#: Key in the scope of a request over the connection limit (see `connections`).
FULL = "finalist.full"
_SAFE = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(:[0-9]{1,5})?")
#: Paths that need no token: the login form and its static files.
_OPEN = ("/login", "/logout", "/static/")


class Guard:
    """Passes a request on to the application, or rejects it.

    Parameters
    ----------
    hosts : sequence of str
        Names and addresses that the Host header may contain; "*.*.*.*" stands for every numeric
        address, which DNS rebinding cannot use.
    token : Token, optional
        Without one, everyone who reaches the server may do everything.
    behind_tls : bool
        Whether all clients connect through a TLS proxy.
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
        if self.behind_tls:  # as the browser sees it: cookies are Secure
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
        check_connection_limit(request)
        check_host(request.headers, self.hosts)
        check_origin(request)
        token_hash = self.token.hash()
        return None if token_hash is None else self._check_token(request, token_hash)

    def _is_open(self, request: Request) -> bool:
        # not `request.url`, which is built from the Host header
        return str(request.scope["path"]).startswith(_OPEN)

    def _most_body(self, request: Request) -> int:
        known = self.token.hash() is None or not self._is_open(request)
        return MAX_BODY if known else MAX_BODY_UNKNOWN

    def _check_token(self, request: Request, token_hash: str) -> Response | None:
        """Reject a request without the token; a browser is redirected to the login form."""
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
            "this server requires a token.",
            "Send the header 'Authorization: Bearer TOKEN'; the token was printed by "
            "'finalist serve --new-token'.",
            {"WWW-Authenticate": "Bearer"},
        )


def session_of(request: Request) -> str:
    """Return the session cookie of a browser."""
    return request.cookies.get(cookie_name("session", request.scope), "")


def check_connection_limit(request: Request) -> None:
    """Reject requests over the connection limit."""
    if FULL in request.scope:
        raise RefusedError(
            503,
            "BusyError",
            "this server has reached its connection limit, for your address or overall. "
            "Nothing was changed.",
            "Try again in a moment; close pages you no longer need.",
            {"Retry-After": "2", "Connection": "close"},
        )


def check_given(request: Request, token: str, token_hash: str, failures: Failures) -> None:
    """Reject a wrong token; after many, an address has to wait, but the right one always passes.

    Many people may share an address, as behind a proxy. Tokens cannot be guessed, so locking them
    all out would gain nothing; what is slowed down are programs with an old token.
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
            f"Wait {seconds} seconds before trying another; the right one is accepted at once.",
            {"Retry-After": str(seconds)},
        )
    failures.count(address)
    raise RefusedError(
        401,
        "token",
        "this is not the token of this server.",
        "'finalist serve --new-token' makes a new one and invalidates the old one.",
        {"WWW-Authenticate": "Bearer"},
    )


def check_host(headers: Headers, hosts: set[str]) -> None:
    """Reject a request that was meant for another host."""
    given = headers.getlist("host")
    found = _HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
    if found is None:
        raise RefusedError(400, "host", "the request has no valid Host header.")
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


def check_origin(request: Request) -> None:
    """Reject a change requested by another site, and a form of unknown origin.

    Every browser sends Origin with a POST, and most send Sec-Fetch-Site. Programs send neither and
    may use the API, whose JSON and CSV bodies no form of another site can send. A form on a page
    must name its origin. There are no CSRF tokens in forms besides: they would rely on a cookie,
    which other ports of the same host can set, while Origin distinguishes ports.
    """
    if request.method in _SAFE:
        return
    headers = request.headers
    sites, origins = headers.getlist("sec-fetch-site"), headers.getlist("origin")
    if wants_page(request) and not sites and not origins:
        raise RefusedError(
            403,
            "origin",
            "the request does not say which site this form is from. Nothing was changed.",
            "Use a current browser; programs use the API at /api/v1.",
        )
    same_site = all(site.lower() in ("same-origin", "none") for site in sites)
    if not same_site or not all(_same_host(o, headers.get("host", "")) for o in origins):
        raise RefusedError(
            403,
            "origin",
            "another site asked for this change; it was rejected.",
            "Do it on the page of this server.",
        )


def _same_host(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


async def _whole_body(request: Request, receive: Receive, most: int) -> Receive:
    """Read the body up to a size; return a `receive` that passes it on."""
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
            408, "too slow", "the body did not arrive in time.", headers={"Connection": "close"}
        ) from None
    return _replayed(bytes(body), receive)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that starts with a body that was already read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return first.pop() if first else await receive()

    return next_message


def _with_headers(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds the headers of every response."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            is_file = scope["path"].startswith("/static/")
            headers.setdefault("cache-control", FILES if is_file else PRIVATE)
        await send(message)

    return send_with_headers
