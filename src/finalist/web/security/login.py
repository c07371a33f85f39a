"""The login form: a browser trades the token for a session."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from finalist.web.errors import RefusedError
from finalist.web.headers import cookie_name
from finalist.web.render import render
from finalist.web.security.guard import check_given, session_of
from finalist.web.security.tokens import SESSION

router = APIRouter()


@router.get("/login")
def form(request: Request, next: str = "/") -> Response:
    """Show the login form."""
    if request.app.state.token.hash() is None:
        return RedirectResponse("/", status_code=303)
    return render(request, "login.html", message=None, next=_local(next))


@router.post("/login")
def sign_in(
    request: Request,
    token: Annotated[str, Form(max_length=1000)],
    next: Annotated[str, Form(max_length=4000)] = "/",
) -> Response:
    """Start a session if the token is right."""
    state = request.app.state
    token_hash = state.token.hash()
    if token_hash is None:
        return RedirectResponse("/", status_code=303)
    try:
        check_given(request, token.strip(), token_hash, state.failures)
    except RefusedError as refusal:
        page = render(
            request, "login.html", refusal.status, message=refusal.message, next=_local(next)
        )
        page.headers.update(refusal.headers)
        return page
    answer = RedirectResponse(_local(next), status_code=303)
    answer.set_cookie(
        cookie_name("session", request.scope),
        state.sessions.begin(token_hash),
        max_age=SESSION,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post("/logout")
def sign_out(request: Request) -> Response:
    """End the session and delete its cookie."""
    request.app.state.sessions.end(session_of(request))
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(
        cookie_name("session", request.scope),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


def _local(path: str) -> str:
    """Return the path to continue at; anything but a path on this server becomes "/"."""
    good = (
        path.startswith("/")
        and not path.startswith(("//", "/\\", "/login"))
        and (path.isprintable() and "\\" not in path)
    )
    return path if good else "/"
