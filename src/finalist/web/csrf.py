"""A secret in a cookie that every form has to repeat: another site can send a form, not read it.

It is the second line of defence; the first is where a request says it comes from (`security`).
"""

import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any

from fastapi import Request

from finalist.web.headers import cookie_name
from finalist.web.refusals import RefusedError

FIELD = "csrf"
_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}")
#: Where the secret of a new browser waits for the headers of the answer.
_NEW = "finalist.csrf"
_SAFE = ("GET", "HEAD", "OPTIONS")


def csrf_of(request: Request) -> str:
    """Return the secret of this browser, a new one if it has none."""
    known = _known(request)
    if _SHAPE.fullmatch(known):
        return known
    return str(request.scope.setdefault(_NEW, secrets.token_urlsafe(32)))


def _known(request: Request) -> str:
    return request.cookies.get(cookie_name("form", request.scope), "")


def new_cookie(scope: Mapping[str, Any]) -> str | None:
    """Return the header that gives a browser its secret, None if it has one."""
    new = scope.get(_NEW)
    if new is None:
        return None
    name, secure = cookie_name("form", scope), "; Secure" if scope["scheme"] == "https" else ""
    return f"{name}={new}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000{secure}"


async def check_csrf(request: Request) -> None:
    """Refuse a form that does not repeat the secret; for every page that changes something."""
    if request.method in _SAFE:
        return
    known = _known(request)
    form = await request.form()
    given = form.get(FIELD)
    if not (
        isinstance(given, str)
        and _SHAPE.fullmatch(known)
        and hmac.compare_digest(given.encode(), known.encode())
    ):
        raise RefusedError(
            403,
            "form",
            "this form was not made for this browser, or the browser keeps no cookies. Nothing "
            "was changed.",
            "Go back, load the page again and repeat it.",
        )
